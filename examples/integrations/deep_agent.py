"""A deep agent whose requests fit, those of its sub-agent, too: a scripted model reads a file, page by page.

Needs `pip install 'trimtab[exact,langchain]' deepagents`, and no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from trimtab import Fitted
from trimtab.integrations.langchain import TrimMiddleware


class Trim(TrimMiddleware):
    """Takes the place of the agent's own summarization, and is handed on to its general-purpose sub-agent."""

    @property
    def name(self) -> str:
        """That of what it takes the place of."""
        return "SummarizationMiddleware"


@tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


class Reader(BaseChatModel):
    """Stands in for a model: it has a sub-agent read forty pages, and reads forty more itself."""

    model_name: str = "gpt-4o"
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take the tools; the script knows them."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls += 1
        call: dict[str, Any] = {"name": "read_page", "args": {"page": self.calls}, "id": f"call_{self.calls}"}
        if self.calls == 1:
            told = {"description": "Read pages 2 to 41.", "subagent_type": "general-purpose"}
            call = {**call, "name": "task", "args": told}
        said = AIMessage("It was quiet.") if self.calls in (42, 83) else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


def show(fitted: Fitted[BaseMessage]) -> None:
    """Print what each request kept."""
    report, sent = fitted.report, len(fitted.messages)
    print(f"{sent:3} of {report.total_message_count:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask one question; print the requests of both agents, and what the first keeps."""
    agent = create_deep_agent(Reader(), [read_page], middleware=[Trim(4_000, on_fitted=show)])
    answer = agent.invoke({"messages": [HumanMessage("Was it quiet?")]}, {"recursion_limit": 500})
    print(f"{len(answer['messages'])} messages in the agent's state, none of them changed")


if __name__ == "__main__":
    main()
