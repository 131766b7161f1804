import asyncio

from mcp import Client

from trimtab.integrations.mcp import make_server
from trimtab.stores import open_store


async def main() -> None:
    server = make_server(open_store("sqlite:///chats.db"))
    history = [{"role": "user", "content": "Why is the sky blue?"}]
    async with Client(server) as client:
        result = await client.call_tool("fit", {"messages": history, "budget": 2_000})
    print(result.structured_content)


asyncio.run(main())
