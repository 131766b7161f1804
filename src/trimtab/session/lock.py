"""One operation of a session at a time, from any thread or event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from trimtab.errors import ConfigurationError, SummaryError


class Place(NamedTuple):
    """Who runs: a thread, and the task in it if it runs an event loop."""

    thread: int
    task: asyncio.Task[Any] | None

    @classmethod
    def here(cls) -> Place:
        """Tell who runs now."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return cls(threading.get_ident(), task)

    def holds(self, other: Place) -> bool:
        """Tell whether the other runs inside this operation: in a hook, or in a loop of a hook."""
        return self.thread == other.thread and self.task in (None, other.task)


@dataclass(eq=False, slots=True)
class Waiter:
    """A waiting caller."""

    place: Place
    blocks: bool
    """Whether its thread is blocked meanwhile."""
    granted: Future[None] = field(default_factory=lambda: running_future())

    @property
    def lost(self) -> bool:
        """True if its event loop was closed."""
        return self.place.task is not None and not self.blocks and self.place.task.get_loop().is_closed()


@dataclass(eq=False, slots=True)
class Asked:
    """A running summarizer, and everything that it calls."""

    turns: SessionLock
    background: bool
    over: bool = False
    refused: ConfigurationError | None = None


# No thread's name: what a summarizer starts (tasks, threads of `asyncio.to_thread`) inherits it.
_asked: ContextVar[tuple[Asked, ...]] = ContextVar("trimtab_asked", default=())


def running_future() -> Future[None]:
    """Make a future that its awaiter cannot cancel."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()  # a running one refuses the `cancel()` of a task that awaits it
    return future


class SessionLock:
    """A reentrant lock, shared by threads and by tasks of any event loop; first come, first served.

    A task is skipped while the thread of its event loop is blocked: it could not run, and its thread might
    wait for an operation that waits for this task.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._clear()

    def _clear(self) -> None:
        # Reentrant: a coroutine that is collected as garbage gives back its turn, and that may be anywhere.
        self._mutex = threading.RLock()
        self._owner: Place | None = None
        self._depth = 0
        self._waiting: list[Waiter] = []
        self._still: set[int] = set()

    def in_child(self) -> bool:
        """Reset after a fork, in the child; tell whether the fork interrupted an operation."""
        owner, depth = self._owner, self._depth
        self._clear()
        here = Place(threading.get_ident(), None)
        if owner is not None and owner.holds(here):  # a hook forked: its operation goes on here too
            self._owner, self._depth = owner, depth
        return self._owner is not owner

    @property
    def others(self) -> bool:
        """True if another is inside an operation."""
        owner = self._owner
        return owner is not None and not owner.holds(Place.here())

    def __enter__(self) -> Self:
        self.refuse_summarizer()
        waiter = self._enter(Place.here(), blocks=True)
        if waiter is not None:
            try:
                waiter.granted.result()
            except BaseException:
                self._withdraw(waiter)
                raise
            finally:
                self._go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    async def __aenter__(self) -> Self:
        self.refuse_summarizer()
        waiter = self._enter(Place.here(), blocks=False)
        if waiter is not None:
            try:
                await asyncio.wrap_future(waiter.granted)
            except BaseException:
                self._withdraw(waiter)
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _enter(self, place: Place, *, blocks: bool) -> Waiter | None:
        # Held for some steps of Python and never over an await: so threads and tasks can share it.
        with self._mutex:
            owner = self._owner
            if owner is None or owner.holds(place):
                self._owner = owner or place
                self._depth += 1
                return None
            if blocks:
                self._refuse_standing_still(place, "wait for")
                self._still.add(place.thread)
            waiter = Waiter(place, blocks)
            self._waiting.append(waiter)
            return waiter

    def _refuse_standing_still(self, place: Place, verb: str) -> None:
        if self._owner is not None and self._owner.thread == place.thread:
            raise ConfigurationError(
                f"session {self._session!r} is in the middle of an operation of this event loop or thread,"
                f" and cannot {verb} it here: await the asyncio method (aadd, amessages, adrain …),"
                " outside hooks"
            )

    def _leave(self) -> None:
        with self._mutex:
            self._depth = max(self._depth - 1, 0)
            if not self._depth:
                self._owner = None
                self._hand_on()

    def _withdraw(self, waiter: Waiter) -> None:
        with self._mutex:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # it was its turn just then: the turn is handed on, or nobody would ever have one again
                self._leave()

    def _go_on(self) -> None:
        with self._mutex:
            self._still.discard(threading.get_ident())
            self._hand_on()

    def _hand_on(self) -> None:
        if self._owner is not None:
            return
        self._waiting = [waiter for waiter in self._waiting if not waiter.lost]
        for waiter in self._waiting:
            if waiter.blocks or waiter.place.thread not in self._still:
                self._waiting.remove(waiter)
                self._owner, self._depth = waiter.place, 1
                waiter.granted.set_result(None)
                return

    @contextmanager
    def standing_still(self) -> Generator[None, None, None]:
        """Let the thread wait for something that may need a turn."""
        with self._mutex:
            self._refuse_standing_still(Place.here(), "wait beside")
            self._still.add(threading.get_ident())
        try:
            yield
        finally:
            self._go_on()

    @contextmanager
    def question(self, *, background: bool = False) -> Generator[None, None, None]:
        """Mark what runs inside as the summarizer.

        Raises:
            SummaryError: With the reason, if it failed since it called the session.
        """
        asked = Asked(self, background)
        before = _asked.set((*_asked.get(), asked))
        try:
            yield
        except SummaryError as error:
            if asked.refused is None:
                raise
            raise SummaryError(f"{error}: {asked.refused}") from error
        finally:
            asked.over = True
            with suppress(ValueError):  # collected as garbage, in the middle of something else
                _asked.reset(before)

    @property
    def in_background(self) -> bool:
        """True in code that writes a summary in the background, and in everything that it calls."""
        return any(one.turns is self and one.background and not one.over for one in _asked.get())

    def refuse_summarizer(self) -> None:
        """Refuse a call by the summarizer that the session waits for."""
        for asked in _asked.get():
            if asked.turns is self and not asked.background and not asked.over:
                asked.refused = ConfigurationError(
                    f"the summarizer of session {self._session!r} called the session, which waits for the"
                    " summarizer: use the content of the request, or another object, Session.open(store,"
                    " id, …)"
                )
                raise asked.refused
