"""`run_batch`: files of conversations in, files with results out, once and whole, by one of the engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from os import PathLike, cpu_count, fspath, sep
from pathlib import Path
from typing import Literal, get_args

from trimtab._shared.checks import check_choice, check_whole
from trimtab.batch.arrow import Schema
from trimtab.batch.files import CHUNK_BYTES, Assembly, Form, Job, Unit, form_of, jobs_of, schema_of, units_of
from trimtab.batch.local import Assignment, Engine, LocalEngine
from trimtab.batch.manifest import FailedRow, Manifest, header_of
from trimtab.batch.task import BatchTask
from trimtab.errors import BatchError
from trimtab.replay.policies import read_policy

EngineName = Literal["local", "ray"]
"""What can run a batch."""
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""The names of all engines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """The progress and the result of a run.

    Args:
        rows: Rows that are finished.
        errors: How many of them were set aside, by kind of error.
        first_failed: The first row that was set aside, for each kind of error.
        share: The finished part of the input, from 0 to 1.
        resumed_rows: Rows that an earlier run had finished.
        outputs: The files that were written.
        other_files: Files in the input folder whose kind is unknown. A link to a folder
            counts as one; names that begin with a dot or an underscore do not count.
        cut_targets: Assistant messages that were shortened, except those of weight 0. A model that is trained
            on these learns to write the marker: training data is fitted with `purpose="training"`.
    """

    rows: int = 0
    errors: Mapping[str, int]
    first_failed: Mapping[str, FailedRow] = field(default_factory=dict[str, FailedRow])
    share: float = 0.0
    resumed_rows: int = 0
    outputs: tuple[Path, ...] = ()
    other_files: int = 0
    cut_targets: int = 0

    @property
    def failed_rows(self) -> int:
        """Rows that were set aside."""
        return sum(self.errors.values())


def run_batch(
    task: BatchTask,
    source: str | PathLike[str],
    *,
    target: str | PathLike[str],
    engine: EngineName = "local",
    workers: int | None = None,
    overwrite: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
    on_progress: Callable[[BatchSummary], None] | None = None,
) -> BatchSummary:
    """Do a task for every conversation of files; writes each result once.

    It reads and writes Parquet, one row group at a time, and lines of JSON (`.jsonl`, `.jsonl.gz`,
    `.jsonl.zst`), each a list of messages or a request body. A line is written in its original form, with the
    results next to the messages. Results keep the order of the rows. A file appears in its place once it is
    complete. Until then, finished work is kept in a folder next to the target, `.NAME.trimtab`. If a stopped
    run is started again, it continues from there.

    Args:
        task: What to do with each conversation.
        source: A file, or a folder of them.
        target: A file, or a folder that gets one file for each input file.
        engine: "local": processes on this machine. "ray": Ray Data, on the cluster Ray is connected to.
        workers: Number of processes at a time. None: one per processor of the machine or the cluster.
        overwrite: Whether to overwrite results of an earlier run.
        chunk_bytes: Bytes of lines in one piece of work.
        on_progress: Called after each piece with the summary so far.

    Returns:
        A `BatchSummary`. Rows that cannot be processed are in the results, with their errors.

    Raises:
        ConfigurationError: An option of the task is invalid, a file cannot be read or has no column of
            conversations, the target exists already, or a stopped run had another task.
        MissingExtraError: The extra of `pip install 'trimtab[batch]'`, or `'trimtab[ray]'` for Ray, is not
            installed.
        BatchError: Workers die repeatedly, or the results of a stopped run are damaged: finished work is
            kept. Or an input was changed meanwhile, and the run has to start again.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> chat = '{"id": "a", "messages": [{"role": "user", "content": "What is tea?"}]}'
        >>> _ = (folder / "chats.jsonl").write_text(chat + chr(10))
        >>> task = BatchTask(operation="count", counter="chars:4")
        >>> run_batch(task, folder / "chats.jsonl", target=folder / "counts.jsonl", workers=1).rows
        1
    """
    check_choice("engine", engine, ENGINES)
    workers = None if workers is None else check_whole("workers", workers, least=1)
    chunk_bytes = check_whole("chunk_bytes", chunk_bytes, least=1)
    into_folder = fspath(target).endswith(("/", sep))
    jobs, other_files = jobs_of(Path(source), Path(target), into_folder=into_folder)
    # Before anything is done with the task: what a function keeps in its module is as it was at the start.
    header = header_of(task, jobs, chunk_bytes=chunk_bytes, version=version("trimtab"))
    if isinstance(task.policy, str | PathLike):  # read once: workers and nodes get what it says
        task = replace(task, policy=read_policy(task.policy))
    task.prepare(load=False)  # workers count; here it is enough that they can
    schemas = [schema_of(task, job) for job in jobs]
    given = Path(target)
    place = given.resolve() if given.name in ("", "..") else given.absolute()
    folder = place.with_name(f".{place.name}.trimtab")
    with closing(Manifest.open(folder, header=header, jobs=jobs, overwrite=overwrite)) as manifest:
        run = _Run(task, jobs, schemas, manifest, _engine(engine, workers))
        run.summary = replace(run.summary, other_files=other_files)
        with closing(run.go(units_of(jobs, chunk_bytes=chunk_bytes))) as pieces:
            for _ in pieces:
                if on_progress is not None:
                    on_progress(run.summary)
        manifest.remove()
    return run.summary


def _engine(name: EngineName, workers: int | None) -> Engine:
    if name == "local":
        return LocalEngine(workers or cpu_count() or 1)
    from trimtab.batch.ray_data import RayEngine  # Ray is loaded where it is asked for

    return RayEngine(workers)


class _Run:
    """One run: pieces are given out, and put together in their order."""

    def __init__(
        self,
        task: BatchTask,
        jobs: Sequence[Job],
        schemas: Sequence[Schema],
        manifest: Manifest,
        engine: Engine,
    ) -> None:
        self._task, self._jobs, self._schemas = task, jobs, schemas
        self._manifest, self._engine = manifest, engine
        self._assembly: Assembly | None = None
        self._at = 0
        """The job whose file is put together."""
        self._parts: list[int] = []
        """The pieces in it."""
        self._errors: Counter[str] = Counter()
        self.summary = BatchSummary(errors={}, outputs=tuple(job.output for job in jobs))

    def go(self, units: Iterator[Unit]) -> Generator[None]:
        """Do all of it; goes on where a piece is in its file.

        Raises:
            BatchError: Something cannot be written, or an input was changed meanwhile.
        """
        try:
            for unit, fresh in self._outcomes(units):
                self._move_to(unit.job)
                self._put(unit, fresh=fresh)
                yield
            self._move_to(len(self._jobs))
        except Exception as error:
            # A file that is another one by now lacks pieces, or has others: that it is another is to be said.
            self._manifest.check(path for job in self._jobs[self._at :] for path in job.inputs)
            if not isinstance(error, OSError):
                raise
            where = error.filename or self._manifest.folder
            raise BatchError(f"{where}: {error.strerror or error}; finished work is kept") from error
        finally:
            if self._assembly is not None:
                self._assembly.abandon()

    def _outcomes(self, units: Iterator[Unit]) -> Iterator[tuple[Unit, bool]]:
        """Give pieces in their order as they are done, and whether that was in this run."""
        given: list[Unit] = []

        def rest() -> Iterator[Assignment]:
            for unit in units:
                given.append(unit)
                if not self._manifest.has(unit.index, unit.job):
                    part = self._manifest.part(unit.index)
                    schema = self._schemas[unit.job].serialize().to_pybytes()
                    yield Assignment(unit, part, self._form(unit.job), schema)

        for done in self._engine(self._task, rest()):
            while given[0].index != done.unit:
                yield given.pop(0), False
            self._manifest.check([given[0].path])  # before it counts as done for a run that goes on
            self._manifest.add(done)
            yield given.pop(0), True
        for unit in given:
            yield unit, False

    def _form(self, job: int) -> Form:
        form = form_of(self._jobs[job].output)
        assert form is not None  # jobs have no others
        return form

    def _move_to(self, job: int) -> None:
        """Finish the files of the jobs before this one; one without rows is written, too."""
        while self._at < job:
            if self._at not in self._manifest.outputs:
                self._manifest.check(self._jobs[self._at].inputs)
                self._manifest.put_output(self._at, self._assemble(), self._parts)
                self._assembly = None
            self._parts = []
            self._at += 1

    def _assemble(self) -> Assembly:
        if self._assembly is None:
            self._assembly = Assembly(self._jobs[self._at].output, self._schemas[self._at])
        return self._assembly

    def _put(self, unit: Unit, *, fresh: bool) -> None:
        if unit.job not in self._manifest.outputs:
            self._assemble().add(self._manifest.part(unit.index))
            self._parts.append(unit.index)
        done = self._manifest.done[unit.index]
        self._errors.update(done.errors)
        before = self.summary
        self.summary = replace(
            before,
            rows=before.rows + done.rows,
            errors=dict(sorted(self._errors.items())),
            first_failed=dict(sorted({**done.first, **before.first_failed}.items())),
            share=unit.share,
            resumed_rows=before.resumed_rows + (0 if fresh else done.rows),
            cut_targets=before.cut_targets + done.cut_targets,
        )
