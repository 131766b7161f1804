"""The proxy, started for real before a provider that judges: the requests of real clients, 64 at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anthropic import Anthropic
from anthropic import BadRequestError as AnthropicBadRequestError
from openai import BadRequestError, OpenAI

from tests.integrations.litellm.proxy import Proxy, proxy
from tests.integrations.loops import Says
from tests.integrations.upstream import WRITERS
from tests.judge import judge
from tests.judge.server import Provider, provider
from tests.judge.talks import talk
from trimtab import Budget, counter_for, fit
from trimtab.counting import measure

BUDGET_TOKENS = 1_500
AT_A_TIME = 64
ROUNDS = 4

BILLED = "[client 900]"
"""Whose requests are billed three tokens for two that are counted."""


def _echo(form: str, body: dict[str, Any]) -> Any:
    """Answer with the label of the newest question; where that is billed, say how much."""
    [label] = set(re.findall(r"\[client \d+\]", str(body)))
    answer = WRITERS[form](Says(label), str(body["model"]), 1)
    if label != BILLED:
        return answer
    tokens = _charged(form, body) * 3 // 2
    if form == "openai_chat":
        parts = {"prompt_tokens_details": {"cached_tokens": 0}}
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1, **parts}
    else:
        parts = {"input_tokens_details": {"cached_tokens": 0}} if form == "openai_responses" else {}
        usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1, **parts}
    return {**answer, "usage": usage}


def _charged(form: str, body: dict[str, Any]) -> int:
    return measure(body, counter=counter_for("gpt-4o"), format=form).tokens


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Provider, Proxy]]:
    """A provider that judges, and the proxy before it."""
    with provider(_echo) as upstream, proxy(upstream.address, budget_tokens=BUDGET_TOKENS) as running:
        yield upstream, running


@pytest.fixture
def clients(served: tuple[Provider, Proxy]) -> Iterator[tuple[OpenAI, Anthropic]]:
    """OpenAI's and Anthropic's own clients of the proxy."""
    upstream, running = served
    upstream.bodies.clear()
    shared: Any = {"api_key": running.key, "max_retries": 0, "timeout": 120}
    with (
        OpenAI(base_url=f"{running.address}/v1", **shared) as openai,
        Anthropic(base_url=running.address, **shared) as anthropic,
    ):
        yield openai, anthropic


def _body(form: str, model: str, label: str, turns: int = 24) -> dict[str, Any]:
    """Make a request that is several times the budget, whose newest question has a label."""
    key = "input" if form == "openai_responses" else "messages"
    body = {**talk(form, turns), "model": model}
    asked = {"role": "user", "content": f"{label} What did you see?"}
    return {**body, key: [*body[key][:-1], asked]}


def _ask(clients: tuple[OpenAI, Anthropic], number: int) -> tuple[str, str]:
    """Ask by one of three APIs, every second time streamed; returns what was asked and answered."""
    openai, anthropic = clients
    label, form, model, is_streamed = f"[client {number}]", *KINDS[number % len(KINDS)]
    body = _body(form, model, label)
    if form == "openai_chat":
        if not is_streamed:
            return label, openai.chat.completions.create(**body).choices[0].message.content or ""
        chunks = openai.chat.completions.create(**body, stream=True)
        return label, "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    if form == "openai_responses":
        if not is_streamed:
            return label, openai.responses.create(**body).output_text
        events = openai.responses.create(**body, stream=True)
        return label, "".join(one.delta for one in events if one.type == "response.output_text.delta")
    if not is_streamed:
        return label, anthropic.messages.create(**body).content[0].text
    with anthropic.messages.stream(**body) as stream:
        return label, stream.get_final_text()


KINDS = [
    (form, model, is_streamed)
    for form, model in (
        ("openai_chat", "gpt"),
        ("openai_responses", "gpt"),
        ("anthropic", "claude"),
        ("openai_chat", "claude"),
        ("anthropic", "gpt"),
    )
    for is_streamed in (False, True)
]
"""Forms and models: the provider's own form, and one that LiteLLM translates."""


