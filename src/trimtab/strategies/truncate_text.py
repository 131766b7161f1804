"""`TruncateText`: texts are shortened, whole messages stay as long as something of them does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Literal

from trimtab._shared.checks import check_choice
from trimtab.conversation import Unit
from trimtab.conversation.assemble import merge_edits, owns_text
from trimtab.conversation.units import span_of
from trimtab.counting.shorten import CUT_MARKER, Bracket, Keep, cut_text, cut_text_near
from trimtab.counting.sizes import Shares
from trimtab.formats import Path, TextSlot
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult

__all__ = ["TruncateText", "shorten_held"]


class _Slot:
    """One text that may be cut, where it is, and from which end."""

    __slots__ = ("index", "keep", "path", "shortest", "text")

    def __init__(self, index: int, slot: TextSlot, keep: Keep) -> None:
        self.index = index
        self.path = slot.path
        self.text = slot.text
        self.keep: Keep = keep
        self.shortest = slot.text

    def at(self, level: int) -> str:
        """Return the text cut to a number of characters; at 0 its shortest form."""
        if len(self.text) <= level:
            return self.text
        if level <= 0:
            return self.shortest
        return cut_text(self.text, level, keep=self.keep)

    def near(self, level: int, other: int) -> str:
        """Return of the text cut to a level what may cost another number of tokens than at the other."""
        if level <= 0:
            return self.at(level)
        return cut_text_near(self.text, level, other, keep=self.keep)


@dataclass(frozen=True, slots=True)
class TruncateText:
    """Shorten texts, never call arguments, roles or structure.

    Each cut leaves a marker, which is counted. Free units are shortened first, oldest first; a unit of which
    nothing would remain is evicted. Of held units, tool results are cut first, the longest down to the length
    of the next, then other text; a result is cut down to its marker, never removed.

    Args:
        keep: Which part of a text to keep: "auto" keeps both ends of tool results, and the
            end of other texts.

    Raises:
        ConfigurationError: `keep` is not one of its values.
    """

    keep: Literal["auto", "end", "start", "both"] = "auto"

    has_last_word: ClassVar[bool] = True
    """Everything that may be cut is cut as short as possible, including the newest unit."""

    def __post_init__(self) -> None:
        """Check the word."""
        check_choice("keep", self.keep, ("auto", "end", "start", "both"))

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "truncate_text"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {"kind": self.name, "keep": self.keep}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Shorten free units, then held ones, as little as possible."""
        units = list(request.told_units)
        free = [unit for unit in units if not request.stays(unit)]
        stays = [unit for unit in units if request.stays(unit)]
        if request.fits(stays):
            return self._shorten_free(request, _Run(request, units, free, partial(_stages, keep=self.keep)))
        held = [unit for unit in stays if unit.state != "pinned"]  # and those an earlier step protects
        answer = shorten_held(request, stays, held, keep=self.keep)
        return replace(answer, actions=("evicted", *(answer.actions or ()))) if free else answer

    def _shorten_free(self, request: EvictionRequest, run: _Run) -> EvictionResult:
        """Drop the oldest free units that must go, and bring the last of them back shortened.

        What the others need in front of them gives way before that one, down to its marker, and stays as long
        as they do.
        """
        count = run.fewest_dropped()
        for dropped in (count - 1, count):
            kept, opener = run.remainder(dropped), run.opener(dropped)
            last = run.free[dropped] if dropped < count else None
            edits = self._fewest_cut(request, kept, opener, last)
            if edits is not None:
                gone = len(kept) < len(run.units)
                actions = (*(("evicted",) if gone else ()), *(("shortened",) if edits else ()))
                return EvictionResult(kept=kept, edits=edits, actions=actions)
        return EvictionResult(kept=run.remainder(count), fits=False, actions=("evicted",))

    def _fewest_cut(
        self, request: EvictionRequest, kept: list[Unit], opener: Unit | None, last: Unit | None
    ) -> list[Edit] | None:
        """Cut an opener, down to its marker, and then the last unit, of which something must remain."""
        given = [(unit, floor) for unit, floor in ((opener, 0), (last, 1)) if unit is not None]
        if not given:
            return []
        search = _Search(request, kept, [unit for unit, _ in given])
        for unit, floor in given:
            for slots in _stages([unit], request, keep=self.keep):
                if (edits := search.deepest(slots, floor=floor)) is not None:
                    return edits
        return [] if last is None and request.fits(kept) else None


def shorten_held(
    request: EvictionRequest,
    units: Sequence[Unit],
    held: Sequence[Unit],
    *,
    keep: Literal["auto", "end", "start", "both"] = "auto",
) -> EvictionResult:
    """Cut texts of what may not leave until it fits: tool results first, then other text.

    Args:
        request: What is asked.
        units: What stays.
        held: Those of them whose texts may be cut.
        keep: Which part of a text stays, as `TruncateText` has it.
    """
    search = _Search(request, list(units), ())
    for slots in _stages(held, request, keep=keep):
        if (edits := search.deepest(slots, floor=0)) is not None:
            return EvictionResult(kept=units, edits=edits, actions=("shortened",))
    least = search.tokens({})
    return EvictionResult(
        kept=units, edits=search.edits({}), fits=False, actions=("shortened",), needed_tokens=least
    )


