"""Counts that go on from a bill, against the next bill: the usage baseline on recorded conversations.

Two sources. pi_coding_sessions: one long session of a coding agent, every call of which was billed; what is
judged is the *new* part of each call. golden_usage: requests of one test that go on from an earlier one;
what is judged is the whole count after one report. Rules were made on one half (by hash of the call, or of
the request, as in `tests.billed`); rows are of the other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from trimtab import EstimateCounter, counter_for
from trimtab.counting import CountRequest, UsageBaseline
from trimtab.errors import UnknownNameError
from trimtab.formats import get_format, mapping_of

Message = dict[str, Any]

PI = "pi_coding_sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that was predicted, in tokens."""

    name: str
    judged: bool
    """Of the half no rule was made on."""
    billed: int
    counted: int
    margin: int
    new: int
    """What was billed beyond the call before."""
    counted_new: int

    @property
    def error(self) -> float:
        """How far off the whole count was, as a part of the bill."""
        return abs(self.counted - self.billed) / self.billed

    @property
    def new_error(self) -> float:
        """How far off the new part was, as a part of it."""
        return abs(self.counted_new - self.new) / max(1, abs(self.new))

    @property
    def inside(self) -> bool:
        """Whether the bill lies within the margin."""
        return abs(self.counted - self.billed) <= self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table; fractions are parts of the bill, or of its new part."""

    name: str
    calls: int
    median_error: float
    p95_error: float
    inside: float | None
    """Share of calls whose bill lies within the margin; None for what has no margin."""
    median_margin: float | None
    """As a part of the bill."""


def judged_half(name: str, /) -> bool:
    """Tell whether a call or conversation is of the half that is judged."""
    return bool(sha256(name.encode()).digest()[0] % 2)


# -- a session of a coding agent


def pi_calls(data: Path, *, counter: Callable[[], Any] = EstimateCounter, answers: bool = True) -> list[Call]:
    """Predict every call of the session from the bills before it.

    Args:
        data: The folder of the recorded conversations.
        counter: Makes the counter that is calibrated.
        answers: Whether the reported output tokens are used as the size of the answer.
    """
    messages, bills = _pi(data)
    baseline = UsageBaseline(counter())
    calls: list[Call] = []
    start, before = 0, None
    for bill in bills:
        at = bill["i"]
        if "event" in bill:
            if bill["event"] == "compaction":
                start, before = at, None  # what stands in for the older messages is not in the data
            continue
        billed = bill["input"] + bill["cacheRead"] + bill["cacheWrite"]
        request, answer = messages[start:at], messages[at]
        if before is not None:
            counted = baseline.count(request)
            calls.append(
                Call(
                    name=f"{PI}#{at}",
                    judged=judged_half(f"{PI}#{at}"),
                    billed=billed,
                    counted=counted,
                    margin=baseline.margin_tokens(counted) or 0,
                    new=billed - before,
                    counted_new=counted - before,
                )
            )
        usage = {"input_tokens": billed, "output_tokens": bill["output"]}
        baseline.record(request, usage, answer=answer if answers else None)
        before = billed
    return calls


def _pi(data: Path) -> tuple[list[Message], list[dict[str, Any]]]:
    conversation = json.loads((data / f"{PI}.jsonl").read_text("utf-8").splitlines()[0])
    usage = json.loads((data / f"{PI}.usage.jsonl").read_text("utf-8").splitlines()[0])
    return conversation["messages"], usage["usage"]


def pi_rows(data: Path, *, counter: Callable[[], Any] = EstimateCounter) -> list[Row]:
    """Say how far off the new part of the judged calls was, beside knowing nothing of it."""
    known = [call for call in pi_calls(data, counter=counter) if call.judged]
    guessed = [call for call in pi_calls(data, counter=counter, answers=False) if call.judged]
    null = [abs(call.new) / max(1, abs(call.new)) for call in known]
    return [
        _row("new part, calibrated", known, [call.new_error for call in known]),
        _row("  without the answer's reported size", guessed, [call.new_error for call in guessed]),
        Row(
            name="  null model (last usage + nothing)",
            calls=len(null),
            median_error=median(null),
            p95_error=_p95(null),
            inside=None,
            median_margin=None,
        ),
    ]


# -- requests that go on


def golden_calls(data: Path) -> list[tuple[str, Call]]:
    """Predict each request that goes on from an earlier one of its test, after that one report.

    Returns:
        (provider, call); the provider ends in ", apart" where the bill includes what the request lacks.
    """
    calls: list[tuple[str, Call]] = []
    for earlier, later in _pairs(data):
        one = later.one
        form = get_format(one.format)
        try:
            counter = counter_for(one.model).with_format(form)
        except UnknownNameError:
            continue
        baseline = UsageBaseline(counter, format=form)
        body = form.read_request(one.request)
        following = mapping_of(body.messages[len(earlier.messages)])
        answer = following if form.kind(following) == "assistant" else None
        baseline.record(earlier.one.request, earlier.usage, answer=answer)
        counted = baseline.count_request(
            CountRequest(body.messages, system=body.system, tools=body.tools, extra=body.extra)
        )
        call = Call(
            name=one.name,
            judged=later.judged,
            billed=one.tokens,
            counted=counted,
            margin=baseline.margin_tokens(counted) or 0,
            new=one.tokens - earlier.one.tokens,
            counted_new=counted - earlier.one.tokens,
        )
        calls.append((one.provider if one.apart is None else f"{one.provider}, apart", call))
    return calls


def golden_rows(data: Path) -> list[Row]:
    """Say how far off whole counts were after one report, of the judged half."""
    by: dict[str, list[Call]] = defaultdict(list)
    for provider, call in golden_calls(data):
        if call.judged:
            by[provider].append(call)
    return [
        _row(f"{provider} after one report", calls, [call.error for call in calls])
        for provider, calls in sorted(by.items())
        if provider.startswith(("anthropic", "gemini", "vertex", "openai"))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """One recorded request with all that came back of its bill."""

    one: Any
    """A `tests.billed.Billed`."""
    usage: dict[str, Any]
    judged: bool

    @property
    def messages(self) -> list[Any]:
        """The messages of its body."""
        held = self.one.request[get_format(self.one.format).rules.body_key]
        return held if isinstance(held, list) else [{"role": "user", "content": held}]


def _pairs(data: Path) -> Iterator[tuple[_Recorded, _Recorded]]:
    """List (request, request that goes on from it): the same test, its messages and more of them."""
    tests: dict[tuple[str, str, str], list[tuple[int, _Recorded]]] = defaultdict(list)
    for recorded in _recorded(data):
        test, _, number = recorded.one.name.rpartition("#")
        tests[test, recorded.one.model, recorded.one.format].append((int(number), recorded))
    for found in tests.values():
        in_order = [recorded for _, recorded in sorted(found, key=lambda one: one[0])]
        for earlier, later in pairwise(in_order):
            first, second = _unmarked(earlier.messages), _unmarked(later.messages)
            if 0 < len(first) < len(second) and second[: len(first)] == first:
                yield earlier, later


def _recorded(data: Path) -> Iterator[_Recorded]:
    from tests.billed import billed  # not above: the other source needs none of it

    path = data / "golden_usage.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    usage = {(row["id"], len(row["request"]), _input_of(row)): row["usage"] for row in rows}
    for half in ("made", "held out"):
        for one in billed(path, half):
            key = (one.name, len(one.request), one.tokens)
            yield _Recorded(one=one, usage=usage[key], judged=half == "held out")


def _input_of(row: dict[str, Any]) -> int:
    baseline = UsageBaseline(EstimateCounter())
    baseline.record([], row["usage"])
    return int(baseline.to_dict()["total_tokens"])


def _unmarked(value: Any) -> Any:
    """Leave out marks for the prompt cache, which move from request to request."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


# -- rows


def _row(name: str, calls: Sequence[Call], errors: Sequence[float]) -> Row:
    return Row(
        name=name,
        calls=len(calls),
        median_error=median(errors),
        p95_error=_p95(errors),
        inside=sum(call.inside for call in calls) / len(calls),
        median_margin=median(call.margin / call.billed for call in calls),
    )


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def table(rows: Sequence[Row], /) -> str:
    """Write rows as text."""
    lines = [f"{'':44} {'n':>5} {'median':>8} {'p95':>8} {'inside':>8} {'margin':>8}"]
    lines += [
        f"{row.name:44} {row.calls:5} {row.median_error:8.1%} {row.p95_error:8.1%}"
        f" {'-' if row.inside is None else f'{row.inside:.1%}':>8}"
        f" {'-' if row.median_margin is None else f'{row.median_margin:.1%}':>8}"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    import os
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    folder = Path(os.environ.get("TRIMTAB_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    print(table([*pi_rows(folder), *golden_rows(folder)]))
