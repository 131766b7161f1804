"""OpenAI's clients with `retry_overflow`: a call that is refused as too long is sent once more, shorter."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import openai
import pytest

from tests.integrations.openai.play import async_client_of, client_of
from tests.integrations.refusing import LIMIT_TOKENS, WORDS, refusing
from tests.loopback import JSONHandler, loopback
from trimtab import Budget, CharCounter, ConfigurationError, Context, EstimateCounter, Fitted
from trimtab.integrations.openai import with_budget

TALK: list[Any] = [
    {"role": role, "content": f"{turn}: " + "It is sunny in Utrecht. " * 20}
    for turn in range(30)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]
BUDGET = 30_000
"""Far more than the server takes, as a window is that nobody told of."""

SILENT = [name for name in WORDS if "{" not in WORDS[name]]
"""Who does not say how much is too much."""


def _limit(who: str) -> int:
    """Say what a server takes: of those that say nothing a little more than half of the first request."""
    return 5_000 if who in SILENT else LIMIT_TOKENS


def _chat(client: Any, messages: Any = TALK, **options: Any) -> Any:
    return client.chat.completions.create(model="gpt-4o", messages=messages, **options)


def _items(client: Any, items: Any = TALK, **options: Any) -> Any:
    return client.responses.create(model="gpt-5", input=items, **options)


@pytest.mark.parametrize("ask", [_chat, _items], ids=["chat", "responses"])
@pytest.mark.parametrize("who", WORDS)
def test_a_call_that_is_too_long_is_sent_once_more(who: str, ask: Any, caplog: Any) -> None:
    """It fits by the numbers of the error, or is half as long, and all who look on are told."""
    seen: list[Fitted[Any]] = []
    with (
        refusing(WORDS[who], limit_tokens=_limit(who)) as served,
        caplog.at_level(logging.WARNING, "trimtab.integrations"),
    ):
        client = with_budget(client_of(served), BUDGET, retry_overflow=True, on_fitted=seen.append)
        ask(client)
    assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
    whole, sent = served.sizes
    assert whole > served.limit_tokens >= sent > served.limit_tokens // 4
    first, second = (one.report.notes for one in seen)
    assert second[-1].startswith("Sent once more, shorter")
    assert not any(note.startswith("Sent once more") for note in first)
    assert caplog.messages == [second[-1]]


@pytest.mark.parametrize(
    "budget", [6_000, BUDGET, Budget(BUDGET), Context(BUDGET).add("history", [])], ids=str
)
@pytest.mark.parametrize("words", [WORDS["openai"], WORDS["vllm"]], ids=["input", "with the answer"])
def test_what_the_error_says_is_known_in_the_next_call(words: str, budget: Any) -> None:
    """The server charges half as much again as is counted, and takes less than was thought."""
    more = [*TALK, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Really?"}]
    with refusing(words, limit_tokens=6_000) as served:
        counter = CharCounter(5.5)
        client = with_budget(client_of(served), budget, counter=counter, retry_overflow=True)
        for messages in (TALK, more, [*more, *more[-2:]]):
            _chat(client, messages, max_tokens=100)
    assert served.refused == 1
    assert len(served.bodies) == 4
    assert all(served.limit_tokens >= size > served.limit_tokens // 8 for size in served.sizes[1:])


def test_what_a_model_takes_is_known_to_all_conversations() -> None:
    """The window of a model that nobody knows is heard once."""
    with refusing(WORDS["vllm"]) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        _chat(client, max_tokens=100)
        _chat(client, [{"role": "user", "content": "Another conversation."}, *TALK[1:]], max_tokens=100)
    assert (served.refused, len(served.bodies)) == (1, 3)


def test_it_is_off_unless_it_is_asked_for() -> None:
    """A call costs time and may cost money; who does not ask for it sees the error."""
    with refusing(WORDS["openai"]) as served:
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            _chat(with_budget(client_of(served), BUDGET))
        assert len(served.bodies) == 1
        with pytest.raises(ConfigurationError, match="retry_overflow"):
            with_budget(client_of(served), BUDGET, retry_overflow=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        "Invalid value: 'assistent'.",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 9000.",
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
    ],
)
def test_an_error_that_is_not_known_is_the_callers(words: str) -> None:
    """It is raised as it was, and nothing is sent again."""
    with refusing(words) as served:
        with pytest.raises(openai.BadRequestError) as caught:
            _chat(with_budget(client_of(served), BUDGET, retry_overflow=True))
        assert len(served.bodies) == 1
        assert not getattr(caught.value, "__notes__", [])


def test_what_would_be_the_same_is_not_sent_again() -> None:
    """The server reads more than the request shows: nothing here could be shorter, and the error says so."""
    small = TALK[-3:]
    with refusing(WORDS["openai"], refuses=lambda _: True) as served:
        with pytest.raises(openai.BadRequestError) as caught:
            _chat(with_budget(client_of(served), BUDGET, retry_overflow=True), small)
        assert len(served.bodies) == 1
    assert "did not send this call again" in caught.value.__notes__[0]


def test_it_is_sent_at_most_twice() -> None:
    """The second error is raised, the provider's own, with a note."""
    with refusing(WORDS["openai"], refuses=lambda _: True) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        with pytest.raises(openai.BadRequestError) as caught:
            _chat(client)
        assert len(served.bodies) == 2
        assert "trimtab sent this call twice" in caught.value.__notes__[-1]
        with pytest.raises(openai.BadRequestError):
            list(_chat(client, stream=True))
        assert len(served.bodies) == 3  # it fits what the error before said: there is nothing else to send


