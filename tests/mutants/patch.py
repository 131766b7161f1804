"""A mutant in a package that is imported already: which functions it changes, and which tests come by it."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType

from tests.mutants.mutants import Mutant, function_text

_IS_FUNCTION = 1
"""CO_OPTIMIZED: set for functions, not for modules and the bodies of classes."""

Place = tuple[str, str, int]
"""File, qualified name and first line: what tells a function from all others."""

Pair = tuple[CodeType, CodeType]
"""A function as it is and as it shall be."""


def place_of(code: CodeType) -> Place:
    """Say which function it is."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def live_functions(folder: str) -> dict[Place, list[FunctionType]]:
    """Find every function that was made from a file below a folder, wherever it is kept."""
    found: dict[Place, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(folder):
            found.setdefault(place_of(one.__code__), []).append(one)
    return found


def changes(old: CodeType, new: CodeType) -> list[Pair] | None:
    """Pair the functions that differ between two codes of a module; None where an import would, too."""
    if old.co_flags & _IS_FUNCTION:
        return [(old, new)] if _run(old) != _run(new) else []
    inner = _codes(old), _codes(new)
    if _outside(old) != _outside(new) or len(inner[0]) != len(inner[1]):
        return None
    pairs: list[Pair] = []
    for one, other in zip(*inner, strict=True):
        found = changes(one, other)
        if found is None or one.co_name != other.co_name or one.co_freevars != other.co_freevars:
            return None
        pairs += found
    return pairs


def _codes(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _outside(code: CodeType) -> tuple[object, ...]:
    """What an import runs of a module or of the body of a class."""
    constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, constants, code.co_names, code.co_name


def _run(code: CodeType) -> tuple[object, ...]:
    """What a call of a function runs; not on which lines it stands."""
    inner = [_run(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_name
    return code.co_code, code.co_exceptiontable, code.co_flags, names, inner


def with_marks(text: str, mutants: Mapping[int, Mutant]) -> ast.Module:
    """Parse a module with `__reach__(number)` before the statement that each mutant would change."""
    tree = ast.parse(text)
    bodies = list(_bodies(tree))
    marks: list[tuple[list[ast.stmt], ast.stmt, int]] = []
    for number, mutant in mutants.items():
        line = _line_of(text, mutant)
        around = [
            (one.end_lineno - one.lineno, -at, body, one)
            for at, body in enumerate(bodies)
            for one in body
            if one.end_lineno is not None and one.lineno <= line <= one.end_lineno
        ]
        if around:
            _, _, body, statement = min(around, key=lambda found: found[:2])
            marks.append((body, statement, number))
    for body, statement, number in marks:
        mark = ast.parse(f"__reach__({number})").body[0]
        for node in ast.walk(mark):
            if isinstance(node, ast.stmt | ast.expr):
                ast.copy_location(node, statement)
        body.insert(next(at for at, one in enumerate(body) if one is statement), mark)
    return tree


def _line_of(text: str, mutant: Mutant) -> int:
    """Give the line of the first character that a mutant changes."""
    inside = function_text(text, mutant.function)
    same = next(
        (at for at, (one, other) in enumerate(zip(mutant.old, mutant.new, strict=False)) if one != other),
        min(len(mutant.old), len(mutant.new)),
    )
    end = min(inside.index(mutant.old) + same, inside.index(mutant.old) + len(mutant.old) - 1)
    return text[: text.index(inside) + end].count("\n") + 1


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Give each list of statements that stands in a function, the outer ones first."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    seen: set[int] = set()
    for node in (inner for function in functions for inner in ast.walk(function)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and id(body) not in seen:
                seen.add(id(body))
                yield body


@functools.cache
def compiled(text: str, file: str) -> CodeType:
    """Compile the text of a module as an import would."""
    return compile(text, file, "exec", dont_inherit=True)


def are_live(pairs: Iterable[Pair], live: Mapping[Place, list[FunctionType]]) -> bool:
    """Whether all functions to be changed are there."""
    return all(place_of(old) in live for old, _ in pairs)


def put_in(pairs: Iterable[Pair], live: Mapping[Place, list[FunctionType]]) -> None:
    """Change live functions."""
    for old, new in pairs:
        for function in live.get(place_of(old), ()):
            function.__code__ = new
