"""`TrimHandler` in calls of LiteLLM's SDK and Router: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger

from tests.integrations.answers import Whole, hold_answer
from tests.integrations.litellm.play import KEYS, Chat, Items, Messages, play, sdk
from tests.integrations.loops import LOOPS, Loop, chat
from tests.integrations.upstream import BUDGET_TOKENS, hold
from tests.judge.server import Provider, answered, provider
from trimtab import Budget, Context, Fitted, counter_for
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations import litellm as ours
from trimtab.integrations.litellm import TrimHandler, WindowExceededError, trim_call

GPT: Any = {"model": "gpt-4o"}
"""Counts every model as the judge's server does, so that one yardstick holds for all."""


def _messages_of(loop: Loop) -> int:
    """Count what is said in a loop: system text, questions, answers of the model, results."""
    steps = [step for question in loop.questions for step in question.steps]
    return 1 + len(loop.questions) + len(steps) + sum(len(getattr(step, "places", ())) for step in steps)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The history stays whole, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, sdk, TrimHandler(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert len(seen) == loop.model_calls


async def _claude(*, address: str, **arguments: Any) -> Any:
    return await litellm.acompletion(model="anthropic/claude-opus-4-5", api_base=address, **arguments)


async def _gemini(*, address: str, **arguments: Any) -> Any:
    address = f"{address}/v1beta"
    return await litellm.acompletion(model="gemini/gemini-2.5-flash", api_base=address, **arguments)


async def _messages(*, address: str, **arguments: Any) -> Any:
    return await litellm.anthropic_messages(model="anthropic/claude-opus-4-5", api_base=address, **arguments)


async def _messages_by_openai(*, address: str, **arguments: Any) -> Any:
    return await litellm.anthropic_messages(model="openai/gpt-4o", api_base=f"{address}/v1", **arguments)


async def _items(*, address: str, **arguments: Any) -> Any:
    return await litellm.aresponses(model="openai/gpt-4o", api_base=f"{address}/v1", **arguments)


async def _items_by_claude(*, address: str, **arguments: Any) -> Any:
    return await litellm.aresponses(model="anthropic/claude-opus-4-5", api_base=address, **arguments)


async def _bridged(*, address: str, **arguments: Any) -> Any:
    call = {"model": "openai/gpt-5.4", "reasoning_effort": "low", "api_base": f"{address}/v1"}
    return await litellm.acompletion(**call, **arguments)


async def _sync_bridged(*, address: str, **arguments: Any) -> Any:
    return ours.completion(model="openai/responses/gpt-4o", api_base=f"{address}/v1", **arguments)


async def _sync_items(*, address: str, **arguments: Any) -> Any:
    return ours.responses(model="openai/gpt-4o", api_base=f"{address}/v1", **arguments)


async def _sync_items_by_claude(*, address: str, **arguments: Any) -> Any:
    return ours.responses(model="anthropic/claude-opus-4-5", api_base=address, **arguments)


async def _router(*, address: str, **arguments: Any) -> Any:
    return await _router_of(address).acompletion("fast", **arguments)


async def _sync(*, address: str, **arguments: Any) -> Any:
    messages = arguments.pop("messages")
    return ours.completion("openai/gpt-4o", messages, api_base=f"{address}/v1", **arguments)


async def _by_position(*, address: str, **arguments: Any) -> Any:
    messages = arguments.pop("messages")
    return await ours.acompletion("openai/gpt-4o", messages, api_base=f"{address}/v1", **arguments)


async def _streamed(*, address: str, **arguments: Any) -> Any:
    chunks = [one async for one in await sdk(address=address, stream=True, **arguments)]
    return litellm.stream_chunk_builder(chunks)


def _router_of(address: str, **settings: Any) -> Any:
    deployed = {"model": "openai/my-deployment", "api_base": f"{address}/v1", "api_key": "none"}
    fast = {"model_name": "fast", "litellm_params": deployed, "model_info": {"base_model": "gpt-4o"}}
    return litellm.Router(model_list=[fast], num_retries=0, **settings)


@pytest.mark.parametrize(
    ("send", "talk"),
    [
        pytest.param(_claude, Chat, id="chat-to-claude"),
        pytest.param(_gemini, Chat, id="chat-to-gemini"),
        pytest.param(_bridged, Chat, id="chat-to-responses"),
        pytest.param(_messages, Messages, id="messages"),
        pytest.param(_messages_by_openai, Messages, id="messages-to-openai"),
        pytest.param(_items, Items, id="responses"),
        pytest.param(_items_by_claude, Items, id="responses-to-claude"),
        pytest.param(_router, Chat, id="router"),
        pytest.param(_sync, Chat, id="sync-by-position"),
        pytest.param(_sync_bridged, Chat, id="sync-to-responses"),
        pytest.param(_sync_items, Items, id="sync-responses"),
        pytest.param(_sync_items_by_claude, Items, id="sync-responses-to-claude"),
        pytest.param(_by_position, Chat, id="by-position"),
        pytest.param(_streamed, Chat, id="streamed"),
    ],
)
def test_every_way_to_call_is_fitted_once_in_the_form_it_is_sent_in(send: Any, talk: type[Chat]) -> None:
    """Also where LiteLLM writes the messages in another provider's form, by another of its own calls."""
    seen: list[Any] = []
    handler = TrimHandler(BUDGET_TOKENS, on_fitted=seen.append, **GPT)
    score, _ = play(chat(), send, handler, talk=talk(), questions=12)
    assert (score.requests, score.invalid, score.over, score.blind) == (48, [], [], [])
    assert len(score.fills) > 25
    assert score.fill > 0.65
    assert len(seen) == 48


def test_a_counter_may_be_awaited() -> None:
    """The hook is async, and so may be what counts for it."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    score, _ = play(chat(), sdk, TrimHandler(BUDGET_TOKENS, counter=count), questions=12)
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10


def _talk(turns: int) -> list[Any]:
    said: list[Any] = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        function = {"name": "look", "arguments": "{}"}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        said += [
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "sun " * 40},
            {"role": "assistant", "content": "It is sunny."},
        ]
    return [*said, {"role": "user", "content": "And now?"}]


@pytest.fixture
def served() -> Iterator[Provider]:
    """A provider that judges, and no callbacks left from test to test."""
    with provider() as server:
        yield server
    litellm.callbacks = []


class Listener(CustomLogger):
    """Notes the messages that the callbacks of LiteLLM are handed."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> None:
        """Note the messages of a call."""
        self.heard.append(kwargs["messages"])


def _handed(handler: TrimHandler, messages: Any, **arguments: Any) -> tuple[list[Any], list[Any]]:
    """Call LiteLLM's own double of a model; returns what our callback was handed, and what it hands on."""
    before, after = Listener(), Listener()
    litellm.callbacks = [before, handler, after]
    call = {"model": "openai/gpt-4o", "mock_response": "done", **KEYS, **arguments}
    try:
        asyncio.run(litellm.acompletion(messages=messages, **call))
    finally:
        litellm.callbacks = []
    [came], [given] = before.heard, after.heard
    return came, given


def _fitted(handler: TrimHandler, messages: Any, **arguments: Any) -> list[Any]:
    return _handed(handler, messages, **arguments)[1]


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """Those LiteLLM hands to its callbacks, which are copies already; the caller's list keeps all of it."""
    seen: list[Fitted[Any]] = []
    talk = _talk(30)
    came, given = _handed(TrimHandler(600, on_fitted=seen.append), talk)
    assert came == talk == _talk(30)
    assert seen[0].changed == []
    assert all(any(one is other for other in came) for one in given)
    calls = [call["id"] for one in given for call in one.get("tool_calls", ())]
    assert calls == [one["tool_call_id"] for one in given if one["role"] == "tool"]
    assert 3 < len(given) < len(talk)


def test_what_is_shortened_is_a_copy() -> None:
    """The caller's message is as it was."""
    talk = _talk(1)
    talk[3]["content"] = "sun " * 900
    given = _fitted(TrimHandler(500), talk)
    assert len(talk[3]["content"]) == 3_600 > len(given[3]["content"]) > 100


def test_what_is_sent_beside_the_messages_is_counted() -> None:
    """Tools, functions as they were before tools, and the schema of the answer."""
    seen: list[Fitted[Any]] = []
    handler = TrimHandler(900, on_fitted=seen.append)
    schema = {"type": "object", "properties": {"place": {"type": "integer"}}}
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    _fitted(handler, _talk(0))
    _fitted(handler, _talk(0), tools=[tool])
    _fitted(handler, _talk(0), functions=[tool["function"]])
    _fitted(handler, _talk(0), response_format=asked)
    plain, *others = [fitted.report.tokens_after for fitted in seen]
    assert len(others) == 3
    assert all(tokens > plain for tokens in others)


SCHEMA = {"type": "json_schema", "schema": Whole.model_json_schema()}


@pytest.mark.parametrize(
    ("call", "asked", "model", "most"),
    [
        pytest.param("chat", {"response_format": Whole}, "openai/gpt-4o", 1.01, id="gpt"),
        pytest.param("chat", {"response_format": Whole}, "openai/responses/gpt-4o", 1.01, id="bridged"),
        pytest.param("items", {"text_format": Whole}, "openai/gpt-4o", 1.01, id="responses"),
        pytest.param(
            "items", {"text": {"format": {**SCHEMA, "name": "x"}}}, "openai/gpt-4o", 1.01, id="text"
        ),
        pytest.param("chat", {"response_format": Whole}, "anthropic/claude-opus-4-5", 1.02, id="schema"),
        pytest.param(
            "chat", {"response_format": Whole}, "anthropic/claude-3-5-haiku-20241022", 1.4, id="forced"
        ),
        pytest.param("messages", {"output_format": SCHEMA}, "anthropic/claude-opus-4-5", 1.01, id="messages"),
        pytest.param("chat", {"response_format": Whole}, "gemini/gemini-2.5-flash", 1.01, id="gemini"),
    ],
)
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(
    call: str, asked: Any, model: str, most: float
) -> None:
    """As a schema, or as a function that is forced; where that goes by the model, the dearer counts.

    For Claude that is the schema, which is charged with its indents, and a function without.
    """
    seen: list[Fitted[Any]] = []
    calls: Any = {
        "chat": litellm.acompletion,
        "items": litellm.aresponses,
        "messages": litellm.anthropic_messages,
    }
    talk = {"input" if call == "items" else "messages": [{"role": "user", "content": "And now?"}]}
    named = {"model": model, "max_tokens": 9, "api_key": "k", "num_retries": 0}
    maker, _, name = model.partition("/")
    if call == "items":
        named.pop("max_tokens")
    with provider() as server:
        paths = {"openai": "/v1", "anthropic": "", "gemini": f"/v1beta/models/{name}"}
        litellm.callbacks = [TrimHandler(4_000, on_fitted=seen.append)]
        try:
            asyncio.run(calls[call](**named, **talk, **asked, api_base=f"{server.address}{paths[maker]}"))
        finally:
            litellm.callbacks = []
    hold_answer(seen[0], server.bodies[0], model=model.rpartition("/")[2], most=most)


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the call's model; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        _fitted(TrimHandler(budget, on_fitted=seen.append), _talk(30))
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(ConfigurationError, match="is unknown"):
        _fitted(TrimHandler("80%"), _talk(3), model="openai/mine")
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        TrimHandler(["80%"])  # type: ignore[arg-type]


LLAMA = "fireworks_ai/accounts/fireworks/models/llama-v3p1-70b-instruct"
"""LiteLLM lists a window and an output limit of 131,072 tokens each; trimtab knows no window of a host's."""


@pytest.mark.parametrize(
    ("model", "info", "window_tokens", "whole_tokens"),
    [
        pytest.param("openai/gpt-4o", {}, 128_000, 128_000 - 16_384, id="by-name"),
        pytest.param("azure/mine", {"base_model": "gpt-4o"}, 128_000, 128_000 - 16_384, id="base-model"),
        pytest.param("azure/mine", {"max_input_tokens": 50_000}, 50_000, 50_000, id="said-of-the-deployment"),
        pytest.param("azure/gpt-4o", {"max_input_tokens": 50_000}, 50_000, 50_000, id="said-of-a-known-one"),
        pytest.param(LLAMA, {}, 131_072, 131_072 // 2, id="in-litellms-list"),
    ],
)
def test_the_deployment_decides_the_window(
    model: str, info: Any, window_tokens: int, whole_tokens: int
) -> None:
    """Its own words first, then what trimtab knows of the model, then what LiteLLM lists.

    A share is one of the window, and no budget is the window less what the answer may take.
    """
    seen: list[Any] = []
    for budget in ("10%", None):
        _fitted(TrimHandler(budget, on_fitted=seen.append), _talk(3), model=model, model_info=info)
    assert [one.report.input_tokens for one in seen] == [window_tokens // 10, whole_tokens]


def test_a_context_gives_its_blocks_to_each_call() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = _talk(30)
    given = _fitted(TrimHandler(context), talk)
    assert sum("Utrecht" in str(one) for one in given) == 1
    assert given[-1] == talk[-1]
    assert len(given) < len(talk)


def _where(send: str, address: str) -> None:
    """Ask where the user lives, by a call that LiteLLM writes as another one, or asks about twice."""
    question: Any = [{"role": "user", "content": "Where do I live?"}]
    call: Any = {"model": "openai/gpt-4o", "api_base": f"{address}/v1", **KEYS}
    if send == "anthropic_messages":
        asyncio.run(litellm.anthropic_messages(messages=question, max_tokens=100, **call))
    elif send == "responses":
        ours.responses(input=question, **call)
    else:
        ours.completion(messages=question, **{**call, "model": "openai/responses/gpt-4o"})


@pytest.mark.parametrize("send", ["anthropic_messages", "completion", "responses"])
def test_a_context_is_put_in_once_where_a_call_is_translated(served: Provider, send: str) -> None:
    """LiteLLM asks its callbacks again for the call it writes a request as, also where ours was called."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    litellm.callbacks = [TrimHandler(context)]
    _where(send, served.address)
    [(form, body)] = served.bodies
    assert (form, str(body).count("Utrecht")) == ("openai_responses", 1)


@pytest.mark.parametrize("send", ["anthropic_messages", "completion", "responses"])
@pytest.mark.parametrize("place", ["beside", "block"])
def test_the_system_text_of_a_context_is_sent(served: Provider, send: str, place: str) -> None:
    """Also where a call keeps it in an argument of its own, that nobody gave."""
    context = Context(Budget(900), model="gpt-4o", system="Be brief." if place == "beside" else None)
    if place == "block":
        context.add("system", "Be brief.", pinned=True)
    litellm.callbacks = [TrimHandler(context.add("history", []))]
    _where(send, served.address)
    [(_, body)] = served.bodies
    assert str(body).count("Be brief.") == 1


def test_a_text_alone_stays_a_text(served: Provider) -> None:
    """The Responses API takes one in place of items."""
    litellm.callbacks = [TrimHandler(900)]
    address = f"{served.address}/v1"
    asyncio.run(litellm.aresponses(model="openai/gpt-4o", input="Hello", api_base=address, **KEYS))
    assert served.bodies[0][1]["input"] == "Hello"


def test_a_call_that_no_callback_sees_is_an_error_or_has_a_function_here(served: Provider) -> None:
    """By position: LiteLLM's own call is refused, ours is sent; without a handler ours is refused."""
    arguments: Any = {"api_base": f"{served.address}/v1", **KEYS}
    litellm.callbacks = [TrimHandler(400)]
    with pytest.raises(ConfigurationError, match=r"acompletion got its messages by position"):
        asyncio.run(litellm.acompletion("openai/gpt-4o", _talk(30), **arguments))
    assert served.bodies == []
    ours.responses([{"role": "user", "content": "Hello"}], "openai/gpt-4o", **arguments)
    trim_call(_router_of(served.address).completion)("fast", _talk(30))
    assert len(served.bodies[1][1]["messages"]) < 30
    litellm.callbacks = []
    with pytest.raises(ConfigurationError, match=r"no TrimHandler in litellm\.callbacks"):
        ours.completion("openai/gpt-4o", _talk(30), **arguments)
    with pytest.raises(ConfigurationError, match="format must be one of"):
        trim_call(litellm.completion, format="chat")


def test_a_call_that_is_sent_as_it_was_given_is_warned_of(served: Provider) -> None:
    """LiteLLM asks no callback about a completion that is not awaited; those of ours are silent."""
    arguments: Any = {"api_base": f"{served.address}/v1", **KEYS}
    litellm.callbacks = [TrimHandler(400)]
    with pytest.warns(UserWarning, match=r"completion was sent as it was given: no callback sees"):
        litellm.completion("openai/gpt-4o", _talk(30), **arguments)
    assert len(served.bodies[0][1]["messages"]) == len(_talk(30))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ours.completion("openai/gpt-4o", _talk(30), **arguments)
        trim_call(_router_of(served.address).completion)("fast", _talk(30))
        asyncio.run(litellm.acompletion(model="openai/gpt-4o", messages=_talk(30), **arguments))
        litellm.responses(model="openai/gpt-4o", input="Hello", **arguments)  # LiteLLM asks about this one
        litellm.embedding(model="openai/text-embedding-3-small", input=["Hello"], mock_response=[0.1], **KEYS)
    assert [one for one in warned if "as it was given" in str(one.message)] == []
    assert len(served.bodies) == 5


def test_a_completion_of_one_text_is_warned_of(served: Provider) -> None:
    """Awaited or not: nothing of its prompt can leave, and the warning names what can be fitted."""
    litellm.callbacks = [TrimHandler(400)]
    call: Any = {
        "model": "openai/gpt-4o",
        "prompt": "Hello " * 900,
        "api_base": f"{served.address}/v1",
        **KEYS,
    }
    with pytest.warns(UserWarning, match=r"litellm\.text_completion was sent as it was given: its prompt"):
        litellm.text_completion(**call)
    with pytest.warns(
        UserWarning, match=r"litellm\.atext_completion was sent .* Write the prompt as messages"
    ):
        asyncio.run(litellm.atext_completion(**call))
    assert len(served.bodies) == 2


def test_a_stored_prompt_is_refused_by_its_name(served: Provider) -> None:
    """Its messages are put in where no callback sees them; that is no call by position."""
    litellm.callbacks = [TrimHandler(400)]
    call: Any = {"model": "openai/gpt-4o", "api_base": f"{served.address}/v1", **KEYS}
    with pytest.raises(ConfigurationError, match=r"_id='greeting' names a stored prompt, .* no messages="):
        asyncio.run(litellm.acompletion(prompt_id="greeting", **call))
    nothing: Any = None
    with pytest.raises(ConfigurationError, match=r"'pmpt_1'\} names a stored prompt, .* no input="):
        asyncio.run(litellm.aresponses(input=nothing, prompt={"id": "pmpt_1"}, **call))
    assert served.bodies == []


def test_a_call_of_a_router_that_is_not_awaited_fits_its_smallest_deployment(served: Provider) -> None:
    """Which one a Router takes it decides after the fit; the order they are listed in says nothing."""
    params: Any = {"api_base": f"{served.address}/v1", "api_key": "none"}

    def model_of(name: str, **info: Any) -> dict[str, Any]:
        params_of = {"model": f"openai/{name}", **params}
        return {"model_name": "fast", "litellm_params": params_of, "model_info": info}

    large, small, unknown = model_of("gpt-4o"), model_of("gpt-4", max_input_tokens=400), model_of("m")
    for listed in ([large, small], [small, large], [unknown, small, large]):
        seen: list[Any] = []
        litellm.callbacks = [TrimHandler(on_fitted=seen.append)]
        router = litellm.Router(model_list=listed, num_retries=0)
        trim_call(router.completion)("fast", _talk(30))
        assert seen[0].report.input_tokens == 400
    assert all(len(body["messages"]) < 30 for _, body in served.bodies)


SMALL: Any = {"max_input_tokens": 400}
"""What a deployment says of its window."""


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        pytest.param({"fallbacks": [{"fast": ["small"]}]}, {}, id="fallbacks"),
        pytest.param({"fallbacks": [{"fast": ["next"]}, {"next": ["small"]}]}, {}, id="of-a-fallback"),
        pytest.param({"default_fallbacks": ["small"]}, {}, id="default"),
        pytest.param({"context_window_fallbacks": [{"fast": ["small"]}]}, {}, id="context-window"),
        pytest.param({"content_policy_fallbacks": [{"fast": ["small"]}]}, {}, id="content-policy"),
        pytest.param({}, {"fallbacks": ["small"]}, id="of-the-call"),
        pytest.param({}, {"fallbacks": [{"model": "small"}]}, id="of-the-call-with-arguments"),
    ],
)
def test_a_call_of_a_router_that_is_not_awaited_fits_its_fallbacks(
    served: Provider, settings: Any, call: Any
) -> None:
    """Nobody is asked again when the first attempt fails; what no call comes to has no say."""
    params: Any = {"model": "openai/gpt-4o", "api_base": f"{served.address}/v1", "api_key": "none"}
    infos: Any = {"fast": {}, "next": {}, "small": SMALL, "other": {"max_input_tokens": 200}}
    models = [
        {"model_name": name, "litellm_params": params, "model_info": info} for name, info in infos.items()
    ]
    seen: list[Any] = []
    litellm.callbacks = [TrimHandler(on_fitted=seen.append)]
    router = litellm.Router(model_list=models, num_retries=0, **settings)
    trim_call(router.completion)("fast", _talk(30), **call)
    assert [one.report.input_tokens for one in seen] == [400]


JAPANESE = "これは日本語の文章です。" * 20
"""A text that Claude is charged a tenth more for than gpt-4o."""


@pytest.mark.parametrize("is_group", [True, False], ids=["deployments", "fallback"])
@pytest.mark.parametrize("names", [("claude-opus-4-5", "gpt-4o"), ("gpt-4o", "claude-opus-4-5")])
def test_a_call_of_a_router_that_is_not_awaited_is_over_for_none_of_its_models(
    names: tuple[str, str], is_group: bool
) -> None:
    """Whichever is asked, and has the smallest window: what counts is the dearest count."""
    models = [
        {"model_name": group, "litellm_params": {"model": name, "mock_response": "done"}}
        for group, name in zip(("fast", "fast" if is_group else "next"), names, strict=True)
    ]
    router = litellm.Router(
        model_list=models, num_retries=0, fallbacks=[] if is_group else [{"fast": ["next"]}]
    )
    talk = [{"role": "assistant" if at % 2 else "user", "content": JAPANESE} for at in range(61)]
    schema: Any = {"type": "object", "properties": {"place": {"type": "string"}}}
    asked: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    seen: list[Any] = []
    counts: list[Any] = []
    try:
        litellm.callbacks = [TrimHandler(4_000, on_fitted=seen.append)]
        trim_call(router.completion)("fast", talk, response_format=asked)
        litellm.callbacks = [TrimHandler(100_000, on_fitted=counts.append)]
        for name in names:
            alone: Any = {"model": name, "messages": seen[0].messages, "response_format": asked}
            ours.completion(**alone, mock_response="done")
    finally:
        litellm.callbacks = []
    assert len(seen[0].messages) < len(talk)
    assert max(one.report.tokens_after for one in counts) <= seen[0].report.tokens_after <= 4_000


def test_a_call_that_has_no_fallbacks_is_not_cut_to_theirs(served: Provider) -> None:
    """`disable_fallbacks=True` of a call, as a Router takes it."""
    params: Any = {"model": "openai/gpt-4o", "api_base": f"{served.address}/v1", "api_key": "none"}
    models = [
        {"model_name": name, "litellm_params": params, "model_info": info}
        for name, info in {"fast": {}, "small": SMALL}.items()
    ]
    router = litellm.Router(model_list=models, num_retries=0, fallbacks=[{"fast": ["small"]}])
    seen: list[Any] = []
    litellm.callbacks = [TrimHandler(on_fitted=seen.append)]
    for is_disabled in (True, False):
        trim_call(router.completion)("fast", _talk(3), disable_fallbacks=is_disabled)
    assert [one.report.input_tokens for one in seen] == [111_616, 400]


def test_each_attempt_of_a_call_with_fallbacks_is_fitted_for_its_model() -> None:
    """Awaited or not, each has what its own window holds."""
    call: Any = {"model": "openai/gpt-4o", "messages": _talk(30), **KEYS}
    call["fallbacks"] = [{"model": "openai/gpt-4o-mini", "model_info": SMALL}]
    for is_awaited in (True, False):
        seen: list[Any] = []
        with provider(lambda form, body: {} if body["model"] == "gpt-4o" else _fine(form, body)) as server:
            litellm.callbacks = [TrimHandler("100%", on_fitted=seen.append)]
            try:
                address = f"{server.address}/v1"
                if is_awaited:
                    asyncio.run(ours.acompletion(api_base=address, **call))
                else:
                    ours.completion(api_base=address, **call)
            finally:
                litellm.callbacks = []
            sizes = [len(body["messages"]) for _, body in server.bodies]
        assert [one.report.input_tokens for one in seen] == [128_000, 400]
        assert sizes[0] == len(_talk(30)) > 2 * sizes[1]


def test_what_cannot_fit_sends_a_router_to_the_larger_model(served: Provider) -> None:
    """The error is trimtab's and LiteLLM's own for a window that is too small, and it can be pickled."""
    params: Any = {"api_base": f"{served.address}/v1", "api_key": "none"}
    models = [
        {"model_name": name, "litellm_params": {**params, "model": f"openai/{name}"}, "model_info": info}
        for name, info in (("small", {"max_input_tokens": 100}), ("large", {"max_input_tokens": 90_000}))
    ]
    router = litellm.Router(model_list=models, num_retries=0, context_window_fallbacks=[{"small": ["large"]}])
    litellm.callbacks = [TrimHandler("80%", counter=counter_for("gpt-4o"))]
    asyncio.run(router.acompletion("small", [{"role": "user", "content": "word " * 500}]))
    assert [body["model"] for _, body in served.bodies] == ["large"]
    with pytest.raises(WindowExceededError) as raised:
        _fitted(TrimHandler(5), _talk(3))
    error = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(error, BudgetExceededError)
    assert isinstance(error, litellm.ContextWindowExceededError)
    assert error.limit_tokens == 5 < error.needed_tokens
    assert error.status_code == 400


def test_each_attempt_of_a_retry_is_fitted() -> None:
    """A Router asks again with what the caller gave."""
    seen: list[Any] = []
    with provider(lambda form, body: {} if len(seen) < 2 else _fine(form, body)) as server:
        litellm.callbacks = [TrimHandler(400, on_fitted=seen.append)]
        try:
            router = _router_of(server.address)
            asyncio.run(router.acompletion("fast", _talk(30), num_retries=2))
        finally:
            litellm.callbacks = []
        sizes = {len(body["messages"]) for _, body in server.bodies}
    assert len(seen) == 2
    assert len(sizes) == 1


def _fine(form: str, body: Any) -> Any:
    return answered(form, str(body["model"]))


@pytest.mark.parametrize(
    ("model", "count"), [("openai/gpt-4o", 1), ("anthropic/claude-opus-4-5", 0)], ids=["openai", "bridged"]
)
def test_a_response_that_the_server_keeps_is_told_of_once(
    model: str, count: int, recwarn: pytest.WarningsRecorder
) -> None:
    """To a provider without that API LiteLLM sends what it kept itself: that is fitted."""
    warnings.simplefilter("always")
    handler = TrimHandler(2_000)
    call = {"model": model, "input": "Hello", "previous_response_id": "resp_1"}
    for _ in range(2):
        handler.fit_call(call, format="openai_responses")
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == count
    assert all("leave previous_response_id= out" in one for one in told)
