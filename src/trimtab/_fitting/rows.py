"""The rows of a report: one a message, or one for neighbours that fared alike; made when they are read."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, overload

from trimtab._fitting.portion import Decision, Portion
from trimtab.conversation import History, State, Unit
from trimtab.conversation.assemble import part_of
from trimtab.conversation.pairing import owners_behind
from trimtab.conversation.units import unit_of
from trimtab.counting.sizes import Shares, shared_out
from trimtab.errors import FormatError
from trimtab.formats import Format, mapping_of
from trimtab.formats.structure import UNNAMED
from trimtab.report import EvictedUnit, Fate, InsertedRow, MessageRow, Reason, Report, ResultRow, RunRow
from trimtab.report.rows import NAMED_ROLES, LiveRows, is_answer, run_of_one, runs_of, sum_of

__all__ = ["JoinedRows", "Lazy", "Recount", "Rows", "system_rows"]

T = TypeVar("T")

Fared: TypeAlias = "tuple[Fate, Reason | None, bool]"
"""What became of a message, why, and whether it is pinned."""

Recount = Callable[[], "Report | None"]
"""Makes the report without unknown numbers; see `LiveRows.counted_report`."""


def _no_report() -> None:
    """Make none: only numbers are asked for."""


def rules_row(role: str, tokens: int, position: int) -> InsertedRow:
    """Return the row of the host's rules that the input had not yet."""
    return InsertedRow(position=position, role=role, tokens=tokens, why="rules of the host")


def system_rows(tokens: Iterable[int]) -> list[InsertedRow]:
    """List system text that became a message before all others."""
    return [
        InsertedRow(position=at, role="system", tokens=size, why="the text given as system=")
        for at, size in enumerate(tokens)
    ]


class Lazy(Sequence[T]):
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


