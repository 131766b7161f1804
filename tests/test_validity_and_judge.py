"""`validate` says of whole requests what the judge of tests/judge says, who knows nothing of trimtab."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge import FORMS, TABLES, broken_anthropic, broken_bedrock, judge
from tests.judge import broken_gemini as of_gemini
from tests.judge import broken_openai_chat as of_chat
from tests.judge import broken_openai_responses as of_responses
from tests.judge._broken import Broken
from tests.judge.recorded import accepted
from tests.test_judge import BODY, JSON
from trimtab import fit, repair, validate
from trimtab.counting import FixedCounter
from trimtab.errors import ContextError

CASES: dict[str, list[Broken]] = {
    "openai_chat": of_chat.BROKEN,
    "openai_responses": of_responses.BROKEN,
    "anthropic": broken_anthropic.BROKEN,
    "gemini": of_gemini.BROKEN,
    "bedrock": broken_bedrock.BROKEN,
}
EVERY = [
    pytest.param(form, case, id=f"{form}-{case.rule}-{at}")
    for form, cases in CASES.items()
    for at, case in enumerate(cases)
]

WAITS = "the result can still come: `open_call`, which is no fault"
FROM_THE_ORIGIN = "only the request it was made from shows what an item came with"
SILENT = {
    ("openai_chat", "call_without_result"): WAITS,
    ("openai_responses", "call_without_output"): WAITS,
    ("openai_responses", "request_without_approval"): WAITS,
    ("anthropic", "call_without_result"): WAITS,
    ("openai_responses", "item_without_reasoning"): FROM_THE_ORIGIN,
    ("openai_responses", "reasoning_with_another_follower"): FROM_THE_ORIGIN,
    ("bedrock", "call_without_result"): WAITS,
    ("anthropic", "bound_thinking"): FROM_THE_ORIGIN,
    ("bedrock", "bound_thinking"): FROM_THE_ORIGIN,
    ("anthropic", "first_role"): "the judge says elsewhere: Claude 4.5 takes it",
    ("bedrock", "first_role"): "the judge says elsewhere: Claude 4.5 takes it",
    ("gemini", "empty_text"): "the judge says elsewhere: the Gemini API takes it today",
    (
        "gemini",
        "call_turn_misplaced",
    ): "behind a model's text; Google's own CLI sends that (gemini-cli#685)",
}
"""Rules of which a broken request is no fault, and why."""


def faults(form: str, request: Any) -> list[str]:
    """List the rules `validate` finds broken."""
    return [found.rule for found in validate(request, format=form) if found.fault]


@pytest.mark.parametrize(("form", "case"), EVERY)
def test_a_request_broken_by_hand_has_a_fault_and_the_one_it_was_made_from_none(
    form: str, case: Broken
) -> None:
    """For every rule of the judge, but for those of the table."""
    assert faults(form, case.valid) == []
    request = case.request()
    if faults(form, request):
        return
    why = SILENT[form, case.rule]
    if why == WAITS:
        assert {found.rule for found in validate(request, format=form)} == {"open_call"}


def test_the_table_of_what_is_no_fault_has_no_row_too_many() -> None:
    """Each names a broken request that is silent; one that holds elsewhere says so in the judge as well."""
    silent = {
        (form, case.rule)
        for form, cases in CASES.items()
        for case in cases
        if not faults(form, case.request())
    }
    assert silent == SILENT.keys()
    assert all(TABLES[form][rule].elsewhere for (form, rule), why in SILENT.items() if "elsewhere" in why)


@pytest.mark.parametrize("form", FORMS)
def test_a_body_without_messages_is_refused_and_a_list_without_any_is_none(form: str) -> None:
    """A list may be a part of a request; its violation names no position."""
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    assert judge(form, {key: []}) != []
    [found] = validate({key: []}, format=form)
    assert (found.index, found.rule, found.fault) == (None, "no_messages", True)
    assert found.message.startswith("request: ")
    assert validate([], format=form) == []


ORPHANS: dict[str, Any] = {
    "openai_chat": {"messages": [{"role": "tool", "tool_call_id": "a", "content": "4"}]},
    "openai_responses": {"input": [{"type": "function_call_output", "call_id": "a", "output": "4"}]},
    "anthropic": {
        "messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "4"}]}
        ]
    },
    "bedrock": {
        "messages": [
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "4"}]}}]}
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "4"}}}]}
        ]
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_of_orphans_is_repaired_to_nothing_which_is_said(form: str) -> None:
    """Nobody can invent what was asked."""
    done = repair(ORPHANS[form], format=form)
    assert done.messages == []
    assert faults(form, done.request) == ["no_messages"]


@given(st.sampled_from(FORMS), BODY | JSON)
def test_any_json_gets_an_answer_or_a_typed_error(form: str, odd: Any) -> None:
    """Of whatever shape, with a body and without."""
    lists = [value for value in odd.values() if isinstance(value, list)] if isinstance(odd, dict) else []
    for request in (odd, *lists):
        for ask in (validate, repair):
            with contextlib.suppress(ContextError):
                ask(request, format=form)


OLLAMA = (
    "traceloop/openllmetry:packages/opentelemetry-instrumentation-ollama/tests/cassettes/test_chat/"
    "test_ollama_chat_tool_calls_legacy.yaml#0"
)
REAL = {
    OLLAMA: (
        {"bad_tool_call": 3, "missing_tool_call_id": 1},
        "Ollama's own API, which is none of the five forms: it takes calls without id and type, arguments as"
        " an object and results without an id. As Chat, as which it is listed, everybody refuses it.",
    ),
}
"""Faults of requests that were answered and billed, each with the reason why it is one (design/014)."""


def test_of_what_was_answered_every_fault_is_real(data_dir: Path) -> None:
    """All of both files, each with the model it was sent to: in the body and out, with `strict` as well."""
    found: dict[str, Counter[str]] = {}
    count = 0
    for name, form, model, body in accepted(data_dir):
        count += 1
        broken = [one.rule for one in validate(body, format=form, model=model) if one.fault]
        named = [one.rule for one in validate({**body, "model": model}, format=form) if one.fault]
        assert broken == named, name
        if broken:
            found[name] = Counter(broken)
            continue
        assert repair(body, format=form, model=model).request == body, name
        counter = FixedCounter(1, format=form)
        fitted = fit(body, 4000, counter=counter, format=form, model=model, strict=True)
        assert not any(one.fault for one in fitted.report.violations)
    assert found == {name: Counter(rules) for name, (rules, _) in REAL.items()}
    assert count > 2700
