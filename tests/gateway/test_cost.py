"""What a request costs inside the gateway, in lines of the package that run: clocks prove nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.complexity.counting_machine import operations_of
from tests.gateway.gateways import Reply, Seen, ask_app, end_app, recorder, talk
from trimtab.gateway import Upstream, make_app


def _billed(seen: Seen) -> Reply:
    """Bill about what was sent."""
    return (
        200,
        {},
        b'{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":9}}' % (len(seen.body) // 4),
    )


def _lines(turns: int, budget: int) -> int:
    """Count the lines of a request, where the two before it were of the same conversation."""
    messages = talk(turns, words=5)
    written = [
        json.dumps({"model": "gpt-4o", "messages": messages[: len(messages) - end]}) for end in (4, 2, 0)
    ]
    found: list[Any] = []
    with recorder(_billed) as upstream, asyncio.Runner() as runner:
        places = [Upstream(api="openai", url=upstream.address)]
        app = make_app(places, budgets={"*": budget}, log=found.append)
        for text in written[:-1]:
            runner.run(ask_app(app, text.encode()))
        lines = operations_of(lambda _: runner.run(ask_app(app, written[-1].encode()))).lines
        runner.run(end_app(app))
    assert [one["end"] for one in found] == ["done"] * 3
    return lines


@pytest.mark.parametrize(
    ("turns", "budget", "most"), [(140, 100_000, 8_300), (140, 4_000, 17_100), (70, 4_000, 10_800)]
)
def test_a_request_runs_few_lines(turns: int, budget: int, most: int) -> None:
    """The bounds are a tenth above what was counted once.

    With a report for four numbers of it, a request took 43,900 and 23,600 lines where messages are evicted.
    """
    assert _lines(turns, budget) <= most


def test_a_gateway_starts_without_rooms_that_it_does_not_run() -> None:
    """Replays, batches and the inspector took 0.37 of 0.98 s before the first request (2026-11-29)."""
    program = (
        "import sys\n"
        "from trimtab.gateway import make_app\n"
        "make_app()\n"
        "print(*(one for one in sys.modules if one.startswith('trimtab.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert "gateway" in rooms
    assert rooms.isdisjoint({"replay", "batch", "inspector"})
