"""Which result answers which call: one forward pass over the columns a format read.

A result answers the nearest earlier unanswered call with its id. A further result belongs to the
nearest earlier call with its id and is *repeated*; one without any earlier call is an *orphan*. A result
without an id answers the calls without one in the message before it, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from trimtab.formats import Format, Structure
from trimtab.formats.structure import UNNAMED

__all__ = ["Pairing", "is_paired", "late_results", "open_calls", "owners_behind", "pair"]


class Pairing:
    """What belongs together in a range of messages, by message index."""

    __slots__ = ("owner", "repeated", "unanswered", "unanswered_set")

    def __init__(self) -> None:
        self.owner: dict[int, tuple[int | None, ...]] = {}
        """For each message with answers: the message that made each call; None for an orphan."""
        self.repeated: set[tuple[int, int | None]] = set()
        """(message, part) of results whose call was answered before."""
        self.unanswered: list[tuple[int, str]] = []
        """(message, call id) of calls nothing answers, in order."""
        self.unanswered_set: frozenset[tuple[int, str]] = frozenset()
        """The same, to ask about one call."""

    def part_from(self, apart: Collection[tuple[int, str]], structure: Structure) -> None:
        """Make (message, call id) of results orphans: they answer a call that is not among these."""
        for index in {index for index, _ in apart}:
            answers = zip(structure.answers[index], self.owner[index], strict=True)
            self.owner[index] = tuple(
                [None if (index, call_id) in apart else owner for (call_id, _), owner in answers]
            )


class _Calls:
    """The calls met so far, and which of them wait for a result."""

    __slots__ = ("_latest", "_unnamed", "_waiting", "unanswered")

    def __init__(self) -> None:
        self.unanswered: dict[tuple[int, str], None] = {}
        self._waiting: dict[str, list[int]] = {}
        self._latest: dict[str, int] = {}
        self._unnamed: deque[tuple[int, str]] = deque()

    def make(self, index: int, ids: Iterable[str]) -> None:
        """Take in the calls of a message."""
        for call_id in ids:
            self.unanswered[index, call_id] = None
            if call_id.startswith(UNNAMED):
                self._unnamed.append((index, call_id))
            else:
                self._waiting.setdefault(call_id, []).append(index)
                self._latest[call_id] = index

    def pass_by(self) -> None:
        """Leave calls without an id unanswered: only results directly behind them may answer them."""
        self._unnamed.clear()

    def answer(self, call_id: str) -> tuple[str, int | None, bool]:
        """Return the id of the call a result answers, the message that made it, and whether it had one."""
        if self._unnamed and (not call_id or call_id.startswith(UNNAMED)):
            found = self._unnamed.popleft()
            del self.unanswered[found]
            return found[1], found[0], False
        if open_at := self._waiting.get(call_id):
            owner = open_at.pop()
            self.unanswered.pop((owner, call_id), None)
            return call_id, owner, False
        return call_id, self._latest.get(call_id), call_id in self._latest


def pair(structure: Structure, indices: range) -> Pairing:
    """Match the results among those messages with the calls among them.

    Args:
        structure: Columns that were read for all of `indices`. Results without an id get that of the call
            they answer.
        indices: Ascending. A result whose call lies before them counts as an orphan.

    Complexity: O(n) in messages, calls and results.
    """
    found, met = Pairing(), _Calls()
    calls, answers = structure.calls, structure.answers
    for index in indices:
        if index in calls or index not in answers:
            if index - 1 not in structure.bound:  # else it is one turn, whose calls wait together
                met.pass_by()
            met.make(index, calls.get(index, ()))
        if index in answers:
            matched = [(part, *met.answer(call_id)) for call_id, part in answers[index]]
            answers[index] = tuple([(call_id, part) for part, call_id, _, _ in matched])
            found.owner[index] = tuple([owner for _, _, owner, _ in matched])
            found.repeated.update((index, part) for part, _, _, repeated in matched if repeated)
    found.unanswered = list(met.unanswered)
    found.unanswered_set = frozenset(met.unanswered)
    return found


def owners_behind(structure: Structure, *, in_one: bool = False) -> dict[int, int] | None:
    """Map messages with results to those of the calls, where every call is answered right behind it.

    So nearly every conversation is, and to tell takes a tenth of `pair`. Where anything is otherwise, it is
    None, and `pair` says what.

    Args:
        structure: Columns that were read of a whole conversation.
        in_one: Whether results of one message stand in one message.
    """
    calls, answers, owners = structure.calls, structure.answers, dict[int, int]()
    if structure.bound or structure.loose or structure.needs or structure.dangling:
        return None
    for index, ids in calls.items():
        waiting, at = set(ids), index + 1
        if len(waiting) != len(ids) or index in answers:
            return None
        while waiting:
            there = answers.get(at, ())
            for call_id, _ in there:
                if call_id not in waiting:
                    return None
                waiting.discard(call_id)
            if not there or (in_one and waiting):
                return None
            owners[at] = index
            at += 1
    return owners if len(owners) == len(answers) else None


def is_paired(format: Format, messages: Sequence[Any]) -> bool:
    """Tell whether each result among some messages answers a call among them, by its id."""
    columns, read = Structure(len(messages)), list(messages)
    format.scan(read, 0, len(read), columns)
    pairing = pair(columns, range(len(read)))
    return not pairing.repeated and not any(None in owners for owners in pairing.owner.values())


def open_calls(
    pairing: Pairing,
    *,
    last_turn: int,
    pending_calls: Collection[str] = (),
) -> frozenset[tuple[int, str]]:
    """Return the unanswered calls whose result can still come (SPEC A4b).

    No user message and no later model turn follows them, or their id is in `pending_calls`.
    """
    pending = frozenset(pending_calls)
    return frozenset(
        (index, call_id) for index, call_id in pairing.unanswered if index >= last_turn or call_id in pending
    )


def late_results(
    structure: Structure, pairing: Pairing, *, in_one: bool = False
) -> frozenset[tuple[int, int | None]]:
    """Return (message, part) of results that do not stand directly behind their call.

    Between a call and its result only messages with results of the same call message may stand, and what
    the call is bound to; where `in_one`, no other message with results either. Orphan results are not
    among them; repeated ones are like others, and who asks knows which those are.
    """
    starts: dict[int, int] = {}
    """The last of the messages bound to a message: calls of one such turn share it."""
    for index in sorted(structure.bound, reverse=True):
        starts[index] = starts.get(index + 1, index + 1)
    ends: dict[int, int] = {}
    late: set[tuple[int, int | None]] = set()
    for index, owners in pairing.owner.items():
        for (_, part), owner in zip(structure.answers[index], owners, strict=True):
            if owner is None:
                continue
            start = starts.get(owner, owner)
            if start not in ends:
                ends[start] = start + 1 if in_one else _end_of_results(pairing, starts, start)
            if index > ends[start]:
                late.add((index, part))
    return frozenset(late)


def _end_of_results(pairing: Pairing, starts: Mapping[int, int], start: int) -> int:
    """Return the last message of the run of a turn's results right behind `start`, or `start`."""
    index = start
    while any(
        owner is not None and starts.get(owner, owner) == start for owner in pairing.owner.get(index + 1, ())
    ):
        index += 1
    return index
