"""`with_budget` around OpenAI's clients: what is sent, what comes back, and what is left alone."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.integrations.loops import LOOPS, Loop
from tests.integrations.openai.play import async_client_of, client_of, play_chat, play_responses
from tests.integrations.upstream import BUDGET_TOKENS, hold
from tests.judge.server import Provider, answered, provider
from trimtab import Budget, Context, EstimateCounter, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.openai import with_budget


class Weather(BaseModel):
    """What the answer is read as."""

    sunny: bool


def _talk(turns: int) -> list[Any]:
    said: list[Any] = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        said += [
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": "It is sunny. " * 20},
        ]
    return [*said, {"role": "user", "content": "And now?"}]


TALK = _talk(30)
ITEMS = TALK[1:]
OK: dict[str, Any] = {"model": "gpt-4o", "messages": TALK}
ITEMS_OK: dict[str, Any] = {"model": "gpt-4o", "input": ITEMS}


def _sent(served: Provider) -> int:
    """Count the messages of the last request."""
    form, body = served.bodies[-1]
    return len(body["messages" if form == "openai_chat" else "input"])


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The program keeps all it said, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, said = play_chat(loop, BUDGET_TOKENS, on_fitted=seen.append)
    hold(score, loop, reuse=0 if loop.huge_every else 0.7)
    assert len(said) > loop.model_calls
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_items_of_responses_fit_as_well(loop: Loop) -> None:
    """What the model said goes back as the SDK's own objects."""
    hold(play_responses(loop, BUDGET_TOKENS)[0], loop, reuse=0 if loop.huge_every else 0.7)


def test_every_way_to_ask_is_fitted() -> None:
    """Created, parsed, streamed, raw, by `with_options` and by `copy`."""
    with provider(_json) as served:
        client = with_budget(client_of(served), 600)
        chat = client.chat.completions
        asks = [
            lambda: chat.create(**OK),
            lambda: list(chat.create(**OK, stream=True)),
            lambda: chat.parse(**OK, response_format=Weather),
            lambda: chat.with_raw_response.create(**OK).parse(),
            lambda: client.with_options(timeout=9).chat.completions.create(**OK),
            lambda: client.copy().with_options().beta.chat.completions.parse(**OK),
            lambda: client.responses.create(**ITEMS_OK),
            lambda: list(client.responses.create(**ITEMS_OK, stream=True)),
            lambda: client.responses.parse(**ITEMS_OK, text_format=Weather),
        ]
        for number, ask in enumerate(asks, start=1):
            ask()
            assert len(served.bodies) == number
            assert 3 < _sent(served) < 30
        with chat.stream(**OK) as stream:
            assert "sunny" in str(stream.get_final_completion().choices[0].message.content)
        with client.responses.stream(**ITEMS_OK) as events:
            assert "sunny" in events.get_final_response().output_text
        assert [_sent(served) < 30 for _ in range(2)] == [True, True]
        parsed = chat.parse(**OK, response_format=Weather).choices[0].message.parsed
        assert parsed == Weather(sunny=True)


def _json(form: str, body: dict[str, Any]) -> Any:
    """Answer with what both a text and `Weather` are read from."""
    answer = answered(form, str(body["model"]))
    if form == "openai_chat":
        answer["choices"][0]["message"]["content"] = '{"sunny": true}'
    else:
        answer["output"][0]["content"][0]["text"] = '{"sunny": true}'
    return answer


