"""The lists of mutants keep up with their modules (see design/004-mutants.md)."""

from __future__ import annotations

import ast
from collections import Counter
from textwrap import dedent
from typing import Any

import pytest

from tests.guards.source import PACKAGE, ROOT
from tests.mutants.mutants import Module, Mutant, function_text
from tests.mutants.patch import changes, with_marks
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


def test_no_mutant_is_listed_twice() -> None:
    """In the rows of one module or of two: it would be told apart by its tests alone."""
    listed = Counter((module.path, *mutant) for module in MODULES for mutant in module.mutants)
    assert [key for key, count in listed.items() if count > 1] == []


TEXT = """
LIMIT = 3

class Box:
    size: int = 2

    def fits(self, other: int = LIMIT) -> bool:
        def room() -> int:
            return self.size - other
        if other < 0:
            return False
        return room() > 0
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("room() > 0", "room() >= 0", ["Box.fits"]),
        ("self.size - other", "self.size + other", ["Box.fits"]),
        ("        if other < 0:\n            return False\n", "", ["Box.fits"]),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("size: int = 2", "size: int = 3", None),
        ("other: int = LIMIT", "other: int = 2", None),
        ("def fits", "@staticmethod\n    def fits", None),
    ],
)
def test_a_change_is_put_in_later_only_where_an_import_would_not_differ(
    old: str, new: str, changed: list[str] | None
) -> None:
    """What a call runs can be put in the place of what is imported; what an import runs cannot."""
    before, after = (compile(text, "box.py", "exec") for text in (TEXT, TEXT.replace(old, new)))
    found = changes(before, after)
    assert (found if found is None else [one.co_qualname for one, _ in found]) == changed


def test_marks_say_which_changes_a_call_comes_by() -> None:
    """Each at the statement that would change, before it runs."""
    mutants = {
        1: Mutant("Box.fits", "self.size - other", "self.size + other"),
        2: Mutant("Box.fits", "other < 0", "other <= 0"),
        3: Mutant("Box.fits", "return False", "return True"),
        4: Mutant("Box.fits", "room() > 0", "room() >= 0"),
        5: Mutant("", "LIMIT = 3", "LIMIT = 4"),
    }
    reached: list[int] = []
    names: dict[str, Any] = {"__reach__": reached.append}
    exec(compile(with_marks(TEXT, mutants), "box.py", "exec"), names)
    assert names["Box"]().fits(1)
    assert reached == [2, 4, 1]
    reached.clear()
    assert not names["Box"]().fits(-1)
    assert reached == [2, 3]


def test_the_tests_of_a_mutant_are_there() -> None:
    """A file that is renamed would fail for every mutant, and kill them all."""
    named = {name.partition("::")[0] for module in MODULES for name in module.tests}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
