"""Requests of a gateway in OpenTelemetry, by its own SDK: a span each below its client's, and metrics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.gateway.gateways import Recorder, Seen, recorder, run, talk

PROGRAM = """
import json, sys
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracers)
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
from trimtab.gateway import Upstream, make_app, serve
upstreams = [Upstream(api="openai", url=sys.argv[1]), Upstream(api="anthropic", url="http://127.0.0.1:9")]
log = lambda line: print(json.dumps(line), flush=True)
serve(make_app(upstreams, budgets={"*": 1_000}, log=log, otel=True), ready=lambda at: print(at, flush=True))
for span in spans.get_finished_spans():
    print(span.to_json(indent=None))
print(reader.get_metrics_data().to_json(indent=None))
"""
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
KEY, SAID = "sk-this-is-a-key", "what nobody else is told"
CHAT = "/v1/chat/completions"


class Told(NamedTuple):
    """What was sent to OpenTelemetry, and what the log has."""

    lines: list[dict[str, Any]]
    spans: list[dict[str, Any]]
    """In the order of their ends."""
    metrics: dict[str, list[dict[str, Any]]]
    """The points of each."""
    text: str
    behind: Recorder


@pytest.fixture(scope="module")
def told() -> Told:
    """Read what was sent of four requests.

    One is fitted, one passes through, one has a method that is made up, and one is for a server that
    is not there.
    """

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        usage = {
            "prompt_tokens": 900,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 640},
        }
        return 200, {}, json.dumps({"usage": usage}).encode()

    said = [{"role": "user", "content": SAID}, *talk(30)[1:]]
    headers = {"Authorization": f"Bearer {KEY}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    claude = {"model": "claude-opus-4-5", "max_tokens": 9, "messages": talk(2)}
    with (
        recorder(answer) as behind,
        run([sys.executable, "-c", PROGRAM, behind.address], lambda process: process.stdout) as front,
    ):
        lines = []
        asked: list[tuple[str, str, Any]] = [
            ("POST", CHAT, {"model": "gpt-4o", "messages": said}),
            ("GET", "/v1/files", None),
            ("MADEUP", "/t/x", None),
            ("POST", "/v1/messages", claude),
        ]
        for method, path, body in asked:
            lines.append(front.ask(path, body, headers, method=method).line)
        text = front.end()
    *spans, metrics = map(json.loads, text.splitlines())
    points = {
        metric["name"]: metric["data"]["data_points"]
        for resource in metrics["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }
    return Told(lines, spans, points, text, behind)


def test_a_request_is_a_span_below_that_of_its_client(told: Told) -> None:
    """With the numbers of the log, and those of its fit."""
    span, line = told.spans[0], told.lines[0]
    assert (span["name"], span["kind"]) == ("POST openai_chat", "SpanKind.SERVER")
    assert (span["context"]["trace_id"], span["parent_id"]) == (f"0x{TRACE}", f"0x{PARENT}")
    has = span["attributes"]
    assert {
        "trimtab.gateway.request_id": line["id"],
        "trimtab.gateway.conversation": line["conversation"],
        "trimtab.gateway.upstream": "openai",
        "trimtab.gateway.end": "done",
        "trimtab.gateway.budget": "*",
        "trimtab.gateway.sent_bytes": line["sent_bytes"],
        "http.request.body.size": line["body_bytes"],
        "http.response.body.size": line["answer_bytes"],
        "http.response.status_code": 200,
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.cache_read.input_tokens": 640,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.conversation.compacted": True,
        "trimtab.fit.tokens_after": line["after"],
        "trimtab.fit.evicted_messages": line["evicted"],
    }.items() <= has.items()
    assert line["reasons"]
    words = ("before", "after", "limit", "evicted", "changed", "reason", "reasons")
    for word in words:
        if isinstance(found := line.get(word), dict):
            assert {key: has[f"trimtab.gateway.{word}.{key}"] for key in found} == found
        else:
            assert has[f"trimtab.gateway.{word}"] == found
    # 260 * 2.5 + 640 * 1.25 + 10 * 10 millionths
    assert has["trimtab.gateway.dollars"] == pytest.approx(0.00155)


def test_an_answer_that_failed_is_an_error(told: Told) -> None:
    """An upstream's own, too: the one of this test does not know the method."""
    found = [
        (span["attributes"]["trimtab.gateway.end"], span["status"]["status_code"]) for span in told.spans
    ]
    assert [line["end"] for line in told.lines] == [end for end, _ in found]
    assert [code for _, code in found] == ["UNSET", "UNSET", "ERROR", "ERROR"]
    assert [line["status"] for line in told.lines] == [200, 200, 501, 502]


def test_metrics_have_no_name_that_a_client_chooses(told: Told) -> None:
    """Times by how requests ended, and dollars."""
    times = told.metrics["trimtab.gateway.duration"]
    assert sum(point["count"] for point in times) == len(told.lines)
    assert {point["attributes"]["http.request.method"] for point in times} == {"GET", "POST", "_OTHER"}
    ends = {
        (point["attributes"]["trimtab.gateway.end"], point["attributes"]["http.response.status_code"])
        for point in times
    }
    assert ends == {(line["end"], line["status"]) for line in told.lines}
    assert [point["value"] for point in told.metrics["trimtab.gateway.dollars"]] == [pytest.approx(0.00155)]
    assert [point["count"] for point in told.metrics["trimtab.fit.tokens_after"]] == [1, 1]
    assert "MADEUP" not in json.dumps(told.metrics)


def test_no_text_and_no_key_is_sent(told: Told) -> None:
    """Neither of a request nor of its headers; the upstream gets the client's own header."""
    for secret in (KEY, SAID, "Utrecht", "/v1/files"):
        assert secret not in told.text
    assert told.behind.seen[0].values("traceparent") == [f"00-{TRACE}-{PARENT}-01"]


UNTOLD = """
import asyncio, json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.gateway.gateways import ask_app
from trimtab.errors import ConfigurationError
from trimtab.gateway import Upstream, make_app
upstreams = [Upstream(api="openai", url="http://127.0.0.1:9")]
try:
    make_app(upstreams, otel=True)
except ConfigurationError as error:
    print(error)
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
app = make_app(upstreams, otel=True)
body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
asyncio.run(ask_app(app, json.dumps(body).encode()))
for resource in json.loads(reader.get_metrics_data().to_json())["resource_metrics"]:
    for scope in resource["scope_metrics"]:
        for metric in scope["metrics"]:
            print(metric["name"])
"""


def test_an_application_without_a_provider_is_refused_and_metrics_alone_are_enough() -> None:
    """Fits are told of as well where no server says that it starts."""
    done = subprocess.run([sys.executable, "-c", UNTOLD], capture_output=True, text=True, check=True)
    refused, *names = done.stdout.splitlines()
    assert "opentelemetry-instrument" in refused
    assert {"trimtab.gateway.duration", "trimtab.fit.duration"} <= set(names)


def test_a_command_without_a_provider_is_refused() -> None:
    """All that it sent would be lost, without a word."""
    command = [str(Path(sys.executable).with_name("trimtab")), "serve", "--otel", "--listen", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "opentelemetry-instrument trimtab serve" in done.stderr
