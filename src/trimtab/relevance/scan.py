"""Looking for a few terms in many texts, without taking the texts apart."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

from trimtab.relevance.scripts import plain_text
from trimtab.relevance.stems import stem
from trimtab.relevance.terms import text_terms

__all__ = ["find_terms"]

_MOST_TERMS = 24
"""Terms that are looked for one by one: each is a pass over all texts. With more, texts are taken apart."""

_WORDS_ALONE = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256)
)
"""Writes ASCII in small letters, with a space for all that is neither letter nor digit."""


def find_terms(texts: Sequence[str], terms: Collection[str], /) -> dict[str, dict[int, int]]:
    """Return which of the texts have each term, by place, and how often: as an `Index` would know."""
    found: dict[str, dict[int, int]] = {term: {} for term in terms}
    words = [term for term in found if term.isascii() and term.isalnum()]
    others: Sequence[int] = range(len(texts))
    if len(words) == len(found) <= _MOST_TERMS:
        _find_words(texts, [place for place, text in enumerate(texts) if text.isascii()], found)
        others = [place for place, text in enumerate(texts) if not text.isascii()]
    for place in others:
        for term, count in _counts(texts[place], found):
            found[term][place] = count
    return found


def _find_words(texts: Sequence[str], places: Sequence[int], found: dict[str, dict[int, int]]) -> None:
    """Look for words in texts of ASCII, all at once: one long text is searched, and cut apart, in C."""
    joined = (
        b" " + " ".join([texts[place] for place in places]).encode("ascii").translate(_WORDS_ALONE) + b" "
    )
    stops = list(accumulate(len(texts[place]) + 1 for place in places))
    for term, counts in found.items():
        prefix = _prefix(term)
        sought = f" {prefix}".encode("ascii")
        pieces = joined.split(sought)  # a pattern would look at every character
        # up to each place where a word begins so, and how the word goes on there
        ends = accumulate(len(piece) + len(sought) for piece in pieces)
        rests = [piece[:at] if (at := piece.find(b" ")) >= 0 else piece for piece in pieces[1:]]
        same = {rest for rest in set(rests) if stem(prefix + rest.decode("ascii")) == term}
        hits = [bisect_left(stops, end) for end, rest in zip(ends, rests, strict=False) if rest in same]
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
