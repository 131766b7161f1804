"""`TrimMiddleware` in LangChain's agents, and `trim_messages`: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from base64 import b64decode, b64encode
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse, wrap_model_call
from langchain.agents.structured_output import (
    ProviderStrategy,
    StructuredOutputError,
    ToolStrategy,
)
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from pydantic import Field

from tests.integrations.answers import Part, Whole, hold_answer
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, LookError, Loop, Question, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import provider
from trimtab import Budget, CharCounter, Context, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.langchain import TrimMiddleware, trim_messages
from trimtab.models import facts_for


def _model(served: Upstream, **options: Any) -> ChatOpenAI:
    address = f"{served.address}/v1"
    return ChatOpenAI(model="gpt-4o", base_url=address, api_key="none", max_retries=0, **options)


def _tool(loop: Loop) -> Any:
    @tool
    def look(place: int) -> str:
        """Look at a place."""
        try:
            return loop.look(place)
        except LookError as error:
            raise ToolException(str(error)) from error

    look.handle_tool_error = True
    return look


def _said(question: Question) -> HumanMessage:
    if not question.has_image:
        return HumanMessage(question.text)
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    return HumanMessage([{"type": "text", "text": question.text}, image])


def _agent(served: Upstream, *middleware: Any, **options: Any) -> Any:
    return create_agent(
        _model(served, **options),
        [_tool(served.loop)],
        system_prompt=SYSTEM,
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )


CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 5_000}


def play(loop: Loop, *middleware: Any, **options: Any) -> tuple[Score, list[Any]]:
    """Play a loop with an agent of LangChain's; returns the score and the messages of its last checkpoint."""
    with upstream(loop) as served:
        agent = _agent(served, *middleware, **options)
        for question in loop.questions:
            agent.invoke({"messages": [_said(question)]}, CONFIG)
        return served.score, agent.get_state(CONFIG).values["messages"]


def _messages_of(loop: Loop) -> int:
    """Count what is said in a loop: questions, answers of the model, results."""
    steps = [step for question in loop.questions for step in question.steps]
    return len(loop.questions) + len(steps) + sum(len(getattr(step, "places", ())) for step in steps)


