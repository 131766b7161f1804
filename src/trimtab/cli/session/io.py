"""What commands of sessions read and write.

Messages, and the options a session begins with, come in; events, views and numbers go out, as JSON for
programs or as lines for people.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, BinaryIO, Literal

import click

from trimtab._shared.files import BYTE_ORDER_MARK, LINE_SUFFIXES
from trimtab._shared.strict_json import parse
from trimtab.budget import Budget
from trimtab.cli.input import entries, standard_input
from trimtab.cli.options import (
    Number,
    RequestOptions,
    format_option,
    room_options,
    rule_options,
    rules_in,
    strategy_of,
    text_of,
    together,
)
from trimtab.cli.output import encode, json_text, leave_pipe
from trimtab.cli.session.labels import metadata_option, owner_option, ttl_option
from trimtab.context import Fitted
from trimtab.counting import EstimateCounter
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Format, Request, format_of
from trimtab.report.text import clip, plain, plural
from trimtab.session import Session
from trimtab.session.options import FINDS, session_budget
from trimtab.session.text import Gap, event_text
from trimtab.stores import Event
from trimtab.summaries import Fact

InputKind = Literal["auto", "json", "messages-jsonl"]
INPUT_KINDS: tuple[InputKind, ...] = ("auto", "json", "messages-jsonl")


def read_bytes(file: BinaryIO | None) -> bytes:
    """Read a file, or standard input."""
    return (standard_input() if file is None else file).read().removeprefix(BYTE_ORDER_MARK)


def messages_in(file: BinaryIO | None, *, kind: InputKind) -> list[Any]:
    """Read one message, a list of them, or one a line."""
    raw = read_bytes(file)
    name = getattr(file, "name", "")
    if kind == "messages-jsonl" or (kind == "auto" and _is_lines(raw, name if isinstance(name, str) else "")):
        entry, *others = entries(io.BytesIO(raw), kind="messages-jsonl")
        if entry.error is not None:
            raise entry.error
        if entry.foreign is not None:
            raise FormatError(
                f"it is a recording of {entry.foreign.program} with"
                f" {plural(1 + len(others), 'conversation')}: add the messages of one, as `read_foreign` of"
                " trimtab.formats reads them"
            )
        messages = entry.value
    else:
        value = parse(raw, whole=True)
        messages = value if isinstance(value, list) else [value]
        for at, one in enumerate(messages):
            _check_message(one, at)
    if not messages:
        raise FormatError("it has no messages")
    return list(messages)


def _is_lines(raw: bytes, name: str) -> bool:
    """Tell JSONL from one document: by the name of the file, or by a first line that is complete."""
    if PurePath(name).suffix.lower() in LINE_SUFFIXES:
        return True
    first, _, rest = raw.strip().partition(b"\n")
    if not rest:
        return False
    try:
        return isinstance(parse(first), Mapping)
    except FormatError:
        return False


def _check_message(value: Any, at: int) -> None:
    if not isinstance(value, Mapping):
        raise FormatError(f"[{at}] is not a message but {value!r:.40}: a message is a mapping with a role")
    for key in ("messages", "input", "contents", "choices"):
        if isinstance(value.get(key), list) and "role" not in value:
            raise FormatError(f"a mapping with {key!r} is not a message: pass only the messages")


_FRACTION = Number("a number above 0 and at most 1", lambda number: 0 < number <= 1)
_SHARE = Number("a number above 0 and at most 1, auto or none", lambda number: 0 < number <= 1)


class _ResultRatio(click.ParamType[Any]):
    """A share, or a word: the share that is the default, or no limit."""

    name = "ratio"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Take a word as it is, anything else as a number."""
        return value if value in ("auto", "none") else _SHARE.convert(value, param, ctx)


RATIOS = {
    "target_ratio": (_FRACTION, "Share of its room that a cut keeps; 0.5 by default."),
    "recall_ratio": (
        Number("a number from 0 to below 1", lambda number: 0 <= number < 1),
        "Share of the view for messages recalled for the newest question.",
    ),
}
"""Options of `Session` that are shares: what each takes, and what it is."""

