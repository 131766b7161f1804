"""What each event of a log says, and what its state may point at: not every log was written by a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trimtab.budget import MOST_TOKENS
from trimtab.errors import CorruptSessionError, FormatError
from trimtab.session.budget import LEAST_BUDGET
from trimtab.session.options import plain_options
from trimtab.session.plain import plain_message
from trimtab.session.state import State
from trimtab.stores import Event

__all__ = ["KINDS", "check_log"]


def check_log(events: Sequence[Event], read: Callable[[dict[str, Any]], object], /) -> None:
    """Check a whole log, from its first event.

    Args:
        events: In order; the versions are 1, 2, 3…
        read: Looks a message over; raises FormatError at what is none.

    Raises:
        CorruptSessionError: An event does not say what its kind says, or its state points at what is not
            there; `.version` is the first such event.

    Complexity: O(n) in events, each with the units its state names.
    """
    log = _Log(read)
    for event in events:
        try:
            log.take(event)
        except (CorruptSessionError, FormatError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptSessionError(
                f"event {event.version} ({event.kind!r:.80}) cannot be read: {error!s:.300}",
                version=event.version,
            ) from error


class _Log:
    """The kinds of the events so far, and which messages belong together."""

    def __init__(self, read: Callable[[dict[str, Any]], object]) -> None:
        self._read = read
        self._kinds: list[str] = [""]
        self._heads: dict[int, int] = {}
        """The first message of the unit of each message."""
        self._ids: set[str] = set()
        self._least_budget = LEAST_BUDGET

    def take(self, event: Event) -> None:
        """Check the next event."""
        _require(event.kind in _SAYS, "there is no such kind of event")
        _require(event.id not in self._ids, f"the id {event.id!r:.80} stands twice")
        self._ids.add(event.id)
        self._kinds.append(event.kind)
        _SAYS[event.kind](self, event.data, event.version)
        self._check_state(State.from_dict(event.state), event.version)

    # -- what an event says

    def message(self, data: Mapping[str, Any], version: int) -> None:
        """A message, and the one it belongs to."""
        for message in _mappings([data["message"]]):
            self._read(plain_message(message))
        for name in ("alone", "redacted"):
            _require(isinstance(data.get(name, False), bool), f"{name} is True or False")
        first = data.get("joins", version)
        self._heads[version] = version
        _require(type(first) is int and self._heads.get(first) == first, f"it joins {first!r:.80}")
        self._heads[version] = first

    def options(self, data: Mapping[str, Any], version: int) -> None:
        """What the session was made with."""
        (options,) = _mappings([data["options"]])
        plain_options(options)
        # the other blocks of a context may leave no room at all
        self._least_budget = 0 if options["given"].get("context") else LEAST_BUDGET

    def anchors(self, data: Mapping[str, Any], version: int) -> None:
        """Messages that stay."""
        for message in _mappings(data["anchors"]):
            self._read(plain_message(message))

    def summary(self, data: Mapping[str, Any], version: int) -> None:
        """A text, and what it stands for."""
        _texts([data["text"], data["mode"]])
        _number(data["messages"], least=1)
        _require(isinstance(data.get("stale", False), bool), "stale is True or False")
        self._point(data["previous"], "summary", version - 1)
        self._point_back(data.get("older", -1), version - 1)
        self._units(data["covers"], version)

    def evicted(self, data: Mapping[str, Any], version: int) -> None:
        """Units that wait from then on."""
        _texts([data["reason"]])
        self._units(data["units"], version)

    def failed(self, data: Mapping[str, Any], version: int) -> None:
        """Why there is no summary."""
        _texts([data["why"]])
        _number(data["messages"], least=0)

    def budget(self, data: Mapping[str, Any], version: int) -> None:
        """A number of tokens."""
        _number(data["budget_tokens"], least=LEAST_BUDGET, most=MOST_TOKENS)

    def usage(self, data: Mapping[str, Any], version: int) -> None:
        """What the provider reported for a view, beside what was counted."""
        _number(data["input_tokens"], least=1)
        _number(data["counted_tokens"], least=0)
        _number(data["view"], least=0, most=version - 1)
        if data["answer_tokens"] is not None:
            _number(data["answer_tokens"], least=0)

    def abridged(self, data: Mapping[str, Any], version: int) -> None:
        """The version of the log that this one was made of."""
        _number(data["of"], least=1)

    def cleared(self, data: Mapping[str, Any], version: int) -> None:
        """Nothing."""

    def pinned(self, data: Mapping[str, Any], version: int) -> None:
        """The id of a message."""
        _texts([data["event"]])

    def undone(self, data: Mapping[str, Any], version: int) -> None:
        """From which event on decisions are taken back."""
        _texts([data["event"]])
        _number(data["version"], least=1, most=version)

    def redacted(self, data: Mapping[str, Any], version: int) -> None:
        """Ids of messages and of summaries, and from which event on decisions are taken back."""
        _texts(data["events"])
        _texts(data["stale"])
        _number(data["version"], least=1, most=version)

    # -- where the session stands after it

    def _check_state(self, state: State, version: int) -> None:
        _require(state.options > 0, "the state names no options")
        for name, kind in _POINTERS.items():
            self._point(getattr(state, name), kind, version)
        self._point_back(state.newest_summary, version)
        _number(state.budget_tokens, least=self._least_budget, most=MOST_TOKENS)
        for name in _COUNTS:
            _number(getattr(state, name), least=0, most=MOST_TOKENS)
        _require(1 <= state.live <= state.cut <= version + 1, "live and cut are versions, in this order")
        self._units([*state.beside, *state.left], version, apart=True)
        self._units([members for members, _ in state.waiting], version, apart=True)
        for pinned in state.pins:
            _require(pinned > 0, f"there is no event {pinned}")
            self._point(pinned, "message", version)

    def _point(self, value: Any, kind: str, newest: int) -> None:
        _number(value, least=0, most=newest)
        _require(not value or self._kinds[value] == kind, f"event {value} is no {kind}")

    def _point_back(self, value: Any, newest: int) -> None:
        """Check what says which summary was the newest; -1 where nobody knew."""
        _number(value, least=-1, most=newest)
        _require(value <= 0 or self._kinds[value] == "summary", f"event {value} is no summary")

    def _units(self, units: Any, version: int, *, apart: bool = False) -> None:
        """Check lists of messages that belong together, `apart`: none of them in two lists."""
        seen: set[int] = set()
        for members in units:
            _require(bool(members), "a unit has no messages")
            for member in members:
                _number(member, least=1, most=version)
                _require(
                    self._heads.get(member) == members[0], f"event {member} is not of unit {members!r:.80}"
                )
            _require(_ascends(members), f"the unit {members!r:.80} is not in order")
            _require(not apart or seen.isdisjoint(members), f"a message of {members!r:.80} stands twice")
            seen.update(members)


_SAYS: dict[str, Callable[[_Log, Mapping[str, Any], int], None]] = {
    "message": _Log.message,
    "options": _Log.options,
    "anchors": _Log.anchors,
    "summary": _Log.summary,
    "evicted": _Log.evicted,
    "failed": _Log.failed,
    "budget": _Log.budget,
    "usage": _Log.usage,
    "cleared": _Log.cleared,
    "abridged": _Log.abridged,
    "pinned": _Log.pinned,
    "unpinned": _Log.pinned,
    "undone": _Log.undone,
    "redacted": _Log.redacted,
}

KINDS = tuple(_SAYS)
"""What an event of a log may be."""

_POINTERS = {
    "options": "options",
    "anchors": "anchors",
    "summary": "summary",
    "anchor_summary": "summary",
    "user": "message",
    "turn": "message",
    "last": "message",
    "kept": "message",
}
"""What the versions in a state point at; 0 points at nothing."""

_COUNTS = (
    "recent_tokens",
    "recent_messages",
    "pending_tokens",
    "pending_messages",
    "failures",
    "retry_tokens",
    "epoch",
    "usage_tokens",
    "usage_counted",
    "usage_first",
    "learned_reported",
    "learned_counted",
)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _number(value: Any, *, least: int, most: int | None = None) -> None:
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(
            f"{value!r:.80} is no whole number from {least}{'' if most is None else f' to {most}'}"
        )


def _texts(value: Any) -> None:
    _require(isinstance(value, list) and all(isinstance(one, str) for one in value), "a text is missing")


def _mappings(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError("a mapping is missing")
    return value


def _ascends(members: Sequence[int]) -> bool:
    return all(one < after for one, after in pairwise(members))
