"""An agent of Strands whose requests fit: a scripted model reads a long file, page by page.

`pip install 'trimtab[exact,strands]'`, then `python examples/integrations/strands_agent.py`; it needs no
network.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.middleware import InvokeModelStage
from strands.models import Model
from strands.types.content import Message

from trimtab import Fitted
from trimtab.integrations.strands import trim_middleware

PAGES = 40


@tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


class Reader(Model):
    """A model that asks for the next page until it has read them all."""

    page = 0

    def get_config(self) -> Any:
        """Name the model that is counted for."""
        return {"model_id": "gpt-4o"}

    def update_config(self, **config: Any) -> None:
        """Change nothing."""

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: nobody asks for it here."""
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        """Ask for a page, or answer."""
        self.page += 1
        start: dict[str, Any] = {}
        delta: dict[str, Any] = {"text": "It was quiet."}
        if asks := self.page <= PAGES:
            start = {"toolUse": {"toolUseId": f"call_{self.page}", "name": "read_page"}}
            delta = {"toolUse": {"input": json.dumps({"page": self.page})}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if asks else "end_turn"}}


def show(fitted: Fitted[Message]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask one question; print the requests, and what the agent keeps."""
    agent = Agent(
        Reader(), tools=[read_page], callback_handler=None, conversation_manager=NullConversationManager()
    )
    agent.add_middleware(InvokeModelStage.Input, trim_middleware(4_000, on_fitted=show))
    agent("Was it quiet?")
    print(f"{len(agent.messages)} messages in the agent, none of them changed")


if __name__ == "__main__":
    main()
