"""The text form of a report: verdict first, then where the tokens went, then who was evicted and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple
from unicodedata import east_asian_width

from trimtab.report.rows import (
    FATES,
    NAMED_ROLES,
    BlockReport,
    MessageRow,
    RuleCounts,
    RunRow,
    SummaryCheck,
    WrittenResults,
)

if TYPE_CHECKING:
    from trimtab.report import Report
    from trimtab.report.rows import Violation

Tone = Literal["", "bold", "dim", "good", "warn", "bad"]

_COLOURS: dict[Tone, str] = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}


class Line(NamedTuple):
    """One line of output and how it is coloured."""

    text: str
    tone: Tone = ""


_MOST_PLACES = 6
"""Places shown of what breaks one rule."""
_NOT_COUNTED = "? (not counted: fitted.count_all() or `trimtab count` does)"
"""What "?" means in the lines below it, and how to get it."""

_REASONS: dict[str, str] = {
    "over_limit": "the budget has no room for it",
    "over_cap": "its block has no room for it",
    "unit_of_removed": "it goes with a call or a result that was evicted",
    "min_messages": "too few would have remained",
    "block_dropped": "its whole block was dropped",
    "callback": "a callback took it out",
    "truncation": "cut to what there is room for",
    "superseded_by_summary": "a summary stands for it",
    "repair": "a provider would refuse it",
    "cannot_lead": "it may not stand first",
    "cannot_end": "it may not stand last",
    "bound_thinking": "its thinking is bound to what is there no more",
    "cache_mark": "it has a mark for the prompt cache",
    "rules": "other rules stand in its place",
    "compacted": "its results are written shorter, and nothing is lost",
}
"""Reasons of a report in words."""
_REASONS_CHANGED: dict[str, str] = {
    "over_limit": "so that the budget has room for the rest",
    "over_cap": "so that its block has room for the rest",
}
"""Where they are of a message of which something is sent."""


def render(report: Report, *, width: int, colour: bool, include_text: bool) -> str:
    """Write a report as text of at most `width` columns a line."""
    inserted = [
        f"{row.position}, {row.role}, {plural(row.tokens, 'token')}: {row.why}" for row in report.inserted
    ]
    lines = [
        *_head(report, width=width),
        *_blocks(report, width=width),
        *_messages(report, width=width, include_text=include_text),
        *_section(inserted, title="  inserted by trimtab, at its place in the output", width=width),
        *_violations(report, width=width),
        *_section(report.notes, width=width),
    ]
    return "\n".join(_paint(line, width=width, colour=colour) for line in lines)


def _head(report: Report, *, width: int) -> Iterator[Line]:
    yield verdict(report)
    yield from map(Line, _wrap(report.outcome, width=width, first="  ", rest="    "))
    for name, text in facts_of(report):
        yield from map(Line, _wrap(text, width=width, first=f"  {name:<10}", rest=" " * 12))


def facts_of(report: Report) -> list[tuple[str, str]]:
    """Say how it was counted, what room there was, and what became of the whole: a word and a line each."""
    before = report.tokens_before
    added = f"; {len(report.inserted)} inserted" if report.inserted else ""
    values = [] if report.values is None else [("values", values_text(report.values))]
    return [
        ("counted", _counter(report)),
        ("room", _room(report)),
        ("before", _NOT_COUNTED if before is None else plural(before, "token")),
        ("after", _parts(report)),
        ("messages", f"{report.total_message_count:,} in: {fate_counts(report) or 'none'}{added}"),
        *values,
        *([] if report.rules is None else [("rules", rules_text(report.rules))]),
        *([] if report.written is None else [("results", written_text(report.written))]),
    ]


def values_text(checked: SummaryCheck) -> str:
    """Say how many of the values that summaries must keep they have."""
    parts = [
        f"{count:,} {word}"
        for count, word in ((checked.restated, "restated"), (checked.lost, "lost"))
        if count
    ]
    kept = f"{checked.values - checked.lost:,} of {checked.values:,} kept in summaries"
    said = f"{kept} ({', '.join(parts)})" if parts else kept
    return f"{said}; {checked.invented:,} invented" if checked.invented else said


def rules_text(rules: RuleCounts) -> str:
    """Say how many rules hold, and where they are."""
    return (
        f"{rules.in_force:,} in force, {rules.in_view:,} in view by themselves, {rules.restated:,} restated,"
        f" {rules.hidden:,} hidden, {rules.superseded:,} superseded"
    )


def written_text(written: WrittenResults) -> str:
    """Say how many results are written otherwise, and what that saves."""
    said = f"{plural(written.texts, 'text')} compacted, {plural(len(written.references), 'reference')}"
    if written.saved_tokens is None:
        return said
    parts = [f"{name} {plural(tokens, 'token')}" for name, tokens in written.saved_tokens.items()]
    return f"{said}; saved: {', '.join(parts) or 'nothing'}"


def verdict(report: Report) -> Line:
    """Say whether it fits, and how much of the room is unused."""
    used, room = report.tokens_after, report.input_tokens
    share = f" ({share_of(used, room)})" if room > 0 else ""
    unused = report.remaining_tokens
    tail = f"{unused:,} unused" if unused >= 0 else f"{-unused:,} over"
    said = ("fits" if report.fits else "DOES NOT FIT") + ("" if report.exact else ", by estimate")
    tone: Tone = "good" if report.fits else "bad"
    return Line(f"{said}: {used:,} of {plural(room, 'token')}{share}, {tail}", tone)


def outcome_of(report: Report) -> str:
    """Say whether it is a good fit: how much stays; where not all does, what took the room or needs it."""
    count = report.total_message_count
    if not count:
        return "no message was given"
    if report.evicted_message_count:
        said = f"kept {count - report.evicted_message_count:,} of {plural(count, 'message')}"
        said += f", {report.changed_message_count:,} of them changed" if report.changed_message_count else ""
        return "; ".join([said, *_heavy(report), *_need(report)])
    if report.compacted:
        said = f"kept {'the message' if count == 1 else f'all {count:,} messages'}"
        return "; ".join([f"{said}, {report.changed_message_count:,} changed", *_heavy(report)])
    return "kept the message as it was" if count == 1 else f"kept all {count:,} messages as they were"


def _heavy(report: Report) -> Iterator[str]:
    """Name what takes most of the room, if one message does."""
    for row in report.heaviest[:1]:
        tokens = row.tokens_after or 0
        size = ("cut to " if row.tokens_before != tokens else "") + plural(tokens, "token")
        room = report.input_tokens
        share = f"{share_of(tokens, room)} of the room" if room > 0 else "more than the room"
        yield f"message {row.first} ({_tools(row) or what_of(row)}, {size}) takes {share}"


def _need(report: Report) -> Iterator[str]:
    """Say what room is unused, and what the newest that was evicted needs."""
    for unit in report.newest_evicted[:1]:
        tokens, row = unit.tokens, unit.heaviest
        rest = [
            block.limit_tokens - block.tokens_after for block in report.blocks if block.name == unit.block
        ]
        unused = min([report.remaining_tokens, *rest])
        if unused < 0 or not (unit.counted or tokens > unused):
            continue
        where = f" of block {_short(unit.block)}" if len(report.blocks) > 1 else ""
        heavy, what = row.tokens_before or 0, _tools(row) or what_of(row)
        if not unit.counted:
            needs = f"more than {tokens:,} (message {row.first}, {what})"
        elif unit.message_count > 1 and heavy * 2 > tokens:
            needs = f"{tokens:,}, message {row.first} ({what}) {heavy:,} of them"
        else:
            needs = f"{tokens:,}"
        yield f"{plural(unused, 'token')} unused: the newest evicted unit{where} needs {needs}"


def _counter(report: Report) -> str:
    how = "exactly" if report.exact else "as an estimate"
    if report.counter != "estimate":
        how += f", by {plain(report.counter)}"
    if report.model and report.model != report.counter:
        how += f" for {plain(report.model)}"
    if report.shares:
        how += ", as one total (sizes of parts are shares of it)"
    low, high = report.over_margin_tokens, report.margin_tokens
    if high and low is not None and low != high:
        how += f"; margin -{low:,} / +{high:,}"
    return f"{how}; format {plain(report.format)}"


def _room(report: Report) -> str:
    less = [
        ("output reserve", report.output_reserve_tokens),
        ("overhead", report.overhead_tokens),
        ("margin", report.margin_tokens),
    ]
    taken = "".join(f" - {name} {tokens:,}" for name, tokens in less if tokens)
    if not taken:
        return plural(report.input_tokens, "token")
    return f"{report.input_tokens:,} = window {report.window_tokens:,}{taken}"


def _parts(report: Report) -> str:
    """Say what the request is made of; what stands in it beside the messages only if there is any."""
    fixed = report.fixed_tokens
    if not fixed and not report.rules_tokens:
        return plural(report.tokens_after, "token") + ", all messages"
    named = {"system": report.system_tokens, "tools": report.tools_tokens}
    parts = {"messages": report.tokens_after - fixed - report.rules_tokens, "rules": report.rules_tokens}
    parts |= {name: tokens for name, tokens in named.items() if tokens}
    rest = " and ".join([name for name, tokens in named.items() if tokens is None] + ["framing"])
    parts[rest] = report.tokens_after - sum(parts.values())
    return f"{report.tokens_after:,} = " + " + ".join(
        f"{name} {tokens:,}" for name, tokens in parts.items() if tokens
    )


def _blocks(report: Report, *, width: int) -> Iterator[Line]:
    """Give each block a line of numbers with its part of the budget, and a line of what was done."""
    if report.blocks:
        cells = [("block", "before", "after", "limit")]
        for block in report.blocks:
            numbers = (number(block.tokens_before), f"{block.tokens_after:,}", f"{block.limit_tokens:,}")
            cells.append((_name(block.name), *numbers))
        heads, *rows = align(cells, right=(1, 2, 3))
        bars = [_bar(block, report.input_tokens, room=width - columns(heads)) for block in report.blocks]
        legend = _legend("".join(bars))
        yield Line("")
        yield Line(heads, "bold")
        indent = " " * (4 + max(columns(name) for name, *_ in cells))
        for block, row, bar in zip(report.blocks, rows, bars, strict=True):
            over = block.tokens_after > block.limit_tokens
            yield Line(row + bar, "bad" if over else "")
            done = "; ".join([deeds(block, alone=len(report.blocks) == 1), *_borders(block)])
            yield from (Line(line, "dim") for line in _wrap(done, width=width, first=indent, rest=indent))
        if legend:
            yield from (Line(line, "dim") for line in _wrap(legend, width=width, first="  ", rest="  "))
    said = [f"blocks dropped: {', '.join(report.blocks_dropped)}"] if report.blocks_dropped else []
    said += ["the floors of the blocks pass the room and were ignored"] if report.floors_ignored else []
    yield from _bullets(said, width=width, tone="warn")


def _violations(report: Report, *, width: int) -> Iterator[Line]:
    if not report.violations:
        return
    faults = sum(row.fault for row in report.violations)
    open_calls = len(report.violations) - faults
    said = [plural(faults, "fault")] if faults else []
    said += [plural(open_calls, "open call") + " (no fault)"] if open_calls else []
    yield Line("")
    yield Line(f"  the input has {' and '.join(said)}", "bold")
    for text, fault in violation_lines(report.violations):
        yield from _bullets([text], width=width, tone="bad" if fault else "")


def violation_lines(violations: Iterable[Violation]) -> Iterator[tuple[str, bool]]:
    """Say in a line for each rule where it is broken, and whether that is a fault."""
    by_rule: dict[tuple[str, bool], list[Violation]] = {}
    for row in violations:
        by_rule.setdefault((row.rule, row.fault), []).append(row)
    for (rule, fault), found in by_rule.items():
        first = found[0]
        below, message = _apart(first)
        if len(found) == 1:
            where = "request" if first.index is None else f"message {first.index}{below}"
            call = f", call {first.call_id}" if first.call_id is not None else ""
            yield f"{where}, {rule}{call}: {message}", fault
            continue
        spans = in_runs({row.index for row in found if row.index is not None})
        shown = ", ".join(map(_span, spans[:_MOST_PLACES]))
        more = sum(last - first + 1 for first, last in spans[_MOST_PLACES:])
        at = f" in messages {shown}" + (f" and {more:,} more" if more else "") if spans else ""
        example = "" if len({_apart(row) for row in found}) == 1 else "the first: "
        yield f"{rule}, {len(found):,} times{at}: {example}{message}", fault


_PLACE = re.compile(r"messages\[\d+\](?P<below>\S*): ")


def _apart(violation: Violation) -> tuple[str, str]:
    """Take the place off the head of a message, which is said once: what part of it, and what is wrong."""
    place = None if violation.index is None else _PLACE.match(violation.message)
    if place is None:
        return "", violation.message
    below = place["below"].lstrip(".")
    return f" ({below})" if below else "", violation.message[place.end() :]


def _section(texts: Sequence[str], *, width: int, title: str = "") -> Iterator[Line]:
    if texts:
        yield Line("")
        yield from [Line(title, "bold")] if title else []
        yield from _bullets(texts, width=width)


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
_LEAST_WHAT_COLUMNS = 22
_TONES: dict[str, Tone] = {"evicted": "dim", "changed": "warn"}


def share_of(part: int, whole: int) -> str:
    """Round down, so that only what is full reads as full; up when over, for the same reason."""
    return f"{part * 100 // whole if part <= whole else -(-part * 100 // whole)} %"


def fate_counts(of: Report | BlockReport) -> str:
    """Say how many messages fared how, leaving out what none did."""
    return _fates((of.kept_message_count, of.changed_message_count, of.evicted_message_count))


def _fates(counts: Iterable[int]) -> str:
    return ", ".join(f"{count:,} {fate}" for fate, count in zip(FATES, counts, strict=True) if count)


def align(rows: Sequence[Sequence[str]], *, right: Collection[int]) -> list[str]:
    """Write rows of cells below each other, some of the columns at their right."""
    sizes = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return [
        "".join(
            "  " + (_blanks(cell, size) + cell if place in right else cell + _blanks(cell, size))
            for place, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )
        for row in rows
    ]


def _blanks(cell: str, size: int) -> str:
    return " " * (size - columns(cell))


def _name(block: str) -> str:
    return clip(plain(block), _NAME_COLUMNS)


_SIGNS = {"█": "after", "░": "before", "+": "more", "╷": "floor", "┆": "offer", "│": "cap"}
"""What a bar is drawn with; what is free is dotted."""


def _legend(bars: str) -> str:
    """Explain the signs that occur in bars."""
    signs = ", ".join(f"{sign}={word}" for sign, word in _SIGNS.items() if sign in bars)
    return f"of the budget: {signs}" if signs else ""


def _bar(block: BlockReport, budget_tokens: int, *, room: int) -> str:
    """Draw a block as a part of the budget: what stayed, what there was, and its borders."""
    if budget_tokens <= 0 or not (block.limit_tokens or block.tokens_after or block.tokens_before):
        return ""
    share = f"  {share_of(block.tokens_after, budget_tokens):>5}"
    length = min(_BAR_COLUMNS, room - columns(share) - 3)
    if length < _LEAST_BAR_COLUMNS:
        return share
    after = block.tokens_after
    before = max(after, block.tokens_before or 0)
    stayed, was = (min(length, tokens * length // budget_tokens) for tokens in (after, before))
    drawn = [*"█" * stayed, *"░" * (was - stayed), *"·" * (length - was)]
    offered = block.offered_tokens if block.offered_tokens != after else 0  # else it says nothing more
    borders = {"╷": block.floor_tokens, "┆": offered, "│": block.cap_tokens or 0}
    for sign, tokens in borders.items():
        if 0 < tokens < budget_tokens:
            drawn[tokens * length // budget_tokens] = sign
    return f"{share}  {''.join(drawn)}{'+' if before > budget_tokens else ''}"


def _borders(block: BlockReport) -> Iterator[str]:
    """Say in numbers which borders a block has beside its limit."""
    if block.floor_tokens:
        yield f"floor {block.floor_tokens:,}"
    if block.tokens_after != block.offered_tokens < block.limit_tokens:
        yield f"offered {block.offered_tokens:,}"


def deeds(block: BlockReport, *, alone: bool) -> str:
    """Say what was done to a block; what became of its messages, if the head does not say it already."""
    done = [", then ".join(block.actions) or "kept"]
    if not alone:
        done.append(f"messages: {fate_counts(block) or 'none'}")
    if block.cap_tokens is not None:
        at_cap = block.limit_tokens == block.cap_tokens
        done.append(
            "limit is its cap"
            if at_cap
            else f"limit is what was unused, below its cap of {block.cap_tokens:,}"
        )
    if block.floor_missed_tokens:
        done.append(f"{plural(block.floor_missed_tokens, 'token')} under its floor")
    if block.freed_tokens:
        done.append(f"{plural(block.freed_tokens, 'token')} freed by another block")
    return "; ".join(done)


def _messages(report: Report, *, width: int, include_text: bool) -> Iterator[Line]:
    """Give each run of messages a line; of many, the middle is only counted."""
    runs = report.runs
    if not runs:
        return
    head = len(runs) if len(runs) <= _MOST_RUNS else _MOST_RUNS - _LAST_RUNS
    hidden = runs[head:-_LAST_RUNS]
    shown = [*runs[:head], *(runs[-_LAST_RUNS:] if hidden else ())]
    titles, *rows = align([("index", "fate", "tokens", "why"), *map(cells_of, shown)], right=(2,))
    yield Line("")
    yield Line(titles, "bold")
    for place, (run, row) in enumerate(zip(shown, rows, strict=True)):
        if hidden and place == head:
            counts = [sum(one.message_count for one in hidden if one.fate == fate) for fate in FATES]
            said = f"{plural(len(hidden), 'more line')}: {plural(sum(counts), 'message')}, {_fates(counts)}"
            yield Line(f"  … {said}", "dim")
        what = f"{_name(run.block)}: {what_of(run)}" if len(report.blocks) > 1 else what_of(run)
        yield from _run_lines(row, _TONES.get(run.fate, ""), what=what, width=width)
        if include_text and run.text:
            # Far more than any terminal is wide, so that a huge text is not made printable in full.
            yield Line(f"      | {plain(run.text[:1000])}", "dim")


def _run_lines(row: str, tone: Tone, *, what: str, width: int) -> Iterator[Line]:
    """Put what a run is beside its numbers, or beneath them where that would be too narrow."""
    beside = " " * (columns(row) + 2)
    if width - len(beside) < min(_LEAST_WHAT_COLUMNS, columns(what)):
        yield Line(row, tone)
        row, beside = " " * 4, " " * 6
    yield from (Line(line, tone) for line in _wrap(what, width=width, first=row + "  ", rest=beside))


# Runs of messages told in a line each.

_NAMED_TOOLS = 3
_NAMED_LABELS = 3
_WORD_COLUMNS = 32
"""More of a role or a tool's name is not shown; providers allow 64 characters, input may hold any."""


