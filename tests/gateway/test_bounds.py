"""What a gateway remembers of requests has a bound in bytes, whatever they hold: what Python took is read."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.gateways import ask_app, end_app, recorder
from trimtab.gateway import Limits, Upstream, make_app

HELLO = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


def grown(bodies: Iterator[bytes], *, only: str = "*", **options: Any) -> int:
    """Return by how many bytes a gateway grows with some requests, but for the first.

    Args:
        bodies: Of the requests.
        only: Which files' memory is counted.
        options: Arguments of `make_app`.
    """

    def taken() -> int:
        gc.collect()
        snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, only)])
        return sum(one.size for one in snapshot.statistics("filename"))

    statuses: list[int] = []
    with recorder() as behind, asyncio.Runner() as runner:
        places = [Upstream(api="openai", url=behind.address)]
        app = make_app(places, budgets={"*": "100m"}, learn=False, **options)
        runner.run(ask_app(app, next(bodies)))
        tracemalloc.start()
        try:
            before = taken()
            for body in bodies:
                statuses.append(runner.run(ask_app(app, body))[0]["status"])
                behind.seen.clear()
            size = taken() - before
        finally:
            tracemalloc.stop()
        runner.run(end_app(app))
    assert set(statuses) == {200}
    return size


def chat(pad: str) -> bytes:
    """Write a request with something besides its message."""
    return f'{{"pad": {pad}, {json.dumps(HELLO)[1:]}'.encode()


PADS = {
    "lists": f"[{','.join(['[]'] * 30_000)}]",
    "numbers": f"[{','.join(['1.5'] * 30_000)}]",
    "empty objects": f"[{','.join(['{}'] * 2_000)}]",
    "keys": json.dumps({f"{number:x}": 0 for number in range(10_000)}),
    "a wide text": json.dumps("a" * 200_000 + "\N{GRINNING FACE}", ensure_ascii=False),
    "words": json.dumps("It is sunny in Utrecht. " * 8_000),
}


@pytest.mark.parametrize("name", PADS)
def test_kept_bodies_take_no_more_than_they_may(name: str) -> None:
    """Counted by their text, lists of two bytes took twenty times as much."""
    most = 4 * 2**20
    bodies = iter([chat("1"), *[chat(PADS[name])] * 30])
    limits = Limits(max_kept_bytes=most)
    assert grown(bodies, limits=limits, keep_bodies=True) < 1.25 * most


def test_what_is_remembered_of_long_bodies_is_bounded() -> None:
    """A number for each 256 bytes of 4 MiB took 0.6 MB a conversation."""

    def bodies() -> Iterator[bytes]:
        for number in range(9):
            said = [{"role": "user", "content": f"conversation {number}"}]
            yield json.dumps({**HELLO, "messages": said, "pad": f"{number}" * 2**22}).encode()

    assert grown(bodies(), only="*/gateway/recent.py") < 8 * 2**16
