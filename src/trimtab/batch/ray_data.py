"""The engine for a cluster: the same pieces of work by `map_batches` of Ray Data.

Ray runs a piece again whose node was lost. Results are files of a folder that all nodes see, so that a piece
done twice is there once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType

from trimtab._shared.lazy import package_of
from trimtab.batch.arrow import Table, pyarrow
from trimtab.batch.local import Assignment, carry_out
from trimtab.batch.manifest import Done
from trimtab.batch.task import BatchTask
from trimtab.errors import BatchError, ConfigurationError, ContextError


class RayEngine:
    """Pieces of work as blocks of a Ray dataset, on the cluster that is connected, or one of this machine."""

    def __init__(self, workers: int | None) -> None:
        self._workers = workers

    def __call__(self, task: BatchTask, work: Iterable[Assignment], /) -> Iterator[Done]:
        """Carry out all of it; what is done out of turn waits until its turn comes.

        Raises:
            ConfigurationError: A piece is of a packed file, which has to be read from its front on.
            MissingExtraError: Ray is not installed.
            BatchError: Ray gave up.
        """
        ray = package_of("ray", package="ray", needed_by="the engine 'ray'")
        data = import_module("ray.data")
        asked: list[Assignment] = []
        for one in work:
            if one.unit.data is not None:
                raise ConfigurationError(
                    f"{one.unit.path}: nodes of a cluster cannot each read a piece of a packed file: unpack"
                    " it, write Parquet, or use the engine 'local'"
                )
            asked.append(one)
        if not asked:
            return
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
            data.DataContext.get_current().enable_progress_bars = False
        waiting: dict[int, Done] = {}
        order = [one.unit.index for one in asked]
        for done in _carry_out_by(ray, data, task, asked, self._workers):
            waiting[done.unit] = done
            while order and order[0] in waiting:
                yield waiting.pop(order.pop(0))


def _carry_out_by(
    ray: ModuleType, data: ModuleType, task: BatchTask, asked: list[Assignment], workers: int | None
) -> Iterator[Done]:
    """Let Ray do it; in the order in which pieces get done.

    Raises:
        ContextError: What a node met.
        BatchError: Ray gave up.
    """
    places = data.from_items([{"at": at} for at in range(len(asked))], override_num_blocks=len(asked))
    rows = places.map_batches(
        _Piece(task, asked), batch_size=None, batch_format="pyarrow", num_cpus=1, concurrency=workers
    )
    try:
        for row in rows.iter_rows():
            came = pickle.loads(row["done"])
            if isinstance(came, ContextError):
                raise came
            yield came
    except ray.exceptions.RayError as error:
        raise BatchError(
            f"Ray gave up: {str(error).strip().splitlines()[-1]}; what is done is kept"
        ) from error


class _Piece:
    """What a node does with the number of a piece."""

    def __init__(self, task: BatchTask, asked: list[Assignment]) -> None:
        self._task, self._asked = task, asked

    def __call__(self, batch: Table) -> Table:
        done = [pickle.dumps(self._do(at)) for at in batch.column("at").to_pylist()]
        return pyarrow().table({"done": pyarrow().array(done, pyarrow().binary())})

    def _do(self, at: int) -> Done | ContextError:
        """Do one; an error of ours is handed over as it is, since Ray would wrap it."""
        try:
            return carry_out(self._task, self._asked[at])
        except ContextError as error:
            return error
