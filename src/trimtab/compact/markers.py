"""The line that stands for lines of an earlier result, told from a tool's own."""

from __future__ import annotations

import re
from typing import NamedTuple

from trimtab.formats.handles import is_safe_id

__all__ = [
    "Reference",
    "escape",
    "looks_like_marker",
    "marker_in",
    "number_of_line",
    "renumber",
    "unescape",
]

_MARKER = re.compile(
    r"\[lines ([1-9]\d{0,11})-([1-9]\d{0,11}) as in (?:([A-Za-z0-9_.:-]+)|([1-9]\d{0,5}) results? back)"
    r" from ([1-9]\d{0,11})(?:, numbered from (\d{1,7}))?\]"
)
_ESCAPED = re.compile(r"\\+\[lines [1-9]")


class Reference(NamedTuple):
    """Lines that stand in an earlier result of the same request, as that is sent."""

    first: int
    """The first of the lines in the text that they are taken from, from 1."""
    length: int
    """How many lines they are."""
    handle: str | int
    """Id of the call that the earlier result answers, or how many results back it is."""
    start: int
    """Where they begin in the earlier result as it is sent, from 1."""
    number: int | None = None
    """The line number that the first of them begins with, where that is another one there."""

    def __str__(self) -> str:
        """Write it as it is sent."""
        handle = self.handle
        if isinstance(handle, int):
            handle = f"{handle} result{'' if handle == 1 else 's'} back"
        numbers = "" if self.number is None else f", numbered from {self.number}"
        last = self.first + self.length - 1
        return f"[lines {self.first}-{last} as in {handle} from {self.start}{numbers}]"


def marker_in(line: str, /) -> Reference | None:
    """Read a line; None where it is no reference."""
    found = _MARKER.fullmatch(line) if line.startswith("[lines ") else None
    if found is None:
        return None
    first, last, call_id, back, start, number = found.groups()
    count = int(last) - int(first) + 1
    if count < 1 or not (back or is_safe_id(call_id)):
        return None
    handle = call_id if back is None else int(back)
    return Reference(int(first), count, handle, int(start), None if number is None else int(number))


def looks_like_marker(line: str, /) -> bool:
    """Tell whether a tool's own line would be taken for a reference, or for one that is escaped."""
    if line.startswith("[lines "):
        return marker_in(line) is not None
    return line.startswith("\\") and _ESCAPED.match(line) is not None and _inner(line)


def _inner(line: str) -> bool:
    return marker_in(line.lstrip("\\")) is not None


def escape(line: str, /) -> str:
    """Write a tool's own line so that nobody takes it for a reference."""
    return "\\" + line if looks_like_marker(line) else line


def unescape(line: str, /) -> str:
    """Return a line as the tool wrote it."""
    return line[1:] if line.startswith("\\") and looks_like_marker(line) else line


_GUTTER = re.compile(r"([ \t]*)(\d{1,7})([\t:|→]|\.? |$)")
"""A line number in front of a line, as `cat -n` and the tools of agents write it."""


def number_of_line(line: str, /) -> tuple[str, int, str] | None:
    """Part a line into what stands before its number, the number, and the rest; None: it has none."""
    found = _GUTTER.match(line)
    if found is None or (len(found[2]) > 1 and found[2][0] == "0"):
        return None
    return found[1], int(found[2]), line[found.end(2) :]


def renumber(line: str, by: int, /) -> str | None:
    """Return a line with another number in front, in the same width; None where it has none."""
    parts = number_of_line(line)
    if parts is None or parts[1] + by < 0:
        return None
    space, number, rest = parts
    written = str(number + by)
    if space.isspace() and "\t" not in space:
        return written.rjust(len(space) + len(str(number))) + rest
    return space + written + rest
