"""A skip that hides something fails in CI: the rules of tests/conftest.py, run on a small suite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONGEST
from tests.guards.source import ROOT

SUITE = """
import pytest

def test_real(data_dir):
    assert data_dir.is_dir()

def test_needs_data(data_dir):
    pytest.skip("no reason")

@pytest.mark.data
def test_marked():
    pytest.skip("no data")

@pytest.mark.server
def test_server():
    pytest.skip("no server")

def test_plain():
    pytest.skip("not on this system")
"""

WHOLE = 'import pytest\npytest.importorskip("a_package_that_does_not_exist")\n'
NETWORK = (
    'import socket\n\ndef test_calls_out():\n    socket.create_connection(("192.0.2.1", 80), timeout=1)\n'
)
HOME = 'from pathlib import Path\n\ndef test_writes_home():\n    (Path.home() / "left").write_text("")\n'


def _run(folder: Path, suite: str, *options: str, ci: bool, data: bool) -> tuple[dict[str, int], str]:
    """Run a suite under the project's conftest and settings; gives outcomes and output."""
    (folder / "data").mkdir() if data else None
    tests = folder / "tests"
    tests.mkdir(exist_ok=True)
    (tests / "conftest.py").write_text(
        (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tests / "test_small.py").write_text(suite, encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    environment = {**os.environ, "CI": "true" if ci else "", "TRIMTAB_DATA": str(folder / "data")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests"]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    closing = run.stdout.strip().rpartition("\n")[2]
    counts = {
        word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", closing)
    }
    return counts | {"exit": run.returncode}, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("ci", "data", "outcome"),
    [
        pytest.param(False, False, {"skipped": 5, "exit": 0}, id="at-home-without-data"),
        pytest.param(False, True, {"passed": 1, "skipped": 4, "exit": 0}, id="at-home-with-data"),
        pytest.param(True, False, {"skipped": 4, "failed": 1, "exit": 1}, id="ci-without-data"),
        pytest.param(True, True, {"passed": 1, "skipped": 1, "failed": 3, "exit": 1}, id="ci-with-data"),
    ],
)
def test_a_skip_that_hides_something_fails_in_ci(
    tmp_path: Path, ci: bool, data: bool, outcome: dict[str, int]
) -> None:
    """Server tests may not be skipped in CI, nor data tests where the data is."""
    counts, output = _run(tmp_path, SUITE, ci=ci, data=data)
    assert counts == outcome, output


@pytest.mark.parametrize(("ci", "exit_code"), [(True, 2), (False, 5)])
def test_a_module_that_skips_itself_whole_fails_in_ci(tmp_path: Path, ci: bool, exit_code: int) -> None:
    """Nobody can see which tests it held."""
    counts, output = _run(tmp_path, WHOLE, ci=ci, data=False)
    assert counts["exit"] == exit_code, output


def test_a_test_that_calls_out_fails(tmp_path: Path) -> None:
    """The suite has no network, also where the machine has one."""
    counts, output = _run(tmp_path, NETWORK, ci=False, data=False)
    assert counts == {"failed": 1, "exit": 1}
    assert "tests have no network" in output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_writes_to_the_home_directory_fails_the_run(tmp_path: Path, workers: str) -> None:
    """The home directory is an empty folder of each process of the run, and stays empty."""
    counts, output = _run(tmp_path, HOME, "-n", workers, ci=False, data=False)
    assert counts == {"passed": 1, "exit": 1}
    assert "tests wrote to the home directory: left" in output


@pytest.mark.parametrize(("workers", "exit_code"), [("0", 0), ("2", 4)])
def test_processes_side_by_side_may_not_share_a_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str, exit_code: int
) -> None:
    """Each starts servers of its own; one that is given is emptied by every test."""
    monkeypatch.setenv("TRIMTAB_TEST_REDIS", "redis://127.0.0.1:1")
    counts, output = _run(tmp_path, "def test_passes(): ...", "-n", workers, ci=False, data=False)
    assert counts["exit"] == exit_code, output
    assert ("run with -n 0" in output) == bool(exit_code)


def test_the_longest_files_begin_first_where_processes_share_the_tests(tmp_path: Path) -> None:
    """Not the one that comes first by name, nor the one with the most tests."""
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []
    long = tmp_path / LONGEST[-1]
    long.parent.mkdir(parents=True)
    long.write_text("def test_one(): ...\n", encoding="utf-8")
    (long.parent / "test_a.py").write_text("def test_a(): ...\ndef test_b(): ...\n", encoding="utf-8")
    _, shown = _run(
        tmp_path,
        "def test_a(): ...\ndef test_b(): ...\n",
        "-v",
        "-n",
        "1",
        "--dist",
        "loadfile",
        ci=False,
        data=False,
    )
    assert re.findall(r"PASSED (\S+)", shown)[0] == f"{LONGEST[-1]}::test_one"
