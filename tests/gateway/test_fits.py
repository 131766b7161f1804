"""What a gateway fits, what it passes on as it is, and what it tells of both."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import Recorder, Running, Seen, gateway, recorder, talk
from tests.judge import judge
from trimtab import fit
from trimtab.counting import measure
from trimtab.formats import read_refusal
from trimtab.gateway import Upstream, make_app

CLAUDE = "claude-opus-4-5"
TALK = talk(30)
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
}
MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5",
    "anthropic": CLAUDE,
    "gemini": "gemini-2.5-flash",
}
KEYS = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}
FORMS = [*PATHS]


def body_of(form: str, messages: list[dict[str, Any]] = TALK) -> dict[str, Any]:
    """Write a request of a form, with keys that nobody knows before and behind its messages."""
    if form == "gemini":
        names = {"user": "user", "assistant": "model"}
        messages = [{"role": names[one["role"]], "parts": [{"text": one["content"]}]} for one in messages]
    before = {"x_before": [1.5, None, "é"]} | ({} if form == "gemini" else {"model": MODELS[form]})
    return {**before, KEYS[form]: messages, "max_tokens": 50, "x_behind": {"b": 1, "a": 2}}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Recorder]]:
    """A gateway with a small budget."""
    with recorder() as behind, gateway(behind.address, budgets={"*": "1k", "wide-*": "50k"}) as front:
        yield front, behind


@pytest.mark.parametrize("form", FORMS)
def test_what_fits_is_passed_on_byte_for_byte(pair: tuple[Running, Recorder], form: str) -> None:
    """Spaces, escapes, doubled keys and the order of keys are the client's."""
    front, behind = pair
    raw = json.dumps(body_of(form, TALK[-1:]), indent=3).replace('"x_behind"', '"x\\u005fbehind"').encode()
    answer = front.ask(PATHS[form], raw)
    assert behind.seen[-1].body == raw
    report = answer.report
    assert report["before"] == report["after"]
    assert (report["evicted"], report["limit"] in (950, 1_000)) == (0, True)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_fitted_keeps_the_order_of_keys_and_what_nobody_knows(
    pair: tuple[Running, Recorder], form: str
) -> None:
    """The newest messages are those of the client; the request is within the budget by a count of its own."""
    front, behind = pair
    asked = body_of(form)
    answer = front.ask(PATHS[form], asked)
    sent = behind.seen[-1].data
    key = KEYS[form]
    assert list(sent) == list(asked)
    assert {name: sent[name] for name in sent if name != key} == {
        name: asked[name] for name in asked if name != key
    }
    kept = len(sent[key])
    assert 0 < kept < len(TALK)
    assert sent[key] == asked[key][-kept:]
    assert behind.seen[-1].values("content-length") == [str(len(behind.seen[-1].body))]
    tokens = measure({"model": MODELS[form], **sent}, format=form).tokens
    assert tokens <= 1_000
    whole = measure({"model": MODELS[form], **asked}, format=form).tokens
    assert answer.report == {
        "before": whole,
        "after": tokens,
        "limit": answer.report["limit"],
        "evicted": len(TALK) - kept,
        "changed": 0,
        "reason": "over_limit",
    }


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_fit_is_refused_in_the_words_of_the_provider(
    pair: tuple[Running, Recorder], form: str
) -> None:
    """With the numbers, in words that trimtab itself knows from providers, and clients do."""
    front, behind = pair
    before = len(behind.seen)
    answer = front.ask(PATHS[form], body_of(form, [{"role": "user", "content": "word " * 3_000}]))
    refusal = read_refusal(answer.body.decode())
    assert (answer.status, len(behind.seen)) == (400, before)
    assert refusal is not None
    assert (refusal.kind, refusal.limit_tokens) == ("too_long", answer.report["limit"])
    assert refusal.sent_tokens == answer.report["needed"]
    assert int(answer.report["needed"]) > 3_000


