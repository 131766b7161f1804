"""Every model call of one long chat, in order: stateless trimming, counts remembered between calls."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import recount
from conversations import Messages, model_calls
from floors import TextCounts, plain_loop

Trim = Callable[[Messages], Messages]
BATCHES = 3
CHECKED_EVERY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One contender over the whole chat."""

    name: str
    calls: int
    seconds: float
    """All calls together, best of three."""
    invalid: int
    """Of the calls looked at (every 20th), how many outputs a provider would refuse."""
    over_budget: int
    looked_at: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def replay(
    messages: Messages, budget: int, makers: dict[str, Callable[[], Trim]], *, batches: int = BATCHES
) -> list[Replayed]:
    """Replay every call with each contender, interleaved; a maker gives one with nothing remembered."""
    calls = model_calls(messages)
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    gc.collect()
    gc.freeze()
    for _ in range(batches):
        for name, make in makers.items():
            seconds[name].append(_seconds(make(), calls))
    return [_replayed(name, make(), calls, budget, min(seconds[name])) for name, make in makers.items()]


def dict_loop(budget: int) -> Trim:
    """Return the plain loop that reads its counts from a dict keyed by text, the dict empty."""
    counts = TextCounts()
    read = counts.__getitem__
    return lambda messages: plain_loop(messages, budget, read)


def _seconds(trim: Trim, calls: list[Messages]) -> float:
    start = perf_counter()
    for messages in calls:
        trim(messages)
    return perf_counter() - start


def _replayed(name: str, trim: Trim, calls: list[Messages], budget: int, seconds: float) -> Replayed:
    verdicts = [
        recount.judge(trim(messages), given=messages, budget=budget) for messages in calls[::CHECKED_EVERY]
    ]
    return Replayed(
        name=name,
        calls=len(calls),
        seconds=seconds,
        invalid=sum(not verdict.valid for verdict in verdicts),
        over_budget=sum(not verdict.within_budget for verdict in verdicts),
        looked_at=len(verdicts),
    )
