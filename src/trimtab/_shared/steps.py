"""One algorithm, two colours: an operation is a generator, run here at once or awaited.

An operation yields what it wants from outside (a statement, a call of a store, an answer of a summarizer)
or a `Pause`, is sent what came back, and has thrown into it what failed.
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
        answer: Gets what was yielded.
        errors: What of its errors is thrown into the operation, which may know what to do.
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
    """Run an operation to its end, awaiting each answer; see `run`."""
    import asyncio  # takes longer to import than all of trimtab

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
