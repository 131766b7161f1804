"""An app of Google's ADK whose requests fit: a scripted model reads a long file, page by page.

`pip install 'trimtab[exact,google-adk]'`, then `python examples/integrations/google_adk_app.py`; it needs
no network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from trimtab import Fitted
from trimtab.integrations.google_adk import TrimPlugin

PAGES = 40


def read_page(page: int) -> dict[str, str]:
    """Read a page of the file."""
    return {"text": f"page {page}: " + "the harbour was quiet that night. " * 40}


class Reader(BaseLlm):
    """A model that asks for the next page until it has read them all."""

    model: str = "gpt-4o"
    page: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Ask for a page, or answer."""
        self.page += 1
        part = types.Part(text="It was quiet.")
        if self.page <= PAGES:
            part = types.Part(function_call=types.FunctionCall(name="read_page", args={"page": self.page}))
        said = types.Content(role="model", parts=[part])
        yield LlmResponse(content=said)


def show(fitted: Fitted[types.Content]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} contents, {report.tokens_after:,} tokens")


async def main() -> None:
    """Ask one question; print the requests, and what the session keeps."""
    agent = LlmAgent(name="reader", model=Reader(), tools=[read_page])
    app = App(name="reading", root_agent=agent, plugins=[TrimPlugin(4_000, on_fitted=show)])
    runner = InMemoryRunner(app=app)
    events = await runner.run_debug("Was it quiet?", quiet=True)
    print(f"{len(events)} events in the session, none of them changed")


if __name__ == "__main__":
    asyncio.run(main())
