"""The stores that the tests of this folder run on: one maker a store, `MAKERS`.

A maker is given a folder of its own, and gives a place: handles on it, and what the tests do behind the
store's back. Every test that takes `place` runs once for each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import pytest

from tests import servers
from tests.stores.writer import KEYS
from trimtab.relevance import text_terms
from trimtab.stores import (
    Event,
    MemoryStore,
    PostgresStore,
    RedisStore,
    SQLiteStore,
    Store,
    encrypted,
    searchable_text,
)

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a store keeps its sessions."""

    name: str
    make: Callable[[], Store]
    """Makes a handle; the same each time where the sessions live in the object."""
    url: str | None = None
    """What `open_store` takes, for tests with more processes; None where no other process can see it."""
    damage: Callable[[str, int], None] | None = None
    """Changes the stored text of (session, version) behind the store's back."""
    damage_labels: Callable[[str], None] | None = None
    """Changes what the list says of a session behind the store's back."""
    whole: Callable[[str], str] = str
    """Makes a text a little longer where the store counts lengths in steps."""
    settle: Callable[[], None] = lambda: None
    """Waits until the server has done what a killed client last asked of it, and forgotten the client."""


Maker = Callable[[Path], Iterator[Place]]


SEALED = ('"trimtab.sealed":"', '"trimtab.sealed":"A')
"""Where a ciphertext begins, and the same with a character before it."""


def damaged(body: str) -> str:
    """Change what is stored of an event, also where it is encrypted."""
    return body.replace("event", "Event").replace(*SEALED)


def memory(_folder: Path) -> Iterator[Place]:
    """Sessions in an object."""
    store = MemoryStore()

    def damage(session: str, version: int) -> None:
        rows = store._logs[session].rows
        row = rows[version - 1]
        rows[version - 1] = row._replace(body=damaged(row.body))

    yield Place(name="memory", make=lambda: store, damage=damage)


def sqlite_memory(_folder: Path) -> Iterator[Place]:
    """SQLite without a file."""
    store = SQLiteStore(":memory:")
    yield Place(name="sqlite-memory", make=lambda: store)
    store.close()


