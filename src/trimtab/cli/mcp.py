"""`trimtab mcp`: conversations of a store, and what fits, for programs that speak MCP."""

from __future__ import annotations

import os
import secrets
from functools import partial
from importlib import import_module

import click

from trimtab.cli.output import usage
from trimtab.cli.session.commands import open_session, open_session_store, store_option

TOKEN = "TRIMTAB_MCP_TOKEN"

EPILOG = """\b
Examples:
  trimtab mcp --store chats.db
  trimtab mcp --store chats.db --port 8765
"""


@click.command(epilog=EPILOG)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=100),
    default=8_000,
    show_default=True,
    metavar="N",
    help="Maximum tokens of one result.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve over HTTP on this machine, in place of standard input and output; 0 takes a free port.",
)
@store_option
@usage
def mcp(url: str, port: int | None, max_tokens: int) -> None:
    """Serve the sessions of a store over MCP.

    Tools: fit and count for messages, recall to search a session, read_result for part of a tool result.
    Resources: the sessions. --max-tokens limits each of them. The store is not changed.

    Over HTTP, a client sends the token from the environment variable TRIMTAB_MCP_TOKEN, or the one written to
    standard error.
    """
    with open_session_store(url) as store:
        served = import_module("trimtab.integrations.mcp")
        make = partial(
            served.make_server, store, max_tokens=max_tokens, open_session=partial(open_session, store)
        )
        if port is None:
            make().run()
            return
        token = os.environ.get(TOKEN)
        made = token or secrets.token_urlsafe()
        shown = f"the token in {TOKEN}" if token else f"the token {made}"
        served.serve_http(
            make(token=made),
            port,
            ready=lambda address: click.echo(f"trimtab: {address} answers who sends {shown}", err=True),
        )
