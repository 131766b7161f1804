"""A process that talks to a session with a fact extractor, and dies at one write: for `test_facts.py`."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tests.builders import user, words
from tests.stores.writer import open_place
from trimtab import Session
from trimtab.stores import AppendRequest, Store
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter

BUDGET = 120


@dataclass(frozen=True, slots=True)
class Death:
    """At which write a process dies."""

    kind: str
    """Of the last event of the write: a message, a cut, facts, or that there are none."""
    is_stored: bool
    """Whether the store has done it by then, and only the answer is lost."""
    skips: int
    """Writes of that kind before it."""
    is_async: bool


def extract(request: FactRequest) -> list[Fact]:
    """Say of each message what its second word is."""
    return [
        Fact(text=f"noted {message['content'].split()[1]}", sources=[id])
        for message, id in zip(request.messages, request.ids, strict=True)
    ]


def failing(request: FactRequest) -> list[Fact]:
    """Fail."""
    raise ConnectionError("the model is away")


def opened(store: Any, id: str = "facts", extractor: Any = extract) -> Session:
    """Open the session."""
    return Session(
        BUDGET, store=store, id=id, fact_extractor=extractor, max_fact_tokens=40, counter=WordCounter()
    )


class _Mortal:
    """A store at one of whose writes the process is killed."""

    def __init__(self, inner: Store, death: Death) -> None:
        self._inner, self._death, self._skips = inner, death, death.skips

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the store does it."""
        return getattr(self._inner, name)

    def append(self, request: AppendRequest, /) -> Any:
        """Die before or behind it, if it is the one."""
        dies = self._is_last(request)
        self._die(dies and not self._death.is_stored)
        answer = self._inner.append(request)
        self._die(dies)
        return answer

    async def aappend(self, request: AppendRequest, /) -> Any:
        """Do the same, awaited."""
        dies = self._is_last(request)
        self._die(dies and not self._death.is_stored)
        answer = await self._inner.aappend(request)
        self._die(dies)
        return answer

    def _is_last(self, request: AppendRequest) -> bool:
        if request.events[-1].kind != self._death.kind:
            return False
        self._skips -= 1
        return self._skips < 0

    def _die(self, now: bool) -> None:
        if now:
            os.kill(os.getpid(), signal.SIGKILL)


def talk(out: Connection, url: str, session: str, death: Death, start: int) -> None:
    """Add message after message, from one on, until killed; says the number of each that was stored."""
    extractor = failing if death.kind == "failed" else extract
    store: Any = _Mortal(open_place(url), death)
    one = opened(store, session, extractor)

    async def add_awaited() -> None:
        for at in range(start, start + 1_000):
            await one.aadd(message(at), id=f"m{at}")
            out.send(at)

    if death.is_async:
        asyncio.run(add_awaited())
    for at in range(start, start + 1_000):
        one.add(message(at), id=f"m{at}")
        out.send(at)


def message(at: int) -> dict[str, Any]:
    """Write one message of ten words, the second of which is its own."""
    return user(f"about thing{at} {words(8)}")
