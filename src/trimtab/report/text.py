"""The text form of a report: verdict first, then where the tokens went, then who left and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple
from unicodedata import east_asian_width

from trimtab.report.rows import FATES, BlockReport, Fate, MessageRow

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["Run", "clip", "counted", "plain", "render", "runs"]

Tone = Literal["", "bold", "dim", "good", "warn", "bad"]

_COLOURS: dict[Tone, str] = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}


class Line(NamedTuple):
    """One line of output and how it is coloured."""

    text: str
    tone: Tone = ""


_MOST_VIOLATIONS = 24
_NOT_COUNTED = "? (not counted: the fit did not need it)"
"""What "?" means in the lines below it."""


def render(report: Report, *, width: int, colour: bool, include_text: bool) -> str:
    """Write a report as text of at most `width` columns a line."""
    lines = [
        *_head(report, width=width),
        *_blocks(report, width=width),
        *_messages(report, width=width, include_text=include_text),
        *_inserted(report, width=width),
        *_violations(report, width=width),
        *_notes(report, width=width),
    ]
    return "\n".join(_paint(line, width=width, colour=colour) for line in lines)


def _head(report: Report, *, width: int) -> Iterator[Line]:
    yield _verdict(report)
    before = report.tokens_before
    added = f"; {len(report.inserted)} inserted" if report.inserted else ""
    facts = [
        ("counted", _counter(report)),
        ("room", _room(report)),
        ("before", _NOT_COUNTED if before is None else counted(before, "token")),
        ("after", _parts(report)),
        ("messages", f"{report.total_message_count:,} in: {_fates(report)}{added}"),
    ]
    for name, text in facts:
        yield from map(Line, _wrap(text, width=width, first=f"  {name:<10}", rest=" " * 12))


def _verdict(report: Report) -> Line:
    used, room = report.tokens_after, report.input_tokens
    share = f" ({_share(used, room)})" if room > 0 else ""
    left = report.remaining_tokens
    tail = f"{left:,} left" if left >= 0 else f"{-left:,} over"
    verdict = ("fits" if report.fits else "DOES NOT FIT") + ("" if report.exact else ", by estimate")
    tone: Tone = "good" if report.fits else "bad"
    return Line(f"{verdict}: {used:,} of {counted(room, 'token')}{share}, {tail}", tone)


def _counter(report: Report) -> str:
    how = "exactly" if report.exact else "as an estimate"
    if report.counter != "estimate":
        how += f", by {plain(report.counter)}"
    if report.model and report.model != report.counter:
        how += f" for {plain(report.model)}"
    if report.shares:
        how += ", as one total (sizes of parts are shares of it)"
    return f"{how}; format {plain(report.format)}"


def _room(report: Report) -> str:
    less = [
        ("output reserve", report.output_reserve_tokens),
        ("overhead", report.overhead_tokens),
        ("margin", report.margin_tokens),
    ]
    taken = "".join(f" - {name} {tokens:,}" for name, tokens in less if tokens)
    if not taken:
        return counted(report.input_tokens, "token")
    return f"{report.input_tokens:,} = window {report.window_tokens:,}{taken}"


def _parts(report: Report) -> str:
    """Say what the request is made of; what stands in it beside the messages only if there is any."""
    fixed = report.fixed_tokens
    if not fixed:
        return counted(report.tokens_after, "token") + ", all messages"
    named = {"system": report.system_tokens, "tools": report.tools_tokens}
    parts = {"messages": report.tokens_after - fixed}
    parts |= {name: tokens for name, tokens in named.items() if tokens}
    rest = " and ".join([name for name, tokens in named.items() if tokens is None] + ["framing"])
    parts[rest] = report.tokens_after - sum(parts.values())
    return f"{report.tokens_after:,} = " + " + ".join(
        f"{name} {tokens:,}" for name, tokens in parts.items() if tokens
    )


def _blocks(report: Report, *, width: int) -> Iterator[Line]:
    if report.blocks:
        yield from _block_table(report.blocks, width=width)
    said = [f"blocks dropped: {', '.join(report.blocks_dropped)}"] if report.blocks_dropped else []
    said += ["the floors of the blocks pass the room and were ignored"] if report.floors_ignored else []
    yield from _bullets(said, width=width, tone="warn")


def _inserted(report: Report, *, width: int) -> Iterator[Line]:
    if report.inserted:
        yield Line("")
        yield Line("  inserted by trimtab, at its place in the output", "bold")
    yield from _bullets(
        [f"{row.position}, {row.role}, {counted(row.tokens, 'token')}: {row.why}" for row in report.inserted],
        width=width,
    )


def _violations(report: Report, *, width: int) -> Iterator[Line]:
    if not report.violations:
        return
    faults = sum(row.fault for row in report.violations)
    open_calls = len(report.violations) - faults
    said = [counted(faults, "fault")] if faults else []
    said += [counted(open_calls, "open call") + " (no fault)"] if open_calls else []
    yield Line("")
    yield Line(f"  the input has {' and '.join(said)}", "bold")
    shown = report.violations[:_MOST_VIOLATIONS]
    for row in shown:
        where = "request" if row.index is None else f"message {row.index}"
        call = f", call {row.call_id}" if row.call_id is not None else ""
        line = f"{where}, {row.rule}{call}: {row.message}"
        yield from _bullets([line], width=width, tone="bad" if row.fault else "")
    if len(shown) < len(report.violations):
        yield Line(f"  … {len(report.violations) - len(shown):,} more", "dim")


def _notes(report: Report, *, width: int) -> Iterator[Line]:
    if report.notes:
        yield Line("")
    yield from _bullets(report.notes, width=width)


def _bullets(texts: Sequence[str], *, width: int, tone: Tone = "") -> Iterator[Line]:
    for text in texts:
        yield from (Line(line, tone) for line in _wrap(text, width=width, first="  - ", rest="    "))


# The two tables: blocks, and messages in runs.

_MOST_RUNS = 24
"""Lines of messages shown before the middle is elided: a screen, with the rest of the report."""
_LAST_RUNS = 12
_NAME_COLUMNS = 16
_BAR_COLUMNS = 24
_LEAST_BAR_COLUMNS = 6
_LEGEND = "█ after, ░ before, │ limit"
_LEAST_WHAT_COLUMNS = 22
_TONES: dict[str, Tone] = {"evicted": "dim", "changed": "warn"}


def _share(part: int, whole: int) -> str:
    """Round down, so that only what is full reads as full; up when over, for the same reason."""
    return f"{part * 100 // whole if part <= whole else -(-part * 100 // whole)} %"


def _fates(of: Report | BlockReport) -> str:
    """Say how many messages fared how."""
    counts = (of.kept_message_count, of.changed_message_count, of.evicted_message_count)
    return _fate_counts(zip(FATES, counts, strict=True))


def _fate_counts(counts: Iterable[tuple[Fate, int]]) -> str:
    """Write numbers by fate, leaving out what none did."""
    return ", ".join(f"{count:,} {fate}" for fate, count in counts if count) or "none"


def _block_table(blocks: Sequence[BlockReport], *, width: int) -> Iterator[Line]:
    """Give each block a line of numbers with a bar of how full it is, and a line of what was done."""
    rows = [("block", "before", "after", "limit")]
    for entry in blocks:
        numbers = (_number(entry.tokens_before), f"{entry.tokens_after:,}", f"{entry.limit_tokens:,}")
        rows.append((_name(entry.name), *numbers))
    sizes = [max(columns(row[place]) for row in rows) for place in range(4)]
    yield Line("")
    heads: list[BlockReport | None] = [None, *blocks]
    for row, block in zip(rows, heads, strict=True):
        cells = [
            _pad(cell, size, right=place > 0)
            for place, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        text = "  " + "  ".join(cells)
        if block is None:
            legend = text + " " * 9 + _LEGEND
            yield Line(legend if columns(legend) <= width else text, "bold")
            continue
        over = block.tokens_after > block.limit_tokens
        yield Line(text + _bar(block, room=width - columns(text)), "bad" if over else "")
        indent = " " * (sizes[0] + 4)
        yield from (
            Line(line, "dim")
            for line in _wrap(_deeds(block, alone=len(blocks) == 1), width=width, first=indent, rest=indent)
        )


def _name(block: str) -> str:
    return clip(plain(block), _NAME_COLUMNS)


def _bar(block: BlockReport, *, room: int) -> str:
    """Draw what stayed, what left and where the limit is, where there is room to draw."""
    if block.limit_tokens <= 0:
        return ""
    share = "  " + _pad(_share(block.tokens_after, block.limit_tokens), 5, right=True)
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
        deeds.append(f"messages: {_fates(block)}")
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


def _messages(report: Report, *, width: int, include_text: bool) -> Iterator[Line]:
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
            yield Line("  " + _elision(hidden), "dim")
        what = f"{_name(run.first.block)}: {run.what}" if blocks else run.what
        yield from _run_lines(run, _row(cells, sizes), what=what, width=width)
        if include_text:
            yield from _preview(run)


def _row(cells: Sequence[str], sizes: Sequence[int]) -> str:
    places = enumerate(zip(cells, sizes, strict=True))
    return "  " + "  ".join(_pad(cell, size, right=place == 2) for place, (cell, size) in places)


def _run_lines(run: Run, row: str, *, what: str, width: int) -> Iterator[Line]:
    """Put what a run is beside its numbers, or beneath them where that would be too narrow."""
    tone = _TONES.get(run.first.fate, "")
    beside = " " * (columns(row) + 2)
    if width - len(beside) < min(_LEAST_WHAT_COLUMNS, columns(what)):
        yield Line(row, tone)
        row, beside = " " * 4, " " * 6
    yield from (Line(line, tone) for line in _wrap(what, width=width, first=row + "  ", rest=beside))


def _preview(run: Run) -> Iterator[Line]:
    if len(run.rows) == 1 and run.first.text:
        # Far more than any terminal is wide, so that a huge text is not made printable in full.
        yield Line(f"      | {plain(run.first.text[:1000])}", "dim")


def _elision(hidden: Sequence[Run]) -> str:
    fates = [row.fate for run in hidden for row in run.rows]
    counts = _fate_counts((fate, fates.count(fate)) for fate in FATES)
    return f"… {counted(len(hidden), 'more line')}: {counted(len(fates), 'message')}, {counts}"


# Rows of messages told in few lines: neighbours that fared alike become one run.

_NAMED_TOOLS = 3
_NAMED_ROLES = 2
_NAMED_LABELS = 3
_WORD_COLUMNS = 32
"""More of a role or a tool's name is not shown; providers allow 64 characters, input may hold any."""
_ANSWERING_ROLES = frozenset({"tool", "user", "function"})


