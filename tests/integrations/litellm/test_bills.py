"""What a provider says a call was billed, taken into the count of its conversation by `TrimHandler`."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from litellm.router import Router

from tests.integrations.litellm.play import play
from tests.integrations.loops import LOOPS, Loop
from tests.integrations.upstream import BUDGET_TOKENS, UNKNOWN, hold
from tests.judge.server import Provider, answered, provider
from trimtab import EstimateCounter, Fitted
from trimtab.counting import UsageBaseline, measure
from trimtab.errors import ConfigurationError
from trimtab.integrations import litellm as ours
from trimtab.integrations.litellm import TrimHandler, trim_call

PART = 1.3
"""What is billed for each token that an estimate gives."""

TRIES, SECONDS = 10, 10
"""How often a stream is asked for until LiteLLM, by a task or thread of its own, told what one was billed,
and how long that is waited for each time. It may tell of another one first."""

TALK: list[Any] = [
    {"role": role, "content": f"{turn}: " + "It is sunny in Utrecht. " * 8}
    for turn in range(6)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]


class Billing:
    """A provider that bills by tokens of its own; in a stream of chat completions where it is asked to.

    Args:
        has_parts: Whether it says how much of the input its cache knew, as few hosts do.
        is_silent: Whether it says nothing of a bill in streams, whatever it is asked.
    """

    def __init__(self, *, has_parts: bool = True, is_silent: bool = False) -> None:
        self.billed: list[int] = []
        self._has_parts, self._is_silent = has_parts, is_silent

    def __call__(self, form: str, body: dict[str, Any]) -> Any:
        """Answer a request."""
        tokens = round(PART * measure(body, counter=EstimateCounter(), format=form).tokens)
        answer = answered(form, str(body.get("model")))
        self.billed.append(tokens)
        is_asked = form != "openai_chat" or not body.get("stream") or body.get("stream_options")
        return {**answer, **self._bill(form, tokens)} if is_asked and not self._is_silent else answer

    def _bill(self, form: str, tokens: int) -> dict[str, Any]:
        if form == "gemini":
            return {"usageMetadata": {"promptTokenCount": tokens, "totalTokenCount": tokens + 1}}
        if form == "anthropic":
            said = {"input_tokens": tokens - 300, "cache_read_input_tokens": 300, "output_tokens": 1}
            return {"usage": said}
        input_name, output_name = ("prompt", "completion") if form == "openai_chat" else ("input", "output")
        told: dict[str, Any] = {
            f"{input_name}_tokens": tokens,
            f"{output_name}_tokens": 1,
            "total_tokens": tokens + 1,
        }
        if self._has_parts:
            told[f"{input_name}_tokens_details"] = {"cached_tokens": 300}
        return {"usage": told}


STREAMED: Any = {"stream": True}
ASKED: Any = {"stream": True, "stream_options": {"include_usage": True}}


def _host(served: Provider, model: str = "openai/mine") -> dict[str, Any]:
    return {"model": model, "api_base": f"{served.address}/v1", "api_key": "none", "num_retries": 0}


def _claude(served: Provider) -> dict[str, Any]:
    known: Any = {"api_base": served.address, "api_key": "none", "num_retries": 0, "max_tokens": 100}
    return {"model": "anthropic/claude-opus-4-5", **known}


def _gemini(served: Provider) -> dict[str, Any]:
    known: Any = {"api_base": f"{served.address}/v1beta", "api_key": "none", "num_retries": 0}
    return {"model": "gemini/gemini-2.5-flash", **known}


def _router(served: Provider) -> Any:
    return Router(model_list=[{"model_name": "fast", "litellm_params": _host(served)}], num_retries=0)


BRIDGED = "openai/responses/mine"
"""A chat completion that LiteLLM sends by Responses."""

Way = Callable[[Provider], Any]

WAYS: dict[str, Way] = {
    "chat": lambda at: litellm.acompletion(messages=TALK, **_host(at)),
    "chat, streamed": lambda at: litellm.acompletion(messages=TALK, **_host(at), **ASKED),
    "chat to Claude": lambda at: litellm.acompletion(messages=TALK, **_claude(at)),
    "chat to Claude, streamed": lambda at: litellm.acompletion(messages=TALK, **_claude(at), **STREAMED),
    "chat to Gemini": lambda at: litellm.acompletion(messages=TALK, **_gemini(at)),
    "chat by Responses": lambda at: litellm.acompletion(messages=TALK, **_host(at, BRIDGED)),
    "chat by Responses, streamed": lambda at: litellm.acompletion(
        messages=TALK, **_host(at, BRIDGED), **ASKED
    ),
    "messages": lambda at: litellm.anthropic_messages(messages=TALK, **_claude(at)),
    "messages, streamed": lambda at: litellm.anthropic_messages(messages=TALK, **_claude(at), **STREAMED),
    "messages to a host": lambda at: litellm.anthropic_messages(messages=TALK, max_tokens=9, **_host(at)),
    "responses": lambda at: litellm.aresponses(input=TALK, **_host(at)),
    "responses, streamed": lambda at: litellm.aresponses(input=TALK, **_host(at), **STREAMED),
    "responses of Claude": lambda at: litellm.aresponses(input=TALK, **_claude(at)),
    "responses of Claude, streamed": lambda at: litellm.aresponses(input=TALK, **_claude(at), **STREAMED),
    "router": lambda at: _router(at).acompletion("fast", TALK),
    "router, streamed": lambda at: _router(at).acompletion("fast", TALK, **ASKED),
    "ours": lambda at: ours.acompletion(messages=TALK, **_host(at)),
    "ours, messages": lambda at: ours.anthropic_messages(messages=TALK, **_claude(at)),
    "ours, responses": lambda at: ours.aresponses(input=TALK, **_host(at)),
    "not awaited": lambda at: ours.completion(messages=TALK, **_host(at)),
    "not awaited, to Claude": lambda at: ours.completion(messages=TALK, **_claude(at)),
    "not awaited, by Responses": lambda at: ours.completion(messages=TALK, **_host(at, BRIDGED)),
    "not awaited, responses": lambda at: ours.responses(input=TALK, **_host(at)),
    "not awaited, responses, streamed": lambda at: ours.responses(input=TALK, **_host(at), **STREAMED),
    "not awaited, responses of Claude": lambda at: ours.responses(input=TALK, **_claude(at)),
    "not awaited, router": lambda at: trim_call(_router(at).completion)("fast", TALK),
    "not awaited, router, streamed": lambda at: trim_call(_router(at).completion)("fast", TALK, **ASKED),
}
"""Every way to call that a handler fits; what a stream was billed LiteLLM may tell later."""

AT_ITS_END: dict[str, Way] = {
    "ours, streamed": lambda at: ours.acompletion(messages=TALK, **_host(at), **ASKED),
    "ours, to Claude, streamed": lambda at: ours.acompletion(messages=TALK, **_claude(at), **STREAMED),
    "not awaited, streamed": lambda at: ours.completion(messages=TALK, **_host(at), **ASKED),
    "not awaited, to Claude, streamed": lambda at: ours.completion(messages=TALK, **_claude(at), **STREAMED),
    "not awaited, by Responses, streamed": lambda at: ours.completion(
        messages=TALK, **_host(at, BRIDGED), **ASKED
    ),
    "not awaited, responses of Claude, streamed": lambda at: ours.responses(
        input=TALK, **_claude(at), **STREAMED
    ),
}
"""Streams whose events are read: the bill is known as soon as the last is heard."""


class Listener(CustomLogger):
    """Hears what LiteLLM tells its callbacks, and by what it logs the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []
        self.logs: list[Any] = []
        self.heard = threading.Event()

    async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> None:
        """Note what a call is logged with, and do not keep it."""
        self.logs.append(weakref.ref(kwargs["litellm_logging_obj"]))

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Note what a call was billed, or what LiteLLM makes of it."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Do the same for a call that is not awaited."""
        self.told.append(response_obj.usage)
        self.heard.set()


