"""What users write with frameworks that take the provider's client, for the type checkers.

smolagents has no types.
"""

from __future__ import annotations

import instructor
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI as LLM
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

from trimtab.integrations.openai import with_budget


class Reply(BaseModel):
    """An answer by a schema."""

    answer: str


client = with_budget(OpenAI(api_key="none"), 32_000)
awaited = with_budget(AsyncOpenAI(api_key="none"), 32_000)

agno = Agent(model=OpenAIChat(id="gpt-4o", client=client, async_client=awaited))
llama_index = FunctionAgent(llm=LLM(model="gpt-4o", openai_client=client, async_openai_client=awaited))
service = OpenAIChatCompletion(ai_model_id="gpt-4o", async_client=awaited)
semantic_kernel = ChatCompletionAgent(service=service, name="teacher")


def ask(question: str) -> str:
    """Ask with the type of the schema."""
    return (
        instructor.from_openai(client)
        .chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": question}], response_model=Reply
        )
        .answer
    )
