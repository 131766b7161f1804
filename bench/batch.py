"""What a data set costs beside the bare kernel: engines, files and memory, in ratios of one run.

    python bench/batch.py [--rows 50000] [--megabytes 100]     the rows of `make bench`
    python bench/batch.py --sizes --json sizes.json            rows a second, and the memory of a worker
    python bench/pages.py --batch sizes.json                   writes these into docs/batch.md

Every side runs in a process of its own, with its bytecode at hand. Seconds are those of processors, workers
included, so that others on the machine count for little; but for two workers beside one, which is what a
clock says on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))

import pyarrow as pa
import pyarrow.parquet as pq
import table
from batch_sides import BUDGET, MODEL
from conversations import data_folder
from forms import RESPONSES
from ratios import Ratio

from tests.batch.conversations import conversations, lines_of
from tests.chat_in_forms import said_in
from trimtab.batch import BatchTask
from trimtab.counting import clear_counts

GROUP = 500
TIMES = 8
"""How much larger the large file is, for memory."""
FULL_ROWS = 10_000
"""Rows with which a worker's memory is full: more groups than are on their way at a time, and more text than
a counter remembers counts of (32 million characters)."""
SPEED_ROWS = 2_000
COUNTERS: dict[str, dict[str, str]] = {
    "gpt-4o": {"model": MODEL},
    "estimate": {"counter": "estimate"},
    "chars:4": {"counter": "chars:4"},
}
FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")


class Cost(NamedTuple):
    """What one process cost, with those it started."""

    own_seconds: float
    """Of processors, by the process itself."""
    others_seconds: float
    """Of processors, by those it started."""
    seconds: float
    peak_bytes: int
    """Of the largest process it started."""

    @property
    def cpu_seconds(self) -> float:
        """Seconds of processors of all of them."""
        return self.own_seconds + self.others_seconds


SIDE = Path(__file__).with_name("batch_sides.py")


def _cost(name: str, source: Path, target: Path) -> Cost:
    """Let a process do it; bytecode is written once and kept, as it is where trimtab is installed."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(source.parent / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, str(SIDE), name, str(source), str(target)],
        stdout=subprocess.PIPE,
        check=True,
        env=environment,
    )
    return Cost(*json.loads(done.stdout))


# The rows.


