"""The report of a fit, which is made when it is read, and so is each of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from trimtab._fitting import BLOCK, Decision, Work
from trimtab.counting._sizes import Shares, counter_name
from trimtab.formats import Format, mapping_of
from trimtab.report import BlockReport, Fate, InsertedRow, MessageRow, Reason, Report, ViolationLike
from trimtab.units import State
from trimtab.validity import validate

__all__ = ["report_of"]

T = TypeVar("T")


def report_of(work: Work, decision: Decision, output: list[Any]) -> Report:
    """Make the report of a decision; no counter is called, and rows are made when they are read."""
    settled, budget = decision.settled, decision.budget
    rows = _Rows(work, decision)
    kept = rows.staying_messages(len(output) - work.lead)
    changed = len(rows.changed)
    inserted = rows.inserted
    fixed_tokens = work.sizes.fixed_tokens
    beside_tokens = fixed_tokens + sum(row.tokens for row in inserted)
    system_tokens, tools_tokens = work.sizes.fixed_parts
    before_tokens, block_before_tokens = rows.before_tokens(beside_tokens)
    block = BlockReport(
        name=BLOCK,
        limit_tokens=budget.input_tokens - beside_tokens,
        tokens_before=block_before_tokens,
        tokens_after=settled.tokens - beside_tokens,
        actions=_actions(work, settled.actions),
        kept_messages=kept - changed,
        changed_messages=changed,
        evicted_messages=len(work.source) - kept,
    )
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
        tokens_before=before_tokens,
        tokens_after=settled.tokens,
        fits=settled.fits,
        kept_messages=block.kept_messages,
        changed_messages=changed,
        evicted_messages=block.evicted_messages,
        blocks=(block,),
        messages=rows,
        inserted=inserted,
        violations=_Lazy(lambda: _violations(work)),
    )


def _actions(work: Work, actions: tuple[str, ...]) -> tuple[str, ...]:
    """List what was done: first what left before anything was decided, then what the strategy did."""
    reasons = set(work.gone.values())
    first = ["removed_by_callback"] if "callback" in reasons else []
    if "repair" in reasons and "evicted" not in actions:
        first.insert(0, "evicted")
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as what was made: a tuple, without the counter and the conversation."""
        return tuple, (list(self.items),)


