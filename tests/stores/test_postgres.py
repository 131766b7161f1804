"""`PostgresStore`: its tables, what the server refuses, limits of time, what is left after a deletion."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.servers import until
from tests.stores.served import Served, add, contents, event, load
from tests.stores.stores import holders
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    StoreError,
    StoreUnavailableError,
)
from trimtab.relevance import question_terms
from trimtab.stores import AppendRequest, Labels, PostgresStore, SearchRequest
from trimtab.testing.hooks import (
    MIGRATIONS,
    PostgresOperations,
    PostgresPool,
    Tables,
    postgres_error,
    to_row,
)


def _ask(served: Served, sql: str, *params: object) -> list[tuple[Any, ...]]:
    database = served.url(None).rpartition("/")[2]
    return served.server.ask(sql, *params, database=database)


@contextmanager
def _connected(served: Served) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(served.url(None)) as connection:
        yield connection


# -- what can be seen without a server


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"dsn": "garbage"}, "postgresql://user:password@host", id="no-dsn"),
        pytest.param({"schema": ""}, "schema", id="no-schema"),
        pytest.param({"schema": "x" * 64}, "schema", id="long-schema"),
        pytest.param({"schema": "50%"}, "schema", id="percent"),
        pytest.param({"max_connections": 0, "min_connections": 0}, "at least 1", id="no-connections"),
        pytest.param({"min_connections": 11}, "11 to 10", id="more-than-most"),
        pytest.param({"min_connections": -1}, "the minimum must be at least 0", id="negative"),
        pytest.param({"pool_timeout_seconds": 0}, "pool_timeout_seconds", id="no-time"),
        pytest.param({"statement_timeout_seconds": -1}, "statement_timeout_seconds", id="negative-time"),
        pytest.param({"answer_timeout_seconds": 0}, "answer_timeout_seconds", id="no-time-to-answer"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_the_store_is_made(given: dict[str, Any], said: str) -> None:
    """Not at the first append."""
    arguments = {"dsn": "postgresql://h/d", **given}
    with pytest.raises(ConfigurationError, match=said):
        PostgresStore(arguments.pop("dsn"), **arguments)


def test_a_password_in_what_cannot_be_read_is_not_shown() -> None:
    """The package quotes what it does not understand."""
    with pytest.raises(ConfigurationError) as raised:
        PostgresStore("host=h password=se cret")
    assert "cret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_bounds_of_arguments_are_taken() -> None:
    """One connection, none kept, no limit of time, the longest name of a schema."""
    PostgresStore(
        "host=h", schema="x" * 63, min_connections=0, max_connections=1, statement_timeout_seconds=None
    )
    PostgresStore("host=h", min_connections=3, max_connections=3)


def _errors_of_psycopg() -> list[type[psycopg.Error]]:
    found = {
        value
        for module in (psycopg, psycopg.errors)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, psycopg.Error)
    }
    return sorted(found, key=lambda kind: kind.__name__)


def test_every_error_of_psycopg_has_one_of_ours() -> None:
    """Walks its modules: what may pass can be retried, what was damaged is corrupt, the rest is final."""
    kinds = _errors_of_psycopg()
    assert len(kinds) > 200
    ours = {kind.__name__: type(postgres_error(psycopg, kind("it"), name="here")) for kind in kinds}
    assert set(ours.values()) == {
        StoreUnavailableError,
        ConfigurationError,
        CorruptSessionError,
        StoreError,
    }
    passing = (
        "OperationalError AdminShutdown CrashShutdown CannotConnectNow ConnectionFailure TooManyConnections"
        " SerializationFailure DeadlockDetected LockNotAvailable QueryCanceled DiskFull OutOfMemory"
        " InterfaceError ReadOnlySqlTransaction IoError"
    )
    assert {name: ours[name] for name in passing.split() if ours[name] is not StoreUnavailableError} == {}
    for name in ("DataCorrupted", "IndexCorrupted"):
        assert ours[name] is CorruptSessionError
    assert ours["InsufficientPrivilege"] is ConfigurationError
    for name in ("SyntaxError", "UndefinedTable", "UniqueViolation", "DataError"):
        assert ours[name] is StoreError


# -- tables


def test_tables_of_the_first_schema_are_brought_up_to_date_with_their_rows(on_postgres: Served) -> None:
    """The database of the first version, filled as it did; nothing of it is lost, and it can be searched."""
    name, first = MIGRATIONS[0]
    tables = Tables("public")
    with _connected(on_postgres) as connection:
        for sql in first(tables):
            connection.execute(sql)
        columns = "(name text PRIMARY KEY, time timestamptz NOT NULL DEFAULT now())"
        connection.execute(f"CREATE TABLE {tables.migrations} {columns}")
        connection.execute(f"INSERT INTO {tables.migrations} (name) VALUES (%s)", (name,))
        rows = [to_row(replace(event(f"old {at}"), version=at)) for at in (1, 2, 3)]
        connection.execute(f"INSERT INTO {tables.sessions} (name, version) VALUES ('s', 3)")
        for row in rows:
            connection.execute(f"INSERT INTO {tables.events} VALUES (1, %s, %s, %s, %s, %s, %s)", row)
    with on_postgres.make() as store:
        assert contents(load(store)) == ["old 1", "old 2", "old 3"]
        assert add(store, 3).version == 4
        assert [one.version for one in store.search(SearchRequest(session="s", terms=("old",), limit=2))] == [
            3,
            2,
        ]
    applied = _ask(on_postgres, "SELECT name FROM trimtab_migrations ORDER BY name")
    assert [row[0] for row in applied] == [name for name, _ in MIGRATIONS]


def test_an_index_of_words_with_their_accents_is_made_anew(on_postgres: Served) -> None:
    """As the migrations before the last left it: nothing of it stays, and the session is searched as any."""
    with on_postgres.make() as store:
        add(store, 0, [event("Zoë met a heron") for _ in range(400)])
    _ask(on_postgres, "UPDATE trimtab_terms SET term = 'zoë' WHERE term = 'zoe'")
    _ask(on_postgres, "DELETE FROM trimtab_migrations WHERE name = '005_spellings'")
    with on_postgres.make() as store:
        for word in ("zoe", "Zoë"):
            found = store.search(SearchRequest(session="s", terms=question_terms(word), limit=1))
            assert [one.version for one in found] == [400]
    assert _ask(on_postgres, "SELECT count(*) FROM trimtab_terms WHERE term = 'zoë'") == [(0,)]
    assert _ask(on_postgres, "SELECT texts FROM trimtab_sessions") == [(400,)]


def test_many_who_come_first_make_the_tables_once(on_postgres: Served) -> None:
    """Eight handles on an empty database, at the same moment."""
    stores = [on_postgres.make() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda at: add(stores[at], 0, session=f"s{at}").version, range(8)))
    assert versions == [1] * 8
    for store in stores:
        store.close()
    assert _ask(on_postgres, "SELECT count(*) FROM trimtab_migrations") == [(len(MIGRATIONS),)]


def test_tables_of_a_newer_version_are_left_alone(on_postgres: Served) -> None:
    """Sync and async say what to do, and nothing is written."""
    with on_postgres.make() as store:
        add(store, 0)
    _ask(on_postgres, "INSERT INTO trimtab_migrations (name) VALUES ('999_future')")
    with on_postgres.make() as store:
        for call in (lambda: add(store, 1), lambda: asyncio.run(store.asessions())):
            with pytest.raises(ConfigurationError, match=r"newer version of trimtab.*999_future"):
                call()
    assert _ask(on_postgres, "SELECT version FROM trimtab_sessions") == [(1,)]


def test_a_schema_of_any_name_keeps_its_sessions_apart(on_postgres: Served) -> None:
    """It is made if it is missing; the tables of one are not those of another."""
    for schema in ('Chats "2024"; DROP', "public", "chats"):
        with on_postgres.make(schema=schema) as store:
            assert store.sessions() == []
            add(store, 0, [event("kraken")])
            assert store.search(SearchRequest(session="s", terms=("kraken",), limit=1))
            store.delete("s")
            add(store, 0, 2)


def test_a_database_that_is_not_utf8_is_refused(on_postgres: Served) -> None:
    """It could not keep every name."""
    name = f"t{uuid.uuid4().hex[:12]}"
    _ask(on_postgres, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        url = on_postgres.url(None).rpartition("/")[0] + f"/{name}"
        with PostgresStore(url) as store, pytest.raises(ConfigurationError, match=r"LATIN1.*UTF8"):
            store.sessions()
    finally:
        _ask(on_postgres, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _role(served: Served, *grants: str) -> Iterator[str]:
    """Make a role that may log in; gives its URL."""
    name = f"r{uuid.uuid4().hex[:12]}"
    _ask(served, f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    for grant in grants:
        _ask(served, grant.format(name))
    try:
        yield served.url(None).replace("postgres:trimtab@", f"{name}:x@")
    finally:
        _ask(served, f"DROP OWNED BY {name}")
        _ask(served, f"DROP ROLE {name}")


def test_a_role_that_may_not_make_tables_is_told_so(on_postgres: Served) -> None:
    """With the words of the server and what to do."""
    refused = pytest.raises(ConfigurationError, match=r"permission denied.*Grant")
    with _role(on_postgres) as url, PostgresStore(url) as store, refused:
        store.sessions()


def test_a_scrub_whose_row_is_gone_says_how_to_mend_it(on_postgres: Served) -> None:
    """What is removed then is removed, and its bytes once that is done."""
    with on_postgres.make() as store:
        add(store, 0, [event("a word of silver")])
        _ask(on_postgres, "DELETE FROM trimtab_scrubbing")
        with pytest.raises(CorruptSessionError, match=r"INSERT INTO .*scrubbing VALUES \(1\)"):
            store.delete("s")
        _ask(on_postgres, "INSERT INTO trimtab_scrubbing VALUES (1)")
        store.scrub()
        assert load(store) == []
    assert on_postgres.files_with("a word of silver") == []


def test_a_role_without_the_tables_can_use_them_but_not_scrub_them(on_postgres: Served) -> None:
    """The server only warns where a vacuum is not done; the store says that bytes are left."""
    with on_postgres.make() as owner:
        add(owner, 0)
        grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}"
        with _role(on_postgres, grant) as url, PostgresStore(url) as store:
            assert add(store, 1).version == 2
            with pytest.raises(ConfigurationError, match="only its owner may"):
                store.delete("s")
            assert store.sessions() == []
        owner.scrub()
        assert _ask(on_postgres, "SELECT wanted FROM trimtab_scrubbing") == [(0,)]


def test_the_server_keeps_no_samples_of_texts(on_postgres: Served) -> None:
    """Statistics of a column hold values of it, and outlive the rows."""
    with on_postgres.make() as store:
        add(store, 0, 200)
        store.search(SearchRequest(session="s", terms=("number",), limit=1))
        _ask(on_postgres, "ANALYZE")
        columns = _ask(on_postgres, "SELECT DISTINCT attname FROM pg_stats WHERE tablename LIKE 'trimtab%'")
        assert {name for (name,) in columns} & {"version", "time"}
        assert {name for (name,) in columns} & {"id", "kind", "body", "seal", "term"} == set()


# -- what the server refuses for a while


@pytest.mark.long
def test_an_older_transaction_holds_bytes_and_the_store_says_so(on_postgres: Served) -> None:
    """The rows are gone at once; once the transaction has ended, `scrub` finishes."""
    secret = "krakynquon"
    with on_postgres.make() as store:
        add(store, 0, [event(secret)])
        add(store, 0, session="other")
        with _connected(on_postgres) as older:
            older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            older.execute("SELECT 1")
            with pytest.raises(StoreUnavailableError, match="a transaction that began earlier"):
                store.delete("s")
            assert load(store) == []
        store.delete("s")
        assert on_postgres.files_with(secret) == []


@pytest.mark.long
def test_a_table_that_is_read_is_not_waited_for_long(on_postgres: Served) -> None:
    """Writers would queue behind the rewrite: after five seconds it gives up, and they go on."""
    with on_postgres.make() as store:
        add(store, 0)
        with _connected(on_postgres) as reader:
            reader.execute("SELECT count(*) FROM trimtab_events")
            with pytest.raises(StoreUnavailableError, match="lock timeout"):
                store.delete("s")
            add(store, 0)
        store.scrub()


def test_a_statement_that_takes_too_long_is_unavailable(on_postgres: Served) -> None:
    """Another writer holds the session; the append ends by itself, and is repeated later."""
    with on_postgres.make(statement_timeout_seconds=2) as store:  # far more than an append takes
        add(store, 0)
        with _connected(on_postgres) as holder:
            holder.execute("SELECT 1 FROM trimtab_sessions FOR UPDATE")
            with pytest.raises(StoreUnavailableError, match="statement timeout"):
                add(store, 1)
        assert add(store, 1).version == 2


def test_a_call_waits_for_a_connection_so_long_and_no_longer(on_postgres: Served) -> None:
    """All are in use: the error says so, and the pool goes on."""
    with on_postgres.make(max_connections=1, pool_timeout_seconds=0.3) as store:
        add(store, 0)
        with _connected(on_postgres) as holder, ThreadPoolExecutor(1) as pool:
            holder.execute("SELECT 1 FROM trimtab_sessions FOR UPDATE")
            waiting = pool.submit(add, store, 1)
            until(lambda: _waiting(on_postgres), "the append")
            opened = _backends(on_postgres)
            with pytest.raises(StoreUnavailableError, match=r"no connection became free within 0\.3 seconds"):
                store.sessions()
            holder.rollback()
            assert waiting.result().version == 2
        assert store.sessions() == ["s"]
        assert _backends(on_postgres) == opened, "a pool that was merely busy is not emptied"


def _waiting(served: Served) -> bool:
    sql = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'"""
    return bool(_ask(served, sql)[0][0])


