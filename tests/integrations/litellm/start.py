import litellm

from trimtab.integrations.litellm import TrimHandler, completion

litellm.callbacks = [TrimHandler(32_000)]
history = [{"role": "user", "content": "Why is the sky blue?"}]
answer = completion("openai/gpt-4o", history)
assert isinstance(answer, litellm.ModelResponse)  # and no stream
print(answer.choices[0].message.content)
