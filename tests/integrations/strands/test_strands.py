"""`trim_middleware` and `TrimConversationManager` in agents of Strands: what is sent, and what is kept."""

from __future__ import annotations

import asyncio
import copy
import json
import warnings
from base64 import b64decode
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from boto3 import Session
from openai import AsyncOpenAI
from pydantic import BaseModel
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.models import BedrockModel, Model
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

from tests.integrations.loops import IMAGE, LOOPS, SYSTEM, Loop, Question, agent, chat
from tests.integrations.upstream import BUDGET_TOKENS, Score, Upstream, hold, upstream
from tests.judge.server import provider
from trimtab import Budget, Context, Fitted, fit
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.copies import CopyCache
from trimtab.integrations.strands import TrimConversationManager, trim_middleware
from trimtab.strategies import Summarize

PICTURE: Any = {"image": {"format": "png", "source": {"bytes": b64decode(IMAGE.partition(",")[2])}}}


def _look(loop: Loop) -> Any:
    @tool
    def look(place: int) -> str:
        """Look at a place.

        Args:
            place: Its number.
        """
        return loop.look(place)

    return look


def _openai(served: Upstream) -> Any:
    """Make one client for all calls: the framework makes one a call otherwise, which takes its time."""
    return AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0)


def completions(served: Upstream, *, kind: type[OpenAIModel] = OpenAIModel) -> Model:
    """Make the framework's model of OpenAI's Chat Completions."""
    return kind(_openai(served), model_id="gpt-4o", stream=False, context_window_limit=BUDGET_TOKENS)


def converse(served: Upstream, *, streaming: bool = False) -> Model:
    """Make the framework's model of Bedrock's Converse, with AWS's own client."""
    session = Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
    return BedrockModel(
        model_id="gpt-4o", boto_session=session, endpoint_url=served.address, streaming=streaming
    )


def _said(question: Question) -> list[Any]:
    point = [{"cachePoint": {"type": "default"}}] if question.is_marked else []
    return [{"text": question.text}, *([PICTURE] if question.has_image else []), *point]


def play(loop: Loop, *handlers: Any, model: Any = completions, **options: Any) -> tuple[Score, list[Any]]:
    """Play a loop with an agent of the framework; returns the score and the agent's messages."""

    async def run() -> tuple[Score, list[Any]]:
        with upstream(loop) as served:
            looker = _agent(model(served), loop, *handlers, **options)
            for question in loop.questions:
                await looker.invoke_async(_said(question))
            return served.score, looker.messages

    return asyncio.run(run())


def _agent(model: Model, loop: Loop, *handlers: Any, **options: Any) -> Agent:
    made = Agent(
        model,
        system_prompt=SYSTEM,
        tools=[_look(loop)],
        callback_handler=None,
        **{"conversation_manager": NullConversationManager(), **options},
    )
    for handler in handlers:
        made.add_middleware(InvokeModelStage.Input, handler)
    return made


def _messages_of(loop: Loop) -> int:
    """Count the messages of a loop: questions, answers of the model, and one with the results of each."""
    steps = [step for question in loop.questions for step in question.steps]
    return len(loop.questions) + len(steps) + sum(hasattr(step, "places") for step in steps)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """The agent keeps all of it, and most of a request is known to a prompt cache."""
    seen: list[Any] = []
    score, kept = play(loop, trim_middleware(BUDGET_TOKENS, on_fitted=seen.append))
    hold(score, loop)
    assert len(kept) == _messages_of(loop)
    assert len(seen) == loop.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_manager_cuts_what_the_agent_keeps(loop: Loop) -> None:
    """Then the cut is the agent's, and a request begins as the one before even more often."""
    manager = TrimConversationManager(BUDGET_TOKENS)
    score, kept = play(loop, conversation_manager=manager)
    hold(score, loop, reuse=0.70 if loop.huge_every else 0.80)
    assert len(kept) < _messages_of(loop) / 3


