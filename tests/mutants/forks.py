"""A pytest that has collected its tests and waits: each change runs in a fork of it.

What a run costs is not the test that kills but starting Python, importing and collecting. A worker does that
once. For a change it forks, and the child puts the changed functions in the place of those that are imported
and runs the tests it is told, in that order, until one fails.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mutants.mutants import Mutant
from tests.mutants.patch import (
    Pair,
    Place,
    are_live,
    changes,
    compiled,
    live_functions,
    place_of,
    put_in,
    with_marks,
)

ROOT = Path(__file__).resolve().parents[2]

_TESTS = f"{ROOT}/tests/"

TOO_LONG = "(too long)"
"""Stands for the test that killed where time did."""

THE_RUN = "(the run itself)"
"""Stands for the test that killed where the process ended, or wrote to the home directory."""

CPU_SECONDS, CPU_TIMES = 15, 10
"""A test of a mutant may use so much, and so many times what it uses without: longer, and it loops."""

WAIT_SECONDS, WAIT_TIMES = 100, 30
"""The same by the clock, for a test that waits and does nothing. A busy machine must not kill."""


COLLECT_SECONDS = 6
"""A process that imports the package with a mutant may use ten times this, or wait thirty times this."""


@dataclass(frozen=True, slots=True)
class Task:
    """Tests to run in a fork, and what is changed there."""

    names: Sequence[str]
    """Names of tests, the first to run first."""
    path: str = ""
    """Module below `trimtab` that is changed; empty: none, or the change was there before the import."""
    text: str = ""
    """Its text with the change."""
    marks: Mapping[str, Mapping[int, Mutant]] = field(default_factory=dict)
    """For a run without a change: the mutants of each module for which to say which tests reach them."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What each test uses without a change."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one test."""

    outcome: str
    """`passed`, `failed` or `skipped`."""
    seconds: float
    """CPU time, with that of processes it started."""
    reached: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a task."""

    killer: str | None = None
    ran: Mapping[str, Ran] = field(default_factory=dict)
    fits: bool = True
    """False: the change cannot be put into what is imported; nothing ran."""
    is_sure: bool = True
    """False: what is changed ran without the change, when the killer, or any test, was imported."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What a worker says when it has collected."""

    names: Sequence[str] = ()
    long: Sequence[str] = ()
    """Those marked long."""
    failed: str | None = None
    """The file that cannot be collected."""
    others: Sequence[str] = ()
    """Modules of other packages that collecting has imported."""


class Worker:
    """A process that has collected the tests of some files, with the package of a folder."""

    def __init__(
        self, folder: Path, files: Sequence[str], modules: Sequence[str] = (), *, ends: bool = False
    ) -> None:
        """Begin; with `ends` it has only so long to import and collect."""
        self.connection, theirs = Pipe()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                self.connection.close()
                if ends:
                    _allow(COLLECT_SECONDS)
                _work(theirs, folder, files, modules)
                code = 0
            finally:
                os._exit(code)
        theirs.close()

    def end(self) -> None:
        """Let it end, and wait for that."""
        with suppress(OSError):
            self.connection.send(None)
        self.connection.close()
        os.waitpid(self.pid, 0)


def _work(connection: Connection, folder: Path, files: Sequence[str], modules: Sequence[str]) -> None:
    here = str(Path(__file__).parent)
    sys.path[:] = [str(folder), str(ROOT), *(path for path in sys.path if path not in (here, str(ROOT)))]
    os.environ.update(
        PYTHONPATH=str(folder),
        PYTHONDONTWRITEBYTECODE="",
        HYPOTHESIS_PROFILE="mutants",
        TOKENIZERS_PARALLELISM="false",
        CI="",
    )
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(ROOT)
    plugin = _Plugin(connection, folder, modules)
    if modules:  # in one that imports the change nothing is early
        sys.settrace(plugin.trace)
    code = pytest.main(
        [
            *("-q", "--no-header", "--tb=native", "-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}"),
            *("-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", "long or not long", *files),
        ],
        plugins=[plugin],
    )
    if not plugin.is_ready:  # it could not even begin
        connection.send(Ready(failed=f"{THE_RUN}: {code}"))


