"""How else a word may be written: without case and accents, apart, or with two letters for one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["LEAST_DIGITS", "fold", "more_words", "plain_text"]

_KINDS = bytes(
    ord("A")
    if 65 <= code <= 90
    else ord("a")
    if 97 <= code <= 122
    else ord("0")
    if 48 <= code <= 57
    else ord("-")
    if chr(code) in " ./-(),"
    else ord("?")
    for code in range(256)
)
"""Writes of each character what kind it is: what may be split is found in C; most texts have little of it."""

_ALONE = bytes(code if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256))
"""Writes a space for all that is no letter or digit of ASCII."""

_HUMP = re.compile(b"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
"""Where a part of an identifier begins that only its case tells."""

_MOST_LETTERS = 64
"""Of a word that has parts."""

_MOST_HUMPS = 7
"""Of an identifier that a person made; what has more is a key, or encoded."""

_SPACED_NUMBER = re.compile(rb"(?<![\w.,])\d+(?:(?:[ ./-]|\) ?| \(|,(?=\d{3}(?!\d)))\d+){1,6}(?!\w)")
"""A telephone number, a date, an amount: groups of digits."""

_GROUPS = re.compile(b"(?<!0)0+--?0")
"""Where a number in groups may begin, in what kind each character is."""

LEAST_DIGITS, _MOST_DIGITS = 5, 19
"""Of a number that people write in groups; that of a card has up to 19."""

_TWO_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
"""What some letters are written as where a keyboard has none of them."""

_ONE_OF_TWO = re.compile("[äöüåø]")
_LATIN_WORD = re.compile("[a-z0-9ß-ɏ]+")

_ACCENTS = dict.fromkeys(range(0x300, 0x370))
"""Marks of Latin, Greek and Cyrillic letters. In other scripts a mark is a vowel, or makes another letter."""

_STROKES = str.maketrans({"ø": "o", "đ": "d", "ħ": "h", "ł": "l", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"})
"""Letters that Unicode takes for whole, and people write without their stroke all the same."""


def plain_text(text: str, /) -> str:
    """Return a text without case and accents, and with one spelling for each character (NFKC).

    Behind it stand other spellings of its words: the parts of `getUserName`, the digits of 030 12-34, and
    "mueller" of "müller", which is "muller" by then.

    Example:
        >>> plain_text("Zoë"), plain_text("getUserName")
        ('zoe', 'getusername get user name')
    """
    more = " ".join(words for _, words in more_words(text))
    return fold(f"{text} {more}" if more else text)


def fold(text: str, /) -> str:
    """Return a text as `plain_text` does, without the parts of its words and the digits of numbers."""
    if text.isascii():
        return text.lower()
    # Once more after casefold, which takes some letters apart again: a term of a term is itself.
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if _ONE_OF_TWO.search(plain):
        words = [word for word in _LATIN_WORD.findall(plain) if _ONE_OF_TWO.search(word)]
        plain = f"{plain} {' '.join(words).translate(_TWO_LETTERS)}"
    apart = unicodedata.normalize("NFD", plain).translate(_ACCENTS)
    return unicodedata.normalize("NFKC", apart).translate(_STROKES)


def more_words(text: str, /, *, numbers: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the parts of words that only case tells, and the digits of numbers that are written in groups.

    Each with the place of the word, in bytes of UTF-8.
    """
    raw = text.encode("utf-8", "replace")
    kinds = raw.translate(_KINDS)
    yield from _parts(raw, kinds)
    if numbers:
        yield from _digits(raw, kinds)


def _parts(raw: bytes, kinds: bytes) -> Iterator[tuple[int, str]]:
    alone, seen = b"", set[int]()
    for hump in (b"aA", b"AAaa"):
        at = kinds.find(hump)
        while at >= 0:
            alone = alone or raw.translate(_ALONE)
            start, end = alone.rfind(b" ", 0, at) + 1, alone.find(b" ", at)
            word = alone[start : len(alone) if end < 0 else end]
            parts = _HUMP.sub(b" ", word) if len(word) <= _MOST_LETTERS and start not in seen else b""
            if 0 < parts.count(b" ") <= _MOST_HUMPS:
                seen.add(start)
                yield start, parts.decode("ascii")
            at = kinds.find(hump, start + len(word))


def _digits(raw: bytes, kinds: bytes) -> Iterator[tuple[int, str]]:
    done = 0
    for found in _GROUPS.finditer(kinds):
        if found.start() >= done and (number := _SPACED_NUMBER.match(raw, found.start())):
            done = number.end()
            digits = "".join(filter(str.isdigit, number[0].decode("ascii")))
            if LEAST_DIGITS <= len(digits) <= _MOST_DIGITS:
                yield found.start(), digits
