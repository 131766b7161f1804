"""The public surface as users write it. Checked by mypy and pyright in `make types`, never run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, assert_type

from anthropic.types import TextBlockParam, ToolParam
from google.genai.types import Tool
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from trimtab import (
    Budget,
    BudgetExceededError,
    Cascade,
    CharCounter,
    Context,
    Drop,
    EstimateCounter,
    Fitted,
    Report,
    Session,
    SlidingWindow,
    Strict,
    Summarize,
    TrimContext,
    TruncateText,
    afit,
    counter_for,
    counter_from_text,
    create_strategy,
    fit,
    repair,
    validate,
)
from trimtab.counting import Count, CounterLike, FixedCounter, measure
from trimtab.errors import InvalidHistoryError
from trimtab.formats import ToolSchema
from trimtab.history import evict_messages, within
from trimtab.session import UNSET, SessionHooks
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy
from trimtab.summaries import (
    AsyncOpenAISummarizer,
    ExtractiveSummarizer,
    OpenAISummarizer,
    Summarizer,
    SummarizerLike,
    SummaryRequest,
    run_summarizer,
)


def plain_dicts(messages: list[dict[str, object]]) -> None:
    fitted = fit(messages, budget=8_192, model="gpt-4o")
    assert_type(fitted, Fitted[dict[str, object]])
    assert_type(fitted.messages, list[dict[str, object]])
    assert_type(fitted.report, Report)


def fractions_of_a_token(messages: list[dict[str, object]]) -> None:
    fit(messages, 8_192 * 0.7)
    Context(8_192 * 0.7).fit(99.5)
    Session(8_192 * 0.7).set_budget(100.5)


class OfTenant(Session):
    """A class of one's own, which is what its class methods make."""


async def options_of_a_session(data: dict[str, Any]) -> None:
    Session(8_192, system=UNSET, summary_mode="rolling", store="chats.db", id="a", max_result_ratio=None)
    Session("8k", sistem="Be brief.")  # type: ignore[call-arg]
    Session("8k", summary_mode="other")  # type: ignore[arg-type]
    assert_type(OfTenant.restore(data, system=None, background=True, id="a"), OfTenant)
    assert_type(await OfTenant.arestore(data=data, budget=500, store="chats.db"), OfTenant)
    Session.restore(data, background="yes")  # type: ignore[arg-type]


