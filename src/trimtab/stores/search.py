"""What of an event can be found, by which terms, and in which order: the same on every store.

The terms are those of `trimtab.relevance`. A store's index only keeps numbers; what they mean is said here.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from trimtab._shared.steps import Steps
from trimtab.relevance.index import NEIGHBOR_SHARE, add_scores, worth
from trimtab.relevance.terms import text_terms
from trimtab.stores.base import Event, Found

MAX_POSTINGS = 1_000
"""Of a term that more messages have, only the newest so many are looked at: what a search reads does not
grow with the log. How rare it is, is then known from how close together these stand."""

MAX_SHARED_POSTINGS = 20_000
"""Where several terms are asked for, so many are looked at of all that more messages have, the same part of
each: one message may have two words that very many have one by one."""

NEIGHBOR_STEPS = 2
"""How many messages on either side of one that has a term are found with it: the next has half of its score,
and the one behind that a quarter."""

NEIGHBOR_REACHES = (4, 16, 64)
"""How many versions on either side are looked at for these messages, one after the other while some are
missing. What is written between two messages counts for no step: a reported usage, what was recalled, a
summary, up to 33 events of facts."""

_OPAQUE = frozenset(
    (
        "role",
        "type",
        "id",
        "data",
        "signature",
        "encrypted_content",
        "cache_control",
        "media_type",
        "mime_type",
    )
)
"""Keys of plain data whose values nobody looks for; and every key that ends in `_id`."""

_ENCODED = re.compile(r"data:[^,\s]{0,200},|[A-Za-z0-9+/_-]{200,}={0,2}\s*\Z")
"""A data URL, or a long run of base64 without a space."""


def usable_terms(terms: Iterable[str], /) -> tuple[str, ...]:
    """Return those of a request's terms that a server takes, each once; others are found nowhere."""
    return tuple(term for term in dict.fromkeys(terms) if term.isprintable())


def searchable_text(event: Event, /) -> str:
    """Return the searchable text of a message or fact; empty for other events.

    For a fact: its text, a word shared by all facts of that text, and one for the fact it supersedes; no user
    types these words. For a message: all texts and numbers, including content of any shape, names, and
    arguments of calls. Roles, types, ids and encoded data (base64, data URLs, signatures) are not included.

    Args:
        event: An event of a log.
    """
    if (sealed := _sealed_terms(event)) is not None:
        return " ".join(Counter(sealed[1]).elements())
    if event.kind == "fact":
        text, old = str(event.data.get("text", "")), event.data.get("supersedes", 0)
        marks = ([text_mark(text)] if text else []) + ([supersedes_mark(old)] if old else [])
        return "\n".join([text, *marks] if text else marks)
    return "\n".join(_strings(event.message)) if event.kind == "message" else ""


def fact_key(text: str, /) -> str:
    """Return what two facts that say the same have in common: the text without case and last stop."""
    return text.casefold().rstrip(".。!！ ")


def text_mark(text: str, /) -> str:
    """Return the term of all facts that have a text."""
    return _mark(f"text {fact_key(text)}")


def supersedes_mark(version: int, /) -> str:
    """Return the term of all facts that were to stand in the place of one."""
    return _mark(f"supersedes {version}")


def _mark(what: str) -> str:
    """Return one word that no stem is taken of: it begins with a digit."""
    return f"0{blake2b(what.encode('utf-8', 'replace'), digest_size=5).hexdigest()}"


def _strings(value: Any) -> Iterator[str]:
    """List the texts in plain data; iteratively, as data may be nested deeper than Python's stack."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not _ENCODED.match(one):
                yield _readable(one)
        elif isinstance(one, Mapping):
            waiting += reversed([one[key] for key in one if not _is_opaque(key)])
        elif isinstance(one, (list, tuple)):
            waiting += reversed(one)
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            yield str(one)


def _is_opaque(key: Any) -> bool:
    return key in _OPAQUE or (isinstance(key, str) and key.endswith("_id"))


def _readable(text: str) -> str:
    """Return JSON inside a text, as the arguments of a call are, with its characters written out."""
    if "\\u" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def event_terms(event: Event, /) -> tuple[int, Counter[str]]:
    """Return how long an event's text is, in characters, and how often it has each of its terms."""
    if (sealed := _sealed_terms(event)) is not None:
        return sealed
    text = searchable_text(event)
    return len(text), Counter(text_terms(text))


SEALED = "trimtab.sealed"
"""Key of the data of an event that an encrypted store wrote: what stands there only its keys open."""


def _sealed_terms(event: Event) -> tuple[int, Counter[str]] | None:
    """Return what an encrypted store says an event is found by; None for all other events."""
    if SEALED not in event.data:
        return None
    chars, terms = event.data.get("chars", 0), event.data.get("terms")
    return (chars, Counter(terms)) if isinstance(chars, int) and isinstance(terms, dict) else (0, Counter())


