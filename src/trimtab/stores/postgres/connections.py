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
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from trimtab._shared.lazy import package_of
from trimtab._shared.steps import Steps, relay
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    MissingExtraError,
    StoreError,
    StoreUnavailableError,
)
from trimtab.stores.postgres.operations import Execute, Tables, prepare
from trimtab.stores.server import Connections

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

SCRUBBING_LOCK_SECONDS = 5
"""Longest wait of a rewrite for a table: writers queue behind it."""

_REFUSED = (
    ("password authentication failed", "correct the user and the password in the DSN"),
    ("no password supplied", "put the password into the DSN, or into PGPASSWORD or ~/.pgpass"),
    ("no pg_hba.conf entry", "allow this user and address in the server's pg_hba.conf"),
    ("does not exist", "create it, or name another one in the DSN"),
    ("SSL", "set sslmode in the DSN to what the server offers"),
    ("unsupported startup parameter", "take it out of the DSN, or have the pooler ignore it"),
)
"""Words of a refused connection that asking again will not mend, and what to change. The package does
not tell SQLSTATEs of connections; a server that speaks another language is `StoreUnavailableError`."""

_NO_OPTIONS = "unsupported startup parameter: options"
"""What PgBouncer says of a connection that brings limits of its own."""

IDLE_SECONDS = 600.0
"""A connection beyond the least that nobody used for so long is closed."""