def _stages(
    units: Sequence[Unit], request: EvictionRequest, *, keep: Literal["auto", "end", "start", "both"]
) -> list[list[_Slot]]:
    """List what may be cut: tool results first, then other text."""
    results: list[_Slot] = []
    texts: list[_Slot] = []
    for unit in units:
        for index in unit.indices:
            for slot in request.texts(index):
                if owns_text(unit, index, slot.path):
                    end: Keep = "both" if slot.is_result else "end"
                    made = _Slot(index, slot, end if keep == "auto" else keep)
                    (results if slot.is_result else texts).append(made)
    return [results, texts]


_MOST_WEIGHED = 64
"""Texts of one message that may be weighed with all of it; of the others rounding may hide what they save."""

_BLACK_BOX_ASKS = 16
"""Texts a black box is asked about, if the marker is smaller; its shares must do for any others."""


class _Search:
    """Looks for the longest texts that fit, one level of characters for all slots of a stage."""

    def __init__(self, request: EvictionRequest, units: list[Unit], only: Sequence[Unit]) -> None:
        self._request = request
        self._cut: dict[int, Mapping[Path, str]] = {}
        apart = only and request.additive and not any(unit.parts for unit in only)
        self._part = only if apart else units
        self._rest_tokens = request.costs.total(units) - request.costs.total(self._part) if apart else 0
        self._asks = _BLACK_BOX_ASKS

    def tokens(self, edits: Mapping[int, Mapping[Path, str]]) -> int:
        """Return the size of the request with these cuts and those of earlier stages."""
        return self._rest_tokens + self._request.costs.total(
            self._part, merge_edits(self._cut, edits.items())
        )

    def edits(self, cut: Mapping[int, Mapping[Path, str]]) -> list[Edit]:
        """Write cuts, and those of earlier stages, as edits."""
        merged = merge_edits(self._cut, cut.items())
        return [Edit(index=index, texts=texts) for index, texts in sorted(merged.items())]

    def deepest(self, slots: list[_Slot], *, floor: int) -> list[Edit] | None:
        """Cut the slots to the highest level that fits; None, and all of them cut down, if none does.

        Args:
            slots: Texts of one stage.
            floor: Characters that must remain for the stage to be worth it.
        """
        if not slots:
            return None
        self.weigh(slots)
        limit = self._request.limit_tokens
        most = self.tokens({})
        if most <= limit:  # since the stage before this one was cut down
            return self.edits({})
        least = self.tokens(_at(slots, floor))
        if least > limit:
            self._cut = merge_edits(self._cut, _at(slots, 0).items())
            return None
        whole = max(len(slot.text) for slot in slots)
        bracket = Bracket(low=floor, low_tokens=least, high=whole, high_tokens=most)
        return self.edits(_at(slots, self._highest(slots, bracket)))

    def weigh(self, slots: list[_Slot]) -> None:
        """Note of each text what its shortest form is."""
        for index, its in groupby(slots, key=lambda slot: slot.index):
            message = self._request.message(index)
            for number, slot in enumerate(its):
                slot.shortest = self._shortest(slot, message, weigh=number < _MOST_WEIGHED)

    def _highest(self, slots: list[_Slot], bracket: Bracket) -> int:
        """Return a level that fits, the next of which does not.

        To count a level costs all its texts, so it is first foretold by what lies between levels; the
        outcome is always counted. Where a tokenizer said what was foretold, parts of texts add up, and
        the level after it is not counted; any other counter may round, and is asked about both.
        """
        request, limit = self._request, self._request.limit_tokens

        def size(level: int) -> int:
            return self.tokens(_at(slots, level))

        if request.additive:
            near = replace(bracket)
            near.close(lambda level: self._foretold(slots, level, near), limit_tokens=limit)
            tokens = size(near.low)
            if tokens == near.low_tokens and request.sizes.counter.exact:
                return near.low
            for level in (near.low, near.high):
                if bracket.low < level < bracket.high:
                    bracket.narrow(level, size(level), limit_tokens=limit)
        bracket.close(size, limit_tokens=limit)
        return bracket.low

    def _foretold(self, slots: list[_Slot], level: int, bracket: Bracket) -> int:
        """Tell the size of a level by that of the nearer end of the bracket, and the texts between."""
        ends = (bracket.low, bracket.low_tokens), (bracket.high, bracket.high_tokens)
        other, tokens = min(ends, key=lambda end: abs(end[0] - level))
        return tokens + self.tokens(_near(slots, level, other)) - self.tokens(_near(slots, other, level))

    def _shortest(self, slot: _Slot, message: Any, *, weigh: bool) -> str:
        """Choose between a text and its marker alone: the one that costs less.

        The other parts of its message cost the same either way and are not counted with it, unless the two
        are so near that rounding may decide; `weigh` says whether that is done.
        """
        request = self._request
        sizes, with_texts = request.sizes, request.history.format.with_texts
        if isinstance(sizes, Shares) and self._asks:  # a share is an estimate, and each question costs a call
            self._asks -= 1
            marked = with_texts(message, {slot.path: CUT_MARKER})
            smaller = sizes.request_tokens([marked]) < sizes.request_tokens([message])
            return CUT_MARKER if smaller else slot.text
        alone, path = _alone(message, slot.path)
        saved = sizes.message(alone, slot.index)
        saved -= sizes.message(with_texts(alone, {path: CUT_MARKER}), slot.index)
        if weigh and abs(saved) <= 1 and not sizes.counter.exact:
            saved = sizes.message(message, slot.index)
            saved -= sizes.message(with_texts(message, {slot.path: CUT_MARKER}), slot.index)
        return CUT_MARKER if saved > 0 else slot.text