def cells_of(run: RunRow) -> tuple[str, str, str, str]:
    """Give the indices of a run, as "12–398", its fate, its size, and why."""
    span = str(run.first) if run.first == run.last else f"{run.first}–{run.last}"
    return span, run.fate, _tokens(run), run.reason or ("" if run.state == "free" else run.state)


def reason_words(row: MessageRow | RunRow) -> str:
    """Say in words why a message is not sent as it came; nothing where it is."""
    if row.reason is None:
        return ""
    changed = _REASONS_CHANGED if row.fate == "changed" else _REASONS
    return changed.get(row.reason, _REASONS[row.reason])


def _tokens(run: RunRow) -> str:
    """Give the size of a run; "?" if it was not counted for every one of them."""
    if run.fate == "changed":
        return f"{number(run.tokens_before)} → {number(run.tokens_after)}"
    return number(run.tokens_after if run.fate == "kept" else run.tokens_before)


def what_of(run: RunRow) -> str:
    """Give roles or number of messages, the tools they call, and the labels they have."""
    roles = " + ".join(map(_short, run.roles))
    who = roles if run.message_count <= NAMED_ROLES else plural(run.message_count, "message")
    labels = _first_few(run.labels, _NAMED_LABELS)
    return ", ".join(filter(None, (who, _tools(run), labels)))


