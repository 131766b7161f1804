"""Copies of plain data that goes into the log or comes out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.values import message_in, short_repr

_DEEPEST = 200
"""Levels of nesting a message may have; JSON of other languages reads no more."""

_LONGEST_BITS = 14_000
"""Python neither writes nor reads a whole number of more than 4,300 decimal digits."""


def plain_message(message: Any, /) -> dict[str, Any]:
    """Return a deep copy of a message that is plain data, so that it reads the same from any store.

    Raises:
        FormatError: It is no message, or holds what JSON cannot; `.path` says where.
    """
    return {key: _plain(value, f"message.{key}", 1) for key, value in _items(message_in(message), "message")}


def _plain(value: Any, path: str, depth: int) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        if value.bit_length() > _LONGEST_BITS:
            raise FormatError(f"{path} is a number of more than 4,000 digits", path=path)
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
        f"{path} is {short_repr(value)} ({type(value).__name__}): a session stores plain data, as in JSON",
        path=path,
    )


def _items(value: Mapping[Any, Any], path: str) -> list[tuple[str, Any]]:
    for key in value:
        if not isinstance(key, str):
            raise FormatError(f"{path} has the key {short_repr(key)}, which is not a text", path=path)
    return list(value.items())


def copy_plain(value: Any, /) -> Any:
    """Copy plain data, so that whoever changes the copy changes no session."""
    if isinstance(value, dict):
        # Most of what a message holds is text: a call for each would be half of what a view costs.
        return {key: one if isinstance(one, str) else copy_plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [copy_plain(one) for one in value]
    return value


def holds_texts(value: Any, /) -> bool:
    """Tell whether plain data contains only texts: then only identical data is equal to it."""
    if isinstance(value, (dict, list)):
        return all(map(holds_texts, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, str)
