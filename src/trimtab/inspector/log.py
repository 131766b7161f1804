"""The log of a session: its timeline, what may be taken back in it, and its view of a version."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple

from trimtab.budget import Budget
from trimtab.errors import UnknownNameError
from trimtab.inspector.views import (
    Entry,
    View,
    attempt,
    budget_like,
    inserted_entry,
    keep,
    keys_of,
    names_of,
    places_of,
    row_sources,
)
from trimtab.report import MessageRow, Report
from trimtab.report.html import kind_of
from trimtab.report.text import plain, plural, reason_words, runs
from trimtab.session import Origin, Session, SessionRule
from trimtab.session.in_context import HISTORY
from trimtab.session.log import state_of
from trimtab.session.text import Gap, event_text, with_gaps
from trimtab.session.undo import InForce
from trimtab.stores import Event

__all__ = ["Log", "Moment"]

_TEXT_CHARS = 400
LISTED = 2_000
"""Events of a longer log that are read for a page, until all of it is asked for; the newest."""
_AT_ONCE = 64
"""Events that are read behind one that is sent: others that are may be among them."""
OTHER = Origin("other")
"""Of a row of another block than the session's."""
_VERSION = attrgetter("version")
_TITLES = {
    "system": "system text",
    "rules": "rules",
    "anchor": "anchor",
    "facts": "facts",
    "shortened": "trimtab",
}
_WHY_INSERTED = {
    "system": "the system text of the session",
    "rules": "rules of the host, or of messages that are not in view",
    "anchor": "always sent",
    "facts": "facts from earlier messages",
    "summary": "in place of the messages it summarizes",
    "recalled": "earlier messages found for the question",
    "shortened": "so that a provider accepts it",
    "other": "another block of the request",
}
_FATES = {"kept": "kept", "pinned": "kept, pinned", "changed": "shortened"}


class _Gone(NamedTuple):
    """Why a message of a log is in no view."""

    kind: str
    why: str
    reason: str
    """The same without the version, as it is of others, too."""


