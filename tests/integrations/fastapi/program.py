"""A chat service: each conversation is a session in a store."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any, TypeAlias

from fastapi import Body, Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel, Field, StringConstraints

from trimtab import BudgetExceededError, Session, errors
from trimtab.stores import Event, KeyRing, Retry, encrypted, open_store
from trimtab.summaries import AsyncOpenAISummarizer

client = AsyncOpenAI()
summarizer = AsyncOpenAISummarizer("gpt-4o-mini", client=client)
store = open_store(os.environ["STORE_URL"])
if keys := os.environ.get("STORE_KEYS"):
    store = encrypted(store, KeyRing.read(keys))
retry = Retry()
running: set[asyncio.Task[None]] = set()
"""Answers that are being stored; an event loop keeps no task."""


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
    """Refuse to start with a wrong URL or password; end once all answers are stored."""
    with suppress(errors.StoreUnavailableError):  # it may be down; each request says so
        await store.asessions(limit=1)
    yield
    await asyncio.gather(*running, return_exceptions=True)
    await store.aclose()


app = FastAPI(lifespan=lifespan)


async def login(user: Annotated[str, Header(alias="X-User", min_length=1, max_length=64)]) -> str:
    """Say who asks; put your own login in the place of the header."""
    return user


User = Annotated[str, Depends(login)]
Name = Annotated[str, StringConstraints(pattern=r"^[\w-]{1,64}$")]


async def new_or_known(name: Name, user: User) -> Session:
    """Give the session of a user's conversation; the first message begins it."""
    return Session(
        2_000,
        model="gpt-4o",
        system="Be brief.",
        summarizer=summarizer,
        background=True,
        owner=user,
        ttl=90 * 86_400,
        store=store,
        id=f"{user}/{name}",
    )


async def known(name: Name, user: User) -> Session:
    """Give the session of a conversation that there is: otherwise its first use is a 404."""
    return Session.open(store, f"{user}/{name}", summarizer=summarizer)


Chat = Annotated[Session, Depends(new_or_known)]
KnownChat = Annotated[Session, Depends(known)]


def line(**data: Any) -> str:
    """Write a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


def shown(event: Event) -> dict[str, Any]:
    """Say what the browser gets of a message."""
    return {**event.message, "id": event.id, "version": event.version, "cut": "/cut/" in event.id}


class Question(BaseModel):
    """What the browser sends: the same id again if it asks again."""

    id: Name
    text: str
    attempt: Annotated[int, Field(ge=1, le=1_000)] = 1
    """One more to have it answered anew."""

    def is_answer(self, event: Event) -> bool:
        """Tell whether a message answers this question."""
        return event.id.startswith(f"{self.id}/")

    def answer_in(self, events: list[Event], end: str = "whole") -> Event | None:
        """Find the whole answer of this attempt, or of a later one; a part gives way to any."""
        least = self.attempt if end == "whole" else 1
        for event in filter(self.is_answer, reversed(events)):
            _, attempt, its_end, _ = event.id.split("/")
            if its_end == "whole" and int(attempt) >= least:
                return event
        return None

    def answer_id(self, end: str) -> str:
        """Name an answer, never as one before: the log keeps what is taken back."""
        return f"{self.id}/{self.attempt}/{end}/{secrets.token_hex(8)}"


async def said(chat: Session, after: int = 0) -> list[Event]:
    """List messages behind a version of the log, without those that were taken back."""
    found: list[Event] = []
    async for event in chat.ahistory(after=after, kinds=("message", "popped")):
        if event.kind == "message":
            found.append(event)
        elif found:  # `apop` takes back the newest
            found.pop()
    return found


def went_on(later: list[Event]) -> bool:
    """Tell whether a question that came later was answered; an answer that came late stands on none."""
    answers = (event.id.partition("/")[0] for event in later if event.message["role"] == "assistant")
    return not {event.id for event in later if event.message["role"] == "user"}.isdisjoint(answers)


async def keep(chat: Session, asked: Event, question: Question, text: str, end: str) -> Event:
    """Store an answer in the place of one before, unless another request has answered meanwhile."""
    later = await said(chat, asked.version)
    if (event := question.answer_in(later, end)) is not None:
        return event
    while later and question.is_answer(later[-1]):
        await chat.apop()
        later.pop()
    return await chat.aadd({"role": "assistant", "content": text}, id=question.answer_id(end))


STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
Lines: TypeAlias = asyncio.Queue[str | None]
Reading: TypeAlias = asyncio.Task[tuple[str, str]]


async def read_model(view: list[Any], lines: Lines) -> tuple[str, str]:
    """Ask the model; return what it said, and whether that is whole."""
    text = ""
    try:
        stream = await client.chat.completions.create(model="gpt-4o", messages=view, stream=True)
        async with stream:
            async for chunk in stream:
                for choice in chunk.choices:
                    if piece := choice.delta.content:
                        text += piece
                        lines.put_nowait(line(text=piece))
    except asyncio.CancelledError:
        return text, "cut"
    except Exception as error:  # a stream that breaks raises what the HTTP client raises
        logging.warning("the model failed", exc_info=error)
        return text, "cut"
    return text, "whole"


async def answer(chat: Session, asked: Event, question: Question, reading: Reading, lines: Lines) -> None:
    """Store what the model says, once it ends or is stopped."""
    try:
        text, end = await reading
        if text:
            event = await retry.acall(lambda: keep(chat, asked, question, text, end))
            lines.put_nowait(line(message=shown(event)))
        else:
            lines.put_nowait(line(error="the model said nothing: ask again, with the same id"))
    except Exception as error:
        logging.warning("an answer was not stored", exc_info=error)
        lines.put_nowait(line(error=status_of(error)[1]))
    finally:
        lines.put_nowait(None)
        await chat.aclose()  # waits for a summary


async def stream(chat: Session, asked: Event, question: Question, view: list[Any]) -> AsyncIterator[str]:
    """Send an answer in pieces, and last as it was stored."""
    lines: Lines = asyncio.Queue()
    reading = asyncio.create_task(read_model(view, lines))
    storing = asyncio.create_task(answer(chat, asked, question, reading, lines))
    running.add(storing)
    storing.add_done_callback(running.discard)
    try:
        while piece := await lines.get():
            yield piece
    finally:
        reading.cancel()  # the browser went away; without effect if the model has ended


@app.post("/chats/{name}")
async def ask(question: Question, chat: Chat) -> StreamingResponse:
    """Answer a question, or give the answer that it had."""
    message = {"role": "user", "content": question.text}
    asked = await retry.acall(lambda: chat.aadd(message, id=question.id))
    later = await said(chat, asked.version)
    if (event := question.answer_in(later)) is not None:
        return StreamingResponse([line(message=shown(event))], headers=STREAM)
    if went_on(later):
        raise HTTPException(409, "the conversation went on: branch it")
    view = await (chat.aview_at(asked.version) if later else chat.amessages())
    return StreamingResponse(stream(chat, asked, question, view), headers=STREAM)


class Edit(Question):
    """A question in the place of an earlier one."""

    chat: Name
    """Of the browser's choice, for the new conversation."""
    version: int
    """Of the message that it replaces."""


