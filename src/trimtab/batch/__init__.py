"""Batches: whole data sets of conversations fitted, counted, checked or replayed, on one machine or many.

The core works on Arrow tables and is independent of the engine; `run_batch` reads and writes files. Needs
extra `batch`.
"""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.batch.manifest import FailedRow
from trimtab.batch.rows import OPERATIONS, PURPOSES, Operation, Purpose
from trimtab.batch.run import ENGINES, BatchSummary, EngineName, run_batch
from trimtab.batch.task import BatchTask, count_table, fit_table, validate_table

__all__ = [
    "ENGINES",
    "OPERATIONS",
    "PURPOSES",
    "BatchSummary",
    "BatchTask",
    "EngineName",
    "FailedRow",
    "Operation",
    "Purpose",
    "count_table",
    "fit_table",
    "run_batch",
    "validate_table",
]

__dir__ = public_dir(globals())