_NO_ROOM = _Gone("evicted", "no room among the recent messages", "no room among the recent messages")


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
    """What happened in a session, read on when it has grown."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._events: list[Event] = []
        """Those at hand, without a gap up to the newest version."""
        self._before = 0
        """The version before the first of them."""
        self._views: OrderedDict[tuple[int, int | None, int], View] = OrderedDict()
        self._most: OrderedDict[int, int] = OrderedDict()
        self.version = 0
        """The newest version there was when somebody asked."""

    def refresh(self) -> bool:
        """Read what came since, of other writers, too; True if what was read before is another now.

        A redaction or a pruning rewrites what was said, and a session that was deleted may begin anew: what
        is at hand of before is no longer shown then.
        """
        version, known = self._session.refresh(), self.version
        is_first = known == 0 and not self._events
        came = self._read(known, version) if version > known and not is_first else []
        is_other = version < known or any(event.kind in ("redacted", "pruning") for event in came)
        if is_first or is_other:
            self._events, self._before = [], version
            self._views.clear()
            self._most.clear()
        else:
            self._events += came
        self.version = version
        return is_other

    def _read(self, after: int, until: int) -> list[Event]:
        return list(self._session.history(after=after, before=until + 1, kinds=None))

    def events(self, version: int | None = None, *, since: int = 0) -> list[Event]:
        """Return the log up to a version, oldest first; what is not at hand is read, back to `since`."""
        if since < self._before:
            self._events[:0] = self._read(since, self._before)
            self._before = since
        first = bisect_right(self._events, since, key=_VERSION)
        last = len(self._events) if version is None else bisect_right(self._events, version, key=_VERSION)
        return self._events[first:last]

    def messages(self, version: int, *, since: int = 0) -> list[Event]:
        """List the messages up to a version."""
        return [event for event in self.events(version, since=since) if event.kind == "message"]

    def since(self, version: int, asked: int | None) -> int | None:
        """Say from where on a page lists the messages of a view; None: all of a log that is not long."""
        if version <= LISTED:
            return None
        return version - LISTED if asked is None else min(asked, version)

    def name(self, version: int, entries: Iterable[Entry]) -> list[Entry]:
        """Name the messages of a view of another policy by their versions, as those of the session are."""
        said = self.messages(version)
        keys = keys_of([event.message for event in said])
        events = dict(zip(keys, said, strict=True))
        return [_rename(entry, events.get(entry.key)) for entry in entries]

    def budget_tokens(self, version: int, *, since: int = 0) -> int:
        """Return the budget that was in force at a version."""
        for event in reversed(self.events(version, since=since)):
            if event.kind in ("budget", "options"):
                options = event.data.get("options", event.data)
                return int(options["budget_tokens"])
        if since and version < self.version:
            return self.budget_tokens(version)
        return self._session.budget_tokens

    def moments(self, start: int, stop: int, version: int | None = None) -> list[Moment]:
        """Return a part of the timeline up to a version, the newest first; what may be undone may be now."""
        newest = self.version if version is None else version
        since = max(0, newest - stop)
        undoable = {event.version for event in _in_force(self.events(since=since))}
        if self._is_pruned(newest):  # a row is no version there, so all that is kept is read, once
            page = self._with_gaps(newest)[::-1][start:stop]
        else:
            page = [*self.events(newest, since=since)[::-1][start:stop]]
        return [_moment(one, undoable) for one in page]

    def rows(self, version: int) -> int:
        """Say how many rows the timeline up to a version has: a run of pruned events is one."""
        return len(self._with_gaps(version)) if self._is_pruned(version) else version

    def _with_gaps(self, version: int) -> list[Event | Gap]:
        return [*with_gaps(self.events(version), after=0, until=version)]

    def _is_pruned(self, version: int) -> bool:
        newest = self.events(version, since=max(0, version - 1))
        return bool(newest) and state_of(newest[-1], self._session.id).whole > 1

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
            f"session {self._session.id!r} has no current decision {event_id!r}: it was taken back before,"
            " or is a message, which cannot be taken back",
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

    def rules(self, version: int, *, since: int = 0) -> list[tuple[SessionRule, int | None]]:
        """List the rules that hold now, and the version of the message of each; of an older version none."""
        if version != self.version:
            return []
        versions = {event.id: event.version for event in self.messages(version, since=since)}
        held = [one for one in self._session.rules if one.place not in ("superseded", "listed")]
        return [(one, versions.get(one.source or "")) for one in held]

    def undo(self, event_id: str) -> Event:
        """Take back a decision and those after it."""
        return self._session.undo(event_id)

    def recall(self, query: str, limit: int) -> list[Moment]:
        """Find what the view no longer shows, as the session's own search tool does."""
        return [_moment(event, ()) for event in self._session.recall(query, limit)]

    def view(self, version: int, window: int | None = None, *, since: int = 0) -> View:
        """Give the view at a version, with every message of the log up to it; or as another budget makes it.

        Of messages up to the version `since` it has only those that are sent.

        Raises:
            ConfigurationError: There is no such version, or the budget is no session's.
            BudgetExceededError: What must stay does not fit, and nothing could be tried.
        """
        return keep(self._views, (version, window, since), lambda: self._view(version, window, since))

    def most_tokens(self, version: int, *, since: int = 0) -> int | None:
        """Return a budget at which nothing waits; None where the budget is a Context's."""
        if self._session.context is not None:
            return None
        return keep(self._most, version, lambda: self._most_tokens(version, since))

    def _most_tokens(self, version: int, since: int) -> int:
        base = self.view(version, since=since)
        tokens = base.window
        for event in self.events(version, since=max(0, version - 1)):
            state = state_of(event, self._session.id)
            # where a provider reported more than was counted, a session goes by less than its budget
            all_of_it = state.calibration.expected_tokens(base.report.tokens_after + state.pending_tokens)
            tokens = max(tokens, all_of_it + _beside(base.report))
        return tokens

    def _view(self, at: int, window: int | None, since: int) -> View:
        budget: Budget | int | None = window
        if window is not None:
            base = self.view(at, since=since)
            if window == base.window:
                return base
            if _beside(base.report):
                budget = budget_like(base.report, window)
        fitted, error = attempt(lambda: self._session.fit(at=at, budget=budget))
        report = fitted.report
        if window is None:  # a log knows the tokens of a budget, and not what was kept free beside them
            window = report.window_tokens if _beside(report) else self.budget_tokens(at, since=since)
        origins = self._session.origins(at=at, budget=budget)
        said = [*self._sent_before(since, origins), *self.messages(at, since=since)]
        view = View(fitted, error, window=window, what="version")
        view.sources = {event.version: event.message for event in said}
        view.listed = list(_entries(view, said, origins, _why_gone(self.events(at, since=since))))
        return view

    def _sent_before(self, since: int, origins: Iterable[Origin]) -> Iterator[Event]:
        """Read the messages up to a version that are in a view all the same, as those that are pinned."""
        sent = {version for origin in origins if origin.kind == "message" for version in origin.versions}
        until = 0
        for version in sorted(sent):
            if until < version <= since:
                until = min(since, version + _AT_ONCE)
                yield from (event for event in self._read(version - 1, until) if event.version in sent)


def _beside(report: Report) -> int:
    """Return the tokens of a budget that are kept free."""
    return report.output_reserve_tokens + report.overhead_tokens + report.margin_tokens


def _moment(event: Event | Gap, undoable: Container[int]) -> Moment:
    if isinstance(event, Gap):
        return Moment(event.first, "pruned", "", event.text, "", is_undoable=False)
    time = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    said = plain(" ".join(event_text(event)[: _TEXT_CHARS * 2].split()))[:_TEXT_CHARS]
    return Moment(event.version, event.kind, time, said, event.id, event.version in undoable)


def _in_force(events: Sequence[Event]) -> list[Event]:
    """List the decisions nothing has taken back, oldest first."""
    return [*InForce().among(reversed(events))][::-1]


