"""No byte of what was removed stays in the files of `SQLiteStore`."""

from __future__ import annotations

import sqlite3

__all__ = ["ask_erasure", "asked_erasures", "empty_log", "note_erased", "write_anew"]


def ask_erasure(connection: sqlite3.Connection, /) -> None:
    """Note that something was removed; in the transaction that removes it, so that no crash forgets it."""
    connection.execute("UPDATE trimtab_erasure SET asked = asked + 1")


def asked_erasures(connection: sqlite3.Connection, /) -> int:
    """Tell up to which erasure the files are still to be cleaned; 0 if nothing waits for that."""
    asked, done = connection.execute("SELECT asked, done FROM trimtab_erasure").fetchone()
    return 0 if asked == done else int(asked)


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
