"""What users write with trimtab's module for Anthropic's client, for the type checkers."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message, MessageParam

from trimtab import Budget, Fitted
from trimtab.integrations.anthropic import with_budget


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


client: Anthropic = with_budget(Anthropic(api_key="none"), "80%", on_fitted=report, breakpoints=True)
other = with_budget(AsyncAnthropic(api_key="none"), Budget(8_000), pin=[0])


def ask(messages: list[MessageParam]) -> Message:
    """Ask in two ways, each with the type the client gives it."""
    with client.messages.stream(model="claude-sonnet-5", max_tokens=99, messages=messages) as stream:
        print(stream.get_final_text())
    return client.with_options(timeout=9).messages.create(
        model="claude-sonnet-5", max_tokens=99, messages=messages
    )


async def aask(messages: list[MessageParam]) -> Message:
    """Ask an async client."""
    made: AsyncAnthropic = other
    return await made.messages.create(model="claude-sonnet-5", max_tokens=99, messages=messages)
