"""Lines of a terminal: their width, their colour, and what may be printed in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

Tone = Literal["", "bold", "dim", "good", "warn", "bad"]

_COLOURS: dict[Tone, str] = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}


class Line(NamedTuple):
    """One line of output and how it is coloured."""

    text: str
    tone: Tone = ""


def paint(line: Line, *, width: int, colour: bool) -> str:
    """Cut a line to the width and colour it; trailing blanks go."""
    text = clip(line.text.rstrip(), width)
    if not colour or not line.tone or not text:
        return text
    return f"\x1b[{_COLOURS[line.tone]}m{text}\x1b[0m"


def plain(text: str) -> str:
    """Make text of others printable on one line; nothing of it can steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char.isspace() else f"\\u{ord(char):04x}"


def columns(text: str) -> int:
    """Give the columns a printable text takes at most; combining marks are taken as one each."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def clip(text: str, width: int) -> str:
    """Cut text to a width; an ellipsis shows that something is missing."""
    if columns(text) <= width:
        return text
    used_columns = accumulate(map(columns, text))
    kept = sum(1 for _ in takewhile(lambda used: used < width, used_columns))
    return text[:kept].rstrip() + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill text up to a width; on its left if it is to stand right."""
    blanks = " " * max(0, width - columns(text))
    return blanks + text if right else text + blanks


def wrap(text: str, *, width: int, first: str, rest: str) -> Iterator[str]:
    """Break text at blanks into lines that begin with `first`, then with `rest`."""
    line, empty = first, True
    for word in plain(text).split():
        if not empty and columns(line) + 1 + columns(word) > width:
            yield line
            line, empty = rest, True
        line = clip(line + ("" if empty else " ") + word, width)
        empty = False
    yield line


def counted(number: int, one: str) -> str:
    """Say how many there are of something: "1 message", "1,204 messages"."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def known(number: int | None) -> str:
    """Write a number with separators; "?" for one that nobody counted."""
    return "?" if number is None else f"{number:,}"
