"""The engine for a cluster: the same pieces of work by `map_batches` of Ray Data.

Ray runs a piece again whose node was lost. Results are files of a folder that all nodes see, so that a piece
done twice is there once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType

from trimtab._shared.lazy import package_of
from trimtab.batch.arrow import Table, pyarrow
from trimtab.batch.local import Assignment, carry_out
from trimtab.batch.manifest import Done
from trimtab.batch.task import BatchTask
from trimtab.counting.tokenizers import distributions
from trimtab.errors import BatchError, ConfigurationError, ContextError


class RayEngine:
    """Pieces of work as blocks of a Ray dataset, on the cluster that is connected, or one of this machine."""

    def __init__(self, workers: int | None) -> None:
        self._workers = workers

    def __call__(self, task: BatchTask, work: Iterable[Assignment], /) -> Iterator[Done]:
        """Carry out all of it; what is done out of turn waits until its turn comes.

        Raises:
            ConfigurationError: A piece is of a packed file, which has to be read from its front on; or a node
                lacks something, or does not see the files.
            MissingExtraError: Ray is not installed.
            BatchError: Ray gave up.
        """
        ray = package_of("ray", package="ray", needed_by="the engine 'ray'")
        data = import_module("ray.data")
        asked: list[Assignment] = []
        for one in work:
            if one.unit.data is not None:
                raise ConfigurationError(
                    f"{one.unit.path}: the nodes of a cluster cannot read parts of a compressed file:"
                    " decompress it, convert it to Parquet, or use the engine 'local'"
                )
            asked.append(replace(one, unit=replace(one.unit, path=one.unit.path.absolute())))
        if not asked:
            return
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
            data.DataContext.get_current().enable_progress_bars = False
        _check_nodes(ray, asked)
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
            f"Ray gave up: {str(error).strip().splitlines()[-1]}; finished work is kept"
        ) from error


_PACKAGES = ("trimtab", "pyarrow", "regex", *distributions())
"""What results depend on: every node has what the run itself has."""
_ANSWER_SECONDS = 120


def _check_nodes(ray: ModuleType, asked: Sequence[Assignment]) -> None:
    """Ask every node what it has and sees, before any is given work; one that does not answer gets some, too.

    Raises:
        ConfigurationError: One has another version of something, or does not see a file or the folder of
            results.
    """
    folder, inputs = asked[0].part.parent, dict.fromkeys(str(one.unit.path) for one in asked)
    paths = (str(folder), *inputs)
    look = _look()
    here, _ = look(_PACKAGES, ())
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(look)
    alive = [node for node in ray.nodes() if node["Alive"]]
    answers = {
        task.options(
            num_cpus=0, scheduling_strategy=affinity(node["NodeID"], soft=False), max_retries=0
        ).remote(_PACKAGES, paths): node["NodeManagerAddress"]
        for node in alive
    }
    came, _ = ray.wait(list(answers), num_returns=len(answers), timeout=_ANSWER_SECONDS)
    for answer in came:
        try:
            there, unseen = ray.get(answer)
        except ray.exceptions.RayError:
            continue  # a node that was lost meanwhile gets no work either
        other = [name for name in _PACKAGES if there[name] != here[name]]
        if other:
            name = other[0]
            raise ConfigurationError(
                f"node {answers[answer]} has {name} {there[name] or 'not installed'}, but the run has"
                f" {here[name] or 'none'}: results would depend on the node; install the same version on"
                " all nodes"
            )
        if unseen:
            raise ConfigurationError(
                f"node {answers[answer]} does not see {unseen[0]}: input and target must be on storage that"
                " every node has under the same path"
            )


def _look() -> Callable[[Sequence[str], Sequence[str]], tuple[dict[str, str], list[str]]]:
    """Make the question to a node.

    A function in a function travels as its code, so that a node without trimtab can answer as well.
    """

    def look(packages: Sequence[str], paths: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        import importlib.metadata as installed
        import os.path

        versions: dict[str, str] = {}
        for one in installed.distributions():  # of two the first counts, as for an import
            versions.setdefault(one.metadata["Name"].replace("_", "-").lower(), one.version)
        found = {name: versions.get(name, "") for name in packages}
        return found, [path for path in paths if not os.path.exists(path)]

    return look


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
