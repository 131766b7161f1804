"""`trimtab policy`: is a policy right, and what may stand in one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from trimtab._shared.strict_json import dump
from trimtab.cli.output import in_options, usage
from trimtab.errors import ConfigurationError
from trimtab.policy import load_policy, policy_data, policy_schema, read_file
from trimtab.policy.data import short_strategy
from trimtab.policy.schema import STRATEGY, Place, Table
from trimtab.report.text import plain
from trimtab.strategies import EvictionRequest, EvictionResult, create_strategy


class _StandIn:
    """Stands for what a program gives under a name: a function, a counter, a strategy. It is never asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *given: object) -> str:
        """Take the place of a summarizer, score or callback."""
        return ""

    def count(self, messages: Sequence[object], /) -> int:
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
  trimtab policy --schema session > session.schema.json
"""

_SCHEMAS = ("policy", "strategy", "session")


@click.command(epilog=EPILOG)
@click.option(
    "--schema",
    is_flag=False,
    flag_value=_SCHEMAS[0],
    type=click.Choice(_SCHEMAS),
    help="Write a JSON Schema for editors instead: for policies, or for the given kind.",
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Name that a program uses for a function, counter or strategy. Repeatable.",
)
@click.argument("file", type=click.Path(), required=False)
@usage
def policy(file: str | None, schema: str | None, names: tuple[str, ...]) -> None:
    """Check a policy, and write it as JSON.

    FILE is TOML or JSON: a policy, or the strategy or session that its `kind` says. Only differences from the
    defaults are written. For a policy with functions of a program (load_policy(FILE, names={...})), pass the
    same names.
    """
    if (schema is None) == (file is None):
        raise click.UsageError("pass a FILE to check, or --schema")
    if file is None:
        made = policy_schema() if schema == "policy" else kind_schema(schema == "session")
        click.echo(dump(made, indent=2), nl=False)
        return
    try:
        data = _check(read_file(file), {name: _StandIn(name) for name in names})
    except ConfigurationError as error:
        hint = ". What a program gives is declared by --name NAME" if "names=" in str(error) else ""
        where = "" if str(error).startswith(file) else f"{file}: "
        click.echo(f"trimtab: {plain(where + in_options(error))}{hint}", err=True)
        sys.exit(1)
    click.echo(dump(data, indent=2), nl=False)


def _check(data: object, names: Mapping[str, object]) -> Any:
    """Read a policy, a strategy or a session, and write what is not as it is by default."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"a policy must be a table with blocks or a kind, not {data!r:.80}")
    if "kind" not in data:
        return policy_data(load_policy(data, names=names), names=names)
    if data["kind"] == "session":
        keys = _session_keys()
        read = keys.read(data, Place())
        return {key: value for key, value in read.items() if value != keys.keys[key].default}
    read = STRATEGY.read(data, Place(names=names))
    found = short_strategy(create_strategy(read, names=names), Place(names=names))
    return found if isinstance(found, dict) else {"kind": found}


def kind_schema(is_session: bool) -> dict[str, Any]:
    """Describe a file with a strategy or a session."""
    kind = _session_keys().schema(None) if is_session else STRATEGY.definition(None)
    title = f"trimtab {'session' if is_session else 'strategy'}"
    strategy = {} if is_session else {"$defs": {"strategy": kind}}
    return {"$schema": policy_schema()["$schema"], "title": title, **kind, **strategy}


def _session_keys() -> Table:
    from trimtab.replay.policies import session_keys  # loads sessions and stores: it takes long

    return session_keys()