@pytest.mark.parametrize(
    "path",
    [
        "/openai/deployments/wide-one/chat/completions?api-version=2026-01-01",
        "/openai/v1/responses?api-version=preview",
        "/openai/responses",
        "/v1//chat/completions/",
        "/anthropic/v1/messages",
        "/v1/projects/p/locations/l/publishers/google/models/wide-g:streamGenerateContent?alt=sse",
    ],
)
def test_hosts_put_more_into_a_path_and_it_is_still_fitted(pair: tuple[Running, Recorder], path: str) -> None:
    """Azure's two forms, Vertex AI, slashes too many; a deployment is a model, too."""
    front, behind = pair
    form = next(name for name in FORMS if _speaks(path, name))
    body = body_of(form)
    if "wide-" in path:
        body.pop("model", None)
    answer = front.ask(path, body)
    assert answer.status == 200
    assert behind.seen[-1].target == path
    assert (answer.report["limit"] == 50_000) is ("wide-" in path)


def _speaks(path: str, form: str) -> bool:
    ends = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic": "messages"}
    return ends.get(form, "Content") in path


def test_a_path_that_only_looks_like_one_passes_through(pair: tuple[Running, Recorder]) -> None:
    """Messages of an assistant's thread, a stored answer, a batch; and any GET."""
    front, behind = pair
    raw = json.dumps(body_of("openai_chat")).encode()
    for path in ("/v1/threads/t/messages", "/v1/responses/r/cancel", "/v1/batches", "/v1/completions"):
        answer = front.ask(path, raw)
        assert (behind.seen[-1].body, answer.headers.get("trimtab-report")) == (raw, None)
    assert front.ask("/v1/chat/completions?limit=1", method="GET").status == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_request_is_read(pair: tuple[Running, Recorder], encoding: str) -> None:
    """One that fits goes on as it came; one that is fitted goes on without an encoding."""
    front, behind = pair
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    headers = {"Content-Encoding": encoding}
    for messages, is_fitted in ((TALK[-1:], False), (TALK, True)):
        raw = pack(json.dumps(body_of("openai_chat", messages)).encode())
        assert front.ask(PATHS["openai_chat"], raw, headers).status == 200
        seen = behind.seen[-1]
        assert (seen.body == raw) is not is_fitted
        assert seen.values("content-encoding") == ([] if is_fitted else [encoding])
        if is_fitted:
            assert 0 < len(seen.data["messages"]) < len(TALK)


def test_a_body_of_several_members_is_read_whole(pair: tuple[Running, Recorder]) -> None:
    """RFC 1952, 2.2: who read the first alone would read another request than the upstream."""
    front, behind = pair
    text = json.dumps(body_of("openai_chat", TALK)).encode()
    raw = b"".join(gzip.compress(text[start : start + 500]) for start in range(0, len(text), 500))
    assert front.ask(PATHS["openai_chat"], raw, {"Content-Encoding": "gzip"}).status == 200
    assert 0 < len(behind.seen[-1].data["messages"]) < len(TALK)


@pytest.mark.parametrize(
    ("raw", "encoding", "status"),
    [
        (b"not gzip", "gzip", 400),
        (gzip.compress(b"{}") + gzip.compress(b" " * 9)[:-9], "gzip", 400),
        (gzip.compress(b"{}") + b"more", "gzip", 400),
        (gzip.compress(b"") * 2_000 + gzip.compress(b"{}"), "gzip", 400),
        (gzip.compress(b" " * 40_000_000) * 2, "gzip", 413),
        (zlib.compress(b"{}") + b"more", "deflate", 400),
        (gzip.compress(b"{}")[:-9], "gzip", 400),
        (gzip.compress(b" " * 70_000_000), "gzip", 413),
        (b"x", "br", 415),
        (b"x", "gzip, gzip", 415),
        (b"x", "zstd", 400 if sys.version_info >= (3, 14) else 415),
    ],
    ids=[
        *("no gzip", "a member cut off", "more behind", "many members", "two that are a bomb"),
        *("more behind deflate", "cut off", "bomb", "brotli", "twice", "zstd"),
    ],
)
def test_a_compressed_request_that_cannot_be_read_is_refused(
    pair: tuple[Running, Recorder], raw: bytes, encoding: str, status: int
) -> None:
    """A few bytes can hold gigabytes; what is not read is not sent."""
    front, behind = pair
    before = len(behind.seen)
    answer = front.ask(PATHS["anthropic"], raw, {"Content-Encoding": encoding})
    assert (answer.status, answer.data["type"], len(behind.seen)) == (status, "error", before)


