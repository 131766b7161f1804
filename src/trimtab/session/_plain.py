"""Copies of plain data: what goes into the log, what comes out of it, and what redaction leaves of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats import mapping_of
from trimtab.formats._base import shown

__all__ = ["copied", "plain_message", "redacted"]

_DEEPEST = 200
"""Levels of nesting a message may have; JSON of other languages reads no more."""


def plain_message(message: Any, /) -> dict[str, Any]:
    """Return a deep copy of a message that is plain data, so that it reads the same from any store.

    Raises:
        FormatError: It is no message, or holds what JSON cannot; `.path` says where.
    """
    return {key: _plain(value, f"message.{key}", 1) for key, value in _items(mapping_of(message), "message")}


def _plain(value: Any, path: str, depth: int) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if depth > _DEEPEST:
        raise FormatError(f"{path[:80]}… is nested more than {_DEEPEST} levels deep", path=path[:80])
    if isinstance(value, Mapping):
        return {key: _plain(one, f"{path}.{key}", depth + 1) for key, one in _items(value, path)}
    if isinstance(value, (list, tuple)):
        return [_plain(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(value)]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return _plain(dump(), path, depth + 1)
    raise FormatError(
        f"{path} is {shown(value)} ({type(value).__name__}): a session keeps plain data, as JSON has it",
        path=path,
    )


def _items(value: Mapping[Any, Any], path: str) -> list[tuple[str, Any]]:
    for key in value:
        if not isinstance(key, str):
            raise FormatError(f"{path} has the key {shown(key)}, which is no text", path=path)
    return list(value.items())


def copied(value: Any, /) -> Any:
    """Copy plain data, so that whoever changes the copy changes no session."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [copied(one) for one in value]
    return value


REDACTED = "[redacted]"


def redacted(message: dict[str, Any], /) -> dict[str, Any]:
    """Return a message that says nothing any more and is as valid as it was.

    What stays is who says it and which call it makes or answers, where the wire form has that and nowhere
    else: role, ids of calls, the name that is the id of a call without one, kinds of parts and of calls.

    Example:
        >>> redacted({"role": "user", "content": "my number is 5", "mood": {"of": "Ada"}})
        {'role': 'user', 'content': '[redacted]', 'mood': {}}
    """
    made = {key: _said(message, key, value) for key, value in message.items() if key != "audio"}
    if "audio" in message and message.get("content") is None:
        made["content"] = REDACTED  # a provider looks up what was said by its id: it goes as a whole
    return made


def _said(message: dict[str, Any], key: str, value: Any) -> Any:
    if key in ("role", "tool_call_id") and isinstance(value, str):
        return value
    if key == "name" and isinstance(value, str):  # has to stay a name
        return value if message.get("role") == "function" else "redacted"
    if key == "content" and isinstance(value, list):
        return [_part(one) for one in value]
    if key == "tool_calls" and isinstance(value, list):
        return [_call(one) for one in value]
    if key == "function_call" and isinstance(value, dict):
        return {**_called(value), **{name: value[name] for name in ("name",) if name in value}}
    return _blank(value)


def _part(part: Any) -> Any:
    """Put a text in the place of a part; of an image, sound or file, too: a provider would look at it."""
    if not isinstance(part, dict):
        return _blank(part)
    kind = "refusal" if part.get("type") == "refusal" else "text"
    return {"type": kind, kind: REDACTED}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return _blank(call)
    made = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    if call.get("type") in ("function", "custom"):
        made["type"] = call["type"]
    return {**made, **{key: _called(call[key]) for key in ("function", "custom") if key in call}}


def _called(function: Any) -> Any:
    """Blank a called function: its name has to stay a name, and its arguments JSON."""
    if not isinstance(function, dict):
        return _blank(function)
    valid = {"name": "redacted", "arguments": "{}", "input": REDACTED}
    return {
        key: valid[key] if isinstance(value, str) else _blank(value)
        for key, value in function.items()
        if key in valid
    }


def _blank(value: Any) -> Any:
    """Return a value of the same kind that says nothing."""
    return None if value is None else REDACTED if isinstance(value, str) else type(value)()
