"""A page of charts: tokens a call, reuse, price and evidence, by policy; one file, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from html import escape
from itertools import accumulate, islice
from operator import add

from trimtab._shared.design import PAGE_TOKENS, SERIES
from trimtab.replay.results import CallRow, Evidence, Replayed, cells_of

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 860, 240, 70, 12, 28
_NAMES, _BAR = 260, 22
"""Room for names beside bars, and the height of a bar."""
_MOST_POINTS = 600
"""Points of a line: more than that nobody sees apart."""
_STYLE = (
    PAGE_TOKENS
    + """
body { font: var(--text)/1.5 var(--sans); max-width: var(--page); margin: var(--space-5) auto;
padding: 0 var(--space-4); background: var(--back); color: var(--ink) }
table { border-collapse: collapse; margin: var(--space-4) 0 }
th, td { padding: .25em .7em; text-align: right }
th { border-bottom: 1px solid var(--line) } td:first-child, th:first-child { text-align: left }
h1 { font-size: var(--text-title) } h2 { margin: var(--space-5) 0 0; font-size: var(--text-large) }
h3 { margin: var(--space-4) 0 0; font-size: var(--text); font-weight: var(--strong) }
svg { width: 100%; height: auto } text { font: 12px var(--sans); fill: var(--soft) }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em } line { stroke: var(--line) }
"""
    + "\n".join(
        f".k{at} {{ background: var(--series-{at + 1}) }} polyline.c{at} {{ stroke: var(--series-{at + 1}) }}"
        f" rect.c{at} {{ fill: var(--series-{at + 1}) }}"
        for at in range(SERIES)
    )
)


def chart_page(
    groups: Mapping[str, Sequence[Replayed]], /, *, title: str = "Replay", max_recordings: int = 20
) -> str:
    """Write a page of HTML: a table of the sums, and charts for each recording.

    Args:
        groups: By the name of a recording what was found under each policy; the policies are the same ones in
            the same order for all of them.
        title: Stands over it.
        max_recordings: Charts are drawn of so many recordings, the first ones; the table is of all.

    Example:
        >>> from trimtab.replay import replay
        >>> chat = [{"role": role, "content": "word " * 50} for role in ("user", "assistant")] * 20
        >>> page = chart_page({"chat": [replay(chat, policy, budget=900) for policy in ("default", "none")]})
        >>> page.count("<svg"), "<script" in page
        (3, False)
    """
    totals = [reduce(add, column) for column in zip(*groups.values(), strict=True)]
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        _table(totals),
        *([_bars(totals)] if any(one.totals.evidence.sought for one in totals) else []),
        *(
            part
            for name, results in islice(groups.items(), max_recordings)
            for part in _charts(name, results)
        ),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(results: Sequence[Replayed]) -> str:
    words = ("calls", "tokens", "reuse", "fill", "price", "cost", "evidence")
    head = "".join(f"<th>{word}</th>" for word in ("policy", *words, "invalid"))
    rows = []
    for place, one in enumerate(results):
        told = cells_of(one, results[0])
        cells = (*(told[word] for word in words), f"{one.totals.invalid:,}")
        name = f'<td><span class="key k{place % SERIES}"></span>{escape(one.policy)}</td>'
        rows.append("<tr>" + name + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    note = "<p>Reuse and fill are of the calls to be trimmed; the cost is in units of the first row.</p>"
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>{note}"


def _bars(results: Sequence[Replayed]) -> str:
    """Draw how much of the evidence is in view: a bar a policy, paler where it was shortened or retold."""
    drawn, room = list[str](), _WIDTH - _NAMES - _LEFT
    for place, one in enumerate(results):
        found, y = one.totals.evidence, place * _BAR
        parts = ((found.whole, 1.0), (found.shortened + found.retold, 0.5))
        x = float(_NAMES)
        drawn.append(
            f'<text x="{_NAMES - 8}" y="{y + 15}" text-anchor="end">{escape(one.policy[:40])}</text>'
        )
        for count, strength in parts:
            width = room * count / (found.sought or 1)
            drawn.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_BAR - 6}"'
                f' class="c{place % SERIES}" fill-opacity="{strength}"/>'
            )
            x += width
        share = "" if found.share is None else f"{found.share:.0%}"
        drawn.append(f'<text x="{x + 6:.1f}" y="{y + 15}">{share}</text>')
    heading = "Share of the evidence in view when its question comes; paler: shortened or retold"
    size = f'viewBox="0 0 {_WIDTH} {len(results) * _BAR}"'
    return f'<h3>{heading}</h3><svg {size} role="img" aria-label="{heading}">{"".join(drawn)}</svg>'


def _charts(name: str, results: Sequence[Replayed]) -> list[str]:
    """Draw what happened in one recording."""
    charts: tuple[tuple[str, Callable[[Sequence[CallRow]], list[float]]], ...] = (
        ("Tokens a call", lambda rows: [row.tokens for row in rows]),
        (
            "Share of a call that is a prefix of the one before",
            lambda rows: [row.shared_tokens / row.tokens if row.tokens else 0.0 for row in rows],
        ),
        ("Price so far", lambda rows: list(accumulate(row.price for row in rows))),
        *(
            [("Share of the evidence in view, of all questions so far", _evidence)]
            if sum(row.evidence is not None for row in results[0].calls) > 1
            else []
        ),
    )
    parts = [f"<h2>{escape(name)}</h2>"]
    for heading, values in charts:
        lines = [(one.policy, values(one.calls)) for one in results]
        parts += [f"<h3>{heading}</h3>", _svg(heading, lines)]
    return parts


def _evidence(rows: Sequence[CallRow]) -> list[float]:
    """Share of the evidence in view, over the questions up to each call."""
    found = accumulate(row.evidence or Evidence() for row in rows)
    return [one.share or 0.0 for one in found]


def _svg(heading: str, lines: Sequence[tuple[str, list[float]]]) -> str:
    """Draw a line for each policy."""
    top = max((value for _, values in lines for value in values), default=0.0) or 1.0
    calls = max((len(values) for _, values in lines), default=0)
    inner = _HEIGHT - _TOP - _BOTTOM
    drawn = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(heading, quote=True)}">',
        *(_level(top * step / 4, step, inner) for step in range(5)),
        f'<text x="{_WIDTH}" y="{_HEIGHT - 8}" text-anchor="end">{calls:,} calls</text>',
    ]
    for place, (name, values) in enumerate(lines):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(values, calls, top, inner))
        drawn.append(
            f'<polyline fill="none" class="c{place % SERIES}" stroke-width="1.6" points="{points}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    return "".join([*drawn, "</svg>"])


def _level(value: float, step: int, inner: int) -> str:
    y = _TOP + inner * (1 - step / 4)
    shown = f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return (
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>'
    )


def _points(values: list[float], calls: int, top: float, inner: int) -> list[tuple[float, float]]:
    step = max(1, len(values) // _MOST_POINTS)
    room = (_WIDTH - _LEFT) / max(1, calls - 1)
    return [
        (_LEFT + index * room, _TOP + inner * (1 - values[index] / top))
        for index in range(0, len(values), step)
    ]
