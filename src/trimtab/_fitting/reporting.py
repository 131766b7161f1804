"""The report of a fit, which is made when it is read, and so is each of its rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from trimtab._fitting.blocks import asked_floor_tokens
from trimtab._fitting.layout import faults_of
from trimtab._fitting.portion import Decision, Portion
from trimtab._fitting.prepare import Work
from trimtab._fitting.request import tier_note, window_note, window_of
from trimtab._fitting.settlement import AnyOutcome, Marks
from trimtab.budget import Budget
from trimtab.conversation import State
from trimtab.conversation.assemble import part_of
from trimtab.counting.margin import known_over_margin
from trimtab.counting.measurement import is_exact, unknown_in, unknown_notes, unread_notes
from trimtab.counting.simple import CharCounter, FixedCounter
from trimtab.counting.sizes import Shares, Sizes, counter_name, shared_out
from trimtab.counting.texts import TextCounter
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Format, Request, mapping_of
from trimtab.report import BlockReport, Fate, InsertedRow, MessageRow, Reason, Report, ResultRow
from trimtab.report.rows import LiveRows
from trimtab.report.text import plural
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab._fitting.outcome import BlockDecision, Outcome
    from trimtab._fitting.settle_fit import FitOutcome

__all__ = ["context_report_of", "counted_report_of", "report_of"]


T = TypeVar("T")


Recount = Callable[[], Report | None]
"""Makes the report without unknown numbers; see `LiveRows.counted_report`."""


def counted_report_of(outcome: AnyOutcome, marks: Marks) -> Report | None:
    """Make the report of an outcome without unknown numbers; None where to count them costs too much."""
    try:
        if not _is_cheap(outcome.counter, outcome.format, outcome.tables()):
            return None
        outcome.count_all()
    except (CountingError, FormatError):  # of a message the fit never looked at
        return None
    return outcome.report(marks)


def report_of(outcome: FitOutcome, marks: Marks) -> Report:
    """Make the report of a fit; no counter is called, and rows are made when they are read."""
    work, budget, output = outcome.portion, outcome.budget, outcome.messages()
    settled, rows = outcome.settled, Rows(outcome, partial(counted_report_of, outcome, marks), marks.at)
    inserted = (*rows.lead_rows(), *rows.inserted_rows())
    sizes, leads_system = work.sizes, _leads_system(output, work.format)
    beside_tokens = sizes.fixed_tokens(leads_system) + rows.lead_tokens()
    block = block_report(outcome, rows, limit_tokens=budget.input_tokens - beside_tokens, output=output)
    block = replace(block, tokens_after=settled.tokens - beside_tokens)
    unknown = unknown_of(work.counter, work.format, work.tools, output, work.body)
    return Report(
        **about(
            sizes,
            budget,
            counter=work.counter,
            model=work.ask.model,
            format=work.format,
            leads_system=leads_system,
            unknown=unknown,
            tokens_after=settled.tokens,
            output=output,
            request=work.body,
        ),
        notes=(
            *work.notes,
            *window_note(work.ask.model, budget),
            *tier_note(work.ask.model, settled.tokens),
            *settled.notes,
            *_left_out(work, output),
            *unread_notes(work.format, output, counted=work.ask.sizes is not None or not sizes.additive),
            *unknown_notes(unknown),
        ),
        planned=is_planned(settled),
        shares=isinstance(work.sizes, Shares),
        tokens_before=_tokens_before(work, rows),
        fits=settled.fits,
        kept_message_count=block.kept_message_count,
        changed_message_count=block.changed_message_count,
        evicted_message_count=block.evicted_message_count,
        blocks=(block,),
        messages=rows,
        inserted=inserted,
        violations=Lazy(work.violations),
    )


def tokens_before_of(work: Work, decision: Decision[Portion]) -> int | None:
    """Return what the request took as it came in, as its report has it; None where that is not known."""
    return _tokens_before(work, Rows(decision, _no_report, frozenset()))


def _tokens_before(work: Work, rows: Rows) -> int | None:
    leads_system = _leads_system(work.given, work.format)
    return rows.whole_before_tokens(work.sizes.fixed_tokens(leads_system) + rows.lead_tokens())


def _no_report() -> None:
    """Make none: only numbers are asked for."""


def _left_out(work: Work, output: list[Any]) -> list[str]:
    """Say what the request body leaves out of messages that stay: what the provider takes no longer."""
    body = work.body_of_request
    if body.body is None:
        return []
    sent = work.format.write_request(body, list(output)).get(body.key)
    if not isinstance(sent, list):
        return []
    kept = set(map(id, output))
    less = len(output) - sum(id(message) in kept for message in sent)
    if not less:
        return []
    return [
        f"`request` leaves out parts of {plural(less, 'message')} that the provider takes no longer beside"
        " what it now holds; `messages` has them."
    ]


def unknown_of(
    counter: Any, format: Format, tools: Any, output: Sequence[Any], request: Request | None = None, /
) -> tuple[str, ...]:
    """List what of a request that goes out nobody can count from it; messages of one text have nothing."""
    dicts = map(mapping_of, output)
    pieces = [format.pieces(one) for one in dicts if not isinstance(one.get("content"), str)]
    return unknown_in(counter, tools, pieces, request).phrases


def _leads_system(messages: Sequence[Any], format: Format) -> bool:
    """Tell whether messages begin with system text."""
    return bool(messages) and format.kind(mapping_of(messages[0])) == "system"


def about(
    sizes: Sizes,
    budget: Budget,
    *,
    counter: Any,
    model: str | None,
    format: Format,
    leads_system: bool,
    unknown: tuple[str, ...],
    tokens_after: int,
    output: Sequence[Any],
    request: Request | None = None,
) -> dict[str, Any]:
    """List what a report says of the request as a whole; `sizes` has its fixed part."""
    system_tokens, tools_tokens = sizes.fixed_parts(leads_system)
    return {
        "format": format.name,
        "model": model,
        "counter": counter_name(counter),
        "exact": not unknown and is_exact(counter, output, format, sizes.fixed, model=model, request=request),
        "window_tokens": budget.window,
        "model_window_tokens": window_of(model),
        "output_reserve_tokens": budget.output_reserve,
        "overhead_tokens": budget.overhead_tokens,
        "margin_tokens": budget.margin,
        "over_margin_tokens": known_over_margin(counter, tokens_after),
        "input_tokens": budget.input_tokens,
        "fixed_tokens": sizes.fixed_tokens(leads_system),
        "system_tokens": system_tokens,
        "tools_tokens": tools_tokens,
        "tokens_after": tokens_after,
    }


def block_report(
    decision: Decision[Portion], rows: Rows, *, limit_tokens: int, output: list[Any]
) -> BlockReport:
    """Make the row of one block; `output` is what of the request came from it."""
    portion, settled = decision.portion, decision.settled
    inserted = portion.lead + len(settled.insertions)
    kept, changed = rows.staying_messages(len(output) - inserted), len(rows.changed)
    return BlockReport(
        name=portion.name,
        limit_tokens=limit_tokens,
        offered_tokens=limit_tokens,
        tokens_before=rows.before_tokens(),
        tokens_after=settled.tokens,
        actions=_actions(portion, settled.actions),
        kept_message_count=kept - changed,
        changed_message_count=changed,
        evicted_message_count=len(portion.source) - kept,
    )


def system_rows(tokens: Iterable[int]) -> list[InsertedRow]:
    """List system text that became a message before all others."""
    return [
        InsertedRow(position=at, role="system", tokens=size, why="the text given as system=")
        for at, size in enumerate(tokens)
    ]


def is_planned(settled: Settled) -> bool:
    """Tell whether a summary is still to be written."""
    return any(insertion.planned_tokens is not None for insertion in settled.insertions)


def _actions(portion: Portion, actions: tuple[str, ...]) -> tuple[str, ...]:
    """List what was done: first what left before anything was decided, then what the strategy did."""
    reasons = set(portion.gone.values())
    first = ["removed_by_callback"] if "callback" in reasons else []
    if "repair" in reasons and "evicted" not in actions:
        first.insert(0, "evicted")
    return (*first, *(action for action in actions if action != "kept" or not first)) or ("kept",)


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


_MOST_CHARS = 300_000
_MOST_MESSAGES = 5_000
"""How much is counted for who reads a report: a fraction of a second with a slow tokenizer."""


def _is_cheap(counter: Any, format: Format, tables: Iterable[Sizes], /) -> bool:
    """Tell whether what is not known of some sizes is soon counted: by a counter of ours, in this process."""
    if isinstance(counter, TextCounter | CharCounter | FixedCounter):
        left, chars = _MOST_MESSAGES, _MOST_CHARS
        for sizes in {id(one): one for one in tables}.values():
            for message, size in zip(sizes.messages, sizes.known, strict=True):
                if size is None:
                    left -= 1
                    chars -= sum(len(slot.text) for slot in format.texts(mapping_of(message)))
                if left < 0 or chars < 0:
                    return False
        return True
    return False


class Rows(Lazy[MessageRow], LiveRows):
    """One row a message of the input, built when read; texts are added where they are asked for."""

    __slots__ = ("_marked", "_output", "_portion", "_recount", "_request", "_settled")

    def __init__(self, decision: Decision[Portion], recount: Recount, marked: frozenset[int]) -> None:
        super().__init__(self._rows)
        self._recount = recount
        self._marked = marked
        self._portion = decision.portion
        self._settled = decision.settled
        self._request = decision.request
        self._output: dict[int, int | None] | None = None

    def __len__(self) -> int:
        return len(self._portion.source)

    def counted_report(self) -> Report | None:
        """Make the report without unknown numbers; None where to count them costs too much."""
        return self._recount()

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
        mended = self._portion.mended
        return (
            self._cut_or_edited | self._marked | (mended & self._sizes_after().keys() if mended else mended)
        )

    @property
    def _cut_or_edited(self) -> set[int]:
        """Of these, those the strategy changed."""
        portion = self._portion
        return {portion.source_index(at) for at in self._settled.changed if at >= portion.lead}

    def staying_messages(self, output_messages: int) -> int:
        """Count the caller's messages in the output; one that was parted by a repair is one."""
        return output_messages if self._portion.origin is None else len(self._sizes_after())

    def lead_rows(self) -> list[InsertedRow]:
        """List what trimtab put before the caller's messages."""
        lead = self._portion.lead
        tokens = list(self._sizes_of_output().values())[:lead] if lead else []
        return system_rows(size or 0 for size in tokens)

    def lead_tokens(self) -> int:
        """Add up what trimtab put before the caller's messages."""
        return sum(row.tokens for row in self.lead_rows())

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
        alone = not settled.before and settled.cut >= len(self._portion.history)
        return shared_out(settled.tokens if alone else min(settled.tokens, sum(tokens)), tokens)

    def whole_before_tokens(self, beside_tokens: int) -> int | None:
        """Return what the request had before; None where that is not known."""
        sizes = self._portion.source_sizes
        if isinstance(sizes, Shares):
            return sizes.whole_tokens
        total = self.before_tokens()
        return None if total is None else total + beside_tokens

    def before_tokens(self) -> int | None:
        """Return what the block had before; None where that is not known."""
        sizes = self._portion.source_sizes
        if isinstance(sizes, Shares) and not self._portion.lead:
            return sizes.whole_tokens
        return _sum(self._sizes_before())

    def _sizes_before(self) -> Sequence[int | None]:
        """List the sizes of the caller's messages, as far as they are known."""
        portion, sizes = self._portion, self._portion.source_sizes
        if isinstance(sizes, Shares):
            if sizes.whole_tokens is None:
                return [None] * len(portion.source)
            whole = [*portion.history.originals[: portion.lead], *portion.source]
            return sizes.split(whole, sizes.whole_tokens)[portion.lead :]
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
                    self._output = {i: _sum([size for j, size in placed if i == j]) for i, _ in placed}
        return self._output

    def _sizes_of_output(self) -> dict[int, int | None]:
        """Map positions in the history to sizes, for what is in the output; a black box's total is split."""
        settled, sizes = self._settled, self._portion.sizes
        there = [*settled.before, *range(settled.cut, len(self._portion.history))]
        if isinstance(sizes, Shares):
            inserted = {row.position for row in self.inserted_rows()}
            output = enumerate(settled.assemble(self._request))
            own = [message for position, message in output if position not in inserted]
            own_tokens = settled.tokens - sum(self._inserted_tokens())
            return dict(zip(there, sizes.split(own, own_tokens), strict=True))
        edited, known = settled.edited_tokens, sizes.known
        return {at: edited.get(at, known[at]) for at in there}

    def _rows(self) -> list[MessageRow]:
        portion, changed = self._portion, self.changed
        before, after = self._sizes_before(), self._sizes_after()
        over, start = self._settled.reason, portion.start
        reasons: dict[int, Reason] = {
            **dict.fromkeys(self._marked, "cache_mark"),
            **dict.fromkeys(changed & portion.mended, "repair"),
            **dict.fromkeys(self._cut_or_edited, over),
            **{portion.source_index(at): reason for at, reason in self._settled.reasons.items()},
            **portion.gone,
        }
        units, calls, rows = _units(portion), _calls(portion), []
        results = self._results()
        for index, message in enumerate(portion.source):
            fate: Fate = "evicted" if index not in after else "changed" if index in changed else "kept"
            unit, state = units.get(index) or (index, "free")
            call_ids, tool_names = calls.get(index, _NO_CALLS)
            rows.append(
                MessageRow(
                    index=start + index,
                    block=portion.name,
                    role=_role(portion.history.format, message),
                    fate=fate,
                    reason=None if fate == "kept" else reasons.get(index, over),
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
    history = portion.history
    called: dict[str, str] = {}
    found = {}
    for at, ids in sorted(history.structure.calls.items()):
        names = history.format.tool_names(history.messages[at])
        called.update(names)
        found[portion.source_index(at)] = _ids_and_tools(ids, names)
    for at, answers in history.structure.answers.items():
        index = portion.source_index(at)
        if index not in found:
            found[index] = _ids_and_tools([call_id for call_id, _ in answers], called)
    return found


def _ids_and_tools(ids: Iterable[str], names: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
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


# The report of a `Context`: a row a block, and one a message, made when it is read.


def context_report_of(outcome: Outcome, marks: Marks) -> Report:
    """Make the report of an outcome; no counter is called that was not before."""
    composition, budget = outcome.composition, outcome.budget
    policy, decisions = composition.policy, outcome.decisions
    recount = partial(counted_report_of, outcome, marks)
    rows = [Rows(decision, recount, _marks_in(decision, marks.at)) for decision in decisions]
    lead = _lead_rows(outcome)
    outputs = [decision.output() for decision in decisions]
    blocks = tuple(_block(decision, own) for decision, own in zip(decisions, rows, strict=True))
    sizes, leads_system = composition.request_sizes, outcome.leads_system
    inserted, offset = list(lead), len(lead)
    for decision, own, out in zip(decisions, rows, outputs, strict=True):
        joined = decision.portion.joint is not None  # what was put in stands in the one message, too
        put_in = _with_mark(decision, own.inserted_rows(offset=offset))
        inserted.extend(replace(row, position=offset) if joined else row for row in put_in)
        offset += len(out)
    output = [message for out in outputs for message in out]
    unknown = unknown_of(composition.counter, outcome.format, policy.tools, output)
    head = about(
        sizes,
        budget,
        counter=composition.counter,
        model=policy.model,
        format=outcome.format,
        leads_system=leads_system,
        unknown=unknown,
        tokens_after=outcome.tokens,
        output=output,
    )
    if outcome.fixed_tokens is not None:
        head["fixed_tokens"] = outcome.fixed_tokens
    return Report(
        **head,
        notes=(
            *composition.notes,
            *window_note(policy.model, budget),
            *tier_note(policy.model, outcome.tokens),
            *(note for one in decisions for note in one.settled.notes),
            *outcome.notes,
            *_notes_of_floors(outcome),
            *unread_notes(outcome.format, output, counted=composition.is_black_box),
            *unknown_notes(unknown),
            *_notes_of_joined(decisions),
            *(_notes_of_missing(decisions, output) if outcome.error is None else ()),
        ),
        planned=any(is_planned(decision.settled) for decision in decisions),
        shares=composition.is_black_box,
        tokens_before=_context_tokens_before(outcome, rows, lead),
        fits=outcome.error is None,
        kept_message_count=sum(block.kept_message_count for block in blocks),
        changed_message_count=sum(block.changed_message_count for block in blocks),
        evicted_message_count=sum(block.evicted_message_count for block in blocks),
        blocks=blocks,
        messages=_ContextRows(outcome, rows, recount),
        inserted=tuple(inserted),
        blocks_dropped=tuple(block.name for block, out in zip(blocks, outputs, strict=True) if not out),
        floors_ignored=outcome.floors_ignored,
        violations=Lazy(lambda: faults_of(policy, outcome.format, composition.source)),
    )


def _notes_of_floors(outcome: Outcome) -> list[str]:
    """Say which floors are above the caps of their blocks, which hold."""
    room = 0 if outcome.composition.asked is None else outcome.budget.input_tokens  # a share of nothing
    floors = ((one, asked_floor_tokens(one.portion.block, room)) for one in outcome.decisions)
    return [
        f"Block {one.portion.name!r} has a floor of {floor:,} tokens and a cap of {one.cap_tokens:,}:"
        " the floor is lowered to the cap."
        for one, floor in floors
        if one.cap_tokens is not None and floor > one.cap_tokens
    ]


def _notes_of_missing(decisions: list[BlockDecision], output: list[Any]) -> list[str]:
    """Say that no message is in the request, or not the latest one that the user wrote."""
    if not output and any(one.portion.source for one in decisions):
        return ["The request has no message: there was no room for any, or what was taken out left none."]
    asked = (one for one in reversed(decisions) if one.portion.history.latest_user is not None)
    for decision in asked:
        portion, at = decision.portion, decision.portion.history.latest_user
        if at is None or at < portion.lead or decision.settled.keeps(at):
            break
        place = portion.source_index(at)
        return [
            f"The latest message of the user is not in the request: message {place} of block"
            f" {portion.name!r}. Pin it, or give it a block of a higher rank."
        ]
    return []


def _notes_of_joined(decisions: list[BlockDecision]) -> list[str]:
    return [
        f"The documents of block {one.portion.name!r} are one message: their sizes are shares of it."
        for one in decisions
        if one.portion.joint is not None
    ]


def _lead_rows(outcome: Outcome) -> list[InsertedRow]:
    """List system text that became a message before all blocks."""
    sizes = outcome.composition.request_sizes
    lead, whole = outcome.composition.lead, outcome.lead_tokens
    if isinstance(sizes, Shares):
        return system_rows(sizes.split(lead, whole))
    return system_rows(map(sizes.of, range(len(lead))))


def _marks_in(decision: BlockDecision, marked: frozenset[int]) -> frozenset[int]:
    """List which messages of a block carry a mark that was set, by their places in it."""
    start, count = decision.portion.start, len(decision.portion.source)
    own = decision.mark_places()
    return frozenset(at - start for at in marked | own if start <= at < start + count)


def _block(decision: BlockDecision, rows: Rows) -> BlockReport:
    return replace(
        block_report(decision, rows, limit_tokens=decision.limit_tokens, output=decision.entries()),
        offered_tokens=decision.offered_tokens,
        cap_tokens=decision.cap_tokens,
        floor_tokens=decision.floor_tokens,
        tokens_after=decision.tokens,
        floor_missed_tokens=decision.floor_missed_tokens,
        freed_tokens=decision.freed_tokens,
    )


def context_tokens_before_of(outcome: Outcome) -> int | None:
    """Return what the request took as it came in, as its report has it; None where that is not known."""
    rows = [Rows(decision, _no_report, frozenset()) for decision in outcome.decisions]
    return _context_tokens_before(outcome, rows, _lead_rows(outcome))


def _context_tokens_before(outcome: Outcome, rows: list[Rows], lead: list[InsertedRow]) -> int | None:
    if outcome.composition.is_black_box:
        return outcome.composition.whole_tokens
    blocks_tokens = _sum([own.before_tokens() for own in rows])
    if blocks_tokens is None:
        return None
    return outcome.given_fixed_tokens + sum(row.tokens for row in lead) + blocks_tokens


def _with_mark(decision: BlockDecision, inserted: list[InsertedRow]) -> list[InsertedRow]:
    """Charge the mark of the provider's cache to a message that was put in, if that carries it."""
    if decision.mark_tokens and _ends_inserted(decision):
        inserted[-1] = replace(inserted[-1], tokens=inserted[-1].tokens + decision.mark_tokens)
    return inserted


def _ends_inserted(decision: BlockDecision) -> bool:
    """Tell whether what came out of a block ends with a message that was put in."""
    *_, (last, _) = decision.rows()
    return last < 0


class _ContextRows(Lazy[MessageRow], LiveRows):
    """The rows of all blocks, in the order of the request; built when read."""

    __slots__ = ("_outcome", "_recount", "_rows")

    def __init__(self, outcome: Outcome, rows: list[Rows], recount: Recount) -> None:
        super().__init__(self._all)
        self._recount = recount
        self._outcome = outcome
        self._rows = rows

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def counted_report(self) -> Report | None:
        """Make the report without unknown numbers; None where to count them costs too much."""
        return self._recount()

    def with_text(self) -> list[MessageRow]:
        """Return the rows, each with the text of its message."""
        texts = [row.text for rows in self._rows for row in rows.with_text()]
        return [replace(row, text=text) for row, text in zip(self, texts, strict=True)]

    def _all(self) -> list[MessageRow]:
        firsts = self._firsts()
        rows = [row for rows in self._rows for row in rows]
        for index, unit in firsts.items():
            rows[index] = replace(rows[index], unit=unit)
        for decision in self._outcome.decisions:
            self._mark(rows, decision)
        return rows

    def _mark(self, rows: list[MessageRow], decision: BlockDecision) -> None:
        """Charge the mark of the provider's cache to the message that carries it."""
        part, tokens = decision.portion, decision.mark_tokens
        if tokens and not _ends_inserted(decision):
            there = (at for at in reversed(range(part.start, part.start + len(part.source))))
            last = next(at for at in there if rows[at].fate != "evicted")
            rows[last] = replace(rows[last], tokens_after=(rows[last].tokens_after or 0) + tokens)

    def _firsts(self) -> dict[int, int]:
        """Map messages of units that span blocks to the first message of the unit, as given."""
        composition = self._outcome.composition
        units = composition.units_across()
        given: dict[int, int] = {}
        for part, start in zip(composition.parts, composition.starts, strict=True):
            for index in range(len(part.history)) if units else ():
                given[start + index] = part.start + part.source_index(index)
        return {given[index]: given[min(unit)] for unit in units for index in unit}
