"""An agent of LangChain's whose requests fit: a scripted model reads a long file, page by page.

Needs `pip install 'trimtab[exact,langchain]'`, and no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from trimtab import Fitted
from trimtab.integrations.langchain import TrimMiddleware


@tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


class Reader(BaseChatModel):
    """Stands in for a model: it reads forty pages, and then answers."""

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
        call = {"name": "read_page", "args": {"page": self.calls}, "id": f"call_{self.calls}"}
        said = AIMessage("", tool_calls=[call]) if self.calls <= 40 else AIMessage("It was quiet.")
        return ChatResult(generations=[ChatGeneration(message=said)])


def show(fitted: Fitted[BaseMessage]) -> None:
    """Print what each request kept."""
    report, sent = fitted.report, len(fitted.messages)
    print(f"{sent:3} of {report.total_message_count:3} messages, {report.tokens_after:,} tokens")


def main() -> None:
    """Ask one question; print the requests, and what the agent keeps."""
    agent = create_agent(Reader(), [read_page], middleware=[TrimMiddleware(4_000, on_fitted=show)])
    answer = agent.invoke({"messages": [HumanMessage("Was it quiet?")]}, {"recursion_limit": 200})
    print(f"{len(answer['messages'])} messages in the agent's state, none of them changed")


if __name__ == "__main__":
    main()
