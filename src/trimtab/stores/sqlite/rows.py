"""What `SQLiteStore` says to SQLite: tables and migrations, rows, and the erasure of what was removed.

Rows are added, changed and read inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any, NamedTuple

from trimtab.errors import StoreError
from trimtab.stores.base import Appended, AppendRequest, LoadRequest
from trimtab.stores.rows import (
    PRUNED,
    Row,
    check_incarnation,
    conflict,
    event_beyond,
    from_row,
    id_taken,
    new_incarnation,
    not_stored,
    same_event,
    storable_ids,
)

# The tables of `SQLiteStore`, and how older files are brought up to date.


class Migration(NamedTuple):
    """One step of the schema, applied once; its version is its place in the list, from 1."""

    name: str
    statements: tuple[str, ...]


MIGRATIONS = (
    Migration(
        "events",
        (
            """CREATE TABLE trimtab_sessions (
                session TEXT PRIMARY KEY NOT NULL,
                version INTEGER NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE trimtab_events (
                session TEXT NOT NULL,
                version INTEGER NOT NULL,
                id TEXT NOT NULL,
                kind TEXT NOT NULL,
                time REAL NOT NULL,
                body TEXT NOT NULL,
                seal TEXT NOT NULL,
                PRIMARY KEY (session, version),
                UNIQUE (session, id)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        "search and erasure",
        (
            # How far each session is in the search index, which knows sessions by number.
            """CREATE TABLE trimtab_indexed (
                session TEXT PRIMARY KEY NOT NULL,
                number INTEGER NOT NULL UNIQUE,
                version INTEGER NOT NULL
            ) WITHOUT ROWID""",
            # How often something was to be erased, and up to which of these the files were cleaned.
            """CREATE TABLE trimtab_erasure (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                asked INTEGER NOT NULL,
                done INTEGER NOT NULL
            )""",
            "INSERT INTO trimtab_erasure VALUES (1, 0, 0)",
        ),
    ),
    Migration(
        "incarnations",
        (
            # Which of the sessions of its name it is: one that is deleted and begun anew is another.
            "ALTER TABLE trimtab_sessions ADD COLUMN incarnation TEXT NOT NULL DEFAULT ''",
            "UPDATE trimtab_sessions SET incarnation = lower(hex(randomblob(8)))",
        ),
    ),
    Migration(
        "relevance",
        (
            # The index knew which words a message has, not how often; sessions are indexed anew as they grow.
            "DROP TABLE IF EXISTS trimtab_search",
            "DROP TABLE trimtab_indexed",
            """CREATE TABLE trimtab_indexed (
                session TEXT PRIMARY KEY NOT NULL,
                number INTEGER NOT NULL UNIQUE,
                version INTEGER NOT NULL,
                texts INTEGER NOT NULL,
                chars INTEGER NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE trimtab_terms (
                number INTEGER NOT NULL,
                term TEXT NOT NULL,
                version INTEGER NOT NULL,
                often INTEGER NOT NULL,
                chars INTEGER NOT NULL,
                PRIMARY KEY (number, term, version)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        "spellings",
        # The terms of a text are others: without accents, in parts. Sessions are indexed anew as they grow.
        ("DELETE FROM trimtab_terms", "DELETE FROM trimtab_indexed"),
    ),
    Migration(
        "owners",
        (
            # No column of trimtab_sessions: an older trimtab that still has the file open replaces its rows.
            """CREATE TABLE trimtab_listed (
                session TEXT PRIMARY KEY NOT NULL,
                version INTEGER NOT NULL,
                incarnation TEXT NOT NULL,
                used REAL NOT NULL,
                owner TEXT,
                metadata TEXT,
                ttl REAL,
                expires REAL
            ) WITHOUT ROWID""",
            """CREATE TABLE trimtab_labels (
                label TEXT NOT NULL,
                session TEXT NOT NULL,
                PRIMARY KEY (label, session)
            ) WITHOUT ROWID""",
            "CREATE INDEX trimtab_labels_of ON trimtab_labels (session)",
            """CREATE TRIGGER trimtab_used AFTER INSERT ON trimtab_sessions BEGIN
                INSERT INTO trimtab_listed (session, version, incarnation, used)
                SELECT NEW.session, NEW.version, NEW.incarnation, coalesce(
                    (SELECT time FROM trimtab_events WHERE session = NEW.session AND version = NEW.version), 0
                ) WHERE true
                ON CONFLICT (session) DO UPDATE SET version = excluded.version,
                    incarnation = excluded.incarnation, used = excluded.used, expires = excluded.used + ttl;
            END""",
            """CREATE TRIGGER trimtab_gone AFTER DELETE ON trimtab_sessions
                WHEN EXISTS (SELECT 1 FROM trimtab_listed WHERE session = OLD.session) BEGIN
                DELETE FROM trimtab_labels WHERE session = OLD.session;
                DELETE FROM trimtab_listed WHERE session = OLD.session;
            END""",
            """INSERT INTO trimtab_listed (session, version, incarnation, used)
                SELECT s.session, s.version, s.incarnation, coalesce((
                    SELECT time FROM trimtab_events e
                    WHERE e.session = s.session AND e.version = s.version
                ), 0) FROM trimtab_sessions s""",
            "CREATE INDEX trimtab_listed_used ON trimtab_listed (used, session)",
            "CREATE INDEX trimtab_listed_owner ON trimtab_listed (owner, session) WHERE owner IS NOT NULL",
            """CREATE INDEX trimtab_listed_owner_used ON trimtab_listed (owner, used, session)
                WHERE owner IS NOT NULL""",
            "CREATE INDEX trimtab_listed_end ON trimtab_listed (expires) WHERE expires IS NOT NULL",
        ),
    ),
)
"""Only ever added to: a released one is never changed."""


def number_in(row: tuple[Any, ...] | None, at: int = 0, /) -> int:
    """Return a number of a row of ours: SQLite keeps whatever was written into a damaged file.

    Raises:
        sqlite3.DatabaseError: Something else stands there, or there is no such row.
    """
    value = None if row is None else row[at]
    if type(value) is not int:
        damaged = sqlite3.DatabaseError(f"{value!r:.40} is stored in place of a number")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged
    return value


def schema_version(connection: sqlite3.Connection, /) -> int:
    """Return the version of a database's schema, 0 where there is none yet."""
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'trimtab_schema'"
    ).fetchone()
    if there is None:
        return 0
    version = int(connection.execute("SELECT coalesce(max(version), 0) FROM trimtab_schema").fetchone()[0])
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the database has schema {version}, but this version of trimtab knows {len(MIGRATIONS)}: a"
            " newer version wrote it. Upgrade trimtab; nothing was changed"
        )
    return version


def migrate(connection: sqlite3.Connection, /) -> None:
    """Apply the migrations that are missing, all in one transaction; the caller rolls back on an error."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS trimtab_schema"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied REAL NOT NULL)"
    )
    for version in range(schema_version(connection) + 1, len(MIGRATIONS) + 1):
        name, statements = MIGRATIONS[version - 1]
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO trimtab_schema VALUES (?, ?, ?)", (version, name, time.time()))
    connection.execute("COMMIT")


# Rows.


COLUMNS = "version, id, kind, time, body, seal"
_BY_ID = f"SELECT {COLUMNS} FROM trimtab_events WHERE session = ? AND id = ?"
_MOST = 2**62
"""Above every version, and a number that SQLite can hold."""


class Head(NamedTuple):
    """What the record of a session's own says."""

    version: int
    incarnation: str


def head_of(connection: sqlite3.Connection, session: str, incarnation: str | None, /) -> Head | None:
    """Return the record of a session; None if there is no session."""
    row = connection.execute(
        "SELECT version, incarnation FROM trimtab_sessions WHERE session = ?", (session,)
    ).fetchone()
    head = None if row is None else Head(*row)
    check_incarnation(session, incarnation, head and head.incarnation)
    return head


def append_rows(connection: sqlite3.Connection, request: AppendRequest, rows: list[Row]) -> Appended:
    """Add rows as `Store.append` promises."""
    session, found = request.session, head_of(connection, request.session, request.incarnation)
    head = found or Head(0, new_incarnation())
    stored = connection.execute(_BY_ID, (session, rows[0].id)).fetchone() if rows else None
    if stored is not None:
        event = from_row(stored, session=session, incarnation=head.incarnation)
        return same_event(request, event, version=head.version)
    if request.expected_version != head.version:
        raise conflict(request, head.version)
    if not rows:
        return Appended(head.version, incarnation=head.incarnation)
    for row in rows:
        try:
            connection.execute("INSERT INTO trimtab_events VALUES (?, ?, ?, ?, ?, ?, ?)", (session, *row))
        except sqlite3.IntegrityError as error:
            if connection.execute(_BY_ID, (session, row.id)).fetchone() is not None:
                raise id_taken(request, row.id) from error
            raise event_beyond(session, head.version, at=row.version) from error
    connection.execute(
        "INSERT OR REPLACE INTO trimtab_sessions (session, version, incarnation) VALUES (?, ?, ?)",
        (session, rows[-1].version, head.incarnation),
    )
    return Appended(rows[-1].version, incarnation=head.incarnation)


def rewrite_rows(connection: sqlite3.Connection, request: AppendRequest, rewrites: list[Row]) -> None:
    """Replace data and state of stored rows, or prune them; note that something is to be erased."""
    for row in rewrites:
        changed = connection.execute(
            "UPDATE trimtab_events SET kind = ?, body = ?, seal = ?"
            " WHERE session = ? AND version = ? AND id = ? AND time = ? AND ? IN (kind, ?)",
            (row.kind, row.body, row.seal, request.session, row.version, row.id, row.time, row.kind, PRUNED),
        )
        if not changed.rowcount:
            raise not_stored(request, row.version, kind=_kind_at(connection, request.session, row.version))
    ask_erasure(connection)


def _kind_at(connection: sqlite3.Connection, session: str, version: int) -> str | None:
    query = "SELECT kind FROM trimtab_events WHERE session = ? AND version = ?"
    found = connection.execute(query, (session, version)).fetchone()
    return None if found is None else str(found[0])


def load_rows(connection: sqlite3.Connection, request: LoadRequest) -> list[Row]:
    """Read rows in the order asked for; of ids, all that have one of them."""
    if request.ids is not None:
        # One by one: of a long IN, SQLite makes a scan of the session.
        ids = storable_ids(request.ids)
        found = [connection.execute(_BY_ID, (request.session, one)).fetchone() for one in ids]
        return [row for row in found if row is not None]
    order = "DESC" if request.newest_first else "ASC"
    before = _MOST if request.before is None else request.before
    bounds = [max(0, min(bound, _MOST)) for bound in (request.after, before)]
    return connection.execute(
        f"SELECT {COLUMNS} FROM trimtab_events WHERE session = ? AND version > ? AND version < ?"
        f" ORDER BY version {order} LIMIT ?",
        (request.session, *bounds, -1 if request.limit is None else request.limit),
    ).fetchall()


# No byte of what was removed stays in the files of `SQLiteStore`.


def ask_erasure(connection: sqlite3.Connection, /) -> None:
    """Note that something was removed; in the transaction that removes it, so that no crash forgets it."""
    connection.execute("UPDATE trimtab_erasure SET asked = asked + 1")


def asked_erasures(connection: sqlite3.Connection, /) -> int:
    """Tell up to which erasure the files are still to be cleaned; 0 if nothing waits for that."""
    row = connection.execute("SELECT asked, done FROM trimtab_erasure").fetchone()
    asked = number_in(row)
    return 0 if asked == number_in(row, 1) else asked


def write_anew(connection: sqlite3.Connection, /) -> None:
    """Write the file without what was removed.

    Free space is zeroed by secure_delete, but pages that were split may hold old copies.
    """
    connection.execute("VACUUM")


def empty_log(connection: sqlite3.Connection, /) -> None:
    """Move the log into the file and cut it to nothing.

    Raises:
        sqlite3.OperationalError: Another connection reads, or is at the same: that one SQLite does not wait
            for by itself.
    """
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        busy = sqlite3.OperationalError("another connection reads or writes the log")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise busy


def note_erased(connection: sqlite3.Connection, asked: int, /) -> None:
    """Note up to which erasure the files are clean."""
    connection.execute("UPDATE trimtab_erasure SET done = max(done, ?)", (asked,))