class Run(NamedTuple):
    """Neighbouring messages with the same fate, reason and block; a changed one stands alone."""

    rows: tuple[MessageRow, ...]

    @property
    def first(self) -> MessageRow:
        """The oldest of them, which speaks for all in fate, reason and block."""
        return self.rows[0]

    @property
    def span(self) -> str:
        """Their indices, as in "12–398"."""
        first, last = self.rows[0].index, self.rows[-1].index
        return str(first) if first == last else f"{first}–{last}"

    @property
    def why(self) -> str:
        """Their reason; that they are pinned or held, if they have none; else nothing."""
        return self.first.reason or ("" if self.first.state == "free" else self.first.state)

    @property
    def tokens(self) -> str:
        """Their size; "?" if it was not counted for every one of them."""
        if self.first.fate == "changed":
            return f"{_number(self.first.tokens_before)} → {_number(self.first.tokens_after)}"
        kept = self.first.fate == "kept"
        sizes = [row.tokens_after if kept else row.tokens_before for row in self.rows]
        counts = [size for size in sizes if size is not None]
        return _number(sum(counts) if len(counts) == len(sizes) else None)

    @property
    def what(self) -> str:
        """Roles or number of messages, the tools they call, and the labels they have."""
        roles = " + ".join(_short(row.role) for row in self.rows[:_NAMED_ROLES])
        who = roles if len(self.rows) <= _NAMED_ROLES else counted(len(self.rows), "message")
        also = [said for said in (_tools(self.rows), _labels(self.rows)) if said]
        return ", ".join([who, *also])


