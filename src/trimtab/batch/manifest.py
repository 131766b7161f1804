"""What of a run is done: pieces of its results and a list of them, so that a stopped run goes on."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from os.path import lexists
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from trimtab.batch.files import Assembly, Job
from trimtab.batch.fingerprint import fingerprint
from trimtab.batch.task import BatchTask
from trimtab.errors import (
    BatchError,
    ConfigurationError,
    option,
    phrase,
)
from trimtab.policy import read_file
from trimtab.replay.policies import is_file

_LIST = "manifest.jsonl"


class FailedRow(NamedTuple):
    """A row that was set aside.

    Args:
        file: The file of the row.
        row: The row's number in the file, from 1.
        message: The reason, in at most 300 characters.
    """

    file: str | None
    """The file of the row."""
    row: int
    """The row's number in the file, from 1."""
    message: str
    """The reason, in at most 300 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of one piece of work.

    Args:
        rows: Rows there were.
        errors: How many were set aside, by the kind of error.
        first: The first of each kind.
        cut_targets: Assistant messages that were shortened, except those of weight 0.
    """

    unit: int
    rows: int
    errors: Mapping[str, int] = field(default_factory=dict[str, int])
    first: Mapping[str, FailedRow] = field(default_factory=dict[str, FailedRow])
    cut_targets: int = 0

    @classmethod
    def read(cls, line: Mapping[str, Any], /) -> Self:
        """Read what was written of it."""
        first = {kind: FailedRow(*told) for kind, told in line.get("first", {}).items()}
        return cls(
            unit=line["unit"],
            rows=line["rows"],
            errors=line["errors"],
            first=first,
            cut_targets=line.get("cut_targets", 0),
        )


class Manifest:
    """The folder beside the target in which a run keeps what is done, until all of it is.

    A piece is written under another name and moved to its place; then its line goes into the list. A piece
    without a line, or a line without its end, was not done. The list is locked while a run has it open.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        self.folder = folder
        self._header = header
        self._inputs = {tuple(state) for state in header["files"]}
        self.done: dict[int, Done] = {}
        self.outputs: set[int] = set()
        """Jobs whose file is in its place."""
        self._holds_entries = True  # until the list is read: it may be of a run that was stopped
        folder.mkdir(parents=True, exist_ok=True)
        self._list = (folder / _LIST).open("ab")
        try:
            _lock(self._list)
        except BlockingIOError:
            self._list.close()
            raise

    @classmethod
    def open(cls, folder: Path, *, header: Mapping[str, Any], jobs: Sequence[Job], overwrite: bool) -> Self:
        """Go on with what another run began, or begin.

        Raises:
            ConfigurationError: That run read or did something else, or is under way; or what would be written
                is there.
        """
        try:
            manifest = cls(folder, header)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"another run into {folder.name[1:].removesuffix('.trimtab')} is in progress: wait for its"
                " end, or choose another target"
            ) from error
        except OSError as error:
            raise ConfigurationError(f"{folder}: {error.strerror or error}") from error
        try:
            manifest.read(jobs=jobs, overwrite=overwrite)
        except BaseException:
            manifest.close()
            raise
        return manifest

    def read(self, *, jobs: Sequence[Job], overwrite: bool) -> None:
        """Read what is done, and begin the list where nothing is."""
        path, header = self.folder / _LIST, self._header
        lines = _whole_lines(path)
        self._holds_entries = bool(lines[1:])
        if lines[1:] and lines[0] != header:
            raise ConfigurationError(
                f"{self.folder} contains a stopped run with other {_difference(lines[0], header)}: run it"
                " again unchanged, or remove the folder"
            )
        outputs = {
            line["output"]
            for line in lines[1:]
            if "output" in line and _mark(jobs[line["output"]].output) == line.get("mark")
        }
        there = [job.output for at, job in enumerate(jobs) if at not in outputs and lexists(job.output)]
        if there and not overwrite:
            raise ConfigurationError(
                phrase(
                    f"{there[0]} exists already: pass another name, or overwrite it with ",
                    option("overwrite", True),
                )
            )
        entries = lines if lines[1:] else [header]
        whole = b"".join(map(_line, entries))
        if path.read_bytes() != whole:
            path.write_bytes(whole)
        self.done.update((line["unit"], Done.read(line)) for line in entries[1:] if "unit" in line)
        self.outputs.update(outputs)

    def check(self, inputs: Iterable[Path], /) -> None:
        """Make sure that inputs are what they were when the run began.

        Raises:
            BatchError: One was changed or replaced.
        """
        for path in inputs:
            if tuple(_state(path)) not in self._inputs:
                over = (", with ", option("overwrite", True), ",") if self.outputs else ()
                raise BatchError(
                    phrase(
                        f"{path} was changed or removed during the run, so its results are not written:"
                        f" remove {self.folder} and start again",
                        *over,
                        " when no other program writes to the file",
                    )
                )

    def part(self, index: int, /) -> Path:
        """Give the place of a piece."""
        return self.folder / f"part-{index:08d}"

    def has(self, index: int, job: int, /) -> bool:
        """Tell whether a piece is done, and there or in its file already."""
        return index in self.done and (job in self.outputs or self.part(index).exists())

    def add(self, done: Done, /) -> None:
        """Write that a piece is done."""
        self.done[done.unit] = done
        self._append(asdict(done))

    def put_output(self, number: int, assembly: Assembly, parts: Sequence[int], /) -> None:
        """Put a file into its place, and take away the pieces it is made of.

        That it is there is written before: the mark tells it from another file of its name.
        """
        self._append({"output": number, "mark": _mark(assembly.finish())})
        assembly.place()
        self.outputs.add(number)
        for index in parts:
            self.part(index).unlink(missing_ok=True)

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._list.write(_line(entry))
        self._holds_entries = True
        self._list.flush()
        os.fsync(self._list.fileno())

    def close(self) -> None:
        """Let go of the list; where nothing was done by this run or another, nothing remains of it."""
        self._list.close()
        if not self._holds_entries and [*self.folder.iterdir()] == [self.folder / _LIST]:
            self.remove()

    def remove(self) -> None:
        """Take the folder away: everything is where it belongs."""
        self._list.close()
        shutil.rmtree(self.folder)


def _lock(file: IO[bytes]) -> None:
    """Keep other runs from a file while it is open, on systems and disks that have locks.

    Raises:
        BlockingIOError: Another run has it.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a disk without locks
        return