@pytest.mark.parametrize("wrong", [5, 0, 1.5, True, 10**25])
@pytest.mark.parametrize("form", FORMS)
def test_messages_that_are_none_are_an_error_of_the_client(
    pair: tuple[Running, Recorder], form: str, wrong: float
) -> None:
    """In the words of the API, with the name of the key; nothing is sent."""
    front, behind = pair
    before = len(behind.seen)
    answer = front.ask(PATHS[form], body_of(form) | {KEYS[form]: wrong})
    assert (answer.status, len(behind.seen)) == (400, before)
    kind = answer.data["error"]["status" if form == "gemini" else "type"]
    assert kind == ("INVALID_ARGUMENT" if form == "gemini" else "invalid_request_error")
    assert f"{KEYS[form]} must be a list" in answer.data["error"]["message"]


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_call_that_goes_on_from_the_servers_own_conversation_is_told_and_not_fitted(
    pair: tuple[Running, Recorder], key: str
) -> None:
    """Its size is the server's to know."""
    front, behind = pair
    raw = json.dumps({**body_of("openai_responses"), key: "resp_1"}).encode()
    answer = front.ask(PATHS["openai_responses"], raw)
    assert (behind.seen[-1].body, answer.report) == (raw, {"untouched": key})


@pytest.mark.parametrize(
    ("path", "form", "within"),
    [
        ("/v1/messages/count_tokens", "anthropic", None),
        ("/v1/responses/input_tokens", "openai_responses", None),
        ("/v1beta/models/gemini-2.5-flash:countTokens", "gemini", None),
        ("/v1beta/models/gemini-2.5-flash:countTokens", "gemini", "generateContentRequest"),
    ],
)
def test_a_count_is_of_what_would_be_sent(
    pair: tuple[Running, Recorder], path: str, form: str, within: str | None
) -> None:
    """The same messages as the request itself has; what cannot fit is counted as it is."""
    front, behind = pair
    asked = body_of(form)
    front.ask(PATHS[form], asked)
    sent = behind.seen[-1].data[KEYS[form]]
    body = asked if within is None else {within: {**asked, "model": "models/gemini-2.5-flash"}}
    front.ask(path, body)
    counted = behind.seen[-1].data
    assert (counted if within is None else counted[within])[KEYS[form]] == sent
    huge = json.dumps(body_of(form, [{"role": "user", "content": "word " * 3_000}])).encode()
    answer = front.ask(path, huge)
    assert (behind.seen[-1].body, answer.report) == (huge, {"untouched": "too_long"})


def test_a_share_of_an_unknown_window_is_refused_with_what_to_write() -> None:
    """Silence would be a request of any length; a budget for the model is all it takes."""
    budgets = {"*": "80%", "mine-*": "1k"}
    with recorder() as behind, gateway(behind.address, budgets=budgets) as front:
        statuses = []
        for model in ("nobody-knows", "mine-7b", "gpt-4o"):
            answer = front.ask(PATHS["openai_chat"], {"model": model, "messages": TALK})
            statuses.append(answer.status)
            if model == "nobody-knows":
                assert "--budget nobody-knows=N" in answer.data["error"]["message"]
                assert answer.data["error"]["type"] == "invalid_request_error"
    assert statuses == [400, 200, 200]
    assert [len(one.data["messages"]) < len(TALK) for one in behind.seen] == [True, False]


def test_a_request_that_names_no_model_is_told_how_to_give_it_a_budget() -> None:
    """The option stands there as it is written."""
    with recorder() as behind, gateway(behind.address) as front:
        answer = front.ask(PATHS["openai_chat"], {"messages": TALK})
    assert (answer.status, behind.seen) == (400, [])
    assert answer.data["error"]["message"].endswith(" --budget N")


