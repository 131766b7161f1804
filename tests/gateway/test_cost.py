"""What a request costs inside the gateway, in lines of the package that run: clocks prove nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.complexity.counting_machine import operations_of
from tests.gateway.gateways import Reply, Seen, recorder, talk
from trimtab.gateway import Upstream, make_app


def _billed(seen: Seen) -> Reply:
    """Bill about what was sent."""
    return (
        200,
        {},
        b'{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":9}}' % (len(seen.body) // 4),
    )


async def _end(app: Any) -> None:
    """End a gateway as a server does: its connections are closed."""
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.shutdown"}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app({"type": "lifespan"}, receive, send)


async def _ask(app: Any, body: bytes) -> list[dict[str, Any]]:
    """Ask a gateway as a server does; gives what it sends."""
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer sk-1"), (b"accept-encoding", b"gzip")]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    path = b"/v1/chat/completions"
    scope = {"type": "http", "method": "POST", "raw_path": path, "query_string": b"", "headers": headers}
    waiting, sent = [{"type": "http.request", "body": body}], list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


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
            runner.run(_ask(app, text.encode()))
        lines = operations_of(lambda _: runner.run(_ask(app, written[-1].encode()))).lines
        runner.run(_end(app))
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
