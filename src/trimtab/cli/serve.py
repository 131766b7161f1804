"""`trimtab serve`: a base URL through which the requests of other programs fit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from trimtab._shared.hosts import is_loopback
from trimtab.cli.gateways import (
    budget_option,
    budgets_in,
    config_option,
    fit_options_in,
    keys_in,
    learn_option,
    upstream_in,
    upstream_option,
)
from trimtab.cli.options import Number, compact_option, rule_options, together
from trimtab.cli.output import usage
from trimtab.errors import ConfigurationError

_ABOVE_ZERO = Number("a number above 0", lambda number: number > 0)

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
@click.option(
    "--key",
    "keys",
    metavar="NAME=sha256:HASH",
    multiple=True,
    envvar="TRIMTAB_SERVE_KEY",
    help="Name for a client's key, told by its hash, or by the variable or file that has it:"
    " NAME=env:VARIABLE, NAME=file:PATH. Repeatable.",
)
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
        limits=gateway.Limits(
            max_body_bytes=given["max_body"],
            max_calls=given["max_calls"],
            max_connections=given["max_connections"],
            answer_seconds=given["answer_timeout"],
            drain_seconds=given["drain"],
        ),
        log=None if given["quiet"] else lines.write,
        **fit_options_in(given),
    )
    asked = ", ".join(dict.fromkeys(one.api for one in named or gateway.public_upstreams()))

    def tell(address: str) -> None:
        click.echo(f"trimtab: {address} passes requests on to {asked}", err=True)
        if given["learn"] is None and not is_alone and share is None:
            click.echo(
                "trimtab: nothing is learned from bills, as there may be several processes: write --share"
                " URL, or --learn if this is the only one",
                err=True,
            )

    with lines:
        gateway.serve(app, host=host, port=port, ready=tell)


def _place(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigurationError(f"--listen must be HOST:PORT, such as 127.0.0.1:8484, not {listen!r:.100}")
    return host.removeprefix("[").removesuffix("]"), int(port)
