"""`trimtab session`: conversations kept in a store, one command for each thing to do with them."""

from __future__ import annotations

import shlex
import shutil
from itertools import islice
from typing import Any, BinaryIO

import click
from click.shell_completion import CompletionItem

from trimtab.cli.options import output_option
from trimtab.cli.output import Refused, encode, json_text, usage, wants_colour
from trimtab.cli.session.commands import (
    Answer,
    on_session,
    open_or_begin,
    open_session,
    open_session_store,
    session,
    session_options,
    store_option,
)
from trimtab.cli.session.io import (
    INPUT_KINDS,
    begin_options,
    event_data,
    event_line,
    fact_data,
    messages_in,
    options_in,
    say_missing,
    view_data,
    view_text,
    write,
    write_lines,
)
from trimtab.cli.session.keys import drop_key, rotate
from trimtab.cli.session.labels import filter_options
from trimtab.cli.session.owners import check_keys, list_sessions, row_text, write_receipt
from trimtab.cli.session.prune import prune
from trimtab.cli.session.switch import plan, switch
from trimtab.errors import BudgetExceededError
from trimtab.formats.origin import ORIGINS, OriginName
from trimtab.report.text import plain, plural
from trimtab.session import Session
from trimtab.session.recall import not_all
from trimtab.session.schema import KINDS
from trimtab.session.text import Gap, fact_text, rule_text, with_gaps
from trimtab.stores import Event
from trimtab.stores.lists import EXPIRE_LIMIT

__all__ = ["drop_key", "plan", "prune", "rotate", "session", "switch"]

version_type = click.IntRange(min=0)


@session.command()
@click.option(
    "--input",
    "kind",
    type=click.Choice(INPUT_KINDS),
    default="auto",
    show_default=True,
    help="What FILE is: one JSON document, or one message per line.",
)
@click.option(
    "--event-id",
    "event_ids",
    metavar="ID",
    multiple=True,
    help=(
        "Id of the message in the log; a message added again with the same id is stored once. One for each"
        " message."
    ),
)
@click.option(
    "--origin",
    type=click.Choice(ORIGINS),
    help="Origin of the messages, if lower than their roles: document for text that a user pasted.",
)
@begin_options
@session_options
@click.argument("file", type=click.File("rb"), required=False)
@usage
def add(
    file: BinaryIO | None,
    url: str,
    name: str,
    output: str,
    kind: Any,
    event_ids: tuple[str, ...],
    origin: OriginName | None,
    **given: Any,
) -> None:
    """Add messages to a session; start it if it is new.

    Reads FILE or standard input: a JSON message, a list of them, or JSONL, one message per line. Either all
    of them are stored or none. Writes the stored events.

    A new session needs --budget or --model. For an existing session, options change it, and omitted options
    keep their value; --system "" and --anchor "[]" remove the value.
    """
    options = options_in(given)
    with open_session_store(url, create=bool(options)) as store:
        messages = messages_in(file, kind=kind)
        if event_ids and len(event_ids) != len(messages):
            given_ids = f"--event-id is passed {plural(len(event_ids), 'time')}"
            raise Refused(f"{given_ids} for {plural(len(messages), 'message')}: pass one for each, or none")
        one = open_or_begin(store, name, options)
        origins: list[OriginName | None] = [origin] * len(messages)
        events = one.extend(messages, ids=event_ids or None, origins=origins)
        say_missing(one, adds=True)
        write([event_data(event) for event in events], lambda: _additions_text(one, events), output=output)


def _additions_text(one: Session, events: list[Event]) -> str:
    status = one.status()
    try:
        numbers = f"view {one.fit().report.tokens_after:,} of {status.budget_tokens:,} tokens"
    except BudgetExceededError as error:
        numbers = f"the view does not fit: {error}"
    waiting = f", {status.pending_messages:,} of its messages wait for a summary or for room"
    lines = [event_line(event, ids=True) for event in events]
    return "\n".join([*lines, numbers + (waiting if status.pending_messages else "")])


@session.command()
@click.option("--at", type=version_type, metavar="VERSION", help="The view as it was at this version.")
@click.option("--report", "only_report", is_flag=True, help="Only the report.")
@on_session
def show(one: Session, at: int | None, only_report: bool) -> Answer:
    """Show the view: messages that fit, ready to send.

    As JSON, a list of messages; if the wire form has system text outside them, a request body with both. As
    text, the messages and the report.
    """
    fitted = one.fit(at=at)
    report = fitted.report

    def text() -> str:
        shown = "" if only_report else f"{view_text(one.format, fitted)}\n\n"
        return shown + report.to_text(width=shutil.get_terminal_size().columns, colour=wants_colour())

    return Answer(report.to_dict() if only_report else view_data(one.format, fitted), text)


