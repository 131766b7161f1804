"""What OpenAI charges beside words: by the rules that its bills showed, on input of our own.

Numbers are worked out from the rule, token by token; that the rules hold for bills is the last test.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy_cases import Case, cases
from tests.billed import Billed
from trimtab import fit
from trimtab.counting import counter_for, measure

GPT_5 = (
    "gpt-5",
    "gpt-5-mini",
    "gpt-5-nano",
    "gpt-5-codex",
    "gpt-5.1",
    "gpt-5.2",
    "gpt-5.4",
    "gpt-5.4-mini",
    "gpt-5.5",
    "gpt-5.6",
    "gpt-oss-120b",
)
ASKED = {"role": "user", "content": "Fix my bike"}
ANSWER = {"role": "assistant", "content": "With what tools?"}


def tokens(model: str, text: str) -> int:
    """Count a text by the model's own vocabulary."""
    counter = counter_for(model)
    return counter.count_text(text)  # type: ignore[attr-defined, no-any-return]


def chat(model: str = "gpt-4o", *, of: Any = (ASKED,), **rest: Any) -> int:
    """Count a body of Chat Completions."""
    return measure({"model": model, "messages": [*of], **rest}).tokens


def responses(model: str = "gpt-4o", *, of: Any = (ASKED,), **rest: Any) -> int:
    """Count a body of Responses."""
    return measure({"model": model, "input": [*of], **rest}, format="openai_responses").tokens


def bike(name: str = "rent_bike", **properties: Any) -> dict[str, Any]:
    """Describe a tool of these properties."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {
        "type": "function",
        "function": {"name": name, "description": "Rents a bike.", "parameters": schema},
    }


SIZE, DAY = {"type": "integer"}, {"type": "string"}
TOOL = bike(size=SIZE, day=DAY)


def flat(tool: dict[str, Any]) -> dict[str, Any]:
    """Write a tool as Responses do."""
    return {"type": "function", **tool["function"]}


@pytest.mark.parametrize("count", [chat, responses], ids=["chat", "responses"])
@pytest.mark.parametrize("model", GPT_5)
def test_each_answer_costs_gpt_5_a_channel(model: str, count: Callable[..., int]) -> None:
    """Two tokens beside the frame of four; what a user says has none."""
    alone = count(model)
    assert count(model, of=[ASKED, ASKED]) - alone == 4 + tokens(model, ASKED["content"])
    for answers in (1, 3):
        more = answers * (4 + 2 + tokens(model, ANSWER["content"]))
        assert count(model, of=[*([ANSWER] * answers), ASKED]) - alone == more


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-4", "gpt-3.5-turbo", "o3-mini", "o4-mini"])
def test_it_costs_no_other_model_one(model: str) -> None:
    """Their bills have the frame of four alone."""
    assert chat(model, of=[ASKED, ANSWER]) - chat(model) == 4 + tokens(model, ANSWER["content"])


def test_a_long_chat_with_gpt_5_stays_in_its_budget() -> None:
    """By the bill of it: two tokens, and for each message what it says and its frame."""
    words = [f"What is {number} times {number + 3}, and why?" for number in range(200)]
    pairs = [{"role": role, "content": text} for text in words for role in ("user", "assistant")]
    result = fit([*pairs, ASKED], 4_000, model="gpt-5.4")
    bill = 2 + sum(
        tokens("gpt-5.4", one["content"]) + (6 if one["role"] == "assistant" else 4)
        for one in result.messages
    )
    assert 3_900 < bill <= 4_000
    assert result.report.tokens_after == bill


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.4-mini"])
def test_reasoning_of_a_turn_that_is_over_is_free(model: str) -> None:
    """The item has no frame either: 16 of 17 bills with one before an answer."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A bike."}]}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    answer = {**said, "content": [{"type": "output_text", "text": "With what?", "annotations": []}]}
    assert responses(model, of=[ASKED, thought, answer, ASKED]) == responses(model, of=[ASKED, answer, ASKED])


