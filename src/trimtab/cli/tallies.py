"""What `trimtab stats` adds up: lengths, what takes the room, what is there twice, what budgets would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trimtab.cli.lengths import Lengths
from trimtab.cli.output import Place
from trimtab.counting import AdditiveCounter
from trimtab.counting.measurement import Counted
from trimtab.counting.sizes import shared_out
from trimtab.formats import Format, Pieces, Structure
from trimtab.formats.values import Dict

__all__ = ["BudgetTally", "Repeats", "Share", "Tally", "calls_in"]

_MEDIA = {"image": "images", "audio": "sounds", "video": "videos", "file": "files"}
_LEAST_REPEAT_TOKENS = 16
"""A text that is shorter is said again by anybody: "thanks"."""
_MOST_TEXTS = 100_000
"""Texts of which is remembered that they were there: some 20 MB."""


@dataclass(slots=True)
class Share:
    """A part of all tokens: how many messages or results it is of, and the largest of them."""

    count: int = 0
    tokens: int = 0
    most_tokens: int = 0

    def add(self, tokens: int) -> None:
        """Take one more into it."""
        self.count += 1
        self.tokens += tokens
        self.most_tokens = max(self.most_tokens, tokens)


class Repeat(NamedTuple):
    """A text that is there more than once, by where it stood first."""

    place: Place
    at: int
    what: str
    tokens: int


class Repeats:
    """Texts that are there again, told by their hashes; so many are remembered and no more."""

    def __init__(self) -> None:
        self._first: dict[int, Repeat] = {}
        self._again: Counter[int] = Counter()
        self._own: set[int] = set()
        self.within = Share()
        """Of the same conversation."""
        self.across = Share()
        """Of another one."""

    def begin(self) -> None:
        """Go on with the next conversation."""
        self._own.clear()

    def add(self, texts: tuple[str, ...], repeat: Repeat) -> None:
        """Take the text of a message."""
        key = hash(texts)
        if key in self._own:
            self.within.add(repeat.tokens)
        elif key in self._first:
            self.across.add(repeat.tokens)
        self._own.add(key)
        if key in self._first:
            self._again[key] += 1
        elif len(self._first) < _MOST_TEXTS:
            self._first[key] = repeat

    def most(self, count: int) -> Iterator[tuple[Repeat, int]]:
        """List what takes most by being there again, each with how often it is."""
        found = sorted(self._again.items(), key=lambda one: -one[1] * self._first[one[0]].tokens)
        return ((self._first[key], times) for key, times in found[:count])


@dataclass(slots=True)
class BudgetTally:
    """What one budget would do."""

    budget: int | str
    over: int = 0
    """Conversations that pass it."""
    refused: int = 0
    """Of these, those of which what must stay passes it."""
    evicted: int = 0
    """Messages that the last request would lack."""
    changed: int = 0
    evicted_tokens: int = 0
    sent_tokens: int = 0
    """What all calls send at most."""
    dollars: float = 0.0

    def facts(self, *, priced: bool) -> dict[str, Any]:
        """Give its numbers."""
        return {
            "budget": self.budget,
            "conversations_over": self.over,
            "refused": self.refused,
            "evicted_message_count": self.evicted,
            "changed_message_count": self.changed,
            "evicted_tokens": self.evicted_tokens,
            "sent_tokens": self.sent_tokens,
            "dollars": round(self.dollars, 6) if priced else None,
        }


@dataclass(slots=True)
class Failure:
    """Conversations that cannot be read or counted for one kind of error, by the first of them."""

    place: Place
    message: str
    count: int = 0


@dataclass(slots=True)
class Tally:
    """What is there, added up conversation by conversation; nothing of a conversation is kept but numbers."""

    conversation_tokens: Lengths = field(default_factory=Lengths)
    conversation_messages: Lengths = field(default_factory=Lengths)
    message_tokens: Lengths = field(default_factory=Lengths)
    calls: int = 0
    sent_tokens: int = 0
    """What all calls send where nothing is evicted."""
    dollars: float = 0.0
    exact: bool = True
    models: Counter[str] = field(default_factory=Counter[str])
    unpriced: int = 0
    """Conversations of a model without a known price, or of none."""
    roles: dict[str, Share] = field(default_factory=dict[str, Share])
    tools: dict[str, Share] = field(default_factory=dict[str, Share])
    kinds: Counter[str] = field(default_factory=Counter[str])
    repeats: Repeats = field(default_factory=Repeats)
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    budgets: Sequence[BudgetTally] = ()

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.conversation_tokens.total

    @property
    def is_priced(self) -> bool:
        """Whether the price of each conversation is known."""
        return not self.unpriced and bool(self.conversation_tokens)

    def fail(self, kind: str, place: Place, message: str) -> None:
        """Take a conversation that cannot be counted."""
        self.failures.setdefault(kind, Failure(place, message)).count += 1

    def add(self, place: Place, form: Format, counted: Counted, counter: AdditiveCounter, lead: int) -> None:
        """Take one conversation; so many of its messages at the front were given beside it."""
        found = counted.total
        self.conversation_tokens.add(found.tokens)
        self.conversation_messages.add(len(counted.entries) - lead)
        self.exact = self.exact and found.exact
        beside = {
            "system text beside the messages": found.system_tokens,
            "tool schemas": found.tools_tokens,
            "output schema": found.output_schema_tokens,
            "framing of the request": found.framing_tokens,
        }
        self.kinds.update({kind: tokens for kind, tokens in beside.items() if tokens})
        self.repeats.begin()
        called = dict[str, str]()
        rows = zip(counted.entries, counted.pieces, found.sizes or (), strict=True)
        for index, (entry, pieces, tokens) in enumerate(rows, -lead):
            if pieces.calls:
                called.update(form.tool_names(entry))
            tools = _tools_answered(entry, pieces, form, called)
            role = pieces.role or form.kind(entry)
            self.message_tokens.add(tokens)
            self.roles.setdefault(role, Share()).add(tokens)
            for tool, part in zip(tools, shared_out(tokens, [1] * len(tools)), strict=True):
                self.tools.setdefault(tool, Share()).add(part)
            for kind, part in _kinds(pieces, tokens, counter, is_result=bool(tools)):
                self.kinds[kind] += part
            if tokens >= _LEAST_REPEAT_TOKENS and pieces.texts:
                what = f"result of {tools[0]}" if tools else role
                self.repeats.add(pieces.texts, Repeat(place, index, what, tokens))


def _tools_answered(entry: Dict, pieces: Pieces, form: Format, called: Mapping[str, str]) -> list[str]:
    """Name the tool of each result that a message holds."""
    if pieces.results:
        columns = Structure(1)
        form.scan([entry], 0, 1, columns)
        ids = [call_id for call_id, _ in columns.answers.get(0, ())]
    else:
        ids = [] if pieces.result_id is None else [pieces.result_id]
    return [called.get(one, "") or str(entry.get("name") or "unknown tool") for one in ids]


def _kinds(
    pieces: Pieces, tokens: int, counter: AdditiveCounter, *, is_result: bool
) -> Iterable[tuple[str, int]]:
    """Share the tokens of a message out among the kinds of its content, by their characters."""
    found: list[tuple[str, int]] = []
    for medium in pieces.media:
        size = min(tokens, counter.media_tokens(medium) or 0)
        found.append((_MEDIA.get(medium.kind, "files"), size))
        tokens -= size
    words = "tool results" if is_result else "text"
    chars = [(words, sum(map(len, pieces.texts)))]
    if pieces.calls:
        chars.append(("tool calls", sum(len(name) + len(asked) for name, asked in pieces.calls)))
    if pieces.thoughts or pieces.sealed_chars:
        chars.append(("reasoning", sum(map(len, pieces.thoughts)) + pieces.sealed_chars))
    if pieces.other:  # a result that is no text is written as JSON
        chars.append((words if is_result else "other", sum(map(len, pieces.other))))
    there = [(kind, size) for kind, size in chars if size] or [(words, 1)]
    parts = shared_out(tokens, [size for _, size in there])
    return [*found, *((kind, part) for (kind, _), part in zip(there, parts, strict=True))]


def calls_in(form: Format, counted: Counted) -> list[int]:
    """List what each call of the model was sent: all in front of an answer, and what nobody answered yet."""
    sizes = counted.total.sizes or ()
    found, tokens, speaks = list[int](), counted.total.tokens - sum(sizes), False
    for kind, size in zip(form.kinds(counted.entries), sizes, strict=True):
        if kind == "assistant" and not speaks:
            found.append(tokens)
        speaks = kind == "assistant"
        tokens += size
    return found if speaks else [*found, tokens]