def test_a_model_of_the_responses_form_is_sent_no_more() -> None:
    """Messages are read as those of Chat Completions, and charged as the items they become."""
    loop = LOOPS[1]
    hold(play(loop, TrimMiddleware(BUDGET_TOKENS), use_responses_api=True)[0], loop)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The whole history stays with the agent, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, TrimMiddleware(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_an_agent_that_persists_keeps_what_was_sent(loop: Loop) -> None:
    """Then the cut is the state's, and the prompt begins alike even more often."""
    score, kept = play(loop, TrimMiddleware(BUDGET_TOKENS, persist=True))
    hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
    assert len(kept) < _messages_of(loop) / 3


class _Scripted(FakeListChatModel):
    """Keeps what it is sent."""

    sent: list[list[Any]] = Field(default_factory=list)

    def _call(self, messages: list[BaseMessage], *given: Any, **more: Any) -> str:
        self.sent.append(messages)
        return "Yes."


def _persisted(context: Context, *others: Any) -> tuple[list[list[Any]], list[Any]]:
    """Run an agent over a long talk, once more afterwards; returns what was sent, and the state."""
    model = _Scripted(responses=["Yes."], sent=[])
    trim = TrimMiddleware(context, persist=True)
    agent: Any = create_agent(
        model, [], system_prompt=SYSTEM, middleware=[*others, trim], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": _talk(12)[1:]}, CONFIG)
    agent.invoke({"messages": [HumanMessage("Sure?", id="sure")]}, CONFIG)
    return model.sent, agent.get_state(CONFIG).values["messages"]


def test_the_system_prompt_never_leaves_a_context_that_has_no_block_for_it() -> None:
    """Each call is sent it, and the state keeps what else was sent, and none of it."""
    sent, kept = _persisted(Context(500, model="gpt-4o").add("history", []))
    assert [messages[0].content for messages in sent] == [SYSTEM, SYSTEM]
    assert all(isinstance(one, SystemMessage) is (at == 0) for m in sent for at, one in enumerate(m))
    assert [one.id for one in kept[:-1]] == [one.id for one in sent[1][1:]]
    assert 4 < len(kept) < 40


@pytest.mark.parametrize("head", [[], [SystemMessage("Be brief.", id="s")]])
def test_a_message_of_the_state_never_takes_the_place_of_a_system_prompt_that_left(head: list[Any]) -> None:
    """A block of a Context may let the prompt leave; then nothing is sent as it, and nothing is lost."""
    blocks = Context(20, model="gpt-4o").add("system", [], priority=-1).add("history", [])
    model, seen = _Scripted(responses=["Yes."]), list[Any]()
    said: Any = [*head, HumanMessage("Well?", id="a")]
    asked: Any = ModelRequest(
        model=model,
        messages=said,
        system_message=SystemMessage(SYSTEM),
        tools=[],
        state=cast("Any", {"messages": said}),
    )

    def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
        seen.append(request)
        return ModelResponse(result=[AIMessage("Yes.")])

    answered: Any = TrimMiddleware(blocks, persist=True).wrap_model_call(asked, answer)
    assert seen[0].system_message is None
    assert seen[0].messages == said
    assert answered.command.update["messages"][1:-1] == said


def test_what_other_middleware_leaves_out_of_a_call_stays_in_the_state() -> None:
    """What is persisted is what trimtab let leave, whatever else a call is not shown."""

    @wrap_model_call
    def hide(request: ModelRequest[Any], handler: Any) -> Any:
        return handler(request.override(messages=request.messages[4:-5] + request.messages[-1:]))

    sent, kept = _persisted(Context(300, model="gpt-4o").add("history", []), hide)
    hidden = [one.id for one in _talk(12)[1:]]
    assert [one.id for one in kept[:4]] == hidden[:4]
    assert {*hidden[-5:-1]} <= {one.id for one in kept}
    assert [one.id for one in kept].index("now") == [one.id for one in kept].index("e11") + 1
    assert "q1" not in {one.id for one in kept}
    assert len(sent) == 2


@pytest.mark.parametrize("has_messages", [True, False])
def test_the_state_is_what_was_sent_where_other_middleware_puts_messages_in(has_messages: bool) -> None:
    """What they stand for would stay beside them, and the state would grow by all of it at each call."""
    talk = _talk(12)[1:]
    state = cast("Any", {"messages": talk} if has_messages else {})
    said: Any = [*talk[:-1], HumanMessage("Read this first. And now?")]
    system = SystemMessage(SYSTEM)
    asked: Any = ModelRequest(
        model=_Scripted(responses=[]), messages=said, system_message=system, state=state
    )
    seen: list[ModelRequest[Any]] = []

    def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
        seen.append(request)
        return ModelResponse(result=[AIMessage("Yes.")])

    answered: Any = TrimMiddleware(300, persist=True).wrap_model_call(asked, answer)
    kept = answered.command.update["messages"][1:-1]
    assert kept == seen[0].messages
    assert kept[-1] is said[-1]
    assert len(kept) < len(said)


def test_an_agent_that_is_awaited_is_fitted_alike() -> None:
    """The async hook gives the same requests, also with a counter that has to be awaited."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    async def run() -> Score:
        with upstream(chat()) as served:
            agent = _agent(served, TrimMiddleware(BUDGET_TOKENS, counter=count))
            for question in served.loop.questions[:12]:
                await agent.ainvoke({"messages": [_said(question)]}, CONFIG)
            return served.score

    score = asyncio.run(run())
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10


def _talk(turns: int) -> list[Any]:
    said: list[Any] = [SystemMessage("Be brief.", id="s")]
    for turn in range(turns):
        call = {"name": "look", "args": {"place": turn}, "id": f"c{turn}"}
        said += [
            HumanMessage(f"question {turn}", id=f"q{turn}"),
            AIMessage("", tool_calls=[call], id=f"a{turn}"),
            ToolMessage("sun " * 40, tool_call_id=f"c{turn}", id=f"r{turn}"),
            AIMessage("It is sunny.", id=f"e{turn}"),
        ]
    return [*said, HumanMessage("And now?", id="now")]


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """LangChain's own trimmer with its default arguments leaves results without their calls."""
    talk = _talk(30)
    kept = trim_messages(talk, 400, model="gpt-4o")
    assert kept[0] is talk[0]
    assert kept[-1] is talk[-1]
    assert all(any(one is other for other in talk) for one in kept)
    calls = {call["id"] for one in kept if isinstance(one, AIMessage) for call in one.tool_calls}
    assert calls == {one.tool_call_id for one in kept if isinstance(one, ToolMessage)}
    assert 3 < len(kept) < len(talk)


def test_what_is_shortened_is_a_copy_with_its_id() -> None:
    """The caller's message is as it was, blocks keep what they had beside their text."""
    block = {"type": "text", "text": "word " * 300, "index": 3}
    talk = [
        HumanMessage([block, {"type": "image_url", "image_url": {"url": IMAGE}}], id="a"),
        HumanMessage("Well?"),
    ]
    kept = trim_messages(talk, 400, model="gpt-4o", strategy="truncate_text")
    assert kept[0] is not talk[0]
    assert kept[0].id == "a"
    text, image = kept[0].content
    assert (text["index"], text["type"], image) == (3, "text", talk[0].content[1])
    assert len(text["text"]) < len(block["text"]) == 1_500


VIDEO = b64encode(b"x" * 100_000).decode()
ELSEWHERE = [
    {"type": "file", "url": "https://example.com/a.pdf"},
    {"type": "text-plain", "url": "https://example.com/a.txt", "mime_type": "text/plain"},
    {"type": "video", "url": "https://example.com/a.mp4"},
    {"type": "image", "file_id": "file-1"},
    {"type": "media", "mime_type": "video/mp4", "file_uri": "files/1"},
]
"""Media that are not in the message."""
HERE = [
    {"type": "video", "base64": VIDEO, "mime_type": "video/mp4"},
    {"type": "media", "data": b64decode(VIDEO), "mime_type": "video/mp4"},
    {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"%PDF-1.4" + b64decode(VIDEO)}}},
]
"""Media that are, in LangChain's words and in those that a provider's class takes."""


