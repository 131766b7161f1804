"""`TrimCapability` in Pydantic AI's agents, and `history_processor`: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Sequence
from importlib.util import find_spec, module_from_spec
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    ToolOutput,
    UnexpectedModelBehavior,
    UsageLimits,
)
from pydantic_ai.capabilities import AbstractCapability, ModelFallback, ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.integrations.answers import Part, Whole, hold_answer
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, LookError, Loop, Question, agent, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import Provider, provider
from trimtab import Budget, Context, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.pydantic_ai import TrimCapability, history_processor
from trimtab.strategies import Summarize


class Look(BaseModel):
    """What was seen at a place, and how sure that is."""

    place: int
    seen: str
    sure: bool


def _summarize(messages: list[Any], existing: str | None) -> str:
    return "It was sunny all along."


def _done(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart("done")])


LIMITS = UsageLimits(request_limit=None)


def _chat_model(served: Upstream | Provider) -> Model:
    provider = OpenAIProvider(base_url=f"{served.address}/v1", api_key="none")
    return OpenAIChatModel("gpt-4o", provider=provider)


def _responses_model(served: Upstream | Provider) -> Model:
    provider = OpenAIProvider(base_url=f"{served.address}/v1", api_key="none")
    return OpenAIResponsesModel("gpt-4o", provider=provider)


def _agent(model: Model, loop: Loop, capabilities: Sequence[Any]) -> Agent[None, str]:
    made = Agent(model, instructions=SYSTEM, capabilities=list(capabilities), retries=3)

    @made.tool_plain
    def look(place: int) -> str:
        """Look at a place."""
        try:
            return loop.look(place)
        except LookError as error:
            raise ModelRetry(str(error)) from error

    return made


def _said(question: Question) -> Any:
    said: list[Any] = [question.text]
    said += [BinaryContent.from_data_uri(IMAGE)] if question.has_image else []
    said += [CachePoint()] if question.is_marked else []
    return said if len(said) > 1 else question.text


def play(loop: Loop, *capabilities: Any, model: Any = _chat_model) -> tuple[Score, list[ModelMessage]]:
    """Play a loop with an agent of Pydantic AI's; returns the score and the agent's history."""
    with upstream(loop) as served:
        made = _agent(model(served), loop, capabilities)
        history: list[ModelMessage] = []
        for question in loop.questions:
            run = made.run_sync(_said(question), message_history=history, usage_limits=LIMITS)
            history = run.all_messages()
        return served.score, history


def _messages_of(loop: Loop) -> int:
    """Count what is said in a loop: the results of one answer come back as one request."""
    return sum(2 * len(question.steps) for question in loop.questions)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The whole history stays with the agent, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, TrimCapability(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_an_agent_that_persists_keeps_what_was_sent(loop: Loop) -> None:
    """Then the cut is the history's, and the prompt begins alike even more often."""
    score, kept = play(loop, TrimCapability(BUDGET_TOKENS, persist=True))
    hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
    assert len(kept) < _messages_of(loop) / 3


def test_a_model_of_the_responses_form_is_sent_no_more() -> None:
    """Messages are read in one form, whichever the model is sent."""
    score, _ = play(agent(), TrimCapability(BUDGET_TOKENS), model=_responses_model)
    assert (score.requests, score.invalid, score.over, score.blind) == (230, [], [], [])
    assert score.reuse >= 0.70


