"""The packages of servers are optional: not loaded before they are needed, and asked for by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.guards.source import PACKAGE, ROOT

MAKERS = {
    "PostgresStore": ("postgresql://h/d", "postgres", "psycopg"),
    "RedisStore": ("redis://h", "redis", "redis"),
}


def _run(code: str, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that has no site-packages, but perhaps a folder of its own."""
    head = f"import sys; sys.path[:0] = {[str(PACKAGE.parent), *([str(path)] if path else [])]!r}\n"
    command = [sys.executable, "-I", "-S", "-c", head + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_stores_are_imported_without_the_packages_of_servers() -> None:
    """Neither `trimtab` nor `trimtab.stores`, nor a store of the standard library, loads them."""
    code = """
import sys, trimtab, trimtab.stores
trimtab.stores.open_store("memory://"), trimtab.stores.open_store("sqlite:///:memory:").close()
print(sorted({"psycopg", "redis", "asyncio"} & {name.split(".")[0] for name in sys.modules}))
"""
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(PACKAGE.parent)!r}]\n{code}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_missing_package_is_said_when_the_store_is_made(name: str) -> None:
    """With the line that installs it, not at the first append."""
    url, extra, package = MAKERS[name]
    code = f"""
from trimtab import stores
from trimtab.errors import MissingExtraError
for make in (stores.{name}, stores.open_store):
    try: make({url!r})
    except MissingExtraError as error: print(error, error.extra, error.package)
"""
    run = _run(code)
    said = f"{name} needs {package}: pip install 'trimtab[{extra}]' {extra} {package}\n"
    assert (run.stdout, run.stderr) == (said * 2, "")


def test_psycopg_without_a_libpq_is_said_too(tmp_path: Path) -> None:
    """Installed as `psycopg` alone it needs a library of the system, and says so in words of its own."""
    (tmp_path / "psycopg").mkdir()
    (tmp_path / "psycopg" / "__init__.py").write_text('raise ImportError("no pq wrapper available.")')
    code = """
from trimtab import stores
from trimtab.errors import MissingExtraError
try: stores.PostgresStore("postgresql://h/d")
except MissingExtraError as error: print(error)
"""
    run = _run(code, path=tmp_path)
    said = "PostgresStore needs psycopg with its libpq (no pq wrapper available.)"
    said += ": pip install 'trimtab[postgres]'\n"
    assert (run.stdout, run.stderr) == (said, "")


@pytest.mark.server
def test_a_server_that_runs_already_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked as those of this run are, and tests that stop it, or read its files, skip."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for variable, dsn, find in (
        ("TRIMTAB_TEST_POSTGRES", servers.postgres().dsn, servers.find_postgres),
        ("TRIMTAB_TEST_REDIS", servers.redis_server().url, servers.find_redis),
    ):
        monkeypatch.setenv(variable, dsn)
        named = find()
        assert not isinstance(named, servers.NoServer)
        assert named.folder is None
        with pytest.raises(pytest.skip.Exception, match=variable):
            _ = named.data
        assert f"`{variable}=" in contributing
