"""The state of many stored sessions in numbers, from the newest event of each: none of them is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NoReturn

from trimtab._shared.steps import Steps, arun, run
from trimtab.errors import ConfigurationError, ContextError, SessionDeletedError, UnknownNameError
from trimtab.session.log import state_of
from trimtab.session.schema import check_events
from trimtab.stores import Event, SessionEntry, Store
from trimtab.stores.newest import Newest, ReadNewest, read_newest
from trimtab.stores.rows import check_session_name

_AT_ONCE = 100
"""Sessions whose newest events are held at the same time: each may be a long message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStatus:
    """The state of a stored session in numbers, as its newest event says it.

    What an event does not say needs the whole `Session.status()`: the tokens of the view, hidden messages,
    and why a summary failed.

    Args:
        session: Its name, with its version, time of use and labels; a name that is a plain text has no
            labels here.
        error: Why it cannot be read; the numbers are then 0. None: it was read.
        budget_tokens: Tokens of its budget, as it was used last.
        recent_messages: Messages that are recent.
        recent_tokens: Tokens of these.
        pending_messages: Messages that wait for a summary or for room.
        pending_tokens: Tokens of these.
        has_summary: Whether a summary replaces messages.
        failures: Failed summaries since the last successful one.
        retry_tokens: Waiting tokens at which the summarizer is called again. 0 if it did not fail and no
            shorter text was requested.
        known_facts: Current facts, in view or not.
        stale_facts: Facts removed from the view because a source was redacted.
        fact_failures: Failed fact extractions since the last successful one.
    """

    session: SessionEntry
    """Its name, with its version, time of use and labels; a name that is a plain text has no labels here."""
    error: ContextError | None = None
    """Why it cannot be read; the numbers are then 0. None: it was read."""
    budget_tokens: int = 0
    """Tokens of its budget, as it was used last."""
    recent_messages: int = 0
    recent_tokens: int = 0
    pending_messages: int = 0
    """Messages that wait for a summary or for room."""
    pending_tokens: int = 0
    has_summary: bool = False
    """Whether a summary replaces messages."""
    failures: int = 0
    """Failed summaries since the last successful one."""
    retry_tokens: int = 0
    """Waiting tokens at which the summarizer is called again. 0 if it did not fail and no shorter text was
    requested.
    """
    known_facts: int = 0
    """Current facts, in view or not."""
    stale_facts: int = 0
    """Facts removed from the view because a source was redacted."""
    fact_failures: int = 0
    """Failed fact extractions since the last successful one."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: what the list says, and the numbers, or the error as a text."""
        if self.error is not None:
            return {**self.session.to_dict(), "error": str(self.error)}
        return self.session.to_dict() | dict(zip(_NUMBERS, _numbers(self), strict=True))


_NUMBERS = tuple(one.name for one in fields(StoredStatus) if one.name not in ("session", "error"))
_numbers = attrgetter(*_NUMBERS)


def statuses(store: Store, sessions: Iterable[str], /) -> list[StoredStatus]:
    """Return the state of many sessions in numbers, without opening them.

    A store of trimtab is asked once for each 100 sessions, by one statement or command; an encrypted one
    twice. Any other, and a Redis Cluster, is asked once for each session. No function of a session is needed,
    no log is read, and nothing is written.

    Args:
        store: The store.
        sessions: Their names, such as a page of `store.sessions(limit=100)`, which has their labels, too.

    Returns:
        One for each name, in order. A session that is not there, was deleted since it was listed, is
        damaged or has no key any more is one with an `error`.

    Raises:
        ConfigurationError: `store` is no store, or a name cannot be that of a session.
        StoreUnavailableError: Ask again.

    Example:
        >>> from trimtab import Session
        >>> from trimtab.stores import MemoryStore
        >>> store = MemoryStore()
        >>> event = Session(500, store=store, id="a", owner="ada").add({"role": "user", "content": "Hi"})
        >>> for one in statuses(store, store.sessions(owner="ada", limit=100)):
        ...     print(one.session, one.session.owner, one.recent_messages, one.budget_tokens)
        a ada 1 500
    """
    return run(_statuses(_check(store, sessions), sessions), _answer)


async def astatuses(store: Store, sessions: Iterable[str], /) -> list[StoredStatus]:
    """Return the state of many sessions in numbers; see `statuses`."""
    return await arun(_statuses(_check(store, sessions), sessions), _aanswer)


def _answer(ask: ReadNewest) -> Any:
    return ask.now()


async def _aanswer(ask: ReadNewest) -> Any:
    return await ask.later()


def _check(store: object, sessions: object) -> Store:
    if isinstance(sessions, str):
        raise ConfigurationError(f"pass a list of names, such as [{sessions!r:.80}], not one name")
    if not isinstance(sessions, Iterable):
        raise ConfigurationError(
            f"pass a list of names, such as store.sessions(limit=100), not {sessions!r:.80}"
        )
    if isinstance(store, Store):
        return store
    raise ConfigurationError(
        f"statuses takes a Store, such as open_store('chats.db'), not {store!r:.80}", argument="store"
    )


def _statuses(store: Store, sessions: Iterable[str]) -> Steps[list[StoredStatus]]:
    names = [check_session_name(one) and one for one in sessions]
    made = list[StoredStatus]()
    for at in range(0, len(names), _AT_ONCE):
        part = names[at : at + _AT_ONCE]
        newest: Newest = yield from read_newest(store, list(dict.fromkeys(map(str, part))))
        made += (_status(name, newest.get(name)) for name in part)
    return made


def _status(name: str, newest: Event | ContextError | None) -> StoredStatus:
    listed = name if isinstance(name, SessionEntry) else SessionEntry(name)
    try:
        return _read(listed, newest)
    except ContextError as error:
        return StoredStatus(session=listed, error=error)


def _read(listed: SessionEntry, newest: Event | ContextError | None) -> StoredStatus:
    name = str(listed)
    if newest is None:
        _refuse_missing(name, listed.incarnation)
    if isinstance(newest, ContextError):
        raise newest
    if listed.incarnation and newest.incarnation not in ("", listed.incarnation):
        raise SessionDeletedError(
            f"session {name!r} was deleted since it was listed, and another session has its name now: list"
            " the sessions again",
            session=name,
        )
    check_events([newest], name)
    state = state_of(newest, name)
    session = SessionEntry(
        name,
        version=newest.version,
        used=newest.time,
        labels=listed.labels,
        incarnation=newest.incarnation,
    )
    return StoredStatus(
        session=session,
        budget_tokens=state.budget_tokens,
        recent_messages=state.recent_messages,
        recent_tokens=state.recent_tokens,
        pending_messages=state.pending_messages,
        pending_tokens=state.pending_tokens,
        has_summary=bool(state.summary or state.anchor_summary),
        failures=state.failures,
        retry_tokens=state.retry_tokens,
        known_facts=state.facts.known,
        stale_facts=state.facts.stale,
        fact_failures=state.facts.failures,
    )


def _refuse_missing(name: str, incarnation: str) -> NoReturn:
    if incarnation:
        raise SessionDeletedError(f"session {name!r} was deleted since it was listed", session=name)
    raise UnknownNameError(f"there is no session {name!r} in this store", name=name, near=())
