"""What users write with trimtab in an agent of deepagents, for the type checkers."""

from __future__ import annotations

from typing import Any

from deepagents import SubAgent, create_deep_agent

from trimtab.integrations.langchain import TrimMiddleware


class Trim(TrimMiddleware):
    """Takes the place of the agent's own summarization, and is handed on to its general-purpose sub-agent."""

    @property
    def name(self) -> str:
        """That of what it takes the place of."""
        return "SummarizationMiddleware"


trim: Any = Trim(32_000)
reader: SubAgent = {
    "name": "reader",
    "description": "Reads files.",
    "system_prompt": "Read what is asked for.",
    "middleware": [trim],
}
agent = create_deep_agent("openai:gpt-4o", middleware=[trim], subagents=[reader])


def ask(question: str) -> Any:
    """Ask the agent."""
    return agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].content
