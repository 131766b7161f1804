"""The group of commands: what `trimtab --help` lists."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

HELP = """Fit conversations with language models into token budgets.

Reads each FILE, or standard input: a JSON list of messages, a request body, or JSONL with one of these per
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

COMMANDS = {
    "batch": "Process whole data sets, from files to files.",
    "count": "Count the tokens of conversations.",
    "fit": "Fit conversations into a budget.",
    "inspect": "Look at conversations in a browser.",
    "mcp": "Serve the sessions of a store over MCP.",
    "models": "List the models trimtab knows, or look some up.",
    "policy": "Check a policy, and write it as JSON.",
    "repair": "Make calls and results of conversations match.",
    "replay": "Compute what policies cost on recorded conversations.",
    "serve": "Fit the requests of other programs on their way to a provider.",
    "session": "Keep conversations in a store, and look at them.",
    "stats": "Show what is in conversations, and what budgets would do.",
    "validate": "List what a provider would refuse in conversations.",
    "wrap": "Run a command, and fit its requests to providers.",
}
"""Every command, and what it does: the first sentence of its own help, which a test compares.

So `trimtab --help` loads none of them, and whoever runs one waits for no other.
"""
_MODULES = {"repair": "validate"}
"""Modules that are not called as their command."""


class _Commands(click.Group):
    """The commands, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all of them."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"trimtab.cli.{_MODULES.get(cmd_name, cmd_name)}")
        found: click.Command = vars(module)[cmd_name]
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them for the help."""
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=what).get_short_help_str(limit))
                    for name, what in COMMANDS.items()
                ]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of one."""
        named = [
            CompletionItem(name, help=what) for name, what in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it complains of steers no terminal, and repeats no password of a URL."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            from trimtab.cli.output import Refused  # not above: all of these take long, and few runs end so
            from trimtab.report.text import plain
            from trimtab.stores.secrets import mask

            if not isinstance(error, Refused | click.UsageError):
                raise
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
