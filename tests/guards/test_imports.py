"""`import trimtab` loads the standard library and trimtab, nothing else and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.guards.source import PACKAGE

PROBE = """
import sys
sys.path.insert(0, {src!r})
import trimtab
loaded = sorted(sys.modules)
import json
print(json.dumps({{"modules": loaded}}))
"""


def _import_fresh() -> dict[str, object]:
    """Import trimtab in an interpreter that has neither site-packages nor environment."""
    code = PROBE.format(src=str(PACKAGE.parent))
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(run.stdout)
    return answer


def test_a_fresh_import_loads_only_the_standard_library() -> None:
    """No extra is needed, nor loaded, by `import trimtab`."""
    modules = _import_fresh()["modules"]
    assert isinstance(modules, list)
    roots = {name.split(".")[0] for name in modules}
    assert "trimtab" in roots
    assert roots - sys.stdlib_module_names - {"trimtab", "__main__"} == set()


def test_no_module_of_the_core_needs_an_extra() -> None:
    """Every module but those of the command line, the inspector and frameworks needs no site-packages."""
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "inspector", "integrations")
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
    "report",
    "testing",
    "conversation.validity",
    "conversation.repairs",
    "_fitting.reporting",
    "strategies.priority",
)
"""Parts of trimtab that most programs never ask for, or not at once."""


def test_import_loads_nothing_that_takes_long_and_is_not_needed() -> None:
    """What keeps `import trimtab` below 50 ms (DESIGN 5); `make bench` prints the time itself."""
    modules = _import_fresh()["modules"]
    assert isinstance(modules, list)
    assert HEAVY & set(modules) == set()
    assert [name for name in LATER if f"trimtab.{name}" in modules] == []