@app.post("/chats/{name}/branch")
async def branch(edit: Edit, old: KnownChat, user: User) -> StreamingResponse:
    """Go on in a new conversation, which has what was said before a message."""
    chat = await new_or_known(edit.chat, user)
    try:
        await chat.aview_of(edit.id)  # asked before
    except errors.UnknownNameError:
        chat = await old.afork(edit.version - 1, id=chat.id)
        try:
            return await ask(edit, chat)
        except (errors.ConfigurationError, BudgetExceededError):  # asked again it is refused again
            await store.adelete(chat.id)
            raise
    return await ask(edit, chat)


@app.get("/chats")
async def list_chats(user: User, after: str | None = None) -> dict[str, Any]:
    """List a user's conversations, 50 at a time."""
    page = await store.asessions(owner=user, limit=50, after=after)
    chats = [{**entry.metadata, "name": entry.rpartition("/")[2], "used": entry.used} for entry in page]
    return {"chats": chats, "next": page.next}


@app.get("/chats/{name}")
async def read(chat: KnownChat, before: int | None = None) -> list[dict[str, Any]]:
    """List what was said in a conversation: the newest 200 messages, or those before a version."""
    events = [event for event in await said(chat) if before is None or event.version < before]
    return [shown(event) for event in events[-200:]]


@app.patch("/chats/{name}", status_code=204)
async def rename(chat: KnownChat, title: Annotated[str, Body(embed=True, max_length=200)]) -> None:
    """Give a conversation a title."""
    await retry.acall(lambda: chat.alabel(metadata={"title": title}))


@app.delete("/chats/{name}")
async def delete(name: Name, user: User) -> dict[str, Any]:
    """Delete a conversation."""
    return (await store.adelete(f"{user}/{name}")).to_dict()


@app.get("/me/export")
async def export(user: User, after: str | None = None) -> StreamingResponse:
    """Send everything that is stored of a user, as lines of JSON, and last their number."""
    lines = store.aexport(owner=user, after=after)
    first = await anext(lines, None)  # before the status is sent: the store may be down
    return StreamingResponse(counted(first, lines), media_type="application/x-ndjson")


async def counted(first: str | None, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    """End lines with one that says how many there were."""
    count = 0
    if first is not None:
        yield f"{first}\n"
        count = 1
        async for one in rest:
            yield f"{one}\n"
            count += 1
    yield f"{json.dumps({'lines': count})}\n"


@app.delete("/me")
async def delete_all(user: User) -> dict[str, Any]:
    """Delete everything that is stored of a user."""
    return (await store.adelete(owner=user)).to_dict()


def status_of(error: Exception) -> tuple[int, str]:
    """Say what the browser gets for an error."""
    match error:
        case errors.UnknownNameError():
            return 404, "there is no such conversation"
        case errors.SessionDeletedError() | errors.SessionExpiredError():
            return 410, "the conversation was deleted, or has expired"
        case BudgetExceededError():
            return 413, "the message is too long"
        case errors.StoreUnavailableError() | errors.VersionConflictError():
            return 503, "ask again, with the same id"
        case errors.ConfigurationError():
            return 400, "the id has another text, or there is no such version or page"
        case _:
            return 500, "the server has an error"


@app.exception_handler(errors.ContextError)
async def refuse(_: Request, error: errors.ContextError) -> JSONResponse:
    """Answer an error, and note it."""
    logging.warning("refused", exc_info=error)
    status, words = status_of(error)
    return JSONResponse({"detail": words}, status, {"Retry-After": "1"} if status == 503 else None)
