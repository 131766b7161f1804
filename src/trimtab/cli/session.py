"""`trimtab session`: conversations kept in a store, one command for each thing to do with them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click

from trimtab.cli._json import dump, parse
from trimtab.cli._output import Refused, encoded, usage
from trimtab.cli._session_input import INPUT_KINDS, begin_options, messages_in, options_in, read_bytes
from trimtab.cli._session_output import (
    event_data,
    event_line,
    report_text,
    say_missing,
    view_text,
    when,
    write,
    write_lines,
)
from trimtab.cli._session_store import Masking, begun, existing, id_option, name_of, store_option, stored
from trimtab.report._lines import counted, plain
from trimtab.session import Session
from trimtab.stores import Event, Retry, copy_session

__all__ = ["session"]

KINDS = (
    "message",
    "summary",
    "evicted",
    "failed",
    "options",
    "budget",
    "anchors",
    "cleared",
    "pinned",
    "unpinned",
    "undone",
    "redacted",
)

output_option = click.option(
    "--output",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    help="JSON for programs, or text for people.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
version_type = click.IntRange(min=0)

HELP = """Keep conversations in a store, and look at them.

A session is a log that only grows, and a view of it that fits a budget. The store is a file
(sqlite:///chats.db, or sqlite:////absolute/chats.db), PostgreSQL or Redis.

\b
Exit codes: 0  all is well
            1  no such session or event, not readable, or the store refuses
            2  wrong usage
"""


@click.group(cls=Masking, help=HELP)
def session() -> None:
    """Take the options that stand before a command; there are none."""


@session.command()
@click.option(
    "--input",
    "kind",
    type=click.Choice(INPUT_KINDS),
    default="auto",
    show_default=True,
    help="What FILE is: one JSON document, or a message a line.",
)
@click.option(
    "--event-id",
    "event_ids",
    metavar="ID",
    multiple=True,
    help="Id of the message in the log; added again under it, it is stored once. One for each message.",
)
@begin_options
@output_option
@id_option
@store_option
@click.argument("file", type=click.File("rb"), required=False)
@usage
def add(
    file: BinaryIO | None,
    url: str,
    name: str,
    output: str,
    kind: Any,
    event_ids: tuple[str, ...],
    **given: Any,
) -> None:
    """Add messages to a session; begin it if it is new.

    Reads FILE or standard input: a JSON message, a list of them, or JSONL, a message a line. All of
    them are stored, or none. Writes the stored events.

    A new session needs --budget or --model. Options given for one that is there change it.
    """
    options = options_in(given)
    with stored(url, create=bool(options)) as store:
        messages = messages_in(file, kind=kind)
        if event_ids and len(event_ids) != len(messages):
            raise Refused(
                f"there are {counted(len(messages), 'message')} and {len(event_ids)} times --event-id"
            )
        one = begun(store, name, options)
        events = one.extend(messages, ids=event_ids or None)
        say_missing(one, adds=True)
        write([event_data(event) for event in events], lambda: _added(one, events), output=output)


def _added(one: Session, events: list[Event]) -> str:
    status = one.status()
    numbers = f"view {status.view_tokens:,} of {status.budget_tokens:,} tokens"
    waiting = f", {status.pending_messages:,} of its messages wait for a summary or for room"
    lines = [event_line(event, ids=True) for event in events]
    return "\n".join([*lines, numbers + (waiting if status.pending_messages else "")])


@session.command()
@click.option("--at", type=version_type, metavar="VERSION", help="The view as it was at this version.")
@click.option("--report", "only_report", is_flag=True, help="The report alone.")
@output_option
@id_option
@store_option
@usage
def show(url: str, name: str, output: str, at: int | None, only_report: bool) -> None:
    """Show the view: messages that fit, ready to send.

    As JSON a list of messages; as text the messages and the report.
    """
    with stored(url) as store:
        one = existing(store, name)
        fitted = one.fit(at=at)
        say_missing(one)
        report = fitted.report

        def text() -> str:
            shown = "" if only_report else f"{view_text(fitted.messages)}\n\n"
            return shown + report_text(report)

        write(report.to_dict() if only_report else fitted.messages, text, output=output)


def _kinds(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...] | None:
    """Read `message,summary`, or `all`."""
    kinds = tuple(one.strip() for one in value.split(","))
    if kinds == ("all",):
        return None
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is none of {', '.join(KINDS)} or all")
    return kinds


@session.command()
@click.option(
    "--kinds",
    metavar="KIND,…",
    default="message",
    show_default=True,
    callback=_kinds,
    help="Kinds of events, decisions of trimtab among them (summary, evicted …); all of them: all.",
)
@click.option("--ids", is_flag=True, help="In text, the id of each event in place of its time.")
@click.option("--after", type=version_type, default=0, metavar="VERSION", help="Only what came after it.")
@click.option("--before", type=version_type, metavar="VERSION", help="Only what came before it.")
@click.option("--limit", type=version_type, metavar="N", help="At most so many events.")
@output_option
@id_option
@store_option
@usage
def history(
    url: str,
    name: str,
    output: str,
    kinds: tuple[str, ...] | None,
    after: int,
    before: int | None,
    limit: int | None,
    ids: bool,
) -> None:
    """Write everything that was said, oldest first, an event a line."""
    with stored(url) as store:
        events = existing(store, name).history(after=after, before=before, kinds=kinds)
        write_lines(_lines(islice(events, limit), output, ids=ids))


def _lines(events: Iterator[Event], output: str, *, ids: bool) -> Iterator[bytes]:
    for event in events:
        yield dump(event_data(event)) if output == "json" else encoded(f"{event_line(event, ids=ids)}\n")


@session.command()
@click.option(
    "--limit", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="At most so many."
)
@output_option
@id_option
@store_option
@click.argument("query")
@usage
def recall(url: str, name: str, output: str, query: str, limit: int) -> None:
    """Find messages that are no longer in the view.

    Those with more words of QUERY come first, newer before older.
    """
    with stored(url) as store:
        one = existing(store, name)
        events = one.recall(query, limit)
        say_missing(one)
        write(
            [event_data(event) for event in events],
            lambda: "\n".join(map(event_line, events)) or "nothing found outside the view",
            output=output,
        )


@session.command()
@output_option
@id_option
@store_option
@click.argument("event_id", required=False)
@usage
def undo(url: str, name: str, output: str, event_id: str | None) -> None:
    """Take back a summary or an eviction, and every one after it.

    Without EVENT_ID the newest in force. Messages stay. Writes the event that was taken back.
    """
    with stored(url) as store:
        one = existing(store, name)
        event = one.undo(event_id)
        say_missing(one)
        write(event_data(event), lambda: f"taken back:\n{event_line(event, ids=True)}", output=output)


@session.command()
@id_option
@store_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@usage
def export(url: str, name: str, file: Path | None) -> None:
    """Write a whole session as JSON, to FILE or to standard output.

    `import` and `Session.restore` read it. FILE is replaced when all is written, not before.
    """
    with stored(url) as store:
        data = dump(existing(store, name).snapshot())
        if file is None or str(file) == "-":
            write_lines([data])
            return
        try:
            _replace(file, data)
        except OSError as error:
            raise Refused(f"{file}: {error.strerror or error}") from None


def _replace(file: Path, data: bytes) -> None:
    """Write a file whole, or leave it as it was; nobody else may read it: it holds a conversation."""
    handle, path = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(path, file)
    except BaseException:
        os.unlink(path)
        raise


@session.command("import")
@output_option
@click.option("--id", "name", metavar="ID", help="Name of the session. Default: the one it had.")
@store_option
@click.argument("file", type=click.File("rb"), required=False)
@usage
def import_(url: str, name: str | None, output: str, file: BinaryIO | None) -> None:
    """Put a session that was exported into a store.

    Reads FILE or standard input. A session of that name that is there is only added to if it is
    the beginning of this one.
    """
    with stored(url, create=True) as store:
        data = parse(read_bytes(file), whole=True)
        one = Session.restore(data, store=store, id=name, retry=Retry(), allow_missing=True)
        if not one.version:
            raise Refused("there are no events in it: nothing to keep")
        found = {"id": one.id, "version": one.version}
        write(found, lambda: f"{plain(one.id)}: {counted(one.version, 'event')}", output=output)


def _confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; elsewhere only `--yes` will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question} This cannot be undone: give --yes to do it without being asked")
    click.confirm(f"{question} This cannot be undone.", abort=True, err=True)


@session.command()
@yes_option
@output_option
@id_option
@store_option
@click.argument("event_ids", metavar="EVENT_ID...", nargs=-1, required=True)
@usage
def redact(url: str, name: str, output: str, yes: bool, event_ids: tuple[str, ...]) -> None:
    """Overwrite what messages say, in the log too.

    Summaries that may repeat them lose their text, and are written anew when it is time.
    """
    with stored(url) as store:
        one = existing(store, name)
        _confirm(f"Overwrite {counted(len(set(event_ids)), 'message')} of {name!r}?", yes=yes)
        before = one.version
        one.redact(event_ids)
        say_missing(one)
        orders = one.history(after=before, kinds=("redacted",))
        done = next(order for order in orders if set(order.data["events"]) == set(event_ids))
        found = {"redacted": done.data["events"], "stale_summaries": done.data["stale"]}
        write(found, lambda: _redacted(found), output=output)


def _redacted(found: dict[str, list[str]]) -> str:
    stale = len(found["stale_summaries"])
    summaries = f", and {stale:,} {'summary' if stale == 1 else 'summaries'} lost the text" if stale else ""
    return f"{counted(len(found['redacted']), 'message')} overwritten{summaries}"


@session.command()
@yes_option
@output_option
@id_option
@store_option
@usage
def delete(url: str, name: str, output: str, yes: bool) -> None:
    """Remove a session and every byte of its text from the store."""
    with stored(url) as store:
        one = existing(store, name)
        events = one.version
        _confirm(f"Delete {name!r} with {counted(events, 'event')}?", yes=yes)
        one.delete()
        found = {"deleted": name, "events": events}
        write(found, lambda: f"{plain(name)}: {counted(events, 'event')} deleted", output=output)


@session.command()
@click.option("--to", "target", metavar="URL", required=True, help="The other store; may be the same.")
@click.option("--as", "renamed", metavar="ID", help="Its name there. Default: the same.")
@output_option
@id_option
@store_option
@usage
def copy(url: str, name: str, output: str, target: str, renamed: str | None) -> None:
    """Copy a session to another store, or under another name.

    Repeat it to go on after an interruption, or to bring the copy up to date.
    """
    with stored(url) as store, stored(target, create=True) as other:
        existing(store, name)
        written = copy_session(store, other, name, to=renamed)
        found = {"id": renamed or name, "events": written}
        write(found, lambda: f"{plain(renamed or name)}: {counted(written, 'event')} written", output=output)


@session.command()
@output_option
@click.option("--id", "name", metavar="ID", help="Name of the session. Default: list all there are.")
@store_option
@usage
def stats(url: str, name: str | None, output: str) -> None:
    """Tell where a session stands, or list the sessions.

    With --id the numbers of one; without, the name, version and time of each.
    """
    with stored(url) as store:
        if name is None:
            rows = list(filter(None, (name_of(store, one) for one in store.sessions())))
            write(rows, lambda: "\n".join(map(_row, rows)) or "no sessions", output=output)
            return
        one = existing(store, name)
        say_missing(one)
        status = one.status().to_dict()
        table = {"id": name, **status}
        write(table, lambda: _table(status), output=output)


def _row(row: dict[str, Any]) -> str:
    if "error" in row:
        return plain(f"{'?':>9}  {row['id']}: {row['error']}")
    return f"{row['version']:>9,}  {when(row['time'])}  {plain(row['id'])}"


def _table(status: dict[str, Any]) -> str:
    rows = [(key.replace("_", " "), value) for key, value in status.items() if value is not None]
    shown = [(f"{value:,}" if isinstance(value, int) else plain(str(value)), key) for key, value in rows]
    return "\n".join(f"{value:>9}  {key}" for value, key in shown)
