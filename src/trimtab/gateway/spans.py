"""Requests of a gateway for OpenTelemetry: a span and numbers each, beside what the library tells of its fit.

A fit writes its own numbers on the span that is current, so one that is made within a request stands on the
span of that.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.gateway.record import MOST_CHARS

package_of("otel", package="opentelemetry.trace", needed_by="trimtab serve --otel")

from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from trimtab.integrations.otel import GEN_AI_MODEL, instrument

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from trimtab._shared.observers import Observer
    from trimtab.gateway.headers import Headers
    from trimtab.gateway.record import Record

ID = "trimtab.gateway.request_id"
API = "trimtab.gateway.api"
FORM = "trimtab.gateway.form"
UPSTREAM = "trimtab.gateway.upstream"
CONVERSATION = "trimtab.gateway.conversation"
END = "trimtab.gateway.end"
BUDGET = "trimtab.gateway.budget"
COUNTS = "trimtab.gateway.counts"
UNPRICED = "trimtab.gateway.unpriced"
SENT_BYTES = "trimtab.gateway.sent_bytes"
REASONS = "trimtab.gateway.reasons"
DOLLARS = "trimtab.gateway.dollars"
FIT_SECONDS = "trimtab.gateway.fit_duration"
FIRST_SECONDS = "trimtab.gateway.first_byte_duration"
SECONDS = "trimtab.gateway.duration"
METHOD, STATUS = "http.request.method", "http.response.status_code"
CAME_BYTES, ANSWER_BYTES = "http.request.body.size", "http.response.body.size"
BILLED, READ, SAID = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.output_tokens",
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
"""Those of the conventions; others are named by clients, and called "_OTHER"."""
_SECOND_BOUNDS = [0.005, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
"""From a request that is refused here to a long answer."""


class Spans:
    """Sends each request to OpenTelemetry, by the providers of the process.

    Raises:
        ConfigurationError: There are none, and all that is sent would be lost.
    """

    def __init__(self) -> None:
        _check_set_up()
        meter = metrics.get_meter("trimtab", version("trimtab"))
        self._tracer = trace.get_tracer("trimtab", version("trimtab"))
        self._seconds = meter.create_histogram(
            SECONDS,
            unit="s",
            description="Time of a request, to the end of its answer",
            explicit_bucket_boundaries_advisory=_SECOND_BOUNDS,
        )
        self._dollars = meter.create_counter(
            DOLLARS, unit="{dollar}", description="What answers say was billed, by list prices"
        )
        self._observer: Observer | None = None

    def end(self) -> None:
        """Tell of no more fits."""
        if self._observer is not None:
            self._observer.remove()
            self._observer = None

    @contextmanager
    def request(self, headers: Headers, record: Record) -> Generator[None]:
        """Make the span of a request, below the one that its client names in the headers.

        Args:
            headers: With names in small letters; the upstream gets them as they are.
            record: What the log will tell of it.
        """
        if self._observer is None:  # not when a server starts: not all of them say so (lifespan)
            self._observer = instrument()
        told = propagate.get_global_textmap().fields  # a propagator needs no key of a client
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        parent = propagate.extract({name: carrier[name] for name in told & carrier.keys()})
        method = record.method if record.method in _METHODS else "HTTP"
        with self._tracer.start_as_current_span(
            method, parent, SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            finally:
                end = record.end_word
                shared = _shared(record, end)
                self._seconds.record(record.since() / 1000, shared)
                if record.dollars is not None:
                    self._dollars.add(record.dollars, shared)
                if span.is_recording():
                    span.update_name(f"{method} {record.form}".strip())
                    span.set_attributes({**shared, **_own(record)})
                    if record.status >= 500 or end in ("failed", "upstream_failed"):
                        span.set_status(Status(StatusCode.ERROR, end))


def _shared(record: Record, end: str) -> dict[str, AttributeValue]:
    """List what metrics have, too: words of ours and of the operator, and no name that a client chooses."""
    return {
        METHOD: record.method if record.method in _METHODS else "_OTHER",
        STATUS: record.status,
        API: record.api,
        FORM: record.form,
        UPSTREAM: record.upstream,
        END: end,
    }


def _own(record: Record) -> dict[str, AttributeValue]:
    """List what a span alone has."""
    parts = record.parts
    known: dict[str, AttributeValue | None] = {
        ID: record.id,
        CONVERSATION: record.conversation or None,
        BUDGET: record.budget or None,
        COUNTS: record.counts or None,
        UNPRICED: record.is_unpriced or None,
        CAME_BYTES: record.body_bytes,
        SENT_BYTES: record.sent_bytes,
        ANSWER_BYTES: record.answer_bytes,
        GEN_AI_MODEL: None if record.model is None else record.model[:MOST_CHARS],
        BILLED: record.billed,
        READ: None if parts is None else parts.read_tokens,
        SAID: None if parts is None else parts.output_tokens,
        DOLLARS: record.dollars,
        FIT_SECONDS: None if record.fit_ms is None else record.fit_ms / 1000,
        FIRST_SECONDS: None if record.first_ms is None else record.first_ms / 1000,
    }
    known |= {f"trimtab.gateway.{word}": value for word, value in record.told.items()}
    known |= {f"{REASONS}.{reason}": count for reason, count in record.reasons.items()}
    return {name: value for name, value in known.items() if value is not None}


def _check_set_up() -> None:
    """Refuse to send to nobody.

    Raises:
        ConfigurationError: Nobody made a provider for this process: those of the API package send nothing.
    """
    made = (type(one).__module__ for one in (trace.get_tracer_provider(), metrics.get_meter_provider()))
    if all(module.startswith(("opentelemetry.trace", "opentelemetry.metrics")) for module in made):
        raise ConfigurationError(
            "otel needs an OpenTelemetry that is set up in this process before, with an exporter: write"
            " opentelemetry-instrument trimtab serve --otel …, which is in the package opentelemetry-distro;"
            " in Python, set a provider of spans or metrics first",
            argument="otel",
        )
