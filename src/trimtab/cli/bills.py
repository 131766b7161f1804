"""`trimtab count --bills`: what calls of recordings were billed, beside what is counted of them."""

from __future__ import annotations

import functools
import json
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click

from trimtab._shared.checks import error_name
from trimtab.cli.input import InputKind, files_of
from trimtab.cli.options import RequestOptions, with_sources
from trimtab.cli.output import Place, Progress, Refused, encode, in_options, json_text, leave_pipe, usage
from trimtab.cli.recordings import Recording, conversations_in, recordings
from trimtab.counting import EstimateCounter
from trimtab.counting.bills import BilledCall, Named, compare_with_bills
from trimtab.counting.calibration import LEAST_CALLS, Calibration, Point, learn, to_data
from trimtab.errors import ConfigurationError, ContextError, FormatError, MissingExtraError
from trimtab.models import find_facts
from trimtab.report.text import align, plain, plural

NONE_NAMED = "no model named"
_NO_BILL = "no call of it has a usage"


class _Call(NamedTuple):
    """One call, and which conversation of its recording it is of; "" where there is no other."""

    conversation: str
    call: BilledCall
    unrecorded_tokens: int | None


class _Unusable(NamedTuple):
    """A call whose usage is none."""

    conversation: str
    number: int
    why: str


@dataclass(slots=True, kw_only=True)
class Found:
    """What came of one recording; plain data from another process."""

    place: Place
    calls: list[_Call] = field(default_factory=list[_Call])
    unusable: list[_Unusable] = field(default_factory=list[_Unusable])
    conversations: int = 0
    error: tuple[str, str] | None = None
    """Kind and text of what went wrong."""
    refused: str = ""
    """How trimtab was called is wrong, and this ends all of it."""


class Job:
    """What is done with every recording."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Read the options; what is wrong with them is refused at once."""
        self._asked = RequestOptions(given)
        self._is_calibrated = given["calibration"] is not None

    def do(self, recording: Recording) -> Found:
        """Count what each call of a recording sent."""
        found = Found(place=recording.place)
        asked = self._asked
        try:
            for one in conversations_in(recording, format=asked.format, model=asked.model):
                compared = compare_with_bills(one, self._named, system=asked.system, tools=asked.tools)
                found.conversations += bool(one.bills)
                found.calls += (
                    _Call(one.name, call, compared.unrecorded_tokens.get(call.model))
                    for call in compared.calls
                )
                found.unusable += (
                    _Unusable(one.name, number, why) for number, why in compared.unusable.items()
                )
        except MissingExtraError as error:
            found.refused = in_options(error)
        except ContextError as error:
            found.error = (error_name(error), in_options(error))
        except RecursionError:
            found.error = (error_name(FormatError("")), "nested too deep")
        return found

    def _named(self, model: str | None) -> Named:
        """Find what counts for the model of a bill: the one that was asked for comes first."""
        name = self._asked.model or model
        facts = None if name is None else find_facts(name)
        known = None if facts is None else name
        asked_for = name if self._is_calibrated else known
        counter = self._asked.counter(asked_for) or EstimateCounter()
        return Named(facts.name if facts is not None else name or NONE_NAMED, known, counter)


def make(given: Mapping[str, Any]) -> Callable[[list[Recording]], list[Found]]:
    """Make in another process what does a share of the recordings."""
    job = Job(given)
    return lambda share: list(map(job.do, share))


# -- adding up


class Worst(NamedTuple):
    """The call of a model whose count is farthest off, and where it is."""

    place: Place
    conversation: str
    call: BilledCall


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
    worst: Worst | None = None
    unrecorded: list[int] = field(default_factory=list[int])
    """Of each conversation that is not recorded whole."""
    whole: list[Point] = field(default_factory=list[Point])
    series: list[list[Point]] = field(default_factory=list[list[Point]])

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

    def add(self, place: Place, one: _Call) -> None:
        """Take a call."""
        self.calls += 1
        compared = one.call.compared
        if one.call.basis == "request":
            self.whole.append(one.call.whole.point)
        if compared is None:
            self.unknown += bool(one.call.unknown)
            return
        self.deviations.append(compared.deviation)
        self.within += compared.is_within
        worst = None if self.worst is None else self.worst.call.compared
        if worst is None or abs(compared.deviation) > abs(worst.deviation):
            self.worst = Worst(place, one.conversation, one.call)


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
    first_unusable: tuple[Place, _Unusable] | None = None
    failures: int = 0

    @property
    def calls(self) -> int:
        """Calls with a bill."""
        return sum(one.calls for one in self.models.values())

    def add(self, found: Found) -> None:
        """Take what came of one recording."""
        self.recordings += 1
        self.conversations += found.conversations
        self.unusable += len(found.unusable)
        if found.unusable and self.first_unusable is None:
            self.first_unusable = (found.place, found.unusable[0])
        if found.error is not None:
            self.failures += 1
        elif not found.calls and not found.unusable:
            self.without += 1
            self.first_without = self.first_without or found.place
        series = dict[tuple[str, str], list[Point]]()
        for one in found.calls:
            call = one.call
            tally = self.models.setdefault(call.model, ModelTally(call.counter))
            tally.add(found.place, one)
            if one.unrecorded_tokens is not None:
                key = (one.conversation, call.model)
                if key not in series:
                    tally.unrecorded.append(one.unrecorded_tokens)
                series.setdefault(key, []).append(call.whole.point)
        for (_, model), points in series.items():
            self.models[model].series.append(points)


