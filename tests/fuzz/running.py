"""Run many fuzz cases, in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import NamedTuple

from tests.fuzz.checking import problems
from tests.fuzz.plans import FORMS, plan

BASE = 5
"""Seeds begin with it; another base is another set of cases."""
_CHUNK = 250


class Failure(NamedTuple):
    """A case that fails."""

    form: str
    seed: str
    wrong: list[str]


def run(
    count: int, *, forms: Iterable[str] = FORMS, base: int = BASE, workers: int | None = None
) -> Iterator[Failure]:
    """Run so many cases, shared among the forms."""
    forms = list(forms)
    each = -(-count // len(forms))
    chunks = [
        (form, base, start, min(start + _CHUNK, each)) for start in range(0, each, _CHUNK) for form in forms
    ]
    workers = min(workers or os.cpu_count() or 1, len(chunks))
    if workers == 1:
        yield from chain.from_iterable(map(_failures, chunks))
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from chain.from_iterable(pool.map(_run_chunk, chunks))


def _run_chunk(asked: tuple[str, int, int, int]) -> list[Failure]:
    return list(_failures(asked))


def _failures(asked: tuple[str, int, int, int]) -> Iterator[Failure]:
    """Run the cases of one form from a number to another, each when it is asked for."""
    form, base, start, stop = asked
    for number in range(start, stop):
        seed = f"{base}/{number}"
        if wrong := problems(plan(form, seed)):
            yield Failure(form, seed, wrong)