class Scripted(Model):
    """A model that answers what it is given, and keeps what it is asked."""

    def __init__(
        self, *answers: list[Any], overflows: int = 0, name: str = "gpt-4o", says: str = "done"
    ) -> None:
        self.answers = list(answers)
        self.overflows = overflows
        self.says = says
        self.asked: list[list[Any]] = []
        self.config: Any = {"model_id": name}

    def get_config(self) -> Any:
        """Return what names the model."""
        return self.config

    def update_config(self, **config: Any) -> None:
        """Change it."""
        self.config.update(config)

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: no test asks for it."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        """Give the next answer, or say that the request is too long."""
        self.asked.append(list(messages))
        if self.overflows:
            self.overflows -= 1
            raise ContextWindowOverflowException("too long")
        uses = self.answers.pop(0) if self.answers else []
        yield {"messageStart": {"role": "assistant"}}
        for use in uses:
            started = {key: use["toolUse"][key] for key in ("toolUseId", "name")}
            yield {"contentBlockStart": {"start": {"toolUse": started}}}
            yield {
                "contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(use["toolUse"]["input"])}}}
            }
            yield {"contentBlockStop": {}}
        if not uses:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": self.says}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if uses else "end_turn"}}


def _use(place: int, use_id: str) -> Any:
    return {"toolUse": {"toolUseId": use_id, "name": "look", "input": {"place": place}}}


def _result(use_id: str, text: str, status: str = "success") -> Any:
    return {"toolResult": {"toolUseId": use_id, "status": status, "content": [{"text": text}]}}


def _talk(turns: int) -> list[Any]:
    said: list[Any] = []
    for turn in range(turns):
        thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
        results = [_result(f"c{turn}", "sun " * 40), _result(f"d{turn}", "nobody is there", "error")]
        said += [
            {"role": "user", "content": [{"text": f"question {turn}"}], "metadata": {"custom": {"n": turn}}},
            {"role": "assistant", "content": [thought, _use(turn, f"c{turn}"), _use(turn, f"d{turn}")]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"text": "It is sunny."}]},
        ]
    return said


def _both(budget: Any, **options: Any) -> list[dict[str, Any]]:
    """Make the arguments of an agent that is fitted in either way."""
    return [
        {"handlers": [trim_middleware(budget, **options)]},
        {"conversation_manager": TrimConversationManager(budget, **options)},
    ]


def sent(talk: list[Any], *, handlers: Any = (), model: Any = None, **options: Any) -> list[Any]:
    """Return what a model is sent behind these messages and a question, without what no model is sent."""
    model = model or Scripted()
    made = Agent(model, messages=copy.deepcopy(talk), callback_handler=None, **{"tools": [], **options})
    for handler in handlers:
        made.add_middleware(InvokeModelStage.Input, handler)
    made("And now?")
    return [{"role": one["role"], "content": one["content"]} for one in model.asked[-1]]


def _plain(messages: list[Any]) -> list[Any]:
    return [{"role": one["role"], "content": one["content"]} for one in messages]


@pytest.mark.parametrize("place", [0, 1])
def test_what_stays_is_as_it_was_and_calls_keep_their_results(place: int) -> None:
    """Two calls of one answer leave with both results."""
    talk = _talk(30)
    kept = sent(talk, **_both(700, model="gpt-4o")[place])
    assert all(one in _plain(talk) for one in kept[:-1])
    contents = [content for one in kept for content in one["content"]]
    uses = [one["toolUse"]["toolUseId"] for one in contents if "toolUse" in one]
    assert uses == [one["toolResult"]["toolUseId"] for one in contents if "toolResult" in one]
    assert 4 < len(kept) < 60
    assert kept[-1]["content"] == [{"text": "And now?"}]


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_shortened_keeps_what_stood_beside_it(place: int) -> None:
    """Pictures, documents, points of a prompt cache, the status of a result and what is JSON stay."""
    paper = {"document": {"format": "txt", "name": "paper", "source": {"bytes": b"some words"}}}
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    asked = [{"text": "word " * 900}, PICTURE, paper, point, {"text": "Well?"}]
    talk = [{"role": "user", "content": asked}, {"role": "assistant", "content": [{"text": "Yes."}]}]
    [kept, *_] = sent(talk, **_both(900, model="gpt-4o", strategy="truncate_text")[place])
    text, *others = kept["content"]
    assert others == asked[1:]
    assert "trimtab" in text["text"]
    assert len(text["text"]) < 4_500

    held = {"toolUseId": "c", "status": "error", "content": [{"text": "sun " * 900}, {"json": {"a": 1}}]}
    uses = {"role": "assistant", "content": [_use(1, "c"), _use(2, "d")]}
    results = {"role": "user", "content": [{"toolResult": held}, _result("d", "rain")]}
    asking = {"role": "user", "content": [{"text": "Look."}]}
    kept = sent([asking, uses, results], **_both(700, model="gpt-4o")[place])[2]
    long, short = kept["content"][:2]
    assert short == _result("d", "rain")
    assert (long["toolResult"]["toolUseId"], long["toolResult"]["status"]) == ("c", "error")
    said, data = long["toolResult"]["content"]
    assert data == {"json": {"a": 1}}
    assert 100 < len(said["text"]) < 3_600


@pytest.mark.parametrize("place", [0, 1])
def test_a_document_in_plain_text_is_cut_and_stays_one(place: int) -> None:
    """In a question and in a result, by the default way of giving way; the other document is the very one."""
    long = {"format": "md", "name": "long", "source": {"bytes": b"word " * 3_000}, "context": "Of 2026."}
    short = {"document": {"format": "txt", "name": "short", "source": {"bytes": b"some words"}}}
    held = {"toolUseId": "c", "status": "success", "content": [short, {"document": long}]}
    use = {"role": "assistant", "content": [_use(1, "c")]}
    for before in (
        [{"role": "user", "content": [{"text": "Read."}, short, {"document": long}]}],
        [
            {"role": "user", "content": [{"text": "Read."}]},
            use,
            {"role": "user", "content": [{"toolResult": held}]},
        ],
    ):
        talk = [*before, {"role": "assistant", "content": [{"text": "Yes."}]}]
        options = {} if len(before) > 1 else {"strategy": "truncate_text"}
        kept = sent(talk, **_both(900, model="gpt-4o", **options)[place])[len(before) - 1]
        contents = kept["content"][0]["toolResult"]["content"] if len(before) > 1 else kept["content"][1:]
        assert contents[0] == short
        cut = contents[1]["document"]
        assert {**cut, "source": long["source"]} == long
        assert b"trimtab" in cut["source"]["bytes"]
        assert 100 < len(cut["source"]["bytes"]) < 4_500


@pytest.mark.parametrize("place", [0, 1])
def test_what_cannot_be_cut_is_never_cut(place: int) -> None:
    """A film by its bytes, and not by their text; it leaves, or there is no room for the request."""
    film = {"video": {"format": "mp4", "source": {"bytes": bytes(range(256)) * 8}}}
    said = {"citationsContent": {"content": [{"text": "word " * 900}], "citations": []}}
    held = {"toolUseId": "c", "status": "success", "content": [{"text": "sun " * 300}, film]}
    talk = [
        {"role": "user", "content": [{"text": "Look."}]},
        {"role": "assistant", "content": [said, _use(1, "c")]},
        {"role": "user", "content": [{"toolResult": held}]},
        {"role": "assistant", "content": [{"text": "Yes."}]},
    ]
    whole = sent(talk, **_both(4_000, model="gpt-4o")[place])
    assert whole[1]["content"][0] == said
    assert whole[2]["content"][0]["toolResult"]["content"] == held["content"]
    assert [len(one["content"]) for one in sent(talk, **_both(900, model="gpt-4o")[place])][-1] == 1


def test_the_messages_of_the_agent_stay_whole_or_are_cut() -> None:
    """With the middleware all of them are there behind a run, with the manager those that were sent."""
    for where, count in zip(_both(700, model="gpt-4o"), (122, 60), strict=True):
        handlers = where.pop("handlers", [])
        manager = where.pop("conversation_manager", NullConversationManager())
        made = Agent(Scripted(), messages=_talk(30), callback_handler=None, conversation_manager=manager)
        for handler in handlers:
            made.add_middleware(InvokeModelStage.Input, handler)
        made("And now?")
        assert (len(made.messages) == count) if handlers else (4 < len(made.messages) < count)
        assert all("tracking_id" in one for one in made.messages[-2:])


def _summarize(messages: list[Any], existing: str | None) -> str:
    return "It was sunny all along."


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_put_in_is_a_message_of_the_framework(place: int) -> None:
    """A summary stands where the strategy puts it."""
    kept = sent(_talk(30), **_both(700, model="gpt-4o", strategy=Summarize(_summarize))[place])
    assert sum("sunny all along" in str(one["content"]) for one in kept) == 1


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_sent_beside_the_messages_is_counted(place: int) -> None:
    """The system prompt, as text or as blocks, and the tools."""
    seen: list[Fitted[Any]] = []
    blocks = [{"text": "Look well."}, {"cachePoint": {"type": "default"}}]
    beside: list[dict[str, Any]] = [
        {},
        {"system_prompt": "Look well."},
        {"system_prompt": blocks},
        {"tools": [_look(chat())]},
    ]
    for options in beside:
        sent([], **_both(700, on_fitted=seen.append)[place], **options)
    bare, *others = [one.report.tokens_after for one in seen]
    assert len(others) == 3
    assert all(tokens > bare for tokens in others)
    assert others[0] == others[1]


class Found(BaseModel):
    """What was found at a place."""

    place: int


@pytest.mark.parametrize("place", [0, 1])
def test_a_call_that_asks_for_structured_output_is_fitted(place: int) -> None:
    """In place of the deprecated method, of which no hook sees the messages; the schema is counted."""
    seen: list[Fitted[Any]] = []
    answer = {"toolUse": {"toolUseId": "s", "name": "Found", "input": {"place": 1}}}
    for options in ({}, {"structured_output_model": Found}):
        where = _both(700, on_fitted=seen.append)[place]
        kept = sent(_talk(30), model=Scripted([answer] if options else []), **where, **options)
        assert len(kept) < 30
    bare, asked = [one.report.tools_tokens or 0 for one in seen]
    assert asked > bare


def test_marks_of_a_prompt_cache_are_points() -> None:
    """`breakpoints=` writes them in the framework's own way."""
    trim = trim_middleware(2_500, model="claude-sonnet-4-6", breakpoints=True)
    kept = sent(_talk(60), handlers=[trim])
    points = [content for one in kept for content in one["content"] if "cachePoint" in content]
    assert points
    assert all(point == {"cachePoint": {"type": "default"}} for point in points)