LISTENER = Listener()
"""LiteLLM tells of streams the first of its class that it ever met, whatever its callbacks are now."""


@pytest.fixture(autouse=True)
def listener() -> Iterator[Listener]:
    """One that has heard nothing yet, and no callbacks left from test to test."""
    before = [*litellm.callbacks]
    LISTENER.told.clear()
    LISTENER.logs.clear()
    yield LISTENER
    litellm.callbacks = before


async def _hear(asked: Any, listener: Listener | None = None) -> None:
    """Wait for an answer, and hear a stream to its end; with a listener until LiteLLM has told of it."""
    if listener is not None:
        listener.heard.clear()
    answer = await asked
    if hasattr(answer, "__aiter__"):
        async for _ in answer:
            pass
    if listener is not None:
        await asyncio.to_thread(listener.heard.wait, SECONDS)


def _ask(way: Way, served: Provider, listener: Listener | None = None) -> None:
    """Make a call of a program, and do the same."""
    if listener is not None:
        listener.heard.clear()
    asked = way(served)
    if hasattr(asked, "__await__"):
        asyncio.run(_hear(asked, listener))
        return
    if hasattr(asked, "__next__"):
        for _ in asked:
            pass
    if listener is not None:
        listener.heard.wait(SECONDS)


def _hold_bill(seen: list[Fitted[Any]], billed: int) -> None:
    """Hold the latest count to the bill of the same messages, but for what they are rounded by."""
    report = seen[-1].report
    assert "calibrated" in report.counter
    assert abs(report.tokens_after - billed) <= 1 + len(TALK) // 2
    assert abs(seen[0].report.tokens_after - billed) > 100


