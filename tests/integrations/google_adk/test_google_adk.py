"""`TrimPlugin` in runs of Google's ADK: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import warnings
from collections.abc import AsyncGenerator
from typing import Any, ClassVar

import pytest
from anthropic import AsyncAnthropic
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, Gemini, LlmRequest, LlmResponse
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from pydantic import BaseModel, PrivateAttr, TypeAdapter

from tests.integrations.answers import Part, Whole, hold_answer
from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, LookError, Loop, Question, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import provider, variables
from trimtab import Budget, Context, Fitted, counter_for, fit
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.google_adk import TrimPlugin

COUNTER = counter_for("gpt-4o")
"""What the model on this machine counts with; nobody has Gemini's own vocabulary."""


def _agent(loop: Loop, model: BaseLlm) -> LlmAgent:
    def look(place: int) -> dict[str, str]:
        """Look at a place."""
        try:
            return {"result": loop.look(place)}
        except LookError as error:
            return {"error": str(error)}

    return LlmAgent(name="looker", instruction=SYSTEM, tools=[look], model=model)


def _said(question: Question) -> types.Content:
    parts = [types.Part(text=question.text)]
    if question.has_image:
        data = base64.b64decode(IMAGE.partition(",")[2])
        parts.append(types.Part.from_bytes(data=data, mime_type="image/png"))
    return types.Content(role="user", parts=parts)


def gemini(served: Upstream) -> BaseLlm:
    """Make ADK's own model of Gemini's API."""
    return Gemini(model="gemini-2.5-flash", base_url=served.address, client_kwargs={"api_key": "none"})


def claude(served: Upstream) -> BaseLlm:
    """Make ADK's own model of Anthropic's API."""
    client = AsyncAnthropic(base_url=served.address, api_key="none", max_retries=0)
    return AnthropicLlm(model="claude-sonnet-4-6", client=client)


async def _events(runner: Runner, said: types.Content, config: RunConfig | None = None) -> None:
    run = runner.run_async(user_id="u", session_id="s", new_message=said, run_config=config)
    async for _ in run:
        pass


def play(
    loop: Loop,
    plugins: Any = (),
    *,
    model: Any = gemini,
    questions: int = 1_000,
    run: RunConfig | None = None,
    **app: Any,
) -> tuple[Score, list[Any]]:
    """Play a loop with an agent of ADK's; returns the score and the events of its session."""

    async def play_all() -> tuple[Score, list[Any]]:
        with upstream(loop) as served:
            looker = _agent(loop, model(served))
            made = App(name="app", root_agent=looker, plugins=list(plugins), **app)
            sessions = InMemorySessionService()
            await sessions.create_session(app_name="app", user_id="u", session_id="s")
            runner = Runner(app=made, session_service=sessions)
            for question in loop.questions[:questions]:
                await _events(runner, _said(question), run or RunConfig(max_llm_calls=0))
            session = await sessions.get_session(app_name="app", user_id="u", session_id="s")
            await runner.close()
            assert session is not None
            return served.score, session.events

    return asyncio.run(play_all())


def _events_of(loop: Loop) -> int:
    """Count the events of a loop: questions, answers of the model, and the results of each."""
    steps = [step for question in loop.questions for step in question.steps]
    return len(loop.questions) + len(steps) + sum(hasattr(step, "places") for step in steps)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The session keeps all of it, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, [TrimPlugin(BUDGET_TOKENS, counter=COUNTER, on_fitted=seen.append)])
    hold(score, loop)
    assert len(kept) == _events_of(loop)
    assert len(seen) == loop.model_calls


def test_a_claude_model_is_sent_no_more() -> None:
    """ADK writes the same contents as messages of Anthropic's for it."""
    score, _ = play(chat(), [TrimPlugin(BUDGET_TOKENS, counter=COUNTER)], model=claude, questions=30)
    assert (score.requests, score.invalid, score.over, score.blind) == (120, [], [], [])