@pytest.mark.parametrize("place", [0, 1])
def test_each_call_of_a_run_is_fitted_once_and_a_counter_may_be_awaited(place: int) -> None:
    """The question of a long turn stays."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(message)) // 4 for message in messages)

    seen: list[Fitted[Any]] = []
    model = Scripted(*([_use(n, f"c{n}")] for n in range(12)))
    where = _both(400, counter=count, on_fitted=seen.append)[place]
    kept = sent([], model=model, tools=[_look(chat())], **where)
    assert len(seen) == len(model.asked) == 13
    assert len(kept) < 25
    assert kept[0]["content"] == [{"text": "And now?"}]


def test_a_provider_that_says_too_long_is_sent_half() -> None:
    """The manager cuts what was sent, and the call is made again."""
    seen: list[Fitted[Any]] = []
    model = Scripted(overflows=2)
    manager = TrimConversationManager(4_000, on_fitted=seen.append)
    sent(_talk(30), model=model, conversation_manager=manager)
    assert len(model.asked) == 3
    whole, half, quarter = (one.report.tokens_after for one in seen)
    assert half <= whole / 2
    assert quarter <= half / 2
    context = Context(Budget(4_000), model="gpt-4o")
    context.add("history", [], priority=50)
    with pytest.raises(ContextWindowOverflowException):
        sent(_talk(3), model=Scripted(overflows=1), conversation_manager=TrimConversationManager(context))


def test_what_is_sent_half_has_a_real_summary() -> None:
    """A summarizer is asked for the retry, too, and counters and summarizers may be async."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(one)) // 4 for one in messages)

    async def summarize(messages: list[Any], existing: str | None = None) -> str:
        return f"summary of {len(messages)}"

    model = Scripted(overflows=1)
    manager = TrimConversationManager(2_000, counter=count, strategy=Summarize(summarize))
    sent(_talk(30), model=model, conversation_manager=manager)
    whole, half = model.asked
    assert len(half) < len(whole)
    assert "summary of" in str(half[0])


