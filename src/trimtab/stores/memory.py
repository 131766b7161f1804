"""`MemoryStore`: sessions that live as long as the process; for tests, and where nothing need stay."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, nextafter
from threading import RLock
from typing import Any

from trimtab._shared.steps import run
from trimtab.relevance.index import Index
from trimtab.stores.base import Appended, AppendRequest, Event, Found, LoadRequest, SearchRequest
from trimtab.stores.fork import Forked
from trimtab.stores.labels import Labels, Receipt, SessionEntry, Sessions, check_owner, key_records, keys_of
from trimtab.stores.lists import ListRequest, check_one
from trimtab.stores.newest import Newest, newest_in
from trimtab.stores.rows import (
    Row,
    check_incarnation,
    check_session_name,
    conflict,
    from_row,
    id_taken,
    may_replace,
    new_incarnation,
    not_stored,
    same_event,
    to_rows,
    without_gaps,
)
from trimtab.stores.search import MAX_POSTINGS, Ranking, event_terms, usable_terms
from trimtab.stores.thread import ThreadedStore


class _Log:
    """The rows of one session; that of version 1 at place 0."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.places: dict[str, int] = {}
        self.index = Index()
        """Of its messages, by version."""
        self.incarnation = new_incarnation()
        self.labels = Labels()

    def entry(self, name: str) -> SessionEntry:
        """Make what a list of sessions says of it."""
        return SessionEntry(
            name,
            version=len(self.rows),
            used=float(self.rows[-1].time) if self.rows else 0.0,
            labels=self.labels,
            incarnation=self.incarnation,
        )

    def receipt(self) -> Receipt:
        """Make a receipt for removing it."""
        messages = sum(row.kind == "message" for row in self.rows)
        return Receipt(sessions=1, messages=messages, bytes=sum(len(row.body) for row in self.rows))

    def change_index(self, old: Sequence[Event], new: Sequence[Event]) -> None:
        """Take events out of the index, and put others into it."""
        for event in old:
            chars, terms = event_terms(event)
            if chars:
                self.index.remove_terms(chars, terms, place=event.version)
        for event in new:
            chars, terms = event_terms(event)
            if chars:
                self.index.add_terms(chars, terms, place=event.version)

    def kinds(self, versions: Sequence[int]) -> dict[int, str]:
        """Say of what kind events are."""
        return {version: self.rows[version - 1].kind for version in versions}


