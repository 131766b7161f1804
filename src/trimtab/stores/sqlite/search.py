"""The index of `SQLiteStore`: a table of terms that is filled every 200 events.

It holds terms, how often each message has them, and how long that message is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trimtab._shared.steps import run
from trimtab.errors import CorruptSessionError
from trimtab.stores.base import Event, LoadRequest
from trimtab.stores.rows import Row, from_row, missing_event
from trimtab.stores.search import MAX_POSTINGS, Ranking, event_terms
from trimtab.stores.sqlite.rows import head_of, load_rows, number_in

BATCH_EVENTS = 200
"""So many events are indexed in one transaction, and fewer are read where they stand: neither an append nor
a search of a session that grows writes to the index each time, and no other writer waits long."""


@dataclass(slots=True)
class Indexed:
    """How far a session is in the index."""

    number: int = 0
    """What the index calls it; 0 if it is not in there."""
    version: int = 0
    texts: int = 0
    """How many of its messages have a text."""
    chars: int = 0
    """How long these are together."""


def _progress(connection: sqlite3.Connection, session: str) -> Indexed:
    query = "SELECT number, version, texts, chars FROM trimtab_indexed WHERE session = ?"
    found = connection.execute(query, (session,)).fetchone()
    return Indexed() if found is None else Indexed(*_whole(session, found))


def _whole(session: str, numbers: Iterable[Any]) -> Iterator[int]:
    """Check numbers of the index: SQLite keeps whatever was written into a damaged file."""
    for number in numbers:
        if type(number) is not int:
            raise CorruptSessionError(
                f"session {session!r}: the index of its words is damaged. Its events are intact: copy it to"
                " another store with copy_session(…), which builds a new index",
                session=session,
            )
        yield number


def _head_version(connection: sqlite3.Connection, session: str) -> int:
    head = head_of(connection, session, None)
    return head.version if head else 0


def waiting_events(connection: sqlite3.Connection, session: str, /) -> int:
    """Return how many of a session's events are not in the index."""
    head = _head_version(connection, session)
    return head - _progress(connection, session).version if head else 0


def index_batch(connection: sqlite3.Connection, session: str, /) -> None:
    """Index the next events of a session; inside a transaction that writes."""
    known = _progress(connection, session)
    rows = _rows(connection, session, after=known.version, limit=BATCH_EVENTS)
    if not rows:
        if waiting_events(connection, session):  # whoever asks for the rest would else ask for ever
            raise missing_event(session, known.version + 1)
        return
    if not known.number:
        newest = connection.execute("SELECT coalesce(max(number), 0) FROM trimtab_indexed").fetchone()
        known.number = number_in(newest) + 1
    _add(connection, known, (from_row(row, session=session) for row in rows))
    done = (session, known.number, rows[-1][0], known.texts, known.chars)
    connection.execute("INSERT OR REPLACE INTO trimtab_indexed VALUES (?, ?, ?, ?, ?)", done)


def _add(connection: sqlite3.Connection, known: Indexed, events: Iterable[Event]) -> None:
    """Put events into the index."""
    for event in events:
        chars, terms = event_terms(event)
        connection.executemany(
            "INSERT INTO trimtab_terms VALUES (?, ?, ?, ?, ?)",
            [(known.number, term, event.version, often, chars) for term, often in terms.items()],
        )
        known.texts += chars > 0
        known.chars += chars


def index_rewrites(connection: sqlite3.Connection, session: str, rewrites: Sequence[Event], /) -> None:
    """Take the terms of stored events out of the index, and put in those of what stands there from now on."""
    known = _progress(connection, session)
    changed = [event for event in rewrites if event.version <= known.version]
    for event in changed:
        row = _row(connection, session, event.version)
        if row is None:
            raise missing_event(session, event.version)
        chars, terms = event_terms(from_row(row, session=session))
        connection.executemany(
            "DELETE FROM trimtab_terms WHERE number = ? AND term = ? AND version = ?",
            [(known.number, term, event.version) for term in terms],
        )
        known.texts -= chars > 0
        known.chars -= chars
    if changed:
        _add(connection, known, changed)
        update = "UPDATE trimtab_indexed SET texts = ?, chars = ? WHERE session = ?"
        connection.execute(update, (known.texts, known.chars, session))


def _rows(connection: sqlite3.Connection, session: str, *, after: int, limit: int | None = None) -> list[Row]:
    return load_rows(connection, LoadRequest(session=session, after=after, limit=limit))


def _row(connection: sqlite3.Connection, session: str, version: int) -> Row | None:
    found = _rows(connection, session, after=version - 1, limit=1)
    return found[0] if found and found[0][0] == version else None


def best_rows(
    connection: sqlite3.Connection, session: str, terms: Sequence[str], /, *, limit: int
) -> tuple[list[Row], int]:
    """Return the rows to answer with, and since which version all were looked at.

    By the index and by reading what is not in it.
    """
    known = _progress(connection, session)

    def postings(terms: Sequence[str], most: int) -> Iterator[Sequence[Any]]:
        query = (
            "SELECT term, version, often, chars FROM trimtab_terms WHERE number = ? AND term = ?"
            " ORDER BY version DESC LIMIT ?"
        )
        for term in terms:
            for _, *numbers in connection.execute(query, (known.number, term, most + 1)):
                yield term, *_whole(session, numbers)

    head = (_head_version(connection, session), known.texts, known.chars)
    ranking = Ranking.of_rows(head, terms, postings(terms, MAX_POSTINGS))
    rows = _rows(connection, session, after=known.version)
    ranking.add_events(from_row(row, session=session) for row in rows)
    ranking.add_rows(postings(ranking.look_further(), ranking.most))
    best = run(ranking.best(limit), partial(_kinds, connection, session))
    found = (_row(connection, session, version) for version in best)
    return [row for row in found if row is not None], ranking.since


def _kinds(connection: sqlite3.Connection, session: str, versions: Sequence[int]) -> dict[int, str]:
    """Say of what kind events are."""
    kinds: dict[int, str] = {}
    for at in range(0, len(versions), BATCH_EVENTS):
        some = versions[at : at + BATCH_EVENTS]
        places = ", ".join("?" * len(some))
        query = f"SELECT version, kind FROM trimtab_events WHERE session = ? AND version IN ({places})"
        kinds.update(connection.execute(query, (session, *some)))
    return kinds
