"""What `fit` says a request takes is what `measure` says of the request that comes out, in every form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import (
    BudgetExceededError,
    Cascade,
    Context,
    Fitted,
    SlidingWindow,
    Summarize,
    TruncateText,
    counter_for,
    fit,
)
from trimtab.counting import measure
from trimtab.formats import formats, get_format, mapping_of
from trimtab.strategies import PriorityBased, Relevant, Strategy
from trimtab.testing import request_bodies

MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}


def shout(messages: list[Any]) -> str:
    """Summarize anything in a word."""
    return "Greetings."


STRATEGIES: tuple[Strategy | None, ...] = (
    None,
    SlidingWindow(),
    PriorityBased(),
    PriorityBased(score={"relevance": 1, "role": 0.3}),
    Relevant(),
    Relevant(gap="[… {count} messages left out …]"),
    TruncateText(),
    Summarize(shout, max_summary_tokens=60),
    Summarize(shout, max_summary_tokens=60, role="system"),
    Cascade(Summarize(shout, max_summary_tokens=60, role="system"), SlidingWindow(), TruncateText()),
)


@st.composite
def requests(draw: st.DrawFn, name: str) -> Any:
    """Draw a body with or without system text and tools, and with system messages where they may stand."""
    form = get_format(name)
    body = dict(request_bodies(1, format=name, seed=draw(st.integers(0, 9_999)), valid=True)[0])
    key, messages = form.rules.body_key, list(body[form.rules.body_key])
    if not form.rules.lifts_system:
        while messages and form.kind(messages[0]) == "system" and draw(st.booleans()):
            messages.pop(0)
        for _ in range(draw(st.integers(0, 2))):
            messages.insert(
                draw(st.integers(0, len(messages))), form.message("system", ["From here on: be brief."])
            )
    for beside in ("tools", "instructions", "system", "systemInstruction", "system_instruction"):
        if beside in body and draw(st.booleans()):
            del body[beside]
    return {**body, key: messages}


def has_thoughts(name: str, message: Any) -> bool:
    """Tell whether a message has reasoning: that of older turns may be free, which only `measure` sees."""
    found = get_format(name).pieces(mapping_of(message))
    return bool(found.thoughts or found.sealed_chars)


@pytest.mark.parametrize("name", formats())
@given(data=st.data())
def test_the_total_of_a_fit_is_the_measure_of_its_request(name: str, data: st.DataObject) -> None:
    """Whatever leaves, is written or leads, and at every budget; so a fit is never over it by the bill."""
    body, counter = data.draw(requests(name)), counter_for(MODELS[name])
    limit = max(1, measure(body, counter=counter, format=name).tokens * data.draw(st.integers(1, 101)) // 100)
    strategy = data.draw(st.sampled_from(STRATEGIES))
    fitted: Fitted[Any]
    try:
        fitted = fit(body, limit, counter=counter, format=name, strategy=strategy)
    except BudgetExceededError as error:
        fitted = error.attempt
    numbers = (fitted.tokens_before, fitted.tokens_after)
    report = fitted.report
    assert numbers == (report.tokens_before, report.tokens_after)
    measured = measure(fitted.request, counter=counter, format=name).tokens
    assert report.tokens_after >= measured
    if not any(has_thoughts(name, message) for message in fitted.messages):
        assert report.tokens_after == measured
    rows = [row.tokens_after or 0 for row in report.messages if row.fate != "evicted"]
    assert report.fixed_tokens + sum(rows) + sum(row.tokens for row in report.inserted) == report.tokens_after


@given(data=st.data())
def test_the_total_of_a_context_is_the_measure_of_its_request(data: st.DataObject) -> None:
    """Whichever blocks give way, and whatever they leave in front; for messages, system text and tools."""
    name = data.draw(st.sampled_from(["openai_chat", "openai_responses"]))
    counter, form = counter_for("gpt-4o"), get_format(name)
    tools = [form.tool_schema("add", description="Add numbers.", parameters={"type": "object"})]
    made = Context(
        data.draw(st.integers(30, 160)),
        counter=counter,
        format=name,
        system=data.draw(st.sampled_from([None, "Be brief."])),
        tools=data.draw(st.sampled_from([None, tools])),
    )
    for number in range(data.draw(st.integers(1, 4))):
        role = data.draw(st.sampled_from(["system", "user", "assistant"]))
        strategy = data.draw(st.sampled_from(STRATEGIES[:-1]))
        texts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
        messages = [form.message(role, ["word " * words]) for words in texts]
        made.add(f"block {number}", messages, priority=data.draw(st.integers(0, 2)), strategy=strategy)
    try:
        fitted = made.fit()
    except BudgetExceededError:
        return
    measured = measure(
        fitted.messages, counter=counter, format=name, system=fitted.system, tools=fitted.tools
    )
    numbers = (fitted.tokens_before, fitted.tokens_after)
    assert numbers == (fitted.report.tokens_before, measured.tokens)
    assert fitted.report.tokens_after == measured.tokens
