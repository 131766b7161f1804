"""The schema of an answer where there is a list of messages and no body: it is counted as that of a body."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trimtab import Context, Fitted, fit
from trimtab.integrations.answers import answer_part, answer_ways
from trimtab.integrations.base import Trimmer

SCHEMA = {"type": "object", "properties": {"place": {"type": "integer", "description": "Where it was seen."}}}
ASKED = {"type": "json_schema", "json_schema": {"name": "seen", "schema": SCHEMA}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
TALK = [{"role": "user", "content": "And now?"}]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-5", "gemini-2.5-flash"])
def test_a_part_of_a_body_among_the_tools_is_charged_as_in_a_body(model: str) -> None:
    """It is no tool: what a tool alone brings along is not charged, and no report names one."""
    given: dict[str, Any] = {"budget": 5_000, "model": model, "format": "openai_chat"}
    for tools in ([], [TOOL]):
        body = {"messages": TALK, "response_format": ASKED, **({"tools": tools} if tools else {})}
        whole = fit(body, **given).report
        listed = fit(TALK, tools=[{"response_format": ASKED}, *tools], **given).report
        blocks = Context(5_000, model=model, format="openai_chat", tools=[{"response_format": ASKED}, *tools])
        assert listed.tokens_after == whole.tokens_after
        assert blocks.add("history", TALK).fit().report.tokens_after == whole.tokens_after
        assert listed.notes == whole.notes


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        {"format": {"type": "json_schema", "name": "seen", "schema": SCHEMA}},
        {"type": "json_schema", "name": "seen", "schema": SCHEMA},
        {"name": "seen", "type": "json_object", "response_schema": SCHEMA},
    ],
    ids=["chat", "text", "responses", "gemini"],
)
def test_the_form_of_an_answer_is_read_as_each_api_is_told_it(asked: dict[str, Any]) -> None:
    """A bare schema is one, too, and JSON of any shape has none."""
    part = answer_part(asked)
    assert part is not None
    assert part["response_format"]["json_schema"] == {"name": "seen", "schema": SCHEMA}
    assert answer_part(SCHEMA, name="seen") == part
    assert answer_part({"type": "json_object"}) is None
    assert answer_part({"type": "text"}) is None


@pytest.mark.parametrize("key", ["format", "json_schema", "schema", "response_schema"])
def test_a_bare_schema_keeps_a_word_that_another_api_has_for_what_holds_one(key: str) -> None:
    """JSON Schema says by `format` what a text is: "date-time", or "enum" in Gemini's."""
    bare = {"type": "string", key: "date-time"}
    part = answer_part(bare)
    assert part is not None
    assert part["response_format"]["json_schema"]["schema"] == bare


async def _count_later(messages: list[Any]) -> int:
    return sum(len(str(message)) for message in messages)


def _trimmer(budget: Any, seen: list[Fitted[Any]], **options: Any) -> Trimmer[Any]:
    return Trimmer(budget, format="openai_chat", on_fitted=seen.append, options=options)


def test_the_dearer_way_to_ask_for_an_answer_is_charged() -> None:
    """With a Context too, and with a counter that is not asked about tools alone."""
    ways = answer_ways(answer_part(ASKED))
    for model in ("gemini-2.5-flash", "claude-opus-4-5"):
        for budget in (5_000, Context(5_000).add("history", [])):
            seen: list[Fitted[Any]] = []
            trimmer = _trimmer(budget, seen)
            for tools in (*ways, trimmer.dearest(ways, has_system=False, model=model)):
                trimmer.fit(TALK, model=model, tools=tools)
            counts = [one.report.tokens_after for one in seen]
            assert counts[2] == max(counts[:2]) > min(counts[:2])
    seen = []
    later = _trimmer(5_000, seen, counter=_count_later)
    found = later.dearest(ways, has_system=False, model="gpt-4o")
    assert found in ways
    assert asyncio.run(later.afit(TALK, model="gpt-4o", tools=found)).messages == TALK
