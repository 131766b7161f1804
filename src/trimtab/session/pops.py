"""Which messages of the log were popped, without reading the events between (SPEC E11).

A pop takes the newest message there is, so that from that message to the event that says so nothing lives
any more: a span of the log. Each such event lists the spans up to its own, and names the one before it where
these are too many; a span that lies in a newer one is not listed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trimtab.errors import CorruptSessionError
from trimtab.session.effects import Steps
from trimtab.session.state import State
from trimtab.stores import Event, LoadRequest
from trimtab.stores.rows import PRUNED

Span = tuple[int, int]
"""Versions of a message that was popped, and of the event that says so."""

MAX_SPANS = 128
"""Spans one event lists: a log of many pops does not hold all of them in each."""


class Gone:
    """Versions whose messages were popped."""

    def __init__(self, spans: Iterable[Sequence[int]] = ()) -> None:
        listed = sorted((start, end) for start, end in spans)
        self._starts = [start for start, _ in listed]
        self._ends = [end for _, end in listed]

    def __contains__(self, version: Any) -> bool:
        at = bisect_right(self._starts, version) - 1
        return at >= 0 and version <= self._ends[at]


class WayBack:
    """Events read from the newest back: a pop comes before the messages that it removed."""

    def __init__(self) -> None:
        self._border: int | None = None
        """From this version on, everything found later was popped; None: no pop was found."""

    def there(self, events: Iterable[Event]) -> Iterator[Event]:
        """List events, the newest first, without the messages that were popped."""
        for event in events:
            if event.kind == "popped":
                start = event.data["gone"][-1][0]
                self._border = start if self._border is None else min(self._border, start)
            if event.kind != "message" or self._border is None or event.version < self._border:
                yield event


def gone_since(session: str, state: State, start: int) -> Steps[Gone]:
    """Tell which messages from a version on were popped.

    Complexity: reads an event for each `MAX_SPANS` pops since.
    """
    spans, at = list[Sequence[int]](), state.popped
    while at >= start and at:
        event = yield from _pop_at(session, at)
        if event is None:
            break
        spans += event.data["gone"]
        at = event.data["older"]
    return Gone(spans)


def spans_with(session: str, state: State, span: Span) -> Steps[dict[str, object]]:
    """Return what the event of a pop has to list of those before it."""
    spans, older = list[Sequence[int]](), state.popped
    while older and not spans:
        event = yield from _pop_at(session, older)
        if event is None:
            older = 0
            break
        spans = [one for one in event.data["gone"] if one[0] < span[0]]
        if len(spans) < MAX_SPANS:
            older = event.data["older"]
        else:
            spans = []
            break
    return {"gone": [*map(list, spans), list(span)], "older": older}


def _pop_at(session: str, version: int) -> Steps[Event | None]:
    """Read the event of a pop; None if it was pruned, with all that it and those before it took off."""
    events: list[Event] = yield LoadRequest(session=session, after=version - 1, before=version + 1)
    if events and events[0].kind == PRUNED:
        return None
    if not events or events[0].kind != "popped":
        raise CorruptSessionError(
            f"session {session!r}: event {version} is not a pop", session=session, version=version
        )
    return events[0]
