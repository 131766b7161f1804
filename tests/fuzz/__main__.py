"""`python -m tests.fuzz`: run fuzz cases on all cores, and print what fails, made small.

`--one FORM SEED` runs one case again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.fuzz.checking import problems
from tests.fuzz.plans import FORMS, plan
from tests.fuzz.running import BASE, Failure, run
from tests.fuzz.shrinking import kind_of, shrink


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
