"""Which details does a text say that somebody may take from it: identifiers, numbers, paths and lines?

They are what can be told without a model to be one and the same: plain words are none, since two texts share
those by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = ["DetailKind", "details_in", "held_by"]

DetailKind: TypeAlias = Literal["identifier", "number", "path", "line"]

_LEAST_DIGITS = 3
_LEAST_IDENTIFIER_CHARS = 4
_LEAST_LINE_CHARS = 20
"""Shorter lines, such as `return None`, are written by chance."""
_MOST_LINE_CHARS = 1_000
_MOST_WORD_CHARS = 200
"""What is longer is data: a picture in base64 has slashes, too."""
_MOST_FOLDERS = 12

_WORDS = re.compile(r"[A-Za-z0-9_./~@+,\-]+")
_BETWEEN = re.compile(r"[./~@+]+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_ORDINAL = re.compile(r"[0-9]+(?:st|nd|rd|th)")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_LETTER, _DIGIT = re.compile(r"[A-Za-z]"), re.compile(r"[0-9]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([^\W\d_]|[\"/\\]))")
_SIGNS = {"n": "\n", "r": "\n", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_GUTTER = re.compile(r"(?:[^\s:]{1,200}:)?[0-9]{1,7} ?[:|→\-]? ?")
"""The number of a line before it, as `cat -n`, `grep -n` and agents' read tools write it, blanks folded."""


class _Word(NamedTuple):
    """What one word says."""

    says: dict[str, DetailKind]
    holds: tuple[str, ...]
    """That, and what it would be in other words: a path by its end, or a list without its commas."""


_NOTHING = _Word({}, ())


def details_in(text: str, /) -> dict[str, DetailKind]:
    """Return the details that a text says in its order, each in one spelling, with their kinds.

    Keys of JSON are not among them: those of arguments are given by the tool's schema.
    """
    found: dict[str, DetailKind] = {}
    for plain in _plain_texts(text, keys=False):
        for word in _words(plain):
            found.update(word.says)
        found.update((line, "line") for line in _lines(plain))
    return found


def held_by(text: str, /) -> set[str]:
    """Return the details that may be taken from a text: those it says, and parts of them.

    Of a path also its ends and beginnings, of a line also what is behind its number.
    """
    found = set[str]()
    for plain in _plain_texts(text, keys=True):
        for word in _words(plain):
            found.update(word.holds)
        for line in _lines(plain):
            found.add(line)
            numbered = _GUTTER.match(line)
            if numbered is not None:
                found.add(line[numbered.end() :])
    return found


def _plain_texts(text: str, *, keys: bool) -> Iterator[str]:
    """Yield what is written in a text: of JSON its values and keys, so that it may be laid out anyhow."""
    if text[:1] in ("{", "[") or text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            pass
        else:
            yield from map(_without_escapes, _leaves(value, keys=keys))
            return
    yield _without_escapes(text)


def _leaves(value: Any, *, keys: bool) -> Iterator[str]:
    """Yield the keys and texts in JSON; numbers were read as texts."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from one if keys else ()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _without_escapes(text: str) -> str:
    """Take escapes of JSON for what they mean, as JSON that was cut cannot be read."""
    return _ESCAPE.sub(_sign, text) if "\\" in text else text


def _sign(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SIGNS.get(escape[2], escape[0])


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are told from others by their text; a path alone is a path."""
    for line in text.split("\n"):
        if _LEAST_LINE_CHARS <= len(line) <= _MOST_LINE_CHARS:
            words = line.split()
            folded = " ".join(words)
            if len(folded) >= _LEAST_LINE_CHARS and (len(words) > 1 or not folded.isascii()):
                yield folded


def _words(text: str) -> Iterator[_Word]:
    """Read each word of a text once; long ones are rows of data, and not remembered."""
    for word in dict.fromkeys(_WORDS.findall(text)):
        yield _read_again(word) if len(word) <= _MOST_WORD_CHARS else _read(word)


@lru_cache(maxsize=1 << 16)
def _read_again(word: str) -> _Word:
    return _read(word)


def _read(word: str) -> _Word:
    """Say what a word without blanks says."""
    bare = word.strip(".,-+@")
    if len(bare) < _LEAST_DIGITS or (bare.isalpha() and _INNER_CAPITAL.search(bare) is None):
        return _NOTHING  # as most words are
    if _GROUPED.fullmatch(bare):  # 1,234, or a list of numbers without blanks
        says = _numbers(bare.replace(",", ""))
        return _Word(says, (*says, *(one for part in bare.split(",") for one in _numbers(part))))
    says, holds = dict[str, DetailKind](), list[str]()
    for piece in bare.split(","):
        one = _read_piece(piece.strip(".-+@"))
        says.update(one.says)
        holds += one.holds
    return _Word(says, tuple(holds))


def _read_piece(piece: str) -> _Word:
    if not _LEAST_DIGITS <= len(piece) <= _MOST_WORD_CHARS:
        return _NOTHING
    if _NUMBER.fullmatch(piece):
        found = _numbers(piece)
        return _Word(found, tuple(found))
    words: dict[str, DetailKind] = {}
    inner = list[str]()
    for word in _BETWEEN.split(piece):
        words.update(_word(word))
        if "-" in word:
            inner += [one for part in word.split("-") for one in _word(part)]
    folders = _folders(piece)
    if not folders:
        return _Word(words, (*words, *inner))
    parts = _parts_of_path(folders)
    is_path = _is_path(piece, folders)
    return _Word({"/".join(folders): "path"} if is_path else words, (*parts, *words, *inner))


def _numbers(digits: str) -> dict[str, DetailKind]:
    """Return a number in its shortest spelling, if it has enough digits: 50.00 is 50."""
    if digits.count(".") == 1:
        digits = digits.rstrip("0").rstrip(".")
    return {digits: "number"} if len(digits.replace(".", "")) >= _LEAST_DIGITS else {}


def _word(word: str) -> dict[str, DetailKind]:
    """Return a word if it is an identifier or a number."""
    word = word.strip("-_")
    if word.isdigit():
        return _numbers(word)
    return {word: "identifier"} if _is_identifier(word) else {}


def _is_identifier(word: str) -> bool:
    """Tell whether a word is none of a language: joined, with digits, or with a capital inside."""
    if len(word) < _LEAST_IDENTIFIER_CHARS:
        return False
    if _DIGIT.search(word):
        return bool(_LETTER.search(word) or len(word) >= 2 * _LEAST_DIGITS) and not _ORDINAL.fullmatch(word)
    return "_" in word or _INNER_CAPITAL.search(word) is not None


def _folders(piece: str) -> list[str]:
    """Return the names of a path; empty where it is none."""
    if "/" not in piece or not _LETTER.search(piece):
        return []
    names = [one for one in piece.split("/") if one not in ("", ".", "..", "~")]
    return names if len(names) > 1 else []


def _is_path(piece: str, folders: list[str]) -> bool:
    """Tell whether it is a path and no "and/or"."""
    return piece[0] in "/.~" or len(folders) > 2 or "." in folders[-1]


def _parts_of_path(folders: list[str]) -> list[str]:
    """Return a path, its ends and its beginnings: those who know the folder write a part of it."""
    count = len(folders)
    if count > _MOST_FOLDERS:
        return ["/".join(folders)]
    ends = ["/".join(folders[at:]) for at in range(count - 1)]
    return [*ends, *("/".join(folders[:at]) for at in range(2, count))]
