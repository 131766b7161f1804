"""The report as HTML: where the budget went, what became of each message, and why. No script is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from trimtab._shared.design import PAGE_TOKENS, PART_TOKENS, SERIES
from trimtab.report.rows import BlockReport, InsertedRow, MessageRow, OnlyRuns, Reason, RunRow, run_of_one
from trimtab.report.text import (
    cells_of,
    clip,
    deeds,
    facts_of,
    number,
    plain,
    plural,
    reason_words,
    verdict,
    violation_lines,
    what_of,
)

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["facts_fragment", "fragment", "kind_of", "overview_fragment", "page", "table_fragment"]

_MOST_CELLS = 300
"""Cells of the strip of messages: of a longer conversation each stands for several neighbours."""
_MOST_RUNS = 40
"""Rows of the table that are open; the others are one click away."""
_MOST_CHARS = 2_000
"""Characters of a message's text that are shown."""
_WIDTH, _HEIGHT = 1_000, 34
"""Of a bar, in its own units: it is as wide as the page."""

_STYLE = (
    PART_TOKENS
    + """
.trimtab { font: var(--text)/1.5 var(--sans); max-width: var(--page); color: inherit }
.trimtab p, .trimtab dd, .trimtab li, .trimtab td:last-child { overflow-wrap: anywhere }
.trimtab h3 { font-size: 1em; margin: 1.2em 0 .3em } .trimtab p { margin: .3em 0 }
.trimtab .verdict { font-weight: 600 } .trimtab .verdict::before { margin-right: .4em }
.trimtab .good::before { content: "\\2713"; color: var(--good) }
.trimtab .bad::before { content: "\\2717"; color: var(--bad) }
.trimtab .mark { fill: currentColor }
.trimtab dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1em; margin: .3em 0 }
.trimtab dt { opacity: .7 } .trimtab dd { margin: 0 }
.trimtab svg { display: block; width: 100%; height: 2.2em; margin: .3em 0 }
.trimtab .row svg { height: 1em; min-width: 8em }
.trimtab .room { fill: none; stroke: currentColor; opacity: .5 }
.trimtab .scroll { overflow-x: auto }
.trimtab table { border-collapse: collapse; width: 100%; min-width: 34em }
.trimtab td:last-child { min-width: 14em }
.trimtab .lines td:nth-child(4) { min-width: 11em }
.trimtab th, .trimtab td { text-align: left; padding: .15em .8em .15em 0; vertical-align: top }
.trimtab th { border-bottom: 1px solid; font-weight: 600 }
.trimtab .n { text-align: right; white-space: nowrap }
.trimtab ul { margin: .3em 0; padding-left: 1.4em } .trimtab ul.key { list-style: none; padding: 0 }
.trimtab ul.key li { display: inline-block; margin-right: 1.2em } .trimtab summary { cursor: pointer }
.trimtab .key svg { display: inline-block; width: .9em; height: .9em; margin: 0 .4em 0 0 }
.trimtab pre { white-space: pre-wrap; margin: .2em 0; opacity: .8; font-size: .9em }
.trimtab .kept { fill: var(--kept) } .trimtab .pinned { fill: var(--pinned) }
.trimtab .changed { fill: var(--changed) }
.trimtab .evicted { fill: none; stroke: var(--evicted); stroke-dasharray: 3 2 }
.trimtab .summarized { fill: var(--summarized) }
.trimtab .inserted { fill: var(--inserted) } .trimtab .mixed { fill: var(--evicted) }
.trimtab .beside { fill: var(--beside) }
@media (max-width: 40em) {
.trimtab .lines, .trimtab .blocks { min-width: 0 }
.trimtab .lines tr, .trimtab .blocks tr { display: grid; gap: 0 .8em }
.trimtab .lines tr { grid-template-columns: 5em 5em 1fr }
.trimtab .blocks tr { grid-template-columns: minmax(0, 1fr) repeat(5, 3.8em); gap: 0 .2em }
.trimtab .lines td:nth-child(n+4), .trimtab .blocks td:nth-child(n+7) { grid-column: 1 / -1 }
.trimtab .lines th:nth-child(n+4), .trimtab .blocks th:nth-child(n+7) { display: none }
.trimtab .lines :is(th, td), .trimtab .blocks :is(th, td) { border: 0; padding: 0 }
.trimtab .lines td:last-child { border-bottom: 1px dotted }
}
"""
    + "\n".join(f".trimtab .b{at} {{ fill: var(--series-{at + 1}) }}" for at in range(SERIES))
)

