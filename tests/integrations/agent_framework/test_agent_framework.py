"""`TrimStrategy` and `TrimMiddleware` in Microsoft's Agent Framework: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    CompactionProvider,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    InMemoryHistoryProvider,
    Message,
    tool,
)
from agent_framework.anthropic import AnthropicClient
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel, ValidationError

from tests.integrations.answers import Whole, hold_answer
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, Loop, Question, agent, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import Provider, provider
from trimtab import Budget, Context, Fitted, counter_for
from trimtab.counting import measure
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.agent_framework import TrimMiddleware, TrimStrategy
from trimtab.strategies import Summarize


def _look(loop: Loop) -> FunctionTool:
    @tool(approval_mode="never_require")
    def look(place: int) -> str:
        """Look at a place."""
        return loop.look(place)

    return look


def _openai(served: Upstream | Provider) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0)


def completions(served: Upstream) -> Any:
    """Make the framework's client of OpenAI's Chat Completions."""
    return OpenAIChatCompletionClient(model="gpt-4o", async_client=_openai(served))


def responses(served: Upstream) -> Any:
    """Make the framework's client of OpenAI's Responses."""
    return OpenAIChatClient(model="gpt-4o", async_client=_openai(served))


def claude(served: Upstream) -> Any:
    """Make the framework's client of Anthropic's API."""
    client: Any = AsyncAnthropic(base_url=served.address, api_key="none", max_retries=0)
    return AnthropicClient(model="claude-sonnet-4-6", anthropic_client=client)


def _said(question: Question) -> Message:
    contents: list[Any] = [question.text]
    if question.has_image:
        contents.append(Content.from_uri(IMAGE, media_type="image/png"))
    return Message("user", contents)


Made = Callable[[FunctionTool], dict[str, Any]]
"""Makes the options of an agent; it is given the agent's tool."""


def play(
    loop: Loop, made: Made, *, client: Any = completions, questions: int = 1_000, stream: bool = False
) -> tuple[Score, list[Message]]:
    """Play a loop with an agent of the framework; returns the score and the messages of its session."""

    async def run() -> tuple[Score, list[Message]]:
        with upstream(loop) as served:
            look = _look(loop)
            model = client(served)
            model.function_invocation_configuration["max_iterations"] = 1_000
            model.function_invocation_configuration["include_detailed_errors"] = True
            looker = Agent(model, SYSTEM, name=NAME, tools=[look], **made(look))
            session = looker.create_session()
            for question in loop.questions[:questions]:
                answer = looker.run(_said(question), session=session, stream=stream)
                if stream:
                    async for _ in answer:
                        pass
                else:
                    await answer
            return served.score, session.state["in_memory"]["messages"]

    return asyncio.run(run())


NAME = "looker"


def strategy(budget: Any = BUDGET_TOKENS, *, persist: bool = False, **options: Any) -> Made:
    """Give an agent a strategy, and its session the same where that is cut, too."""

    def made(look: FunctionTool) -> dict[str, Any]:
        trim = TrimStrategy(
            budget,
            instructions=SYSTEM,
            tools=[look],
            persist=persist,
            model="gpt-4o",
            **{"name": NAME, **options},
        )
        stored = [InMemoryHistoryProvider(), CompactionProvider(after_strategy=trim)]
        return {"compaction_strategy": trim, **({"context_providers": stored} if persist else {})}

    return made


def middleware(*, keeps: bool = True, **options: Any) -> Made:
    """Give an agent a middleware; the history is the framework's where the provider would keep it, too."""
    own: dict[str, Any] = {} if keeps else {"default_options": {"store": False}}
    return lambda look: {"middleware": [TrimMiddleware(BUDGET_TOKENS, **{"name": NAME, **options})], **own}


def _messages_of(loop: Loop) -> int:
    """Count the messages of a loop: questions, answers of the model, and one with the results of each."""
    steps = [step for question in loop.questions for step in question.steps]
    return len(loop.questions) + len(steps) + sum(hasattr(step, "places") for step in steps)


