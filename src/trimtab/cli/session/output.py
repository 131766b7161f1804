"""How events, views and numbers of a session are written: JSON for programs, lines for people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import click

from trimtab._fitting.fitted import Fitted
from trimtab.cli.json_out import dump
from trimtab.cli.output import encoded, leave_pipe, wants_colour
from trimtab.formats import Format, Request, detect
from trimtab.report import Report
from trimtab.report.lines import clip, counted, plain
from trimtab.session import Session
from trimtab.stores import Event

__all__ = [
    "event_data",
    "event_line",
    "output_option",
    "report_text",
    "say_missing",
    "view_data",
    "view_text",
    "when",
    "write",
    "write_lines",
]

output_option = click.option(
    "--output",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    help="JSON for programs, or text for people.",
)


def write(data: Any, text: Callable[[], str], *, output: str) -> None:
    """Write an answer on standard output, as JSON or for people."""
    if output == "json":
        click.echo(dump(data, indent=2 if sys.stdout.isatty() else None), nl=False)
        return
    written = text()
    click.echo(encoded(f"{written}\n" if written else ""), nl=False)


def write_lines(lines: Iterable[bytes]) -> None:
    """Write line by line, until nobody reads on."""
    for line in lines:
        try:
            click.echo(line, nl=False)
        except BrokenPipeError:
            leave_pipe()
            return


def event_data(event: Event) -> dict[str, Any]:
    """Give an event for programs; the state in it is the store's business."""
    return {
        "version": event.version,
        "id": event.id,
        "kind": event.kind,
        "time": event.time,
        "data": dict(event.data),
    }


def event_line(event: Event, *, ids: bool = False) -> str:
    """Give an event for people, in one line: its version, its time or its id, and what it is.

    It is cut to the width of a terminal, and whole anywhere else.
    """
    second = plain(event.id) if ids else when(event.time)
    line = f"{event.version:>6}  {second}  {plain(_what(event))}"
    # Who reads from a pipe searches in it, or pages through it: only a terminal has a width.
    return clip(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line


def when(time: float) -> str:
    """Write a time in UTC, for people."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _what(event: Event) -> str:
    data = event.data
    if event.kind == "message":
        return _said(event.message)
    return f"({event.kind}) {_DETAILS[event.kind](data) if event.kind in _DETAILS else ''}".rstrip()


def _said(message: Any) -> str:
    return str(detect([message]).transcript(message))


def _runs(units: Iterable[Iterable[int]]) -> str:
    """Write versions as `1–3, 5`."""
    versions = sorted(version for unit in units for version in unit)
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in runs)


_DETAILS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "options": lambda data: (
        f"{data['options']['budget_tokens']:,} tokens, counted by {data['options']['counted_by']}"
    ),
    "evicted": lambda data: f"{_runs(data['units'])} left the recent messages",
    "summary": lambda data: (
        "removed by redact" if data.get("stale") else f"of {_runs(data['covers'])}: {data['text']}"
    ),
    "failed": lambda data: f"no summary: {data['why']}",
    "budget": lambda data: f"{data['budget_tokens']:,} tokens from here",
    "usage": lambda data: (
        f"{data['input_tokens']:,} tokens reported for a view counted as {data['counted_tokens']:,}"
    ),
    "anchors": lambda data: f"{counted(len(data['anchors']), 'anchor')} from here",
    "abridged": lambda data: f"goes on from version {data['of']:,} of a log that is not here",
    "pinned": lambda data: f"{data['event']}",
    "unpinned": lambda data: f"{data['event']}",
    "undone": lambda data: f"{data['event']} (version {data['version']}) and every decision after it",
    "redacted": lambda data: ", ".join(data["events"]),
}


def view_data(form: Format, fitted: Fitted[Any]) -> Any:
    """Give a view for programs: its messages, in a request body where system text stands beside them."""
    if fitted.system is None:
        return fitted.messages
    key = form.rules.body_key
    request = Request(messages=[], system=fitted.system, body={key: []}, key=key)
    return form.write_request(request, fitted.messages)


def view_text(form: Format, fitted: Fitted[Any]) -> str:
    """Give a view for people, in full."""
    system = fitted.system
    beside = (
        [] if system is None else [form.message("system", [system] if isinstance(system, str) else system)]
    )
    said = (form.transcript(message) for message in (*beside, *fitted.messages))
    return "\n\n".join("\n".join(map(plain, text.splitlines())) for text in said)


def report_text(report: Report) -> str:
    """Give a report for people."""
    return report.to_text(width=shutil.get_terminal_size().columns, colour=wants_colour())


def say_missing(session: Session, *, adds: bool = False) -> None:
    """Say on standard error what the session was made with and the command line has not."""
    missing = session.missing
    told = []
    if "counter" in missing:
        effect = "messages may leave earlier or later" if adds else "sizes, and so the view, may differ"
        told.append(f"it counts with {missing['counter']}, so tokens are estimated here and {effect}")
    if "summarizer" in missing:
        effect = "what leaves waits for who opens it with one" if adds else "the view is as it was left"
        told.append(f"it has the summarizer {missing['summarizer']}, so no summary is written here: {effect}")
    if "context" in missing:
        told.append("it is a block of a Context, so the other blocks are not in the view")
    for one in told:
        click.echo(
            f"trimtab: session {plain(repr(session.id))} was made in a program: {plain(one)}", err=True
        )
