"""Streams through a gateway, 64 at a time, beside those of direct calls: the same bytes, and none lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.gateway.gateways import Running, fetch, gateway, talk
from tests.judge.server import Provider, answered, is_streamed, provider

AT_ONCE = 64
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
}


def _answer(form: str, body: dict[str, Any]) -> Any:
    """Answer a numbered question with its number, up to 1,000 times: up to 120 events."""
    number = int(re.findall(r"question (\d+)", json.dumps(body))[-1])
    said = f"{number:04} " * (1 + number * 16)
    whole = json.dumps(answered(form, str(body.get("model"))))
    return json.loads(whole.replace('"ok"', json.dumps(said)))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Provider]]:
    """A gateway before all APIs, which say what they are asked."""
    with provider(_answer) as behind, gateway(behind.address, budgets={"*": "1k"}) as front:
        yield front, behind


def _asked(form: str, number: int) -> dict[str, Any]:
    """Write a request whose answer is streamed; every second one is too long for the budget."""
    said = [*talk(20 * (number % 2)), {"role": "assistant", "content": "Yes."}]
    said.append({"role": "user", "content": f"question {number}"})
    if form == "gemini":
        names = {"user": "user", "assistant": "model"}
        return {
            "contents": [{"role": names[one["role"]], "parts": [{"text": one["content"]}]} for one in said]
        }
    if form == "openai_responses":
        return {"model": "gpt-5", "input": said, "stream": True}
    body = {"model": "gpt-4o" if form == "openai_chat" else "claude-sonnet-4-5", "messages": said}
    return {**body, "max_tokens": 9, "stream": True}


@pytest.mark.parametrize("calls", [320, pytest.param(2_500, marks=pytest.mark.long)])
@pytest.mark.parametrize("form", PATHS)
def test_64_streams_at_a_time_are_equal_byte_for_byte_to_those_of_a_direct_call(
    pair: tuple[Running, Provider], form: str, calls: int
) -> None:
    """None is lost, and each has the events of its own; the long ones are 10,000 calls together."""
    front, behind = pair
    path = PATHS[form]
    bodies = [_asked(form, number) for number in range(AT_ONCE)]
    assert all(is_streamed(path, body) for body in bodies)
    direct = [fetch(behind.address, path, body).body for body in bodies]
    assert len({*direct}) == AT_ONCE
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = [*pool.map(lambda call: front.ask(path, bodies[call % AT_ONCE]), range(calls))]
    assert Counter((one.status, one.line.get("end")) for one in answers) == {(200, "done"): calls}
    assert [call for call in range(calls) if answers[call].body != direct[call % AT_ONCE]] == []
    assert all((one.line["evicted"] > 0) == call % 2 for call, one in enumerate(answers))
