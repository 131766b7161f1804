"""Connections of `PostgresStore`: one pool a process, one a running event loop, opened at first use.

Before a pool is opened one connection is made by hand: it prepares the tables, and its error says what
is wrong, where a pool would only say that nothing came. A connection that breaks closes its pool, so
the next call begins there again.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trimtab._extra import package_of
from trimtab._steps import Steps, arun, run
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    MissingExtraError,
    StoreError,
    StoreUnavailableError,
)
from trimtab.stores._postgres_schema import Execute, Tables, prepare

if TYPE_CHECKING:
    import asyncio

    from psycopg_pool import AsyncConnectionPool, ConnectionPool

__all__ = ["PoolOptions", "Pools"]

T = TypeVar("T")

SCRUBBING_LOCK_SECONDS = 5
"""Longest wait of a rewrite for a table: writers queue behind it."""

_REFUSED = (
    ("password authentication failed", "set the user and the password of the DSN right"),
    ("no password supplied", "put the password into the DSN, or into PGPASSWORD or ~/.pgpass"),
    ("no pg_hba.conf entry", "allow this user and address in the server's pg_hba.conf"),
    ("does not exist", "create it, or name another one in the DSN"),
    ("SSL", "set sslmode in the DSN to what the server offers"),
)
"""Words of a refused connection that asking again will not mend, and what to change. The package does
not tell SQLSTATEs of connections; a server that speaks another language is `StoreUnavailableError`."""

_abandoned: list[object] = []
"""Pools of a parent process: to let them go would end threads that are not here."""


class PoolOptions(NamedTuple):
    """How connections are made and shared."""

    min_connections: int
    max_connections: int
    pool_timeout_seconds: float
    connect_timeout_seconds: float
    statement_timeout_seconds: float | None


def _package(name: str) -> ModuleType:
    try:
        return package_of("postgres", package=name, needed_by="PostgresStore")
    except MissingExtraError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"PostgresStore needs {name} with its libpq ({error}): pip install 'trimtab[postgres]'",
            extra="postgres",
            package=name,
        ) from error


class Pools:
    """Runs operations on connections to one database."""

    def __init__(self, dsn: str, *, tables: Tables, options: PoolOptions) -> None:
        self._psycopg = _package("psycopg")
        self._pool_package = _package("psycopg_pool")
        self._tables = tables
        self._options = options
        self._parameters = self._parsed(dsn)
        place = (self._parameters.get(name) or "?" for name in ("host", "port", "dbname"))
        self._name = "PostgreSQL at {}:{}/{}".format(*place)
        self._pid = os.getpid()
        self._lock = Lock()
        self._pool = _Pool()
        self._pools_of_loops: dict[int, _LoopPool] = {}

    @property
    def package(self) -> ModuleType:
        """Give psycopg."""
        return self._psycopg

    def _parsed(self, dsn: str) -> dict[str, Any]:
        try:
            given: dict[str, Any] = self._psycopg.conninfo.conninfo_to_dict(dsn)
        except self._psycopg.ProgrammingError:
            # its words quote the DSN, and so perhaps a password
            raise ConfigurationError(
                "this is not a DSN of PostgreSQL: it looks like"
                " postgresql://user:password@host:5432/database, what is no letter or digit written as %20"
            ) from None
        parameters = {
            "application_name": "trimtab",
            "connect_timeout": max(1, round(self._options.connect_timeout_seconds)),
            **given,
        }
        seconds = self._options.statement_timeout_seconds
        if seconds is not None:
            option = f"-c statement_timeout={round(seconds * 1000)}"
            parameters["options"] = f"{parameters.get('options', '')} {option}".strip()
            # where the network is gone, no server is there to end the statement
            parameters.setdefault("tcp_user_timeout", round(seconds * 1000))
        return parameters

    # -- threads

    def run(self, steps: Steps[T]) -> T:
        """Run an operation on a pooled connection."""
        with self._translated():
            mine = self._of_process()
            pool = self._opened(mine)
            connection: Any = None
            try:
                with pool.connection() as connection, mine.using():
                    return self._run_on(connection, steps)
            except self._psycopg.Error:
                if mine.is_useless(connection):
                    self._forget(mine, pool)
                raise

    def run_alone(self, steps: Steps[T]) -> T:
        """Run an operation on a connection of its own, without a limit of time."""
        with self._translated(), self._psycopg.connect(**self._for_scrubbing()) as connection:
            return self._run_on(connection, steps)

    def _run_on(self, connection: Any, steps: Steps[T]) -> T:
        def answer(step: Execute) -> list[Any]:
            with _noticed(connection, step.details) as details:
                cursor = connection.execute(step.sql, step.params)
                rows = cursor.fetchall() if cursor.description else []
            return details if step.details else rows

        return run(steps, answer, errors=self._psycopg.Error)

    def _opened(self, mine: _Pool) -> ConnectionPool[Any]:
        with self._lock:
            if mine.pool is None:
                with self._psycopg.connect(**self._parameters, autocommit=True) as connection:
                    self._run_on(connection, prepare(self._tables))
                mine.pool = self._pool_package.ConnectionPool(**self._for_pool())
                mine.pool.open()
            opened: ConnectionPool[Any] = mine.pool
            return opened

    def _of_process(self) -> _Pool:
        self._leave_parent()
        return self._pool

    def _forget(self, mine: _Pool, pool: ConnectionPool[Any]) -> None:
        with self._lock:
            mine.forget(pool)
        pool.close(timeout=0)

    def close(self) -> None:
        """Close the pool of this process."""
        mine = self._of_process()
        with self._lock:
            pool, mine.pool = mine.pool, None
        if pool is not None:
            pool.close()

    def _leave_parent(self) -> None:
        """Begin anew in a process that was forked: sockets of the parent are the parent's."""
        if self._pid != os.getpid():
            _abandoned.extend((self._pool, self._pools_of_loops))
            self._pid, self._lock = os.getpid(), Lock()
            self._pool, self._pools_of_loops = _Pool(), {}

    # -- tasks

    async def arun(self, steps: Steps[T]) -> T:
        """Run an operation on a pooled connection of the running event loop."""
        with self._translated():
            mine = self._of_loop()
            pool = await self._aopened(mine)
            connection: Any = None
            try:
                async with pool.connection() as connection:
                    with mine.using():
                        return await self._arun_on(connection, steps)
            except self._psycopg.Error:
                if mine.is_useless(connection):
                    mine.forget(pool)
                    await pool.close()
                raise

    async def arun_alone(self, steps: Steps[T]) -> T:
        """Run an operation on a connection of its own, without a limit of time."""
        with self._translated():
            async with await self._psycopg.AsyncConnection.connect(**self._for_scrubbing()) as connection:
                return await self._arun_on(connection, steps)

    async def _arun_on(self, connection: Any, steps: Steps[T]) -> T:
        async def answer(step: Execute) -> list[Any]:
            with _noticed(connection, step.details) as details:
                cursor = await connection.execute(step.sql, step.params)
                rows = await cursor.fetchall() if cursor.description else []
            return details if step.details else rows

        return await arun(steps, answer, errors=self._psycopg.Error)

    async def _aopened(self, mine: _LoopPool) -> AsyncConnectionPool[Any]:
        async with mine.opening:
            if mine.pool is None:
                connect = self._psycopg.AsyncConnection.connect
                async with await connect(**self._parameters, autocommit=True) as connection:
                    await self._arun_on(connection, prepare(self._tables))
                pool: AsyncConnectionPool[Any] = self._pool_package.AsyncConnectionPool(**self._for_pool())
                await pool.open()
                mine.pool = pool
            opened: AsyncConnectionPool[Any] = mine.pool
            return opened

    def _of_loop(self) -> _LoopPool:
        import asyncio  # takes longer to import than the rest of trimtab.stores

        self._leave_parent()
        loop = asyncio.get_running_loop()
        with self._lock:
            for key, other in list(self._pools_of_loops.items()):
                if other.loop.is_closed():
                    del self._pools_of_loops[key]
            if id(loop) not in self._pools_of_loops:
                self._pools_of_loops[id(loop)] = _LoopPool(loop, asyncio.Lock())
            return self._pools_of_loops[id(loop)]

    async def aclose(self) -> None:
        """Close the pool of the running event loop, and that of this process."""
        mine = self._of_loop()
        pool, mine.pool = mine.pool, None
        if pool is not None:
            await pool.close()
        self.close()

    # -- both

    def _for_pool(self) -> dict[str, Any]:
        return {
            "kwargs": {**self._parameters, "autocommit": True},
            "min_size": self._options.min_connections,
            "max_size": self._options.max_connections,
            "timeout": self._options.pool_timeout_seconds,
            # a pool that cannot connect is closed and made anew, and says why
            "reconnect_timeout": self._options.pool_timeout_seconds,
            "open": False,
        }

    def _for_scrubbing(self) -> dict[str, Any]:
        limits = f"-c statement_timeout=0 -c lock_timeout={SCRUBBING_LOCK_SECONDS * 1000}"
        options = f"{self._parameters.get('options', '')} {limits}".strip()
        alone = {**self._parameters, "autocommit": True, "options": options}
        alone.pop("tcp_user_timeout", None)
        return alone

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Make errors of psycopg ours."""
        try:
            yield
        except self._psycopg.Error as error:
            raise translated(self._psycopg, error, name=self._name) from error


class _Pool:
    """A pool, once it is open, and how many of its connections are in use."""

    def __init__(self) -> None:
        self.pool: Any = None
        self._lock = Lock()
        self._used = 0

    @contextmanager
    def using(self) -> Generator[None]:
        """Count a connection while it is in use."""
        with self._lock:
            self._used += 1
        try:
            yield
        finally:
            with self._lock:
                self._used -= 1

    def is_useless(self, connection: Any) -> bool:
        """Tell whether a call failed because the server is gone.

        Its connection broke; or it was given none, although no other call has one.
        """
        return self._used == 0 if connection is None else bool(connection.broken)

    def forget(self, pool: Any) -> None:
        """Let the next call open another one."""
        if self.pool is pool:
            self.pool = None


class _LoopPool(_Pool):
    """The pool of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, opening: asyncio.Lock) -> None:
        super().__init__()
        self.loop = loop
        self.opening = opening


@contextmanager
def _noticed(connection: Any, wanted: bool) -> Generator[list[str]]:
    """Collect the details of the server's notices."""
    details: list[str] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.message_detail:
            details.append(diagnostic.message_detail)

    if wanted:
        connection.add_notice_handler(note)
    try:
        yield details
    finally:
        if wanted:
            connection.remove_notice_handler(note)


def translated(psycopg: Any, error: Any, *, name: str) -> ContextError:
    """Make the error of ours for one of psycopg's."""
    errors = psycopg.errors
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
        return CorruptSessionError(f"{name}: {said}. Restore the database from a backup")
    if isinstance(error, errors.InsufficientPrivilege):
        return ConfigurationError(
            f"{name}: {said}. Grant the role what is missing, or let a role that may make tables connect once"
        )
    passing = (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        errors.ReadOnlySqlTransaction,
    )
    if isinstance(error, passing):
        advice = next((advice for words, advice in _REFUSED if words in str(error)), None)
        if error.sqlstate is None and advice is not None and "failed" in said:
            return ConfigurationError(f"{name}: {said}; {advice}")
        return StoreUnavailableError(f"{name}: {said}. Asking again is safe: nothing is stored twice")
    return StoreError(f"{name}: {type(error).__name__}: {said}")