def _tokens_of(block: Any, **options: Any) -> int:
    """Count a block by what a message with it is charged more."""
    seen: list[Any] = []
    for content in ([], [block]):
        message = HumanMessage([{"type": "text", "text": "See."}, *content])
        assert trim_messages([message], 400_000, on_fitted=seen.append, **options)[0] is message
    plain, more = (one.report.tokens_after for one in seen)
    return int(more - plain)


@pytest.mark.parametrize("block", [*ELSEWHERE, *HERE], ids=lambda block: "-".join(map(str, block))[:40])
def test_a_block_that_langchain_cannot_write_for_openai_is_counted_as_what_it_is(block: Any) -> None:
    """Agents whose model takes it broke; it is charged as a medium of the model, and comes back as it was."""
    rule = facts_for("claude-sonnet-4-5").media
    least = min(rule.file_tokens, rule.most_image_tokens or 0) if block in ELSEWHERE else 30_000
    assert least <= _tokens_of(block, model="claude-sonnet-4-5", charge_as="anthropic") < 50_000


def test_a_video_is_charged_by_its_length_where_the_model_does() -> None:
    """A second of it is 263 tokens for Gemini 2.5, and a minute is taken where nobody knows."""
    gemini = {"model": "gemini-2.5-flash", "charge_as": "gemini"}
    assert 263 <= _tokens_of(HERE[0], **gemini) < 300
    assert 60 * 263 <= _tokens_of(ELSEWHERE[2], **gemini) < 60 * 263 + 50


