"""A portion: one block at work. What it was given, what is left to decide about, and what is known of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trimtab.conversation import History
from trimtab.counting.sizes import Sizes
from trimtab.errors import CountingError, FormatError, move_error
from trimtab.strategies.base import EvictionRequest
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = ["Decision", "Portion", "in_block"]


@dataclass(slots=True, kw_only=True)
class Portion:
    """One block's messages, before and after repairs and callbacks; sizes are remembered here."""

    name: str
    """The block's name; "history" in `fit`."""
    history: History
    """What is left to decide about: the input, mended and after the callback."""
    sizes: Sizes
    source: list[Any]
    """The caller's messages, as a list of its own."""
    source_sizes: Sizes
    """Sizes of `source`, from `source_offset` on; those of `sizes` where nothing was mended or removed."""
    source_offset: int = 0
    labels: Sequence[str] = ()
    """Words for the messages of `source`; empty where they have none."""
    start: int = 0
    """Position of its first message in the whole request; 0 in `fit`."""
    lead: int = 0
    """Messages of `history` that trimtab put before the caller's."""
    origin: list[int] | None = None
    """Position in `source` of each message of `history` after `lead`; None where they are the same."""
    gone: Mapping[int, Reason] = field(default_factory=dict)
    """Messages of `source` that left before anything was decided, and why."""
    mended: frozenset[int] = frozenset()
    """Messages of `source` that a repair edited or moved, or that lost a part to a callback."""

    def source_index(self, index: int) -> int:
        """Translate a position in the history to one in the caller's list."""
        return index - self.lead if self.origin is None else self.origin[index - self.lead]


P_co = TypeVar("P_co", bound=Portion, covariant=True)


@dataclass(slots=True, kw_only=True)
class Decision(Generic[P_co]):
    """What was settled for one portion and one limit."""

    portion: P_co
    settled: Settled
    request: EvictionRequest


@contextmanager
def in_block(name: str) -> Generator[None, None, None]:
    """Make errors about an entry or its size say in which block it stands."""
    try:
        yield
    except (FormatError, CountingError) as error:
        if error.block is None:
            move_error(error, block=name)
        raise
