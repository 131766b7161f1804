"""A chat through LiteLLM whose requests fit: a long talk, and LiteLLM's own double of a model.

`pip install 'trimtab[exact,litellm]'`, then `python examples/integrations/litellm_calls.py`; it needs no
network.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else LiteLLM asks for its list of models

import litellm

from trimtab import Fitted
from trimtab.integrations.litellm import TrimHandler, completion


def show(fitted: Fitted[Any]) -> None:
    """Print what each request kept."""
    report = fitted.report
    kept, all_of_them = report.kept_message_count, report.total_message_count
    print(f"{kept:3} of {all_of_them:3} messages, {report.tokens_after:,} tokens")


async def main() -> None:
    """Ask forty questions, and one more without waiting; print the requests, and what the caller keeps."""
    litellm.callbacks = [TrimHandler(4_000, on_fitted=show)]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for page in range(1, 41):
        text = f"page {page}: " + "the harbour was quiet that night. " * 40
        messages.append({"role": "user", "content": f"{text}Was it quiet?"})
        answer = await litellm.acompletion(model="openai/gpt-4o", messages=messages, mock_response="Yes.")
        assert isinstance(answer, litellm.ModelResponse)  # not streamed
        messages.append(answer.choices[0].message)
    messages.append({"role": "user", "content": "Always?"})
    completion("openai/gpt-4o", messages, mock_response="Always.")
    print(f"{len(messages)} messages in the chat, none of them changed")


if __name__ == "__main__":
    asyncio.run(main())
