"""Print the table of a framework for docs/integrations: its own trimming and ours, on the same loops.

`.venv-integrations/NAME/bin/python -m tests.integrations.table NAME`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module

from tests.integrations.loops import LOOPS
from tests.integrations.upstream import Score

HEAD = (
    "| {names} loop | invalid | over | blind | of the budget | prefix reused |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def main(name: str) -> None:
    """Print a row for each way to keep a request small, with the figures of all loops."""
    peers = import_module(f"tests.integrations.{name}.peers")
    print(HEAD.format(names=", ".join(loop.name for loop in LOOPS)))
    for policy in peers.POLICIES:
        print(row(policy, [peers.score(loop, policy) for loop in LOOPS]), flush=True)


def row(name: str, scores: Iterable[Score]) -> str:
    """Write a row of the table: one figure where it is the same in all loops."""
    figures = zip(*(_figures(score) for score in scores), strict=True)
    cells = [each[0] if len(set(each)) == 1 else ", ".join(each) for each in figures]
    return f"| {' | '.join([name, *cells])} |"


def _figures(score: Score) -> tuple[str, ...]:
    counts = (len(refused) for refused in (score.invalid, score.over, score.blind))
    return (*map(str, counts), f"{score.fill:.2f}", f"{score.reuse:.0%}")


if __name__ == "__main__":
    main(sys.argv[1])
