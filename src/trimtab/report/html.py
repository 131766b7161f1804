"""The report as HTML: where the budget went, what became of each message, and why. No script is needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from itertools import groupby, repeat
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

__all__ = [
    "colour",
    "document",
    "facts_fragment",
    "fragment",
    "kind_of",
    "overview_fragment",
    "page",
    "part",
    "safe",
    "scroll_region",
    "sentence",
    "shares_table",
    "sign",
    "table_fragment",
]

_MOST_CELLS = 300
"""Cells of the strip of messages: of a longer conversation each stands for several neighbours."""
_MOST_RUNS = 40
"""Rows of the table that are open; the others are one click away."""
_MOST_CHARS = 2_000
"""Characters of a message's text that are shown."""
_WIDTH, _HEIGHT = 1_000, 34
"""Of a bar, in its own units: it is as wide as the page."""

# What became of a message is said by height and pattern, too, so that no colour has to be told apart.
_STYLE = (
    PART_TOKENS
    + """
.trimtab { font: var(--text)/1.5 var(--sans); max-width: var(--page); color: inherit }
.trimtab :is(h1, p, dd, li, td:last-child) { overflow-wrap: anywhere }
.trimtab .lines td:nth-child(2) { white-space: nowrap } .trimtab .lines td.row { width: 26% }
.trimtab .blocks td:first-child { min-width: 7em; max-width: 14em; overflow-wrap: anywhere }
.trimtab p { margin: 0 0 var(--space-2) }
.trimtab h1 { font: var(--strong) var(--text-title)/1.25 var(--sans); margin: 0 0 var(--space-1) }
.trimtab h2 { font: var(--strong) var(--text-large)/1.3 var(--sans); margin: var(--space-5) 0 var(--space-2) }
.trimtab h3 { font: var(--strong) var(--text)/1.4 var(--sans); margin: var(--space-4) 0 var(--space-1) }
.trimtab .about, .trimtab .why, .trimtab .note { color: var(--soft); font-size: var(--text-small) }
.trimtab .verdict { font-size: var(--text-title); line-height: 1.3; font-weight: var(--strong) }
.trimtab .verdict { margin: var(--space-3) 0 }
.trimtab .verdict::before { margin-right: .4em }
.trimtab .good::before { content: "\\2713"; color: var(--good) }
.trimtab .bad::before { content: "\\2717"; color: var(--bad) }
.trimtab dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 var(--space-4) }
.trimtab dl { margin: 0 }
.trimtab dt { color: var(--soft) } .trimtab dd { margin: 0 }
.trimtab svg { display: block; width: 100%; height: 32px; overflow: visible }
.trimtab rect { vector-effect: non-scaling-stroke }
.trimtab .row svg { height: var(--bar); min-width: 6em; margin: .35em 0 }
.trimtab .room { fill: none; stroke: var(--soft) } .trimtab .mark { fill: var(--ink) }
.trimtab .scroll { overflow-x: auto }
.trimtab table { border-collapse: collapse; width: 100% }
.trimtab :is(th, td) { text-align: left; padding: var(--space-1) var(--space-4) var(--space-1) 0 }
.trimtab :is(th, td) { vertical-align: top; border-bottom: 1px solid var(--line) }
.trimtab :is(th, td):last-child { padding-right: 0 } .trimtab table { margin: var(--space-2) 0 }
.trimtab .outcome { font-size: var(--text-large) }
.trimtab .outcome::first-letter { text-transform: uppercase }
.trimtab th { font-weight: var(--strong); font-size: var(--text-small); color: var(--soft) }
.trimtab :is(th, td).n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.trimtab tr:target { background: var(--card); box-shadow: inset 3px 0 var(--accent) }
.trimtab .why, .trimtab .note { display: block }
.trimtab ul { margin: 0; padding-left: 1.2em } .trimtab .key { list-style: none; padding: 0 }
.trimtab .key li { display: inline-block; max-width: 100% }
.trimtab .key li { margin-right: var(--space-4); font-size: var(--text-small) }
.trimtab summary { cursor: pointer; padding: var(--space-2) 0 }
.trimtab svg.sign { display: inline-block; width: 11px; height: 11px; margin-right: var(--space-1) }
.trimtab pre { white-space: pre-wrap; margin: var(--space-1) 0; padding: var(--space-2) var(--space-3) }
.trimtab pre { font: var(--text-small)/1.45 var(--mono); background: var(--card) }
.trimtab pre { border-radius: var(--radius); max-height: 18em; overflow: auto }
.trimtab .kept { fill: var(--kept) } .trimtab .pinned { fill: var(--pinned) }
.trimtab .changed { fill: var(--changed) } .trimtab .summarized { fill: var(--summarized) }
.trimtab .inserted { fill: var(--inserted) } .trimtab .beside { fill: var(--beside) }
.trimtab .evicted { fill: var(--evicted) } .trimtab .scroll :is(th, td) { overflow-wrap: normal }
.trimtab .mixed { fill: var(--kept) }
.trimtab .gone { fill: none; stroke: var(--soft); stroke-dasharray: 3 2 }
@media (max-width: 40rem) {
.trimtab .lines thead, .trimtab .blocks thead { display: none }
.trimtab .lines tr, .trimtab .blocks tr { display: grid; gap: 0 var(--space-3); padding: var(--space-2) 0 }
.trimtab .lines tr, .trimtab .blocks tr { border-bottom: 1px solid var(--line) }
.trimtab .lines td, .trimtab .blocks td { border: 0; padding: 0; text-align: left }
.trimtab .lines tr { grid-template-columns: minmax(3.5em, max-content) 1fr max-content }
.trimtab .lines td.row { width: auto } .trimtab .lines td:nth-child(3)::after { content: " tokens" }
.trimtab .blocks tr { grid-template-columns: repeat(3, minmax(0, 1fr)) }
.trimtab .lines td:nth-child(n+4), .trimtab .blocks td:first-child { grid-column: 1 / -1 }
.trimtab .blocks td:nth-child(n+7) { grid-column: 1 / -1 }
.trimtab .blocks td:first-child { font-weight: var(--strong); max-width: none }
.trimtab .blocks td[data-head]::before { content: attr(data-head) " "; color: var(--soft) }
.trimtab .blocks td[data-head]:empty { display: none }
}
"""
    + "\n".join(f".trimtab .b{at} {{ fill: var(--series-{at + 1}) }}" for at in range(SERIES))
)

