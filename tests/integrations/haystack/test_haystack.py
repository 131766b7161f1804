"""`TrimHook` in Haystack's agents: what is sent, what is kept, and what a pipeline's file holds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.components.generators.chat import (
    MockChatGenerator,
    OpenAIChatGenerator,
    OpenAIResponsesChatGenerator,
)
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage, ImageContent, TextContent, ToolCall
from haystack.hooks import hook
from haystack.tools import Tool, tool
from haystack.utils import Secret

from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, Loop, Question, agent, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from trimtab import Budget, Context, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.haystack import TrimHook
from trimtab.strategies import Drop, Summarize

PICTURE = ImageContent(IMAGE.partition(",")[2], mime_type="image/png")


def _look(loop: Loop) -> Tool:
    @tool
    def look(place: int) -> str:
        """Look at a place."""
        return loop.look(place)

    return look


def _agent(served: Upstream, *hooks: Any, generator: Any = OpenAIChatGenerator) -> Agent:
    model = generator(
        api_key=Secret.from_token("none"),
        model="gpt-4o",
        api_base_url=f"{served.address}/v1",
        max_retries=0,
    )
    return Agent(
        chat_generator=model,
        tools=[_look(served.loop)],
        max_agent_steps=1_000,
        raise_on_tool_invocation_failure=False,
        hooks={"before_llm": [*hooks]},
    )


def _said(question: Question) -> ChatMessage:
    parts = [question.text, PICTURE] if question.has_image else [question.text]
    return ChatMessage.from_user(content_parts=parts)


def play(loop: Loop, *hooks: Any, generator: Any = OpenAIChatGenerator) -> tuple[Score, list[ChatMessage]]:
    """Play a loop with an agent of Haystack's; returns the score and the agent's messages."""
    with upstream(loop) as served:
        made = _agent(served, *hooks, generator=generator)
        messages = [ChatMessage.from_system(SYSTEM)]
        try:
            for question in loop.questions:
                messages = made.run([*messages, _said(question)])["messages"]
        finally:
            made.close()
        return served.score, messages


def _messages_of(loop: Loop) -> int:
    """Count what is said in a loop: the system prompt, questions, answers of the model, results."""
    steps = [step for question in loop.questions for step in question.steps]
    return 1 + len(loop.questions) + len(steps) + sum(len(getattr(step, "places", ())) for step in steps)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The whole history stays with the agent, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, TrimHook(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_an_agent_that_persists_keeps_what_was_sent(loop: Loop) -> None:
    """Then the cut is the state's, and the prompt begins alike even more often."""
    score, kept = play(loop, TrimHook(BUDGET_TOKENS, persist=True))
    hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
    assert len(kept) < _messages_of(loop) / 3


def test_a_generator_of_the_responses_form_is_sent_no_more() -> None:
    """Messages are read in one form, and charged as they are sent."""
    trim = TrimHook(BUDGET_TOKENS, charge_as="openai_responses")
    score, _ = play(agent(), trim, generator=OpenAIResponsesChatGenerator)
    hold(score, agent())


def test_an_agent_that_is_awaited_is_fitted_alike() -> None:
    """The async hook gives the same requests, also with a counter that has to be awaited."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    async def run() -> tuple[Score, int]:
        with upstream(chat()) as served:
            made = _agent(served, TrimHook(BUDGET_TOKENS, counter=count))
            messages = [ChatMessage.from_system(SYSTEM)]
            for question in served.loop.questions[:12]:
                messages = (await made.run_async([*messages, _said(question)]))["messages"]
            await made.close_async()
            return served.score, len(messages)

    score, kept = asyncio.run(run())
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10
    assert kept == 1 + 12 * 11  # a question, four answers and six results each


def _talk(turns: int) -> list[ChatMessage]:
    said = [ChatMessage.from_system("Be brief.")]
    for turn in range(turns):
        calls = [ToolCall("look", {"place": turn}, id=f"c{turn}"), ToolCall("look", {}, id=f"d{turn}")]
        said += [
            ChatMessage.from_user(f"question {turn}"),
            ChatMessage.from_assistant(tool_calls=calls, reasoning="hm"),
            ChatMessage.from_tool("sun " * 40, calls[0]),
            ChatMessage.from_tool([TextContent("none")], calls[1], error=True),
            ChatMessage.from_assistant("It is sunny."),
        ]
    return said


NOW = ChatMessage.from_user("And now?")


def sent(messages: list[ChatMessage], *hooks: Any, **options: Any) -> list[ChatMessage]:
    """Return what a model is sent; the agent's output ends with its answer."""
    seen: list[list[ChatMessage]] = []

    def answer(messages: list[ChatMessage]) -> str:
        seen.append(messages)
        return "done"

    model = MockChatGenerator(response_fn=answer)
    Agent(chat_generator=model, hooks={"before_llm": [*hooks]}, **options).run(messages)
    return seen[0]


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """Two calls of one answer leave with both results, and the system prompt never does."""
    talk = [*_talk(30), NOW]
    kept = sent(talk, TrimHook(500, model="gpt-4o"))
    assert all(any(one is other for other in talk) for one in kept)
    assert kept[0] is talk[0]
    assert kept[-1] is NOW
    calls = [call.id for one in kept for call in one.tool_calls]
    results = [result.origin.id for one in kept for result in one.tool_call_results]
    assert calls == results
    assert 4 < len(kept) < len(talk)


