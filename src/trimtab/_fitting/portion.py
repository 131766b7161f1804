"""A portion: one block at work. What it was given, what remains to decide about, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from trimtab.conversation import History
from trimtab.conversation.assemble import put_in, tools_answered
from trimtab.counting.awaited import CountsNeeded
from trimtab.counting.sizes import Sizes
from trimtab.errors import CountingError, FormatError, HeaviestMessage, move_error
from trimtab.formats import Format, mapping_of
from trimtab.strategies.base import EvictionRequest, Strategy
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab._fitting.joint import Joint
    from trimtab.compact.windows import Written
    from trimtab.report import Reason, WrittenResults

__all__ = ["MOST_WRITTEN", "Decision", "Portion", "StoredRules", "name_block"]


MOST_WRITTEN = 4
"""Of how many requests is kept what their results were written as, where a fit is asked for other budgets."""


class StoredRules(NamedTuple):
    """Rules of the host among the messages of a block, which an earlier fit wrote."""

    at: int
    """Position in `source`."""
    differ: bool
    """True if these are others."""


@dataclass(slots=True, kw_only=True)
class Portion:
    """One block's messages, before and after repairs and callbacks; sizes are remembered here."""

    name: str
    """The block's name; "history" in `fit`."""
    strategy: Strategy
    """Says what leaves of it."""
    history: History
    """What remains to decide about: the input, mended and after the callback."""
    sizes: Sizes
    source: Sequence[Any]
    """The caller's messages, in a list or tuple of its own."""
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
    """Messages of `source` that were taken out before anything was decided, and why."""
    whole: bool = False
    """True: it stays whole if its cap allows, whatever its rank (SPEC D7), or whatever its cap (pinned)."""
    joint: Joint | None = None
    """How its documents become one message; None where each is a message of its own."""
    mended: frozenset[int] = frozenset()
    """Messages of `source` that a repair edited or moved, or that lost a part to a callback."""
    stored: StoredRules | None = None
    """The host's rules that an earlier fit wrote; they are in `source` and not in `history`."""
    asked_pins: frozenset[int] = frozenset()
    """Messages of `history` that the caller pinned."""
    owner_of: Callable[[Any], Any] | None = None
    """Finds the caller's object that a message was read from; None: messages are the caller's own."""
    written: Written | None = None
    """What results are written as; None where they are sent as they are."""

    @property
    def compact_places(self) -> frozenset[int]:
        """Messages of `source` of which a result is written otherwise."""
        if self.written is None:
            return frozenset()
        return frozenset([self.source_index(one.place[0]) for one in self.written.texts])

    def source_index(self, index: int) -> int:
        """Translate a position in the history to one in the caller's list."""
        return index - self.lead if self.origin is None else self.origin[index - self.lead]


def leads_system(format: Format, messages: Sequence[Any]) -> bool:
    """Tell whether messages begin with system text."""
    return bool(messages) and format.kind(mapping_of(messages[0])) == "system"


def said_of(heaviest: HeaviestMessage | None) -> str:
    """Name the heaviest message in a sentence; empty where nobody knows it."""
    return "" if heaviest is None else f" The heaviest that stays is {heaviest}."


P_co = TypeVar("P_co", bound=Portion, covariant=True)


@dataclass(slots=True, kw_only=True)
class Decision(Generic[P_co]):
    """What was settled for one portion and one limit."""

    portion: P_co
    settled: Settled
    request: EvictionRequest
    written: WrittenResults | None = None
    """What was written otherwise of what stays; None where results are sent as they are."""

    def heaviest(self) -> HeaviestMessage | None:
        """Find the heaviest of the caller's messages that stay; None where nobody knows."""
        portion, settled, history = self.portion, self.settled, self.portion.history
        stays = [at for at in (*settled.before, *range(settled.cut, history.count)) if at >= portion.lead]
        if not stays or not portion.sizes.additive:
            return None
        try:
            tokens = {at: settled.edited_tokens.get(at) or portion.sizes.of(at) for at in stays}
        except (CountingError, CountsNeeded, FormatError):  # of one that was not looked at
            return None
        at = max(stays, key=tokens.__getitem__)
        names = self._tools_answered(at)
        place, role = portion.source_index(at), history.kind(at)
        return HeaviestMessage(index=place, role=role, tools=names, tokens=tokens[at])

    def _tools_answered(self, at: int) -> tuple[str, ...]:
        """List the tools whose results a message holds; empty if it holds none."""
        history = self.portion.history
        if not history.is_result(at):
            return ()
        units = [unit for unit in self.request.units if at in unit.indices]
        history.read(min(unit.first for unit in units))  # what was walked over has kinds alone
        named = tools_answered(history, units)
        answers = [(at, part) for _, part in history.structure.answers.get(at, ())]
        return tuple(dict.fromkeys(named[one] for one in answers if one in named))

    def positions(self) -> list[int | None]:
        """List, for each message that comes out, its position in the request; None: trimtab put it in."""
        portion, settled, found = self.portion, self.settled, list[int | None]()
        before, end = settled.before, portion.history.count
        if portion.origin is None and not portion.lead:  # nearly always: they stand as they were given
            found += map(portion.start.__add__, before)
            found += range(portion.start + settled.cut, portion.start + end)
        else:
            there = [*before, *range(settled.cut, end)]
            found += [
                portion.start + portion.source_index(at) if at >= portion.lead else None for at in there
            ]
        return put_in(found, before, [replace(one, message=None) for one in settled.insertions])

    def stays(self) -> set[int]:
        """List the positions in the request of what comes out, or a part of it."""
        at = self.rules_place
        return {one for one in self.positions() if one is not None}.union(() if at is None else (at,))

    @property
    def rules_place(self) -> int | None:
        """Position in the request of the host's rules that an earlier fit wrote."""
        stored = self.portion.stored
        return None if stored is None else self.portion.start + stored.at


def name_block(error: FormatError | CountingError, name: str) -> None:
    """Say in an error about an entry or its size in which block it stands."""
    if error.block is None:
        move_error(error, block=name)
