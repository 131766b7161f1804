"""OpenTelemetry: what its own SDK exports of fits and sessions, read back from memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import trimtab
from trimtab import BudgetExceededError, ConfigurationError, Session, fit
from trimtab.counting import FixedCounter
from trimtab.integrations import otel
from trimtab.stores import MemoryStore, Retry
from trimtab.telemetry import SessionEvent

TEN = FixedCounter(per_message=10)


def talk(count: int) -> list[dict[str, Any]]:
    """Give messages of the user that say their number."""
    return [{"role": "user", "content": f"secret {number}"} for number in range(count)]


class Exported(NamedTuple):
    """What the SDK exported, and how to make spans."""

    tracer: Any
    spans: InMemorySpanExporter
    reader: InMemoryMetricReader

    def span(self) -> ReadableSpan:
        """Return the one span."""
        (span,) = self.spans.get_finished_spans()
        return span

    def points(self) -> dict[str, list[Any]]:
        """Give the points of each metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def exported() -> Iterator[Exported]:
    """Look on through the real SDK during a test."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider(metric_readers=[reader])
    with otel.instrument(meter_provider=meters):
        yield Exported(tracers.get_tracer("test"), spans, reader)
    tracers.shutdown()
    meters.shutdown()


def total(points: list[Any], **attributes: object) -> float:
    """Sum the points of a counter, or of a histogram, that have these attributes (dots are written __)."""
    wanted = {name.replace("__", "."): value for name, value in attributes.items()}
    found = [point for point in points if wanted.items() <= dict(point.attributes).items()]
    return float(sum(point.value if hasattr(point, "value") else point.sum for point in found))


# -- fits


def test_a_fit_stands_on_the_span_it_was_made_in(exported: Exported) -> None:
    """With the numbers of its report."""
    with exported.tracer.start_as_current_span("chat"):
        report = fit(talk(9), 50, counter=TEN).report
    span = exported.span()
    attributes = dict(span.attributes or {})
    assert attributes.pop("gen_ai.conversation.compacted") is True
    assert {name: attributes.pop(name) for name in (otel.SECONDS, otel.COUNT_SECONDS)}.values()
    assert report.tokens_before is None
    assert attributes == {
        "trimtab.fit.source": "fit",
        "trimtab.fit.fits": True,
        "trimtab.fit.tokens_after": 50,
        "trimtab.fit.budget_tokens": 50,
        "trimtab.fit.kept_messages": 5,
        "trimtab.fit.changed_messages": 0,
        "trimtab.fit.evicted_messages": 4,
        "trimtab.fit.inserted_messages": 0,
        "trimtab.fit.format": "openai_chat",
        "trimtab.fit.counter": report.counter,
        "trimtab.fit.exact": report.exact,
    }


def test_a_fit_that_evicts_is_an_event_with_its_reasons(exported: Exported) -> None:
    """One that evicts nothing is none, and its span is not compacted; false is never said."""
    with exported.tracer.start_as_current_span("chat"):
        fit(talk(3), 50, counter=TEN)
        fit(talk(9), 50, counter=TEN)
    (event,) = exported.span().events
    assert event.name == "trimtab.fit.eviction"
    told = dict(event.attributes or {})
    assert (told["trimtab.reason.over_limit"], told["trimtab.fit.evicted_messages"]) == (4, 4)
    exported.spans.clear()
    with exported.tracer.start_as_current_span("chat"):
        fit(talk(3), 50, counter=TEN)
    assert "gen_ai.conversation.compacted" not in (exported.span().attributes or {})
    assert not exported.span().events


def test_metrics_add_up_to_the_reports(exported: Exported) -> None:
    """Tokens before where they were counted, tokens after, and what left by its reason."""
    reports = [fit(talk(count), 50, counter=TEN).report for count in (3, 9, 12)]
    points = exported.points()
    after, before = points["trimtab.fit.tokens_after"], points["trimtab.fit.tokens_before"]
    assert total(after) == sum(report.tokens_after for report in reports) == 130
    assert [report.tokens_before for report in reports] == [30, None, None]
    assert (total(before), sum(point.count for point in before)) == (30, 1)
    evicted = points["trimtab.fit.evicted_messages"]
    assert total(evicted, trimtab__fate="evicted", trimtab__reason="over_limit") == 4 + 7
    assert sum(point.count for point in points["trimtab.fit.duration"]) == 3
    spent, whole = total(points["trimtab.fit.count_duration"]), total(points["trimtab.fit.duration"])
    assert 0 < spent < whole


def test_metrics_can_be_read_by_model_and_source(exported: Exported) -> None:
    """Where a fit names a model."""
    fitted = fit(talk(9), 50, counter=TEN, model="gpt-4o")
    fitted.at(20)
    after = exported.points()["trimtab.fit.tokens_after"]
    assert total(after, gen_ai__request__model="gpt-4o", trimtab__fit__source="fit") == 50
    assert total(after, gen_ai__request__model="gpt-4o", trimtab__fit__source="at") == 20


def test_nothing_is_counted_for_it() -> None:
    """A counter is asked the same number of times as where nobody looks on."""
    asked: list[object] = []

    class Counting(trimtab.counting.AdditiveCounter):
        def count_message(self, message: Any, /) -> int:
            """Note that it was asked."""
            asked.append(message)
            return 10

    fit(talk(40), 50, counter=Counting())
    alone = len(asked)
    reader = InMemoryMetricReader()
    with otel.instrument(meter_provider=MeterProvider(metric_readers=[reader])):
        fit(talk(40), 50, counter=Counting())
    assert len(asked) == 2 * alone
    assert alone < 40
    assert "trimtab.fit.tokens_before" not in Exported(None, InMemorySpanExporter(), reader).points()


def test_a_fit_that_does_not_fit_is_told(exported: Exported) -> None:
    """Metrics and span say so; the error is the caller's."""
    with exported.tracer.start_as_current_span("chat"), pytest.raises(BudgetExceededError):
        fit(talk(1), 5, counter=TEN)
    span = exported.span()
    assert (span.attributes or {})["trimtab.fit.fits"] is False
    after = exported.points()["trimtab.fit.tokens_after"]
    assert total(after, trimtab__fit__fits=False) == 10