def the_messages_of_a_client(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> str | None:
    fitted = fit(messages, Budget(128_000, output_reserve=4_096), model="gpt-4o")
    assert_type(fitted.messages, list[ChatCompletionMessageParam])
    reply = client.chat.completions.create(model="gpt-4o", messages=fitted.messages)
    return reply.choices[0].message.content


def a_request_body(body: dict[str, Any]) -> object:
    fitted = fit(body, budget=8_192)
    return fitted.request


def a_smaller_budget(fitted: Fitted[dict[str, Any]]) -> list[dict[str, Any]]:
    return fitted.at(4_096).messages


def pins_and_callbacks(messages: list[dict[str, Any]]) -> None:
    def drop_old_results(ctx: TrimContext) -> None:
        if ctx.total_tokens > ctx.limit_tokens:
            ctx.remove([element.seq for element in ctx.message_elements if element.role == "tool"])

    fit(messages, budget=8_192, pin=[0, 3], pending_calls=["call_1"])
    fit(messages, budget=8_192, pin=lambda message, index: index == 3)
    fit(messages, budget=8_192, on_trim=drop_old_results, repair=True)


class KeepLatest:
    """A strategy of a user: no base class, a name and one method."""

    name = "keep_latest"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        kept = list(request.units)[-1:]
        return EvictionResult(kept=kept, fits=request.fits(kept))


class Words:
    """A counter of a user: one method over a list of messages."""

    def count(self, messages: Sequence[Any], /) -> int:
        return sum(len(str(message).split()) for message in messages)


def seams(messages: list[dict[str, Any]]) -> None:
    mine: Strategy = KeepLatest()
    fit(messages, budget=8_192, strategy=mine, counter=Words())
    fit(messages, budget=8_192, strategy=KeepLatest(), counter=lambda batch: len(str(batch)))
    fit(messages, budget=8_192, strategy=Cascade(SlidingWindow(target_ratio=0.7), TruncateText(keep="both")))
    fit(messages, budget=8_192, strategy=create_strategy("sliding_window"), counter=counter_for("gpt-4o"))
    fit(messages, budget=8_192, strategy="agent")
    fit(messages, budget=8_192, counter=counter_from_text(len, message_overhead=4))
    fit(messages, budget=8_192, strategy=Strict())
    fit(messages, budget=8_192, strategy=Drop())


async def summarizers(client: OpenAI, later: AsyncOpenAI, request: SummaryRequest) -> None:
    assert_type(OpenAISummarizer("gpt-4o", client=client).summarize(request), str)
    assert_type(await AsyncOpenAISummarizer("gpt-4o", client=later).summarize(request), str)
    kinds: list[Summarizer] = [
        OpenAISummarizer("llama3.2", base_url="http://127.0.0.1/v1", api_key="none", budget=Budget(8_192)),
        AsyncOpenAISummarizer("gpt-4o", client=later, timeout_seconds=20, max_retries=0),
        ExtractiveSummarizer(language="de", counter=counter_for("gpt-4o")),
    ]
    assert_type(run_summarizer(kinds[0], request), str | None)
    assert_type(OpenAISummarizer("gpt-4o").client, OpenAI)


def summarize(messages: list[dict[str, Any]]) -> str:
    return f"{len(messages)} messages"


def summarize_on(messages: Sequence[Any], existing: str | None) -> str:
    return f"{existing} and {len(messages)} messages"


async def summarize_later(messages: list[dict[str, Any]]) -> str:
    return f"{len(messages)} messages"


class OneLine:
    """A summarizer of a user."""

    def summarize(self, request: SummaryRequest) -> str:
        return f"{len(request.messages)} messages"


def functions_as_summarizers(messages: list[dict[str, Any]]) -> None:
    taken: list[SummarizerLike] = [summarize, summarize_on, summarize_later, OneLine()]
    for one in taken:
        fit(messages, 10, strategy=Summarize(one, max_summary_tokens=5, fallback=Drop()))
        Session(999, summarizer=one, hooks={"on_evict": lambda messages, reason: None})
    Summarize(summarize)
    Summarize(summarize_on)
    Summarize(summarize_later)
    Summarize(lambda messages: f"{len(messages)} messages")
    Summarize(lambda messages, existing: f"{existing}; {len(messages)} more")
    assert_type(Summarize(summarize).summarizer, Summarizer)
    Session(999, summarizer=None, hooks=SessionHooks(on_evict=lambda messages, reason: print(len(messages))))


class OfDicts:
    """A counter whose messages are dicts."""

    def count(self, messages: list[dict[str, Any]]) -> int:
        return len(messages)


class Remote:
    """A counter that has to be awaited."""

    async def count(self, messages: Sequence[Any]) -> int:
        return len(messages)


async def count_later(messages: list[dict[str, Any]]) -> int:
    return len(messages)


def count_text(text: str) -> int:
    return math.ceil(len(text) / 4)


async def counters(messages: list[dict[str, Any]]) -> None:
    taken: list[CounterLike] = [
        Words(),
        OfDicts(),
        count_text,
        "chars:4",
        "estimate",
        lambda text: math.ceil(len(text) / 4),
        counter_for("gpt-4o"),
        counter_from_text(len),
        CharCounter(),
        EstimateCounter(),
        FixedCounter(10),
    ]
    for one in taken:
        fit(messages, 10, counter=one)
        Context(10, counter=one)
        Session(999, counter=one)
        within(messages, 10, one)
        evict_messages(messages, 10, counter=one)
        assert_type(measure(messages, counter=one), Count)
    await afit(messages, 10, counter=Remote())
    await afit(messages, 10, counter=count_later)


def tools_and_system(
    messages: list[dict[str, Any]],
    openai_tools: list[ChatCompletionToolParam],
    anthropic_tools: list[ToolParam],
    gemini_tools: list[Tool],
    parts: list[TextBlockParam],
) -> None:
    mine: list[ToolSchema] = [{"type": "function", "function": {"name": "add"}}]
    fit(messages, 10, tools=mine, system="Be brief.")
    fit(messages, 10, tools=openai_tools)
    fit(messages, 10, tools=anthropic_tools, system=parts)
    fit(messages, 10, tools=gemini_tools, strict=True)
    Context(10, tools=openai_tools, system=parts, strict=True).clone(tools=mine, strict=False)
    Session(999, tools=openai_tools, system=parts)


def errors(messages: list[dict[str, Any]]) -> int | None:
    try:
        fit(messages, budget=10)
    except BudgetExceededError as error:
        print(error.attempt.messages, error.attempt.report.to_text())
        return error.needed_tokens
    except InvalidHistoryError as error:
        return error.index
    return None


def violations(messages: list[dict[str, Any]]) -> list[int | None]:
    repair(messages, format="openai_chat")
    return [violation.index for violation in validate(messages, format="openai_chat")]
