"""Judge an output with nothing of trimtab and nothing of the plain loop.

Texts are encoded to ids and the ids counted, the formula is written a second time, and the rules of a valid
request are checked from the front.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from conversations import Message, Messages
from formula import ENCODING


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an output is worth."""

    messages: int
    tokens: int
    valid: bool
    """No result without its call, no call without its results that the input did not lack them for."""
    within_budget: bool
    budget_share: float
    """Tokens used of the budget, 0 to 1."""
    remarks: list[str]
    """Every fault in words, and what is lost although it matters; empty if there is nothing to say."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def judge(output: Messages, *, given: Messages, budget: int) -> Verdict:
    """Recount and check `output`, which a contender made of `given`."""
    tokens = recount(output)
    broken = faults(output, already_open=unanswered(given))
    remarks = broken + losses(output, given)
    if tokens > budget:
        remarks.insert(0, f"over budget by {tokens - budget:,}")
    return Verdict(
        messages=len(output),
        tokens=tokens,
        valid=bool(output) and not broken,
        within_budget=tokens <= budget,
        budget_share=tokens / budget,
        remarks=remarks,
    )


def recount(messages: Messages) -> int:
    """Return the tokens of a request, each text encoded anew."""
    return 3 + sum(sum(_parts(message)) for message in messages)


def _parts(message: Message) -> Iterator[int]:
    yield 3
    yield 1
    yield _encoded(message.get("content") or "")
    if message["role"] != "tool" and message.get("name"):
        yield 1 + _encoded(message["name"])
    calls = message.get("tool_calls") or []
    for call in calls:
        yield 2 * _encoded(call["function"]["name"]) + _encoded(call["function"]["arguments"]) + 5
    if len(calls) >= 2:
        yield 13


def _encoded(text: str) -> int:
    return len(ENCODING.encode(text))


def faults(messages: Messages, *, already_open: frozenset[str] = frozenset()) -> list[str]:
    """Return in words what a provider would refuse; calls in `already_open` had no answer in the input."""
    asked: set[str] = set()
    orphans = missing = 0
    for message in messages:
        if message["role"] != "tool":
            missing += len(asked - already_open)
            asked = set(_call_ids(message))
        elif message["tool_call_id"] in asked:
            asked.remove(message["tool_call_id"])
        else:
            orphans += 1
    missing += len(asked - already_open)
    found = []
    if orphans:
        found.append(f"{orphans} orphan result{'s' * (orphans > 1)}")
    if missing:
        found.append(f"{missing} unanswered call{'s' * (missing > 1)}")
    return found if messages else ["empty"]


def unanswered(messages: Messages) -> frozenset[str]:
    """Return the ids of calls that nothing in `messages` answers."""
    answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    return frozenset(call_id for message in messages for call_id in _call_ids(message)) - answered


def losses(output: Messages, given: Messages) -> list[str]:
    """Return in words what is gone or changed although no provider refuses it."""
    whole = {_key(message) for message in given}
    kept = {_key(message) for message in output}
    users = [message for message in given if message["role"] == "user"]
    found = []
    if given and given[0]["role"] == "system" and _key(given[0]) not in kept:
        found.append("system message lost or changed")
    if users and _key(users[-1]) not in kept:
        found.append("latest user message lost")
    changed = len(kept - whole)
    if changed:
        found.append(f"{changed} message{'s' * (changed > 1)} changed")
    first = next((message["role"] for message in output if message["role"] != "system"), "")
    if first not in ("", "user"):
        found.append(f"starts with {first}")
    return found


def _call_ids(message: Message) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or []]


def _key(message: Message) -> str:
    return json.dumps(message, sort_keys=True)
