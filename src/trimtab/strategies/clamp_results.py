"""`ClampResults`: a large tool result is cut to its share before anything is evicted."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from trimtab._shared.checks import check_flag, check_fraction, check_whole
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import owns_text
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.shorten import CUT_MARKER, Keep, shorten
from trimtab.counting.sizes import Sizes
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, Path, TextSlot
from trimtab.formats.handles import READ_RESULT
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult, reads_newest
from trimtab.strategies.cuts import Shrinks
from trimtab.strategies.results import (
    KeepByTool,
    KeepLike,
    check_keep,
    cut_marker,
    keep_for,
    named_results,
    result_part,
    tools_in,
)

__all__ = ["ClampResults"]

CountText = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampResults:
    """Cut large tool results, keeping both ends, before whole units are evicted.

    The result of a cut depends only on the message, the counter and the limit that is the same for every
    call. A prompt cache therefore keeps its prefix. Nothing leaves. The marker names the call that the result
    answers, so you can find the whole result in your own messages by its id. If the request's tools include
    `read_result` (`trimtab.results`), the marker says how to call it. Its answers are never cut.

    Args:
        max_tokens: The most tokens the text of one result may have. Pass this or `max_ratio`.
        max_ratio: The same as a share of the limit that is the same for every call: the block's cap, or the
            whole budget; 0 < max_ratio <= 1.
        above_ratio: A result up to this share of that limit is kept whole; None: the share to which it would
            be cut. At least `max_ratio`, at most 1. If it is given, nothing is cut to fewer than 64 tokens,
            because two ends that short say nothing.
        texts: Whether to cut other texts above the share as well: those of users and of the model. The latest
            user message is not cut until the next one arrives. "too_large": only those that would never fit
            whole together with what must be kept.
        keep_newest: Whether the newest unit, which has the results just requested, is kept whole.
        keep: What stays of a result that is cut: "both" ends, the "start" or the "end". Or that by the name
            of its tool, as `{"read_file": "start"}`; "*" stands for all tools that are not named, of which
            otherwise "both" ends stay. Other texts keep both ends.

    Raises:
        ConfigurationError: Both `max_tokens` and `max_ratio` are given, or neither; one is out of range;
            `above_ratio` is below `max_ratio` or given without it; `texts` is not one of its three values;
            `keep_newest` is neither True nor False; or `keep` is not one of its values.

    Example:
        >>> from trimtab import CharCounter, fit
        >>> call = {"id": "a", "type": "function", "function": {"name": "log", "arguments": "{}"}}
        >>> messages = [
        ...     {"role": "user", "content": "Why does the build fail?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "a", "content": "make: " + "ok " * 400 + "error: no rule"},
        ... ]
        >>> clamped = fit(messages, 80, counter=CharCounter(), strategy=ClampResults(max_tokens=24))
        >>> clamped.messages[2]["content"]
        'make: ok ok ok ok ok ok ok[text cut by trimtab; all of it: result of a]k ok ok ok error: no rule'
    """

    max_tokens: int | None = None
    max_ratio: float | None = None
    above_ratio: float | None = None
    texts: bool | Literal["too_large"] = False
    keep_newest: bool = False
    keep: KeepLike = "both"

    def __post_init__(self) -> None:
        """Check the arguments."""
        if (self.max_tokens is None) == (self.max_ratio is None):
            both = "both are given" if self.max_tokens is not None else "neither is given"
            raise ConfigurationError(f"ClampResults takes either max_tokens or max_ratio, and {both}")
        put = object.__setattr__
        if self.max_tokens is not None:
            put(self, "max_tokens", check_whole("max_tokens", self.max_tokens, least=1))
        if self.max_ratio is not None:
            put(self, "max_ratio", check_fraction("max_ratio", self.max_ratio))
        if self.above_ratio is not None:
            put(self, "above_ratio", check_fraction("above_ratio", self.above_ratio))
            if self.max_ratio is None or self.above_ratio < self.max_ratio:
                raise ConfigurationError(
                    f"above_ratio={self.above_ratio} is the share above which a result is cut to max_ratio:"
                    f" pass a max_ratio of at most {self.above_ratio}",
                    argument="above_ratio",
                )
        if not isinstance(self.texts, bool) and self.texts != "too_large":
            raise ConfigurationError(
                f"texts must be True, False or 'too_large', not {reprlib.repr(self.texts)}", argument="texts"
            )
        check_flag("keep_newest", self.keep_newest)
        put(self, "keep", check_keep(self.keep))

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "clamp_results"

    @property
    def clears_results(self) -> bool:
        """True unless texts of any size may be shortened, too."""
        return self.texts is not True

    def shrinks(self, history: History, sizes: Sizes, /, *, limit_tokens: int) -> Shrinks | None:
        """Return the size from which a message may be shortened; None if any text may be.

        Args:
            history: The conversation.
            sizes: The sizes of its messages.
            limit_tokens: The limit that is the same for every call.
        """
        if self.texts is True:
            return None
        shares = self.shares(limit_tokens)
        if shares is None:
            return Shrinks(sys.maxsize)
        share, above = shares
        least, room = _least_tokens(share), sys.maxsize
        if self.texts:
            room = max(least, text_room(history, sizes, limit_tokens))
        return Shrinks(above, least, room, least, self.keep_newest)

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        share: dict[str, Any] = (
            {"max_ratio": self.max_ratio} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        )
        if self.above_ratio is not None:
            share["above_ratio"] = self.above_ratio
        keep = dict(self.keep) if isinstance(self.keep, KeepByTool) else self.keep
        return {
            "kind": self.name,
            **share,
            "texts": self.texts,
            "keep_newest": self.keep_newest,
            "keep": keep,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Cut every result above the share; evicts nothing."""
        (edits, passes), units = self._edits(request), request.told_units
        start = units[0].first if units else 0  # from there on all stays: nothing is copied for it
        return EvictionResult(
            cut=start,
            edits=[Edit(index=index, texts=texts) for index, texts in edits.items()],
            # What it was asked about does not fit: where nothing is cut, the next step finds that out.
            fits=not (passes or request.is_near or (request.later and not edits))
            and request.fits(units, edits=edits),
            actions=("shortened",) if edits else (),
            planned_cut=request.planned_cut,
        )

    def shares(self, limit_tokens: int, /) -> tuple[int, int] | None:
        """Return the size results are cut to, and the largest size that is kept whole.

        None: no result is cut, because the ends would be too short to be useful.

        Args:
            limit_tokens: The limit that is the same for every call.
        """
        share = share_of(self.max_tokens, self.max_ratio, limit_tokens)
        if self.above_ratio is None:
            return share, share
        return None if share < _LEAST_SHARE_TOKENS else (share, int(self.above_ratio * limit_tokens))

    def _edits(self, request: EvictionRequest) -> tuple[dict[int, dict[Path, str]], bool]:
        """List the edits of large messages, and tell whether everything surely exceeds the limit then."""
        limit = request.constant_limit_tokens
        history, shares, edits = request.history, self.shares(limit), dict[int, dict[Path, str]]()
        if shares is None:
            return edits, False
        share, above = shares
        room = text_room(history, request.sizes, limit) if self.texts == "too_large" else above
        count: CountText | None = None
        large, passes = self._large(request, share, above, room if self.texts else None)
        offered = bool(large) and request.offers_reading
        tools = tools_in(history, (unit for unit, _ in large))
        for unit, index in large:
            count = count or text_size(request.sizes, history.format)
            slots, keeps = self._slots(request, unit, index, tools)
            cut = clamp_texts(
                history.format,
                slots,
                share,
                count=count,
                limit_tokens=above,
                text_limit_tokens=max(0, room) if self.texts else None,
                handles=_handles(history, index, offered=offered),
                keeps=keeps,
            )
            if cut:
                edits[index] = {**edits.get(index, {}), **cut}
        return edits, passes

    def _slots(
        self,
        request: EvictionRequest,
        unit: Unit,
        index: int,
        tools: Mapping[tuple[int, int | None], str],
    ) -> tuple[list[TextSlot], Mapping[int | None, Keep]]:
        """List the texts of a message that may be cut, and what stays of each result, by its part."""
        history = request.history
        slots = [slot for slot in request.texts(index) if owns_text(unit, index, slot.path)]
        parts = {result_part(history.format, slot) for slot in slots if slot.is_result}
        if not parts:
            return slots, {}
        names = {part: tools.get((index, part)) for part in parts}
        may = [
            slot
            for slot in slots
            if not slot.is_result or names[result_part(history.format, slot)] != READ_RESULT
        ]
        return may, {part: keep_for(self._keep, name) for part, name in names.items()}

    @property
    def _keep(self) -> Keep | KeepByTool:
        keep = self.keep
        assert isinstance(keep, (str, KeepByTool))  # since it was made
        return keep

    def _large(
        self, request: EvictionRequest, share: int, above: int, room: int | None
    ) -> tuple[list[tuple[Unit, int]], bool]:
        """List the messages that may have something to cut: of others the texts are not asked for.

        Args:
            request: The request.
            share: What a result is cut to.
            above: What a result may have.
            room: What another text may have; None: each stays.

        Returns:
            Units with messages of them; and whether all that stays surely passes the limit.
        """
        found = list[tuple[Unit, int]]()
        history, edits, additive = request.history, request.edits, request.additive
        least = above if room is None else min(above, room)
        cut_tokens = _least_tokens(share)
        units = request.told_units  # first: it tells whether only those near a cut were told apart
        # What is older than where even what is cut passes the limit leaves, unread, if what comes next evicts
        # the oldest: all but what opens the rest, or is held.
        newest_stay = request.is_near or (additive and reads_newest(next(iter(request.later), None), history))
        left, led = request.limit_tokens if newest_stay else sys.maxsize, False
        for unit in reversed(units):
            if left < 0:
                may_stay = unit.state == "held" or (not led and (unit.kind == "user" or history.ordered))
                led = led or unit.kind == "user"
                if not may_stay:
                    continue
            tokens = _tokens_of(request, unit) if additive else []
            # Most units hold nothing as large: a stretch of a hundred messages is one look.
            if additive and not edits and max(tokens) <= least:
                left -= sum(tokens)
                continue
            left -= sum([cut_tokens if size > least else size for size in tokens])
            if unit.state == "pinned" or (self.keep_newest and unit.state == "held"):
                continue
            for at, index in enumerate(unit.indices):
                if additive and tokens[at] <= least and index not in edits:
                    continue
                if room is not None or history.is_result(index):
                    found.append((unit, index))
        return found, left < 0


def _tokens_of(request: EvictionRequest, unit: Unit) -> list[int]:
    """Return the tokens of each message of a unit."""
    first, stop = unit.first, unit.indices[-1] + 1
    if stop - first == len(unit.indices):
        return request.sizes.each(first, stop)
    return [*map(request.sizes.of, unit.indices)]


def _least_tokens(share_tokens: int) -> int:
    """Return what a text that is cut to a share has at least: of a small one the marker alone is too much."""
    return share_tokens // 2 if share_tokens >= _LEAST_CUT_TOKENS else 0


_LEAST_SHARE_TOKENS = 64
"""A large result is not cut to less: a quarter of 256 tokens has room for some forty words and the marker."""

_LEAST_CUT_TOKENS = 16
"""A share of so many tokens is used by at least a half."""


def text_room(history: History, sizes: Sizes, limit_tokens: int, /) -> int:
    """Return the largest text that can be kept whole: the limit without what is in every request.

    Args:
        history: The conversation.
        sizes: The sizes of its messages.
        limit_tokens: The limit that is the same for every call.
    """
    staying = {*range(history.head), *history.pins}
    user = history.latest_user if history.protect else None
    if user is not None:
        staying.add(user)
    return limit_tokens - sizes.fixed_tokens(history.leads_system) - sizes.sum(sorted(staying))


def _handles(history: History, index: int, *, offered: bool) -> Mapping[int | None, str]:
    """Map the results in a message, by their parts, to markers with the ids of their calls."""
    named = named_results(history, index)
    return {part: cut_marker(call_id, offered=offered) for part, call_id in named.items()}


def share_of(max_tokens: int | None, max_ratio: float | None, limit_tokens: int) -> int:
    """Return the share in tokens; at least 1."""
    return max_tokens if max_tokens is not None else max(1, int((max_ratio or 0.0) * limit_tokens))


_PROBE = "build.log, line 1,024: the 17th test of the parser failed; see the report for details.\n" * 8
"""A known text for a black box, to compare its tokens with estimated ones."""


def text_size(sizes: Sizes, format: Format, /) -> CountText:
    """Return what counts one text, whatever else is in the conversation.

    A black box over lists says nothing of one text. Its tokens are estimated, times what it charges for a
    known text beside the estimate of that: asked once, so that a result is cut alike in every call.
    """
    counter = sizes.counter
    if isinstance(counter, AdditiveCounter):
        count: CountText = counter.count_text
        return count
    estimate = EstimateCounter().count_text
    ratio: list[float] = []

    def text_tokens(text: str) -> int:
        if not ratio:
            ratio.append(sizes.alone(format.message("user", [_PROBE])) / estimate(_PROBE))
        return round(estimate(text) * ratio[0])

    return text_tokens


def clamp_texts(
    format: Format,
    slots: Sequence[TextSlot],
    share_tokens: int,
    *,
    count: CountText,
    limit_tokens: int | None = None,
    text_limit_tokens: int | None = None,
    marker: str = CUT_MARKER,
    handles: Mapping[int | None, str] = MappingProxyType({}),
    keeps: Mapping[int | None, Keep] = MappingProxyType({}),
) -> dict[Path, str]:
    """Cut the texts of a message so that each result that is too large comes to its share.

    A result of several texts is measured as one: the longest of them give way, down to one length.

    Args:
        slots: The texts of the message that may be cut.
        share_tokens: What one result may have.
        count: Tokens of a text.
        limit_tokens: A result that has no more stays whole. None: its share.
        text_limit_tokens: What is no result comes to the share, too, as one text, if it has more than so
            many. None: it stays whole.
        marker: What stands where text was cut.
        handles: What stands there instead in a result, by its part of the message (None: the whole of it),
            where at least half of its room remains for text.
        keeps: What stays of a result, by its part; both ends of those not named.

    Returns:
        New texts by path; empty if nothing is above the share.
    """
    limit_tokens = share_tokens if limit_tokens is None else limit_tokens
    together: dict[tuple[bool, int | None], list[TextSlot]] = {}
    for slot in slots:
        if slot.is_result or text_limit_tokens is not None:
            part = result_part(format, slot) if slot.is_result else None
            together.setdefault((slot.is_result, part), []).append(slot)
    cut: dict[Path, str] = {}
    for (is_result, part), its in together.items():
        sizes = [count(slot.text) for slot in its]
        if sum(sizes) > (limit_tokens if is_result else text_limit_tokens or 0):
            level = _level(sizes, share_tokens)
            handle = handles.get(part) if is_result else None
            said = handle if handle is not None and 2 * count(handle) <= level else marker
            keep = keeps.get(part, "both") if is_result else "both"
            cut.update(_shorten_to(level, its, sizes, count=count, marker=said, keep=keep))
    return cut


def _shorten_to(
    level: int, slots: Sequence[TextSlot], sizes: Sequence[int], *, count: CountText, marker: str, keep: Keep
) -> Mapping[Path, str]:
    """Cut the texts of a result that are larger than a size down to that."""
    cut: dict[Path, str] = {}
    for slot, size in zip(slots, sizes, strict=True):
        if size <= level:
            continue
        text = shorten(slot.text, level, count=count, keep=keep, marker=marker, size_tokens=size)
        if text is None:  # not even the marker has room: in a result one of them says it for all
            text = "" if slot.is_result and marker in cut.values() else marker
        if count(text) < size:
            cut[slot.path] = text
    return cut


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the size to which the largest must be cut so that all have room."""
    left = room
    for at, size in enumerate(sorted(sizes)):
        if size * (len(sizes) - at) > left:
            return left // (len(sizes) - at)
        left -= size
    return room