def test_rules_and_compact_and_policies_do_what_they_do_in_fit(tmp_path: Path) -> None:
    """The same messages as `fit` with the same options gives."""
    rows = "\n".join(f"row {number}: it is sunny in Utrecht" for number in range(60))
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)
    ]
    said: list[dict[str, Any]] = [{"role": "user", "content": "look twice"}]
    for call in calls:
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": call["id"], "content": rows})
    policy = tmp_path / "policy.toml"
    policy.write_text('[budget]\nwindow = 900\n[[blocks]]\nname = "history"\nstrategy = "sliding_window"\n')
    rules = ["Answer in Dutch."]
    with recorder() as behind:
        asked = {"model": "gpt-4o", "messages": said}
        with gateway(behind.address, budgets={"*": "1500"}, rules=rules, compact=True) as front:
            assert front.ask(PATHS["openai_chat"], asked).report["reason"] == "compacted"
        sent = behind.seen[-1].data["messages"]
        assert sent == fit(asked, 1_500, rules=rules, compact=True).messages
        assert any("Answer in Dutch." in str(one["content"]) for one in sent)
        with gateway(behind.address, budgets={"*": str(policy)}) as front:
            assert front.ask(PATHS["openai_chat"], {"model": "gpt-4o", "messages": TALK}).status == 200
        sent = behind.seen[-1].data["messages"]
    assert measure({"model": "gpt-4o", "messages": sent}).tokens <= 900
    assert sent == TALK[-len(sent) :]


def _biller(factor: float) -> Any:
    """Bill so much of a count; every second answer is a stream, every third is compressed."""
    numbers = count()

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        tokens = round(factor * measure(one.data, format="anthropic").tokens)
        usage = {"usage": {"input_tokens": tokens, "output_tokens": 1}}
        number = next(numbers)
        kind, said = "application/json", json.dumps({"type": "message", **usage})
        if number % 2:
            start = json.dumps({"type": "message_start", "message": {"id": "m", **usage}})
            end = json.dumps({"type": "message_delta", "usage": {"output_tokens": 9}})
            kind = "text/event-stream"
            said = f"event: message_start\ndata: {start}\n\nevent: message_delta\ndata: {end}\n\n"
        if number % 3:
            return 200, {"Content-Type": kind}, said.encode()
        return 200, {"Content-Type": kind, "Content-Encoding": "gzip"}, gzip.compress(said.encode())

    return answer


@pytest.mark.parametrize("learn", [True, False])
def test_bills_teach_the_count_of_a_conversation(learn: bool) -> None:
    """Where a provider charges 0.7 of the estimate, more of the budget is used once that was seen.

    Without learning the report of each request is that of the first process that ever saw it.
    """
    with recorder(_biller(0.7)) as behind, gateway(behind.address, budgets={"*": "4k"}, learn=learn) as front:
        off = []
        for turns in range(10, 34, 2):
            body = {"model": CLAUDE, "max_tokens": 9, "messages": talk(turns)}
            answer = front.ask(PATHS["anthropic"], body, {"Accept-Encoding": "gzip, br, zstd"})
            billed = answer.line["billed"]
            assert billed <= 4_000
            off.append(abs(int(answer.report["after"]) / billed - 1))
        assert {tuple(one.values("accept-encoding")) for one in behind.seen} == {("gzip",)}
    assert off[0] == pytest.approx(1 / 0.7 - 1, abs=0.01)
    if learn:
        assert max(off[4:]) < 0.1
    else:
        assert off == pytest.approx([off[0]] * len(off), abs=0.01)


def test_two_processes_that_learn_nothing_send_what_one_does() -> None:
    """Each request of a conversation goes to the other one: the prefix is that of a single process."""
    with recorder(_biller(0.7)) as behind, recorder(_biller(0.7)) as alone:
        given: dict[str, Any] = {"budgets": {"*": "2k"}, "learn": False}
        with ExitStack() as stack:
            places = (behind.address, behind.address, alone.address)
            a, b, c = (stack.enter_context(gateway(place, **given)) for place in places)
            for turns in range(4, 40):
                body = {"model": CLAUDE, "max_tokens": 9, "messages": talk(turns)}
                (a, b)[turns % 2].ask(PATHS["anthropic"], body)
                c.ask(PATHS["anthropic"], body)
    sent = [one.body for one in behind.seen]
    assert sent == [one.body for one in alone.seen]
    firsts = [json.loads(one)["messages"][0]["content"] for one in sent]
    assert len(set(firsts)) < len(firsts) / 3  # a cut stays where it is for several requests


