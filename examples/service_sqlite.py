"""A chat service: a line of JSON in, the answer out; each user's talk is a session in one SQLite file."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openai import AsyncOpenAI

from trimtab import Session
from trimtab.stores import Retry, SQLiteStore
from trimtab.summaries import AsyncOpenAISummarizer


async def main(file: str, port: int) -> None:
    """Serve until the process ends; any number of processes may serve from one file."""
    client, store = AsyncOpenAI(), SQLiteStore(file)
    options: dict[str, Any] = {"model": "gpt-4o", "system": "Be brief.", "store": store, "retry": Retry()}
    options["summarizer"] = AsyncOpenAISummarizer("gpt-4o-mini", client=client)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(await reader.readline())
        chat = Session(2_000, id=asked["user"], **options)
        await chat.aadd({"role": "user", "content": asked["text"]})
        said = await client.chat.completions.create(model="gpt-4o", messages=await chat.amessages())
        await chat.aadd(said.choices[0].message)
        writer.write(f"{said.choices[0].message.content}\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