def test_a_counter_may_be_awaited() -> None:
    """An agent is awaited anyway, and so is what counts for it."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    async def run() -> Score:
        with upstream(chat()) as served:
            made = _agent(_chat_model(served), served.loop, [TrimCapability(BUDGET_TOKENS, counter=count)])
            history: list[ModelMessage] = []
            for question in served.loop.questions[:12]:
                done = await made.run(_said(question), message_history=history, usage_limits=LIMITS)
                history = done.all_messages()
            return served.score

    score = asyncio.run(run())
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10


def _talk(turns: int) -> list[ModelMessage]:
    said: list[ModelMessage] = []
    for turn in range(turns):
        calls = [ToolCallPart("look", {"place": turn}, f"c{turn}"), ToolCallPart("look", "{}", f"d{turn}")]
        results = [
            ToolReturnPart("look", "sun " * 40, f"c{turn}"),
            ToolReturnPart("look", {"a": 1}, f"d{turn}"),
        ]
        head = [SystemPromptPart("Be brief.")] if not turn else []
        said += [
            ModelRequest([*head, UserPromptPart(f"question {turn}")]),
            ModelResponse([ThinkingPart("hm"), *calls]),
            ModelRequest(results),
            ModelResponse([TextPart("It is sunny.")]),
        ]
    return said


def sent(
    history: list[ModelMessage], *capabilities: Any, prompt: Any = "And now?", **options: Any
) -> list[ModelMessage]:
    """Return what a model is sent behind a history."""
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse([TextPart("done")])

    made = Agent(FunctionModel(answer), capabilities=list(capabilities), **options)
    made.run_sync(prompt, message_history=history)
    return seen[0]


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """Of the first request the system prompt stays, and its question leaves."""
    talk = _talk(30)
    seen: list[Fitted[Any]] = []
    kept = sent(talk, TrimCapability(600, model="gpt-4o", on_fitted=seen.append))
    first = seen[0].messages[0]
    assert first.parts == talk[0].parts[:1]
    assert len(talk[0].parts) == 2
    own = [one for one in seen[0].messages if any(one is other for other in talk)]
    assert len(own) == len(seen[0].messages) - 2  # the first is a copy, the last was asked just now
    calls = [part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolCallPart)]
    results = [part.tool_call_id for one in kept for part in one.parts if isinstance(part, ToolReturnPart)]
    assert calls == results
    assert 3 < len(kept) < len(talk)


def test_what_is_shortened_is_a_copy_with_what_stood_beside_it() -> None:
    """A result keeps its tool and time, a prompt its picture, and the user's messages are as they were."""

    def shortened(*talk: ModelMessage) -> list[ModelMessage]:
        return sent([*talk], TrimCapability(500, model="gpt-4o", strategy="truncate_text"))

    picture = BinaryContent.from_data_uri(IMAGE)
    asked = UserPromptPart(["word " * 900, picture, "Well?"])
    prompt = shortened(ModelRequest([asked]))[0].parts[0]
    assert isinstance(prompt, UserPromptPart)
    assert prompt.timestamp == asked.timestamp
    text, image, end = prompt.content
    assert (image, end, "trimtab" in str(text)) == (picture, "Well?", True)

    called, short = ToolCallPart("look", {}, "c"), ModelRequest([ToolReturnPart("look", "sun", "c")])
    said = TextPart("I look. " * 400, id="t", provider_name="p")
    answer = shortened(ModelResponse([said, called]), short)[0].parts
    assert isinstance(answer[0], TextPart)
    assert (answer[0].id, answer[1]) == (None, called)

    result = ToolReturnPart("look", "sun " * 900, "c", metadata={"from": "cache"})
    after = shortened(ModelResponse([called]), ModelRequest([result]))[1].parts[0]
    assert isinstance(after, ToolReturnPart)
    assert (after.tool_name, after.metadata, after.timestamp) == ("look", {"from": "cache"}, result.timestamp)
    assert len(result.content) == 3_600 > len(after.content) > 100


def test_what_is_put_in_is_a_message_of_the_framework() -> None:
    """A summary stands where the strategy puts it; instructions beside the messages are counted only."""
    seen: list[Fitted[Any]] = []
    kept = sent(
        _talk(30),
        TrimCapability(700, model="gpt-4o", strategy=Summarize(_summarize), on_fitted=seen.append),
        instructions=["Look well.", "Speak plainly."],
    )
    texts = [part.content for one in kept for part in one.parts if hasattr(part, "content")]
    assert sum("sunny all along" in str(text) for text in texts) == 1
    assert not any("Look well." in str(text) for text in texts)
    bare = sent(_talk(0), TrimCapability(700, model="gpt-4o", on_fitted=seen.append))
    told = sent(
        _talk(0), TrimCapability(700, model="gpt-4o", on_fitted=seen.append), instructions="Look well."
    )
    assert len(bare) == len(told) == 1
    assert seen[2].report.tokens_after > seen[1].report.tokens_after


