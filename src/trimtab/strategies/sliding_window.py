"""`SlidingWindow`: the oldest units leave until the rest fits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab._shared.checks import check_flag, check_fraction, check_roles, check_whole
from trimtab.conversation import History, Unit
from trimtab.conversation.units import Span, unit_of
from trimtab.strategies.base import (
    EvictionRequest,
    EvictionResult,
    Reads,
    kept_units,
    landmarks,
    protect_roles,
)
from trimtab.strategies.cuts import Cuts
from trimtab.strategies.rows import first_of_run
from trimtab.strategies.strides import first_mark

__all__ = ["SlidingWindow", "as_planned_for", "beside_cut"]


def stride_cut(
    request: EvictionRequest,
    cuts: Cuts,
    oldest: int,
    *,
    ratio: float,
    also: Callable[[int], tuple[int, ...]],
    front_tokens: int = 0,
) -> int:
    """Return the cut to use: a mark that leaves about `ratio` of the limit, else `oldest`.

    Args:
        request: The request; its constant limit gives the stride.
        cuts: Where it may be cut.
        oldest: The oldest cut that fits.
        ratio: Share of the limit to keep at least about, 0 < ratio < 1.
        also: Units that stay beside a cut.
        front_tokens: What stays in front of every cut; strides are of the limit without it.
    """
    limit = max(1, request.constant_limit_tokens - front_tokens)

    def begins(mark: int) -> bool:
        return _begins(cuts, mark)

    def takes(mark: int) -> bool:
        leaves = cuts.tokens(mark, also(mark)) + cuts.saved_tokens(mark)
        return leaves >= front_tokens + ratio * limit / 2 and cuts.stands(mark, also(mark))

    mark = first_mark(request, oldest, (1.0 - ratio) * limit, begins=begins, takes=takes)
    return oldest if mark is None else mark


def _begins(cuts: Cuts, index: int) -> bool:
    """Tell whether a unit that is still there begins at a message: some are bound to the one before."""
    cuts.part(index)
    return cuts.holds(index)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """Drop the oldest free units until the rest fits.

    If the cut is inside a turn, the user message that opened the turn is kept as well.

    Args:
        protect_roles: Units with a message of these roles are never evicted. The whole history is then read.
        keep_turns: Whether a user message and its answers are evicted together; a turn that alone exceeds the
            limit is cut.
        keep_first_user: Whether the first user message is kept (the task an agent was given).
        min_messages: If fewer messages than this would be kept, all free messages are evicted.
        target_ratio: Below 1, the cut moves in strides of (1 - target_ratio) of the limit, so a prompt cache
            keeps its prefix from call to call; 0 < target_ratio <= 1.
        keep_cached: Whether messages up to the last mark for the provider's prompt cache (`cache_control`, or
            a breakpoint) are evicted only if nothing after it can be. Use it for marks that do not move; if
            the newest message has a mark, nothing follows it, and the flag has no effect.

    Raises:
        ConfigurationError: `target_ratio` is not above 0 and at most 1, `min_messages` is negative,
            `protect_roles` is not a sequence of role names, or a flag is neither True nor False.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> messages = [{"role": "user", "content": str(n)} for n in range(9)]
        >>> fitted = fit(messages, budget=40, counter=FixedCounter(per_message=10), strategy=SlidingWindow())
        >>> [message["content"] for message in fitted.messages]
        ['5', '6', '7', '8']
    """

    protect_roles: tuple[str, ...] = ()
    keep_turns: bool = False
    keep_first_user: bool = False
    min_messages: int = 0
    target_ratio: float = 1.0
    keep_cached: bool = False

    def __init__(
        self,
        *,
        protect_roles: Iterable[str] = (),
        keep_turns: bool = False,
        keep_first_user: bool = False,
        min_messages: int = 0,
        target_ratio: float = 1.0,
        keep_cached: bool = False,
    ) -> None:
        put = object.__setattr__
        put(self, "protect_roles", check_roles(protect_roles))
        put(self, "keep_turns", check_flag("keep_turns", keep_turns))
        put(self, "keep_first_user", check_flag("keep_first_user", keep_first_user))
        put(self, "min_messages", check_whole("min_messages", min_messages, least=0))
        put(self, "target_ratio", check_fraction("target_ratio", target_ratio))
        put(self, "keep_cached", check_flag("keep_cached", keep_cached))

    @property
    def reads(self) -> Reads:
        """The "newest", unless it checks all roles or looks for a mark.

        The user's first message is a landmark, and a turn that is cut is read as far as necessary.
        """
        return "all" if self.protect_roles or self.keep_cached else "newest"

    def reads_in(self, history: History, /) -> Reads:
        """Say which messages the decision depends on: without a mark, the "newest".

        Args:
            history: The conversation.
        """
        looks_for_mark = self.keep_cached and not self.protect_roles
        return "newest" if looks_for_mark and history.last_mark is None else self.reads

    def landmarks(self, history: History, /) -> tuple[int, ...]:
        """List the messages kept at any age: the user's first.

        Args:
            history: The conversation.
        """
        first = history.user_at_or_after(history.head) if self.keep_first_user else None
        return () if first is None else (first,)

    @property
    def follows_plan(self) -> bool:
        """True: it cuts where an earlier step made room for a stride."""
        return True

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "sliding_window"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {
            "kind": self.name,
            "protect_roles": list(self.protect_roles),
            "keep_turns": self.keep_turns,
            "keep_first_user": self.keep_first_user,
            "min_messages": self.min_messages,
            "target_ratio": self.target_ratio,
            "keep_cached": self.keep_cached,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Cut at the oldest place where the rest fits."""
        if self.protect_roles:
            request = request.protecting(self.protect_roles)
        front = _units_to_mark(request) if self.keep_cached else []
        return self._cut_behind(request, front) if front else self._cut(request)

    def _cut_behind(self, request: EvictionRequest, front: list[Unit]) -> EvictionResult:
        """Cut behind what a mark has cached; into that only when nothing behind it can go any more."""
        held = request.hold(unit.first for unit in front)
        behind = self._cut(held, front_tokens=request.costs.units(front))
        if behind.fits:
            return behind
        left = request.after(replace(behind, protected=frozenset()))
        last = self._cut(left)
        return replace(last, cut=None, kept=kept_units(left, last))

    def _cut(self, request: EvictionRequest, *, front_tokens: int = 0) -> EvictionResult:
        cuts = request.cuts
        also = self._kept_beside(request, cuts)
        limit = request.limit_tokens

        def fits(cut: int) -> bool:
            return cuts.tokens(cut, also(cut)) <= limit

        cut = cuts.oldest(fits, also)
        if cut is None:
            least = beside_cut(request, cuts, also(cuts.end))
            return EvictionResult(
                cut=cuts.end,
                kept=least,
                fits=False,
                actions=("evicted",),
                protected=request.protected.union(self.landmarks(request.history)),
            )
        oldest = moved = cut
        ratio = self.target_ratio
        planned = None if front_tokens else request.planned_cut
        if ratio < 1.0 and not (planned and fits(planned)):
            moved = stride_cut(request, cuts, cut, ratio=ratio, also=also, front_tokens=front_tokens)
        if self.keep_turns:
            moved = _turn_border(request, cuts, moved)
        # Under a black box fewer messages may count more, so a newer cut has to be asked about too.
        if moved != cut and (request.additive or fits(moved)):
            cut = moved
        kept = beside_cut(request, cuts, also(cut))
        if self.min_messages and _count_remaining(request, cut, kept) < self.min_messages:
            least = beside_cut(request, cuts, also(cuts.end))
            return EvictionResult(cut=cuts.end, kept=least, actions=("evicted",), reason="min_messages")
        full = cut == oldest and not self.keep_first_user  # else room is unused, or taken, on purpose
        lost = cuts.without_opener(cut, limit) if full else frozenset[int]()
        return EvictionResult(cut=cut, kept=kept, actions=("evicted",), cannot_lead=lost)

    def _kept_beside(self, request: EvictionRequest, cuts: Cuts) -> Callable[[int], tuple[int, ...]]:
        """Return what stays beside a cut: the message that opened its turn, and the first user's."""
        first = next(iter(self.landmarks(request.history)), None)
        if first is None or not cuts.holds(first):  # an earlier step took it
            return cuts.opener

        def also(cut: int) -> tuple[int, ...]:
            if cut <= first or request.stays(cuts.unit(first)):
                return cuts.opener(cut)
            return (first, *(user for user in cuts.opener(cut) if user != first))

        return also


