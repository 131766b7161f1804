"""`validate` says what a provider would refuse, `repair` makes calls and results match."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from tests.pair_rules import SAYS, SYSTEM, USER, answers, calls, rules_of
from trimtab import Context, fit
from trimtab.conversation import Change, repair, validate
from trimtab.errors import FormatError, UnknownNameError
from trimtab.formats import OpenAIChat, Rules

PAIR_RULES = {"orphan_result", "repeated_result", "unanswered_call", "open_call", "late_result"}


CASES: list[tuple[str, list[dict[str, Any]], list[tuple[int, str, str | None]], list[int]]] = [
    # name, messages, (index, rule, call id), what repair keeps by input index in output order
    ("empty", [], [], []),
    ("a chat", [USER, SAYS, USER], [], [0, 1, 2]),
    ("a call and its result", [USER, calls("a"), answers("a")], [], [0, 1, 2]),
    ("parallel calls, any order", [calls("a", "b"), answers("b"), answers("a"), SAYS], [], [0, 1, 2, 3]),
    ("an id used again", [calls("a"), answers("a"), calls("a"), answers("a")], [], [0, 1, 2, 3]),
    ("an orphan", [USER, answers("a"), SAYS], [(1, "orphan_result", "a")], [0, 2]),
    (
        "a result before its call",
        [answers("a"), calls("a"), answers("a")],
        [(0, "orphan_result", "a")],
        [1, 2],
    ),
    (
        "a repeated result",
        [calls("a"), answers("a"), answers("a"), SAYS],
        [(2, "repeated_result", "a")],
        [0, 1, 3],
    ),
    (
        "a repeated result far off",
        [calls("a"), answers("a"), USER, answers("a")],
        [(3, "repeated_result", "a")],
        [0, 1, 2],
    ),
    ("an open call", [USER, calls("a")], [(1, "open_call", "a")], [0, 1]),
    ("half a parallel call open", [calls("a", "b"), answers("b")], [(0, "open_call", "a")], [0, 1]),
    ("an open call before a system message", [calls("a"), SYSTEM], [(0, "open_call", "a")], [0, 1]),
    ("a call the user did not wait for", [calls("a"), USER], [(0, "unanswered_call", "a")], [1]),
    ("a call the model did not wait for", [calls("a"), SAYS], [(0, "unanswered_call", "a")], [1]),
    ("a late result", [calls("a"), USER, answers("a")], [(2, "late_result", "a")], [0, 2, 1]),
    (
        "a late result goes after those already there",
        [calls("a", "b"), answers("b"), USER, answers("a"), SAYS],
        [(3, "late_result", "a")],
        [0, 1, 3, 2, 4],
    ),
    (
        "results of two calls crossed",
        [calls("a"), calls("b"), answers("a"), answers("b")],
        [(2, "late_result", "a"), (3, "late_result", "b")],
        [0, 2, 1, 3],
    ),
    (
        "a result kept from its call by an orphan",
        [calls("a"), answers("z"), answers("a")],
        [(1, "orphan_result", "z"), (2, "late_result", "a")],
        [0, 2],
    ),
    (
        "the nearest unanswered call is answered",
        [calls("a"), calls("a"), answers("a"), answers("a")],
        [(3, "late_result", "a")],
        [0, 3, 1, 2],
    ),
    (
        "the older of two calls with one id is left unanswered",
        [calls("a"), USER, calls("a"), answers("a")],
        [(0, "unanswered_call", "a")],
        [1, 2, 3],
    ),
    ("a result without an id", [USER, {"role": "tool", "content": "4"}], [(1, "orphan_result", None)], [0]),
]


class TestPairRules:
    """Calls and results are matched as SPEC A4b and G say."""

    @pytest.mark.parametrize(("messages", "found"), [c[1:3] for c in CASES], ids=[c[0] for c in CASES])
    def test_each_case_is_named_where_it_stands(self, messages: Any, found: Any) -> None:
        """Index, rule and id, sorted by index."""
        violations = [v for v in validate(messages) if v.rule in PAIR_RULES]
        assert rules_of(violations) == found
        assert [v.fault for v in violations] == [rule != "open_call" for _, rule, _ in found]

    @pytest.mark.parametrize(("messages", "kept"), [(c[1], c[3]) for c in CASES], ids=[c[0] for c in CASES])
    def test_each_case_is_repaired_by_the_least_change(self, messages: Any, kept: list[int]) -> None:
        """The messages that stay are the very objects, in the order expected."""
        result = repair(messages).messages
        assert [id(message) for message in result] == [id(messages[index]) for index in kept]

    def test_a_pending_call_is_open_wherever_it_stands(self) -> None:
        """`pending_calls` says that the result can still come."""
        messages = [calls("a", "b"), answers("b"), USER, SAYS]
        assert rules_of(validate(messages, pending_calls={"a"})) == [(0, "open_call", "a")]
        assert repair(messages, pending_calls=["a"]).messages == messages
        assert repair(messages).messages == [calls("b"), answers("b"), USER, SAYS]

    def test_the_message_says_what_openai_would_say(self) -> None:
        """The wording is the API's, with the id filled in."""
        [orphan] = validate([USER, answers("a")])
        assert "messages with role 'tool' must be a response to a preceeding message" in orphan.message
        [stray] = validate([calls("a"), answers("a"), answers("z"), SAYS])
        assert "'tool_call_id' of 'z' not found in 'tool_calls' of previous message" in stray.message
        nameless = validate([calls("a"), answers("a"), {"role": "tool", "content": "x"}, SAYS])
        assert ["preceeding message" in v.message for v in nameless if v.rule == "orphan_result"] == [True]
        [unanswered] = validate([calls("a"), USER])
        assert "The following tool_call_ids did not have response messages: a" in unanswered.message
        [repeated] = validate([calls("a"), answers("a"), answers("a")])
        assert "Duplicate value for 'tool_call_id' of 'a'" in repeated.message
        assert all(v.message.startswith("messages[") for v in (orphan, stray, unanswered, repeated))

    def test_braces_in_an_id_are_only_text(self) -> None:
        """Ids come from outside and are not format strings."""
        [found] = validate([calls("{x}{0}"), USER])
        assert "{x}{0}" in found.message

    def test_legacy_functions_pair_by_name(self) -> None:
        """A function call has no id; the message says that OpenAI does not check it."""
        call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
        outcome = {"role": "function", "name": "f", "content": "4"}
        assert validate([call, outcome, call, outcome]) == []
        [found] = validate([outcome, USER])
        assert (found.rule, found.call_id) == ("orphan_result", "function:f")
        assert "does not check" in found.message

    def test_a_form_that_lets_results_stand_anywhere_has_no_late_ones(self) -> None:
        """`Rules.results_follow_call` decides."""

        class Loose(OpenAIChat):
            rules = Rules(results_follow_call=False)

        messages = [calls("a"), USER, answers("a")]
        assert validate(messages, format=Loose()) == []
        assert repair(messages, format=Loose()).messages == messages


