"""Options that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from trimtab.cli.input import INPUT_KINDS
from trimtab.formats import formats
from trimtab.models import model_names

__all__ = [
    "BUDGET",
    "PIN",
    "TOKENS",
    "bare_option",
    "complete_models",
    "input_options",
    "margin_option",
    "pending_option",
    "pins_in",
    "request_options",
]

F = TypeVar("F", bound=Callable[..., Any])

_NUMBER = re.compile(r"(\d[\d_,]*)(\.\d+)?([km])?", re.IGNORECASE)
_TIMES = {None: 1, "k": 1_000, "m": 1_000_000}


class _Tokens(click.IntRange):
    """A number of tokens: 4000, 4_000, 4k, 1.5m."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it; k is a thousand, m a million, and a fraction of a token is rounded down (SPEC D1)."""
        found = _NUMBER.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no number of tokens, as 4000, 4k or 1.5m", param, ctx)
        whole, fraction, suffix = found.groups()
        tokens = float(re.sub("[_,]", "", whole) + (fraction or "")) * _TIMES[suffix and suffix.lower()]
        return int(super().convert(int(tokens), param, ctx))


TOKENS = _Tokens(min=0)
BUDGET = _Tokens(min=1)


def complete_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the models that are known to a shell."""
    return [CompletionItem(name) for name in model_names() if name.startswith(incomplete)]


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
            help="What each FILE is: one JSON document, a conversation a line, or a message a line.",
        ),
        click.argument("files", metavar="[FILE]...", type=click.Path(allow_dash=True), nargs=-1),
    ):
        command = option(command)
    return command


def request_options(command: F) -> F:
    """Add what is counted, and how."""
    for option in (
        click.option("--system", metavar="TEXT|@FILE", help="System text beside the messages."),
        click.option(
            "--tools",
            metavar="FILE",
            type=click.Path(),
            help="JSON list of tool schemas, counted with the request.",
        ),
        click.option(
            "--counter",
            metavar="estimate|chars:N",
            help="Count without the tokenizer of the model: by estimate, or a token each N characters.",
        ),
        click.option("--model", metavar="NAME", shell_complete=complete_models, help="Model to count for."),
    ):
        command = option(command)
    return command


def bare_option(command: F) -> F:
    """Add that only the messages are written."""
    option = click.option(
        "--messages-only",
        "bare",
        is_flag=True,
        help="Write the messages alone, or the request body; nothing for what is refused.",
    )
    return option(command)


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
