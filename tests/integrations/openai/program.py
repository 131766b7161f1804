"""What users write with trimtab's module for OpenAI's client, for the type checkers."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from trimtab import Budget, Fitted
from trimtab.integrations.openai import with_budget


class Answer(BaseModel):
    """What an answer is read as."""

    text: str


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


client: OpenAI = with_budget(OpenAI(api_key="none"), "80%", on_fitted=report, pin=[0])
azure: AzureOpenAI = with_budget(
    AzureOpenAI(api_key="none", api_version="1", azure_endpoint="http://localhost"), Budget(8_000)
)


def ask(messages: list[ChatCompletionMessageParam]) -> str | None:
    """Ask in three ways, each with the type the client gives it."""
    parsed: Answer | None = (
        client.chat.completions.parse(model="gpt-4o", messages=messages, response_format=Answer)
        .choices[0]
        .message.parsed
    )
    text: str = client.responses.create(model="gpt-4o", input="Hello").output_text
    said = client.with_options(timeout=9).chat.completions.create(model="gpt-4o", messages=messages)
    return said.choices[0].message.content or text or (parsed.text if parsed else None)


async def aask(messages: list[ChatCompletionMessageParam]) -> str:
    """Stream from an async client."""
    made: AsyncOpenAI = with_budget(AsyncOpenAI(api_key="none"), 32_000, strategy="agent")
    text = ""
    async for chunk in await made.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
        text += chunk.choices[0].delta.content or ""
    return text