def test_a_streamed_request_is_fitted_once() -> None:
    """Streaming and plain runs share the hooks."""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
        seen.append(len(messages))
        yield "done"

    async def run() -> None:
        made = Agent(FunctionModel(stream_function=stream), capabilities=[trims])
        async with made.run_stream("And now?", message_history=_talk(30)) as answer:
            assert await answer.get_output() == "done"

    seen: list[int] = []
    fits: list[Any] = []
    trims = TrimCapability(600, model="gpt-4o", on_fitted=fits.append)
    asyncio.run(run())
    assert len(seen) == len(fits) == 1
    assert seen[0] < 30


def test_the_schema_of_an_answer_is_counted() -> None:
    """It is sent beside the messages as those of tools are."""
    seen: list[Fitted[Any]] = []
    for kind in (str, ToolOutput(Look), NativeOutput(Look), PromptedOutput(Look)):
        with contextlib.suppress(UnexpectedModelBehavior):
            sent([], TrimCapability(700, model="gpt-4o", on_fitted=seen.append), output_type=kind)
    plain, *others = [one.report.tokens_after for one in (seen[0], *seen[1:])]
    assert len(others) >= 3
    assert all(tokens > plain + 20 for tokens in others)


@pytest.mark.parametrize("model", [_chat_model, _responses_model])
@pytest.mark.parametrize(
    "kind",
    [Whole, ToolOutput(Whole), NativeOutput(Whole), NativeOutput([Part, Whole]), PromptedOutput(Whole)],
    ids=["default", "tool", "native", "of-two", "prompted"],
)
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(kind: Any, model: Any) -> None:
    """As a tool, as the schema of the request, or as text of the instructions."""
    seen: list[Fitted[Any]] = []
    with provider() as server, contextlib.suppress(UnexpectedModelBehavior):
        trim = TrimCapability(4_000, on_fitted=seen.append)
        made: Any = Agent(model(server), instructions="Be brief.", capabilities=[trim], output_type=kind)
        made.run_sync("And now?")
    hold_answer(seen[0], server.bodies[0], model="gpt-4o")


@pytest.mark.parametrize(
    "part",
    [
        ToolReturnPart("look", "nothing is there " * 100, "c1"),
        ToolReturnPart("look", "nothing is there " * 100, "c1", outcome="failed"),
        RetryPromptPart("nothing is there " * 100, tool_name="look", tool_call_id="c1"),
    ],
    ids=["returned", "failed", "retried"],
)
def test_a_result_that_is_shortened_is_sent_as_it_is_counted(part: Any) -> None:
    """The framework puts what failed into `{"error": …}`: once."""
    talk: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Look.")]),
        ModelResponse([ToolCallPart("look", {}, "c1")]),
        ModelRequest([part]),
        ModelResponse([TextPart("Done.")]),
    ]
    seen: list[Fitted[Any]] = []
    with provider() as server:
        trim = TrimCapability(200, on_fitted=seen.append)
        made: Any = Agent(_chat_model(server), capabilities=[trim])
        made.run_sync("And now?", message_history=talk)
    hold_answer(seen[0], server.bodies[0], model="gpt-4o")
    (sent,) = [one["content"] for one in server.bodies[0][1]["messages"] if one["role"] == "tool"]
    assert "[text cut by trimtab" in sent
    assert sent.count('"error"') <= 1


def test_a_processor_of_the_history_writes_what_it_gives() -> None:
    """The framework has it replace the agent's history."""
    seen: list[Fitted[Any]] = []
    process = history_processor(600, model="gpt-4o", on_fitted=seen.append)
    made = Agent(FunctionModel(_done), capabilities=[ProcessHistory(process)])
    run = made.run_sync("And now?", message_history=_talk(30))
    assert run.all_messages()[:-1] == seen[0].messages
    assert len(run.all_messages()) < 60


