"""`trimtab serve`: a base URL through which the requests of other programs fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import click

from trimtab._shared.hosts import is_loopback
from trimtab.cli.gateways import (
    budget_option,
    budgets_in,
    config_option,
    fit_options_in,
    key_option,
    keys_in,
    learn_option,
    upstream_in,
    upstream_option,
)
from trimtab.cli.options import Number, compact_option, rule_options, together
from trimtab.cli.output import usage
from trimtab.errors import ConfigurationError

_ABOVE_ZERO = Number("a number above 0", lambda number: number > 0)
_COUNT = click.IntRange(min=1)

# By the names of the fields of `Limits`, which has their defaults; the texts only tell them.
_limit_options = together(
    click.option(
        "--drain",
        "drain_seconds",
        type=_ABOVE_ZERO,
        metavar="SECONDS",
        help="How long answers in progress may go on after SIGTERM or Ctrl+C. Default: 30.",
    ),
    click.option(
        "--answer-timeout",
        "answer_seconds",
        type=_ABOVE_ZERO,
        metavar="SECONDS",
        help="The longest silence of an upstream, before its answer and within. Default: 600.",
    ),
    click.option(
        "--max-connections",
        type=_COUNT,
        metavar="N",
        help="Open connections of clients; one more is answered 503. Default: 2000.",
    ),
    click.option(
        "--max-calls",
        type=_COUNT,
        metavar="N",
        help="Requests in progress; one more is answered 503, in the words of its API. Default: 512.",
    ),
    click.option(
        "--max-bodies",
        "max_bodies_bytes",
        type=_COUNT,
        metavar="BYTES",
        help="Length of all such requests together; one more is answered 503. Default: 536870912.",
    ),
    click.option(
        "--max-body",
        "max_body_bytes",
        type=_COUNT,
        metavar="BYTES",
        help="Length of a request that is fitted; others pass through in parts. Default: 67108864.",
    ),
)

EPILOG = """\b
Examples:
  trimtab serve --budget 80%
  trimtab serve --budget 80% --budget 'my-model=24k' --rule 'Answer in Dutch.'
  trimtab serve --budget 16k --key ci=env:CI_KEY --budget key:ci=80%
  trimtab serve --config gateway.toml
"""


@click.command(epilog=EPILOG)
@config_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8484",
    show_default=True,
    envvar="TRIMTAB_SERVE_LISTEN",
    help="Address to listen on; port 0 takes a free one.",
)
@upstream_option("SERVE", "the providers' own")
@budget_option("SERVE")
@key_option("SERVE")
@rule_options
@compact_option
@learn_option(None)
@click.option(
    "--share",
    envvar="TRIMTAB_SERVE_SHARE",
    metavar="URL",
    help="Where several processes keep together what they learn, as numbers and hashes: redis://…, or on one"
    " machine sqlite:///FILE; read from TRIMTAB_SERVE_SHARE, too.",
)
@click.option(
    "--token",
    envvar="TRIMTAB_SERVE_TOKEN",
    metavar="TOKEN",
    help="Secret that clients send in the header trimtab-token, or as /t/TOKEN before the path; read from"
    " TRIMTAB_SERVE_TOKEN, too. Needed to listen on an address that other machines reach.",
)
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
@click.option(
    "--keep-bodies",
    is_flag=True,
    help="Keep the texts of the last requests in memory, and show them in an inspector, whose address is"
    " written at the start. Needs the extra inspect.",
)
@click.option(
    "--otel",
    is_flag=True,
    help="Send a span and metrics of each request to the OpenTelemetry of this process, such as that of"
    " opentelemetry-instrument. Needs the extra otel.",
)
@_limit_options
@usage
def serve(
    listen: str,
    upstreams: Sequence[str],
    budgets: Sequence[str],
    keys: Sequence[str],
    share: str | None,
    token: str | None,
    **given: Any,
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
    is_alone = is_loopback(host)  # behind an address that others reach may be one of several processes
    named = None if not upstreams else [upstream_in(gateway, one) for one in upstreams]
    lines = import_module("trimtab.gateway.lines").LineWriter(sys.stdout.buffer)
    app = gateway.make_app(
        named,
        budgets=budgets_in(budgets),
        keys=keys_in(keys),
        learn=is_alone or share is not None if given["learn"] is None else given["learn"],
        share=share,
        token=token,
        limits=_limits_in(gateway, given),
        log=None if given["quiet"] else lines.write,
        keep_bodies=given["keep_bodies"],
        otel=given["otel"],
        **fit_options_in(given),
    )
    trouble = app.share_trouble()
    asked = ", ".join(dict.fromkeys(one.api for one in named or gateway.public_upstreams()))

    def tell(address: str) -> None:
        _say(address, asked, app.inspect_path)
        if trouble:
            click.echo(
                f"trimtab: --share cannot be had now, and nothing is learned until it can: {trouble}",
                err=True,
            )
        if given["learn"] is None and not is_alone and share is None:
            click.echo(
                "trimtab: nothing is learned from bills, as there may be several processes: write --share"
                " URL, or --learn if this is the only one",
                err=True,
            )

    with lines:
        gateway.serve(app, host=host, port=port, ready=tell)


def _limits_in(gateway: Any, given: Mapping[str, Any]) -> Any:
    """Make limits of the options that were given."""
    names = {field.name for field in fields(gateway.Limits)}
    return gateway.Limits(
        **{name: value for name, value in given.items() if name in names and value is not None}
    )


def _say(address: str, asked: str, inspect_path: str) -> None:
    """Say where the gateway is, in the first line; and where texts are seen, if they are kept."""
    click.echo(f"trimtab: {address} passes requests on to {asked}", err=True)
    if inspect_path:
        click.echo(f"trimtab: open {address}{inspect_path} for the texts of the last requests", err=True)


def _place(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigurationError(f"--listen must be HOST:PORT, such as 127.0.0.1:8484, not {listen!r:.100}")
    return host.removeprefix("[").removesuffix("]"), int(port)