def _mark(file: Path) -> list[int]:
    """Give what tells a file from others that come to its place; one that is not there has none."""
    try:
        found = file.stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _state(file: Path) -> list[str | int]:
    """Give what tells an input from what it was at another time."""
    return [str(file.resolve()), *_mark(file)]


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Say in which words the headers of two runs differ."""
    changed = [key for key in new if old.get(key) != new[key]]
    if "options" in changed:
        options = [name for name, told in new["options"].items() if old.get("options", {}).get(name) != told]
        changed[changed.index("options")] = f"options ({', '.join(options)})"
    return " and ".join(changed)


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n"


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Read the entries of a list; one that was being written when its run ended is none."""
    if not lexists(path):
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    try:
        return [json.loads(line) for line in whole.split(b"\n") if line]
    except ValueError as error:
        raise ConfigurationError(f"{path} is not the manifest of a run: remove its folder") from error


def header_of(task: BatchTask, jobs: Sequence[Job], /, *, chunk_bytes: int, version: str) -> dict[str, Any]:
    """Say what a run does with what: one that goes on has to be the same.

    Raises:
        ConfigurationError: An option cannot be handed to another process.
    """
    options = task.options()
    try:
        pickle.dumps(options)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"the task cannot be sent to another process ({error}): define your own functions and classes at"
            " the top of a module"
        ) from error
    if isinstance(task.policy, str | PathLike) and is_file(task.policy):
        options["policy"] = read_file(task.policy)
    return {
        "version": version,
        "options": {name: fingerprint(value) for name, value in options.items()},
        "files": [_state(path) for job in jobs for path in job.inputs],
        "outputs": [job.output.name for job in jobs],
        "chunk_bytes": chunk_bytes,
    }
