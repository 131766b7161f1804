"""Options that commands share, and what they mean: counter, budget, tools, strategy, pins."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from trimtab.budget import Budget
from trimtab.cli._input import INPUT_KINDS
from trimtab.cli._json import parse
from trimtab.counting import AdditiveCounter, CharCounter, EstimateCounter, counter_for
from trimtab.errors import ConfigurationError, FormatError, MissingExtraError, UnknownNameError
from trimtab.formats import Format, Request, detect, formats, get_format
from trimtab.models import facts_for
from trimtab.strategies import Strategy, StrategyKind, create_strategy

__all__ = [
    "PIN",
    "budget_of",
    "counter_of",
    "input_options",
    "pending_option",
    "pins_in",
    "request_of",
    "request_options",
    "strategy_of",
    "system_of",
    "tools_of",
]

F = TypeVar("F", bound=Callable[..., Any])

TOKENS = click.IntRange(min=0)


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


def counter_of(counter: str | None, model: str | None) -> AdditiveCounter:
    """Make the counter of `--counter` and `--model`; without either an estimate.

    Raises:
        UnknownNameError: Nobody knows the model.
        MissingExtraError: Its tokenizer is not installed.
    """
    if counter is None:
        return EstimateCounter() if model is None else _counter_for(model)
    kind, _, number = counter.partition(":")
    if counter == "estimate":
        return EstimateCounter()
    try:
        if kind == "chars":
            return CharCounter(float(number) if number else 4)
    except ValueError as error:
        why = error if isinstance(error, ConfigurationError) else f"{number!r} is not a number"
        raise ConfigurationError(f"--counter {counter}: {why}") from error
    raise ConfigurationError(f"--counter is estimate or chars:N (as chars:4), not {counter!r}")


def _counter_for(model: str) -> AdditiveCounter:
    try:
        return counter_for(model)
    except UnknownNameError as error:
        raise _unknown_model(error) from error
    except MissingExtraError as error:
        hint = f"{error}, or give --counter estimate"
        raise MissingExtraError(hint, extra=error.extra, package=error.package) from error


def _unknown_model(error: UnknownNameError) -> UnknownNameError:
    """Say in words of the command line what to do about a model nobody knows."""
    near = f" (did you mean {' or '.join(error.near)}?)" if error.near else ""
    return UnknownNameError(
        f"unknown model {error.name!r}{near}: give --counter estimate and --budget N instead of --model",
        name=error.name,
        near=error.near,
    )


def budget_of(tokens: int | None, *, output_reserve: int | None, margin: int, model: str | None) -> Budget:
    """Make the budget; without `--budget` from the window of the model.

    Raises:
        ConfigurationError: Neither is known.
    """
    if tokens is not None:
        return Budget(tokens, output_reserve=output_reserve or 0, margin=margin)
    if model is None:
        raise ConfigurationError("how much room is there? Give --budget N (tokens), or --model NAME")
    try:
        facts = facts_for(model)
    except UnknownNameError as error:
        raise _unknown_model(error) from error
    if facts.window_tokens is None:
        raise ConfigurationError(f"the window of {model!r} is not known: give --budget N (tokens)")
    reserve = facts.output_reserve_tokens if output_reserve is None else output_reserve
    return Budget(facts.window_tokens, output_reserve=reserve, margin=margin)


def strategy_of(value: str | None) -> Strategy | None:
    """Make the strategy of a kind, or of a JSON or TOML file.

    Raises:
        ConfigurationError: No such kind, a file that cannot be read, or an option it does not have.
    """
    if value is None:
        return None
    path = Path(value)
    if path.suffix.lower() not in (".json", ".toml") and (value in [*StrategyKind] or not path.is_file()):
        return create_strategy(value)
    raw = _read("--strategy", path)
    try:
        is_toml = path.suffix.lower() == ".toml"
        return create_strategy(tomllib.loads(raw.decode("utf-8")) if is_toml else parse(raw, whole=True))
    except (FormatError, ConfigurationError, ValueError) as error:
        raise ConfigurationError(f"--strategy {value}: {error}") from error


def tools_of(value: str | None) -> list[Any] | None:
    """Read the tool schemas of a JSON file.

    Raises:
        ConfigurationError: It cannot be read, or holds no list.
    """
    if value is None:
        return None
    try:
        tools = parse(_read("--tools", Path(value)), whole=True)
    except FormatError as error:
        raise ConfigurationError(f"--tools {value}: {error}") from error
    if not isinstance(tools, list):
        raise ConfigurationError(f"--tools {value}: a list of tool schemas is expected, not {tools!r:.40}")
    return tools


def system_of(value: str | None) -> str | None:
    """Return the system text, read from a file if it begins with `@`.

    Raises:
        ConfigurationError: The file cannot be read, or is not UTF-8.
    """
    if value is None or not value.startswith("@"):
        return value
    try:
        return _read("--system", Path(value[1:])).decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--system {value}: not UTF-8 (byte {error.start + 1})") from error


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise ConfigurationError(f"{option} {path}: {error.strerror or error}") from error


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


def request_of(value: Any, format: str) -> tuple[Format, Request]:
    """Take a conversation apart: its wire form, and its messages and what stands beside them.

    Raises:
        FormatError: A mapping without a list of messages.
    """
    chosen = detect(value) if format == "auto" else get_format(format)
    return chosen, chosen.read_request(value) if isinstance(value, Mapping) else Request(messages=value)
