"""What a mutant is, how a module lists its own, and the text of a module with one of them in it."""

from __future__ import annotations

import ast
import functools
from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of the text of a function."""

    function: str
    """Its name, `Class.method` for a method; empty for what stands outside of functions."""
    old: str
    """Found exactly once in the function."""
    new: str


class Module(NamedTuple):
    """A module, and the tests that must notice every change of it."""

    path: str
    """Below src/trimtab."""
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def module(path: str, tests: str, *mutants: tuple[str, str, str]) -> Module:
    """List the mutants of a module as (function, old, new), and the tests that must kill them."""
    return Module(
        path, tuple(f"tests/{test}" for test in tests.split()), tuple(Mutant(*mutant) for mutant in mutants)
    )


def mutated(text: str, mutant: Mutant) -> str | None:
    """Give the text of a module with one mutant in it; None where its old text is not found exactly once."""
    lines = text.splitlines(keepends=True)
    first, last = _span(_parsed(text), mutant.function, len(lines))
    before, inside, after = lines[:first], "".join(lines[first:last]), lines[last:]
    if inside.count(mutant.old) != 1:
        return None
    return "".join((*before, inside.replace(mutant.old, mutant.new), *after))


def function_text(text: str, function: str) -> str:
    """Give the lines of a function or class of a module; empty where there is none of that name."""
    lines = text.splitlines(keepends=True)
    first, last = _span(_parsed(text), function, len(lines))
    return "".join(lines[first:last])


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _span(tree: ast.Module, function: str, line_count: int) -> tuple[int, int]:
    """Find the lines of a function or class; an empty span where there is none of that name."""
    if not function:
        return 0, line_count
    body: list[ast.stmt] = tree.body
    for name in function.split("."):
        for node in reversed(body):  # the last of them is no overload
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
                break
        else:
            return 0, 0
        body = node.body
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1, node.end_lineno or 0