def test_what_would_not_fit_is_not_sent_again() -> None:
    """The error of the provider is raised, and its note says what needs the room."""
    with refusing(WORDS["openai"], limit_tokens=50) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        with pytest.raises(openai.BadRequestError) as caught:
            _chat(client, [{"role": "user", "content": "sunny " * 500}])
        assert len(served.bodies) == 1
        assert "would not fit" in caught.value.__notes__[-1]


def _raw(client: Any) -> Any:
    return client.chat.completions.with_raw_response.create(model="gpt-4o", messages=TALK).parse()


def _helper(client: Any) -> Any:
    with client.chat.completions.stream(model="gpt-4o", messages=TALK) as stream:
        return stream.get_final_completion()


@pytest.mark.parametrize("in_stream", [False, True], ids=["status", "first event"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: list(_chat(client, stream=True)),
        lambda client: list(_items(client, stream=True)),
        lambda client: _chat(client.with_options(timeout=9)),
        _raw,
        _helper,
    ],
    ids=["stream", "responses", "with_options", "raw", "helper"],
)
def test_every_way_to_ask_is_sent_once_more(ask: Any, in_stream: bool) -> None:
    """Some servers say it with a status, some with the first event of the stream."""
    with refusing(WORDS["vllm"], in_stream=in_stream) as served:
        client = with_budget(client_of(served), BUDGET, retry_overflow=True)
        assert ask(client)
    assert (len(served.bodies), served.refused) == (2, 1)
    assert served.sizes[1] <= LIMIT_TOKENS


@pytest.mark.parametrize("in_stream", [False, True], ids=["status", "first event"])
def test_async_calls_and_streams_are_sent_once_more(in_stream: bool) -> None:
    """Several at once, and one whose counter is awaited."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(one["content"])) // 4 for one in messages)

    async def ask(bare: Any, **options: Any) -> None:
        await _chat(with_budget(bare, BUDGET, retry_overflow=True, **options))
        client = with_budget(bare, BUDGET, retry_overflow=True, **options)
        assert [one async for one in await _chat(client, stream=True)]

    async def run(served: Any) -> None:
        async with async_client_of(served) as bare:
            await asyncio.gather(*(ask(bare) for _ in range(3)), ask(bare, counter=count))

    with refusing(WORDS["openai"], in_stream=in_stream) as served:
        asyncio.run(run(served))
    assert served.refused == 8
    assert len(served.bodies) == 16


def test_a_stream_that_has_begun_is_not_begun_anew() -> None:
    """What came is the caller's already."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "gpt-4o"}
    said = {**chunk, "choices": [{"index": 0, "delta": {"content": "It"}, "finish_reason": None}]}
    error = {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}
    asked = []

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            asked.append(self.received())
            self.stream("".join(f"data: {json.dumps(one)}\n\n" for one in (said, error)))

    class Served:
        address = ""

    with loopback(Answering) as Served.address:
        stream = _chat(with_budget(client_of(Served), BUDGET, retry_overflow=True), stream=True)
        assert next(stream).choices[0].delta.content == "It"
        with pytest.raises(openai.APIError, match="too long"):
            next(stream)
    assert len(asked) == 1


def _list_counter(messages: list[Any]) -> int:
    return sum(len(str(one["content"])) // 4 for one in messages)


@pytest.mark.parametrize(
    ("budget", "options"),
    [
        (Budget(BUDGET), {}),
        (Context(BUDGET, model="gpt-4o").add("notes", "Be brief.").add("history", []), {}),
        (BUDGET, {"counter": _list_counter}),
        (BUDGET, {"counter": EstimateCounter()}),
        (BUDGET, {"strategy": "agent"}),
    ],
    ids=["Budget", "Context", "own counter", "estimate", "agent"],
)
def test_whatever_counts_and_cuts(budget: Any, options: Any) -> None:
    """What nobody counted is taken for what stays."""
    with refusing(WORDS["openai"]) as served:
        _chat(with_budget(client_of(served), budget, retry_overflow=True, **options))
    assert (len(served.bodies), served.refused) == (2, 1)
    assert served.sizes[1] <= LIMIT_TOKENS
