"""The key records of sessions: where the wrapped secret of each is kept, changed and forgotten.

A record is a small session of its own in the store of keys, called `trimtab:key:` and a random id that the
session's rows name. A session that is deleted and begun again has another record, so that nobody who deletes
one can take the key of the next. Its newest event has what counts; those before it are emptied.
"""

from __future__ import annotations

import os
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from trimtab._shared.steps import Steps
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    EncryptionKeyError,
    KeyDroppedError,
    SessionDeletedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.stores.base import AppendRequest, Event, LoadRequest, Store
from trimtab.stores.encryption.cipher import (
    NONCE_BYTES,
    Place,
    SessionCipher,
    aead,
    bind,
    derive,
    unreadable,
)
from trimtab.stores.encryption.keys import SECRET_BYTES, Keys, as_bytes
from trimtab.stores.labels import KEY_PREFIX, Receipt
from trimtab.stores.lists import ManyDeleter
from trimtab.stores.newest import read_newest

RECORD_TIME = 1e11
"""The time of their events: behind all sessions in a list by use. When they were made is in their data."""

_MOST_SECRETS = 1_024
"""So many unwrapped secrets are remembered, so that a key management service is not asked for each call."""


class Ask(NamedTuple):
    """A call of a store; yielded by an operation."""

    store: Store
    method: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = {}


class Wrap(NamedTuple):
    """A call of the keys, which may have to be awaited; yielded by an operation."""

    keys: Keys
    call: Callable[[], bytes | Awaitable[bytes]]


def row_of(store: Store, session: str, /, *, newest: bool = True) -> Steps[Event | None]:
    """Read the newest row of a session as it is stored, or the oldest; None: there is no session."""
    request = LoadRequest(session=session, limit=1, newest_first=newest)
    rows: list[Event] = yield Ask(store, "load", (request,))
    return rows[0] if rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is kept of a session's key."""

    id: str
    session: str
    key: str
    """Id of the key that wrapped the secret."""
    wrapped: bytes
    """The newest secret."""
    older: bytes = b""
    """The secrets before it, encrypted by a key derived from it: copies of old rows stay readable. It is not
    empty for the first secret, too: no field of the record is changed without that being noticed.
    """
    generation: int = 1
    """How many secrets there are."""
    version: int = 0
    """Of the record in the store of keys."""

    @property
    def place(self) -> Place:
        """What rows say that are written now."""
        return Place(self.id, self.generation)

    def is_newer(self, place: Place, /) -> bool:
        """Tell whether a row is to be encrypted anew: a slow rotation leaves those of faster ones alone."""
        return place.key != self.id or place.generation < self.generation

    @property
    def bound(self) -> bytes:
        """What a wrapped secret belongs to."""
        return bind(self.session, self.id, self.key, self.generation)

    def to_data(self) -> dict[str, Any]:
        """Write it down."""
        return {
            "session": self.session,
            "key": self.key,
            "wrapped": _text(self.wrapped),
            "older": _text(self.older),
            "generation": self.generation,
            "made": time.time(),
        }

    @classmethod
    def of(cls, id: str, event: Event, /) -> Record:
        """Read one.

        Raises:
            CorruptSessionError: It was changed by hand.
        """
        data = event.data
        try:
            record = cls(
                id=id,
                session=str(data["session"]),
                key=str(data["key"]),
                wrapped=b64decode(data["wrapped"], validate=True),
                older=b64decode(data["older"], validate=True),
                generation=int(data["generation"]),
                version=event.version,
            )
            if record.generation < 1:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise CorruptSessionError(
                f"the key record {KEY_PREFIX}{id} cannot be read: it was changed. Restore it from a backup",
                session=f"{KEY_PREFIX}{id}",
                version=event.version,
            ) from None
        return record