class _Listed:
    """The sessions in each order that a list may have: by name and by use, of all, an owner or a label."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, ...], list[Any]] = {}

    @staticmethod
    def _places(entry: SessionEntry) -> Iterator[tuple[tuple[str, ...], Any]]:
        name, use = (str(entry),), (entry.used, str(entry))
        yield ("name",), name
        yield ("use",), use
        if entry.owner is not None:
            yield ("name", entry.owner), name
            yield ("use", entry.owner), use
        for key in keys_of(entry.metadata):
            yield ("key", key), name
        if entry.expires is not None:
            yield ("end",), (entry.expires, str(entry))

    def add(self, entry: SessionEntry) -> None:
        for order, place in self._places(entry):
            insort(self._orders.setdefault(order, []), place)

    def remove(self, entry: SessionEntry) -> None:
        for order, place in self._places(entry):
            places = self._orders[order]
            del places[bisect_left(places, place)]
            if not places:
                del self._orders[order]

    def names(self, request: ListRequest) -> Iterator[str]:
        """Give the names of sessions among which are those asked for, in order."""
        owner = () if request.owner is None else (request.owner,)
        if request.by_use:
            places = self._orders.get(("use", *owner), [])
            lowest = -inf if request.used_after is None else nextafter(request.used_after, inf)
            first = bisect_left(places, (lowest,))
            before = request.used_before
            end = len(places) if before is None else bisect_left(places, (before,))
        else:
            order = ("key", request.keys[0]) if request.keys and not owner else ("name", *owner)
            places = self._orders.get(order, [])
            first = bisect_left(places, (request.prefix or "",))
            end = len(places) if request.end is None else bisect_left(places, (request.end,))
        if request.place is not None:
            first = max(first, bisect_right(places, request.place))
        return (place[-1] for place in places[first:end])

    def ends(self, now: float, limit: int) -> list[str]:
        """Give the names of sessions whose time is over, the first to end first."""
        places = self._orders.get(("end",), [])
        return [name for _, name in places[: min(limit, bisect_right(places, (now, "\U0010ffff")))]]


def _rows(log: _Log, request: LoadRequest) -> list[Row]:
    """Give the rows in the order asked for; of ids, all that have one of them."""
    if request.ids is not None:
        return [log.rows[log.places[one]] for one in dict.fromkeys(request.ids) if one in log.places]
    stop = len(log.rows) if request.before is None else min(request.before - 1, len(log.rows))
    places = range(max(request.after, 0), max(stop, 0))
    return [log.rows[place] for place in (places[::-1] if request.newest_first else places)[: request.limit]]


# `Forked` is first: the `__init__` of a protocol, as `Store` is, calls no other.
class MemoryStore(Forked, ThreadedStore):
    """Keeps sessions in memory, as text: the store shares no objects.

    Safe between threads and tasks; other processes do not see it. The words of added events go into an
    index, so the time of `search` depends on what it finds.

    Example:
        >>> from trimtab.stores import AppendRequest, Event, LoadRequest
        >>> store = MemoryStore()
        >>> hello = Event(id="e1", kind="message", time=0.0, data={"message": {"content": "Hello"}})
        >>> store.append(AppendRequest(session="s", expected_version=0, events=[hello])).version
        1
        >>> store.load(LoadRequest(session="s"))[0].message
        {'content': 'Hello'}
    """

    ends_with_process = True
    """Only this process can find a session here, and reading one never blocks for long."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._listed = _Listed()
        self._lock = RLock()
        super().__init__()  # last: from now on it is told of forks, by any thread, and needs its lock

    def __repr__(self) -> str:
        """Say how many sessions it has."""
        return f"<MemoryStore of {len(self._logs)} session{'' if len(self._logs) == 1 else 's'}>"

    def append(self, request: AppendRequest, /) -> Appended:
        rows, rewrites = to_rows(request)
        labels = request.new_labels()
        with self._lock:
            log = self._log(request)
            version = len(log.rows)
            stored = log.places.get(request.events[0].id) if request.events else None
            if stored is not None:
                event = from_row(log.rows[stored], session=request.session, incarnation=log.incarnation)
                return same_event(request, event, version=version)
            if request.expected_version != version:
                raise conflict(request, version)
            for row in rows:
                if row.id in log.places:
                    raise id_taken(request, row.id)
            for row in rewrites:
                stored_row = log.rows[row.version - 1]
                if not may_replace(row, stored_row):
                    raise not_stored(request, row.version, kind=stored_row.kind)
            old = [from_row(log.rows[row.version - 1], session=request.session) for row in rewrites]
            log.change_index(old, (*request.rewrites, *request.numbered()))
            if log.rows:
                self._listed.remove(log.entry(request.session))
            for row in rewrites:
                log.rows[row.version - 1] = row
            log.places.update((row.id, row.version - 1) for row in rows)
            log.rows += rows
            log.labels = labels or log.labels
            self._logs[request.session] = log
            self._listed.add(log.entry(request.session))
            return Appended(len(log.rows), incarnation=log.incarnation)

    def load(self, request: LoadRequest, /) -> list[Event]:
        check_session_name(request.session)
        with self._lock:
            log = self._log(request)
            version, rows = len(log.rows), _rows(log, request)
        events = [from_row(row, session=request.session, incarnation=log.incarnation) for row in rows]
        return without_gaps(events, request, version=version)

    def load_newest(self, names: Sequence[str], /) -> Newest:
        with self._lock:
            logs = {name: self._logs[check_session_name(name)] for name in names if name in self._logs}
            rows = [(name, log.incarnation, len(log.rows), *log.rows[-1]) for name, log in logs.items()]
        return newest_in(rows)

    def search(self, request: SearchRequest, /) -> Found:
        check_session_name(request.session)
        with self._lock:
            log = self._log(request)
            index, terms = log.index, usable_terms(request.terms)
            postings = {term: dict(index.newest(term, MAX_POSTINGS + 1)) for term in terms}
            ranking = Ranking(len(log.rows), len(index), index.sum_chars, index.chars, postings)
            for term in ranking.look_further():
                postings[term] = dict(index.newest(term, ranking.most + 1))
            best = run(ranking.best(request.limit), log.kinds)
            rows = [log.rows[version - 1] for version in best]
        events = (from_row(row, session=request.session, incarnation=log.incarnation) for row in rows)
        return Found(events, since=ranking.since)

    def _log(self, request: AppendRequest | LoadRequest | SearchRequest) -> _Log:
        """Find what a request is about; an empty log where there is none."""
        log = self._logs.get(request.session)
        check_incarnation(request.session, request.incarnation, None if log is None else log.incarnation)
        return log or _Log()

    def delete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        check_one(session, owner)
        with self._lock:
            if session is None:
                return self._remove(self.sessions(owner=check_owner(owner)))
            log = self._logs.get(check_session_name(session))
            if log is not None:
                check_incarnation(session, incarnation, log.incarnation)
            return self._remove([session], with_keys=False)

    def delete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names.

        Args:
            names: Of sessions that are nobody's; one that has an owner stays.
        """
        with self._lock:
            return self._remove(
                [one for one in names if one in self._logs and not self._logs[one].labels.owner]
            )

    def _remove(self, names: Sequence[str], *, with_keys: bool = True) -> Receipt:
        receipt = Receipt()
        for name in names:
            log = self._logs.pop(name, None)
            if log is not None:
                self._listed.remove(log.entry(name))
                records = key_records([log.entry(name)] if with_keys else [])
                gone = self._remove([one for one in records if one in self._logs])  # its key goes with it
                found = tuple(records.values())
                left, removed = ((), found) if gone.sessions else (found, ())
                receipt += replace(log.receipt(), keys=left, removed_keys=removed)
        return receipt

    def _list(self, request: ListRequest) -> Sessions:
        entries: list[SessionEntry] = []
        with self._lock:
            for name in self._listed.names(request):
                entry = self._logs[name].entry(name)
                if request.is_met(entry):
                    entries.append(entry)
                    if len(entries) == request.asked:
                        break
        return request.page(entries)

    def _expire(self, now: float, limit: int) -> Receipt:
        with self._lock:
            receipt = self._remove(self._listed.ends(now, limit))
            return replace(receipt, more=bool(self._listed.ends(now, 1)))

    def close(self) -> None:
        """Do nothing: the sessions live as long as the store."""

    def _before_fork(self) -> None:
        self._lock.acquire()

    def _after_fork(self, *, in_child: bool) -> None:
        if in_child:  # it goes on with a copy of what is there
            self._lock = RLock()
        else:
            self._lock.release()
