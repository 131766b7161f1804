"""Records in a SQLite file, for the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeVar

from trimtab.errors import ConfigurationError
from trimtab.stores.records.base import WAIT_SECONDS, Bounds, Records
from trimtab.stores.sqlite import store_error

T = TypeVar("T")

_TABLE = """
CREATE TABLE IF NOT EXISTS trimtab_records
(name TEXT PRIMARY KEY, data BLOB NOT NULL, saved REAL NOT NULL) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS trimtab_records_saved ON trimtab_records (saved)"


class SQLiteRecords(Records):
    """Keeps records in one file. Each call has a connection of its own, so threads and forks share none.

    Args:
        path: The file.
        bounds: How much is kept.

    Raises:
        ConfigurationError: It is in memory, where no other process would find it.
    """

    def __init__(self, path: str, bounds: Bounds) -> None:
        if path == ":memory:":
            raise ConfigurationError("processes share no records in memory: name a file, such as learned.db")
        self._path, self._bounds = os.path.abspath(path), bounds
        self._is_made = False

    @property
    def place(self) -> str:
        """The file, absolute."""
        return self._path

    def load(self, names: Sequence[str], /) -> list[bytes | None]:
        oldest = time.time() - self._bounds.kept_seconds

        def work(connection: sqlite3.Connection) -> list[bytes | None]:
            asked = "SELECT data FROM trimtab_records WHERE name = ? AND saved >= ?"
            rows = [connection.execute(asked, (name, oldest)).fetchone() for name in names]
            return [None if row is None else bytes(row[0]) for row in rows]

        return self._run(work)

    def save(self, name: str, before: bytes | None, after: bytes, /) -> bool:
        now = time.time()

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "DELETE FROM trimtab_records WHERE saved < ?", (now - self._bounds.kept_seconds,)
            )
            row = connection.execute("SELECT data FROM trimtab_records WHERE name = ?", (name,)).fetchone()
            is_same = (None if row is None else bytes(row[0])) == before
            if is_same:
                connection.execute("REPLACE INTO trimtab_records VALUES (?, ?, ?)", (name, after, now))
            if is_same and before is None:
                connection.execute(
                    "DELETE FROM trimtab_records WHERE name IN"
                    " (SELECT name FROM trimtab_records ORDER BY saved DESC LIMIT -1 OFFSET ?)",
                    (self._bounds.most_records,),
                )
            connection.execute("COMMIT")
            return is_same

        return self._run(work)

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with closing(sqlite3.connect(self._path, timeout=WAIT_SECONDS, isolation_level=None)) as one:
                if not self._is_made:
                    one.execute("PRAGMA journal_mode = WAL")
                    one.execute(_TABLE)
                    one.execute(_INDEX)
                one.execute("PRAGMA synchronous = OFF")  # what a power cut takes is learned again
                answer = work(one)
                self._is_made = True
                return answer
        except sqlite3.Error as error:
            self._is_made = False  # somebody may have taken the file away
            raise store_error(error, self._path) from error
