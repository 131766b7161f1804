"""`copy_session`: a session from one store to another, one algorithm for both ways of calling."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole
from trimtab._shared.steps import arun, run
from trimtab.errors import ConfigurationError, EncryptionKeyError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, Store, encrypts
from trimtab.stores.rows import check_session_name
from trimtab.stores.search import SEALED


class _Ask(NamedTuple):
    """A call of a store: its request says which."""

    store: Store
    request: AppendRequest | LoadRequest


def copy_session(
    source: Store,
    target: Store,
    /,
    session: str,
    *,
    to: str | None = None,
    before: int | None = None,
    page_events: int = 500,
    incarnation: str | None = None,
    decrypt: bool = False,
) -> int:
    """Copy a session to another store, or under another name.

    Safe to repeat: an interrupted copy continues where it stopped, and a complete one is not changed.

    Args:
        source: The store.
        target: The target; may be the same store.
        session: Its name.
        to: The name in the target; None: the same.
        before: Copy only versions below this one, for example those before a damaged event.
        page_events: Number of events to read and write at a time.
        incarnation: Which of the sessions with that name to copy (its events say); None: the current one.
        decrypt: Whether a session of an encrypted store may be copied to one that is not.

    Returns:
        How many events were written by this call.

    Raises:
        ConfigurationError: There is no such session, the target has other events, or it would keep text that
            the source encrypts.
        EncryptionKeyError: The session is encrypted, and its store was given without its keys.
        SessionDeletedError: The session was deleted meanwhile.
        StoreError: As raised by the stores; repeat the call to continue.
    """
    steps = _copy(source, target, session, to, before, incarnation, page_events=page_events, decrypt=decrypt)
    return run(steps, _answer)


async def acopy_session(
    source: Store,
    target: Store,
    /,
    session: str,
    *,
    to: str | None = None,
    before: int | None = None,
    page_events: int = 500,
    incarnation: str | None = None,
    decrypt: bool = False,
) -> int:
    """Copy a session to another store, or under another name; see `copy_session`."""
    steps = _copy(source, target, session, to, before, incarnation, page_events=page_events, decrypt=decrypt)
    return await arun(steps, _aanswer)


def copy_events(
    source: Store,
    target: Store,
    session: str,
    *,
    to: str | None = None,
    before: int | None = None,
    incarnation: str | None = None,
    behind: Event | None = None,
) -> int:
    """Copy a session, and add an event behind the last one that is copied; see `copy_session`.

    Where a copy is repeated an event of that id is there, perhaps of another time: it stays.
    """
    return run(_copy(source, target, session, to, before, incarnation, behind=behind), _answer)


async def acopy_events(
    source: Store,
    target: Store,
    session: str,
    *,
    to: str | None = None,
    before: int | None = None,
    incarnation: str | None = None,
    behind: Event | None = None,
) -> int:
    """Copy a session, and add an event behind the last one that is copied; see `copy_events`."""
    return await arun(_copy(source, target, session, to, before, incarnation, behind=behind), _aanswer)


def _check_plain(source: Store, target: Store, *, decrypt: bool) -> None:
    """Refuse to write down what is encrypted, unless that is asked for."""
    if encrypts(source) and not encrypts(target) and not decrypt:
        raise ConfigurationError(
            "the session is encrypted, and the target is not: its text would be readable there. Pass the"
            " target as encrypted(target, keys), or copy_session(…, decrypt=True)",
            argument="decrypt",
        )


def _answer(ask: _Ask) -> Appended | list[Event]:
    store, request = ask
    return store.load(request) if isinstance(request, LoadRequest) else store.append(request)


async def _aanswer(ask: _Ask) -> Appended | list[Event]:
    store, request = ask
    return await (store.aload(request) if isinstance(request, LoadRequest) else store.aappend(request))


def _copy(
    source: Store,
    target: Store,
    session: str,
    to: str | None,
    before: int | None,
    mine: str | None,
    *,
    page_events: int = 500,
    behind: Event | None = None,
    decrypt: bool = False,
) -> Generator[_Ask, Any, int]:
    _check_plain(source, target, decrypt=decrypt)
    to = session if to is None else to
    check_whole("page_events", page_events, least=1)
    for name in (session, to):
        check_session_name(name)
    at = 0
    theirs: str | None = None  # which sessions of their names are meant, once an event of them was read

    def read_page() -> Generator[_Ask, Any, list[Event]]:
        stop = before if behind is None else behind.version
        bounds: dict[str, Any] = {"after": at, "before": stop, "limit": page_events}
        page: list[Event] = yield _Ask(source, LoadRequest(session=session, incarnation=mine, **bounds))
        last = behind is not None and len(page) < page_events and at + len(page) + 1 == behind.version
        return [*page, behind] if behind is not None and last else page

    while True:
        page = yield from read_page()
        mine = mine or _incarnation(page)
        _check_readable(session, page)
        if not at and not page:  # perhaps there is none at all, and its name is misspelled
            first = yield _Ask(source, LoadRequest(session=session, limit=1))
            if not first:
                raise ConfigurationError(f"there is no session {session!r} to copy")
        asked = LoadRequest(session=to, after=at, limit=page_events, incarnation=theirs)
        there: list[Event] = yield _Ask(target, asked)
        theirs = theirs or _incarnation(there)
        for place, event in enumerate(there):
            known = place < len(page) and (event == page[place] or (behind and event.id == behind.id))
            if not known:
                raise ConfigurationError(
                    f"the target has a session {to!r} with another event at version {event.version}."
                    " Copy under another name (`to`), or delete that session first"
                )
        at += len(there)
        if len(there) < page_events:
            break
    written = 0
    page = page[len(there) :]
    while page:
        request = AppendRequest(session=to, expected_version=at, events=page, incarnation=theirs)
        appended: Appended = yield _Ask(target, request)
        theirs = theirs or appended.incarnation or None
        written += len(page)
        at += len(page)
        page = yield from read_page()
    return written


def _check_readable(session: str, page: list[Event]) -> None:
    """Refuse rows that were encrypted: they are bound to their session, and to its key."""
    if any(SEALED in event.data for event in page):
        raise EncryptionKeyError(
            f"session {session!r} is encrypted, and nobody could read a copy of its rows: copy from"
            " encrypted(store, keys)",
            session=session,
        )


def _incarnation(page: list[Event]) -> str | None:
    return (page[0].incarnation or None) if page else None