# -- what is said of it


def _call_row(place: Place, one: _Call) -> dict[str, Any]:
    """Say one call for programs; a growth is told beside the whole."""
    call, compared = one.call, one.call.compared
    told: dict[str, Any] = {
        **place.data,
        "conversation": one.conversation,
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
        told |= {
            "billed_growth_tokens": compared.billed_tokens,
            "counted_growth_tokens": compared.counted_tokens,
        }
    if one.unrecorded_tokens is not None:
        told["unrecorded_tokens"] = one.unrecorded_tokens
    return told


def _rows(found: Found) -> Iterator[dict[str, Any]]:
    """Say for programs what came of a recording: a row a call, and an error for what has no bill."""
    place = found.place.data
    for one in found.calls:
        yield _call_row(found.place, one)
    for one in found.unusable:
        told = {"type": "UsageError", "message": one.why}
        yield {**place, "conversation": one.conversation, "call": one.number, "error": told}
    if found.error is not None:
        yield {**place, "error": dict(zip(("type", "message"), found.error, strict=True))}
    elif not found.calls and not found.unusable:
        yield {**place, "error": {"type": "UsageError", "message": _NO_BILL}}


def _summary(tally: BillsTally, files: int) -> dict[str, Any]:
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
    worst = tally.worst
    told: dict[str, Any] = {"model": name, "counter": tally.counter, "calls": tally.calls}
    told |= {
        "judged_calls": tally.judged,
        "unknown_calls": tally.unknown,
        "within_margin": tally.within,
        "median_deviation": _rounded(tally.median_deviation),
        "bias": _rounded(tally.bias),
        "worst": None if worst is None else _call_row(worst.place, _Call(worst.conversation, worst.call, None)),
        "unrecorded_tokens": round(median(tally.unrecorded)) if tally.unrecorded else None,
    }
    return told


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def _by_calls(tally: BillsTally) -> list[tuple[str, ModelTally]]:
    return sorted(tally.models.items(), key=lambda one: -one[1].calls)


def _percent(number: float | None) -> str:
    return "-" if number is None else f"{number:.1%}".replace("%", " %")


def _signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+.1%}".replace("%", " %")


_HEADS = ("model", "calls", "judged", "median", "bias", "within", "worst", "billed", "counted", "margin", "where")


def _as_text(tally: BillsTally, files: int) -> bytes:
    """Give a table by model, with the worst call of each and its place."""
    listed = _by_calls(tally)
    rows = [_HEADS, *(_cells(name, one) for name, one in listed)]
    count = f"{plural(tally.calls, 'call')} in {plural(tally.conversations, 'conversation')}"
    lines = [f"{count} of {plural(files, 'file')}: counts beside their bills", ""]
    lines += (line.rstrip() for line in align(rows, right=range(1, len(_HEADS) - 1)))
    notes = [note for name, one in listed for note in _notes(plain(name), one)]
    return encode("".join(f"{line}\n" for line in (*lines, *([""] if notes else []), *notes)))


def _cells(name: str, tally: ModelTally) -> list[str]:
    cells = [plain(name), f"{tally.calls:,}", f"{tally.judged:,}", _percent(tally.median_deviation)]
    cells += [_signed(tally.bias), f"{tally.within:,}"]
    worst = tally.worst
    if worst is None or worst.call.compared is None:
        return [*cells, *("-" for _ in _HEADS[len(cells) :])]
    compared = worst.call.compared
    margin = "-" if compared.margin_tokens is None else f"{compared.margin_tokens:,}"
    where = [worst.place.label(worst.place.source)]
    where += [f"conversation {worst.conversation}"] if worst.conversation else []
    where += [f"call {worst.call.number:,}"] if worst.call.number > 1 or worst.conversation else []
    cells += [_signed(compared.deviation), f"{compared.billed_tokens:,}", f"{compared.counted_tokens:,}", margin]
    return [*cells, plain(", ".join(where))]


def _notes(name: str, tally: ModelTally) -> Iterator[str]:
    """Say of a model what is in no recording, and what cannot be judged."""
    if tally.unrecorded:
        number = len(tally.unrecorded)
        of = f", the median of {number:,} conversations" if number > 1 else ""
        yield (
            f"{name}: constant part not in the recording: about {round(median(tally.unrecorded)):,} tokens{of};"
            " judged is what calls have more than the first"
        )
    if tally.unknown:
        yield f"{name}: {plural(tally.unknown, 'call')} not judged: the request names what only the provider knows"
    short = tally.calls - tally.judged - tally.unknown - len(tally.unrecorded)
    if short > 0:
        yield (
            f"{name}: {plural(short, 'call')} not judged: system text and tools are not in the recording, and"
            " the conversation is too short to tell them apart"
        )


