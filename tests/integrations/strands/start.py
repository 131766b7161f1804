from strands import Agent
from strands.middleware import InvokeModelStage
from strands.models.openai import OpenAIModel

from trimtab.integrations.strands import trim_middleware

agent = Agent(OpenAIModel(model_id="gpt-4o"), callback_handler=None)
agent.add_middleware(InvokeModelStage.Input, trim_middleware(32_000))
print(agent("Why is the sky blue?"))
