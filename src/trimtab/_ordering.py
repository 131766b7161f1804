"""What may not stand where the blocks of a request now meet: it leaves, as inside a block."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from trimtab._composing import by_block
from trimtab._outcome import BlockDecision, Outcome
from trimtab.counting._sizes import Shares
from trimtab.formats import mapping_of
from trimtab.report import Reason
from trimtab.strategies._assembly import keep_parts
from trimtab.strategies._order import Standing, misplaced

__all__ = ["let_go_misplaced", "taken_out"]


def let_go_misplaced(outcome: Outcome) -> None:
    """Take out, block by block, what the provider would refuse behind what is now before it."""
    composition = outcome.composition
    if not outcome.format.rules.ordered or outcome.error is not None:
        return
    starts = composition.starts
    while True:
        gone = {index for index, _ in misplaced(outcome.format, _standing(outcome), _begin(outcome))}
        gone = {member for index in gone for member in _free_with(outcome, index)}
        if not gone:
            return
        for at, places in by_block(starts, ((index, index) for index in gone)).items():
            taken_out(outcome.decisions[at], {place for place, _ in places}, reason="cannot_lead")


def taken_out(decision: BlockDecision, gone: set[int], *, reason: Reason) -> None:
    """Let more messages of a block go, and note what that frees."""
    portion, settled = decision.portion, decision.settled
    known, count = portion.sizes.known, len(portion.history)
    less = settled.without(gone, count=count, tokens=settled.tokens, reason=reason)
    if isinstance(portion.sizes, Shares):
        less.tokens = portion.sizes.request_tokens(less.assemble(decision.request))
    else:
        less.tokens -= sum(settled.edited_tokens.get(i, known[i] or 0) for i in gone)
    decision.settled = less
    decision.freed_tokens += settled.tokens - less.tokens


def _begin(outcome: Outcome) -> int:
    """Return the first message there was that is no leading system message."""
    composition = outcome.composition
    for part, start in zip(composition.parts, composition.starts, strict=True):
        for index in range(len(part.history)):
            if part.history.kind(index) != "system":
                return start + index
    return sum(len(part.history) for part in composition.parts)


def _standing(outcome: Outcome) -> list[Standing]:
    """List what stays and what was put in, in order, but for leading system messages."""
    rows = [
        row
        for decision, start in zip(outcome.decisions, outcome.composition.starts, strict=True)
        for row in _rows(decision, start)
    ]
    begin = 0
    while begin < len(rows) and outcome.format.kind(mapping_of(rows[begin].message)) == "system":
        begin += 1
    return rows[begin:]


def _rows(decision: BlockDecision, start: int) -> list[Standing]:
    history, settled = decision.portion.history, decision.settled
    kept = [*settled.before, *range(settled.cut, len(history))]
    rows: list[Standing] = []
    for index in kept:
        message = history.messages[index]
        if (parts := settled.partial.get(index)) is not None:
            message = keep_parts(history, index, message, parts)
        rows.append(Standing(start + index, message))
    for shift, one in enumerate(settled.insertions):
        rows.insert(bisect_left(kept, one.at) + shift, Standing(-2, one.message))
    return rows


def _free_with(outcome: Outcome, index: int) -> set[int]:
    """List the messages that leave with one; none if a unit that has one of them must stay."""
    starts = outcome.composition.starts
    at = bisect_right(starts, index) - 1
    decision, start = outcome.decisions[at], starts[at]
    units, members, waiting = decision.portion.history.units, set[int](), [index - start]
    while waiting:
        place = waiting.pop()
        if place in members:
            continue
        members.add(place)
        for unit in units:
            if place in unit.indices:
                if unit.state != "free":
                    return set()
                waiting.extend(unit.indices)
    spanning = (unit for unit in outcome.composition.bonds.units if index in unit)
    return {member for one in spanning for member in one} | {
        start + member for member in members if decision.settled.keeps(member)
    }
