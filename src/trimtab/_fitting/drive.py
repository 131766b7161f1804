"""The async driver: runs the algorithms that `drive` runs, and awaits what they need."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from trimtab.counting.awaited import CountsNeeded
from trimtab.errors import SummaryError
from trimtab.strategies.summarizer import SummaryCall, aasked

__all__ = ["adrive", "arun"]

T = TypeVar("T")


async def arun(call: Callable[[], T]) -> T:
    """Run what may need counts of an async counter, again after each round of them."""
    while True:
        try:
            return call()
        except CountsNeeded as needed:
            missing = needed
        await missing.fill()


async def adrive(make: Callable[[], Generator[SummaryCall, str | None, T]]) -> T:
    """Run an algorithm to its end, awaiting summarizers and counters.

    Where counts are missing it is made and run again; summaries already written are given again to the
    same question, so that no summarizer is asked twice.
    """
    texts: list[tuple[SummaryCall, str | SummaryError]] = []
    while True:
        try:
            return await _driven(make(), texts)
        except CountsNeeded as needed:
            missing = needed
        await missing.fill()


async def _driven(
    steps: Generator[SummaryCall, str | None, T], texts: list[tuple[SummaryCall, str | SummaryError]]
) -> T:
    try:
        call = next(steps)
        while True:
            # by what was asked, not in order: a strategy that remembers its summary asks no second time
            text = next((text for asked, text in texts if asked == call), None)
            if text is None:
                text = await _text_of(call)
                texts.append((call, text))
            call = steps.throw(text) if isinstance(text, SummaryError) else steps.send(text)
    except StopIteration as done:
        value: T = done.value
        return value


async def _text_of(call: SummaryCall) -> str | SummaryError:
    try:
        return await aasked(*call)
    except SummaryError as error:
        return error
