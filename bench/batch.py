"""What a data set costs beside the bare kernel: engines, files and memory, in ratios of one run.

`python bench/batch.py [--rows 10000] [--megabytes 100]` prints the rows of `make bench`, and rows a second.
Every side runs in a process of its own. Seconds are those of processors, workers included, so that others on
the machine count for little; but for two workers beside one, which is what a clock says.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import pyarrow.parquet as pq
import table
from conversations import data_folder
from ratios import Ratio

from tests.batch.conversations import lines_of, table_of
from trimtab import counter_for, fit
from trimtab.batch import BatchTask, run_batch

BUDGET = 4_000
MODEL = "gpt-4o"
GROUP = 500
TIMES = 8
"""How much larger the large file is, for memory."""
FIT = BatchTask(operation="fit", budget=BUDGET, model=MODEL)

TASKS = {
    "fit, gpt-4o": FIT,
    "fit, estimate": BatchTask(operation="fit", budget=BUDGET),
    "count, gpt-4o": BatchTask(operation="count", model=MODEL),
    "validate": BatchTask(operation="validate"),
}
"""What rows a second are told of."""


class Cost(NamedTuple):
    """What one process cost, with those it started."""

    cpu_seconds: float
    seconds: float
    peak_bytes: int
    """Of the largest process it started."""


# What a child does.


def _kernel(source: str, _target: str) -> float:
    """Do it with a table that is in memory; what it takes to have it there is not counted."""
    given = pq.read_table(source)
    FIT.prepare()
    before = process_time()
    FIT(given)
    return process_time() - before


def _engine(workers: int) -> Callable[[str, str], float]:
    def run(source: str, target: str) -> float:
        run_batch(FIT, source, target=target, workers=workers)
        return 0.0

    return run


def _bare_json(source: str, target: str) -> float:
    """Read lines, fit, write lines: what anybody would write."""
    counter = counter_for(MODEL)
    with Path(source).open("rb") as lines, Path(target).open("wb") as out:
        for line in lines:
            body = fit(json.loads(line), BUDGET, counter=counter).request
            out.write(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return 0.0


def _command_line(source: str, target: str) -> float:
    command = [sys.executable, "-m", "trimtab", "fit", source, "--budget", str(BUDGET), "--model", MODEL]
    with Path(target).open("wb") as out:
        subprocess.run([*command, "--messages-only"], stdout=out, check=False)
    return 0.0


CHILDREN = {
    "kernel": _kernel,
    "one worker": _engine(1),
    "two workers": _engine(2),
    "bare json": _bare_json,
    "command line": _command_line,
}


def _cost(name: str, source: Path, target: Path) -> Cost:
    done = subprocess.run(
        [sys.executable, __file__, "--child", name, str(source), str(target)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return Cost(*json.loads(done.stdout))


def _child(name: str, source: str, target: str) -> None:
    began = perf_counter()
    alone = CHILDREN[name](source, target)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_seconds = alone or sum(one.ru_utime + one.ru_stime for one in used)
    print(json.dumps([cpu_seconds, perf_counter() - began, used[1].ru_maxrss * 1024]))


# The rows.


def ratios(*, rows: int = 10_000, megabytes: int = 100) -> Iterator[Ratio]:
    """Measure each once; more rows make what is paid once count for less."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "in.parquet"
        pq.write_table(table_of(data_folder(), rows), source, row_group_size=GROUP)
        kernel = _cost("kernel", source, folder / "none")
        one = _cost("one worker", source, folder / "one.parquet")
        two = _cost("two workers", source, folder / "two.parquet")
        yield _ratio("one worker with its files / kernel", 1 / 0.8, one.cpu_seconds, kernel.cpu_seconds)
        yield _ratio("two workers / one, by the clock", 1 / 1.8, two.seconds, one.seconds)
        yield _ratio("two workers / one, of processors", 1.1, two.cpu_seconds, one.cpu_seconds)
        small = folder / "small.parquet"
        pq.write_table(table_of(data_folder(), rows // TIMES), small, row_group_size=GROUP)
        least = _cost("one worker", small, folder / "small.out.parquet")
        yield _ratio(f"peak memory of a worker, file x {TIMES} / x 1", 1.1, one.peak_bytes, least.peak_bytes)
        lines = folder / "in.jsonl"
        _write_lines(lines, megabytes)
        command = _cost("command line", lines, folder / "command.jsonl")
        bare = _cost("bare json", lines, folder / "bare.jsonl")
        name = f"trimtab fit, {megabytes} MB / fit and bare json"
        yield _ratio(name, 1.3, command.cpu_seconds, bare.cpu_seconds)


def _ratio(name: str, aim: float, ours: float, other: float) -> Ratio:
    return Ratio(name=name, aim=round(aim, 3), found=ours / other, pairs=1)


def _write_lines(path: Path, megabytes: int) -> None:
    piece = lines_of(data_folder(), 500)
    with path.open("wb") as file:
        while file.tell() < megabytes << 20:
            file.write(piece)


def speeds(rows: int) -> Iterator[str]:
    """Tell rows a second of the kernel by what is done and who counts."""
    given = table_of(data_folder(), rows)
    size = given.column("messages").nbytes
    for name, task in TASKS.items():
        task(given.slice(0, 1))
        before = process_time()
        task(given)
        took = process_time() - before
        yield f"  {name:<16} {rows / took:>8,.0f} rows/s {size / took / 1e6:>8.1f} MB/s"


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments: Any = parser.parse_args()
    if arguments.child:
        _child(*arguments.child)
        return
    print(table.RATIO_HEAD)
    for one in ratios(rows=arguments.rows, megabytes=arguments.megabytes):
        print(table.of_ratio(one), flush=True)
    for line in speeds(2_000):
        print(line, flush=True)


if __name__ == "__main__":
    main()