def test_a_request_that_is_refused_as_too_long_is_sent_once_more() -> None:
    """Shorter, by what the provider says; a second refusal is the client's, and so is any other."""

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        many = len(one.data["messages"])
        if many > int(one.data.get("x_most", 1_000)):
            words = f"prompt is too long: {many * 100} tokens > 2000 maximum"
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
            return 400, {}, json.dumps(error).encode()
        if "x_other" in one.data:
            return 400, {}, b'{"type": "error", "error": {"message": "temperature is above 1"}}'
        return 200, {}, b"{}"

    with recorder(answer) as behind, gateway(behind.address, budgets={"*": "8k"}) as front:
        body: dict[str, Any] = {"model": CLAUDE, "max_tokens": 9, "messages": TALK}
        again = front.ask(PATHS["anthropic"], {**body, "x_most": 10})
        first, second = behind.seen
        assert (again.status, again.report["again"], again.line["again"]) == (200, 1, 1)
        assert len(first.data["messages"]) > 10 >= len(second.data["messages"])
        twice = front.ask(PATHS["anthropic"], {**body, "messages": talk(31), "x_most": 0})
        assert (twice.status, twice.data["type"]) == (400, "error")
        before = len(behind.seen)
        other = front.ask(PATHS["anthropic"], {**body, "x_other": 1})
        assert (other.status, "temperature" in other.body.decode()) == (400, True)
        assert len(behind.seen) == before + 1


def test_what_a_gateway_sends_is_valid(pair: tuple[Running, Recorder]) -> None:
    """By the judge, which was written without our code: calls and results stay together."""
    front, behind = pair
    said: list[dict[str, Any]] = []
    for turn in range(30):
        call = {"id": f"toolu_{turn}", "type": "tool_use", "name": "look", "input": {"place": turn}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": "It is sunny. " * 20}
        said += [
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"answer {turn}"},
        ]
        tools = [{"name": "look", "input_schema": {"type": "object"}}]
        body = {"model": CLAUDE, "max_tokens": 9, "messages": said[: 4 * turn + 3], "tools": tools}
        assert front.ask(PATHS["anthropic"], body).status == 200
        assert judge("anthropic", behind.seen[-1].data) == []


def _narrow_for(key: str) -> Any:
    """Refuse what is longer than 2,000 tokens to one key, and to nobody else; nobody is billed."""

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        tokens = measure(one.data, format="anthropic").tokens
        if key not in one.values("x-api-key") or one.values("anthropic-beta") or tokens <= 2_000:
            return 200, {}, b"{}"
        words = f"prompt is too long: {tokens} tokens > 2000 maximum"
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
        return 400, {}, json.dumps(error).encode()

    return answer


@pytest.mark.parametrize("learn", [True, False])
def test_a_window_that_a_provider_names_to_one_key_is_that_keys_alone(learn: bool) -> None:
    """Another key, or the same one with a wider window, is sent whole; who was refused is not again.

    Without learning the next request of that key is sent as if it were the first of all.
    """
    path, wide = PATHS["anthropic"], {"anthropic-beta": "a-1,context-1m-2025-08-07"}
    narrow = {"x-api-key": "key-a"}
    limits, sent = [], []
    with ExitStack() as stack:
        behind = stack.enter_context(recorder(_narrow_for("key-a")))
        front = stack.enter_context(gateway(behind.address, budgets={"*": "50k"}, learn=learn))
        for number, headers in enumerate((narrow, {"x-api-key": "key-b"}, {**narrow, **wide}, narrow)):
            said = [{"role": "user", "content": f"Question {number}."}, *TALK[1:]]
            body = {"model": CLAUDE, "max_tokens": 9, "messages": said}
            before = len(behind.seen)
            answer = front.ask(path, body, headers)
            assert answer.status == 200
            limits.append(int(answer.report["limit"]))
            sent.append(len(behind.seen) - before)
    assert limits[1:3] == [50_000, 50_000]
    assert max(limits[0], limits[3]) <= 2_000
    assert sent == [2, 1, 1, 1 if learn else 2]


