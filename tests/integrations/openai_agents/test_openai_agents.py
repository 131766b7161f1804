"""`trim_filter` in runs of OpenAI's Agents SDK: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from agents import (
    Agent,
    AgentOutputSchema,
    ModelBehaviorError,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SessionSettings,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents import Session as AgentsSession
from agents.run import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.integrations.answers import Part, Whole, hold_answer
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, LookError, Loop, Question, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import answered, provider
from trimtab import Budget, Context, Fitted, Session
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.openai_agents import TrimSession, trim_filter
from trimtab.stores import SQLiteStore

set_tracing_disabled(True)
logging.getLogger("openai.agents").setLevel(logging.ERROR)


def _agent(loop: Loop, model: Any) -> Agent[Any]:
    @function_tool(failure_error_function=lambda context, error: str(error))
    def look(place: int) -> str:
        """Look at a place."""
        try:
            return loop.look(place)
        except LookError as error:
            raise RuntimeError(str(error)) from error

    return Agent("looker", instructions=SYSTEM, tools=[look], model=model)


def _said(question: Question) -> Any:
    content: list[Any] = [{"type": "input_text", "text": question.text}]
    if question.has_image:
        content.append({"type": "input_image", "image_url": IMAGE, "detail": "auto"})
    return [{"role": "user", "content": content}]


async def _play(
    served: Upstream, config: RunConfig, model: Any, session: Any, questions: int, name: str
) -> Score:
    async with AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0) as client:
        looker = _agent(served.loop, model(model=name, openai_client=client))
        for question in served.loop.questions[:questions]:
            await Runner.run(looker, _said(question), session=session, run_config=config, max_turns=300)
    return served.score


def play(
    loop: Loop,
    filter: Any = None,
    *,
    model: Any = OpenAIResponsesModel,
    session: Any = None,
    questions: int = 1_000,
    name: str = "gpt-4o",
) -> tuple[Score, list[Any]]:
    """Play a loop with an agent of the SDK; returns the score and the items of its session."""
    session = session or SQLiteSession("t")
    config = RunConfig(call_model_input_filter=filter, tracing_disabled=True)

    async def run() -> tuple[Score, list[Any]]:
        with upstream(loop) as served:
            score = await _play(served, config, model, session, questions, name)
            return score, await session.get_items()

    return asyncio.run(run())


def _items_of(loop: Loop) -> int:
    """Count what is said in a loop: questions, answers, calls and results, each an item."""
    steps = [step for question in loop.questions for step in question.steps]
    places = sum(len(getattr(step, "places", ())) for step in steps)
    return 2 * len(loop.questions) + 2 * places


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The session keeps all of it, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, trim_filter(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _items_of(loop)
    assert len(seen) == loop.model_calls


def test_a_chat_model_is_sent_no_more() -> None:
    """The SDK writes the same items as messages of Chat Completions for it."""
    score, _ = play(chat(), trim_filter(BUDGET_TOKENS), model=OpenAIChatCompletionsModel, questions=30)
    assert (score.requests, score.invalid, score.over, score.blind) == (120, [], [], [])


def test_a_counter_may_be_awaited() -> None:
    """A run is awaited anyway, and so is what counts for it."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    score, _ = play(chat(), trim_filter(BUDGET_TOKENS, counter=count), questions=12)
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10


