"""Rotation: sessions are given new keys, and their rows are encrypted with them while others go on."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from trimtab._shared.steps import Steps
from trimtab.errors import StoreError, VersionConflictError
from trimtab.stores.base import AppendRequest, Event, LoadRequest, Store
from trimtab.stores.encryption.cipher import place_of
from trimtab.stores.encryption.records import PREFIX, Ask, KeyRecords, Record

PAGE_EVENTS = 200
"""So many events are encrypted anew in one step."""

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

    def run(self, names: Iterable[str], /) -> Steps[RotationReceipt]:
        """Rotate sessions; one that cannot be is told, and the others go on."""
        looked, renewed, events = 0, 0, 0
        left: dict[str, str] = {}
        for name in names:
            looked += 1
            newest: Event | None = None
            try:
                newest = yield from self._newest(name)
                if newest is None:
                    continue  # it was deleted meanwhile
                is_new, rewritten = yield from self._rotate(name, newest)
            except StoreError as error:
                if newest is None or (yield from self._is_there(name, newest.incarnation)):
                    left[name] = str(error)
                continue
            renewed, events = renewed + is_new, events + rewritten
        if renewed or events:
            # A name that nobody has: the files are cleaned of all that was rewritten.
            unused = f"{PREFIX}{secrets.token_hex(8)}"
            yield Ask(self._store, "delete", (unused,))
            if self._records.store is not self._store:
                yield Ask(self._records.store, "delete", (unused,))
        return RotationReceipt(
            key=self._records.keys.current,
            sessions=looked,
            renewed=renewed,
            events=events,
            left=MappingProxyType(left),
        )

    def _is_there(self, session: str, incarnation: str) -> Steps[bool]:
        """Tell whether a session is there that could not be rotated, and not deleted meanwhile."""
        try:
            newest = yield from self._newest(session)
        except StoreError:
            return True
        return newest is not None and newest.incarnation == incarnation

    def _rotate(self, session: str, newest: Event) -> Steps[tuple[bool, int]]:
        """Rotate one session; say whether it got a new key, and how many events were rewritten."""
        id, is_new = place_of(newest, session).key, False
        record = yield from self._records.read(id, session)
        while record.key != self._records.keys.current:
            try:
                record = yield from self._records.renew(record, session)
                is_new = True
            except VersionConflictError:  # somebody else rotates: the rows are done under what is there now
                record = yield from self._records.read(id, session)
        if record.generation == 1:
            return False, 0  # there is no other secret
        rewritten, done = yield from self.rewrite(session, record, newest.incarnation, after=record.done)
        if rewritten or record.first < record.generation or done >= record.done + 10 * PAGE_EVENTS:
            with suppress(VersionConflictError):  # somebody else rotates, and will note it
                yield from self._records.finish(record, done=done)
        return is_new, rewritten

    def rewrite(
        self, session: str, record: Record, incarnation: str, /, *, after: int
    ) -> Steps[tuple[int, int]]:
        """Encrypt what is behind a version with the newest secret.

        Returns:
            How many events, and up to which version all are.
        """
        rewritten, attempts = 0, 0
        at = after
        while True:
            newest = yield from self._newest(session)
            if newest is None or newest.incarnation != incarnation or newest.version <= at:
                return rewritten, at
            asked = LoadRequest(session=session, after=at, limit=PAGE_EVENTS, incarnation=incarnation or None)
            page: list[Event] = yield Ask(self._store, "load", (asked,))
            old = [row for row in page if place_of(row, session) != record.place]
            if old:
                request = AppendRequest(
                    session=session,
                    expected_version=newest.version,
                    events=(),
                    rewrites=(yield from self._anew(old, record, session)),
                    incarnation=incarnation or None,
                    erase=False,
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

    def _newest(self, session: str) -> Steps[Event | None]:
        rows: list[Event] = yield Ask(
            self._store, "load", (LoadRequest(session=session, limit=1, newest_first=True),)
        )
        return rows[0] if rows else None
