"""What changes a session that is there: `pin`, `unpin`, `undo`, `clear`, `redact`, `delete`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import existing, id_option, store_option, stored
from trimtab.cli.session.output import event_data, event_line, output_option, say_missing, write
from trimtab.report.lines import counted, plain
from trimtab.session import Session

__all__ = ["clear", "delete", "pin", "redact", "undo", "unpin"]

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
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


messages_argument = click.argument("event_ids", metavar="EVENT_ID...", nargs=-1, required=True)


def _for_each(order: Callable[[Session, str], None], done: str, *, help: str) -> click.Command:
    """Make a command that gives an order for each message, and says for which."""

    @click.command(order.__name__, help=help)
    @output_option
    @id_option
    @store_option
    @messages_argument
    @usage
    def command(url: str, name: str, output: str, event_ids: tuple[str, ...]) -> None:
        with stored(url) as store:
            one = existing(store, name)
            for event_id in event_ids:
                order(one, event_id)
            say_missing(one)
            found = {done: list(event_ids), "version": one.version}
            write(found, lambda: f"{counted(len(event_ids), 'message')} {done}", output=output)

    return command


pin = _for_each(
    Session.pin,
    "pinned",
    help="""Keep messages, and what belongs to them, in every view.

    `trimtab session history --ids` shows the ids. Of several, those before one that is refused are pinned.
    """,
)
unpin = _for_each(Session.unpin, "unpinned", help="Let pinned messages leave again.")


@click.command()
@output_option
@id_option
@store_option
@usage
def clear(url: str, name: str, output: str) -> None:
    """Begin anew with an empty view; the log stays.

    Anchors return to those given at first, and the budget stays. What was said before is in `history`, and
    `show --at VERSION` shows a view of it.
    """
    with stored(url) as store:
        one = existing(store, name)
        one.clear()
        say_missing(one)
        found = {"id": name, "version": one.version}
        write(found, lambda: f"{plain(name)}: an empty view from version {one.version:,} on", output=output)


def _confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; elsewhere only `--yes` will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question} This cannot be undone: give --yes to do it without being asked")
    click.confirm(f"{question} This cannot be undone.", abort=True, err=True)


@click.command()
@yes_option
@output_option
@id_option
@store_option
@messages_argument
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


@click.command()
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
