"""One side of a ratio of `batch.py`, in a process of its own that loads nothing else.

`python bench/batch_sides.py SIDE SOURCE TARGET` prints what it cost, as JSON: seconds of processors of the
process itself, of those it started, seconds by the clock, and the bytes of the largest process it started.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

BUDGET = 4_000
MODEL = "gpt-4o"

# Imports are within: a worker process loads this module, too.


def _kernel(columns: tuple[str, ...] | None = None) -> Callable[[str, str], float]:
    """Do it with a table that is in memory; what it takes to have it there is not counted."""

    def run(source: str, _target: str) -> float:
        import pyarrow.parquet as pq

        from trimtab.batch import BatchTask

        task = BatchTask(operation="fit", budget=BUDGET, model=MODEL, columns=columns)
        given = pq.read_table(source)
        task.prepare()
        before = process_time()
        task(given)
        return process_time() - before

    return run


def _engine(workers: int) -> Callable[[str, str], None]:
    def run(source: str, target: str) -> None:
        from trimtab.batch import BatchTask, run_batch

        task = BatchTask(operation="fit", budget=BUDGET, model=MODEL)
        run_batch(task, source, target=target, workers=workers)

    return run


def _bare_json(*, with_report: bool) -> Callable[[str, str], None]:
    """Read lines, fit, write lines: what anybody would write."""

    def run(source: str, target: str) -> None:
        from trimtab import counter_for, fit

        counter = counter_for(MODEL)
        with Path(source).open("rb") as lines, Path(target).open("wb") as out:
            for line in lines:
                fitted = fit(json.loads(line), BUDGET, counter=counter)
                told = fitted.request
                if with_report:
                    told = {"request": told, "report": fitted.report.to_dict()}
                out.write(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    return run


def _command_line(*options: str) -> Callable[[str, str], None]:
    def run(source: str, target: str) -> None:
        command = [sys.executable, "-m", "trimtab", "fit", source, "--budget", str(BUDGET), "--model", MODEL]
        with Path(target).open("wb") as out:
            subprocess.run([*command, *options], stdout=out, check=False)

    return run


SIDES: dict[str, Callable[[str, str], float | None]] = {
    "kernel": _kernel(),
    "kernel, numbers": _kernel(("tokens_before", "tokens_after")),
    "one worker": _engine(1),
    "two workers": _engine(2),
    "bare json": _bare_json(with_report=False),
    "bare json, report": _bare_json(with_report=True),
    "command line": _command_line("--messages-only"),
    "command line, report": _command_line(),
}


def main() -> None:
    """Do one side, and print its cost."""
    name, source, target = sys.argv[1:]
    began = perf_counter()
    alone = SIDES[name](source, target)
    took, own_seconds = perf_counter() - began, process_time() if alone is None else alone
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([own_seconds, others.ru_utime + others.ru_stime, took, others.ru_maxrss * 1024]))


if __name__ == "__main__":
    main()