TITLED = bike(
    size={**SIZE, "title": "Frame Size"},
    day={**DAY, "title": "Day", "description": "of pick-up"},
    place={"$ref": "#/$defs/Place"},
)
TITLED["function"]["parameters"] |= {
    "$defs": {"Place": {"title": "Place", "type": "object", "properties": {"city": {**DAY, "title": "City"}}}}
}
SHOWN = """namespace functions {

// Rents a bike.
type rent_bike = (_: {
// Frame Size
size: number,
// Day
//
// of pick-up
day: string,
// Place
place: {
// City
city?: string,
},
}) => any;

} // namespace functions"""


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1", "gpt-5-mini"])
def test_titles_of_properties_are_charged_as_lines_of_comment(model: str) -> None:
    """Nested ones too, and those of what a reference leads to; beside the heading for tools."""
    heading, heading_there = (90, 9) if model.startswith("gpt-5") else (9, 3)
    assert chat(model, tools=[TITLED]) - chat(model) == heading + tokens(model, SHOWN)
    there = responses(model, tools=[flat(TITLED)]) - responses(model)
    assert there == heading_there + tokens(model, SHOWN)


def test_a_title_costs_what_a_line_of_it_costs() -> None:
    """Three tokens and no more where something is said already; the first one breaks the line up, too."""
    told = bike(size={**SIZE, "description": "of the frame"}, day=DAY)
    titled = bike(size={**SIZE, "description": "of the frame"}, day={**DAY, "title": "Pick Up"})
    assert chat(tools=[titled]) - chat(tools=[told]) == 3
    both = bike(size={**SIZE, "title": "Frame Size"}, day={**DAY, "title": "Pick Up"})
    assert chat(tools=[both]) - chat(tools=[TOOL]) == 7


@pytest.mark.parametrize("name", ["rent_bike", "__answer_with_a_bicycle_and_its_rider__"])
def test_a_named_tool_costs_its_name_and_seven(name: str) -> None:
    """With gpt-4o in both forms; GPT-5 is told in no word, and "required" is free."""
    tool = bike(name, size=SIZE)
    chosen = {"tool_choice": {"type": "function", "function": {"name": name}}}
    chosen_there = {"tool_choice": {"type": "function", "name": name}}
    more = 7 + tokens("gpt-4o", name)
    assert chat(tools=[tool], **chosen) - chat(tools=[tool]) == more
    assert responses(tools=[flat(tool)], **chosen_there) - responses(tools=[flat(tool)]) == more
    assert chat("gpt-5", tools=[tool], **chosen) == chat("gpt-5", tools=[tool])
    for choice in ("auto", "required", "none"):
        assert chat(tools=[tool], tool_choice=choice) == chat(tools=[tool])
        assert responses(tools=[flat(tool)], tool_choice=choice) == responses(tools=[flat(tool)])


def test_a_name_that_says_the_role_is_not_charged_twice() -> None:
    """A name costs one token and its text."""
    assert chat(of=[{**ASKED, "name": "user"}]) - chat() == 1
    assert chat(of=[{**ASKED, "name": "critic"}]) - chat() == 1 + tokens("gpt-4o", "critic")


def test_o3_mini_is_shown_tools_as_gpt_4o_is() -> None:
    """Not with the long preamble of GPT-5: 133 tokens were billed for 207."""
    assert chat("o3-mini", tools=[TOOL]) - chat("o3-mini") == chat(tools=[TOOL]) - chat()
    assert chat("gpt-5", tools=[TOOL]) - chat("gpt-5") == chat(tools=[TOOL]) - chat() + 81