@pytest.mark.parametrize("made", [strategy, middleware])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(
    loop: Loop, made: Callable[..., Made]
) -> None:
    """The session keeps all of it unmarked, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, made(on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert not any(one.additional_properties.get(EXCLUDED_KEY) for one in kept)
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_run_that_persists_forgets_what_left(loop: Loop) -> None:
    """The list of a run is cut, and that of the session where the strategy stands behind it, too."""
    score, kept = play(loop, strategy(persist=True))
    hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
    if len(loop.questions) > 1:  # what one run says is saved when it is over, and cut in the next
        assert len(kept) < _messages_of(loop) / 3


@pytest.mark.parametrize(
    ("made", "reuse"), [(middleware(name=None), 0.78), (strategy(persist=True, name=None), 0.78)]
)
def test_without_a_name_a_prompt_cache_knows_less_of_a_chat(made: Made, reuse: float) -> None:
    """Just below four fifths, and 0.84 with `name=`, whether or not the cut persists."""
    score, _ = play(chat(), made)
    hold(score, chat(), reuse=reuse, price=0.24)
    assert score.reuse < reuse + 0.04


def test_a_client_of_responses_is_sent_no_more() -> None:
    """Messages are read in one form, and charged as they are sent."""
    score, _ = play(agent(), middleware(keeps=False), client=responses)
    hold(score, agent())


def test_a_client_of_claude_is_sent_no_more() -> None:
    """One counter for both sides, as nobody has Claude's."""
    made = middleware(counter=counter_for("gpt-4o"))
    score, _ = play(chat(), made, client=claude, questions=30)
    assert (score.requests, score.invalid, score.over, score.blind) == (120, [], [], [])