def runs(rows: Iterable[MessageRow]) -> list[Run]:
    """Join neighbours that fared alike; each changed message is a run of its own."""
    found: list[list[MessageRow]] = []
    for row in rows:
        if found and row.fate != "changed" and _fate_key(found[-1][0]) == _fate_key(row):
            found[-1].append(row)
        else:
            found.append([row])
    return [Run(tuple(group)) for group in found]


def _fate_key(row: MessageRow) -> tuple[str, str | None, str, bool]:
    return row.fate, row.reason, row.block, row.state == "pinned"


def _tools(rows: Sequence[MessageRow]) -> str:
    """Say which tools are called; "result of" if only the answers are here."""
    # A call and its result name the same call; ids are used again in later units.
    named = {
        (row.unit, call_id): name
        for row in rows
        for call_id, name in zip(row.call_ids, row.tool_names, strict=False)
    }
    if not named:
        return ""
    tools = Counter(named.values()).most_common()
    shown = [_short(name) + (f"×{count}" if count > 1 else "") for name, count in tools[:_NAMED_TOOLS]]
    if len(tools) > _NAMED_TOOLS:
        shown.append(f"{len(tools) - _NAMED_TOOLS} more")
    return ("result of " if all(map(_answers, rows)) else "calls ") + ", ".join(shown)


def _labels(rows: Sequence[MessageRow]) -> str:
    """List the words their block has for them."""
    labels = [_short(row.label) for row in rows if row.label]
    shown = labels[:_NAMED_LABELS]
    if len(labels) > _NAMED_LABELS:
        shown.append(f"{len(labels) - _NAMED_LABELS} more")
    return ", ".join(shown)


def _short(word: str) -> str:
    # Cut first: the name may be a megabyte.
    return clip(plain(word[: _WORD_COLUMNS + 1]), _WORD_COLUMNS)


def _answers(row: MessageRow) -> bool:
    return row.role in _ANSWERING_ROLES or row.role.endswith("_output")


# Lines of a terminal: their width, their colour, and what may be printed in them.


def _paint(line: Line, *, width: int, colour: bool) -> str:
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


def _pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill text up to a width; on its left if it is to stand right."""
    blanks = " " * max(0, width - columns(text))
    return blanks + text if right else text + blanks


def _wrap(text: str, *, width: int, first: str, rest: str) -> Iterator[str]:
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


def _number(number: int | None) -> str:
    """Write a number with separators; "?" for one that nobody counted."""
    return "?" if number is None else f"{number:,}"