class KeyRecords:
    """Makes, reads, changes and drops the key records of sessions."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self.store, self.keys = store, keys
        self._known: dict[Record, list[bytes]] = {}
        """Secrets by all of the record that is kept of them, the oldest first."""

    def make(self, session: str, /) -> Steps[Record]:
        """Make the key of a session that begins."""
        record = Record(id=secrets.token_hex(8), session=session, key=self.keys.current, wrapped=b"")
        secret = os.urandom(SECRET_BYTES)
        record = yield from self._wrap(secret, record, [])
        yield from self._write(record, replaces=None)
        self._remember(record, [secret])
        return replace(record, version=1)

    def read(self, id: str, /, session: str) -> Steps[Record]:
        """Read the record of a key.

        Raises:
            KeyDroppedError: It was dropped.
            EncryptionKeyError: There is none in the store of keys, or it is that of another session.
        """
        return self._record_in((yield from row_of(self.store, KEY_PREFIX + id)), id, session)

    def read_many(self, ids: Mapping[str, str], /) -> Steps[dict[str, Record | ContextError]]:
        """Read the records of many sessions, or say why one of them cannot be; see `read`.

        Args:
            ids: Of the keys, by the names of their sessions.
        """
        rows = yield from read_newest(self.store, [KEY_PREFIX + id for id in ids.values()])
        found: dict[str, Record | ContextError] = {}
        for session, id in ids.items():
            row = rows.get(KEY_PREFIX + id)
            try:
                found[session] = row if isinstance(row, ContextError) else self._record_in(row, id, session)
            except (CorruptSessionError, EncryptionKeyError) as error:
                found[session] = error
        return found

    def _record_in(self, row: Event | None, id: str, session: str) -> Record:
        newest = self._check(row, id, session)
        if newest.kind == "dropped":
            self.forget({id})
            raise KeyDroppedError(
                f"session {session!r}: its key {id} was dropped, so nobody can read its text again. Delete"
                " the session to remove its rows",
                session=session,
            )
        return Record.of(id, newest)

    def cipher(
        self, record: Record, session: str, /, *, generation: int | None = None
    ) -> Steps[SessionCipher]:
        """Give what encrypts and decrypts rows of a generation; None: the newest.

        Raises:
            EncryptionKeyError: The key that wrapped the secret is not there; the error names it.
        """
        wanted = record.generation if generation is None else generation
        found = yield from self._secrets(record, session)
        if not 1 <= wanted <= len(found):
            raise EncryptionKeyError(
                f"session {session!r}: its key {record.id} has no generation {wanted}, only"
                f" {len(found)}: the record of the key is older than the session. Restore a newer backup of"
                " the store of keys",
                session=session,
                key=record.key,
            )
        return SessionCipher.of(found[wanted - 1], session, Place(record.id, wanted))

    def renew(self, record: Record, session: str, /) -> Steps[Record]:
        """Give a session a new secret, wrapped by the current key; the older ones are wrapped with it."""
        older = yield from self._secrets(record, session)
        secret = os.urandom(SECRET_BYTES)
        new = replace(record, key=self.keys.current, generation=record.generation + 1)
        new = yield from self._wrap(secret, new, older)
        yield from self._write(new, replaces=record)
        self.forget({record.id})
        self._remember(new, [*older, secret])
        return replace(new, version=record.version + 1)

    def drop(self, id: str, /, session: str) -> Steps[None]:
        """Forget a key: the record says so from now on, and nothing of the secret remains.

        Raises:
            EncryptionKeyError: There is none in the store of keys, or it is that of another session.
        """
        while True:
            newest = self._check((yield from row_of(self.store, KEY_PREFIX + id)), id, session)
            self.forget({id})
            if newest.kind == "dropped":  # perhaps whoever did it was killed before the files were clean
                yield from self.clean()
                return
            event = Event(
                id=secrets.token_hex(8),
                kind="dropped",
                time=RECORD_TIME,
                data={"session": session, "made": time.time()},
            )
            try:
                yield from self._append(id, newest, event, erase=True)
            except (VersionConflictError, SessionDeletedError):
                continue  # it was renewed or removed meanwhile
            return

    def remove(self, id: str, /, session: str) -> Steps[None]:
        """Remove the record of a session that is deleted; one of another session stays."""
        newest = yield from row_of(self.store, KEY_PREFIX + id)
        if newest is None or newest.data.get("session") == session:
            self.forget({id})
            yield Ask(self.store, "delete", (KEY_PREFIX + id,))

    def forget(self, ids: Collection[str] | None, /) -> None:
        """Forget the unwrapped secrets of sessions that are gone; None: all."""
        for known in [one for one in list(self._known) if ids is None or one.id in ids]:
            self._known.pop(known, None)

    def remove_all(self, ids: Collection[str], /) -> Steps[Receipt]:
        """Remove the records of sessions that are gone; the receipt counts these."""
        names = [KEY_PREFIX + id for id in ids]
        if isinstance(self.store, ManyDeleter):
            receipt: Receipt = yield Ask(self.store, "delete_many", (names,))
            return receipt
        for name in names:
            yield Ask(self.store, "delete", (name,))
        return Receipt(sessions=len(names))

    def clean(self, *more: Store) -> Steps[None]:
        """Clean the files of the store of keys, and of others, of all that was rewritten."""
        unused = f"{KEY_PREFIX}{secrets.token_hex(8)}"  # a deletion cleans, also that of a name nobody has
        for store in (self.store, *(one for one in more if one is not self.store)):
            yield Ask(store, "delete", (unused,))

    def _check(self, newest: Event | None, id: str, session: str) -> Event:
        """Return what counts of a session's record, if it is there and that of the session."""
        if newest is None:
            self.forget({id})
            raise EncryptionKeyError(
                f"session {session!r}: its key {id} is not in the store of keys. The session was deleted"
                " meanwhile, or the key is lost or in another store: pass that one as key_store=, or restore"
                " it from a backup",
                session=session,
            )
        if newest.data.get("session", session) != session:
            raise EncryptionKeyError(
                f"session {session!r}: its rows name a key of another session: they were copied without"
                " their keys, and cannot be read. Delete this session, and copy with copy_session(store,"
                " store, …) where store is the encrypted(…) one",
                session=session,
                key=str(newest.data.get("key", "")),
            )
        return newest

    def _write(self, record: Record, *, replaces: Record | None) -> Steps[None]:
        event = Event(id=secrets.token_hex(8), kind="key", time=RECORD_TIME, data=record.to_data())
        if replaces is None:
            yield Ask(
                self.store,
                "append",
                (AppendRequest(session=KEY_PREFIX + record.id, expected_version=0, events=[event]),),
            )
            return
        newest = yield from row_of(self.store, KEY_PREFIX + record.id)
        if newest is None or newest.version != replaces.version:
            raise VersionConflictError(
                f"session {record.session!r}: its key was changed meanwhile, and nothing was changed: repeat",
                session=record.session,
                expected_version=replaces.version,
                actual_version=newest.version if newest else 0,
            )
        # Files are cleaned once for a whole rotation.
        yield from self._append(record.id, newest, event, erase=False)

    def _append(self, id: str, newest: Event, event: Event, *, erase: bool) -> Steps[None]:
        """Write the newest event of a record, and empty the one before it."""
        request = AppendRequest(
            session=KEY_PREFIX + id,
            expected_version=newest.version,
            events=[event],
            rewrites=[replace(newest, data={}, state={})],
            incarnation=newest.incarnation or None,
            erase=erase,
        )
        yield Ask(self.store, "append", (request,))

    def _wrap(self, secret: bytes, record: Record, older: list[bytes]) -> Steps[Record]:
        """Write a secret into a record, wrapped, and those before it."""
        wrapped = yield from self._ask_keys(
            lambda: self.keys.wrap(secret, bound=record.bound), "wrap", record
        )
        if not isinstance(wrapped, bytes) or not wrapped or secret in wrapped:
            raise ConfigurationError("wrap must return the secret encrypted, as bytes", argument="wrap")
        nonce = os.urandom(NONCE_BYTES)
        cipher = aead(derive(secret, b"older", record.bound))
        sealed = nonce + cipher.encrypt(nonce, b"".join(older), record.bound)
        return replace(record, wrapped=wrapped, older=sealed)

    def _ask_keys(
        self, call: Callable[[], bytes | Awaitable[bytes]], name: str, record: Record
    ) -> Steps[bytes]:
        """Call the keys; what fails in a key service is told as an error of the store."""
        try:
            answer: bytes = as_bytes((yield Wrap(self.keys, call)))
        except EncryptionKeyError as error:
            raise EncryptionKeyError(
                f"session {record.session!r}: {error}", session=record.session, key=record.key
            ) from None
        except ContextError:
            raise
        except OSError as error:
            raise StoreUnavailableError(
                f"session {record.session!r}: the keys cannot be asked to {name} with {record.key!r:.200}:"
                f" {type(error).__name__}. Ask again"
            ) from error
        except Exception as error:
            raise EncryptionKeyError(
                f"session {record.session!r}: the keys failed to {name} with {record.key!r:.200}:"
                f" {type(error).__name__}. Look whether that key is there and may be used",
                session=record.session,
                key=record.key,
            ) from error
        return answer

    def _secrets(self, record: Record, session: str) -> Steps[list[bytes]]:
        """Return the secrets of a session, the oldest first; those used last are remembered."""
        found = self._known.pop(_known_by(record), None)
        if found is None:
            found = yield from self._unwrap(record, session)
        self._remember(record, found)
        return found

    def _unwrap(self, record: Record, session: str) -> Steps[list[bytes]]:
        """Unwrap the secrets of a session, the oldest first."""
        unwrap, bound = self.keys.unwrap, record.bound
        secret = yield from self._ask_keys(
            lambda: unwrap(record.key, record.wrapped, bound=bound), "unwrap", record
        )
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise EncryptionKeyError(
                f"session {session!r}: unwrap must return the {SECRET_BYTES} bytes of the secret that was"
                f" wrapped with {record.key!r:.200}",
                session=session,
                key=record.key,
            )
        cipher = aead(derive(secret, b"older", bound))
        try:
            older = cipher.decrypt(record.older[:NONCE_BYTES], record.older[NONCE_BYTES:], bound)
        except unreadable():
            raise EncryptionKeyError(
                f"session {session!r}: its key record was changed, or the key {record.key!r:.200} is not the"
                " one it was wrapped with",
                session=session,
                key=record.key,
            ) from None
        return [*(older[at : at + SECRET_BYTES] for at in range(0, len(older), SECRET_BYTES)), secret]

    def _remember(self, record: Record, found: list[bytes]) -> None:
        while len(self._known) >= _MOST_SECRETS:
            self._known.pop(next(iter(tuple(self._known))), None)
        self._known[_known_by(record)] = found


def _known_by(record: Record) -> Record:
    return replace(record, version=0)


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def made_at(record: Event, /) -> float:
    """Say when a record was written, in seconds since 1970; one that does not say it is new."""
    made = record.data.get("made")
    return float(made) if isinstance(made, (int, float)) else RECORD_TIME