def test_thinking_that_one_key_may_not_send_stays_in_the_requests_of_another() -> None:
    """Its signature is the account's own: what one is refused for, the other needs."""
    thought = {"type": "thinking", "thinking": "Utrecht is near.", "signature": "c2lnbmVk"}
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        refuses = "key-a" in one.values("x-api-key") and b"signature" in one.body
        return (400, {}, json.dumps(error).encode()) if refuses else (200, {}, b"{}")

    said = [TALK[0], {"role": "assistant", "content": [thought, {"type": "text", "text": "Sun."}]}, TALK[-1]]
    body = {"model": CLAUDE, "max_tokens": 9, "messages": said}
    with recorder(answer) as behind, gateway(behind.address, budgets={"*": "50k"}) as front:
        for key in ("key-a", "key-b", "key-a"):
            assert front.ask(PATHS["anthropic"], body, {"x-api-key": key}).status == 200
    assert [b"signature" in one.body for one in behind.seen] == [True, False, True, False]


@pytest.mark.parametrize("place", ["header", "query", "organization"])
def test_what_one_key_is_billed_changes_nothing_for_another(place: str) -> None:
    """Both begin alike; one is billed 2.4 times the count, the other is fitted as by a new gateway."""
    words = {"header": "Authorization", "organization": "OpenAI-Organization"}

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        tokens = round(2.4 * measure(one.data, format="openai_chat").tokens)
        return 200, {}, json.dumps({"usage": {"prompt_tokens": tokens, "completion_tokens": 1}}).encode()

    def ask(front: Running, key: str, turns: int) -> Any:
        said = [{"role": "user", "content": "hi"}, *talk(turns)[1:]]
        path = PATHS["openai_chat"] + (f"?key={key}" if place == "query" else "")
        headers = {words[place]: key} if place in words else {}
        return front.ask(path, {"model": "my-model", "messages": said}, headers).report

    given: dict[str, Any] = {"budgets": {"*": "3k"}}
    with recorder(answer) as behind, ExitStack() as stack:
        front, new = (stack.enter_context(gateway(behind.address, **given)) for _ in range(2))
        for turns in range(3, 6):
            ask(front, "key-a", turns)
        other, first, own = ask(front, "key-b", 9), ask(new, "key-b", 9), ask(front, "key-a", 9)
    assert other == first
    assert own["before"] > other["before"]  # whoever was billed is counted by that


def test_what_clients_name_is_told_in_reports_and_never_on_standard_error() -> None:
    """A pipe that nobody reads would be full of it one day, and who writes into that waits for ever.

    Contents on the server, a second attempt, and bills in shapes that nobody knows.
    """
    words = {"type": "error", "error": {"message": "prompt is too long: 9000 tokens > 700 maximum"}}
    usages: Iterator[Any] = iter([{"promptTokenCount": -5}, {"promptTokenCount": "x"}, {}])

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        if "messages" in one.target:
            is_long = len(one.data["messages"]) > 9
            return (400 if is_long else 200), {}, json.dumps(words if is_long else {}).encode()
        return 200, {}, json.dumps({"usageMetadata": next(usages)}).encode()

    with recorder(answer) as behind, gateway(behind.address, budgets={"*": "50k"}) as front:
        for number in range(3):
            body = {**body_of("gemini", TALK[-1:]), "cachedContent": f"cachedContents/{number}"}
            assert front.ask(PATHS["gemini"], body).report["held"] == "unknown"
        assert "again" in front.ask(PATHS["anthropic"], body_of("anthropic")).report
        assert front.end() == ""


def test_content_on_the_server_has_the_size_that_a_bill_told_of_it() -> None:
    """To the key whose bill it was; another may not even ask for it."""
    usage = {"promptTokenCount": 5_000, "cachedContentTokenCount": 4_900}
    said = json.dumps({"usageMetadata": usage}).encode()
    body = {**body_of("gemini", TALK[-1:]), "cachedContent": "cachedContents/1"}
    with recorder(lambda one: (200, {}, said)) as behind, gateway(behind.address) as front:
        told = [
            front.ask(PATHS["gemini"], body, {"x-goog-api-key": key}).report.get("held")
            for key in ("key-a", "key-a", "key-b")
        ]
    assert told == ["unknown", None, "unknown"]


