"""Print the table of a framework for docs/integrations: its own trimming and ours, on the same loops.

`.venv-integrations/NAME/bin/python -m tests.integrations.table NAME`
"""

from __future__ import annotations

import sys
from importlib import import_module

from tests.integrations.loops import LOOPS

HEAD = (
    "| {name} | requests | invalid | over | blind | of the budget | prefix reused | tokens sent |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main(name: str) -> None:
    """Print a table for each loop."""
    peers = import_module(f"tests.integrations.{name}.peers")
    for loop in LOOPS:
        print(HEAD.format(name=f"{loop.name} loop"))
        for policy in peers.POLICIES:
            print(peers.score(loop, policy).row(policy), flush=True)
        print()


if __name__ == "__main__":
    main(sys.argv[1])