def test_sixty_four_at_a_time_are_valid_within_the_budget_and_each_has_its_answer(
    served: tuple[Provider, Proxy], clients: tuple[OpenAI, Anthropic]
) -> None:
    """Plain and streamed, in the provider's own form and translated: none invalid, none over, none lost."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        answers = list(pool.map(lambda number: _ask(clients, number), range(AT_A_TIME * ROUNDS)))
    assert [pair for pair in answers if pair[0] != pair[1]] == []
    bodies = served[0].bodies
    assert len(bodies) == AT_A_TIME * ROUNDS
    assert [words for form, body in bodies for words in judge(form, body)] == []
    tokens = [
        fit(body, Budget(10**7), counter=counter_for("gpt-4o"), format=form).report.tokens_after
        for form, body in bodies
    ]
    assert max(tokens) <= BUDGET_TOKENS
    assert sum(tokens) / len(tokens) > 0.4 * BUDGET_TOKENS
    assert set(Counter(form for form, _ in bodies)) == {"openai_chat", "openai_responses", "anthropic"}


def test_headers_of_an_answer_say_what_was_done(clients: tuple[OpenAI, Anthropic]) -> None:
    """Of each API, plain and streamed; what is small enough is sent whole."""
    openai, anthropic = clients
    long, short = (_body("openai_chat", "gpt", "[client 1]", turns) for turns in (24, 1))
    message = _body("anthropic", "claude", "[client 1]")
    items = _body("openai_responses", "gpt", "[client 1]")
    raw: list[Any] = [
        openai.chat.completions.with_raw_response.create(**long),
        openai.chat.completions.with_raw_response.create(**long, stream=True),
        openai.responses.with_raw_response.create(**items),
        openai.responses.with_raw_response.create(**items, stream=True),
        anthropic.messages.with_raw_response.create(**message),
        anthropic.messages.with_raw_response.create(**message, stream=True),
    ]
    for answer in raw:
        before, after, evicted = _said(answer.headers)
        assert evicted > 0
        assert after <= BUDGET_TOKENS < before
    before, after, evicted = _said(openai.chat.completions.with_raw_response.create(**short).headers)
    assert (before, evicted) == (after, 0)


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["plain", "streamed"])
def test_what_a_provider_bills_is_learned_behind_the_proxy(
    served: tuple[Provider, Proxy], clients: tuple[OpenAI, Anthropic], form: str, *, is_streamed: bool
) -> None:
    """Of a stream LiteLLM tells a little later: the same is asked until it did."""
    openai, anthropic = clients
    said = [
        {"role": role, "content": f"{BILLED} {form} {is_streamed} {turn}: " + "It is sunny. " * 9}
        for turn in range(3)
        for role in ("user", "assistant")
    ][:-1]
    asks: dict[str, Any] = {
        "openai_chat": lambda: openai.chat.completions.with_raw_response.create(
            model="gpt",
            messages=said,
            **({"stream": True, "stream_options": {"include_usage": True}} if is_streamed else {}),
        ),
        "openai_responses": lambda: openai.responses.with_raw_response.create(
            model="gpt", input=said, stream=is_streamed
        ),
        "anthropic": lambda: anthropic.messages.with_raw_response.create(
            model="claude", messages=said, max_tokens=9, stream=is_streamed
        ),
    }
    counts: list[int] = []
    for _ in range(100):
        answer = asks[form]()
        counts.append(_said(answer.headers)[1])
        if is_streamed:
            list(answer.parse())
        if counts[-1] > 1.3 * counts[0]:
            break
    billed = _charged(*served[0].bodies[-1]) * 3 // 2
    assert abs(counts[-1] - billed) <= len(said)


def _said(headers: Any) -> tuple[int, int, int]:
    before, after = headers["x-trimtab-tokens-before"], headers["x-trimtab-tokens-after"]
    return int(before), int(after), int(headers["x-trimtab-evicted-messages"])


def test_what_cannot_fit_is_answered_with_status_400(
    served: tuple[Provider, Proxy], clients: tuple[OpenAI, Anthropic]
) -> None:
    """By each API, plain and streamed, with the numbers; nothing is sent to the provider."""
    openai, anthropic = clients
    question: Any = [{"role": "user", "content": "word " * 4_000}]
    for stream in (False, True):
        with pytest.raises(BadRequestError, match=r"(?i)budget"):
            openai.chat.completions.create(model="gpt", messages=question, stream=stream)
        with pytest.raises(BadRequestError, match=r"(?i)budget"):
            openai.responses.create(model="gpt", input=question, stream=stream)
        with pytest.raises(AnthropicBadRequestError, match=r"(?i)budget"):
            anthropic.messages.create(model="claude", messages=question, max_tokens=9, stream=stream)
    assert served[0].bodies == []