def test_what_else_a_provider_takes_is_counted_as_json_and_never_as_nothing() -> None:
    """Nobody knows what it is charged; its own words are."""
    for block in ({"guardContent": {"text": {"text": "word " * 50}}}, {"type": "new", "said": "word " * 50}):
        assert _tokens_of(block, model="gpt-4o") > 50


def test_the_text_of_a_plain_text_block_is_a_text() -> None:
    """It is charged alike, and shortened in its block."""
    block = {"type": "text-plain", "text": "word " * 300, "mime_type": "text/plain", "title": "a"}
    plain = {"type": "text", "text": block["text"]}
    assert _tokens_of(block, model="gpt-4o") == _tokens_of(plain, model="gpt-4o")
    talk = [HumanMessage([block]), HumanMessage("Well?")]
    kept = trim_messages(talk, 200, model="gpt-4o", strategy="truncate_text")
    (cut,) = kept[0].content
    assert {**cut, "text": block["text"]} == block
    assert len(cut["text"]) < len(block["text"])


def test_a_point_of_bedrocks_prompt_cache_is_free_and_stays_where_it_is() -> None:
    """It is a mark of the block before it, as with Strands."""
    point = {"cachePoint": {"type": "default"}}
    assert _tokens_of(point, model="gpt-4o") == 0
    text = {"type": "text", "text": "word " * 300}
    for content in ([text, point, {"type": "text", "text": "See."}], [point, text]):
        kept = trim_messages(
            [HumanMessage(content), HumanMessage("Well?")], 200, model="gpt-4o", strategy="truncate_text"
        )
        assert [one == point for one in kept[0].content] == [one == point for one in content]
        assert set().union(*kept[0].content) == {"type", "text", "cachePoint"}


def test_marks_for_a_prompt_cache_stand_in_the_blocks_they_are_set_for() -> None:
    """What a block says beside them is as it was."""
    for block in ({"type": "text", "text": "See.", "index": 1}, ELSEWHERE[0]):
        (kept,) = trim_messages([HumanMessage([block])], 4_000, model="claude-sonnet-4-5", breakpoints=True)
        assert kept.content == [{**block, "cache_control": {"type": "ephemeral"}}]
    (kept,) = trim_messages([HumanMessage(["See."])], 4_000, model="claude-sonnet-4-5", breakpoints=True)
    assert kept.content == [{"type": "text", "text": "See.", "cache_control": {"type": "ephemeral"}}]


def test_the_words_of_langchains_function_are_taken_or_refused_by_name() -> None:
    """Nobody's argument is dropped without a word."""
    talk = _talk(20)
    ours = trim_messages(talk, 300, model="gpt-4o")
    theirs = trim_messages(
        talk, max_tokens=300, strategy="last", token_counter=ChatOpenAI(model="gpt-4o", api_key="none")
    )
    assert [one.id for one in theirs] == [one.id for one in ours]
    oldest = trim_messages(talk, max_tokens=300, strategy="first", model="gpt-4o")
    assert [one.id for one in oldest[:3]] == ["s", "q0", "a0"]
    counted = trim_messages(talk, max_tokens=40, token_counter=len)
    assert len(counted) <= 40 < len(talk)
    with pytest.raises(ConfigurationError, match="pass one of them"):
        trim_messages(talk, 300, max_tokens=300)
    with pytest.raises(ConfigurationError, match="token_counter is LangChain's name for counter"):
        trim_messages(talk, 300, token_counter=len, counter=len)
    with pytest.raises(BudgetExceededError):
        trim_messages(talk, 5, model="gpt-4o")


