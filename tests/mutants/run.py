"""Run one-token mutants of the decision modules against the tests; all must die (`make mutants`).

    python tests/mutants/run.py [MODULE ...] [--jobs N] [--resume] [--list]

The package is copied and compiled once. For each mutant that copy is copied, one place in one module is
changed, and a few test files run against it until the first failure, the tests that killed other mutants
of the module first. A mutant that survives means a test is missing or the code has no effect. At the end
every test that killed runs on the unchanged copy: one that fails there has killed nothing.

What comes out is written to build/mutants.jsonl as it goes; with --resume, what died there is not run
again. Exits 1 if one survives, or if a mutant's text is not found exactly once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402  # these need the path set above
from tests.mutants.baseline import BASELINE
from tests.mutants.contexts import CONTEXTS
from tests.mutants.front import FRONT
from tests.mutants.kernel import KERNEL
from tests.mutants.models import MODELS
from tests.mutants.mutants import Module, Mutant, mutated
from tests.mutants.near import NEAR
from tests.mutants.reading import READING
from tests.mutants.replay import REPLAY
from tests.mutants.responses import RESPONSES
from tests.mutants.servers import SERVERS
from tests.mutants.sessions import SESSIONS
from tests.mutants.stores import STORES
from tests.mutants.strategies import STRATEGIES
from tests.mutants.summaries import SUMMARIES

SERVICES = (*STORES, *SERVERS, *SESSIONS, *BASELINE)
ENGINE = (*KERNEL, *READING, *RESPONSES, *FRONT)
MODULES = (*ENGINE, *CONTEXTS, *STRATEGIES, *SUMMARIES, *MODELS, *SERVICES, *REPLAY, *NEAR)

RESULTS = ROOT / "build" / "mutants.jsonl"
"""A line for each mutant: path, function, old, new, and who killed it (null: nobody)."""

SECONDS = 120
"""A mutant that makes the tests run so long is as good as dead: it loops."""

TOO_LONG = "(too long)"
"""Stands for the test that killed where time did."""


class Job(NamedTuple):
    """A mutant and the module it is of."""

    module: Module
    mutant: Mutant

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from all others."""
        return (self.module.path, *self.mutant)


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
    with tempfile.TemporaryDirectory(prefix="trimtab-mutants-") as folder:
        failed = Run(Path(folder), _killed_before() if asked.resume else {}).all_of(chosen, asked.jobs)
    return int(bool(failed or stale))


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="paths below src/trimtab; none: all")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="only check that every mutant's text is there")
    parser.add_argument("--resume", action="store_true", help=f"go on with {RESULTS.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def _killed_before() -> dict[tuple[str, ...], str]:
    """Read who killed what in the runs before; none if there is no file."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {tuple(key): killer for *key, killer in rows if killer is not None}


def _stale(module: Module) -> list[str]:
    text = (SOURCE / "trimtab" / module.path).read_text(encoding="utf-8")
    return [
        f"{module.path}: not found once in {mutant.function or 'it'}: {mutant.old!r}"
        for mutant in module.mutants
        if mutated(text, mutant) is None
    ]


class Run:
    """One run: the copy of the package it began with, and who killed what so far."""

    def __init__(self, folder: Path, killed: dict[tuple[str, ...], str]) -> None:
        self._folder = folder
        self._package = folder / "unchanged" / "trimtab"
        self._killed = killed
        self._lock = threading.Lock()
        shutil.copytree(SOURCE / "trimtab", self._package)
        compile_dir(self._package, quiet=2)
        RESULTS.parent.mkdir(exist_ok=True)
        if not killed:
            RESULTS.write_text("", encoding="utf-8")

    def all_of(self, modules: Sequence[Module], jobs: int) -> int:
        """Run the mutants of some modules; give the number of those that survived or died of nothing."""
        listed = [Job(module, mutant) for module in modules for mutant in module.mutants]
        todo = [job for job in listed if job.key not in self._killed]
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            ran = [job for job, there in zip(todo, pool.map(self._one, todo), strict=True) if there]
        alive = [job for job in ran if job.key not in self._killed]
        dead = {job.key: self._killed[job.key] for job in listed if job.key in self._killed}
        innocent = self._fail_unchanged(modules, set(dead.values()) - {TOO_LONG})
        for module, mutant in alive:
            print(f"survived in {module.path}: {mutant.function}: {mutant.old!r} -> {mutant.new!r}")
        for name, count in Counter(dead.values()).items():
            if name in innocent:
                print(f"{name} fails without a mutant, too, and had killed {count}")
        slow = sum(killer == TOO_LONG for killer in dead.values())
        print(
            f"{len(dead)} killed ({slow} of them ran for {SECONDS} s), {len(alive)} survived;"
            f" {len(ran)} run now"
        )
        return len(alive) + len(innocent)

    def _one(self, job: Job) -> bool:
        """Run one mutant and write down what came of it; False if its text is not there."""
        text = (self._package / job.module.path).read_text(encoding="utf-8")
        changed = mutated(text, job.mutant)
        if changed is None:
            return False
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            copy = Path(folder, "trimtab")
            shutil.copytree(self._package, copy)
            path = copy / job.module.path
            path.write_text(changed, encoding="utf-8")
            os.utime(path, (0, 0))  # not the time its bytecode was made for: it is compiled anew
            killers = Counter(name for key, name in tuple(self._killed.items()) if key[0] == job.module.path)
            killed = self._pytest(folder, job.module.tests, [name for name, _ in killers.most_common()])
        killer = killed[0] if killed else None
        with self._lock, RESULTS.open("a", encoding="utf-8") as file:
            if killer is not None:
                self._killed[job.key] = killer
            file.write(json.dumps([*job.key, killer]) + "\n")
        return True

    def _fail_unchanged(self, modules: Sequence[Module], killers: set[str]) -> set[str]:
        """Run the tests that killed on the unchanged package, and give those that fail."""
        files = {name.partition("::")[0] for name in killers}
        tests = {test for module in modules for test in module.tests}
        asked = sorted(test for test in tests if test.partition("::")[0] in files)
        found = [
            self._pytest(str(self._package.parent), [test], sorted(killers), only=True) for test in asked
        ]
        return {name for names in found for name in names}

    def _pytest(
        self, folder: str, tests: Sequence[str], killers: Sequence[str], *, only: bool = False
    ) -> list[str]:
        """Run tests on the package in a folder, killers first or alone; give the names of those that fail."""
        with tempfile.TemporaryDirectory(dir=self._folder) as notes:
            first, killed = Path(notes, "first"), Path(notes, "killed")
            first.write_text("\n".join(killers), encoding="utf-8")
            environment = {
                **os.environ,
                "PYTHONPATH": folder,
                "PYTHONDONTWRITEBYTECODE": "",
                "HYPOTHESIS_PROFILE": "ci",
                "CI": "",
                "TRIMTAB_KILLERS": str(first),
                "TRIMTAB_KILLERS_ONLY": "1" if only else "",
                "TRIMTAB_KILLED": str(killed),
            }
            command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
            command += ["-p", "tests.mutants.order", *([] if only else ["-x"]), *tests]
            seconds = None if only else SECONDS
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds
                )
            except subprocess.TimeoutExpired:
                return [TOO_LONG]
            if done.returncode not in ((0, 1, 2, 5) if only else (0, 1, 2)):
                raise RuntimeError(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
            names = killed.read_text(encoding="utf-8").splitlines() if killed.exists() else []
            return names if done.returncode in (0, 5) or names else ["(the run itself)"]


if __name__ == "__main__":
    sys.exit(main())