def as_planned_for(step: object, request: EvictionRequest, /) -> EvictionRequest:
    """Return a request in which what a window keeps by its options stays, for the step that plans its cut."""
    request = request.protecting(protect_roles(step))
    staying = landmarks(step, request.history)
    return request.hold(staying) if staying else request


def beside_cut(request: EvictionRequest, cuts: Cuts, firsts: Iterable[int]) -> list[Unit]:
    """List what stays beside a cut, in order; pinned and held units do so anyway."""
    kept = {first: cuts.unit(first) for first in firsts}
    if not request.protected:
        return [kept[first] for first in sorted(kept)]
    beside = {id(unit) for unit in kept.values()}
    return [unit for unit in request.told_units if unit.first in request.protected or id(unit) in beside]


def _units_to_mark(request: EvictionRequest) -> list[Unit]:
    """List the units up to the last mark for a prompt cache; none where nothing behind it can go."""
    mark = request.history.last_mark
    if mark is None:
        return []
    units = request.units
    border = bisect_right(units, mark, key=lambda unit: unit.first)
    return list(units[:border]) if any(not request.stays(unit) for unit in units[border:]) else []


def _count_remaining(request: EvictionRequest, cut: int, kept: Iterable[Unit]) -> int:
    """Count the messages that would remain."""
    beside = {unit.first for unit in kept}
    staying = (u for u in request.told_units if u.first >= cut or u.first in beside or request.stays(u))
    return len({index for unit in staying for index in unit.indices})


