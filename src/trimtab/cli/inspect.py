"""`trimtab inspect`: a conversation or a session in a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import click

from trimtab.budget import Budget
from trimtab.cli.fit import PolicyFit, fit_by_options
from trimtab.cli.input import INPUT_KINDS, STANDARD_INPUT, InputKind, entries, files_of, open_input
from trimtab.cli.options import (
    RequestOptions,
    choice,
    complete_from,
    format_option,
    room_options,
)
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import complete_sessions, open_session, open_session_store
from trimtab.cli.session.io import say_missing
from trimtab.context import Context, Fitted
from trimtab.errors import ConfigurationError, ContextError, FormatError
from trimtab.models import DEFAULT_PRICING, pricing_for, pricings
from trimtab.replay import Recording, Replayed, read_recording
from trimtab.replay import replay as play
from trimtab.replay.policies import WORDS, read_policy
from trimtab.session import Session
from trimtab.stores import Event
from trimtab.strategies.data import KINDS_ALONE

POLICIES = ("sliding_window", *(word for word in KINDS_ALONE if word != "sliding_window"))
"""What a page offers beside the files that are given; the first is what `fit` does by itself."""

EPILOG = """\b
Examples:
  trimtab inspect chat.json --budget 8k
  trimtab inspect chat.json --budget 8k --policy a.toml --policy b.toml
  trimtab inspect --store chats.db --id ada --read-only
