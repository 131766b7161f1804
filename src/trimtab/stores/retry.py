"""`Retry`: ask a store again after what passes."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trimtab.errors import ConfigurationError, StoreError, StoreUnavailableError, VersionConflictError

__all__ = ["Retry"]

T = TypeVar("T")


async def _sleep(seconds: float) -> None:
    import asyncio  # takes longer to import than all of trimtab.stores

    await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Calls again after what passes, each time waiting longer.

    That is a `VersionConflictError` or a `StoreUnavailableError`; the last one is raised.
    What is called must read what it decides on anew each time: after a conflict the old version is
    stale. Before attempt n + 1 it waits between nothing and the smaller of `first_seconds * 2 ** (n - 1)`
    and `max_seconds`, at random, so that those who met once do not meet again.

    Args:
        attempts: At most so many calls, at least 1. Eight processes that append to one session without a
            pause took up to 25 on two busy cores. Where a store stays away, the default waits for some
            17 seconds before it says so.
        first_seconds: The longest first wait.
        max_seconds: The longest wait of all.
        random: Gives the part of the longest wait to take, from 0 to 1.
        sleep: Waits so many seconds, for `call`.
        asleep: Waits so many seconds, for `acall`.

    Example:
        >>> Retry(attempts=3).call(lambda: "stored")
        'stored'
    """

    attempts: int = 40
    first_seconds: float = 0.01
    max_seconds: float = 1.0
    random: Callable[[], float] = field(default=random.random, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    asleep: Callable[[float], Awaitable[Any]] = field(default=_sleep, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise ConfigurationError(f"attempts is a whole number, 1 or more, not {self.attempts!r}")
        if not 0 <= self.first_seconds <= self.max_seconds:
            raise ConfigurationError(
                f"first_seconds is 0 or more and at most max_seconds, not {self.first_seconds!r} and"
                f" {self.max_seconds!r}"
            )

    def call(self, function: Callable[[], T], /) -> T:
        """Call a function until it answers.

        Raises:
            VersionConflictError: The last attempt met it; a note says how many there were.
            StoreUnavailableError: The same.
        """
        for attempt in range(1, self.attempts):
            try:
                return function()
            except (VersionConflictError, StoreUnavailableError):
                self.sleep(self._wait_seconds(attempt))
        try:
            return function()
        except (VersionConflictError, StoreUnavailableError) as error:
            raise self._noted(error) from None

    async def acall(self, function: Callable[[], Awaitable[T]], /) -> T:
        """Call an async function until it answers; see `call`."""
        for attempt in range(1, self.attempts):
            try:
                return await function()
            except (VersionConflictError, StoreUnavailableError):
                await self.asleep(self._wait_seconds(attempt))
        try:
            return await function()
        except (VersionConflictError, StoreUnavailableError) as error:
            raise self._noted(error) from None

    def _wait_seconds(self, attempt: int) -> float:
        # The exponent has an end, or a float would not hold it.
        return self.random() * min(self.max_seconds, self.first_seconds * 2.0 ** min(attempt - 1, 64))

    def _noted(self, error: StoreError) -> StoreError:
        error.add_note(f"after {self.attempts} attempts")
        return error
