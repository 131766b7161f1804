"""Worker processes that do pieces of work, each begun anew (spawn); results come in the order of these."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NoReturn, TypeVar

from trimtab.errors import ContextError

A = TypeVar("A")
R = TypeVar("R")

AHEAD = 3
"""Pieces for each worker that are read ahead of the oldest one that is not done."""
LEAVE_SECONDS = 2.0
"""Time in which a worker leaves its piece, or hands it over, where the run wants no more; then it ends."""
MOST_DEATHS = 3
"""Workers that may die while no piece gets done."""


class WorkersLostError(Exception):
    """Workers die and nothing gets done."""

    def __init__(self, piece: Any = None) -> None:
        super().__init__("worker processes end before anything is done")
        self.piece = piece
        """The oldest piece that none of them did; None where they end as soon as they begin."""


class _CutOff(BaseException):
    """The run wants no more."""


class _Process:
    """What a worker process holds."""

    call: Callable[[Any], Any] | None = None
    is_busy = False
    """Whether it does a piece, and not hand one over: half of one would be waited for for ever."""
    is_over = False
    """Whether the run wants no more."""


def _begin(stop: Connection, make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, _leave_piece)  # Ctrl-C is for the run, which stops its workers
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel, stop), daemon=True).start()
    try:
        _Process.call = make(*arguments)
    except ContextError as error:  # for whoever asked: the end of a process says nothing
        _Process.call = partial(_refuse, error)


@contextmanager
def _hold_interrupts() -> Generator[None]:
    """Keep Ctrl-C back until processes are started; these begin with it held and let it come when they can.

    One that met it while it imported, or was left without what it begins with, would end with a traceback of
    its own.
    """
    # A mask is inherited, and is that of one thread: another would take the signal, and tell the main one.
    before = None if sys.platform == "win32" else signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    came: list[int] = []
    is_told = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT)
    handler = signal.signal(signal.SIGINT, lambda number, frame: came.append(number)) if is_told else None
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        if sys.platform != "win32" and before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _end_with(parent: int, stop: Connection) -> None:
    """End when the run has ended, however that was, or wants no more: nobody else would tell."""
    if parent not in wait([parent, stop]) and _Process.call is not None:
        _Process.is_over = True
        interrupt_main()
        wait([parent], timeout=LEAVE_SECONDS)
    os._exit(1)


def _leave_piece(signal: int, frame: object) -> None:
    if _Process.is_over and _Process.is_busy:
        raise _CutOff


def _refuse(error: ContextError, piece: object, /) -> NoReturn:
    raise error


def _call(piece: Any) -> Any:
    assert _Process.call is not None
    if _Process.is_over:
        raise _CutOff
    _Process.is_busy = True
    try:
        return _Process.call(piece)
    finally:
        _Process.is_busy = False


class Workers(Generic[A, R]):
    """Processes that do pieces of work; one that is killed is replaced, and what it did is done again.

    Args:
        count: How many there are.
        make: Called once in each, with `arguments`; gives the function of a piece. All of it is pickled.
        arguments: What it is called with.
    """

    def __init__(self, count: int, make: Callable[..., Callable[[A], R]], *arguments: Any) -> None:
        self._count = count
        self._make = make
        self._arguments = arguments
        self._pool: ProcessPoolExecutor | None = None
        self._life: Connection | None = None
        """Where this is closed, workers leave the piece they are at."""

    def __call__(self, work: Iterable[A], /) -> Iterator[R]:
        """Do all of it; no more than a few pieces are on their way at one time.

        Where that is broken off, by an error or by Ctrl-C, or as nobody asks on, no piece is waited for.

        Raises:
            WorkersLostError: Workers die and nothing gets done.
            ContextError: What `make` raised in a worker, or a piece.
        """
        waiting: deque[tuple[A, Future[R]]] = deque()
        try:
            for piece in work:
                waiting.append((piece, self._submit(piece)))
                if len(waiting) >= AHEAD * self._count:
                    yield self._first(waiting)
            while waiting:
                yield self._first(waiting)
        except BaseException:
            self._cut_off()
            raise
        finally:
            self._stop()

    def _submit(self, piece: A) -> Future[R]:
        for _ in range(MOST_DEATHS):
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                stop, self._life = context.Pipe(duplex=False)
                self._pool = ProcessPoolExecutor(
                    self._count,
                    mp_context=context,
                    initializer=_begin,
                    initargs=(stop, self._make, self._arguments),
                )
            try:
                # The pool itself was made before: its tracker of resources lets Ctrl-C come as it starts.
                with _hold_interrupts():
                    return self._pool.submit(_call, piece)
            except BrokenProcessPool:
                self._stop()
        raise WorkersLostError

    def _first(self, waiting: deque[tuple[A, Future[R]]]) -> R:
        """Wait for the oldest piece; where a worker died, all that was not done is given out again."""
        for _ in range(MOST_DEATHS):
            try:
                done = waiting[0][1].result()
            except BrokenProcessPool:
                self._stop()
                held = list(waiting)
                waiting.clear()
                waiting.extend((piece, self._again(piece, future)) for piece, future in held)
                continue
            waiting.popleft()
            return done
        raise WorkersLostError(waiting[0][0])

    def _again(self, piece: A, future: Future[R]) -> Future[R]:
        is_done = future.done() and not future.cancelled() and future.exception() is None
        return future if is_done else self._submit(piece)

    def _cut_off(self) -> None:
        if self._life is not None:
            self._life.close()

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._cut_off()