class Scripted(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A client that answers what it is given, and keeps what it is asked."""

    model = "gpt-4o"

    def __init__(self, *answers: Message) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        self.asked.append(list(messages))
        answer = self.answers.pop(0) if self.answers else Message("assistant", ["done"])

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(contents=answer.contents, role="assistant")

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[answer])

        return self._build_response_stream(updates()) if stream else whole()


def _call(place: int, call_id: str) -> Content:
    return Content.from_function_call(call_id, "look", arguments={"place": place})


def _talk(turns: int) -> list[Message]:
    said: list[Message] = []
    for turn in range(turns):
        results = [
            Content.from_function_result(f"c{turn}", result="sun " * 40),
            Content.from_function_result(f"d{turn}", result="none", exception="LookError"),
        ]
        thought = Content.from_text_reasoning(text="hm")
        said += [
            Message("user", [f"question {turn}"]),
            Message("assistant", [thought, _call(turn, f"c{turn}"), _call(turn, f"d{turn}")]),
            Message("tool", results),
            Message("assistant", ["It is sunny."]),
        ]
    return said


NOW = Message("user", ["And now?"])


def sent(messages: list[Message], trim: Any, **options: Any) -> list[Message]:
    """Return what a model is sent for these messages."""
    client = Scripted()
    place = {"middleware": [trim]} if isinstance(trim, TrimMiddleware) else {"compaction_strategy": trim}
    asyncio.run(Agent(client, **place, **options).run(messages))
    [asked] = client.asked
    return asked


def marked(messages: list[Message], trim: TrimStrategy) -> list[Message]:
    """Return the list of a run as a strategy leaves it."""
    listed = list(messages)
    asyncio.run(trim(listed))
    return listed


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_calls_keep_their_results(kind: Any) -> None:
    """Two calls of one answer leave with both results."""
    kept = sent([*_talk(30), NOW], kind(500, model="gpt-4o"))
    contents = [content for one in kept for content in one.contents]
    calls = [one.call_id for one in contents if one.type == "function_call"]
    assert calls == [one.call_id for one in contents if one.type == "function_result"]
    assert 4 < len(kept) < 60
    assert kept[-1].text == "And now?"


@pytest.mark.parametrize(
    "budget", [5_000, Context(Budget(5_000), model="gpt-4o").add("history", [], priority=1)]
)
def test_a_name_that_the_framework_writes_when_a_run_is_over_is_counted(budget: Any) -> None:
    """It is written into messages that were counted without it; the next run sends it with each of them."""
    counts: list[int] = []
    talk = [*_talk(12), NOW]

    def trim() -> TrimStrategy:
        told: Any = {"on_fitted": lambda fitted: counts.append(fitted.report.tokens_after)}
        return TrimStrategy(budget, model="gpt-4o", **told)

    kept = trim()
    marked(talk, kept)
    for message in talk:
        message.author_name = "a meteorologist of the north" if message.role == "assistant" else None
    marked(talk, kept)
    marked(talk, trim())
    assert counts[1] == counts[2] > counts[0] + 24 * 4


def test_the_messages_of_a_run_are_neither_marked_nor_lost() -> None:
    """Copies stand in its list for those that left; with more room the very objects are back."""
    talk = [*_talk(30), NOW]
    trim, wide = TrimStrategy(500, model="gpt-4o"), TrimStrategy(50_000, model="gpt-4o")
    listed = marked(talk, trim)
    included = [one for one in listed if not one.additional_properties.get(EXCLUDED_KEY)]
    assert all(any(one is other for other in talk) for one in included)
    assert not any(one.additional_properties for one in talk)
    assert [one.contents for one in listed] == [one.contents for one in talk]
    assert {one.additional_properties[EXCLUDE_REASON_KEY] for one in listed if one not in included} == {
        "trimtab"
    }
    again = list(listed)
    assert asyncio.run(trim(again)) is False
    assert all(one is other for one, other in zip(again, listed, strict=True))
    assert all(one is other for one, other in zip(marked(listed, wide), talk, strict=True))
    cut = marked(talk, TrimStrategy(500, model="gpt-4o", persist=True))
    assert 4 < len(cut) < 60
    assert all(any(one is other for other in talk) for one in cut)


def test_what_another_strategy_excluded_is_not_sent() -> None:
    """It is left as it is: not counted, and not brought back."""
    talk = _talk(1)
    talk[0].additional_properties[EXCLUDED_KEY] = True
    listed = marked([*talk, NOW], TrimStrategy(5_000, model="gpt-4o"))
    assert [one for one in listed if not one.additional_properties.get(EXCLUDED_KEY)] == [*talk[1:], NOW]


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_what_is_shortened_is_a_copy_with_what_stood_beside_it(kind: Any) -> None:
    """A question keeps its picture and its author, a result its call; what the run has is as it was."""
    picture = Content.from_uri(IMAGE, media_type="image/png")
    asked = Message("user", ["word " * 900, picture, "Well?"], author_name="ada")
    [kept, _] = sent([asked, NOW], kind(500, model="gpt-4o", strategy="truncate_text"))
    text, image, end = kept.contents
    assert (kept.author_name, image, end.text, "trimtab" in str(text.text)) == ("ada", picture, "Well?", True)
    assert len(str(text.text)) < 4_500 == len(str(asked.contents[0].text))

    other = Content.from_function_result("d", result="rain")
    results = [Content.from_function_result("c", result="sun " * 900), other]
    talk = [NOW, Message("assistant", ["I look.", _call(1, "c"), _call(2, "d")]), Message("tool", results)]
    kept = sent(talk, kind(500, model="gpt-4o"))[2]
    long, short = kept.contents
    assert (long.call_id, short) == ("c", other)
    assert 100 < len(str(long.result)) < 3_600 == len(str(results[0].result))
    assert "".join(str(one.text) for one in long.items or ()) == long.result


def test_a_result_that_was_shortened_is_whole_again_with_more_room() -> None:
    """What stands in its place in the list of a run stands for it."""
    result = Message("tool", [Content.from_function_result("c", result="sun " * 900)])
    talk = [NOW, Message("assistant", [_call(1, "c")]), result]
    listed = marked(talk, TrimStrategy(500, model="gpt-4o"))
    assert len(listed) == 3
    assert listed[2] is not result
    assert marked(listed, TrimStrategy(5_000, model="gpt-4o"))[2] is result


def _summarize(messages: list[Any], existing: str | None) -> str:
    return "It was sunny all along."


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_what_is_put_in_is_a_message_of_the_framework(kind: Any) -> None:
    """A summary stands where the strategy puts it, once, also at the next call."""
    trim = kind(500, model="gpt-4o", strategy=Summarize(_summarize))
    talk = [*_talk(30), NOW]
    assert sum("sunny all along" in one.text for one in sent(talk, trim)) == 1
    if kind is TrimStrategy:
        twice = marked(marked(talk, trim), trim)
        assert sum("sunny all along" in one.text for one in twice) == 1


class Look(BaseModel):
    """What was seen at a place, and how sure that is."""

    place: int
    seen: str
    sure: bool


def test_what_is_sent_beside_the_messages_is_counted() -> None:
    """The middleware is shown instructions, tools and the answer's schema; a strategy is told of them."""
    seen: list[Fitted[Any]] = []
    look = _look(chat())
    trim = TrimMiddleware(700, on_fitted=seen.append)
    with contextlib.suppress(ValidationError):
        for options in ({}, {"instructions": "Look well."}, {"tools": [look]}):
            sent([NOW], trim, **options)
        sent([NOW], trim, default_options={"response_format": Look})
    bare, *others = [one.report.tokens_after for one in seen]
    assert len(others) == 3
    assert all(tokens > bare for tokens in others)
    seen.clear()
    told = {"model": "gpt-4o", "on_fitted": seen.append}
    for beside in ({}, {"instructions": "Look well."}, {"tools": [look]}):
        sent([NOW], TrimStrategy(700, **told, **beside))
    assert [one.report.tokens_after for one in seen] == [bare, *others[:2]]


@pytest.mark.parametrize("kind", [OpenAIChatClient, OpenAIChatCompletionClient])
@pytest.mark.parametrize(
    "asked",
    [
        Whole,
        Whole.model_json_schema(),
        {"type": "json_schema", "json_schema": {"name": "whole", "schema": Whole.model_json_schema()}},
        {"type": "json_object"},
    ],
    ids=["class", "schema", "format", "any"],
)
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(asked: Any, kind: Any) -> None:
    """A class is written as OpenAI's client does, which repeats what a reference with a description is to."""
    seen: list[Fitted[Any]] = []
    with provider() as server, contextlib.suppress(ValueError, ChatClientException):
        client = kind(model="gpt-4o", async_client=_openai(server))
        trim = TrimMiddleware(3_000, on_fitted=seen.append)
        made = Agent(client, middleware=[trim], default_options={"response_format": asked})
        asyncio.run(made.run("And now?"))
    hold_answer(seen[0], server.bodies[0], model="gpt-4o")


@pytest.mark.parametrize("name", [None, "looker"])
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-3.5-turbo"])
def test_each_text_and_picture_is_charged_as_the_message_that_is_sent(model: str, name: str | None) -> None:
    """With a frame for each: never below what is sent, and at most two tokens a part above it."""
    seen: list[Fitted[Any]] = []
    parts: list[Any] = ["Look.", Content.from_uri(IMAGE, media_type="image/png"), "And now?"]
    talk = [
        Message("user", parts, author_name=name),
        Message("assistant", ["One.", "Two.", "Three."], author_name=name),
        Message("user", parts),
    ]
    with provider() as server:
        client = OpenAIChatCompletionClient(model=model, async_client=_openai(server))
        asyncio.run(Agent(client, middleware=[TrimMiddleware(9_000, on_fitted=seen.append)]).run(talk))
    [(form, body)] = server.bodies
    assert len(body["messages"]) == 9
    tokens = measure(body, model=model, format=form).tokens
    assert tokens <= seen[0].report.tokens_after <= tokens + 2 * 6


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_a_call_is_fitted_once_streamed_or_not(kind: Any, stream: bool) -> None:
    """Each call of a run is, and its answer has all that was said."""
    seen: list[Fitted[Any]] = []
    client = Scripted(*(Message("assistant", [_call(n, f"c{n}")]) for n in range(12)))
    trim = kind(500, model="gpt-4o", on_fitted=seen.append)
    place = {"middleware": [trim]} if kind is TrimMiddleware else {"compaction_strategy": trim}

    async def run() -> int:
        made = Agent(client, tools=[_look(chat())], **place)
        session = made.create_session()
        answer: Any = made.run("Look.", session=session, stream=stream)
        if stream:
            async for _ in answer:
                pass
        else:
            await answer
        return len(session.state["in_memory"]["messages"])

    assert asyncio.run(run()) == 26
    assert len(seen) == len(client.asked) == 13
    assert len(client.asked[-1]) < 25
    assert client.asked[-1][0].text == "Look."


def test_a_strategy_fits_what_a_provider_of_context_loads() -> None:
    """Before a run; a counter may be awaited."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    client = Scripted()

    async def run() -> None:
        trim = TrimStrategy(900, counter=count)
        stored = [InMemoryHistoryProvider(), CompactionProvider(before_strategy=trim)]
        made = Agent(client, context_providers=stored)
        session = made.create_session()
        await made.run(_talk(30), session=session)
        await made.run("And now?", session=session)

    asyncio.run(run())
    assert len(client.asked[0]) == 120
    assert 4 < len(client.asked[1]) < 60


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_a_budget_is_said_in_every_way(kind: Any) -> None:
    """A share is that of the window of the model; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        sent([*_talk(30), NOW], kind(budget, model="gpt-4o", on_fitted=seen.append))
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(BudgetExceededError):
        sent([NOW], kind(5, model="gpt-4o"))
    with pytest.raises(ConfigurationError, match="is unknown"):
        sent([NOW], kind("80%", model="mine"))
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        kind(["80%"])


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_a_context_gives_its_blocks_to_each_request(kind: Any) -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    kept = sent([*_talk(30), NOW], kind(context))
    assert sum("Utrecht" in one.text for one in kept) == 1
    assert len(kept) < 60


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_pins_are_messages_of_the_run(kind: Any) -> None:
    """By place, or by what they are."""
    for pin in ([8], lambda message, index: message.text == "question 2"):
        kept = sent([*_talk(30), NOW], kind(600, model="gpt-4o", pin=pin))
        assert any(one.text == "question 2" for one in kept)


class BedrockChatClient(Scripted):
    """Has the name of the framework's client of Bedrock, which comes with a package that is not here."""


def test_a_client_of_bedrock_is_charged_in_its_form() -> None:
    """As if the form had been said; without it, this model's counts would be exact."""
    found: list[Any] = []
    for kind, options in ((BedrockChatClient, {}), (Scripted, {"charge_as": "bedrock"})):
        trim = TrimMiddleware(BUDGET_TOKENS, on_fitted=found.append, **options)
        asyncio.run(Agent(kind(), middleware=[trim]).run([NOW]))
    assert [one.report.exact for one in found] == [False, False]
    assert len({one.report.tokens_after for one in found}) == 1


def test_a_context_that_moves_messages_lists_each_once() -> None:
    """What leaves stands in the list once, excluded, also behind a message that was moved."""
    talk = [*_talk(30), Message("system", ["Be brief."]), NOW]
    context = Context(Budget(500), model="gpt-4o")
    context.add("history", [], priority=50, position=1)
    context.add("system", [], priority=90, position=2)
    leading = [Message("system", ["Answer in Dutch."]), *talk]
    listed = marked(leading, TrimStrategy(context))
    told = [one.text or str([content.call_id for content in one.contents]) for one in listed]
    assert len(listed) == len(leading)
    assert sorted(told) == sorted(
        one.text or str([content.call_id for content in one.contents]) for one in leading
    )
    assert listed[-1].text == "Answer in Dutch."


@pytest.mark.parametrize("kind", [TrimStrategy, TrimMiddleware])
def test_the_name_of_the_agent_is_written_as_the_framework_will(kind: Any) -> None:
    """Into what this run said, and nothing else: what a session keeps is the same with it and without."""
    kept: list[list[Any]] = []
    for options in ({}, {"name": NAME}):
        trim = kind(4_000, model="gpt-4o", **options)
        place = {"middleware": [trim]} if kind is TrimMiddleware else {"compaction_strategy": trim}
        client = Scripted(Message("assistant", [Content.from_function_call("c", "look", arguments="{}")]))
        looker = Agent(client, name=NAME, tools=[_look(chat())], **place)
        session = looker.create_session()
        asyncio.run(looker.run([Message("assistant", ["Hello."]), NOW], session=session))
        kept.append([(one.role, one.author_name) for one in session.state["in_memory"]["messages"]])
        written = [(one.role, one.author_name) for one in client.asked[-1][:2]]
        assert written == [("assistant", None), ("user", None)]
    assert kept[0] == kept[1]
    assert kept[0][-1] == ("assistant", NAME)


@pytest.mark.parametrize(("store", "count"), [(None, 1), (False, 0)])
def test_a_client_whose_server_keeps_the_conversation_is_told_of_once(
    store: bool | None, count: int, recwarn: pytest.WarningsRecorder
) -> None:
    """The framework's default client has OpenAI keep what was said, and sends what is new."""
    warnings.simplefilter("always")

    async def run() -> None:
        with provider() as served:
            client = OpenAIChatClient(model="gpt-4o", async_client=_openai(served))
            own: Any = {} if store is None else {"default_options": {"store": store}}
            made: Any = Agent(client, SYSTEM, middleware=[TrimMiddleware(2_000)], **own)
            session = made.create_session()
            for _ in range(3):
                await made.run("Hello", session=session)

    asyncio.run(run())
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == count
    assert all('default_options={"store": False}' in one for one in told)
