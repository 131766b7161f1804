"""A run of the OpenAI Agents SDK whose requests fit: a scripted model reads a long file, page by page.

`pip install 'trimtab[exact,openai-agents]'`, then `python examples/integrations/openai_agents_run.py`; it
needs no network.
"""

from __future__ import annotations

import asyncio

from agents import Agent, RunConfig, Runner, TResponseInputItem, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from trimtab import Fitted
from trimtab.integrations.openai_agents import trim_filter


@function_tool
def read_page(page: int) -> str:
    """Read a page of the file."""
    return f"page {page}: " + "the harbour was quiet that night. " * 40


def show(fitted: Fitted[TResponseInputItem]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} items, {report.tokens_after:,} tokens")


async def main() -> None:
    """Ask one question; print the requests, and what the run keeps."""
    pages = [[function_call("read_page", {"page": page}, call_id=f"call_{page}")] for page in range(1, 41)]
    reader = ScriptedModel([*pages, [assistant_message("It was quiet.")]])
    agent = Agent[None]("reader", model=reader, tools=[read_page])
    trim = trim_filter(4_000, model="gpt-4o", on_fitted=show)
    config = RunConfig(call_model_input_filter=trim, tracing_disabled=True)
    run = await Runner.run(agent, "Was it quiet?", run_config=config, max_turns=50)
    print(f"{len(run.to_input_list())} items in the run, none of them changed")


if __name__ == "__main__":
    asyncio.run(main())