def test_each_task_writes_to_its_own_span(exported: Exported) -> None:
    """The current span is that of the task that fits."""
    import asyncio

    async def chat(count: int) -> None:
        with exported.tracer.start_as_current_span(str(count)):
            await asyncio.sleep(0)
            await trimtab.afit(talk(count), 500, counter=TEN)

    async def serve() -> None:
        await asyncio.gather(*map(chat, range(1, 6)))

    asyncio.run(serve())
    spans = exported.spans.get_finished_spans()
    kept = {span.name: (span.attributes or {})["trimtab.fit.kept_messages"] for span in spans}
    assert kept == {str(count): count for count in range(1, 6)}


def test_without_a_span_only_metrics_are_written(exported: Exported) -> None:
    """None is made for it."""
    fit(talk(9), 50, counter=TEN)
    assert exported.spans.get_finished_spans() == ()
    assert exported.points()["trimtab.fit.tokens_after"]


# -- sessions


def test_a_session_stands_on_the_span_and_its_id_on_no_metric(exported: Exported) -> None:
    """Ids are without number, and metrics must not be."""
    session = Session(100, counter=TEN, summarizer=lambda messages: "short", id="ada")
    told: list[Any] = []
    with exported.tracer.start_as_current_span("chat"), trimtab.observe(told.append):
        session.extend(talk(12))
        session.messages()
    span = exported.span()
    attributes = dict(span.attributes or {})
    assert attributes["trimtab.session.id"] == "ada"
    assert attributes["gen_ai.conversation.compacted"] is True
    decided = [event for event in told if isinstance(event, SessionEvent)]
    events = [dict(one.attributes or {}) for one in span.events if one.name == otel.SESSION_EVENT]
    assert [one["trimtab.session.kind"] for one in events] == [one.kind for one in decided]
    summary = next(one for one in events if one["trimtab.session.kind"] == "summary")
    assert summary["trimtab.session.tokens"] == 10
    points = exported.points()
    counted = points["trimtab.session.events"]
    for kind in {one.kind for one in decided}:
        number = sum(one.kind == kind for one in decided)
        assert total(counted, trimtab__session__kind=kind) == number
    assert sum(point.count for point in points["trimtab.session.summary_duration"]) == 1
    values = {value for all_ in points.values() for point in all_ for value in point.attributes.values()}
    assert "ada" not in values


