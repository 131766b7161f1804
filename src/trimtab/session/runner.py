"""What runs a session's algorithms: turns and a retry in both colours, and summaries in the background."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from weakref import WeakSet

from trimtab.errors import ConfigurationError, StoreError, SummaryError
from trimtab.session.core import Core
from trimtab.session.effects import Steps, arun_steps, run_asking, run_steps
from trimtab.session.lock import SessionLock, running_future
from trimtab.session.summarize import early_job, finish, is_due, most_summaries, try_summary
from trimtab.session.summary import Job, Written
from trimtab.stores import MemoryStore, Retry, Store
from trimtab.stores.rows import check_session_name
from trimtab.stores.secrets import show

__all__ = ["Driven"]

T = TypeVar("T")

_log = logging.getLogger("trimtab.session")


@dataclass(eq=False, slots=True)
class Writing:
    """A summary that is being written in the background."""

    job: Job
    loop: asyncio.AbstractEventLoop | None
    """Where a task writes it; None: a thread does."""
    summaries: int
    """How many may be written, one after the other, while enough goes on waiting."""
    done: Future[None] = field(default_factory=running_future)
    task: asyncio.Task[None] | None = None
    """Held here, since an event loop does not."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Driven:
    """Runs the operations of one session, one after the other."""

    def _set_up(
        self,
        given: Mapping[str, Any],
        *,
        begins: bool,
        store: Store | None,
        id: str | None,
        retry: Retry | None,
        allow_missing: bool,
    ) -> None:
        self._id = check_session_name(secrets.token_hex(16) if id is None else id)
        self._store: Store = MemoryStore() if store is None else store
        if isinstance(store, str):
            raise ConfigurationError(f"store is a Store: write store=open_store({show(store)})")
        if not isinstance(self._store, Store):
            raise ConfigurationError(f"store is a Store, not {self._store!r:.80}")
        self._retry = Retry(attempts=1) if retry is None else retry
        self._core = Core(self._id, given, begins=begins, allow_missing=allow_missing)
        self._lock = SessionLock(self._id)
        self._writings: list[Writing] = []
        _living.add(self)

    def __repr__(self) -> str:
        """Name the session, its store and its budget; tokens in view as far as it was read. No content."""
        core = self._core
        working_set = core.working_set or core.last_working_set
        shown = []
        if core.options is not None:
            tokens = core.options.budget_tokens if working_set is None else working_set.state.budget_tokens
            budget = f"{tokens:,}" if tokens else "not read yet"
            shown.append(
                f"budget {budget}"
                if working_set is None
                else f"{working_set.breakdown.total:,} of {budget} tokens"
            )
            shown += [f"version {working_set.version}"] if working_set is not None else []
            shown += [f"model {core.options.model}"] if core.options.model is not None else []
        return f"<Session {self._id!r} in {self._store!r}: {', '.join(shown) or 'not read yet'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _run(self, make: Callable[[], Steps[T]], *, then_background: int = 0) -> T:
        """Run an algorithm; then begin so many summaries in the background, at most."""
        with self._lock:
            done = self._retry.call(
                lambda: run_steps(
                    self._whole(make()),
                    self._store,
                    incarnation=self._core.incarnation,
                    asking=self._lock.asking,
                )
            )
            if then_background:  # in the same turn: there may be no other one in this thread
                self._start_background(then_background)
            return done

    async def _arun(self, make: Callable[[], Steps[T]], *, then_background: int = 0) -> T:
        async with self._lock:
            done = await self._retry.acall(
                lambda: arun_steps(
                    self._whole(make()),
                    self._store,
                    incarnation=self._core.incarnation,
                    asking=self._lock.asking,
                )
            )
            if then_background:
                await self._astart_background(then_background)
            return done

    def _whole(self, steps: Steps[T]) -> Steps[T]:
        """Have an algorithm that is cut off in the middle, as by a cancellation, leave nothing half done."""
        try:
            return (yield from steps)
        except Exception:
            raise
        except BaseException:
            self._core.working_set = None
            raise

    def _in_child(self) -> None:
        """Begin anew after a fork: the threads, and what they were at, are the parent's."""
        if self._lock.in_child():
            self._core.working_set = None
        self._writings = []
        self._core.job = None

    def _next_job(self, *, early: bool) -> Steps[Job | None]:
        """Make the job of a background summary if one is due, or soon will be, and none is being written."""
        core = self._core
        self._underway()
        options, working_set = core.options, core.working_set
        if options is None or not options.background or core.job is not None or working_set is None:
            return None
        try:
            if early or is_due(core, working_set.state):
                return (yield from early_job(core, working_set))
            return None
        except StoreError:
            core.working_set = None  # what came before it is stored: it is tried again
            return None

    def _begun(self, job: Job, loop: asyncio.AbstractEventLoop | None, summaries: int) -> Writing:
        self._core.job = job
        writing = Writing(job, loop, most_summaries(self._core, summaries))
        self._writings.append(writing)
        return writing

    def _ended(self, writing: Writing) -> None:
        if self._core.job is writing.job:
            self._core.job = None
        if writing in self._writings:
            self._writings.remove(writing)
            writing.done.set_result(None)

    def _underway(self) -> list[Writing]:
        """List the summaries that are being written; one whose event loop was closed is not."""
        for writing in self._writings.copy():
            if writing.loop is not None and writing.loop.is_closed():
                self._ended(writing)
        return self._writings.copy()

    def _start_background(self, summaries: int) -> None:
        job = run_steps(self._next_job(early=True), self._store, incarnation=self._core.incarnation)
        if job is None:
            return
        writing = self._begun(job, None, summaries)
        name = f"trimtab-session-{self._id[:16]}"
        thread = threading.Thread(target=self._work, args=(writing,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads; the message is stored by now
            self._ended(writing)
            _log.warning("session %r: no summary in the background: %s", self._id, error)

    def _work(self, writing: Writing) -> None:
        """Write a summary beside the conversation and put it in force; more where enough goes on waiting."""
        try:
            with self._lock.asking(background=True):
                for _ in range(writing.summaries):
                    written = run_asking(try_summary(self._core, writing.job))
                    with self._lock:
                        goes_on = run_steps(
                            self._concluding(writing, written),
                            self._store,
                            incarnation=self._core.incarnation,
                        )
                        if not goes_on:
                            return
        finally:
            self._ended(writing)

    def _concluding(self, writing: Writing, written: Written | SummaryError) -> Steps[bool]:
        """Carry out what came of a summary; True if the next one is to be written."""
        core = self._core
        if core.job is not writing.job:
            return False
        done = False
        try:
            done = yield from self._whole(finish(core, writing.job, written))
        except StoreError as error:
            core.working_set = None  # it is read again, and the summary tried again
            _log.warning("session %r: a summary was put off: %s", self._id, error)
        finally:
            core.job = None
        job = (yield from self._next_job(early=False)) if done and writing.summaries > 1 else None
        if job is not None:
            core.job = writing.job = job
        return job is not None

    async def _astart_background(self, summaries: int) -> None:
        job = await arun_steps(self._next_job(early=True), self._store, incarnation=self._core.incarnation)
        if job is not None:
            writing = self._begun(job, asyncio.get_running_loop(), summaries)
            writing.task = asyncio.create_task(self._awork(writing))
            # not at the end of the task: one that is cancelled before it begins has none
            writing.task.add_done_callback(lambda _: self._ended(writing))

    async def _awork(self, writing: Writing) -> None:
        with self._lock.asking(background=True):
            for _ in range(writing.summaries):
                written = await arun_steps(
                    try_summary(self._core, writing.job), self._store, incarnation=self._core.incarnation
                )
                async with self._lock:
                    goes_on = await arun_steps(
                        self._concluding(writing, written), self._store, incarnation=self._core.incarnation
                    )
                    if not goes_on:
                        return

    def drain(self) -> None:
        """Wait until no summary is being written in the background.

        Whether by a thread, after `add`, or by a task, after `aadd`. What writes one, and the hooks it
        calls, do not wait for themselves.

        Raises:
            ConfigurationError: It would wait for the thread it is called in: in a hook, or for a task of
                the same event loop. Await `adrain` there.
        """
        self._lock.refuse_summarizer()
        if self._lock.in_background:
            return
        for writing in self._underway():
            loop = writing.loop
            if loop is not None and (loop is running_loop() or not loop.is_running()):
                raise ConfigurationError(
                    f"session {self._id!r}: a task of an event loop writes a summary, and cannot while this"
                    " thread waits for it: await adrain() in that loop"
                )
            with self._lock.standing_still():
                writing.done.result()

    async def adrain(self) -> None:
        """Wait until no summary is being written in the background; see `drain`."""
        self._lock.refuse_summarizer()
        if self._lock.in_background:
            return
        for writing in self._underway():
            await asyncio.wrap_future(writing.done)

    def close(self) -> None:
        """Wait for a summary in the background.

        The store stays open: others may use it.
        """
        self.drain()

    async def aclose(self) -> None:
        """Wait for a summary in the background; see `close`."""
        await self.adrain()


_living: WeakSet[Driven] = WeakSet()


def _after_fork() -> None:
    for driven in list(_living):
        driven._in_child()


# Windows has no fork.
getattr(os, "register_at_fork", lambda **_: None)(after_in_child=_after_fork)
