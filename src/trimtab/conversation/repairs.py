"""The least change that makes calls and results match, and messages whole; `validity.repair` is its door."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from trimtab.conversation.order import Row, find_misplaced
from trimtab.conversation.pairing import Pairing, open_calls, pair
from trimtab.conversation.transcript import last_turn_of
from trimtab.conversation.units import Group, members
from trimtab.formats import Format, Rules, Structure, mapping_of

__all__ = ["Change", "Placed", "mend"]


class Placed(NamedTuple):
    """A message of the repaired conversation, and where it came from."""

    position: int
    """Position in the input; two entries share one where parts of a message moved away."""
    message: Any


_Parts = list[int | None]
"""Parts of one message; None stands for the whole message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a repair did.

    Args:
        index: Position of the message in the input.
        action: The message was evicted, a part of it was removed or added, or its result moved: behind its
            call, or first in its message.
        rule: The broken rule: a name from `validate` (see `validity.PairRule`), "dangling" or
            "bound_thinking".
        call_id: Id of the call concerned; None for a result without an id, and if there is no call.
    """

    index: int
    """Position of the message in the input."""
    action: Literal["removed", "edited", "moved"]
    """The message was evicted, a part of it was removed or added, or its result moved: behind its call, or
    first in its message.
    """
    rule: str
    """The broken rule: a name from `validate` (see `validity.PairRule`), "dangling" or "bound_thinking"."""
    call_id: str | None
    """Id of the call concerned; None for a result without an id, and if there is no call."""


def mend(
    format: Format,
    originals: Sequence[Any],
    *,
    elsewhere: bool = False,
    pending_calls: Collection[str] = (),
    shapes: bool = True,
) -> tuple[list[Placed], tuple[Change, ...]]:
    """Repair a conversation; the caller's objects are not changed.

    Shapes first, where they are to be mended, so that calls and results can be read. What came of changes is
    read again: where ids go by place, a result that moved answers another call, and a message that lost a
    call may be left without words.
    """
    placed = [Placed(index, message) for index, message in enumerate(originals)]
    found: list[Change] = []
    begins_wrong = _begins_wrong(format, originals)
    for _ in range(_MOST_READINGS):
        placed, shaped = _mend_shapes(format, placed) if shapes else (placed, [])
        messages = [item.message for item in placed]
        structure = Structure(len(messages))
        format.scan(messages.copy(), 0, len(messages), structure)  # which puts dicts into its list
        structure.elsewhere |= elsewhere
        again, changes = _mend_once(format, messages, structure, pending_calls, begins_wrong=begins_wrong)
        found += [*shaped, *(replace(change, index=placed[change.index].position) for change in changes)]
        placed = [Placed(placed[item.position].position, item.message) for item in again]
        if not changes:
            break
    return placed, tuple(sorted(found, key=lambda change: change.index))


def _mend_shapes(format: Format, placed: list[Placed]) -> tuple[list[Placed], list[Change]]:
    """Put messages of a shape that is refused into one that is taken, where the form can."""
    entries = [mapping_of(item.message) for item in placed]
    broken = {fault.index: fault.rule for fault in reversed(format.faults(entries))}
    made: list[Placed] = []
    changes: list[Change] = []
    for index, (position, message) in enumerate(placed):
        entry = entries[index]
        mended = format.mend(entry) if index in broken else entry
        if mended is entry:
            made.append(Placed(position, message))
            continue
        action: Literal["removed", "edited"] = "removed" if mended is None else "edited"
        changes.append(Change(index=position, action=action, rule=broken[index], call_id=None))
        if mended is not None:
            made.append(Placed(position, mended))
    return made, changes


_MOST_READINGS = 4
"""Of 12,000 random broken conversations five, of Gemini's, had more to mend, once each (2026-11)."""


def _begins_wrong(format: Format, originals: Sequence[Any]) -> bool:
    """Tell whether the input, before anything is mended, begins with what may not come first."""
    entries = map(mapping_of, originals)
    first = next((entry for entry in entries if format.kind(entry) != "system"), None)
    return format.rules.ordered and first is not None and format.order_fault(None, first) is not None


def _mend_once(
    format: Format,
    originals: Sequence[Any],
    structure: Structure,
    pending_calls: Collection[str],
    *,
    begins_wrong: bool,
) -> tuple[list[Placed], list[Change]]:
    """Go once through all that can be broken."""
    pairing = pair(structure, range(len(originals)))
    work = _Work(format, originals, structure)
    work.drop_results(pairing)
    last_turn = last_turn_of(structure.count, structure.kinds.get, structure.bound.__contains__)
    work.drop_calls(pairing, open_calls(pairing, last_turn=last_turn, pending_calls=pending_calls))
    work.drop_needy(pairing)
    if format.rules.results_follow_call:
        work.move_late_results(pairing)
    if format.rules.results_lead:
        work.lead_with_results()
    ordered = format.rules.ordered
    result = work.in_order(pending_calls, begins_wrong=begins_wrong) if ordered else work.result()
    return work.without_dangling(result), work.changes


