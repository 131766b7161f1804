"""One algorithm, two colours: an operation is a generator of questions, run here at once or awaited.

An operation yields what it wants from outside (a statement for a database, a call of a store, a question to a
summarizer) or a `Pause`, is sent what came back, and has thrown into it what failed. Whoever runs it writes
one function, `answer`, that takes a question and returns or raises; the same operation then serves `run`,
with a function, and `arun`, with an async one:

    def total(ids: list[str]) -> Steps[int]:
        tokens = 0
        for id in ids:
            tokens += yield Get(id)
        return tokens

    run(total(ids), lambda question: client.get(question.id))
    await arun(total(ids), lambda question: async_client.get(question.id))

An operation catches an error around the `yield` that asked. What is no `Exception` (an interrupt, a
cancellation, `Missing`) is not thrown in: it ends the operation, whose `finally` clauses run.

Code that asks by calling, and has no way to await, breaks off with `Missing`; `rerun` gets what is missing
and calls it again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    import asyncio

A = TypeVar("A")
T = TypeVar("T")

Steps: TypeAlias = Generator[Any, Any, T]
"""An operation that ends with a T."""


class Pause(NamedTuple):
    """Wait before the next step; yielded by an operation."""

    seconds: float


def in_turns(do: Callable[[A], T], items: Iterable[A], /, *, each: int) -> Steps[list[T]]:
    """Do something with many items, and let others of an event loop have their turn in between.

    Args:
        do: What is done with one.
        items: All of them.
        each: After how many it is the others' turn.
    """
    made = list[T]()
    for at, item in enumerate(items, 1):
        made.append(do(item))
        if at % each == 0:
            yield Pause(0)
    return made


def run(steps: Steps[T], answer: Callable[[Any], Any]) -> T:
    """Run an operation to its end.

    Args:
        steps: The operation.
        answer: Gets what was yielded; what it raises is raised where it was asked.
    """
    try:
        question = next(steps)
        while True:
            try:
                given = None
                if isinstance(question, Pause):
                    time.sleep(question.seconds)
                else:
                    given = answer(question)
            # It is the operation's: what it does not catch comes out of `throw`.
            except Exception as error:
                question = steps.throw(error)
            else:
                question = steps.send(given)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()


def drive(steps: Steps[T], /, *, planned: bool = False) -> T:
    """Run an algorithm to its end, with summarizers and rankers that answer at once.

    Args:
        steps: The algorithm; it yields calls.
        planned: Ask no model: no summarizer, and no ranker that has to be awaited.

    Raises:
        ConfigurationError: A summarizer or a ranker is async.
    """
    return run(steps, _PLAN if planned else _NOW)


_NOW, _PLAN = methodcaller("now"), methodcaller("for_plan")


async def arun(
    steps: Steps[T], answer: Callable[[Any], Awaitable[Any]], *, uncut: tuple[type, ...] = ()
) -> T:
    """Run an operation to its end, awaiting each answer; see `run`.

    Args:
        steps: The operation.
        answer: As for `run`, but awaited.
        uncut: Kinds of questions that are awaited to their end even when the task is cancelled, as a write
            is that may be done by then: the operation gets the answer, and then the cancellation goes on.
    """
    import asyncio  # takes longer to import than all of trimtab

    cut_off: asyncio.CancelledError | None = None
    try:
        question = next(steps)
        while cut_off is None:
            try:
                given = None
                if isinstance(question, Pause):
                    await asyncio.sleep(question.seconds)
                elif isinstance(question, uncut):
                    writing = asyncio.ensure_future(answer(question))
                    cut_off = await _outlast(writing)
                    given = writing.result()
                else:
                    given = await answer(question)
            # It is the operation's: what it does not catch comes out of `throw`.
            except Exception as error:
                question = steps.throw(error)
            else:
                question = steps.send(given)
    except StopIteration as done:
        value: T = done.value
        if cut_off is None:
            return value
    except Exception:
        if cut_off is None:
            raise
    finally:
        steps.close()
    raise cut_off


async def _outlast(work: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Await something to its end; return the cancellation that came meanwhile."""
    import asyncio

    cut_off = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            cut_off = error
    return cut_off


def relay(steps: Steps[T], answer: Callable[[Any], Steps[Any]]) -> Steps[T]:
    """Run an operation as a part of another, which asks what it takes to answer its questions."""
    try:
        question = next(steps)
        while True:
            try:
                given = (yield question) if isinstance(question, Pause) else (yield from answer(question))
            # It is the operation's: what it does not catch comes out of `throw`.
            except Exception as error:
                question = steps.throw(error)
            else:
                question = steps.send(given)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()


class Missing(BaseException, ABC):
    """Breaks off code that needs an answer at once, where only awaiting gives it.

    No `Exception`, as a cancellation is none: what catches failures is not to catch it.
    """

    @abstractmethod
    async def fill(self) -> None:
        """Await what is missing, so that it is known when it is asked for again."""


async def rerun(call: Callable[[], T]) -> T:
    """Call what may break off with `Missing`, again after each round of answers."""
    while True:
        try:
            return call()
        except Missing as error:
            missing = error  # the name of an except clause does not outlive it
        await missing.fill()
