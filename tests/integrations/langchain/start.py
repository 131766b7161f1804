from langchain.agents import create_agent

from trimtab.integrations.langchain import TrimMiddleware

agent = create_agent("openai:gpt-4o", middleware=[TrimMiddleware(32_000)])
state = agent.invoke({"messages": [{"role": "user", "content": "Why is the sky blue?"}]})
print(state["messages"][-1].content)
