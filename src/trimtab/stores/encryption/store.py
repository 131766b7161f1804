"""`encrypted`: a store around another, which is given ciphertexts and hashes, and no text and no key."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab._shared.steps import Steps, arun, in_turns, run
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    EncryptionKeyError,
    SessionDeletedError,
    StoreError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.stores.base import (
    Appended,
    AppendRequest,
    ClosedStore,
    Event,
    Found,
    LoadRequest,
    SearchRequest,
    Store,
    require_labels,
)
from trimtab.stores.encryption.cipher import Place, SessionCipher, place_of, unreadable
from trimtab.stores.encryption.keys import Keys
from trimtab.stores.encryption.lists import check_labels, key_ids, list_page, with_key
from trimtab.stores.encryption.records import Ask, KeyRecords, Record, row_of
from trimtab.stores.encryption.rotation import Rotation, RotationReceipt
from trimtab.stores.labels import KEY_PREFIX, Labels, Receipt, Sessions, check_owner
from trimtab.stores.lists import EXPIRE_LIMIT, ListRequest, check_one
from trimtab.stores.newest import Newest, ReadNewest, read_newest
from trimtab.stores.rows import check_incarnation, check_session_name, conflict, same_event, to_rows
from trimtab.stores.search import usable_terms
from trimtab.stores.thread import in_thread

TURN = 50
"""So many events are encrypted or decrypted before other tasks of an event loop have their turn."""

_ATTEMPTS = 20
"""So often a call looks again which session has a name, while it is deleted and begun anew all the time."""

_MOST_NAMES = 4_096


class _Known(NamedTuple):
    """Which session has a name, and the id of its key record."""

    incarnation: str
    key: str


def encrypted(store: Store, keys: Keys, /, *, key_store: Store | None = None) -> EncryptedStore:
    """Return a store that keeps its sessions encrypted in another.

    Each session has a random key of its own; `keys` encrypts these. Texts, calls, results, summaries, rules,
    facts and the states of sessions are encrypted; names of sessions, ids, kinds and times of events are not.

    Args:
        store: Any store. It sees no text, and `search` works by keyed hashes of words.
        keys: A `KeyRing`, or `KmsKeys` of a key management service.
        key_store: The store that keeps the encrypted keys of sessions; None: `store` itself. With one that
            is not backed up together with `store`, a dropped key is gone from backups, too.

    Raises:
        ConfigurationError: The store is encrypted already, or is no store.
        MissingExtraError: The extra `encrypt` is not installed.

    Example:
        >>> import secrets
        >>> from trimtab.stores import KeyRing, MemoryStore
        >>> store = encrypted(MemoryStore(), KeyRing({"2026-11": secrets.token_bytes(32)}))
        >>> hello = Event(id="e1", kind="message", time=0.0, data={"message": {"content": "Hello"}})
        >>> store.append(AppendRequest(session="s", expected_version=0, events=[hello])).version
        1
        >>> store.load(LoadRequest(session="s"))[0].message
        {'content': 'Hello'}
    """
    return EncryptedStore(store, keys, key_store=key_store)


class EncryptedStore(ClosedStore):
    """A store around another, made by `encrypted`.

    Args:
        store: The store that keeps the sessions.
        keys: What encrypts the keys of sessions.
        key_store: The store that keeps these; None: `store`.

    Example:
        >>> from trimtab.stores import KeyRing, MemoryStore
        >>> EncryptedStore(MemoryStore(), KeyRing({"a": bytes(32)}))
        <EncryptedStore in <MemoryStore of 0 sessions>, KeyRing(a, current='a')>
    """

    def __init__(self, store: Store, keys: Keys, /, *, key_store: Store | None = None) -> None:
        for name, one in (("store", store), ("key_store", store if key_store is None else key_store)):
            if not isinstance(one, Store):
                raise ConfigurationError(f"{name} must be a Store, not {type(one).__name__}", argument=name)
            if isinstance(one, EncryptedStore):
                raise ConfigurationError(f"{name} is encrypted already: pass the store in it", argument=name)
        if not isinstance(keys, Keys):  # it may be a secret, and is not shown
            raise ConfigurationError(
                f"keys must be a KeyRing or KmsKeys, not {type(keys).__name__}", argument="keys"
            )
        unreadable()  # what is missing is told here
        self._store = store
        self._records = KeyRecords(store if key_store is None else key_store, keys)
        self._names: dict[str, _Known] = {}

    def __repr__(self) -> str:
        """Show the store and the ids of keys; no key."""
        return f"<EncryptedStore in {self._store!r}, {self._records.keys!r}>"

    @property
    def encrypts(self) -> bool:
        """True: what is copied from here to a store that does not must be asked for."""
        return True

    @property
    def keeps_labels_in(self) -> Store:
        """The store of owners, metadata and times to live, which are not encrypted."""
        return self._store

    @property
    def ends_with_process(self) -> bool:
        """Whether the store, or that of its keys, is in memory."""
        return any(getattr(one, "ends_with_process", False) for one in (self._store, self._records.store))

    # -- the protocol

    def append(self, request: AppendRequest, /) -> Appended:
        return run(self._append(request), _answer)

    def load(self, request: LoadRequest, /) -> list[Event]:
        return run(self._load(request), _answer)

    def load_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions, and their keys.

        Each by one request, where the stores can.

        Args:
            names: Of sessions; one that is not there has no entry in the answer.

        Returns:
            The newest event of each by its name, or the error that says why it cannot be read.
        """
        return run(self._load_newest(names), _answer)

    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages by keyed hashes of terms; see `Store.search`.

        Lengths of texts count in steps of 16 characters. While a session is rotated, a term counts as two.
        """
        return run(self._search(request), _answer)

    def delete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        """Remove a session and its key, or all of an owner and theirs; see `Store.delete`.

        The key of one session goes first: if this is interrupted, what remains cannot be read. Ask again. Of
        an owner each session and its key go in one step. Keys in another store, or on a Redis Cluster, follow
        after all sessions; `rotate` removes those that an interruption leaves in the store of the sessions.
        """
        return run(self._removal(session, owner, incarnation), _answer)

    def sessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        return run(
            self._page(
                ListRequest(
                    owner=owner,
                    prefix=prefix,
                    metadata=metadata,
                    used_before=used_before,
                    used_after=used_after,
                    limit=limit,
                    after=after,
                )
            ),
            _answer,
        )

    def expire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        """Remove sessions that have ended, and their keys; see `Store.expire`."""
        return run(self._order("expire", now=now, limit=limit), _answer)

    def close(self) -> None:
        for store in self._stores():
            store.close()

    async def aappend(self, request: AppendRequest, /) -> Appended:
        return await arun(self._append(request), _aanswer)

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        return await arun(self._load(request), _aanswer)

    async def aload_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions, and their keys; see `load_newest`."""
        return await arun(self._load_newest(names), _aanswer)

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        return await arun(self._search(request), _aanswer)

    async def adelete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        return await arun(self._removal(session, owner, incarnation), _aanswer)

    async def asessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        return await arun(
            self._page(
                ListRequest(
                    owner=owner,
                    prefix=prefix,
                    metadata=metadata,
                    used_before=used_before,
                    used_after=used_after,
                    limit=limit,
                    after=after,
                )
            ),
            _aanswer,
        )

    async def aexpire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        return await arun(self._order("expire", now=now, limit=limit), _aanswer)

    async def aclose(self) -> None:
        for store in self._stores():
            await store.aclose()

    # -- keys

    def drop_key(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Forget the key of a session: nobody can read its text again.

        The rows stay until `delete`; who reads or writes them gets a `KeyDroppedError`. A copy of the
        encrypted key in a backup of the store of keys must be removed there.

        Args:
            session: Its name.
            incarnation: Which of the sessions with that name; None: the current one.

        Raises:
            ConfigurationError: There is no such session.
            SessionDeletedError: Another session has its name now; its key is not dropped.
        """
        run(self._drop_key(session, incarnation), _answer)

    async def adrop_key(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Forget the key of a session; see `drop_key`."""
        await arun(self._drop_key(session, incarnation), _aanswer)

    def rotate(self) -> RotationReceipt:
        """Rewrite every session whose key was wrapped by another key than the current one.

        Each gets a new key, wrapped by the current one, and its rows are encrypted with that. Safe to repeat,
        while others write, and to be killed at any moment: what is rewritten and what is not can both be
        read, and the next call goes on. Files are cleaned once, at the end.

        Returns:
            What was done, and what could not be done and why.
        """
        return run(self._rotate(), _answer)

    async def arotate(self) -> RotationReceipt:
        """Rewrite every session under the current key; see `rotate`."""
        return await arun(self._rotate(), _aanswer)

    def scrub(self) -> None:
        """Remove deleted and redacted data from files, if the stores offer that."""
        for store in self._stores():
            if (scrub := getattr(store, "scrub", None)) is not None:
                scrub()

    async def ascrub(self) -> None:
        """Remove deleted and redacted data from the files of the stores; see `scrub`."""
        for store in self._stores():
            if (scrub := getattr(store, "ascrub", None)) is not None:
                await scrub()

    def _stores(self) -> Iterator[Store]:
        yield self._store
        if self._records.store is not self._store:
            yield self._records.store

    # -- each operation once, for both colours

    def _append(self, request: AppendRequest) -> Steps[Appended]:
        to_rows(request)
        _check_name(request.session)
        check_labels(request.new_labels() or Labels())
        for _ in range(_ATTEMPTS):
            known = yield from self._known_of(request.session, request.incarnation)
            if known is None and (request.expected_version or request.incarnation is not None):
                check_incarnation(request.session, request.incarnation, None)
                raise conflict(request, 0)
            try:
                if known is None:
                    return (yield from self._begin(request))
                return (yield from self._append_to(request, known))
            except SessionDeletedError:
                self._names.pop(request.session, None)
                if request.incarnation is not None:
                    raise
            except EncryptionKeyError:
                # Of a session that was deleted meanwhile the key is gone as well.
                self._names.pop(request.session, None)
                if (yield from self._known_of(request.session, request.incarnation)) == known:
                    raise
        raise conflict(request, 0)

    def _begin(self, request: AppendRequest) -> Steps[Appended]:
        """Begin a session, with a key that is made first; another writer may be faster."""
        record = yield from self._records.make(request.session)
        try:
            appended = yield from self._append_with(request, record, None)
        except (VersionConflictError, SessionDeletedError, ConfigurationError):
            # After any other error it may still be stored, and its rows then name the key.
            yield from self._records.remove(record.id, request.session)
            raise
        if appended.duplicate:  # perhaps of this very request, whose first answer was lost
            newest = yield from row_of(self._store, request.session)
            if newest is not None and place_of(newest, request.session).key != record.id:
                yield from self._records.remove(record.id, request.session)
        return appended

    def _append_to(self, request: AppendRequest, known: _Known) -> Steps[Appended]:
        record = yield from self._records.read(known.key, request.session)
        appended = yield from self._append_with(request, record, known)
        try:
            now = yield from self._records.read(known.key, request.session)
        except EncryptionKeyError:
            newest = yield from row_of(self._store, request.session)
            if newest is not None and newest.incarnation == known.incarnation:
                raise
            return appended  # it was stored, and then deleted together with the session and its key
        # It was rotated meanwhile, perhaps before this was stored; or an answer was lost, and that before it.
        if now.generation > (1 if appended.duplicate else record.generation):
            first = min((one.version for one in request.rewrites), default=request.expected_version + 1)
            # It is stored, whatever fails here; the next rotation does it then.
            with suppress(StoreError):
                yield from self._rotation().rewrite(
                    request.session, now, known.incarnation, after=first - 1, erase=True
                )
        return appended

    def _append_with(self, request: AppendRequest, record: Record, known: _Known | None) -> Steps[Appended]:
        cipher = yield from self._records.cipher(record, request.session)
        events = yield from in_turns(cipher.seal, request.numbered(), each=TURN)
        rewrites = yield from in_turns(cipher.seal, request.rewrites, each=TURN)
        labels = request.new_labels()
        sealed = replace(
            request,
            labels=labels and with_key(labels, request.session, record.id),
            events=events,
            rewrites=rewrites,
            incarnation=(known.incarnation or None) if known else None,
        )
        try:
            appended: Appended = yield Ask(self._store, "append", (sealed,))
        except ConfigurationError:
            # Perhaps it is the same request again: ciphertexts of other versions and keys are not equal.
            stored = yield from self._load(
                LoadRequest(session=request.session, ids=tuple(one.id for one in request.events[:1]))
            )
            if not stored:
                raise
            newest = yield from row_of(self._store, request.session)
            version = newest.version if newest else stored[0].version
            return same_event(request, stored[0], version=version)
        return appended

    def _load(self, request: LoadRequest) -> Steps[list[Event]]:
        check_session_name(request.session)
        _check_name(request.session)
        for _ in range(_ATTEMPTS):
            rows: list[Event] = yield Ask(self._store, "load", (request,))
            try:
                return (yield from self._unseal(rows, request.session))
            except EncryptionKeyError:
                # Perhaps the session was deleted between the two.
                again: list[Event] = yield Ask(
                    self._store, "load", (replace(request, limit=min(1, _limit(request))),)
                )
                if rows and again and again[0].incarnation == rows[0].incarnation:
                    raise
        raise EncryptionKeyError(f"session {request.session!r} is deleted and begun anew all the time")

    def _load_newest(self, names: Sequence[str]) -> Steps[Newest]:
        for name in names:
            check_session_name(name)
            _check_name(name)
        found = dict((yield from read_newest(self._store, names)))
        keys: dict[str, str] = {}
        for name, row in found.items():
            if isinstance(row, Event):
                with suppress(StoreError):  # what it names no key by is told below
                    keys[name] = place_of(row, name).key
        records = yield from self._records.read_many(keys)
        for name, row in found.items():
            record = records.get(name)
            if isinstance(record, ContextError):
                found[name] = record
            elif isinstance(row, Event):
                try:
                    (found[name],) = yield from self._unseal([row], name, *filter(None, [record]))
                except (CorruptSessionError, EncryptionKeyError) as error:
                    found[name] = error
        return found

    def _unseal(self, rows: list[Event], session: str, *known: Record) -> Steps[list[Event]]:
        """Decrypt rows; which keys they need is looked up once for all of them."""
        ciphers: dict[Place, SessionCipher] = {}
        records = {record.id: record for record in known}
        for place in dict.fromkeys(place_of(row, session) for row in rows):
            if place.key not in records:
                records[place.key] = yield from self._records.read(place.key, session)
            record = records[place.key]
            ciphers[place] = yield from self._records.cipher(record, session, generation=place.generation)
        return (yield from in_turns(lambda row: ciphers[place_of(row, session)].unseal(row), rows, each=TURN))

    def _search(self, request: SearchRequest) -> Steps[list[Event]]:
        check_session_name(request.session)
        _check_name(request.session)
        for _ in range(_ATTEMPTS):
            known = yield from self._known_of(request.session, request.incarnation)
            if known is None:
                check_incarnation(request.session, request.incarnation, None)
                return Found()
            try:
                return (yield from self._search_in(request, known))
            except (SessionDeletedError, EncryptionKeyError):
                self._names.pop(request.session, None)
                if request.incarnation is not None:
                    raise
                if (yield from self._known_of(request.session, None)) == known:
                    raise
        return Found()

    def _search_in(self, request: SearchRequest, known: _Known) -> Steps[list[Event]]:
        record = yield from self._records.read(known.key, request.session)
        while True:
            terms: list[str] = []
            # A row may be under any secret: its writer was killed before it could write it anew.
            for generation in range(1, record.generation + 1):
                cipher = yield from self._records.cipher(record, request.session, generation=generation)
                terms += cipher.hashes(usable_terms(request.terms))
            wanted = replace(request, terms=tuple(terms), incarnation=known.incarnation or None)
            found: list[Event] = yield Ask(self._store, "search", (wanted,))
            now = yield from self._records.read(known.key, request.session)
            if now.generation == record.generation:
                break
            record = now  # rows may have been rewritten before they were searched
        events = yield from self._unseal(found, request.session, now)
        return Found(events, since=found.since) if isinstance(found, Found) else events

    def _page(self, request: ListRequest) -> Steps[Sessions]:
        if request.given:
            require_labels(self)
        return list_page(self._store, request)

    def _removal(self, session: str | None, owner: str | None, incarnation: str | None) -> Steps[Receipt]:
        check_one(session, owner)
        if session is None:
            return self._order("delete", owner=check_owner(owner))
        return self._delete(session, incarnation)

    def _order(self, method: str, **asked: Any) -> Steps[Receipt]:
        """Have the store remove many sessions, and then those of their key records that it could not.

        Keys in a store of their own are removed there, also if the store of sessions has a copy.
        """
        require_labels(self)
        receipt: Receipt = yield Ask(self._store, method, (), asked)
        ids, removed = set(key_ids(receipt.keys)), set(key_ids(receipt.removed_keys))
        # a store that does not say all: any secret may be one of those that are gone
        self._records.forget(ids | removed if len(ids | removed) >= receipt.sessions else None)
        if self._records.store is not self._store:
            ids |= removed
        receipt = replace(receipt, keys=(), removed_keys=())
        if not ids:
            return receipt
        try:
            why = (yield from self._records.remove_all(ids)).not_erased
        except StoreError as error:  # the sessions are gone
            told = "the keys of these sessions remain, and open nothing that is there. If keys and"
            told += " sessions are in one store, rotate removes them a day later, otherwise nothing does"
            why = f"{told}: {error}"
        return replace(receipt, not_erased=receipt.not_erased or why)

    def _delete(self, session: str, incarnation: str | None) -> Steps[Receipt]:
        check_session_name(session)
        _check_name(session)
        self._names.pop(session, None)
        for _ in range(_ATTEMPTS):
            row: Event | None = None
            try:
                row = yield from self._row_with_key(session)
            except StoreUnavailableError:
                raise
            except StoreError:
                pass  # it cannot be read, and is deleted all the same
            if row is not None:
                check_incarnation(session, incarnation, row.incarnation)
                yield from self._records.remove(place_of(row, session).key, session)
            # Which session was read, so that the next of its name does not lose its rows, and keep its key.
            which = incarnation if row is None else row.incarnation or None
            try:
                receipt: Any = yield Ask(self._store, "delete", (session,), {"incarnation": which})
            except SessionDeletedError:
                if incarnation is not None:
                    raise
                continue
            # one that was written before stores knew labels says nothing
            return replace(receipt, keys=(), removed_keys=()) if isinstance(receipt, Receipt) else Receipt()
        raise SessionDeletedError(f"session {session!r} is deleted and begun anew all the time")

    def _drop_key(self, session: str, incarnation: str | None) -> Steps[None]:
        check_session_name(session)
        _check_name(session)
        row = yield from self._row_with_key(session)
        check_incarnation(session, incarnation, None if row is None else row.incarnation)
        if row is None:
            raise ConfigurationError(f"there is no session {session!r} whose key could be dropped")
        yield from self._records.drop(place_of(row, session).key, session)

    def _row_with_key(self, session: str) -> Steps[Event | None]:
        """Read a row that says which key a session has: the oldest if the newest was damaged."""
        try:
            row = yield from row_of(self._store, session)
            if row is not None:
                place_of(row, session)
        except CorruptSessionError:
            row = yield from row_of(self._store, session, newest=False)
            if row is not None:
                place_of(row, session)
        return row

    def _rotate(self) -> Steps[RotationReceipt]:
        return self._rotation().run()

    def _rotation(self) -> Rotation:
        return Rotation(self._store, self._records)

    def _known_of(
        self, session: str, incarnation: str | None, *, fresh: bool = False
    ) -> Steps[_Known | None]:
        """Find out which session has a name, and its key; None: there is none."""
        known = None if fresh else self._names.get(session)
        if known is None:
            newest = yield from row_of(self._store, session)
            if newest is None:
                return None
            known = _Known(newest.incarnation, place_of(newest, session).key)
            while len(self._names) >= _MOST_NAMES:
                self._names.pop(next(iter(tuple(self._names))), None)
            self._names[session] = known
        if incarnation is not None and incarnation != known.incarnation:
            self._names.pop(session, None)
            newest = yield from row_of(self._store, session)
            actual = None if newest is None else newest.incarnation
            check_incarnation(session, incarnation, actual)
            return (yield from self._known_of(session, incarnation, fresh=True))
        return known


def _limit(request: LoadRequest) -> int:
    return 1 if request.limit is None else request.limit


def _check_name(session: str) -> None:
    if session.startswith(KEY_PREFIX):
        raise ConfigurationError(
            f"session {session!r}: names that begin with {KEY_PREFIX!r} are those of keys"
        )


def _answer(ask: Any) -> Any:
    if isinstance(ask, Ask):
        return getattr(ask.store, ask.method)(*ask.arguments, **ask.options)
    if isinstance(ask, ReadNewest):
        return ask.now()
    found = ask.call()
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise ConfigurationError(
            "the functions of KmsKeys are async: call the forms for asyncio, such as aload and aadd"
        )
    return found


async def _aanswer(ask: Any) -> Any:
    if isinstance(ask, Ask):
        return await getattr(ask.store, f"a{ask.method}")(*ask.arguments, **ask.options)
    if isinstance(ask, ReadNewest):
        return await ask.later()
    found = ask.call() if not ask.keys.waits else await in_thread(ask.call)
    return await found if inspect.isawaitable(found) else found
