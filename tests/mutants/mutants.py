"""What a mutant is, and how a module lists its own."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of a module's text."""

    old: str
    """Found exactly once in the module."""
    new: str


class Module(NamedTuple):
    """A module, and the tests that must notice every change of it."""

    path: str
    """Below src/trimtab."""
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def module(path: str, tests: str, *mutants: tuple[str, str]) -> Module:
    """List the mutants of a module, as (old, new), and the tests below tests/ that must kill them."""
    return Module(
        path, tuple(f"tests/{test}" for test in tests.split()), tuple(Mutant(*pair) for pair in mutants)
    )
