"""LangChain's own ways to keep a request small, and ours: rows of docs/integrations/langchain.md."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, before_model
from langchain_core.messages import RemoveMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from tests.integrations.langchain.test_langchain import play
from tests.integrations.upstream import BUDGET_TOKENS
from trimtab.integrations.langchain import TrimMiddleware


def _trim(**options: Any) -> Any:
    """Make the middleware of LangChain's guide to short-term memory, with these options of its trimmer."""

    @before_model
    def trim(state: Any, runtime: Any) -> dict[str, Any]:
        kept = trim_messages(
            state["messages"],
            max_tokens=BUDGET_TOKENS,
            token_counter=count_tokens_approximately,
            **options,
        )
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}

    return trim


POLICIES: dict[str, Any] = {
    "`TrimMiddleware(4_000)`": lambda: TrimMiddleware(BUDGET_TOKENS),
    "the same, `persist=True`": lambda: TrimMiddleware(BUDGET_TOKENS, persist=True),
    "LangChain: no middleware": lambda: None,
    "LangChain: `trim_messages`, its defaults": _trim,
    "LangChain: `trim_messages` as its guide has it": lambda: _trim(
        strategy="last", start_on="human", end_on=("human", "tool"), include_system=True
    ),
    "LangChain: `ContextEditingMiddleware` at the budget": lambda: ContextEditingMiddleware(
        edits=[ClearToolUsesEdit(trigger=BUDGET_TOKENS)]
    ),
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop; what a framework raises ends it, and the score is of the requests until then."""
    made = POLICIES[name]()
    return play(loop, *([] if made is None else [made]))[0]