def test_without_messages_it_is_a_runnable_that_trims_what_it_is_given() -> None:
    """As langchain-core's: between a prompt and a model, waited for or not, any number of times."""
    talk = _talk(20)
    seen: list[Any] = []
    trim = trim_messages(max_tokens=300, model="gpt-4o", on_fitted=seen.append)
    alone = [one.id for one in trim_messages(talk, 300, model="gpt-4o")]
    assert [one.id for one in trim.invoke(talk)] == alone
    assert [one.id for one in asyncio.run(trim.ainvoke(talk))] == alone
    chain = ChatPromptTemplate.from_messages([MessagesPlaceholder("talk")]) | trim
    assert [one.id for one in chain.invoke({"talk": talk})] == alone
    assert len(seen) == 3
    with pytest.raises(ConfigurationError, match="start_on must include 'human'"):
        trim_messages(max_tokens=300, start_on="ai")


def test_a_counter_over_one_message_is_known_by_its_annotation() -> None:
    """As langchain-core tells it; an annotation may be text."""
    talk = _talk(20)

    def one(message: BaseMessage) -> int:
        return 1

    def named(message: Any) -> int:
        return one(message)

    named.__annotations__["message"] = BaseMessage
    assert one.__annotations__["message"] == "BaseMessage"
    for counter in (one, named, len):  # that of a list, too, is asked about messages and not about texts
        seen: list[Any] = []
        kept = trim_messages(talk, max_tokens=40, token_counter=counter, on_fitted=seen.append)
        assert seen[0].report.tokens_after == len(kept)
        assert 25 <= len(kept) <= 40  # three quarters of the budget, less the rest of a turn


def test_a_model_that_nobody_knows_counts_itself() -> None:
    """Its own count is asked, not replaced by an estimate; what it counts for is known of another."""

    class Counting(FakeListChatModel):
        model_name: str = "mine"

        def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
            return 10 * len(messages)

    talk, seen = _talk(20), list[Any]()
    kept = trim_messages(
        talk, max_tokens=400, token_counter=Counting(responses=["ok"]), on_fitted=seen.append
    )
    assert seen[0].report.tokens_after == 10 * len(kept) <= 400
    known = Counting(responses=["ok"], model_name="gpt-4o")
    assert trim_messages(talk, 400, token_counter=known) == trim_messages(talk, 400, model="gpt-4o")
    with pytest.raises(ConfigurationError, match="the limit of 'mine' is unknown"):
        trim_messages(talk, "80%", token_counter=Counting(responses=["ok"]))


def test_a_model_that_cannot_count_is_estimated_and_other_words_for_a_count_win() -> None:
    """A served model of one's own, and a class with LangChain's base method: each as if it were not given."""

    class Counting(FakeListChatModel):
        def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
            return 100 * len(messages)

    class Unable(FakeListChatModel):
        def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
            raise ImportError("tokenizers is not installed")

    talk = _talk(20)
    served = ChatOpenAI(model="acme/zzz-local", base_url="http://127.0.0.1:9/v1", api_key="none")
    words: list[dict[str, Any]] = [
        {"model": "gpt-4o"},
        {"counter": CharCounter()},
        {"charge_as": "anthropic"},
    ]
    for model in (served, FakeListChatModel(responses=["ok"]), Unable(responses=["ok"])):
        for said in ({}, *words):
            assert trim_messages(talk, 300, token_counter=model, **said) == trim_messages(talk, 300, **said)
    counting = Counting(responses=["ok"])
    for said in words:
        assert trim_messages(talk, 300, token_counter=counting, **said) == trim_messages(talk, 300, **said)
    context = Context(300, counter=CharCounter()).add("history", [])
    assert trim_messages(talk, context, token_counter=counting) == trim_messages(talk, context)


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model; one that nobody knows has none."""
    talk = _talk(30)
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        trim_messages(talk, budget, model="gpt-4o", on_fitted=seen.append)
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(ConfigurationError, match="the limit of 'mine' is unknown"):
        trim_messages(talk, "80%", model="mine")
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        trim_messages(talk, ["80%"])  # type: ignore[arg-type]


def test_a_context_gives_its_blocks_to_each_call() -> None:
    """What the call says fills the history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = _talk(30)
    kept = trim_messages(talk, context)
    assert kept[-1] is talk[-1]
    assert sum("Utrecht" in str(one.content) for one in kept) == 1
    assert len(kept) < len(talk)
    with pytest.raises(ConfigurationError, match="strategy: the blocks of a Context"):
        trim_messages(talk, context, strategy="agent")


