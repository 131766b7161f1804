"""LiteLLM's own way to keep a request small, and ours, on the same loops."""

from __future__ import annotations

from typing import Any

from litellm import compress
from litellm.utils import trim_messages

from tests.integrations.litellm.play import Chat, play, sdk
from tests.integrations.loops import Loop
from tests.integrations.upstream import BUDGET_TOKENS
from trimtab.integrations.litellm import TrimHandler


async def _trimmed(*, messages: list[Any], **arguments: Any) -> Any:
    """Call a model with what LiteLLM's documents have before the call."""
    kept = trim_messages([_plain(one) for one in messages], "gpt-4o", max_tokens=BUDGET_TOKENS)
    return await sdk(messages=kept, **arguments)


async def _compressed(*, messages: list[Any], tools: list[Any], **arguments: Any) -> Any:
    """The same with its compression, which has a tool to fetch what it took out."""
    plain = [_plain(one) for one in messages]
    kept = compress(messages=plain, model="gpt-4o", compression_trigger=BUDGET_TOKENS)
    return await sdk(messages=kept["messages"], tools=[*tools, *kept["tools"]], **arguments)


def _plain(message: Any) -> Any:
    if isinstance(message, dict):
        return message
    return {**message.model_dump(exclude_none=True), "content": message.content or ""}


POLICIES: dict[str, Any] = {
    "`TrimHandler(4_000)`": lambda: (sdk, TrimHandler(BUDGET_TOKENS)),
    "LiteLLM: nothing, its default": lambda: (sdk,),
    "LiteLLM: `trim_messages(messages, model, max_tokens=4_000)`": lambda: (_trimmed,),
    "LiteLLM: `compress(messages, model, compression_trigger=4_000)`": lambda: (_compressed,),
}
"""What is compared, by the words of the table."""


def score(loop: Loop, name: str) -> Any:
    """Play a loop with what is compared."""
    return play(loop, *POLICIES[name](), talk=Chat())[0]
