"""Bytes of bodies that all requests of a gateway have in memory together."""

from __future__ import annotations


class BodyBytes:
    """Counts what is in memory, up to a limit.

    Args:
        most: How many bytes there may be.
    """

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0

    @property
    def is_full(self) -> bool:
        """Whether the next body may find no room: less than an eighth is free."""
        return self._most - self._taken < self._most / 8

    def take(self, size: int, /) -> bool:
        """Take bytes, or give them back where the size is below 0; False: there is no room for them."""
        if size > 0 and self._taken + size > self._most:
            return False
        self._taken += size
        return True
