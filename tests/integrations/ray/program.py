"""What users of Ray write with trimtab's kernel, for the type checkers."""

from __future__ import annotations

from typing import Any

from trimtab.batch import BatchSummary, BatchTask, run_batch

task = BatchTask(operation="fit", budget=8_000, counter="chars:4")


def fit_dataset(dataset: Any) -> Any:
    """Fit a dataset of one's own."""
    return dataset.map_batches(task, batch_format="pyarrow", batch_size=1_000)


def fit_files(source: str, target: str) -> BatchSummary:
    """Fit files on the cluster that is connected."""
    return run_batch(task, source, target=target, engine="ray", workers=16)
