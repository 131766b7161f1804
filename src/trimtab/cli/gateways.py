"""Options of commands that run a gateway: where it may ask, how much it may send, and a file of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any

import click

from trimtab._shared.checks import in_words, near_names
from trimtab.cli.options import F, rules_in
from trimtab.errors import ConfigurationError


def _read_config(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    """Make options of a file the defaults of a run: those of the command line and the environment go before.

    Raises:
        click.UsageError: The file cannot be read, or has what is no option.
    """
    if path is None:
        return
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise click.UsageError(f"--config {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.UsageError(f"--config {path}: {error}") from error
    named = {
        opt.removeprefix("--"): one
        for one in context.command.params
        for opt in one.opts
        if one is not parameter and isinstance(one, click.Option)
    }
    unknown = next((key for key in data if key not in named), None)
    if unknown is not None:
        near = in_words(near_names(unknown, named))
        raise click.UsageError(f"--config {path}: {unknown} is not an option of this command{near}")
    try:
        context.default_map = {str(named[key].name): _as_words(named[key], data[key]) for key in data}
    except ValueError as error:
        raise click.UsageError(f"--config {path}: {error}") from error


def _as_words(option: click.Parameter, value: Any) -> Any:
    """Write what a file has as the command line does; a table: a word, = and its value.

    Raises:
        ValueError: It is of another kind than the option.
    """
    key = option.opts[0].removeprefix("--")
    if isinstance(option, click.Option) and option.is_flag:
        if isinstance(value, bool):
            return value
        raise ValueError(f"{key} must be true or false, not {value!r:.100}")
    if not option.multiple:
        return _as_word(key, value, is_number=not isinstance(option.type, click.types.StringParamType))
    if isinstance(value, dict):
        return [f"{one}={_as_word(f'{key}.{one}', value[one])}" for one in value]
    return [_as_word(key, one) for one in (value if isinstance(value, list) else [value])]


def _as_word(key: str, value: Any, *, is_number: bool = False) -> str:
    """Write a text or a number, which is whole where texts stand: 0.8 for 80% would be a budget of no token.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(value, str) or type(value) is int or (is_number and isinstance(value, float)):
        return str(value)
    what = 'a text such as "80%"' if isinstance(value, float) else "a text or a whole number"
    raise ValueError(f"{key} must be {what}, not {value!r:.100}")


config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="TOML with any of these options, by their long names; --upstream and --budget may be tables.",
)


def learn_option(otherwise: bool | None) -> Callable[[F], F]:
    """Make the option of learning for a command.

    Args:
        otherwise: What holds where nobody says; None: that depends on where it listens.
    """
    alone = "" if otherwise else " Default: --learn on an address of this machine alone, or with --share."
    return click.option(
        "--learn/--no-learn",
        default=otherwise,
        show_default=bool(otherwise),
        help="Improve counts by what requests are billed. --no-learn: each of several processes sends the"
        f" same for the same request.{alone}",
    )


def _many(command: str, name: str, metavar: str, help: str) -> Callable[[F], F]:
    """Make an option that may be repeated, and is read from a variable of its command, too."""
    variable = f"TRIMTAB_{command}_{name.upper()}"
    return click.option(f"--{name}", f"{name}s", metavar=metavar, multiple=True, envvar=variable, help=help)


def upstream_option(command: str, otherwise: str) -> Callable[[F], F]:
    """Make the option of servers for a command.

    Args:
        command: Its name, which that of a variable of the environment has.
        otherwise: Which servers are asked where the option names none.
    """
    return _many(
        command,
        "upstream",
        "API[/MODEL]=URL",
        "Server that speaks an API, for all models or those of a pattern; API,key:NAME for a key."
        f" Repeatable. Default: {otherwise}.",
    )


def budget_option(command: str) -> Callable[[F], F]:
    """Make the option of budgets for a command.

    Args:
        command: Its name, which that of a variable of the environment has.
    """
    return _many(
        command,
        "budget",
        "[FOR=]N",
        "Room in tokens, such as 8000 or 8k; a share of the model's input limit, such as 80%; tier,"
        " below its next price tier; or a policy in TOML or JSON. FOR is a model, which may be a pattern such"
        " as 'my-*', route:PATH, key:NAME, or several with commas between. Repeatable. Default: the model's"
        " window, less the room for its answer.",
    )


def key_option(command: str) -> Callable[[F], F]:
    """Make the option of names of keys, which budgets and servers may be for, for a command.

    Args:
        command: Its name, which that of a variable of the environment has.
    """
    return _many(
        command,
        "key",
        "NAME=sha256:HASH",
        "Name for a client's key, told by its hash, or by the variable or file that has it:"
        " NAME=env:VARIABLE, NAME=file:PATH. Repeatable.",
    )


def budgets_in(words: Sequence[str]) -> dict[str, str]:
    """Read budgets by what each is for."""
    return dict(map(_budget, words))


def _budget(words: str) -> tuple[str, str]:
    asked, equals, budget = words.partition("=")
    return (asked, budget) if equals and not isfile(words) else ("*", words)


def keys_in(words: Sequence[str]) -> dict[str, str]:
    """Read what keys are told by, by their names.

    Raises:
        ConfigurationError: One is none.
    """
    pairs = [one.partition("=") for one in words]
    if not all(equals for _, equals, _ in pairs):  # it is not shown: it may be the key itself
        raise ConfigurationError("--key must be NAME=sha256:HASH, NAME=env:VARIABLE or NAME=file:PATH")
    return {name: told for name, _, told in pairs}


def upstream_in(gateway: Any, words: str) -> Any:
    """Read a server.

    Args:
        gateway: The package, which is imported when a command runs.
        words: What the command line says.

    Raises:
        ConfigurationError: It is none.
    """
    asked, equals, url = words.partition("=")
    named, _, key = asked.partition(",key:")
    api, slash, models = named.partition("/")
    if not equals or (slash and not models) or "," in named:
        raise ConfigurationError(
            "--upstream must be API=URL or API/MODEL=URL, and before the = may be ,key:NAME for a key, not"
            f" {words!r:.200}"
        )
    return gateway.Upstream(api=api, url=url, models=models or "*", key=key)


def fit_options_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """List the options of a fit that were given."""
    options = {"rules": rules_in(given), "compact": given["compact"]}
    return {key: value for key, value in options.items() if value is not None}
