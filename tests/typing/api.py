"""The public surface as users write it. Checked by mypy and pyright in `make types`, never run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from trimtab import (
    Budget,
    BudgetExceededError,
    Cascade,
    Drop,
    Fitted,
    Report,
    SlidingWindow,
    Strict,
    TrimContext,
    TruncateText,
    counter_for,
    counter_from_text,
    create_strategy,
    fit,
    repair,
    validate,
)
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy
from trimtab.summaries import (
    AsyncOpenAISummarizer,
    ExtractiveSummarizer,
    OpenAISummarizer,
    Summarizer,
    SummaryRequest,
    run_summarizer,
)


def plain_dicts(messages: list[dict[str, object]]) -> None:
    fitted = fit(messages, budget=8_192, model="gpt-4o")
    assert_type(fitted, Fitted[dict[str, object]])
    assert_type(fitted.messages, list[dict[str, object]])
    assert_type(fitted.report, Report)


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


def errors(messages: list[dict[str, Any]]) -> int | None:
    try:
        fit(messages, budget=10)
    except BudgetExceededError as error:
        return error.needed_tokens
    return None


def violations(messages: list[dict[str, Any]]) -> list[int | None]:
    repair(messages, format="openai_chat")
    return [violation.index for violation in validate(messages, format="openai_chat")]