# -- the command


bills_options = [
    click.option(
        "--learn",
        "learned",
        metavar="FILE",
        type=click.Path(),
        help="With --bills: write what the bills teach, for --calibration.",
    ),
    click.option(
        "--bills",
        is_flag=True,
        help="Count what each recorded call sent beside what it was billed, and sum up by model.",
    ),
]


def with_bills(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that counts conversations count calls beside their bills, too."""

    @functools.wraps(command)
    def run(bills: bool, learned: str | None, **given: Any) -> None:
        if bills:
            _count_bills(learned, **given)
        elif learned is not None:
            raise Refused("--learn FILE goes with --bills")
        else:
            command(**given)

    for option in bills_options:
        run = option(run)
    return run


@usage
def _count_bills(
    learned: str | None, files: Sequence[str], kind: InputKind, output: str, jobs: int, **given: Any
) -> None:
    if given["full"]:
        raise Refused("--each lists messages, and --bills calls: give one")
    if learned is not None and given["calibration"] is not None:
        raise Refused("--learn learns from counts as they are: leave out --calibration")
    given = with_sources(given)
    job = Job(given)
    if learned is not None:
        _write(learned, None)  # what cannot be written is refused at once
    listed = files_of(files)
    progress, tally = Progress(len(listed.paths), noun="recording", into_files=output == "text"), BillsTally()
    work = recordings(listed, kind, progress)
    results: Iterator[Found] = map(job.do, work)
    if jobs > 1:
        from trimtab.cli.jobs import share_out  # not above: one process needs no others

        results = share_out(jobs, make, given, work=work, size=lambda one: sum(map(len, one.lines)))
    for found in results:
        if found.refused:
            raise Refused(found.refused)
        tally.add(found)
        _tell(found, progress)
        if output == "json" and not _put(b"".join(json_text(row, indent=False) for row in _rows(found))):
            break
        progress.step(tally.recordings)
    progress.clear()
    _end(tally, len(listed.paths), learned, output)


def _tell(found: Found, progress: Progress) -> None:
    if found.error is not None:
        progress.clear()
        where = found.place.label(found.place.source)
        click.echo(f"trimtab: {plain(where)}: {plain(found.error[1])}", err=True)


def _put(written: bytes) -> bool:
    """Write; False where nobody reads on."""
    out = sys.stdout.buffer
    try:
        out.write(written)
        out.flush()
    except BrokenPipeError:
        leave_pipe()
        return False
    return True


def _end(tally: BillsTally, files: int, learned: str | None, output: str) -> None:
    """Write the summary, what was learned, and why some of it was not counted; exit 0 or 1."""
    if output == "json":
        _put(json_text(_summary(tally, files), indent=False))
    elif tally.calls:
        _put(_as_text(tally, files))
    if tally.first_without is not None:
        where = plain(tally.first_without.label(tally.first_without.source))
        count = plural(tally.without, "recording")
        click.echo(f"trimtab: {count} without a bill, the first in {where}: {_NO_BILL}", err=True)
    if tally.first_unusable is not None:
        place, one = tally.first_unusable
        where = plain(f"{place.label(place.source)}, call {one.number:,}")
        bills = plural(tally.unusable, "bill")
        click.echo(f"trimtab: {bills} set aside, the first in {where}: {plain(one.why)}", err=True)
    is_learned = learned is None or _learn(tally, learned)
    sys.exit(0 if tally.calls and not tally.failures and is_learned else 1)


def _learn(tally: BillsTally, path: str) -> bool:
    """Write what the bills of each model teach; False where none of them teach anything."""
    found = dict[str, Calibration]()
    few = list[str]()
    for name, one in tally.models.items():
        try:
            made = found[name] = learn(one.whole, one.series, counter=one.counter)
        except ConfigurationError:
            few.append(name)
            continue
        apart = f" ({made.calls_apart:,} set aside)" if made.calls_apart else ""
        click.echo(
            f"trimtab: --learn: {plain(name)}: factor {made.factor:.3f}, constant {made.constant_tokens:,}"
            f" tokens, from {plural(made.calls, 'call')}{apart}; median deviation"
            f" {_percent(made.deviation_before)} before, {_percent(made.deviation_after)} after",
            err=True,
        )
    if few:
        click.echo(
            f"trimtab: --learn: fewer than {LEAST_CALLS} calls teach nothing: {plain(', '.join(few))}", err=True
        )
    if found:
        _write(path, json.dumps(to_data(found), indent=1) + "\n")
    return bool(found)


def _write(path: str, text: str | None) -> None:
    """Write a file; without a text only find out whether it can be."""
    file = Path(path)
    is_there = file.exists()
    try:
        with file.open("a" if text is None else "w", encoding="utf-8") as opened:
            opened.write(text or "")
        if text is None and not is_there:
            file.unlink()
    except OSError as error:
        raise Refused(f"--learn {path}: {error.strerror or error}") from error
