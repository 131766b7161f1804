"""What a repair can mend in the shape of messages; what it cannot is an error, and never "fits"."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge import FORMS, TABLES, judge
from tests.judge._broken import Broken
from tests.test_judge import BODY, JSON
from tests.test_validity_and_judge import CASES, SILENT
from trimtab import fit, repair, validate
from trimtab.conversation import Change
from trimtab.counting import FixedCounter
from trimtab.errors import ContextError, InvalidHistoryError
from trimtab.formats import get_format

USER = {"role": "user", "content": "q"}
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "4"}
ASKED = {"role": "assistant", "content": [CALL]}
POINT = {"cachePoint": {"type": "default"}}
CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def faults(messages: Any, form: str, model: str | None = None) -> list[str]:
    """List the rules that are broken."""
    return [one.rule for one in validate(messages, format=form, model=model) if one.fault]


def fitted(messages: Any, form: str, **how: Any) -> Any:
    """Fit with a repair; nothing has to leave."""
    return fit(messages, 100, counter=FixedCounter(1, format=form), format=form, repair=True, **how).request


MENDED: list[tuple[str, str | None, list[Any], list[Any], list[str]]] = [
    # a result that is marked as an error and says nothing: 400 since 2025 (bytedance/trae-agent#230)
    *(
        (
            "anthropic",
            None,
            [USER, ASKED, {"role": "user", "content": [{**RESULT, "is_error": True, "content": said}]}],
            [USER, ASKED, {"role": "user", "content": [{**RESULT, "is_error": True, "content": "error"}]}],
            ["empty_error_result"],
        )
        for said in ("", [], None)
    ),
    (
        "anthropic",
        None,
        [USER, {"role": "assistant", "content": [{"type": "text", "text": ""}, CALL]},
         {"role": "user", "content": [RESULT, {"type": "text", "text": " "}]}],
        [USER, ASKED, {"role": "user", "content": [RESULT]}],
        ["empty_text", "blank_text"],
    ),
    (
        "anthropic",
        None,
        [USER, {"role": "assistant", "content": ""}, {"role": "user", "content": "and?"}],
        [USER, {"role": "user", "content": "and?"}],
        ["empty_content"],
    ),
    (
        "anthropic",
        None,
        [USER, {"role": "assistant", "content": [{**CALL, "id": "call:a"}], "id": "msg_1", "usage": {}},
         {"role": "user", "content": [{**RESULT, "tool_use_id": "call:a"}]}],
        [USER, {"role": "assistant", "content": [{**CALL, "id": "call_a"}]},
         {"role": "user", "content": [{**RESULT, "tool_use_id": "call_a"}]}],
        ["unknown_key", "unknown_key", "bad_id", "bad_id"],
    ),
    (
        "anthropic",
        None,
        [USER, {"role": "assistant", "content": [{**CALL, "input": '{"x": 1}'}]},
         {"role": "user", "content": [RESULT]}],
        [USER, {"role": "assistant", "content": [{**CALL, "input": {"x": 1}}]},
         {"role": "user", "content": [RESULT]}],
        ["bad_call"],
    ),
    (
        "openai_chat",
        None,
        [USER, {"role": "assistant", "content": [], "tool_calls": [
            {"id": "a", "function": {"name": "f.x", "arguments": {"x": 1}}}]},
         {"role": "tool", "tool_call_id": "a", "content": None}],
        [USER, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f_x", "arguments": '{"x":1}'}}]},
         {"role": "tool", "tool_call_id": "a", "content": ""}],
        ["empty_content", "bad_tool_call", "bad_name", "bad_tool_call", "missing_content"],
    ),
    (
        "openai_chat",
        "gpt-5",
        [{"role": "user", "content": ["see", {"type": "image_url", "image_url": "https://x.y/z.png"}]},
         {"role": "assistant", "content": None, "tool_calls": []}],
        [{"role": "user", "content": [{"type": "text", "text": "see"},
                                      {"type": "image_url", "image_url": {"url": "https://x.y/z.png"}}]},
         {"role": "assistant", "content": ""}],
        ["bad_part", "bad_part", "empty_tool_calls"],
    ),
    (
        "openai_responses",
        None,
        [{"role": "user", "content": [{"type": "text", "text": "q"}], "name": "jo"},
         {"type": "function_call", "call_id": "a", "name": "f", "arguments": {"x": 1}, "id": "call_a"},
         {"type": "function_call_output", "call_id": "a", "output": None}],
        [{"role": "user", "content": [{"type": "input_text", "text": "q"}]},
         {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
         {"type": "function_call_output", "call_id": "a", "output": ""}],
        ["unknown_key", "misplaced_part", "bad_value", "bad_id", "bad_value"],
    ),
    (
        "gemini",
        "gemini-3-pro",
        [{"role": "user", "parts": ["q"]}, {"role": "model", "parts": []},
         {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
         {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "4"}}], "id": 1}],
        [{"role": "user", "parts": [{"text": "q"}]},
         {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}},
                                      "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="}]},
         {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "4"}}}]}],
        ["bad_part", "empty_parts", "missing_thought_signature", "unknown_key", "bad_part"],
    ),
    (
        "bedrock",
        None,
        [{"role": "user", "content": "q"},
         {"role": "assistant", "content": [{"text": ""}, {"toolUse": {
             "toolUseId": "a#1", "name": "f", "input": "{}"}}]},
         {"role": "user", "content": [{"toolResult": {
             "toolUseId": "a#1", "status": "error", "content": []}}, {"text": " "}], "id": 1}],
        [{"role": "user", "content": [{"text": "q"}]},
         {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a_1", "name": "f", "input": {}}}]},
         {"role": "user", "content": [{"toolResult": {
             "toolUseId": "a_1", "status": "error", "content": [{"text": "error"}]}}]}],
        ["bad_content", "empty_text", "bad_id", "bad_call", "unknown_key", "bad_id", "empty_error_result"],
    ),
    # marks alone: what nothing stands in front of, and what stands behind reasoning
    (
        "bedrock",
        None,
        [{"role": "user", "content": [POINT, {"text": "q"}, POINT]},
         {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, POINT,
                                           {"text": "a"}]},
         {"role": "user", "content": [POINT]}],
        [{"role": "user", "content": [{"text": "q"}, POINT]},
         {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}},
                                           {"text": "a"}]}],
        ["lone_cache_point", "cached_thinking", "lone_cache_point"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("form", "model", "broken", "mended", "rules"), MENDED)
def test_a_shape_that_is_refused_is_mended(
    form: str, model: str | None, broken: list[Any], mended: list[Any], rules: list[str]
) -> None:
    """Where nothing has to be made up; once, in a copy, by `repair` and by `fit(repair=True)`."""
    before = copy.deepcopy(broken)
    assert faults(broken, form, model) == rules
    done = repair(broken, format=form, model=model)
    assert done.messages == mended
    assert faults(mended, form, model) == []
    assert repair(mended, format=form, model=model).changes == ()
    assert fitted(broken, form, model=model) == mended
    assert broken == before
    assert {change.rule for change in done.changes} <= {*rules}


def test_a_change_says_which_rule_was_broken() -> None:
    """By the place in the input, as those of pairs do."""
    empty = {"role": "assistant", "content": ""}
    done = repair([USER, empty, {**USER, "id": 1}], format="anthropic")
    assert done.changes == (
        Change(index=1, action="removed", rule="empty_content", call_id=None),
        Change(index=2, action="edited", rule="unknown_key", call_id=None),
    )
    assert done.positions == (0, 2)


LEADERS = [
    ("anthropic", [{"role": "user", "content": ""}, ASKED, {"role": "user", "content": [RESULT]}]),
    (
        "bedrock",
        [
            {"role": "user", "content": []},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "4"}]}}]},
            {"role": "assistant", "content": [{"text": "4"}]},
        ],
    ),
    (
        "gemini",
        [
            {"role": "user", "parts": []},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 4}}}]},
        ],
    ),
]


@pytest.mark.parametrize(("form", "broken"), LEADERS)
def test_where_an_empty_first_message_leaves_nothing_comes_to_stand_in_front(
    form: str, broken: list[Any]
) -> None:
    """A call or the model's words were left first: what came in began with the user."""
    done = repair(broken, format=form)
    assert "wrong_order" not in faults(done.messages, form)
    assert done.messages == []
    last = get_format(form).message("user", ["and?"])
    assert repair([*broken, last], format=form).messages == [last]
    assert fitted([*broken, last], form) == [last]


