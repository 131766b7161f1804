"""An index of texts that grows one by one, and says at any time which of them answer a question best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from trimtab.relevance.scan import find_terms
from trimtab.relevance.terms import question_terms, text_terms

__all__ = ["NEIGHBOR_SHARE", "Index", "relevance"]

_SATURATION = 1.2
"""k1 of BM25: how soon one more of the same word says nothing new. The usual value."""
_LENGTH_WEIGHT = 0.75
"""b of BM25: how far a long text has to say more than a short one. The usual value."""

NEIGHBOR_SHARE = 0.5
"""Part of a text's score that those beside it have at least: an answer may lack the words of its question."""


class Lengths:
    """How long each text is, in characters, which is enough to tell long from short in every script."""

    __slots__ = ("_sum", "chars")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.chars = list(map(len, texts))
        """Of each text."""
        self._sum = sum(self.chars)

    def add(self, text: str, /) -> int:
        """Put a text behind the others; returns its place, from 0."""
        self.chars.append(len(text))
        self._sum += len(text)
        return len(self.chars) - 1

    def score(self, postings: Sequence[tuple[int, int]], scores: dict[int, float], /) -> None:
        """Add what the texts score that have a term so often, by BM25."""
        chars, count = self.chars, len(self.chars)
        flat = _SATURATION * (1 - _LENGTH_WEIGHT)
        slope = _SATURATION * _LENGTH_WEIGHT / max(1.0, self._sum / max(1, count))
        rarity = log(1 + (count - len(postings) + 0.5) / (len(postings) + 0.5)) * (_SATURATION + 1)
        for place, often in postings:
            score = rarity * often / (often + flat + slope * chars[place])
            scores[place] = scores.get(place, 0.0) + score


class Index:
    """Texts by their terms, ranked by BM25 (rare words count more, long texts less).

    Adding takes time linear in the text, asking in the number of texts that have a word of the question.

    Example:
        >>> index = Index()
        >>> for text in ("The rain stopped.", "Anna booked a flight to Oslo.", "Lunch?"):
        ...     place = index.add(text)
        >>> sorted(index.scores("When is Anna's flight?"))
        [1]
    """

    __slots__ = ("_lengths", "_postings")

    def __init__(self) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        """By term: which texts have it, ascending, and how often."""
        self._lengths = Lengths()

    def __len__(self) -> int:
        return len(self._lengths.chars)

    def add(self, text: str, /) -> int:
        """Put a text behind the others; returns its place, from 0."""
        place = self._lengths.add(text)
        for term, count in Counter(text_terms(text)).items():
            self._postings.setdefault(term, []).append((place, count))
        return place

    def scores(self, question: str, /) -> dict[int, float]:
        """Return what each text that has a word of the question scores, by place; above 0."""
        found: dict[int, float] = {}
        for term in question_terms(question):
            self._lengths.score(self._postings.get(term, ()), found)
        return found


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
    lengths, hits = Lengths(texts), dict[int, float]()
    for postings in find_terms(texts, question_terms(question)).values():
        lengths.score(postings, hits)
    found = [hits.get(place, 0.0) for place in range(len(texts))]
    for forward in (True, False):  # so that a hit reaches both ways, less with each step
        near = 0.0
        for place in range(len(found)) if forward else reversed(range(len(found))):
            found[place] = near = max(found[place], near * neighbors)
    return found
