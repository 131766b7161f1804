"""The report of what was settled, which is made when it is read; so are its rows (`rows.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trimtab._fitting.portion import Portion
from trimtab._fitting.request import tier_note, window_note, window_of
from trimtab._fitting.rows import JoinedRows, Lazy, Recount, Rows, rules_row, system_rows
from trimtab.counting.margin import known_over_margin
from trimtab.counting.measurement import is_exact, unknown_in, unknown_notes, unread_notes
from trimtab.counting.simple import CharCounter, FixedCounter
from trimtab.counting.sizes import Sizes, counter_name
from trimtab.counting.texts import TextCounter
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Format, Request, mapping_of
from trimtab.report import (
    BlockReport,
    EvictedUnit,
    InsertedRow,
    Reason,
    Report,
    RunRow,
    SummaryCheck,
    WrittenResults,
)
from trimtab.report.rows import HEAVY, sum_of
from trimtab.strategies.must_keep import add_checks
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab._fitting.outcome import BlockDecision
    from trimtab._fitting.settlement import AnyOutcome, FitOutcome, Marks

__all__ = ["Tally", "counted_report_of", "report_of", "tally_of", "tokens_before_of", "unknown_of"]


class Tally(NamedTuple):
    """What a report says in numbers of what became of the messages; it has no row of each."""

    tokens_before: int | None
    evicted_message_count: int
    changed_message_count: int
    reasons: Mapping[str, int]
    """How many were evicted or changed for which reason."""


def counted_report_of(outcome: AnyOutcome, marks: Marks) -> Report | None:
    """Make the report of an outcome without unknown numbers; None where to count them costs too much."""
    try:
        if not _is_cheap(outcome.counter, outcome.format, outcome.tables()):
            return None
        outcome.count_all()
    except (CountingError, FormatError):  # of a message the fit never looked at
        return None
    return outcome.report(marks)


def report_of(outcome: AnyOutcome, marks: Marks) -> Report:
    """Make the report of an outcome; no counter is called that was not before."""
    recount = partial(counted_report_of, outcome, marks)
    decisions: Sequence[FitOutcome | BlockDecision] = outcome.decisions
    sizes, budget, format = outcome.request_sizes, outcome.budget, outcome.format
    rows = _rows(outcome, recount, marks)
    system, output = _system_rows(outcome, rows), outcome.output()
    lead = [*system, *_rules_rows(outcome)]
    beside_tokens = outcome.beside_tokens(sum(row.tokens for row in lead))
    blocks = tuple([_block(one, own, beside_tokens) for one, own in zip(decisions, rows, strict=True)])
    leads_system, model, body = outcome.leads_system, outcome.model, outcome.given_body
    counter = outcome.counter
    unknown = unknown_of(counter, format, outcome.tools, output, body)
    fixed_tokens = sizes.fixed_tokens(leads_system) if outcome.fixed_tokens is None else outcome.fixed_tokens
    rules_tokens = outcome.rules_tokens
    if outcome.rules is not None:  # else they are messages of the history
        fixed_tokens = max(0, fixed_tokens - rules_tokens)
    system_tokens, tools_tokens = sizes.fixed_parts(leads_system)
    is_sure = not unknown and is_exact(counter, output, format, sizes.fixed, model=model, request=body)
    return Report(
        format=format.name,
        model=model,
        counter=counter_name(counter),
        exact=is_sure,
        shares=outcome.is_black_box,
        window_tokens=budget.window,
        model_window_tokens=window_of(model),
        output_reserve_tokens=budget.output_reserve,
        overhead_tokens=budget.overhead_tokens,
        margin_tokens=cast("int", budget.margin),  # "auto" was resolved before anything was settled
        over_margin_tokens=known_over_margin(counter, outcome.tokens),
        input_tokens=budget.input_tokens,
        fixed_tokens=fixed_tokens,
        rules_tokens=rules_tokens,
        system_tokens=system_tokens,
        tools_tokens=tools_tokens,
        tokens_before=_tokens_before(outcome, rows, lead),
        tokens_after=outcome.tokens,
        fits=outcome.fits,
        kept_message_count=sum(block.kept_message_count for block in blocks),
        changed_message_count=sum(block.changed_message_count for block in blocks),
        evicted_message_count=sum(block.evicted_message_count for block in blocks),
        blocks=blocks,
        messages=rows[0] if outcome.is_one_list else JoinedRows(outcome.units_across, rows, recount),
        inserted=_in_order(outcome, [*system, *_inserted_rows(outcome, rows)]),
        heaviest=Lazy(partial(_heaviest, rows, budget.input_tokens)),
        newest_evicted=Lazy(partial(_newest_evicted, decisions, rows)),
        blocks_dropped=outcome.blocks_dropped(),
        planned=any(is_planned(decision.settled) for decision in decisions),
        values=add_checks((*outcome.asked_checks, *_checks_in(decisions))),
        rules=outcome.asked_rules,
        written=_written_in(decisions),
        floors_ignored=outcome.floors_ignored,
        violations=Lazy(outcome.violations),
        notes=tuple([*_notes_of(outcome, output), *unknown_notes(unknown)]),
    )


def tally_of(outcome: AnyOutcome, marks: Marks) -> Tally:
    """Add up what became of the messages, as the report has it."""
    decisions: Sequence[FitOutcome | BlockDecision] = outcome.decisions
    rows = _rows(outcome, lambda: None, marks)
    kept = [_count_kept(one, own) for one, own in zip(decisions, rows, strict=True)]
    reasons = Counter[str]()
    for own in rows:
        reasons.update(own.reason_counts())
    return Tally(
        tokens_before=_tokens_before(outcome, rows, [*_system_rows(outcome, rows), *_rules_rows(outcome)]),
        evicted_message_count=sum(map(len, rows)) - sum(kept),
        changed_message_count=sum(len(own.changed) for own in rows),
        reasons=reasons,
    )


def reasons_of(outcome: AnyOutcome, marks: Marks, places: Iterable[int]) -> Iterator[Reason | None]:
    """Give why messages went or changed, as the report has it, without rows of them."""
    rows = _rows(outcome, lambda: None, marks)
    if outcome.is_one_list:
        return rows[0].reasons(places)
    joined: list[Reason | None] = [reason for own in rows for reason in own.reasons(range(len(own)))]
    return (joined[at] for at in places)


def _rows(outcome: AnyOutcome, recount: Recount, marks: Marks) -> list[Rows]:
    """Make the rows of each block."""
    decisions: Sequence[FitOutcome | BlockDecision] = outcome.decisions
    rules_tokens = 0 if outcome.rules is None else outcome.rules_tokens
    return [
        Rows(
            one,
            recount,
            _marks_in(one, marks.at),
            0 if _ends_inserted(one) else one.mark_tokens,
            rules_tokens,
        )
        for one in decisions
    ]


def _notes_of(outcome: AnyOutcome, output: Sequence[Any]) -> Iterator[str]:
    """List what a reader should know beside the numbers."""
    yield from outcome.asked_notes
    yield from window_note(outcome.model, outcome.budget)
    yield from tier_note(outcome.model, outcome.tokens)
    decisions: Sequence[FitOutcome | BlockDecision] = outcome.decisions
    yield from (note for one in decisions for note in one.settled.notes)
    yield from outcome.notes
    yield from outcome.notes_of_report()
    yield from unread_notes(outcome.format, output, counted=outcome.is_counted_whole)


def _checks_in(decisions: Sequence[FitOutcome | BlockDecision]) -> Iterator[SummaryCheck]:
    """List what became of the values of the summaries that were put in."""
    for decision in decisions:
        for insertion in decision.settled.insertions:
            if insertion.checked is not None:
                yield insertion.checked


def _written_in(decisions: Sequence[FitOutcome | BlockDecision]) -> WrittenResults | None:
    """Add up what results of all blocks are written as."""
    found = [one.written for one in decisions if one.written is not None]
    if not found:
        return None
    saved: dict[str, int] | None = {}
    for one in found:
        if one.saved_tokens is None:
            saved = None
        elif saved is not None:
            for step, tokens in one.saved_tokens.items():
                saved[step] = saved.get(step, 0) + tokens
    return WrittenResults(
        texts=sum(one.texts for one in found),
        references=tuple([row for one in found for row in one.references]),
        saved_tokens=saved,
    )


def _heaviest(rows: list[Rows], room_tokens: int) -> list[RunRow]:
    """List the messages that take a quarter of the room or more each, the heaviest first."""
    least = max(1, -(-room_tokens // HEAVY))
    found = [row for own in rows for row in own.heaviest(least)]
    return sorted(found, key=lambda row: -(row.tokens_after or 0))


def _newest_evicted(decisions: Sequence[FitOutcome | BlockDecision], rows: list[Rows]) -> list[EvictedUnit]:
    """List for each block the newest unit that was evicted of it; first that of the highest rank."""
    ranked = sorted(zip(decisions, rows, strict=True), key=lambda pair: -pair[0].rank)
    return [unit for unit in [own.newest_evicted() for _, own in ranked] if unit is not None]


def _inserted_rows(outcome: AnyOutcome, rows: list[Rows]) -> Iterator[InsertedRow]:
    """List what was put in among the messages of each block."""
    decisions: Sequence[FitOutcome | BlockDecision] = outcome.decisions
    offset = outcome.lead_count
    for decision, own in zip(decisions, rows, strict=True):
        joined = decision.portion.joint is not None  # what was put in stands in the one message, too
        for row in _with_mark(decision, own.inserted_rows(offset=offset)):
            yield replace(row, position=offset) if joined else row
        offset += len(decision.output())


def tokens_before_of(outcome: AnyOutcome) -> int | None:
    """Return what the request took as it came in, as its report has it; None where that is not known."""
    rows = [Rows(decision) for decision in outcome.decisions]
    return _tokens_before(outcome, rows, [*_system_rows(outcome, rows), *_rules_rows(outcome)])


def _tokens_before(outcome: AnyOutcome, rows: list[Rows], lead: list[InsertedRow]) -> int | None:
    if outcome.is_black_box:
        return outcome.whole_tokens
    blocks_tokens = sum_of([own.before_tokens() for own in rows])
    if blocks_tokens is None:
        return None
    fixed_tokens = outcome.given_fixed_tokens - outcome.request_sizes.shown_tokens
    return fixed_tokens + sum(row.tokens for row in lead) + blocks_tokens


def _system_rows(outcome: AnyOutcome, rows: list[Rows]) -> list[InsertedRow]:
    """List system text that became a message before all others."""
    return [*system_rows(outcome.lead_sizes()), *(row for own in rows for row in own.lead_rows())]


def _rules_rows(outcome: AnyOutcome) -> list[InsertedRow]:
    """List the rules of the host, unless they stand in place of what an earlier fit wrote."""
    rules = outcome.rules
    if rules is None or any([one.portion.stored is not None for one in outcome.decisions]):
        return []
    role = "system" if rules.is_system else "user"
    return [rules_row(role, outcome.rules_tokens, rules.at(outcome.messages()))]


def _in_order(outcome: AnyOutcome, rows: list[InsertedRow]) -> tuple[InsertedRow, ...]:
    """Place what was put in among the messages, with the rules of the host."""
    rules = outcome.rules
    if rules is None:
        return tuple(rows)
    place = rules.at(outcome.output())
    rows = [replace(row, position=row.position + (row.position >= place)) for row in rows]
    front = sum(row.position < place for row in rows)
    return (*rows[:front], *_rules_rows(outcome), *rows[front:])


def _block(decision: FitOutcome | BlockDecision, rows: Rows, beside_tokens: int) -> BlockReport:
    """Make the row of one block; `beside_tokens` were settled with it and are none of its own."""
    portion, settled = decision.portion, decision.settled
    if portion.stored is not None and portion.sizes.fixed.shown is None:
        beside_tokens -= rows.rules_tokens  # a row of this block, which was settled beside all blocks
    kept, changed = _count_kept(decision, rows), len(rows.changed)
    return BlockReport(
        name=portion.name,
        limit_tokens=decision.limit_tokens - beside_tokens,
        cap_tokens=decision.cap_tokens,
        floor_tokens=decision.floor_tokens,
        offered_tokens=decision.offered_tokens - beside_tokens,
        tokens_before=rows.before_tokens(),
        tokens_after=decision.tokens - beside_tokens,
        actions=_actions(
            portion, settled.actions, compacted=decision.written is not None and decision.written.texts > 0
        ),
        kept_message_count=kept - changed,
        changed_message_count=changed,
        evicted_message_count=len(portion.source) - kept,
        floor_missed_tokens=decision.floor_missed_tokens,
        freed_tokens=decision.freed_tokens,
    )


def _count_kept(decision: FitOutcome | BlockDecision, rows: Rows) -> int:
    """Count the caller's messages that come out of a block."""
    inserted = decision.portion.lead + len(decision.settled.insertions)
    return rows.staying_messages(len(decision.entries()) - inserted)