@session.command()
@on_session
def facts(one: Session) -> Answer:
    """List the facts in view, oldest first, with kind and rank.

    Where not all have room, those of the largest weight are shown; of these the most confirmed, and of these
    the oldest and the newest. `history --kinds fact` lists every fact of the log.
    """
    known, hidden = one.facts, one.status().hidden_facts

    def text() -> str:
        rows = [f"- {plain(fact_text(fact))}" for fact in known]
        return "\n".join([*rows, f"without room in view: {hidden:,}"])

    return Answer({"facts": [fact_data(fact) for fact in known], "hidden_facts": hidden}, text)


@session.command()
@click.option("--hidden", is_flag=True, help="Only rules for which there is no room in view.")
@click.option("--drop", "dropped", metavar="ID", help="Have this rule hold no longer, before the list.")
@on_session
def rules(one: Session, hidden: bool, dropped: str | None) -> Answer:
    """List the rules of a session, and where they are.

    The host's come first, then those found in messages, in the order said. Each is shown (restated in the
    view), in view (a message in view says it), hidden (it holds, but has no room), superseded (a later one
    replaces it), or listed (an order for one answer). `add --rule` and `add --find-rules` give a session
    rules.
    """
    if dropped is not None:
        one.drop_rule(dropped)
    listed = [rule for rule in one.rules if not hidden or rule.place == "hidden"]
    status = one.status()

    def text() -> str:
        rows = [f"{plain(rule.id)}  {plain(rule_text(rule))}" for rule in listed]
        return "\n".join(
            [*rows, f"in force: {status.rules:,}, without room in view: {status.hidden_rules:,}"]
        )

    found = {"rules": [rule.to_dict() for rule in listed], "hidden_rules": status.hidden_rules}
    return Answer(found, text)


