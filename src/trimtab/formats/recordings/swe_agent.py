"""Trajectories of SWE-agent: `.traj` files, as benchmarks like SWE-bench publish them.

Read are the messages of `history`, as the program itself sends them to a model; where an older or shortened
file has none, what its last step was asked, and what the model answered. Source: SWE-agent 0.6 to 1.1,
sweagent/agent/agents.py and its page "Output files" (2026-11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.recordings import chat
from trimtab.formats.recordings.base import ForeignConversation, Reader, Source, is_list, mappings
from trimtab.formats.values import Dict, short_repr

_PROGRAM = "SWE-agent"

_ROLES = frozenset(("system", "user", "assistant", "tool"))

_ASKED = ("query", "messages")
"""What a step says it sent to the model: since 1.1, and before."""


def _owns(source: Source) -> bool:
    if not isinstance(source, Mapping):
        return False
    steps = list(mappings(source.get("trajectory")))
    if steps and not any("action" in step for step in steps):
        return False
    return bool(steps) or ("trajectory" in source and "history" in source)


def _read(source: Source) -> list[ForeignConversation]:
    assert isinstance(source, Mapping)  # else it is none of these
    key = "history" if source.get("history") else "trajectory"
    listed = source.get(key)
    if not is_list(listed):
        raise FormatError(f"{key} must be a list, not {short_repr(listed)}", path=key)
    if key == "trajectory":
        listed, key = _last_step(listed)
    by_agent: dict[str, list[Dict]] = {}
    agent, has_thinking = "", False
    for index, message in enumerate(listed):
        path = f"{key}[{index}]"
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            raise FormatError(f"{path} must be a mapping with a role of Chat", path=path)
        has_thinking = has_thinking or bool(message.get("thinking_blocks"))
        agent = str(message.get("agent") or agent)  # older files name none
        by_agent.setdefault(agent, []).append(_message(message, path))
    notes = (f"Reasoning is in no message: {chat.WHY_NO_REASONING}.",) if has_thinking else ()
    return [
        ForeignConversation(
            program=_PROGRAM,
            name=name if len(by_agent) > 1 else "",
            format="openai_chat",
            body={"messages": messages},
            notes=notes,
        )
        for name, messages in by_agent.items()
    ]


def _last_step(steps: Sequence[Any]) -> tuple[list[Any], str]:
    """Return what the last step was asked with its answer, and where that is."""
    for at in reversed(range(len(steps))):
        step = steps[at]
        for key in _ASKED if isinstance(step, Mapping) else ():
            if is_list(step.get(key)) and step[key]:
                answer = {"role": "assistant", "content": step.get("response") or ""}
                return [*step[key], answer], f"trajectory[{at}].{key}"
    raise FormatError(
        "the trajectory has no history, and no step says what the model was asked: nothing can be read",
        path="trajectory",
    )


def _message(message: Mapping[str, Any], path: str) -> Dict:
    """Write a message as the program sends it: what it notes beside, as thought and action, is not sent."""
    role, content = message["role"], message.get("content")
    if is_list(content):
        parts = [_part(one, f"{path}.content[{at}]") for at, one in enumerate(content)]
        content = chat.content_of_parts(parts)
    elif not (content is None or isinstance(content, str)):
        raise FormatError(f"{path}.content must be a text or a list of parts", path=f"{path}.content")
    if role == "tool":
        ids = message.get("tool_call_ids")
        call_id = ids[0] if is_list(ids) and ids else message.get("tool_call_id")
        return chat.result(call_id, content or "")
    made: Dict = {"role": role, "content": content if content is not None else ""}
    if role == "assistant" and is_list(message.get("tool_calls")) and message["tool_calls"]:
        made["tool_calls"] = [_call(one, path) for one in message["tool_calls"]]
        made["content"] = content or None
    return made


def _part(part: Any, path: str) -> Dict:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise FormatError(f"{path} must be a part with a type", path=path)
    return {name: value for name, value in part.items() if name != "cache_control"}


def _call(call: Any, path: str) -> Dict:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise FormatError(f"{path}.tool_calls has a call without a function", path=f"{path}.tool_calls")
    return chat.call(call.get("id"), function.get("name"), function.get("arguments"))


READER = Reader(_owns, _read)
"""For `.traj` files."""
