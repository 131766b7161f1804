"""What stands in the way of erasing: a full disk, a kill, others at the same file (SPEC E11)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import trimtab
from trimtab.errors import StoreUnavailableError
from trimtab.stores import AppendRequest, Event, LoadRequest, SQLiteStore

resource = pytest.importorskip("resource", reason="this system sets no limit on the size of files")
fcntl = pytest.importorskip("fcntl", reason="this system locks files in another way")

SECRET = "Zanzibar at noon"
LIMIT_BYTES = 200_000
"""Less than the file has: its second copy cannot be written."""


def _event(at: int, text: str) -> Event:
    return Event(id=f"e{at}", kind="message", time=float(at), data={"message": {"content": text}})


def _filled(path: Path) -> None:
    with SQLiteStore(path) as store:
        events = [_event(at, SECRET if at == 1 else "short") for at in range(3)]
        store.append(AppendRequest(session="s", expected_version=0, events=events))
        events = [_event(at, "x" * 2_000) for at in range(300)]
        store.append(AppendRequest(session="large", expected_version=0, events=events))
    assert path.stat().st_size > 2 * LIMIT_BYTES


def _traces(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.iterdir()) if SECRET.encode() in path.read_bytes()]


_ERASE = """
import resource, signal, sys
from trimtab.errors import StoreUnavailableError
from trimtab.stores import AppendRequest, Event, SQLiteStore
path, how, limit, action = sys.argv[1:]
signal.signal(signal.SIGXFSZ, getattr(signal, action))
store = SQLiteStore(path)
store.sessions()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
def erase():
    if how == "delete":
        store.delete("s")
    else:
        gone = Event(id="e1", kind="message", time=1.0, data={"message": None}, version=2)
        notice = Event(id="notice", kind="redacted", time=0.0)
        store.append(AppendRequest(session="s", expected_version=3, events=[notice], rewrites=[gone]))
try:
    erase()
except StoreUnavailableError as error:
    print(error)
"""


def _erase(path: Path, how: str, *, action: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(trimtab.__file__).parents[1])}
    command = [sys.executable, "-c", _ERASE, str(path), how, str(LIMIT_BYTES), action]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("how", ["rewrite", "delete"])
def test_a_disk_that_is_full_for_the_second_copy_is_told_as_that(tmp_path: Path, how: str) -> None:
    """What was asked for is stored, and the error says so; the next open with room cleans the files."""
    path = tmp_path / "a.db"
    _filled(path)
    run = _erase(path, how, action="SIG_IGN")
    assert run.returncode == 0, run.stderr
    assert "the text is removed, but the files of" in run.stdout
    assert "othing was stored" not in run.stdout
    assert _traces(tmp_path) == ["a.db"]
    with SQLiteStore(path) as store:
        left = [event.kind for event in store.load(LoadRequest(session="s"))]
        assert left == ([*["message"] * 3, "redacted"] if how == "rewrite" else [])
        assert _traces(tmp_path) == []


@pytest.mark.parametrize("how", ["rewrite", "delete"])
def test_what_a_kill_left_behind_the_next_open_takes_away(tmp_path: Path, how: str) -> None:
    """The system kills the process while it writes the file anew; nobody gives the order again."""
    path = tmp_path / "a.db"
    _filled(path)
    run = _erase(path, how, action="SIG_DFL")
    assert run.returncode == -signal.SIGXFSZ, run.stderr
    assert _traces(tmp_path) != []
    with SQLiteStore(path) as store:
        assert store.sessions() == (["large", "s"] if how == "rewrite" else ["large"])
        assert _traces(tmp_path) == []


def test_an_open_does_not_wait_for_those_who_read(tmp_path: Path) -> None:
    """It leaves the files to the one after it; the read it was opened for is answered."""
    path = tmp_path / "a.db"
    _filled(path)
    _erase(path, "delete", action="SIG_IGN")
    with SQLiteStore(path, busy_seconds=3_600) as waits, closing(sqlite3.connect(path)) as reader:
        rows = reader.execute("SELECT * FROM trimtab_events")
        assert rows.fetchone()
        assert waits.sessions() == ["large"]
        assert _traces(tmp_path) != []
        rows.close()
    with SQLiteStore(path) as store:
        assert store.sessions() == ["large"]
    assert _traces(tmp_path) == []


_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as shared:
    # The lock of who moves the log into the file, in the log's index (sqlite.org/walformat.html, 2.3.1)
    fcntl.lockf(shared, fcntl.LOCK_EX, 1, 121)
    print("locked", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def _checkpointing(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process be at moving the log into the file, until it is told to end."""
    Path(f"{path}-shm").touch()
    command = [sys.executable, "-c", _LOCK, f"{path}-shm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        yield other


def test_a_deletion_waits_for_one_that_moves_the_log(tmp_path: Path) -> None:
    """SQLite does not wait for that one by itself; asked again until it has ended."""
    path = tmp_path / "a.db"
    _filled(path)
    store = SQLiteStore(path, busy_seconds=3_600)
    store.sessions()
    asked: list[str] = []
    with _checkpointing(path) as other:

        def note(sql: str) -> None:
            if "wal_checkpoint" in sql:
                asked.append(sql)
            if len(asked) == 3 and other.poll() is None:
                other.communicate("\n")

        assert store._connection is not None
        store._connection.set_trace_callback(note)
        store.delete("s")
    assert len(asked) >= 3
    assert _traces(tmp_path) == []
    store.close()


def test_a_deletion_that_waited_long_enough_says_what_is_left(tmp_path: Path) -> None:
    """It is told apart from one that was not stored."""
    path = tmp_path / "a.db"
    _filled(path)
    with SQLiteStore(path, busy_seconds=0.0) as store:
        store.sessions()
        with _checkpointing(path), pytest.raises(StoreUnavailableError, match="text is removed, but"):
            store.delete("s")
        assert store.sessions() == ["large"]
        store.delete("s")
    assert _traces(tmp_path) == []
