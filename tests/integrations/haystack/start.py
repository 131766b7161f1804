from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage

from trimtab.integrations.haystack import TrimHook

generator = OpenAIChatGenerator(model="gpt-4o")
hook = TrimHook(32_000, model="gpt-4o")
agent = Agent(chat_generator=generator, hooks={"before_llm": [hook]})
state = agent.run(messages=[ChatMessage.from_user("Why is the sky blue?")])
print(state["last_message"].text)