def _backends(served: Served) -> list[int]:
    """List the processes of the server that serve our connections."""
    sql = """
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'trimtab' ORDER BY pid"""
    return [pid for (pid,) in _ask(served, sql)]


@contextmanager
def _silent(served: Served) -> Iterator[None]:
    """Stop what serves our connections: they stay open, and nothing comes any more."""
    pids = _backends(served)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_server_that_falls_silent_on_an_open_connection_is_unavailable(on_postgres: Served) -> None:
    """It is our limit that ends the wait; the same append again is stored once, and the store goes on."""
    request = AppendRequest(session="s", expected_version=1, events=[event("once")])
    with on_postgres.make(answer_timeout_seconds=0.5) as store:
        add(store, 0)
        with (
            _silent(on_postgres),
            pytest.raises(StoreUnavailableError, match=r"no answer within 0\.5 seconds.*It is safe to retry"),
        ):
            store.append(request)
        assert store.append(request).version == 2
        assert contents(load(store)) == ["number 0", "once"]

    async def awaited() -> None:
        async with on_postgres.make(answer_timeout_seconds=0.5) as store:
            await store.asessions()
            with (
                _silent(on_postgres),
                pytest.raises(StoreUnavailableError, match=r"no answer within 0\.5 seconds"),
            ):
                await store.asessions()
            assert await store.asessions() == ["s"]

    asyncio.run(awaited())


