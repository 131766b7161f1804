"""`trimtab serve`: a base URL through which the requests of other programs fit."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from importlib import import_module
from os.path import isfile
from pathlib import Path
from typing import Any

import click

from trimtab._shared.checks import in_words, near_names
from trimtab.cli.options import Number, compact_option, rule_options, rules_in, together
from trimtab.cli.output import usage
from trimtab.errors import ConfigurationError

_ABOVE_ZERO = Number("a number above 0", lambda number: number > 0)


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
        if one is not parameter
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


_limit_options = together(
    click.option(
        "--drain",
        type=_ABOVE_ZERO,
        default=30,
        show_default=True,
        metavar="SECONDS",
        help="How long answers in progress may go on after SIGTERM or Ctrl+C.",
    ),
    click.option(
        "--answer-timeout",
        type=_ABOVE_ZERO,
        default=600,
        show_default=True,
        metavar="SECONDS",
        help="The longest silence of an upstream, before its answer and within.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(min=1),
        default=2_000,
        show_default=True,
        metavar="N",
        help="Open connections of clients; one more is answered 503.",
    ),
    click.option(
        "--max-calls",
        type=click.IntRange(min=1),
        default=512,
        show_default=True,
        metavar="N",
        help="Requests in progress; one more is answered 503, in the words of its API.",
    ),
    click.option(
        "--max-body",
        type=click.IntRange(min=1),
        default=64 * 2**20,
        show_default=True,
        metavar="BYTES",
        help="Length of a request that is fitted; others pass through in parts.",
    ),
)

EPILOG = """\b
Examples:
  trimtab serve --budget 80%
  trimtab serve --budget 80% --budget 'my-model=24k' --rule 'Answer in Dutch.'
  trimtab serve --config gateway.toml
"""


@click.command(epilog=EPILOG)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="TOML with any of these options, by their long names; --upstream and --budget may be tables.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8484",
    show_default=True,
    envvar="TRIMTAB_SERVE_LISTEN",
    help="Address to listen on; port 0 takes a free one.",
)
@click.option(
    "--upstream",
    "upstreams",
    metavar="API[/MODEL]=URL",
    multiple=True,
    envvar="TRIMTAB_SERVE_UPSTREAM",
    help="Server that speaks an API, for all models or those of a pattern. Repeatable. Default: the"
    " providers' own.",
)
@click.option(
    "--budget",
    "budgets",
    metavar="[MODEL=]N",
    multiple=True,
    envvar="TRIMTAB_SERVE_BUDGET",
    help="Room in tokens, such as 8000 or 8k; a share of the model's input limit, such as 80%; tier, below"
    " its next price tier; or a policy in TOML or JSON. With a MODEL, which may be a pattern such as 'my-*',"
    " for that. Repeatable. Default: the model's window, less the room for its answer.",
)
@rule_options
@compact_option
@click.option(
    "--learn/--no-learn",
    default=True,
    show_default=True,
    help="Improve counts by what requests are billed. --no-learn: each of several processes sends the same"
    " for the same request.",
)
@click.option(
    "--token",
    envvar="TRIMTAB_SERVE_TOKEN",
    metavar="TOKEN",
    help="Secret that clients send in the header trimtab-token, or as /t/TOKEN before the path; read from"
    " TRIMTAB_SERVE_TOKEN, too. Needed to listen on an address that other machines reach.",
)
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
@_limit_options
@usage
def serve(
    listen: str, upstreams: Sequence[str], budgets: Sequence[str], token: str | None, **given: Any
) -> None:
    """Fit the requests of other programs on their way to a provider.

    Set the base URL of a program to the address this command writes: its requests to Chat Completions,
    Responses, Messages and generateContent fit the budget, and everything else passes through unchanged.

    An API is openai, azure, anthropic or gemini. Servers that are compatible with one are named like it:
    --upstream openai=http://127.0.0.1:11434/v1, or --upstream 'openai/qwen*=URL' for some models.

    Keys are passed on and never kept. Each request is a line of JSON on standard output, without texts.
    """
    gateway = import_module("trimtab.gateway")
    host, port = _place(listen)
    options: dict[str, Any] = {"rules": rules_in(given), "compact": given["compact"]}
    named = None if not upstreams else [_upstream(gateway, one) for one in upstreams]
    lines = import_module("trimtab.gateway.lines").LineWriter(sys.stdout.buffer)
    app = gateway.make_app(
        named,
        budgets=dict(map(_budget, budgets)),
        learn=given["learn"],
        token=token,
        limits=gateway.Limits(
            max_body_bytes=given["max_body"],
            max_calls=given["max_calls"],
            max_connections=given["max_connections"],
            answer_seconds=given["answer_timeout"],
            drain_seconds=given["drain"],
        ),
        log=None if given["quiet"] else lines.write,
        **{key: value for key, value in options.items() if value is not None},
    )
    asked = ", ".join(dict.fromkeys(one.api for one in named or gateway.public_upstreams()))
    with lines:
        gateway.serve(
            app,
            host=host,
            port=port,
            ready=lambda address: click.echo(f"trimtab: {address} passes requests on to {asked}", err=True),
        )


def _place(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigurationError(f"--listen must be HOST:PORT, such as 127.0.0.1:8484, not {listen!r:.100}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _budget(words: str) -> tuple[str, str]:
    model, equals, budget = words.partition("=")
    return (model, budget) if equals and not isfile(words) else ("*", words)


def _upstream(gateway: Any, words: str) -> Any:
    asked, equals, url = words.partition("=")
    api, slash, models = asked.partition("/")
    if not equals or (slash and not models):
        raise ConfigurationError(f"--upstream must be API=URL or API/MODEL=URL, not {words!r:.200}")
    return gateway.Upstream(api=api, url=url, models=models or "*")