def _turn_border(request: EvictionRequest, cuts: Cuts, cut: int) -> int:
    """Move a cut inside a turn up to the next turn, unless that turn alone passes the limit.

    Alone is beside the message that follows it, and not beside what stays now, such as the newest unit: that
    is another one in the next call, and a turn that is gone would come back.
    """
    history = request.history
    if cut >= cuts.end:
        return cut
    user = history.user_at_or_before(cut)
    following = history.user_at_or_after(cut)
    if user is None or following is None:
        return cut
    alone = _units_of_turn(request, user, following)
    if alone is None or request.costs.total(alone) > request.constant_limit_tokens:
        return cut
    return cuts.at_or_after(following)


def _units_of_turn(request: EvictionRequest, user: int, following: int) -> list[Unit] | None:
    """List the units of a turn, of the message that follows it, and of the system text in front.

    Where only what is near the cut is told apart, the turn is read as far as it may pass the limit.

    Args:
        request: What is asked.
        user: The message that opens the turn.
        following: The one that opens the next.

    Returns:
        The units; None if they surely pass the limit.
    """
    history, row = request.history, request.told
    limit = request.constant_limit_tokens
    if request.is_near and not _is_told(row, user, following):
        if user < history.walked_from:
            request.sizes.walk(history, user, limit)
        # What was walked over and is not odd stands with its call: the turn is at least these messages.
        if not history.walked.odd and _pass(request, user, following):
            return None
        turn = history.part(user, history.count, at=user, few=following + 1 - user)
        head = [span for span in row if span[0] < history.head]
        row = request.row if turn is None else [*head, *(span for span in turn if span[0] >= user)]
    return [unit_of(span) for span in row if span[0] < history.head or user <= span[0] <= following]


_AT_ONCE = 64
"""Messages counted in one go, on the way back to a limit: one by one each takes longer."""


def _pass(request: EvictionRequest, start: int, stop: int) -> bool:
    """Tell whether neighboring messages alone pass the constant limit; counts back until they do."""
    left_tokens = request.constant_limit_tokens
    while stop > start and left_tokens >= 0:
        newer, stop = stop, max(start, stop - _AT_ONCE)
        left_tokens -= sum(request.costs.each(stop, newer))
    return left_tokens < 0


def _is_told(row: Sequence[Span], start: int, last: int) -> bool:
    """Tell whether each unit that begins at some messages is in a row."""
    first = row[first_of_run(row)][0]
    return first <= start and all(
        [span[3] is not None for span in row if span[1] > start and span[0] <= last]
    )