@pytest.mark.parametrize("way", WAYS)
def test_what_was_billed_is_taken_into_the_count(way: str, listener: Listener) -> None:
    """By every way to call, for the conversation that goes on."""
    seen: list[Fitted[Any]] = []
    billing = Billing()
    with provider(billing) as served:
        litellm.callbacks = [TrimHandler(5_000, on_fitted=seen.append), listener]
        _ask(WAYS[way], served)
        for _ in range(TRIES if "streamed" in way else 1):
            _ask(WAYS[way], served, listener if "streamed" in way else None)
            if "calibrated" in seen[-1].report.counter:
                break
    _hold_bill(seen, billing.billed[0])


@pytest.mark.parametrize("has_parts", [True, False])
@pytest.mark.parametrize("way", AT_ITS_END)
def test_a_stream_whose_events_are_read_is_known_when_it_ends(way: str, *, has_parts: bool) -> None:
    """Also of a host that says the sum alone; the answer is LiteLLM's own object, with all it has."""
    seen: list[Fitted[Any]] = []
    billing = Billing(has_parts=has_parts)
    with provider(billing) as served:
        litellm.callbacks = [TrimHandler(5_000, on_fitted=seen.append)]
        for _ in range(2):
            _ask(AT_ITS_END[way], served)
        answer = ours.completion(messages=TALK, **_host(served), **ASKED)
        assert isinstance(answer, litellm.CustomStreamWrapper)
        told = [*answer][-1]
        whole: Any = litellm.stream_chunk_builder([*answer.chunks])
    assert told.usage.prompt_tokens == whole.usage.prompt_tokens == billing.billed[-1]
    assert whole.choices[0].message.content == "ok"
    _hold_bill(seen[:2], billing.billed[0])


def test_what_litellm_counts_itself_is_no_bill(listener: Listener) -> None:
    """Where no event of a stream said what was billed, LiteLLM tells its callbacks a count of its own."""
    seen: list[Fitted[Any]] = []

    async def run(served: Provider) -> None:
        for call in (litellm.acompletion, ours.acompletion):
            for asked in (STREAMED, *[ASKED] * 4):
                await _hear(call(messages=TALK, **_host(served), **asked), listener)

    with provider(Billing(is_silent=True)) as served:
        litellm.callbacks = [TrimHandler(5_000, on_fitted=seen.append), listener]
        asyncio.run(run(served))
        for asked in (STREAMED, ASKED, ASKED):
            _ask(lambda at, asked=asked: ours.completion(messages=TALK, **_host(at), **asked), served)
    assert sum(usage.prompt_tokens > 400 for usage in listener.told) > 4
    assert [one.report.counter for one in seen] == ["estimate"] * 13


