"""The judge of tests/judge refuses what providers refuse, and takes what they took."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge import (
    FORMS,
    ORIGINS,
    TABLES,
    accepts,
    broken_anthropic,
    broken_bedrock,
    broken_gemini,
    broken_openai_chat,
    broken_openai_responses,
    judge,
    newly_refused,
)
from tests.judge._broken import Broken
from tests.judge._rules import Table
from tests.judge.recorded import recorded

FOLDER = Path(__file__).parent / "judge"
CASES: dict[str, list[Broken]] = {
    "openai_chat": broken_openai_chat.BROKEN,
    "openai_responses": broken_openai_responses.BROKEN,
    "anthropic": broken_anthropic.BROKEN,
    "gemini": broken_gemini.BROKEN,
    "bedrock": broken_bedrock.BROKEN,
}
EVERY = [
    pytest.param(form, case, id=f"{form}-{case.rule}-{at}")
    for form, cases in CASES.items()
    for at, case in enumerate(cases)
]
RULES = [(table, name) for table in (*TABLES.values(), *ORIGINS.values()) for name in table]


def test_every_form_has_at_least_fifteen_broken_requests() -> None:
    """Of all forms."""
    assert sorted(CASES) == sorted(FORMS)
    assert all(len(cases) >= 15 for cases in CASES.values())


@pytest.mark.parametrize(("form", "case"), EVERY)
def test_the_request_a_broken_one_was_made_from_is_accepted(form: str, case: Broken) -> None:
    """So that the break is what is refused."""
    assert judge(form, case.valid) == []
    assert newly_refused(form, case.valid, case.valid) == []


@pytest.mark.parametrize(("form", "case"), EVERY)
def test_a_broken_request_is_refused_in_the_words_of_the_provider(form: str, case: Broken) -> None:
    """By its rule and no other, with the place where somebody met these words."""
    refusals = judge(form, case.request(), origin=case.valid)
    assert {refusal.rule for refusal in refusals} == {case.rule, *case.also}
    refusal = next(refusal for refusal in refusals if refusal.rule == case.rule)
    assert refusal.words == case.words
    assert refusal.source.startswith("https://")
    assert refusal.source.endswith(case.source)
    assert newly_refused(form, case.valid, case.request()) == refusals


@pytest.mark.parametrize(("table", "name"), RULES, ids=[name for _, name in RULES])
def test_deleting_a_rule_is_noticed(table: Table, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One broken request at least is then accepted."""
    monkeypatch.delitem(table, name)
    assert any(
        case.rule == name and accepts(form, case.request(), origin=case.valid)
        for form, cases in CASES.items()
        for case in cases
    )


def test_nothing_of_the_judge_imports_what_it_judges() -> None:
    """Nor a test of it: a judge that asks the accused is none."""
    sources = sorted(FOLDER.rglob("*.py"))
    assert len(sources) >= 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert [name for name in names if name.partition(".")[0] == "trimtab"] == [], source
            first = [name.split(".")[:2] for name in names if name.startswith("tests")]
            assert all(name in (["tests", "judge"], ["tests", "loopback"]) for name in first), source


def test_the_readme_lists_every_rule_with_its_source() -> None:
    """A rule without a source is an opinion."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = {line for line in page.splitlines() if line.startswith("| `")}
    wanted = {f"| `{name}` | {table[name].source} |" for table, name in RULES}
    assert rows == wanted


def test_a_result_without_a_call_is_the_same_wherever_it_stands() -> None:
    """Behind another call the provider words it otherwise; it is not a new fault when that call leaves."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = {"role": "user", "content": "Hi"}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    results = [{"role": "tool", "tool_call_id": id_, "content": "ok"} for id_ in ("c1", "c2")]
    before = {"messages": [asked, calls, *results]}
    after = {"messages": [asked, results[1]]}
    assert [one.rule for one in judge("openai_chat", before)] == ["result_of_another_call"]
    assert [one.rule for one in judge("openai_chat", after)] == ["result_without_call"]
    assert newly_refused("openai_chat", before, after) == []
    assert newly_refused("openai_chat", {"messages": [asked]}, after) != []