def test_a_repair_that_raises_names_messages_as_the_caller_does() -> None:
    """Behind system text, and where others left: the place in the output helps nobody who has none."""
    broken = [{"role": "assistant", "content": ""}, USER, {"role": "user", "content": [{"type": "nope"}]}]
    with pytest.raises(InvalidHistoryError, match=r"messages\[2\]") as caught:
        fitted(broken, "anthropic")
    assert [(one.index, one.message[:11]) for one in caught.value.violations] == [(2, "messages[2]")]


def test_words_under_keys_of_another_form_are_never_dropped() -> None:
    """A message of Chat's in a list for Claude: its calls are no key too many."""
    chat = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
    for form in ("anthropic", "bedrock", "gemini"):
        assert get_format(form).mend(chat) is chat
        with pytest.raises(InvalidHistoryError, match="repair=True cannot repair"):
            fitted([USER, chat, {"role": "tool", "tool_call_id": "a", "content": "4"}], form)
    assert get_format("gemini").mend(USER) is USER


@pytest.mark.parametrize(
    ("form", "beside", "rule"),
    [
        ("anthropic", {"system": ["a"]}, "bad_system"),
        ("anthropic", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "bad_tool"),
        ("anthropic", {"tools": [{"type": "function", "name": "f", "parameters": {}}]}, "bad_tool"),
        ("anthropic", {"tools": [{"name": "f", "inputSchema": {"type": "object"}}]}, "bad_tool"),
        ("openai_chat", {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}, "bad_tool"),
        ("openai_chat", {"tools": [{"type": "function", "name": "f", "parameters": {}}]}, "bad_tool"),
        ("openai_responses", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "bad_tool"),
        ("gemini", {"tools": [{"type": "function", "function": {"name": "f"}}]}, "bad_tool"),
        ("gemini", {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}, "bad_tool"),
        ("bedrock", {"toolConfig": {"tools": [{"name": "f", "input_schema": {}}]}}, "bad_tool"),
    ],
)
def test_what_stands_beside_the_messages_in_another_providers_shape_is_a_fault(
    form: str, beside: Mapping[str, Any], rule: str
) -> None:
    """System text as a list of texts, and tools; `strict` and `repair` raise."""
    key = get_format(form).rules.body_key
    body = {key: [get_format(form).message("user", ["q"])], **beside}
    [found] = validate(body, format=form)
    assert (found.index, found.rule, found.fault) == (None, rule, True)
    for how in ({"strict": True}, {"repair": True}):
        with pytest.raises(InvalidHistoryError, match=found.message[:20].replace("[", r"\[")):
            fit(body, 100, counter=FixedCounter(1, format=form), format=form, **how)
    if "tools" in beside:
        with pytest.raises(InvalidHistoryError):
            fit(body[key], 100, counter=FixedCounter(1, format=form), format=form, strict=True, **beside)


