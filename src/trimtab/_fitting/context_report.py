"""The report of a `Context`: a row a block, and one a message, made when it is read."""

from __future__ import annotations

from dataclasses import replace

from trimtab._fitting.layout import faults_of
from trimtab._fitting.outcome import BlockDecision, Outcome
from trimtab._fitting.reporting import Lazy, Rows, about, block_report, is_planned, system_rows, unknown_of
from trimtab._fitting.request import window_note
from trimtab.counting.sizes import Shares
from trimtab.counting.unknown import unknown_notes
from trimtab.report import BlockReport, InsertedRow, MessageRow, Report

__all__ = ["report_of"]


def report_of(outcome: Outcome) -> Report:
    """Make the report of an outcome; no counter is called that was not before."""
    composition, budget = outcome.composition, outcome.budget
    policy, decisions = composition.policy, outcome.decisions
    rows = [Rows(decision) for decision in decisions]
    lead = _lead_rows(outcome)
    outputs = [decision.output() for decision in decisions]
    blocks = tuple(_block(decision, own) for decision, own in zip(decisions, rows, strict=True))
    sizes, leads_system = composition.request_sizes, outcome.leads_system
    inserted, offset = list(lead), len(lead)
    for decision, own, out in zip(decisions, rows, outputs, strict=True):
        joined = decision.portion.joint is not None  # what was put in stands in the one message, too
        put_in = _with_mark(decision, own.inserted(offset=offset))
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
    )
    if outcome.fixed_tokens is not None:
        head["fixed_tokens"] = outcome.fixed_tokens
    return Report(
        **head,
        notes=(
            *composition.notes,
            *window_note(policy.model, budget),
            *(note for one in decisions for note in one.settled.notes),
            *outcome.notes,
            *unknown_notes(unknown),
            *_notes_of_joined(decisions),
        ),
        planned=any(is_planned(decision.settled) for decision in decisions),
        shares=composition.is_black_box,
        tokens_before=_before_tokens(outcome, blocks, sum(row.tokens for row in lead)),
        tokens_after=outcome.tokens,
        fits=outcome.error is None,
        kept_message_count=sum(block.kept_message_count for block in blocks),
        changed_message_count=sum(block.changed_message_count for block in blocks),
        evicted_message_count=sum(block.evicted_message_count for block in blocks),
        blocks=blocks,
        messages=_ContextRows(outcome, rows),
        inserted=tuple(inserted),
        blocks_dropped=tuple(block.name for block, out in zip(blocks, outputs, strict=True) if not out),
        floors_ignored=outcome.floors_ignored,
        violations=Lazy(lambda: faults_of(composition.source, outcome.format, policy.pending_calls)),
    )


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


def _block(decision: BlockDecision, rows: Rows) -> BlockReport:
    return replace(
        block_report(decision, rows, limit_tokens=decision.limit_tokens, output=decision.entries()),
        offered_tokens=decision.offered_tokens,
        cap_tokens=decision.cap_tokens,
        tokens_after=decision.tokens,
        floor_missed_tokens=decision.floor_missed_tokens,
        freed_tokens=decision.freed_tokens,
    )


def _before_tokens(outcome: Outcome, blocks: tuple[BlockReport, ...], lead_tokens: int) -> int | None:
    """Return what the whole request had before; None where that is not known."""
    before = [block.tokens_before for block in blocks]
    if outcome.composition.is_black_box:
        return outcome.composition.whole_tokens
    if None in before:
        return None
    return outcome.given_fixed_tokens + lead_tokens + sum(tokens for tokens in before if tokens is not None)


def _with_mark(decision: BlockDecision, inserted: list[InsertedRow]) -> list[InsertedRow]:
    """Charge the mark of the provider's cache to a message that was put in, if that carries it."""
    if decision.mark_tokens and _ends_inserted(decision):
        inserted[-1] = replace(inserted[-1], tokens=inserted[-1].tokens + decision.mark_tokens)
    return inserted


def _ends_inserted(decision: BlockDecision) -> bool:
    """Tell whether what came out of a block ends with a message that was put in."""
    *_, (last, _) = decision.rows()
    return last < 0


class _ContextRows(Lazy[MessageRow]):
    """The rows of all blocks, in the order of the request; built when read."""

    __slots__ = ("_outcome", "_rows")

    def __init__(self, outcome: Outcome, rows: list[Rows]) -> None:
        super().__init__(self._all)
        self._outcome = outcome
        self._rows = rows

    def __len__(self) -> int:
        return sum(map(len, self._rows))

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
        given: dict[int, int] = {}
        for part, start in zip(composition.parts, composition.starts, strict=True):
            for index in range(len(part.history)) if composition.bonds.units else ():
                given[start + index] = part.start + part.source_index(index)
        return {given[index]: given[min(unit)] for unit in composition.bonds.units for index in unit}