def _alone(owner: Any, path: Path) -> tuple[Any, Path]:
    """Return a copy in which each list on the way to a text holds nothing else, and the text's path in it."""
    if not path:
        return owner, path
    key = path[0]
    if isinstance(owner, list) and isinstance(key, int):
        inner, rest = _alone(owner[key], path[1:])
        return [inner], (0, *rest)
    if type(owner) is dict and key in owner:
        inner, rest = _alone(owner[key], path[1:])
        return {**owner, key: inner}, (key, *rest)
    return owner, path


def _at(slots: list[_Slot], level: int) -> dict[int, dict[Path, str]]:
    """Cut every slot to a level; those that are shorter stay out of it."""
    cut: dict[int, dict[Path, str]] = {}
    for slot in slots:
        text = slot.at(level)
        if text is not slot.text:
            cut.setdefault(slot.index, {})[slot.path] = text
    return cut


def _near(slots: list[_Slot], level: int, other: int) -> dict[int, dict[Path, str]]:
    """Reduce every slot that two levels cut differently to what is near its cut at the first."""
    near: dict[int, dict[Path, str]] = {}
    for slot in slots:
        if len(slot.text) > min(level, other):
            near.setdefault(slot.index, {})[slot.path] = slot.near(level, other)
    return near


class _Run:
    """How many of the oldest free units go, and what those that stay need in front of them."""

    def __init__(
        self, request: EvictionRequest, units: list[Unit], free: list[Unit], stages: Callable[..., Any]
    ) -> None:
        self.units = units
        self.free = free
        self._request = request
        self._stages = stages
        self._openers = request.openers
        self._stays = [unit for unit in units if request.stays(unit)]
        self._there: dict[int, set[int]] = {}
        self._shortest: dict[int, Mapping[int, Mapping[Path, str]]] = {}
        at = None if self._openers is None else self._openers.front(map(span_of, self._stays))
        self._front = None if at is None else self._stays[at].first

    def opener(self, dropped: int) -> Unit | None:
        """Return what has to stay in front once so many have gone."""
        openers, free = self._openers, self.free
        if openers is None or dropped == len(free):
            return None
        is_led = self._front is not None and self._front < free[dropped].first
        return None if is_led else openers.of(free[dropped])

    def remainder(self, dropped: int) -> list[Unit]:
        """List what stays once so many have gone."""
        gone, opener = set(map(id, self.free[:dropped])), self.opener(dropped)
        return [unit for unit in self.units if id(unit) not in gone or unit is opener]

    def fewest_dropped(self) -> int:
        """Return how many of the oldest free units must go for the rest to fit; at least 1."""
        request, free = self._request, self.free
        if request.additive:
            used = sum(request.costs.unit(unit, self._there) for unit in self._stays)
            there = dict(self._there)
            for count in range(len(free), 1, -1):
                used += request.costs.unit(free[count - 1], there)
                if used + self._beside_tokens(count - 1) > request.limit_tokens:
                    return count
            return 1
        low, high = 0, len(free)
        while high - low > 1:
            middle = (low + high) // 2
            if request.fits(self.remainder(middle), edits=self._shortest_of(self.opener(middle))):
                high = middle
            else:
                low = middle
        return high

    def _beside_tokens(self, dropped: int) -> int:
        """Return the least that stands beside the units once so many have gone, their opener included."""
        request, opener = self._request, self.opener(dropped)
        first = min([opener or self.free[dropped], *self._stays[:1]], key=lambda unit: unit.indices)
        fixed_tokens = request.costs.fixed_tokens(span_of(first))
        if opener is None:
            return fixed_tokens
        edits = merge_edits(request.edits, self._shortest_of(opener).items())
        there = {index: self._there[index] for index in opener.parts if index in self._there}
        return fixed_tokens + request.costs.unit(opener, there, edits)

    def _shortest_of(self, opener: Unit | None) -> Mapping[int, Mapping[Path, str]]:
        """Return a unit's texts at their shortest."""
        if opener is None:
            return {}
        if id(opener) not in self._shortest:
            search = _Search(self._request, [opener], ())
            cut: dict[int, Mapping[Path, str]] = {}
            for slots in self._stages([opener], self._request):
                search.weigh(slots)
                cut = merge_edits(cut, _at(slots, 0).items())
            self._shortest[id(opener)] = cut
        return self._shortest[id(opener)]
