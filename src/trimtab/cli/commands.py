"""The group of commands: what `trimtab --help` lists."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from trimtab.cli.count import count
from trimtab.cli.fit import fit
from trimtab.cli.models import models
from trimtab.cli.output import Refused
from trimtab.cli.policy import policy
from trimtab.cli.validate import repair, validate
from trimtab.report.text import plain

HELP = """Fit conversations with language models into token budgets.

Reads each FILE, or standard input: a JSON list of messages, a request body, or JSONL, one of these a
line. Writes JSON on standard output; messages for people go to standard error.

\b
Exit codes: 0  all is well
            1  a conversation does not fit, is invalid or cannot be read
            2  wrong usage
"""

EPILOG = """\b
Examples:
  trimtab fit chat.json --budget 8k --model NAME --output text
  trimtab count chat.json --model NAME
  trimtab validate chat.json --output text
  trimtab inspect chat.json --budget 8k
  trimtab session show --store chats.db --id ada
"""

_LATE = ("batch", "inspect", "mcp", "replay", "session")
"""Commands that are loaded when they are asked for: they take longer than all others together."""


class _Commands(click.Group):
    """The commands; a late one is the name of its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all of them."""
        return sorted([*super().list_commands(ctx), *_LATE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one."""
        if cmd_name in _LATE:
            found: click.Command = vars(import_module(f"trimtab.cli.{cmd_name}"))[cmd_name]
            return found
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it complains of steers no terminal, and repeats no password of a URL."""
        try:
            return super().invoke(ctx)
        except (Refused, click.UsageError) as error:
            from trimtab.stores.secrets import mask  # loaded where it is asked for: it takes long

            said = error.format_message()
            shown = mask("\n".join(map(plain, said.split("\n"))))
            if shown == said:
                raise
            if isinstance(error, Refused):
                raise Refused(shown) from None
            raise click.UsageError(shown, error.ctx) from None


@click.group(
    cls=_Commands, help=HELP, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="trimtab", prog_name="trimtab")
def trimtab() -> None:
    """Take the options that stand before a command; there are none yet."""


for command in (fit, count, validate, repair, policy, models):
    trimtab.add_command(command)