class Rows(Lazy[MessageRow], LiveRows):
    """One row a message of the input, built when read; texts are added where they are asked for."""

    __slots__ = (
        "_compacted",
        "_made_tools",
        "_mark_tokens",
        "_marked",
        "_output",
        "_portion",
        "_recount",
        "_request",
        "_settled",
        "rules_tokens",
    )

    def __init__(
        self,
        decision: Decision[Portion],
        recount: Recount = _no_report,
        marked: frozenset[int] = frozenset(),
        mark_tokens: int = 0,
        rules_tokens: int = 0,
    ) -> None:
        super().__init__(self._rows)
        self._recount = recount
        self._marked = marked
        self._mark_tokens = mark_tokens
        """What the mark for a provider's cache costs that its last message carries."""
        self.rules_tokens = rules_tokens
        """What the host's rules have of the total, in the block or beside all."""
        self._portion = decision.portion
        self._settled = decision.settled
        self._request = decision.request
        self._compacted = decision.portion.compact_places
        self._output: dict[int, int | None] | None = None
        self._made_tools: tuple[_Tools | None] | None = None

    def __len__(self) -> int:
        return len(self._portion.source)

    def counted_report(self) -> Report | None:
        """Make the report without unknown numbers; None where to count them costs too much."""
        return self._recount()

    def runs(self) -> list[RunRow]:
        """Group neighbours that fared alike, without a row of each message where that can be."""
        if self._items is None and self._portion.origin is None:
            made = self._runs()
            if made is not None:
                return made
        return runs_of(self)

    def with_text(self) -> list[MessageRow]:
        """Return the rows, each with the text of its message."""
        portion, texts = self._portion, self._portion.history.format.texts
        source = portion.source
        return [
            replace(
                row,
                text="\n".join(slot.text for slot in texts(mapping_of(source[row.index - portion.start]))),
            )
            for row in self
        ]

    @property
    def changed(self) -> set[int]:
        """Positions, in the caller's list, of messages that are in the output, but not as they were."""
        mended, portion = self._portion.mended, self._portion
        mended = mended & self._sizes_after().keys() if mended else mended
        stored = portion.stored
        other = {stored.at} if stored is not None and stored.differ else set[int]()
        written = self._compacted
        written = written & self._sizes_after().keys() if written else written
        return self._cut_or_edited | self._marked | mended | other | written

    @property
    def _cut_or_edited(self) -> set[int]:
        """Of these, those the strategy changed."""
        portion = self._portion
        return {portion.source_index(at) for at in self._settled.changed if at >= portion.lead}

    def staying_messages(self, output_messages: int) -> int:
        """Count the caller's messages in the output; one that was parted by a repair is one."""
        return output_messages if self._portion.origin is None else len(self._sizes_after())

    def reason_counts(self) -> Counter[str]:
        """Count the messages that went or changed by why; makes no rows."""
        reasons, stays = self._reasons(), self._sizes_after()
        found = Counter[str](reasons.get(at, self._settled.reason) for at in self.changed if at in stays)
        told = [reason for at, reason in reasons.items() if at not in stays and 0 <= at < len(self)]
        found.update(told)
        found[self._settled.reason] += len(self) - len(stays) - len(told)
        return +found

    def reasons(self, places: Iterable[int]) -> Iterator[Reason | None]:
        """Give why messages went or changed, without rows of them; None: it stays as it was."""
        changed, reasons = self.changed, self._reasons()
        return (self._fate(at, changed, reasons)[1] for at in places)

    def lead_rows(self) -> list[InsertedRow]:
        """List what trimtab put before the caller's messages."""
        lead = self._portion.lead
        tokens = list(self._sizes_of_output().values())[:lead] if lead else []
        return system_rows(size or 0 for size in tokens)

    def inserted_rows(self, *, offset: int = 0) -> list[InsertedRow]:
        """List what was put in among the messages; `offset` is where the block begins in the output."""
        settled, format = self._settled, self._portion.history.format
        return [
            InsertedRow(
                position=offset + bisect_left(settled.before, insertion.at) + shift,
                role=_role(format, insertion.message),
                tokens=tokens,
                why=insertion.why,
            )
            for shift, (insertion, tokens) in enumerate(
                zip(settled.insertions, self._inserted_tokens(), strict=True)
            )
        ]

    def _inserted_tokens(self) -> Sequence[int]:
        """List the sizes of what was put in; of a black box's total all, where nothing else is there."""
        settled, tokens = self._settled, self._settled.inserted_tokens
        if not tokens or not isinstance(self._portion.sizes, Shares):
            return tokens
        alone = (
            self._portion.sizes.fixed.shown is None
            and not settled.before
            and settled.cut >= len(self._portion.history)
        )
        return shared_out(settled.tokens if alone else min(settled.tokens, sum(tokens)), tokens)

    def before_tokens(self) -> int | None:
        """Return what the block had before; None where that is not known."""
        sizes = self._portion.source_sizes
        if isinstance(sizes, Shares) and not self._portion.lead:
            return sizes.whole_tokens
        return sum_of(self._sizes_before())

    def _sizes_before(self) -> Sequence[int | None]:
        """List the sizes of the caller's messages, as far as they are known."""
        portion, sizes = self._portion, self._portion.source_sizes
        if isinstance(sizes, Shares):
            if sizes.whole_tokens is None:
                return [None] * len(portion.source)
            whole = [*portion.history.originals[: portion.lead], *portion.source]
            shown = None if portion.stored is not None else sizes.fixed.shown
            rules = [] if shown is None else [shown.message]
            return sizes.split([*rules, *whole], sizes.whole_tokens)[len(rules) + portion.lead :]
        known: list[int | None] = sizes.known[portion.source_offset :]
        if portion.origin is not None and None in known:
            originals, source = portion.history.originals, portion.source
            for at, index in enumerate(portion.origin, portion.lead):
                if known[index] is None and originals[at] is source[index]:
                    known[index] = portion.sizes.known[at]
        return known

    def _sizes_after(self) -> dict[int, int | None]:
        """Map the caller's messages that are in the output to their sizes there."""
        if self._output is None:
            lead, origin = self._portion.lead, self._portion.origin
            sizes = self._sizes_of_output()
            if origin is None:
                self._output = {at - lead: size for at, size in sizes.items() if at >= lead}
            else:
                placed = [(origin[at - lead], size) for at, size in sizes.items() if at >= lead]
                self._output = dict(placed)
                if len(self._output) < len(placed):  # parts of one message went to several places
                    self._output = {i: sum_of([size for j, size in placed if i == j]) for i, _ in placed}
            stored = self._portion.stored
            if stored is not None:
                self._output = {stored.at: self.rules_tokens, **self._output}
            if self._mark_tokens:
                last = max(self._output)
                self._output[last] = (self._output[last] or 0) + self._mark_tokens
        return self._output

    def _sizes_of_output(self) -> dict[int, int | None]:
        """Map positions in the history to sizes, for what is in the output; a black box's total is split."""
        settled, sizes = self._settled, self._portion.sizes
        there = [*settled.before, *range(settled.cut, len(self._portion.history))]
        if isinstance(sizes, Shares):
            inserted = {row.position for row in self.inserted_rows()}
            output = enumerate(settled.assemble(self._request))
            own = [message for position, message in output if position not in inserted]
            rules_tokens = 0 if sizes.fixed.shown is None else self.rules_tokens
            own_tokens = max(0, settled.tokens - sum(self._inserted_tokens()) - rules_tokens)
            return dict(zip(there, sizes.split(own, own_tokens), strict=True))
        edited, known = settled.edited_tokens, sizes.known
        return {at: edited.get(at, known[at]) for at in there}

    def _rows(self) -> list[MessageRow]:
        portion, changed = self._portion, self.changed
        before, after = self._sizes_before(), self._sizes_after()
        start, reasons = portion.start, self._reasons()
        units, calls, rows = _units(portion), _calls(portion), []
        results, rules_at = self._results(), None if portion.stored is None else portion.stored.at
        for index, message in enumerate(portion.source):
            fate, reason = self._fate(index, changed, reasons)
            unit, state = units.get(index) or (index, "pinned" if index == rules_at else "free")
            call_ids, tool_names = calls.get(index, _NO_CALLS)
            rows.append(
                MessageRow(
                    index=start + index,
                    block=portion.name,
                    role=_role(portion.history.format, message),
                    fate=fate,
                    reason=reason,
                    unit=start + unit,
                    state=state,
                    tokens_before=before[index],
                    tokens_after=after.get(index),
                    call_ids=call_ids,
                    tool_names=tool_names,
                    results=tuple(results.get(index, ())),
                    label=portion.labels[index] if portion.labels else None,
                )
            )
        return rows

    def _reasons(self) -> dict[int, Reason]:
        """Map the caller's messages to why they went or changed, where it is not what the strategy said."""
        portion = self._portion
        return {
            **dict.fromkeys(self._marked, "cache_mark"),
            **dict.fromkeys(self.changed & self._compacted, "compacted"),
            **dict.fromkeys(self.changed & portion.mended, "repair"),
            **dict.fromkeys(self._cut_or_edited, self._settled.reason),
            **{portion.source_index(at): reason for at, reason in self._settled.reasons.items()},
            **portion.gone,
            **({portion.stored.at: "rules"} if portion.stored is not None and portion.stored.differ else {}),
        }

    def _fate(
        self, at: int, changed: Collection[int], reasons: Mapping[int, Reason]
    ) -> tuple[Fate, Reason | None]:
        """Tell what became of one of the caller's messages, and why."""
        fate: Fate = "evicted" if at not in self._sizes_after() else "changed" if at in changed else "kept"
        return fate, None if fate == "kept" else reasons.get(at, self._settled.reason)

    def _runs(self) -> list[RunRow] | None:
        """Make the runs from what stays and the borders between that; None where units have to be told first.

        What was evicted is most of a long conversation, and was not told apart into units: that alone takes
        as long as a hundred fits.
        """
        portion, stays = self._portion, self._sizes_after()
        if not portion.source:
            return []
        states = self._states()
        tools = self._tools
        if tools is None:
            return None
        changed, reasons = self.changed, self._reasons()

        def fate_of(at: int) -> Fared:
            return *self._fate(at, changed, reasons), states.get(at, "free") == "pinned"

        # What nothing is known of fared like its neighbours: a run ends where something is.
        known = {*stays, *reasons, *states}
        borders = sorted({0, *known, *[at + 1 for at in known]}.intersection(range(len(portion.source))))
        runs = list[tuple[int, Fared]]()
        for at in borders:
            one = fate_of(at)
            if not runs or runs[-1][1] != one or one[0] == "changed":
                runs.append((at, one))
        stops = [*[first for first, _ in runs[1:]], len(portion.source)]
        before, after = self._sizes_before(), list(stays.values())
        place, found = 0, list[RunRow]()
        for (first, fared), stop in zip(runs, stops, strict=True):
            sizes = [] if fared[0] == "evicted" else after[place : place + stop - first]
            place += len(sizes)
            found.append(self._run(first, stop, fared[:2], states, before, sizes, tools))
        return found

    def _run(
        self,
        first: int,
        stop: int,
        fared: tuple[Fate, Reason | None],
        states: Mapping[int, State],
        before: Sequence[int | None],
        after: Sequence[int | None],
        tools: _Tools,
    ) -> RunRow:
        """Make the row of neighbours; `after` has the sizes of those that stay."""
        portion, (fate, reason) = self._portion, fared
        called = tools.between(first + portion.lead, stop + portion.lead)
        return RunRow(
            first=portion.start + first,
            last=portion.start + stop - 1,
            message_count=stop - first,
            fate=fate,
            reason=reason,
            block=portion.name,
            state=states.get(first, "free"),
            tokens_before=sum_of(before[first:stop]),
            tokens_after=None if fate == "evicted" else sum_of(after),
            roles=tuple(self._roles(first, stop)) if stop - first <= NAMED_ROLES else (),
            labels=tuple([label for label in portion.labels[first:stop] if label]),
            tools=called,
            answers=bool(called) and all(map(is_answer, self._roles(first, stop))),
        )

    def heaviest(self, least_tokens: int) -> list[RunRow]:
        """List the messages that stay and are known to come to so much, each with a row."""
        sizes = self._sizes_after()
        heavy = [at for at, size in sizes.items() if size is not None and size >= least_tokens]
        before = self._sizes_before() if heavy else ()  # a black box's are worked out anew
        return [self._row_of(at, before) for at in heavy]

    def newest_evicted(self) -> EvictedUnit | None:
        """Return the newest unit that was evicted; None if none was, or nothing is known of its size.

        What a callback took out, or a repair, is none: no room was missing for it.
        """
        portion, settled = self._portion, self._settled
        at = settled.cut - 1
        while at >= portion.lead and settled.keeps(at):
            at -= 1
        unit = self._unit_at(at) if at >= portion.lead else None
        if unit is None:
            return None
        places = sorted({portion.source_index(one) for one in unit.indices if one >= portion.lead})
        before, shared = self._sizes_before(), set(map(portion.source_index, unit.parts))
        sizes = {at: size for at in places if (size := before[at]) is not None and at not in shared}
        if not sizes:
            return None
        return EvictedUnit(
            block=portion.name,
            first=portion.start + places[0],
            last=portion.start + places[-1],
            message_count=len(places),
            tokens=sum(sizes.values()),
            counted=len(sizes) == len(places),
            heaviest=self._row_of(max(sizes, key=sizes.__getitem__), before),
        )

    def _unit_at(self, at: int) -> Unit | None:
        """Return the unit of a message, if it was told apart or is the message alone."""
        for span in reversed(self._request.told):
            first, stop, _, kind, unit = span
            if first <= at < stop and (unit is None or at in unit.indices):
                return None if kind is None else unit_of(span)
        history = self._portion.history
        return Unit((at,), kind=history.kind(at)) if history.stands_alone(at) else None

    def _row_of(self, at: int, before: Sequence[int | None]) -> RunRow:
        """Return the row of one of the caller's messages."""
        tools = self._tools if self._items is None and self._portion.origin is None else None
        if tools is None:
            return run_of_one(self[at])
        stays, fate = self._sizes_after(), self._fate(at, self.changed, self._reasons())
        sizes = [stays[at]] if at in stays else []
        return self._run(at, at + 1, fate, self._states(), before, sizes, tools)

    @property
    def _tools(self) -> _Tools | None:
        """The tools that are called; None where they are told apart by units alone."""
        if self._made_tools is None:
            self._made_tools = (_tools_in(self._portion.history),)
        return self._made_tools[0]

    def _roles(self, first: int, stop: int) -> Iterator[str]:
        format, source = self._portion.history.format, self._portion.source
        return (_role(format, source[at]) for at in range(first, stop))

    def _states(self) -> dict[int, State]:
        """Map those of the caller's messages that stay or may not leave to the state of their unit."""
        stays, lead, found = self._sizes_after(), self._portion.lead, dict[int, State]()
        for first, stop, state, _, unit in reversed(self._request.told):
            for at in range(first, stop) if unit is None else unit.indices:
                if at >= lead and (state != "free" or at - lead in stays):
                    found[at - lead] = state
        return found

    def _results(self) -> dict[int, list[ResultRow]]:
        """Map the caller's messages to rows of the results in them, where results are no messages."""
        portion, settled, found = self._portion, self._settled, dict[int, list[ResultRow]]()
        history, before, called = portion.history, set(settled.before), dict[str, str]()
        if history.format.rules.results_are_messages:
            return found
        answers = history.structure.answers
        for at in sorted({*history.structure.calls, *answers}):
            called.update(history.format.tool_names(history.messages[at]))
            edited = {part_of(path) for path in settled.edits.get(at, ())}
            for call_id, part in answers.get(at, ()):
                stays = at in before or at >= settled.cut
                stays = stays and (at not in settled.partial or part in settled.partial[at])
                fate: Fate = "evicted" if not stays else "changed" if part in edited else "kept"
                row = ResultRow(call_id=call_id, tool_name=called.get(call_id, ""), fate=fate)
                found.setdefault(portion.source_index(at), []).append(row)
        return found


