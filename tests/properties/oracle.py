"""The rules of SPEC A, restated in quadratic time on dicts. Imports nothing of trimtab."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

Messages = Sequence[Mapping[str, Any]]
Count = Callable[[list[Any]], int]


class Group(NamedTuple):
    """Messages that stay or leave together, and whether they may."""

    indices: tuple[int, ...]
    state: str


def call_ids(message: Mapping[str, Any]) -> list[str]:
    """Ids a message calls; a call in the old way has none, and is known by its function."""
    old = [f"function:{message['function_call']['name']}"] if "function_call" in message else []
    return [*(call["id"] for call in message.get("tool_calls") or ()), *old]


def answered_id(message: Mapping[str, Any]) -> str | None:
    """Id of the call a message answers; None if it answers none."""
    if message["role"] == "function":
        return f"function:{message['name']}"
    return message["tool_call_id"] if message["role"] == "tool" else None


def owners(messages: Messages) -> dict[int, int | None]:
    """SPEC G: a result answers the nearest earlier unanswered call with its id.

    A further one belongs to the nearest earlier call with its id (research: reported as repeated).
    """
    answered: set[tuple[int, str]] = set()
    found: dict[int, int | None] = {}
    for at, message in enumerate(messages):
        call_id = answered_id(message)
        if call_id is None:
            continue
        earlier = [i for i in range(at) if call_id in call_ids(messages[i])]
        waiting = [i for i in earlier if (i, call_id) not in answered]
        if waiting:
            answered.add((waiting[-1], call_id))
        found[at] = (waiting or earlier or [None])[-1]
    return found


def unanswered(messages: Messages) -> set[tuple[int, str]]:
    """Calls nothing answers."""
    made = {(at, call_id) for at, message in enumerate(messages) for call_id in call_ids(message)}
    owner = owners(messages)
    return made - {(call, answered_id(messages[at])) for at, call in owner.items() if call is not None}


def open_calls(messages: Messages, pending: Collection[str] = ()) -> set[tuple[int, str]]:
    """SPEC A4b: no user message and no later model turn follows, or the id is pending."""
    turns = [at for at, message in enumerate(messages) if message["role"] in ("user", "assistant")]
    last = turns[-1] if turns else -1
    return {(at, call_id) for at, call_id in unanswered(messages) if at >= last or call_id in pending}


def violations(messages: Messages, pending: Collection[str] = ()) -> set[tuple[int, str, str]]:
    """SPEC A2: (position, what is wrong, call id)."""
    owner = owners(messages)
    found = {(at, "unanswered", i) for at, i in unanswered(messages) - open_calls(messages, pending)}
    seen: set[tuple[int, str]] = set()
    for at, call in owner.items():
        call_id = answered_id(messages[at])
        if call is None:
            found.add((at, "orphan", call_id))
            continue
        if (call, call_id) in seen:
            found.add((at, "repeated", call_id))
        elif any(owner.get(between) != call for between in range(call + 1, at)):
            found.add((at, "late", call_id))
        seen.add((call, call_id))
    return found


def groups(messages: Messages, *, pins: Collection[int] = (), pending: Collection[str] = ()) -> list[Group]:
    """SPEC A4: what stays or leaves together, in order of its first message, with its state."""
    owner = owners(messages)
    members: dict[int, list[int]] = {}
    for at in range(len(messages)):
        call = owner.get(at)
        members.setdefault(at if call is None else call, []).append(at)
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    head = next((at for at, m in enumerate(messages) if m["role"] not in SYSTEM), len(messages))
    pinned = {*pins, *range(head), *users[-1:]}
    held = {len(messages) - 1, *(at for at, _ in open_calls(messages, pending))}
    return [
        Group(tuple(indices), "pinned" if pinned & {*indices} else "held" if held & {*indices} else "free")
        for _, indices in sorted(members.items())
    ]


def compacts(message: Mapping[str, Any]) -> bool:
    """Tell whether a message of Anthropic's holds a compaction."""
    blocks = message["content"] if isinstance(message.get("content"), list) else []
    return any(block.get("type") == "compaction" and block.get("content") for block in blocks)


def unread(messages: Messages) -> range:
    """What Anthropic neither reads nor charges: all before the model's latest compaction but system text."""
    last = max((at for at, message in enumerate(messages) if compacts(message)), default=0)
    if last == 0 or messages[last]["role"] != "assistant":
        return range(0)
    head = next(at for at, message in enumerate(messages) if message["role"] not in SYSTEM)
    return range(head, last)


SYSTEM = ("system", "developer")


def chosen(messages: Messages, indices: Collection[int]) -> list[Any]:
    """Pick messages by position."""
    return [messages[at] for at in sorted(indices)]


def staying(messages: Messages, **how: Any) -> list[int]:
    """Positions of what is pinned or held."""
    return sorted(at for group in groups(messages, **how) if group.state != "free" for at in group.indices)


def least_tokens(messages: Messages, count: Count, marker: str, **how: Any) -> int:
    """SPEC A4: pinned and held at their shortest: each text its marker where that is smaller."""
    parted = groups(messages, **how)
    at_least = [copy.deepcopy(dict(message)) for message in messages]
    for group in parted:
        for at in group.indices if group.state == "held" else ():
            shorten(at_least[at], count, marker)
    return count(chosen(at_least, staying(messages, **how)))


def shorten(message: dict[str, Any], count: Count, marker: str) -> None:
    """Put the marker in place of each text of a message, where that makes it smaller."""
    if isinstance(message.get("content"), str):
        _shorten_at(message, message, "content", count, marker)
    elif isinstance(message.get("content"), list):
        for part in message["content"]:
            _shorten_at(message, part, "text", count, marker)


def _shorten_at(message: dict[str, Any], holder: dict[str, Any], key: str, count: Count, marker: str) -> None:
    before, text = count([message]), holder[key]
    holder[key] = marker
    if count([message]) >= before:
        holder[key] = text


def without_texts(message: Any) -> Any:
    """What of a message may never change; a result that is cleared says so in one part."""
    bare = copy.deepcopy(dict(message))
    if isinstance(bare.get("content"), str):
        bare["content"] = ""
    elif isinstance(bare.get("content"), list):
        parts = [{**part, "text": ""} for part in bare["content"]]
        texts = bare.get("role") == "tool" and all(part.get("type") == "text" for part in parts)
        bare["content"] = parts[:1] if texts else parts
    return bare
