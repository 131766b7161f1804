"""Numbers of a gateway in the text format of Prometheus (0.0.4), which OpenMetrics readers take as well.

Labels are words of ours, statuses, and names that whoever runs the gateway gave to servers: a client chooses
none of them, so it cannot add series.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.gateway.record import Record

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]

FIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of buckets: a fit takes 1 to 3 ms at 100 kB, and 0.8 s where it reads a tokenizer."""
FIRST_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of buckets: the first byte of a model."""


@dataclass(slots=True)
class _Histogram:
    """How often something took how long, by labels."""

    bounds: Sequence[float]
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def add(self, labels: Labels, seconds: float) -> None:
        """Take in one."""
        counts = self.counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, seconds)] += 1
        self.sums[labels] = self.sums.get(labels, 0.0) + seconds


class Metrics:
    """Adds up requests by labels."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._tokens: Mapping[str, Counter[Labels]] = {
            name: Counter() for name in ("before", "after", "billed", "cache_read", "output")
        }
        self._dollars: dict[Labels, float] = {}
        self._unpriced: Counter[Labels] = Counter()
        self._unlearned: Counter[Labels] = Counter()
        self._evictions: Counter[Labels] = Counter()
        self._fit = _Histogram(FIT_SECONDS)
        self._first = _Histogram(FIRST_SECONDS)

    def add(self, record: Record, /) -> None:
        """Take in a request that is at its end."""
        status = str(record.status) if 100 <= record.status < 600 else "other"
        end = record.end_word
        self._requests[record.api, record.form, record.upstream, status, end] += 1
        place = record.form, record.upstream
        self._unlearned[place] += int(record.told.get("learned") == "no")
        if not record.counts:
            for name in ("before", "after"):
                tokens = record.told.get(name)
                if isinstance(tokens, int):
                    self._tokens[name][place] += tokens
            self._tokens["billed"][place] += record.billed or 0
            if record.parts is not None:
                self._tokens["cache_read"][place] += record.parts.read_tokens
                self._tokens["output"][place] += record.parts.output_tokens
            if record.dollars is not None:
                self._dollars[place] = self._dollars.get(place, 0.0) + record.dollars
            self._unpriced[place] += int(record.is_unpriced)
            for reason, count in record.reasons.items():
                self._evictions[*place, reason] += count
        if record.fit_ms is not None:
            self._fit.add((record.form,), record.fit_ms / 1000)
        if record.first_ms is not None:
            self._first.add((record.upstream,), record.first_ms / 1000)

    def text(self, in_progress: int) -> bytes:
        """Write all of them.

        Args:
            in_progress: Requests that are not at their end.
        """
        place = ("form", "upstream")
        lines = [
            *_counter(
                "requests",
                "Requests, by the status of the answer and how they ended.",
                ("api", *place, "status", "end"),
                self._requests,
            ),
            *_counter(
                "tokens_before",
                "Tokens of requests as they came, without those that only count.",
                place,
                self._tokens["before"],
            ),
            *_counter("tokens_after", "Tokens of requests as they were sent.", place, self._tokens["after"]),
            *_counter(
                "tokens_billed", "Input tokens that answers say were billed.", place, self._tokens["billed"]
            ),
            *_counter(
                "tokens_cache_read",
                "Of these, tokens that a prompt cache served.",
                place,
                self._tokens["cache_read"],
            ),
            *_counter("tokens_output", "Tokens of answers that were billed.", place, self._tokens["output"]),
            *_counter(
                "dollars",
                "What answers say was billed, by the list prices of the models.",
                place,
                {labels: round(dollars, 9) for labels, dollars in self._dollars.items()},
            ),
            *_counter(
                "requests_unpriced",
                "Answered requests whose bill or price is not known.",
                place,
                self._unpriced,
            ),
            *_counter(
                "requests_unlearned",
                "Requests of which nothing was learned, as what processes share could not be had.",
                place,
                self._unlearned,
            ),
            *_counter(
                "evictions",
                "Messages that were evicted or changed, by reason, anew in each request.",
                (*place, "reason"),
                self._evictions,
            ),
            *_histogram("fit_seconds", "Time in which a request was read and fitted.", ("form",), self._fit),
            *_histogram(
                "first_byte_seconds", "Time until the head of an answer.", ("upstream",), self._first
            ),
            *_head("requests_in_progress", "Requests in progress.", "gauge"),
            f"trimtab_requests_in_progress {in_progress}",
        ]
        return "\n".join((*lines, "")).encode()


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP trimtab_{name} {help}"
    yield f"# TYPE trimtab_{name} {kind}"


def _counter(name: str, help: str, names: Sequence[str], counts: Mapping[Labels, float]) -> Iterator[str]:
    yield from _head(f"{name}_total", help, "counter")
    for labels, count in sorted(counts.items()):
        yield f"trimtab_{name}_total{_labels(names, labels)} {count}"


def _histogram(name: str, help: str, names: Sequence[str], histogram: _Histogram) -> Iterator[str]:
    yield from _head(name, help, "histogram")
    bounds = [*map(str, histogram.bounds), "+Inf"]
    for labels, counts in sorted(histogram.counts.items()):
        total = 0
        for bound, count in zip(bounds, counts, strict=True):
            total += count
            yield f"trimtab_{name}_bucket{_labels((*names, 'le'), (*labels, bound))} {total}"
        yield f"trimtab_{name}_sum{_labels(names, labels)} {histogram.sums[labels]:.6f}"
        yield f"trimtab_{name}_count{_labels(names, labels)} {total}"


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def _labels(names: Sequence[str], values: Labels) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"
