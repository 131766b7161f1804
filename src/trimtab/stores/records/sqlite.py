"""Records in a SQLite file, for the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from trimtab.errors import ConfigurationError, StoreUnavailableError
from trimtab.stores.records.base import Bounds, Records
from trimtab.stores.sqlite import identity_of, store_error

T = TypeVar("T")

_TABLE = """
CREATE TABLE IF NOT EXISTS trimtab_records
(name TEXT PRIMARY KEY, data BLOB NOT NULL, saved REAL NOT NULL) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS trimtab_records_saved ON trimtab_records (saved)"


class SQLiteRecords(Records):
    """Keeps records in one file.

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
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, tuple[int, int] | None] = 0, None
        """In which process, and which file."""

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
        with self._lock:
            self._let_go()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a transaction on the connection of this process, which threads take in turn."""
        if not self._lock.acquire(timeout=self._bounds.wait_seconds):
            raise StoreUnavailableError(f"the database {self._path} is busy with others. Ask again")
        try:
            return work(self._open())
        except sqlite3.Error as error:
            self._let_go()
            raise store_error(error, self._path) from error
        finally:
            self._lock.release()

    def _open(self) -> sqlite3.Connection:
        """Return the connection; a new one in a forked process, and where another file stands at the path."""
        found, self._connection = self._connection, None
        if found is not None and self._opened == (os.getpid(), identity_of(self._path)):
            self._connection = found
            return found
        if found is not None:
            _ABANDONED.append(found)  # to close it would take away the log of the file that is there now
        _make(self._path)
        one = sqlite3.connect(
            self._path,
            timeout=self._bounds.wait_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            one.execute("PRAGMA journal_mode = WAL")
            one.execute("PRAGMA synchronous = OFF")  # what a power cut takes is learned again
            one.execute(_TABLE)
            one.execute(_INDEX)
        except BaseException:
            one.close()
            raise
        self._connection, self._opened = one, (os.getpid(), identity_of(self._path))
        return one

    def _let_go(self) -> None:
        found, self._connection = self._connection, None
        if found is not None:
            found.close()


def _make(path: str) -> None:
    """Make the file so that no other user reads it; SQLite gives those beside it the same rights."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError:
        return  # it is there, with the rights that it has; or cannot be made, which SQLite says in its words


_ABANDONED: list[sqlite3.Connection] = []
"""Connections that are not closed: their file, or their process, is another's now."""
