"""`ClearToolResults`: old tool output is blanked, its message stays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from trimtab._shared.checks import check_fraction, check_roles, check_whole
from trimtab.conversation import Unit
from trimtab.errors import ConfigurationError
from trimtab.formats import Path
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.strides import HALVINGS, Strides, marks_back

__all__ = ["ClearToolResults"]

DEFAULT_PLACEHOLDER = "[trimtab: tool result cleared]"
"""What stands for a cleared result; marked as ours, so that a model does not take it for output."""


DEFAULT_TARGET_RATIO = 0.5


class _Blank(NamedTuple):
    """A result that may be blanked."""

    message: int
    texts: Mapping[Path, str]
    saved_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolResults:
    """Blank old tool results, oldest first, until the rest fits.

    The newest `keep_results` stay as they are. It goes on to the next mark of a stride, so that the same
    results are blank from call to call, also where another strategy follows in a Cascade. A SlidingWindow
    that follows cuts as soon as clearing would leave less than a quarter of a stride free.

    Args:
        keep_results: The newest results that are left alone.
        clear_at_least_tokens: Once it clears, go on until so many tokens are gone, if there is that much.
        exclude_tools: Names of tools whose results are left alone.
        placeholder: Text that stands for a cleared result; used only where it is smaller.
        target_ratio: Below 1 it clears in strides of (1 - target_ratio) of the limit, so that a prompt cache
            keeps its prefix; 1: no more than it must on each call; 0 < target_ratio <= 1.

    Raises:
        ConfigurationError: A number is negative, `target_ratio` is not above 0 and at most 1, or the
            placeholder is not text.
    """

    keep_results: int = 3
    clear_at_least_tokens: int = 0
    exclude_tools: tuple[str, ...] = ()
    placeholder: str = DEFAULT_PLACEHOLDER
    target_ratio: float = DEFAULT_TARGET_RATIO

    def __init__(
        self,
        *,
        keep_results: int = 3,
        clear_at_least_tokens: int = 0,
        exclude_tools: Iterable[str] = (),
        placeholder: str = DEFAULT_PLACEHOLDER,
        target_ratio: float = DEFAULT_TARGET_RATIO,
    ) -> None:
        if not isinstance(placeholder, str):
            raise ConfigurationError(f"placeholder must be text, not {placeholder!r}")
        put = object.__setattr__
        put(self, "keep_results", check_whole("keep_results", keep_results, least=0))
        put(
            self,
            "clear_at_least_tokens",
            check_whole("clear_at_least_tokens", clear_at_least_tokens, least=0),
        )
        put(self, "exclude_tools", check_roles(exclude_tools, name="exclude_tools"))
        put(self, "placeholder", placeholder)
        put(self, "target_ratio", check_fraction("target_ratio", target_ratio))

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "clear_tool_results"

    @property
    def clears_results(self) -> bool:
        """True unless it is left alone where little is won."""
        return not self.clear_at_least_tokens

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`."""
        return {
            "kind": self.name,
            "keep_results": self.keep_results,
            "clear_at_least_tokens": self.clear_at_least_tokens,
            "exclude_tools": list(self.exclude_tools),
            "placeholder": self.placeholder,
            "target_ratio": self.target_ratio,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Blank results from the oldest on until it fits, and on to a mark."""
        units = list(request.units)
        before = request.total(units)
        blanks, end = self._clearable(request, units)
        count = self._blank_count(request, units, blanks, before)
        fits = request.total(units, edits=_texts(blanks[:count])) <= request.limit_tokens
        oldest_cut = 0
        # In a block that others left little room a stride of the whole budget would clear next to nothing.
        has_room = 2 * request.limit_tokens >= request.constant_limit_tokens
        # Results cleared long ago may stand too far back to be listed; what they made leave stays away, too.
        clears = count or (not fits and self.keep_results)
        if clears and self.target_ratio < 1.0 and has_room:
            goes_on = bool(request.later) and (not fits or self._was_cut(request, blanks))
            if goes_on:
                mark = next(marks_back(request, end, self._stride(request)), 0)
                count, fits = bisect_left(blanks, mark, key=_message_of), False
                oldest_cut = _Past(request, blanks, self).oldest_cut() if request.additive else 0
            elif fits:
                count = self._mark_behind(request, blanks, count, end)
        return EvictionResult(
            kept=units,
            edits=[Edit(index=index, texts=texts) for index, texts, _ in blanks[:count]],
            fits=fits,
            actions=("cleared",) if count else (),
            oldest_cut=oldest_cut,
        )

    def _was_cut(self, request: EvictionRequest, blanks: list[_Blank]) -> bool:
        """Tell whether a window that comes next took over earlier, when clearing left too little.

        To clear the last few results, one by one, writes the prompt anew each time for next to no room. And
        what the window cut away does not come back when the results that were the newest then are cleared.
        """
        if not isinstance(request.later[0], SlidingWindow) or not request.additive or not request.is_whole:
            return False
        history = request.history
        tokens = [
            *accumulate(map(request.message_tokens, range(history.count)), initial=request.fixed_tokens)
        ]
        saved = {blank.message: blank.saved_tokens for blank in blanks}
        results = [index for index in range(history.head, history.count) if history.is_result(index)]
        spared = [*accumulate((saved.get(index, 0) for index in results), initial=0)]
        # Just before each result came: those before the newest could be cleared.
        peaks = (
            tokens[index] - spared[max(0, number - self.keep_results)] for number, index in enumerate(results)
        )
        enough = request.constant_limit_tokens - _LEAST_ROOM * self._stride(request)
        return any(peak > enough for peak in peaks)

    def _stride(self, request: EvictionRequest) -> float:
        return (1.0 - self.target_ratio) * request.constant_limit_tokens

    def _mark_behind(self, request: EvictionRequest, blanks: list[_Blank], needed: int, end: int) -> int:
        """Return how many results to blank so that it fits: those before the first mark behind what must be.

        Where that is among the newest results, the stride is halved, as that of a cut is.
        """
        stride, last = self._stride(request), blanks[needed - 1].message
        strides = Strides(request, last)
        for _ in range(HALVINGS + 1):
            mark = next((mark for mark in strides.marks(stride, last=end) if mark > last), None)
            if mark is not None:
                return bisect_left(blanks, mark, key=_message_of)
            stride /= 2
        return needed

    def _clearable(self, request: EvictionRequest, units: list[Unit]) -> tuple[list[_Blank], int]:
        """List the results that may be blanked, oldest first, with the blank; and say where they end."""
        names = self._tool_names(request, units)
        is_result = request.history.is_result
        results = sorted({index for unit in units for index in unit.indices if is_result(index)})
        newest = max(0, len(results) - self.keep_results)
        pinned = {index for unit in units if unit.state == "pinned" for index in unit.indices}
        found = []
        for index in results[:newest]:
            if index in pinned or names.get(index) in self.exclude_tools:
                continue
            if (blank := self._blank(request, index)) is not None:
                found.append(blank)
        return found, results[newest] if newest < len(results) else request.history.count

    def _tool_names(self, request: EvictionRequest, units: list[Unit]) -> dict[int, str]:
        """Map results to the names of the tools that gave them."""
        if not self.exclude_tools:
            return {}
        names: dict[int, str] = {}
        for unit in units:
            called: dict[str, str] = {}
            for index in unit.indices:
                called.update(request.history.format.tool_names(request.message(index)))
                for call_id in request.history.answers_in(index):
                    if call_id in called:
                        names[index] = called[call_id]
        return names

    def _blank(self, request: EvictionRequest, index: int) -> _Blank | None:
        """Return what blanks a result, if that makes it smaller."""
        message, sizes, tokens = request.message(index), request.sizes, None
        if index in request.edits:
            before = sizes.message(message, index)
        else:
            before, tokens = sizes.of(index), sizes.with_text(index, self.placeholder)
        if tokens is not None:
            texts: Mapping[Path, str] = self._one_text
        else:
            slots = [slot for slot in request.history.format.texts(message) if slot.is_result]
            if not slots:
                return None
            texts = {slot.path: self.placeholder if at == 0 else "" for at, slot in enumerate(slots)}
            tokens = sizes.message(request.history.format.with_texts(message, texts), index)
        return _Blank(index, texts, before - tokens) if before > tokens else None

    @property
    def _one_text(self) -> Mapping[Path, str]:
        """What blanks a message whose content is one text."""
        return {("content",): self.placeholder}

    def _blank_count(
        self,
        request: EvictionRequest,
        units: list[Unit],
        cuts: list[_Blank],
        before: int,
    ) -> int:
        """Return how many results to blank: until it fits, then on to `clear_at_least_tokens`."""
        goal = min(request.limit_tokens, before - self.clear_at_least_tokens)
        if request.additive and not any(unit.parts for unit in units):
            left = accumulate((-cut.saved_tokens for cut in cuts), initial=before)
            return next((count for count, tokens in enumerate(left) if tokens <= goal), len(cuts))
        low, high = 0, len(cuts)
        while low < high:
            middle = (low + high) // 2
            edits = {index: texts for index, texts, _ in cuts[:middle]}
            if request.total(units, edits=edits) <= goal:
                high = middle
            else:
                low = middle + 1
        return low


_LEAST_ROOM = 0.25
"""Share of a stride that clearing must be able to leave free; with less, a window that comes next cuts."""
_FAR = 64
"""Messages before the room in which the newest results are looked for."""


def _texts(blanks: Iterable[_Blank]) -> dict[int, Mapping[Path, str]]:
    return {index: texts for index, texts, _ in blanks}


def _message_of(blank: _Blank) -> int:
    return blank.message


class _Past:
    """What of a conversation stood in the room at earlier moments, worked out from the conversation alone.

    When clearing goes on to its next mark, the rest becomes smaller, and what was cut away by then would come
    back, only to leave again. So from that moment on nothing older is kept than stood there just before; and
    room is left for a stride, so that clearing and cutting change the prompt at one moment, not at two.
    """

    def __init__(self, request: EvictionRequest, blanks: list[_Blank], strategy: ClearToolResults) -> None:
        self._request = request
        self._strategy = strategy
        history, size_of = request.history, request.message_tokens
        head_tokens = request.sizes.total(0, history.head)
        self._room = room = request.constant_limit_tokens - request.fixed_tokens - head_tokens
        saved = {blank.message: blank.saved_tokens for blank in blanks}
        self._low, left = history.count, max(room, request.limit_tokens)
        while self._low > history.head and left >= 0:
            self._low -= 1
            left -= size_of(self._low) - saved.get(self._low, 0)
        span = range(self._low, history.count)
        self._tokens = [*accumulate(map(size_of, span), initial=0)]
        """What stands from the oldest message looked at up to each."""
        self._saved = [*accumulate((saved.get(index, 0) for index in span), initial=0)]
        """What is saved of it where all results are cleared."""

    def oldest_cut(self) -> int:
        """Return the oldest message that later steps may keep; 0 where nothing rules out any."""
        request = self._request
        head, floor, begun = request.history.head, self._low, -1
        if (newest := self._oldest_of_newest()) is None:
            return 0
        marks = marks_back(request, newest, self._strategy._stride(request))
        for mark, older in pairwise(chain(marks, (head,))):
            moment = self._allowed_at(mark)
            if moment <= floor:
                break
            if moment != begun:
                floor = max(floor, self._oldest(mark, moment, self._room_at(mark, moment)))
            floor, begun = max(floor, self._oldest(older, moment - 1, self._room)), moment
        return floor if floor > self._low else 0

    def _oldest_of_newest(self) -> int | None:
        """Find the oldest of the newest results, which stay; None if these stand far before the room."""
        history, left = self._request.history, self._strategy.keep_results
        index, least = history.count, max(history.head, self._low - _FAR)
        while left and index > least:
            index -= 1
            left -= history.is_result(index)
        return None if left else index

    def _allowed_at(self, mark: int) -> int:
        """Return how many messages there were when results before a mark could first be cleared."""
        history, left = self._request.history, self._strategy.keep_results
        while left:
            left -= history.is_result(mark)
            mark += 1
        return mark if self._strategy.keep_results else mark + 1

    def _room_at(self, mark: int, count: int) -> float:
        """Return the room to fill when results before a mark are cleared: the rest can still grow."""
        low, ratio, limit = self._low, self._strategy.target_ratio, self._request.constant_limit_tokens
        newer = self._tokens[count - low] - self._tokens[max(mark, low) - low]
        return max(self._room - (1.0 - ratio) * limit, newer + ratio * limit / 2)

    def _oldest(self, cleared: int, count: int, room: float) -> int:
        """Return the oldest message to keep, of so many, in some room.

        Args:
            cleared: Results before this message are cleared.
            count: How many messages there were.
            room: The room.
        """
        history, size_of, low = self._request.history, self._request.message_tokens, self._low
        tokens, saved = self._tokens, self._saved

        def fits(cut: int) -> bool:
            user = history.user_at_or_before(cut)
            opener = size_of(user) if user is not None and history.head <= user < cut else 0
            spared = saved[max(cleared, cut) - low] - saved[cut - low] if cleared > cut else 0
            return tokens[count - low] - tokens[cut - low] - spared + opener <= room

        return low + bisect_left(range(low, count), True, key=fits)
