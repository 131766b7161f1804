"""`PostgresStore`: sessions in PostgreSQL, for many processes and machines (extra `postgres`)."""

from __future__ import annotations

from typing import Any, Self

from trimtab.errors import ConfigurationError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, SearchRequest
from trimtab.stores.postgres.connections import PoolOptions, Pools
from trimtab.stores.postgres.operations import Operations, Tables

__all__ = ["PostgresStore"]


class PostgresStore:
    """Keeps sessions in a PostgreSQL database.

    The tables, all named `trimtab_…`, are made at first use, and brought up to date by a newer trimtab.
    Nothing is connected before. One store serves the threads of a process, its event loops and the
    processes forked from it; each gets connections of its own.

    An append is one statement. What was acknowledged is on the server's disk, unless the server was
    told otherwise (`fsync`, `synchronous_commit`).

    Deleting or redacting removes the rows at once. With `scrub_on_delete` the tables are then rewritten
    (`VACUUM FULL`), so that no byte of the text stays in their files: that locks them for as long as it
    takes to copy all sessions. Where many are kept, switch it off and call `scrub()` at night. What the
    server keeps beside its tables is not reached by either: the write-ahead log until it is recycled,
    replicas until they follow, log files if statements are logged, and backups.

    Example:
        >>> from trimtab.stores import PostgresStore
        >>> store = PostgresStore("postgresql://app:secret@db.internal/chats", max_connections=20)
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "public",
        min_connections: int = 1,
        max_connections: int = 10,
        pool_timeout_seconds: float = 10.0,
        connect_timeout_seconds: float = 5.0,
        statement_timeout_seconds: float | None = 30.0,
        answer_timeout_seconds: float | None = None,
        scrub_on_delete: bool = True,
    ) -> None:
        """Make a store; nothing is connected yet.

        Args:
            dsn: As libpq takes it: `postgresql://user:password@host:5432/database?sslmode=require`.
            schema: The schema of the tables; made if it is missing.
            min_connections: Kept open by each process and each event loop once it needed them, from 0; others
                are closed when nobody used them for ten minutes.
            max_connections: Most of them; further calls wait for one.
            pool_timeout_seconds: Longest wait for a connection.
            connect_timeout_seconds: Longest wait for the server to accept one; rounded to whole seconds.
            statement_timeout_seconds: Longest time a statement may take. None sends no limit, as some
                poolers in front of a server want it.
            answer_timeout_seconds: Longest wait for the answer to a statement, after which the connection is
                given up: a server that fell silent ends no statement. None: five seconds more than a
                statement may take, 35 where that has no limit. Rewriting tables has none.
            scrub_on_delete: Rewrite the tables after a deletion or redaction.

        Raises:
            MissingExtraError: psycopg is not installed.
            ConfigurationError: The DSN or a number cannot be meant.
        """
        if not 0 < len(schema) <= 63 or any(one in schema for one in "\0%"):
            raise ConfigurationError(f"schema is a name of 1 to 63 characters without %, not {schema!r:.80}")
        if not 0 <= min_connections <= max_connections or max_connections < 1:
            raise ConfigurationError(
                f"connections: {min_connections} to {max_connections}; the least is 0, the most at least 1"
            )
        for name, seconds in (
            ("pool_timeout_seconds", pool_timeout_seconds),
            ("connect_timeout_seconds", connect_timeout_seconds),
            ("statement_timeout_seconds", statement_timeout_seconds),
            ("answer_timeout_seconds", answer_timeout_seconds),
        ):
            if seconds is not None and not seconds > 0:
                raise ConfigurationError(f"{name} is more than 0, not {seconds!r:.80}")
        tables = Tables(schema)
        options = PoolOptions(
            min_connections=min_connections,
            max_connections=max_connections,
            pool_timeout_seconds=pool_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
            statement_timeout_seconds=statement_timeout_seconds,
            answer_timeout_seconds=answer_timeout_seconds or (statement_timeout_seconds or 30.0) + 5.0,
        )
        self._pools = Pools(dsn, tables=tables, options=options)
        self._operations = Operations(tables, psycopg=self._pools.package)
        self._scrub_on_delete = scrub_on_delete
        self._shown = f"schema={schema!r}, max_connections={max_connections}"

    def __repr__(self) -> str:
        """Show the database and the options; no user and no password."""
        return f"<PostgresStore in {self._pools.name}, {self._shown}>"

    def append(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""
        appended = self._pools.run(self._operations.append(request))
        if request.rewrites and self._scrub_on_delete:
            self.scrub()
        return appended

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""
        return self._pools.run(self._operations.load(request))

    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages by an index of terms; see `Store.search`.

        Appends fill the index, 200 events at a time, and a search what is left. A log of an older trimtab
        catches up by a part with each append; the first search does the rest, and takes longer.
        """
        return self._pools.run(self._operations.search(request))

    def delete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; see `Store.delete`.

        Raises:
            SessionDeletedError: Another one than the one that was meant has its name now.
            StoreUnavailableError: The rows are gone, but an older transaction still sees them, so the
                tables could not be rewritten; call `delete` or `scrub` again.
        """
        self._pools.run(self._operations.delete(session, incarnation))
        if self._scrub_on_delete:
            self.scrub()

    def sessions(self) -> list[str]:
        """List the names of all sessions, sorted."""
        return self._pools.run(self._operations.sessions())

    def scrub(self) -> None:
        """Rewrite the tables, if anything was deleted or redacted since they last were.

        Locks them for as long as it takes; a wait of more than five seconds for that lock is a
        `StoreUnavailableError`.
        """
        if self._pools.run(self._operations.wants_scrubbing()):
            self._pools.run_alone(self._operations.scrub())

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        self._pools.close()

    async def aappend(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""
        appended = await self._pools.arun(self._operations.append(request))
        if request.rewrites and self._scrub_on_delete:
            await self.ascrub()
        return appended

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""
        return await self._pools.arun(self._operations.load(request))

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        """Find messages; see `search`."""
        return await self._pools.arun(self._operations.search(request))

    async def adelete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; see `delete`."""
        await self._pools.arun(self._operations.delete(session, incarnation))
        if self._scrub_on_delete:
            await self.ascrub()

    async def asessions(self) -> list[str]:
        """List the names of all sessions; see `sessions`."""
        return await self._pools.arun(self._operations.sessions())

    async def ascrub(self) -> None:
        """Rewrite the tables; see `scrub`."""
        if await self._pools.arun(self._operations.wants_scrubbing()):
            await self._pools.arun_alone(self._operations.scrub())

    async def aclose(self) -> None:
        """Close the connections of the running event loop and those of `close`."""
        await self._pools.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()
