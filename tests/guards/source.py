"""The package as the guards see it: its files, their syntax trees, its public names."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_origin

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "trimtab"

NOT_IMPORTED_BY_USERS = ("trimtab.cli",)
"""The command line is used as a command; its functions are not part of the surface."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file of the package."""

    name: str
    """Dotted module name."""
    path: Path
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; to parse all of them takes seconds."""
        return ast.parse(self.text)

    def where(self, node: ast.AST) -> str:
        """Give file and line of a node."""
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@functools.cache
def sources() -> tuple[Source, ...]:
    """Read every module of the package, in order of name."""
    found: list[Source] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(name, path, text))
    return tuple(found)


@functools.cache
def outside() -> tuple[tuple[Path, ast.Module], ...]:
    """Read every file of Python that enters the package from outside: tests, benchmarks, examples."""
    return tuple(
        (path, ast.parse(path.read_text(encoding="utf-8")))
        for folder in ("bench", "examples", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


def functions(tree: ast.AST) -> Iterator[Function]:
    """List every function and method of a tree, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def names_offered(tree: ast.Module) -> list[str]:
    """Read the `__all__` of a module; empty: it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


ADAPTERS = "trimtab.integrations."
"""Doors that stand inside another room, and need a framework each: no environment has them all."""

ROOMS_WITHIN = ("trimtab.testing.corpus",)
"""Doors that stand inside another room."""


def is_public(module: str) -> bool:
    """Tell whether users may import from a module: the package, and the rooms and files right below it.

    What lies deeper is private without an underscore of its own: the room's `__all__` says what may be used.
    """
    if module in ROOMS_WITHIN or module.startswith(ADAPTERS):
        return True
    _, _, inner = module.partition(".")
    return "." not in inner and not inner.startswith("_") and not module.startswith(NOT_IMPORTED_BY_USERS)


def public_modules() -> list[ModuleType]:
    """Import the public modules, the package itself first; adapters are held where their framework is."""
    names = [source.name for source in sources() if is_public(source.name)]
    return [importlib.import_module(name) for name in names if not name.startswith(ADAPTERS)]


class Public(NamedTuple):
    """One public name and what it stands for."""

    name: str
    """As a user writes it: `trimtab.fit`, `trimtab.history.recent`."""
    value: Any


@functools.cache
def public_values() -> tuple[Public, ...]:
    """List what the `__all__` of the public modules hold, each object once, under its shortest name."""
    seen: set[int | str] = set()
    found: list[Public] = []
    for module in sorted(public_modules(), key=lambda module: module.__name__.count(".")):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            # Equal Literals are one object only while typing remembers the first of them.
            key = repr(value) if get_origin(value) is Literal else id(value)
            if inspect.ismodule(value) or key in seen:
                continue
            seen.add(key)
            found.append(Public(f"{module.__name__}.{name}", value))
    return tuple(found)


@functools.cache
def public_callables() -> tuple[Public, ...]:
    """List public functions, classes and the public methods and properties that our classes define."""
    found: list[Public] = []
    for public in public_values():
        if inspect.isclass(public.value):
            found.append(public)
            found.extend(_members(public))
        elif inspect.isroutine(public.value):
            found.append(public)
    return tuple(found)


def _members(public: Public) -> Iterator[Public]:
    for name in sorted(dir(public.value)):
        member = inspect.getattr_static(public.value, name)
        member = getattr(member, "__func__", member)
        if name.startswith("_") and name != "__call__":
            continue
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and function.__module__.startswith("trimtab"):
            yield Public(f"{public.name}.{name}", member)
