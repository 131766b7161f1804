"""An MCP server over kept conversations, asked in memory as a host asks it.

Needs `pip install 'trimtab[exact,mcp]'`, and no network.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client

from trimtab import Session
from trimtab.integrations.mcp import make_server
from trimtab.stores import MemoryStore


def keep_a_talk(store: MemoryStore) -> None:
    """Keep a conversation whose beginning is soon out of view."""
    session = Session(budget=400, system="You help customers.", store=store, id="ada")
    session.add({"role": "user", "content": "My order is 7741, and the box is green."})
    for step in range(40):
        session.add({"role": "assistant", "content": f"Step {step}: look at the belt drive once more."})
        session.add({"role": "user", "content": f"I did step {step}. What now?"})


async def main() -> None:
    """Ask for the tools, a view and what was said about the order."""
    store = MemoryStore()
    keep_a_talk(store)
    async with Client(make_server(store)) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        for resource in (await client.list_resources()).resources:
            print("resource:", resource.uri)
        [view] = (await client.read_resource("trimtab://sessions/ada?budget=100")).contents
        print("the view ends:", getattr(view, "text", "").splitlines()[-1])
        found = await client.call_tool("recall", {"session": "ada", "query": "green order", "limit": 1})
        data: dict[str, Any] = found.structured_content or {}
        print("recalled:", data["found"][0]["text"])


if __name__ == "__main__":
    asyncio.run(main())
