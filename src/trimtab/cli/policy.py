"""`trimtab policy`: is a policy right, and what may stand in one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from trimtab.cli.input import dump
from trimtab.cli.output import in_options, usage
from trimtab.errors import ConfigurationError
from trimtab.policy import load_policy, policy_data, policy_schema
from trimtab.report.text import plain
from trimtab.strategies import EvictionRequest, EvictionResult


class _StandIn:
    """Stands for what a program gives under a name: a function, a counter, a strategy. It is never asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *given: Any) -> str:
        """Take the place of a summarizer, score or callback."""
        return ""

    def count(self, messages: Sequence[Any], /) -> int:
        """Take the place of a counter."""
        return sum(len(str(message)) for message in messages)

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take the place of a strategy."""
        return EvictionResult(kept=[], fits=False)


EPILOG = """\b
Examples:
  trimtab policy policy.toml
  trimtab policy policy.toml --name my_summarizer
  trimtab policy --schema > policy.schema.json
"""


@click.command(epilog=EPILOG)
@click.option("--schema", is_flag=True, help="Write the JSON Schema of policies instead, for editors.")
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Name under which a program gives a function, counter or strategy. Repeatable.",
)
@click.argument("file", type=click.Path(), required=False)
@usage
def policy(file: str | None, schema: bool, names: tuple[str, ...]) -> None:
    """Check a policy, and write it as JSON.

    FILE is TOML or JSON. What is written holds only what differs from the defaults. A policy that names
    functions of a program (load_policy(FILE, names={...})) is checked with the same names.
    """
    if schema == (file is not None):
        raise click.UsageError("give a FILE to check, or --schema")
    if file is None:
        click.echo(dump(policy_schema(), indent=2), nl=False)
        return
    try:
        given = {name: _StandIn(name) for name in names}
        data = policy_data(load_policy(file, names=given), names=given)
    except ConfigurationError as error:
        hint = ". What a program gives is declared by --name NAME" if "names=" in str(error) else ""
        click.echo(f"trimtab: {plain(in_options(error))}{hint}", err=True)
        sys.exit(1)
    click.echo(dump(data, indent=2), nl=False)
