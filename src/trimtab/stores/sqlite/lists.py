"""The list of sessions in `SQLiteStore`: a table beside that of sessions, which triggers keep.

Triggers, because a process of an older trimtab may still write to the file: it knows neither labels nor this
table, and an append of its own replaces the row of the session.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from trimtab.stores.labels import Labels, Receipt, SessionEntry, Sessions, key_records, keys_of
from trimtab.stores.lists import BATCH_SESSIONS, ListRequest, Removal, batches, entry_of, left_by
from trimtab.stores.sqlite.rows import COLUMNS, ask_erasure

_COLUMNS = "session, version, used, owner, metadata, ttl, incarnation"


def set_labels(connection: sqlite3.Connection, session: str, labels: Labels, /) -> None:
    """Store the labels of a session, in the transaction of the append that says them."""
    connection.execute(
        "UPDATE trimtab_listed SET owner = ?, metadata = ?, ttl = ?, expires = used + ? WHERE session = ?",
        (labels.owner, labels.metadata_text, labels.ttl, labels.ttl, session),
    )
    connection.execute("DELETE FROM trimtab_labels WHERE session = ?", (session,))
    connection.executemany(
        "INSERT OR IGNORE INTO trimtab_labels (label, session) VALUES (?, ?)",
        [(key, session) for key in keys_of(labels.metadata)],
    )


def list_page(connection: sqlite3.Connection, request: ListRequest, /) -> Sessions:
    """Read a page of the list: one statement."""
    conditions = list(request.conditions("session", "?"))
    has_label = "session IN (SELECT session FROM trimtab_labels WHERE label = ?)"
    conditions += ((has_label, (key,)) for key in request.keys)
    where = " AND ".join(sql for sql, _ in conditions) or "1"
    values = [value for _, some in conditions for value in some]
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM trimtab_listed WHERE {where} ORDER BY {request.order('session')} LIMIT ?",
        (*values, -1 if request.asked is None else request.asked),
    )
    return request.page(list(starmap(entry_of, rows)))


def newest_rows(connection: sqlite3.Connection, /, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Read name, incarnation and version of sessions, and their newest rows."""
    columns = ", ".join(f"e.{name.strip()}" for name in COLUMNS.split(","))
    return connection.execute(
        f"SELECT s.session, s.incarnation, s.version, {columns} FROM trimtab_sessions s"
        " LEFT JOIN trimtab_events e ON e.session = s.session AND e.version = s.version"
        f" WHERE s.session IN ({', '.join('?' * len(names))})",
        names,
    ).fetchall()


def remove_batch(connection: sqlite3.Connection, batch: Removal, /) -> Receipt:
    """Remove what is still as it was listed, in a transaction that writes: a statement for each table."""
    names = batch.names
    places = ", ".join("?" * len(names))
    rows = connection.execute(
        f"SELECT session, incarnation, owner FROM trimtab_listed WHERE session IN ({places})", names
    )
    now = {name: (incarnation, owner) for name, incarnation, owner in rows}
    gone = batch.meant(now)
    receipt = _remove(connection, gone) if gone else Receipt()
    return replace(receipt, left=left_by(batch, gone, now))


def remove_session(connection: sqlite3.Connection, session: str, /) -> Receipt:
    """Remove a session that is there."""
    return _remove(connection, [SessionEntry(session)])


def remove_ended(connection: sqlite3.Connection, /, *, now: float, limit: int) -> Receipt:
    """Remove sessions whose time is over, a batch at most; `more` where there are others."""
    most = min(limit, BATCH_SESSIONS)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM trimtab_listed WHERE expires <= ? ORDER BY expires LIMIT ?", (now, most + 1)
    ).fetchall()
    first = next(batches(starmap(entry_of, rows[:most]), None), Removal())
    receipt = _remove(connection, first.entries) if rows else Receipt()
    return replace(receipt, more=len(rows) > len(first.entries))


def _remove(connection: sqlite3.Connection, entries: Sequence[SessionEntry]) -> Receipt:
    names = [str(one) for one in entries]
    where = _among(names)
    count = "SELECT total(kind = 'message'), total(length(body)) FROM trimtab_events WHERE"
    messages, size = connection.execute(f"{count} {where}", names).fetchone()
    sessions, records, removed = len(names), key_records(entries), list[tuple[str, str]]()
    if records:  # in the same step: no key stays of a session that is gone
        sql = f"SELECT session FROM trimtab_listed WHERE {_among([*records])}"
        found = [name for (name,) in connection.execute(sql, [*records])]
        names += found
        where = _among(names)
        removed = [records.pop(name) for name in found]
    numbers = f"SELECT number FROM trimtab_indexed WHERE {where}"
    connection.execute(f"DELETE FROM trimtab_terms WHERE number IN ({numbers})", names)
    # the list before the sessions: its trigger has then nothing to do for each of them
    for table in (
        "trimtab_indexed",
        "trimtab_events",
        "trimtab_labels",
        "trimtab_listed",
        "trimtab_sessions",
    ):
        connection.execute(f"DELETE FROM {table} WHERE {where}", names)
    ask_erasure(connection)
    return Receipt(
        sessions=sessions,
        messages=int(messages),
        bytes=int(size),
        keys=tuple(records.values()),
        removed_keys=tuple(removed),
    )


def _among(names: Sequence[str]) -> str:
    return f"session IN ({', '.join('?' * len(names))})"