def sqlite_file(folder: Path) -> Iterator[Place]:
    """SQLite in a file, a handle each time."""
    path = folder / "sessions.db"

    def damage(session: str, version: int) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            changed = connection.execute(
                "UPDATE trimtab_events SET body = replace(replace(body, 'event', 'Event'), ?, ?)"
                " WHERE session = ? AND version = ?",
                (*SEALED, session, version),
            )
            assert changed.rowcount == 1

    def damage_labels(session: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            sql = "UPDATE trimtab_listed SET metadata = '{' WHERE session = ?"
            assert connection.execute(sql, (session,)).rowcount == 1

    yield Place(
        name="sqlite",
        make=lambda: SQLiteStore(path),
        url=f"sqlite:///{path}",
        damage=damage,
        damage_labels=damage_labels,
    )


def postgres(_folder: Path) -> Iterator[Place]:
    """A database of the PostgreSQL of this run."""
    server = servers.postgres()
    with server.database() as database:
        dsn = server.of(database)

        def damage(session: str, version: int) -> None:
            sql = """
                UPDATE trimtab_events e SET body = replace(replace(body, 'event', 'Event'), %s, %s)
                FROM trimtab_sessions s
                WHERE s.key = e.session AND s.name = %s AND e.version = %s RETURNING 1"""
            assert server.ask(sql, *SEALED, session, version, database=database) == [(1,)]

        def damage_labels(session: str) -> None:
            sql = "UPDATE trimtab_sessions SET metadata = '{' WHERE name = %s RETURNING 1"
            assert server.ask(sql, session, database=database) == [(1,)]

        def settle() -> None:
            sql = "SELECT 1 FROM pg_stat_activity WHERE datname = %s"
            servers.until(lambda: not server.ask(sql, database), "the end of killed clients")

        yield Place(
            name="postgres",
            make=lambda: PostgresStore(dsn, scrub_on_delete=False),
            url=dsn,
            damage=damage,
            damage_labels=damage_labels,
            settle=settle,
        )


def pgbouncer(_folder: Path) -> Iterator[Place]:
    """A database of the PostgreSQL of this run, behind a PgBouncer of its own in transaction mode."""
    server = servers.postgres()
    try:
        bouncer = servers.PgBouncer(server)
    except servers.NoServer as reason:
        pytest.skip(f"no PgBouncer: {reason}")
    with server.database() as database, bouncer:
        dsn = bouncer.of(database)

        def settle() -> None:  # of a killed client, too, it passes on what it has read
            sql = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND state <> 'idle'"
            servers.until(lambda: bouncer.has_no_client(database), "the end of killed clients")
            servers.until(lambda: not server.ask(sql, database), "the end of their transactions")

        yield Place(
            name="pgbouncer",
            make=lambda: PostgresStore(dsn, scrub_on_delete=False),
            url=dsn,
            settle=settle,
        )


def redis(_folder: Path) -> Iterator[Place]:
    """An empty database of the Redis of this run."""
    server, database = servers.redis_server(), next(_REDIS_DATABASES)
    with server.client(database) as client:
        client.flushdb()

        def damage(session: str, version: int) -> None:
            key, field = f"trimtab:session:{session}", f"e{version}"
            row = client.hget(key, field)
            assert client.hset(key, field, damaged(row)) == 0

        def damage_labels(session: str) -> None:
            broken = {"o": "{", "v": "abc", "u": "then", "k": "long"}
            assert client.hset(f"trimtab:session:{session}", mapping=broken) in (0, 1)

        url = server.of(database)

        def settle() -> None:
            def alone() -> bool:
                return len([one for one in client.client_list() if int(one["db"]) == database]) == 1

            servers.until(alone, "the end of killed clients")

        yield Place(
            name="redis",
            make=lambda: RedisStore(url, scrub_on_delete=False),
            url=url,
            damage=damage,
            damage_labels=damage_labels,
            settle=settle,
        )
        client.flushdb(asynchronous=True)


def encrypted_in(maker: Maker) -> Maker:
    """Make a maker of places whose sessions are encrypted."""

    def made(folder: Path) -> Iterator[Place]:
        for place in maker(folder):
            make = place.make
            yield replace(
                place,
                name=f"{place.name}-encrypted",
                make=lambda make=make: encrypted(make(), KEYS),
                url=place.url and f"encrypted+{place.url}",
                whole=lambda text: text.ljust(-(-len(text) // 64) * 64),
            )

    return made


def holders(events: Iterable[Event], *terms: str) -> list[int]:
    """Return the versions of those events that have one of the terms, not those found beside them."""
    wanted = set(terms)
    return [event.version for event in events if wanted & {*text_terms(searchable_text(event))}]


_REDIS_DATABASES = cycle(range(1, 16))

MAKERS: dict[str, Maker] = {
    "memory": memory,
    "sqlite-memory": sqlite_memory,
    "sqlite": sqlite_file,
    "postgres": postgres,
    "redis": redis,
    "memory-encrypted": encrypted_in(memory),
    "sqlite-encrypted": encrypted_in(sqlite_file),
    "postgres-encrypted": encrypted_in(postgres),
    "redis-encrypted": encrypted_in(redis),
}
"""Every store the contract runs on."""

SERVERS = ("postgres", "redis", "postgres-encrypted", "redis-encrypted")
"""Those that need a server."""


def params(*names: str) -> list[object]:
    """Return the makers of these names (none: all) as pytest's parameters."""
    marks = {name: pytest.mark.server for name in SERVERS}
    return [pytest.param(MAKERS[name], id=name, marks=marks.get(name, ())) for name in names or MAKERS]


@contextmanager
def placed(maker: Maker, folder: Path) -> Iterator[Place]:
    """Make a place for the length of a block."""
    yield from maker(folder)