def _complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the kinds of events to a shell, after those that are there."""
    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{kind}") for kind in (*KINDS, "all") if kind.startswith(begun)]


def _kinds(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...] | None:
    """Read `message,summary`, or `all`."""
    kinds = tuple(one.strip() for one in value.split(","))
    if kinds == ("all",):
        return None
    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)} or all")
    return kinds


@session.command()
@click.option(
    "--kinds",
    metavar="KIND,…",
    default="message",
    show_default=True,
    callback=_kinds,
    shell_complete=_complete_kinds,
    help="Kinds of events, including decisions of trimtab (summary, evicted …), or all.",
)
@click.option("--ids", is_flag=True, help="In text, the id of each event in place of its time.")
@click.option(
    "--after", type=version_type, default=0, metavar="VERSION", help=("Only events after this version.")
)
@click.option("--before", type=version_type, metavar="VERSION", help="Only events before this version.")
@click.option("--limit", type=version_type, metavar="N", help="Maximum number of events.")
@session_options
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
    """Write the whole log, oldest first, one event per line.

    Events that were pruned are one line, however many they are; in JSON only with `--kinds all`.
    """
    with open_session_store(url) as store:
        opened = open_session(store, name)
        events = opened.history(after=after, before=before, kinds=None)
        until = opened.version if before is None else min(before - 1, opened.version)
        shown = (
            one
            for one in with_gaps(events, after=after, until=until)
            if kinds is None or (output == "text" if isinstance(one, Gap) else one.kind in kinds)
        )
        write_lines(
            json_text(event_data(one), indent=False)
            if output == "json"
            else encode(f"{event_line(one, ids=ids)}\n")
            for one in islice(shown, limit)
        )


@session.command()
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help=("Maximum number of messages."),
)
@click.argument("query")
@on_session
def recall(one: Session, query: str, limit: int) -> Answer:
    """Find messages, and facts, that are no longer in the view.

    The most relevant to QUERY come first.
    """
    events = one.recall(query, limit)
    if events.complete is False:
        click.echo(f"trimtab: {not_all(events)}", err=True)
    return Answer(
        [event_data(event) for event in events],
        lambda: "\n".join(map(event_line, events)) or "nothing found outside the view",
    )


@session.command("list")
@filter_options
@click.option(
    "--status", "with_status", is_flag=True, help="With the numbers of each, or why it is unreadable."
)
@output_option
@store_option
@usage
def list_(url: str, output: str, with_status: bool, **asked: Any) -> None:
    """List the sessions of a store.

    Writes the name, version, time of the newest event, owner, metadata and time to live of each. With
    --used-before or --used-after the oldest is first, otherwise they are in the order of their names.

    --status adds the tokens of the budget, the recent and the waiting messages with their tokens, and failed
    summaries, from the newest event of each; no session is opened. If one of them cannot be read, the exit
    code is 1.
    """
    with open_session_store(url) as store:
        rows, following = list_sessions(store, with_status=with_status, **asked)
        write(rows, lambda: "\n".join(map(row_text, rows)) or "no sessions", output=output)
        if following is not None:
            click.echo(f"trimtab: there are more: --after {shlex.quote(following)}", err=True)
        if with_status and any("error" in row for row in rows):
            raise SystemExit(1)


@session.command()
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=EXPIRE_LIMIT,
    show_default=True,
    metavar="N",
    help="Maximum number of sessions.",
)
@output_option
@store_option
@usage
def expire(url: str, output: str, limit: int) -> None:
    """Remove expired sessions, and every byte of their text.

    For cron. Several may run at once. Writes how many sessions, messages and bytes are gone. Exit code 1
    means that something could not be removed.
    """
    with open_session_store(url) as store:
        check_keys(store)
        write_receipt(store.expire(limit=limit), output=output)


@session.command("stats")
@on_session
def status(one: Session) -> Answer:
    """Show the state of a session in numbers."""
    numbers = one.status().to_dict()

    def table() -> str:
        rows = [(key.replace("_", " "), value) for key, value in numbers.items() if value is not None]
        shown = [(f"{value:,}" if isinstance(value, int) else plain(str(value)), key) for key, value in rows]
        return "\n".join(f"{value:>9}  {key}" for value, key in shown)

    return Answer({"id": one.id, **numbers}, table)


_IN = "--store chats.db --id ada"

_EXAMPLES = {
    "add": (f"add {_IN} --budget 4k chat.json", f"add {_IN} --event-id m1 < message.json"),
    "clear": (f"clear {_IN}",),
    "copy": (f"copy {_IN} --to archive.db --as ada-2025", f"copy {_IN} --to b.db --to-keys file:k"),
    "delete": (f"delete {_IN} --yes", "delete --store chats.db --owner ada --yes"),
    "drop-key": (f"drop-key {_IN} --keys file:keys",),
    "expire": ("expire --store chats.db",),
    "export": (f"export {_IN} ada.json", "export --store chats.db --owner ada > ada.jsonl"),
    "fork": (f"fork {_IN} --as ada-2 --at 12",),
    "history": (f"history {_IN} --ids --output text", f"history {_IN} --after 40 --limit 20"),
    "import": ("import --store chats.db ada.json",),
    "list": (
        "list --store chats.db --output text",
        "list --store chats.db --owner ada --used-before 30d",
        "list --store chats.db --limit 100 --status --output text",
    ),
    "pin": (f"pin {_IN} EVENT_ID",),
    "plan": (f"plan {_IN} --model NAME --output text", f"plan {_IN} --budget 32k"),
    "pop": (f"pop {_IN}",),
    "recall": (f"recall {_IN} 'disk full' --output text",),
    "facts": (f"facts {_IN} --output text",),
    "prune": (f"prune {_IN} --keep 10", f"prune {_IN} --keep 0 --yes"),
    "redact": (f"redact {_IN} EVENT_ID", f"redact {_IN} --where '[0-9]{{16}}'"),
    "rotate": ("rotate --store chats.db --keys file:keys",),
    "rules": (f"rules {_IN} --output text", f"rules {_IN} --drop RULE_ID"),
    "show": (f"show {_IN} --output text", f"show {_IN} --report --output text"),
    "stats": (f"stats {_IN} --output text",),
    "switch": (f"switch {_IN} --model NAME",),
    "undo": (f"undo {_IN}",),
    "unpin": (f"unpin {_IN} EVENT_ID",),
}
"""What stands at the end of each command's help; `EVENT_ID` is what `history --ids` shows."""

for _name, _lines in _EXAMPLES.items():
    _shown = "\n".join(f"  trimtab session {line}" for line in _lines)
    session.commands[_name].epilog = f"\b\nExamples:\n{_shown}\n"
