"""What an append and a load cost at 20,000 events, against 1,000: bytes, requests, what is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.servers import PostgresServer, Relay
from tests.stores.served import Served, add, event, load

pytestmark = pytest.mark.server

SMALL, LARGE = 1_000, 20_000
BATCH = 10_000
EACH = 800
"""Appends that are measured: several of them fill an index of words."""
MOST_GROWTH = 1.2
"""Issue 4: at most so many times as much late in a log as early; what grows with it would be twenty times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What some calls cost."""

    sent_bytes: int
    received_bytes: int
    requests: int
    written_bytes: int
    """What the server wrote to its log, by its own account."""

    def grew(self, before: Cost) -> dict[str, float]:
        """Give the growth of each number."""
        return {
            name: getattr(self, name) / max(1, getattr(before, name)) for name in Cost.__dataclass_fields__
        }


def _written(served: Served) -> int:
    """Return what the server wrote to its log so far."""
    if isinstance(served.server, PostgresServer):
        ((written,),) = served.server.ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(written)
    with served.server.client() as client:
        return int(client.info("persistence")["aof_current_size"])


def _without_vacuum(served: Served) -> None:
    """Keep the log free of what the server does by itself."""
    if isinstance(served.server, PostgresServer):
        database = served.url(None).rpartition("/")[2]
        for table in ("events", "sessions", "terms"):
            served.server.ask(
                f"ALTER TABLE trimtab_{table} SET (autovacuum_enabled = false)", database=database
            )


def _cost(served: Served, relay: Relay, call: Callable[[], Any]) -> Cost:
    before = _written(served)
    relay.reset()
    call()
    return Cost(
        sent_bytes=relay.sent_bytes,
        received_bytes=relay.received_bytes,
        requests=relay.requests,
        written_bytes=_written(served) - before,
    )


@pytest.mark.long
def test_appends_and_loads_cost_the_same_however_long_the_log(served: Served) -> None:
    """Bytes to and from the server, requests, and bytes the server writes: at most 1.2 times."""
    with Relay(served.port) as relay, served.make(port=relay.port, max_connections=1) as store:

        def fill(start: int, stop: int) -> None:
            for at in range(start, stop, BATCH):
                count = min(BATCH, stop - at)
                add(store, at, [event(f"{at + number:012d}") for number in range(count)])

        def appends(start: int) -> Callable[[], None]:
            def call() -> None:
                for at in range(start, start + EACH):
                    add(store, at, [event(f"{at:012d} " + "x" * 100)])

            return call

        def loads(at: int) -> Callable[[], None]:
            def call() -> None:
                for _ in range(20):
                    assert len(load(store, limit=50, newest_first=True)) == 50
                    assert len(load(store, after=at // 2, limit=50)) == 50
                    assert len(load(store, before=at // 2, limit=50, newest_first=True)) == 50

            return call

        store.sessions()
        _without_vacuum(served)
        costs = {}
        version = 0
        for size in (SMALL, LARGE):
            fill(version, size)
            appends(size)()  # pages that were not touched since a checkpoint are written whole, once
            version = size + EACH
            costs[size] = [
                _cost(served, relay, appends(version)),
                _cost(served, relay, loads(version + EACH)),
            ]
            version += EACH
        growth = [after.grew(before) for before, after in zip(costs[SMALL], costs[LARGE], strict=True)]
    assert max(growth[0].values()) <= MOST_GROWTH, (growth, costs)
    assert max(growth[1][name] for name in ("sent_bytes", "received_bytes", "requests")) <= MOST_GROWTH
