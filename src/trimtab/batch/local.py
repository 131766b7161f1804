"""The engine for one machine: worker processes, each with its own tokenizer, over pieces in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trimtab._shared.workers import MOST_DEATHS, Workers, WorkersLostError
from trimtab.batch.arrow import pyarrow
from trimtab.batch.files import Form, Unit, do_unit, write_part
from trimtab.batch.manifest import Done, FailedRow
from trimtab.batch.task import BatchTask, take_tally
from trimtab.errors import BatchError


@dataclass(frozen=True, slots=True)
class Assignment:
    """A piece of work, the place of its result, and how that is written; plain data for another process."""

    unit: Unit
    part: Path
    form: Form
    schema: bytes
    """Of the file it goes into, as Arrow writes it: the run may know types that a worker does not."""


def carry_out(task: BatchTask, asked: Assignment, /) -> Done:
    """Do a piece of work and put its result in its place; doing it twice gives the same bytes."""
    schema = pyarrow().ipc.read_schema(pyarrow().py_buffer(asked.schema))
    take_tally(task)  # of a piece that failed
    table, data = do_unit(task, asked.unit, asked.form, schema)
    write_part(asked.part, data)
    compute, column = pyarrow("pyarrow.compute"), table.column(f"{task.prefix}error")
    # The type alone: what a row was, which is beside it, may be long.
    kinds = compute.struct_field(column, "type").to_pylist()
    first = {kind: kinds.index(kind) for kind in sorted({*kinds} - {None})}
    return Done(
        unit=asked.unit.index,
        rows=table.num_rows,
        errors={kind: kinds.count(kind) for kind in first},
        first={kind: _row_of(column[at].as_py()) for kind, at in first.items()},
        cut_targets=take_tally(task).get("cut_targets", 0),
    )


def _row_of(error: Mapping[str, Any]) -> FailedRow:
    message = str(error["message"])
    cut = message if len(message) <= _MOST_CHARS else message[: _MOST_CHARS - 1] + "…"
    return FailedRow(error["file"], error["row"], cut)


_MOST_CHARS = 300
"""Characters of the message of an error that are told in a summary."""


Engine = Callable[[BatchTask, Iterable[Assignment]], Iterator[Done]]
"""Carries out pieces of work, and gives what became of each, in their order."""


def _worker(task: BatchTask) -> Callable[[Assignment], Done]:
    return partial(carry_out, task)


class LocalEngine:
    """Worker processes on this machine; one that is killed is replaced, and what it did is done again."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def __call__(self, task: BatchTask, work: Iterable[Assignment], /) -> Iterator[Done]:
        """Carry out all of it; no more than a few pieces are on their way at one time.

        Raises:
            BatchError: Workers die and nothing gets done.
        """
        try:
            yield from Workers[Assignment, Done](self._workers, _worker, task)(work)
        except WorkersLostError as error:
            raise BatchError(_reason_for(error.piece)) from error


def _reason_for(piece: Assignment | None) -> str:
    if piece is None:
        return "worker processes end as soon as they begin: is there memory enough?"
    return (
        f"workers died {MOST_DEATHS} times at rows from {piece.unit.first_row:,} on of {piece.unit.path}:"
        " a row needs more memory than there is, or kills what reads it; give fewer workers, or smaller row"
        " groups"
    )
