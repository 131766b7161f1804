"""The text form of a report: verdict first, then where the tokens went, then who left and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trimtab.report.lines import Line, Tone, counted, paint, plain, wrap
from trimtab.report.rows import ViolationLike
from trimtab.report.tables import block_table, fate_counts, message_table, used_share

if TYPE_CHECKING:
    from trimtab.report import Report

_MOST_VIOLATIONS = 24


def render(report: Report, *, width: int, colour: bool, include_text: bool) -> str:
    """Write a report as text of at most `width` columns a line."""
    lines = [*_head(report, width=width), *_blocks(report, width=width)]
    lines += message_table(report, width=width, include_text=include_text)
    lines += [
        *_inserted(report, width=width),
        *_violations(report, width=width),
        *_notes(report, width=width),
    ]
    return "\n".join(paint(line, width=width, colour=colour) for line in lines)


def _head(report: Report, *, width: int) -> Iterator[Line]:
    yield _verdict(report)
    facts = [
        ("counted", _counted_by(report)),
        ("room", _room(report)),
        ("before", _before(report)),
        ("after", _after(report)),
        ("messages", _fates(report)),
    ]
    for name, text in facts:
        yield from map(Line, wrap(text, width=width, first=f"  {name:<10}", rest=" " * 12))


def _verdict(report: Report) -> Line:
    used, room = report.tokens_after, report.input_tokens
    share = f" ({used_share(used, room)})" if room > 0 else ""
    left = report.remaining_tokens
    tail = f"{left:,} left" if left >= 0 else f"{-left:,} over"
    verdict = ("fits" if report.fits else "DOES NOT FIT") + ("" if report.exact else ", by estimate")
    tone: Tone = "good" if report.fits else "bad"
    return Line(f"{verdict}: {used:,} of {counted(room, 'token')}{share}, {tail}", tone)


def _counted_by(report: Report) -> str:
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


def _before(report: Report) -> str:
    """Say the size as it came in, or what "?" means in the lines below."""
    if report.tokens_before is None:
        return "? (not counted: the fit did not need it)"
    return counted(report.tokens_before, "token")


def _after(report: Report) -> str:
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


def _fates(report: Report) -> str:
    fates = fate_counts(
        kept=report.kept_message_count,
        changed=report.changed_message_count,
        evicted=report.evicted_message_count,
    )
    added = f"; {len(report.inserted)} inserted" if report.inserted else ""
    return f"{report.total_message_count:,} in: {fates}{added}"


def _blocks(report: Report, *, width: int) -> Iterator[Line]:
    if report.blocks:
        yield from block_table(report.blocks, width=width)
    if report.blocks_dropped:
        text = ", ".join(report.blocks_dropped)
        yield from _bullets([f"blocks dropped: {text}"], width=width, tone="warn")
    if report.floors_ignored:
        yield from _bullets(
            ["the floors of the blocks pass the room and were ignored"], width=width, tone="warn"
        )


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
        yield from _violation(row, width=width)
    if len(shown) < len(report.violations):
        yield Line(f"  … {len(report.violations) - len(shown):,} more", "dim")


def _violation(row: ViolationLike, *, width: int) -> Iterator[Line]:
    where = "request" if row.index is None else f"message {row.index}"
    call = f", call {row.call_id}" if row.call_id is not None else ""
    yield from _bullets(
        [f"{where}, {row.rule}{call}: {row.message}"], width=width, tone="bad" if row.fault else ""
    )


def _notes(report: Report, *, width: int) -> Iterator[Line]:
    if report.notes:
        yield Line("")
    yield from _bullets(report.notes, width=width)


def _bullets(texts: Sequence[str], *, width: int, tone: Tone = "") -> Iterator[Line]:
    for text in texts:
        yield from (Line(line, tone) for line in wrap(text, width=width, first="  - ", rest="    "))
