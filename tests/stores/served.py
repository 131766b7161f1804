"""A store on a server of this run, for the tests that break the server, its connections or its data."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests import servers
from trimtab.stores import Appended, AppendRequest, Event, LoadRequest, PostgresStore, RedisStore, Store

AnyStore = PostgresStore | RedisStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A database of a server."""

    name: str
    server: servers.PostgresServer | servers.RedisServer
    make: Callable[..., Any]
    """Makes a handle: `make(port=…)` at another port, and the store's own options."""
    url: Callable[[int | None], str]
    at_rest: Callable[[], None]
    """Waits until the server's files hold what it holds, and no more."""

    @property
    def port(self) -> int:
        """Where the server listens."""
        return int(urlsplit(self.url(None)).port or 0)

    def files_with(self, text: str) -> list[str]:
        """List the server's files with a text in them, its write-ahead log apart."""
        self.at_rest()
        command = ["grep", "-rlaF", text, str(self.server.data), "--exclude-dir=pg_wal", "--exclude=log"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


@contextmanager
def served_postgres() -> Iterator[Served]:
    """Give a database of the PostgreSQL of this run."""
    server = servers.postgres()
    with server.database() as database:

        def make(*, port: int | None = None, **options: Any) -> PostgresStore:
            return PostgresStore(server.of(database, port=port), **options)

        yield Served(
            name="postgres",
            server=server,
            make=make,
            url=lambda port: server.of(database, port=port),
            at_rest=lambda: [server.ask("CHECKPOINT") for _ in range(2)] and None,
        )


@contextmanager
def served_redis() -> Iterator[Served]:
    """Give an empty database of the Redis of this run."""
    server = servers.redis_server()
    with server.client() as client:
        client.flushall()

    def make(*, port: int | None = None, **options: Any) -> RedisStore:
        return RedisStore(server.of(port=port), **options)

    def at_rest() -> None:
        """Old files are removed in the background: the manifest names those that count."""
        files = server.data / "appendonlydir"
        manifest = next(files.glob("*.manifest"))
        servers.until(
            lambda: len(list(files.iterdir())) == 1 + manifest.read_text().count("file "),
            "the end of old files",
        )

    yield Served(
        name="redis", server=server, make=make, url=lambda port: server.of(port=port), at_rest=at_rest
    )
    with server.client() as client:
        client.flushall()


def event(text: str = "", *, id: str | None = None) -> Event:
    """Make an event of a message."""
    return Event(id=id or uuid.uuid4().hex, kind="message", time=1.5, data={"message": {"content": text}})


def add(
    store: Store, expected: int, events: Sequence[Event] | int = 1, *, session: str = "s", **more: Any
) -> Appended:
    """Append events, or so many."""
    given = [event(f"number {expected + at}") for at in range(events)] if isinstance(events, int) else events
    return store.append(AppendRequest(session=session, expected_version=expected, events=list(given), **more))


def load(store: Store, session: str = "s", **asked: Any) -> list[Event]:
    """Read a session."""
    return store.load(LoadRequest(session=session, **asked))


def contents(events: Sequence[Event]) -> list[str]:
    """Give the texts of messages."""
    return [one.message["content"] for one in events]