def test_a_session_that_is_restored_is_whole(tmp_path: Path) -> None:
    """The manager counts nothing as removed: the next call is cut as the last one was."""
    for told in (0, 1):
        model = Scripted()
        made = Agent(
            model,
            session_manager=FileSessionManager("s", storage_dir=str(tmp_path)),
            conversation_manager=TrimConversationManager(700),
            callback_handler=None,
            agent_id="a",
        )
        for n in range(0 if told else 40):
            made(f"question {n} {'word ' * 20}")
        assert (len(made.messages) == 82) if told else (len(made.messages) < 60)
        made("And now?")
        assert len(model.asked[-1]) < 60


@pytest.mark.parametrize("place", [0, 1])
def test_a_budget_is_said_in_every_way(place: int) -> None:
    """A share is that of the window of the model of the call; one that nobody knows has none."""
    seen: list[Any] = []
    for budget in (640, 640.9, Budget(700, output_reserve=60), "0.5%"):
        sent(_talk(30), **_both(budget, on_fitted=seen.append)[place])
    sent(_talk(30), model=Scripted(name="openai/gpt-4o"), **_both("0.5%", on_fitted=seen.append)[place])
    assert {one.report.input_tokens for one in seen} == {640}
    with pytest.raises(BudgetExceededError):
        sent([], **_both(5)[place])
    for name in ("mine", "groq/llama-3.3-70b-versatile"):  # nobody knows the window of that host
        with pytest.raises(ConfigurationError, match="is unknown"):
            sent([], model=Scripted(name=name), **_both("80%")[place])
    with pytest.raises(ConfigurationError, match="budget must be a number of tokens"):
        _both(["80%"])


