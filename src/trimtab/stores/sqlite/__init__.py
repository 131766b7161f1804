"""`SQLiteStore`: sessions in one file, for any number of threads and processes of one machine."""

from __future__ import annotations

import contextlib
import math
import os
import random
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Literal, TypeVar, get_args

from trimtab._shared.checks import check_choice, number_of
from trimtab._shared.steps import Steps, run
from trimtab.errors import ConfigurationError, CorruptSessionError, StoreError, StoreUnavailableError
from trimtab.stores.base import Appended, AppendRequest, Event, Found, LoadRequest, SearchRequest
from trimtab.stores.fork import Forked
from trimtab.stores.labels import Receipt, Sessions, check_owner
from trimtab.stores.lists import BATCH_SESSIONS, ListRequest, Removal, check_one, remove_by_name, remove_owned
from trimtab.stores.newest import Newest, newest_in
from trimtab.stores.rows import Row, check_session_name, from_row, to_rows, without_gaps
from trimtab.stores.search import usable_terms
from trimtab.stores.sqlite.lists import (
    list_page,
    newest_rows,
    remove_batch,
    remove_ended,
    remove_session,
    set_labels,
)
from trimtab.stores.sqlite.rows import (
    MIGRATIONS,
    Head,
    append_rows,
    asked_erasures,
    empty_log,
    head_of,
    load_rows,
    migrate,
    note_erased,
    rewrite_rows,
    schema_version,
    write_anew,
)
from trimtab.stores.sqlite.search import (
    BATCH_EVENTS,
    best_rows,
    index_batch,
    index_rewrites,
    waiting_events,
)
from trimtab.stores.thread import ThreadedStore

# What SQLite reports, as our errors.


