"""The two tables of the text form: blocks, and messages in runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trimtab.report.lines import Line, Tone, clip, columns, counted, known, pad, plain, wrap
from trimtab.report.rows import FATES, BlockReport
from trimtab.report.runs import Run, runs

if TYPE_CHECKING:
    from trimtab.report import Report

_MOST_RUNS = 24
"""Lines of messages shown before the middle is elided: a screen, with the rest of the report."""
_LAST_RUNS = 12
_NAME_COLUMNS = 16
_BAR_COLUMNS = 24
_LEAST_BAR_COLUMNS = 6
_LEGEND = "█ after, ░ before, │ limit"
_LEAST_WHAT_COLUMNS = 22
_TONES: dict[str, Tone] = {"evicted": "dim", "changed": "warn"}


def used_share(part: int, whole: int) -> str:
    """Round down, so that only what is full reads as full; up when over, for the same reason."""
    return f"{part * 100 // whole if part <= whole else -(-part * 100 // whole)} %"


def fate_counts(*, kept: int, changed: int, evicted: int) -> str:
    """Say how many messages fared how, leaving out what none did."""
    counts = {"kept": kept, "changed": changed, "evicted": evicted}
    return ", ".join(f"{count:,} {fate}" for fate, count in counts.items() if count) or "none"


def block_table(blocks: Sequence[BlockReport], *, width: int) -> Iterator[Line]:
    """Give each block a line of numbers with a bar of how full it is, and a line of what was done."""
    rows = [("block", "before", "after", "limit")]
    for entry in blocks:
        numbers = (known(entry.tokens_before), f"{entry.tokens_after:,}", f"{entry.limit_tokens:,}")
        rows.append((_name(entry.name), *numbers))
    sizes = [max(columns(row[place]) for row in rows) for place in range(4)]
    yield Line("")
    heads: list[BlockReport | None] = [None, *blocks]
    for row, block in zip(rows, heads, strict=True):
        cells = [
            pad(cell, size, right=place > 0)
            for place, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        text = "  " + "  ".join(cells)
        if block is None:
            yield Line(_with_legend(text, width=width), "bold")
            continue
        yield Line(text + _bar(block, room=width - columns(text)), _over(block))
        indent = " " * (sizes[0] + 4)
        yield from (
            Line(line, "dim")
            for line in wrap(_deeds(block, alone=len(blocks) == 1), width=width, first=indent, rest=indent)
        )


def _with_legend(text: str, *, width: int) -> str:
    """Say what the bars draw, where there is room to draw them."""
    said = text + " " * 9 + _LEGEND
    return said if columns(said) <= width else text


def _name(block: str) -> str:
    return clip(plain(block), _NAME_COLUMNS)


def _over(block: BlockReport) -> Tone:
    return "bad" if block.tokens_after > block.limit_tokens else ""


def _bar(block: BlockReport, *, room: int) -> str:
    """Draw what stayed, what left and where the limit is, where there is room to draw."""
    if block.limit_tokens <= 0:
        return ""
    share = "  " + pad(used_share(block.tokens_after, block.limit_tokens), 5, right=True)
    length = min(_BAR_COLUMNS, room - columns(share) - 3)
    if length < _LEAST_BAR_COLUMNS:
        return share
    before, after, limit = block.tokens_before or 0, block.tokens_after, block.limit_tokens
    scale = max(before, after, limit)
    stayed, was, most = (tokens * length // scale for tokens in (after, max(before, after), limit))
    drawn = "█" * stayed + "░" * (was - stayed) + "·" * (most - was)
    return f"{share}  {drawn[:most]}│{drawn[most:]}"


def _deeds(block: BlockReport, *, alone: bool) -> str:
    """Say what was done to a block; what became of its messages, if the head does not say it already."""
    deeds = [", then ".join(block.actions) or "kept"]
    if not alone:
        fates = fate_counts(
            kept=block.kept_message_count,
            changed=block.changed_message_count,
            evicted=block.evicted_message_count,
        )
        deeds.append(f"messages: {fates}")
    if block.cap_tokens is not None:
        at_cap = block.limit_tokens == block.cap_tokens
        deeds.append(
            "limit is its cap" if at_cap else f"limit is what was left, below its cap of {block.cap_tokens:,}"
        )
    if block.floor_missed_tokens:
        deeds.append(f"{counted(block.floor_missed_tokens, 'token')} under its floor")
    if block.freed_tokens:
        deeds.append(f"{counted(block.freed_tokens, 'token')} freed by another block")
    return "; ".join(deeds)


def message_table(report: Report, *, width: int, include_text: bool) -> Iterator[Line]:
    """Give each run of messages a line; of many, the middle is only counted."""
    found = runs(report.messages)
    if not found:
        return
    hidden = found[_MOST_RUNS - _LAST_RUNS : -_LAST_RUNS] if len(found) > _MOST_RUNS else []
    head = found[: _MOST_RUNS - _LAST_RUNS] if hidden else found
    tail = found[-_LAST_RUNS:] if hidden else []
    blocks = len(report.blocks) > 1
    table = [(run.span, run.first.fate, run.tokens, run.why) for run in [*head, *tail]]
    titles = ("index", "fate", "tokens", "why")
    sizes = [max(map(columns, column)) for column in zip(titles, *table, strict=True)]
    yield Line("")
    yield Line(_row(titles, sizes), "bold")
    for place, (run, cells) in enumerate(zip([*head, *tail], table, strict=True)):
        if hidden and place == len(head):
            yield Line("  " + _elided(hidden), "dim")
        what = f"{_name(run.first.block)}: {run.what}" if blocks else run.what
        yield from _run_lines(run, _row(cells, sizes), what=what, width=width)
        if include_text:
            yield from _preview(run)


def _row(cells: Sequence[str], sizes: Sequence[int]) -> str:
    places = enumerate(zip(cells, sizes, strict=True))
    return "  " + "  ".join(pad(cell, size, right=place == 2) for place, (cell, size) in places)


def _run_lines(run: Run, row: str, *, what: str, width: int) -> Iterator[Line]:
    """Put what a run is beside its numbers, or beneath them where that would be too narrow."""
    tone = _TONES.get(run.first.fate, "")
    beside = " " * (columns(row) + 2)
    if width - len(beside) < min(_LEAST_WHAT_COLUMNS, columns(what)):
        yield Line(row, tone)
        row, beside = " " * 4, " " * 6
    yield from (Line(line, tone) for line in wrap(what, width=width, first=row + "  ", rest=beside))


def _preview(run: Run) -> Iterator[Line]:
    if len(run.rows) == 1 and run.first.text:
        # Far more than any terminal is wide, so that a huge text is not made printable in full.
        yield Line(f"      | {plain(run.first.text[:1000])}", "dim")


def _elided(hidden: Sequence[Run]) -> str:
    fates = [row.fate for run in hidden for row in run.rows]
    counts = fate_counts(**{fate: fates.count(fate) for fate in FATES})
    return f"… {counted(len(hidden), 'more line')}: {counted(len(fates), 'message')}, {counts}"
