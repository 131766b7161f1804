"""The engine for a cluster: two nodes give the bytes of one machine, also where one of them is killed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# Before Ray is imported: on loopback alone, and workers find the tests' own modules.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])

import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data
from ray.cluster_utils import Cluster

from tests.batch.large import run
from trimtab.batch import ENGINES, PURPOSES, BatchSummary, BatchTask, run_batch
from trimtab.errors import ConfigurationError

TASK = BatchTask(operation="fit", budget=150, counter="chars:4")
ROWS = 600


class Nodes:
    """A cluster of two nodes on this machine."""

    def __init__(self) -> None:
        self.cluster = Cluster(initialize_head=True, head_node_args=self.size())
        self.second = self.cluster.add_node(**self.size())
        ray.init(address=self.cluster.address, log_to_driver=False)

    def size(self) -> dict[str, Any]:
        """Say how large a node is."""
        return {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}

    def kill_one(self) -> None:
        """Kill the second node: its processes get no chance to say goodbye."""
        self.cluster.remove_node(self.second, allow_graceful=False)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """Start two nodes, and end what is left of them."""
    made = Nodes()
    yield made
    ray.shutdown()
    made.cluster.shutdown()


def chat(at: int) -> list[dict[str, Any]]:
    """Make a conversation of its own, some too large for the budget."""
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"{at} {n} " * 12} for n in range(2 + at % 17)]
    return [*turns, {"role": "user", "content": "x" * (900 if at % 50 == 0 else 9)}]


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Write conversations in 20 row groups, one row of which cannot be read."""
    texts = ["none" if at == 77 else json.dumps(chat(at)) for at in range(ROWS)]
    table = pa.table({"id": [f"c-{at}" for at in range(ROWS)], "messages": texts})
    pq.write_table(table, tmp_path / "chats.parquet", row_group_size=ROWS // 20)
    return tmp_path / "chats.parquet"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_killed_node_changes_no_byte(nodes: Nodes, chats: Path) -> None:
    """All rows once and in order, with the rows that are set aside."""
    local, out = chats.with_name("local.parquet"), chats.with_name("ray.parquet")
    expected = run_batch(TASK, chats, target=local, workers=1)
    killed: list[int] = []

    def kill(done: BatchSummary) -> None:
        if not killed:
            killed.append(done.rows)
            nodes.kill_one()

    found = run_batch(TASK, chats, target=out, engine="ray", on_progress=kill)
    assert killed == [ROWS // 20]
    # Not by `ray.nodes()`: the cluster hears of a dead node some time after, and a run may end before it.
    assert not nodes.second.any_processes_alive()
    assert (found.rows, found.errors) == (ROWS, expected.errors)
    assert found.errors == {"BudgetExceededError": 12, "FormatError": 1}
    assert _digest(out) == _digest(local)


def test_twenty_thousand_conversations_are_those_of_one_machine(tmp_path: Path) -> None:
    """Real ones, with a worker, a run and a node that are killed on the way."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    data = Path(os.environ.get("TRIMTAB_DATA", beside))
    if not data.is_dir():
        pytest.skip(f"no real conversations at {data} (set TRIMTAB_DATA)")
    digests = run(data, tmp_path, 20_000, ray=True)
    assert len(digests) == 3
    assert len(set(digests.values())) == 1


def test_a_stopped_run_goes_on_with_another_engine(nodes: Nodes, chats: Path) -> None:
    """Pieces are the same whoever does them; what JSONL says is as well."""
    out = chats.with_name("out.jsonl.gz")

    def stop(done: BatchSummary) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        run_batch(TASK, chats, target=out, workers=1, on_progress=stop)
    found = run_batch(TASK, chats, target=out, engine="ray", workers=2)
    assert 0 < found.resumed_rows < ROWS
    run_batch(TASK, chats, target=chats.with_name("local.jsonl.gz"), workers=1)
    assert _digest(out) == _digest(chats.with_name("local.jsonl.gz"))


def test_a_dataset_of_ones_own_takes_the_kernel(nodes: Nodes, chats: Path) -> None:
    """`map_batches` of Ray Data with the task itself."""
    dataset = ray.data.read_parquet(str(chats)).map_batches(TASK, batch_format="pyarrow", batch_size=100)
    tokens = {row["id"]: row["tokens_after"] for row in dataset.iter_rows()}
    expected = TASK(pq.read_table(chats))
    assert tokens == dict(
        zip(expected.column("id").to_pylist(), expected.column("tokens_after").to_pylist(), strict=True)
    )


def test_columns_that_are_asked_for_are_the_same_ones(nodes: Nodes, chats: Path) -> None:
    """Of a run, and of a data set of one's own."""
    task = replace(TASK, columns=["tokens_after"])
    outs = {engine: chats.with_name(f"{engine}.parquet") for engine in ENGINES}
    for engine, out in outs.items():
        run_batch(task, chats, target=out, engine=engine, workers=1)
    assert _digest(outs["ray"]) == _digest(outs["local"])
    names = ["id", "messages", "tokens_after", "error"]
    assert pq.read_table(outs["ray"]).column_names == names
    dataset = ray.data.read_parquet(str(chats)).map_batches(task, batch_format="pyarrow", batch_size=100)
    assert dataset.schema().names == names


def test_training_rows_are_those_of_one_machine(nodes: Nodes, chats: Path) -> None:
    """Of a run, with the answers that one without the purpose cut; and of a data set of one's own."""
    table = pq.read_table(chats)
    cut = [json.dumps([*chat(at), {"role": "assistant", "content": "y" * at * 9}]) for at in range(ROWS)]
    pq.write_table(table.set_column(1, "messages", [cut]), chats, row_group_size=ROWS // 20)
    for purpose in PURPOSES:
        task = replace(TASK, purpose=purpose)
        outs = {engine: chats.with_name(f"{engine}-{purpose}.parquet") for engine in ENGINES}
        done = {
            engine: run_batch(task, chats, target=out, engine=engine, workers=1)
            for engine, out in outs.items()
        }
        assert _digest(outs["ray"]) == _digest(outs["local"])
        assert done["ray"].errors == done["local"].errors
        assert done["ray"].cut_targets == done["local"].cut_targets
        assert (done["ray"].cut_targets > 0) == (purpose == "requests")
    task = replace(TASK, purpose="training")
    dataset = ray.data.read_parquet(str(chats)).map_batches(task, batch_format="pyarrow", batch_size=100)
    kept = {row["id"]: row["messages"] for row in dataset.iter_rows()}
    expected = task(pq.read_table(chats)).select(["id", "messages"]).to_pylist()
    assert kept == {row["id"]: row["messages"] for row in expected}


def test_what_a_node_refuses_is_the_same_error(nodes: Nodes, chats: Path) -> None:
    """With its words; and a packed file is refused before anything is sent."""
    table = pq.read_table(chats).append_column("other", pa.array([float("nan")] * ROWS))
    pq.write_table(table, chats.with_name("nan.parquet"))
    with pytest.raises(ConfigurationError, match="cannot be written as JSON"):
        run_batch(TASK, chats.with_name("nan.parquet"), target=chats.with_name("out.jsonl"), engine="ray")
    packed = chats.with_name("packed.jsonl.gz")
    packed.write_bytes(gzip.compress(json.dumps(chat(1)).encode()))
    with pytest.raises(ConfigurationError, match="packed file"):
        run_batch(TASK, packed, target=chats.with_name("out.parquet"), engine="ray")


def test_a_node_with_another_version_is_refused_before_it_is_given_work(nodes: Nodes, chats: Path) -> None:
    """Its rows would be others; what a node says it has is what its Python finds first."""
    other = chats.parent / "other" / "trimtab-99.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: trimtab\nVersion: 99.0\n")
    third = nodes.cluster.add_node(
        **nodes.size(), env_vars={"PYTHONPATH": f"{other.parent}:{os.environ['PYTHONPATH']}"}
    )
    with pytest.raises(ConfigurationError, match=r"has trimtab 99\.0, but the run has"):
        run_batch(TASK, chats, target=chats.with_name("out.parquet"), engine="ray")
    nodes.cluster.remove_node(third)


def test_a_path_that_a_node_does_not_see_is_refused(nodes: Nodes, chats: Path) -> None:
    """Here one that only this process has; on a cluster that of a disk of one machine."""
    folder = os.open(chats.parent, os.O_RDONLY)
    here = Path(f"/proc/self/fd/{folder}/{chats.name}")
    with pytest.raises(ConfigurationError, match="does not see /proc/self/fd/"):
        run_batch(TASK, here, target=chats.with_name("out.parquet"), engine="ray")
    os.close(folder)


def test_a_policy_file_is_read_by_the_run_alone(nodes: Nodes, chats: Path, monkeypatch: Any) -> None:
    """Nodes get what it says, and files by their whole path."""
    monkeypatch.chdir(chats.parent)
    Path("policy.toml").write_text(
        'budget = 150\ncounter = "chars:4"\n[[blocks]]\nname = "history"\n', "utf-8"
    )
    task = BatchTask(operation="fit", policy="policy.toml")
    by_ray = run_batch(task, chats.name, target="ray.parquet", engine="ray")
    assert by_ray.errors == run_batch(task, chats.name, target="local.parquet", workers=1).errors
    assert _digest(Path("ray.parquet")) == _digest(Path("local.parquet"))
