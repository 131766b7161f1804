"""What `load.py` holds the web app against: the same answers, streamed without a session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

client = AsyncOpenAI()
app = FastAPI()


class Question(BaseModel):
    """As in the program."""

    id: str
    text: str
    attempt: int = 1


async def stream(question: Question) -> AsyncIterator[str]:
    """Send an answer in pieces, and last as a whole."""
    text = ""
    view: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": question.text},
    ]
    async with await client.chat.completions.create(model="gpt-4o", messages=view, stream=True) as pieces:
        async for chunk in pieces:
            for choice in chunk.choices:
                if piece := choice.delta.content:
                    text += piece
                    yield f"data: {json.dumps({'text': piece})}\n\n"
    message = {
        "role": "assistant",
        "content": text,
        "id": f"{question.id}/1/whole/0",
        "version": 0,
        "cut": False,
    }
    yield f"data: {json.dumps({'message': message})}\n\n"


@app.post("/chats/{name}")
async def ask(name: str, question: Question) -> StreamingResponse:
    """Answer a question."""
    return StreamingResponse(stream(question), media_type="text/event-stream")