_PAGE = (
    PAGE_TOKENS
    + """
body { margin: var(--space-5) auto; padding: 0 var(--space-4); max-width: var(--page);
font: var(--text)/1.5 var(--sans); background: var(--back); color: var(--ink) }
h1 { font-size: var(--text-title) }
"""
)

_NAMES = {
    "kept": "kept",
    "pinned": "pinned: neither leaves nor changes",
    "changed": "changed",
    "summarized": "told by a summary",
    "evicted": "evicted",
    "inserted": "put in by trimtab",
    "mixed": "some kept, some evicted",
}
"""What a cell of the strip may be, in the order of the key."""


class _Cell(NamedTuple):
    """One place of the strip."""

    kind: str
    said: str


def page(report: Report, *, include_text: bool, title: str) -> str:
    """Write the report as a page of its own."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{_PAGE}</style></head><body>\n"
        f"<h1>{_safe(title)}</h1>\n{fragment(report, include_text=include_text)}</body></html>\n"
    )


def fragment(report: Report, *, include_text: bool) -> str:
    """Write the report as a part of a page, with the style it needs; nothing of it reaches beyond it."""
    return _whole(report, _table(report, include_text=include_text))


def overview_fragment(report: Report, *, said: str = "") -> str:
    """Write the report without its table of messages, for a page that lists them itself.

    `said` is HTML of that page, which stands behind the verdict.
    """
    return _whole(report, (), said=said)


def _whole(report: Report, table: Iterable[str], *, said: str = "") -> str:
    line = verdict(report)
    parts = [
        f'<div class="trimtab"><style>{_STYLE}</style>',
        f'<p class="verdict {line.tone}">{_safe(line.text)}</p>{said}',
        f"<dl>{_facts(facts_of(report))}</dl>",
        *_budget(report),
        *_blocks(report),
        *_strip(report),
        *table,
        *_list("Put in by trimtab, at its place in the output", map(_insertion, report.inserted)),
        *_list("What a provider would refuse in the input, and open calls", _violations(report)),
        *_list("Notes", report.notes),
        "</div>",
    ]
    return "\n".join(parts) + "\n"


def table_fragment(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table as a part of a page, in the style of a report."""
    head = "".join(f"<th>{_safe(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{_safe(text)}</td>" for text in row) + "</tr>" for row in rows)
    return _part(title, f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>')


def facts_fragment(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Write words and what is said of each as a part of a page, in the style of a report."""
    return _part(title, f"<dl>{_facts(facts)}</dl>")


def _part(title: str, content: str) -> str:
    return f'<div class="trimtab"><style>{_STYLE}</style>\n<p><b>{_safe(title)}</b></p>\n{content}\n</div>\n'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{_safe(name)}</dt><dd>{_safe(text)}</dd>" for name, text in facts)


def _safe(text: str) -> str:
    """Make text of others harmless: no markup, and nothing that changes the direction of what follows."""
    return escape(plain(text))


def _lines(text: str) -> str:
    """Make a text of several lines harmless."""
    return "\n".join(map(_safe, text.splitlines()))


# The budget: what is beside the messages, each block, and what is left.


def _budget(report: Report) -> Iterator[str]:
    parts = [("beside", "beside the messages", report.fixed_tokens)]
    parts += [
        (_colour(place), f"block {block.name}", block.tokens_after - _beside(report))
        for place, block in enumerate(report.blocks)
    ]
    parts = [part for part in parts if part[2] > 0]
    whole = max(1, report.input_tokens, report.tokens_after)
    drawn, at = list[str](), 0.0
    for kind, name, tokens in parts:
        width = tokens * _WIDTH / whole
        drawn.append(_rect(kind, at, width, f"{name}: {plural(tokens, 'token')}"))
        at += width
    room = max(0, report.input_tokens) * _WIDTH / whole
    drawn.append(f'<rect class="room" x="0.5" y="0.5" width="{room - 1:.1f}" height="{_HEIGHT - 1}"/>')
    left = report.remaining_tokens
    yield "<h3>The budget</h3>"
    yield _svg(drawn, "How the budget is used: " + "; ".join(f"{name} {size:,}" for _, name, size in parts))
    key = [(kind, f"{name} {tokens:,}") for kind, name, tokens in parts]
    rest = f"not used {left:,}" if left >= 0 else f"over the budget by {-left:,}"
    yield _key([*key, ("room", rest)])


def _beside(report: Report) -> int:
    """Return what of a block's tokens stands beside its messages: the one block of `fit` is charged all."""
    if len(report.blocks) != 1:
        return 0
    return max(0, report.blocks[0].tokens_after + report.fixed_tokens - report.tokens_after)


def _blocks(report: Report) -> Iterator[str]:
    if len(report.blocks) < 2:
        return
    heads = ("before", "after", "offered", "floor", "cap")
    rows = [_block(report, place, block) for place, block in enumerate(report.blocks)]
    yield "<h3>Blocks, as parts of the budget</h3>"
    yield (
        '<div class="scroll"><table class="blocks"><tr><th>block</th>'
        + "".join(f'<th class="n">{head}</th>' for head in heads)
        + f"<th>of the budget</th><th>what was done</th></tr>{''.join(rows)}</table></div>"
    )
    said = [f"Blocks that left whole: {', '.join(report.blocks_dropped)}."] if report.blocks_dropped else []
    said += ["The floors of the blocks pass the room, so they were ignored."] if report.floors_ignored else []
    yield from (f"<p>{_safe(text)}</p>" for text in said)


def _block(report: Report, place: int, block: BlockReport) -> str:
    whole = max(1, report.input_tokens)
    numbers = (
        number(block.tokens_before),
        f"{block.tokens_after:,}",
        f"{block.offered_tokens:,}",
        f"{block.floor_tokens:,}" if block.floor_tokens else "",
        "" if block.cap_tokens is None else f"{block.cap_tokens:,}",
    )
    marks = {"floor": block.floor_tokens or 0, "cap": block.cap_tokens or 0}
    used = min(1.0, block.tokens_after / whole) * _WIDTH
    share = f"{block.tokens_after * 100 // whole} % of the budget"
    drawn = [_rect(_colour(place), 0, used, f"{block.name}: {share}"), _outline()]
    for name, tokens in marks.items():
        if tokens:
            x = min(1.0, tokens / whole) * (_WIDTH - 6)
            title = f"<title>{name}: {plural(tokens, 'token')}</title>"
            drawn.append(f'<rect class="mark" x="{x:.1f}" y="0" width="6" height="{_HEIGHT}">{title}</rect>')
    cells = "".join(f'<td class="n">{text}</td>' for text in numbers)
    bar = _svg(drawn, f"{block.name}: {share}")
    done = _safe(deeds(block, alone=False))
    return f'<tr><td>{_safe(block.name)}</td>{cells}<td class="row">{bar}</td><td>{done}</td></tr>'


def _outline() -> str:
    return f'<rect class="room" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}"/>'


def _colour(place: int) -> str:
    return f"b{place % SERIES}"


# The messages: a strip of all of them, and a table of what fared alike.


def _strip(report: Report) -> Iterator[str]:
    if not report.messages and not report.inserted:
        return
    cells = _join(list(_cells(report)))
    width = _WIDTH / len(cells)
    gap = min(1.5, width / 5)
    drawn = [
        _rect(cell.kind, place * width + gap / 2, width - gap, cell.said) for place, cell in enumerate(cells)
    ]
    there = {cell.kind for cell in cells}
    yield "<h3>The messages, oldest first</h3>"
    yield _svg(drawn, f"{plural(len(report.messages), 'message')}, and what became of them")
    yield _key([(kind, name) for kind, name in _NAMES.items() if kind in there])


def _table(report: Report, *, include_text: bool) -> Iterator[str]:
    runs = report.runs
    if not runs and not report.inserted:
        return
    named = len(report.blocks) > 1
    table = [_run(run, named=named, include_text=include_text) for run in runs]
    heads = ('<th class="n">index</th>', "<th>fate</th>", '<th class="n">tokens</th>', "<th>why</th>")
    head = f"<tr>{''.join(heads)}<th>messages</th></tr>"
    yield f'<div class="scroll"><table class="lines">{head}{"".join(table[:_MOST_RUNS])}</table></div>'
    if more := table[_MOST_RUNS:]:
        yield f"<details><summary>{plural(len(more), 'more line')}</summary>"
        yield f'<div class="scroll"><table class="lines">{head}{"".join(more)}</table></div></details>'


def _cells(report: Report) -> Iterator[_Cell]:
    """Give each message a cell, and each that was put in one before the message it stands before."""
    waiting, place = list(report.inserted), 0
    for stays, cell in _own_cells(report.messages):
        while stays and waiting and waiting[0].position <= place:
            yield _Cell("inserted", _insertion(waiting.pop(0)))
            place += 1
        yield cell
        place += stays
    yield from (_Cell("inserted", _insertion(row)) for row in waiting)


def _own_cells(rows: Sequence[MessageRow]) -> Iterator[tuple[bool, _Cell]]:
    """Give each of the caller's messages a cell, and say whether it stays; with runs alone, of its run."""
    if isinstance(rows, OnlyRuns):
        for run in rows.runs():
            yield from repeat((run.fate != "evicted", _cell(run)), run.message_count)
    else:
        for row in rows:
            yield row.fate != "evicted", _cell(run_of_one(row))


def _join(cells: Sequence[_Cell]) -> Sequence[_Cell]:
    """Put neighbours into one cell where there are more than the strip has."""
    size = -(-len(cells) // _MOST_CELLS)
    if size == 1:
        return cells
    found = []
    for start in range(0, len(cells), size):
        few = cells[start : start + size]
        kinds = {cell.kind for cell in few}
        kind = kinds.pop() if len(kinds) == 1 else "changed" if "changed" in kinds else "mixed"
        found.append(_Cell(kind, f"{few[0].said} … {few[-1].said}"))
    return found


def kind_of(row: MessageRow | RunRow) -> str:
    """Say in one word what became of a message, as the strip does."""
    if row.fate == "evicted":
        told: Reason = "superseded_by_summary"
        return "summarized" if row.reason == told else "evicted"
    return "pinned" if row.fate == "kept" and row.state == "pinned" else row.fate


def _cell(run: RunRow) -> _Cell:
    """Say in a sentence what the table says in a line."""
    span, fate, tokens, why = cells_of(run)
    what = ", ".join(filter(None, (fate, why, f"{tokens} tokens")))
    return _Cell(kind_of(run), f"{span}, {what_of(run)}: {what}")


def _run(run: RunRow, *, named: bool, include_text: bool) -> str:
    span, fate, tokens, why = cells_of(run)
    why = reason_words(run) or why
    what = f"{run.block}: {what_of(run)}" if named else what_of(run)
    said = run.text if include_text else None
    text = f"<pre>{_lines(said[:_MOST_CHARS])}</pre>" if said else ""
    return (
        f'<tr><td class="n">{span}</td><td>{fate}</td><td class="n">{tokens}</td><td>{why}</td>'
        f"<td>{_safe(what)}{text}</td></tr>"
    )


def _insertion(row: InsertedRow) -> str:
    return f"{row.position}, {row.role}, {plural(row.tokens, 'token')}: {row.why}"


def _violations(report: Report) -> Iterator[str]:
    for text, fault in violation_lines(report):
        said = clip(text[:_MOST_CHARS], _MOST_CHARS)
        yield said if fault else f"{said} (no fault)"


# Drawing.


def _list(title: str, texts: Iterable[str]) -> Iterator[str]:
    found = [f"<li>{_safe(text)}</li>" for text in texts]
    if found:
        yield f"<h3>{title}</h3><ul>{''.join(found[:_MOST_CELLS])}</ul>"
        if len(found) > _MOST_CELLS:
            yield f"<p>… {len(found) - _MOST_CELLS:,} more</p>"


def _rect(kind: str, x: float, width: float, said: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="1" width="{width:.1f}" height="{_HEIGHT - 2}">'
        f"<title>{_safe(said)}</title></rect>"
    )


def _svg(drawn: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{_safe(label)}">{"".join(drawn)}</svg>'
    )


def _key(parts: Iterable[tuple[str, str]]) -> str:
    items = (
        '<li><svg viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="{kind}" x="1" y="1" width="8" height="8"/></svg>{_safe(name)}</li>'
        for kind, name in parts
    )
    return f'<ul class="key">{"".join(items)}</ul>'
