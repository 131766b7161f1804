"""An agent of Pydantic AI's whose requests fit: a scripted model reads a long file, page by page.

`pip install 'trimtab[exact,pydantic-ai]'`, then `python examples/integrations/pydantic_ai_agent.py`; it needs
no network.
"""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from trimtab import Fitted
from trimtab.integrations.pydantic_ai import TrimCapability


class Reader:
    """Stands in for a model: it reads forty pages, and then answers."""

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Call for the next page, or end."""
        self.calls += 1
        if self.calls <= 40:
            return ModelResponse([ToolCallPart("read_page", {"page": self.calls})])
        return ModelResponse([TextPart("It was quiet.")])


def show(fitted: Fitted[ModelMessage]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask one question; print the requests, and what the agent keeps."""
    trim = TrimCapability(4_000, model="gpt-4o", on_fitted=show)
    agent: Agent[None, str] = Agent(FunctionModel(Reader().answer), capabilities=[trim])

    @agent.tool_plain
    def read_page(page: int) -> str:
        """Read a page of the file."""
        return f"page {page}: " + "the harbour was quiet that night. " * 40

    run = agent.run_sync("Was it quiet?")
    print(f"{len(run.all_messages())} messages in the agent's history, none of them changed")


if __name__ == "__main__":
    main()
