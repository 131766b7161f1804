"""Where a session stands after an event: small, whatever the length of its log, and kept in each event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from trimtab.budget import MOST_TOKENS
from trimtab.counting.baseline import Factor, Learned
from trimtab.errors import CorruptSessionError

Members = tuple[int, ...]
"""Versions of the messages of one unit, ascending."""

Place = Literal["recent", "pending"]
"""Where a unit is that is not summarized."""

MAX_WAITING = 64
"""Calls without a result that are remembered; the result of an older one is shown as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Which messages are recent, which wait, and what stands for the others.

    Messages from `cut` on are recent and those from `live` up to it wait, apart from the units named in
    `beside` (recent, though older) and `left` (waiting, though a message of theirs is elsewhere).
    Older ones are covered by the summary or were cleared.
    """

    budget_tokens: int = 0
    """Input tokens in force."""
    options: int = 0
    """Version of the event with the options in force."""
    anchors: int = 0
    """Version of the event with the anchors in force; 0: those of the options."""
    summary: int = 0
    """Version of the summary in force; 0: none."""
    anchor_summary: int = 0
    """Version of the summary that became the anchor (mode "anchored"); 0: none."""
    newest_summary: int = -1
    """Version of the newest summary of the log, in force or not; each says which was before it. 0: there is
    none; -1: an older trimtab, which did not say, began the log."""
    live: int = 1
    cut: int = 1
    beside: tuple[Members, ...] = ()
    left: tuple[Members, ...] = ()
    waiting: tuple[tuple[Members, tuple[str, ...]], ...] = ()
    """Units with calls whose results are still to come, and the ids of these calls."""
    pins: tuple[int, ...] = ()
    """Versions of the messages that were pinned."""
    user: int = 0
    """Version of the latest message the user wrote, among those not covered; 0: none."""
    turn: int = 0
    """Version of the latest message of the user or the model, among those not covered; 0: none.

    Where it is bound to those before it, of the first of its unit.
    """
    last: int = 0
    """Version of the latest message, among those not covered; 0: none."""
    kept: int = 0
    """Version of the latest message that stands for all before it, as the provider wrote it; 0: none."""
    recent_tokens: int = 0
    recent_messages: int = 0
    pending_tokens: int = 0
    pending_messages: int = 0
    failures: int = 0
    """Summaries that failed since the last one that did not."""
    retry_tokens: int = 0
    """Pending tokens from which the summarizer is asked again after a failure."""
    epoch: int = 0
    """Grows by what makes a summary that is being written stale: clear, undo, redact, anchors."""
    usage_tokens: int = 0
    """What the provider reported for a view, and for the answer to it if that is known; 0: nothing."""
    usage_counted: int = 0
    """What the counter gives for the same."""
    usage_first: int = 0
    """Version of the oldest message of that view; 0: it had none."""
    learned_reported: int = 0
    """Of what was learned from reports: tokens the provider gave, older ones faded."""
    learned_counted: int = 0
    """Tokens the counter gave for the same."""

    def place(self, first: int, /) -> Place | None:
        """Say where the unit that begins with a message is; None if it is covered or was cleared."""
        for members in self.beside:
            if members[0] == first:
                return "recent"
        for members in self.left:
            if members[0] == first:
                return "pending"
        return self.place_by_version(first)

    def place_by_version(self, version: int, /) -> Place | None:
        """Say where a unit is that no other rule names."""
        if version < self.live:
            return None
        return "pending" if version < self.cut else "recent"

    @property
    def learned(self) -> Learned:
        """What reports have taught of the counter."""
        return Learned(counted_tokens=self.learned_counted, reported_tokens=self.learned_reported)

    def expected_tokens(self, counted_tokens: int, /) -> int:
        """Say what the provider will bill for a view of so many counted tokens."""
        more = counted_tokens - self.usage_counted
        if not self.usage_tokens:
            return counted_tokens
        if more >= 0:
            return self.usage_tokens + self.learned.factor.of(more)
        return max(0, self.usage_tokens + self._less.of(more))

    @property
    def room_tokens(self) -> int:
        """The budget as the counter counts: the most that is expected to be billed within the budget."""
        if not self.usage_tokens:
            return self.budget_tokens
        left = self.budget_tokens - self.usage_tokens
        billed, counted = self.learned.factor if left >= 0 else self._less
        return min(MOST_TOKENS, max(0, self.usage_counted + left * counted // billed))

    @property
    def _less(self) -> Factor:
        """What leaves frees no more than the average did: something unseen may be behind the rest."""
        factor, average = self.learned.factor, Factor(self.usage_tokens, max(1, self.usage_counted))
        lower = (
            average.reported_tokens * factor.counted_tokens < factor.reported_tokens * average.counted_tokens
        )
        return average if lower else factor

    def without_usage(self) -> State:
        """Forget what was reported: it was compared with another counter, or of another model."""
        return replace(
            self, usage_tokens=0, usage_counted=0, usage_first=0, learned_reported=0, learned_counted=0
        )

    def to_dict(self) -> dict[str, Any]:
        """Write what is not as it is at the start."""
        return {
            field.name: _plain(value)
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> State:
        """Read it.

        Raises:
            CorruptSessionError: It is none.
        """
        try:
            units = {name: _tuples(data[name]) for name in _UNITS if name in data}
            return cls(**{**data, **units})
        except (TypeError, ValueError) as error:
            raise CorruptSessionError(
                f"the state in an event of a session cannot be read: {error}"
            ) from error


_UNITS = ("beside", "left", "waiting", "pins")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
