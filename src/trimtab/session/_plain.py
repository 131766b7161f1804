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


_KEPT = frozenset({"role", "type", "id", "tool_call_id", "call_id", "tool_use_id"})
"""Keys whose values say what a message is and what it answers, and nothing that was said."""

_SAID = frozenset({"input", "args", "response", "metadata"})
"""Keys of mappings in which everything was said, names included: arguments and answers of tools."""

REDACTED = "[redacted]"


def redacted(message: dict[str, Any], /) -> dict[str, Any]:
    """Return a message that says nothing any more and is as valid as it was.

    Example:
        >>> redacted({"role": "user", "content": "my number is 5"})
        {'role': 'user', 'content': '[redacted]'}
    """
    return {key: _redacted(key, value) for key, value in message.items()}


def _redacted(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool) or (key in _KEPT and isinstance(value, str)):
        return value
    if key in _SAID and isinstance(value, dict):
        return {}
    if isinstance(value, dict):
        return {name: _redacted(name, one) for name, one in value.items()}
    if isinstance(value, list):
        return [_redacted("", _without_media(one)) for one in value]
    if key == "arguments":  # has to stay JSON
        return "{}"
    if key == "name":  # has to stay a name
        return "redacted"
    return REDACTED if isinstance(value, str) else 0


_MEDIA = frozenset({"image_url", "input_audio", "file", "image", "document"})


def _without_media(part: Any) -> Any:
    """Put a text in the place of an image, sound or file: a provider would look at an address."""
    return (
        {"type": "text", "text": REDACTED} if isinstance(part, dict) and part.get("type") in _MEDIA else part
    )
