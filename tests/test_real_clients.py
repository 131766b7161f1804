"""Requests of all forms in the types of the providers' packages, and sent by their clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.judge import FORMS, ORIGINS, accepts, judge, newly_refused
from tests.judge._broken import Broken
from tests.judge.clients import OWN, accepted, place, refusal
from tests.judge.converse import in_converse
from tests.judge.recorded import recorded
from tests.judge.talks import talk
from tests.judge.types import check_types
from tests.test_judge import CASES, EVERY
from trimtab import (
    Budget,
    BudgetExceededError,
    Cascade,
    CharCounter,
    ClearToolResults,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Summarize,
    TruncateText,
    fit,
)
from trimtab.formats import formats
from trimtab.strategies import Strategy

HERE = [form for form in FORMS if form in formats()]
"""Forms that trimtab fits."""
SHARES = (0.9, 0.6, 0.3, 0.15, 0.05)
"""Of the tokens of a request: the budgets it is fitted to."""


@pytest.mark.parametrize("form", FORMS)
def test_a_long_conversation_is_accepted_by_judge_types_and_client(form: str) -> None:
    """What the tests below are fitted from is a request the provider takes."""
    for turns in (1, 2, 3, 12):
        body = talk(form, turns)
        assert judge(form, body) == []
        assert check_types(form, body) == []
        assert accepted(form, body)


CHECKED_BY_CLIENT = {
    "gemini": ("no_contents", "wrong_type", "unknown_field", "list_for_object"),
    "bedrock": ("missing_member", "wrong_type", "union_of_one"),
}
"""Rules of which a broken request is not sent: these clients build their types first."""


@pytest.mark.parametrize(("form", "case"), EVERY)
def test_the_real_client_raises_the_words_of_the_provider(form: str, case: Broken) -> None:
    """And gets an answer to the request the broken one was made from."""
    assert accepted(form, case.valid)
    words = refusal(form, case.request())
    if case.rule in ORIGINS.get(form, ()):  # only what was said before shows these
        assert words is None
    elif words is not None and words.startswith(OWN):
        assert case.rule in CHECKED_BY_CLIENT[form]
    else:
        assert words in {one.words for one in judge(form, case.request())}


def test_the_clients_sent_what_the_judge_read() -> None:
    """The server saw the body itself, with the model of its path."""
    for form in FORMS:
        body = talk(form, 3)
        assert accepted(form, body)
        seen_form, seen = place().bodies[-1]
        key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
        named = "modelId" if form == "bedrock" else "model"
        assert (seen_form, seen[named]) == (form, body[named])
        assert len(seen[key]) == len(body[key])


CAUGHT = {
    "openai_chat": {
        *("missing_parameter", "wrong_type", "unknown_role", "unknown_part", "image_outside_user"),
        *("null_content", "calls_outside_assistant", "missing_tool_call_id"),
    },
    "openai_responses": {
        *("missing_parameter", "wrong_type", "unknown_role", "chat_parameter", "unknown_part"),
        *("part_of_another_role", "wrong_id_prefix", "unknown_type"),
    },
    "anthropic": {"field_required", "wrong_type", "unknown_role", "unknown_block", "unsigned_thinking"},
    "gemini": {"wrong_type", "unknown_field", "list_for_object"},
    "bedrock": {"missing_member", "wrong_type", "union_of_one"},
}
"""All that the types of the packages know of the rules. Pairs, order, emptiness and lengths they do not."""


@pytest.mark.parametrize("form", FORMS)
def test_types_catch_wrong_shapes_and_nothing_of_order(form: str) -> None:
    """A missing key, an unknown one, a value of another type; for the rest there is the judge."""
    assert [case.rule for case in CASES[form] if check_types(form, case.valid)] == []
    assert {case.rule for case in CASES[form] if check_types(form, case.request())} == CAUGHT[form]


def test_types_read_what_is_lazy_in_the_packages() -> None:
    """`Iterable` fields are read in full: content of messages, tool calls, blocks within results."""
    part = {"type": "text"}
    call = {"id": "c", "type": "function", "function": {"name": "f"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [part]}
    assert check_types("openai_chat", {"messages": [{"role": "user", "content": [part]}]})
    assert check_types("openai_chat", {"messages": [{"role": "assistant", "tool_calls": [call]}]})
    assert check_types("anthropic", {"messages": [{"role": "user", "content": [part]}]})
    assert check_types("anthropic", {"messages": [{"role": "user", "content": [result]}]})
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    assert check_types("openai_responses", {"input": [{**said, "content": [{"type": "output_text"}]}]})
    assert check_types("openai_chat", {"messages": [{"role": "user", "content": "a", "colour": "red"}]})


UNTYPED = ["test_openai_responses_image_generation_with_tool_output#1"]
"""An image_generation_call without its result: the API takes it, the package's type asks for it."""


