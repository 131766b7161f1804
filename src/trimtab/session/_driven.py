"""What runs a session's algorithms: a lock and a retry for each colour, and summaries in the background."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar, cast

from trimtab.errors import ConfigurationError, StoreError, SummaryError
from trimtab.session._core import Core
from trimtab.session._covering import finish
from trimtab.session._effects import Steps, arun_steps, run_asking, run_steps
from trimtab.session._jobs import early_job
from trimtab.session._options import Options
from trimtab.session._sizer import Sizer
from trimtab.session._summarizing import Job, write_summary
from trimtab.stores import MemoryStore, Retry, Store
from trimtab.stores._rows import check_session_name

__all__ = ["Driven"]

T = TypeVar("T")


class Driven:
    """Runs the operations of one session, one after the other."""

    def _set_up(
        self,
        options: Options | None,
        functions: Mapping[str, Any],
        *,
        store: Store | None,
        id: str | None,
        retry: Retry | None,
        allow_missing: bool,
    ) -> None:
        self._id = check_session_name(secrets.token_hex(16) if id is None else id)
        self._store: Store = MemoryStore() if store is None else store
        if isinstance(store, str):
            raise ConfigurationError(f"store is a Store: write store=open_store({store!r:.80})")
        if not isinstance(self._store, Store):
            raise ConfigurationError(f"store is a Store, not {self._store!r:.80}")
        self._retry = Retry(attempts=1) if retry is None else retry
        self._core = Core(self._id, options, functions, allow_missing=allow_missing)
        self._lock = threading.RLock()
        self._alock = asyncio.Lock()
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        """Name the session; no content."""
        return f"<Session {self._id!r} in {type(self._store).__name__}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _run(self, make: Callable[[], Steps[T]]) -> T:
        with self._lock:
            return self._retry.call(lambda: run_steps(make(), self._store))

    async def _arun(self, make: Callable[[], Steps[T]]) -> T:
        async with self._alock:
            return await self._retry.acall(lambda: arun_steps(make(), self._store))

    def _start_background(self) -> None:
        with self._lock:
            options = self._core.options
            if options is None or not options.background or self._core.job is not None:
                return
            scene = self._core.scene
            try:
                job = None if scene is None else run_steps(early_job(self._core, scene), self._store)
            except StoreError:
                self._core.scene = job = None  # what came before it is stored: it is tried again
            if job is None:
                return
            self._core.job = job
            self._thread = threading.Thread(
                target=self._work, args=(job,), name=f"trimtab-session-{self._id[:16]}", daemon=True
            )
            self._thread.start()

    def _work(self, job: Job) -> None:
        """Write a summary beside the conversation and put it in force."""
        core = self._core
        try:
            sizer = Sizer(cast("Options", core.options))
            try:
                written: Any = run_asking(write_summary(job, sizer))
            except SummaryError as error:
                written = error
            with self._lock:
                if core.job is job:
                    run_steps(finish(core, job, written), self._store)
        except StoreError:
            core.scene = None  # it is read again, and the summary tried again
        finally:
            with self._lock:
                if core.job is job:
                    core.job = None

    async def _astart_background(self) -> None:
        async with self._alock:
            options = self._core.options
            if options is None or not options.background or self._core.job is not None:
                return
            scene = self._core.scene
            try:
                job = None if scene is None else await arun_steps(early_job(self._core, scene), self._store)
            except StoreError:
                self._core.scene = job = None
            if job is not None:
                self._core.job = job
                self._task = asyncio.create_task(self._awork(job))

    async def _awork(self, job: Job) -> None:
        core = self._core
        try:
            sizer = Sizer(cast("Options", core.options))
            try:
                written: Any = await arun_steps(write_summary(job, sizer), self._store)
            except SummaryError as error:
                written = error
            async with self._alock:
                if core.job is job:
                    await arun_steps(finish(core, job, written), self._store)
        except StoreError:
            core.scene = None
        finally:
            if core.job is job:
                core.job = None

    def drain(self) -> None:
        """Wait until no summary is being written in the background."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    async def adrain(self) -> None:
        """Wait until no summary is being written in the background."""
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    def close(self) -> None:
        """Wait for a summary in the background.

        The store stays open: others may use it.
        """
        self.drain()

    async def aclose(self) -> None:
        """Wait for a summary in the background; see `close`."""
        await self.adrain()
