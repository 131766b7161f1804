"""`trimtab wrap`: a command whose requests fit, through a gateway that lives as long as it does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

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
from trimtab.cli.options import compact_option, rule_options
from trimtab.cli.output import usage

DRAIN_SECONDS = 1.0
"""For answers to what the command started and did not wait for."""

EPILOG = """\b
Examples:
  trimtab wrap --budget 24k my-agent 'Read the logs.'
  trimtab wrap --budget 80% python agent.py
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@config_option
@upstream_option("WRAP", "the one that the environment of the command names, or the provider's own")
@budget_option("WRAP")
@key_option("WRAP")
@rule_options
@compact_option
@learn_option(True)
@click.option("--quiet", is_flag=True, help="Do not print at the end what was saved.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@usage
def wrap(
    command: Sequence[str],
    upstreams: Sequence[str],
    budgets: Sequence[str],
    keys: Sequence[str],
    quiet: bool,
    **given: Any,
) -> None:
    """Run a command, and fit its requests to providers.

    Starts a gateway on a free port of this machine, sets the variables in which the command looks for the
    base URL of its provider, and runs it. Signals are passed on to it, and its exit code is that of trimtab.
    When it ends, what was saved and evicted is printed on standard error, and the gateway is gone.
    """
    gateway = import_module("trimtab.gateway")
    runs = import_module("trimtab.gateway.wrap")
    totals = import_module("trimtab.gateway.totals").Totals()
    plan = runs.Plan(os.environ, [upstream_in(gateway, one) for one in upstreams])
    app = gateway.make_app(
        plan.upstreams,
        budgets=budgets_in(budgets),
        keys=keys_in(keys),
        learn=given["learn"],
        limits=gateway.Limits(drain_seconds=DRAIN_SECONDS),
        log=totals.add,
        **fit_options_in(given),
    )
    try:
        code = runs.run_command(command, plan, app)
    except OSError as error:
        click.echo(f"trimtab: {command[0]} cannot be run: {error.strerror or error}", err=True)
        code = runs.NOT_FOUND if isinstance(error, FileNotFoundError) else runs.NOT_RUN
    else:
        if not quiet:
            for line in totals.text().splitlines():
                click.echo(f"trimtab: {line}", err=True)
    raise SystemExit(code)
