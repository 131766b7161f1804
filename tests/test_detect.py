"""Which wire form messages are in: shapes first, then the model, and never one that cannot read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.judge import judge
from trimtab import Context, fit, validate
from trimtab.formats import Anthropic, OpenAIChat, detect, formats, get_format, register_format
from trimtab.testing import WordCounter

TEXT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}
CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


@pytest.mark.parametrize(
    ("messages", "model", "name"),
    [
        ([], None, "openai_chat"),
        ([], "claude-sonnet-4-5", "anthropic"),
        ([], "gemini-2.5-pro", "gemini"),
        (TEXT, None, "openai_chat"),
        (TEXT, "claude-sonnet-4-5", "anthropic"),
        (TEXT, "gemini-2.5-pro", "openai_chat"),  # which has `parts`, not `content`
        ([{"role": "system", "content": "x"}, *TEXT], "claude-sonnet-4-5", "openai_chat"),
        ([*TEXT, CHAT_CALL], "claude-sonnet-4-5", "openai_chat"),  # through a gateway
        ([TOOL_USE, RESULT], "gpt-4o", "anthropic"),
        ([{"role": "user", "parts": [{"text": "hi"}]}], None, "gemini"),
        (
            [{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}],
            None,
            "openai_responses",
        ),
        ([*TEXT * 200, TOOL_USE, *TEXT * 200], None, "anthropic"),  # in the middle of a long one
        ({"messages": TEXT, "system": "s"}, None, "anthropic"),
        ({"messages": TEXT, "max_completion_tokens": 9}, "claude-sonnet-4-5", "openai_chat"),
        ({"input": TEXT}, "claude-sonnet-4-5", "openai_responses"),
        ({"contents": []}, "gpt-4o", "gemini"),
        ({"nothing": 1}, None, "openai_chat"),
        ("no list", None, "openai_chat"),
    ],
)
def test_a_form_is_told_by_body_shape_and_model(messages: Any, model: str | None, name: str) -> None:
    """In this order; a model's own form counts only where the messages may be of it."""
    assert detect(messages, model=model).name == name


@pytest.fixture
def derived() -> Anthropic:
    """Register a form derived from a shipped one."""

    class Mine(Anthropic):
        name = "mine"
        rules = replace(Anthropic.rules, body_key="turns")

    form = Mine()
    register_format(form)
    return form


def test_a_derived_form_leaves_the_shapes_of_its_base_alone(derived: Anthropic) -> None:
    """It is told by its body; a list is of the form it was derived from, as before."""
    assert detect([TOOL_USE, RESULT]).name == "anthropic"
    assert detect({"turns": [TOOL_USE, RESULT]}) is derived
    assert get_format("mine") is derived
    assert "mine" in formats()


class _Loose(OpenAIChat):
    """One rule is not that of Chat."""

    name = "loose"
    rules = replace(OpenAIChat.rules, results_follow_call=False)


def test_a_derived_form_with_shapes_of_its_own_is_asked_about_messages_of_any_keys() -> None:
    """What its base promises of the keys of its messages, it has not promised."""

    class Noted(OpenAIChat):
        name = "noted"

        def matches(self, message: dict[str, Any], /) -> bool:
            return "note" in message

    noted = {"role": "user", "content": "hi", "note": 1}
    register_format(Noted())
    assert detect([*TEXT, noted]).name == "noted"
    assert detect([*TEXT, CHAT_CALL]).name == "openai_chat"


def test_a_derived_form_leaves_the_bodies_of_its_base_alone() -> None:
    """A key that occurs in Chat alone tells Chat, also beside a form that takes the same keys."""
    register_format(_Loose())
    body = {"messages": TEXT, "max_completion_tokens": 9}
    assert detect(body, model="claude-sonnet-4-5").name == "openai_chat"


def test_a_context_of_plain_messages_for_gemini_keeps_one_form() -> None:
    """Messages with `content` are not Gemini's, whatever the model; nothing of two forms comes out."""
    context = Context(9_000, model="gemini-2.5-pro")
    context.add("system", "Be nice").add("history", [{"role": "user", "content": "hi"}])
    assert [list(message) for message in context.fit().messages] == [["role", "content"]] * 2