def test_a_list_of_texts_as_system_is_written_as_blocks_where_it_stands_beside_a_list() -> None:
    """So that it is no fault there."""
    counter = FixedCounter(1, format="anthropic")
    done = fit([USER], 100, counter=counter, format="anthropic", system=["a"], strict=True)
    assert done.system == [{"type": "text", "text": "a"}]


EVERY = [
    pytest.param(form, case, id=f"{form}-{case.rule}-{at}")
    for form, cases in CASES.items()
    for at, case in enumerate(cases)
]


@pytest.mark.parametrize(("form", "case"), EVERY)
def test_a_repair_gives_what_is_taken_or_raises(form: str, case: Broken) -> None:
    """Every request of the judge's that is broken: it is mended, or an error; the judge agrees."""
    request = case.request()
    try:
        sent = fitted(request, form)
    except ContextError:
        return
    assert faults(sent, form) == []
    known = {rule for named, rule in SILENT if named == form}
    assert {found.rule for found in judge(form, sent)} <= known | {
        rule for rule, one in TABLES[form].items() if one.elsewhere
    }


@given(st.sampled_from(FORMS), BODY | JSON)
def test_of_any_json_a_repair_gives_what_is_taken_or_a_typed_error(form: str, odd: Any) -> None:
    """Bodies and lists of whatever shape; what was mended is not mended again."""
    lists = [value for value in odd.values() if isinstance(value, list)] if isinstance(odd, dict) else []
    for request in (odd, *lists):
        try:
            sent = fitted(request, form)
        except ContextError:
            continue
        assert faults(sent, form) == []
        assert repair(sent, format=form).changes == ()