"""


@click.command(epilog=EPILOG)
@click.option(
    "--store", "url", metavar="URL", help="Look at a session of a store instead of a FILE: a file, or a URL."
)
@click.option(
    "--id",
    "--session",
    "name",
    metavar="ID",
    shell_complete=complete_sessions,
    help="Name of the session; may be left out where the store has one only.",
)
@click.option("--read-only", is_flag=True, help="Take nothing back in the log of the session.")
@click.option(
    "--policy",
    "policies",
    metavar="FILE",
    multiple=True,
    shell_complete=complete_from(list, files=True),
    help="A policy or a strategy in TOML or JSON, beside the kinds that need none. Read again when edited."
    " Repeatable.",
)
@click.option(
    "--line", type=click.IntRange(min=1), metavar="N", help="Which line of a FILE with a conversation a line."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    metavar="PORT",
    help="The port. Default: a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on: this machine's own."
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Let --host be one that other machines reach. Nothing is encrypted on the way.",
)
@format_option
@choice(
    "--input",
    INPUT_KINDS,
    "What FILE is: one JSON document, a conversation a line, or a message a line.",
    param="kind",
)
@room_options
@click.argument("file", type=click.Path(allow_dash=True), required=False)
@usage
def inspect(
    file: str | None,
    url: str | None,
    name: str | None,
    policies: tuple[str, ...],
    port: int,
    host: str,
    allow_remote: bool,
    **given: Any,
) -> None:
    """Look at a conversation in a browser.

    Shows what is sent, what is left out and why, and what other budgets and policies would send. FILE is a
    conversation as for `trimtab fit`; with --store it is a session, with its timeline.

    Writes an address of this machine with a token in it, which lets in who has it, until it is stopped.
    """
    if (file is None) == (url is None):
        raise click.UsageError("give a FILE, or --store URL: one of them")
    if name is not None and url is None:
        raise click.UsageError("--id ID is a session of a store: give --store URL, too")
    serve = import_module("trimtab.inspector").serve
    for word in policies:
        read_policy(word)  # one that cannot be read is refused before anything else is done
    words = tuple(dict.fromkeys((*policies, *POLICIES)))

    def show(subject: Any) -> None:
        serve(
            subject,
            port=port,
            host=host,
            allow_remote=allow_remote,
            ready=lambda address: click.echo(f"trimtab: open {address}", err=True),
        )

    if url is None:
        value = _conversation_in(str(file), given["kind"], given["line"], parts=bool(policies))
        show(subject_of(value, given, words, name="standard input" if file == STANDARD_INPUT else str(file)))
        return
    with open_session_store(url) as store:
        one = open_session(store, _only_session(store.sessions()) if name is None else name)
        say_missing(one)
        show(session_subject(one, given, words))


def _only_session(names: Sequence[str]) -> str:
    if len(names) != 1:
        there = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        raise Refused(
            f"which session? Give --id ID; there are: {there}" if names else "the store has no sessions"
        )
    return names[0]


def _conversation_in(path: str, kind: InputKind, line: int | None, *, parts: bool) -> Any:
    """Read one conversation; a file with several needs `line`.

    Raises:
        FormatError: There is none, or it cannot be read.
        Refused: There are several.
    """
    files_of([path])
    with open_input(path) as file:
        read = entries(file, kind=kind, name="" if path == STANDARD_INPUT else path, parts=parts)
        found = [one for one in read if line is None or one.line == line]
    if len(found) > 1:
        raise Refused(
            f"{path}: {len(found):,} conversations: choose one by its line, as --line {found[0].line}"
        )
    if not found:
        raise FormatError(f"{path}: there is no conversation" + ("" if line is None else f" in line {line}"))
    if found[0].error is not None:
        raise FormatError(f"{path}: {found[0].error}")
    return found[0].value


_FIT = {
    "steady": False,
    "no_cut_newest": False,
    "strategy": None,
    "pin": (),
    "charge_as": None,
    "pending_calls": (),
    "repair": False,
    "strict": False,
    "breakpoints": False,
}
"""Options of `trimtab fit` that a page has none for."""


def _fit(value: Any, given: Mapping[str, Any], word: str) -> Fitted[Any]:
    options = {**_FIT, **given}
    if not word.startswith("{") and isinstance(read_policy(word), Context):
        return PolicyFit(word, options).fit(value).fitted
    try:
        return fit_by_options({**options, "strategy": word})(value).fitted
    except ConfigurationError as error:
        told = str(error)
        raise ConfigurationError(told.removeprefix(f"--strategy {word}: ")) from error


def _player(
    record: Callable[[int | None], Recording], given: Mapping[str, Any], value: Any = None
) -> Callable[[str, str, int | None, int | None], Replayed]:
    """Make what replays a conversation under a policy, at a price list and in a room, up to a version."""

    def run(word: str, pricing: str, window: int | None, version: int | None) -> Replayed:
        asked = RequestOptions(given)
        model = asked.model_of(value)
        room: Budget | None = None
        if given["budget"] is not None or model is not None:
            room = asked.budget(model)
        if window is not None:
            room = Budget(window) if room is None else replace(room, window=window)
        return play(
            record(version),
            word,
            budget=room,
            model=model,
            counter=asked.counter(model),
            pricing=pricing_for(pricing),
            name=word,
        )

    return run


_PRICINGS = (DEFAULT_PRICING, *(name for name in pricings() if name != DEFAULT_PRICING))


def subject_of(value: Any, given: Mapping[str, Any], words: Sequence[str], *, name: str) -> Any:
    """Make the subject of a conversation of a file."""
    asked = RequestOptions(given)
    asked.check_budget()

    @cache
    def record(version: int | None) -> Recording:
        return read_recording(
            value, format=given["format"], model=asked.model, system=asked.system, tools=asked.tools
        )

    return import_module("trimtab.inspector").Subject(
        name=name,
        policies=words,
        fit=lambda word, version: _fit(value, given, word),
        play=_player(record, given, value),
        replayed=WORDS,
        pricings=_PRICINGS,
        is_margin_auto=given["margin"] == "auto",
    )


def session_subject(one: Session, given: Mapping[str, Any], words: Sequence[str]) -> Any:
    """Make the subject of a session: its view, and its whole log under other policies."""
    try:
        model = one.fit().report.model
    except ContextError:  # the page says why its view does not fit
        model = None
    options: dict[str, Any] = {**given, "model": given["model"] or model}
    if options["budget"] is None:
        options["budget"] = one.budget_tokens
    options["format"] = one.format.name

    def events(version: int | None) -> list[Event]:
        before = None if version is None else version + 1
        return list(one.history(before=before, kinds=("message", "options")))

    def record(said: list[Event]) -> Recording:
        return read_recording(said, format=options["format"])

    def fit(word: str, version: int | None) -> Fitted[Any]:
        said = events(version)
        known = record(said)
        last = known.calls[-1] if known.calls else None
        lead = [] if last is None else list(last.messages[: known.lead])
        body = [*lead, *(event.message for event in said if event.message is not None)]
        system = None if last is None else last.system
        beside = {} if options["system"] is not None or not isinstance(system, str) else {"system": system}
        return _fit(body, {**options, **beside}, word)

    return import_module("trimtab.inspector").Subject(
        name=f"session {one.id}",
        policies=words,
        fit=fit,
        play=_player(lambda version: record(events(version)), options),
        replayed=WORDS,
        pricings=_PRICINGS,
        session=one,
        read_only=given["read_only"],
        is_margin_auto=given["margin"] == "auto",
    )
