"""Connections of `PostgresStore`: one pool a process, one a running event loop, filled by who needs them.

No thread and no task works for a pool: an event loop that ends without `aclose` has nothing to wait for. (The
workers of psycopg_pool 3.3 outlive a cancellation that meets them while they connect, and `asyncio.run` then
waits for ever.) The first connection prepares the tables. One that breaks empties its pool, so that the
next call begins there again.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from math import inf
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from trimtab._shared.lazy import package_of
from trimtab._shared.steps import Steps, arun, run
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    MissingExtraError,
    StoreError,
    StoreUnavailableError,
)
from trimtab.stores.postgres.operations import Execute, Tables, prepare
from trimtab.stores.served import Connections

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

IDLE_SECONDS = 600.0
"""A connection beyond the least that nobody used for so long is closed."""

_AT_REST = 0
"""PQTRANS_IDLE: neither a statement nor a transaction is underway."""


class PoolOptions(NamedTuple):
    """How connections are made and shared."""

    min_connections: int
    max_connections: int
    pool_timeout_seconds: float
    connect_timeout_seconds: float
    statement_timeout_seconds: float | None
    answer_timeout_seconds: float


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


class Pools(Connections["Pool"]):
    """Runs operations on connections to one database."""

    def __init__(self, dsn: str, *, tables: Tables, options: PoolOptions) -> None:
        self.package = _package("psycopg")
        self._tables = tables
        self._options = options
        self._parameters = self._parse(dsn)
        place = (self._parameters.get(name) or "?" for name in ("host", "port", "dbname"))
        name = "PostgreSQL at {}:{}/{}".format(*place)
        super().__init__(dsn, name=name, errors=(self.package.Error,))

    def _begin(self) -> None:
        super()._begin()
        self._watch = Watch()

    def _parse(self, dsn: str) -> dict[str, Any]:
        try:
            given: dict[str, Any] = self.package.conninfo.conninfo_to_dict(dsn)
        except self.package.ProgrammingError:
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
        parameters.setdefault("tcp_user_timeout", round(self._options.answer_timeout_seconds * 1000))
        return parameters

    # -- threads

    def run(self, steps: Steps[T]) -> T:
        """Run an operation on a pooled connection."""
        with self._raising_ours(), self._lent(self._mine()) as connection:
            return self._run_on(connection, steps)

    def run_alone(self, steps: Steps[T]) -> T:
        """Run an operation on a connection of its own, without a limit of time."""
        with self._raising_ours(), self.package.connect(**self._for_scrubbing()) as connection:
            return self._run_on(connection, steps, seconds=inf)

    def _run_on(self, connection: Any, steps: Steps[T], *, seconds: float | None = None) -> T:
        limit = self._options.answer_timeout_seconds if seconds is None else seconds

        def answer(step: Execute) -> list[Any]:
            with (
                self._in_time(limit) as cut,
                self._watch.over(lambda: cut(connection), limit),
                _notices(connection, step.details) as details,
            ):
                cursor = connection.execute(step.sql, step.params)
                rows = cursor.fetchall() if cursor.description else []
            return details if step.details else rows

        return run(steps, answer)

    @contextmanager
    def _lent(self, pool: Pool) -> Generator[Any]:
        """Lend a connection: one that waits in the pool, or a new one."""
        if not pool.slots.acquire(timeout=self._options.pool_timeout_seconds):
            raise self._all_in_use()
        try:
            era, connection = pool.take()
            if connection is None:
                connection = self.package.connect(**self._parameters, autocommit=True)
            try:
                if not pool.prepared:
                    with pool.opening:
                        self._run_on(connection, prepare(self._tables))
                        pool.prepared = True
                yield connection
            finally:
                pool.give_back(connection, era)
        finally:
            pool.slots.release()

    def close(self) -> None:
        """Close the connections of this process."""
        self._mine().empty()

    # -- tasks

    async def arun(self, steps: Steps[T]) -> T:
        """Run an operation on a pooled connection of the running event loop."""
        with self._raising_ours():
            async with self._alent(self._mine_of_loop()) as connection:
                return await self._arun_on(connection, steps)

    async def arun_alone(self, steps: Steps[T]) -> T:
        """Run an operation on a connection of its own, without a limit of time."""
        with self._raising_ours():
            async with await self.package.AsyncConnection.connect(**self._for_scrubbing()) as connection:
                return await self._arun_on(connection, steps, seconds=inf)

    async def _arun_on(self, connection: Any, steps: Steps[T], *, seconds: float | None = None) -> T:
        limit = self._options.answer_timeout_seconds if seconds is None else seconds

        async def answer(step: Execute) -> list[Any]:
            with (
                self._in_time(limit) as cut,
                _called_later(lambda: cut(connection), limit),
                _notices(connection, step.details) as details,
            ):
                cursor = await connection.execute(step.sql, step.params)
                rows = await cursor.fetchall() if cursor.description else []
            return details if step.details else rows

        return await arun(steps, answer)

    @asynccontextmanager
    async def _alent(self, pool: Pool) -> AsyncGenerator[Any]:
        """Lend a connection; see `_lent`."""
        import asyncio  # takes longer to import than the rest of trimtab.stores

        try:
            async with asyncio.timeout(self._options.pool_timeout_seconds):
                await pool.slots.acquire()
        except TimeoutError:
            raise self._all_in_use() from None
        try:
            era, connection = pool.take()
            if connection is None:
                connect = self.package.AsyncConnection.connect
                connection = await connect(**self._parameters, autocommit=True)
            try:
                if not pool.prepared:
                    async with pool.opening:
                        await self._arun_on(connection, prepare(self._tables))
                        pool.prepared = True
                yield connection
            finally:
                pool.give_back(connection, era)
        finally:
            pool.slots.release()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and those of this process."""
        self._mine_of_loop().empty()
        self.close()

    # -- both

    def _all_in_use(self) -> Exception:
        options = self._options
        error: Exception = self.package.OperationalError(
            f"no connection came free within {options.pool_timeout_seconds:g} seconds, all"
            f" {options.max_connections} are in use; the store takes more by max_connections"
        )
        return error

    def _for_scrubbing(self) -> dict[str, Any]:
        limits = f"-c statement_timeout=0 -c lock_timeout={SCRUBBING_LOCK_SECONDS * 1000}"
        options = f"{self._parameters.get('options', '')} {limits}".strip()
        alone = {**self._parameters, "autocommit": True, "options": options}
        alone.pop("tcp_user_timeout", None)
        return alone

    @contextmanager
    def _in_time(self, seconds: float) -> Generator[Callable[[Any], None]]:
        """Give what ends a connection whose server is silent, and say so where that was done."""
        silent = False

        def cut(connection: Any) -> None:
            nonlocal silent
            silent = True
            # Another thread may wait for it: the line is closed, as if the server had done it.
            with (
                suppress(OSError, self.package.Error),
                socket.socket(fileno=os.dup(connection.pgconn.socket)) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)

        try:
            yield cut
        except self.package.Error as error:
            if silent:
                raise self.package.OperationalError(
                    f"no answer within {seconds:g} seconds, and the connection was given up"
                ) from error
            raise

    def _new(self, *, awaited: bool) -> Pool:
        limit, least = self._options.max_connections, self._options.min_connections
        if not awaited:
            return Pool(threading.Semaphore(limit), threading.Lock(), least=least)
        import asyncio

        return Pool(asyncio.Semaphore(limit), asyncio.Lock(), least=least)

    def _let_go(self, of_loop: Pool) -> None:
        of_loop.empty()

    def _our_error(self, error: Exception, said: str) -> ContextError:
        return store_error(self.package, error, name=self.name, said=said)