class Scripted(BaseLlm):
    """A model that answers what it is given, and keeps what it is asked."""

    model: str = "gpt-4o"
    _answers: list[types.Content] = PrivateAttr(default_factory=list)
    _asked: list[list[types.Content]] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Give the next answer; streamed, first its beginning."""
        self._asked.append(list(llm_request.contents))
        answer = self._answers.pop(0) if self._answers else _text("model", "done")
        if stream and answer.parts and answer.parts[0].text:
            yield LlmResponse(content=_text("model", answer.parts[0].text[:2]), partial=True)
        yield LlmResponse(content=answer, partial=False)


def _text(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def _call(place: int, call_id: str | None = None) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name="look", args={"place": place}, id=call_id))


def _result(text: str) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(name="look", response={"result": text}),
    )


def _talk(turns: int) -> list[types.Content]:
    said: list[types.Content] = []
    for turn in range(turns):
        said += [
            _text("user", f"question {turn}"),
            types.Content(role="model", parts=[_call(turn)]),
            types.Content(role="user", parts=[_result("sun " * 40)]),
            _text("model", "It is sunny."),
        ]
    return [*said, _text("user", "And now?")]


def fitted(contents: list[types.Content], trim: TrimPlugin, **request: Any) -> list[types.Content]:
    """Return the contents of a request behind the plugin's hook."""
    asked = LlmRequest(**{"model": "gpt-4o", "contents": contents, **request})
    asyncio.run(trim.before_model_callback(callback_context=None, llm_request=asked))  # type: ignore[arg-type]
    return asked.contents


def test_what_stays_is_the_very_object_and_calls_keep_their_results() -> None:
    """Calls of Gemini have no ids here, and go by their order."""
    seen: list[Fitted[Any]] = []
    talk = _talk(30)
    kept = fitted(list(talk), TrimPlugin(600, on_fitted=seen.append))
    assert [talk[place] for place in seen[0].positions if place is not None] == kept
    assert all(any(one is other for other in talk) for one in kept)
    parts = [part for one in kept for part in one.parts or ()]
    assert sum(part.function_call is not None for part in parts) > 2
    assert sum(part.function_call is not None for part in parts) == sum(
        part.function_response is not None for part in parts
    )
    assert not seen[0].report.violations
    assert kept[-1] is talk[-1]
    assert len(kept) < len(talk)


class Noted(types.Content):
    """A content that notes when it is read."""

    reads: ClassVar[list[str]] = []

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Read it, and note what it says."""
        self.reads.append(self.model_dump_json())
        return super().model_dump(**options)


def test_nothing_is_read_twice_though_each_call_has_copies() -> None:
    """Of two sessions that take turns and begin alike each content is read once, as ADK copies it anew."""
    trim, Noted.reads[:] = TrimPlugin(600), []
    for turns in range(2, 6):
        for last in ("a", "b"):
            talk = [_text("user", "hi"), *(_text("user", f"{last} {turn}") for turn in range(turns))]
            fitted([Noted(role=one.role, parts=one.parts) for one in talk], trim)
    assert len(Noted.reads) == len(set(Noted.reads)) == 1 + 2 * 5


def test_what_is_shortened_is_a_copy() -> None:
    """With its name, its id and what stands beside it; the content of the session is as it was."""
    long = types.Content(role="user", parts=[_result("sun " * 900)])
    call = types.Content(role="model", parts=[_call(1)])
    kept = fitted([_text("user", "Well?"), call, long], TrimPlugin(500))
    assert kept[1] is call
    (part,) = kept[2].parts or ()
    assert part.function_response is not None
    assert part.function_response.name == "look"
    result = (part.function_response.response or {})["result"]
    assert 100 < len(result) < 3_600
    assert long == types.Content(role="user", parts=[_result("sun " * 900)])


class Look(BaseModel):
    """What was seen at a place, and how sure that is."""

    place: int
    seen: str
    sure: bool


def test_what_is_sent_beside_the_contents_is_counted() -> None:
    """The instruction, the tools, the schema of the answer, and what ADK adds behind a model's content."""
    seen: list[Fitted[Any]] = []
    trim = TrimPlugin(700, on_fitted=seen.append)
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="look", description="Looks.")])
    fitted(_talk(1), trim)
    sure = types.Schema(type=types.Type.STRING, format="enum", enum=["yes", "no"])
    schemas = (
        *(Look, list[Look], Look.model_json_schema()),
        *(types.Schema(type=types.Type.OBJECT, title="Look"), sure),
    )
    beside: list[dict[str, Any]] = [
        {"system_instruction": "Look well."},
        {"system_instruction": _text("user", "Look well.")},
        {"tools": [tool]},
        *({"response_schema": schema} for schema in schemas),
        {"response_json_schema": Look.model_json_schema()},
        {"response_json_schema": {"type": "string", "format": "date-time"}},
    ]
    for config in beside:
        fitted(_talk(1), trim, config=types.GenerateContentConfig(**config))
    plain, *others = [one.report.tokens_after for one in seen]
    assert len(others) == 10
    assert all(tokens > plain for tokens in others)
    seen.clear()
    said = [*_talk(1), _text("model", "It is sunny, too.")]
    fitted(said, trim)
    fitted(said, trim, config=types.GenerateContentConfig(system_instruction="Look well."))
    assert seen[1].report.tokens_after > seen[0].report.tokens_after
    asked = LlmRequest(contents=list(said))
    Scripted()._maybe_append_user_content(asked)
    assert len(asked.contents) == len(said) + 1
    whole = fit(asked.contents, 10_000, counter=COUNTER, format="gemini").report.tokens_after
    assert whole <= seen[0].report.tokens_after <= whole + 10