def test_a_context_gives_its_blocks_to_each_request() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them.

    The manager keeps what is sent, and would keep these once more after each call.
    """
    context = Context(Budget(900), model="gpt-4o")
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    kept = sent(_talk(30), handlers=[trim_middleware(context)])
    assert sum("Utrecht" in str(one) for one in kept) == 1
    assert len(kept) < 60
    with pytest.raises(ConfigurationError, match="own facts would be added again"):
        TrimConversationManager(context)


def test_a_context_with_breakpoints_takes_an_agent_with_a_system_prompt() -> None:
    """The prompt is the agent's own, whatever mark its copy has; a manager would keep marks, and refuses."""
    context = Context(Budget(900), breakpoints=True).add("history", [])
    trim = trim_middleware(context)
    kept = sent([], handlers=[trim], model=Scripted(name="mine"), system_prompt="Be kind.")
    assert "And now?" in str(kept[-1])
    with pytest.raises(ConfigurationError, match="the manager cuts what the agent keeps"):
        TrimConversationManager(context)


@pytest.mark.parametrize("make", [trim_middleware, TrimConversationManager])
def test_system_text_of_a_context_is_refused(make: Any) -> None:
    """It would be counted and not sent: both hand on messages alone."""
    context = Context(Budget(900), model="gpt-4o").add("system", "Be brief.").add("history", [])
    with pytest.raises(ConfigurationError, match="Pass it to the framework as instructions"):
        make(context)


