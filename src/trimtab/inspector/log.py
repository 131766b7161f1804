"""The log of a session: its timeline, what may be taken back in it, and its view of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from trimtab.errors import UnknownNameError
from trimtab.inspector.views import Entry, View
from trimtab.report import MessageRow
from trimtab.report.text import number, plain, plural, runs
from trimtab.session import Session
from trimtab.session.text import event_text
from trimtab.session.undo import InForce
from trimtab.stores import Event

__all__ = ["Log", "Moment"]

_TEXT_CHARS = 400


class Moment(NamedTuple):
    """An event of a log, for people."""

    version: int
    kind: str
    time: str
    """In UTC."""
    said: str
    id: str
    is_undoable: bool
    """Whether `undo` would take it back."""


class Log:
    """What happened in a session, read again when it has grown."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._read: tuple[int, list[Event]] = (-1, [])
        self._views: dict[tuple[int, int], View] = {}

    @property
    def version(self) -> int:
        """The newest version, of other writers, too."""
        return self._session.refresh()

    def events(self) -> list[Event]:
        """Return the whole log, oldest first."""
        version = self.version
        if self._read[0] != version:
            self._read = version, list(self._session.history(kinds=None))
            self._views.clear()
        return self._read[1]

    def moments(self, start: int, stop: int) -> list[Moment]:
        """Return a part of the timeline, the newest first."""
        events = self.events()
        undoable = {event.version for event in _in_force(events)}
        page = events[::-1][start:stop]
        return [_moment(event, is_undoable=event.version in undoable) for event in page]

    def undone_by(self, event_id: str) -> list[Event]:
        """List what `undo` of an event takes back: it and every decision after it, oldest first.

        Raises:
            UnknownNameError: No such decision is in force.
        """
        decisions = _in_force(self.events())
        for at, event in enumerate(decisions):
            if event.id == event_id:
                return decisions[at:]
        raise UnknownNameError(
            f"session {self._session.id!r} has no decision {event_id!r} in force: it was taken back before,"
            " or is a message, which stays",
            name=event_id,
        )

    def status(self) -> list[tuple[str, str]]:
        """Say in numbers where the session stands."""
        found = self._session.status().to_dict()
        return [
            (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else plain(str(value)))
            for name, value in found.items()
            if value not in (None, 0)
        ]

    def undo(self, event_id: str) -> Event:
        """Take back a decision and those after it."""
        return self._session.undo(event_id)

    def recall(self, query: str, limit: int) -> list[Moment]:
        """Find what the view no longer shows, as the session's own search tool does."""
        return [_moment(event, is_undoable=False) for event in self._session.recall(query, limit)]

    def view(self, version: int | None) -> View:
        """Give the view at a version, with every message of the log up to it.

        Raises:
            ConfigurationError: There is no such version.
            BudgetExceededError: What must stay does not fit.
        """
        at = self.version if version is None else version
        key = (at, self._read[0])
        if key not in self._views:
            events = [event for event in self.events() if event.version <= at]
            self._views[key] = self._view(at, events)
        return self._views[key]

    def _view(self, at: int, events: Sequence[Event]) -> View:
        fitted = self._session.fit(at=at)
        change = self._session.diff(0, at)
        seen = [event.version for event in change.came]
        rows = _rows_of(seen, fitted.report.messages, has_recalled=bool(change.recalled_after))
        places = {index: place for place, index in enumerate(fitted.positions) if index is not None}
        said = [event for event in events if event.kind == "message" and event.message is not None]
        gone = _why_gone(events)
        shown = set(seen)
        recalled = {event.version for event in change.recalled_after}
        entries = _front(fitted.report.messages, len(rows), places)
        for index, event in enumerate(said):
            row = rows.get(event.version)
            why = "found for the question, as earlier text" if event.version in recalled else ""
            entries.append(
                _entry(
                    index,
                    event,
                    row,
                    why=why or gone.get(event.version, "no room among the recent messages"),
                    is_seen=row is not None or event.version in shown,
                    place=None if row is None else places.get(row.index),
                )
            )
        return View(fitted, sources=[event.message for event in said], _entries=entries)


def _moment(event: Event, *, is_undoable: bool) -> Moment:
    time = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    said = plain(" ".join(event_text(event)[: _TEXT_CHARS * 2].split()))[:_TEXT_CHARS]
    return Moment(event.version, event.kind, time, said, event.id, is_undoable)


def _in_force(events: Sequence[Event]) -> list[Event]:
    """List the decisions nothing has taken back, oldest first."""
    return [*InForce().among(reversed(events))][::-1]


def _why_gone(events: Sequence[Event]) -> dict[int, str]:
    """Say by version why messages are in no view: for those that are in one it says nothing that counts."""
    why = dict[int, str]()
    for event in _in_force(events):
        if event.kind == "summary":
            told = f"the summary of version {event.version:,} tells it"
            why.update((version, told) for unit in event.data["covers"] for version in unit)
        elif event.kind == "evicted":
            left = f"left the recent messages at version {event.version:,}"
            why.update((version, left) for unit in event.data["units"] for version in unit)
    for event in events:
        if event.kind == "popped":
            why.update((one[0], f"taken off at version {event.version:,}") for one in event.data["gone"])
        elif event.kind == "cleared":
            why.update((version, "said before the view was cleared") for version in range(event.version))
    return why


def _rows_of(
    seen: Sequence[int], rows: Sequence[MessageRow], *, has_recalled: bool
) -> Mapping[int, MessageRow]:
    """Match messages in view with rows of its report, where they stand in the log's order behind all else.

    What was recalled stands among them as one more, so that nobody knows which is which.
    """
    if has_recalled or not seen:
        return {}
    return dict(zip(seen, list(rows)[-len(seen) :], strict=False))


def _front(rows: Sequence[MessageRow], matched: int, places: Mapping[int, int]) -> list[Entry]:
    """List what always leads the view: system text, anchors, facts, the summary."""
    front = list(rows)[: len(rows) - matched] if matched else []
    return [
        Entry(
            kind="inserted",
            fate="leads the view",
            why="",
            tokens=f"{number(row.tokens_after)} tokens",
            role=row.role,
            title="session",
            note="",
            index=None,
            place=places.get(row.index),
        )
        for row in front
        if row.index in places
    ]


def _entry(
    index: int, event: Event, row: MessageRow | None, *, why: str, is_seen: bool, place: int | None
) -> Entry:
    told = "tells it" in why
    if not is_seen:
        kind, fate = ("summarized", "summarized") if told else ("evicted", "not in view")
    elif row is None or row.fate == "kept":
        kind, fate = "kept", "in view"
    else:
        kind, fate = row.fate, "shortened" if row.fate == "changed" else "not in view"
    size = None if row is None else row.tokens_after if row.fate != "evicted" else row.tokens_before
    return Entry(
        kind=kind,
        fate=fate,
        why="" if is_seen and fate == "in view" else why,
        tokens="" if size is None else f"{number(size)} tokens",
        role=str(event.message.get("role") or event.message.get("type") or ""),
        title=f"version {event.version:,}",
        note="",
        index=index,
        place=place,
    )


def told_of(events: Sequence[Event]) -> str:
    """Say what taking back these decisions does."""
    rest = events[1:]
    more = f", and {plural(len(rest), 'decision')} after it (version {runs(e.version for e in rest)})"
    return f"the {events[0].kind} of version {events[0].version:,}{more if rest else ''}"
