"""A password in the place of a store is in no error, no traceback and no `repr`."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.servers import free_port
from trimtab import Session
from trimtab.errors import ConfigurationError, ContextError
from trimtab.stores import PostgresStore, RedisStore, SQLiteStore, open_store

PASSWORDS = ("cr3t", "se/cr3t", "se@cr3t", "se:cr3t", "se?cr3t", "se#cr3t", "se%cr3t", "se cr3t", "cr3t/@x")
"""Of them what is no letter or digit should be written as %20, and often is not."""

LONG = "u" * 90
"""A name that leaves of a URL that is cut for an error its beginning only."""


def said(place: str) -> None:
    """Say something in a session that is there."""
    Session(1_000, id="s", store=place).add({"role": "user", "content": "hello"})


def used(make: Callable[[str], Any]) -> Callable[[str], None]:
    """Make a store and use it, in threads and in tasks."""

    def use(place: str) -> None:
        store = make(place)
        assert "cr3t" not in repr(store)
        failures = []
        for call in (store.sessions, lambda: asyncio.run(store.asessions())):
            with pytest.raises(ContextError) as raised:
                call()
            failures.append(raised.value)
        assert "cr3t" not in "".join("".join(traceback.format_exception(one)) for one in failures)
        raise failures[0]

    return use


def postgres(dsn: str) -> PostgresStore:
    """Make a store that gives up soon."""
    return PostgresStore(dsn, connect_timeout_seconds=1)


DOORS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "postgres": ("postgresql://app:{password}@127.0.0.1:{port}/chats", used(postgres)),
    "postgres-query": ("postgresql://127.0.0.1:{port}/chats?password={password}", used(postgres)),
    "postgres-keys": ("host=127.0.0.1 port={port} password={password}", used(postgres)),
    "postgres-quoted": ("host=127.0.0.1 port={port} password='{password}'", used(postgres)),
    "redis": ("redis://app:{password}@127.0.0.1:{port}/0", used(RedisStore)),
    "redis-query": ("redis://127.0.0.1:{port}/0?password={password}", used(RedisStore)),
    "unix": ("unix://app:{password}@/nowhere.sock", used(RedisStore)),
    "open_store": ("postgresql://app:{password}@127.0.0.1:{port}/chats", used(open_store)),
    "open_store-keys": ("host=127.0.0.1 password={password}", open_store),
    "open_store-quoted": ("host=127.0.0.1 password = '{password}'", open_store),
    "open_store-scheme": ("mysql://app:{password}@127.0.0.1/chats", open_store),
    "open_store-memory": ("memory://app:{password}@127.0.0.1/chats", open_store),
    "open_store-sqlite": ("sqlite://app:{password}@127.0.0.1/chats", open_store),
    "open_store-long": (f"host={LONG} password={{password}}", open_store),
    "sqlite": ("postgresql://app:{password}@127.0.0.1/chats", SQLiteStore),
    "session": ("postgresql://app:{password}@127.0.0.1:{port}/chats", said),
    "session-long": (f"postgresql://{LONG}:{{password}}@127.0.0.1:{{port}}/chats", said),
    "session-keys": ("host=127.0.0.1 password={password}", said),
}


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("door", DOORS)
def test_a_password_is_in_no_error(door: str, password: str) -> None:
    """Also where it holds what parts a URL, and a client takes pieces of it for a host or a port."""
    template, use = DOORS[door]
    place = template.format(password=password, port=free_port())
    with pytest.raises(ContextError) as raised:
        use(place)
    assert "cr3t" not in "".join(traceback.format_exception(raised.value))
    assert "cr3t" not in repr(raised.value)


@pytest.mark.parametrize(
    "place",
    [
        "s3cr3t",
        "app:cr3t@127.0.0.1/chats",
        "app:cr3t@127.0.0.1/chats?sslmode=require",
        "//app:cr3t@127.0.0.1/chats",
        "postgresql:app:cr3t@127.0.0.1/chats",
        "app:cr3t@redis://127.0.0.1/0",
        "postgresql ://app:cr3t@127.0.0.1/chats",
        "memory://h/db?api_key=cr3t",
        "sqlite://h/db?auth=cr3t",
        "mysql://h/db?authToken=cr3t",
        "host=127.0.0.1 pass=cr3t",
        "host=127.0.0.1 cr3t",
        "user:cr3t@h.db",
        "password: cr3t",
        '{"password": "cr3t"}',
    ],
)
def test_what_is_no_place_is_not_quoted(place: str) -> None:
    """Nobody knows which part of it is the password."""
    for make in (open_store, lambda place: Session(1_000, id="s", store=place)):
        with pytest.raises(ConfigurationError) as raised:
            make(place)
        assert "cr3t" not in "".join(traceback.format_exception(raised.value))
        assert "cr3t" not in repr(vars(raised.value))


def test_a_port_that_is_no_number_is_not_quoted() -> None:
    """Of a password with a colon a part stands there."""
    for url in ("postgresql://ada@h:cr3t/chats", "redis://ada@h:cr3t/0"):
        with pytest.raises(ConfigurationError) as caught:
            open_store(url)
        assert "cr3t" not in str(caught.value)


def test_a_redis_at_a_file_is_opened_by_its_url() -> None:
    """As `RedisStore` takes it."""
    assert type(open_store("unix:///run/redis.sock")).__name__ == "RedisStore"
