"""An index of texts that grows one by one, and says at any time which of them answer a question best."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log
from operator import mul

from trimtab.errors import ConfigurationError
from trimtab.relevance.scan import find_terms
from trimtab.relevance.terms import question_terms, text_terms

__all__ = ["NEIGHBOR_SHARE", "Index", "add_scores", "relevance", "worth"]

_SATURATION = 1.2
"""k1 of BM25: how soon one more of the same word says nothing new. The usual value."""
_LENGTH_WEIGHT = 0.75
"""b of BM25: how far a long text has to say more than a short one. The usual value."""
_ROOM_WEIGHT = 0.5
"""How far a text has to say more for the room it takes: one four times as long, twice as much."""

_LEAST_ROOM_CHARS = 40
"""Texts that are shorter take no less room: a word alone says little, though it is the question's."""

NEIGHBOR_SHARE = 0.5
"""Part of a text's score that those beside it have at least: an answer may lack the words of its question."""


def add_scores(
    scores: dict[int, float],
    postings: Collection[tuple[int, int]],
    chars: Mapping[int, int] | Sequence[int],
    /,
    *,
    texts: int,
    sum_chars: int,
    holders: float | None = None,
) -> None:
    """Add what texts score that have a term so often: by BM25.

    Args:
        scores: By place; added to.
        postings: Which texts have the term, and how often.
        chars: How long each of them is: enough to tell long from short in every script.
        texts: How many texts there are.
        sum_chars: How long all of them are.
        holders: How many texts have the term; None: those of the postings.
    """
    holders = len(postings) if holders is None else holders
    flat = _SATURATION * (1 - _LENGTH_WEIGHT)
    length = max(1.0, sum_chars / max(1, texts))
    slope = _SATURATION * _LENGTH_WEIGHT / length
    rarity = log(1 + (texts - holders + 0.5) / (holders + 0.5)) * (_SATURATION + 1)
    for place, often in postings:
        score = rarity * often / (often + flat + slope * chars[place])
        scores[place] = scores.get(place, 0.0) + score


def worth(score: float, chars: float, /) -> float:
    """Return what a text is worth for the room it takes.

    The last thing to be done to a score: what a text says for those beside it does not depend on how long it
    is, and what they are worth for it does on how long they are.

    Args:
        score: What the text says, and those beside it.
        chars: How long it is.
    """
    return score / float(max(chars, _LEAST_ROOM_CHARS) ** _ROOM_WEIGHT)


