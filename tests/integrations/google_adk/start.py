import asyncio

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner

from trimtab.integrations.google_adk import TrimPlugin

agent = LlmAgent(name="teacher", model="gemini-2.5-flash")
app = App(name="lessons", root_agent=agent, plugins=[TrimPlugin(32_000)])
runner = InMemoryRunner(app=app)
asyncio.run(runner.run_debug("Why is the sky blue?"))  # prints the answer