def test_an_event_loop_that_ends_has_nothing_of_a_store_to_wait_for(on_postgres: Served) -> None:
    """No task is left by a call, for which `asyncio.run` would wait; what it connected by is closed later."""
    store = on_postgres.make()

    async def one() -> None:
        await store.aappend(AppendRequest(session="s", expected_version=0, events=[event()]))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def other() -> None:
        assert await store.asessions() == ["s"]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert len(_backends(on_postgres)) == 1, "that of the loop before is closed"
        await store.aclose()

    asyncio.run(one())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(other())
    assert ResourceWarning not in [one.category for one in warned], "closed, not left to be collected"
    until(lambda: not _backends(on_postgres), "the end of the connections")


def test_an_index_that_cannot_be_filled_costs_no_connection(on_postgres: Served) -> None:
    """Its transaction is ended, and the next append has the same process of the server."""
    with on_postgres.make() as store:
        add(store, 0, 150)
        _ask(on_postgres, "UPDATE trimtab_events SET body = 'x' WHERE version = 50 RETURNING version")
        before = _backends(on_postgres)
        add(store, 150, 100)
        add(store, 250, 1)
        assert _backends(on_postgres) == before


@pytest.mark.long
def test_a_store_that_nobody_closed_closes_its_connections_when_it_is_let_go(on_postgres: Served) -> None:
    """Closing is polite, not needed."""
    store = on_postgres.make()
    add(store, 0)
    assert len(_backends(on_postgres)) == 1
    del store
    gc.collect()
    until(lambda: not _backends(on_postgres), "the end of the connection")


