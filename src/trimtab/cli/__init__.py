"""The `trimtab` command: fit, count and validate conversations from a file or standard input.

Needs extra `cli`. This module loads without it, so that the script can say what to install.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

__all__ = ["command", "main"]

INSTALL = "trimtab: the command line needs click: pip install 'trimtab[cli]'"


def command() -> click.Group:
    """Load the command, as `click` knows it: to run it inside of a program, or in a test."""
    from trimtab.cli.commands import trimtab

    return trimtab


def main() -> None:
    """Run the command line; without extra `cli` print the line that installs it and exit 2."""
    try:
        trimtab = command()
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(INSTALL, file=sys.stderr)
        sys.exit(2)
    trimtab(prog_name="trimtab")