def test_what_the_agent_had_is_whole_before_a_tool_or_a_hook_sees_it() -> None:
    """Only the generator and later hooks of `before_llm` see what was cut; the output is whole."""
    seen: list[int] = []

    @hook
    def count(state: State) -> None:
        seen.append(len(state.data["messages"]))

    called = ChatMessage.from_assistant(tool_calls=[ToolCall("look", {"place": 1}, id="c")])
    hooks: Any = {
        "before_llm": [count, TrimHook(500, model="gpt-4o"), count],
        "before_tool": [count],
        "after_tool": [count],
        "on_exit": [count],
    }
    made = Agent(chat_generator=MockChatGenerator([called, "done"]), tools=[_look(chat())], hooks=hooks)
    talk = [*_talk(30), NOW]
    messages = made.run(talk)["messages"]
    whole = len(talk)
    first, second = seen[1], seen[5]
    assert seen == [whole, first, whole + 1, whole + 2, whole + 2, second, whole + 3]
    assert first < whole
    assert second < whole
    assert all(one is other for one, other in zip(messages, talk, strict=False))
    assert len(messages) == whole + 3


def test_a_message_with_several_results_keeps_those_that_stay() -> None:
    """One is shortened; the others are the very ones, and what stands beside the text stays."""
    calls = [ToolCall("look", {"place": at}) for at in range(3)]  # of a model that gives no ids
    short, long, listed = (
        ChatMessage.from_tool(result, call, error=True)
        for result, call in zip(["sun", "sun " * 900, [TextContent("rain")]], calls, strict=True)
    )
    results = [*short.tool_call_results, *long.tool_call_results, *listed.tool_call_results]
    many = ChatMessage("tool", results, _meta={"from": "cache"})  # type: ignore[arg-type]
    asked = ChatMessage.from_assistant("I look.", tool_calls=calls)
    kept = sent([NOW, asked, many], TrimHook(400, model="gpt-4o"))
    assert kept[:2] == [NOW, asked]
    one, two, three = kept[2].tool_call_results
    assert (one, three) == (results[0], results[2])
    assert one is results[0]
    assert (two.origin, two.error, kept[2].meta) == (calls[1], True, {"from": "cache"})
    assert 100 < len(two.result) < 3_600


def test_what_is_shortened_is_a_copy_with_what_stood_beside_it() -> None:
    """A question keeps its picture, name and meta; the user's messages are as they were."""
    asked = ChatMessage.from_user(content_parts=["word " * 900, PICTURE, "Well?"], name="ada", meta={"a": 1})
    kept, _ = sent([asked, NOW], TrimHook(500, model="gpt-4o", strategy="truncate_text"))
    assert (kept.name, kept.meta, kept.texts[1], kept.image) == ("ada", {"a": 1}, "Well?", PICTURE)
    assert 100 < len(kept.texts[0]) < 4_500 == len(asked.texts[0])

    call = ToolCall("look", {}, id="c", extra={"call_id": "call_c"})
    said = ChatMessage.from_assistant("I look. " * 400, tool_calls=[call], reasoning="hm")
    talk = [said, ChatMessage.from_tool("sun", call), NOW]
    kept = sent(talk, TrimHook(500, model="gpt-4o", strategy="truncate_text"))[0]
    assert (kept.tool_calls, kept.reasoning) == ([call], said.reasoning)
    assert "trimtab" in str(kept.text)


def _summarize(messages: list[Any], existing: str | None) -> str:
    return "It was sunny all along."


def test_what_is_put_in_is_a_message_of_the_framework() -> None:
    """A summary stands where the strategy puts it."""
    hook = TrimHook(500, model="gpt-4o", strategy=Summarize(_summarize))
    kept = sent([*_talk(30), NOW], hook)
    assert sum("sunny all along" in str(one.text) for one in kept) == 1
    assert all(isinstance(one, ChatMessage) for one in kept)


