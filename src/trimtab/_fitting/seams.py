"""Where the blocks of a request meet: what has to leave since something in another block left.

Each block is settled by itself. What belongs together may stand in two of them, and what a provider takes
inside a block it may refuse behind the one in front.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from trimtab._fitting.bonds import by_block
from trimtab._fitting.layout import Composition, Part
from trimtab._fitting.outcome import BlockDecision, Outcome
from trimtab._fitting.stale import first_change, stale_note, without_stale
from trimtab.conversation.order import Row, cannot_end, find_misplaced, row_or_before, stands_apart
from trimtab.conversation.turns import turn_of
from trimtab.formats import Request, mapping_of
from trimtab.strategies.openers import begin_of
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = ["let_go_misplaced", "let_go_of_last_turn", "let_go_stale", "let_go_together"]


def let_go_together(outcome: Outcome) -> None:
    """Take out what belongs to something another block let go."""
    composition = outcome.composition
    starts, gone = composition.starts, set[int]()
    for unit in composition.bonds.units:
        there = {index for index in unit if _stays(outcome.decisions, starts, index)}
        if len(there) < len(unit):
            gone |= there
    for at, places in by_block(starts, ((index, index) for index in gone)).items():
        outcome.decisions[at].take_out({place for place, _ in places}, reason="unit_of_removed")


def let_go_misplaced(outcome: Outcome) -> None:
    """Take out what the provider would refuse where the blocks of the request now meet."""
    format, decisions, composition = outcome.format, outcome.decisions, outcome.composition
    if not format.rules.ordered or not _gives_way(outcome):
        return
    together = _Together(composition)
    rows, starts, begin = _rows(outcome, together), composition.starts, 0
    for at, (decision, start) in enumerate(zip(decisions, starts, strict=True)):
        history = decision.portion.history
        if begin == start:  # nothing but system text so far
            stop = begin_of(history)
            begin = starts[at + 1] if stop == history.count and at + 1 < len(starts) else start + stop
    let_go = row_or_before(together.may_leave)
    leave = find_misplaced(format, rows, first=begin, stands=stands_apart(format, begin), let_go=let_go)
    _take_out(outcome, together, rows, set(leave), reason="cannot_lead")


def _gives_way(outcome: Outcome) -> bool:
    """Tell whether the blocks fit, and any of them has let go of something."""
    return outcome.error is None and any(one.settled.before or one.settled.cut for one in outcome.decisions)


def _take_out(
    outcome: Outcome, together: _Together, rows: Sequence[Row], left: Collection[int], *, reason: Reason
) -> None:
    """Take out units; of a message that others are a part of, too, their parts stay."""
    starts = outcome.composition.starts
    gone = [(row.place, row.place) for row in rows if row.owners and set(row.owners).issubset(left)]
    parted = [(row.place, row.place) for row in rows if not set(row.owners).isdisjoint(left)]
    leaving_of = by_block(starts, gone)
    for at, places in by_block(starts, parted).items():
        out = {place for place, _ in leaving_of.get(at, ())}
        there = outcome.decisions[at].settled.partial
        staying = {
            place: together.parts(index, left) & there.get(place, together.parts(index, ()))
            for place, index in places
            if place not in out
        }
        outcome.decisions[at].take_out(out, parted=staying, reason=reason)


def _rows(outcome: Outcome, together: _Together | None = None) -> list[Row]:
    """List what stays of all blocks and what was put in, in order; without units nobody owns it."""
    rows: list[Row] = []
    for decision, start in zip(outcome.decisions, outcome.composition.starts, strict=True):
        partial = decision.settled.partial
        for index, message in decision.rows():
            owners = together.of(start + index, partial.get(index)) if together and index >= 0 else []
            rows.append(Row(start + index if index >= 0 else -2, message, owners))
    return rows


def let_go_of_last_turn(outcome: Outcome) -> None:
    """Take out what the provider refuses of the model's last turn, now that others left, in whatever block.

    That is what opens it without thinking, and the model's words at the end where it goes on with none.
    """
    if not _gives_way(outcome):
        return
    last = outcome.decisions[-1]
    history = last.portion.history
    if last.settled.keeps(history.count - 1) and not history.thinking.leads:
        return
    if _refused_in_turn(outcome, _rows(outcome)) is None:
        return
    together = _Together(outcome.composition)
    rows = _rows(outcome, together)
    while (found := _refused_in_turn(outcome, rows)) is not None:
        reason, places = found
        left = {owner for at in places for owner in rows[at].owners if together.may_leave(owner)}
        if not left:
            break
        _take_out(outcome, together, rows, left, reason=reason)
        rows = _rows(outcome, together)


def _refused_in_turn(outcome: Outcome, rows: Sequence[Row]) -> tuple[Reason, list[int]] | None:
    """Say which rows are refused in the last turn that were not before, and why; None if none is."""
    last, composition, format = outcome.decisions[-1], outcome.composition, outcome.format
    history = last.portion.history
    if rows and not last.settled.keeps(history.count - 1):
        asked = format.for_model(composition.policy.model)
        if cannot_end(asked, Request(messages=()), rows[-1].message):
            return "cannot_end", [len(rows) - 1]
    if not history.thinking.leads:
        return None
    said = turn_of([row.message for row in rows], format.turn_step)
    ahead = [one.at for one in takewhile(lambda one: not one.thinks, reversed(said))]
    if not ahead:
        return None
    given = [message for part in composition.parts for message in part.history.messages]
    if all(format.turn_step(mapping_of(message)) != "thinks" for message in given):
        return None
    as_given = turn_of(given, format.turn_step)
    return None if as_given and as_given[-1].at == rows[ahead[0]].place else ("cannot_lead", ahead)


def let_go_stale(outcome: Outcome) -> None:
    """Take out thinking that a model refuses behind the first change to the request, in whatever block."""
    changed, count = False, 0
    for decision in outcome.decisions:
        portion, settled = decision.portion, decision.settled
        if not portion.history.thinking.bound:
            return
        start = 0 if changed else first_change(portion, settled)
        decision.settled = without_stale(portion, decision.request, settled, start=start)
        decision.freed_tokens += settled.tokens - decision.settled.tokens
        count += sum(why == "bound_thinking" for why in decision.settled.reasons.values())
        changed = start is not None or _lost_its_end(portion, settled)
    if count:
        outcome.notes.append(stale_note(count))


def _lost_its_end(part: Part, settled: Settled) -> bool:
    """Tell whether fewer messages of a block stay than it was given, though none that stays has moved."""
    return len(settled.before) + part.history.count - settled.cut < len(part.source)


class _Together:
    """Units of a request that leave together, whatever block they are in."""

    def __init__(self, composition: Composition) -> None:
        self._of: dict[int, list[int]] = {}
        """Numbers of the units of each message."""
        self._parts: dict[tuple[int, int], tuple[int, ...]] = {}
        self._joined: list[int] = []
        staying = set[int]()
        for part, start in zip(composition.parts, composition.starts, strict=True):
            for unit in part.history.units:
                number = len(self._joined)
                self._joined.append(number)
                for index in unit.indices:
                    self._of.setdefault(start + index, []).append(number)
                    self._parts[start + index, number] = unit.parts.get(index, ())
                if unit.state != "free":
                    staying.add(number)
        for members in composition.bonds.units:
            numbers = [number for index in sorted(members) for number in self._of[index]]
            for number in numbers[1:]:
                one, other = sorted((self._first(numbers[0]), self._first(number)))
                self._joined[other] = one
        self._staying = {self._first(number) for number in staying}

    def of(self, index: int, parts: Collection[int] | None) -> list[int]:
        """Return the units of a message, each as the one that stands for all that leaves with it.

        Args:
            index: The message.
            parts: Those of it that are there, of which the units are asked for; None: all.
        """
        units = self._of[index]
        if parts is not None:
            units = [number for number in units if not set(parts).isdisjoint(self._parts[index, number])]
        return list(dict.fromkeys(map(self._first, units)))

    def parts(self, index: int, gone: Collection[int]) -> frozenset[int]:
        """Return the parts of a message that stay where some of its units left."""
        staying = (number for number in self._of[index] if self._first(number) not in gone)
        return frozenset(part for number in staying for part in self._parts[index, number])

    def may_leave(self, number: int) -> bool:
        """Tell whether nothing that leaves with a unit must stay."""
        return number not in self._staying

    def _first(self, number: int) -> int:
        while (one := self._joined[number]) != number:
            number = one
        return number


def _stays(decisions: list[BlockDecision], starts: list[int], index: int) -> bool:
    at = bisect_right(starts, index) - 1
    return decisions[at].settled.keeps(index - starts[at])
