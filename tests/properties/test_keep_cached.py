"""`keep_cached`: what stands up to the last mark for a prompt cache leaves last, in every form with marks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.complexity.counting_machine import operations_of
from tests.properties import claims
from tests.properties.cases import Case, run
from tests.properties.test_forms import counters, messages_of
from tests.properties.test_needless import newest, nothing_left_needlessly
from trimtab import Cascade, SlidingWindow, TruncateText, fit, validate
from trimtab.conversation import Unit, group
from trimtab.formats import formats, get_format

MARKED = [name for name in formats() if get_format(name).rules.mark_keys]
every_marked_form = pytest.mark.parametrize("name", MARKED)
WINDOWS = tuple(
    SlidingWindow(keep_cached=True, target_ratio=ratio, keep_turns=turns, keep_first_user=first)
    for ratio in (1.0, 0.5)
    for turns in (False, True)
    for first in (False, True)
)
STRATEGIES = (
    *WINDOWS,
    SlidingWindow(keep_cached=True, protect_roles=("tool",)),
    Cascade(SlidingWindow(keep_cached=True), TruncateText()),
)


def with_mark(name: str, messages: list[Any], at: int) -> list[Any]:
    """Take every mark out but one, which ends at a message or before it where that can carry none."""
    form, keys = get_format(name), set(get_format(name).rules.mark_keys)
    bare = [without(message, keys) for message in messages]
    for place in range(at, -1, -1):
        marked = form.with_cache_control(bare[place], {"type": "ephemeral"})
        if marked is not bare[place]:
            return [*bare[:place], marked, *bare[place + 1 :]]
    return bare


def without(value: Any, keys: set[str]) -> Any:
    """Copy plain data without some keys, and without what is nothing but one of these."""
    if isinstance(value, list):
        return [without(one, keys) for one in value if not (isinstance(one, dict) and one.keys() <= keys)]
    if isinstance(value, dict):
        return {key: without(one, keys) for key, one in value.items() if key not in keys}
    return value


def last_mark(name: str, messages: list[Any]) -> int:
    """Find the last message with a mark, by its text; -1: none has one."""
    keys = [repr(key) for key in get_format(name).rules.mark_keys]
    return max((at for at, one in enumerate(messages) if any(key in repr(one) for key in keys)), default=-1)


def parted(case: Case, name: str) -> tuple[list[Unit], list[Unit], list[Unit], list[Unit]]:
    """List the units that may leave, up to the mark those that stay and that left, and those behind it."""
    mark, roles = last_mark(name, case.messages), getattr(case.strategy, "protect_roles", ())
    gone = {row.index for row in case.attempt.report.messages if row.fate == "evicted"}
    kinds = [get_format(name).kind(message) for message in case.messages]
    free = [
        unit
        for unit in group(case.messages, format=name)
        if unit.state == "free" and not any(kinds[at] in roles for at in unit.indices)
    ]
    front, behind = [one for one in free if one.first <= mark], [one for one in free if one.first > mark]
    return (
        [one for one in front if gone.isdisjoint(one.indices)],
        [one for one in front if not gone.isdisjoint(one.indices)],
        [one for one in behind if gone.isdisjoint(one.indices)],
        [one for one in behind if not gone.isdisjoint(one.indices)],
    )


@st.composite
def cases(draw: st.DrawFn, name: str, strategies: tuple[Any, ...] = STRATEGIES) -> Case:
    """Fit a valid random talk with one mark."""
    messages = messages_of(name, draw(st.integers(0, 99_999)), valid=True)
    messages = with_mark(name, messages, draw(st.integers(0, len(messages) - 1)))
    counter = draw(st.sampled_from(counters(name)))
    whole = int(getattr(counter, "count", counter)(messages))
    limit = max(1, whole * draw(st.integers(1, 110)) // 100)
    return run(messages, limit, draw(st.sampled_from(strategies)), counter, format=name)


@every_marked_form
@given(data=st.data())
def test_what_was_cached_leaves_only_when_nothing_behind_it_can_go(name: str, data: st.DataObject) -> None:
    """What opens a turn that must stay stays with it; the marked prefix comes out as it went in."""
    case = data.draw(cases(name))
    _, front_gone, behind, _ = parted(case, name)
    needed = any(one.kind == "user" for one in behind)
    if case.fitted is not None and behind and not needed:
        assert not front_gone
    whole = case.fitted is not None and not case.fitted.changed  # the newest unit may be cut
    if case.fitted is not None and whole and not front_gone:
        mark = last_mark(name, case.messages)
        assert all(a is b for a, b in zip(case.fitted.messages, case.messages[: mark + 1], strict=False))
        assert len(case.fitted.messages) > mark


@every_marked_form
@given(data=st.data())
def test_what_comes_out_fits_and_is_valid(name: str, data: st.DataObject) -> None:
    """A1, A2, A4, A5, A6, A8."""
    case = data.draw(cases(name))
    for claim in claims.FREE_OF_FORM:
        claim(case)
    if case.fitted is not None:
        assert not [one for one in validate(case.fitted.messages, format=name) if one.fault]


@every_marked_form
@given(data=st.data())
def test_nothing_leaves_needlessly_behind_a_mark(name: str, data: st.DataObject) -> None:
    """A11: the newest behind it where what is before it is whole, else the newest of that."""
    case = data.draw(cases(name, (SlidingWindow(keep_cached=True),)))
    _, front_gone, _, _ = parted(case, name)

    def last(gone: list[Unit]) -> list[list[Unit]]:
        return newest([one for one in gone if one.first <= front_gone[-1].first] if front_gone else gone)

    nothing_left_needlessly(case, name, last)


@every_marked_form
@given(data=st.data())
def test_a_mark_at_the_newest_message_changes_nothing(name: str, data: st.DataObject) -> None:
    """Nothing stands behind it: the same leaves as without the option."""
    messages = messages_of(name, data.draw(st.integers(0, 99_999)), valid=True)
    messages = with_mark(name, messages, len(messages) - 1)
    counter = counters(name)[0]
    limit = max(1, counter.count(messages) * data.draw(st.integers(1, 100)) // 100)
    ratio = data.draw(st.sampled_from((1.0, 0.5)))
    cached, plain = (
        run(messages, limit, SlidingWindow(keep_cached=keep, target_ratio=ratio), counter, format=name)
        for keep in (True, False)
    )
    if not any(parted(cached, name)[2:]):
        assert cached.attempt.messages == plain.attempt.messages


def even(name: str, turns: int) -> list[Any]:
    """Make a talk of messages of one size."""
    form = get_format(name)
    return [form.message(role, ["word " * 8]) for _ in range(turns) for role in ("user", "assistant")]


@every_marked_form
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_a_growing_talk_begins_with_what_was_cached(name: str, ratio: float) -> None:
    """At every call; and in strides most prompts begin with the whole prompt of the call before."""
    talk = with_mark(name, even(name, 60), 10)
    counter = counters(name)[0]
    limit = 2 * counter.count(talk[:11])
    strategy = SlidingWindow(keep_cached=True, target_ratio=ratio)
    prompts = [run(talk[:end], limit, strategy, counter, format=name) for end in range(25, 120, 2)]
    sent = [case.attempt.messages for case in prompts]
    assert all(
        one[:11] == talk[:11] and case.fitted is not None for one, case in zip(sent, prompts, strict=True)
    )
    goes_on = sum(after[: len(before)] == before for before, after in pairwise(sent))
    assert goes_on >= (0.6 if ratio < 1 else 0) * len(sent)


@pytest.mark.few(1)
@every_marked_form
def test_strides_are_of_the_room_that_the_prefix_leaves(name: str) -> None:
    """Beside a prefix of three quarters of the limit a stride of half of that limit would leave nothing."""
    talk = with_mark(name, even(name, 90), 30)
    counter = counters(name)[0]
    limit = counter.count(talk[:31]) * 4 // 3
    strategy = SlidingWindow(keep_cached=True, target_ratio=0.5)
    cases = [run(talk[:end], limit, strategy, counter, format=name) for end in range(51, 179, 2)]
    behind = [len(case.attempt.messages) - 31 for case in cases]
    assert max(behind) > min(behind)
    assert min(behind) >= 5


@every_marked_form
def test_of_several_marks_the_last_says_what_was_cached(name: str) -> None:
    """Marks after the 5th and the 21st of 40 messages, room for 26: the first 21 stay."""
    talk = with_mark(name, even(name, 20), 20)
    talk[4] = get_format(name).with_cache_control(talk[4], {"type": "ephemeral"})
    counter = counters(name)[0]
    case = run(talk, counter.count(talk[:26]), SlidingWindow(keep_cached=True), counter, format=name)
    assert case.attempt.messages[:21] == talk[:21]


@pytest.mark.parametrize(
    ("name", "call", "result"),
    [
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "sun", "cache_control": {"type": "ephemeral"}}],
                    }
                ],
            },
        ),
        (
            "openai_responses",
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "a",
                "output": [
                    {"type": "input_text", "text": "sun", "prompt_cache_breakpoint": {"mode": "explicit"}}
                ],
            },
        ),
    ],
    ids=["anthropic", "openai_responses"],
)
def test_a_mark_in_a_part_of_a_result_is_found(name: str, call: Any, result: Any) -> None:
    """It is the only one of the conversation, and all before it stays."""
    talk = [*even(name, 4), even(name, 1)[0], call, result, *even(name, 8)[1:]]
    counter = counters(name)[0]
    case = run(talk, counter.count(talk[:14]), SlidingWindow(keep_cached=True), counter, format=name)
    assert case.attempt.messages[:11] == talk[:11]


@every_marked_form
def test_without_a_mark_the_option_costs_a_look(name: str) -> None:
    """A few lines for each message, and what is too old to stay is not told apart."""
    talk = even(name, 1_000)

    def lines(*, keep_cached: bool) -> int:
        strategy = SlidingWindow(keep_cached=keep_cached)
        return operations_of(
            lambda counter: fit(talk, 400, counter=counter, format=name, strategy=strategy)
        ).lines

    assert lines(keep_cached=True) - lines(keep_cached=False) <= 6 * len(talk)


@every_marked_form
def test_where_the_cached_part_alone_has_no_room_its_oldest_messages_leave(name: str) -> None:
    """Room for 7 of 40: the newest 5 of the 31 marked, and the newest question and answer, which stay."""
    talk = with_mark(name, even(name, 20), 30)
    counter = counters(name)[0]
    kept = [*talk[26:31], *talk[38:]]
    case = run(talk, counter.count(kept), SlidingWindow(keep_cached=True), counter, format=name)
    assert case.fitted is not None
    assert case.fitted.messages == kept
