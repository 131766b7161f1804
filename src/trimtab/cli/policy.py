"""`trimtab policy`: is a policy right, and what may stand in one."""

from __future__ import annotations

import sys

import click

from trimtab.cli._json import dump
from trimtab.cli._output import usage
from trimtab.errors import ConfigurationError
from trimtab.policy import load_policy, policy_data, policy_schema
from trimtab.report._lines import plain

__all__ = ["policy"]


@click.command()
@click.option("--schema", is_flag=True, help="Write the JSON Schema of policies instead, for editors.")
@click.argument("file", required=False)
@usage
def policy(file: str | None, schema: bool) -> None:
    """Check a policy, and write it as JSON.

    FILE is TOML or JSON. What is written holds only what differs from the defaults.
    """
    if schema == (file is not None):
        raise click.UsageError("give a FILE to check, or --schema")
    if file is None:
        click.echo(dump(policy_schema(), indent=2), nl=False)
        return
    try:
        data = policy_data(load_policy(file))
    except ConfigurationError as error:
        click.echo(f"trimtab: {plain(str(error))}", err=True)
        sys.exit(1)
    click.echo(dump(data, indent=2), nl=False)