begin_options = together(
    click.option(
        "--anchor",
        "anchors",
        metavar="TEXT|JSON|@FILE",
        multiple=True,
        help="Message after the system text that is never evicted. Repeatable.",
    ),
    rule_options,
    click.option(
        "--find-rules",
        type=click.Choice(FINDS),
        help="Find rules in messages of the user: all includes orders for one answer; off by default.",
    ),
    click.option(
        "--max-rule-tokens",
        type=click.IntRange(min=0),
        metavar="TOKENS",
        help="Cap on found rules in view. Default: 0.1 of the budget, at most 1,000.",
    ),
    click.option(
        "--breakpoints/--no-breakpoints",
        default=None,
        help="Mark each view for a prompt cache that stores marked prefixes only.",
    ),
    click.option(
        "--compact/--no-compact",
        default=None,
        help="Write tool results of a view once: lines of earlier results as references, and JSON without"
        " spaces.",
    ),
    click.option(
        "--strategy",
        metavar="cheapest|FILE",
        help="How deep cuts go, in place of --target-ratio: cheapest, or a JSON or TOML file of it.",
    ),
    click.option(
        "--max-result-ratio",
        type=_ResultRatio(),
        metavar="RATIO|auto|none",
        help="Largest share of the budget for one tool result; by default auto: a quarter for a result"
        " larger than the budget.",
    ),
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=kind, metavar="RATIO", help=about)
        for name, (kind, about) in RATIOS.items()
    ),
    owner_option,
    metadata_option,
    ttl_option,
    format_option,
    room_options,
)
"""What a session begins with."""


def options_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options a session begins with; those not given are left out."""
    asked = RequestOptions(given)
    form = format_of([], asked.format, asked.model)
    options = {
        "system": asked.system,
        "tools": asked.tools,
        "model": asked.model,
        "counter": None if given["counter"] is None else asked.counter(asked.model),
        "format": None if asked.format == "auto" else asked.format,
        "anchors": [one for value in given["anchors"] for one in _anchors(value, form)]
        if given["anchors"]
        else None,
        "budget": _budget(given, asked),
        "strategy": strategy_of(given["strategy"]),
        "rules": rules_in(given),
        "find_rules": given["find_rules"],
        "max_rule_tokens": given["max_rule_tokens"],
        "breakpoints": given["breakpoints"],
        "compact": given["compact"],
        "max_result_ratio": given["max_result_ratio"],
        "owner": given["owner"],
        "metadata": given["metadata"],
        "ttl": given["ttl"],
        **{name: given[name] for name in RATIOS},
    }
    kept = {name: value for name, value in options.items() if value is not None}
    nothing = [name for name in ("max_result_ratio", "ttl") if given[name] == "none"]
    return {**kept, **dict.fromkeys(nothing)}


def _budget(given: Mapping[str, Any], asked: RequestOptions) -> Budget | None:
    if given["budget"] is None and asked.model is None:
        for name in ("output_reserve", "margin"):
            if given[name] is not None:
                raise ConfigurationError(f"--{name.replace('_', '-')} needs --budget or --model")
        return None
    budget = asked.budget(asked.model)
    # too small a one is refused before a file is made for it
    session_budget(budget, asked.counter(asked.model) or EstimateCounter(), asked.tools, model=asked.model)
    return budget


def _anchors(value: str, form: Format) -> list[Any]:
    """Read one `--anchor`: messages as JSON, or a text.

    A text becomes a system message; the user's where the wire form has no such messages.
    """
    text = text_of("--anchor", value)
    if not text.lstrip().startswith(("{", "[")):
        return [form.message("user" if form.rules.lifts_system else "system", [text])]
    try:
        read = parse(text.encode(), whole=True)
    except FormatError as error:
        raise ConfigurationError(f"--anchor {value[:40]}: {error}") from error
    messages = read if isinstance(read, list) else [read]
    for one in messages:
        if not isinstance(one, Mapping):
            raise ConfigurationError(f"--anchor {value[:40]}: {one!r:.40} is not a message")
    return messages


# How events, views and numbers of a session are written: JSON for programs, lines for people.


def write(data: Any, text: Callable[[], str], *, output: str) -> None:
    """Write an answer on standard output, as JSON or for people."""
    if output == "json":
        click.echo(json_text(data), nl=False)
        return
    written = text()
    click.echo(encode(f"{written}\n" if written else ""), nl=False)


def write_lines(lines: Iterable[bytes]) -> None:
    """Write line by line, until nobody reads on."""
    for line in lines:
        try:
            click.echo(line, nl=False)
        except BrokenPipeError:
            leave_pipe()
            return


def event_data(event: Event | Gap) -> dict[str, Any]:
    """Give an event for programs; the state in it is the store's business."""
    if isinstance(event, Gap):
        return {"version": event.first, "until": event.last, "kind": "pruned"}
    return {
        "version": event.version,
        "id": event.id,
        "kind": event.kind,
        "time": event.time,
        "data": dict(event.data),
    }


