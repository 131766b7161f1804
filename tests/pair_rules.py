"""The pair rules of calls and results restated by brute force, on dicts, sharing no code with ours."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from trimtab.conversation import Violation

USER = {"role": "user", "content": "go on"}
SAYS = {"role": "assistant", "content": "well"}
SYSTEM = {"role": "system", "content": "be kind"}


def calls(*ids: str, content: str | None = None) -> dict[str, Any]:
    """Make an assistant message that calls a tool once for each id."""
    made = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": content, "tool_calls": made}


def answers(call_id: str) -> dict[str, Any]:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": f"result of {call_id}"}


def rules_of(violations: Sequence[Violation]) -> list[tuple[int, str, str | None]]:
    """Write violations as (index, rule, call id)."""
    return [(violation.index, violation.rule, violation.call_id) for violation in violations]


def brute_pairs(messages: Sequence[Mapping[str, Any]]) -> tuple[dict[int, tuple[int | None, bool]], set[Any]]:
    """SPEC G in quadratic time: for each result (owner, repeated), and the calls left unanswered."""
    owner: dict[int, tuple[int | None, bool]] = {}
    answered: set[tuple[int, str]] = set()
    for at, message in enumerate(messages):
        if message["role"] != "tool":
            continue
        call_id = message["tool_call_id"]
        earlier = [i for i in range(at) if call_id in brute_ids(messages[i])]
        unanswered = [i for i in earlier if (i, call_id) not in answered]
        if unanswered:
            answered.add((max(unanswered), call_id))
            owner[at] = (max(unanswered), False)
        else:
            owner[at] = (max(earlier), True) if earlier else (None, False)
    made = {(i, call_id) for i, message in enumerate(messages) for call_id in brute_ids(message)}
    return owner, made - answered


def brute_ids(message: Mapping[str, Any]) -> set[str]:
    """Ids a message calls."""
    return {call["id"] for call in message.get("tool_calls") or ()}


def brute_rules(messages: Sequence[Mapping[str, Any]], pending: Sequence[str]) -> list[Any]:
    """SPEC A4b and G: every pair rule broken, as sorted (index, rule, call id)."""
    owner, unanswered = brute_pairs(messages)
    found: list[tuple[int, str, str]] = []
    for at, (call, repeated) in owner.items():
        call_id = messages[at]["tool_call_id"]
        if call is None:
            found.append((at, "orphan_result", call_id))
        elif repeated:
            found.append((at, "repeated_result", call_id))
        elif any(owner.get(i, (None, False))[0] != call for i in range(call + 1, at)):
            found.append((at, "late_result", call_id))
    for at, call_id in unanswered:
        later = {message["role"] for message in messages[at + 1 :]}
        is_open = call_id in pending or later.isdisjoint({"user", "assistant"})
        found.append((at, "open_call" if is_open else "unanswered_call", call_id))
    return sorted(found)


MESSAGE = st.one_of(
    st.sampled_from([USER, SAYS, SYSTEM]),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(lambda ids: calls(*ids)),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(
        lambda ids: calls(*ids, content="hm")
    ),
    st.sampled_from("abcz").map(answers),
    st.sampled_from("abc").map(answers),
)
CONVERSATION = st.lists(MESSAGE, max_size=12).map(lambda messages: [copy.deepcopy(m) for m in messages])
PENDING = st.lists(st.sampled_from("abc"), max_size=2)
