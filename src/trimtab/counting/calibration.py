"""What the bills of recorded calls teach about a counter, as data, and the counter that uses it.

A calibration is of models and holds for all their conversations; what one conversation's own bills teach is
the usage baseline's (`trimtab.counting.baseline`), which may have a calibrated counter inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

from trimtab._shared.checks import is_number, is_whole
from trimtab._shared.files import BYTE_ORDER_MARK
from trimtab._shared.strict_json import parse
from trimtab.counting.base import AdditiveCounter, counter_name
from trimtab.counting.baseline import LEAST_TOKENS, NOTHING_LEARNED, Factor, FactorCounter, Learned
from trimtab.counting.estimate import EstimateCounter
from trimtab.errors import ConfigurationError, FormatError, option, phrase
from trimtab.formats import Format, Media, Pieces
from trimtab.models import find_facts

LEAST_CALLS = 5
"""Minimum number of bills of a model to learn from."""
SCHEMA, VERSION = "trimtab.calibration", 1

_DIGITS = 6
"""Decimal places of a factor, which counts use as it is written."""
_MOST_TURNS, _LEAST_GAIN = 20, 0.99
"""Maximum number of turns to find factor and constant, and the factor to which each must reduce the
deviations."""
_INSIDE_SHARE = 0.97
"""The share of bills within a margin: as `Count` promises."""
_SAFETY = 1.25
"""Multiple of the worst deviation, if there are too few calls to leave one out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the bills of one model taught about one counter.

    Args:
        counter: Who counted.
        calls: How many bills there were.
        calls_apart: How many more there were, each more than four times off: of something else.
        factor: Billed tokens a counted one.
        constant_tokens: What each request is billed beside that.
        above_per_mille: How far a bill may be above the corrected count, in thousandths of it and 16 tokens.
        below_per_mille: How far a bill may be below.
        smallest_tokens: The smallest count that was learned from, of a call or of what it has more than the
            first of its conversation.
        largest_tokens: The largest.
        deviation_before: Median deviation of the counts, as a fraction of the bills.
        deviation_after: The same of the corrected counts.
    """

    counter: str
    calls: int
    calls_apart: int
    factor: float
    constant_tokens: int
    above_per_mille: int
    below_per_mille: int
    smallest_tokens: int
    largest_tokens: int
    deviation_before: float
    deviation_after: float

    @property
    def ratio(self) -> Factor:
        """The factor in whole numbers."""
        return Factor(round(self.factor * 10**_DIGITS), 10**_DIGITS)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self:
        """Read plain data.

        Raises:
            ConfigurationError: It is none that `to_dict` wrote, or there were too few calls.
        """
        try:
            made = cls(**{name: data[name] for name in _FIELDS})
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"a calibration needs {', '.join(_FIELDS)}: {error}") from error
        if not isinstance(made.counter, str):
            raise ConfigurationError(f"counter must be the name of a counter, not {made.counter!r:.40}")
        for name, bounds in _BOUNDS.items():
            bounds.check(name, data[name])
        if made.smallest_tokens > made.largest_tokens:
            raise ConfigurationError(
                f"smallest_tokens is {made.smallest_tokens:,}, above largest_tokens, {made.largest_tokens:,}"
            )
        if made.calls < LEAST_CALLS:
            raise ConfigurationError(
                f"the calibration is of {made.calls:,} calls; {LEAST_CALLS} or more are needed"
            )
        return made


_FIELDS = tuple(field.name for field in fields(Calibration))


class _Bounds(NamedTuple):
    """The least and greatest value of a number in a file."""

    least: float
    most: float
    is_whole: bool = True

    def check(self, name: str, value: object) -> None:
        """Refuse a value that is not such a number."""
        is_other = self.is_whole and not is_whole(value)
        if is_other or not is_number(value) or not self.least <= value <= self.most:
            kind = "whole number" if self.is_whole else "number"
            raise ConfigurationError(
                f"{name} must be a {kind} from {self.least:,} to {self.most:,}, not {value!r:.40}"
            )


_AMOUNT, _FRACTION = _Bounds(0, 10**9), _Bounds(0, 10**9, is_whole=False)
_BOUNDS = {
    "calls": _AMOUNT,
    "calls_apart": _AMOUNT,
    "factor": _Bounds(0.01, 100, is_whole=False),
    "constant_tokens": _Bounds(-(10**7), 10**7),
    "above_per_mille": _AMOUNT,
    "below_per_mille": _AMOUNT,
    "smallest_tokens": _AMOUNT,
    "largest_tokens": _AMOUNT,
    "deviation_before": _FRACTION,
    "deviation_after": _FRACTION,
}
"""The limits of numbers in a file, far beyond what bills teach: anything outside is a mistake."""


# -- learning


class Point(NamedTuple):
    """A call: its count and its bill."""

    counted_tokens: int
    billed_tokens: int


def learn(whole: Sequence[Point], grown: Sequence[Point] = (), /, *, counter: str) -> Calibration:
    """Learn from the bills of one model.

    Factor and constant are medians, each found with the other as it is, and taken only if deviations fall
    and their median does not rise: no call decides alone, and counts that are right stay as they are. Bills
    more than four times off are of something else, and set aside. A short history says little of the factor,
    as `Learned` has it.

    Args:
        whole: Calls that are recorded whole.
        grown: What calls have more than the first of their conversation, of which something that stays the
            same is not recorded: they teach the factor, and nothing of the constant.
        counter: Who counted.

    Raises:
        ConfigurationError: There are fewer than five calls.
    """
    seen = [*(_Judged(one, 1) for one in whole), *(_Judged(one, 0) for one in grown)]
    judged = [one for one in seen if NOTHING_LEARNED.believable(*one.point)]
    if len(judged) < LEAST_CALLS:
        raise ConfigurationError(_too_few(len(judged), len(seen)))
    line = _line_of(judged)
    fixed = [(one.point.billed_tokens, line.of(one)) for one in judged]
    sizes = [one.point.counted_tokens for one in judged]
    return Calibration(
        counter=counter,
        calls=len(judged),
        calls_apart=len(seen) - len(judged),
        factor=line.factor,
        constant_tokens=line.constant,
        above_per_mille=_per_mille((billed - tokens, tokens) for billed, tokens in fixed),
        below_per_mille=_per_mille((tokens - billed, tokens) for billed, tokens in fixed),
        smallest_tokens=min(sizes),
        largest_tokens=max(sizes),
        deviation_before=round(_Line(1.0, 0).deviation(judged), _DIGITS),
        deviation_after=round(line.deviation(judged), _DIGITS),
    )


def _too_few(judged: int, seen: int) -> str:
    """Say why nothing is learned: there are too few calls, or they were set aside."""
    if judged == seen:
        return f"{seen:,} calls teach nothing; {LEAST_CALLS} or more are needed"
    apart = f"{seen - judged:,}" if judged else "all"
    return (
        f"{seen:,} calls, {apart} set aside: their bills are more than four times the count, or less than a"
        f" quarter of it, and so of something else; {LEAST_CALLS} or more others are needed"
    )


class _Judged(NamedTuple):
    """A call as it is learned from: how often the constant is in it."""

    point: Point
    constants: int

    @property
    def weight(self) -> float:
        """What a token of it weighs: deviations are shares of the bill, and of what framing is."""
        return 1 / (LEAST_TOKENS + self.point.billed_tokens)


class _Line(NamedTuple):
    """A factor and a constant."""

    factor: float
    constant: int

    def of(self, one: _Judged) -> float:
        """Correct a count."""
        return self.factor * one.point.counted_tokens + self.constant * one.constants

    def off(self, judged: Iterable[_Judged]) -> float:
        """Sum the deviations of corrected counts."""
        return sum(one.weight * abs(one.point.billed_tokens - self.of(one)) for one in judged)

    def deviation(self, judged: Iterable[_Judged]) -> float:
        """Return the median deviation of corrected counts."""
        return median(abs(one.point.billed_tokens - self.of(one)) / one.point.billed_tokens for one in judged)


def _line_of(judged: Sequence[_Judged]) -> _Line:
    """Find factor and constant; counts stay as they are where the correction would not help."""
    plain = _Line(1.0, 0)
    tried = [_by_turns(start, judged) for start in (plain, _Line(_slope_of(judged), 0))]
    helpful = [line for line in tried if line.deviation(judged) <= plain.deviation(judged)]
    best = min(helpful, key=lambda line: line.off(judged), default=plain)
    return best if best.off(judged) < _LEAST_GAIN * plain.off(judged) else plain


def _by_turns(line: _Line, judged: Sequence[_Judged]) -> _Line:
    """Find constant and factor, each with the other fixed, as long as it helps."""
    for _ in range(_MOST_TURNS):
        constant = _constant_of(judged, line.factor)
        found = _Line(_factor_of(judged, constant), constant)
        better = min((_Line(line.factor, constant), found), key=lambda one: one.off(judged))
        if better.off(judged) >= _LEAST_GAIN * line.off(judged):
            break
        line = better
    return line


def _slope_of(judged: Sequence[_Judged]) -> float:
    """Give the median of what pairs of whole calls differ by, each paired with that half way on by size."""
    whole = sorted(one.point for one in judged if one.constants)
    slopes = [
        ((large.billed_tokens - small.billed_tokens) / grown, grown / (LEAST_TOKENS + large.billed_tokens))
        for small, large in zip(whole, whole[len(whole) // 2 :], strict=False)
        if (grown := large.counted_tokens - small.counted_tokens)
    ]
    return _shrink(_weighted_median(slopes), judged) if slopes else 1.0


def _factor_of(judged: Sequence[_Judged], constant: int) -> float:
    """Return the median of the tokens billed per counted token."""
    slopes = []
    for one in judged:
        counted, billed = one.point
        slopes.append(((billed - constant * one.constants) / counted, one.weight * counted))
    return _shrink(_weighted_median(slopes), judged)


def _shrink(slope: float, judged: Sequence[_Judged]) -> float:
    """Move a factor towards 1, more so for fewer tokens."""
    tokens = sum(one.point.counted_tokens for one in judged)
    billed, counted = Learned(counted_tokens=tokens, reported_tokens=round(max(0.0, slope) * tokens)).factor
    return round(billed / counted, _DIGITS)


def _constant_of(judged: Sequence[_Judged], factor: float) -> int:
    """Return the median of what is billed in addition to the counted tokens; 0 if no call shows it."""
    rests = [
        (one.point.billed_tokens - factor * one.point.counted_tokens, one.weight)
        for one in judged
        if one.constants
    ]
    return round(_weighted_median(rests)) if rests else 0


def _weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the value up to which the weights are half of all."""
    ordered = sorted(pairs)
    half, passed = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        passed += weight
        if passed >= half:
            return value
    return ordered[-1][0]