def test_connections_that_nobody_uses_are_closed_down_to_the_least(on_postgres: Served) -> None:
    """By the next call after ten minutes; the last used stay."""
    now = [0.0]
    pool = PostgresPool(threading.Semaphore(4), threading.Lock(), least=1, clock=lambda: now[0])
    lent = [psycopg.connect(on_postgres.url(None), autocommit=True) for _ in range(3)]
    for connection in lent:
        pool.give_back(connection, 0)
    era, last = pool.take()
    assert last is lent[2]
    now[0] = 600.0
    pool.give_back(last, era)
    assert [connection.closed for connection in lent] == [False, False, False]
    era, last = pool.take()
    now[0] = 601.0
    pool.give_back(last, era)
    assert [connection.closed for connection in lent] == [True, True, False]
    pool.empty()
    assert lent[2].closed


def test_a_connection_that_is_not_at_rest_is_not_used_again(on_postgres: Served) -> None:
    """It is in the middle of a transaction, or of a pool that was closed meanwhile."""
    pool = PostgresPool(threading.Semaphore(4), threading.Lock(), least=1)
    busy = psycopg.connect(on_postgres.url(None))
    busy.execute("SELECT 1")
    pool.give_back(busy, 0)
    late = psycopg.connect(on_postgres.url(None), autocommit=True)
    pool.empty()
    pool.give_back(late, 0)
    assert (busy.closed, late.closed) == (True, True)
    assert pool.take()[1] is None