def long_talk() -> list[dict[str, Any]]:
    """Make a talk whose newest messages are the same in every form, and whose older ones are Anthropic's."""
    plain = [{"role": "assistant", "content": "fine " * 30}, {"role": "user", "content": "next " * 30}] * 8
    old = [
        {"role": "user", "content": "q"},
        TOOL_USE,
        RESULT,
        {"role": "assistant", "content": "long " * 2_000},
    ]
    return [*old, {"role": "assistant", "content": "short"}, *plain, {"role": "user", "content": "last"}]


@pytest.mark.parametrize("budget", [*range(100, 1_600, 100), 3_000, 9_000])
def test_what_the_newest_messages_do_not_tell_older_ones_do(budget: int) -> None:
    """The quick way looks at the newest alone; what it decides is valid, and `at` goes by all of them."""
    messages = long_talk()
    fitted = fit(messages, budget)
    named = fit(messages, budget, format="anthropic")
    for found in (fitted, fitted.at(1_200), fitted.at(6_000)):
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": found.messages}
        assert judge("anthropic", body) == []
        assert validate(found.messages, format="anthropic") == []
    assert fitted.messages == named.messages
    assert fitted.report.format == "anthropic"


def items(turns: int, *, typed: bool) -> list[dict[str, Any]]:
    """Write a talk as Responses items whose only calls lie at the beginning."""
    kind = {"type": "message"} if typed else {}
    talk = [
        {**kind, "role": role, "content": f"{role} says {number} more words"}
        for number in range(turns)
        for role in ("user", "assistant")
    ]
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    return [talk[0], call, {"type": "function_call_output", "call_id": "a", "output": "found"}, *talk[1:]]


@pytest.mark.parametrize("turns", [3, 40, 200])
@pytest.mark.parametrize("share", [5, 30, 60, 95, 100])
def test_items_written_with_their_type_are_read_as_such_however_far_back_the_calls_lie(
    turns: int, share: int
) -> None:
    """What stays, what is counted and what is faulty is what it is with `format=` given."""
    messages = items(turns, typed=True)
    counter = WordCounter(format="openai_responses")
    budget = max(25, counter.count(messages) * share // 100)
    told = fit(messages, budget, model="gpt-4o")
    given = fit(messages, budget, model="gpt-4o", format="openai_responses")
    assert told.report.format == "openai_responses"
    assert told.messages == given.messages
    assert told.report.tokens_after == given.report.tokens_after
    assert list(told.report.violations) == list(given.report.violations) == []


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"type": "message", "role": "user", "content": "hi"}, "openai_responses"),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]},
            "openai_chat",
        ),
        ({"type": "message", "content": "hi"}, "openai_chat"),
        ({"type": "msg", "role": "user", "content": "hi"}, "openai_chat"),
    ],
)
def test_a_type_tells_where_it_goes_with_what_such_items_hold(entry: dict[str, Any], name: str) -> None:
    """Anthropic's answers are of the type "message" as well, and hold blocks; others mean nothing here."""
    assert detect([entry]).name == name


def test_an_answer_of_anthropic_among_plain_messages_is_anthropics_where_its_model_says_so() -> None:
    """People append what came back, type and all."""
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
    }
    talk = [{"role": "user", "content": "hello"}, answer, {"role": "user", "content": "and?"}]
    fitted = fit(talk, 500, model="claude-sonnet-4-5")
    assert fitted.report.format == "anthropic"
    assert fitted.messages == talk


def test_a_body_with_functions_as_chat_writes_them_is_chat_whatever_its_model() -> None:
    """Claude behind a gateway that speaks Chat; tools written as Anthropic's leave it to the model."""
    talk = [{"role": "user", "content": "hi"}]
    nested = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    flat = {"name": "f", "input_schema": {"type": "object"}}
    for tools, name in (
        ([nested], "openai_chat"),
        ([flat, nested], "openai_chat"),
        ([flat], "anthropic"),
        (None, "anthropic"),
    ):
        body = {"model": "claude-sonnet-4-5", "messages": talk, "tools": tools}
        assert detect(body, model="claude-sonnet-4-5").name == name
        assert fit(body, 2_000).report.format == name
