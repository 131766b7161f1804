"""What a page draws: where the budget goes, and how large each message is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trimtab._shared.design import SERIES
from trimtab.inspector.views import View
from trimtab.report import Report
from trimtab.report.text import plain, plural

__all__ = ["Bar", "Meter", "Part", "chart_of", "meter_of"]

WIDTH, HEIGHT = 1_000, 100
"""Of a drawing, in its own units: it is as wide as the page."""
MOST_BARS = 200
_LEAST_HEIGHT = 3
_ORDER = ("pinned", "kept", "inserted", "changed", "summarized", "evicted")
"""From the bottom of a bar up: what is sent first."""


class Part(NamedTuple):
    """A piece of a drawing."""

    kind: str
    at: float
    size: float
    tokens: int
    name: str = ""


class Bar(NamedTuple):
    """One message of the chart, or some that stand side by side."""

    x: float
    width: float
    parts: Sequence[Part]
    said: str
    row: tuple[str, int]
    """The filter and the row that it leads to."""


class Meter(NamedTuple):
    """How the budget is used."""

    parts: Sequence[Part]
    room: float
    """Where the room ends; what does not fit stands behind it."""
    unused: int
    """Below 0 where it does not fit."""


def chart_of(view: View) -> list[Bar]:
    """Draw every message in its order, the higher the larger: by the square root, so that all are seen."""
    entries, sizes = view.entries, view.sizes
    step = max(1, -(-len(entries) // MOST_BARS))
    groups = [range(start, min(len(entries), start + step)) for start in range(0, len(entries), step)]
    most = max((sum(sizes[at] for at in group) for group in groups), default=0) or 1
    width = WIDTH / max(1, len(groups))
    bars = list[Bar]()
    for place, group in enumerate(groups):
        tokens = Counter[str]()
        for at in group:
            tokens[entries[at].kind] += sizes[at]
        first, last = entries[group[0]], entries[group[-1]]
        title = first.title if len(group) == 1 else f"{first.title} to {last.title}"
        fates = " and ".join(dict.fromkeys(entries[at].fate for at in group))
        said = f"{title}, {plain(first.role)}: {fates}, {plural(sum(tokens.values()), 'token')}"
        parts = list(_stack(tokens, most))
        row = view.row_of(next((at for at in group if entries[at].place is not None), group[0]))
        bars.append(Bar(place * width, max(1.0, width - min(2.0, width / 4)), parts, said, row))
    return bars


def _stack(tokens: Counter[str], most: int) -> Iterator[Part]:
    top = float(HEIGHT)
    whole = HEIGHT * math.sqrt(sum(tokens.values()) / most)
    for kind in _ORDER:
        if kind in tokens:
            height = max(_LEAST_HEIGHT, whole * tokens[kind] / max(1, sum(tokens.values())))
            top -= height
            yield Part(kind, max(0.0, top), height, tokens[kind])


def meter_of(report: Report) -> Meter:
    """Draw the budget: what stands beside the messages, the messages of each block, and what is unused."""
    whole = max(1, report.input_tokens, report.tokens_after)
    fixed = report.fixed_tokens
    named = len(report.blocks) > 1
    found = [("beside", "system text, tools and framing", fixed)]
    if named:
        found += [
            (f"b{at % SERIES}", plain(block.name), block.tokens_after)
            for at, block in enumerate(report.blocks)
        ]
    else:
        found.append(("kept", "messages", report.tokens_after - fixed))
    at, parts = 0.0, list[Part]()
    for kind, name, tokens in found:
        if tokens > 0:
            size = tokens * WIDTH / whole
            parts.append(Part(kind, at, size, tokens, name))
            at += size
    return Meter(parts, max(0, report.input_tokens) * WIDTH / whole, report.remaining_tokens)
