"""Looking for a few terms in many texts, without taking the texts apart."""

from __future__ import annotations

from bisect import bisect_right
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


def find_terms(texts: Sequence[str], terms: Collection[str], /) -> dict[str, list[tuple[int, int]]]:
    """Return which of the texts have each term, ascending, and how often: as an `Index` would know."""
    places: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    found = _find(list(places), terms)
    everywhere = list(places.values())  # a text that is there again is looked at once
    return {
        term: sorted((place, often) for one, often in counts.items() for place in everywhere[one])
        for term, counts in found.items()
    }


def _find(texts: Sequence[str], terms: Collection[str]) -> dict[str, dict[int, int]]:
    """Count each term in the texts that have it."""
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
    """Look for words in texts of ASCII, all at once: a search in one long text is done in C."""
    joined = (
        b" " + " ".join([texts[place] for place in places]).encode("ascii").translate(_WORDS_ALONE) + b" "
    )
    starts = list(accumulate((len(texts[place]) + 1 for place in places), initial=0))
    for term, counts in found.items():
        same: dict[bytes, bool] = {}
        sought = b" " + _needle(term).encode("ascii")
        at = joined.find(sought)  # a pattern would look at every character
        while at >= 0:
            end = joined.find(b" ", at + 1)
            word = joined[at + 1 : end]
            if (is_it := same.get(word)) is None:
                is_it = same[word] = stem(word.decode("ascii")) == term
            if is_it:
                place = places[bisect_right(starts, at) - 1]
                counts[place] = counts.get(place, 0) + 1
            at = joined.find(sought, end)


def _counts(text: str, terms: Collection[str]) -> Iterator[tuple[str, int]]:
    """Count those of the terms that a text has."""
    plain = plain_text(text)
    there = [term for term in terms if _prefix(term) in plain] if len(terms) <= _MOST_TERMS else terms
    if any(term.isascii() or len(set(term)) != len(term) for term in there):
        counted = Counter(text_terms(text))
        yield from ((term, counted[term]) for term in there if term in counted)
    else:  # pairs of characters, which occur where they stand
        yield from ((term, plain.count(term)) for term in there if term in plain)


def _needle(term: str) -> str:
    """Return what to look for behind a space: a word of one letter or with a digit is its own only word."""
    return _prefix(term) if len(term) > 1 and term.isalpha() else f"{term} "


def _prefix(term: str) -> str:
    """Return what every word of a stem begins with: "party" is the stem of "parties"."""
    return term.removesuffix("y") or term
