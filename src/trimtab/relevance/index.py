"""An index of texts that grows one by one, and says at any time which of them answer a question best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from trimtab.relevance.scripts import plain_text
from trimtab.relevance.terms import question_terms, text_terms

__all__ = ["NEIGHBOR_SHARE", "Index", "relevance"]

_SATURATION = 1.2
"""k1 of BM25: how soon one more of the same word says nothing new. The usual value."""
_LENGTH_WEIGHT = 0.75
"""b of BM25: how far a long text has to say more than a short one. The usual value."""

NEIGHBOR_SHARE = 0.5
"""Part of a text's score that those beside it have at least: an answer may lack the words of its question."""

_NEEDLES = 16
"""Most words that are looked for in a text before it is taken apart: more cost more than that saves."""


class Index:
    """Texts by their terms, ranked by BM25 (rare words count more, long texts less).

    Adding takes time linear in the text, asking in the number of texts that have a word of the question.

    Args:
        only: Terms that will be asked for; others are not remembered. None: every term.

    Example:
        >>> index = Index()
        >>> for text in ("The rain stopped.", "Anna booked a flight to Oslo.", "Lunch?"):
        ...     place = index.add(text)
        >>> sorted(index.scores("When is Anna's flight?"))
        [1]
    """

    __slots__ = ("_chars", "_lengths", "_needles", "_only", "_postings")

    def __init__(self, *, only: Iterable[str] | None = None) -> None:
        self._only = None if only is None else frozenset(only)
        self._needles = _needles_of(self._only)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        """By term: which texts have it, ascending, and how often."""
        self._lengths: list[int] = []
        """Characters of each text: enough to tell long from short, in every script."""
        self._chars = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str, /) -> int:
        """Put a text behind the others; returns its place, from 0."""
        place, only = len(self._lengths), self._only
        self._lengths.append(len(text))
        self._chars += len(text)
        if only is None:
            found = Counter(text_terms(text))
        elif self._may_tell(text):
            found = Counter(term for term in text_terms(text) if term in only)
        else:
            return place
        for term, count in found.items():
            self._postings.setdefault(term, []).append((place, count))
        return place

    def _may_tell(self, text: str) -> bool:
        """Tell whether a text can have one of the terms, without taking it apart."""
        if self._needles is None:
            return True
        plain = plain_text(text)
        return any([needle in plain for needle in self._needles])

    def scores(self, question: str, /) -> dict[int, float]:
        """Return what each text that has a word of the question scores, by place; above 0."""
        count, found = len(self._lengths), dict[int, float]()
        average = max(1.0, self._chars / max(1, count))
        flat, slope = _SATURATION * (1 - _LENGTH_WEIGHT), _SATURATION * _LENGTH_WEIGHT / average
        for term in question_terms(question):
            postings = self._postings.get(term, ())
            rarity = log(1 + (count - len(postings) + 0.5) / (len(postings) + 0.5)) * (_SATURATION + 1)
            for place, often in postings:
                score = rarity * often / (often + flat + slope * self._lengths[place])
                found[place] = found.get(place, 0.0) + score
        return found


def _needles_of(terms: frozenset[str] | None) -> tuple[str, ...] | None:
    """Return what stands in every text that has one of these terms; None where it is not worth looking."""
    if terms is None or len(terms) > _NEEDLES:
        return None
    return tuple(sorted({term.removesuffix("y") or term for term in terms}))  # "party" is that of "parties"


def relevance(question: str, texts: Sequence[str], /, *, neighbors: float = NEIGHBOR_SHARE) -> list[float]:
    """Score neighboring texts by how much they say about a question; 0.0 for nothing.

    Args:
        question: What is asked.
        texts: In the order in which they stand.
        neighbors: Part of a text's score that the texts beside it have at least; those beside these have
            the same part of that, and so on.

    Complexity: O(n) in the characters of the texts.

    Example:
        >>> texts = ["Where is the cat?", "In the barn.", "Good night.", "Sleep well."]
        >>> scores = relevance("Did you see my cat?", texts)
        >>> [round(score / max(scores), 2) for score in scores]
        [1.0, 0.5, 0.25, 0.12]
    """
    index = Index(only=question_terms(question))
    for text in texts:
        index.add(text)
    found = [0.0] * len(texts)
    for place, score in index.scores(question).items():
        found[place] = score
    for forward in (True, False):  # so that a hit reaches both ways, less with each step
        near = 0.0
        for place in range(len(found)) if forward else reversed(range(len(found))):
            found[place] = near = max(found[place], near * neighbors)
    return found
