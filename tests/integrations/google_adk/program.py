"""What users write with trimtab's module for Google's ADK, for the type checkers."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from google.genai import types

from trimtab import Budget, Fitted
from trimtab.integrations.google_adk import TrimPlugin


def report(fitted: Fitted[types.Content]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


trim = TrimPlugin(Budget(8_000), name="small", model="gemini-2.5-flash")
agent = LlmAgent(name="agent", model="gemini-2.5-flash", before_model_callback=trim.before_model_callback)
app = App(name="app", root_agent=agent, plugins=[TrimPlugin("80%", on_fitted=report, pin=[0])])
runner = InMemoryRunner(app=app)