class Pool:
    """Connections that wait to be used, the last used first, and how many may be in use."""

    def __init__(
        self, slots: Any, opening: Any, *, least: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.slots = slots
        """Who has one of them may have a connection."""
        self.opening = opening
        """Held by who prepares the tables."""
        self.prepared = False
        self._least = least
        self._clock = clock
        self._waiting: deque[tuple[float, Any]] = deque()
        self._era = 0
        self._pid = os.getpid()

    def __del__(self) -> None:
        """Close what waits where nobody closed the store; not what is the parent's, in a forked process."""
        if self._pid == os.getpid():
            self.empty()

    def take(self) -> tuple[int, Any]:
        """Give the era, and the connection that was used last; None if there is none."""
        try:
            return self._era, self._waiting.pop()[1]
        except IndexError:
            return self._era, None

    def give_back(self, connection: Any, era: int) -> None:
        """Keep a connection for the next, unless it is broken, in the middle of something or of another era.

        One that broke empties the pool: the others are of the same server.
        """
        if connection.broken:
            self.empty()
        if era != self._era or connection.pgconn.transaction_status != _AT_REST:
            _end(connection)
            return
        now = self._clock()
        self._waiting.append((now, connection))
        while len(self._waiting) > self._least and self._waiting[0][0] < now - IDLE_SECONDS:
            _end(self._waiting.popleft()[1])

    def empty(self) -> None:
        """Close what waits, and have closed what is in use when it is given back."""
        self._era += 1
        self.prepared = False
        while self._waiting:
            _end(self._waiting.pop()[1])


def _end(connection: Any) -> None:
    """Close a connection of either colour: to await its `close` may take a loop that is gone."""
    connection.pgconn.finish()


class Watch:
    """Calls what is to be called if something takes too long: one thread for all, begun when it is needed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: dict[object, tuple[float, Callable[[], None]]] = {}
        self._wakes = inf
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, call: Callable[[], None], seconds: float) -> Generator[None]:
        """Watch over the block: after so many seconds in it, make the call."""
        if seconds == inf:
            yield
            return
        deadline, key = time.monotonic() + seconds, object()
        with self._changed:
            self._calls[key] = deadline, call
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="trimtab-watch", daemon=True)
                self._thread.start()
            elif deadline < self._wakes:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._calls.pop(key, None)

    def _work(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                self._make_due(now)
                self._changed.wait(None if self._wakes == inf else self._wakes - now)

    def _make_due(self, now: float) -> None:
        for key, (deadline, call) in list(self._calls.items()):
            if deadline <= now:
                del self._calls[key]
                call()  # under the lock: what is watched over has not ended meanwhile
        self._wakes = min((deadline for deadline, _ in self._calls.values()), default=inf)


@contextmanager
def _called_later(call: Callable[[], None], seconds: float) -> Generator[None]:
    """Have the running event loop make a call if the block takes longer."""
    import asyncio

    if seconds == inf:
        yield
        return
    timer = asyncio.get_running_loop().call_later(seconds, call)
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _notices(connection: Any, wanted: bool) -> Generator[list[str]]:
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


def store_error(psycopg: Any, error: Any, *, name: str, said: str | None = None) -> ContextError:
    """Make the error of ours for one of psycopg's; `said` are its words, if others than its own."""
    errors = psycopg.errors
    said = (str(error) if said is None else said).strip().partition("\n")[0]
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