def fact_data(fact: Fact) -> dict[str, Any]:
    """Give a fact for programs."""
    return {
        "text": fact.text,
        "weight": fact.weight,
        "kind": fact.kind,
        "confirmations": fact.confirmations,
        "origin": fact.origin,
        "sources": list(fact.sources),
    }


def event_line(event: Event | Gap, *, ids: bool = False) -> str:
    """Give an event for people, in one line: its version, its time or its id, and what it is.

    It is cut to the width of a terminal, and whole anywhere else.
    """
    if isinstance(event, Gap):
        return f"{event.first:>6}  {event.text}"
    second = plain(event.id) if ids else when(event.time)
    line = f"{event.version:>6}  {second}  {plain(event_text(event))}"
    # Who reads from a pipe searches in it, or pages through it: only a terminal has a width.
    return clip(line, shutil.get_terminal_size().columns) if sys.stdout.isatty() else line


def when(time: float) -> str:
    """Write a time in UTC, for people."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


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
    # Further lines of a message are set in, so that none passes for a turn, or for the report behind it.
    return "\n\n".join("\n    ".join(map(plain, text.splitlines())) for text in said)


_MISSING = {
    "counter": (
        "it counts with {}, so tokens are estimated here and ",
        "messages may leave earlier or later",
        "sizes, and so the view, may differ",
    ),
    "summarizer": (
        "it has the summarizer {}, so no summary is written here: ",
        "what leaves waits for who opens it with one",
        "the view stays as it was",
    ),
    "ranker": ("it has the ranker {}, so messages are found by their words here",),
    "fact_extractor": (
        "it has the fact extractor {}, not asked here: ",
        "what leaves is read by who opens it with one",
        "the view stays as it was",
    ),
    "find_rules": ("it finds rules with {}, so none are found here",),
    "compact": ("it writes results of the kinds {}, which are shown as they came here",),
    "on_trim": ("what its on_trim ({}) takes out of a view is in this one",),
    "hooks": ("nobody hears of what happens here: it has {}",),
    "context": ("it is a block of a Context, so the other blocks are not in the view",),
}
"""What to say of what is missing; and behind it what that does where messages are added, and elsewhere."""


def say_missing(session: Session, *, adds: bool = False) -> None:
    """Say on standard error what the session was made with and the command line has not."""
    missing, told = session.missing, list[str]()
    for name, (text, *effects) in _MISSING.items():
        if name in missing:
            effect = effects[0 if adds else 1] if effects else ""
            told.append(f"{text.format(missing[name] or name)}{effect}")
    for one in told:
        click.echo(
            f"trimtab: session {plain(repr(session.id))} was made in a program: {plain(one)}", err=True
        )