_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
_PASSING = {
    sqlite3.SQLITE_BUSY: "is locked by another writer. Ask again, or give the store more busy_seconds",
    sqlite3.SQLITE_LOCKED: "is locked by another writer. Ask again, or give the store more busy_seconds",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full. Nothing was stored; make room and ask again",
    sqlite3.SQLITE_IOERR: "could not be read or written. Ask again; if it stays so, look at the disk",
    sqlite3.SQLITE_NOMEM: "could not be read or written: no memory remains. Ask again",
    sqlite3.SQLITE_PROTOCOL: "is opened by too many at once. Ask again",
    sqlite3.SQLITE_INTERRUPT: "was interrupted. Ask again",
    sqlite3.SQLITE_CANTOPEN: "could not be opened. Ask again; if it stays so, look at its rights and at the"
    " number of open files",
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT: "is damaged", sqlite3.SQLITE_NOTADB: "is no SQLite database"}
_RESCUE = (
    "Restore it from a backup, or save what can be read with `sqlite3 FILE .recover`; nothing was changed"
)


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, None where Python itself refused."""
    try:
        return error.sqlite_errorcode & 0xFF
    except AttributeError:
        return None


def is_busy(error: sqlite3.Error, /) -> bool:
    """Tell whether somebody else held a lock."""
    return _code(error) in _BUSY


def store_error(error: sqlite3.Error, path: str, /) -> StoreError:
    """Make our error of one of SQLite."""
    code, where = _code(error), f"the database {path}"
    barrier = _barrier(Path(path))
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and barrier):
        rights = f"give this process the right to write to the file and to its folder {Path(path).parent}"
        return StoreError(f"{where} cannot be written ({error}): {barrier or rights}")
    if code in _PASSING:
        return StoreUnavailableError(f"{where} {_PASSING[code]} ({error})")
    if code in _DAMAGED:
        return CorruptSessionError(f"{where} {_DAMAGED[code]} ({error}). {_RESCUE}")
    if "no such module" in str(error):
        return StoreError(
            f"{where} has a search index of an older version of trimtab, which this build of SQLite cannot"
            f" remove ({error}). Open the file once with a Python whose SQLite has FTS5; nothing was"
            " changed"
        )
    if "decode to UTF-8" in str(error):
        return CorruptSessionError(f"{where} has text that is not valid ({error}). {_RESCUE}")
    return StoreError(f"{where} failed: {type(error).__name__}: {error}")


def _barrier(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; make it"
    return "it is a folder; name a file in it" if path.is_dir() else None


T = TypeVar("T")

Synchronous = Literal["NORMAL", "FULL", "EXTRA"]


# `Forked` is first: the `__init__` of a protocol, as `Store` is, calls no other.
class SQLiteStore(Forked, ThreadedStore):
    """Keeps sessions in one SQLite file; needs only the standard library.

    Safe between threads, tasks and processes of one machine, but not on a network file system. The file is
    opened at first use, and again after a fork. Each append is one transaction, which is on disk when the
    call returns.

    After `delete` and rewrites, no byte of the text remains in the file or next to it. For this the file is
    rewritten, which takes time in proportion to its size. If the process is killed meanwhile, the next one
    that opens the file completes it.

    Args:
        path: The file; ":memory:" for a store that ends with the process.
        busy_seconds: Maximum wait for other writers before a StoreUnavailableError.
        synchronous: "FULL" survives a power cut; "NORMAL" is faster, but a power cut (not a crash of the
            process) may lose the last appends; "EXTRA" is SQLite's name for more than FULL.

    Example:
        >>> from trimtab.stores import AppendRequest, Event, LoadRequest
        >>> with SQLiteStore(":memory:") as store:
        ...     hello = Event(id="e1", kind="message", time=0.0, data={"message": {"content": "Hello"}})
        ...     _ = store.append(AppendRequest(session="s", expected_version=0, events=[hello]))
        ...     print([event.message["content"] for event in store.load(LoadRequest(session="s"))])
        ['Hello']
    """

    def __init__(
        self, path: str | os.PathLike[str], *, busy_seconds: float = 5.0, synchronous: Synchronous = "FULL"
    ) -> None:
        self._path = _check_path(path)
        seconds = number_of(busy_seconds)
        if seconds is None or seconds < 0:
            raise ConfigurationError(
                f"busy_seconds must be a number of seconds, 0 or more, not {busy_seconds!r}",
                argument="busy_seconds",
            )
        self._busy_seconds = float(seconds)
        self._synchronous = check_choice("synchronous", synchronous, get_args(Synchronous))
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._lost: str | None = None
        self._lock = RLock()
        self._at_rest = False
        super().__init__()  # last: from now on it is told of forks, and needs its lock for them

    def __repr__(self) -> str:
        """Show the file and the options."""
        options = f"busy_seconds={self._busy_seconds!r}, synchronous={self._synchronous!r}"
        return f"SQLiteStore({self._path!r}, {options})"

    @property
    def path(self) -> str:
        """The file, absolute, or ":memory:"."""
        return self._path

    @property
    def ends_with_process(self) -> bool:
        """True if the store is in memory."""
        return self._path == ":memory:"

    # -- the protocol

    def append(self, request: AppendRequest, /) -> Appended:
        rows, rewrites = to_rows(request)
        labels = request.new_labels()

        def work(connection: sqlite3.Connection) -> tuple[Appended, int]:
            answer = append_rows(connection, request, rows)
            if rewrites and not answer.duplicate:
                index_rewrites(connection, request.session, request.rewrites)
                rewrite_rows(connection, request, rewrites)
            if labels is not None and not answer.duplicate:
                set_labels(connection, request.session, labels)
            return answer, waiting_events(connection, request.session)

        answer, waiting = self._run(work, writes=True)
        if rewrites:
            if request.erase:
                self._erase()
        elif waiting >= BATCH_EVENTS:
            # One batch more than was added, so that an older log, or one whose index was emptied, catches up.
            # What fails here is told by the search: the events are stored.
            with contextlib.suppress(StoreError):
                self._index(request.session, most=1 + len(rows) // BATCH_EVENTS)
        return answer

    def _index(self, session: str, *, most: float = math.inf) -> None:
        """Put what is not in the index into it, batch by batch; fewer events than one remain."""
        while most > 0:
            if self._run(lambda one: waiting_events(one, session)) < BATCH_EVENTS:
                return
            self._run(lambda one: index_batch(one, session), writes=True)
            most -= 1

    def load(self, request: LoadRequest, /) -> list[Event]:
        session = check_session_name(request.session)

        def work(connection: sqlite3.Connection) -> tuple[Head, list[Row]]:
            head = head_of(connection, session, request.incarnation) or Head(0, "")
            return head, load_rows(connection, request)

        head, rows = self._run(work)
        events = [from_row(row, session=session, incarnation=head.incarnation) for row in rows]
        return without_gaps(events, request, version=head.version)

    def load_newest(self, names: Sequence[str], /) -> Newest:
        asked = [check_session_name(name) for name in names]
        parts = [asked[at : at + BATCH_SESSIONS] for at in range(0, len(asked), BATCH_SESSIONS)]
        found = [self._run(partial(newest_rows, names=part)) for part in parts]
        return newest_in(row for rows in found for row in rows)

    def search(self, request: SearchRequest, /) -> Found:
        """Find messages with any of the terms; see `Store.search`.

        Events are indexed 200 at a time. A log of an older trimtab is indexed in parts
        with each append, and the rest by the first search.
        """
        session = check_session_name(request.session)
        terms = usable_terms(request.terms)
        if not terms or not request.limit:
            return Found()
        self._index(session)

        def work(connection: sqlite3.Connection) -> tuple[Head, list[Row], int]:
            head = head_of(connection, session, request.incarnation) or Head(0, "")
            return head, *best_rows(connection, session, terms, limit=request.limit)

        head, rows, since = self._run(work)
        events = (from_row(row, session=session, incarnation=head.incarnation) for row in rows)
        return Found(events, since=since)

    def delete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        """Remove a session, or all of an owner; no byte of it remains in the files.

        The file is rewritten once for each call.

        Raises:
            SessionDeletedError: Another session has its name now.
            StoreUnavailableError: The session is removed, but another connection reads the file or the disk
                is full, so the files cannot be cleaned yet. Ask again. For an owner the receipt says so.
        """
        check_one(session, owner)
        if session is None:
            steps = remove_owned(check_owner(owner), self._list_now, self._remove_now)
            return self._erase_after(run(steps, lambda ask: ask))  # it asks nothing
        name = check_session_name(session)

        def work(connection: sqlite3.Connection) -> Receipt:
            if head_of(connection, name, None) and head_of(connection, name, incarnation):
                return remove_session(connection, name)
            return Receipt()

        receipt = self._run(work, writes=True)
        self._erase()
        return receipt

    def _list_now(self, request: ListRequest) -> Steps[Sessions]:
        yield from ()
        return self._list(request)

    def _remove_now(self, batch: Removal) -> Steps[Receipt]:
        yield from ()
        return self._run(lambda one: remove_batch(one, batch), writes=True)

    def delete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names; the file is rewritten once.

        Args:
            names: Of sessions that are nobody's; one that has an owner stays.
        """
        return self._erase_after(run(remove_by_name(names, self._remove_now), lambda ask: ask))

    def _erase_after(self, receipt: Receipt) -> Receipt:
        """Clean the files after an order about many sessions; if that fails the receipt says so."""
        try:
            self._erase()
        except StoreError as error:
            return replace(receipt, not_erased=str(error))
        return receipt

    def _list(self, request: ListRequest) -> Sessions:
        return self._run(lambda one: list_page(one, request))

    def _expire(self, now: float, limit: int) -> Receipt:
        receipt = Receipt(more=True)
        while receipt.more and receipt.sessions < limit:
            batch = partial(remove_ended, now=now, limit=limit - receipt.sessions)
            receipt += self._run(batch, writes=True)
        return self._erase_after(receipt)

    def close(self) -> None:
        """Close the file; the next use opens it again. A store in memory ends here."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
                if self._path == ":memory:":
                    self._lost = "was closed"

    # -- the file

    def _run(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T:
        """Run a transaction, again while another connection holds the lock and there is time."""
        return self._while_busy(lambda: self._transact(self._open(), work, writes=writes))

    def _while_busy(self, call: Callable[[], T]) -> T:
        """Call, and again while another connection is in the way and there is time."""
        deadline = time.monotonic() + self._busy_seconds
        while True:
            with self._lock, self._errors():
                try:
                    return call()
                except sqlite3.Error as error:
                    # SQLite waits by itself, but answers at once where waiting might be a deadlock.
                    if not is_busy(error) or time.monotonic() >= deadline:
                        raise
            time.sleep(random.uniform(0.001, 0.02))

    def _transact(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], *, writes: bool
    ) -> T:
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            answer = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise
        return answer

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Take a transaction back; a connection that cannot is given up."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection = None
            connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if not is_busy(error):
                # The next call starts from a fresh connection.
                self._give_up()
            raise store_error(error, self._path) from error
        except UnicodeDecodeError as error:  # of SQLite's own words, that quote what is damaged
            self._give_up()
            raise CorruptSessionError(f"the database {self._path} is damaged ({error}). {_RESCUE}") from error

    def _give_up(self) -> None:
        if self._path != ":memory:" and self._connection is not None:
            connection, self._connection = self._connection, None
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._lost is not None:
            raise StoreError(f"this store in memory {self._lost}, and its sessions are lost: make a new one")
        if self._connection is not None and self._file != identity_of(self._path):
            # Not closed: that would take away the log of a file that stands in its place now.
            _ABANDONED.append(self._connection)
            self._connection = None
            raise StoreError(
                f"the file {self._path} was moved, deleted or replaced while it was open. Nothing was"
                " stored; the next call opens the current file"
            )
        if identity_of(self._path) in _HELD_BY_PARENT:
            raise StoreError(
                f"this process was forked while another thread was busy with {self._path} for longer than"
                f" {self._busy_seconds:g} seconds, and cannot use that file. Fork when no session is in"
                " use, or start processes with spawn"
            )
        if self._connection is None:
            connection = sqlite3.connect(
                self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._file = connection, identity_of(self._path)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # First of all, so that a file of a newer trimtab is left as it is.
        version = schema_version(connection)
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode not in ("wal", "memory"):
            raise StoreError(
                f"the database {self._path} cannot keep a write-ahead log there (it has {mode!r})"
            )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA secure_delete = ON")
        if version < len(MIGRATIONS):
            migrate(connection)
        asked = asked_erasures(connection)
        if asked and self._path != ":memory:":
            self._go_on_erasing(connection, asked)

    def _go_on_erasing(self, connection: sqlite3.Connection, asked: int) -> None:
        """Clean the files of a process that was killed, unless something is in the way.

        Another process that reads, or a full disk: it may have gone when the file is opened next.
        """
        connection.execute("PRAGMA busy_timeout = 0")
        with contextlib.suppress(sqlite3.Error):
            write_anew(connection)
            empty_log(connection)
            note_erased(connection, asked)
        connection.execute(f"PRAGMA busy_timeout = {round(self._busy_seconds * 1_000)}")

    def _erase(self) -> None:
        """Write the file anew and empty its log, unless nothing waits for that."""
        asked = self._run(asked_erasures)
        if not asked or self._path == ":memory:":
            return
        try:
            self._while_busy(lambda: write_anew(self._open()))
            self._while_busy(lambda: empty_log(self._open()))
            self._run(lambda one: note_erased(one, asked), writes=True)
        except StoreUnavailableError as error:
            raise StoreUnavailableError(
                f"the text is removed, but the files of {self._path} still contain it: {error.__cause__}."
                " Repeat the delete, redaction or prune when nothing else reads the file and the disk has"
                " room for a second copy: it then cleans the files, and so does the next process that"
                " opens them"
            ) from error.__cause__

    def _before_fork(self) -> None:
        """Wait for the transaction of another thread, and close the file.

        SQLite knows for the whole process which connection has which lock: a child that inherits one would
        find the file locked for ever.
        """
        self._at_rest = self._lock.acquire(timeout=self._busy_seconds)
        if self._at_rest and self._connection is not None and not self._connection.in_transaction:
            self._give_up()

    def _after_fork(self, *, in_child: bool) -> None:
        if not in_child:
            if self._at_rest:
                self._lock.release()
            return
        if self._connection is not None:  # never closed here: that would spoil it in the parent
            _ABANDONED.append(self._connection)
            if self._path == ":memory:":
                self._lost = "belongs to the process that made it"
            elif self._file is not None:
                _HELD_BY_PARENT.add(self._file)
        self._connection = None
        self._lock = RLock()


_ABANDONED: list[sqlite3.Connection] = []
"""Connections to keep but not to use: closing one changes files that are another's now."""

_HELD_BY_PARENT: set[tuple[int, int]] = set()
"""Files that a thread of the parent was in the middle of, longer than the fork could wait."""


def _check_path(path: Any) -> str:
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigurationError(
            "path must be a text or a Path of a file, such as 'chats.db', or ':memory:', not empty and"
            " without a zero character",
            argument="path",
        )
    if text == ":memory:":
        return text
    if text.startswith(("sqlite:", "file:")) or "://" in text:
        raise ConfigurationError(
            "path must be a file, not a URL: pass a URL to open_store()", argument="path"
        )
    return os.path.abspath(text)


def identity_of(path: str, /) -> tuple[int, int] | None:
    """Tell which file stands at a path; None for one in memory, and where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
