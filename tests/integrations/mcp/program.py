"""What users write with trimtab's MCP module, for the type checkers."""

from __future__ import annotations

import asyncio

from mcp import Client

from trimtab import Session
from trimtab.integrations.mcp import make_server, serve_http
from trimtab.stores import MemoryStore

store = MemoryStore()
server = make_server(
    store, max_tokens=4_000, open_session=lambda name: Session.open(store, name), token="a secret"
)


async def ask() -> list[str]:
    """Ask the server for its tools."""
    async with Client(server) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


if __name__ == "__main__":
    print(asyncio.run(ask()))
    serve_http(server, 8765, ready=print)