class TestInput:
    """Lists, bodies and broken input."""

    def test_a_request_body_is_read_and_written(self) -> None:
        """`request` is the body with repaired messages; the body handed in is untouched."""
        body = {"model": "gpt-4o", "messages": [USER, answers("a")]}
        before = copy.deepcopy(body)
        assert rules_of(validate(body)) == [(1, "orphan_result", "a")]
        done = repair(body)
        assert done.request == {"model": "gpt-4o", "messages": [USER]}
        assert body == before
        assert repair([USER]).request == [USER]

    def test_entries_that_are_no_messages_are_violations(self) -> None:
        """They hide nothing of the rest; `repair` cannot read them and says where."""
        messages = [USER, None, 3, answers("a")]
        assert rules_of(validate(messages)) == [
            (1, "not_a_message", None),
            (2, "not_a_message", None),
            (3, "orphan_result", "a"),
        ]
        with pytest.raises(FormatError) as caught:
            repair(messages)
        assert caught.value.path == "messages[1]"

    def test_shape_faults_are_listed_with_their_path_and_left_alone(self) -> None:
        """They stand among the others by index; `repair` reports nothing done."""
        messages = [{"role": "critic", "content": "x"}, {"role": "user", "content": [{"type": "odd"}]}]
        violations = validate(messages)
        assert [(v.index, v.rule) for v in violations] == [(0, "unknown_role"), (1, "unknown_part")]
        assert violations[1].message.startswith("messages[1].content[0].type: ")
        done = repair(messages)
        assert done.messages == messages
        assert done.changes == ()

    def test_an_unknown_format_is_refused(self) -> None:
        """The error comes before anything is read."""
        with pytest.raises(UnknownNameError):
            validate([], format="nope")

    def test_a_body_without_messages_is_refused(self) -> None:
        """There is nothing to validate."""
        with pytest.raises(FormatError):
            validate({"model": "gpt-4o"})