@pytest.mark.parametrize("place", [0, 1])
def test_pins_are_messages_of_the_call(place: int) -> None:
    """By place, or by what they are."""
    for pin in ([8], lambda message, index: message["content"] == [{"text": "question 2"}]):
        kept = sent(_talk(30), **_both(700, model="gpt-4o", pin=pin)[place])
        assert any(one["content"] == [{"text": "question 2"}] for one in kept)


@pytest.mark.parametrize(("loop", "streaming"), [(chat(), True), (agent(), False)])
def test_a_model_of_bedrock_is_sent_no_more(loop: Loop, streaming: bool) -> None:
    """The requests of AWS's own client, judged as Converse does; its streams are frames of bytes."""
    made = partial(converse, streaming=streaming)
    hold(play(loop, trim_middleware(BUDGET_TOKENS), model=made)[0], loop)


def _fitted(trim: Any, model: Model, messages: list[Any]) -> list[Any]:
    """Have a middleware fit a call, as the framework asks it."""
    given: dict[str, Any] = {"system_prompt": None, "tool_specs": [], "tool_choice": None}
    asked = InvokeModelContext(
        agent=Agent(model), messages=messages, invocation_state={}, model=model, **given
    )
    return asyncio.run(trim(asked)).messages


def test_a_model_of_bedrock_is_charged_in_its_form() -> None:
    """As if the form had been said; without it, this model's counts would be exact."""
    found: list[Fitted[Any]] = []
    bedrock = BedrockModel(model_id="gpt-4o", region_name="us-east-1")
    openai = OpenAIModel({"api_key": "none"}, model_id="gpt-4o")
    for model, options in ((bedrock, {}), (openai, {"charge_as": "bedrock"})):
        trim = trim_middleware(BUDGET_TOKENS, on_fitted=found.append, **options)
        _fitted(trim, model, _talk(3))
    assert [one.report.exact for one in found] == [False, False]
    assert len({one.report.tokens_after for one in found}) == 1


