"""The engine for one machine: worker processes, each with its own tokenizer, over pieces in their order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from trimtab.batch.files import Form, Unit, do_unit, write_part
from trimtab.batch.manifest import Done
from trimtab.batch.task import BatchTask
from trimtab.errors import BatchError

AHEAD = 3
"""Pieces for each worker that are read ahead of the oldest one that is not done."""
MOST_DEATHS = 3
"""Workers that may die while no piece gets done."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A piece of work, the place of its result, and how that is written; plain data for another process."""

    unit: Unit
    part: Path
    form: Form


def carry_out(task: BatchTask, asked: Assignment, /) -> Done:
    """Do a piece of work and put its result in its place; doing it twice gives the same bytes."""
    table, text = do_unit(task, asked.unit, asked.form)
    write_part(asked.part, table, text)
    errors = [error["type"] for error in table.column(f"{task.prefix}error").drop_null().to_pylist()]
    return Done(unit=asked.unit.index, rows=table.num_rows, errors=dict(sorted(Counter(errors).items())))


Engine = Callable[[BatchTask, Iterable[Assignment]], Iterator[Done]]
"""Carries out pieces of work, and gives what became of each, in their order."""


class _Worker:
    """What a worker process holds."""

    task: BatchTask


def _begin(task: BatchTask) -> None:
    _Worker.task = task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which stops its workers
    task.prepare()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """End when the run does, however that ended: nobody else would tell."""
    wait([sentinel])
    os._exit(1)


def _do(asked: Assignment) -> Done:
    return carry_out(_Worker.task, asked)


class LocalEngine:
    """Worker processes on this machine; one that is killed is replaced, and what it did is done again."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, task: BatchTask, work: Iterable[Assignment], /) -> Iterator[Done]:
        """Carry out all of it; no more than a few pieces are on their way at one time.

        Raises:
            BatchError: Workers die and nothing gets done.
        """
        waiting: deque[tuple[Assignment, Future[Done]]] = deque()
        try:
            for asked in work:
                waiting.append((asked, self._submit(task, asked)))
                if len(waiting) >= AHEAD * self._workers:
                    yield self._first(task, waiting)
            while waiting:
                yield self._first(task, waiting)
        finally:
            self._stop()

    def _submit(self, task: BatchTask, asked: Assignment) -> Future[Done]:
        for _ in range(MOST_DEATHS):
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(
                    self._workers, mp_context=context, initializer=_begin, initargs=(task,)
                )
            try:
                return self._pool.submit(_do, asked)
            except BrokenProcessPool:
                self._stop()
        raise BatchError("worker processes end as soon as they begin: is there memory enough?")

    def _first(self, task: BatchTask, waiting: deque[tuple[Assignment, Future[Done]]]) -> Done:
        """Wait for the oldest piece; where a worker died, all that was not done is given out again."""
        for _ in range(MOST_DEATHS):
            try:
                done = waiting[0][1].result()
            except BrokenProcessPool:
                self._stop()
                held = list(waiting)
                waiting.clear()
                waiting.extend((asked, self._again(task, asked, future)) for asked, future in held)
                continue
            waiting.popleft()
            return done
        unit = waiting[0][0].unit
        raise BatchError(
            f"workers died {MOST_DEATHS} times at rows from {unit.first_row:,} on of {unit.path}: a row needs"
            " more memory than there is, or kills what reads it; give fewer workers, or smaller row groups"
        )

    def _again(self, task: BatchTask, asked: Assignment, future: Future[Done]) -> Future[Done]:
        is_done = future.done() and not future.cancelled() and future.exception() is None
        return future if is_done else self._submit(task, asked)

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
