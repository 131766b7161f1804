"""JSON written tight, or as tables: the same values in fewer characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["is_json", "tight"]


class _NotOurs(Exception):
    """It is JSON that two readers may read in different ways, or no JSON."""


class _Number(float):
    """A number as it is written: 1.0, 1 and 1e0 stay apart, and no digit is lost."""

    text: str


def _number(text: str) -> _Number:
    made = _Number(0)
    made.text = text
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotOurs
    return found


def _refuse(text: str) -> Any:
    raise _NotOurs


_READER = json.JSONDecoder(
    object_pairs_hook=_once, parse_constant=_refuse, parse_int=_number, parse_float=_number
)

_SPACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+')
"""Strings, which stay, and the space between values."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
"""An escape in a string; of an odd number of backslashes the last begins it."""


def _read(text: str) -> Any | None:
    """Read an object or a list; None: it is none, or not strictly."""
    start = text.lstrip(" \t\r\n")[:1]
    if start not in ("{", "["):
        return None
    try:
        return _READER.decode(text)
    except (_NotOurs, RecursionError, ValueError):
        return None


def is_json(text: str, /) -> bool:
    """Tell whether a text is a JSON object or list that strict readers read alike."""
    return _read(text) is not None


def tight(text: str, /, *, tables: bool = False) -> str | None:
    """Write JSON without space between its values; None where it is no JSON, or stays as it is.

    Numbers stay as they are written. Characters beyond ASCII that are escaped are written as themselves.

    Args:
        text: The text, whole.
        tables: Whether lists of like objects are written as tables.
    """
    value = _read(text)
    if value is None:
        return None
    made = _SPACE.sub(lambda found: _string(found[1]) if found[1] else "", text)
    if tables and _has_table(value):
        try:
            as_table = _write(value)
        except (RecursionError, UnicodeEncodeError):
            as_table = made
        made = min(made, as_table, key=len)
    return made if len(made) < len(text) else None


def _string(text: str) -> str:
    return _ESCAPE.sub(_plain, text) if "\\u" in text else text


def _plain(found: re.Match[str]) -> str:
    """Return the character of an escape, unless it is a half of a pair, a control or invisible."""
    if found[1] is None:
        return found[0]
    character = chr(int(found[1], 16))
    return character if character > "\x7f" and character.isprintable() else found[0]


# Tables.

_LEAST_ROWS = 3


def _columns(value: Any) -> list[str] | None:
    """Return the keys of a list of like objects; None where it is nothing of this kind."""
    if type(value) is not list or len(value) < _LEAST_ROWS:
        return None
    first = value[0]
    if type(first) is not dict or not first:
        return None
    keys = list(first)
    for one in value:
        if type(one) is not dict or list(one) != keys:
            return None
    return keys


def _has_table(value: Any) -> bool:
    """Tell whether there is a list to be written as a table, and nothing that looks like one already."""
    found, waiting = False, [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            if one.keys() == {"cols", "rows"}:
                return False
            waiting += one.values()
        elif type(one) is list:
            found = found or _columns(one) is not None
            waiting += one
    return found


def _write(value: Any) -> str:
    kind = type(value)
    if kind is dict:
        return "{" + ",".join([f"{_quote(key)}:{_write(one)}" for key, one in value.items()]) + "}"
    if kind is list:
        keys = _columns(value)
        if keys is None:
            return _list(map(_write, value))
        rows = _list(_list(map(_write, one.values())) for one in value)
        return f'{{"cols":{_list(map(_quote, keys))},"rows":{rows}}}'
    if kind is _Number:
        written: str = value.text
        return written
    return _quote(value) if kind is str else json.dumps(value)


def _list(texts: Iterable[str]) -> str:
    return "[" + ",".join(texts) + "]"


def _quote(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    written.encode()  # a half of a pair can only be written as an escape
    return written
