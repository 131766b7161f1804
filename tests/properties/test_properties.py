"""SPEC A, claim by claim, over random conversations, every strategy and several counters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import conversations, valid_conversations
from tests.properties import claims, oracle
from tests.properties.cases import (
    ADDITIVE,
    BLACK_BOXES,
    COUNTERS,
    DEFAULT,
    MINIMUMS,
    STRATEGIES,
    STRIDES,
    WINDOWS,
    WORDS,
    Case,
    cases,
    limits,
    run,
    total,
)
from trimtab import SlidingWindow, counter_for, fit, validate
from trimtab.strategies import CUT_MARKER

STEADY = (*ADDITIVE, *BLACK_BOXES)
"""Counters that a further message never makes smaller."""


@given(cases())
@settings(max_examples=settings.default.max_examples * 2)
def test_what_comes_out_is_within_the_budget(case: Case) -> None:
    """A1."""
    claims.within_the_budget(case)


@given(cases())
def test_the_error_says_how_much_is_needed_and_what_came_nearest(case: Case) -> None:
    """A1, A4: `.needed_tokens` is the size of the best attempt, and above the limit."""
    claims.the_error_has_the_numbers(case)


@given(cases())
@settings(max_examples=settings.default.max_examples * 2)
def test_no_violation_comes_out_that_did_not_go_in(case: Case) -> None:
    """A2."""
    claims.no_new_violation(case)


@given(cases(talks=valid_conversations()))
def test_a_valid_conversation_stays_valid(case: Case) -> None:
    """A2, by the oracle and by `validate`; an open call is no fault."""
    assert oracle.violations(case.messages) == set()
    assert oracle.violations(case.attempt.messages) == set()
    assert [
        v for v in validate(case.attempt.messages) if v.fault and v.rule.endswith(("call", "result"))
    ] == []


@given(cases())
def test_what_is_kept_changed_and_evicted_is_the_input_once_each(case: Case) -> None:
    """A3."""
    claims.once_each_in_order(case)


@given(cases())
def test_a_call_and_its_results_stay_or_leave_together(case: Case) -> None:
    """A2, A4, SPEC G: by nearest earlier unanswered call, wherever the results stand."""
    claims.units_stay_whole(case)


@given(cases())
@settings(max_examples=settings.default.max_examples * 2)
def test_what_is_pinned_comes_out_itself_and_what_is_held_comes_out(case: Case) -> None:
    """A4, A4b: leading system messages, the latest user message; the newest unit, open calls."""
    claims.pinned_and_held_stay(case)


@given(conversations(), st.data())
def test_what_the_caller_pins_comes_out_itself(messages: list[oracle.Any], data: st.DataObject) -> None:
    """A4: pins by index, negative ones too, and by predicate."""
    strategy, counter = data.draw(st.sampled_from(STRATEGIES)), data.draw(st.sampled_from(COUNTERS))
    pins = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    limit = data.draw(limits(messages, counter))
    pin = data.draw(
        st.sampled_from((sorted(pins), [p - len(messages) for p in pins], lambda _, at: at in pins))
    )
    case = run(messages, limit, strategy, counter, pin=pin)
    there = dict(zip(claims.mapped(case), case.attempt.messages, strict=True))
    for group in oracle.groups(messages, pins=pins):
        for at in group.indices if group.state != "free" else ():
            assert there[at] is messages[at] or group.state == "held"
    claims.within_the_budget(case)
    claims.no_new_violation(case)


@given(conversations(), st.data())
def test_a_pending_call_stays(messages: list[oracle.Any], data: st.DataObject) -> None:
    """A4b: `pending_calls` keeps unanswered calls open, wherever they are."""
    pending = data.draw(st.sets(st.sampled_from("ABCD"), max_size=2))
    counter = data.draw(st.sampled_from(STEADY))
    strategy, limit = data.draw(st.sampled_from(STRATEGIES)), data.draw(limits(messages, counter))
    case = run(messages, limit, strategy, counter, pending_calls=pending)
    places = claims.mapped(case)
    assert {at for at, _ in oracle.open_calls(messages, pending)} <= set(places)
    new = {(places[at], *rest) for at, *rest in oracle.violations(case.attempt.messages, pending)}
    assert new <= oracle.violations(messages, pending)


@given(cases(strategies=(DEFAULT,), counters=(WORDS, WORDS.count, counter_for("gpt-4o"))))
@settings(max_examples=settings.default.max_examples * 2)
def test_the_default_raises_exactly_when_what_must_stay_is_too_large_at_its_shortest(case: Case) -> None:
    """A4: pinned plus held, each text of the held at its marker where that is smaller."""
    if case.count(case.messages) <= case.limit:
        return
    least = oracle.least_tokens(case.messages, case.count, CUT_MARKER)
    assert (case.error is not None) == (least > case.limit)
    if case.error is not None:
        assert case.error.needed_tokens == least


@given(cases())
def test_only_a_strategy_that_gives_up_raises(case: Case) -> None:
    """A4: BudgetExceededError exactly when the strategy returns fits=False."""
    claims.raised_exactly_when_the_strategy_gives_up(case)


@given(cases())
@settings(max_examples=settings.default.max_examples * 2)
def test_runs_say_what_rows_say(case: Case) -> None:
    """A8: grouped without a row of each message, and from the rows."""
    claims.what_is_said_of_the_room_is_so(case.attempt.report)
    claims.the_runs_are_those_of_the_rows(case.attempt.report)
    claims.the_runs_are_those_of_the_rows(case.attempt.count_all())
    claims.the_tally_is_that_of_the_rows(case.attempt)
    claims.what_is_said_of_the_room_is_so(case.attempt.count_all())


@given(cases())
def test_the_objects_of_the_caller_are_never_changed(case: Case) -> None:
    """A5: compared with a deep copy, after the report was read and everything counted."""
    case.attempt.report.to_dict(include_text=True)
    case.attempt.count_all()
    claims.the_input_is_unchanged(case)


@given(cases())
@settings(max_examples=settings.default.max_examples * 2)
def test_what_fits_comes_out_as_the_same_objects_and_no_strategy_is_asked(case: Case) -> None:
    """A6, C: a strategy is asked once, and only when the block does not fit."""
    claims.what_fits_is_the_same(case)


@given(cases())
def test_fitting_the_result_again_changes_nothing(case: Case) -> None:
    """A7."""
    if case.fitted is not None:
        again = run(case.fitted.messages, case.limit, case.strategy, case.counter)
        assert again.answers == []
        assert all(a is b for a, b in zip(again.attempt.messages, case.fitted.messages, strict=True))


@given(cases())
def test_equal_input_gives_equal_output(case: Case) -> None:
    """A7: on a copy of the input, and on the same input for the same budget once more."""
    again = run(case.before, case.limit, case.strategy, case.counter)
    assert again.attempt.messages == case.attempt.messages
    assert again.attempt.report.to_dict() == case.attempt.report.to_dict()
    if case.fitted is not None:
        same = case.fitted.at(case.limit).messages
        assert len(same) == len(case.fitted.messages)
        assert same == case.fitted.messages


@given(cases())
def test_the_report_adds_up(case: Case) -> None:
    """A8."""
    claims.the_report_adds_up(case)


@given(cases())
def test_count_all_fills_in_what_a_recount_says(case: Case) -> None:
    """A8."""
    claims.count_all_agrees_with_a_recount(case)


@given(cases())
def test_a_cut_text_is_its_own_ends_around_a_marker(case: Case) -> None:
    """A10, C6: call arguments, roles and structure never change."""
    claims.cuts_are_marked(case)


@given(cases(strategies=WINDOWS, counters=STEADY))
@settings(max_examples=settings.default.max_examples * 2)
def test_a_sliding_window_takes_nothing_needlessly(case: Case) -> None:
    """A11: the newest thing that left, with what C3 keeps beside it, would pass the limit."""
    if case.fitted is None or case.fitted.report.evicted_message_count == 0:
        return
    places = set(claims.mapped(case))
    gone = [group.indices for group in oracle.groups(case.messages) if group.indices[0] not in places]
    back = set(_turn_put_back(case, gone)) if _keeps_turns(case) else {*gone[-1], *_opener(case, gone[-1][0])}
    assert case.count(oracle.chosen(case.messages, places | back)) > case.limit


def _keeps_turns(case: Case) -> bool:
    return isinstance(case.strategy, SlidingWindow) and case.strategy.keep_turns


def _opener(case: Case, at: int) -> list[int]:
    """The user message that opened the turn of a message."""
    return [i for i in range(at + 1) if case.messages[i]["role"] == "user"][-1:]


def _turn_put_back(case: Case, gone: list[tuple[int, ...]]) -> list[int]:
    """Everything that left of the newest turn something left of."""
    opener = _opener(case, gone[-1][0])
    start = opener[0] if opener else 0
    return [at for indices in gone if indices[0] >= start for at in indices]


@given(cases(strategies=STRIDES, counters=STEADY))
def test_a_cut_in_strides_keeps_no_more_than_the_closest_cut(case: Case) -> None:
    """C3, A11: the stride only moves the cut forward."""
    assert isinstance(case.strategy, SlidingWindow)
    closest = SlidingWindow(
        keep_turns=case.strategy.keep_turns, keep_first_user=case.strategy.keep_first_user
    )
    other = run(case.messages, case.limit, closest, case.counter)
    assert (case.error is None) == (other.error is None)
    assert set(claims.mapped(case)) <= set(claims.mapped(other))


@given(cases(strategies=MINIMUMS, counters=STEADY))
def test_with_too_few_messages_left_every_free_unit_goes(case: Case) -> None:
    """C3: `min_messages` counts what remains, protected included (X7)."""
    assert isinstance(case.strategy, SlidingWindow)
    if case.fitted is None or case.fitted.report.evicted_message_count == 0:
        return
    if len(case.fitted.messages) < case.strategy.min_messages:
        may = set(oracle.staying(case.messages))
        protected = {*case.strategy.protect_roles}
        for at in claims.mapped(case):
            group = next(g for g in oracle.groups(case.messages) if at in g.indices)
            shielded = any(case.messages[i]["role"] in protected for i in group.indices)
            first_user = case.strategy.keep_first_user and _is_first_user(case, at)
            assert at in may or shielded or first_user


def _is_first_user(case: Case, at: int) -> bool:
    return at == next((i for i, m in enumerate(case.messages) if m["role"] == "user"), -1)


@given(cases(strategies=tuple(s for s in WINDOWS if s.keep_first_user), counters=COUNTERS))
def test_the_first_user_message_stays_if_asked(case: Case) -> None:
    """C3: the task an agent was given."""
    first = next((i for i, m in enumerate(case.messages) if m["role"] == "user"), None)
    assert first is None or first in claims.mapped(case)


@given(cases(strategies=tuple(s for s in WINDOWS if s.protect_roles), counters=COUNTERS))
def test_protected_roles_stay(case: Case) -> None:
    """C3: units with a message of these roles never leave through this strategy."""
    assert isinstance(case.strategy, SlidingWindow)
    places = set(claims.mapped(case))
    for group in oracle.groups(case.messages):
        if any(case.messages[at]["role"] in case.strategy.protect_roles for at in group.indices):
            assert places.issuperset(group.indices)


@given(conversations(), st.data())
def test_many_budgets_from_one_reading_are_the_fits_one_by_one(
    messages: list[oracle.Any], data: st.DataObject
) -> None:
    """A7: `Fitted.at` and `fit` agree, in any order of budgets."""
    strategy, counter = data.draw(st.sampled_from(STRATEGIES)), data.draw(st.sampled_from(COUNTERS))
    whole = total(messages, counter)
    fitted = fit(messages, max(1, whole), counter=counter, strategy=strategy)
    for percent in data.draw(st.lists(st.integers(0, 100), max_size=4)):
        case = run(messages, max(1, whole * percent // 100), strategy, counter)
        if case.fitted is not None:
            found = fitted.at(case.limit).messages
            assert len(found) == len(case.fitted.messages)
            assert found == case.fitted.messages
