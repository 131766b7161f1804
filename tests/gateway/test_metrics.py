"""Numbers of a gateway as Prometheus reads them: sums of its log, with labels that no client chooses."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.gateways import Recorder, Running, Seen, gateway, recorder, talk

TOKEN = "a-token-of-16-or-more"
CHAT = "/v1/chat/completions"
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def _answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    if seen.target.endswith("/busy"):
        return 429, {}, b"{}"
    return 200, {}, b'{"usage": {"prompt_tokens": 900, "completion_tokens": 1}}'


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Recorder]]:
    """A gateway with a small budget, and a server for some models."""
    with recorder(_answer) as behind:
        upstreams = [
            {"api": "openai", "url": behind.address},
            {"api": "openai", "url": behind.address, "models": 'odd-"*'},
            {"api": "anthropic", "url": behind.address},
        ]
        with gateway(upstreams, budgets={"*": "1k"}) as front:
            yield front, behind


def scrape(front: Running) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Read the metrics: by name, then by labels. Each line must be a sample or a comment of the format."""
    answer = front.ask("/metrics", method="GET")
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    assert answer.body.endswith(b"\n")
    for line in answer.body.decode().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) trimtab_\w+ .+", line)
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample is not None, line
        labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or ""))
        assert labels not in found.setdefault(sample[1], {}), line
        found[sample[1]][labels] = float(sample[3])
    return found


def total(samples: dict[tuple[tuple[str, str], ...], float], **labels: str) -> float:
    """Add up the samples that have these labels."""
    return sum(value for key, value in samples.items() if labels.items() <= dict(key).items())


def test_metrics_are_the_sums_of_the_log(pair: tuple[Running, Recorder]) -> None:
    """Requests by their end, tokens, evictions by reason, and times; what only counts has no tokens."""
    front, _ = pair
    talks = [talk(turns) for turns in (2, 30, 40)]
    asked: list[tuple[str, Any]] = [(CHAT, {"model": "gpt-4o", "messages": said}) for said in talks]
    asked.append(
        ("/v1/messages/count_tokens", {"model": "claude-opus-4-5", "max_tokens": 9, "messages": talks[1]})
    )
    asked.append((CHAT, {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 3_000}]}))
    asked += [("/v1/busy", {}), ("/v1/files", {})]
    before = scrape(front)
    lines = [front.ask(path, body).line for path, body in asked]
    found = scrape(front)

    def grown(name: str, **labels: str) -> float:
        return total(found[name], **labels) - total(before.get(name, {}), **labels)

    ends = Counter((line["end"], str(line["status"])) for line in lines)
    assert ends == {("done", "200"): 5, ("too_long", "400"): 1, ("done", "429"): 1}
    for (end, status), count in ends.items():
        assert grown("trimtab_requests_total", end=end, status=status) == count
    sized = [line for line in lines if line.get("form") == "openai_chat" and "after" in line]
    assert len(sized) == 3
    place = {"form": "openai_chat", "upstream": "openai"}
    for name in ("before", "after", "billed"):
        assert grown(f"trimtab_tokens_{name}_total", **place) == sum(line[name] for line in sized)
        assert grown(f"trimtab_tokens_{name}_total", form="anthropic") == 0
    reasons: Counter[str] = Counter()
    for line in sized:
        reasons.update(line.get("reasons", {}))
    assert sum(reasons.values()) == sum(line["evicted"] + line.get("changed", 0) for line in sized) > 0
    for reason, count in reasons.items():
        assert grown("trimtab_evictions_total", **place, reason=reason) == count
    assert grown("trimtab_fit_seconds_count") == len([line for line in lines if "fit_ms" in line])
    assert grown("trimtab_fit_seconds_sum") == pytest.approx(
        sum(line.get("fit_ms", 0) for line in lines) / 1000, abs=1e-5
    )
    assert grown("trimtab_first_byte_seconds_count", upstream="openai") == 5
    assert found["trimtab_requests_in_progress"] == {(): 0}


