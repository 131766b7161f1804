"""Many conversations through every engine and every accident: `python -m tests.batch.large --rows 256000`.

Real conversations with ids of their own are fitted by the local engine, by a run that is killed and goes
on, with a worker that is killed, and on a Ray cluster of two nodes, one of which is killed. All tables are
to have the same bytes. Without Ray that part is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.batch.conversations import table_of
from trimtab.batch import BatchSummary, BatchTask, run_batch

TASK = BatchTask(operation="fit", budget=1_000, model="gpt-4o")
ROWS_A_GROUP = 1_000
ROWS_A_SLICE = 16_000


def write(data: Path, path: Path, rows: int) -> None:
    """Write the conversations, some at a time: all at once would take gigabytes."""
    first = table_of(data, 1)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for start in range(0, rows, ROWS_A_SLICE):
            table = table_of(data, min(ROWS_A_SLICE, rows - start), start=start)
            writer.write_table(table, row_group_size=ROWS_A_GROUP)


def digest(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def once(act: Callable[[], object], at: int) -> Callable[[BatchSummary], None]:
    """Do something when so many rows are done, once."""
    left = [act]

    def look(done: BatchSummary) -> None:
        if left and done.rows >= at:
            left.pop()()

    return look


def kill_worker() -> None:
    """Kill one of the processes that work."""
    os.kill(int(multiprocessing.active_children()[0].pid or 0), signal.SIGKILL)


def by_local(source: Path, target: Path, rows: int, *, accident: str = "") -> BatchSummary:
    """Run it on this machine; "run" kills all of it in the middle, "worker" a process a little later."""
    look = {"run": once(_end, rows // 2), "worker": once(kill_worker, rows * 3 // 4)}.get(accident)
    return run_batch(TASK, source, target=target, on_progress=look)


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def by_ray(source: Path, target: Path, rows: int) -> BatchSummary:
    """Run it on a cluster of two nodes, one of which is killed half-way."""
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # on loopback alone
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    import ray
    from ray.cluster_utils import Cluster

    size: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=size)
    second = cluster.add_node(**size)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        kill = once(lambda: cluster.remove_node(second, allow_graceful=False), rows // 2)
        done = run_batch(TASK, source, target=target, engine="ray", on_progress=kill)
        print(f"nodes alive at the end: {sum(node['Alive'] for node in ray.nodes())}", flush=True)
        return done
    finally:
        ray.shutdown()
        cluster.shutdown()


def run(data: Path, folder: Path, rows: int, *, ray: bool) -> dict[str, str]:
    """Do all of it; returns the digest of each table."""
    source = folder / "chats.parquet"
    write(data, source, rows)
    print(f"{rows:,} rows, {source.stat().st_size >> 20} MB", flush=True)
    ways: dict[str, Callable[[Path], BatchSummary]] = {
        "local": lambda target: by_local(source, target, rows),
        "run and worker killed": lambda target: _resumed(source, target, rows),
    }
    if ray:
        ways["ray, node killed"] = lambda target: by_ray(source, target, rows)
    found: dict[str, str] = {}
    for number, (name, way) in enumerate(ways.items()):
        target = folder / f"out-{number}.parquet"
        done = way(target)
        found[name] = digest(target)
        ids = pq.read_table(target, columns=["id"]).column("id").to_pylist()
        assert ids == [f"c-{at}" for at in range(rows)], name
        print(
            f"{name}: {done.rows:,} rows, {done.failed_rows:,} set aside, {done.resumed_rows:,} by an earlier"
            f" run, sha256 {found[name]}",
            flush=True,
        )
        target.unlink()
    return found


def _resumed(source: Path, target: Path, rows: int) -> BatchSummary:
    """Run it in a process that is killed, then again, with a worker that is killed."""
    command = [sys.executable, "-m", "tests.batch.large", "--end", str(source), str(target)]
    killed = subprocess.run([*command, "--rows", str(rows)], check=False)
    assert killed.returncode == -signal.SIGKILL, killed
    return by_local(source, target, rows, accident="worker")


def main() -> int:
    """Run it as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the real conversations")
    parser.add_argument("--ray", action="store_true", help="a cluster, too; needs Ray")
    parser.add_argument("--end", nargs=2, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.end:
        source, target = asked.end
        by_local(source, target, asked.rows, accident="run")
        return 3  # it should not have come so far
    with tempfile.TemporaryDirectory(prefix="trimtab-large-") as folder:
        found = run(asked.data, Path(folder), asked.rows, ray=asked.ray)
    print("the same bytes" if len(set(found.values())) == 1 else "tables differ", flush=True)
    return int(len(set(found.values())) != 1)


if __name__ == "__main__":
    sys.exit(main())