def test_a_version_without_the_later_hook_is_fitted_before_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the framework asks once a step, each step is fitted, and the history stays whole."""
    spec = find_spec("trimtab.integrations.pydantic_ai")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with monkeypatch.context() as older:
        older.delattr(AbstractCapability, "prepare_model_request")
        spec.loader.exec_module(module)
    later = {"prepare_model_request": AbstractCapability.prepare_model_request}  # does nothing
    capability = type("Older", (module.TrimCapability,), later)(600, model="gpt-4o")
    history = _talk(30)
    whole = len(history)
    assert len(sent(history, capability)) < 60
    assert len(history) == whole


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        sent(_talk(30), TrimCapability(budget, model="gpt-4o", on_fitted=seen.append))
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(ConfigurationError, match="is unknown"):
        sent(_talk(3), TrimCapability("80%"))
    with pytest.raises(BudgetExceededError):
        sent(_talk(3), TrimCapability(5, model="gpt-4o"))
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        TrimCapability(["80%"])  # type: ignore[arg-type]


def _refused(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    raise ModelHTTPError(500, "gpt-4o")


def _models() -> tuple[Model, Model]:
    """Make one that always fails, and one with a window of 8,192 tokens, which answers."""
    return FunctionModel(_refused, model_name="gpt-4o"), FunctionModel(_done, model_name="gpt-4")


@pytest.mark.parametrize(
    "models",
    [
        pytest.param(_models(), id="last"),
        pytest.param(_models()[::-1], id="first"),
        pytest.param((*_models(), FunctionModel(_done, model_name="mine")), id="beside-an-unknown-one"),
        pytest.param((_models()[0], WrapperModel(_models()[1])), id="wrapped"),
        pytest.param((_models()[0], FallbackModel(*_models())), id="nested"),
    ],
)
def test_a_fallback_model_is_sent_what_fits_its_smallest_window(models: Sequence[Model]) -> None:
    """It is asked once for all its attempts; a share is that of this window, and no budget is this window."""
    seen: list[Any] = []
    for model in (FallbackModel(*models), WrapperModel(FallbackModel(*models))):
        for budget in ("50%", None):
            trim = TrimCapability(budget, on_fitted=seen.append)
            Agent(model, capabilities=[trim]).run_sync("And now?", message_history=_talk(3))
        process = history_processor("50%", on_fitted=seen.append)
        Agent(model, capabilities=[ProcessHistory(process)]).run_sync("And now?", message_history=_talk(3))
    assert [one.report.input_tokens for one in seen] == [4_096] * 6
    assert not any(one.report.exact for one in seen)  # no bill of gpt-4 is known


JAPANESE = "これは日本語の文章です。" * 20
"""A text that Claude is charged a tenth more for than gpt-4o."""


@pytest.mark.parametrize("names", [("claude-opus-4-5", "gpt-4o"), ("gpt-4o", "claude-opus-4-5")])
def test_a_fallback_model_is_sent_what_is_over_for_none_of_its_models(names: tuple[str, str]) -> None:
    """Whichever is asked first, and has the smallest window: what counts is the dearest count."""
    shown: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown.append(messages)
        return ModelResponse([TextPart("done")])

    talk: list[ModelMessage] = [
        message
        for _ in range(30)
        for message in (ModelRequest([UserPromptPart(JAPANESE)]), ModelResponse([TextPart(JAPANESE)]))
    ]
    model = FallbackModel(*(FunctionModel(answer, model_name=name) for name in names))
    for ours in (TrimCapability(4_000), ProcessHistory(history_processor(4_000))):
        Agent(model, capabilities=[ours]).run_sync("And now?", message_history=talk)
        counts: list[Any] = []
        for name in names:
            trim = TrimCapability(100_000, on_fitted=counts.append)
            alone = FunctionModel(_done, model_name=name)
            Agent(alone, capabilities=[trim]).run_sync(None, message_history=shown[-1])
        assert len(shown[-1]) < len(talk)
        assert max(one.report.tokens_after for one in counts) <= 4_000


def test_a_model_that_refuses_a_request_is_no_reason_to_send_none() -> None:
    """One of a `FallbackModel` that knows no such answer is passed over in counting."""

    class Unable(FunctionModel):
        def prepare_request(self, *asked: Any) -> Any:
            raise UserError("no such answer")

    seen: list[Any] = []
    for first in (FunctionModel(_done, model_name="gpt-4o"), None):
        models = [one for one in (first, Unable(_done, model_name="gpt-4")) if one is not None]
        agent = Agent(FallbackModel(*models), capabilities=[TrimCapability(on_fitted=seen.append)])
        if first is None:
            with pytest.raises(UserError, match="no such answer"):
                agent.run_sync("And now?")
        else:
            assert agent.run_sync("And now?").output == "done"
    assert seen


@pytest.mark.parametrize("is_first", [True, False])
def test_each_attempt_of_a_model_fallback_is_fitted_for_its_model(is_first: bool) -> None:
    """Wherever the capability that goes on to other models stands beside ours."""
    refused, small = _models()
    seen: list[Any] = []
    ours = TrimCapability("50%", on_fitted=seen.append)
    both: list[Any] = [ours, ModelFallback(small)] if is_first else [ModelFallback(small), ours]
    Agent(refused, capabilities=both).run_sync("And now?", message_history=_talk(3))
    assert [one.report.input_tokens for one in seen] == [64_000, 4_096]


def test_a_context_gives_its_blocks_to_each_request() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = _talk(30)
    kept = sent(talk, TrimCapability(context))
    assert sum("Utrecht" in str(part) for one in kept for part in one.parts) == 1
    assert len(kept) < len(talk)


def test_pins_are_messages_of_the_history() -> None:
    """By place, or by what they are."""
    talk = _talk(30)
    for pin in ([8], lambda message, index: message is talk[8]):
        kept = sent(talk, TrimCapability(600, model="gpt-4o", pin=pin))
        assert any(
            part.content == "question 2" for one in kept for part in one.parts if hasattr(part, "content")
        )


class BedrockConverseModel(FunctionModel):
    """Has the name of the framework's model of Bedrock, which needs a package that is not here."""


