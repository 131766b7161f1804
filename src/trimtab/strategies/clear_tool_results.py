"""`ClearToolResults`: old tool output is blanked, its message stays."""

from __future__ import annotations

import reprlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from math import ceil, floor
from operator import sub
from typing import Any, NamedTuple

from trimtab._shared.checks import check_fraction, check_roles, check_whole
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import merge_edits, part_of, tools_answered
from trimtab.conversation.units import unit_of
from trimtab.errors import ConfigurationError
from trimtab.formats import Path, TextSlot
from trimtab.formats.handles import READ_RESULT
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult, follows_plan
from trimtab.strategies.results import cleared_marker, named_results, result_part, tools_near
from trimtab.strategies.rows import span_stays
from trimtab.strategies.sliding_window import as_planned_for
from trimtab.strategies.strides import first_mark, marks_back

__all__ = ["ClearToolResults"]

DEFAULT_PLACEHOLDER = "[trimtab: tool result cleared]"
"""The text in place of a cleared result; marked as trimtab's, so a model does not take it for output."""


DEFAULT_TARGET_RATIO = 0.5

DEFAULT_CLEARED_RATIO = 0.05
"""Share of the room for what stands with its results cleared, before what stands whole."""

_MOST_APART = 64
"""Results of one message that are told apart: each costs a count of all. Of more, some go together."""


_Spared = dict[int, set[int | None]]
"""Results that are not changed, by message and part; None: the message is one."""


_Namer = Callable[[int, int | None], str]
"""Writes what stands in place of a result, by its message and part."""


