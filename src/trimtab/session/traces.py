"""What texts repeat of words that were overwritten: single words, and runs of words (SPEC E11).

A summary is written in a model's own words, so that a copy of a text is seldom in it; a name or a number is.
So what is looked for is each word that says something, and each three words in a row. What some other message
says as well is nobody's secret: a summary may have it from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from trimtab.formats.values import REDACTED
from trimtab.relevance import question_terms, text_terms
from trimtab.relevance.scripts import patterns
from trimtab.session.effects import Steps
from trimtab.stores import Event, SearchRequest
from trimtab.stores.search import searchable_text

RUN = 3
"""Words in a row that are no accident: "the belt drive" is said again by who heard it."""

_LEAST_CHARS = 3
"""Minimum letters or digits of a word that is searched for by itself; a shorter one is searched for in
runs."""

_MOST_ASKED = 64
"""Repeated words and runs of which the log is asked who else says them; any further count as repeated."""

_FOUND = 8
"""Messages that are looked at for each message overwritten, to see who else says a word."""

Gram = tuple[str, ...]
"""A word, two that hold a number, two characters of a script without spaces, or `RUN` of either; as terms."""

Place = tuple[int, int]
"""Where a part of a text begins and ends."""


class Traces:
    """The overwritten words, and their repetitions in other texts."""

    def __init__(self, patterns: Iterable[re.Pattern[str]] = ()) -> None:
        self._patterns = tuple(patterns)
        self._grams = set[Gram]()
        self._begins = set[str]()
        """With which words these begin."""
        self._elsewhere = set[Gram]()

    def take(self, text: str, /) -> None:
        """Search for the words of a text from now on."""
        said = text.replace(REDACTED, " ")  # by an earlier redaction
        grams = _telling_grams(_keys(said), question_terms(said))
        self._grams |= grams
        self._begins.update(gram[0] for gram in grams)

    def shared(self, text: str, /) -> set[Gram]:
        """Return what a text shares with those that were overwritten."""
        return {gram for _, gram in self._repeats(text)}

    def _repeats(self, text: str) -> Iterator[tuple[int, Gram]]:
        """List what a text shares with them, and at which of its words."""
        keys = _keys(text) if self._grams else []
        begins = self._begins
        for at in [at for at, key in enumerate(keys) if key in begins]:
            for size in (1, 2, RUN):
                gram = tuple(keys[at : at + size])
                if gram in self._grams:
                    yield at, gram

    def allow(self, grams: Iterable[Gram], /) -> None:
        """Do not count these as traces: other messages have them."""
        self._elsewhere |= {*grams}

    def places(self, text: str, /) -> list[Place]:
        """List where a text repeats what was overwritten, in order; none overlaps the next."""
        found = [match.span() for one in self._patterns for match in one.finditer(text) if match[0]]
        repeated = [(at, len(gram)) for at, gram in self._repeats(text) if gram not in self._elsewhere]
        if repeated:
            spans = [match.span() for match in _words(text).finditer(text)]
            found += [(spans[at][0], spans[at + size - 1][1]) for at, size in repeated]
        return _join(text, found)

    def tells(self, text: str, /) -> bool:
        """Tell whether a number, or a run of words, that was overwritten elsewhere remains in a text."""
        return any(len(gram) == RUN or any(map(str.isdigit, "".join(gram))) for gram in self.shared(text))


def without(text: str, places: Iterable[Place], /) -> str:
    """Return a text with a mark in each of these places."""
    made, end = list[str](), 0
    for start, after in places:
        made += (text[end:start], REDACTED)
        end = after
    return "".join((*made, text[end:]))


def says_nothing(text: str, /) -> bool:
    """Tell whether nothing but marks remains of a text."""
    return not _words(text).search(text.replace(REDACTED, ""))


def said_elsewhere(session: str, grams: Iterable[Gram], targets: Sequence[Event]) -> Steps[set[Gram]]:
    """Return which words and runs some other message says, that is not overwritten.

    Complexity: a search of the store for each, and for no more than `_MOST_ASKED`.
    """
    there, versions = set[Gram](), {event.version for event in targets}
    limit = _FOUND * (1 + min(len(targets), _FOUND))
    for gram in sorted(grams)[:_MOST_ASKED]:
        if gram in there:
            continue
        terms = ("".join(gram),) if max(map(len, gram)) == 1 else gram
        found: list[Event] = yield SearchRequest(session=session, terms=terms, limit=limit)
        for event in found:
            if event.kind == "message" and event.version not in versions and not event.data.get("redacted"):
                there |= _grams(_keys(searchable_text(event)))
    return there.intersection(grams)


def _join(text: str, places: list[Place]) -> list[Place]:
    """Join places that overlap, or have no word between them."""
    made = list[Place]()
    for start, end in sorted(places):
        if made and not _words(text).search(text, made[-1][1], start):  # nor where they overlap
            made[-1] = made[-1][0], max(end, made[-1][1])
        else:
            made.append((start, end))
    return made


def _keys(text: str) -> list[str]:
    """List the terms of a text's words, a character each where words are not spaced."""
    return list(map(_key, _words(text).findall(text)))


@lru_cache(maxsize=1 << 15)
def _key(word: str) -> str:
    return next(text_terms(word), "")


def _words(text: str) -> re.Pattern[str]:
    """Return what matches a word, or a character of a script without spaces."""
    return _ASCII_WORD if text.isascii() else _any_word()


_ASCII_WORD = re.compile("[A-Za-z0-9]+")


@lru_cache(maxsize=1)
def _any_word() -> re.Pattern[str]:
    run, word = patterns()
    return re.compile(rf"{run.removesuffix('+')}|{word}")


def _grams(keys: Sequence[str]) -> set[Gram]:
    singles: Iterable[Gram] = ((key,) for key in keys)
    return {*singles, *pairwise(keys), *zip(*(keys[at:] for at in range(RUN)), strict=False)}


def _telling_grams(keys: Sequence[str], terms: Sequence[str]) -> set[Gram]:
    """Return the grams of a text that say something: with a term that asks for something in it."""
    asked = set(terms)
    words = {(key,) for key in keys if len(key) >= _LEAST_CHARS and key in asked}
    pairs = {pair for pair in pairwise(keys) if "".join(pair) in asked or _is_value(pair)}
    runs: set[Any] = set(zip(*(keys[at:] for at in range(RUN)), strict=False))
    return words | pairs | {run for run in runs if not asked.isdisjoint(run) or _has_pair(run, asked)}


def _is_value(pair: Sequence[str]) -> bool:
    """Tell whether two words are a number with what it is of, as in "AB-17" and "17 oars"."""
    return len("".join(pair)) > _LEAST_CHARS and any(map(str.isdigit, "".join(pair)))


def _has_pair(run: Sequence[str], asked: set[str]) -> bool:
    return any("".join(pair) in asked for pair in pairwise(run))