def test_every_recorded_request_is_of_the_types(data_dir: Path) -> None:
    """632 requests that were answered, with no key that the packages don't know."""
    found = list(recorded(data_dir / "golden_usage.jsonl"))
    assert len(found) > 600
    assert [name for name, form, body in found if check_types(form, body)] == UNTYPED


def fitted(form: str, body: dict[str, Any], strategy: Strategy | None = None) -> Iterator[dict[str, Any]]:
    """Yield a request fitted to several budgets, where what must stay has room."""
    counter = CharCounter()
    whole = fit(body, Budget(10_000_000), format=form, counter=counter).count_all().tokens_before
    assert whole is not None
    for share in SHARES:
        try:
            budget = max(1, int(whole * share))
            yield fit(body, budget, format=form, counter=counter, strategy=strategy).request
        except BudgetExceededError:
            continue


def is_taken(form: str, body: dict[str, Any], request: dict[str, Any]) -> bool:
    """Say whether judge, types and client all take a request made from an accepted one.

    Types of the packages lag behind the APIs: a request they don't know whole is not checked by them.
    """
    assert newly_refused(form, body, request) == []
    if not check_types(form, body):
        assert check_types(form, request) == []
    return accepted(form, request)


@pytest.mark.parametrize("form", HERE)
def test_a_fitted_conversation_is_accepted(form: str) -> None:
    """Of every form that trimtab has, to every budget that what must stay leaves room for."""
    sizes = set()
    for turns in (3, 8, 14):
        body = talk(form, turns)
        for request in fitted(form, body):
            sizes.add(len(json.dumps(request)))
            assert is_taken(form, body, request)
    assert len(sizes) >= 6


STRATEGIES = [
    Cascade(ClearToolResults(keep_results=0), SlidingWindow()),
    DropNewest(),
    PriorityBased(),
    SlidingWindow(keep_turns=True, keep_first_user=True),
    Summarize(lambda *_, **__: "Short.", max_summary_tokens=50),
    TruncateText("both"),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
@pytest.mark.parametrize("form", HERE)
def test_what_any_strategy_leaves_is_accepted(form: str, strategy: Strategy) -> None:
    """Whatever leaves first: results, the oldest, the newest, the least important, what is summed up."""
    body = talk(form, 9)
    requests = list(fitted(form, body, strategy))
    assert any(request != body for request in requests)
    assert all(is_taken(form, body, request) for request in requests)


def as_recorded(data_dir: Path, form: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the recorded requests; for Converse, of which none are, Anthropic's in its form."""
    for name, its_form, body in recorded(data_dir / "golden_usage.jsonl"):
        if form != "bedrock":
            yield name, its_form, body
        elif its_form == "anthropic" and (written := in_converse(body)) is not None:
            yield name, form, written


@pytest.mark.parametrize("form", HERE)
def test_a_fitted_recorded_request_is_accepted(form: str, data_dir: Path) -> None:
    """Of each form the forty recorded requests with the most messages."""
    bodies = [
        (name, body)
        for name, its_form, body in as_recorded(data_dir, form)
        if its_form == form and accepts(form, body) and not check_types(form, body)
    ]
    bodies.sort(key=lambda pair: -len(json.dumps(pair[1])))
    count = 0
    for name, body in bodies[:40]:
        for request in fitted(form, body):
            count += 1
            assert is_taken(form, body, request), name
    assert count >= 20


def test_a_fitted_recorded_chat_is_accepted(data_dir: Path) -> None:
    """Of an airline's service: up to 60 messages with calls (whose results have a `name` the types lack)."""
    lines = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[::12]:
        body = {"model": "gpt-4o", "messages": json.loads(line)["messages"]}
        for request in fitted("openai_chat", body):
            assert is_taken("openai_chat", body, request)
