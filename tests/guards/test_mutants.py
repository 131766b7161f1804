"""The lists of mutants keep up with their modules (see design/004-mutants.md)."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.guards.source import PACKAGE, ROOT
from tests.mutants.mutants import Module, function_text
from tests.mutants.rows import MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_every_mutant_is_one_change_that_can_be_run(module: Module) -> None:
    """Its text is found once in its function, the change is one, and what comes out is Python."""
    text = (PACKAGE / module.path).read_text(encoding="utf-8")
    parts = [(mutant, function_text(text, mutant.function)) for mutant in module.mutants]
    assert [mutant for mutant, part in parts if part.count(mutant.old) != 1] == []
    assert [mutant for mutant in module.mutants if mutant.old == mutant.new] == []
    assert len(set(module.mutants)) == len(module.mutants)
    for mutant, part in parts:
        ast.parse(dedent(part.replace(mutant.old, mutant.new)), filename=f"{mutant.old} -> {mutant.new}")


def test_the_tests_of_a_mutant_are_there() -> None:
    """A file that is renamed would fail for every mutant, and kill them all."""
    named = {name.partition("::")[0] for module in MODULES for name in module.tests}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
