"""Which sessions a list asks for, in which order, where its next page begins, and how all of them go."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from trimtab._shared.checks import check_whole, number_of
from trimtab._shared.steps import Steps
from trimtab.errors import ConfigurationError, CorruptSessionError
from trimtab.stores.labels import (
    Labels,
    Receipt,
    SessionEntry,
    Sessions,
    check_metadata,
    check_owner,
    is_text,
    keys_of,
)

BATCH_SESSIONS = 100
"""Most sessions that one transaction removes: other writers wait for it."""

BATCH_EVENTS = 10_000
"""Most events that it removes, if these are of more than one session."""

EXPIRE_LIMIT = 1_000
"""Most sessions that one call of `expire` removes, if it is not told another number."""


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """Which sessions to list; those that are shown meet every condition.

    By name; with `used_before` or `used_after` by the time of use, then by name.
    """

    owner: str | None = None
    prefix: str | None = None
    metadata: Mapping[str, Any] | None = None
    used_before: float | None = None
    used_after: float | None = None
    limit: int | None = None
    after: str | None = None
    with_damaged: bool = False
    """Whether to show sessions whose labels cannot be read, as who removes them needs only their names."""

    def __post_init__(self) -> None:
        if self.owner is not None:
            check_owner(self.owner)
        if self.prefix is not None and not is_text(self.prefix, least=0):
            raise ConfigurationError(
                f"prefix must be the beginning of a session's name, not {self.prefix!r:.80}",
                argument="prefix",
            )
        if self.metadata is not None:
            check_metadata(self.metadata)
        for name, given in (("used_before", self.used_before), ("used_after", self.used_after)):
            if given is not None:
                object.__setattr__(self, name, check_time(given, name))
        if self.limit is not None:
            object.__setattr__(self, "limit", check_limit(self.limit))
        _ = self.place

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for, as `Store.sessions` takes it."""
        asked = {one.name: vars(self)[one.name] for one in fields(self)}
        return {name: one for name, one in asked.items() if one is not None and name != "with_damaged"}

    @property
    def by_use(self) -> bool:
        """Whether the order is that of use."""
        return self.used_before is not None or self.used_after is not None

    @cached_property
    def keys(self) -> list[str]:
        """What the index knows the metadata by."""
        return keys_of(self.metadata or {})

    @cached_property
    def end(self) -> str | None:
        """The first text behind all that begin with the prefix; None: there is none."""
        return _end_of(self.prefix) if self.prefix else None

    @cached_property
    def place(self) -> tuple[float, str] | tuple[str] | None:
        """The key of the last session of the page before; None: this is the first page."""
        if self.after is None:
            return None
        read: Any = None
        try:
            read = json.loads(self.after)
            *times, name = read
            known = is_text(name) and [type(one) for one in times] == [float] * self.by_use
            known = known and all(map(math.isfinite, times))
        except (TypeError, ValueError, RecursionError):
            known = False
        if not known:
            raise ConfigurationError(
                f"after must be the `next` of a page of a list in the same order, not {self.after!r:.80}",
                argument="after",
            )
        return tuple(read)

    def key_of(self, entry: SessionEntry) -> tuple[float, str] | tuple[str]:
        """Return what a session is in order by."""
        return (entry.used, str(entry)) if self.by_use else (str(entry),)

    def is_met(self, entry: SessionEntry) -> bool:
        """Tell whether a session meets every condition."""
        return (
            (self.owner is None or entry.owner == self.owner)
            and (not self.prefix or entry.startswith(self.prefix))
            and (self.used_before is None or entry.used < self.used_before)
            and (self.used_after is None or entry.used > self.used_after)
            and (not self.keys or set(self.keys) <= set(keys_of(entry.metadata)))
        )

    @property
    def asked(self) -> int | None:
        """How many to read: one more than is shown tells whether there is another page."""
        return None if self.limit is None else self.limit + 1

    def page(self, entries: list[SessionEntry]) -> Sessions:
        """Make the page of what was read, `asked` at most."""
        shown = entries[: self.limit]
        damaged = next((one for one in shown if isinstance(one, DamagedEntry)), None)
        if damaged is not None and not self.with_damaged:
            raise CorruptSessionError(
                f"session {str(damaged)!r}: its labels, or what else the list says of it, cannot be read."
                f" store.delete({str(damaged)!r}) removes it; if its log can be read, copy_session(…, to=…)"
                " makes a session of it that has the labels of the log",
                session=str(damaged),
            )
        more = len(entries) > len(shown)
        return Sessions(shown, next=json.dumps(self.key_of(shown[-1])) if more else None)

    def conditions(self, name: str, mark: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Write the conditions in SQL, all but that on metadata.

        Args:
            name: The column of the session's name.
            mark: What stands for a value.
        """
        if self.owner is not None:
            yield f"owner = {mark}", (self.owner,)
        if self.prefix:
            yield f"{name} >= {mark}", (self.prefix,)  # LIKE would read % and _ of a name as its own
        if self.end is not None:
            yield f"{name} < {mark}", (self.end,)
        if self.used_before is not None:
            yield f"used < {mark}", (self.used_before,)
        if self.used_after is not None:
            yield f"used > {mark}", (self.used_after,)
        if self.place is not None and self.by_use:
            yield f"(used, {name}) > ({mark}, {mark})", self.place
        elif self.place is not None:
            yield f"{name} > {mark}", self.place

    def order(self, name: str) -> str:
        """Write the order in SQL."""
        return f"used, {name}" if self.by_use else name


def _end_of(prefix: str) -> str | None:
    for at in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[at]) + 1
        if following == 0xD800:  # surrogates are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[:at] + chr(following)
    return None


class DamagedEntry(SessionEntry):
    """A session of whose labels, version and time of use something cannot be read."""


def entry_of(
    name: str, version: Any, used: Any, owner: Any, metadata: Any, ttl: Any, incarnation: object, /
) -> SessionEntry:
    """Make an entry of the columns of a row."""
    try:
        labels = Labels(owner=owner, metadata=json.loads(metadata) if metadata else {}, ttl=ttl)
        return SessionEntry(
            name, version=int(version), used=float(used), labels=labels, incarnation=str(incarnation)
        )
    except (ConfigurationError, TypeError, ValueError, RecursionError):
        return DamagedEntry(name, incarnation=str(incarnation))


@dataclass(slots=True)
class Removal:
    """One transaction's share of an order: which sessions it removes, and on which condition."""

    entries: list[SessionEntry] = field(default_factory=list)
    owner: str | None = None

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [str(one) for one in self.entries]

    def meant(self, now: Mapping[str, tuple[str, str | None]], /) -> list[SessionEntry]:
        """Say which of them are still as they were listed.

        Args:
            now: Incarnation and owner of the sessions that have these names now.
        """
        return [
            one
            for one in self.entries
            if one in now and now[one] == (one.incarnation or now[one][0], self.owner)
        ]


def batches(entries: Iterable[SessionEntry], owner: str | None, /) -> Iterator[Removal]:
    """Part sessions into what one transaction removes."""
    batch, events = Removal(owner=owner), 0
    for entry in entries:
        full = len(batch.entries) == BATCH_SESSIONS or events + entry.version > BATCH_EVENTS
        if batch.entries and full:
            yield batch
            batch, events = Removal(owner=owner), 0
        batch.entries.append(entry)
        events += entry.version
    if batch.entries:
        yield batch


def remove_owned(
    owner: str,
    list_page: Callable[[ListRequest], Steps[Sessions]],
    remove: Callable[[Removal], Steps[Receipt]],
) -> Steps[Receipt]:
    """Remove every session of an owner that is there now, each once; those that begin meanwhile may stay."""
    check_owner(owner)
    receipt, after = Receipt(), None
    while True:
        request = ListRequest(owner=owner, limit=BATCH_SESSIONS, after=after, with_damaged=True)
        page = yield from list_page(request)
        for batch in batches(page, owner):
            receipt += yield from remove(batch)
        after = page.next
        if after is None:
            return receipt


def remove_by_name(names: Iterable[str], remove: Callable[[Removal], Steps[Receipt]]) -> Steps[Receipt]:
    """Remove sessions by their names, whichever have them; of nobody's."""
    receipt = Receipt()
    for batch in batches(map(SessionEntry, names), None):
        receipt += yield from remove(batch)
    return receipt


@runtime_checkable
class ManyDeleter(Protocol):
    """A store that removes many sessions in one order, as every one of trimtab does."""

    def delete_many(self, names: Sequence[str], /) -> Receipt: ...


def left_by(
    batch: Removal, gone: Iterable[str], now: Mapping[str, tuple[str, str | None]], /
) -> dict[str, str]:
    """Say why sessions of a batch are still there.

    Args:
        batch: What was to go.
        gone: What went.
        now: Incarnation and owner of the sessions that have these names now.
    """
    left, went = {}, set(gone)
    for entry in batch.entries:
        name = str(entry)
        if name in went or name not in now:
            continue  # somebody else removed it
        incarnation, owner = now[name]
        if incarnation != entry.incarnation:
            left[name] = "it was deleted and begun again meanwhile"
        elif owner != batch.owner:
            left[name] = "it got another owner meanwhile"
    return left


def check_time(given: object, name: str = "now", /) -> float:
    """Return a time in seconds since 1970."""
    seconds = number_of(given)
    with suppress(OverflowError):  # of a whole number
        if seconds is not None and math.isfinite(seconds):
            return float(seconds)
    raise ConfigurationError(
        f"{name} must be a time in seconds since 1970, not {reprlib.repr(given)}", argument=name
    )


def check_limit(limit: object, /) -> int:
    """Return a number of sessions, at least one, and as large as a store can count."""
    return min(check_whole("limit", limit, least=1), 2**53)


def check_one(session: object, owner: object, /) -> None:
    """Insist on one of the two: what is to be deleted."""
    if (session is None) == (owner is None):
        raise ConfigurationError(
            "delete takes the name of one session, delete('chat-1'), or owner= for all of an owner's"
        )
