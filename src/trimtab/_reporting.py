"""The report of a fit, which is made when it is read, and so is each of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

from trimtab._fitting import BLOCK, Decision, Work
from trimtab.counting._sizes import Shares, counter_name
from trimtab.formats import mapping_of
from trimtab.report import BlockReport, Fate, InsertedRow, MessageRow, Reason, Report, ViolationLike
from trimtab.units import Unit
from trimtab.validity import validate

__all__ = ["report_of"]

T = TypeVar("T")


def report_of(work: Work, decision: Decision, output: list[Any]) -> Report:
    """Make the report of a decision; its rows are made when they are read."""
    settled, budget = decision.settled, decision.budget
    rows = _Rows(work, decision)
    kept = len(output) - work.lead
    changed = len(rows.changed)
    fixed_tokens = work.sizes.fixed_tokens
    inserted_tokens = sum(work.sizes.of(index) for index in range(work.lead))
    total = settled.tokens
    system_tokens, tools_tokens = work.sizes.fixed_parts
    block = BlockReport(
        name=BLOCK,
        limit_tokens=budget.input_tokens - fixed_tokens - inserted_tokens,
        tokens_before=_tokens_before(work),
        tokens_after=total - fixed_tokens - inserted_tokens,
        actions=_actions(work, settled.actions),
        kept_messages=kept - changed,
        changed_messages=changed,
        evicted_messages=len(work.source) - kept,
    )
    before = block.tokens_before
    return Report(
        format=work.format.name,
        model=work.ask.model,
        notes=work.notes,
        counter=counter_name(work.counter),
        exact=bool(getattr(work.counter, "exact", False)),
        shares=isinstance(work.sizes, Shares),
        window_tokens=budget.window,
        output_reserve_tokens=budget.output_reserve,
        overhead_tokens=budget.overhead_tokens,
        margin_tokens=budget.margin,
        input_tokens=budget.input_tokens,
        fixed_tokens=fixed_tokens,
        system_tokens=system_tokens,
        tools_tokens=tools_tokens,
        tokens_before=None if before is None else before + fixed_tokens + inserted_tokens,
        tokens_after=total,
        fits=settled.fits,
        kept_messages=block.kept_messages,
        changed_messages=changed,
        evicted_messages=block.evicted_messages,
        blocks=(block,),
        messages=rows,
        inserted=tuple(
            InsertedRow(position=i, role="system", tokens=work.sizes.of(i), why="the text given as system=")
            for i in range(work.lead)
        ),
        violations=_Lazy(lambda: _violations(work)),
    )


def _tokens_before(work: Work) -> int | None:
    """Sum the sizes of the caller's messages; None if one is not known."""
    known: Sequence[int | None] = work.source_sizes.known[work.source_offset :]
    if None in known and work.origin is not None:
        known = list(known)
        for at, index in enumerate(work.origin):
            if index not in work.mended and known[index] is None:
                known[index] = work.sizes.known[at + work.lead]
    return sum(size for size in known if size is not None) if None not in known else None


def _actions(work: Work, actions: tuple[str, ...]) -> tuple[str, ...]:
    reasons = set(work.gone.values())
    first = ("removed_by_callback",) if "callback" in reasons else ()
    return (*first, *(action for action in actions if action != "kept" or not first)) or ("kept",)


def _violations(work: Work) -> list[ViolationLike]:
    """List what the provider would refuse in the caller's messages, and open calls."""
    return list(validate(work.source, format=work.format, pending_calls=work.ask.pending_calls))


class _Lazy(Sequence[T]):
    """A sequence that is made when it is first looked into."""

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], list[T]]) -> None:
        self._make = make
        self._items: list[T] | None = None

    @property
    def items(self) -> list[T]:
        if self._items is None:
            self._items = self._make()
        return self._items

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __repr__(self) -> str:
        return repr(self.items)


