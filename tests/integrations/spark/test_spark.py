"""The recipe for Spark, on a Spark of this machine: rows are those of the kernel, whatever the partitions."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark runs on Java, and there is none", allow_module_level=True)

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.integrations.spark.program import fit_frame, task
from trimtab.batch import BatchTask
from trimtab.errors import ConfigurationError

ROWS = 600


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a Spark of two workers, and end it."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield session
    session.stop()


def chat(at: int) -> list[dict[str, Any]]:
    """Make a conversation of its own, some too large for the budget."""
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"{at} {n} " * 12} for n in range(2 + at % 17)]
    return [*turns, {"role": "user", "content": "x" * (900 if at % 50 == 0 else 9)}]


def _table() -> pa.Table:
    texts = ["none" if at == 77 else json.dumps(chat(at)) for at in range(ROWS)]
    return pa.table({"id": [f"c-{at:03d}" for at in range(ROWS)], "messages": texts})


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """List rows by their ids, without their numbers, which are those of a partition."""
    rows: list[dict[str, Any]] = table.sort_by("id").to_pylist(maps_as_pydicts="strict")
    return [{**row, "error": row["error"] and {**row["error"], "row": None}} for row in rows]


@pytest.mark.parametrize("nested", [False, True], ids=["text", "nested"])
def test_a_frame_is_fitted_as_the_kernel_does(spark: SparkSession, tmp_path: Path, nested: bool) -> None:
    """Every row once, those that are set aside as well; text and nested columns come back in their type."""
    table = _table()
    if nested:
        table = pa.table({"id": table["id"], "messages": [chat(at) for at in range(ROWS)]})
    pq.write_table(table, tmp_path / "chats.parquet", row_group_size=100)
    frame = spark.read.parquet(str(tmp_path / "chats.parquet")).repartition(5)
    fitted = fit_frame(frame, task)
    assert fitted.schema["messages"].dataType == frame.schema["messages"].dataType
    fitted.write.parquet(str(tmp_path / "out"))
    found, expected = pq.read_table(tmp_path / "out"), task(table)
    assert found.num_rows == ROWS
    assert _rows(found) == _rows(expected)
    assert ROWS - found.column("error").null_count == (12 if nested else 13)


def test_a_frame_of_training_data_is_fitted_as_the_kernel_does(spark: SparkSession) -> None:
    """Whole turns leave, and tools in a column of their own are charged."""
    training = replace(task, purpose="training")
    names = ["id", "messages", "tools"]
    tools = json.dumps([{"type": "function", "function": {"name": "f", "description": "y" * 99}}])
    rows = [(row["id"], row["messages"], tools) for row in _table().to_pylist()]
    found = fit_frame(spark.createDataFrame(rows, names).repartition(5), training).toArrow()
    expected = training(pa.table([list(column) for column in zip(*rows, strict=True)], names=names))
    assert _rows(found) == _rows(expected)
    kept = [json.loads(row["messages"]) for row in _rows(found) if row["error"] is None]
    assert 0 < len(kept) < ROWS
    assert {messages[-1]["role"] for messages in kept} == {"assistant"}


def test_a_row_that_is_set_aside_has_its_number_in_its_partition(spark: SparkSession) -> None:
    """In one partition that is its place, in however many batches Spark hands it over."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    frame = spark.createDataFrame(
        [(row["id"], row["messages"]) for row in _table().to_pylist()], ["id", "messages"]
    )
    count = BatchTask(operation="count", counter="chars:4")
    errors = (
        fit_frame(frame.coalesce(1), count).where("error is not null").select("id", "error.row").collect()
    )
    assert [(row["id"], row["row"]) for row in errors] == [("c-077", 78)]


def test_what_is_wrong_with_a_frame_is_said_before_spark_runs(spark: SparkSession) -> None:
    """By the schema alone."""
    with pytest.raises(ConfigurationError, match="no column 'messages'"):
        fit_frame(spark.createDataFrame([("a",)], ["text"]), task)