def _marks_in(decision: FitOutcome | BlockDecision, marked: frozenset[int]) -> frozenset[int]:
    """List which messages of a block carry a mark that was set, by their places in it."""
    start, count = decision.portion.start, len(decision.portion.source)
    own = decision.mark_places()
    return frozenset(at - start for at in marked | own if start <= at < start + count)


def _with_mark(decision: FitOutcome | BlockDecision, inserted: list[InsertedRow]) -> list[InsertedRow]:
    """Charge the mark of the provider's cache to a message that was put in, if that carries it."""
    if decision.mark_tokens and _ends_inserted(decision):
        inserted[-1] = replace(inserted[-1], tokens=inserted[-1].tokens + decision.mark_tokens)
    return inserted


def _ends_inserted(decision: FitOutcome | BlockDecision) -> bool:
    """Tell whether what came out of a block ends with a message that was put in."""
    return decision.positions()[-1:] == [None]


def unknown_of(
    counter: Any, format: Format, tools: Any, output: Sequence[Any], request: Request | None = None, /
) -> tuple[str, ...]:
    """List what of a request that goes out nobody can count from it; messages of one text have nothing."""
    dicts = map(mapping_of, output)
    pieces = [format.pieces(one) for one in dicts if not isinstance(one.get("content"), str)]
    return unknown_in(counter, tools, pieces, request).phrases