class _Rows(_Lazy[MessageRow]):
    """One row a message of the input, built when read; texts are added where they are asked for."""

    __slots__ = ("_decision", "_output", "_work")

    def __init__(self, work: Work, decision: Decision) -> None:
        super().__init__(self._rows)
        self._work = work
        self._decision = decision
        self._output: dict[int, int | None] | None = None

    def __len__(self) -> int:
        return len(self._work.source)

    def with_text(self) -> list[MessageRow]:
        """Return the rows, each with the text of its message."""
        source, texts = self._work.source, self._work.format.texts
        return [
            replace(row, text="\n".join(slot.text for slot in texts(mapping_of(source[row.index]))))
            for row in self
        ]

    @property
    def changed(self) -> set[int]:
        """Positions, in the caller's list, of messages that are in the output, but not as they were."""
        mended = self._work.mended
        return self._cut_or_edited | (mended & self._sizes_after().keys() if mended else mended)

    @property
    def _cut_or_edited(self) -> set[int]:
        """Of these, those the strategy changed."""
        work = self._work
        return {work.source_index(at) for at in self._decision.settled.changed if at >= work.lead}

    def staying_messages(self, output_messages: int) -> int:
        """Count the caller's messages in the output; one that was parted by a repair is one."""
        return output_messages if self._work.origin is None else len(self._sizes_after())

    @property
    def inserted(self) -> tuple[InsertedRow, ...]:
        """What trimtab put before the caller's messages."""
        lead = self._work.lead
        tokens = list(self._sizes_of_output().values())[:lead] if lead else []
        return tuple(
            InsertedRow(position=at, role="system", tokens=size or 0, why="the text given as system=")
            for at, size in enumerate(tokens)
        )

    def before_tokens(self, beside_tokens: int) -> tuple[int | None, int | None]:
        """Return what the request and the block had before; None where that is not known."""
        sizes = self._work.source_sizes
        if isinstance(sizes, Shares) and not self._work.lead:
            return sizes.whole_tokens, sizes.whole_tokens
        total = _sum(self._sizes_before())
        if isinstance(sizes, Shares):
            return sizes.whole_tokens, total
        return None if total is None else total + beside_tokens, total

    def _sizes_before(self) -> Sequence[int | None]:
        """List the sizes of the caller's messages, as far as they are known."""
        work, sizes = self._work, self._work.source_sizes
        if isinstance(sizes, Shares):
            if sizes.whole_tokens is None:
                return [None] * len(work.source)
            whole = [*work.history.originals[: work.lead], *work.source]
            return sizes.split(whole, sizes.whole_tokens)[work.lead :]
        known: list[int | None] = sizes.known[work.source_offset :]
        if work.origin is not None and None in known:
            originals, source = work.history.originals, work.source
            for at, index in enumerate(work.origin, work.lead):
                if known[index] is None and originals[at] is source[index]:
                    known[index] = work.sizes.known[at]
        return known

    def _sizes_after(self) -> dict[int, int | None]:
        """Map the caller's messages that are in the output to their sizes there."""
        if self._output is None:
            lead, origin = self._work.lead, self._work.origin
            sizes = self._sizes_of_output()
            if origin is None:
                self._output = {at - lead: size for at, size in sizes.items() if at >= lead}
            else:
                placed = [(origin[at - lead], size) for at, size in sizes.items() if at >= lead]
                self._output = dict(placed)
                if len(self._output) < len(placed):  # parts of one message went to several places
                    self._output = {i: _sum([size for j, size in placed if i == j]) for i, _ in placed}
        return self._output

    def _sizes_of_output(self) -> dict[int, int | None]:
        """Map positions in the history to sizes, for what is in the output; a black box's total is split."""
        settled, sizes = self._decision.settled, self._work.sizes
        there = [*settled.before, *range(settled.cut, len(self._work.history))]
        if isinstance(sizes, Shares):
            return dict(
                zip(there, sizes.split(settled.assemble(self._decision.request), settled.tokens), strict=True)
            )
        edited, known = settled.edited_tokens, sizes.known
        return {at: edited.get(at, known[at]) for at in there}

    def _rows(self) -> list[MessageRow]:
        work, changed = self._work, self.changed
        before, after = self._sizes_before(), self._sizes_after()
        over = self._decision.settled.reason
        reasons: dict[int, Reason] = {**dict.fromkeys(changed - self._cut_or_edited, "repair"), **work.gone}
        units, calls, rows = _units(work), _calls(work), []
        for index, message in enumerate(work.source):
            fate: Fate = "evicted" if index not in after else "changed" if index in changed else "kept"
            unit, state = units.get(index) or (index, "free")
            call_ids, tool_names = calls.get(index, _NO_CALLS)
            rows.append(
                MessageRow(
                    index=index,
                    role=_role(work.format, message),
                    fate=fate,
                    reason=None if fate == "kept" else reasons.get(index, over),
                    unit=unit,
                    state=state,
                    tokens_before=before[index],
                    tokens_after=after.get(index),
                    call_ids=call_ids,
                    tool_names=tool_names,
                )
            )
        return rows


_NO_CALLS: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def _units(work: Work) -> dict[int, tuple[int, State]]:
    """Map the caller's messages to the first message and the state of their unit."""
    lead, origin = work.lead, work.origin
    found: dict[int, tuple[int, State]] = {}
    for unit in reversed(work.history.units):
        indices = unit.indices
        if indices[-1] < lead:
            continue
        shared = (work.source_index(max(indices[0], lead)), unit.state)
        for at in indices:
            found[at - lead if origin is None else origin[at - lead]] = shared
    return found


def _calls(work: Work) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Map the caller's messages to ids of calls they make or answer, and the names of the tools.

    There are no names where one of them is not known.
    """
    history = work.history
    called: dict[str, str] = {}
    found = {}
    for at, ids in sorted(history.structure.calls.items()):
        names = history.format.tool_names(history.messages[at])
        called.update(names)
        found[work.source_index(at)] = _named(ids, names)
    for at, answers in history.structure.answers.items():
        index = work.source_index(at)
        if index not in found:
            found[index] = _named([call_id for call_id, _ in answers], called)
    return found


def _named(ids: Iterable[str], names: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ids = tuple(dict.fromkeys(ids))
    tools = tuple([names.get(call_id, "") for call_id in ids])
    return ids, tools if all(tools) else ()


def _role(format: Format, message: Any) -> str:
    if type(message) is not dict:
        message = mapping_of(message)
    return str(message.get("role") or format.kind(message))


def _sum(sizes: Sequence[int | None]) -> int | None:
    """Add up; None if one is not known."""
    return sum(size for size in sizes if size is not None) if None not in sizes else None
