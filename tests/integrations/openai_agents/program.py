"""What users write with trimtab's module for OpenAI's Agents SDK, for the type checkers."""

from __future__ import annotations

from agents import Agent, RunConfig, Runner, TResponseInputItem

from trimtab import Budget, Fitted, Session
from trimtab.integrations.openai_agents import TrimSession, trim_filter


def report(fitted: Fitted[TResponseInputItem]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


async def main() -> None:
    """Run an agent."""
    agent = Agent[None]("agent", model="gpt-4o")
    config = RunConfig(call_model_input_filter=trim_filter("80%", on_fitted=report, pin=[0]))
    await Runner.run(agent, "Hello", run_config=config)
    session = TrimSession(Session(8_000, model="gpt-4o", format="openai_responses"))
    other = RunConfig(call_model_input_filter=trim_filter(Budget(8_000), model="gpt-4o", persist=session))
    await Runner.run(agent, "Hello", session=session, run_config=other)
