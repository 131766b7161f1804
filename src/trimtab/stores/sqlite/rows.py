"""What `SQLiteStore` says to SQLite to add, change and read rows; each inside a transaction of the caller."""

from __future__ import annotations

import sqlite3
from operator import itemgetter
from typing import NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.stores.base import Appended, AppendRequest, LoadRequest
from trimtab.stores.rows import (
    Row,
    check_incarnation,
    conflict,
    from_row,
    id_taken,
    new_incarnation,
    not_stored,
    same_event,
    storable_ids,
)
from trimtab.stores.sqlite.erasure import ask_erasure

__all__ = ["Head", "append_rows", "head_of", "load_rows", "rewrite_rows"]

_COLUMNS = "version, id, kind, time, body, seal"
_BY_ID = f"SELECT {_COLUMNS} FROM trimtab_events WHERE session = ? AND id = ?"
_MOST = 2**62
"""Above every version, and a number that SQLite can hold."""


class Head(NamedTuple):
    """What the record of a session's own says."""

    version: int
    incarnation: str


def head_of(connection: sqlite3.Connection, session: str, incarnation: str | None, /) -> Head | None:
    """Return the record of a session; None if there is no session.

    Raises:
        SessionDeletedError: It is not of the incarnation that was meant.
    """
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
    stored = connection.execute(_BY_ID, (session, rows[0].id)).fetchone()
    if stored is not None:
        event = from_row(stored, session=session, incarnation=head.incarnation)
        return same_event(request, event, version=head.version)
    if request.expected_version != head.version:
        raise conflict(request, head.version)
    for row in rows:
        try:
            connection.execute("INSERT INTO trimtab_events VALUES (?, ?, ?, ?, ?, ?, ?)", (session, *row))
        except sqlite3.IntegrityError as error:
            if connection.execute(_BY_ID, (session, row.id)).fetchone() is not None:
                raise id_taken(request, row.id) from error
            raise CorruptSessionError(
                f"session {session!r}: it should end at version {head.version}, and holds version"
                f" {row.version}. Restore the store from a backup",
                session=session,
                version=row.version,
            ) from error
    connection.execute(
        "INSERT OR REPLACE INTO trimtab_sessions (session, version, incarnation) VALUES (?, ?, ?)",
        (session, rows[-1].version, head.incarnation),
    )
    return Appended(rows[-1].version, incarnation=head.incarnation)


def rewrite_rows(connection: sqlite3.Connection, request: AppendRequest, rewrites: list[Row]) -> None:
    """Replace data and state of stored rows, and note that something is to be erased."""
    for row in rewrites:
        changed = connection.execute(
            "UPDATE trimtab_events SET body = ?, seal = ?"
            " WHERE session = ? AND version = ? AND id = ? AND kind = ? AND time = ?",
            (row.body, row.seal, request.session, *row[:4]),
        )
        if not changed.rowcount:
            raise not_stored(request, row.version)
    ask_erasure(connection)


def load_rows(connection: sqlite3.Connection, request: LoadRequest) -> list[Row]:
    """Read rows, in the order asked for."""
    if request.ids is not None:
        return _load_ids(connection, request, storable_ids(request.ids))
    order = "DESC" if request.newest_first else "ASC"
    return connection.execute(
        f"SELECT {_COLUMNS} FROM trimtab_events WHERE session = ? AND version > ? AND version < ?"
        f" ORDER BY version {order} LIMIT ?",
        (request.session, *_between(request), -1 if request.limit is None else request.limit),
    ).fetchall()


def _load_ids(connection: sqlite3.Connection, request: LoadRequest, ids: list[str]) -> list[Row]:
    # One by one: of a long IN, SQLite makes a scan of the session.
    found = [connection.execute(_BY_ID, (request.session, one)).fetchone() for one in ids]
    after, before = _between(request)
    rows = [row for row in found if row is not None and after < row[0] < before]
    return sorted(rows, key=itemgetter(0), reverse=request.newest_first)[: request.limit]


def _between(request: LoadRequest) -> tuple[int, int]:
    """Return the bounds of the versions asked for, as numbers that SQLite can hold."""
    before = _MOST if request.before is None else request.before
    return max(0, min(request.after, _MOST)), max(0, min(before, _MOST))