def test_a_request_whose_upstream_fails_has_its_tokens_and_evictions() -> None:
    """Both or neither: evictions without the tokens that they were of are a share of nothing."""
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # not listening: nobody takes a connection, and nobody else the port
        with gateway(f"http://127.0.0.1:{dead.getsockname()[1]}", budgets={"*": "1k"}, learn=False) as front:
            answer = front.ask(CHAT, {"model": "gpt-4o", "messages": talk(30)})
            found, line = scrape(front), answer.line
    assert (answer.status, line["end"]) == (502, "upstream_unreachable")
    assert line["after"] < line["before"]
    assert line["evicted"] + line["changed"] == sum(line["reasons"].values()) > 0
    assert total(found["trimtab_evictions_total"]) == sum(line["reasons"].values())
    for name in ("before", "after"):
        assert total(found[f"trimtab_tokens_{name}_total"]) == line[name]


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": 1e308, "completion_tokens": 1}',
        f'{{"prompt_tokens": {10**400}, "completion_tokens": 1}}',
        f'{{"prompt_tokens": 5, "completion_tokens": {10**400}}}',
        '{"prompt_tokens": 1e999, "completion_tokens": 1}',
        '{"prompt_tokens": 1000000001}',
        '{"prompt_tokens": -5}',
        '{"prompt_tokens": "5"}',
        '{"prompt_tokens": [5]}',
    ],
)
def test_a_bill_that_cannot_be_is_no_bill(usage: str) -> None:
    """The answer passes, its line is JSON, and the sums of other requests stay."""
    said = iter([usage, '{"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}'])

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b'{"usage": %s}' % next(said).encode()

    with recorder(answer) as behind, gateway(behind.address) as front:
        made_up, billed = (front.ask(CHAT, {"model": "gpt-4o", "messages": talk(2)}) for _ in range(2))
        found = scrape(front)
    assert (made_up.status, made_up.line["end"], made_up.line["unpriced"]) == (200, "done", True)
    assert not {"dollars", "cache_read"} & made_up.line.keys()
    assert (billed.line["billed"], billed.line["cache_read"]) == (10, 10)  # a part is no more than the whole
    # of gpt-4o a million cached tokens cost $1.25
    assert total(found["trimtab_dollars_total"]) == pytest.approx(10 * 1.25e-6)
    assert total(found["trimtab_requests_unpriced_total"]) == 1


@pytest.mark.parametrize("first", ['"x"', "[]", "7", '{"input_tokens": "x"}'])
def test_a_stream_whose_usage_is_of_another_kind_passes_whole(first: str) -> None:
    """Its events are the client's, whatever they say."""
    events = [
        f'data: {{"usage": {first}, "usageMetadata": {first}, "response": {{"usage": {{}}}}}}',
        'data: {"usage": {"input_tokens": 7, "output_tokens": 1}}',
    ]
    body = "\n\n".join((*events, "")).encode()

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": "text/event-stream"}, body

    with recorder(answer) as behind, gateway(behind.address) as front:
        asked = front.ask("/v1/responses", {"model": "gpt-4o", "input": "hi", "stream": True})
    assert (asked.body, asked.line["end"], asked.line["billed"]) == (body, "done", 7)


def test_buckets_of_a_histogram_only_grow_to_its_count(pair: tuple[Running, Recorder]) -> None:
    """As Prometheus has them: each holds those before it, and the last all."""
    front, _ = pair
    front.ask(CHAT, {"model": "gpt-4o", "messages": talk(2)})
    found = scrape(front)
    for name, label in (("fit_seconds", "form"), ("first_byte_seconds", "upstream")):
        for labels, count in found[f"trimtab_{name}_count"].items():
            own = dict(labels)[label]
            buckets = [
                value for key, value in found[f"trimtab_{name}_bucket"].items() if dict(key)[label] == own
            ]
            assert buckets == sorted(buckets)
            assert buckets[-1] == count > 0


def test_no_client_adds_a_series(pair: tuple[Running, Recorder]) -> None:
    """Models, paths and methods that it makes up are no labels; a server's name is written safely."""
    front, _ = pair
    front.ask(CHAT, {"model": "gpt-4o", "messages": talk(2)})
    front.ask("/v1/files/0", method="DELETE")
    front.ask(CHAT, {"model": 'odd-"1', "messages": talk(2)})
    before = {name: set(samples) for name, samples in scrape(front).items()}
    for turn in range(5):
        front.ask(CHAT, {"model": f"made-up-{turn}", "messages": talk(2)})
        front.ask(CHAT, {"model": f'odd-"{turn}', "messages": talk(2)})
        front.ask(f"/v1/files/{turn}", method="PUT")
    after = scrape(front)
    assert {name: set(samples) for name, samples in after.items()} == before
    assert total(after["trimtab_requests_total"], upstream='openai/odd-\\"*') == 6


def test_a_request_in_progress_is_counted() -> None:
    """While its answer is to come."""
    counted: list[float] = []

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        counted.append(_in_progress(front))
        return 200, {}, b"{}"

    with recorder(answer) as behind, gateway(behind.address) as front:
        front.ask("/v1/files", method="GET")
        assert _in_progress(front) == 0
    assert counted == [1]


def _in_progress(front: Running) -> float:
    return scrape(front)["trimtab_requests_in_progress"][()]


def test_metrics_are_for_who_may_ask() -> None:
    """Nobody else, and no page of the web; HEAD and other methods are as HTTP has them."""
    with recorder() as behind:
        with gateway(behind.address, token=TOKEN) as front:
            assert front.ask("/metrics", method="GET").status == 401
            assert front.ask("/metrics", method="GET", headers={"trimtab-token": TOKEN}).status == 200
            assert front.ask(f"/t/{TOKEN}/metrics", method="GET").status == 200
        with gateway(behind.address) as front:
            assert front.ask("/metrics", method="GET", headers={"Host": "evil.example"}).status == 421
            assert (
                front.ask("/metrics", method="GET", headers={"Origin": "https://evil.example"}).status == 403
            )
            head = front.ask("/metrics", method="HEAD")
            assert (head.status, head.body, int(head.headers["content-length"]) > 100) == (200, b"", True)
        assert behind.seen == []