@pytest.mark.parametrize("background", [False, True])
def test_summaries_are_counted_by_how_they_end(exported: Exported, background: bool) -> None:
    """Those that were asked for, made and failed, as the log of the session has them; with their time."""
    answers = iter(["short", None, "short", None])

    def summarize(messages: object) -> str:
        answer = next(answers, "short")
        if answer is None:
            raise trimtab.errors.SummaryError("away")
        return answer

    session = Session(100, counter=TEN, summarizer=summarize, background=background)
    for message in talk(60):
        session.add(message)
        session.drain()
    made = sum(event.kind == "summary" for event in session.history(kinds=None))
    failed = sum(event.kind == "failed" for event in session.history(kinds=None))
    assert made > 2
    assert failed == 2
    points = exported.points()
    told = points["trimtab.session.events"]
    assert total(told, trimtab__session__kind="summary") == made
    of_summaries = {"trimtab__session__answer": "summary"}
    assert total(told, trimtab__session__kind="failed", **of_summaries) == failed
    assert total(told, trimtab__session__kind="asked", **of_summaries) >= made + failed
    assert sum(point.count for point in points["trimtab.session.summary_duration"]) == made


def test_no_text_of_a_conversation_is_exported(exported: Exported) -> None:
    """Nor what a summarizer said when it failed."""

    def fail(messages: object) -> str:
        raise trimtab.errors.SummaryError("secret reason")

    with exported.tracer.start_as_current_span("chat"):
        session = Session(100, counter=TEN, summarizer=fail)
        session.extend(talk(40))
        session.messages()
    written = exported.span().to_json() + str(exported.points())
    assert "trimtab.session.kind" in written
    assert "secret" not in written


# -- stores


def one_conflict() -> MemoryStore:
    """Write to one session by two objects, so that the first has to begin anew."""
    store = MemoryStore()
    mine = Session(100, counter=TEN, store=store, id="private name", retry=Retry(first_seconds=0))
    mine.add(talk(1)[0])
    Session.open(store, "private name", counter=TEN).extend(talk(3))
    mine.add(talk(1)[0])
    return store


def test_requests_to_a_store_are_metrics_by_what_they_asked_and_how_they_ended(exported: Exported) -> None:
    """Opened sessions, added messages, conflicts, retries and latency; no id and no text."""
    one_conflict()
    points = exported.points()
    assert total(points["trimtab.session.opened"], trimtab__store__type="MemoryStore") == 2
    assert total(points["trimtab.session.added_messages"]) == 5
    assert total(points["trimtab.store.retries"]) == 1
    ends = {
        (point.attributes["trimtab.store.request"], point.attributes["trimtab.store.outcome"]): point.count
        for point in points["trimtab.store.duration"]
    }
    assert ends["append", "conflict"] == 1
    assert ends["append", "done"] == 3
    assert ends["open", "done"] == 2
    assert "private" not in str(points)
    assert "secret" not in str(points)


# -- set up


def test_it_ends_when_it_is_removed(exported: Exported) -> None:
    """A second one of its own goes on."""
    reader = InMemoryMetricReader()
    observer = otel.instrument(meter_provider=MeterProvider(metric_readers=[reader]))
    fit(talk(1), 50, counter=TEN)
    observer.remove()
    fit(talk(1), 50, counter=TEN)
    other = Exported(None, exported.spans, reader)
    assert total(other.points()["trimtab.fit.tokens_after"]) == 10
    assert total(exported.points()["trimtab.fit.tokens_after"]) == 20


def test_without_an_sdk_nothing_happens() -> None:
    """The API of OpenTelemetry does nothing then, and a fit is as it was."""
    with otel.instrument():
        assert len(fit(talk(9), 50, counter=TEN).messages) == 5
    assert "trimtab" not in str(metrics.get_meter_provider())


def test_what_is_no_provider_is_refused() -> None:
    """Where it is given, not at the first fit."""
    wrong: Any = "otlp"
    with pytest.raises(ConfigurationError, match="MeterProvider"):
        otel.instrument(meter_provider=wrong)


def test_the_metrics_are_those_listed(exported: Exported) -> None:
    """Under their names, in their units."""
    session = Session(100, counter=TEN, summarizer=lambda messages: "short")
    session.extend(talk(12))
    fit(talk(9), 50, counter=TEN)
    fit(talk(1), 50, counter=TEN)
    one_conflict()
    data = exported.reader.get_metrics_data()
    assert data is not None
    units = {
        metric.name: metric.unit
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert units == {name: unit for name, (unit, _) in otel.METRICS.items()}


def test_a_missing_package_is_said_with_the_line_that_installs_it() -> None:
    """In an interpreter without it."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "try:\n    import trimtab.integrations.otel\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("MissingExtraError trimtab.integrations.otel needs opentelemetry")
    assert "pip install 'trimtab[otel]'" in run.stdout
