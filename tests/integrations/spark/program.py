"""What users of Spark write with trimtab's kernel, for the type checkers: the recipe of docs/batch.md."""

from __future__ import annotations

from typing import Any

from trimtab.batch import BatchTask

task = BatchTask(operation="fit", budget=150, counter="chars:4")


def fit_frame(frame: Any, task: BatchTask) -> Any:
    """Fit the conversations of a DataFrame of PySpark; its columns come back with the results behind them."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema = from_arrow_schema(task.schema(to_arrow_schema(frame.schema)))
    return frame.mapInArrow(task.batches, schema)