def test_a_model_of_bedrock_is_charged_in_its_form() -> None:
    """As if the form had been said, also where it is wrapped; else this model's counts would be exact."""
    found: list[Fitted[Any]] = []
    bedrock = BedrockConverseModel(_done)
    for model, options in (
        (bedrock, {}),
        (WrapperModel(bedrock), {}),
        (FunctionModel(_done), {"charge_as": "bedrock"}),
    ):
        trim = TrimCapability(BUDGET_TOKENS, on_fitted=found.append, model="gpt-4o", **options)
        Agent(model, capabilities=[trim]).run_sync("And now?")
    assert [one.report.exact for one in found] == [False, False, False]
    assert len({one.report.tokens_after for one in found}) == 1


@pytest.mark.parametrize(
    "made",
    [TrimCapability, lambda budget: ProcessHistory(history_processor(budget))],
    ids=["each", "history"],
)
@pytest.mark.parametrize(("settings", "count"), [({"openai_previous_response_id": "auto"}, 1), ({}, 0)])
def test_a_model_whose_server_keeps_the_conversation_is_told_of_once(
    made: Any, settings: Any, count: int, recwarn: pytest.WarningsRecorder
) -> None:
    """What precedes the last answer is not sent; the setting that does it is named."""
    warnings.simplefilter("always")
    with provider() as served:
        asked = Agent(_responses_model(served), capabilities=[made(2_000)], model_settings=settings)
        history: list[ModelMessage] = []
        for _ in range(2):
            history = asked.run_sync("Hello", message_history=history).all_messages()
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == count
    assert all(one.endswith("leave openai_previous_response_id out of the model settings") for one in told)


@pytest.mark.parametrize("thought", ["Hm, let me see.", ""], ids=["told", "sealed"])
def test_the_thinking_that_opens_a_turn_stays_beside_the_cut(thought: str) -> None:
    """A Claude thinks once and then calls a tool again and again; its thinking may have no text."""
    thinking = ThinkingPart(thought, signature="EqQBCgIYAhIM", provider_name="anthropic")
    history: list[ModelMessage] = [ModelRequest([UserPromptPart("Look around.")])]
    for at in range(12):
        call = ToolCallPart("look", {}, f"t{at}")
        history.append(ModelResponse([call] if at else [thinking, call]))
        history.append(ModelRequest([ToolReturnPart("look", "sunny " * 60, f"t{at}")]))
    sent: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent.append(messages)
        return _done(messages, info)

    model = FunctionModel(answer, model_name="claude-sonnet-4-6")
    looker = Agent(model, capabilities=[TrimCapability(1_300)])
    looker.run_sync(message_history=history)
    [messages] = sent
    assert 5 < len(messages) < len(history)
    assert messages[1].parts[0] == thinking
