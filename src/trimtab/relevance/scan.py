"""Looking for a few terms in many texts, without taking the texts apart."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress, repeat

from trimtab.relevance.scripts import breaks_words
from trimtab.relevance.spellings import LEAST_DIGITS, fold, more_words, plain_text
from trimtab.relevance.stems import stem
from trimtab.relevance.terms import MAX_TERM_CHARS, text_terms

__all__ = ["find_terms"]

_MOST_TERMS = 24
"""Terms that are looked for one by one: each is a pass over all texts. With more, texts are taken apart."""

_LETTER = "\x80"
"""Stands for any letter or digit that is not ASCII: no term that is looked for has it."""

_WORDS_ALONE = bytes(
    code
    if chr(code) == _LETTER
    else ord(chr(code).lower())
    if chr(code).isascii() and chr(code).isalnum()
    else ord(" ")
    for code in range(256)
)
"""Writes ASCII in small letters, with a space for all that is neither letter nor digit."""

_MOST_SIGNS = 16
"""Characters of a text that are not ASCII and are put into it one by one."""


def find_terms(texts: Sequence[str], terms: Collection[str], /) -> dict[str, dict[int, int]]:
    """Return which of the texts have each term, by place, and how often: as an `Index` would know."""
    found: dict[str, dict[int, int]] = {term: {} for term in terms}
    words = [term for term in found if term.isascii() and term.isalnum()]
    others: Sequence[int] = range(len(texts))
    if len(words) == len(found) <= _MOST_TERMS:
        in_ascii = [_in_ascii(text) for text in texts]
        _add_spellings(
            texts, in_ascii, numbers=any(len(word) >= LEAST_DIGITS and word.isdigit() for word in words)
        )
        _find_words(in_ascii, found)
        others = [place for place, text in enumerate(in_ascii) if text is None]
    for place in others:
        for term, count in _counts(texts[place], found):
            found[term][place] = count
    return found


def _add_spellings(texts: Sequence[str], in_ascii: list[str | None], *, numbers: bool) -> None:
    """Put behind texts what else their words may be looked for by; digits of numbers if any are asked for."""
    stops = list(accumulate(1 + (len(text) if text.isascii() else len(_bytes(text))) for text in texts))
    more: dict[int, list[str]] = {}
    for start, words in more_words("\n".join(texts), numbers=numbers):
        more.setdefault(bisect_right(stops, start), []).append(words)
    for place, others in more.items():
        if (text := in_ascii[place]) is not None:
            in_ascii[place] = " ".join((text, *others))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _in_ascii(text: str) -> str | None:
    """Return a text with a sign for each letter that is not ASCII; None where a term may be told otherwise.

    Quotes, dashes and accents are in most texts that are not ASCII, and to take such a text apart takes
    thirty times as long as to look for words in it.
    """
    if text.isascii():
        return text
    plain = fold(text).replace(_LETTER, " ")
    signs = [sign for sign in set(plain) if not sign.isascii()]
    if len(signs) > _MOST_SIGNS or max(map(len, plain.split()), default=0) > MAX_TERM_CHARS:
        return None
    for sign in signs:
        instead = _instead(sign)
        if instead is None:
            return None
        plain = plain.replace(sign, instead)
    return plain


@lru_cache(maxsize=1 << 12)
def _instead(sign: str) -> str | None:
    """Return what stands for a character: part of a word, or between words; None: neither, by itself."""
    if breaks_words(sign):
        return None
    return _LETTER if sign.isalnum() else " "


def _find_words(texts: Sequence[str | None], found: dict[str, dict[int, int]]) -> None:
    """Look for words in texts, all at once: one long text is searched, and cut apart, in C."""
    places = [place for place, text in enumerate(texts) if text is not None]
    there = [text for text in texts if text is not None]
    joined = b" " + " ".join(there).encode("latin-1").translate(_WORDS_ALONE) + b" "
    stops = list(accumulate(len(text) + 1 for text in there))
    for term, counts in found.items():
        prefix = _prefix(term)
        sought = f" {prefix}".encode("ascii")
        pieces = joined.split(sought)  # a pattern would look at every character
        # how the word goes on at each place where one begins so, and where that is
        rests = [piece.partition(b" ")[0] for piece in pieces[1:]]
        ends = accumulate(map(len(sought).__add__, map(len, pieces)))
        same = {rest for rest in set(rests) if stem(prefix + rest.decode("latin-1")) == term}
        hits = map(bisect_left, repeat(stops), compress(ends, map(same.__contains__, rests)))
        counts.update((places[at], often) for at, often in Counter(hits).items())


def _counts(text: str, terms: Collection[str]) -> Iterator[tuple[str, int]]:
    """Count those of the terms that a text has."""
    plain = plain_text(text)
    there = [term for term in terms if _prefix(term) in plain] if len(terms) <= _MOST_TERMS else terms
    if any(term.isascii() or len(set(term)) != len(term) for term in there):
        counted = Counter(text_terms(text))
        yield from ((term, counted[term]) for term in there if term in counted)
    else:  # pairs of characters, which occur where they stand
        yield from ((term, plain.count(term)) for term in there if term in plain)


def _prefix(term: str) -> str:
    """Return what every word of a stem begins with: "party" is the stem of "parties"."""
    return term.removesuffix("y") or term