def is_planned(settled: Settled) -> bool:
    """Tell whether a summary is still to be written."""
    return any(insertion.planned_tokens is not None for insertion in settled.insertions)


def _actions(portion: Portion, actions: tuple[str, ...], *, compacted: bool) -> tuple[str, ...]:
    """List what was done: first what was evicted before anything was decided, then what the strategy did."""
    reasons = set(portion.gone.values())
    first = ["removed_by_callback"] if "callback" in reasons else []
    if compacted:
        first.append("compacted")
    if "repair" in reasons and "evicted" not in actions:
        first.insert(0, "evicted")
    return (*first, *(action for action in actions if action != "kept" or not first)) or ("kept",)


_MOST_CHARS = 300_000
_MOST_MESSAGES = 5_000
"""How much is counted for who reads a report: a fraction of a second with a slow tokenizer."""


def _is_cheap(counter: Any, format: Format, tables: Iterable[Sizes], /) -> bool:
    """Tell whether what is not known of some sizes is soon counted: by a counter of ours, in this process."""
    if isinstance(counter, TextCounter | CharCounter | FixedCounter):
        left, chars = _MOST_MESSAGES, _MOST_CHARS
        for sizes in {id(one): one for one in tables}.values():
            if sizes.known.count(None) > _MOST_MESSAGES:
                return False
            for message, size in zip(sizes.messages, sizes.known, strict=True):
                if size is None:
                    left -= 1
                    chars -= sum(len(slot.text) for slot in format.texts(mapping_of(message)))
                if left < 0 or chars < 0:
                    return False
        return True
    return False