_PAGE = (
    PAGE_TOKENS
    + """
body { margin: 0; background: var(--back); color: var(--ink) }
main.trimtab { margin: 0 auto; padding: var(--space-5) var(--space-4) var(--space-6) }
"""
)

_NAMES = {
    "kept": "kept",
    "pinned": "pinned: never evicted, never changed",
    "changed": "changed",
    "summarized": "summarized",
    "evicted": "evicted",
    "inserted": "inserted by trimtab",
    "mixed": "some kept, some evicted",
}
"""What a cell of the strip may be, in the order of the key."""
_HEIGHTS = {"evicted": 0.3, "summarized": 0.5, "mixed": 0.65}
"""How high a cell is, as a share of the strip, where it is not whole."""


class _Cell(NamedTuple):
    """One place of the strip."""

    kind: str
    rows: tuple[MessageRow | RunRow | InsertedRow, ...]
    """What it stands for: of several the first and the last. They are put into words where they are drawn."""
    row: int
    """The row of the table it goes to; -1: none."""

    @property
    def said(self) -> str:
        """What is said of it."""
        return " … ".join(map(_words_of, self.rows))


def page(report: Report, *, include_text: bool, title: str, source: str) -> str:
    """Write the report as a page of its own."""
    table = _table(report, include_text=include_text, linked=True)
    about = (source, report.model or "")
    return document(title, _whole(report, table, linked=True), about=about)


