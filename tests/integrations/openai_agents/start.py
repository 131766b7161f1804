from agents import Agent, RunConfig, Runner

from trimtab.integrations.openai_agents import trim_filter

agent = Agent[None]("teacher", model="gpt-4o")
config = RunConfig(call_model_input_filter=trim_filter(32_000))
result = Runner.run_sync(agent, "Why is the sky blue?", run_config=config)
print(result.final_output)
