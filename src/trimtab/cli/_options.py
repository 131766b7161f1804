"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trimtab.cli._input import INPUT_KINDS
from trimtab.formats import formats

__all__ = [
    "PIN",
    "TOKENS",
    "input_options",
    "margin_option",
    "pending_option",
    "pins_in",
    "request_options",
]

F = TypeVar("F", bound=Callable[..., Any])

TOKENS = click.IntRange(min=0)


class _Margin(click.ParamType[Any]):
    """Tokens, or the word auto."""

    name = "margin"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Take the word as it is, anything else as a number."""
        return "auto" if value == "auto" else int(TOKENS.convert(value, param, ctx))


def input_options(command: F) -> F:
    """Add the file and how it is read and answered."""
    for option in (
        click.option(
            "--output",
            type=click.Choice(["json", "text"]),
            default="json",
            show_default=True,
            help="JSON for programs, or text for people.",
        ),
        click.option(
            "--format",
            type=click.Choice(["auto", *formats()]),
            default="auto",
            show_default=True,
            help="Wire form of the messages.",
        ),
        click.option(
            "--input",
            "kind",
            type=click.Choice(INPUT_KINDS),
            default="auto",
            show_default=True,
            help="What FILE is: one JSON document, a conversation a line, or a message a line.",
        ),
        click.argument("file", type=click.File("rb"), required=False),
    ):
        command = option(command)
    return command


def request_options(command: F) -> F:
    """Add what is counted, and how."""
    for option in (
        click.option("--system", metavar="TEXT|@FILE", help="System text beside the messages."),
        click.option("--tools", metavar="FILE", help="JSON list of tool schemas, counted with the request."),
        click.option(
            "--counter",
            metavar="estimate|chars:N",
            help="Count without the tokenizer of the model: by estimate, or a token each N characters.",
        ),
        click.option("--model", metavar="NAME", help="Model to count for."),
    ):
        command = option(command)
    return command


def pending_option(command: F) -> F:
    """Add the ids of calls that may stay unanswered."""
    option = click.option(
        "--pending-call",
        "pending_calls",
        metavar="ID",
        multiple=True,
        help="Id of a call whose result is still to come. Repeatable.",
    )
    return option(command)


def margin_option(command: F) -> F:
    """Add the tokens kept free for counts that are too low."""
    option = click.option(
        "--margin",
        type=_Margin(),
        metavar="N|auto",
        help="Tokens kept free for counts too low; auto: as many as the counter may be off by.",
    )
    return option(command)


class _Pin(click.ParamType[int | slice]):
    """An index, negative from the end, or a range as Python writes it."""

    name = "index"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | slice:
        """Read `3`, `-1`, `0:4` or `-2:`."""
        start, colon, stop = str(value).partition(":")
        try:
            if not colon:
                return int(start)
            return slice(int(start) if start else None, int(stop) if stop else None)
        except ValueError:
            self.fail(f"{value!r} is not an index (3, -1) or a range (0:4, -2:)", param, ctx)


PIN = _Pin()


def pins_in(pins: tuple[int | slice, ...], count: int) -> list[int]:
    """List the indices that pins mean among so many messages; single ones are not checked."""
    return [
        index for pin in pins for index in (range(*pin.indices(count)) if isinstance(pin, slice) else (pin,))
    ]
