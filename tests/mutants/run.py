"""Run one-token mutants of the decision modules against the tests; all must die (`make mutants`).

    python tests/mutants/run.py [MODULE ...] [--jobs N] [--resume] [--list]

Module by module, each test runs once without a mutant: it must pass, and says how long it takes and which
mutants it comes by. Then each mutant runs in a fork of a process that has collected all tests (forks.py): the
tests that come by it, the shortest and those that killed neighbours first, until one fails. Tests marked long
are asked last, about mutants that no other test kills. A mutant that survives means a test is missing or the
code has no effect. At the end what killed runs once more, without a mutant: what fails then killed nothing.

Who killed a mutant is remembered in tests/mutants/killers.txt, which is part of the repository: that test is
asked first, and alone, before any file is run without a mutant. It is a hint: only a test that fails kills.
So a whole run takes minutes, and hours only where tests or mutants are new.

What cannot be told in a fork is told in a process that imports the package with the mutant in it: a change of
what an import runs, a kill where what is changed ran during import, and, by all tests, each survivor.

What comes out is written to build/mutants.jsonl as it goes; with --resume, what died there is not run again,
nor are tests without a mutant whose files are as they were. Exits 1 if a mutant survives, if a test fails
without one, or if a mutant's text is not found exactly once. It needs a system that can fork.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from compileall import compile_dir
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402  # these need the path set above
from tests.mutants.forks import (
    THE_RUN,
    TOO_LONG,
    Answer,
    Ran,
    Ready,
    Task,
    Worker,
    import_modules,
    module_name,
)
from tests.mutants.mutants import Module, Mutant, mutated
from tests.mutants.rows import MODULES

RESULTS = ROOT / "build" / "mutants.jsonl"
"""A line for each mutant: path, function, old, new, and who killed it (null: nobody)."""

KILLERS = ROOT / "tests" / "mutants" / "killers.txt"
"""A line for each test that killed, and the numbers of the mutants it killed last."""


class Job(NamedTuple):
    """A mutant and the module it is of."""

    module: Module
    mutant: Mutant

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from all others."""
        return (self.module.path, *self.mutant)

    @property
    def number(self) -> int:
        """The same as a number, in this run and in others."""
        return zlib.crc32(repr(self.key).encode())

    @property
    def files(self) -> list[str]:
        """The files of its tests."""
        return list(dict.fromkeys(test.partition("::")[0] for test in self.module.tests))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, and say what survived."""
    asked = _asked(arguments)
    chosen = [module for module in MODULES if not asked.modules or module.path in asked.modules]
    if not chosen:
        print(f"no such module; there are: {', '.join(module.path for module in MODULES)}")
        return 2
    stale = [line for module in chosen for line in _stale(module)]
    print(*stale, sep="\n", end="\n" if stale else "")
    if asked.list:
        print(*(f"{module.path}: {len(module.mutants)} mutants" for module in chosen), sep="\n")
        return bool(stale)
    if not asked.resume:
        RESULTS.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="trimtab-mutants-") as folder:
        failed = Run(Path(folder), chosen).all(asked.jobs)
    return int(bool(failed or stale))


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="paths below src/trimtab; none: all")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="only check that every mutant's text is there")
    parser.add_argument("--resume", action="store_true", help=f"go on with {RESULTS.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def _read_results() -> tuple[dict[tuple[str, ...], str], dict[str, tuple[str, dict[str, Ran]]]]:
    """Read who killed what in the runs before, and what came of the tests of each file without a mutant."""
    killed: dict[tuple[str, ...], str] = {}
    tests: dict[str, tuple[str, dict[str, Ran]]] = {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    for row in map(json.loads, lines):
        if isinstance(row, dict):
            before = tests.get(row["file"], ("", {}))
            ran = {name: Ran(*ran) for name, ran in row["tests"].items()}
            tests[row["file"]] = row["sum"], (before[1] if before[0] == row["sum"] else {}) | ran
        elif row[-1] is not None:
            killed[tuple(row[:-1])] = row[-1]
        else:
            killed.pop(tuple(row[:-1]), None)
    return killed, tests


def _write_result(row: object) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_killers() -> dict[int, str]:
    """Read by the number of each mutant the test that killed it last."""
    lines = KILLERS.read_text(encoding="utf-8").splitlines() if KILLERS.exists() else []
    rows = (line.rpartition(": ") for line in lines)
    return {int(number, 16): name for name, _, numbers in rows for number in numbers.split()}


def write_killers(killed: Mapping[tuple[str, ...], str]) -> None:
    """Remember who killed what, beside what is known of mutants that were not run; others are forgotten."""
    known, numbers = read_killers(), dict[str, list[str]]()
    for job in (Job(module, mutant) for module in MODULES for mutant in module.mutants):
        name = killed.get(job.key, known.get(job.number, ""))
        if "::" in name:  # no run that took too long
            numbers.setdefault(name, []).append(f"{job.number:08x}")
    lines = [f"{name}: {' '.join(sorted(own))}\n" for name, own in sorted(numbers.items())]
    KILLERS.write_text("".join(lines), encoding="utf-8")


def _stale(module: Module) -> list[str]:
    text = (SOURCE / "trimtab" / module.path).read_text(encoding="utf-8")
    return [
        f"{module.path}: not found once in {mutant.function or 'it'}: {mutant.old!r}"
        for mutant in module.mutants
        if mutated(text, mutant) is None
    ]


Talk = Generator[Connection, Any, None]
"""Gives the connection on which its next answer comes, and is sent that."""


Step = Callable[["Slot"], Talk]


class Slot:
    """A copy of the package, and a process that has collected all tests with it."""

    def __init__(self, folder: Path, files: Sequence[str], modules: Sequence[str]) -> None:
        self.folder = folder
        self.unchanged = folder.parent / "unchanged" / "trimtab"
        self.package = folder / "trimtab"
        shutil.copytree(self.unchanged, self.package)
        self.worker = Worker(folder, files, modules)
        self._changes = 0

    @contextmanager
    def change(self, path: str, text: str) -> Iterator[None]:
        """Change a file, for processes that tests start and for those that import it anew."""
        self._changes += 1
        (self.package / path).write_text(text, encoding="utf-8")
        os.utime(self.package / path, (self._changes, self._changes))  # no bytecode was made at that time
        try:
            yield
        finally:
            shutil.copy2(self.unchanged / path, self.package / path)


class Run:
    """One run: what is asked of the tests, what they say without a mutant, and who killed what so far."""

    def __init__(self, folder: Path, modules: Sequence[Module]) -> None:
        self._folder = folder
        self._modules = modules
        self._jobs = [
            Job(module, mutant)
            for module in modules
            for mutant in module.mutants
            if mutated((SOURCE / "trimtab" / module.path).read_text(encoding="utf-8"), mutant) is not None
        ]
        self._killed, self._files = _read_results()
        self._todo = [job for job in self._jobs if job.key not in self._killed]
        self._faults: list[str] = []
        self._kills: dict[str, Counter[str]] = {}
        unchanged = folder / "unchanged" / "trimtab"
        shutil.copytree(SOURCE / "trimtab", unchanged)
        compile_dir(unchanged, quiet=2)
        self._names: list[str] = []
        self._long: frozenset[str] = frozenset()
        paths = dict.fromkeys(job.module.path for job in self._todo)
        self._texts = {path: (unchanged / path).read_text(encoding="utf-8") for path in paths}

    def all(self, jobs: int) -> int:
        """Run all mutants; give the number of those that survived and of what is wrong without one."""
        begin = time.monotonic()
        files = sorted({file for job in self._todo for file in job.files})
        modules = [module_name(path) for path in self._texts]
        slots = [Slot(self._folder / f"slot{at}", files, modules) for at in range(jobs if files else 0)]
        try:
            for slot in slots:
                ready: Ready = slot.worker.connection.recv()
                if ready.failed:
                    print((slot.folder / "log").read_text(encoding="utf-8"))
                    raise RuntimeError(f"{ready.failed} cannot be collected")
                self._names, self._long = list(ready.names), frozenset(ready.long)
                import_modules(ready.others)
            _serve(slots, [partial(self._again, job, killer) for job, killer in self._known()])
            for is_long in (False, True):
                self._by_modules(slots, is_long=is_long)
            killers = sorted({self._killed[job.key] for job in self._todo if job.key in self._killed})
            _serve(slots, [partial(self._acquit, some) for some in _chunks(killers, _MOST_ACQUITTED)])
        finally:
            for slot in slots:
                slot.worker.end()
            write_killers(self._killed)
        return self._say((time.monotonic() - begin) / 60)

    def _by_modules(self, slots: Sequence[Slot], *, is_long: bool) -> None:
        """Ask the short tests about all mutants, or the long ones about those that live."""
        steps: list[Step] = []
        begun: set[str] = set()
        for module in self._modules:
            todo = [job for job in self._todo if job.module is module and job.key not in self._killed]
            asked = dict.fromkeys(file for job in todo for file in job.files if file not in begun)
            begun.update(asked)
            # the tests of a module run beside the mutants of the one before
            _serve(slots, [*(partial(self._probe, file, is_long) for file in asked), *steps])
            steps = [partial(self._one, job, is_long) for job in todo]
        _serve(slots, steps)

    def _known(self) -> Iterator[tuple[Job, str]]:
        """List the mutants whose killer is remembered and still there; those of a file stand together."""
        known, there = read_killers(), frozenset(self._names)
        for job in self._todo:
            killer = known.get(job.number, "")
            if killer in there and killer.partition("::")[0] in job.files:
                yield job, killer

    def _again(self, job: Job, killer: str, slot: Slot) -> Talk:
        """Ask the test that killed a mutant last; one that lives is asked about as if it were new."""
        changed = mutated(self._texts[job.module.path], job.mutant)
        assert changed is not None  # else it is no job
        with slot.change(job.module.path, changed):
            found = yield from _killer(slot, job, changed, {killer: Ran("passed", 1.0, (job.number,))}, {})
        if found is not None:
            self._killed[job.key] = found
            _write_result([*job.key, found])

    def _probe(self, file: str, is_long: bool, slot: Slot) -> Talk:
        """Run the tests of a file without a mutant, and note how long each takes and what it reaches."""
        names = [
            name
            for name in self._names
            if name.partition("::")[0] == file and (name in self._long) is is_long
        ]
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        known = self._files.get(file, ("", {}))
        if known[0] == digest and known[1].keys() >= set(names):
            return
        marks: dict[str, dict[int, Mutant]] = {job.module.path: {} for job in self._todo if file in job.files}
        for job in self._jobs:
            if job.module.path in marks:
                marks[job.module.path][job.number] = job.mutant
        found: dict[str, Ran] = {}
        for asked in (marks, {}):  # a test that counts operations may fail for the marks alone
            slot.worker.connection.send(Task([name for name in names if name not in found], marks=asked))
            answer: Answer = yield slot.worker.connection
            if answer.killer is not None and not asked:
                self._faults.append(f"{file} without a mutant: {answer.killer}")
            found |= {name: ran for name, ran in answer.ran.items() if ran.outcome != "failed" or not asked}
            if found.keys() == set(names):
                break
        self._faults += [
            f"{name} fails without a mutant" for name, ran in found.items() if ran.outcome == "failed"
        ]
        self._files[file] = digest, (known[1] if known[0] == digest else {}) | found
        _write_result(
            {"file": file, "sum": digest, "tests": {name: astuple(ran) for name, ran in found.items()}}
        )

    def _one(self, job: Job, is_long: bool, slot: Slot) -> Talk:
        """Run one mutant and write down what came of it."""
        changed = mutated(self._texts[job.module.path], job.mutant)
        tests = self._order(job, is_long)
        anew = {**self._order(job, False), **tests} if is_long else {}
        if changed is None or not (tests or anew):
            if is_long and not anew:
                self._faults.append(f"no test passes of {' '.join(job.module.tests)}")
            return
        with slot.change(job.module.path, changed):
            killer = yield from _killer(slot, job, changed, tests, anew)
        if killer is not None:
            self._killed[job.key] = killer
            self._kills.setdefault(job.module.path, Counter())[killer] += 1
        _write_result([*job.key, killer])

    def _acquit(self, killers: Sequence[str], slot: Slot) -> Talk:
        """Run what killed once more without a mutant: what fails now, too, has killed nothing."""
        slot.worker.connection.send(Task(killers))
        answer: Answer = yield slot.worker.connection
        for name, ran in answer.ran.items():
            freed = (
                [job for job in self._todo if self._killed.get(job.key) == name]
                if ran.outcome != "passed"
                else []
            )
            for job in freed:
                del self._killed[job.key]
                _write_result([*job.key, None])
            self._faults += (
                [f"{name} fails without a mutant, too, and had killed {len(freed)}"] if freed else []
            )

    def _order(self, job: Job, is_long: bool) -> dict[str, Ran]:
        """List a mutant's tests that pass: those that come by it, the shortest and best killers first."""
        kills = self._kills.get(job.module.path, Counter())
        found = {
            name: ran
            for file in job.files
            for name, ran in self._files.get(file, ("", {}))[1].items()
            if ran.outcome == "passed"
            and (name in self._long) is is_long
            and any(_is_of(name, test) for test in job.module.tests)
        }
        keys = {
            name: (job.number not in ran.reached, ran.seconds / (1 + kills[name]))
            for name, ran in found.items()
        }
        return {name: found[name] for name in sorted(found, key=keys.__getitem__)}

    def _say(self, minutes: float) -> int:
        """Print what came out; give how much of it is wrong."""
        alive = [job for job in self._jobs if job.key not in self._killed]
        for module, mutant in alive:
            print(f"survived in {module.path}: {mutant.function}: {mutant.old!r} -> {mutant.new!r}")
        faults = list(dict.fromkeys(self._faults))
        print(*faults, sep="\n", end="\n" if faults else "")
        dead = [self._killed[job.key] for job in self._jobs if job.key in self._killed]
        print(
            f"{len(dead)} killed ({dead.count(TOO_LONG)} of them because tests did not end),"
            f" {len(alive)} survived; {len(self._todo)} run now, in {minutes:.1f} minutes"
        )
        return len(alive) + len(faults)


