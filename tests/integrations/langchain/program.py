"""What users write with trimtab's LangChain module, for the type checkers."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI

from trimtab import Budget, Fitted
from trimtab.integrations.langchain import TrimMiddleware, trim_messages


def report(fitted: Fitted[BaseMessage]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


model = ChatOpenAI(model="gpt-4o")
agent = create_agent(
    model,
    [],
    middleware=[
        TrimMiddleware("80%", on_fitted=report, pin=[0]),
        TrimMiddleware(Budget(8_000), persist=True),
    ],
)
kept: list[BaseMessage] = trim_messages([HumanMessage("Hello")], 4_000, model="gpt-4o")
answered = (trim_messages(max_tokens=4_000, token_counter=model) | model).invoke([HumanMessage("Hello")])
