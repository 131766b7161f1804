"""How the contract of stores asks one: events, sessions, and what an error must be."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from trimtab.stores import Appended, AppendRequest, Event, LoadRequest, SearchRequest, Store, query_terms
from trimtab.testing.errors import ContractBroken, broken

__all__ = ["Asking", "entry", "note", "refusal"]

E = TypeVar("E", bound=Exception)


def note(text: str = "", *, id: str | None = None) -> Event:
    """Make an event that is no message."""
    return Event(id=id or uuid.uuid4().hex, kind="note", time=1.25, data={"text": text})


def entry(message: Any) -> Event:
    """Make an event of a message."""
    return Event(id=uuid.uuid4().hex, kind="message", time=1.25, data={"message": message})


def refusal(call: Callable[[], object], kind: type[E], rule: str, what: str = "") -> E:
    """Insist that a call raises an error of a kind, and return it."""
    try:
        answer = call()
    except kind as error:
        return error
    except Exception as error:
        wanted = f"{rule}: {what!r:.80} raised {type(error).__name__}, not {kind.__name__}: {error!s:.200}"
        raise ContractBroken(wanted, rule=rule) from error
    return broken(rule, f"{what!r:.80} answered {answer!r:.80}, where {kind.__name__} is due")


class Asking:
    """A store, and the names of the sessions made in it."""

    def __init__(self, store: Store, *, prefix: str) -> None:
        self.store = store
        self.prefix = prefix
        self.made: list[str] = []

    def new_session(self, name: str = "") -> str:
        """Return a name nobody has used."""
        self.made.append(f"{self.prefix}{len(self.made)}-{name}")
        return self.made[-1]

    def filled(self, count: int) -> str:
        """Make a session of so many events."""
        session = self.new_session()
        self.append(session, 0, count)
        return session

    def append(self, session: str, expected: int, count: int, *, first_id: str | None = None) -> Appended:
        """Add so many events; none is no request at all."""
        if not count:
            return Appended(expected)
        events = [note(f"event {expected + at}", id=None if at else first_id) for at in range(count)]
        return self.store.append(AppendRequest(session=session, expected_version=expected, events=events))

    def load(self, session: str) -> list[Event]:
        """Read a whole session."""
        return self.store.load(LoadRequest(session=session))

    def query(self, session: str, text: str, *, limit: int = 50) -> SearchRequest:
        """Ask for the messages with any term of a text."""
        return SearchRequest(session=session, terms=query_terms(text), limit=limit)

    def equal(self, rule: str, got: object, wanted: object, claim: str) -> None:
        """Insist on an answer."""
        if got != wanted:
            broken(rule, f"{claim}: got {got!r:.300}, wanted {wanted!r:.300}")

    def clean(self) -> None:
        """Delete every session that was made."""
        for session in self.made:
            self.store.delete(session)
