"""Tests enter by the doors: what a room does not offer may change any day, and no test with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.guards.source import ROOT, is_public

INSIDE = Path(__file__).with_name("inside.txt")
"""Files that still import what no door offers. May only shrink."""

OUTSIDE = ("bench", "examples", "tests")


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "trimtab")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "trimtab":
            yield node.module or ""


def _enters_inside(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return any(not is_public(module) for module in _imports(tree) if module != "trimtab.cli") or any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("trimtab.")
        and "._" in node.value
        for node in ast.walk(tree)
    )


def _inside() -> list[str]:
    return [
        path.relative_to(ROOT).as_posix()
        for folder in OUTSIDE
        for path in sorted((ROOT / folder).rglob("*.py"))
        if _enters_inside(path)
    ]


def test_the_files_that_enter_elsewhere_are_those_listed() -> None:
    """A file that enters by a door from now on is taken off the list; none is put on it."""
    assert _inside() == INSIDE.read_text(encoding="utf-8").split()