def document(title: str, content: str, *, about: Iterable[str] = (), style: str = "") -> str:
    """Write a page of HTML with the look of a report, which needs no script and no other file.

    Args:
        title: Stands over it.
        content: HTML, with all text of others made harmless.
        about: Words that say what it is about, as a file and a model; the day and the version go with them.
        style: What it has beside the style of reports.
    """
    now = datetime.now(UTC)
    made = f'<time datetime="{now:%Y-%m-%dT%H:%MZ}">{now:%Y-%m-%d %H:%M} UTC</time>'
    parts = [*map(safe, filter(None, about)), made, safe(f"trimtab {version('trimtab')}")]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{safe(title)}</title><style>{_PAGE}{_STYLE}{style}</style></head>\n"
        f'<body><main class="trimtab"><h1>{safe(title)}</h1>\n<p class="about">{" · ".join(parts)}</p>\n'
        f"{content}</main></body></html>\n"
    )


def fragment(report: Report, *, include_text: bool) -> str:
    """Write the report as a part of a page, with the style it needs; nothing of it reaches beyond it."""
    return part(_whole(report, _table(report, include_text=include_text)))


def overview_fragment(report: Report) -> str:
    """Write the report without its table of messages, for a page that lists them itself."""
    return part(_whole(report, ()))


def part(content: str, *, style: str = "") -> str:
    """Put HTML into a part of a page of others, as a notebook, in the look of a report."""
    return f'<div class="trimtab"><style>{_STYLE}{style}</style>\n{content}</div>\n'


def _whole(report: Report, table: Iterable[str], *, linked: bool = False) -> str:
    line = verdict(report)
    parts = [
        f'<p class="verdict {line.tone}">{safe(line.text)}</p>',
        f'<p class="outcome">{safe(report.outcome)}</p>',
        f"<dl>{_facts(facts_of(report))}</dl>",
        *_budget(report),
        *_blocks(report),
        *_strip(report, linked=linked),
        *table,
        *_list("Inserted by trimtab, at its place in what is sent", map(_insertion, report.inserted)),
        *_list("What a provider would refuse in the input, and open calls", _violations(report)),
        *_list("Notes", report.notes),
    ]
    return "\n".join(parts) + "\n"


def table_fragment(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table as a part of a page, in the style of a report."""
    lines = list(rows)
    filled = [at for at in range(len(heads)) if any(row[at] for row in lines)]  # no column without a word
    head = "".join(f'<th scope="col">{safe(heads[at])}</th>' for at in filled)
    body = "".join("<tr>" + "".join(f"<td>{safe(row[at])}</td>" for at in filled) + "</tr>" for row in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return part(f"<h2>{safe(title)}</h2>\n{scroll_region(table, title)}\n")


def sentence(kind: str, text: str) -> str:
    """Write a sentence for a page in the look of a report: its "verdict", or a "note"."""
    return f'<p class="{kind}">{safe(text)}</p>'


def shares_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], shares: Sequence[float]
) -> str:
    """Write a table for a page in the look of a report, with a bar in each row that has a share.

    Args:
        title: Stands over it.
        heads: Of its columns, the first of which holds words and the others numbers.
        rows: The cells.
        shares: From 0 to 1, one a row; empty where nothing is drawn.
    """
    drawn = [
        f'<td class="row">{_svg([_rect("kept", 0, share * _WIDTH, "", share=1)], "", role="")}</td>'
        for share in shares
    ] or [""] * len(rows)
    head = "".join(f'<th scope="col"{_right(at)}>{safe(text)}</th>' for at, text in enumerate(heads))
    head += '<th scope="col">of all</th>' if shares else ""
    body = "".join(
        "<tr>" + "".join(f"<td{_right(at)}>{safe(text)}</td>" for at, text in enumerate(row)) + bar + "</tr>"
        for row, bar in zip(rows, drawn, strict=True)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h2>{safe(title)}</h2>\n{scroll_region(table, title)}"


def _right(at: int) -> str:
    return ' class="n"' if at else ""


def scroll_region(content: str, title: str) -> str:
    """Let what is wider than a page move sideways, by keyboard, too, and not the page."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{safe(title)}">{content}</div>'


def facts_fragment(title: str, about: str, facts: Iterable[tuple[str, str]]) -> str:
    """Write words and what is said of each as a part of a page, in the style of a report."""
    return part(f'<h2>{safe(title)}</h2>\n<p class="about">{safe(about)}</p>\n<dl>{_facts(facts)}</dl>\n')


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in facts)


