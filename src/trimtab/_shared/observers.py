"""Who looks on: the callbacks of `trimtab.observe`, and how long a fit counts while there are any.

Whoever has something to tell looks at `active` first, which is a read of an attribute: where nobody looks on,
no function of this module is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from threading import Lock, local
from typing import Any, Self

from trimtab._shared.checks import name_of

LOGGER = "trimtab.telemetry"
"""Where a callback that fails is reported."""


class Observer:
    """A callback that is called for each event until it is removed.

    `observe` makes it. It is also a context manager: `with observe(callback): …` removes it at the end.

    Args:
        callback: Called with each event.
        stores: Whether it is also called for each request to a store.
    """

    __slots__ = ("_callback", "_failed", "stores")

    def __init__(self, callback: Callable[[Any], object], stores: bool = False) -> None:
        self._callback = callback
        self._failed = False
        self.stores = stores
        """Whether it is also called for each request to a store."""

    def __repr__(self) -> str:
        """Say whether it still looks on."""
        return f"<Observer {name_of(self._callback)}{'' if self in active else ', removed'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Stop calling the callback; removing it twice is not an error.

        A call in progress in another thread finishes.
        """
        _change(lambda there: tuple(one for one in there if one is not self))

    def tell(self, event: object) -> None:
        """Call it; its exceptions are logged the first time, and not raised.

        Args:
            event: The event.
        """
        try:
            self._callback(event)
        # An observer is a guest: what it raises must not break what it looks at.
        except Exception as error:
            if not self._failed:
                self._failed = True
                self._report(error)

    def _report(self, error: Exception) -> None:
        import logging  # not above: only a failure needs it

        logger = logging.getLogger(LOGGER)
        # Not its own words: they may be those of a message.
        logger.warning(
            "observer %s failed with %s and goes on; what it raises from now on is not logged",
            name_of(self._callback),
            type(error).__name__,
        )
        logger.debug("observer %s failed", name_of(self._callback), exc_info=error)


active: tuple[Observer, ...] = ()
"""Those who look on, in the order they came. Replaced, never changed: any thread may go through it."""

at_stores: tuple[Observer, ...] = ()
"""Those of them who look on at stores, too."""

_lock = Lock()


def _change(make: Callable[[tuple[Observer, ...]], tuple[Observer, ...]]) -> None:
    global active, at_stores
    with _lock:
        active = make(active)
        at_stores = tuple(one for one in active if one.stores)


def add(callback: Callable[[Any], object], /, *, stores: bool) -> Observer:
    """Call a function with every event from now on."""
    made = Observer(callback, stores)
    _change(lambda there: (*there, made))
    return made


class _Silence(local):
    """Whether nobody is told of what this thread does, as while it calls callbacks."""

    now = False


_silence = _Silence()


def tell(event: object, /) -> None:
    """Tell everybody who looks on; of what a callback does itself, nobody is told."""
    _tell(active, event)


def tell_of_store(event: object, /) -> None:
    """Tell those who look on at stores."""
    _tell(at_stores, event)


def _tell(those: tuple[Observer, ...], event: object) -> None:
    if _silence.now:
        return  # a callback that tries another budget would be called for that fit, and so on without end
    with silence():
        for observer in those:
            observer.tell(event)


@contextmanager
def silence() -> Generator[None]:
    """Tell nobody of what this thread does within it."""
    before = _silence.now
    # Of the thread and not of the context: a task that a callback begins has a copy of its context.
    _silence.now = True
    try:
        yield
    finally:
        _silence.now = before


# How long a fit counts.


class Watch:
    """Measures one fit, and how much of it is spent in counting."""

    __slots__ = ("_outer", "_start", "count_seconds", "counts", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.count_seconds = 0.0
        self.counts = False
        """Whether a count is being measured: one inside of it is a part of it."""

    def __enter__(self) -> Self:
        self._outer: Token[Watch | None] = _watch.set(self)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        _watch.reset(self._outer)


_watch: ContextVar[Watch | None] = ContextVar("trimtab_watch", default=None)
"""That of the fit this thread or task is in."""


class CountTime:
    """Adds what is done within it to the counting of the fit that is underway, if one is measured."""

    __slots__ = ("_start", "_watch")

    def __enter__(self) -> None:
        watch = _watch.get()
        self._watch = None if watch is None or watch.counts else watch
        if self._watch is not None:
            self._watch.counts = True
            self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.counts = False
            self._watch.count_seconds += time.perf_counter() - self._start