class _Plugin:
    """Waits where pytest would run its tests, and runs them in forks."""

    def __init__(self, connection: Connection, folder: Path, modules: Sequence[str]) -> None:
        self.is_ready = False
        self._connection = connection
        self._folder = folder
        self._package = str(folder / "trimtab")
        self._modules = modules
        self._collected = ""
        self._imports = 0
        self._called: dict[CodeType, set[str]] = {}
        self._early: dict[Place, set[str]] = {}
        """What ran before there was a test, and while which files were collected; empty: for all of them."""
        self._failed: list[str] = []
        self._reports: list[pytest.TestReport] = []
        self._marks: dict[str, list[Pair]] = {}
        self._live: dict[Place, list[FunctionType]] = {}

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Note what is called before there is a test, and for which file."""
        code = frame.f_code
        if code.co_filename.startswith(self._package):
            self._called.setdefault(code, set()).add("" if self._imports else self._collected)
        elif not code.co_filename.startswith(_TESTS) or code.co_filename == f"{ROOT}/{self._collected}":
            return None
        if code.co_name == "<module>":  # what others import, too
            self._imports += 1
            return self._trace_import
        return None

    def _trace_import(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._imports -= event == "return"
        return self._trace_import

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Note whose tests are collected now."""
        file = collector.nodeid.partition("::")[0]
        self._collected = file if file.endswith(".py") else ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the file that cannot be imported."""
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what came of setting up, running and taking down a test."""
        self._reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until there is no more to do, in the place of running tests."""
        for name in self._modules:
            importlib.import_module(name)
        sys.settrace(None)
        self._early = {place_of(code): files for code, files in self._called.items()}
        self.is_ready = True
        items = {item.nodeid: item for item in session.items}
        self._warm_up(session.items)
        self._live = live_functions(self._package)
        gc.collect()
        gc.freeze()  # the collector of a child would write to every page
        marked = [name for name, item in items.items() if item.get_closest_marker("long")]
        failed = self._failed[0] if self._failed else None
        self._connection.send(Ready(list(items), marked, failed, _modules_of_others()))
        with suppress(EOFError):
            while (task := self._connection.recv()) is not None:
                self._connection.send(self._run(task, items))
        return True

    def _warm_up(self, items: Sequence[pytest.Item]) -> None:
        """Do once what the first test in each child would do: tables of Hypothesis, and the servers."""
        if self._modules:  # in one that ends after a task it is no gain
            given(st.text(), st.integers())(lambda _text, _number: None)()
        if any(item.get_closest_marker("server") for item in items):
            servers = importlib.import_module("tests.servers")
            for server in (servers.postgres, servers.redis_server):
                with suppress(pytest.skip.Exception):
                    server()

    def _run(self, task: Task, items: Mapping[str, pytest.Item]) -> Answer:
        pairs = self._pairs(task.path, task.text) if task.path else []
        if pairs is None or not are_live(pairs, self._live):
            return Answer(fits=False)
        for path, mutants in task.marks.items():
            pairs += self._marked(path, mutants)
        notes = self._folder / "notes.json"
        notes.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.setpgid(0, 0)
                put_in(pairs, self._live)
                notes.write_text(json.dumps(self._run_here(task, items)), encoding="utf-8")
                code = 0
            finally:
                os._exit(code)
        try:
            _, status = os.waitpid(pid, 0)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        _empty_home()
        early = {file for old, _ in pairs for file in self._early.get(place_of(old), ())}
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
            return Answer(TOO_LONG, is_sure=not early)
        if status:
            return Answer(THE_RUN, is_sure=not early)
        killer, rows = json.loads(notes.read_text(encoding="utf-8"))
        sure = not early if killer is None else early.isdisjoint(("", killer.partition("::")[0]))
        return Answer(killer, {name: Ran(*row) for name, row in rows.items()}, is_sure=sure)

    def _old(self, path: str) -> CodeType:
        module = sys.modules[module_name(path)]
        return compiled(_texts(self._folder, path), str(module.__file__))

    def _pairs(self, path: str, text: str) -> list[Pair] | None:
        old = self._old(path)
        return changes(old, compile(text, old.co_filename, "exec", dont_inherit=True))

    def _marked(self, path: str, mutants: Mapping[int, Mutant]) -> list[Pair]:
        if path not in self._marks:
            old = self._old(path)
            tree = with_marks(_texts(self._folder, path), mutants)
            self._marks[path] = changes(old, compile(tree, old.co_filename, "exec", dont_inherit=True)) or []
        return self._marks[path]

    def _run_here(self, task: Task, items: Mapping[str, pytest.Item]) -> tuple[str | None, dict[str, Any]]:
        """Run tests until one fails, or all if none is changed; give who failed, and what came of each."""
        reached: set[int] = set()
        builtins.__reach__ = reached.add  # type: ignore[attr-defined]
        rows: dict[str, Any] = {}
        chosen = [items[name] for name in task.names if name in items]
        for item, after in zip(chosen, [*chosen[1:], None], strict=True):
            reached.clear()
            self._reports.clear()
            begin = _used()
            _allow(task.seconds.get(item.nodeid))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            outcomes = {report.outcome for report in self._reports}
            outcome = next(one for one in ("failed", "skipped", "passed") if one in outcomes)
            rows[item.nodeid] = (outcome, _used() - begin, sorted(reached))
            if outcome == "failed" and task.seconds:
                return item.nodeid, rows
        return THE_RUN if any(_home().iterdir()) else None, rows


def _modules_of_others() -> list[str]:
    files = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return [name for name, file in files if file and "site-packages" in Path(file).parts]


def import_modules(names: Sequence[str]) -> None:
    """Import modules of other packages once, for all processes that import the package with a mutant.

    To import the clients of providers takes longer than to import and collect all that is ours.
    """
    for name in names:
        with suppress(Exception):  # a part of a package that only the package itself imports
            importlib.import_module(name)


def _home() -> Path:
    """The home directory that tests/conftest.py has made."""
    home = Path(os.environ["HOME"])
    assert home.name.startswith("trimtab-home-")
    return home


def _empty_home() -> None:
    for path in _home().iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _used() -> float:
    """CPU time of this process, and of those that it started and waited for."""
    return sum(os.times()[:4])


def _allow(seconds: float | None) -> None:
    """End this process if its next test needs far more than it does without a mutant."""
    if seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + CPU_SECONDS + int(CPU_TIMES * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        signal.alarm(WAIT_SECONDS + int(WAIT_TIMES * seconds))


def module_name(path: str) -> str:
    """Give the name of the module of a file below `trimtab`."""
    return f"trimtab.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


def _texts(folder: Path, path: str) -> str:
    """Give the text of a module without a change."""
    return (folder.parent / "unchanged" / "trimtab" / path).read_text(encoding="utf-8")