_AT_REST = 0
"""PQTRANS_IDLE: neither a statement nor a transaction is underway."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
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
        errors = self.package.errors
        self._unprepared = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
        super().__init__(dsn, name=name, errors=(self.package.Error,))

    def _begin(self) -> None:
        super()._begin()
        self._watch = Watch()
        self._pooled = False
        """Whether a pooler such as PgBouncer was met, which gives each transaction another connection."""

    def _parse(self, dsn: str) -> dict[str, Any]:
        try:
            given: dict[str, Any] = self.package.conninfo.conninfo_to_dict(dsn)
        except self.package.ProgrammingError:
            # its words quote the DSN, and so perhaps a password
            raise ConfigurationError(
                "this is not a DSN of PostgreSQL: write postgresql://user:password@host:5432/database, with"
                " characters other than letters and digits percent-encoded, such as %20 for a space"
            ) from None
        if not all(port.isdigit() for port in str(given.get("port", "0")).split(",") if port):
            # not quoted: where a password is not written as a URL wants it, a part of it stands here
            raise ConfigurationError(
                "the port of this DSN is not a number: write postgresql://user:password@host:5432/database,"
                " with characters of the password other than letters and digits percent-encoded, such as"
                " %20 for a space"
            )
        parameters = {
            "application_name": "trimtab",
            "connect_timeout": max(1, round(self._options.connect_timeout_seconds)),
            **given,
        }
        self._own_options = "options" in given
        seconds = self._options.statement_timeout_seconds
        if seconds is not None:
            option = f"-c statement_timeout={round(seconds * 1000)}"
            parameters["options"] = f"{parameters.get('options', '')} {option}".strip()
        # where the network is gone, no server is there to end the statement
        parameters.setdefault("tcp_user_timeout", round(self._options.answer_timeout_seconds * 1000))
        return parameters

    def _calls(self, mine: Pool, steps: Steps[T], *, alone: bool) -> Steps[T]:
        if alone:
            return (yield from self._run_alone(mine, steps))
        if not (yield partial(mine.acquire, self._options.pool_timeout_seconds)):
            most, seconds = self._options.max_connections, self._options.pool_timeout_seconds
            raise self.package.OperationalError(
                f"no connection became free within {seconds:g} seconds: all {most} are in use; raise"
                " max_connections"
            )
        try:
            era, connection = mine.take()
            if connection is None:
                connection = yield from self._connect(mine)
            try:
                yield from self._prepare(mine, connection)
                return (yield from self._run_on(mine, connection, steps))
            finally:
                mine.give_back(connection, era)
        finally:
            mine.slots.release()

    def _connect(self, pool: Pool) -> Steps[Any]:
        """Connect; where a pooler takes no options, without: it bounds no statement, and we cut the line."""
        plain = {name: value for name, value in self._parameters.items() if name != "options"}
        if not self._pooled:
            try:
                return (yield partial(pool.connect, **self._parameters, autocommit=True))
            except self.package.OperationalError as error:
                if self._own_options or _NO_OPTIONS not in str(error):
                    raise
                self._pooled = True
        # What one connection of the server prepared, the next one does not know.
        return (yield partial(pool.connect, **plain, autocommit=True, prepare_threshold=None))

    def _run_alone(self, pool: Pool, steps: Steps[T]) -> Steps[T]:
        """Run an operation on a connection of its own, without a limit of time."""
        limits = f"-c statement_timeout=0 -c lock_timeout={SCRUBBING_LOCK_SECONDS * 1000}"
        options = f"{self._parameters.get('options', '')} {limits}".strip()
        alone = {**self._parameters, "autocommit": True, "options": options}
        alone.pop("tcp_user_timeout", None)
        try:
            connection = yield partial(pool.connect, **alone)
        except self.package.OperationalError as error:
            if _NO_OPTIONS not in str(error):
                raise
            raise ConfigurationError(
                f"{self.name}: the data is removed, but the files of the server still contain its bytes: to"
                " clean them, a connection needs its own limits, which the pooler in between (PgBouncer)"
                " does not allow. From time to time, call scrub() of a PostgresStore whose DSN reaches"
                " the server itself, and pass scrub_on_delete=False here"
            ) from error
        try:
            yield from self._prepare(pool, connection)
            return (yield from self._run_on(pool, connection, steps, seconds=inf))
        finally:
            _end(connection)

    def _prepare(self, pool: Pool, connection: Any) -> Steps[None]:
        if not pool.prepared:
            yield pool.opening.acquire
            try:
                yield from self._run_on(pool, connection, prepare(self._tables))
                pool.prepared = True
            finally:
                pool.opening.release()

    def _run_on(
        self, pool: Pool, connection: Any, steps: Steps[T], *, seconds: float | None = None
    ) -> Steps[T]:
        limit = self._options.answer_timeout_seconds if seconds is None else seconds

        def answer(step: Execute) -> Steps[Any]:
            with (
                self._in_time(limit) as cut,
                pool.over(lambda: cut(connection), limit),
                _notices(connection, step.details) as details,
            ):
                try:
                    cursor = yield partial(connection.execute, step.sql, step.params)
                except self._unprepared as error:  # of a pooler that knows no statements
                    self._pooled = True
                    pool.empty()
                    if connection.info.transaction_status != self.package.pq.TransactionStatus.IDLE:
                        raise self.package.OperationalError(
                            "a pooler in between does not keep prepared statements, so no more are made"
                        ) from error
                    # Refused before it began, and no transaction is lost with it: once more, unprepared.
                    cursor = yield partial(connection.execute, step.sql, step.params, prepare=False)
                rows = (yield cursor.fetchall) if cursor.description else []
            return details if step.details else rows

        return relay(steps, answer)

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
                    f"no answer within {seconds:g} seconds; the connection was dropped"
                ) from error
            raise

    def _new(self, *, awaited: bool) -> Pool:
        limit, least = self._options.max_connections, self._options.min_connections
        if not awaited:
            pool = Pool(threading.Semaphore(limit), threading.Lock(), least=least)
            pool.acquire = lambda seconds: pool.slots.acquire(timeout=seconds)
            pool.connect, pool.over = self.package.connect, self._watch.over
        else:
            import asyncio  # takes longer to import than the rest of trimtab.stores

            pool = Pool(asyncio.Semaphore(limit), asyncio.Lock(), least=least)
            pool.acquire = partial(_acquire_later, pool.slots)
            pool.connect, pool.over = self.package.AsyncConnection.connect, _called_later
        return pool

    def _end(self, mine: Pool) -> Steps[None]:
        mine.empty()
        yield from ()

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
        self.acquire: Callable[[float], Any]
        """Takes a slot within so many seconds, and tells whether it did."""
        self.connect: Callable[..., Any]
        self.over: Callable[[Callable[[], None], float], AbstractContextManager[None]]
        """Has a call made if a block takes longer."""
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
        # Not in the loop above: its thread never ends, and would hold the last connection it looked at.
        for key, (deadline, call) in list(self._calls.items()):
            if deadline <= now:
                del self._calls[key]
                call()  # under the lock: what is watched over has not ended meanwhile
        self._wakes = min((deadline for deadline, _ in self._calls.values()), default=inf)


async def _acquire_later(slots: asyncio.Semaphore, seconds: float) -> bool:
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            return await slots.acquire()
    except TimeoutError:
        return False


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
            f"{name}: {said}. Grant the missing right to the role, or connect once as a role that may create"
            " tables"
        )
    passing = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
    if isinstance(error, passing):
        advice = next((advice for words, advice in _REFUSED if words in str(error)), None)
        underway = said.startswith(("consuming input", "sending query"))  # it was connected, and is cut now
        if error.sqlstate is None and advice is not None and "failed" in said and not underway:
            return ConfigurationError(f"{name}: {said}; {advice}")
        return StoreUnavailableError(f"{name}: {said}. It is safe to retry: nothing is stored twice")
    return StoreError(f"{name}: {type(error).__name__}: {said}")