class Index:
    """Texts by their terms, ranked by BM25 (rare words count more, long texts less).

    Adding and removing take time linear in the text; a query takes time linear in the number of texts with a
    word of the question.

    Example:
        >>> index = Index()
        >>> for text in ("The rain stopped.", "Anna booked a flight to Oslo.", "Lunch?"):
        ...     place = index.add(text)
        >>> sorted(index.scores("When is Anna's flight?"))
        [1]
        >>> index.remove("Anna booked a flight to Oslo.", place=1)
        >>> index.scores("When is Anna's flight?")
        {}
    """

    __slots__ = ("_next", "_postings", "chars", "sum_chars")

    def __init__(self) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        """By term: which texts have it, ascending, and how often."""
        self._next = 0
        self.chars: dict[int, int] = {}
        """How long each text is, by place."""
        self.sum_chars = 0
        """How long all of them are."""

    def __len__(self) -> int:
        return len(self.chars)

    def add(self, text: str, /, *, place: int | None = None) -> int:
        """Add a text at a free place, and return the place, from 0.

        Without `place` it is added after all others.

        Args:
            text: The text to be found.
            place: Its place, from 0; None: after all others.
        """
        place = self._next if place is None else place
        self.add_terms(len(text), Counter(text_terms(text)), place=place)
        return place

    def add_terms(self, chars: int, terms: Mapping[str, int], /, *, place: int) -> None:
        """Add a text that is known by its terms only.

        Args:
            chars: How long it is.
            terms: How often it has each term.
            place: Its place, from 0.
        """
        if place in self.chars:
            raise ConfigurationError(f"place {place} of the index has a text: remove it first")
        self._next = max(self._next, place + 1)
        self.chars[place] = chars
        self.sum_chars += chars
        for term, often in terms.items():
            insort(self._postings.setdefault(term, []), (place, often))

    def remove(self, text: str, /, *, place: int) -> None:
        """Remove a text that was added; the index keeps nothing of it.

        The others keep their places.

        Args:
            text: The text that was added, word for word.
            place: Its place.
        """
        self.remove_terms(len(text), Counter(text_terms(text)), place=place)

    def remove_terms(self, chars: int, terms: Mapping[str, int], /, *, place: int) -> None:
        """Remove a text that is known by its terms only; see `add_terms`.

        Args:
            chars: How long it is.
            terms: How often it has each term.
            place: Its place.
        """
        if self.chars.get(place) != chars:
            raise ConfigurationError(
                f"place {place} of the index has another text or none: nothing was removed"
            )
        self.sum_chars -= self.chars.pop(place)
        for term, often in terms.items():
            postings = self._postings[term]
            del postings[bisect_left(postings, (place, often))]
            if not postings:
                del self._postings[term]

    def newest(self, term: str, most: int, /) -> list[tuple[int, int]]:
        """Return the last places that have a term, ascending, and how often each has it.

        At most `limit` of them.

        Args:
            term: A term, as `text_terms` yields it.
            most: Maximum number of places.
        """
        postings = self._postings.get(term, [])
        return postings[max(0, len(postings) - most) :]

    def scores(self, question: str, /) -> dict[int, float]:
        """Return the score of each text with a word of the question, by place; above 0.

        Args:
            question: Any text.
        """
        found: dict[int, float] = {}
        for term in question_terms(question):
            postings = self._postings.get(term, ())
            add_scores(found, postings, self.chars, texts=len(self.chars), sum_chars=self.sum_chars)
        return {place: worth(score, self.chars[place]) for place, score in found.items()}


def relevance(question: str, texts: Sequence[str], /, *, neighbors: float = NEIGHBOR_SHARE) -> list[float]:
    """Score neighboring texts by relevance to a question; 0.0 for irrelevant ones.

    Args:
        question: The question.
        texts: The texts, in their order.
        neighbors: Minimum share of a text's score for the texts next to it; the texts next to those get the
            same share of that, and so on.

    Complexity: O(n) in the characters of the texts.

    Example:
        >>> texts = ["Where is the cat?", "In the barn.", "Good night.", "Sleep well."]
        >>> scores = relevance("Did you see my cat?", texts)
        >>> [round(score / max(scores), 2) for score in scores]
        [1.0, 0.5, 0.25, 0.12]
    """
    times = Counter(texts)  # a text that is there again is looked at once
    chars, hits = list(map(len, times)), dict[int, float]()
    each = list(times.values())
    sum_chars = sum(map(mul, chars, each))
    for counts in find_terms(list(times), question_terms(question)).values():
        holders = sum([each[place] for place in counts])
        add_scores(hits, counts.items(), chars, texts=len(texts), sum_chars=sum_chars, holders=holders)
    found = [hits.get(place, 0.0) for place in range(len(times))]
    if len(found) < len(texts):
        scores = dict(zip(times, found, strict=True))
        found = [scores[text] for text in texts]
    reached = _reach(_reach(found, neighbors)[::-1], neighbors)[::-1]
    return [worth(score, len(text)) if score else 0.0 for score, text in zip(reached, texts, strict=True)]


def _reach(scores: Sequence[float], neighbors: float) -> list[float]:
    """Let each score reach those behind it, less with each step."""
    near, found = 0.0, list[float]()
    for score in scores:
        near *= neighbors
        if score > near:
            near = score
        found.append(near)
    return found
