"""A conversation with Claude Code through a gateway: all it knows of that is an address."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool

MODEL = "claude-sonnet-4-5"
TOOL = "mcp__loop__look"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "ENABLE_TOOL_SEARCH": "false",  # else it asks for the tool's schema first
    "MAX_MCP_OUTPUT_TOKENS": "100000",
}


async def converse(
    questions: Iterable[Sequence[dict[str, Any]]],
    look: Callable[[int], dict[str, Any]],
    *,
    address: str,
    home: Path,
) -> list[str]:
    """Ask Claude Code questions, each of them a list of parts; returns its answers.

    Args:
        questions: What is asked.
        look: What its tool does.
        address: The gateway.
        home: An empty folder: it sees nothing of this machine's user.
    """

    @tool("look", "Look at a place.", {"place": int})
    async def run(given: dict[str, Any]) -> dict[str, Any]:
        return look(given["place"])

    options = ClaudeAgentOptions(
        model=MODEL,
        system_prompt={"type": "preset", "preset": "claude_code"},
        mcp_servers={"loop": create_sdk_mcp_server("loop", tools=[run])},
        allowed_tools=[TOOL],
        setting_sources=[],
        cwd=home,
        env={
            **{name: "" for name in os.environ if name.lower().endswith("_proxy")},
            **QUIET,
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "none",
        },
    )
    answers: list[str] = []
    async with ClaudeSDKClient(options=options) as client:
        for parts in questions:
            await client.query(_message(parts))
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    answers.append(message.result or message.subtype)
    return answers


async def _message(parts: Sequence[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": [*parts]}, "parent_tool_use_id": None}
