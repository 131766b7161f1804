"""The newest events of many sessions: by one request where a store can, otherwise by one for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from trimtab._shared.steps import Steps
from trimtab.errors import ContextError, CorruptSessionError, EncryptionKeyError, SessionDeletedError
from trimtab.stores.base import Event, LoadRequest, Store
from trimtab.stores.rows import from_row, missing_event

Newest: TypeAlias = Mapping[str, Event | ContextError]
"""The newest event of each session by its name, or why it cannot be read; no session, no entry."""


@runtime_checkable
class NewestLoader(Protocol):
    """A store that reads the newest events of many sessions at once, as every one of trimtab does.

    A store of a user's may have both methods, too; without them each session is read by `load`.
    """

    def load_newest(self, names: Sequence[str], /) -> Newest: ...

    async def aload_newest(self, names: Sequence[str], /) -> Newest: ...


class _Many(NamedTuple):
    """A question for all of them at once."""

    store: NewestLoader
    names: Sequence[str]

    def now(self) -> Newest:
        return self.store.load_newest(self.names)

    async def later(self) -> Newest:
        return await self.store.aload_newest(self.names)


class _One(NamedTuple):
    """A question for one of them."""

    store: Store
    request: LoadRequest

    def now(self) -> list[Event]:
        return self.store.load(self.request)

    async def later(self) -> list[Event]:
        return await self.store.aload(self.request)


ReadNewest = _Many | _One
"""What `read_newest` yields."""


def read_newest(store: Store, names: Sequence[str], /) -> Steps[Newest]:
    """Read the newest event of each session."""
    if isinstance(store, NewestLoader):
        many: Newest = yield _Many(store, names)
        return many
    found: dict[str, Event | ContextError] = {}
    for name in names:
        try:
            events: list[Event] = yield _One(store, LoadRequest(session=name, limit=1, newest_first=True))
            found.update((name, event) for event in events)
        except (CorruptSessionError, EncryptionKeyError, SessionDeletedError) as error:
            found[name] = error
    return found


def newest_in(rows: Iterable[Sequence[Any]], /) -> dict[str, Event | ContextError]:
    """Make newest events of rows.

    Args:
        rows: Name, incarnation and version of each session by its own record, and the columns of its event
            of that version; the first of these is None where there is no such event.
    """
    found: dict[str, Event | ContextError] = {}
    for name, incarnation, version, *row in rows:
        try:
            if row[0] is None:
                raise missing_event(name, version)
            found[name] = from_row(row, session=name, incarnation=incarnation)
        except CorruptSessionError as error:
            found[name] = error
    return found
