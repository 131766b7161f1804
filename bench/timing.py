"""Medians over interleaved rounds; nothing of the bench itself is timed."""

from __future__ import annotations

import gc
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

Prepare = Callable[[], Callable[[], Any]]
"""Makes what is timed: called before every run, off the clock, so that a run can start with empty caches."""
Group = Mapping[str, Prepare]
"""Contenders that may follow each other without spoiling each other's caches."""

BATCHES = 3
SLICES = 9
"""A batch is so many turns of every group."""
MOST_ROUNDS = 20
"""Of a group in a slice, besides the first, which is not counted."""


def batches_ms(groups: Sequence[Group], *, seconds: float) -> list[dict[str, float]]:
    """Return a mapping a batch, contender to median milliseconds; a batch takes about `seconds`.

    Groups take turns in short slices, so a slow spell of the machine meets all of them. Inside a group the
    order is random. A call that walks all messages empties the processor's caches, so it has a group
    of its own, and the first round of a slice is not counted unless it is the only one. Objects that
    live on are moved out of the garbage collector's sight; the collector itself stays on.
    """
    gc.collect()
    gc.freeze()
    a_slice = seconds / SLICES / len(groups)
    rounds = [_rounds_for(group, seconds=a_slice) for group in groups]
    shuffled = random.Random(0)
    batches = []
    for _ in range(BATCHES):
        times: dict[str, list[float]] = {name: [] for group in groups for name in group}
        for _ in range(SLICES):
            for group, count in zip(groups, rounds, strict=True):
                for name, values in _slice(group, count, shuffled).items():
                    times[name] += values
        batches.append({name: statistics.median(values) for name, values in times.items()})
    return batches


def once_ms(prepare: Prepare) -> float:
    """Return the milliseconds of a single run; freeing its result is off the clock."""
    run = prepare()
    start = perf_counter_ns()
    result = run()
    elapsed = perf_counter_ns() - start
    del result
    return elapsed / 1e6


def _slice(group: Group, rounds: int, shuffled: random.Random) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in group}
    for _ in range(rounds):
        for name in shuffled.sample(list(group), len(group)):
            times[name].append(once_ms(group[name]))
    return {name: values[1:] or values for name, values in times.items()}


def _rounds_for(group: Group, *, seconds: float) -> int:
    """Return how many rounds of `group` fit, at least one; runs everything twice, which also warms it."""
    for prepare in group.values():
        once_ms(prepare)
    round_ms = sum(once_ms(prepare) for prepare in group.values())
    return 1 + min(MOST_ROUNDS, int(seconds * 1000 / round_ms))
