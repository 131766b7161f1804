"""PostgreSQL behind PgBouncer in transaction mode: what works does, and what does not says what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import servers
from tests.builders import user
from trimtab import Session
from trimtab.errors import ConfigurationError, StoreUnavailableError
from trimtab.stores import PostgresStore, Retry
from trimtab.testing import check_store

pytestmark = pytest.mark.server

IGNORES = "ignore_startup_parameters = options, extra_float_digits"
"""As an operator sets it who was told so by another program."""


@contextmanager
def pooled(*settings: str) -> Iterator[tuple[str, str]]:
    """Give the DSN of a database behind PgBouncer, and that of the same on the server itself."""
    server = servers.postgres()
    with server.database() as database:
        try:
            bouncer = servers.PgBouncer(server, *settings)
        except servers.NoServer as reason:
            pytest.skip(f"no PgBouncer: {reason}")
        with bouncer:
            yield bouncer.of(database), server.of(database)


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [(), (IGNORES,)], ids=["as it comes", "options ignored"])
def test_the_contract_of_a_store_holds_behind_it(settings: tuple[str, ...]) -> None:
    """Whatever connection of the server a transaction gets."""
    with pooled(*settings) as (dsn, _):
        retry = Retry()
        store = PostgresStore(dsn, scrub_on_delete=False)
        retry.call(store.sessions)
        check_store(lambda: PostgresStore(dsn, scrub_on_delete=False))


@pytest.mark.few(1)
@pytest.mark.parametrize("seconds", [30.0, None])
@pytest.mark.parametrize("settings", [(), (IGNORES,)], ids=["as it comes", "options ignored"])
def test_a_session_goes_on_behind_it(settings: tuple[str, ...], seconds: float | None) -> None:
    """Many more statements of each kind than psycopg waits for before it prepares them, and two at once."""
    with pooled(*settings) as (dsn, _):
        stores = [
            PostgresStore(dsn, scrub_on_delete=False, statement_timeout_seconds=seconds) for _ in range(2)
        ]
        sessions = [Session(300, store=store, id="chat", retry=Retry()) for store in stores]
        said = []
        for at in range(30):
            said.append(sessions[at % 2].add(user(f"number {at} of the kingfisher")).id)
        sessions[0].refresh()
        assert [event.id for event in sessions[0].history()] == said
        assert said[3] in [event.id for event in sessions[1].recall("number 3 of the kingfisher")]
        sessions[0].redact(said[0])
        sessions[0].pop()

        async def awaited() -> int:
            session = Session(store=stores[0], id="chat", retry=Retry())
            await session.aadd(user("the last one"))
            found = len([event async for event in session.ahistory()])
            await stores[0].aclose()
            return found

        assert asyncio.run(awaited()) == 31
        stores[0].delete("chat")
        assert stores[1].sessions() == []


def test_what_cannot_be_cleaned_through_it_says_what_was_done_and_what_to_write() -> None:
    """Asking again would not help, and a Retry does not repeat it; the text is gone."""
    with pooled() as (dsn, direct):
        store = PostgresStore(dsn)
        session = Session(300, store=store, id="chat", retry=Retry())
        secret = session.add(user("the secret is 4711"))
        session.add(user("and on"))
        with pytest.raises(ConfigurationError) as caught:
            session.redact(secret)
        assert not isinstance(caught.value, StoreUnavailableError)
        said = str(caught.value)
        assert "the data is removed" in said
        assert "scrub() of a PostgresStore whose DSN reaches the server itself" in said
        assert "scrub_on_delete=False" in said
        assert "4711" not in str([event.data for event in session.history(kinds=None)])
        with pytest.raises(ConfigurationError, match="the data is removed"):
            store.delete("chat")
        assert store.sessions() == []
        PostgresStore(direct).scrub()


def test_options_of_the_dsn_that_it_refuses_are_named() -> None:
    """They are the caller's: to leave them out would be to do something else than was asked for."""
    with pooled() as (dsn, _):
        store = PostgresStore(f"{dsn}?options=-c%20work_mem%3D8MB")
        with pytest.raises(
            ConfigurationError, match=r"unsupported startup parameter.*take it out of the DSN"
        ):
            store.sessions()