@pytest.mark.parametrize("form", FORMS)
def test_what_was_refused_before_is_not_newly_refused(form: str) -> None:
    """Refusals are compared by what they are about: an eviction before them moves their places."""
    for case in CASES[form]:
        request = case.request()
        assert newly_refused(form, request, request) == []
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    longer = copy.deepcopy(CASES[form][-1].request())
    opening = {
        "gemini": {"role": "user", "parts": [{"text": "Hello."}]},
        "bedrock": {"role": "user", "content": [{"text": "Hello."}]},
    }
    longer[key].insert(0, opening.get(form, {"role": "user", "content": "Hello."}))
    assert newly_refused(form, longer, CASES[form][-1].request()) == []


WORDS = sorted(
    {
        *(
            "type",
            "role",
            "content",
            "text",
            "id",
            "call_id",
            "tool_calls",
            "tool_call_id",
            "function",
            "name",
        ),
        *("arguments", "messages", "input", "contents", "parts", "functionCall", "function_response"),
        *("tool_use", "tool_result", "tool_use_id", "thinking", "user", "assistant", "model", "tool"),
        *(
            "message",
            "function_call",
            "function_call_output",
            "reasoning",
            "output",
            "cache_control",
            "tools",
        ),
        *("toolUse", "toolResult", "toolUseId", "cachePoint", "reasoningContent", "json", "document"),
        *("server_tool_use", "item_reference", "input_text", "signature", "response", "args", "system"),
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda child: st.lists(child, max_size=4) | st.dictionaries(st.sampled_from(WORDS), child, max_size=6),
    max_leaves=30,
)
BODY = st.dictionaries(
    st.sampled_from(["messages", "input", "contents", "system", "tools", "model", "thinking"]),
    JSON | st.lists(JSON, max_size=5),
    max_size=4,
)


@given(st.sampled_from(FORMS), BODY | JSON, BODY)
def test_any_json_is_judged(form: str, odd: Any, body: dict[str, Any]) -> None:
    """Of the wrong shape it is refused, never a crash."""
    if not isinstance(odd, dict):
        assert judge(form, odd) != []
    assert newly_refused(form, body, body) == []
    newly_refused(form, odd, body)
    newly_refused(form, body, odd)


TAKEN_TODAY = {
    "first_role": ["test_anthropic_model_empty_message_on_history#0"],
    "empty_text": [
        "test_google_instructions_only_with_tool_calls#1",
        "test_google_instructions_only_with_tool_calls#3",
        "test_google_instructions_only_with_tool_calls#4",
        "test_google_model_empty_assistant_response#0",
    ],
}
"""What the first endpoints take and others refuse: the rules that say `elsewhere`."""


def test_every_request_that_was_answered_is_accepted(data_dir: Path) -> None:
    """600 recorded requests with a bill: where the judge refuses one, the judge is wrong.

    But for the rules that say that they hold elsewhere, request by request.
    """
    refused: dict[str, list[str]] = {}
    forms: dict[str, int] = dict.fromkeys(FORMS, 0)
    for name, form, body in recorded(data_dir / "golden_usage.jsonl"):
        forms[form] += 1
        for refusal in judge(form, body):
            refused.setdefault(refusal.rule, []).append(name)
            assert TABLES[form][refusal.rule].elsewhere, (name, refusal)
    assert refused == TAKEN_TODAY
    assert all(forms[form] >= 70 for form in FORMS if form != "bedrock"), forms  # of it none are bills


def test_every_recorded_chat_is_accepted(data_dir: Path) -> None:
    """Of GPT-4o in an airline's service, and of the chats that OpenAI answered."""
    count = 0
    for file in ("tau_airline_gpt4o.jsonl", "pydantic_ai_chats.jsonl"):
        for line in (data_dir / file).read_text(encoding="utf-8").splitlines():
            chat = json.loads(line)
            if file.startswith("tau") or chat["id"].startswith("api.openai.com:"):
                count += 1
                assert judge("openai_chat", chat) == [], chat["id"]
    assert count > 150
