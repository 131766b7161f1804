"""Counts that go on from a bill, against the next bill: the usage baseline on recorded conversations.

Two sources. pi_coding_sessions: one long session of a coding agent, every call of which was billed; what is
judged is the *new* part of each call. golden_usage: requests of one test that go on from an earlier one;
what is judged is the whole count after one report. Rules were made on one half (by hash of the call, or of
the conversation); rows say which half they are of.
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
from trimtab.counting import UsageBaseline
from trimtab.counting._usage import usage_of
from trimtab.errors import UnknownNameError
from trimtab.formats import formats, get_format

Message = dict[str, Any]

PI = "pi_coding_sessions"
_KEYS = {"messages": "messages", "chat": "messages", "responses": "input", "generateContent": "contents"}
_FORMATS = {
    "messages": "anthropic",
    "chat": "openai_chat",
    "responses": "openai_responses",
    "generateContent": "gemini",
}
"""Wire form of each API of golden_usage."""


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


def golden_calls(data: Path, provider: str, api: str) -> list[Call]:
    """Predict each request of a provider that goes on from an earlier one, after that one report."""
    calls: list[Call] = []
    for name, earlier, later in _pairs(data, provider, api):
        counter = _counter(later["model"], _FORMATS[api])
        if counter is None:
            continue
        baseline = UsageBaseline(counter)
        request, held = later["request"], len(_messages(earlier))
        following = _messages(later)[held]
        answer = following if following.get("role") in ("assistant", "model") else None
        baseline.record(earlier["request"], earlier["usage"], answer=answer)
        body = get_format(_FORMATS[api]).read_request(request)
        counted = baseline.count_request(body.messages, body.system, body.tools, body.extra)
        before, now = usage_of(earlier["usage"]).input_tokens, usage_of(later["usage"]).input_tokens
        calls.append(
            Call(
                name=name,
                judged=judged_half(name.rpartition("#")[0]),
                billed=now,
                counted=counted,
                margin=baseline.margin_tokens(counted) or 0,
                new=now - before,
                counted_new=counted - before,
            )
        )
    return calls


def golden_rows(data: Path) -> list[Row]:
    """Say how far off whole counts were after one report, of the judged half."""
    rows = []
    for provider, api in (("anthropic", "messages"), ("google", "generateContent")):
        calls = [call for call in golden_calls(data, provider, api) if call.judged]
        if calls:
            rows.append(_row(f"{provider}, after one report", calls, [call.error for call in calls]))
    return rows


def _pairs(data: Path, provider: str, api: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """List (name, request, request that goes on from it): the same test, its messages and more of them."""
    tests: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for line in (data / "golden_usage.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if (row["provider"], row["api"]) == (provider, api):
            test, _, number = row["id"].rpartition("#")
            tests[test, row["model"]].append((int(number), row))
    for (test, _), rows in tests.items():
        for (_, earlier), (number, later) in pairwise(sorted(rows, key=lambda one: one[0])):
            first, second = _unmarked(_messages(earlier)), _unmarked(_messages(later))
            if 0 < len(first) < len(second) and second[: len(first)] == first:
                yield f"{test}#{number}", earlier, later


def _messages(row: dict[str, Any]) -> list[Message]:
    held = row["request"].get(_KEYS[row["api"]])
    return held if isinstance(held, list) else [{"role": "user", "content": held}]


def _unmarked(value: Any) -> Any:
    """Leave out marks for the prompt cache, which move from request to request."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


def _counter(model: str, format: str) -> Any:
    if format not in formats():
        return None
    try:
        return counter_for(model).with_format(format)
    except UnknownNameError:
        return EstimateCounter(format=format)


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

    folder = Path(os.environ.get("TRIMTAB_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    print(table([*pi_rows(folder), *golden_rows(folder)]))
