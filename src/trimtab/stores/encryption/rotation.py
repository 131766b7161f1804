"""Rotation: sessions are given new keys, and their rows are encrypted with them while others go on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from trimtab._shared.steps import Steps
from trimtab.errors import KeyDroppedError, StoreError, VersionConflictError
from trimtab.stores.base import AppendRequest, Event, LoadRequest, Store
from trimtab.stores.encryption.cipher import place_of
from trimtab.stores.encryption.records import Ask, KeyRecords, Record, made_at, row_of
from trimtab.stores.labels import KEY_PREFIX

PAGE_EVENTS = 200
"""So many events are encrypted anew in one step."""

_ORPHAN_SECONDS = 86_400
"""So old is the key of a session that was not begun by then, and never will be."""

_ATTEMPTS = 100
"""So often a page is tried again that other writers came before; each time it is one event longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationReceipt:
    """What a rotation did.

    Args:
        key: Id of the key that was current.
        sessions: Number of sessions that were looked at.
        renewed: Number of these that got a new key.
        events: Number of events that were encrypted anew.
        dropped: Number of sessions whose key was dropped: nobody can read them, with any key.
        removed: Number of keys that were removed, since no session has them.
        left: By session, why it is not encrypted with the current key.
    """

    key: str
    """Id of the key that was current."""
    sessions: int = 0
    """Number of sessions that were looked at."""
    renewed: int = 0
    """Number of these that got a new key."""
    events: int = 0
    """Number of events that were encrypted anew."""
    dropped: int = 0
    """Number of sessions whose key was dropped: nobody can read them, with any key."""
    removed: int = 0
    """Number of keys that were removed, since no session has them."""
    left: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By session, why it is not encrypted with the current key."""

    @property
    def complete(self) -> bool:
        """Whether no session needs another key than the current one."""
        return not self.left


class Rotation:
    """Encrypts the sessions of a store with the current key."""

    def __init__(self, store: Store, records: KeyRecords) -> None:
        self._store, self._records = store, records
        self._seen: set[str] = set()
        """Ids of the key records of the sessions that were looked at."""

    def run(self) -> Steps[RotationReceipt]:
        """Rotate all sessions; one that cannot be is told, and the others go on."""
        looked, renewed, events, dropped = 0, 0, 0, 0
        left: dict[str, str] = {}
        listed: list[str] = yield Ask(self._store, "sessions", ())
        for name in listed:
            if name.startswith(KEY_PREFIX):
                continue
            looked += 1
            newest: Event | None = None
            try:
                newest = yield from row_of(self._store, name)
                if newest is None:
                    continue  # it was deleted meanwhile
                is_new, rewritten = yield from self._rotate(name, newest)
            except KeyDroppedError:
                dropped += 1
                continue
            except StoreError as error:
                if newest is None or (yield from self._is_there(name, newest.incarnation)):
                    left[name] = str(error)
                continue
            renewed, events = renewed + is_new, events + rewritten
        orphans = yield from self._orphans(listed)
        removed, is_clean = yield from self._remove(orphans)
        if not is_clean:  # also if nothing was done: a call before may have been killed before this
            yield from self._records.clean(self._store)
        return RotationReceipt(
            key=self._records.keys.current,
            sessions=looked,
            renewed=renewed,
            events=events,
            dropped=dropped,
            removed=removed,
            left=MappingProxyType(left),
        )

    def _is_there(self, session: str, incarnation: str) -> Steps[bool]:
        """Tell whether a session is there that could not be rotated, and not deleted meanwhile."""
        try:
            newest = yield from row_of(self._store, session)
        except StoreError:
            return True
        return newest is not None and newest.incarnation == incarnation

    def _rotate(self, session: str, newest: Event) -> Steps[tuple[bool, int]]:
        """Rotate one session; say whether it got a new key, and how many events were rewritten."""
        id, is_new = place_of(newest, session).key, False
        self._seen.add(id)
        record = yield from self._records.read(id, session)
        while record.key != self._records.keys.current:
            try:
                record = yield from self._records.renew(record, session)
                is_new = True
            except VersionConflictError:  # somebody else rotates: the rows are done under what is there now
                record = yield from self._records.read(id, session)
        yield from self._records.cipher(record, session)  # that it is wrapped by this key is not only said
        if record.generation == 1:
            return False, 0  # there is no other secret
        rewritten, record = yield from self.rewrite(session, record, newest.incarnation, after=0, erase=False)
        if record.key != self._records.keys.current:
            raise VersionConflictError(
                f"session {session!r}: another rotation gave it a new key meanwhile, wrapped by"
                f" {record.key!r}: make the same key current everywhere, and repeat",
                session=session,
            )
        return is_new, rewritten

    def rewrite(
        self, session: str, record: Record, incarnation: str, /, *, after: int, erase: bool
    ) -> Steps[tuple[int, Record]]:
        """Encrypt what is behind a version with the newest secret; again if there is a newer one at the end.

        Else who was slow would leave rows behind that are under the secret before it.

        Returns:
            How many events, and the record of that secret.
        """
        rewritten = 0
        while True:
            rewritten += yield from self._rewrite(session, record, incarnation, after=after, erase=erase)
            now = yield from self._records.read(record.id, session)
            if now.generation == record.generation:
                return rewritten, record
            record = now

    def _rewrite(
        self, session: str, record: Record, incarnation: str, *, after: int, erase: bool
    ) -> Steps[int]:
        rewritten, attempts = 0, 0
        at = after
        while True:
            newest = yield from row_of(self._store, session)
            if newest is None or newest.incarnation != incarnation or newest.version <= at:
                return rewritten
            asked = LoadRequest(session=session, after=at, limit=PAGE_EVENTS, incarnation=incarnation or None)
            page: list[Event] = yield Ask(self._store, "load", (asked,))
            old = [row for row in page if record.is_newer(place_of(row, session))]
            if old:
                request = AppendRequest(
                    session=session,
                    expected_version=newest.version,
                    events=(),
                    rewrites=(yield from self._anew(old, record, session)),
                    incarnation=incarnation or None,
                    erase=erase,
                )
                try:
                    yield Ask(self._store, "append", (request,))
                except VersionConflictError:
                    attempts += 1
                    if attempts == _ATTEMPTS:
                        raise
                    continue
            rewritten, attempts = rewritten + len(old), 0
            at = page[-1].version if page else newest.version

    def _anew(self, rows: list[Event], record: Record, session: str) -> Steps[list[Event]]:
        new = yield from self._records.cipher(record, session)
        made = []
        for row in rows:
            generation = place_of(row, session).generation
            old = yield from self._records.cipher(record, session, generation=generation)
            made.append(new.seal(old.unseal(row)))
        return made

    def _orphans(self, listed: Iterable[str]) -> Steps[set[str]]:
        """Find the keys of sessions that were never begun, or not deleted by this store.

        A store of keys of its own may be that of other stores, too: nothing is found there.
        """
        orphans: set[str] = set()
        if self._records.store is not self._store:
            return orphans
        for name in listed:
            id = name.removeprefix(KEY_PREFIX)
            if id == name or id in self._seen:
                continue
            with suppress(StoreError):  # what cannot be read is not removed
                record = yield from row_of(self._store, name)
                if record is not None and made_at(record) < time.time() - _ORPHAN_SECONDS:
                    session = str(record.data.get("session", ""))
                    if session and not (yield from self._has_key(session, id)):
                        orphans.add(id)
        return orphans

    def _remove(self, orphans: set[str]) -> Steps[tuple[int, bool]]:
        """Remove keys in one order; say how many, and whether that cleaned the files."""
        if not orphans:
            return 0, False
        try:
            receipt = yield from self._records.remove_all(orphans)
        except StoreError:  # what remains is removed by the next rotation
            return (yield from self._absent(orphans)), False
        # where another process was faster, nothing was cleaned
        return receipt.sessions, receipt.sessions > 0 and receipt.not_erased is None

    def _absent(self, orphans: set[str]) -> Steps[int]:
        """Count keys of an order that failed in its middle which are gone."""
        try:
            there: list[str] = yield Ask(self._store, "sessions", ())
        except StoreError:
            return 0
        return len({KEY_PREFIX + id for id in orphans} - set(there))

    def _has_key(self, session: str, id: str) -> Steps[bool]:
        """Tell whether a session is there whose first or last event says that it has a key."""
        for newest in (True, False):
            row = yield from row_of(self._store, session, newest=newest)
            if row is not None and place_of(row, session).key == id:
                return True
        return False