def _chunks(names: Sequence[str], most: int) -> list[Sequence[str]]:
    return [names[at : at + most] for at in range(0, len(names), most)]


_MOST_ACQUITTED = 100
"""Tests that run in one fork without a mutant at the end."""


def _is_of(name: str, spec: str) -> bool:
    """Whether a test is the one that is named, or of the file or test that is."""
    return name == spec or name.startswith((f"{spec}::", f"{spec}["))


def _killer(
    slot: Slot, job: Job, changed: str, tests: Mapping[str, Ran], anew: Mapping[str, Ran]
) -> Generator[Connection, Any, str | None]:
    """Run tests with a mutant until one fails, those that reach it first; give its name.

    Where that tells nothing for sure, all those of `anew` run in a process that imports the package with it;
    if there are none, all tests do, unless they let it live here: then it is asked about again.
    """
    seconds = {name: ran.seconds for name, ran in tests.items()}
    reaching = [name for name, ran in tests.items() if job.number in ran.reached]
    answer = Answer()
    for names in (reaching, [name for name in tests if name not in reaching]) if reaching else ():
        slot.worker.connection.send(Task(names, job.module.path, changed, seconds=seconds))
        answer = yield slot.worker.connection
        if answer.killer in seconds and not answer.is_sure:
            killer = yield from _anew(slot, [answer.killer], seconds)
            if killer is not None:
                return killer
        elif answer.killer is not None and answer.killer != THE_RUN and answer.is_sure:
            return answer.killer
        if answer.killer is not None or not answer.is_sure or not answer.fits:
            break
    else:
        if reaching:
            return None
    if reaching and answer.fits and answer.killer is None and not anew:
        return None
    anew = anew or tests
    return (yield from _anew(slot, list(anew), {name: ran.seconds for name, ran in anew.items()}))


