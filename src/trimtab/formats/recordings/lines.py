"""What readers of logs of lines share: the place of a fault, times, and words for what is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from trimtab._shared.checks import is_number
from trimtab.errors import FormatError
from trimtab.formats.recordings.base import Source
from trimtab.formats.values import Dict, short_repr, type_name


def first_lines(source: Source) -> list[Dict]:
    """Return the first two lines of a log, by which its program is told; none unless all are objects."""
    if isinstance(source, Mapping):
        return []
    lines = list(source[:2])
    return lines if all(isinstance(line, dict) for line in lines) else []


def refuse(at: int, words: str, *keys: str | int) -> NoReturn:
    """Raise that a line is not as its program writes it.

    It is called an entry: a file may have empty lines between, of which a reader is told nothing.

    Args:
        at: Index of the line.
        words: What is missing or wrong.
        keys: What leads from the line to it.
    """
    path = f"[{at}]" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    raise FormatError(f"entry {at + 1}: {words}", path=path)


def object_of(owner: Any, key: str, at: int, whose: str) -> Dict:
    """Return the object a line holds under a key."""
    value = owner.get(key)
    if not isinstance(value, dict):
        missing = (
            f"{whose} has no {key!r}" if value is None else f"{key!r} must be an object, not {_kind(value)}"
        )
        refuse(at, missing, key)
    return value


def line_of(line: Any, at: int) -> Dict:
    """Return a line that is an object and says its type."""
    if not isinstance(line, dict):
        refuse(at, f"it must be an object, not {_kind(line)}")
    if not isinstance(line.get("type"), str):
        refuse(at, "it has no 'type'", "type")
    return line


def seconds_of(value: Any, at: int) -> float | None:
    """Read the time of a line, in seconds since 1970; None if it has none."""
    if value is None:
        return None
    try:
        if is_number(value):
            return float(value)
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError):
        refuse(at, f"its 'timestamp' must be a time, not {short_repr(value)}", "timestamp")
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def times_of(times: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the times of messages; empty if none is known."""
    return tuple(times) if any(time is not None for time in times) else ()


def note_of(counts: Counter[str]) -> tuple[str, ...]:
    """Say what of a log is not read as it is, as one note; none if all is."""
    listed = "; ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
    return (f"Not read as they are: {listed}.",) if listed else ()


def _kind(value: Any) -> str:
    return type_name(value) if value is not None else "null"
