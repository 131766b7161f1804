"""The group of commands: what `trimtab --help` lists."""

from __future__ import annotations

import click

from trimtab.cli.count import count
from trimtab.cli.fit import fit
from trimtab.cli.models import models
from trimtab.cli.policy import policy
from trimtab.cli.validate import repair, validate

HELP = """Fit conversations with language models into token budgets.

Reads each FILE, or standard input: a JSON list of messages, a request body, or JSONL, one of these a
line. Writes JSON on standard output; messages for people go to standard error.

\b
Exit codes: 0  all is well
            1  a conversation does not fit, is invalid or cannot be read
            2  wrong usage
"""


class _Commands(click.Group):
    """The commands; some are loaded when they are asked for: they take longer than all others together."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all of them."""
        return sorted([*super().list_commands(ctx), "batch", "inspect", "mcp", "replay", "session"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one."""
        if cmd_name == "batch":
            from trimtab.cli.batch import batch

            return batch
        if cmd_name == "inspect":
            from trimtab.cli.inspect import inspect

            return inspect
        if cmd_name == "mcp":
            from trimtab.cli.mcp import mcp

            return mcp
        if cmd_name == "replay":
            from trimtab.cli.replay import replay

            return replay
        if cmd_name == "session":
            from trimtab.cli.session import session

            return session
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trimtab", prog_name="trimtab")
def trimtab() -> None:
    """Take the options that stand before a command; there are none yet."""


for command in (fit, count, validate, repair, policy, models):
    trimtab.add_command(command)
