"""What users write with trimtab's module for clients of hosts, for the type checkers."""

from __future__ import annotations

from typing import Any

from cerebras.cloud.sdk import AsyncCerebras
from groq import Groq
from groq.types.chat import ChatCompletion

from trimtab import Budget, Fitted
from trimtab.integrations.openai_compatible import with_budget


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


client: Groq = with_budget(Groq(api_key="none"), 32_000, on_fitted=report)
other: AsyncCerebras = with_budget(AsyncCerebras(api_key="none"), Budget(8_000), pin=[0])


def ask(question: str) -> ChatCompletion:
    """Ask with the type the client gives."""
    return client.chat.completions.create(
        model="llama-3.3-70b-versatile", messages=[{"role": "user", "content": question}]
    )
