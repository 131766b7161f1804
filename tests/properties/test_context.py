"""SPEC A and D over random blocks: conversations cut anywhere, any options, strategies and counters."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.builders import units
from tests.properties import oracle
from tests.properties.cases import ADDITIVE, BLACK_BOXES, COUNTERS, WINDOWS, WORDS
from tests.properties.claims import (
    the_runs_are_those_of_the_rows,
    the_tally_is_that_of_the_rows,
    what_is_said_of_the_room_is_so,
)
from tests.properties.contexts import Asked, Case, Piece, Plain, context_cases
from trimtab import Context, SlidingWindow, validate

STEADY = (*ADDITIVE, *BLACK_BOXES)


def within_the_budget(case: Case) -> None:
    """A1: a recount of the whole output is at most the input room; else the numbers say so."""
    if case.fitted is not None:
        assert case.count(case.fitted.messages) <= case.budget
        return
    assert case.error is not None
    assert case.error.needed_tokens is not None
    assert case.error.limit_tokens is not None
    assert case.error.needed_tokens > case.error.limit_tokens
    assert case.attempt.report.fits is False


def mapped(case: Case) -> list[int]:
    """Map what came out of the blocks to its place in the input."""
    rows = case.attempt.report.messages
    assert [row.index for row in rows] == list(range(len(case.messages)))
    blocks = [piece.name for piece in case.in_order for _ in piece.messages]
    assert [row.block for row in rows] == blocks
    output = case.attempt.messages[len(case.lead) :]
    there = [row for row in rows if row.fate != "evicted"]
    assert case.attempt.messages[: len(case.lead)] == case.lead
    assert len(there) == len(output)
    for row, message in zip(there, output, strict=True):
        original = case.messages[row.index]
        assert (message is original) == (row.fate == "kept") == (row.reason is None)
        assert oracle.without_texts(message) == oracle.without_texts(original)
    return [row.index for row in there]


def no_new_violation(case: Case) -> None:
    """A2, by `validate` on both, each at its place in the input."""
    places, output = mapped(case), case.attempt.messages[len(case.lead) :]
    before = {
        (v.index, v.rule, v.call_id)
        for v in validate(case.messages, pending_calls=case.pending)
        if v.fault and v.rule in PAIRS
    }
    after = {
        (places[v.index], v.rule, v.call_id)
        for v in validate(output, pending_calls=case.pending)
        if v.fault and v.rule in PAIRS and v.index is not None
    }
    assert after <= before


PAIRS = {"orphan_result", "unanswered_call", "late_result", "repeated_result"}


def what_must_stay_is_there(case: Case) -> None:
    """A4, D12: pinned blocks come out themselves with what belongs to them; open units come out."""
    places = set(mapped(case))
    rows = case.attempt.report.messages
    for group in case.groups:
        assert places.issuperset(group.indices) or places.isdisjoint(group.indices)
        for at in group.indices:
            assert group.state == "free" or at in places
            assert group.state != "pinned" or rows[at].fate == "kept"
            assert rows[at].unit == group.indices[0]


def the_report_adds_up(case: Case) -> None:
    """A8: by a recount of the whole; parts add up to it."""
    report, output = case.attempt.report, case.attempt.messages
    assert report.tokens_after == case.count(output)
    there = [row for row in report.messages if row.fate != "evicted"]
    sizes = [*(row.tokens for row in report.inserted), *(row.tokens_after or 0 for row in there)]
    assert report.fixed_tokens + sum(sizes) == report.tokens_after
    lead_tokens = sum(row.tokens for row in report.inserted)
    assert report.fixed_tokens + lead_tokens + sum(b.tokens_after for b in report.blocks) == sum(sizes) + (
        report.fixed_tokens
    )
    if case.additive:
        assert sizes == [case.counter.count_message(message) for message in output]
    for piece, block in zip(case.in_order, report.blocks, strict=True):
        rows = [row for row in report.messages if row.block == piece.name]
        fates = [row.fate for row in rows]
        assert block.name == piece.name
        assert (block.kept_message_count, block.changed_message_count, block.evicted_message_count) == tuple(
            fates.count(fate) for fate in ("kept", "changed", "evicted")
        )
        assert case.error or (block.actions == ("kept",)) == (set(fates) <= {"kept"})
    assert report.kept_message_count + report.changed_message_count == len(there)
    assert type(report).from_dict(report.to_dict()) == report
    counted = case.attempt.count_all()
    assert counted.tokens_before == case.count([*case.lead, *case.messages])
    assert all(row.tokens_before is not None for row in counted.messages)
    if case.additive:
        assert [r.tokens_before for r in counted.messages] == [case.size([m]) for m in case.messages]


def limits_hold(case: Case) -> None:
    """D5, D8: no block passes its limit, no limit its cap; floors hold as nearly as units let them."""
    if case.fitted is None:
        return
    plain, report = Plain(case), case.fitted.report
    for piece, block in zip(case.in_order, report.blocks, strict=True):
        cap, floor = plain.cap(piece), plain.floor(piece)
        assert block.tokens_after <= block.limit_tokens
        assert cap is None or block.limit_tokens <= cap
        if report.floors_ignored:
            assert block.floor_missed_tokens == 0
        elif case.additive:
            assert block.limit_tokens >= floor
            assert block.floor_missed_tokens == max(0, floor - block.tokens_after - block.freed_tokens)


def it_is_what_is_said_plainly(case: Case) -> None:
    """D5 to D7, D12: who is offered what, and what stays of each."""
    # settled anew where the provider would refuse how the request ends, a strategy is asked the same again
    asked = {piece.name: [*dict.fromkeys(piece.strategy.limits)] for piece in case.pieces}
    plain = Plain(case)
    assert plain.fits == (case.fitted is not None)
    for piece in case.pieces:
        need = plain.need(piece)
        assert asked[piece.name] == [limit for limit in plain.offers[piece.name] if limit < need]
    if case.fitted is None:
        return
    assert case.fitted.report.floors_ignored == plain.floors_ignored
    assert set(mapped(case)) == plain.kept()
    for block in case.fitted.report.blocks:
        if plain.offers[block.name]:
            assert block.offered_tokens == plain.offers[block.name][-1]
            assert block.offered_tokens <= block.limit_tokens


EVERY = (within_the_budget, no_new_violation, what_must_stay_is_there, the_report_adds_up, limits_hold)
"""What holds for every counter that a further message never makes smaller."""


@given(context_cases(counters=COUNTERS))
@settings(max_examples=settings.default.max_examples * 2)
def test_what_comes_out_is_within_the_budget(case: Case) -> None:
    """A1, A2, A3, A4 under every counter, also one that jumps."""
    within_the_budget(case)
    no_new_violation(case)
    what_must_stay_is_there(case)


@given(context_cases(counters=STEADY))
@settings(max_examples=settings.default.max_examples * 2)
def test_the_report_adds_up_and_limits_hold(case: Case) -> None:
    """A8, D5, D8, D11."""
    the_report_adds_up(case)
    limits_hold(case)


@given(context_cases(counters=STEADY))
@settings(max_examples=settings.default.max_examples * 2)
def test_blocks_are_settled_as_plainly_said(case: Case) -> None:
    """D5 in a second wording: limits, second offers, and what each strategy makes of them."""
    it_is_what_is_said_plainly(case)


@given(context_cases(counters=STEADY))
@settings(max_examples=settings.default.max_examples * 2)
def test_runs_say_what_rows_say(case: Case) -> None:
    """A8: grouped block by block without a row of each message, and from the rows."""
    what_is_said_of_the_room_is_so(case.attempt.report)
    the_runs_are_those_of_the_rows(case.attempt.report)
    the_runs_are_those_of_the_rows(case.attempt.count_all())
    the_tally_is_that_of_the_rows(case.attempt)
    what_is_said_of_the_room_is_so(case.attempt.count_all())


@given(context_cases(counters=STEADY))
def test_the_objects_of_the_caller_are_never_changed(case: Case) -> None:
    """A5: compared with a deep copy, after the report was read and everything counted."""
    case.attempt.report.to_dict(include_text=True)
    case.attempt.count_all()
    assert case.messages == case.before


@given(context_cases(counters=STEADY, strategies=WINDOWS, percents=(99, 101)))
@settings(max_examples=settings.default.max_examples * 2)
def test_what_fits_comes_out_as_the_same_objects(case: Case) -> None:
    """A6: where no cap is passed and all fits; then no strategy is asked."""
    assume(case.count([*case.lead, *case.messages]) <= case.budget)
    plain = Plain(case)
    if all((cap := plain.cap(p)) is None or plain.need(p) <= cap for p in case.pieces):
        assert case.fitted is not None
        output = case.fitted.messages[len(case.lead) :]
        assert all(a is b for a, b in zip(output, case.messages, strict=True))
        assert all(not piece.strategy.limits for piece in case.pieces)


@given(context_cases(counters=STEADY))
def test_fitting_the_result_again_changes_nothing(case: Case) -> None:
    """A7: each block again with what came out of it."""
    if case.fitted is None:
        return
    there = zip(mapped(case), case.fitted.messages[len(case.lead) :], strict=True)
    output, start, pieces = dict(there), 0, {}
    for piece in case.in_order:
        left = [output[at] for at in case.span(piece) if at in output]
        pieces[piece.name] = Piece(
            place=piece.place, start=start, messages=left, options=piece.options,
            strategy=Asked(piece.strategy.strategy),
        )  # fmt: skip
        start += len(left)
    again = Case([pieces[p.name] for p in case.pieces], case.budget, case.counter, **case.policy)
    assert again.fitted is not None
    output_again = again.fitted.messages[len(case.lead) :]
    assert all(a is b for a, b in zip(output_again, case.fitted.messages[len(case.lead) :], strict=True))


@given(context_cases(counters=STEADY))
def test_equal_input_gives_equal_output(case: Case) -> None:
    """A7: from the same template again, and at the same budget from the result."""
    if case.fitted is None:
        return
    again = case.context().fit()
    assert again.messages == case.fitted.messages
    assert again.report == case.fitted.report
    same = case.fitted.at(case.budget)
    assert same.messages == case.fitted.messages
    assert same.report.to_dict() == again.report.to_dict()


@given(context_cases(counters=STEADY), st.integers(1, 100))
def test_another_budget_gives_what_a_fresh_fit_gives(case: Case, percent: int) -> None:
    """`Fitted.at` without callbacks and summarizers."""
    budget = max(1, case.budget * percent // 100)
    other = Case(case.pieces, budget, case.counter, **case.policy)
    if case.fitted is not None and other.fitted is not None:
        found = case.fitted.at(budget)
        assert found.messages == other.fitted.messages
        for ours, fresh in zip(found.report.blocks, other.fitted.report.blocks, strict=True):
            assert (ours.limit_tokens, ours.tokens_after) == (fresh.limit_tokens, fresh.tokens_after)


@given(context_cases(counters=ADDITIVE, strategies=(SlidingWindow(),)))
@settings(max_examples=settings.default.max_examples * 2)
def test_a_sliding_window_takes_nothing_needlessly(case: Case) -> None:
    """A11: of each block, the newest unit its strategy took would pass its limit."""
    if case.fitted is None:
        return
    plain = Plain(case)
    for piece in case.pieces:
        settled, need = plain.settled[piece.name], plain.need(piece)
        if need <= plain.offers[piece.name][-1]:
            continue
        alone = plain._request(piece, plain.offers[piece.name][-1])
        gone = [u for u in alone.units if not settled.keeps(u.first)]
        kept = [u for u in alone.units if settled.keeps(u.first)]
        opener = [u for u in alone.units if u.kind == "user" and u.first <= gone[-1].first][-1:]
        back = {u.first for u in (*kept, gone[-1], *opener)}
        assert not alone.fits([u for u in alone.units if u.first in back])


ONES = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(ONES, st.data())
def test_a_higher_rank_never_lowers_what_a_block_is_offered(sizes: list[int], data: st.DataObject) -> None:
    """D5: with units of one token, whatever the caps and floors of the others."""
    numbers = st.integers(0, 12)
    options: list[dict[str, Any]] = [
        {"priority": data.draw(st.integers(0, 3)), "min_tokens": data.draw(numbers)}
        | ({"max_tokens": data.draw(numbers)} if data.draw(st.booleans()) else {})
        for _ in sizes
    ]
    room, at = data.draw(st.integers(1, 40)), data.draw(st.integers(0, len(sizes) - 1))

    def offered() -> int:
        context = Context(room, counter=WORDS)
        for place, (size, chosen) in enumerate(zip(sizes, options, strict=True)):
            context.add(f"b{place}", units(" ".join(["1"] * size)), **chosen)
        return context.fit().report.blocks[at].limit_tokens

    before = offered()
    options[at]["priority"] += data.draw(st.integers(1, 4))
    assert offered() >= before