_NO_CALLS: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def _units(portion: Portion) -> dict[int, tuple[int, State]]:
    """Map the caller's messages to the first message and the state of their unit."""
    lead, origin = portion.lead, portion.origin
    found: dict[int, tuple[int, State]] = {}
    for unit in reversed(portion.history.units):
        indices = unit.indices
        if indices[-1] < lead:
            continue
        shared = (portion.source_index(max(indices[0], lead)), unit.state)
        for at in indices:
            found[at - lead if origin is None else origin[at - lead]] = shared
    return found


def _calls(portion: Portion) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Map the caller's messages to ids of calls they make or answer, and the names of the tools.

    There are no names where one of them is not known.
    """
    history, structure = portion.history, portion.history.structure
    called: dict[str, str] = {}  # so far: ids are used again
    found = {}
    for at in sorted({*structure.calls, *structure.answers}):
        ids, names = structure.calls.get(at), called
        if ids is not None:
            names = history.format.tool_names(history.messages[at])
            called.update(names)
        index = portion.source_index(at)
        if ids is not None or index not in found:
            found[index] = _ids_and_tools(ids or [one for one, _ in structure.answers[at]], names)
    return found


def _ids_and_tools(ids: Iterable[str], names: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ids = tuple(dict.fromkeys(ids))
    tools = tuple([names.get(call_id, "") for call_id in ids])
    return ids, tools if all(tools) else ()


def _role(format: Format, message: Any) -> str:
    if type(message) is not dict:
        message = mapping_of(message)
    return str(message.get("role") or format.kind(message))


class JoinedRows(Lazy[MessageRow], LiveRows):
    """The rows of all blocks, in the order of the request; built when read."""

    __slots__ = ("_recount", "_rows", "_units_across")

    def __init__(
        self, units_across: Callable[[], dict[int, int]], rows: list[Rows], recount: Recount
    ) -> None:
        super().__init__(self._all)
        self._recount = recount
        self._units_across = units_across
        self._rows = rows

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def counted_report(self) -> Report | None:
        """Make the report without unknown numbers; None where to count them costs too much."""
        return self._recount()

    def runs(self) -> list[RunRow]:
        """Group neighbours that fared alike: no run spans two blocks."""
        return [run for rows in self._rows for run in rows.runs()]

    def with_text(self) -> list[MessageRow]:
        """Return the rows, each with the text of its message."""
        texts = [row.text for rows in self._rows for row in rows.with_text()]
        return [replace(row, text=text) for row, text in zip(self, texts, strict=True)]

    def _all(self) -> list[MessageRow]:
        firsts = self._units_across()
        rows = [row for rows in self._rows for row in rows]
        for index, unit in firsts.items():
            rows[index] = replace(rows[index], unit=unit)
        return rows


@dataclass(slots=True)
class _Tools:
    """The tools that a conversation calls, told without its units."""

    called: dict[int, dict[str, str]]
    """For each message that calls the names of the tools, by the ids of the calls."""
    answers: Mapping[int, Sequence[tuple[str, int | None]]]
    """For each message that answers the ids of the calls."""
    owner_of: Callable[[int, str], int]
    """Finds the message that calls what another answers."""
    places: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.places = sorted({*self.called, *self.answers})

    def between(self, first: int, stop: int) -> dict[str, int]:
        """Count the tools that messages of a range call; of a call in front of it the result alone counts."""
        found, beside = Counter[str](), set[tuple[int, str]]()
        for at in self.places[bisect_left(self.places, first) : bisect_left(self.places, stop)]:
            if at in self.called:
                found.update(self.called[at].values())
                continue
            for call_id, _ in self.answers[at]:
                owner = self.owner_of(at, call_id)
                if owner < first and (owner, call_id) not in beside:
                    beside.add((owner, call_id))
                    found[self.called[owner][call_id]] += 1
        return dict(found.most_common())


def _tools_in(history: History) -> _Tools | None:
    """Read which tools a conversation calls; None where calls are told apart by their units alone.

    Of one call its id may stand for it where no other has it, or, where each is answered right behind, with
    the place of who called.
    """
    try:
        columns = history.columns
    except FormatError:  # said by who tells the units apart
        return None
    callers = {call_id: at for at, ids in columns.calls.items() for call_id in ids}
    behind = owners_behind(columns)
    if behind is None and len(callers) < sum(map(len, columns.calls.values())):
        return None
    called = {at: history.format.tool_names(history.message(at)) for at in columns.calls}
    if not all(callers) or not all([name for names in called.values() for name in names.values()]):
        return None
    if any([call_id.startswith(UNNAMED) for call_id in callers]):
        return None
    return _Tools(
        called,
        columns.answers,
        lambda at, call_id: callers.get(call_id, at) if behind is None else behind[at],
    )