class _Run:
    """While reading on: the calls whose results stand here, and the last message of each call's results."""

    def __init__(self, structure: Structure, rules: Rules) -> None:
        self._structure = structure
        self._in_one = rules.results_in_one and not rules.takes_apart
        self._lead = rules.results_lead
        self._last = 0
        self.calls: set[int] = set()
        self.ends: dict[int, int] = {}

    def skip(self, index: int) -> None:
        """Pass over a message that was evicted."""
        if index not in self._structure.bound:
            self.ends.update(dict.fromkeys(self.calls, self._last))

    def take(self, index: int, here: set[int]) -> None:
        """Go on to a message that answers the calls of those messages in their place."""
        bound = self._structure.bound
        before = index - 1
        while before > self._last and before in bound:
            before -= 1  # these are gone
        if not here and not (before == self._last and before in bound):
            self.calls = set()
        self._last = index
        if index in self._structure.calls:
            self.calls.add(index)
        if index not in bound:  # else the turn goes on
            self.ends.update(dict.fromkeys(self.calls, index))
            if here and (self._in_one or (self._lead and index in self._structure.loose)):
                self.calls = set()


class _Work:
    """What is to be done to each message, by its position in the input."""

    def __init__(self, format: Format, originals: Sequence[Any], structure: Structure) -> None:
        self.format = format
        self.originals = originals
        self.structure = structure
        self.changes: list[Change] = []
        self.gone: set[int] = set()
        """Messages that are not in their place any more: removed, or moved as a whole."""
        self.parts_out: dict[int, set[int]] = {}
        """Parts that leave their message, to be moved or for good."""
        self.calls_out: dict[int, frozenset[str]] = {}
        self.behind: dict[int, list[Placed]] = {}
        """Messages to be put directly behind another one."""
        self.leading: set[int] = set()
        """Messages in which the results are to come first."""

    def drop_results(self, pairing: Pairing) -> None:
        """Take out orphan and repeated results."""
        for index, answers in self.structure.answers.items():
            dropped: list[tuple[str, int | None, str]] = []
            for (call_id, part), owner in zip(answers, pairing.owner[index], strict=True):
                if owner is None and self.structure.elsewhere and call_id:
                    continue  # its call may be among what the provider has stored
                if owner is None:
                    dropped.append((call_id, part, "orphan_result"))
                elif (index, part) in pairing.repeated:
                    dropped.append((call_id, part, "repeated_result"))
            if not dropped:
                continue
            leaves = len(dropped) == len(answers) and not self._has_more(index)
            if leaves:
                self.gone.add(index)
            self._take_out(index, [part for _, part, _ in dropped])
            for call_id, _, rule in dropped:
                self._note(index, leaves, rule, call_id)

    def drop_calls(self, pairing: Pairing, still_open: Collection[tuple[int, str]]) -> None:
        """Take out unanswered calls that are not open."""
        dropped: dict[int, list[str]] = {}
        for index, call_id in pairing.unanswered:
            if (index, call_id) not in still_open:
                dropped.setdefault(index, []).append(call_id)
        for index, call_ids in dropped.items():
            self.calls_out[index] = frozenset(call_ids)
            leaves = self._remainder(index) is None
            if leaves:
                self.gone.add(index)
            for call_id in call_ids:
                self._note(index, leaves, "unanswered_call", call_id)

    def drop_needy(self, pairing: Pairing) -> None:
        """Take out what may not stay without a call that is gone, and the results of calls that leave so."""
        needy: dict[int, list[int]] = {}
        for index, needed in self.structure.needs.items():
            needy.setdefault(needed, []).append(index)
        left = [index for index in self.gone if index in self.calls_out]
        if not needy or not left:
            return
        results: dict[int, list[int]] = {}
        for index, owners in pairing.owner.items():
            for owner in owners:
                if owner is not None:
                    results.setdefault(owner, []).append(index)
        while left:
            index = left.pop()
            for other in (*needy.get(index, ()), *results.get(index, ())):
                if other in self.structure.loose:  # what is not a result there stays
                    owned = zip(self.structure.answers[other], pairing.owner[other], strict=True)
                    self._take_out(other, [part for (_, part), owner in owned if owner == index])
                    self._note(other, False, "unanswered_call", "")
                elif other not in self.gone:
                    self.gone.add(other)
                    self._note(other, True, "unanswered_call", "")
                    left.append(other)

    def move_late_results(self, pairing: Pairing) -> None:
        """Put each result that does not follow its call behind it, after those already there."""
        run = _Run(self.structure, self.format.rules)
        late: dict[int, list[tuple[int, _Parts]]] = {}
        for index in range(len(self.originals)):
            if index in self.gone:
                run.skip(index)
                continue
            here, away = self._by_place(index, pairing, run.calls)
            for owner, parts in away.items():
                late.setdefault(owner, []).append((index, parts))
            if away and not here and not self._has_more(index):
                self.gone.add(index)
                continue
            run.take(index, here)
        for owner, results in late.items():
            for index, parts in results:
                self._move(index, parts, run.ends[owner])

    def lead_with_results(self) -> None:
        """Put the results of a message before what stands there beside them."""
        for index, loose in self.structure.loose.items():
            if index in self.gone or self.structure.kinds.get(index) == "assistant":
                continue
            out, before = self.parts_out.get(index, ()), min(loose)
            for call_id, part in self.structure.answers.get(index, ()):
                if part is not None and part > before and part not in out:
                    self.leading.add(index)
                    found = Change(index=index, action="moved", rule="result_not_first", call_id=call_id)
                    self.changes.append(found)

    def result(self) -> list[Placed]:
        """Return the messages as they are now, in order."""
        found: list[Placed] = []
        for index in range(len(self.originals)):
            if index not in self.gone:
                found.append(Placed(index, self._remainder(index)))
            moved = self.behind.get(index, ())
            if moved and (self.format.rules.results_in_one or self._holds_results(index)):
                found[-1:] = self._join(found[-1], moved, index)
            else:
                found.extend(moved)
        return found

    def _join(self, last: Placed, moved: Sequence[Placed], index: int) -> list[Placed]:
        """Put results that moved behind a call into one message, with those that were there."""
        first, *rest = (last, *moved) if index in self.structure.answers else moved
        message = first.message
        for placed in rest:
            message = self.format.join_results(message, placed.message)
        there = [] if index in self.structure.answers else [last]
        return [*there, Placed(first.position, message)]

    def _holds_results(self, index: int) -> bool:
        """Tell whether results are parts of a message, so that more of them belong beside them.

        The model's hold those of tools that the provider ran, and no others.
        """
        if self.structure.kinds.get(index) == "assistant":
            return False
        return any(part is not None for _, part in self.structure.answers.get(index, ()))

    def without_dangling(self, placed: list[Placed]) -> list[Placed]:
        """Take out messages that need another behind them, where that is not there or is gone."""
        if not self.structure.bound and not self.structure.dangling:
            return placed
        left = [item.message for item in placed]
        structure = Structure(len(left))
        self.format.scan(left, 0, len(left), structure)
        for at in structure.dangling:
            change = Change(index=placed[at].position, action="removed", rule="dangling", call_id=None)
            self.changes.append(change)
        return [item for at, item in enumerate(placed) if at not in structure.dangling]

    def in_order(self, pending_calls: Collection[str], *, begins_wrong: bool) -> list[Placed]:
        """Take out what may not stand where it does, with calls and results that belong to it.

        Where no message remains then that may come first, and none did in the input, the fault stays: nothing
        can be invented.
        """
        result = self.result()
        kept = self._in_order(result, pending_calls, lead=True)
        empty = all(self.format.kind(mapping_of(placed.message)) == "system" for placed in kept[0])
        if empty and begins_wrong:
            kept = self._in_order(result, pending_calls, lead=False)
        left, changes = kept
        self.changes.extend(changes)
        return left

    def _in_order(
        self, result: list[Placed], pending_calls: Collection[str], *, lead: bool
    ) -> tuple[list[Placed], list[Change]]:
        changes: list[Change] = []
        while result:
            placing = _Placing(self.format, result, pending_calls, lead=lead)
            leaving = placing.misplaced_units()
            if not leaving:
                break
            result = self._without(result, leaving, placing.structure, changes)
        return result, changes

    def _without(
        self, result: list[Placed], leaving: list[Group], structure: Structure, changes: list[Change]
    ) -> list[Placed]:
        """Take units out; a message shared with others loses its parts of them only."""
        parts: dict[int, set[int]] = {}
        for group in leaving:
            for index in group.indices:
                parts.setdefault(index, set()).update(group.parts.get(index, structure.parts_of(index)))
        left: list[Placed] = []
        for index, placed in enumerate(result):
            if index not in parts:
                left.append(placed)
                continue
            stays = structure.parts_of(index) - parts[index]
            if stays:
                message = self.format.without_parts(placed.message, sorted(parts[index]))
                left.append(Placed(placed.position, message))
            action: Literal["removed", "edited"] = "edited" if stays else "removed"
            changes.append(Change(index=placed.position, action=action, rule="wrong_order", call_id=None))
        return left

    def _by_place(
        self, index: int, pairing: Pairing, run: Collection[int]
    ) -> tuple[set[int], dict[int, _Parts]]:
        """Sort the results a message still carries: calls answered in place, and late parts by call."""
        here: set[int] = set()
        away: dict[int, _Parts] = {}
        answers, out = self.structure.answers.get(index, ()), self.parts_out.get(index, ())
        for (_, part), owner in zip(answers, pairing.owner.get(index, ()), strict=True):
            if owner is None or part in out:
                continue
            if owner in run or owner == index:
                here.add(owner)
            else:
                away.setdefault(owner, []).append(part)
        return here, away

    def _move(self, index: int, parts: _Parts, end: int) -> None:
        """Put a message, or the named parts of it as a message of their own, behind `end`."""
        message = self.originals[index]
        every = [part for _, part in self.structure.answers[index]]
        others = {part for part in (*every, *self.structure.loose.get(index, ())) if part not in parts}
        if others:
            message = self.format.without_parts(message, sorted(part for part in others if part is not None))
        self.behind.setdefault(end, []).append(Placed(index, message))
        self._take_out(index, parts)
        for call_id, part in self.structure.answers[index]:
            if part in parts:
                self.changes.append(Change(index=index, action="moved", rule="late_result", call_id=call_id))
                if self._holds_results(end):
                    self._note(end, False, "late_result", call_id)

    def _remainder(self, index: int) -> Any:
        """Return a message without what leaves it; None if nothing remains."""
        message = self.originals[index]
        parts = self.parts_out.get(index, set())
        if index in self.leading:
            results = {part for _, part in self.structure.answers[index] if part is not None}
            rest = self.format.without_parts(message, sorted(results | parts))
            first = self.format.without_parts(message, sorted(parts.union(self.structure.loose[index])))
            message = self.format.join_results(rest, first)
        elif parts:
            message = self.format.without_parts(message, sorted(parts))
        if calls := self.calls_out.get(index):
            message = self.format.without_calls(message, calls)
        return message

    def _has_more(self, index: int) -> bool:
        """Tell whether a message holds more than results."""
        return index in self.structure.loose or index in self.structure.calls

    def _take_out(self, index: int, parts: _Parts) -> None:
        numbered = [part for part in parts if part is not None]
        if numbered:
            self.parts_out.setdefault(index, set()).update(numbered)

    def _note(self, index: int, leaves: bool, rule: str, call_id: str) -> None:
        action: Literal["removed", "edited"] = "removed" if leaves else "edited"
        self.changes.append(Change(index=index, action=action, rule=rule, call_id=call_id or None))