class _Converse(FakeListChatModel):
    """Says that it is langchain-aws's model of Bedrock's Converse, whose package is not here."""

    model_id: str = "gpt-4o"

    @property
    def _llm_type(self) -> str:
        return "amazon_bedrock_converse_chat"


@pytest.mark.parametrize("options", [{}, {"use_responses_api": True}], ids=["chat", "responses"])
@pytest.mark.parametrize(
    "asked",
    [
        ToolStrategy(Whole),
        ToolStrategy(Part | Whole),
        ProviderStrategy(Whole),
        Whole,
        Part.model_json_schema(),
    ],
    ids=["tool", "tools", "schema", "by-the-model", "of-a-schema"],
)
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(asked: Any, options: Any) -> None:
    """An agent asks for it by a call or by its schema; a bare type goes by the model: the dearer counts."""
    seen: list[Fitted[Any]] = []
    with provider() as server, contextlib.suppress(StructuredOutputError, GraphRecursionError):
        address = f"{server.address}/v1"
        model = ChatOpenAI(model="gpt-4o", base_url=address, api_key="none", max_retries=0, **options)
        trim = TrimMiddleware(3_000, on_fitted=seen.append)
        agent = create_agent(model, [], response_format=asked, middleware=[trim])
        talk = [message for _ in range(60) for message in (HumanMessage("word " * 25), AIMessage("so " * 25))]
        agent.invoke({"messages": [*talk, HumanMessage("And now?")]}, {"recursion_limit": 3})
    hold_answer(seen[0], server.bodies[0], model="gpt-4o", most=1.02)
    assert 1_400 < seen[0].report.tokens_after <= 3_000


def test_a_model_of_bedrock_is_charged_in_its_form() -> None:
    """As if the form had been said; without it, this model's counts would be exact."""
    found: list[Any] = []
    for model, options in (
        (_Converse(responses=["done"]), {}),
        (ChatOpenAI(model="gpt-4o", api_key="none"), {"charge_as": "bedrock"}),
    ):
        trim = TrimMiddleware(BUDGET_TOKENS, on_fitted=found.append, **options)
        asked = ModelRequest(model=model, messages=[HumanMessage("And now?")], tools=[], state={})
        trim.wrap_model_call(asked, lambda request: ModelResponse(result=[AIMessage("done")]))
    assert [one.report.exact for one in found] == [False, False]
    assert len({one.report.tokens_after for one in found}) == 1


@pytest.mark.parametrize(
    ("options", "count"),
    [
        pytest.param({"use_previous_response_id": True}, 1, id="kept-by-the-server"),
        pytest.param({"use_previous_response_id": True, "use_responses_api": False}, 0, id="chat"),
        pytest.param({"use_responses_api": True}, 0, id="responses"),
    ],
)
def test_a_model_whose_server_keeps_the_conversation_is_told_of_once(
    options: dict[str, Any], count: int, recwarn: pytest.WarningsRecorder
) -> None:
    """It sends what is behind its last answer, whatever is fitted; the way out is said by its own name."""
    warnings.simplefilter("always")
    with provider() as served:
        address = f"{served.address}/v1"
        model = ChatOpenAI(model="gpt-4o", base_url=address, api_key="none", max_retries=0, **options)
        agent = create_agent(model, middleware=[TrimMiddleware(2_000)])
        for _ in range(2):
            agent.invoke({"messages": [HumanMessage("Hello")]})
        trim_messages([HumanMessage("Hello")], 2_000, token_counter=model)
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == 2 * count  # the agent's, and that of `trim_messages`
    assert all(one.endswith("write ChatOpenAI(use_previous_response_id=False)") for one in told)
