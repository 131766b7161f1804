"""A portion: one block at work. What it was given, what is left to decide about, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trimtab._shared.steps import Steps
from trimtab.conversation import History
from trimtab.conversation.assemble import put_in, tools_answered
from trimtab.conversation.pairing import is_paired
from trimtab.conversation.units import Span
from trimtab.counting.awaited import CountsNeeded
from trimtab.counting.sizes import Sizes
from trimtab.errors import CountingError, FormatError, HeaviestMessage, StrategyContractError, move_error
from trimtab.strategies.base import EvictionRequest, Strategy
from trimtab.strategies.cuts import near_cut
from trimtab.strategies.promises import clears_results, landmarks, reads_newest, waits
from trimtab.strategies.runner import Settled, steps

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
    """Messages of `source` that left before anything was decided, and why."""
    mended: frozenset[int] = frozenset()
    """Messages of `source` that a repair edited or moved, or that lost a part to a callback."""

    def source_index(self, index: int) -> int:
        """Translate a position in the history to one in the caller's list."""
        return index - self.lead if self.origin is None else self.origin[index - self.lead]


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

    def heaviest(self) -> HeaviestMessage | None:
        """Find the heaviest of the caller's messages that stay; None where nobody knows."""
        portion, settled, history = self.portion, self.settled, self.portion.history
        stays = [at for at in (*settled.before, *range(settled.cut, len(history))) if at >= portion.lead]
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
        named = tools_answered(history, (unit for unit in self.request.units if at in unit.indices))
        answers = [(at, part) for _, part in history.structure.answers.get(at, ())]
        return tuple(dict.fromkeys(named[one] for one in answers if one in named))

    def positions(self) -> list[int | None]:
        """List, for each message that comes out, its position in the request; None: trimtab put it in."""
        portion, settled, found = self.portion, self.settled, list[int | None]()
        before, end = settled.before, len(portion.history)
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
        return {at for at in self.positions() if at is not None}


def ask(
    strategy: Strategy,
    portion: Portion,
    *,
    limit_tokens: int,
    constant_limit_tokens: int | None = None,
    counted: int | None,
    led: bool = False,
    question: Callable[[], str] | None = None,
    cut_newest: bool = False,
) -> Steps[tuple[EvictionRequest, Settled]]:
    """Ask a strategy what stays of a portion; yields what it needs from outside.

    It is asked of the units near the cut and at the end alone, as long as it asks for no others. That holds
    if it promised to read no others, or stopped on its way back; else it is asked again, of all there are.

    Args:
        strategy: Whom to ask.
        portion: What it is asked about.
        limit_tokens: What that may come to.
        constant_limit_tokens: The limit that is the same from call to call; None: this one.
        counted: The message at which counting back passed the limit; None if nothing was counted.
        led: Whether something in front of it surely may come first.
        question: Finds what the user wrote last, where that may stand in another portion.
        cut_newest: Whether the newest unit is cut where the strategy leaves too little room for it.
    """
    history, sizes = portion.history, portion.sizes
    make = partial(
        EvictionRequest,
        history,
        sizes,
        limit_tokens=limit_tokens,
        constant_limit_tokens=constant_limit_tokens,
        block=portion.name,
        led=led,
        question=question,
    )
    if counted is not None and not waits(strategy):
        near = partial(_near, strategy, history, sizes, limit_tokens, counted)
        request = make(near=near, reads_newest=reads_newest(strategy, history))
        try:
            settled = yield from steps(strategy, request, cut_newest=cut_newest)
            if _is_sure(request, settled):
                return request, settled
        except StrategyContractError:
            if not request.is_near and request.is_sure(lambda _: True):
                raise
    request = make()  # also: how much it takes at least is told by all there is
    settled = yield from steps(strategy, request, cut_newest=cut_newest)
    return request, settled


def _near(
    strategy: Strategy, history: History, sizes: Sizes, limit_tokens: int, counted: int
) -> tuple[list[Span] | None, int]:
    """Tell apart what is near the cut for a strategy."""
    return near_cut(
        history,
        sizes,
        limit_tokens=limit_tokens,
        counted=counted,
        also=landmarks(strategy, history),
        clears_results=clears_results(strategy),
    )


def _is_sure(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether an answer is that to all units, though it may have been asked of those near the cut."""
    if request.is_near and not (settled.fits and _is_newest_sure(request, settled)):
        return False
    if request.is_near and not request.reads_newest and not _is_run(request, settled):
        return False
    return request.is_sure(settled.keeps)


def _is_newest_sure(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether what was cut of the newest unit is of no other: near a cut, ids are not looked at."""
    history, newest = request.history, request.told[-1][0]
    cut = any(index >= newest for index in settled.edits)
    return not cut or is_paired(history.format, history.messages[newest:])


def _is_run(request: EvictionRequest, settled: Settled) -> bool:
    """Tell whether what stays is all from one message on, as it was, beside what must stay and opens that."""
    if settled.edits or settled.partial or settled.insertions:
        return False
    stay = {index for span in request.told if span[2] != "free" for index in range(span[0], span[1])}
    beside = [index for index in settled.before if index not in stay]
    return not beside or beside == [request.history.user_at_or_before(settled.cut)]


class in_block:
    """Make errors about an entry or its size say in which block it stands.

    A class, as each block is entered six times: a generator would cost four times as much.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, (FormatError, CountingError)) and error.block is None:
            move_error(error, block=self._name)
