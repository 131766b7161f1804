"""The page of a gateway's last requests: numbers of the log, by conversation, and never a text."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.gateways import Running, Seen, gateway, recorder, talk

TOKEN = "a-token-of-16-or-more"
CHAT = "/v1/chat/completions"
HOSTILE = "</style><script>window.harm = 1</script>"


def chat(name: str, turns: int, model: str = "gpt-4o") -> dict[str, Any]:
    """Write a request of a conversation that begins with a name."""
    return {"model": model, "messages": [{"role": "user", "content": name}, *talk(turns)[1:]]}


@pytest.fixture
def front() -> Iterator[Running]:
    """A gateway that nobody asked yet, with a budget of 1,000 tokens."""
    with recorder() as behind, gateway(behind.address, budgets={"*": "1k"}, learn=False) as running:
        yield running


def rows(front: Running, path: str = "/trimtab/") -> list[list[str]]:
    """Read the cells of the table of a page, as texts."""
    answer = front.ask(path, method="GET")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    body = answer.body.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", body)
    ]


def test_conversations_have_the_sums_of_their_requests(front: Running) -> None:
    """Two that are asked in turn are two rows, the last one first; what only counts is in none."""
    lines = []
    for name, turns in (("one", 1), ("two", 30), ("one", 2), ("two", 31), ("one", 3)):
        lines.append(front.ask(CHAT, chat(name, turns)).line)
    front.ask("/v1/messages/count_tokens", {**chat("one", 3, "claude-opus-4-5"), "max_tokens": 9})
    front.ask("/v1/files", method="GET")
    found = rows(front)
    assert [len(found), found[0][2], found[1][2]] == [2, "3", "2"]
    for row, own in zip(found, (lines[0:5:2], lines[1:5:2]), strict=True):
        assert {line["conversation"] for line in own} == {row[0]}
        assert row[1] == "gpt-4o"
        sums = [sum(line.get(name, 0) for line in own) for name in ("before", "after", "evicted", "changed")]
        assert [int(row[at].replace(",", "")) for at in (3, 4, 6, 7)] == sums
    assert found[0][5] == "0%"
    assert int(found[1][6].replace(",", "")) > 0


def test_a_conversation_lists_its_requests_with_reasons_and_reuse(front: Running) -> None:
    """The same request again begins wholly as the one before; another first answer shares next to nothing."""
    first = chat("one", 30)
    lines = []
    for body in (first, first, {**first, "messages": [*first["messages"][:1], *talk(40)[41:]]}):
        lines.append(front.ask(CHAT, body).line)
    (row,) = rows(front)
    last, again, begin = rows(front, f"/trimtab/{row[0]}")
    for cells, line in zip((begin, again, last), lines, strict=True):
        assert [int(cells[at].replace(",", "")) for at in (2, 3, 5, 11)] == [
            line[name] for name in ("before", "after", "evicted", "limit")
        ]
        assert cells[1] == f"{line['evicted']} over limit"
        assert cells[-1] == "200 done"
    assert (begin[7], again[7]) == ("", "100%")
    assert int(last[7].removesuffix("%")) < 50


def test_a_page_holds_no_text_of_a_request_and_nothing_that_acts(front: Running) -> None:
    """The model's name is the client's, and harmless; scripts are forbidden besides."""
    body, headers = {**chat("secret words", 3), "model": HOSTILE}, {"Authorization": "Bearer sk-secret"}
    conversation = front.ask(CHAT, body, headers).line["conversation"]
    for path in ("/trimtab/", f"/trimtab/{conversation}"):
        answer = front.ask(path, method="GET")
        assert b"secret" not in answer.body
        assert b"sunny" not in answer.body
        assert b"<script" not in answer.body
        assert b"&lt;script&gt;" in answer.body
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert answer.headers["cache-control"] == "no-store"


def test_dollars_are_those_of_bills_and_what_has_none_is_told() -> None:
    """Of gpt-4o a million tokens cost $2.50, cached ones half, and those of answers four times that."""
    usage = {"prompt_tokens": 100_000, "completion_tokens": 1_000}
    bills = iter([{**usage, "prompt_tokens_details": {"cached_tokens": 80_000}}, usage, None])

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps({"usage": next(bills)}).encode()

    with recorder(answer) as behind, gateway(behind.address) as front:
        lines = [front.ask(CHAT, chat("one", 3)).line for _ in range(3)]
        # 20,000 * 2.5 + 80,000 * 1.25 + 1,000 * 10 = 160,000 millionths; 100,000 * 2.5 + 10,000 = 260,000
        assert [line.get("dollars") for line in lines] == [0.16, 0.26, None]
        assert [line.get("cache_read") for line in lines] == [80_000, 0, None]
        assert rows(front)[0][11] == "$0.420 + 1 unknown"
        numbers = front.ask("/metrics", method="GET").body.decode()
    place = '{form="openai_chat",upstream="openai"}'
    assert f"trimtab_dollars_total{place} 0.42\n" in numbers
    assert f"trimtab_requests_unpriced_total{place} 1\n" in numbers
    assert f"trimtab_tokens_cache_read_total{place} 80000\n" in numbers
    assert f"trimtab_tokens_output_total{place} 2000\n" in numbers


def test_what_is_remembered_is_bounded(front: Running) -> None:
    """100 conversations, the last ones, with 50 requests each."""
    known = [front.ask(CHAT, chat("first", 1 + turn % 2)).line for turn in range(53)][-1]["conversation"]
    assert [row[2] for row in rows(front)] == ["53"]
    assert len(rows(front, f"/trimtab/{known}")) == 50
    for turn in range(100):
        front.ask(CHAT, chat(f"number {turn}", 1))
    assert len(rows(front)) == 100
    assert front.ask(f"/trimtab/{known}", method="GET").status == 404


def test_compressed_bodies_that_are_passed_on_are_compared_by_nothing(front: Running) -> None:
    """Their bytes say nothing of a prefix."""
    for _ in range(2):
        front.ask(CHAT, gzip.compress(json.dumps(chat("one", 3)).encode()), {"Content-Encoding": "gzip"})
    (row,) = rows(front)
    assert row[8] == "0%"


def test_requests_of_no_conversation_are_billed_on_the_page() -> None:
    """Those that go on from messages of a server. Of gpt-4o a million tokens cost $2.50."""

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b'{"usage": {"input_tokens": 100000, "output_tokens": 0}}'

    with recorder(answer) as behind, gateway(behind.address) as front:
        for model in ("gpt-4o", "gpt-4o", "a-model-of-mine"):
            front.ask("/v1/responses", {"model": model, "input": "hi", "previous_response_id": "resp_1"})
        page = front.ask("/trimtab/", method="GET").body.decode()
        assert "3 requests of no conversation that is known here, billed: $0.500 + 1 unknown" in page
        front.ask(CHAT, chat("one", 2))
        assert "$0.500 + 1 unknown" in front.ask("/trimtab/", method="GET").body.decode()


def test_a_gateway_that_nobody_asked_says_so(front: Running) -> None:
    """In the place of an empty table; and the folder is found without its slash."""
    answer = front.ask("/trimtab/", method="GET")
    assert b"No conversation came" in answer.body
    moved = front.ask("/trimtab", method="GET")
    assert (moved.status, moved.headers["location"]) == (307, "trimtab/")


def test_the_page_is_for_who_may_ask() -> None:
    """Nobody else; and no path of it reaches an upstream."""
    with recorder() as behind:
        with gateway(behind.address, token=TOKEN) as front:
            assert front.ask("/trimtab/", method="GET").status == 401
            assert front.ask("/trimtab/any", method="GET").status == 401
            assert front.ask(f"/t/{TOKEN}/trimtab/", method="GET").status == 200
        with gateway(behind.address) as front:
            assert front.ask("/trimtab/", method="GET", headers={"Host": "evil.example"}).status == 421
            assert front.ask("/trimtab/", method="GET", headers={"Origin": "null"}).status == 403
        assert behind.seen == []