def test_tools_schema_and_system_text_are_one_message() -> None:
    """A frame of four is charged once for them in Chat."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
    told = {"role": "system", "content": "Be brief."}
    tools, schema, system = (
        chat(**rest) - chat()
        for rest in ({"tools": [TOOL]}, {"response_format": form}, {"of": [told, ASKED]})
    )
    assert chat(tools=[TOOL], response_format=form) == chat() + tools + schema - 4
    assert chat(of=[told, ASKED], response_format=form) == chat() + schema + system - 4
    whole = chat(of=[told, ASKED], tools=[TOOL], response_format=form)
    assert whole == chat() + tools + schema + system - 8


def test_what_only_checks_an_answer_is_free() -> None:
    """Limits and defaults, not so a property that is called like one; letters beyond ASCII are escaped."""
    number = {"type": "number", "title": "é"}
    checked = {**number, "minimum": 0.5, "maximum": 12.25, "default": 1}
    listed = {"type": "array", "items": {"type": "string"}}
    forms = [
        {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object", "properties": of}},
        }
        for of in (
            {"default": number, "list": listed},
            {"default": checked, "list": {**listed, "minItems": 2, "maxItems": 9}},
        )
    ]
    bare, checked_too = (chat(response_format=form) for form in forms)
    assert bare == checked_too
    shown = (
        '# Response Formats\n\n## answer\n\n{"type":"object","properties":{"default":{"type":"number",'
        '"title":"\\u00e9"},"list":{"type":"array","items":{"type":"string"}}}}'
    )
    assert bare - chat() == 8 + tokens("gpt-4o", shown)


def test_a_request_that_forbids_parallel_calls_is_told_so() -> None:
    """GPT-5 in Responses, once there are tools; Chat and gpt-4o are not."""
    one = {"parallel_tool_calls": False}
    tools = {"tools": [flat(TOOL)]}
    assert responses("gpt-5-nano", **tools, **one) - responses("gpt-5-nano", **tools) == 78
    assert responses("gpt-5-nano", **one) == responses("gpt-5-nano")
    assert responses(**tools, **one) == responses(**tools)
    assert chat("gpt-5", tools=[TOOL], **one) == chat("gpt-5", tools=[TOOL])


def test_what_a_pdf_costs_openai_is_named_as_unknown() -> None:
    """4 to 754 tokens were billed for a page in Responses, 218 to 1,034 in Chat: the margin holds both."""
    page = b"%PDF-1.4\n1 0 obj <</Type /Page>> endobj\n" + b" " * 600
    data = "data:application/pdf;base64," + base64.b64encode(page).decode()
    part = {"type": "file", "file": {"filename": "a.pdf", "file_data": data}}
    count = measure({"model": "gpt-4o", "messages": [{"role": "user", "content": [part]}]})
    assert not count.exact
    assert "document" in count.unknown[0]
    assert count.least_tokens is not None
    assert count.most_tokens is not None
    assert count.least_tokens <= 10 + 4
    assert count.most_tokens >= 10 + 1_034


def _has_titles(one: Billed) -> bool:
    return '"title"' in repr(one.request.get("tools")).replace("'", '"')


def _names_a_tool(one: Billed) -> bool:
    return isinstance(one.request.get("tool_choice"), dict)


def _has_schema(one: Billed) -> bool:
    return one.kind == "schema"


def _answered_gpt_5(one: Billed) -> bool:
    said = one.request.get("messages") or one.request.get("input")
    roles = [item.get("role") for item in said if isinstance(item, dict)] if isinstance(said, list) else []
    return "gpt-5" in one.model and "assistant" in roles and not one.request.get("tools")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("has", "least", "may_miss"),
    [
        pytest.param(_has_titles, 80, 0.06, id="titles"),
        pytest.param(_names_a_tool, 15, 0.0, id="named-tool"),
        pytest.param(_has_schema, 40, 0.0, id="output-schema"),
        pytest.param(_answered_gpt_5, 8, 0.0, id="answers-of-gpt-5"),
    ],
)
def test_bills_of_the_half_held_out_agree(
    data_dir: Path, has: Callable[[Billed], bool], least: int, may_miss: float
) -> None:
    """By 3 tokens or 2 %; with titles some were recorded without what was billed (design/012-counts.md)."""
    found: list[Case] = [
        case
        for case in cases("held out", data_dir)[0]
        if case.request.provider.startswith("openai") and case.apart is None and has(case.request)
    ]
    assert len(found) >= least
    missed = [(case.off, case.request.name) for case in found if case.missed]
    assert len(missed) <= may_miss * len(found), missed
