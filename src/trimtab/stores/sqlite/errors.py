"""What SQLite reports, as our errors."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trimtab.errors import CorruptSessionError, StoreError, StoreUnavailableError

__all__ = ["is_busy", "store_error"]

_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
_PASSING = {
    sqlite3.SQLITE_BUSY: "is locked by another writer. Ask again, or give the store more busy_seconds",
    sqlite3.SQLITE_LOCKED: "is locked by another writer. Ask again, or give the store more busy_seconds",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full. Nothing was stored; make room and ask again",
    sqlite3.SQLITE_IOERR: "could not be read or written. Ask again; if it stays so, look at the disk",
    sqlite3.SQLITE_NOMEM: "could not be read or written: no memory is left. Ask again",
    sqlite3.SQLITE_PROTOCOL: "is opened by too many at once. Ask again",
    sqlite3.SQLITE_INTERRUPT: "was interrupted. Ask again",
    sqlite3.SQLITE_CANTOPEN: "could not be opened. Ask again; if it stays so, look at its rights and at the"
    " number of open files",
}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is no SQLite database",
}
_RESCUE = (
    "Restore it from a backup, or save what can be read with `sqlite3 FILE .recover`; nothing was changed"
)


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, None where Python itself refused."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(error: sqlite3.Error, /) -> bool:
    """Tell whether somebody else held a lock."""
    return _code(error) in _BUSY


def store_error(error: sqlite3.Error, path: str, /) -> StoreError:
    """Make our error of one of SQLite."""
    code, where = _code(error), f"the database {path}"
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and _is_barred(path)):
        return StoreError(f"{where} cannot be written ({error}): {_barrier(path)}")
    if code in _PASSING:
        return StoreUnavailableError(f"{where} {_PASSING[code]} ({error})")
    if code in _DAMAGED:
        return CorruptSessionError(f"{where} {_DAMAGED[code]} ({error}). {_RESCUE}")
    if "decode to UTF-8" in str(error):
        return CorruptSessionError(f"{where} holds text that is none ({error}). {_RESCUE}")
    return StoreError(f"{where} failed: {type(error).__name__}: {error}")


def _is_barred(path: str) -> bool:
    return not Path(path).parent.is_dir() or Path(path).is_dir()


def _barrier(path: str) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}; make it"
    if Path(path).is_dir():
        return "it is a folder; name a file in it"
    return f"give this process the right to write to the file and to its folder {folder}"
