"""The lists of mutants keep up with their modules (see design/004-mutants.md)."""

from __future__ import annotations

import ast

import pytest

from tests.guards.source import PACKAGE, ROOT
from tests.mutants.mutants import Module, mutated
from tests.mutants.run import MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_every_mutant_is_one_change_that_can_be_run(module: Module) -> None:
    """Its text is found once in its function, the change is one, and what comes out is Python."""
    text = (PACKAGE / module.path).read_text(encoding="utf-8")
    changed = [mutated(text, mutant) for mutant in module.mutants]
    assert [mutant for mutant, one in zip(module.mutants, changed, strict=True) if one is None] == []
    assert [mutant for mutant in module.mutants if mutant.old == mutant.new] == []
    assert len(set(module.mutants)) == len(module.mutants)
    for mutant, one in zip(module.mutants, changed, strict=True):
        ast.parse(one or "", filename=f"{mutant.old} -> {mutant.new}")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_the_tests_of_a_mutant_are_there(module: Module) -> None:
    """A file that is renamed would fail for every mutant, and kill them all."""
    assert [name for name in module.tests if not (ROOT / name.partition("::")[0]).exists()] == []
