from pydantic_ai import Agent

from trimtab.integrations.pydantic_ai import TrimCapability

agent = Agent("openai:gpt-4o", capabilities=[TrimCapability(32_000)])
result = agent.run_sync("Why is the sky blue?")
print(result.output)