class _Blanks(NamedTuple):
    """Results that may be blanked, as columns: most of them are only added up."""

    indices: list[int]
    """Their messages, ascending; a message of several results stands here once for each of them."""
    texts: list[Mapping[Path, str]]
    saved_tokens: list[int]
    """The tokens each saves if those before it are blank."""

    def until(self, count: int) -> _Blanks:
        """Return the oldest ones."""
        return _Blanks(self.indices[:count], self.texts[:count], self.saved_tokens[:count])

    def before(self, message: int) -> _Blanks:
        """Return those before a message."""
        return self.until(bisect_left(self.indices, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolResults:
    """Clear old tool results, oldest first, until the rest fits.

    The newest `keep_results` are not changed. If the request's tools include `read_result`
    (`trimtab.results`), the default placeholder says how to call it, and its answers are not changed. Results
    in one message are treated separately: each is cleared or kept by itself, and has its own placeholder.
    Clearing continues to the next mark of a stride, so the same results are cleared from call to call. Before
    a SlidingWindow in a Cascade, most of the room shows the newest messages whole. Older messages are shown
    with cleared results as far as they fit. The window cuts when both parts move.

    Args:
        keep_results: Number of newest results that are not changed.
        clear_at_least_tokens: Once clearing starts, it continues until this many tokens are cleared, if there
            are that many.
        exclude_tools: Names of tools whose results are not changed.
        placeholder: Text that replaces a cleared result; used only if it is smaller. If the provider refuses
            a result with it, for example a failed result without text, that result gets the default.
        target_ratio: Below 1, results are cleared in strides of (1 - target_ratio) of the limit, so a prompt
            cache keeps its prefix; 1: no more than necessary for each call; 0 < target_ratio <= 1.
        cleared_ratio: Before a SlidingWindow in a Cascade: the share of the limit for older messages with
            cleared results; 0 < cleared_ratio <= 1. A larger share keeps more of the history in view, but
            less of it whole.

    Raises:
        ConfigurationError: A number is negative, a share is not above 0 and at most 1, or the placeholder is
            not text.
    """

    keep_results: int = 3
    clear_at_least_tokens: int = 0
    exclude_tools: tuple[str, ...] = ()
    placeholder: str = DEFAULT_PLACEHOLDER
    target_ratio: float = DEFAULT_TARGET_RATIO
    cleared_ratio: float = DEFAULT_CLEARED_RATIO

    def __init__(
        self,
        *,
        keep_results: int = 3,
        clear_at_least_tokens: int = 0,
        exclude_tools: Iterable[str] = (),
        placeholder: str = DEFAULT_PLACEHOLDER,
        target_ratio: float = DEFAULT_TARGET_RATIO,
        cleared_ratio: float = DEFAULT_CLEARED_RATIO,
    ) -> None:
        if not isinstance(placeholder, str):
            raise ConfigurationError(
                f"placeholder must be text, not {reprlib.repr(placeholder)}", argument="placeholder"
            )
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
        put(self, "cleared_ratio", check_fraction("cleared_ratio", cleared_ratio))

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "clear_tool_results"

    @property
    def clears_results(self) -> bool:
        """True: only results are shortened."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {
            "kind": self.name,
            "keep_results": self.keep_results,
            "clear_at_least_tokens": self.clear_at_least_tokens,
            "exclude_tools": list(self.exclude_tools),
            "placeholder": self.placeholder,
            "target_ratio": self.target_ratio,
            "cleared_ratio": self.cleared_ratio,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Clear results, oldest first, until the rest fits; then go on to a mark."""
        blanks, end = self._clearable(request)
        # In a block with little room beside others a stride of the whole budget would clear next to nothing.
        has_room = 2 * request.limit_tokens >= request.constant_limit_tokens
        strides = self.target_ratio < 1.0 and has_room
        if strides and request.additive and request.is_whole and any(map(follows_plan, request.later[:1])):
            return self._plan(request, blanks)
        units = list(request.told_units)
        count, fits = self._blank_count(request, units, blanks)
        if count and strides and fits:
            # The first mark behind what must be cleared; one among the newest results is none.
            last = blanks.indices[count - 1]
            mark = first_mark(request, last + 1, self._stride(request), last=end)
            count = count if mark is None else bisect_left(blanks.indices, mark)
        elif count and strides and request.later:
            mark = next(marks_back(request, end, self._stride(request)), 0)
            count = bisect_left(blanks.indices, mark)
        edits = _edits(blanks.until(count))
        return EvictionResult(kept=units, edits=edits, fits=fits, actions=("cleared",) if edits else ())

    def _plan(self, request: EvictionRequest, blanks: _Blanks) -> EvictionResult:
        """Clear the planned results; the window that follows makes the cut of the plan."""
        plan = _Plan(as_planned_for(request.later[0], request), blanks, self)
        border, cut = plan.places()
        blanks = blanks.before(border)
        actions = ("cleared",) if blanks.indices and blanks.indices[-1] >= cut else ()
        if not cut:
            units, edits = list(request.told_units), _edits(blanks)
            fits = request.total(units, edits=_texts(blanks)) <= request.limit_tokens
            return EvictionResult(kept=units, edits=edits, fits=fits, actions=actions)
        edits = _edits(plan.there_from(cut, blanks))  # what leaves by the cut need not be edited
        return EvictionResult(
            cut=request.told[0][0], edits=edits, fits=False, actions=actions, planned_cut=cut
        )

    def _stride(self, request: EvictionRequest) -> float:
        return (1.0 - self.target_ratio) * request.constant_limit_tokens

    def _clearable(self, request: EvictionRequest) -> tuple[_Blanks, int]:
        """List the results that may be blanked, oldest first, with the blank; and say where they end."""
        messages = _messages_with_results(request)
        spared, newest = self._newest(request, messages)
        end = messages[newest] if newest < len(messages) else request.history.count
        for span in request.told:
            if span[2] == "pinned":
                unit = unit_of(span)
                for at in unit.indices:
                    spared.setdefault(at, set()).update(unit.parts.get(at, (None,)))
        excluded = {*self.exclude_tools, *([READ_RESULT] if request.offers_reading else ())}
        if excluded:
            for (at, part), name in _tools_answered(request).items():
                if name in excluded:
                    spared.setdefault(at, set()).add(part)
        may = messages[: newest + 1] if end in spared else messages[:newest]
        return self._blanks(request, [at for at in may if None not in spared.get(at, ())], spared), end

    def _newest(self, request: EvictionRequest, messages: Sequence[int]) -> tuple[_Spared, int]:
        """Return the newest results of a message of which some are left alone, and where that one stands.

        Where none is, it is the oldest of which all are.
        """
        history, left, newest = request.history, self.keep_results, len(messages)
        while newest and left:
            newest -= 1
            results = _results_in(history, messages[newest])
            if left < len(results):
                return {messages[newest]: set(results[-left:])}, newest
            left -= len(results)
        return {}, newest

    def _blanks(self, request: EvictionRequest, results: Sequence[int], spared: _Spared) -> _Blanks:
        """List what blanks each result of some messages, where that makes it smaller."""
        edits, found = request.edits, dict[int, list[tuple[Mapping[Path, str], int]]]()
        as_they_are = [index for index in results if index not in edits] if edits else results
        asked = set(results).difference(as_they_are) if edits else set[int]()
        name = self._namer(request)
        groups: list[tuple[Sequence[int], str]] = [(as_they_are, self.placeholder)]
        if name is not None:  # each says another id, and is a text of its own to count
            groups = [([index], name(index, None)) for index in as_they_are]
        for indices, text in groups:
            content: Mapping[Path, str] = {("content",): text}
            for index, saved_tokens in zip(indices, request.costs.saved_by(indices, content), strict=True):
                if saved_tokens is None:
                    asked.add(index)
                elif saved_tokens > 0:
                    found[index] = [(content, saved_tokens)]
        for index in asked:
            found[index] = self._blank(request, index, spared.get(index, ()), name)
        listed = [(index, blank) for index in (sorted(found) if asked else found) for blank in found[index]]
        blanks = [blank for _, blank in listed]
        return _Blanks(
            [index for index, _ in listed], [texts for texts, _ in blanks], [saved for _, saved in blanks]
        )

    def _namer(self, request: EvictionRequest) -> _Namer | None:
        """Return what writes the blank of a result by its message and part; None: each is the placeholder."""
        if self.placeholder != DEFAULT_PLACEHOLDER or not request.offers_reading:
            return None
        history = request.history

        def name(index: int, part: int | None) -> str:
            call_id = named_results(history, index).get(part)
            return self.placeholder if call_id is None else cleared_marker(self.placeholder, call_id)

        return name

    def _blank(
        self,
        request: EvictionRequest,
        index: int,
        spared: Collection[int | None],
        name: _Namer | None,
    ) -> list[tuple[Mapping[Path, str], int]]:
        """List what blanks the results of any shape in a message, and what each saves behind those before."""
        found: list[tuple[Mapping[Path, str], int]] = []
        results = self._results(request, index, spared)
        step = ceil(len(results) / _MOST_APART)
        size, blank = request.costs.message(index), request.edits.get(index)
        for at in range(0, len(results), step or 1):
            texts = self._replacements(request, index, results[at : at + step], name)
            merged = {**blank, **texts} if blank else texts
            tokens = request.costs.with_texts(index, merged)
            if tokens < size:
                found.append((texts, size - tokens))
                size, blank = tokens, merged
        return found

    def _results(
        self, request: EvictionRequest, index: int, spared: Collection[int | None]
    ) -> list[list[TextSlot]]:
        """List the results in a message that may be blanked, each by its texts."""
        slots = [slot for slot in request.texts(index) if slot.is_result]
        if request.history.format.rules.results_are_messages:
            return [slots] if any([slot.text for slot in slots]) else []
        results: dict[int | None, list[TextSlot]] = {}
        for slot in slots:
            results.setdefault(part_of(slot.path), []).append(slot)
        return [
            its for part, its in results.items() if part not in spared and any([slot.text for slot in its])
        ]

    def _replacements(
        self,
        request: EvictionRequest,
        index: int,
        results: Sequence[Sequence[TextSlot]],
        name: _Namer | None,
    ) -> dict[Path, str]:
        """Say what stands for results: one text in place of the first of each, and none of the others."""
        put, texts = self.placeholder, dict[Path, str]()
        for slots in results:
            texts |= {slot.path: "" for slot in slots}
            part = result_part(request.history.format, slots[0])
            texts[slots[0].path] = put if name is None else name(index, part)
        for slots in results if not put.strip() else ():
            if request.fault_with(index, {slot.path: texts[slot.path] for slot in slots}) is not None:
                texts[slots[0].path] = DEFAULT_PLACEHOLDER
        return texts

    def _blank_count(
        self, request: EvictionRequest, units: Sequence[Unit], blanks: _Blanks
    ) -> tuple[int, bool]:
        """Return how many results to blank: until it fits, then on to `clear_at_least_tokens`.

        And whether it fits then.
        """
        before = request.total(units)
        goal = min(request.limit_tokens, before - self.clear_at_least_tokens)
        if request.additive and not any([unit.parts for unit in units]):
            saved = [*accumulate(blanks.saved_tokens, initial=0)]
            count = min(bisect_left(saved, before - goal), len(blanks.indices))
            return count, before - saved[count] <= request.limit_tokens
        low, high = 0, len(blanks.indices)
        while low < high:
            middle = (low + high) // 2
            if request.total(units, edits=_texts(blanks.until(middle))) <= goal:
                high = middle
            else:
                low = middle + 1
        return low, request.total(units, edits=_texts(blanks.until(low))) <= request.limit_tokens


def _messages_with_results(request: EvictionRequest) -> list[int]:
    """List the messages that are still there and hold results, ascending."""
    history, found = request.history, set[int]()
    for first, stop, _, _, unit in request.told:
        if unit is None or len(unit.indices) == stop - first:
            found.update(history.results(first, stop))
        else:
            found.update(filter(history.is_result, unit.indices))
    return sorted(found)


def _results_in(history: History, index: int) -> list[int | None]:
    """List the results in a message by their parts; None where it is one."""
    if history.format.rules.results_are_messages:
        return [None] if history.is_result(index) else []
    return [part for _, part in history.answers_in(index)] if history.is_result(index) else []


def _tools_answered(request: EvictionRequest) -> dict[tuple[int, int | None], str]:
    """Map results, by message and part, to the names of the tools that returned them."""
    history = request.history
    if not request.is_near:
        return tools_answered(history, history.units)
    told = request.told
    return tools_near(
        history, (range(first, stop) if unit is None else unit.indices for first, stop, _, _, unit in told)
    )


def _edits(blanks: _Blanks) -> list[Edit]:
    return [Edit(index=index, texts=texts) for index, texts in _texts(blanks).items()]


def _texts(blanks: _Blanks) -> dict[int, Mapping[Path, str]]:
    return merge_edits({}, zip(blanks.indices, blanks.texts, strict=True))


class _Plan:
    """Where results are cleared and where a window behind is to cut, by the conversation alone.

    The newest messages stand whole, from a border on that moves in strides, as a cut does. Before it stands
    what fits into the rest of the room with its results cleared. So both change the prompt at one moment, and
    only forward: how much stands before a border goes by the moment at which it came to stand there.
    """

    def __init__(self, request: EvictionRequest, blanks: _Blanks, strategy: ClearToolResults) -> None:
        self._request = request
        self._strategy = strategy
        self._history = history = request.history
        self._fixed = request.fixed_tokens + request.sizes.total(0, history.head)
        limit = request.constant_limit_tokens
        room = limit - self._fixed
        self._rest = floor(strategy.cleared_ratio * limit)
        self._whole = limit - self._rest - self._fixed
        self._saves = Counter[int]()
        """What is saved where results are cleared, by message."""
        for index, saved in zip(blanks.indices, blanks.saved_tokens, strict=True):
            self._saves[index] += saved
        self._stays = self._stays_anyway()
        """Messages that stay wherever the cut is, ascending, with their tokens."""
        self._stay_places = [*self._stays]
        self._stay_tokens = [*accumulate(self._stays.values(), initial=0)]
        """What stands of them before each."""
        self._oldest = self._back(history.count, room, cleared=True)
        """No older message can be in view."""
        self._low = self._back(self._oldest, self._whole, cleared=False)
        """No older one was part of what stood whole since then."""
        tokens = request.costs.each(self._low, history.count)
        self._tokens = [*accumulate(tokens, initial=0)]
        """What stands from the oldest message looked at up to each."""
        self._cleared = [*accumulate(self._as_cleared(tokens, self._low), initial=0)]
        """The same where all results are cleared."""

    def _as_cleared(self, tokens: Sequence[int], start: int) -> Iterable[int]:
        """Return sizes of neighboring messages as they are with their results cleared."""
        return map(sub, tokens, map(self._saves.get, range(start, start + len(tokens)), repeat(0)))

    def _stays_anyway(self) -> dict[int, int]:
        """Size what stays wherever the cut is: pins, open calls, what the window keeps by its options.

        Not the user's latest message, which stays as the one that opens its turn, and is another one later.
        """
        history, request = self._history, self._request
        units = [unit_of(span) for span in request.told if span_stays(request, span)]
        places = {index for unit in units for index in unit.indices if index >= history.head}
        return {index: request.costs.message(index) for index in sorted(places - {history.latest_user})}

    def _back(self, stop: int, room: int, *, cleared: bool) -> int:
        """Return the message at which what stands before another passes a room; that is the head at least."""
        request, history = self._request, self._history
        while stop > history.head and room >= 0:
            if stop <= history.walked_from:
                request.sizes.walk(history, history.head, room)
            start = max(history.head, min(stop - 1, history.walked_from))
            tokens = request.costs.each(start, stop)
            if cleared:
                tokens = [*self._as_cleared(tokens, start)]
            passed = [*accumulate(reversed(tokens))]
            if passed[-1] > room:
                return stop - 1 - bisect_right(passed, room)
            room, stop = room - passed[-1], start
        return stop

    def places(self) -> tuple[int, int]:
        """Return the message before which results are cleared, and the place of the cut; 0: no cut."""
        history, count = self._history, self._history.count
        border = self._border(count)
        newer, cut = border, self._oldest
        while newer > cut:
            count = self._moment(newer, count)
            cut = max(cut, self._tail(newer, count))
            count -= 1
            newer = self._border(count)
        # A unit that alone takes more than its room leaves on the next call, and not on this one.
        cut = min(cut, history.border_at_or_before(history.count - 1))
        return border, cut if cut > history.head else 0

    def _border(self, count: int) -> int:
        """Return from which message on all stood whole when there were so many; it never moves back."""
        strategy, limit = self._strategy, self._request.constant_limit_tokens

        def leaves(mark: int) -> bool:
            there = self._fixed + self._stays_before(mark) + self._between(mark, count)
            return there >= strategy.target_ratio * limit / 2

        oldest = self._oldest_fit(self._tokens, self._whole, self._low, count)
        if oldest == self._low:
            return oldest
        mark = first_mark(
            self._request, oldest, strategy._stride(self._request), takes=leaves, last=count - 1
        )
        return min(self._history.border_at_or_after(oldest), count) if mark is None else mark

    def _moment(self, border: int, count: int) -> int:
        """Return how many messages there were when a border came to stand, at most so many."""
        return border + bisect_left(range(border, count), border, key=self._border)

    def _tail(self, border: int, count: int) -> int:
        """Return the oldest message to keep before a border that came to stand when there were so many."""
        first = max(self._oldest, self._first(border, count))
        room = self._rest + self._beside(border)
        return self._oldest_fit(self._cleared, room, first, border) if first < border else first

    def _oldest_fit(self, sums: list[int], room: int, start: int, stop: int) -> int:
        """Return the oldest message from which on all up to another stands within a room; that one if none.

        Beside it stands what opens its turn, which is little, so that the first ones looked at mostly fit.
        """
        low = self._low
        least = sums[stop - low] - room

        def fits(cut: int) -> bool:
            return sums[cut - low] - self._beside(cut) >= least

        first = max(start, low + bisect_left(sums, least, 0, stop - low))
        last, step = first, 1
        while last < stop and not fits(last):
            first, last, step = last + 1, last + step, 2 * step
        return first + bisect_left(range(first, min(last, stop)), True, key=fits)

    def there_from(self, cut: int, blanks: _Blanks) -> _Blanks:
        """Return those behind a cut, and those before it of messages that may stay, whole or in part."""
        history = self._history
        turn = history.user_at_or_before(cut)  # a window that keeps turns whole asks how large this one is
        left = bisect_left(blanks.indices, cut if turn is None else turn)
        made = (span[4] for span in self._request.told if span[4] is not None)
        may = {*self._stays, *(at for unit in made for at in unit.parts)}
        older = blanks.indices[:left]
        stay = [at for at, index in enumerate(older) if index in may] if may else []
        if not history.format.rules.results_are_messages:  # what opens a turn may hold results
            stay = [at for at, index in enumerate(older) if index in may or history.kind(index) == "user"]
        places = [*stay, *range(left, len(blanks.indices))]
        texts = [blanks.texts[at] for at in places]
        return _Blanks(
            [blanks.indices[at] for at in places], texts, [blanks.saved_tokens[at] for at in places]
        )

    def _first(self, border: int, count: int) -> int:
        """Return the first message before a border that has no result behind it which was to stay."""
        history, left = self._history, self._strategy.keep_results
        newest = count
        while left and newest > self._oldest:
            newest -= 1
            left = max(0, left - len(_results_in(history, newest)))
        results = (at for at in range(border - 1, newest - 1, -1) if history.is_result(at))
        return next(results, self._oldest - 1) + 1

    def _between(self, start: int, stop: int) -> int:
        return self._tokens[stop - self._low] - self._tokens[start - self._low]

    def _beside(self, cut: int) -> int:
        """Return the tokens of what stays before a cut: what does anyway, and what opens the turn."""
        history = self._history
        user = history.user_at_or_before(cut) if cut < history.count else None
        if user is None or not history.head <= user < cut or user in self._stays:
            return self._stays_before(cut)
        return self._stays_before(cut) + self._request.costs.message(user)

    def _stays_before(self, cut: int) -> int:
        return self._stay_tokens[bisect_left(self._stay_places, cut)]