def _why_gone(events: Sequence[Event]) -> dict[int, _Gone]:
    """Say by version why messages are in no view: for those that are in one it says nothing that counts."""
    why = dict[int, _Gone]()
    for event in _in_force(events):
        at = f"version {event.version:,}"
        if event.kind == "summary":
            gone = _Gone("summarized", f"in the summary of {at}", "in a summary")
            why.update((version, gone) for unit in event.data["covers"] for version in unit)
        elif event.kind == "evicted":
            gone = _Gone("evicted", f"{_NO_ROOM.why}, at {at}", _NO_ROOM.reason)
            why.update((version, gone) for unit in event.data["units"] for version in unit)
    cleared = max((event.version for event in events if event.kind == "cleared"), default=0)
    first = events[0].version if events else cleared
    before = "said before the view was cleared"
    why.update(dict.fromkeys(range(first, cleared), _Gone("evicted", before, before)))
    for event in events:
        if event.kind == "popped" and event.version > cleared:
            own = event.data["gone"][-1][0]  # those before it are of earlier pops
            why[own] = _Gone("evicted", f"taken off at version {event.version:,}", "taken off")
    return why


def _entries(
    view: View, said: Sequence[Event], origins: Sequence[Origin], gone: Mapping[int, _Gone]
) -> Iterator[Entry]:
    """List every message of a log, and what the session or its Context puts around those in view.

    What stands before all messages of a view leads the list; else it stands before the message that it is
    sent before.
    """
    report, places, given = view.report, places_of(view.fitted), row_sources(view.fitted)
    sources, named = dict(view.sources), len(report.blocks) > 1
    origin_of = iter(origins)
    shown, recalled = dict[int, MessageRow](), dict[int, int | None]()
    before: dict[int, list[Entry]] = {}
    waiting = [inserted_entry(row) for row in report.inserted]
    is_front, counts = True, Counter[str]()
    for row in report.messages:
        place = places.get(row.index)
        origin = next(origin_of, OTHER) if row.block == HISTORY else OTHER
        if origin.kind == "message":
            version = origin.versions[0]
            shown[version] = row
            if is_front:
                yield from waiting
                waiting, is_front = [], False
            before[version], waiting = waiting, []
            continue
        if origin.kind == "recalled":
            recalled |= dict.fromkeys(origin.versions, place)
        counts[origin.kind] += 1
        index = None
        if origin is OTHER:
            index = -counts[origin.kind]  # no version: it is of no message of the log
            sources[index] = given[row.index]
        waiting.append(
            Entry(
                kind="inserted" if row.fate == "kept" else kind_of(row),
                fate="inserted" if origin is not OTHER else "of the request",
                why=_WHY_INSERTED[origin.kind] if row.fate == "kept" else reason_words(row),
                before=row.tokens_before,
                after=row.tokens_after,
                role=row.role,
                title=_title(origin, row),
                names=names_of(row, named=named),
                index=index,
                place=place,
                key=(origin.kind, counts[origin.kind]),
            )
        )
    view.sources = sources
    for event in said:
        yield from before.get(event.version, ())
        found = shown.get(event.version)
        yield _entry(
            event,
            found,
            gone=gone.get(event.version, _NO_ROOM),
            names=names_of(found, named=named) if found is not None else (),
            place=places.get(found.index) if found is not None else recalled.get(event.version),
        )
    yield from waiting


def _rename(entry: Entry, event: Event | None) -> Entry:
    if event is None:
        return replace(entry, number=None)
    version = event.version
    return replace(entry, title=f"#{version:,}", key=version, number=version, origin=event.data.get("origin"))


def _title(origin: Origin, row: MessageRow) -> str:
    if origin is OTHER:
        return f"block {row.block}"
    if origin.kind == "summary":
        return f"summary of version {origin.versions[0]:,}"
    if origin.kind == "recalled":
        return f"recalled: version {runs(origin.versions)}"
    return _TITLES.get(origin.kind, origin.kind)


def _entry(
    event: Event, row: MessageRow | None, *, gone: _Gone, names: tuple[str, ...], place: int | None
) -> Entry:
    reason: str | None = None
    if row is not None:
        kind, fate = kind_of(row), _FATES.get(kind_of(row), "evicted")
        fate = "kept, marked" if row.reason == "cache_mark" else fate
        why = reason_words(row)
    elif place is not None:
        kind, fate, why = "changed", "recalled", "found for the question, sent as earlier text"
    else:
        kind = fate = gone.kind
        why, reason = gone.why, gone.reason
    if event.data.get("redacted"):
        names = (*names, "redacted")
    message = event.message or {}
    return Entry(
        kind=kind,
        fate=fate,
        why=why,
        before=None if row is None else row.tokens_before,
        after=None if row is None else row.tokens_after,
        role=str(message.get("role") or message.get("type") or ""),
        title=f"#{event.version:,}",
        names=names,
        index=event.version,
        place=place,
        key=event.version,
        number=event.version,
        reason=reason,
        is_sized=row is not None,
        origin=event.data.get("origin"),
    )


def undo_words(events: Sequence[Event]) -> str:
    """Say what taking back these decisions does."""
    rest = events[1:]
    more = f", and {plural(len(rest), 'decision')} after it (version {runs(e.version for e in rest)})"
    return f"the {events[0].kind} of version {events[0].version:,}{more if rest else ''}"
