"""What a request costs inside the gateway, in lines of the package that run: clocks prove nothing."""

from __future__ import annotations

import asyncio
import json
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
    ("turns", "budget", "most"), [(140, 100_000, 8_800), (140, 4_000, 17_100), (70, 4_000, 10_800)]
)
def test_a_request_runs_few_lines(turns: int, budget: int, most: int) -> None:
    """The bounds are a tenth above what was counted once.

    With a report for four numbers of it, a request took 43,900 and 23,600 lines where messages are evicted.
    """
    assert _lines(turns, budget) <= most