@pytest.mark.parametrize("kind", [Whole, list[Part]], ids=["model", "list"])
def test_the_schema_of_an_answer_is_charged_as_it_is_sent(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemini has it for nothing; the same call by LiteLLM is charged as the dearer of what that may send."""
    seen: list[Fitted[Any]] = []
    trim = TrimPlugin(3_000, on_fitted=seen.append)
    with provider() as server:
        for key, value in variables(server.address).items():
            monkeypatch.setenv(key, value)
        model = Gemini(model="gemini-2.5-flash")
        made = LlmAgent(name="looker", model=model, output_schema=kind)
        with contextlib.suppress(ValueError):
            asyncio.run(_ask(made, trim))
    hold_answer(seen[0], server.bodies[0], model="gemini-2.5-flash")
    schema = TypeAdapter(kind).json_schema()
    asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    for name, body in (
        ("gpt-4o", {"response_format": asked}),
        ("claude-opus-4-5", {"output_format": {"type": "json_schema", "schema": schema}}),
    ):
        config = types.GenerateContentConfig(response_schema=kind)
        fitted(_talk(0), trim, model=f"litellm/{name}", config=config)
        form = "anthropic" if "claude" in name else "openai_chat"
        talk = {"messages": [{"role": "user", "content": "And now?"}]}
        hold_answer(seen[-1], (form, {**talk, **body}), model=name, most=3)


@pytest.mark.parametrize(
    "model", ["projects/p/locations/l/publishers/google/models/{}", "vertex_ai/{}", "{}"]
)
def test_gemini_is_charged_nothing_for_the_schema_of_an_answer(model: str) -> None:
    """On Vertex, too, which has rows of its own."""
    seen: list[Fitted[Any]] = []
    trim = TrimPlugin(3_000, on_fitted=seen.append)
    for config in ({}, {"response_schema": Whole}):
        made = types.GenerateContentConfig(**config)
        fitted(_talk(0), trim, model=model.format("gemini-2.5-flash"), config=made)
    plain, asked = [one.report.tokens_after for one in seen]
    assert asked == plain


async def _ask(agent: LlmAgent, plugin: TrimPlugin) -> None:
    sessions = InMemorySessionService()
    app = App(name="app", root_agent=agent, plugins=[plugin])
    await sessions.create_session(app_name="app", user_id="u", session_id="s")
    runner = Runner(app=app, session_service=sessions)
    await _events(runner, _text("user", "Look."), RunConfig())
    await runner.close()


async def _run(model: BaseLlm, plugin: Any, *, streams: bool = False, own: Any = None) -> list[Any]:
    """Run an agent for one question; returns the events of its session."""
    agent = _agent(chat(), model)
    agent.before_model_callback = own
    sessions = InMemorySessionService()
    app = App(name="app", root_agent=agent, plugins=[plugin] if plugin else [])
    await sessions.create_session(app_name="app", user_id="u", session_id="s")
    runner = Runner(app=app, session_service=sessions)
    mode = StreamingMode.SSE if streams else StreamingMode.NONE
    await _events(runner, _text("user", "Look."), RunConfig(streaming_mode=mode))
    session = await sessions.get_session(app_name="app", user_id="u", session_id="s")
    await runner.close()
    assert session is not None
    return list(session.events)


@pytest.mark.parametrize("streams", [False, True])
def test_a_call_is_fitted_once_streamed_or_not(streams: bool) -> None:
    """Streaming and plain runs share the hook; the session keeps every event."""
    seen: list[Fitted[Any]] = []
    model = Scripted()
    model._answers = [types.Content(role="model", parts=[_call(n)]) for n in range(12)]
    events = asyncio.run(_run(model, TrimPlugin(600, on_fitted=seen.append), streams=streams))
    assert len(seen) == len(model._asked) == 13
    assert len(events) == 26
    assert len(model._asked[-1]) < 25
    assert model._asked[-1][0] == _text("user", "Look.")


def test_an_agent_may_be_fitted_by_itself() -> None:
    """The hook of the plugin is one of agents, too; there errors are trimtab's own."""
    seen: list[Fitted[Any]] = []
    trim = TrimPlugin(600, on_fitted=seen.append)
    asyncio.run(_run(Scripted(), None, own=trim.before_model_callback))
    assert len(seen) == 1
    small = TrimPlugin(5)
    with pytest.raises(BudgetExceededError):
        asyncio.run(_run(Scripted(), None, own=small.before_model_callback))
    with pytest.raises(RuntimeError, match="trimtab") as raised:
        asyncio.run(_run(Scripted(), small))
    assert isinstance(raised.value.__cause__, BudgetExceededError)


def test_a_counter_may_be_awaited() -> None:
    """A run is awaited anyway, and so is what counts for it."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    score, _ = play(chat(), [TrimPlugin(BUDGET_TOKENS, counter=count)], questions=12)
    assert (score.requests, score.invalid, score.blind) == (48, [], [])
    assert len(score.fills) > 10


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model of the call; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        fitted(_talk(30), TrimPlugin(budget, on_fitted=seen.append))
    assert {one.report.input_tokens for one in seen} == {640}
    seen.clear()
    fitted(_talk(3), TrimPlugin("1%", on_fitted=seen.append, charge_as="openai_chat"), model="openai/gpt-4o")
    assert (seen[0].report.input_tokens, len(seen[0].messages)) == (1_280, 13)
    seen.clear()
    resource = "projects/p/locations/l/publishers/google/models/gpt-4o"
    for model in ("gpt-4o", "openai/gpt-4o", "mine/gpt-4o", resource):
        fitted(_talk(3), TrimPlugin("1%", on_fitted=seen.append), model=model)
    assert [one.report.input_tokens for one in seen] == [1_280, 1_280, 1_280, 1_280]
    for model in ("mine", "groq/llama-3.3-70b-versatile"):  # nobody knows the window of that host
        with pytest.raises(ConfigurationError, match="is unknown"):
            fitted(_talk(3), TrimPlugin("80%"), model=model)
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        TrimPlugin(["80%"])  # type: ignore[arg-type]


def test_a_context_gives_its_blocks_to_each_call() -> None:
    """The contents fill its history; the other blocks stand where the Context puts them, as contents."""
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    talk = _talk(30)
    kept = fitted(list(talk), TrimPlugin(context))
    assert sum("Utrecht" in one.model_dump_json() for one in kept) == 1
    assert all(isinstance(one, types.Content) for one in kept)
    assert kept[-1] is talk[-1]
    assert len(kept) < len(talk)


def test_a_policy_needs_no_system_text_and_that_of_a_context_is_refused() -> None:
    """It would be counted and not sent: the plugin hands on contents alone."""
    talk = _talk(1)
    assert fitted(list(talk), TrimPlugin("examples/policy.toml")) == talk
    context = Context(Budget(900), model="gpt-4o").add("system", "Be brief.").add("history", [])
    with pytest.raises(ConfigurationError, match="Pass it to the framework as instructions"):
        TrimPlugin(context)


def test_a_conversation_that_the_server_keeps_is_told_of_once(recwarn: pytest.WarningsRecorder) -> None:
    """With Gemini's interactions only what is new is sent, whatever is fitted."""
    warnings.simplefilter("always")
    trim = TrimPlugin(2_000)
    for _ in range(2):
        fitted(_talk(1), trim, previous_interaction_id="int_1")
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == 1
    assert told[0].endswith("write Gemini(use_interactions_api=False)")