@dataclass(slots=True)
class Ranking:
    """What an index knows of the terms that are asked for, and which messages are the best by that."""

    version: int
    """Of the session."""
    texts: int
    """How many messages have a text."""
    sum_chars: int
    """How long these are together."""
    chars: dict[int, int] = field(default_factory=dict)
    """How long each is that has a term, by version."""
    postings: dict[str, dict[int, int]] = field(default_factory=dict)
    """By term: the newest versions that have it, one more than `most` if there are, and how often."""
    most: int = MAX_POSTINGS
    """So many of the newest postings of a term count."""

    @classmethod
    def of_rows(
        cls, head: tuple[int, int, int], terms: Sequence[str], rows: Iterable[Sequence[Any]], /
    ) -> Ranking:
        """Make one of (version, texts, sum of characters) and rows of (term, version, often, characters)."""
        ranking = cls(*head, {}, {term: {} for term in terms})
        ranking.add_rows(rows)
        return ranking

    def add_rows(self, rows: Iterable[Sequence[Any]], /) -> None:
        """Take in rows of (term, version, often, characters); some may be known."""
        for term, version, often, length in rows:
            self.postings[term][version] = often
            self.chars[version] = length

    def add_events(self, events: Iterable[Event], /) -> None:
        """Take in events that the index does not know yet."""
        for event in events:
            length, terms = event_terms(event)
            self.texts, self.sum_chars = self.texts + (length > 0), self.sum_chars + length
            self.chars[event.version] = length
            for term in self.postings.keys() & terms.keys():
                self.postings[term][event.version] = terms[term]

    def look_further(self) -> list[str]:
        """Say of which terms `most + 1` postings are to be read now: of two or more that are common.

        A term that stands alone says the same of each message: the newest are as good as any.
        """
        common = [term for term, them in self.postings.items() if len(them) > MAX_POSTINGS]
        most = MAX_SHARED_POSTINGS // max(1, len(common))
        if most <= MAX_POSTINGS or sum(map(bool, self.postings.values())) < 2:
            return []
        self.most = most
        return common

    @property
    def since(self) -> int:
        """The version from which on every message was looked at that has a term; 1: all were."""
        return max(
            (self._newest(them)[0] for them in self.postings.values() if len(them) > self.most), default=1
        )

    def _newest(self, them: Mapping[int, int]) -> list[int]:
        """List the newest versions that have a term, ascending: those that count."""
        return sorted(them)[-self.most :]

    def best(self, limit: int, /) -> Steps[list[int]]:
        """Return the versions to answer with, the best first, newer before older where they are as good.

        Yields lists of versions, and is sent the kinds of the events that have them, by version.
        """
        hits = self._scores()
        usual = self.sum_chars / max(1, self.texts)
        # Who has neighbors is bounded: those that say most, however long they are.
        first = heapq.nlargest(limit, hits, key=lambda version: (hits[version], version))
        found = {version: worth(score, self.chars[version]) for version, score in hits.items()}
        for version, messages in (yield from self._beside(first)):
            for step, near in enumerate(messages, 1):
                # One without the terms, whose length is not known, is as long as usual, and no shorter than
                # the hit: it never stands before what it was found by.
                length = self.chars[near] if near in hits else max(usual, self.chars[version])
                share = worth(hits[version] * NEIGHBOR_SHARE**step, length)
                found[near] = max(found.get(near, 0.0), share)
        return heapq.nlargest(limit, found, key=lambda version: (found[version], version))

    def _beside(self, versions: Sequence[int]) -> Steps[list[tuple[int, list[int]]]]:
        """List the nearest messages on each side of those versions that are messages; facts have none."""
        sides = [(version, step) for version in versions for step in (-1, 1)]
        kinds: dict[int, str] = {}
        near: dict[tuple[int, int], list[int]] = {}
        for reach in NEIGHBOR_REACHES:
            spans = {side: self._span(*side, reach) for side in sides}
            wanted = {one for (version, _), span in spans.items() for one in (version, *span)} - kinds.keys()
            if wanted:
                kinds.update((yield sorted(wanted)))
            for side, span in spans.items():
                messages = [one for one in span if kinds.get(one) == "message"]
                near[side] = messages[:NEIGHBOR_STEPS] if kinds.get(side[0]) == "message" else []
            sides = [
                side for side in sides if kinds.get(side[0]) == "message" and len(near[side]) < NEIGHBOR_STEPS
            ]
        return [(version, messages) for (version, _), messages in near.items()]

    def _span(self, version: int, step: int, reach: int) -> range:
        """Return the versions on one side of another, the nearest first, no further than the log goes."""
        last = min(max(version + step * reach, 1), self.version)
        return range(version + step, last + step, step)

    def _scores(self) -> dict[int, float]:
        """Return what each message that has a term scores, by version."""
        scores: dict[int, float] = {}
        for them in self.postings.values():
            newest = self._newest(them)
            holders = float(len(newest))
            # Of a term that is cut off nobody counts the holders: it is taken to be as dense all along.
            if len(them) > self.most:
                span = self.version - newest[0] + 1
                holders = min(float(self.texts), holders * self.version / span)
            add_scores(
                scores,
                [(version, them[version]) for version in newest],
                self.chars,
                texts=self.texts,
                sum_chars=self.sum_chars,
                holders=holders,
            )
        return scores


def found_in_order(versions: Iterable[int], events: Iterable[Event], /, *, since: int) -> Found:
    """Return the events that are there, in the order of these versions."""
    at = {event.version: event for event in events}
    return Found((at[version] for version in versions if version in at), since=since)
