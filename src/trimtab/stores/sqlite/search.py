"""The full-text index of `SQLiteStore`: an FTS5 table that is filled every 200 events.

It holds terms and numbers of events, no text and no order of words, and is thrown away as a whole when
anything in it is to be erased: FTS5 keeps deleted words in its older parts.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from trimtab.stores.rows import Row, from_row, missing_event
from trimtab.stores.search import best_versions, count_terms, search_terms, searchable_text
from trimtab.stores.sqlite.rows import COLUMNS

BATCH_EVENTS = 200
"""So many events are indexed in one transaction, and fewer are read where they stand: neither an append nor
a search of a session that grows writes to the index each time, and no other writer waits long."""

_SESSION_BITS = 32
"""The index knows version v of session number n as n << 32 | v, so that a session is one range."""


def has_fts5(connection: sqlite3.Connection, /) -> bool:
    """Tell whether this build of SQLite has FTS5."""
    found = connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone()
    return found is not None


def _index_state(connection: sqlite3.Connection, session: str) -> tuple[int, int]:
    """Return the number of a session and the version up to which it is indexed; (0, 0) if it is not."""
    query = "SELECT number, version FROM trimtab_indexed WHERE session = ?"
    found = connection.execute(query, (session,)).fetchone()
    return (0, 0) if found is None else (int(found[0]), int(found[1]))


def waiting_events(connection: sqlite3.Connection, session: str, /) -> int:
    """Return how many of a session's events are not in the index."""
    query = "SELECT version FROM trimtab_sessions WHERE session = ?"
    head = connection.execute(query, (session,)).fetchone()
    return 0 if head is None else int(head[0]) - _index_state(connection, session)[1]


def index_batch(connection: sqlite3.Connection, session: str, /) -> None:
    """Index the next events of a session; inside a transaction that writes."""
    # `ascii` takes every character beyond ASCII for a letter: the terms stay as they were made.
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS trimtab_search"
        " USING fts5(terms, content='', columnsize=0, detail=none, tokenize='ascii')"
    )
    number, version = _index_state(connection, session)
    if not number:
        number = int(
            connection.execute("SELECT coalesce(max(number), 0) + 1 FROM trimtab_indexed").fetchone()[0]
        )
    last = version
    for row in _rows(connection, session, after=version, limit=BATCH_EVENTS):
        event = from_row(row, session=session)
        terms = " ".join(search_terms(searchable_text(event)))
        if terms:
            place = number << _SESSION_BITS | event.version
            connection.execute("INSERT INTO trimtab_search (rowid, terms) VALUES (?, ?)", (place, terms))
        last = event.version
    if last == version and waiting_events(connection, session):
        raise missing_event(session, version + 1)  # else whoever asks for the rest would ask for ever
    connection.execute("INSERT OR REPLACE INTO trimtab_indexed VALUES (?, ?, ?)", (session, number, last))


def _rows(connection: sqlite3.Connection, session: str, *, after: int, limit: int = -1) -> Iterable[Row]:
    return connection.execute(
        f"SELECT {COLUMNS} FROM trimtab_events WHERE session = ? AND version > ? ORDER BY version LIMIT ?",
        (session, after, limit),
    ).fetchall()


def best_rows(
    connection: sqlite3.Connection, session: str, terms: Sequence[str], /, *, limit: int
) -> list[Row]:
    """Return the rows to answer with, by the index and by reading what is not in it."""
    number, version = _index_state(connection, session)
    found = _term_counts(connection, number, terms) if number else Counter()
    for row in _rows(connection, session, after=version):
        event = from_row(row, session=session)
        found[event.version] = count_terms(event, terms)
    query = f"SELECT {COLUMNS} FROM trimtab_events WHERE session = ? AND version = ?"
    rows = [connection.execute(query, (session, best)).fetchone() for best in best_versions(found, limit)]
    return [row for row in rows if row is not None]


def _term_counts(connection: sqlite3.Connection, number: int, terms: Sequence[str]) -> Counter[int]:
    found: Counter[int] = Counter()
    first, last = number << _SESSION_BITS, (number + 1) << _SESSION_BITS
    for term in terms:
        rows = connection.execute(
            "SELECT rowid FROM trimtab_search WHERE trimtab_search MATCH ? AND rowid > ? AND rowid < ?",
            (f'"{term}"', first, last),
        )
        found.update(rowid - first for (rowid,) in rows.fetchall())
    return found


def is_indexed(
    connection: sqlite3.Connection, session: str, /, *, versions: Sequence[int] | None = None
) -> bool:
    """Tell whether any of these events of a session (None: of all) is in the index."""
    number, indexed = _index_state(connection, session)
    return bool(number) and (versions is None or any(version <= indexed for version in versions))


def wipe_index(connection: sqlite3.Connection, /) -> None:
    """Empty the whole index; sessions are put into it again when they are searched."""
    connection.execute("INSERT INTO trimtab_search (trimtab_search) VALUES ('delete-all')")
    connection.execute("DELETE FROM trimtab_indexed")
