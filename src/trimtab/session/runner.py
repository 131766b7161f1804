"""Runs the operations of a session under its lock, with retries; summaries in the background."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar, runtime_checkable
from weakref import WeakSet

from trimtab._shared.steps import arun, run
from trimtab.errors import ConfigurationError, CopyError, PrunedError, StoreError
from trimtab.session.core import Core, warn
from trimtab.session.effects import Delete, Effect, Steps, aask, aperform, ask_anyhow, is_async, perform
from trimtab.session.extract import FactJob, fact_job
from trimtab.session.lock import SessionLock, running_future
from trimtab.session.options import as_given, functions_of
from trimtab.session.store_watch import StoreWatch
from trimtab.session.summarize import (
    Conclusion,
    early_job,
    finish_job,
    is_due,
    most_summaries,
    try_job,
)
from trimtab.session.summary import Job
from trimtab.session.working_set import WorkingSet
from trimtab.stores import (
    AppendRequest,
    MemoryStore,
    Retry,
    Store,
    StoreLike,
    open_store,
)
from trimtab.stores.base import missing_methods, require_labels
from trimtab.stores.labels import LABELS
from trimtab.stores.rows import check_session_name

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Writing:
    """A summary in progress in the background."""

    job: Job | FactJob
    loop: asyncio.AbstractEventLoop | None
    """The event loop, if a task writes it; None: a thread does."""
    summaries: int
    """How many may be written in sequence while enough messages wait; the same for facts."""
    done: Future[None] = field(default_factory=running_future)
    task: asyncio.Task[None] | None = None
    """Kept here, because an event loop does not keep it."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@runtime_checkable
class _Volatile(Protocol):
    """A store that says whether its sessions end with the process; one that says nothing keeps them."""

    @property
    def ends_with_process(self) -> bool: ...


def _ends_with_process(store: Store) -> bool:
    return isinstance(store, _Volatile) and store.ends_with_process


def _store_of(given: StoreLike) -> Store:
    """Return the store, or open it by its path or URL."""
    if isinstance(given, Store):
        return given
    if isinstance(given, (str, PathLike)):
        return open_store(given)
    raise ConfigurationError(
        f"store must be a Store, or its place, such as 'chats.db', not {given!r:.80}{missing_methods(given)}",
        argument="store",
    )


class RunnerHolder:
    """An object with a runner, and so with locks and a store."""

    _runner: Runner

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a copy would be useless.

        Raises:
            CopyError: Always, with what to write instead.
        """
        raise CopyError(
            "a session has locks and a store, and cannot be copied or pickled: use session.snapshot(), and"
            " Session.restore(snapshot) in the other place; session.fork() makes a second conversation,"
            " and Session.open(store, id) opens a stored one"
        )


def set_clock(session: RunnerHolder, clock: Callable[[], float], /) -> None:
    """Make a session take its time from a function: a replay uses its recording's times."""
    session._runner.core.clock = clock