def _per_mille(found: Iterable[tuple[float, float]]) -> int:
    """Say how far nearly all bills are off on one side, in thousandths of the count and what framing is."""
    parts = sorted(1_000 * max(0.0, off) / (LEAST_TOKENS + max(0.0, tokens)) for off, tokens in found)
    worst = parts[-1] * _SAFETY if _are_few(len(parts)) else parts[_place(len(parts)) - 1]
    return math.ceil(worst)


def _place(calls: int) -> int:
    """Return the rank, in ascending order, of the deviation that nearly all bills are within."""
    return math.ceil(_INSIDE_SHARE * (calls + 1))


def _are_few(calls: int) -> bool:
    """Tell whether there are too few calls to leave one out."""
    return _place(calls) > calls


# -- the counter


class CalibratedCounter(FactorCounter):
    """A counter that corrects another counter's counts by the bills of its model.

    `counter_for(model, calibration=...)` makes it from what `trimtab count --bills --learn` wrote. It is
    never exact. Its margin is what the bills leave open, but at least a part of the counter's own: all of it
    for five bills, a tenth for fifty. A count above twice the largest in the bills, or below half the
    smallest, has at least all of it. If the counter has no margin, these counts have none, and with few bills
    no count has one.

    Args:
        counter: The counter whose counts are corrected.
        learned: What its model's bills taught.

    Raises:
        ConfigurationError: It was learned from another counter.
    """

    def __init__(self, counter: AdditiveCounter, learned: Calibration, /) -> None:
        if learned.counter != label_of(counter):
            raise _error(f" was learned for the counter {learned.counter!r}, not for {label_of(counter)!r}")
        super().__init__(counter, learned.ratio)
        self.learned = learned
        """What its model's bills taught."""
        self.name = f"{counter_name(counter)}, calibrated by {learned.calls:,} calls"

    def with_format(self, format: str | Format, /) -> Self:
        return self._with_counter(self._counter.with_format(format))

    def charge_as(self, format: str | Format, /) -> Self:
        return self._with_counter(self._counter.charge_as(format))

    def without_tools(self) -> Self:
        return self._with_counter(self._counter.without_tools())

    def count_text(self, text: str, /) -> int:
        return self._correct(self._counter.count_text(text))

    def count_message(self, message: Any, /) -> int:
        return self._correct(self._counter.count_message(message))

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        counted = self._counter.fixed_tokens(system, tools, has_system=has_system, extra=extra)
        return max(0, self._correct(counted) + self.learned.constant_tokens)

    def media_tokens(self, media: Media, /) -> int | None:
        tokens = self._counter.media_tokens(media)
        return None if tokens is None else self._correct(tokens)

    def dropped_tokens(self, pieces: Pieces, /) -> int:
        return self._correct(self._counter.dropped_tokens(pieces))

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be above a count.

        Args:
            tokens: The count of a whole request.
        """
        return self._margin(tokens, self.learned.above_per_mille, self._counter.margin_tokens(tokens))

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be below a count.

        Args:
            tokens: The count of a whole request.
        """
        inside = self._counter.over_margin_tokens(tokens)
        margin = self._margin(tokens, self.learned.below_per_mille, inside)
        return None if margin is None else min(tokens, margin)

    def _margin(self, tokens: int, per_mille: int, inside: int | None) -> int | None:
        seen = -(-(LEAST_TOKENS + tokens) * per_mille // 1_000)
        is_near = self._is_near(tokens)
        if inside is None:
            return seen if is_near and not _are_few(self.learned.calls) else None
        return max(seen, inside * LEAST_CALLS // self.learned.calls if is_near else inside)

    def _is_near(self, tokens: int) -> bool:
        """Tell whether a count is about as large as some in the bills."""
        learned = self.learned
        least, most = (
            self._correct(size) + learned.constant_tokens
            for size in (learned.smallest_tokens, learned.largest_tokens)
        )
        return least <= 2 * tokens and tokens <= 2 * most

    @property
    def adds_prompt(self) -> bool:
        return self._counter.adds_prompt

    def unsure_tokens(self, tools: Any, media: Iterable[Media] = (), /) -> int | None:
        return self._counter.unsure_tokens(tools, media)

    def unsure_thoughts(self, pieces: Sequence[Pieces], /) -> int:
        return self._counter.unsure_thoughts(pieces)

    def sees(self, medium: Media, /) -> bool:
        return self._counter.sees(medium)

    def guesses(self, pieces: Pieces, /) -> list[str]:
        return self._counter.guesses(pieces)

    def weight(self, message: Any, /) -> float | None:
        return self._counter.weight(message)


def label_of(counter: AdditiveCounter, /) -> str:
    """Name what is learned of: a model's counter says whether it estimates for want of a tokenizer."""
    name = counter_name(counter)
    is_stand_in = isinstance(counter, EstimateCounter) and name != _ESTIMATE
    return f"{name}, {_ESTIMATE}" if is_stand_in else name


_ESTIMATE = counter_name(EstimateCounter())


# -- files


CalibrationLike = str | PathLike[str] | Mapping[str, Any]
"""What `calibration=` takes: the file with what was learned, or its content."""


def to_data(learned: Mapping[str, Calibration], /) -> dict[str, Any]:
    """Write what was learned by model as plain data."""
    models = {model: one.to_dict() for model, one in learned.items()}
    return {"schema": SCHEMA, "version": VERSION, "models": models}


def calibration_of(model: str, given: CalibrationLike, /) -> Calibration:
    """Read what was learned about one model.

    Args:
        model: Its name, or another that `trimtab.models` knows it by.
        given: The file, or what stands in it.

    Raises:
        ConfigurationError: It cannot be read, or is of other models.
    """
    facts = find_facts(model)
    name = model if facts is None else facts.name
    data = given if isinstance(given, Mapping) else _read(given)
    where = "" if isinstance(given, Mapping) else f" {given}"
    if (data.get("schema"), data.get("version")) != (SCHEMA, VERSION):
        raise _error(f"{where} is not a {SCHEMA} of version {VERSION}")
    models = data.get("models")
    if not isinstance(models, Mapping):
        raise _error(f"{where} has no models")
    if name not in models:
        raise _error(f"{where} is for {', '.join(map(str, models)) or 'no model'}, not for {name!r}")
    try:
        return Calibration.from_dict(models[name])
    except ConfigurationError as error:
        raise _error(f"{where}, {name}: {error}") from error


def holds_calibration(path: str | PathLike[str], /) -> bool:
    """Tell whether a file has learned calibrations, of any version."""
    try:
        return _read(path).get("schema") == SCHEMA
    except ConfigurationError:
        return False


def _read(path: str | PathLike[str]) -> Mapping[str, Any]:
    try:
        data = parse(Path(path).read_bytes().removeprefix(BYTE_ORDER_MARK), whole=True)
    except OSError as error:
        raise _error(f" {path}: {error.strerror or error}") from error
    except FormatError as error:
        raise _error(f" {path}: {error}") from error
    if not isinstance(data, Mapping):
        raise _error(f" {path}: a mapping is expected, not {data!r:.40}")
    return data


def _error(message: str) -> ConfigurationError:
    return ConfigurationError(phrase(option("calibration"), message), argument="calibration")
