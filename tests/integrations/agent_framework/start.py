import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from trimtab.integrations.agent_framework import TrimMiddleware


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o")
    agent = Agent(client, middleware=[TrimMiddleware(32_000)])
    print(await agent.run("Why is the sky blue?"))


asyncio.run(main())
