"""`copy_session`: a session from one store to another, one algorithm for both ways of calling."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole
from trimtab._shared.steps import arun, run
from trimtab.errors import ConfigurationError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, Store
from trimtab.stores.rows import check_session_name


class _Ask(NamedTuple):
    """One call of a store; its async form is named the same with an `a` before it."""

    store: Store
    method: str
    request: AppendRequest | LoadRequest


_Steps = Generator[_Ask, Any, int]


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
) -> int:
    """Copy a session to another store, or under another name.

    Safe to repeat: a copy that was interrupted goes on where it ended, and one that is complete is left
    as it is.

    Args:
        source: Where it is.
        target: Where it shall be; may be the same store.
        session: Its name.
        to: Its name there; None: the same.
        before: Copy only versions below this, as to save what is before a damaged event.
        page_events: How many events to read and write at a time.
        incarnation: Which session of that name to copy, as its events say; None: whichever is there.

    Returns:
        How many events were written now.

    Raises:
        ConfigurationError: There is no such session, or the target has other events.
        SessionDeletedError: The session that was meant was deleted.
        StoreError: As the stores raise; repeat the call to go on.
    """
    steps = _steps(source, target, _Copy.checked(session, to, before, page_events, incarnation))
    return run(steps, lambda ask: getattr(ask.store, ask.method)(ask.request))


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
) -> int:
    """Copy a session to another store, or under another name; see `copy_session`."""
    steps = _steps(source, target, _Copy.checked(session, to, before, page_events, incarnation))
    return await arun(steps, lambda ask: getattr(ask.store, "a" + ask.method)(ask.request))


class _Copy(NamedTuple):
    """What was asked for."""

    session: str
    to: str
    before: int | None
    page_events: int
    incarnation: str | None

    @classmethod
    def checked(
        cls, session: str, to: str | None, before: int | None, page_events: int, incarnation: str | None
    ) -> _Copy:
        check_whole("page_events", page_events, least=1)
        name = check_session_name(session)
        target = name if to is None else check_session_name(to)
        return cls(name, target, before, page_events, incarnation)


def _steps(source: Store, target: Store, copy: _Copy) -> _Steps:
    at = 0
    mine = copy.incarnation  # which sessions of their names are meant, once an event of them was read
    theirs: str | None = None
    while True:
        page: list[Event] = yield _Ask(source, "load", _page(copy.session, copy, at, incarnation=mine))
        mine = mine or _incarnation(page)
        if not at and not page:
            yield from _check_there(source, copy)
        there: list[Event] = yield _Ask(
            target, "load", _page(copy.to, copy, at, before=None, incarnation=theirs)
        )
        theirs = theirs or _incarnation(there)
        _check_prefix(page, there, copy)
        if len(there) < copy.page_events:
            break
        at += len(there)
    written = 0
    page = page[len(there) :]
    at += len(there)
    while page:
        request = AppendRequest(session=copy.to, expected_version=at, events=page, incarnation=theirs)
        appended: Appended = yield _Ask(target, "append", request)
        theirs = theirs or appended.incarnation or None
        written += len(page)
        at += len(page)
        page = yield _Ask(source, "load", _page(copy.session, copy, at, incarnation=mine))
    return written


def _incarnation(page: list[Event]) -> str | None:
    return (page[0].incarnation or None) if page else None


def _page(session: str, copy: _Copy, after: int, **changes: Any) -> LoadRequest:
    asked: dict[str, Any] = {"before": copy.before, "limit": copy.page_events, **changes}
    return LoadRequest(session=session, after=after, **asked)


def _check_there(source: Store, copy: _Copy) -> Generator[_Ask, Any, None]:
    """Refuse a session that has no events at all: its name is misspelled."""
    first = yield _Ask(source, "load", LoadRequest(session=copy.session, limit=1))
    if not first:
        raise ConfigurationError(f"there is no session {copy.session!r} to copy")


def _check_prefix(page: list[Event], there: list[Event], copy: _Copy) -> None:
    for at, event in enumerate(there):
        if at >= len(page) or event != page[at]:
            raise ConfigurationError(
                f"the target has a session {copy.to!r} with another event at version {event.version}. Copy"
                " under another name (`to`), or delete that session first"
            )
