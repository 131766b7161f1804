"""What users write with trimtab's Pydantic AI module, for the type checkers."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage

from trimtab import Budget, Fitted
from trimtab.integrations.pydantic_ai import TrimCapability, history_processor


def report(fitted: Fitted[ModelMessage]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


agent: Agent[None, str] = Agent(
    "openai:gpt-4o",
    defer_model_check=True,
    capabilities=[
        TrimCapability("80%", on_fitted=report, pin=[0]),
        TrimCapability(Budget(8_000), persist=True),
    ],
)
older: Agent[None, str] = Agent(
    "openai:gpt-4o",
    defer_model_check=True,
    capabilities=[ProcessHistory(history_processor(4_000, model="gpt-4o"))],
)
