"""Microsoft's Agent Framework: an agent whose requests fit; a scripted model reads a long file, page by page.

`pip install 'trimtab[exact,agent-framework]'`, then `python examples/integrations/agent_framework_run.py`; it
needs no network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from trimtab import Fitted
from trimtab.integrations.agent_framework import TrimMiddleware

PAGES = 30


@tool(approval_mode="never_require")
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


class Reader(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A client whose model asks for the next page until it has read them all."""

    model = "gpt-4o"
    page = 0

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]]:
        self.page += 1
        said: list[Content | str] = ["It was quiet."]
        if self.page <= PAGES:
            said = [
                Content.from_function_call(f"call_{self.page}", "read_page", arguments={"page": self.page})
            ]

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", said)])

        return answer()


def show(fitted: Fitted[Message]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


async def main() -> None:
    """Ask one question; print the requests, and what the session keeps."""
    agent = Agent(Reader(), tools=[read_page], middleware=[TrimMiddleware(4_000, on_fitted=show)])
    session = agent.create_session()
    await agent.run("Was it quiet?", session=session)
    print(f"{len(session.state['in_memory']['messages'])} messages in the session, none of them changed")


if __name__ == "__main__":
    asyncio.run(main())