def safe(text: str) -> str:
    """Make text of others harmless: no markup, and nothing that changes the direction of what follows."""
    return escape(plain(text))


def _lines(text: str) -> str:
    """Make a text of several lines harmless."""
    return "\n".join(map(safe, text.splitlines()))


# The budget: what is beside the messages, each block, and what is unused.


def _budget(report: Report) -> Iterator[str]:
    parts = [("beside", "beside the messages", report.fixed_tokens)]
    parts += [
        (colour(place), f"block {block.name}", block.tokens_after - _beside(report))
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
    drawn.append(_outline(room))
    unused = report.remaining_tokens
    yield "<h2>The budget</h2>"
    yield _svg(drawn, "How the budget is used: " + "; ".join(f"{name} {size:,}" for _, name, size in parts))
    key = [(kind, f"{name} {tokens:,}") for kind, name, tokens in parts]
    rest = f"unused {unused:,}" if unused >= 0 else f"over the budget by {-unused:,}"
    yield _key([*key, ("room", rest)])


def _beside(report: Report) -> int:
    """Return what of a block's tokens stands beside its messages: the one block of `fit` is charged all."""
    if len(report.blocks) != 1:
        return 0
    return max(0, report.blocks[0].tokens_after + report.fixed_tokens - report.tokens_after)


def _blocks(report: Report) -> Iterator[str]:
    if len(report.blocks) < 2:
        return
    rows = [_block(report, place, block) for place, block in enumerate(report.blocks)]
    heads = "".join(f'<th scope="col" class="n">{head}</th>' for head in _BLOCK_HEADS)
    yield "<h2>Blocks, as parts of the budget</h2>"
    yield (
        f'<table class="blocks"><thead><tr><th scope="col">block</th>{heads}'
        '<th scope="col">of the budget</th><th scope="col">what was done</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    dropped = ", ".join(report.blocks_dropped)
    said = [f"Blocks that were dropped whole: {dropped}."] if dropped else []
    said += ["The floors of the blocks pass the room, so they were ignored."] if report.floors_ignored else []
    yield from (f"<p>{safe(text)}</p>" for text in said)


_BLOCK_HEADS = ("before", "after", "offered", "floor", "cap")


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
    drawn = [_rect(colour(place), 0, used, f"{block.name}: {share}"), _outline(_WIDTH)]
    for name, tokens in marks.items():
        if tokens:
            x = min(1.0, tokens / whole) * (_WIDTH - 6)
            title = f"<title>{name}: {plural(tokens, 'token')}</title>"
            drawn.append(f'<rect class="mark" x="{x:.1f}" y="0" width="6" height="{_HEIGHT}">{title}</rect>')
    told = zip(_BLOCK_HEADS, numbers, strict=True)
    cells = "".join(f'<td class="n" data-head="{head}">{text}</td>' for head, text in told)
    bar = _svg(drawn, f"{block.name}: {share}")
    done = safe(deeds(block, alone=False))
    return f'<tr><td>{safe(block.name)}</td>{cells}<td class="row">{bar}</td><td>{done}</td></tr>'


def _outline(width: float) -> str:
    return f'<rect class="room" x="0.5" y="0.5" width="{max(0, width - 1):.1f}" height="{_HEIGHT - 1}"/>'


def colour(place: int) -> str:
    """Name the class that fills the bar of a series, as of a block."""
    return f"b{place % SERIES}"


# The messages: a strip of all of them, and a table of what fared alike.


def _strip(report: Report, *, linked: bool) -> Iterator[str]:
    """Draw all messages; where it is `linked`, each goes to its row of the table."""
    if not report.messages and not report.inserted:
        return
    cells = _join(list(_cells(report)))
    width = _WIDTH / len(cells)
    gap = min(1.5, width / 5)
    drawn, place = list[str](), 0
    for row, few in groupby(cells, key=lambda cell: cell.row):
        shown = []
        for cell in few:
            shown.append(_rect(cell.kind, place * width + gap / 2, width - gap, cell.said))
            place += 1
        # The table stands right below: a tab stop a row would be in the way of who goes by keyboard.
        goes = f'<a href="#row-{row}" tabindex="-1">' if linked and row >= 0 else ""
        drawn.append(goes + "".join(shown) + ("</a>" if goes else ""))
    there = {cell.kind for cell in cells}
    yield "<h2>The messages, oldest first</h2>"
    said = f"{plural(len(report.messages), 'message')}, and what became of them"
    yield _svg(drawn, said, role="group" if linked else "img")
    yield _key([(kind, name) for kind, name in _NAMES.items() if kind in there])


def _table(report: Report, *, include_text: bool, linked: bool = False) -> Iterator[str]:
    runs = report.runs
    if not runs and not report.inserted:
        return
    named = len(report.blocks) > 1
    most = max((max(_sizes(run)) for run in runs), default=0)
    table = [
        (f'<tr id="row-{place}">' if linked else "<tr>")
        + _run(run, most, named=named, include_text=include_text)
        for place, run in enumerate(runs)
    ]
    heads = ("index", "fate", "tokens", "size", "messages, and why")
    head = "".join(f'<th scope="col"{_NUMBERS.get(text, "")}>{text}</th>' for text in heads)
    head = f'<table class="lines"><thead><tr>{head}</tr></thead><tbody>'
    yield f"{head}{''.join(table[:_MOST_RUNS])}</tbody></table>"
    if more := table[_MOST_RUNS:]:
        yield f"<details><summary>{plural(len(more), 'more line')}</summary>"
        yield f"{head}{''.join(more)}</tbody></table></details>"


_NUMBERS: dict[str, str] = dict.fromkeys(("index", "tokens"), ' class="n"')


def _sizes(run: RunRow) -> tuple[int, int]:
    """Give what a run took and takes; 0 for what nobody counted."""
    before, after = run.tokens_before or 0, run.tokens_after or 0
    return (max(before, after), after) if run.fate != "evicted" else (before, 0)


def _cells(report: Report) -> Iterator[_Cell]:
    """Give each message a cell, and each that was inserted one before the message it stands before."""
    waiting, place = list(report.inserted), 0
    for stays, cell in _own_cells(report):
        while stays and waiting and waiting[0].position <= place:
            yield _Cell("inserted", (waiting.pop(0),), -1)
            place += 1
        yield cell
        place += stays
    yield from (_Cell("inserted", (row,), -1) for row in waiting)


def _own_cells(report: Report) -> Iterator[tuple[bool, _Cell]]:
    """Give each of the caller's messages a cell, and say whether it stays; with runs alone, of its run."""
    rows = report.messages
    if isinstance(rows, OnlyRuns):
        for place, run in enumerate(rows.runs()):
            cell = _Cell(kind_of(run), (run,), place)
            yield from repeat((run.fate != "evicted", cell), run.message_count)
    else:
        ends = [run.last for run in report.runs]
        for row in rows:
            at = bisect_left(ends, row.index)
            yield row.fate != "evicted", _Cell(kind_of(row), (row,), at)


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
        found.append(_Cell(kind, (few[0].rows[0], few[-1].rows[-1]), few[0].row))
    return found


def kind_of(row: MessageRow | RunRow) -> str:
    """Say in one word what became of a message, as the strip does."""
    if row.fate == "evicted":
        told: Reason = "superseded_by_summary"
        return "summarized" if row.reason == told else "evicted"
    return "pinned" if row.fate == "kept" and row.state == "pinned" else row.fate


def _words_of(row: MessageRow | RunRow | InsertedRow) -> str:
    """Say in a sentence what the table says in a line."""
    if isinstance(row, InsertedRow):
        return _insertion(row)
    run = run_of_one(row) if isinstance(row, MessageRow) else row
    span, fate, tokens, why = cells_of(run)
    what = ", ".join(filter(None, (fate, why, f"{tokens} tokens")))
    return f"{span}, {what_of(run)}: {what}"


def _run(run: RunRow, most: int, *, named: bool, include_text: bool) -> str:
    """Write the cells of a row."""
    span, fate, tokens, why = cells_of(run)
    why, kind = reason_words(run) or why, kind_of(run)
    what = f"{run.block}: {what_of(run)}" if named else what_of(run)
    said = run.text if include_text else None
    text = f'<pre tabindex="0">{_lines(said[:_MOST_CHARS])}</pre>' if said else ""
    reason = f'<span class="why">{safe(why)}</span>' if why else ""
    before, after = (size * _WIDTH / max(1, most) for size in _sizes(run))
    drawn = [_rect(kind, 0, after or before, f"{tokens} tokens", share=1)]
    if after and before - after > 1:
        drawn.append(
            f'<rect class="gone" x="{after:.1f}" y="1" width="{before - after - 1:.1f}" height="32"/>'
        )
    return (
        f'<td class="n">{span}</td><td>{sign(kind)}{fate}</td>'
        f'<td class="n">{tokens}</td><td class="row">{_svg(drawn, "", role="")}</td>'
        f"<td>{safe(what)}{reason}{text}</td></tr>"
    )


def _insertion(row: InsertedRow) -> str:
    return f"{row.position}, {row.role}, {plural(row.tokens, 'token')}: {row.why}"


def _violations(report: Report) -> Iterator[str]:
    for text, fault in violation_lines(report.violations):
        said = clip(text[:_MOST_CHARS], _MOST_CHARS)
        yield said if fault else f"{said} (no fault)"


# Drawing.


def _list(title: str, texts: Iterable[str]) -> Iterator[str]:
    found = [f"<li>{safe(text)}</li>" for text in texts]
    if found:
        yield f"<h2>{title}</h2><ul>{''.join(found[:_MOST_CELLS])}</ul>"
        if len(found) > _MOST_CELLS:
            yield f"<p>… {len(found) - _MOST_CELLS:,} more</p>"


def _rect(kind: str, x: float, width: float, said: str, *, share: float | None = None) -> str:
    """Draw a part of a bar, as high as its kind is, or as this share of the bar."""
    high = (_HEIGHT - 2) * (_HEIGHTS.get(kind, 1.0) if share is None else share)
    top = _HEIGHT - 1 - high
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{high:.1f}">'
        f"<title>{safe(said)}</title></rect>"
    )


def _svg(drawn: Sequence[str], label: str, *, role: str = "img") -> str:
    """Draw what is as wide as its place; without a role it is there to be seen only."""
    told = f'role="{role}" aria-label="{safe(label)}"' if role else 'aria-hidden="true"'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" {told}>{"".join(drawn)}</svg>'


def sign(kind: str) -> str:
    """Draw what stands before a word of the key."""
    high = 8 * _HEIGHTS.get(kind, 1.0)
    return (
        '<svg class="sign" viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="{kind}" x="1" y="{9 - high:.1f}" width="8" height="{high:.1f}"/></svg>'
    )


def _key(parts: Iterable[tuple[str, str]]) -> str:
    return f'<ul class="key">{"".join(f"<li>{sign(kind)}{safe(name)}</li>" for kind, name in parts)}</ul>'