def test_arguments_are_charged_as_its_models_write_them() -> None:
    """With spaces, nothing escaped: compact JSON was counted, and 4,249 of 4,000 tokens were sent."""
    asked = {"rows": [[at, at + 1, {"ok": True, "wo": "Zürich 東京"}] for at in range(60)]}
    call = {"toolUse": {"toolUseId": "c", "name": "look", "input": asked}}
    talk: list[Any] = [
        {"role": "user", "content": [{"text": "Where?"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [_result("c", "sunny")]},
    ]
    found: list[Fitted[Any]] = []
    model = OpenAIModel({"api_key": "none"}, model_id="gpt-4o")
    _fitted(trim_middleware(9_000, on_fitted=found.append), model, talk)
    sent = fit(OpenAIModel.format_request_messages(talk), 9_000, model="gpt-4o").report.tokens_after
    assert sent <= found[0].report.tokens_after <= sent + 8


def test_media_that_are_kept_elsewhere_are_read() -> None:
    """The framework's own word for a place, and Bedrock's."""
    places: list[Any] = [
        {"location": {"type": "s3", "uri": "s3://bucket/a.mp4"}},
        {"s3Location": {"uri": "s3://bucket/a.mp4"}},
    ]
    film = [{"video": {"format": "mp4", "source": source}} for source in places]
    talk = [{"role": "user", "content": [*film, {"text": "What is in these?"}]}]
    assert _fitted(trim_middleware(4_000), Scripted(), talk) == talk


def test_nothing_is_read_twice_though_each_call_has_copies() -> None:
    """Known are also what is left when some left, and two conversations that take turns."""
    read: list[str] = []

    def text_of(message: dict[str, Any]) -> dict[str, Any]:
        read.append(message["content"][0]["text"])
        return {"role": message["role"], "content": read[-1]}

    talks = [
        [{"role": "user", "content": [{"text": f"{name} {at}"}]} for at in range(9)] for name in ("a", "b")
    ]
    cache = CopyCache(text_of, most_objects=100)
    for count in range(1, 10):
        for talk in talks:
            now = copy.deepcopy(talk[:count])
            assert [one["content"] for one in cache.readings(now)] == [
                one["content"][0]["text"] for one in now
            ]
    left = copy.deepcopy([talks[0][0], *talks[0][4:6], *talks[0][7:]])
    assert [one["content"] for one in cache.readings(left)] == ["a 0", "a 4", "a 5", "a 7", "a 8"]
    assert len(read) == len(set(read)) == 18


def test_conversations_that_begin_alike_are_remembered_beside_each_other() -> None:
    """Two users of one middleware say "hi", and each gets an answer of their own; a third comes later."""
    read: list[str] = []

    def text_of(message: dict[str, Any]) -> dict[str, Any]:
        read.append(message["content"][0]["text"])
        return {"role": message["role"], "content": read[-1]}

    def talk(name: str, count: int) -> list[dict[str, Any]]:
        texts = ["hi", *(f"{name} {at}" for at in range(1, count))]
        return [{"role": "user", "content": [{"text": text}]} for text in texts]

    cache = CopyCache(text_of, most_objects=100)
    for count in range(1, 10):
        for name in "ab":
            cache.readings(talk(name, count))
    for name, count in (("c", 9), ("d", 1)):
        cache.readings(talk(name, count))
    for name in "abcd":
        cache.readings(talk(name, 10))
    assert len(read) == len(set(read)) == 1 + 4 * 9


def test_a_message_that_is_changed_in_place_is_read_as_it_is() -> None:
    """A guardrail of the framework writes over what the user said, in the agent's own message."""
    found: list[Fitted[Any]] = []
    trim, talk = trim_middleware(4_000, on_fitted=found.append), copy.deepcopy(_talk(3))
    _fitted(trim, Scripted(), talk)
    talk[0]["content"][0]["text"] = "redacted " * 50
    talk[1]["content"][1]["toolUse"]["input"]["place"] = "behind " * 50
    _fitted(trim, Scripted(), talk)
    _fitted(trim_middleware(4_000, on_fitted=found.append), Scripted(), copy.deepcopy(talk))
    before, changed, anew = (one.report.tokens_after for one in found)
    assert changed == anew > before + 90


def test_a_model_whose_server_keeps_the_conversation_is_told_of_once(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """The framework forgets what was said when a run is over, and sends what is new."""
    model = OpenAIResponsesModel({"api_key": "none"}, model_id="gpt-4o", stateful=True)
    trim = trim_middleware(2_000)
    warnings.simplefilter("always")
    for _ in range(2):
        _fitted(trim, model, [{"role": "user", "content": [{"text": "Hello"}]}])
    told = [str(one.message) for one in recwarn if "the server adds messages" in str(one.message)]
    assert len(told) == 1
    assert told[0].endswith("write OpenAIResponsesModel(…, stateful=False)")


def test_the_thinking_that_opens_a_turn_stays_beside_the_cut() -> None:
    """A Claude thinks once and then calls a tool again and again: the judge takes what is left of it."""
    thinking = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQBCgIYAhIM"}}}
    said: list[Any] = [{"role": "user", "content": [{"text": "Look around."}]}]
    for at in range(12):
        call = {"toolUse": {"toolUseId": f"t{at}", "name": "look", "input": {}}}
        result = {"toolUseId": f"t{at}", "status": "success", "content": [{"text": "sunny " * 60}]}
        said.append({"role": "assistant", "content": [call] if at else [thinking, call]})
        said.append({"role": "user", "content": [{"toolResult": result}]})
    fields = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}

    @tool
    def look() -> str:
        """Look around."""
        return "sunny"

    with provider() as served:
        session = Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
        model = BedrockModel(
            model_id="us.anthropic.claude-sonnet-4-6",
            boto_session=session,
            endpoint_url=served.address,
            streaming=False,
            additional_request_fields=fields,
        )
        looker = Agent(model, messages=said, tools=[look], callback_handler=None)
        looker.add_middleware(InvokeModelStage.Input, trim_middleware(1_300))
        looker("And now?")
    [(_, body)] = served.bodies
    assert len(body["messages"]) < len(said)
