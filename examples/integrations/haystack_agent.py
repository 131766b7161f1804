"""An agent of Haystack's whose requests fit: a scripted model reads a long file, page by page.

Needs `pip install 'trimtab[exact,haystack]'`, and no network.
"""

from __future__ import annotations

from haystack.components.agents import Agent
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import tool

from trimtab import Fitted
from trimtab.integrations.haystack import TrimHook


@tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


def show(fitted: Fitted[ChatMessage]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask one question; print the requests, and what the agent keeps."""
    pages = [ToolCall("read_page", {"page": page}, id=f"call_{page}") for page in range(1, 41)]
    model = MockChatGenerator(
        [*(ChatMessage.from_assistant(tool_calls=[one]) for one in pages), "It was quiet."]
    )
    trim = TrimHook(4_000, model="gpt-4o", on_fitted=show)
    agent = Agent(chat_generator=model, tools=[read_page], hooks={"before_llm": [trim]})
    messages = agent.run([ChatMessage.from_user("Was it quiet?")])["messages"]
    print(f"{len(messages)} messages in the agent's output, none of them changed")


if __name__ == "__main__":
    main()
