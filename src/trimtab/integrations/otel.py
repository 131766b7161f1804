"""OpenTelemetry: the numbers of each fit and each session, on the current span and as metrics.

    from trimtab.integrations.otel import instrument

    instrument()

Nothing is counted for it: if a fit did not need to know the size of the request before, that number is not
sent. No text of a conversation is sent, and no id of a message; the id of a session is on spans only.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.telemetry import FitEvent, Observer, SessionEvent, StoreEvent, TelemetryEvent, observe

package_of("otel", package="opentelemetry.trace", needed_by="trimtab.integrations.otel")

from opentelemetry import metrics, trace

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.util.types import AttributeValue

    from trimtab.report import Report

__all__ = [
    "EVICTION_EVENT",
    "GEN_AI_COMPACTED",
    "GEN_AI_MODEL",
    "METRICS",
    "SEMANTIC_CONVENTIONS",
    "SESSION_EVENT",
    "SPAN_ATTRIBUTES",
    "instrument",
]

SEMANTIC_CONVENTIONS = (
    "https://github.com/open-telemetry/semantic-conventions-genai",
    "fee465db333bdd6a7d2faa320edab5cf3101a4f4",
)
"""The source of the `gen_ai.` names and their revision (schema gen-ai-dev/1.42.0-dev; seen on 2026-11-24).
All of them have the stability "Development", and may change.
"""

GEN_AI_COMPACTED = "gen_ai.conversation.compacted"
"""Set to true on a span whose conversation was compacted, and never to false, as the conventions require."""

GEN_AI_MODEL = "gen_ai.request.model"
"""The model of a request; a fit has it on metrics only, because others set it on their spans."""

SOURCE = "trimtab.fit.source"
FITS = "trimtab.fit.fits"
BEFORE = "trimtab.fit.tokens_before"
AFTER = "trimtab.fit.tokens_after"
BUDGET = "trimtab.fit.budget_tokens"
KEPT = "trimtab.fit.kept_messages"
CHANGED = "trimtab.fit.changed_messages"
EVICTED = "trimtab.fit.evicted_messages"
INSERTED = "trimtab.fit.inserted_messages"
FORMAT = "trimtab.fit.format"
COUNTER = "trimtab.fit.counter"
EXACT = "trimtab.fit.exact"
SECONDS = "trimtab.fit.duration"
COUNT_SECONDS = "trimtab.fit.count_duration"
REASON = "trimtab.reason"
FATE = "trimtab.fate"
SESSION = "trimtab.session.id"
KIND = "trimtab.session.kind"
ANSWER = "trimtab.session.answer"
VERSION = "trimtab.session.version"
MESSAGES = "trimtab.session.messages"
FACTS = "trimtab.session.facts"
TOKENS = "trimtab.session.tokens"
SUMMARY_SECONDS = "trimtab.session.summary_duration"
SESSION_EVENTS = "trimtab.session.events"
OPENED = "trimtab.session.opened"
ADDED = "trimtab.session.added_messages"
STORE_SECONDS = "trimtab.store.duration"
STORE_RETRIES = "trimtab.store.retries"
STORE = "trimtab.store.type"
REQUEST = "trimtab.store.request"
OUTCOME = "trimtab.store.outcome"

SPAN_ATTRIBUTES = (
    *(SOURCE, FITS, BEFORE, AFTER, BUDGET, KEPT, CHANGED, EVICTED, INSERTED),
    *(FORMAT, COUNTER, EXACT, SECONDS, COUNT_SECONDS, SESSION),
)
"""What a fit sets on the current span in addition to `gen_ai.conversation.compacted`; durations are in
seconds."""

EVICTION_EVENT = "trimtab.fit.eviction"
"""Span event for each fit that evicted messages: the numbers of the fit, and counts by reason."""

SESSION_EVENT = "trimtab.session.event"
"""Span event for each decision of a session."""

METRICS: dict[str, tuple[str, str]] = {
    BEFORE: ("{token}", "Request as it came in, where the fit counted it"),
    AFTER: ("{token}", "Request as it goes out"),
    SECONDS: ("s", "Time of a fit"),
    COUNT_SECONDS: ("s", "Part of the time of a fit that was spent in counting"),
    EVICTED: ("{message}", "Messages that were evicted or changed, by trimtab.fate and trimtab.reason"),
    SESSION_EVENTS: ("{event}", "Decisions of sessions, by trimtab.session.kind and trimtab.session.answer"),
    SUMMARY_SECONDS: ("s", "Time a summary of a session took"),
    OPENED: ("{session}", "Objects of sessions that read their log for the first time"),
    ADDED: ("{message}", "Messages that sessions wrote to their stores"),
    STORE_SECONDS: ("s", "Time of a request to a store, by trimtab.store.request and trimtab.store.outcome"),
    STORE_RETRIES: ("{attempt}", "Operations begun anew after a conflict, or while a store was unavailable"),
}
"""Each metric with its unit and what it measures; those that add up are counters, the others histograms."""

_COUNTERS = (EVICTED, SESSION_EVENTS, OPENED, ADDED, STORE_RETRIES)
_TOKEN_BOUNDS = [2**power for power in range(7, 22)]
_SECOND_BOUNDS = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]
"""A fit takes a fraction of a millisecond or, with a model that is asked, many seconds."""


def instrument(*, meter_provider: MeterProvider | None = None) -> Observer:
    """Send data of every fit and every session in the process to OpenTelemetry.

    The data is set on the current span if that is recorded; no span is created. If there are several fits in
    one span, the last one sets its attributes. Metrics have the source, the wire form, whether it fits, and
    the model that was named, but never the id of a session.

    Args:
        meter_provider: Provider of the metrics; None: that of the process.

    Returns:
        An `Observer`: `.remove()` or the end of a `with` block stops the calls. If this is called twice,
        everything is sent twice.

    Raises:
        ConfigurationError: The argument is not a provider of meters.
    """
    if meter_provider is not None and not isinstance(meter_provider, metrics.MeterProvider):
        raise ConfigurationError(f"meter_provider must be a MeterProvider, not {meter_provider!r:.80}")
    provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
    return observe(_Exporter(provider), stores=True)


class _Exporter:
    """Writes events to the current span and to metrics."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("trimtab", version("trimtab"))
        self._counters = {
            name: meter.create_counter(name, unit=unit, description=words)
            for name, (unit, words) in METRICS.items()
            if name in _COUNTERS
        }
        self._histograms = {
            name: meter.create_histogram(
                name,
                unit=unit,
                description=words,
                explicit_bucket_boundaries_advisory=_SECOND_BOUNDS if unit == "s" else _TOKEN_BOUNDS,
            )
            for name, (unit, words) in METRICS.items()
            if name not in _COUNTERS
        }

    def __call__(self, event: TelemetryEvent | StoreEvent) -> None:
        if isinstance(event, FitEvent):
            self._write_fit(event)
        elif isinstance(event, StoreEvent):
            self._write_request(event)
        else:
            self._write_decision(event)

    def _write_fit(self, event: FitEvent) -> None:
        report = event.fitted.report
        shared: dict[str, AttributeValue] = {SOURCE: event.source, FITS: event.fits, FORMAT: report.format}
        if report.model is not None:
            shared[GEN_AI_MODEL] = report.model
        left = _reasons(report)
        for (fate, reason), count in left.items():
            self._counters[EVICTED].add(count, {**shared, FATE: fate, REASON: reason})
        self._histograms[AFTER].record(report.tokens_after, shared)
        if report.tokens_before is not None:
            self._histograms[BEFORE].record(report.tokens_before, shared)
        self._histograms[SECONDS].record(event.seconds, shared)
        self._histograms[COUNT_SECONDS].record(event.count_seconds, shared)
        span = trace.get_current_span()
        if span.is_recording():
            attributes = _attributes(event, report)
            span.set_attributes(attributes)
            if event.compacted:
                span.set_attribute(GEN_AI_COMPACTED, True)
            if report.evicted_message_count:
                gone = {
                    f"{REASON}.{reason}": count for (fate, reason), count in left.items() if fate == "evicted"
                }
                span.add_event(EVICTION_EVENT, {**attributes, **gone})

    def _write_decision(self, event: SessionEvent) -> None:
        kind: dict[str, AttributeValue] = {KIND: event.kind}
        if event.of is not None:
            kind[ANSWER] = event.of
        self._counters[SESSION_EVENTS].add(1, kind)
        if event.kind == "summary" and event.seconds is not None:
            self._histograms[SUMMARY_SECONDS].record(event.seconds)
        span = trace.get_current_span()
        if span.is_recording():
            known = {VERSION: event.version, TOKENS: event.tokens, SUMMARY_SECONDS: event.seconds}
            counts = {MESSAGES: event.messages, FACTS: event.facts}
            span.add_event(
                SESSION_EVENT,
                {
                    **kind,
                    SESSION: event.session,
                    **{name: value for name, value in known.items() if value is not None},
                    **{name: value for name, value in counts.items() if value},
                },
            )

    def _write_request(self, event: StoreEvent) -> None:
        store: dict[str, AttributeValue] = {STORE: event.store}
        asked: dict[str, AttributeValue] = {**store, REQUEST: event.request, OUTCOME: event.outcome}
        self._histograms[STORE_SECONDS].record(event.seconds, asked)
        if event.again:
            self._counters[STORE_RETRIES].add(1, store)
        if event.messages:
            self._counters[ADDED].add(event.messages, store)
        if event.request == "open" and event.outcome == "done":
            self._counters[OPENED].add(1, store)


def _reasons(report: Report) -> Counter[tuple[str, str]]:
    """Count what was evicted and what was changed, by reason; rows are built where there is any."""
    if not report.evicted_message_count and not report.changed_message_count:
        return Counter()
    return Counter((row.fate, row.reason) for row in report.messages if row.reason is not None)


def _attributes(event: FitEvent, report: Report) -> dict[str, AttributeValue]:
    made: dict[str, AttributeValue] = {
        SOURCE: event.source,
        FITS: event.fits,
        AFTER: report.tokens_after,
        BUDGET: report.input_tokens,
        KEPT: report.kept_message_count,
        CHANGED: report.changed_message_count,
        EVICTED: report.evicted_message_count,
        INSERTED: len(report.inserted),
        FORMAT: report.format,
        COUNTER: report.counter,
        EXACT: report.exact,
        SECONDS: event.seconds,
        COUNT_SECONDS: event.count_seconds,
    }
    if report.tokens_before is not None:
        made[BEFORE] = report.tokens_before
    if event.session is not None:
        made[SESSION] = event.session
    return made
