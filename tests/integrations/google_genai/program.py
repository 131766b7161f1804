"""What users write with trimtab's module for Google's client, for the type checkers."""

from __future__ import annotations

from typing import Any

from google.genai import Client, types
from google.genai.client import AsyncClient

from trimtab import Budget, Fitted
from trimtab.integrations.google_genai import with_budget


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


def ask(contents: list[types.ContentUnionDict]) -> str | None:
    """Ask in two ways, each with the type the client gives it."""
    client: Client = with_budget(Client(api_key="none"), "80%", on_fitted=report, pin=[0])
    for part in client.models.generate_content_stream(model="gemini-2.5-flash", contents=contents):
        print(part.text)
    return client.models.generate_content(model="gemini-2.5-flash", contents=contents).text


async def aask() -> str | None:
    """Ask an async client."""
    aio: AsyncClient = with_budget(Client(api_key="none").aio, Budget(8_000))
    answer = await aio.models.generate_content(model="gemini-2.5-flash", contents="Hello")
    return answer.text