def test_async_clients_are_fitted_and_wait_for_counters() -> None:
    """Many at once, streamed ones too."""

    async def count(messages: list[Any]) -> int:
        await asyncio.sleep(0)
        return sum(len(str(message)) // 4 for message in messages)

    async def run(served: Provider) -> None:
        async with async_client_of(served) as bare:
            client = with_budget(bare, 600, counter=count)
            create = client.chat.completions.create
            await asyncio.gather(*(create(**OK) for _ in range(8)))
            async for _ in await create(**OK, stream=True):
                pass
            async with client.chat.completions.stream(**OK) as stream:
                await stream.get_final_completion()
            async with client.with_options(timeout=9).responses.stream(**ITEMS_OK) as events:
                await events.get_final_response()

    with provider() as served:
        asyncio.run(run(served))
        assert len(served.bodies) == 11
        keys = {"openai_chat": "messages", "openai_responses": "input"}
        assert all(len(body[keys[form]]) < 40 for form, body in served.bodies)


def test_an_async_function_is_told_by_an_async_client_and_refused_by_another() -> None:
    """It never ran; a client whose calls are not awaited says so when it is made."""
    seen: list[Any] = []

    async def log(fitted: Any) -> None:
        await asyncio.sleep(0)
        seen.append(fitted)

    async def run(served: Provider) -> None:
        async with async_client_of(served) as bare:
            client = with_budget(bare, 600, on_fitted=log)
            await client.chat.completions.create(**OK)
            await client.responses.create(**ITEMS_OK)

    with provider() as served:
        asyncio.run(run(served))
        assert [one.report.format for one in seen] == ["openai_chat", "openai_responses"]
        with pytest.raises(ConfigurationError, match="on_fitted is async"):
            with_budget(client_of(served), 600, on_fitted=log)


def test_what_was_billed_is_taken_into_the_count() -> None:
    """Plain and streamed: a model nobody knows is counted by what its server said of the call before."""

    def answer(form: str, body: dict[str, Any]) -> Any:
        tokens = 30 * len(body["messages"])
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        return {**answered(form, "m"), "usage": usage}

    body = {"model": "m", "messages": TALK[:9]}
    for streamed in (False, True):
        seen: list[Fitted[Any]] = []
        with provider(answer) as served:
            client = with_budget(client_of(served), 5_000, on_fitted=seen.append)
            for _ in range(2):
                answered_with: Any = client.chat.completions.create(**body, stream=streamed)
                list(answered_with) if streamed else None
        first, second = (one.report for one in seen)
        assert "calibrated" in second.counter
        assert second.tokens_after < first.tokens_after
    with provider() as served:  # it says nothing of usage
        client = with_budget(client_of(served), 5_000, on_fitted=seen.append)
        for _ in range(2):
            client.chat.completions.create(**body)
    assert "calibrated" not in seen[-1].report.counter


@pytest.mark.parametrize("part", [0.7, 0.95, 1.4])
@pytest.mark.parametrize("budget", [700, 5_000])
def test_a_request_that_was_billed_counts_as_it_was_billed(part: float, budget: int) -> None:
    """But for a token, and what messages are rounded up: also where some of them left."""
    seen: list[Fitted[Any]] = []
    billed: list[int] = []

    def answer(form: str, body: dict[str, Any]) -> Any:
        tokens = round(part * EstimateCounter().count(body["messages"]))
        billed.append(tokens)
        return {**answered(form, "m"), "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    with provider(answer) as served:
        client = with_budget(client_of(served), Budget(budget), on_fitted=seen.append)
        for _ in range(8):
            client.chat.completions.create(model="m", messages=TALK)
    assert len(seen[-1].messages) == len(served.bodies[-2][1]["messages"])
    report = seen[-1].count_all()
    assert -1 <= report.tokens_after - billed[-2] <= len(seen[-1].messages) // 2
    assert sum(row.tokens_after or 0 for row in report.messages) <= report.tokens_after


def test_one_surprising_bill_does_not_take_the_budget() -> None:
    """A picture that is billed at four times its count: a fifth of the budget is kept free at most."""
    talk, limits = TALK[:3], list[int]()
    factor = [1.0]

    def answer(form: str, body: dict[str, Any]) -> Any:
        tokens = round(factor[0] * EstimateCounter().count(body["messages"]))
        return {**answered(form, "m"), "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    with provider(answer) as served:
        client = with_budget(
            client_of(served), 4_000, on_fitted=lambda fitted: limits.append(fitted.report.input_tokens)
        )
        for turn in range(12):
            factor[0] = 3.5 if turn == 6 else 1.0
            client.chat.completions.create(model="m", messages=talk)
            talk = [*talk, {"role": "user", "content": f"question {turn}"}]
    assert min(limits) >= 0.78 * 4_000


def test_a_request_that_cannot_fit_is_not_sent() -> None:
    """What must stay is larger than the budget: the error has the numbers."""
    with provider() as served:
        client = with_budget(client_of(served), 5)
        with pytest.raises(BudgetExceededError):
            client.chat.completions.create(**OK)
        with pytest.raises(BudgetExceededError), client.chat.completions.stream(**OK):
            pass
        assert served.bodies == []


def test_what_the_server_keeps_is_sent_as_it_is_with_one_warning(recwarn: pytest.WarningsRecorder) -> None:
    """Nobody here sees what stands before it; what is no call of these passes as it did."""
    warnings.simplefilter("always")
    with provider() as served:
        client = with_budget(client_of(served), 600)
        for _ in range(2):
            client.responses.create(**ITEMS_OK, previous_response_id="resp_1")
        told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
        assert len(told) == 1
        assert told[0].startswith("previous_response_id is given")
        assert "leave previous_response_id= out" in told[0]
        assert _sent(served) == len(ITEMS)
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="text-embedding-3-small", input="question")


def test_a_call_without_messages_is_sent_as_it_is() -> None:
    """A prompt that the server has: there is nothing that could leave."""
    prompt = {"id": "pmpt_1"}
    with provider() as served:
        client = with_budget(client_of(served), 600)
        client.responses.create(model="gpt-4o", prompt=prompt)  # type: ignore[arg-type]
        assert [body for _, body in served.bodies] == [{"model": "gpt-4o", "prompt": prompt}]


def test_a_retry_sends_what_was_fitted_once() -> None:
    """The SDK's own retries are below the fit."""
    tries: list[int] = []

    def answer(form: str, body: dict[str, Any]) -> Any:
        tries.append(len(body["messages"]))
        if len(tries) == 1:
            raise ConnectionError("the server hangs up")
        return answered(form, "gpt-4o")

    seen: list[Any] = []
    with provider(answer) as served:
        client = with_budget(client_of(served, max_retries=1), 600, on_fitted=seen.append)
        client.chat.completions.create(**OK)
    assert len(tries) == 2
    assert tries[0] == tries[1]
    assert len(seen) == 1


def test_the_client_given_stays_as_it_was() -> None:
    """The one that comes back is of its class, and asks by its connections."""
    with provider() as served:
        bare = client_of(served)
        client = with_budget(bare, 600)
        assert type(client) is type(bare)
        client.chat.completions.create(**OK)
        bare.chat.completions.create(**OK)
        assert _sent(served) == len(TALK)
        azure = with_budget(
            openai.AzureOpenAI(
                api_key="none", api_version="1", azure_endpoint="http://localhost:9", azure_deployment="d"
            ),
            600,
        )
        assert isinstance(azure, openai.AzureOpenAI)


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model; a `Budget` is held as it is."""
    seen: list[Fitted[Any]] = []
    with provider() as served:
        for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
            with_budget(client_of(served), budget, on_fitted=seen.append).chat.completions.create(**OK)
        assert {one.report.input_tokens for one in seen} == {640}
        with pytest.raises(ConfigurationError, match="is unknown"):
            with_budget(client_of(served), "80%").chat.completions.create(**{**OK, "model": "m"})
        with_budget(client_of(served), on_fitted=seen.append).chat.completions.create(
            **OK, max_completion_tokens=28_000
        )
        assert seen[-1].report.input_tokens == 100_000
        with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
            with_budget(client_of(served), ["80%"])  # type: ignore[arg-type]
        nothing: Any = object()
        with pytest.raises(ConfigurationError, match=r"openai\.OpenAI or AsyncOpenAI"):
            with_budget(nothing, 600)


def test_a_context_gives_its_blocks_to_each_request() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    with provider() as served:
        with_budget(client_of(served), context).chat.completions.create(**OK)
        body = served.bodies[-1][1]
    assert str(body).count("Utrecht") == 1
    assert len(body["messages"]) < len(TALK)


def test_the_system_text_of_a_context_is_sent() -> None:
    """A block's stands before that of the request; what stands beside the blocks, as instructions."""
    blocks = Context(Budget(9_000), model="gpt-4o").add("system", "Answer in verse.").add("history", [])
    beside = Context(Budget(9_000), model="gpt-4o", system="Answer in verse.").add("history", [])
    verse = {"role": "system", "content": "Answer in verse."}
    own: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    with provider() as served:
        client = with_budget(client_of(served), blocks)
        for messages in (own, own[1:]):
            client.chat.completions.create(model="gpt-4o", messages=messages)
            assert served.bodies[-1][1]["messages"] == [verse, *messages]
        client.responses.create(model="gpt-4o", input=own[1:])
        assert served.bodies[-1][1]["input"] == [verse, own[1]]
        with_budget(client_of(served), beside).responses.create(model="gpt-4o", input=own[1:])
        assert served.bodies[-1][1]["instructions"] == "Answer in verse."


def test_pins_and_strategies_are_those_of_fit() -> None:
    """By place, or by what a message is on the wire."""
    with provider() as served:
        for pin in ([3], lambda message, index: message["content"] == "question 1"):
            client = with_budget(client_of(served), 600, pin=pin, strategy="agent")
            client.chat.completions.create(**OK)
            assert "question 1'" in str(served.bodies[-1][1])
