"""`import trimtab` loads the standard library and trimtab, nothing else and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.guards.source import PACKAGE

PROBE = """
import sys
sys.path.insert(0, {src!r})
{code}
loaded = sorted(sys.modules)
import json
print(json.dumps(loaded))
"""


def _loaded(code: str = "import trimtab") -> set[str]:
    """Name the modules that code loads in an interpreter without site-packages and environment."""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE.format(src=str(PACKAGE.parent), code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(run.stdout))


@pytest.mark.parametrize("code", ["import trimtab", "from trimtab import fit", "from trimtab import *"])
def test_a_fresh_import_loads_only_the_standard_library(code: str) -> None:
    """No extra is needed, nor loaded, by any name that the package offers."""
    roots = {name.split(".")[0] for name in _loaded(code)}
    assert "trimtab" in roots
    assert roots - sys.stdlib_module_names - {"trimtab", "__main__"} == set()


def test_no_module_of_the_core_needs_an_extra() -> None:
    """Every module but those of the command line, servers and frameworks needs no site-packages."""
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "gateway", "inspector", "integrations")
    ]
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
    code += "\n".join(f"import {name}" for name in names)
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert len(names) >= 20
    assert run.returncode == 0, run.stderr


HEAVY = frozenset(
    {"asyncio", "decimal", "difflib", "email", "http", "json", "logging", "socket", "sqlite3", "tomllib"}
)
"""Parts of the standard library that take milliseconds; none is needed before something is fitted."""

LATER = (
    "cli",
    "formats.api_errors",
    "models.prices",
    "models.openai",
    "relevance",
    "report",
    "testing",
    "conversation.validity",
    "conversation.repairs",
    "_fitting.reporting",
    "strategies.priority",
)
"""Parts of trimtab that most programs never ask for, or not at once."""


def test_import_loads_its_names_and_no_more() -> None:
    """What keeps `import trimtab` far below `import httpx`: each name is loaded when it is asked for."""
    modules = _loaded()
    ours = {name for name in modules if name.partition(".")[0] == "trimtab"}
    assert {name.removeprefix("trimtab.") for name in ours} == {"trimtab", "_shared", "_shared.lazy"}
    assert modules.isdisjoint(HEAVY | {"dataclasses", "inspect", "threading"})


def test_fit_loads_nothing_that_takes_long_and_is_not_needed() -> None:
    """What keeps the door that is used most below 50 ms (DESIGN 5); `make bench` prints the time itself."""
    modules = _loaded("from trimtab import fit")
    assert modules.isdisjoint(HEAVY | {"hashlib"})
    assert [name for name in LATER if f"trimtab.{name}" in modules] == []


def test_every_name_is_found_after_a_plain_import() -> None:
    """Public names and public modules alike, as a name of the package; `dir` lists the names before that."""
    code = """
import trimtab
assert set(trimtab.__all__) <= set(dir(trimtab)) and "__version__" in dir(trimtab)
assert all(getattr(trimtab, name) is not None for name in trimtab.__all__)
assert trimtab.models.facts_for and trimtab.stores.MemoryStore and trimtab.strategies.cascade.Cascade
assert not hasattr(trimtab, "nothing") and not hasattr(trimtab, "_nothing") and not hasattr(trimtab, "a.b")
"""
    assert "trimtab.stores" in _loaded(code)
