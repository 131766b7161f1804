"""Agents that think, in Chat Completions: gateways and frameworks send a Claude the turns in its own form.

The conversations are those of test_thinking_turns, as LiteLLM writes them (`thinking_blocks` beside the
content) or LangChain (parts of the content); what is sent is what these make of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tests import judge
from tests.sizes import sizes
from tests.test_thinking_turns import STRATEGIES, bodies, shares
from trimtab import BudgetExceededError, Fitted, PriorityBased, fit
from trimtab.counting import CharCounter

Body = dict[str, Any]


def _beside(blocks: Sequence[Body], thoughts: Sequence[Body]) -> Body:
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return {"content": text or None, **({"thinking_blocks": [*thoughts]} if thoughts else {})}


def _as_parts(blocks: Sequence[Body], thoughts: Sequence[Body]) -> Body:
    return {"content": [*thoughts, *(block for block in blocks if block["type"] == "text")] or None}


WAYS = {"beside": _beside, "as parts": _as_parts}


def _in_chat(message: Body, write: Callable[[Sequence[Body], Sequence[Body]], Body]) -> Iterator[Body]:
    """Write a message of Anthropic's form as those that a framework keeps."""
    blocks = message["content"]
    if message["role"] == "assistant":
        thoughts = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
            }
            for block in blocks
            if block["type"] == "tool_use"
        ]
        yield {"role": "assistant", **write(blocks, thoughts), **({"tool_calls": calls} if calls else {})}
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}
    for block in blocks:
        if block["type"] == "text":
            yield {"role": "user", "content": block["text"]}


def _sent(messages: Sequence[Body]) -> list[Body]:
    """Write them as the provider is sent them: results are the user's."""
    made: list[Body] = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else [*(content or ())]
        role = "assistant" if message["role"] == "assistant" else "user"
        if message["role"] == "tool":
            parts = [
                {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            ]
        parts = [*message.get("thinking_blocks", ()), *parts]
        parts += [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
            for call in message.get("tool_calls", ())
        ]
        if made and made[-1]["role"] == role:
            made[-1]["content"] += parts
        else:
            made.append({"role": role, "content": parts})
    return made


def _fitted(messages: list[Body], budget: int, strategy: Any, model: str) -> Fitted[Any]:
    chosen: Body = {"steady": True} if strategy == "steady" else {"strategy": strategy}
    return fit(messages, budget, model=model, counter=CharCounter(4), format="openai_chat", **chosen)


@pytest.mark.few(1)
@sizes(10, 120)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_a_turn_begins_with_thinking(way: str, size: int) -> None:
    """Whatever the strategy: what the judge refuses of a request, it refused of all messages before."""
    tried = cut = 0
    for body in bodies("anthropic", size):
        messages = [one for message in body["messages"] for one in _in_chat(message, WAYS[way])]
        if judge.judge("anthropic", {**body, "messages": _sent(messages)}):
            continue  # words stand behind results here, and not before them
        for strategy in STRATEGIES:
            for budget in shares(body):
                try:
                    fitted = _fitted(messages, budget, strategy, body["model"])
                except BudgetExceededError:
                    continue
                sent = {**body, "messages": _sent(fitted.messages)}
                refusals = [one.rule for one in judge.judge("anthropic", sent)]
                assert "thinking_must_lead" not in refusals, (strategy, budget, sent)
                tried += 1
                cut += len(fitted.messages) < len(messages)
    assert tried > size * 20
    assert cut > size * 10


def test_a_turn_that_joins_the_newest_question_begins_with_thinking_or_leaves() -> None:
    """What the model thought left, and its answers between a result and the question."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    messages: list[Body] = [{"role": "user", "content": "long " * 25}]
    for at in range(4):
        call = {"id": f"t{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        opening: Body = {"thinking_blocks": [thought]} if not at else {}
        messages += [
            {"role": "assistant", "content": None, **opening, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"t{at}", "content": "sunny"},
            {"role": "assistant", "content": "long " * 25},
            {"role": "user", "content": "and" if at == 3 else "long " * 25},
        ]
    for budget in range(10, 90):
        with suppress(BudgetExceededError):
            fitted = _fitted(messages, budget, PriorityBased(), "claude-sonnet-4-5")
            sent = {"model": "claude-sonnet-4-5", "max_tokens": 9_999, "messages": _sent(fitted.messages)}
            thinks = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
            refusals = [one.rule for one in judge.judge("anthropic", {**sent, **thinks})]
            assert "thinking_must_lead" not in refusals, budget


def test_thinking_that_opens_a_turn_stays_beside_the_cut() -> None:
    """A model thought once and then called tools eight times: the default loses the middle of the turn."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    messages: list[Body] = [{"role": "user", "content": "Look around."}]
    for at in range(8):
        call = {"id": f"t{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        opening: Body = {"thinking_blocks": [thought]} if not at else {}
        messages += [
            {"role": "assistant", "content": None, **opening, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"t{at}", "content": "sunny " * 50},
        ]
    fitted = _fitted(messages, 400, None, "claude-sonnet-4-5")
    assert len(fitted.messages) < len(messages)
    assert fitted.messages[:3] == messages[:3]
    assert fitted.messages[-2:] == messages[-2:]
    other = _fitted(messages, 400, None, "gpt-4o")
    assert messages[1] not in other.messages, "no other model asks for it"