class _Placing:
    """A conversation whose units leave wherever a message of theirs may not stand.

    Args:
        format: The wire form.
        result: The conversation.
        pending_calls: Ids of calls whose results are still to come.
        lead: Whether the first message has to be one that may come first.
    """

    def __init__(
        self, format: Format, result: Sequence[Placed], pending_calls: Collection[str], *, lead: bool
    ) -> None:
        self._format = format
        self._result = result
        self._lead = lead
        count = len(result)
        self.structure = Structure(count)
        format.scan([mapping_of(placed.message) for placed in result], 0, count, self.structure)
        pairing = pair(self.structure, range(count))
        self._groups = members(self.structure, pairing)
        last_turn = last_turn_of(count, self.structure.kinds.get, self.structure.bound.__contains__)
        waiting = open_calls(pairing, last_turn=last_turn, pending_calls=pending_calls)
        self._waiting = {index for index, _ in waiting}

    def misplaced_units(self) -> list[Group]:
        """List the units that leave."""
        owners: dict[int, list[int]] = {}
        for at, group in enumerate(self._groups):
            for index in group.indices:
                owners.setdefault(index, []).append(at)
        rows = [Row(at, mapping_of(placed.message), owners[at]) for at, placed in enumerate(self._result)]
        kinds = (self._format.kind(row.message) for row in rows)
        first = next((at for at, kind in enumerate(kinds) if kind != "system"), len(rows))
        gone = find_misplaced(self._format, rows, first=first, stands=self._stands, let_go=self._let_go)
        return [self._groups[at] for at in gone]

    def _let_go(self, row: Row, before: Row | None) -> Sequence[int]:
        """Let the row's units go; what waits for a result stays, and what stands before it goes."""
        return (row if before is None or row.place not in self._waiting else before).owners

    def _stands(self, before: Row | None, row: Row) -> bool:
        if before is None:
            kept = not self._lead or row.place in self.structure.kept
            return kept or self._format.order_fault(None, row.message) is None
        apart = self._result[row.place].position - self._result[before.place].position
        return self._format.order_fault(before.message, row.message, parted=apart not in (0, 1)) is None