def test_a_connection_that_the_server_ends_is_replaced(on_postgres: Served) -> None:
    """One call fails and can be repeated; in asyncio too."""
    sql = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'trimtab'"""
    with on_postgres.make(min_connections=3) as store:
        add(store, 0)
        _ask(on_postgres, sql)
        with pytest.raises(StoreUnavailableError):
            add(store, 1)
        assert add(store, 1).version == 2

    async def again() -> None:
        async with on_postgres.make(min_connections=3) as store:
            await store.asessions()
            _ask(on_postgres, sql)
            with pytest.raises(StoreUnavailableError):
                await store.asessions()
            assert await store.asessions() == ["s"]

    asyncio.run(again())


def test_a_server_that_takes_no_more_connections_is_unavailable(on_postgres: Served) -> None:
    """Too many clients may pass."""
    refused = pytest.raises(StoreUnavailableError, match="too many connections")
    with _role(on_postgres, "ALTER ROLE {} CONNECTION LIMIT 0") as url, PostgresStore(url) as store, refused:
        store.sessions()


def test_a_full_disk_is_unavailable_and_nothing_is_stored_by_half(on_postgres: Served) -> None:
    """The events live on a small disk of their own; when it has room again, the store goes on."""
    with on_postgres.make() as store:
        add(store, 0, 3)
        big = [event(os.urandom(40_000).hex()) for _ in range(100)]
        request = AppendRequest(session="s", expected_version=3, events=big)
        with _full_disk(on_postgres):
            for _ in range(2):
                with pytest.raises(StoreUnavailableError, match="No space left on device"):
                    store.append(request)
            assert len(load(store)) == 3
        assert store.append(request).version == 103


@contextmanager
def _full_disk(served: Served) -> Iterator[None]:
    """Move the events to a disk of four megabytes; where none can be mounted the server only says so."""
    folder = Path(tempfile.mkdtemp(prefix="trimtab-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        folder.rmdir()
        with _refusing(served, errcode="53100", said="No space left on device"):
            yield
        return
    space = f"space{uuid.uuid4().hex[:8]}"
    try:
        shutil.chown(folder, "postgres")
        _ask(served, f"CREATE TABLESPACE {space} LOCATION '{folder}'")
        _ask(served, f"ALTER TABLE trimtab_events SET TABLESPACE {space}")
        yield
        _ask(served, "ALTER TABLE trimtab_events SET TABLESPACE pg_default")
        _ask(served, f"DROP TABLESPACE {space}")
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _refusing(served: Served, *, errcode: str, said: str) -> Iterator[None]:
    """Let the server answer every event with an error."""
    body = f"BEGIN RAISE EXCEPTION '{said}' USING ERRCODE = '{errcode}'; END"
    _ask(served, f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    _ask(
        served,
        "CREATE TRIGGER refuse BEFORE INSERT ON trimtab_events FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    yield
    _ask(served, "DROP FUNCTION refuse() CASCADE")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("errcode", "kind"),
    [
        pytest.param("53100", StoreUnavailableError, id="disk-full"),
        pytest.param("53200", StoreUnavailableError, id="out-of-memory"),
        pytest.param("25006", StoreUnavailableError, id="read-only"),
        pytest.param("40001", StoreUnavailableError, id="serialization"),
        pytest.param("XX001", CorruptSessionError, id="data-corrupted"),
        pytest.param("42501", ConfigurationError, id="no-right"),
        pytest.param("P0001", StoreError, id="anything-else"),
    ],
)
def test_what_the_server_answers_decides_which_error_it_is(
    on_postgres: Served, errcode: str, kind: type[StoreError]
) -> None:
    """By its SQLSTATE, raised by the server itself; nothing is stored, and the store goes on."""
    with on_postgres.make() as store:
        add(store, 0)
        with _refusing(on_postgres, errcode=errcode, said="refused"):
            with pytest.raises(ContextError, match="refused") as raised:
                add(store, 1, 2)
            assert type(raised.value) is kind
        assert add(store, 1, 2).version == 3


# -- search


def test_a_message_of_any_number_of_words_can_be_found(on_postgres: Served) -> None:
    """Each of its words is a row."""
    words = [f"word{at:08d}{'x' * 40}" for at in range(25_000)]
    with on_postgres.make() as store:
        add(store, 0, [event("short"), event(" ".join(words)), event("天" * 100_000 + "气")])
        for term in (words[0], words[len(words) // 2], words[-1]):
            found = store.search(SearchRequest(session="s", terms=question_terms(term), limit=5))
            assert [one.version for one in found] == [2, 3, 1]
        found = store.search(SearchRequest(session="s", terms=("天气", words[0], words[-1]), limit=5))
        assert {one.version for one in found} == {1, 2, 3}
    assert _ask(on_postgres, "SELECT count(*), sum(often) FROM trimtab_terms WHERE version = 3") == [
        (4, 200_001)
    ]


def test_terms_are_written_once_however_many_search_first(on_postgres: Served) -> None:
    """Eight searches of a session that has no index yet, and an append between them."""
    with on_postgres.make() as store:
        add(store, 0, 1_000)
        request = SearchRequest(session="s", terms=("number",), limit=2_000)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: len(store.search(request)), range(8)))
        assert found == [1_000] * 8
        add(store, 1_000)
        assert {one.version for one in store.search(request)} == {*range(1, 1_002)}
    assert _ask(on_postgres, "SELECT count(*), max(version) FROM trimtab_terms WHERE term = 'number'") == [
        (1_001, 1_001)
    ]
    assert _ask(on_postgres, "SELECT indexed, texts FROM trimtab_sessions") == [(1_001, 1_001)]


def test_a_redaction_before_the_first_search_leaves_no_terms(on_postgres: Served) -> None:
    """Terms are written later; of what was redacted by then there are none."""
    with on_postgres.make(scrub_on_delete=False) as store:
        add(store, 0, [event("kraken"), event("otter")])
        old = load(store)[0]
        add(store, 2, rewrites=[replace(old, data={"message": {"content": "heron"}})])
        assert _ask(on_postgres, "SELECT count(*) FROM trimtab_terms") == [(0,)]
        for term, versions in (("kraken", []), ("heron", [1]), ("otter", [2])):
            found = store.search(SearchRequest(session="s", terms=question_terms(term), limit=9))
            assert holders(found, term) == versions
        store.delete("s")
        assert _ask(on_postgres, "SELECT count(*) FROM trimtab_terms") == [(0,)]


def test_a_word_that_many_sessions_hold_is_looked_up_in_one(on_postgres: Served) -> None:
    """The index keeps sessions apart: the plan reads it, and no row of another session."""
    with on_postgres.make() as store:
        add(store, 0, session="first")
        add(store, 0, 100)
        found = store.search(SearchRequest(session="s", terms=("number",), limit=3))
        assert [one.version for one in found] == [10, 9, 8]  # of the same words the shorter first
    sql = """
        INSERT INTO trimtab_terms SELECT s, 'number', v, 1, 9
        FROM generate_series(3, 300) AS s, generate_series(1, 100) AS v"""
    _ask(on_postgres, sql)
    _ask(on_postgres, "VACUUM ANALYZE trimtab_terms")
    operations = PostgresOperations(Tables("public"), psycopg=psycopg)
    steps = operations.search(SearchRequest(session="s", terms=("number", "absent"), limit=3))
    step = next(steps)
    while "LATERAL" not in step.sql:
        step = steps.send(_ask(on_postgres, step.sql, *step.params))
    explained = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {step.sql}"
    plan = "\n".join(line for (line,) in _ask(on_postgres, explained, *step.params))
    (read,) = (line for line in plan.splitlines() if "Index Scan Backward" in line)
    assert "rows=50 loops=2" in read, plan  # of 29,900 messages with that word
    assert "Seq Scan" not in plan, plan
    steps.close()


@pytest.mark.parametrize("analyzed", [True, False])
def test_a_list_by_metadata_is_read_from_its_index(on_postgres: Served, analyzed: bool) -> None:
    """Also for a short page, for which the planner would go through all names; before any statistics, too."""
    with on_postgres.make(scrub_on_delete=False) as store:
        for name, seats in (("a", 1), ("b", 2)):
            labels = Labels(owner="ada", metadata={"seats": seats})
            store.append(AppendRequest(session=name, expected_version=0, events=[event()], labels=labels))
        sql = """
            INSERT INTO trimtab_sessions (name, version, used, owner, metadata, labels)
            SELECT 'm' || n, 1, n, owner, metadata, labels
            FROM trimtab_sessions, generate_series(1, 20000) AS n WHERE name = 'a'"""
        _ask(on_postgres, sql)
        if analyzed:
            _ask(on_postgres, "VACUUM ANALYZE trimtab_sessions")
        calls, asked = store._connections._calls, list[Any]()

        def noted(mine: Any, steps: Any, *, alone: bool) -> Any:
            def one() -> Any:
                asked.append(step := next(steps))
                answer = yield step
                try:
                    steps.send(answer)
                except StopIteration as done:
                    return done.value

            return (yield from calls(mine, one(), alone=alone))

        store._connections._calls = noted
        for more in ({}, {"owner": "ada"}, {"used_after": 0.0}):
            assert store.sessions(metadata={"seats": 2}, limit=1, **more) == ["b"]
            step = asked[-1]
            explained = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {step.sql}"
            plan = "\n".join(line for (line,) in _ask(on_postgres, explained, *step.params))
            assert "trimtab_sessions_labels" in plan, plan
            assert "Seq Scan" not in plan, plan


def test_sessions_whose_newest_event_is_lost_keep_no_others_from_expiry(on_postgres: Served) -> None:
    """They end by the time that is noted beside them."""
    with on_postgres.make(scrub_on_delete=False) as store:
        for name in ("d1", "d2", "e"):
            one = [replace(event(), time=2.0 if name == "e" else 1.0)]
            labels = Labels(ttl=10.0)
            store.append(AppendRequest(session=name, expected_version=0, events=one, labels=labels))
        _ask(on_postgres, "UPDATE trimtab_sessions SET version = 7 WHERE name <> 'e'")
        first = store.expire(now=100.0, limit=2)
        assert (first.sessions, first.more) == (2, True)
        assert store.sessions() == ["e"]
        assert store.expire(now=100.0).sessions == 1


def test_an_error_of_ours_is_one_a_caller_expects() -> None:
    """Errors of connections can be caught as such, without trimtab's names."""
    error = postgres_error(psycopg, psycopg.OperationalError("gone"), name="PostgreSQL at h:1/d")
    assert isinstance(error, ConnectionError)
    assert isinstance(error, ContextError)
    assert str(error) == "PostgreSQL at h:1/d: gone. It is safe to retry: nothing is stored twice"


def test_a_line_that_breaks_underway_is_no_wrong_dsn() -> None:
    """The words of a connection that was there, and of one that could not be made (psycopg 3.3)."""
    for said in (
        "consuming input failed: SSL connection has been closed unexpectedly",
        "sending query failed: SSL",
    ):
        assert isinstance(
            postgres_error(psycopg, psycopg.OperationalError(said), name="x"), StoreUnavailableError
        )
    refused = 'connection failed: connection to server at "h" failed: SSL error: certificate verify failed'
    assert isinstance(
        postgres_error(psycopg, psycopg.OperationalError(refused), name="x"), ConfigurationError
    )
