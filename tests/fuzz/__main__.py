"""`python -m tests.fuzz`: run fuzz cases on all cores, and print what fails, made small.

`--one FORM SEED` runs one case again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.fuzz.checking import problems
from tests.fuzz.plans import FORMS, plan
from tests.fuzz.shrinking import kind_of, shrink

BASE = 5
"""Seeds begin with it; another base is another set of cases."""
CHUNK = 250


class Failure(NamedTuple):
    """A case that fails."""

    form: str
    seed: str
    wrong: list[str]


def run_chunk(asked: tuple[str, int, int, int]) -> list[Failure]:
    """Run the cases of one form from a number to another."""
    form, base, start, stop = asked
    seeds = (f"{base}/{number}" for number in range(start, stop))
    return [Failure(form, seed, wrong) for seed in seeds if (wrong := problems(plan(form, seed)))]


def run(
    count: int, *, forms: Iterable[str] = FORMS, base: int = BASE, workers: int | None = None
) -> Iterator[Failure]:
    """Run so many cases, shared among the forms, in as many processes as there are cores."""
    forms = list(forms)
    each = -(-count // len(forms))
    chunks = [
        (form, base, start, min(start + CHUNK, each)) for start in range(0, each, CHUNK) for form in forms
    ]
    workers = workers or os.cpu_count() or 1
    if workers == 1 or len(chunks) == 1:
        for chunk in chunks:
            yield from run_chunk(chunk)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for failures in pool.imap_unordered(run_chunk, chunks):
            yield from failures


def told(failure: Failure) -> str:
    """Write a failure, made small, as one reads it and as a line of the corpus."""
    small, wrong = shrink(plan(failure.form, failure.seed))
    case = small.to_case("; ".join(wrong)).to_dict()
    how = {
        "door": small.door,
        "percent": small.percent,
        "removed": small.removed,
        "cuts": small.cuts,
        "options": small.options,
        "black_box": small.black_box,
    }
    again = f"python -m tests.fuzz --one {failure.form} {failure.seed}"
    return "\n".join([f"{again}: {failure.wrong}", f"  small: {wrong} {how}", f"  {json.dumps(case)}"])


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=4_000)
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--base", type=int, default=BASE)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--show", type=int, default=3, help="how many failures of a kind are made small")
    parser.add_argument("--one", nargs=2, metavar=("FORM", "SEED"))
    asked = parser.parse_args()
    if asked.one:
        form, seed = asked.one
        wrong = problems(plan(form, seed))
        print(told(Failure(form, seed, wrong)) if wrong else "nothing is wrong")
        return 1 if wrong else 0
    started, failed = time.perf_counter(), 0
    seen: dict[tuple[str, str], int] = {}
    for failure in run(asked.cases, forms=asked.form or FORMS, base=asked.base, workers=asked.workers):
        failed += 1
        kind = (failure.form, kind_of(failure.wrong[0]))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= asked.show:
            print(told(failure), flush=True)
    for (form, what), number in sorted(seen.items()):
        print(f"{number:6} {form}: {what}")
    print(f"{asked.cases} cases, {failed} failed, {time.perf_counter() - started:.0f} s, base {asked.base}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
