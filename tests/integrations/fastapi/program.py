"""A chat service: each conversation is a session in PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import BackgroundTasks, Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

from trimtab import BudgetExceededError, Session
from trimtab.errors import StoreUnavailableError, UnknownNameError, VersionConflictError
from trimtab.stores import PostgresStore, Retry
from trimtab.summaries import AsyncOpenAISummarizer

client = AsyncOpenAI()
store = PostgresStore(os.environ["DATABASE_URL"], max_connections=10)
summarizer = AsyncOpenAISummarizer("gpt-4o-mini", client=client)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
    """Give the connections back at the end."""
    yield
    await store.aclose()


app = FastAPI(lifespan=lifespan)


class Question(BaseModel):
    """What the browser sends: the same id again if it asks again."""

    id: str
    text: str


async def conversation(name: str, user: Annotated[str, Header(alias="X-User")]) -> Session:
    """Give the session of one user's conversation; put your own login in the place of the header."""
    return Session(
        2_000,
        model="gpt-4o",
        system="Be brief.",
        summarizer=summarizer,
        background=True,
        store=store,
        id=f"{user}/{name}",
        retry=Retry(),
    )


Chat = Annotated[Session, Depends(conversation)]


@app.post("/chats/{name}")
async def ask(question: Question, chat: Chat, after: BackgroundTasks) -> dict[str, str]:
    """Answer a question, or give the answer that it had."""
    await chat.aadd({"role": "user", "content": question.text}, id=question.id)
    after.add_task(chat.aclose)  # waits for a summary, once the answer is sent
    with suppress(UnknownNameError):  # asked before, and answered
        return {"text": (await chat.aview_of(f"{question.id}/answer"))["content"]}
    said = await client.chat.completions.create(model="gpt-4o", messages=await chat.amessages())
    event = await chat.aadd(said.choices[0].message, id=f"{question.id}/answer")
    return {"text": event.message["content"]}


@app.get("/chats/{name}")
async def read(chat: Chat) -> list[dict[str, Any]]:
    """List everything that was said."""
    return [event.message async for event in chat.ahistory()]


@app.delete("/chats/{name}", status_code=204)
async def delete(chat: Chat) -> None:
    """Delete the conversation."""
    await chat.adelete()


@app.exception_handler(BudgetExceededError)
async def too_long(_: Request, error: Exception) -> JSONResponse:
    """Refuse a message that no request has room for."""
    return JSONResponse({"error": "the message is too long"}, 413)


@app.exception_handler(StoreUnavailableError)
@app.exception_handler(VersionConflictError)
async def busy(_: Request, error: Exception) -> JSONResponse:
    """Let the browser ask again."""
    return JSONResponse({"error": "ask again, with the same id"}, 503, {"Retry-After": "1"})
