"""`PostgresStore`: sessions in PostgreSQL, for many processes and machines (extra `postgres`)."""

from __future__ import annotations

from dataclasses import asdict

from trimtab.errors import ConfigurationError
from trimtab.stores.postgres.connections import PoolOptions, Pools
from trimtab.stores.postgres.operations import Operations, Tables
from trimtab.stores.server import ServedStore, check_seconds


class PostgresStore(ServedStore):
    """Keeps sessions in a PostgreSQL database.

    The tables, all named `trimtab_…`, are created at first use, and migrated by a newer trimtab. No
    connection is opened before. One store serves the threads of a process, its event loops and the processes
    forked from it; each gets its own connections.

    An append is one statement. Each session has an index of its words in a separate table, filled 200 events
    at a time. An acknowledged event is on the server's disk, unless the server is configured otherwise
    (`fsync`, `synchronous_commit`).

    Deletion and redaction remove the rows at once. With `scrub_on_delete` the tables are then rewritten
    (`VACUUM FULL`), and no byte of the text remains in their files. This locks the tables for the time of
    copying all sessions; a wait of more than five seconds for the lock is a `StoreUnavailableError`. With
    many sessions, switch it off and call `scrub()` at night. Neither reaches what the server keeps outside
    its tables: the write-ahead log until it is recycled, replicas until they follow, log files if statements
    are logged, and backups.

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
        """Make a store; no connection is opened yet.

        Args:
            dsn: A libpq connection string: `postgresql://user:password@host:5432/database?sslmode=require`.
            schema: The schema of the tables; created if it is missing.
            min_connections: Number of connections that each process and event loop keeps open after use, from
                0; others are closed after ten minutes without use.
            max_connections: Maximum number of connections; further calls wait for one.
            pool_timeout_seconds: Maximum wait for a connection.
            connect_timeout_seconds: Maximum wait for the server to accept one; rounded to whole seconds.
            statement_timeout_seconds: Maximum duration of a statement. None sends no limit, as some poolers
                in front of a server require.
            answer_timeout_seconds: Maximum wait for the answer to a statement, after which the connection is
                dropped: a server that stopped answering ends no statement. None: five seconds more than the
                limit of a statement, or 35 without one. Rewriting tables has no limit.
            scrub_on_delete: Whether to rewrite the tables after a deletion or redaction.

        Raises:
            MissingExtraError: psycopg is not installed.
            ConfigurationError: The DSN or a number is invalid.
        """
        if not 0 < len(schema) <= 63 or any(one in schema for one in "\0%"):
            raise ConfigurationError(
                f"schema must be a name of 1 to 63 characters without %, not {schema!r:.80}",
                argument="schema",
            )
        if not 0 <= min_connections <= max_connections or max_connections < 1:
            raise ConfigurationError(
                f"connections: {min_connections} to {max_connections}; the minimum must be at least 0, and"
                " the maximum at least 1"
            )
        tables = Tables(schema)
        if answer_timeout_seconds is None:
            answer_timeout_seconds = (statement_timeout_seconds or 30.0) + 5.0
        options = PoolOptions(
            min_connections=min_connections,
            max_connections=max_connections,
            pool_timeout_seconds=pool_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
            statement_timeout_seconds=statement_timeout_seconds,
            answer_timeout_seconds=answer_timeout_seconds,
        )
        check_seconds(asdict(options))
        pools = Pools(dsn, tables=tables, options=options)
        operations = Operations(tables, psycopg=pools.package, scrub_on_delete=scrub_on_delete)
        shown = f"schema={schema!r}, max_connections={max_connections}"
        super().__init__(pools, operations, scrub_on_delete=scrub_on_delete, shown=shown)