def _anew(
    slot: Slot, names: Sequence[str], seconds: Mapping[str, float]
) -> Generator[Connection, Any, str | None]:
    """Run tests in a process that imports the package as it is on the disk now; give who kills."""
    worker = Worker(slot.folder, sorted({name.partition("::")[0] for name in names}), ends=True)
    try:
        ready = yield worker.connection
        if not isinstance(ready, Ready) or ready.failed is not None:
            return THE_RUN if ready is None else ready.failed
        worker.connection.send(Task(names, seconds=seconds))
        answer = yield worker.connection
        return THE_RUN if answer is None else answer.killer
    finally:
        worker.end()


def _serve(slots: Sequence[Slot], begins: Iterable[Step]) -> None:
    """Let every slot do one thing after the other, until all is done."""
    waiting = iter(begins)
    busy: dict[Connection, tuple[Slot, Talk]] = {}

    def go_on(slot: Slot, talk: Talk | None, answer: Any) -> None:
        while talk is not None or (begin := next(waiting, None)) is not None:
            talk = talk or begin(slot)
            try:
                busy[talk.send(answer)] = slot, talk
            except StopIteration:
                talk = answer = None
            else:
                return

    for slot in slots:
        go_on(slot, None, None)
    while busy:
        for connection in wait(list(busy)):
            slot, talk = busy.pop(connection)
            try:
                answer = connection.recv()
            except EOFError:  # the process ended: a mutant did that while it was imported
                if connection is slot.worker.connection:
                    raise RuntimeError((slot.folder / "log").read_text(encoding="utf-8")) from None
                answer = None
            go_on(slot, talk, answer)


if __name__ == "__main__":
    sys.exit(main())