class Runner:
    """Runs the operations of one session, one after the other."""

    def __init__(
        self,
        given: Mapping[str, Any],
        *,
        begins: bool,
        store: StoreLike | None,
        id: str | None,
        retry: Retry | None,
        allow_missing: bool,
    ) -> None:
        self.store: Store = MemoryStore() if store is None else _store_of(store)
        if id is None and not _ends_with_process(self.store):
            raise ConfigurationError(
                "a session in a store needs a name to find it again: pass id='…', such as that of the chat",
                argument="id",
            )
        if any(given.get(name) is not None for name in LABELS):
            require_labels(self.store)
        self.id = check_session_name(secrets.token_hex(16) if id is None else id)
        self.retry = Retry(attempts=1) if retry is None else retry
        self.core = Core(self.id, given, begins=begins, allow_missing=allow_missing)
        self._lock = SessionLock(self.id)
        self._watch = StoreWatch(self.id, self.store)
        self._writings: list[Writing] = []
        _living.add(self)

    def run(self, operation: Callable[Concatenate[Core, P], Steps[T]], *args: P.args, **named: P.kwargs) -> T:
        """Run an operation of the session to its end."""
        return self.run_ahead(0, operation, *args, **named)

    async def arun(
        self, operation: Callable[Concatenate[Core, P], Steps[T]], *args: P.args, **named: P.kwargs
    ) -> T:
        """Run an operation of the session to its end; see `run`."""
        return await self.arun_ahead(0, operation, *args, **named)

    def run_ahead(
        self,
        summaries: int,
        operation: Callable[Concatenate[Core, P], Steps[T]],
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run an operation; then begin at most this many summaries in the background."""
        with self._lock:
            done = self.retry.call(
                self._watch.attempts(
                    lambda: run(self._whole(operation(self.core, *args, **named)), self._perform)
                )
            )
            if summaries:  # in the same turn: there may be no other one in this thread
                self._start_background(summaries)
            return done

    async def arun_ahead(
        self,
        summaries: int,
        operation: Callable[Concatenate[Core, P], Steps[T]],
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run an operation, and begin summaries; see `run_ahead`."""
        if running_loop() is None:
            raise ConfigurationError(
                "async methods of a session need an asyncio event loop, and none is running: with trio,"
                " call the method without the a, in a thread (trio.to_thread.run_sync(session.add,"
                " message))"
            )
        async with self._lock:
            done = await self.retry.acall(
                self._watch.attempts(lambda: self._awhole(self._whole(operation(self.core, *args, **named))))
            )
            if summaries:
                await self._astart_background(summaries)
            return done

    def _perform(self, effect: Effect) -> Any:
        with self._watch.request(effect):
            return perform(effect, self.store, self.core.incarnation(), self._lock.question)

    async def _aperform(self, effect: Effect) -> Any:
        with self._watch.request(effect):
            return await aperform(effect, self.store, self.core.incarnation(), self._lock.question)

    async def _awhole(self, steps: Steps[T]) -> T:
        """Run an operation; its writes are awaited even if it is cancelled: they may be stored."""
        return await arun(steps, self._aperform, uncut=(AppendRequest, Delete))

    def describe(self) -> str:
        """Say in words how large the session is, as far as it was read; no content."""
        core = self.core
        known, options = core.working_set or core.last_working_set, core.options
        if options is None:
            return "not read yet"
        tokens = options.budget_tokens if known is None else known.state.budget_tokens
        budget = f"{tokens:,}" if tokens else "not read yet"
        if known is None:
            said = [f"budget {budget}"]
        else:
            said = [f"{known.breakdown.total:,} of {budget} tokens", f"version {known.version}"]
        return ", ".join([*said, f"model {options.model}"] if options.model is not None else said)

    def working_set(self, *, may_block: bool = False) -> WorkingSet:
        """Return the state of the session, read from the store only if that blocks no event loop."""
        core = self.core
        if core.working_set is not None:
            return core.working_set
        if running_loop() is not None:
            if core.last_working_set is not None and self._lock.others:
                return core.last_working_set  # an operation this loop may have to go on with is underway
            if not may_block and not _ends_with_process(self.store):
                raise ConfigurationError(
                    f"session {self.id!r} has to be read from its store, which would block the event loop of"
                    " this thread: `await session.arefresh()` first (or `session.refresh()` if nothing"
                    " else uses the loop, as in a notebook)"
                )
        return self.run(Core.ready)

    def check_summarizer(self, *, sync_in_background: bool = False) -> None:
        """Refuse an async summarizer or fact extractor."""
        core = self.core
        if core.working_set is None and core.last_working_set is None:  # what was left out, its log says
            self.run(Core.ready)
        options = core.in_force
        if options.background and not sync_in_background:
            return
        summarizer, extractor = options.summarizer, options.fact_extractor
        which = None
        if summarizer is not None and is_async(summarizer, "summarize"):
            which = "summarizer"
        elif extractor is not None and is_async(extractor, "extract"):
            which = "fact extractor"
        if which is not None:
            raise ConfigurationError(
                f"the {which} is async: await aadd(...) instead of calling add(...), or pass"
                " background=True; the same applies to other methods, such as asummarize(...)"
            )

    def check_ranker(self) -> None:
        """Refuse an async ranker, if a question needs it."""
        options = self.core.in_force
        if options.recall_ratio and options.ranker is not None and (call := options.rank()).is_async:
            raise call.refusal()

    def fork_target(self, id: str | None, store: StoreLike | None) -> tuple[Store, str]:
        """Return the store and the name of a fork."""
        target = self.store if store is None else _store_of(store)
        name = secrets.token_hex(16) if id is None else check_session_name(id)
        if name == self.id and target is self.store:
            raise ConfigurationError(
                f"session {name!r} cannot be its own fork: pass another id, None for a new one, or another"
                " store"
            )
        return target, name

    def fork(self, store: Store, name: str, *, at: int) -> Runner:
        """Make what runs a fork, whose log was copied up to a version."""
        core, options = self.core, self.core.in_force
        functions = functions_of(options)
        given = {name: functions[name] for name in functions if name not in core.missing}
        return Runner(
            given if at else as_given(options.to_data(), given),  # nothing was copied that knows the rest
            begins=not at,
            store=store,
            id=name,
            retry=self.retry,
            allow_missing=core.allow_missing,
        )

    def _whole(self, steps: Steps[T]) -> Steps[T]:
        """Run an algorithm so that an interruption, such as a cancellation, leaves nothing half done."""
        core = self.core
        known = core.working_set
        try:
            return (yield from steps)
        except PrunedError as error:
            seen = core.working_set or core.last_working_set or known
            if seen is not None and error.oldest is None:  # it was met, and not known beforehand
                yield from core.require_newest(seen.version)
                with suppress(PrunedError):  # the session itself cannot be read
                    error = yield from core.prune_error(f"event {error.name}", name=error.name)
            raise error
        except Exception:
            raise
        except BaseException:
            self.core.working_set = None
            raise

    def begin_in_child(self) -> None:
        """Reset after a fork: the threads and their work are the parent's."""
        if self._lock.in_child():
            self.core.working_set = None
        self._writings = []
        self.core.job = None

    def _next_job(self, *, early: bool) -> Steps[Job | FactJob | None]:
        """Make the next job in the background: what is due is read for facts, or else summarized.

        None where one is underway, or nothing is due; `early`: what will be soon is summarized, too.
        """
        core = self.core
        self._underway()
        options, working_set = core.options, core.working_set
        if options is None or not options.background or core.job is not None or working_set is None:
            return None
        try:
            facts = yield from fact_job(core, working_set)
            if facts is not None:
                return facts
            if early or is_due(core, working_set.state):
                return (yield from early_job(core, working_set))
            return None
        except StoreError:
            core.working_set = None  # what came before it is stored: it is tried again
            return None

    def _begin(self, job: Job | FactJob, loop: asyncio.AbstractEventLoop | None, summaries: int) -> Writing:
        self.core.job = job
        most = most_summaries(self.core, summaries)
        if self.core.in_force.fact_extractor is not None:
            most *= 2  # what a summary takes out of view is read for facts then
        writing = Writing(job, loop, most)
        self._writings.append(writing)
        return writing

    def _end(self, writing: Writing) -> None:
        if self.core.job is writing.job:
            self.core.job = None
        if writing in self._writings:
            self._writings.remove(writing)
            writing.done.set_result(None)

    def _underway(self) -> list[Writing]:
        """List the summaries that are being written; one whose event loop was closed is not."""
        for writing in self._writings.copy():
            if writing.loop is not None and writing.loop.is_closed():
                self._end(writing)
        return self._writings.copy()

    def _start_background(self, summaries: int) -> None:
        job = run(self._next_job(early=True), self._perform)
        if job is None:
            return
        writing = self._begin(job, None, summaries)
        name = f"trimtab-session-{self.id[:16]}"
        thread = threading.Thread(target=self._work, args=(writing,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads; the message is stored by now
            self._end(writing)
            warn(self.id, "no summary in the background", error)

    def _work(self, writing: Writing) -> None:
        """Write a summary in the background and use it; write more while enough messages wait."""
        try:
            with self._lock.question(background=True):
                for _ in range(writing.summaries):
                    conclusion = run(try_job(self.core, writing.job), ask_anyhow)
                    with self._lock:
                        if not run(self._conclude(writing, conclusion), self._perform):
                            return
        finally:
            self._end(writing)

    def _conclude(self, writing: Writing, conclusion: Conclusion) -> Steps[bool]:
        """Apply the result of a summary; True if the next one should be written."""
        core = self.core
        if core.job is not writing.job:
            return False
        done = False
        try:
            done = yield from self._whole(finish_job(core, conclusion))
        except StoreError as error:
            core.working_set = None  # it is read again, and the summary tried again
            warn(self.id, "a summary was put off", error)
        finally:
            core.job = None
        job = (yield from self._next_job(early=False)) if done and writing.summaries > 1 else None
        if job is not None:
            core.job = writing.job = job
        return job is not None

    async def _astart_background(self, summaries: int) -> None:
        job = await self._awhole(self._next_job(early=True))
        if job is not None:
            writing = self._begin(job, asyncio.get_running_loop(), summaries)
            writing.task = asyncio.create_task(self._awork(writing))
            # not at the end of the task: one that is cancelled before it begins has none
            writing.task.add_done_callback(lambda _: self._end(writing))

    async def _awork(self, writing: Writing) -> None:
        with self._lock.question(background=True):
            for _ in range(writing.summaries):
                conclusion = await arun(try_job(self.core, writing.job), aask)
                async with self._lock:
                    if not await self._awhole(self._conclude(writing, conclusion)):
                        return

    def drain(self) -> None:
        """Wait until no summary is being written in the background.

        Raises:
            ConfigurationError: It would wait for the thread it is called in.
        """
        self._lock.refuse_summarizer()
        if self._lock.in_background:
            return
        for writing in self._underway():
            loop = writing.loop
            if loop is not None and (loop is running_loop() or not loop.is_running()):
                raise ConfigurationError(
                    f"session {self.id!r}: a task of an event loop writes a summary, and cannot continue"
                    " while this thread waits for it: await adrain() in that loop"
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


_living: WeakSet[Runner] = WeakSet()


def _after_fork() -> None:
    for runner in list(_living):
        runner.begin_in_child()


# Windows has no fork.
getattr(os, "register_at_fork", lambda **_: None)(after_in_child=_after_fork)