def _first_few(words: Sequence[str], most: int) -> str:
    more = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*map(_short, words[:most]), *more])


def _tools(run: RunRow) -> str:
    """Say which tools are called; "result of" if only the answers are here."""
    if not run.tools:
        return ""
    tools = sorted(run.tools.items(), key=lambda tool: -tool[1])
    named = [_short(name) + (f"×{count}" if count > 1 else "") for name, count in tools[:_NAMED_TOOLS]]
    more = [f"{len(tools) - _NAMED_TOOLS} more"] if len(tools) > _NAMED_TOOLS else []
    return ("result of " if run.answers else "calls ") + ", ".join([*named, *more])


def _short(word: str) -> str:
    # Cut first: the name may be a megabyte.
    return clip(plain(word[: _WORD_COLUMNS + 1]), _WORD_COLUMNS)


# Lines of a terminal: their width, their colour, and what may be printed in them.


def _paint(line: Line, *, width: int, colour: bool) -> str:
    """Cut a line to the width and colour it; trailing blanks go."""
    text = clip(line.text.rstrip(), width)
    if not colour or not line.tone or not text:
        return text
    return f"\x1b[{_COLOURS[line.tone]}m{text}\x1b[0m"


_MOST_LINE = 1_000


def plain(text: str) -> str:
    """Make text of others printable on one line; nothing of it can steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def one_line(text: object) -> str:
    """Write what others say as a line of a log: printable, and 1,000 characters of it at most."""
    said = str(text)
    return plain(said if len(said) <= _MOST_LINE else said[: _MOST_LINE - 1] + "…")


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


def runs(numbers: Iterable[int], /) -> str:
    """Write whole numbers as `1–3, 5`."""
    return ", ".join(map(_span, in_runs(numbers)))


def _span(run: tuple[int, int]) -> str:
    first, last = run
    return f"{first}" if first == last else f"{first}–{last}"


def in_runs(numbers: Iterable[int], /) -> list[tuple[int, int]]:
    """List the first and the last of each run of whole numbers, ascending."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def plural(number: int, one: str) -> str:
    """Say how many there are of something: "1 message", "1,204 messages"."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def in_dollars(value: float | None) -> str:
    """Write a price in dollars, small ones with more digits; nothing where it is not known."""
    if value is None:
        return ""
    return (
        f"${value:,.2f}" if value >= 1 or not value else f"${value:.2g}" if value < 0.01 else f"${value:.3f}"
    )


def extremes(numbers: Iterable[int], /) -> tuple[int, ...]:
    """Return the least and the most; one number where they are the same."""
    found = sorted(set(numbers))
    return tuple(dict.fromkeys((found[0], found[-1]))) if found else ()


def number(value: int | None) -> str:
    """Write a number with separators; "?" for one that nobody counted."""
    return "?" if value is None else f"{value:,}"