async def _ask_in_process(app: Any, body: Any) -> None:
    """Ask an application as a server does."""
    raw = json.dumps(body).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATHS["openai_chat"],
        "raw_path": PATHS["openai_chat"].encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-length", b"%d" % len(raw))],
    }
    messages = iter([{"type": "http.request", "body": raw, "more_body": False}])
    statuses = []

    async def receive() -> Any:
        return next(messages, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    await app(scope, receive, send)
    assert statuses[0] == 200


async def _end(_: Any = None) -> Any:
    """Say that the server ends."""
    return {"type": "lifespan.shutdown"}


def _waits(address: str, bodies: list[Any], **options: Any) -> list[bool]:
    """Tell of each request whether its texts were counted where all streams wait."""
    threads: set[int] = set()

    def count_words(text: str) -> int:
        threads.add(threading.get_ident())
        return len(text.split()) + 1

    async def ask_all() -> list[bool]:
        upstream = Upstream(api="openai", url=address)
        app = make_app([upstream], budgets={"*": 9_000}, counter=count_words, **options)
        found = []
        for body in bodies:
            threads.clear()
            await _ask_in_process(app, {"model": "gpt-4o", **body})
            found.append(threading.get_ident() in threads)
        await app({"type": "lifespan"}, _end, _end)
        return found

    return asyncio.run(ask_all())


def _new_talk(number: int) -> dict[str, Any]:
    """Write a conversation whose texts nobody has counted yet."""
    return {"messages": [{**one, "content": f"{number}: {one['content']}"} for one in TALK]}


def test_only_small_plain_fits_of_a_known_model_are_made_where_all_streams_wait() -> None:
    """By bytes and by pieces; the first of a model, rules and compact take longer."""
    many = {"messages": [{"role": "user", "content": f"number {number}"} for number in range(1_000)]}
    long = {"messages": [{"role": "user", "content": "word " * 8_900 + "w" * 100_000}]}
    with recorder() as behind:
        bodies = [{}, _new_talk(1), _new_talk(2), many, long, _new_talk(3)]
        assert _waits(behind.address, bodies) == [False, False, True, False, False, True]
        for options in ({"compact": True}, {"rules": ["Answer in Dutch."]}):
            bodies = [_new_talk(4), _new_talk(5)]
            assert _waits(behind.address, bodies, **options) == [False, False]


def test_a_name_of_a_model_that_is_none_is_refused_at_once(pair: tuple[Running, Recorder]) -> None:
    """Names are looked up and remembered, and clients choose them."""
    front, behind = pair
    before = len(behind.seen)
    for length, status in ((256, 200), (257, 400), (100_000, 400)):
        body = {"model": "m" * length, "messages": TALK[-1:]}
        assert front.ask(PATHS["openai_chat"], body).status == status
    assert len(behind.seen) == before + 1


def test_no_message_of_a_conversation_is_kept_behind_its_request() -> None:
    """Where it was cut is known by a hash of the message there: a picture in it would stay for days."""
    words = "nobody else has this text"
    said = [{**one, "content": [{"type": "text", "text": f"{words}: {one['content']}"}]} for one in TALK]

    async def ask_twice(address: str) -> int:
        app = make_app([Upstream(api="openai", url=address)], budgets={"*": 1_000})
        for count_of in (len(said), len(said) - 2):
            await _ask_in_process(app, {"model": "gpt-4o", "messages": said[:count_of]})
        said.clear()
        gc.collect()
        found = sum(words in str(one) for one in gc.get_objects() if _holds_parts(one))
        await app({"type": "lifespan"}, _end, _end)
        return found

    with recorder() as behind:
        kept = asyncio.run(ask_twice(behind.address))
        assert len(behind.seen[0].data["messages"]) < len(TALK)
    assert kept == 0


def _holds_parts(one: object) -> bool:
    return type(one) is list and len(one) == 1 and type(one[0]) is dict and "text" in one[0]
