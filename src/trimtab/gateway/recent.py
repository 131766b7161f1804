"""The last requests of a gateway, by conversation: numbers and words of ours, and never a text."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trimtab.gateway.record import Record

MOST_CONVERSATIONS = 100
"""Conversations that are remembered: those asked for last."""
MOST_CALLS = 50
"""Requests of a conversation that are remembered: the last ones."""

BLOCK_BYTES = 256
"""A beginning is compared by blocks of so many bytes: 160 kB are 640 numbers, made in 0.15 ms."""
BLOCKS_OF_A_SIZE = 1_024
"""Behind so many blocks, the next ones are twice as long: 64 MiB are 8,196 numbers, of 8 bytes each."""


def blocks_of(content: bytes, /) -> Sequence[int]:
    """Give a number for each whole block of a body, from its beginning: equal for equal blocks."""
    numbers, begin, size = array("q"), 0, BLOCK_BYTES
    while begin + size <= len(content):
        count = min(BLOCKS_OF_A_SIZE, (len(content) - begin) // size)
        blocks = memoryview(content)[begin : begin + count * size]
        numbers.extend(map(hash, struct.iter_unpack(f"{size}s", blocks)))
        begin, size = begin + size * BLOCKS_OF_A_SIZE, size * 2
    return numbers


def _end_of(count: int) -> int:
    """Return how many bytes the first blocks have."""
    doubled, rest = divmod(count, BLOCKS_OF_A_SIZE)
    return BLOCK_BYTES * (BLOCKS_OF_A_SIZE * ((1 << doubled) - 1) + (rest << doubled))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request of a conversation."""

    id: str
    """As the log and the header of its answer have it."""
    time: datetime
    before: int
    after: int
    limit: int
    evicted: int
    changed: int
    reasons: Mapping[str, int]
    reuse: float | None
    """Share of what was sent that begins as the request before it did; None: it is the first."""
    billed: int | None
    dollars: float | None
    is_unpriced: bool
    """Whether it was answered, and nobody knows what that cost."""
    fit_ms: float | None
    first_ms: float | None
    status: int
    end: str


@dataclass(slots=True)
class Conversation:
    """A conversation, and its last requests."""

    id: str
    model: str
    requests: int = 0
    """All of them, also those that are remembered no more."""
    calls: deque[Call] = field(default_factory=lambda: deque(maxlen=MOST_CALLS))
    blocks: Sequence[int] = ()
    """Of what was sent last."""

    @property
    def reuse(self) -> float | None:
        """The mean of its requests but the first; None: there is no other."""
        found = [one.reuse for one in self.calls if one.reuse is not None]
        return sum(found) / len(found) if found else None


class Recent:
    """Remembers the last conversations and their last requests."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self.others: deque[Call] = deque(maxlen=MOST_CALLS)
        """The last requests that models answered and that are of no conversation known here, as those that go
        on from messages which a server keeps.
        """

    def add(self, record: Record, /) -> None:
        """Take in a request that is at its end; what was not fitted or only counts is of no conversation."""
        if record.counts:
            return
        numbers = {name: record.told.get(name) for name in ("before", "after", "limit", "evicted", "changed")}
        told = {name: value if isinstance(value, int) else 0 for name, value in numbers.items()}
        if not record.conversation or not told["before"]:
            if record.dollars is not None or record.is_unpriced:
                self.others.append(_call_of(record, None, told))
            return
        known = self._known.get(record.conversation)
        if known is None:
            known = self._known[record.conversation] = Conversation(record.conversation, record.model or "")
        self._known.move_to_end(record.conversation)
        while len(self._known) > MOST_CONVERSATIONS:
            self._known.popitem(last=False)
        reuse = _share(known.blocks, record.blocks) if known.requests else None
        known.requests += 1
        known.blocks = record.blocks
        known.calls.append(_call_of(record, reuse, told))

    def find(self, conversation: str, /) -> Conversation | None:
        """Find a conversation; None: it is not remembered."""
        return self._known.get(conversation)

    def __iter__(self) -> Iterator[Conversation]:
        """List the conversations, the last one first."""
        return reversed(self._known.values())

    def __len__(self) -> int:
        """Count the conversations."""
        return len(self._known)


def _call_of(record: Record, reuse: float | None, told: Mapping[str, int]) -> Call:
    return Call(
        id=record.id,
        time=datetime.now(UTC),
        reasons=record.reasons,
        reuse=reuse,
        billed=record.billed,
        dollars=record.dollars,
        is_unpriced=record.is_unpriced,
        fit_ms=record.fit_ms,
        first_ms=record.first_ms,
        status=record.status,
        end=record.end_word,
        **told,
    )


def _share(before: Sequence[int], now: Sequence[int]) -> float:
    """Return the share of bytes in blocks that are those of the request before, from the beginning on."""
    most = min(len(before), len(now))
    same = bisect_left(range(most), True, key=lambda at: before[: at + 1] != now[: at + 1])
    return _end_of(same) / _end_of(len(now)) if now else 0.0
