"""What users write with trimtab's LiteLLM module, for the type checkers."""

from __future__ import annotations

from typing import Any

import litellm
from litellm.router import Router

from trimtab import Budget, Fitted
from trimtab.integrations.litellm import TrimHandler, acompletion, completion, trim_call


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


async def main() -> None:
    """Call a model in each way."""
    litellm.callbacks = [TrimHandler("80%", on_fitted=report, pin=[0])]
    question = [{"role": "user", "content": "Hello"}]
    await litellm.acompletion(model="openai/gpt-4o", messages=question)
    await acompletion("openai/gpt-4o", question)
    completion("openai/gpt-4o", question)
    router = Router(model_list=[])
    trim_call(router.completion)("fast", question)
    litellm.callbacks.append(TrimHandler(Budget(8_000), model="gpt-4o"))
