"""What is promised of records, whoever keeps them.

A record is a name and some bytes. It is written only over what was read, so that of two writers the second
knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple


class Bounds(NamedTuple):
    """How much is kept, and for how long."""

    most_records: int = 16_384
    """Of more, those are forgotten that were saved first."""
    kept_seconds: int = 86_400
    """After the last time a record was saved."""
    wait_seconds: float = 0.5
    """For a connection, an answer, or a lock: whoever asks goes on without."""


class Records(ABC):
    """Keeps records by name."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where they are kept; no user and no password."""

    @abstractmethod
    def load(self, names: Sequence[str], /) -> list[bytes | None]:
        """Return records by their names; None: there is none.

        Raises:
            ContextError: They cannot be read now.
        """

    @abstractmethod
    def save(self, name: str, before: bytes | None, after: bytes, /) -> bool:
        """Write a record in the place of what was read; False: it is another one by now, and stays.

        Args:
            name: Its name.
            before: What was read; None: nothing was there.
            after: What is to be there.

        Raises:
            ContextError: It cannot be written now.
        """

    @abstractmethod
    def close(self) -> None:
        """Close what is open; the next call opens it again."""
