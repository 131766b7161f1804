"""What `trimtab session add` reads: messages, and the options a session begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TypeVar

import click

from trimtab.budget import Budget
from trimtab.cli.files import standard_input
from trimtab.cli.input import entries
from trimtab.cli.json_out import parse
from trimtab.cli.options import BUDGET, TOKENS, margin_option, request_options
from trimtab.cli.request import Asked, budget_of
from trimtab.conversation.units import format_of
from trimtab.counting import EstimateCounter
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Format, formats
from trimtab.session.budget import session_budget

__all__ = ["INPUT_KINDS", "begin_options", "messages_in", "options_in", "read_bytes"]

InputKind = Literal["auto", "json", "messages-jsonl"]
INPUT_KINDS: tuple[InputKind, ...] = ("auto", "json", "messages-jsonl")

F = TypeVar("F", bound=Callable[..., Any])


def read_bytes(file: BinaryIO | None) -> bytes:
    """Read a file, or standard input."""
    return (standard_input() if file is None else file).read().removeprefix(b"\xef\xbb\xbf")


def messages_in(file: BinaryIO | None, *, kind: InputKind) -> list[Any]:
    """Read one message, a list of them, or one a line.

    Raises:
        FormatError: It is something else.
    """
    raw = read_bytes(file)
    name = getattr(file, "name", "")
    if kind == "messages-jsonl" or (kind == "auto" and _is_lines(raw, name if isinstance(name, str) else "")):
        return _from_lines(raw)
    value = parse(raw, whole=True)
    messages = value if isinstance(value, list) else [value]
    if not messages:
        raise FormatError("there are no messages in it")
    for at, one in enumerate(messages):
        if not isinstance(one, Mapping):
            raise FormatError(f"[{at}] is no message but {one!r:.40}: a message is a mapping with a role")
        _refuse_body(one)
    return messages


def _is_lines(raw: bytes, name: str) -> bool:
    """Tell JSONL from one document: by the name of the file, or by a first line that is complete."""
    if PurePath(name).suffix.lower() in (".jsonl", ".ndjson"):
        return True
    first, _, rest = raw.strip().partition(b"\n")
    if not rest:
        return False
    try:
        return isinstance(parse(first), Mapping)
    except FormatError:
        return False


def _from_lines(raw: bytes) -> list[Any]:
    import io

    (entry,) = entries(io.BytesIO(raw), kind="messages-jsonl")
    if entry.error is not None:
        raise entry.error
    if not entry.value:
        raise FormatError("there are no messages in it")
    return list(entry.value)


def _refuse_body(value: Mapping[str, Any]) -> None:
    for key in ("messages", "input", "contents", "choices"):
        if isinstance(value.get(key), list) and "role" not in value:
            raise FormatError(f"a mapping with {key!r} is no message: add the messages alone")


def begin_options(command: F) -> F:
    """Add what a session begins with."""
    for option in (
        click.option(
            "--anchor",
            "anchors",
            metavar="TEXT|JSON|@FILE",
            multiple=True,
            help="Message that never leaves, after the system text. Repeatable.",
        ),
        click.option(
            "--format",
            type=click.Choice(["auto", *formats()]),
            default="auto",
            show_default=True,
            help="Wire form of the messages.",
        ),
        request_options,
        margin_option,
        click.option("--output-reserve", type=TOKENS, metavar="N", help="Tokens of it kept for the answer."),
        click.option(
            "--budget",
            type=BUDGET,
            metavar="N",
            help="Room of the view in tokens, as 8000 or 8k. Default: by --model.",
        ),
    ):
        command = option(command)
    return command


def options_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options a session begins with; those not given are left out.

    Raises:
        ConfigurationError: One is out of range, or a file of one cannot be read.
    """
    asked = Asked(given, format=given["format"])
    options: dict[str, Any] = {"system": asked.system, "tools": asked.tools, "model": asked.model}
    options["counter"] = None if given["counter"] is None else asked.counter(asked.model)
    options["format"] = None if given["format"] == "auto" else given["format"]
    form = format_of([], given["format"], asked.model)
    anchors = [one for value in given["anchors"] for one in _anchors(value, form)]
    options["anchors"] = anchors if given["anchors"] else None
    options["budget"] = _budget(given, asked)
    return {name: value for name, value in options.items() if value is not None}


def _budget(given: Mapping[str, Any], asked: Asked) -> Budget | None:
    tokens, reserve, margin, model = (given[key] for key in ("budget", "output_reserve", "margin", "model"))
    if tokens is None and model is None:
        for name, value in (("--output-reserve", reserve), ("--margin", margin)):
            if value is not None:
                raise ConfigurationError(f"{name} goes with --budget or --model")
        return None
    budget = budget_of(tokens, output_reserve=reserve, margin=margin, model=model)
    # too small a one is refused before a file is made for it
    session_budget(budget, asked.counter(asked.model) or EstimateCounter(), asked.tools)
    return budget


def _anchors(value: str, form: Format) -> list[Any]:
    """Read one `--anchor`: messages as JSON, or a text.

    A text becomes a system message; the user's where the wire form has no such messages.
    """
    text = value
    if value.startswith("@"):
        try:
            text = Path(value[1:]).read_text(encoding="utf-8-sig").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise ConfigurationError(f"--anchor {value}: {why}") from error
    if not text.lstrip().startswith(("{", "[")):
        return [form.message("user" if form.rules.lifts_system else "system", [text])]
    try:
        read = parse(text.encode(), whole=True)
    except FormatError as error:
        raise ConfigurationError(f"--anchor {value[:40]}: {error}") from error
    messages = read if isinstance(read, list) else [read]
    for one in messages:
        if not isinstance(one, Mapping):
            raise ConfigurationError(f"--anchor {value[:40]}: {one!r:.40} is no message")
    return messages
