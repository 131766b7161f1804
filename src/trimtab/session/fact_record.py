"""Which facts of a session are current, and how far its log was read for them."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRecord:
    """The facts in a state."""

    batch: tuple[int, int] = (0, 0)
    """Versions of the first and last event of the newest current facts; zeros if there are none."""
    newest: int = 0
    """Version of the newest fact of the log, in force or not; each says which was before it."""
    known: int = 0
    """Current facts, in view or not."""
    stale: int = 0
    """Facts that were current until one of their sources was redacted."""
    read: int = 0
    """Version up to which messages were read for facts, apart from the units named in `unread`."""
    unread: tuple[int, ...] = ()
    """First messages of the units before that which stayed in view then, or got a result since."""
    failures: int = 0
    """Failed extractions since the last successful one."""
    retry_tokens: int = 0
    """When the fact extractor is called again after a failure, as the tokens that ever stopped being
    recent."""

    def with_new(self, version: int, /) -> FactRecord:
        """Add a fact to the log; it becomes current with the last event of its batch."""
        return replace(self, newest=version)

    def with_batch(self, first: int, last: int) -> FactRecord:
        """Make the facts between two versions the current ones, and no others."""
        return replace(self, batch=(first, last), known=last - first)

    def with_counts(self, known: int, stale: int) -> FactRecord:
        """Set the number of current facts, and of those that were redacted."""
        return replace(self, known=known, stale=stale)

    def with_reading(
        self,
        batch: tuple[int, int] | None,
        *,
        known: int,
        until: int,
        read: Collection[int],
        unread: Collection[int],
    ) -> FactRecord:
        """Have units read for facts, and what was found in force.

        Args:
            batch: Versions of its first and last event; None: nothing was found.
            known: Facts in force now.
            until: Version up to which units were read.
            read: First messages of those that were.
            unread: First messages of those before `until` that were not.
        """
        return replace(
            self,
            batch=self.batch if batch is None else batch,
            known=known,
            read=until,
            unread=tuple(sorted({*self.unread, *unread}.difference(read))),
            failures=0,
            retry_tokens=0,
        )

    def as_of(self, before: FactRecord, /) -> FactRecord:
        """Restore the facts of an earlier state: what was read since must be read again."""
        return replace(before, newest=self.newest, failures=0, retry_tokens=0)

    def with_failure(self, retry_tokens: int, /) -> FactRecord:
        """Have one more time that no facts could be had; the next is when so much has ever gone."""
        return replace(self, failures=self.failures + 1, retry_tokens=retry_tokens)

    def with_late(self, first: int, /) -> FactRecord:
        """Note a new message in a unit that was read: the unit must be read again."""
        if first >= self.read or first in self.unread:
            return self
        return replace(self, unread=tuple(sorted((*self.unread, first))))

    def without(self, gone: Container[int], /) -> FactRecord:
        """Have messages no longer, or others in their place."""
        return replace(self, unread=tuple(one for one in self.unread if one not in gone))

    def to_dict(self) -> dict[str, Any]:
        """Write the values that differ from the initial ones."""
        return {name: value for name, value in self._as_data().items() if value}

    def _as_data(self) -> dict[str, Any]:
        """Write everything, under the names that a state in a log uses."""
        return {
            "facts": list(self.batch) if any(self.batch) else None,
            "newest_fact": self.newest,
            "known_facts": self.known,
            "stale_facts": self.stale,
            "read": self.read,
            "unread": list(self.unread),
            "fact_failures": self.failures,
            "fact_retry_tokens": self.retry_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self:
        """Read it from a stored state."""
        return cls(
            batch=tuple(data.get("facts", (0, 0))),
            newest=data.get("newest_fact", 0),
            known=data.get("known_facts", 0),
            stale=data.get("stale_facts", 0),
            read=data.get("read", 0),
            unread=tuple(data.get("unread", ())),
            failures=data.get("fact_failures", 0),
            retry_tokens=data.get("fact_retry_tokens", 0),
        )


NAMES = frozenset(FactRecord()._as_data())
"""What a state in a log has of it."""
