"""Tests enter by the doors: what a room does not offer may change any day, and no test with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards.source import ROOT, is_public, outside, sources
from trimtab.testing import hooks

HOOKS = "trimtab.testing.hooks"
"""The one place from which a test may take what no door offers; it says why."""

MOST_HOOKS = 49
"""May only shrink."""


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "trimtab")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "trimtab":
            yield node.module or ""


def _enters_inside(path: Path, tree: ast.Module) -> bool:
    allowed = {"trimtab.cli", HOOKS} if path.is_relative_to(ROOT / "tests") else {"trimtab.cli"}
    return any(not is_public(module) for module in _imports(tree) if module not in allowed) or any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("trimtab.")
        and "._" in node.value
        for node in ast.walk(tree)
    )


@pytest.mark.long
def test_no_test_enters_but_by_a_door() -> None:
    """Nor a benchmark or an example, which have no hooks either."""
    files = outside()
    assert {path.relative_to(ROOT).parts[0] for path, _ in files} == {"bench", "examples", "tests"}
    assert [path.relative_to(ROOT).as_posix() for path, tree in files if _enters_inside(path, tree)] == []


@pytest.mark.long
def test_every_hook_is_used_and_none_is_added() -> None:
    """One that no test needs any more goes, and nothing of ours takes one."""
    assert len(hooks.__all__) <= MOST_HOOKS
    used = {
        alias.name
        for _, tree in outside()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == HOOKS
        for alias in node.names
    }
    assert used == set(hooks.__all__)
    assert [source.name for source in sources() if HOOKS in _imports(source.tree)] == []
