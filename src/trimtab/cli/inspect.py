"""`trimtab inspect`: conversations and sessions in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any

import click

from trimtab.budget import Budget
from trimtab.cli.fit import PolicyFit, fit_by_options
from trimtab.cli.input import INPUT_KINDS, STANDARD_INPUT, Entry, InputKind, entries, files_of, open_input
from trimtab.cli.options import (
    RequestOptions,
    calibration_option,
    choice,
    complete_from,
    format_option,
    keys_option,
    room_options,
    with_sources,
)
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import (
    complete_sessions,
    open_session,
    open_session_store,
)
from trimtab.cli.session.io import say_missing
from trimtab.cli.session.owners import name_of, names_in
from trimtab.context import Context, Fitted
from trimtab.counting import EstimateCounter, counter_for
from trimtab.counting.measurement import count_of_request
from trimtab.errors import ConfigurationError, ContextError, FormatError, MissingExtraError, UnknownNameError
from trimtab.formats import Format, Request, detect, get_format, mapping_of
from trimtab.models import DEFAULT_PRICING, facts_for, model_names, pricing_for, pricings
from trimtab.models.prices import find_pricing
from trimtab.replay import Recording, Replayed, read_recording
from trimtab.replay import replay as play
from trimtab.replay.policies import BY_DEFAULT, STEADY, WORDS, read_policy
from trimtab.session import Session
from trimtab.stores import Event, LoadRequest, Store
from trimtab.stores.secrets import mask
from trimtab.strategies.data import KINDS_ALONE

POLICIES = (BY_DEFAULT, STEADY, *KINDS_ALONE)
"""What a page offers beside the files that are given; the first is what `fit` does by itself."""
MOST_LISTED = 2_000
"""Conversations of a file or a folder that are listed; `--line` shows any other."""
_SAID_CHARS = 120
_FIRST_EVENTS = 4
"""Of a session that are read for a list: what it is made with, and what is said first."""
_LEAST_ROOM = 1_000

EPILOG = """\b
Examples:
  trimtab inspect chat.json --budget 8k
  trimtab inspect chats.jsonl --model NAME
  trimtab inspect chat.json --budget 8k --policy a.toml --policy b.toml
  trimtab inspect --store chats.db
  trimtab inspect --store chats.db --id ada --read-only