def _talk(turns: int) -> list[Any]:
    said: list[Any] = []
    for turn in range(turns):
        said += [
            {"role": "user", "content": f"question {turn}"},
            {"type": "function_call", "call_id": f"c{turn}", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{turn}", "output": "sun " * 40},
            {"role": "assistant", "content": "It is sunny."},
        ]
    return [*said, {"role": "user", "content": "And now?"}]


def sent(items: list[Any], filter: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """Return what a model is sent, and what the run keeps of its input."""
    model = ScriptedModel([[assistant_message("done")]])
    asked = Agent("asked", model=model, **options)
    config = RunConfig(call_model_input_filter=filter, tracing_disabled=True)
    run = asyncio.run(Runner.run(asked, items, run_config=config))
    assert model.first_call is not None
    given: Any = model.first_call.input
    return given, run.to_input_list()


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """The run keeps all of it."""
    seen: list[Fitted[Any]] = []
    talk = _talk(30)
    given, kept = sent(talk, trim_filter(600, model="gpt-4o", on_fitted=seen.append))
    assert kept[:-1] == talk
    assert seen[0].changed == []
    assert [talk[place] for place in seen[0].positions if place is not None] == given
    calls = [item["call_id"] for item in given if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in given if item.get("type") == "function_call_output"]
    assert 3 < len(given) < len(talk)


def test_a_function_that_is_told_of_a_fit_may_be_async() -> None:
    """The filter waits for it; it never ran."""
    seen: list[Fitted[Any]] = []

    async def log(fitted: Fitted[Any]) -> None:
        await asyncio.sleep(0)
        seen.append(fitted)

    given, _ = sent(_talk(30), trim_filter(600, model="gpt-4o", on_fitted=log))
    assert [one.messages for one in seen] == [given]


def test_what_is_shortened_is_a_copy() -> None:
    """The item of the run is as it was."""
    long = {"type": "function_call_output", "call_id": "c", "output": "sun " * 900, "status": "completed"}
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    given, kept = sent([call, long], trim_filter(500, model="gpt-4o"))
    assert (given[1]["status"], given[1]["call_id"]) == ("completed", "c")
    assert len(kept[1]["output"]) == 3_600 > len(given[1]["output"]) > 100


class Look(BaseModel):
    """What was seen at a place, and how sure that is."""

    place: int
    seen: str
    sure: bool


def test_what_is_sent_beside_the_items_is_counted() -> None:
    """Instructions, tools, handoffs, and the schema of the answer."""

    @function_tool
    def look(place: int) -> str:
        """Look at a place."""
        return ""

    seen: list[Fitted[Any]] = []
    trim = trim_filter(700, model="gpt-4o", on_fitted=seen.append)
    other: Agent[Any] = Agent("other", handoff_description="Knows the way.")
    sent(_talk(0), trim)
    sent(_talk(0), trim, instructions="Look well.")
    sent(_talk(0), trim, tools=[look])
    sent(_talk(0), trim, handoffs=[other])
    model = ScriptedModel([[assistant_message('{"place": 1, "seen": "sun", "sure": true}')]])
    asked: Agent[Any] = Agent("asked", model=model, output_type=Look)
    config = RunConfig(call_model_input_filter=trim, tracing_disabled=True)
    asyncio.run(Runner.run(asked, _talk(0), run_config=config))
    plain, *others = [fitted.report.tokens_after for fitted in seen]
    assert len(others) == 4
    assert all(tokens > plain for tokens in others)


@pytest.mark.parametrize("model", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
@pytest.mark.parametrize(
    "kind",
    [
        Whole,
        list[Part],
        Part | None,
        Part | Whole,
        AgentOutputSchema(Whole, strict_json_schema=False),
        str,
    ],
    ids=["model", "list", "optional", "union", "schema", "text"],
)
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(kind: Any, model: Any) -> None:
    """Whatever an agent may answer with, the count is that of the body."""
    seen: list[Fitted[Any]] = []
    with provider() as server, contextlib.suppress(ModelBehaviorError):
        client = AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        asked: Agent[Any] = Agent("asked", model=model("gpt-4o", client), output_type=kind)
        config = RunConfig(call_model_input_filter=trim_filter(3_000, on_fitted=seen.append))
        asyncio.run(Runner.run(asked, _talk(0), run_config=config))
    hold_answer(seen[0], server.bodies[0], model="gpt-4o")


def test_results_of_calls_that_the_server_keeps_are_all_sent() -> None:
    """Without them it would refuse the call; how large that is nobody here sees, and a warning says so."""
    calls = [
        {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "look", "arguments": "{}"}
        for at in range(6)
    ]

    @function_tool
    def look() -> str:
        """Look around."""
        return "sun " * 900

    def answer(form: str, body: dict[str, Any]) -> Any:
        said = answered(form, "gpt-4o")
        return said if "previous_response_id" in body else {**said, "output": calls}

    with provider(answer) as server:
        client = AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        asked: Agent[Any] = Agent("asked", model=OpenAIResponsesModel("gpt-4o", client), tools=[look])
        config = RunConfig(call_model_input_filter=trim_filter(1_000))
        with pytest.warns(UserWarning, match="the server adds messages.* auto_previous_response_id="):
            asyncio.run(Runner.run(asked, "Look.", run_config=config, auto_previous_response_id=True))
    _, last = server.bodies[-1]
    assert [item["call_id"] for item in last["input"]] == [call["call_id"] for call in calls]
    assert all(len(item["output"]) == 3_600 for item in last["input"])


@pytest.mark.filterwarnings("error:what the input answers is not in it")
def test_a_history_whose_first_call_a_limit_cut_off_is_fitted() -> None:
    """It begins with a result alone, but holds what the model said, so that no server keeps that."""
    talk = _talk(30)[2:]
    given, _ = sent(talk, trim_filter(600, model="gpt-4o"))
    assert given[-1] == talk[-1]
    assert len(given) < len(talk) / 2


def test_a_streamed_call_is_fitted_once() -> None:
    """Streaming and plain runs share the filter."""

    async def run() -> None:
        calls = [[function_call("look", {"place": 1}, call_id="x")], [assistant_message("done")]]
        asked: Agent[Any] = Agent("asked", model=ScriptedModel(calls), tools=[look])
        config = RunConfig(call_model_input_filter=trim, tracing_disabled=True)
        streamed = Runner.run_streamed(asked, _talk(30), run_config=config)
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output == "done"

    @function_tool
    def look(place: int) -> str:
        """Look at a place."""
        return "sun"

    seen: list[Fitted[Any]] = []
    trim = trim_filter(600, model="gpt-4o", on_fitted=seen.append)
    asyncio.run(run())
    assert len(seen) == 2


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the agent's model; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        sent(_talk(30), trim_filter(budget, model="gpt-4o", on_fitted=seen.append))
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(ConfigurationError, match="no model is named"):
        sent(_talk(3), trim_filter("80%"))
    with pytest.raises(BudgetExceededError):
        sent(_talk(3), trim_filter(5, model="gpt-4o"))
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        trim_filter(["80%"])  # type: ignore[arg-type]


def test_a_context_gives_its_blocks_to_each_call() -> None:
    """The items fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = _talk(30)
    given, _ = sent(talk, trim_filter(context))
    assert sum("Utrecht" in str(item) for item in given) == 1
    assert given[-1] == talk[-1]
    assert len(given) < len(talk)


def test_the_system_text_of_a_context_is_sent() -> None:
    """A block's as an item; what stands beside the blocks as instructions, which an agent may have itself."""
    block = Context(Budget(900), model="gpt-4o").add("system", "Be brief.").add("history", [])
    given, _ = sent(_talk(1), trim_filter(block))
    assert given == [{"role": "system", "content": "Be brief."}, *_talk(1)]
    trim = trim_filter(Context(Budget(900), model="gpt-4o", system="Be brief.").add("history", []))
    made = asyncio.run(trim(CallModelData(ModelInputData(_talk(1), None), Agent("a"), None)))
    assert (made.input, made.instructions) == (_talk(1), "Be brief.")
    with pytest.raises(ConfigurationError, match="system is given twice"):
        asyncio.run(trim(CallModelData(ModelInputData(_talk(1), "Be kind."), Agent("a"), None)))


def test_the_model_of_an_agent_decides_the_window() -> None:
    """By its name, with or without a provider's before it."""
    seen: list[Any] = []
    trim = trim_filter("1%", on_fitted=seen.append)
    client = AsyncOpenAI(base_url="http://127.0.0.1:9", api_key="none", max_retries=0)
    for model in ("gpt-4o", "openai/gpt-4o", OpenAIResponsesModel(model="gpt-4o", openai_client=client)):
        asked: Agent[Any] = Agent("asked", model=model)
        data = CallModelData(ModelInputData(_talk(3), None), asked, None)
        asyncio.run(trim(data))
    assert [one.report.input_tokens for one in seen] == [1_280, 1_280, 1_280]


def session_of(budget: int | Budget = BUDGET_TOKENS, **options: Any) -> TrimSession:
    """Make a session of trimtab's that the SDK takes for one of its own."""
    return TrimSession(Session(budget, model="gpt-4o", format="openai_responses", **options))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_session_of_trimtabs_gives_runs_its_view_and_its_log_keeps_all(loop: Loop, tmp_path: Path) -> None:
    """Filter and session cut together, and little is written anew."""
    with SQLiteStore(tmp_path / "runs.db") as store:
        kept = session_of(store=store, id="ada", target_ratio=0.6)
        score, view = play(loop, trim_filter(BUDGET_TOKENS, persist=kept), session=kept)
        hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
        said = [event.message for event in kept.session.history()]
        assert len(said) == _items_of(loop)
        assert len(view) < len(said) / 3
        assert view[-1] == said[-1]


@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
def test_what_left_a_call_is_in_no_later_one(streams: bool) -> None:
    """Within a run and in the next, though the session does not know of the tools beside its items."""
    loop, seen, kept = chat(), list[list[Any]](), session_of()
    trim = trim_filter(BUDGET_TOKENS, persist=kept)

    async def noting(data: CallModelData[Any]) -> ModelInputData:
        made = await trim(data)
        seen.append([str(item) for item in made.input])
        return made

    async def run() -> Score:
        with upstream(loop) as served:
            async with AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0) as client:
                looker = _agent(loop, OpenAIResponsesModel(model="gpt-4o", openai_client=client))
                for question in loop.questions[:24]:
                    said, given = _said(question), {"session": kept, "run_config": config}
                    if not streams:
                        await Runner.run(looker, said, **given)
                        continue
                    async for _ in Runner.run_streamed(looker, said, **given).stream_events():
                        pass
            return served.score

    config = RunConfig(call_model_input_filter=noting, tracing_disabled=True)
    score = asyncio.run(run())
    assert (score.requests, score.invalid, score.over, score.blind) == (96, [], [], [])
    cuts = 0
    for at, (before, after) in enumerate(pairwise(seen)):
        left = [item for item in before if item not in after]
        cuts += bool(left)
        assert before[len(left) :] == after[: len(before) - len(left)], at
        assert not any(item in later for later in seen[at + 1 :] for item in left)
    assert 3 <= cuts <= 12


def test_items_that_are_not_the_sessions_are_fitted_as_they_are() -> None:
    """A callback that writes the history anew decides what a run is given."""
    seen: list[Fitted[Any]] = []
    kept = session_of(1_000)
    trim = trim_filter(1_000, model="gpt-4o", persist=kept, on_fitted=seen.append)

    async def run() -> list[Any]:
        await kept.add_items(_talk(30))
        model = ScriptedModel([[assistant_message("done")]])
        config = RunConfig(
            call_model_input_filter=trim,
            session_input_callback=lambda history, new: [*history[-4:], *new],
            tracing_disabled=True,
        )
        await Runner.run(Agent("asked", model=model), "And there?", session=kept, run_config=config)
        assert model.first_call is not None
        given: Any = model.first_call.input
        return given

    given = asyncio.run(run())
    texts = [item["content"] for item in given if "content" in item]
    assert texts == ["It is sunny.", "And now?", "And there?"]
    assert len(seen) == 1


def test_a_program_may_look_at_a_session_in_the_middle_of_a_run() -> None:
    """The run is still told from it."""
    kept = session_of(1_000)

    async def run() -> None:
        await kept.add_items(_talk(40))
        begun = await kept.get_items()
        news: list[Any] = [{"role": "user", "content": f"new {n} " * 30} for n in range(20)]
        await kept.add_items(news)
        shown = await kept.get_items()
        assert shown[0] != begun[0]
        call = [*begun, *news, {"role": "user", "content": "not there yet"}]
        assert await kept.view_for(call) == [*shown, call[-1]]
        assert await kept.view_for(call[1:]) is None
        await kept.clear_session()
        assert await kept.view_for(call) is None

    asyncio.run(run())


def test_items_are_added_popped_and_cleared_as_the_sdk_wants_it() -> None:
    """As its own session of SQLite answers, as long as all has room; the log has what is no longer shown."""

    async def played(session: Any) -> list[Any]:
        found: list[Any] = [await session.get_items(), await session.pop_item()]
        await session.add_items([])
        await session.add_items(_talk(3))
        found += [await session.get_items(), await session.get_items(limit=3), await session.get_items(0)]
        found += [await session.pop_item(), await session.pop_item(), await session.get_items()]
        await session.add_items([{"role": "user", "content": "Once more."}])
        found.append(await session.get_items(2))
        await session.clear_session()
        found += [await session.get_items(), await session.pop_item()]
        return found

    ours = session_of()
    assert isinstance(ours, AgentsSession)
    assert asyncio.run(played(ours)) == asyncio.run(played(SQLiteSession("t")))
    assert [event.message for event in ours.session.history()][:-1] == _talk(3)


def test_a_session_of_another_form_is_refused() -> None:
    """Its items would be read as messages of Chat Completions."""
    with pytest.raises(ConfigurationError, match="format='openai_responses'"):
        TrimSession(Session(4_000, format="openai_chat"))
    for taken in (True, Session(4_000, format="openai_responses")):
        with pytest.raises(ConfigurationError, match=r"persist=TrimSession\(session\)"):
            trim_filter(4_000, persist=taken)  # type: ignore[arg-type]
    settings = SessionSettings(limit=2)
    session = TrimSession(Session(4_000, format="openai_responses"), session_settings=settings)
    asyncio.run(session.add_items(_talk(3)))
    assert asyncio.run(session.get_items()) == _talk(3)[-2:]


class _Watched(list[Any]):
    """Items of a call that tell when its output is put together: then they are fitted."""

    def __init__(self, items: list[Any], when_fitted: Callable[[], object]) -> None:
        super().__init__(items)
        self.when_fitted = when_fitted

    def __getitem__(self, at: Any) -> Any:
        """Tell of it, and give the item."""
        self.when_fitted()
        return super().__getitem__(at)


def test_threads_that_share_a_filter_send_their_own_items() -> None:
    """One call is fitted between the fit of another and what that one is sent."""
    context = Context(Budget(4_000), model="gpt-4o")
    context.add("history", [], priority=50)
    trim, sent = trim_filter(context), dict[str, Any]()
    bob_is_fitted, ada_is_sent = Event(), Event()

    def call(name: str, when_fitted: Callable[[], object]) -> None:
        items = _Watched([{"role": "user", "content": f"I am {name}."}], when_fitted)
        data = CallModelData(ModelInputData(items, None), Agent(name, model="gpt-4o"), None)
        sent[name] = asyncio.run(trim(data)).input

    def fit_bob() -> None:
        bob.start()
        bob_is_fitted.wait()

    def wait_for_ada() -> None:
        bob_is_fitted.set()
        ada_is_sent.wait()

    bob = Thread(target=call, args=("bob", wait_for_ada))
    call("ada", fit_bob)
    ada_is_sent.set()
    bob.join()
    assert {name: items[0]["content"] for name, items in sent.items()} == {
        "ada": "I am ada.",
        "bob": "I am bob.",
    }