def ratios(*, rows: int = 50_000, megabytes: int = 100, full_rows: int = FULL_ROWS) -> Iterator[Ratio]:
    """Measure each once; more rows make what is paid once count for less."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, lines = folder / "in.parquet", folder / "in.jsonl"
        _write_parquet(source, 2 * GROUP)
        lines.write_bytes(lines_of(data_folder(), 1))
        for first, given in (("two workers", source), ("command line, report", lines)):
            _cost(first, given, folder / f"first{given.suffix}")  # writes bytecode
        _write_parquet(source, rows)
        kernel = _cost("kernel", source, folder / "none")
        numbers = _cost("kernel, numbers", source, folder / "none")
        yield _ratio("messages and numbers / all columns", 0.5, numbers.own_seconds, kernel.own_seconds)
        one = _cost("one worker", source, folder / "one.parquet")
        two = _cost("two workers", source, folder / "two.parquet")
        yield _ratio("one worker with its files / kernel", 1 / 0.8, one.cpu_seconds, kernel.cpu_seconds)
        yield _ratio("the run itself / all it takes", 0.1, one.own_seconds, one.cpu_seconds)
        yield _ratio("two workers / one, of processors", 1.1, two.cpu_seconds, one.cpu_seconds)
        yield _ratio("two workers / one, by the clock", 1 / 1.8, two.seconds, one.seconds)
        source.unlink()
        once, often = (_worker_memory(folder, full_rows * times) for times in (1, TIMES))
        yield _ratio(f"peak memory of a worker, file x {TIMES} / x 1", 1.1, often, once)
        _write_lines(lines, megabytes)
        for beside in ("", ", report"):
            command = _cost(f"command line{beside}", lines, folder / "command.jsonl")
            bare = _cost(f"bare json{beside}", lines, folder / "bare.jsonl")
            said = f"trimtab fit{beside}, {megabytes} MB / fit{beside} and bare json"
            yield _ratio(said, 1.3, command.cpu_seconds, bare.cpu_seconds)


def _ratio(name: str, aim: float, ours: float, other: float) -> Ratio:
    return Ratio(name=name, aim=round(aim, 3), found=ours / other, pairs=1)


def _worker_memory(folder: Path, rows: int, *, group: int = GROUP) -> int:
    """Return the most bytes a worker takes, with texts that are there once."""
    source, target = folder / "texts.parquet", folder / "texts.out.parquet"
    _write_parquet(source, rows, group=group, unique=True)
    found = _cost("one worker", source, target)
    source.unlink()
    target.unlink()
    return found.peak_bytes


def _write_parquet(path: Path, rows: int, *, group: int = GROUP, unique: bool = False) -> None:
    """Write the conversations over and over, row group by row group; a word makes them different."""
    schema = pa.schema([("id", pa.string()), ("messages", pa.string())])
    with pq.ParquetWriter(path, schema) as file:
        numbered = enumerate(conversations(data_folder(), rows))
        while some := list(islice(numbered, group)):
            texts = [
                json.dumps(_with_own_words(chat, at) if unique else chat, ensure_ascii=False)
                for at, (_, chat) in some
            ]
            ids = [name for _, (name, _) in some]
            file.write_table(pa.table({"id": ids, "messages": texts}, schema=schema))


def _with_own_words(chat: list[Any], number: int) -> list[Any]:
    return [
        {**one, "content": f"{number} {one['content']}"} if isinstance(one.get("content"), str) else one
        for one in chat
    ]


def _write_lines(path: Path, megabytes: int) -> None:
    piece = lines_of(data_folder(), 500)
    with path.open("wb") as file:
        while file.tell() < megabytes << 20:
            file.write(piece)


# How much takes how long, for docs/batch.md.


def sizes(*, rows: int = SPEED_ROWS, full_rows: int = FULL_ROWS) -> dict[str, Any]:
    """Measure rows a second by form, operation and counter, and the memory of a worker by its row groups."""
    speeds = [
        {"form": form, "what": what, **_speed(task, given)}
        for form in FORMS
        for given in [_in_form(form, rows)]
        for what, task in _tasks(form)
    ]
    with tempfile.TemporaryDirectory() as name:
        memory = {group: _worker_memory(Path(name), full_rows, group=group) for group in (500, 2_000, 8_000)}
    return {
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "budget": BUDGET,
        "speeds": speeds,
        "memory": [{"group": group, "bytes": found} for group, found in memory.items()],
    }


def _tasks(form: str) -> Iterator[tuple[str, BatchTask]]:
    for counter, options in COUNTERS.items():
        given: dict[str, Any] = {"format": form, **options}
        yield f"fit, {counter}", BatchTask(operation="fit", budget=BUDGET, **given)
    for counter, options in COUNTERS.items():
        given = {"format": form, **options}
        yield f"count, {counter}", BatchTask(operation="count", **given)
    yield "validate", BatchTask(operation="validate", format=form)


def _speed(task: BatchTask, given: pa.Table) -> dict[str, float]:
    """Measure it in texts that were not counted before, as those of a data set are."""
    task(given.slice(0, 100))
    clear_counts()
    before = process_time()
    done = task(given)
    took = process_time() - before
    failed = done.column("error").drop_null().to_pylist()
    if failed:
        raise SystemExit(f"{len(failed)} rows cannot be done, as: {failed[0]}")
    return {
        "rows_per_second": given.num_rows / took,
        "bytes_per_second": given.column("messages").nbytes / took,
    }


def _in_form(form: str, rows: int) -> pa.Table:
    """Write different conversations as request bodies of a wire form."""
    chats = enumerate(conversations(data_folder(), rows))
    bodies = [_body(form, _with_own_words(chat, at)) for at, (_, chat) in chats]
    return pa.table({"messages": [json.dumps(body, ensure_ascii=False) for body in bodies]})


def _body(form: str, chat: list[Any]) -> dict[str, Any]:
    system = "\n".join(one["content"] for one in chat if one["role"] == "system")
    if form == "openai_chat":
        return {"messages": chat}
    if form == "openai_responses":
        return {"input": RESPONSES.write(chat), **({"instructions": system} if system else {})}
    messages = said_in(form, chat)
    if form == "gemini":
        beside = {"systemInstruction": {"parts": [{"text": system}]}}
        return {"contents": messages, **(beside if system else {})}
    held: Any = [{"text": system}] if form == "bedrock" else system
    return {"messages": messages, **({"system": held} if system else {})}


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="rows of the file (50,000), or of a speed (2,000)")
    parser.add_argument("--full-rows", type=int, default=FULL_ROWS, help="rows that fill a worker's memory")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--sizes", action="store_true", help="rows a second and memory instead of ratios")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the sizes")
    arguments: Any = parser.parse_args()
    if arguments.sizes:
        found = sizes(rows=arguments.rows or SPEED_ROWS, full_rows=arguments.full_rows)
        for one in found["speeds"]:
            print(f"  {one['form']:<17} {one['what']:<16} {one['rows_per_second']:>8,.0f} rows/s", flush=True)
        for one in found["memory"]:
            print(f"  row groups of {one['group']:>6,}: {one['bytes'] / 1e6:,.0f} MB a worker")
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    else:
        print(table.RATIO_HEAD)
        for ratio in ratios(
            rows=arguments.rows or 50_000, megabytes=arguments.megabytes, full_rows=arguments.full_rows
        ):
            print(table.of_ratio(ratio), flush=True)


if __name__ == "__main__":
    main()
