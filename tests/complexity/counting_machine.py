"""Counts the operations of a call: lines run inside trimtab, and bytes given to the tokenizer.

A clock on a shared machine proves nothing. What a call does can be counted, and counts are the same
on every machine: growth is a ratio of two of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import log2
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import trimtab
from trimtab.counting import TextCounter, counter_for

PACKAGE = str(Path(trimtab.__file__).parent)

MOST_GROWTH = 2.2
"""Most times the operations of a size that those of twice the size may be (issue 2)."""


@dataclass(slots=True)
class Operations:
    """What one call did."""

    lines: int = 0
    texts: list[str] = field(default_factory=list)
    """Every text given to the tokenizer, in order, as often as it was given."""

    @property
    def tokenized_bytes(self) -> int:
        """UTF-8 bytes of those texts."""
        return sum(map(bytes_of, self.texts))

    @property
    def total(self) -> int:
        """Lines and bytes together."""
        return self.lines + self.tokenized_bytes


def bytes_of(text: str) -> int:
    """Return the UTF-8 bytes of a text, a lone surrogate as three."""
    return len(text.encode("utf-8", "surrogatepass"))


def exact_counter(operations: Operations | None = None) -> TextCounter:
    """Make a counter with an empty cache on the real o200k tokenizer, noting each text it is given."""
    tokenize = counter_for("gpt-4o").count_text

    def noted(text: str) -> int:
        if operations is not None:
            operations.texts.append(text)
        return tokenize(text)

    return TextCounter(noted, name="o200k", exact=True)


def operations_of(call: Callable[[TextCounter], Any], *, files: tuple[str, ...] = ("",)) -> Operations:
    """Run a call on a fresh counter and count what it does; a raised error ends it like an answer.

    Args:
        call: The call.
        files: Lines are counted in these files of the package alone, or in folders.
    """
    operations = Operations()
    counter = exact_counter(operations)
    ours: dict[CodeType, bool] = {}
    counted = tuple(str(Path(PACKAGE, file)) for file in files)

    def on_line(_frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            operations.lines += 1
        return on_line

    def on_call(frame: FrameType, _event: str, _arg: object) -> Any:
        code = frame.f_code
        known = ours.get(code)
        if known is None:
            known = ours[code] = code.co_filename.startswith(counted)
        return on_line if known else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        call(counter)
    except trimtab.ContextError:
        pass
    finally:
        sys.settrace(before)
    return operations


def growth(case: Callable[[int], Callable[[TextCounter], Any]], sizes: tuple[int, ...]) -> list[int]:
    """Return the operations of a case at each size; what `case` does to prepare is not counted."""
    return [operations_of(case(size)).total for size in sizes]


def assert_linear(case: Callable[[int], Callable[[TextCounter], Any]], sizes: tuple[int, ...]) -> None:
    """Assert that twice the size never takes more than `MOST_GROWTH` times the operations."""
    counted = growth(case, sizes)
    for (size, less), (larger, more) in pairwise(zip(sizes, counted, strict=True)):
        most = MOST_GROWTH ** log2(larger / size)
        assert more <= most * less, f"from {size} on: {counted}, {more / less:.2f} times"