def test_tools_are_counted() -> None:
    """Their schemas are sent beside the messages."""
    seen: list[Fitted[Any]] = []
    trim = TrimHook(500, model="gpt-4o", on_fitted=seen.append)
    for tools in ([], [_look(chat())]):
        sent([NOW], trim, tools=tools)
    bare, told = (one.report.tokens_after for one in seen)
    assert told > bare + 20


def test_the_newest_answer_says_which_model_is_counted_for() -> None:
    """A hook is not shown the generator: before the first answer a share of a window has no model."""
    seen: list[Any] = []
    model = MockChatGenerator("done", model="gpt-4o")
    made = Agent(chat_generator=model, hooks={"before_llm": [TrimHook("0.5%", on_fitted=seen.append)]})
    with pytest.raises(ConfigurationError, match="no model is named"):
        made.run([NOW])
    answered = ChatMessage.from_assistant("Yes.", meta={"model": "gpt-4o"})
    made.run([NOW, answered, NOW])
    assert seen[0].report.input_tokens == 640


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        sent([*_talk(30), NOW], TrimHook(budget, model="gpt-4o", on_fitted=seen.append))
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(BudgetExceededError):
        sent([NOW], TrimHook(5, model="gpt-4o"))
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        TrimHook(["80%"])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no place for marks"):
        TrimHook(640, breakpoints=True)


def test_a_context_gives_its_blocks_to_each_request() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = [*_talk(30), NOW]
    kept = sent(talk, TrimHook(context))
    assert sum("Utrecht" in str(one.text) for one in kept) == 1
    assert len(kept) < len(talk)


def test_the_system_text_of_a_context_stands_before_that_of_the_agent() -> None:
    """It was sent in its place."""
    context = Context(Budget(900), model="gpt-4o").add("system", "Answer in verse.").add("history", [])
    talk = [ChatMessage.from_system("Be kind."), NOW]
    assert [one.text for one in sent(talk, TrimHook(context))][:2] == ["Answer in verse.", "Be kind."]


def test_pins_are_messages_of_the_history() -> None:
    """By place, or by what they are."""
    talk = [*_talk(30), NOW]
    for pin in ([6], lambda message, index: message is talk[6]):
        assert any(one is talk[6] for one in sent(talk, TrimHook(500, model="gpt-4o", pin=pin)))


def test_a_streamed_request_is_fitted_once() -> None:
    """A callback changes nothing about the hook."""
    chunks: list[Any] = []
    fits: list[Any] = []
    trim = TrimHook(500, model="gpt-4o", on_fitted=fits.append)
    kept = sent([*_talk(30), NOW], trim, streaming_callback=chunks.append)
    assert len(fits) == 1
    assert fits[0].messages == kept
    assert chunks


def count(messages: list[Any]) -> int:
    """Count for a test that writes this function's name into a file."""
    return sum(len(str(message)) // 4 for message in messages)


def _context() -> Context:
    context = Context(Budget(900), model="gpt-4o")
    context.add("history", [], priority=50)
    return context


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(TrimHook("0.5%", model="gpt-4o", persist=True), id="share"),
        pytest.param(TrimHook(Budget(700, output_reserve=60), counter=count, pin=(6,)), id="function"),
        pytest.param(TrimHook(500, model="gpt-4o", strategy=Drop()), id="strategy"),
        pytest.param(TrimHook(_context()), id="context"),
    ],
)
def test_a_pipeline_is_written_and_read_with_its_hook(made: TrimHook) -> None:
    """It sends what the other sends; Haystack loads modules of others only where that is allowed."""
    pipeline = Pipeline()
    pipeline.add_component(
        "agent", Agent(chat_generator=MockChatGenerator("done"), hooks={"before_llm": [made]})
    )
    text = pipeline.dumps()
    with pytest.raises(DeserializationError, match="trusted-module allowlist"):
        Pipeline.loads(text)
    read: Any = Pipeline.loads(text, allowed_modules=["trimtab", "tests"]).get_component("agent")
    [again] = read.hooks["before_llm"]
    assert again.to_dict() == made.to_dict()
    talk = [*_talk(30), NOW]
    assert sent(talk, again) == sent(talk, made)
    assert len(sent(talk, made)) < len(talk)


def test_what_no_file_can_hold_is_refused() -> None:
    """A model to summarize with has no name."""
    with pytest.raises(ConfigurationError, match="summarize"):
        TrimHook(500, strategy=Summarize(lambda messages, existing: "")).to_dict()