"""


@click.command(epilog=EPILOG)
@click.option(
    "--store",
    "url",
    metavar="URL",
    help="Show the sessions of a store instead of a FILE: a file, or a URL.",
)
@keys_option
@click.option(
    "--id",
    "--session",
    "name",
    metavar="ID",
    shell_complete=complete_sessions,
    help="Name of the session. Default: the page lists the sessions of the store.",
)
@click.option(
    "--read-only", is_flag=True, help=("Do not allow decisions in the session's log to be taken back.")
)
@click.option(
    "--policy",
    "policies",
    metavar="FILE",
    multiple=True,
    shell_complete=complete_from(list, files=True),
    help="A policy or a strategy in TOML or JSON, in addition to the built-in ones. Read again when edited."
    " Repeatable.",
)
@click.option(
    "--line",
    type=click.IntRange(min=1),
    metavar="N",
    help="Open this line of a FILE with one conversation per line. Default: the page lists them.",
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
    help="Allow a --host that other machines can reach. The traffic is not encrypted.",
)
@format_option
@choice(
    "--input",
    INPUT_KINDS,
    "What FILE is: one JSON document, one conversation per line, or one message per line.",
    param="kind",
)
@room_options
@calibration_option
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
    """Look at conversations in a browser.

    Shows what is sent, what is left out and why, and what other budgets and policies would send. FILE has
    conversations as for `trimtab fit`, or is a folder of such files; if there are several, the page lists
    them. With --store it shows the sessions of a store, with their timelines.

    Writes an address on this machine that contains an access token, and serves until it is stopped.
    """
    if (file is None) == (url is None):
        raise click.UsageError("pass either a FILE or --store URL")
    if name is not None and url is None:
        raise click.UsageError("--id ID is a session of a store: pass --store URL, too")
    given = with_sources(given)
    serve = import_module("trimtab.inspector").serve
    for word in policies:
        read_policy(word)  # one that cannot be read is refused before anything else is done
    words = tuple(dict.fromkeys((*policies, *POLICIES)))

    def show(subject: Any = None, *, collection: Any = None) -> None:
        serve(
            subject,
            collection=collection,
            port=port,
            host=host,
            allow_remote=allow_remote,
            ready=lambda address: click.echo(f"trimtab: open {address}", err=True),
        )

    if url is None:
        RequestOptions(given).check_budget()
        found = _Files(str(file), given, parts=bool(policies))
        if found.only is not None:
            named = "standard input" if file == STANDARD_INPUT else str(file)
            show(subject_of(found.only, given, words, name=named))
        else:
            show(collection=found.collection(words))
        return
    with open_session_store(url) as store:
        names = names_in(store) if name is None else [name]
        if not names:
            raise Refused("the store has no sessions")
        if len(names) > 1:
            show(collection=_sessions(store, url, given, words))
            return
        one = open_session(store, names[0])
        say_missing(one)
        show(session_subject(one, given, words))


def _sessions(store: Store, url: str, given: Mapping[str, Any], words: Sequence[str]) -> Any:
    """Make the list of the sessions of a store, which is read again for each page."""
    room = import_module("trimtab.inspector")

    def items() -> list[Any]:
        return [room.Item(name=name) for name in names_in(store)]

    def describe(item: Any) -> Any:
        return _session_item(room, store, item.name)

    def open(name: str) -> Any:
        return session_subject(open_session(store, name), given, words)

    return room.Collection(
        name=mask(url), items=items, describe=describe, open=open, noun="session", order="as in the store"
    )


def _session_item(room: Any, store: Store, name: str) -> Any:
    """Say how long a session is, when it was written to last, and what it begins with."""
    found = name_of(store, name)
    if "version" not in found:
        return room.Item(name=name, error=found.get("error", "it was deleted meanwhile"))
    first = store.load(LoadRequest(session=name, limit=_FIRST_EVENTS))
    messages = [event.message for event in first if event.message is not None]
    return room.Item(
        name=name,
        said=_first_words(detect(messages), Request(messages=messages)),
        messages=found["version"],
        time=datetime.fromtimestamp(found["time"], UTC).strftime("%Y-%m-%d %H:%M"),
    )


class _Files:
    """The conversations of a file or a folder: the only one, or all that can be listed.

    Raises:
        FormatError: There is none, or the only one cannot be read.
    """

    def __init__(self, path: str, given: Mapping[str, Any], *, parts: bool) -> None:
        self._name, self._given, self._parts = path, given, parts
        self._places = dict[str, tuple[str, int | None, str]]()
        self._held = dict[str, Any]()
        """What was said on standard input, which is read once."""
        self._items = list[Any]()
        self._is_cut = False
        self.only: Any = None
        files = files_of([path])
        last = Entry()
        for where, last in self._read(files.paths, given["line"]):
            if len(self._items) == MOST_LISTED:
                self._is_cut = True
                break
            self._list(where, last, many=files.many)
        if not self._items:
            line = "" if given["line"] is None else f" in line {given['line']}"
            raise FormatError(f"{path}: there is no conversation{line}")
        if len(self._items) == 1:
            if last.error is not None:
                raise FormatError(f"{path}: {last.error}")
            self.only = last.value

    def _read(self, paths: Sequence[str], line: int | None) -> Iterator[tuple[str, Entry]]:
        kind: InputKind = self._given["kind"]
        for path in paths:
            with open_input(path) as file:
                name = "" if path == STANDARD_INPUT else path
                for entry in entries(file, kind=kind, name=name, parts=self._parts):
                    if line is None or entry.line == line:
                        yield path, entry

    def _list(self, path: str, entry: Entry, *, many: bool) -> None:
        words = [os.path.relpath(path, self._name) if os.path.isdir(self._name) else path] if many else []
        words += [] if entry.line is None else [f"line {entry.line:,}"]
        words += [entry.name] if entry.name else []
        name = ", ".join(words) or path
        self._places[name] = path, entry.line, entry.name
        if path == STANDARD_INPUT:
            self._held[name] = entry.value
        self._items.append(_item_of(name, entry, self._given, parts=self._parts))

    def collection(self, words: Sequence[str]) -> Any:
        """Make the list to choose from."""

        def open(name: str) -> Any:
            return subject_of(self._value(name), self._given, words, name=f"{self._name}, {name}")

        note = f"These are the first {MOST_LISTED:,}: open any other by its line." if self._is_cut else ""
        return import_module("trimtab.inspector").Collection(
            name=self._name, items=lambda: self._items, open=open, note=note
        )

    def _value(self, name: str) -> Any:
        """Read a conversation again, which may have been edited since it was listed."""
        if name in self._held:
            return self._held[name]
        path, line, conversation = self._places[name]
        read = self._read([path], line)
        found = next((one for one in read if one[1].name == conversation), None)
        if found is None:
            raise FormatError(f"{name} no longer exists")
        if found[1].error is not None:
            raise FormatError(f"{name}: {found[1].error}")
        return found[1].value


def _item_of(name: str, entry: Entry, given: Mapping[str, Any], *, parts: bool) -> Any:
    """Say what a list tells of a conversation: how much it is, and what it begins with."""
    make = import_module("trimtab.inspector").Item
    if entry.error is not None:
        return make(name=name, error=str(entry.error))
    value = entry.value
    try:
        form = detect(value) if given["format"] == "auto" else get_format(given["format"])
        request = form.read_request(value) if isinstance(value, Mapping) else Request(messages=value)
        tokens = count_of_request(value, EstimateCounter(), format=form).total.tokens
        words = _first_words(form, request)
        return make(name=name, said=words, messages=len(request.messages), tokens=tokens)
    except ContextError as error:
        told = str(error)[:_SAID_CHARS]  # where a policy is given, it may know what to do with it
        return make(name=name, said=told) if parts else make(name=name, error=told)


def _first_words(form: Format, request: Request) -> str:
    """Return the first words of a user, or of anybody."""
    found = [mapping_of(message) for message in request.messages]
    users = (one for one in found if form.kind(one) == "user")
    first = next(users, found[0] if found else None)
    return "" if first is None else " ".join(form.full_text(first)[: _SAID_CHARS * 2].split())[:_SAID_CHARS]


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
    "compact": None,
    "rule_texts": (),
    "rules_file": None,
}
"""Options of `trimtab fit` that a page has none for."""


def _fit(value: Any, given: Mapping[str, Any], word: str, room: Callable[[], int | None]) -> Fitted[Any]:
    options = {**_FIT, **given}
    if not word.startswith("{") and isinstance(read_policy(word), Context):
        try:
            return PolicyFit(word, options).fit(value).fitted
        except ConfigurationError:
            if (tokens := room()) is None:
                raise
            return PolicyFit(word, {**options, "budget": tokens}).fit(value).fitted
    if (tokens := room()) is not None:
        options["budget"] = tokens
    try:
        if word in (BY_DEFAULT, STEADY):
            return fit_by_options({**options, "steady": word == STEADY})(value).fitted
        return fit_by_options({**options, "strategy": word})(value).fitted
    except ConfigurationError as error:
        told = str(error)
        raise ConfigurationError(told.removeprefix(f"--strategy {word}: ")) from error


def _player(
    record: Callable[[int | None], Recording],
    given: Mapping[str, Any],
    value: Any = None,
    *,
    free: Callable[[], int | None] = lambda: None,
) -> Callable[[str, str, int | None, int | None], Replayed]:
    """Make what replays a conversation under a policy, at a price list and in a room, up to a version."""

    def run(word: str, pricing: str, window: int | None, version: int | None) -> Replayed:
        asked = RequestOptions(given)
        model = asked.model_of(value)
        room: Budget | None = None
        tokens = free()
        if tokens is not None:
            room = Budget(tokens)
        elif given["budget"] is not None or model is not None:
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


def _pricings(model: str | None) -> tuple[str, ...]:
    """List price lists, that of the model before the others."""
    own = [] if model is None or find_pricing(model) is None else [model]
    return tuple(dict.fromkeys((*own, DEFAULT_PRICING, *pricings())))


def subject_of(value: Any, given: Mapping[str, Any], words: Sequence[str], *, name: str) -> Any:
    """Make the subject of a conversation of a file.

    Where neither a budget nor a model says how much room there is, there is room for all of it.
    """
    asked = RequestOptions(given)
    model = asked.model_of(value)
    is_free = given["budget"] is None and not _has_window(asked, model)

    @cache
    def record(version: int | None) -> Recording:
        return read_recording(
            value, format=given["format"], model=asked.model, system=asked.system, tools=asked.tools
        )

    @cache
    def room() -> int | None:
        return _room_for_all(value, given) if is_free else None

    return import_module("trimtab.inspector").Subject(
        name=name,
        policies=words,
        fit=lambda word, version: _fit(value, given, word, room),
        play=_player(record, given, value, free=room),
        replayed=WORDS,
        pricings=_pricings(model),
        is_margin_auto=given["margin"] == "auto",
        model=model,
        models=model_names(),
        for_model=lambda other: subject_of(value, _for_model(given, other), words, name=name),
        note=_room_note(model) if is_free else "",
    )


def _room_note(model: str | None) -> str:
    """Say why there is room for all of a conversation."""
    if model is not None:
        return f"How much room {model} has is not known, so there is room for all of it. Move the slider."
    return (
        "No budget was given, so there is room for all of it. Choose a model to have the room it has, or move"
        " the slider to see what would be evicted."
    )


def _has_window(asked: RequestOptions, model: str | None) -> bool:
    try:
        return asked.budget(model) is not None
    except ConfigurationError:
        return False


def _room_for_all(value: Any, given: Mapping[str, Any]) -> int:
    """Return a round number of tokens in which all of a conversation has room, with what stands beside it."""
    huge = {**_FIT, **given, "budget": 10**12, "margin": None}
    report = fit_by_options(huge)(value).fitted.report
    needed, room = report.tokens_after + report.output_reserve_tokens + report.overhead_tokens, _LEAST_ROOM
    while room < needed * 1.1:
        room *= 2
    return room


def _for_model(given: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return options for a model that a page chose: its room, an estimate where its tokenizer is missing.

    Raises:
        UnknownNameError: Nobody knows the model.
    """
    try:
        facts_for(model)
    except UnknownNameError as error:
        near = f": did you mean {' or '.join(error.near)}?" if error.near else ""
        raise UnknownNameError(f"model {model!r} is unknown{near}", name=model, near=error.near) from error
    found = {**given, "model": model, "budget": None, "calibration": None}  # which is of one model
    if found["counter"] is None:
        try:
            counter_for(model)
        except MissingExtraError:
            found["counter"] = "estimate"
    return found


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
        return _fit(body, {**options, **beside}, word, lambda: None)

    return import_module("trimtab.inspector").Subject(
        name=f"session {one.id}",
        policies=words,
        fit=fit,
        play=_player(lambda version: record(events(version)), options),
        replayed=WORDS,
        pricings=_pricings(options["model"]),
        session=one,
        read_only=given["read_only"],
        is_margin_auto=given["margin"] == "auto",
        model=options["model"],
    )