class TestRepair:
    """What `repair` did is on record, and nothing else happened."""

    def test_changes_say_what_was_done(self) -> None:
        """By input position: removed, edited, moved, with rule and id."""
        late = [calls("d"), USER, answers("d")]
        messages = [calls("a", "b"), answers("a"), USER, answers("z"), calls("c"), SAYS, *late]
        assert repair(messages).changes == (
            Change(index=0, action="edited", rule="unanswered_call", call_id="b"),
            Change(index=3, action="removed", rule="orphan_result", call_id="z"),
            Change(index=4, action="removed", rule="unanswered_call", call_id="c"),
            Change(index=8, action="moved", rule="late_result", call_id="d"),
        )

    def test_text_beside_an_unanswered_call_stays(self) -> None:
        """Only the call leaves the message, in a copy."""
        message = calls("a", content="I look")
        done = repair([message, USER])
        assert done.messages == [{"role": "assistant", "content": "I look"}, USER]
        assert message == calls("a", content="I look")

    def test_sdk_objects_are_given_back(self) -> None:
        """An object that needs no edit is the same one; an edited one keeps its class."""
        whole = ChatCompletionMessage.model_validate(calls("a"))
        half = ChatCompletionMessage.model_validate(calls("b", "c"))
        done = repair([whole, answers("a"), half, answers("c"), USER]).messages
        assert done[0] is whole
        assert type(done[2]) is ChatCompletionMessage
        assert [call.id for call in done[2].tool_calls] == ["c"]
        assert [call.id for call in half.tool_calls or ()] == ["b", "c"]

    def test_parallel_calls_answered_out_of_order_take_linear_time(self) -> None:
        """Twice the calls run at most 2.2 times the lines, also where all are late, orphaned or dead."""

        def lines(count: int) -> int:
            ids = [str(i) for i in range(count)]
            late = [calls(*ids), USER, *(answers(i) for i in reversed(ids))]
            messages = [*late, *(answers("z") for _ in ids), *(calls(i) for i in ids), USER]
            return _lines_run(lambda: (validate(messages), repair(messages)))

        assert lines(400) <= 2.2 * lines(200)


def _lines_run(work: Callable[[], object]) -> int:
    """Count the lines of Python a call runs: the same on every machine."""
    count = 0

    def trace(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("form", "key", "said"),
    [
        ("anthropic", "content", "s"),
        ("gemini", "parts", [{"text": "s"}]),
        ("bedrock", "content", [{"text": "s"}]),
    ],
)
def test_system_text_among_messages_that_cannot_hold_it_is_a_fault_and_stays(
    form: str, key: str, said: Any
) -> None:
    """`fit` keeps what it was given; a context puts the text where the provider takes it."""
    messages = [{"role": role, key: said} for role in ("system", "user")]
    assert [(found.index, found.fault) for found in validate(messages, format=form)] == [(0, True)]
    fitted = fit(messages, 1_000, format=form)
    assert (fitted.system, fitted.messages) == (None, messages)
    assert [found.index for found in fitted.report.violations] == [0]
    lifted = Context(1_000, format=form).add("h", messages).fit()
    assert (lifted.system, lifted.messages, list(lifted.report.violations)) == (said, messages[1:], [])
