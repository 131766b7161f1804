"""`trimtab session prune`."""

from __future__ import annotations

import click

from trimtab.cli.output import usage
from trimtab.cli.session.commands import (
    confirm,
    open_session,
    open_session_store,
    session,
    session_options,
    yes_option,
)
from trimtab.cli.session.io import say_missing, write
from trimtab.report.text import plain, plural


@session.command()
@yes_option
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many of the newest decisions can still be undone.",
)
@session_options
@usage
def prune(url: str, name: str, output: str, yes: bool, keep: int) -> None:
    """Remove what neither the view nor the newest decisions need.

    What the view shows and goes on from stays: facts, rules, the summary, pins. Of the rest only version, id
    and time remain. Writes how much is gone. Exit code 1 means that files could not be cleaned.
    """
    with open_session_store(url) as store:
        one = open_session(store, name)
        decisions = "no decision" if not keep else f"the last {plural(keep, 'decision')}"
        confirm(f"Remove what neither the view nor {decisions} of {one.id!r} need?", yes=yes)
        done = one.prune(keep=keep)
        say_missing(one)

    def text() -> str:
        messages = plural(done.messages, "message")
        told = f"{plain(name)}: {plural(done.events, 'event')} removed, {messages} of them"
        shown = f"; the oldest version that can be shown is {done.oldest:,}" if done.oldest else ""
        return f"{told}, {done.bytes:,} bytes{shown}"

    write({"id": name, **done.to_dict()}, text, output=output)
    if done.not_erased is not None:
        click.echo(plain(f"trimtab: files may still hold the text: {done.not_erased}"), err=True)
        raise SystemExit(1)
