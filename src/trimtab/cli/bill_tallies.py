"""What `trimtab count --bills` adds up of calls beside their bills, and what is said of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from trimtab.cli.output import Place, encode
from trimtab.counting.bills import BilledCall
from trimtab.counting.calibration import Point
from trimtab.report.text import align, plain, plural

NO_BILL = "no call of it has a usage"


class Call(NamedTuple):
    """One call, and where it is; of a conversation that is not recorded whole about what is missing."""

    place: Place
    call: BilledCall
    unrecorded_tokens: int | None = None


class Unusable(NamedTuple):
    """A call whose usage is none."""

    place: Place
    number: int
    why: str


@dataclass(slots=True, kw_only=True)
class Found:
    """What came of one recording; plain data from another process."""

    place: Place
    calls: list[Call] = field(default_factory=list[Call])
    unusable: list[Unusable] = field(default_factory=list[Unusable])
    conversations: int = 0
    """Those with a bill."""
    errors: list[tuple[Place, str, str]] = field(default_factory=list[tuple[Place, str, str]])
    """Place, kind and text of what went wrong."""
    refused: str = ""
    """How trimtab was called is wrong, and this ends all of it."""

    @property
    def has_no_bill(self) -> bool:
        """Whether it could be read, and no call of it has a usage."""
        return not (self.calls or self.unusable or self.errors)


# -- adding up


@dataclass(slots=True)
class ModelTally:
    """The calls of one model."""

    counter: str
    calls: int = 0
    deviations: array[float] = field(default_factory=lambda: array("d"))
    """Of those that are judged."""
    within: int = 0
    unknown: int = 0
    """Calls whose requests name what only the provider knows."""
    worst: Call | None = None
    unrecorded: list[int] = field(default_factory=list[int])
    """Of each conversation that is not recorded whole."""
    whole: list[Point] = field(default_factory=list[Point])
    """Calls that are recorded whole."""
    grown: list[Point] = field(default_factory=list[Point])
    """What other calls have more than the first of their conversation."""

    @property
    def judged(self) -> int:
        """Calls that have something to be compared with."""
        return len(self.deviations)

    @property
    def median_deviation(self) -> float | None:
        """How far off counts are in the median, either way."""
        return median(map(abs, self.deviations)) if self.deviations else None

    @property
    def bias(self) -> float | None:
        """How far above or below in the median."""
        return median(self.deviations) if self.deviations else None

    def add(self, one: Call) -> None:
        """Take a call."""
        self.calls += 1
        compared = one.call.compared
        if compared is None:
            self.unknown += bool(one.call.unknown)
            return
        (self.whole if one.call.basis == "request" else self.grown).append(compared.point)
        self.deviations.append(compared.deviation)
        self.within += compared.is_within
        worst = None if self.worst is None else self.worst.call.compared
        if worst is None or abs(compared.deviation) > abs(worst.deviation):
            self.worst = one


@dataclass(slots=True)
class BillsTally:
    """All of it, added up recording by recording."""

    models: dict[str, ModelTally] = field(default_factory=dict[str, ModelTally])
    recordings: int = 0
    conversations: int = 0
    without: int = 0
    """Recordings without a bill."""
    first_without: Place | None = None
    unusable: int = 0
    first_unusable: Unusable | None = None
    failures: int = 0

    @property
    def calls(self) -> int:
        """Calls with a bill."""
        return sum(one.calls for one in self.models.values())

    def add(self, found: Found) -> None:
        """Take what came of one recording."""
        self.recordings += 1
        self.conversations += found.conversations
        self.failures += len(found.errors)
        self.unusable += len(found.unusable)
        if self.first_unusable is None and found.unusable:
            self.first_unusable = found.unusable[0]
        if found.has_no_bill:
            self.without += 1
            self.first_without = self.first_without or found.place
        unrecorded = dict[tuple[Place, str], int]()
        for one in found.calls:
            model = one.call.model
            tally = self.models.setdefault(model, ModelTally(one.call.counter))
            tally.add(one)
            if one.unrecorded_tokens is not None:
                unrecorded.setdefault((one.place, model), one.unrecorded_tokens)
        for (_, model), tokens in unrecorded.items():
            self.models[model].unrecorded.append(tokens)


# -- for programs


def rows(found: Found) -> Iterator[dict[str, Any]]:
    """Say what came of a recording: a row a call, and an error for what has no bill."""
    for one in found.calls:
        yield _row(one)
    for place, number, why in found.unusable:
        yield {**place.data, "call": number, "error": {"type": "UsageError", "message": why}}
    for place, kind, message in found.errors:
        yield {**place.data, "error": {"type": kind, "message": message}}
    if found.has_no_bill:
        yield {**found.place.data, "error": {"type": "UsageError", "message": NO_BILL}}


def _row(one: Call) -> dict[str, Any]:
    """Say one call; a growth is told beside the whole."""
    call, compared = one.call, one.call.compared
    told: dict[str, Any] = {
        **one.place.data,
        "call": call.number,
        "model": call.model,
        "counter": call.counter,
        "billed_tokens": call.whole.billed_tokens,
        "counted_tokens": call.whole.counted_tokens,
        "margin_tokens": call.whole.margin_tokens,
        "over_margin_tokens": call.whole.over_margin_tokens,
        "unknown": list(call.unknown),
        "basis": call.basis,
        "deviation": None if compared is None else round(compared.deviation, 6),
        "within_margin": None if compared is None else compared.is_within,
    }
    if call.basis == "growth" and compared is not None:
        told["billed_growth_tokens"] = compared.billed_tokens
        told["counted_growth_tokens"] = compared.counted_tokens
    if one.unrecorded_tokens is not None:
        told["unrecorded_tokens"] = one.unrecorded_tokens
    return told


def summary(tally: BillsTally, files: int) -> dict[str, Any]:
    """Sum up."""
    return {
        "summary": {
            "files": files,
            "conversations": tally.conversations,
            "calls": tally.calls,
            "models": [_model_row(name, one) for name, one in _by_calls(tally)],
            "recordings_without_bill": tally.without,
            "unusable_bills": tally.unusable,
            "failed": tally.failures,
        }
    }


def _model_row(name: str, tally: ModelTally) -> dict[str, Any]:
    return {
        "model": name,
        "counter": tally.counter,
        "calls": tally.calls,
        "judged_calls": tally.judged,
        "unknown_calls": tally.unknown,
        "within_margin": tally.within,
        "median_deviation": _digits(tally.median_deviation),
        "bias": _digits(tally.bias),
        "worst": None if tally.worst is None else _row(tally.worst),
        "unrecorded_tokens": round(median(tally.unrecorded)) if tally.unrecorded else None,
    }


def _digits(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def _by_calls(tally: BillsTally) -> list[tuple[str, ModelTally]]:
    return sorted(tally.models.items(), key=lambda one: -one[1].calls)


# -- for people


_HEADS = ["model", "calls", "judged", "median", "bias", "within"]
_OF_WORST = ["worst", "billed", "counted", "margin", "where"]


def as_text(tally: BillsTally, files: int) -> bytes:
    """Give a table by model, with the worst call of each and its place."""
    listed = _by_calls(tally)
    heads = [*_HEADS, *_OF_WORST]
    table = [heads, *(_cells(name, one) for name, one in listed)]
    count = f"{plural(tally.calls, 'call')} in {plural(tally.conversations, 'conversation')}"
    lines = [f"{count} of {plural(files, 'file')}: counts beside their bills", ""]
    lines += (line.rstrip() for line in align(table, right=range(1, len(heads) - 1)))
    notes = [note for name, one in listed for note in _notes(plain(name), one)]
    return encode("".join(f"{line}\n" for line in (*lines, *([""] if notes else []), *notes)))


def _cells(name: str, tally: ModelTally) -> list[str]:
    cells = [plain(name), f"{tally.calls:,}", f"{tally.judged:,}", fraction_text(tally.median_deviation)]
    return [*cells, fraction_text(tally.bias, signed=True), f"{tally.within:,}", *_worst_cells(tally.worst)]


def _worst_cells(worst: Call | None) -> list[str]:
    if worst is None or worst.call.compared is None:
        return ["-" for _ in _OF_WORST]
    compared, number = worst.call.compared, worst.call.number
    margin = "-" if compared.margin_tokens is None else f"{compared.margin_tokens:,}"
    where = worst.place.label(worst.place.source) + (f", call {number:,}" if number > 1 else "")
    cells = [fraction_text(compared.deviation, signed=True), f"{compared.billed_tokens:,}"]
    return [*cells, f"{compared.counted_tokens:,}", margin, plain(where)]


def _notes(name: str, tally: ModelTally) -> Iterator[str]:
    """Say of a model what is in no recording, and what cannot be judged."""
    if tally.unrecorded:
        tokens, number = round(median(tally.unrecorded)), len(tally.unrecorded)
        of = f", the median of {number:,} conversations" if number > 1 else ""
        yield (
            f"{name}: constant part not in the recording: about {tokens:,} tokens{of}; judged is what calls"
            " have more than the first"
        )
    if tally.unknown:
        calls = plural(tally.unknown, "call")
        yield f"{name}: {calls} not judged: the request names what only the provider knows"
    short = tally.calls - tally.judged - tally.unknown - len(tally.unrecorded)
    if short > 0:
        yield (
            f"{name}: {plural(short, 'call')} not judged: system text and tools are not in the recording, and"
            " the conversation is too short to tell them apart"
        )


def fraction_text(number: float | None, *, signed: bool = False) -> str:
    """Write a fraction for people."""
    return "-" if number is None else f"{100 * number:{'+' if signed else ''}.1f} %"
