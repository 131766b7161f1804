"""Modules and functions are called by nouns and verbs: `settle`, not `settling`; `settlement`, not `settled`.

A participle says neither what is done nor what something is. Names of two words and more are left to readers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards.source import functions, sources

LISTED = Path(__file__).with_name("participles.txt")
"""Names of today that are participles. May only shrink."""

IRREGULAR = """
begun bound broken built chosen done drawn driven found given gone grown held hidden kept known laid left lost
made met said seen sent shown spent spoken taken thought told torn understood woken written
"""

MEANT = """
counting encoding feed fitting framing mapping need nothing pairing reasoning reporting seed shared string
testing embed exceed proceed encrypted
"""
"""Nouns of the field and rooms of the house that end like participles, and verbs that do;
`encrypted(store)`."""


def is_participle(name: str) -> bool:
    """Tell whether a name is one word and a participle or gerund."""
    word = name.strip("_").lower()
    if name.endswith("__") or "_" in word or word in MEANT.split():
        return False
    return word.endswith(("ing", "ed")) or word in IRREGULAR.split()


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A property is a field to whoever reads it: `fitted.changed` says how a thing is."""
    return any("property" in ast.unparse(one) for one in function.decorator_list)


def _names() -> Iterator[str]:
    for source in sources():
        yield source.name.rpartition(".")[2]
        yield from (one.name for one in functions(source.tree) if not _is_property(one))


def found() -> list[str]:
    """List the participles that name a module or function."""
    return sorted({name for name in _names() if is_participle(name)})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("settling", True), ("_settled", True), ("told", True), ("__held", True)),
        *(("settle", False), ("counting", False), ("units_with_late_results", False), ("need", False)),
    ],
)
def test_a_participle_is_told_from_a_verb(name: str, expected: bool) -> None:
    """The guard below finds what it should."""
    assert is_participle(name) is expected


def test_no_module_or_function_is_called_by_a_participle() -> None:
    """A name that is mended is taken off participles.txt; none is put on it."""
    assert found() == LISTED.read_text(encoding="utf-8").split()