def test_each_handler_takes_in_the_bill_of_a_stream(listener: Listener) -> None:
    """LiteLLM tells one of several of the same kind."""
    first, second = list[Fitted[Any]](), list[Fitted[Any]]()
    with provider(Billing()) as served:
        handlers = [TrimHandler(5_000, on_fitted=one.append) for one in (first, second)]
        litellm.callbacks = [*handlers, listener]
        for _ in range(TRIES):
            _ask(WAYS["chat, streamed"], served, listener)
            if "calibrated" in first[-1].report.counter:
                break
    assert ["calibrated" in one[-1].report.counter for one in (first, second)] == [True, True]


@pytest.mark.parametrize("asked", [{}, ASKED], ids=["plain", "streamed"])
def test_a_bill_is_that_of_the_model_which_answered(asked: Any, listener: Listener) -> None:
    """What a Router falls back to says nothing of the model that failed."""
    seen: list[Fitted[Any]] = []
    billing = Billing()

    def answer(form: str, body: dict[str, Any]) -> Any:
        return {} if body["model"] == "broken" else billing(form, body)

    async def run(served: Provider) -> None:
        groups = [
            {"model_name": name, "litellm_params": _host(served, f"openai/{name}")}
            for name in ("broken", "whole")
        ]
        router: Any = Router(
            model_list=groups, num_retries=0, fallbacks=[{"broken": ["whole"]}], disable_cooldowns=True
        )
        for _ in range(TRIES):
            await _hear(router.acompletion("broken", TALK, **asked), listener)
            if "calibrated" in seen[-1].report.counter:
                break

    with provider(answer) as served:
        litellm.callbacks = [TrimHandler(5_000, on_fitted=seen.append), listener]
        asyncio.run(run(served))
    counters = [one.report.counter for one in seen]
    assert set(counters[::2]) == {"estimate"}
    assert counters[-1] == "estimate, calibrated"


async def _mine(*, address: str, **arguments: Any) -> Any:
    return await litellm.acompletion(model=f"openai/{UNKNOWN}", api_base=f"{address}/v1", **arguments)


@pytest.mark.parametrize(
    ("loop", "part", "reuse"),
    [
        pytest.param(LOOPS[0], 0.8, 0.75, id="chat-of-fewer-tokens"),
        pytest.param(LOOPS[1], 1.25, 0.65, id="agent-of-more-tokens"),
        pytest.param(LOOPS[2], 1.25, 0.65, id="huge-of-more-tokens"),
    ],
)
def test_a_loop_is_held_to_what_it_is_billed(loop: Loop, part: float, reuse: float) -> None:
    """A model whose tokens nobody counts: no request is billed above the budget, and the cut holds.

    A quarter more is charged for each message, so that fewer fit, and less of a request stays: a budget that
    is a quarter smaller reuses as much.
    """
    score, _ = play(loop, _mine, TrimHandler(BUDGET_TOKENS), charges=(None, part))
    hold(score, loop, reuse=reuse)


def test_calls_that_are_over_are_forgotten(listener: Listener) -> None:
    """What LiteLLM logs them with, and with it all they were given, is kept by nobody."""

    async def run(served: Provider) -> None:
        for asked in ({}, ASKED) * 5:
            await _hear(litellm.acompletion(messages=TALK, **_host(served), **asked))
        for _ in range(200):
            gc.collect()
            if all(log() is None for log in listener.logs):
                return
            await asyncio.sleep(0)

    with provider(Billing()) as served:
        litellm.callbacks = [TrimHandler(5_000), listener]
        asyncio.run(run(served))
    assert len(listener.logs) == 10
    assert [log for log in listener.logs if log() is not None] == []


def test_a_baseline_of_ones_own_is_refused() -> None:
    """It is of one conversation, and a handler is asked about many."""
    with pytest.raises(ConfigurationError, match="counter is a UsageBaseline, which is for one conversation"):
        TrimHandler(5_000, counter=UsageBaseline(EstimateCounter()))
