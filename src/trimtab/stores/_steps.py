"""One algorithm, two colours: a store's operation is a generator, run here at once or awaited.

An operation yields what it wants of the server (a statement, a command) or a `Pause`, is sent what came
back, and has thrown into it what failed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["Pause", "Steps", "arun", "run"]

T = TypeVar("T")

Steps: TypeAlias = Generator[Any, Any, T]
"""An operation that ends with a T."""


class Pause(NamedTuple):
    """Wait before the next step; yielded by an operation."""

    seconds: float


def run(steps: Steps[T], answer: Callable[[Any], Any], *, errors: type[Exception]) -> T:
    """Run an operation to its end.

    Args:
        steps: The operation.
        answer: Asks the server.
        errors: What of the server's package is thrown into the operation; it may know what to do.
    """
    try:
        step = next(steps)
        while True:
            try:
                given = _paused(step) if isinstance(step, Pause) else answer(step)
            except errors as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()


def _paused(pause: Pause) -> object:
    time.sleep(pause.seconds)
    return None


async def arun(steps: Steps[T], answer: Callable[[Any], Awaitable[Any]], *, errors: type[Exception]) -> T:
    """Run an operation to its end, awaiting the server; see `run`."""
    import asyncio  # takes longer to import than the rest of trimtab.stores

    try:
        step = next(steps)
        while True:
            try:
                given = await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else answer(step))
            except errors as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()