class _Rows(_Lazy[MessageRow]):
    """One row a message of the input, built when read."""

    __slots__ = ("_decision", "_shares", "_work")

    def __init__(self, work: Work, decision: Decision) -> None:
        super().__init__(self._rows)
        self._work = work
        self._decision = decision
        self._shares: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._work.source)

    @property
    def changed(self) -> set[int]:
        """Positions, in the caller's list, of messages that are in the output, but not as they were."""
        work, settled = self._work, self._decision.settled
        found = {work.source_index(index) for index in settled.changed if index >= work.lead}
        if work.mended:
            kept, places = set(settled.before), self._places()
            at = ((index, places.get(index, -1)) for index in work.mended)
            found |= {index for index, place in at if place in kept or place >= max(settled.cut, 0)}
        return found

    def _rows(self) -> list[MessageRow]:
        work, settled = self._work, self._decision.settled
        places = self._places()
        units = self._units()
        self._shares = self._shared()
        called = self._called()
        kept = set(settled.before)
        rows = []
        for index in range(len(work.source)):
            at = places.get(index)
            if at is None:
                rows.append(self._gone_row(index))
                continue
            stays = at >= settled.cut or at in kept
            changed = settled.changes(at) or index in work.mended
            fate: Fate = "evicted" if not stays else "changed" if changed else "kept"
            rows.append(self._row(index, at, fate, units.get(at), called))
        return rows

    def _shared(self) -> dict[int, int]:
        """Split a black box's total among the messages of the output, by position in the history."""
        work, settled = self._work, self._decision.settled
        if not isinstance(work.sizes, Shares):
            return {}
        kept = [*settled.before, *range(settled.cut, len(work.history))]
        shares = work.sizes.split(settled.assemble(self._decision.request), settled.tokens)
        return dict(zip(kept, shares, strict=True))

    def _places(self) -> dict[int, int]:
        """Map positions of the caller's list to those of the history."""
        work = self._work
        if work.origin is None:
            return {index: index + work.lead for index in range(len(work.source))}
        return {index: at + work.lead for at, index in enumerate(work.origin)}

    def _units(self) -> dict[int, Unit]:
        return {index: unit for unit in reversed(self._work.history.units) for index in unit.indices}

    def _row(self, index: int, at: int, fate: Fate, unit: Unit | None, called: dict[str, str]) -> MessageRow:
        work, settled = self._work, self._decision.settled
        reason: Reason | None = None
        if fate == "evicted" or settled.changes(at):
            reason = settled.reason
        elif fate == "changed":
            reason = work.gone.get(index, "repair")
        known = work.sizes.known[at]
        before = work.source_tokens(index)
        if fate == "evicted":
            after = None
        else:
            after = self._shares.get(at, settled.edited_tokens.get(at, known))
            before = self._shares.get(at, before) if not settled.changes(at) else before
        message = mapping_of(work.source[index])
        calls = self._calls(at, called)
        return MessageRow(
            index=index,
            role=str(message.get("role") or work.history.kind(at)),
            fate=fate,
            reason=reason,
            unit=index if unit is None else work.source_index(max(unit.first, work.lead)),
            state="free" if unit is None else unit.state,
            tokens_before=known if before is None and index not in work.mended else before,
            tokens_after=after,
            call_ids=tuple(calls),
            tool_names=tuple(calls.values()) if all(calls.values()) else (),
            text="\n".join(slot.text for slot in work.format.texts(message)),
        )

    def _calls(self, at: int, called: dict[str, str]) -> dict[str, str]:
        """Map the call ids of a message to tool names; empty names where nobody knows."""
        history = self._work.history
        structure = history.structure
        if at in structure.calls:
            names = history.format.tool_names(history.messages[at])
            return {call_id: names.get(call_id, "") for call_id in structure.calls[at]}
        answers = structure.answers.get(at, ())
        return {call_id: called.get(call_id, "") for call_id, _ in answers}

    def _called(self) -> dict[str, str]:
        """Map every call id of the history to the name of its tool."""
        history = self._work.history
        names: dict[str, str] = {}
        for index in history.structure.calls:
            names.update(history.format.tool_names(history.messages[index]))
        return names

    def _gone_row(self, index: int) -> MessageRow:
        work = self._work
        message = mapping_of(work.source[index])
        return MessageRow(
            index=index,
            role=str(message.get("role") or work.format.kind(message)),
            fate="evicted",
            reason=work.gone[index],
            unit=index,
            tokens_before=work.source_tokens(index),
        )
