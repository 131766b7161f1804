"""The floors of the house: a room imports only from rooms on lower floors, and no room has a circle in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.guards.source import Source, sources

# design/house.md draws them. A room is a folder or a file right below the package.
FLOORS = (
    ("errors",),
    ("_shared",),
    ("models", "report", "relevance", "rules"),
    ("formats", "stores"),
    ("conversation", "counting"),
    ("strategies", "budget", "compact"),
    ("_fitting",),
    ("_fit", "context", "history", "results", "telemetry"),
    ("session", "policy", "summaries", "testing"),
    ("replay", "integrations"),
    ("batch", "inspector"),
    ("gateway",),
    ("cli",),
    ("__init__", "__main__"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS, 1) for room in rooms}


def _room(module: str) -> str:
    """Give the room a module stands in; the package itself is `__init__`."""
    return [*module.split("."), "__init__"][1]


def _imported(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """List (statement, module of ours), those inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if alias.name.startswith("trimtab"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.where(node)}: imports are absolute"
            module = node.module or ""
            if module == "trimtab":
                yield from ((node, _member(alias.name)) for alias in node.names)
            elif module.startswith("trimtab."):
                yield node, module


def _member(name: str) -> str:
    """Tell `from trimtab import history` (a room) from `from trimtab import fit` (the package's own name)."""
    return f"trimtab.{name}" if name in FLOOR_OF else "trimtab"


def test_the_guard_sees_the_package() -> None:
    """The guard cannot pass by finding nothing."""
    assert len(sources()) >= 100
    assert sum(1 for source in sources() for _ in _imported(source)) >= 500


def test_every_room_has_a_floor() -> None:
    """A new room is put on its floor, and a floor names no room that is gone."""
    assert {_room(source.name) for source in sources()} == FLOOR_OF.keys()


def test_a_room_imports_only_from_lower_floors() -> None:
    """No arrow goes up or sideways; inside a room the order is that of its work."""
    breaches = [
        f"{source.where(node)}: {source.name} imports {module}"
        for source in sources()
        for node, module in _imported(source)
        if _room(module) != _room(source.name) and FLOOR_OF[_room(module)] >= FLOOR_OF[_room(source.name)]
    ]
    assert breaches == []


def _for_types(source: Source) -> set[int]:
    """The statements under TYPE_CHECKING, which never run."""
    return {
        id(inner)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }


@pytest.mark.parametrize("room", sorted(FLOOR_OF))
def test_no_room_has_a_circle(room: str) -> None:
    """Modules of one room import each other in the order of the work, never in a circle; types apart."""
    arrows = {
        source.name: {
            module
            for node, module in _imported(source)
            if _room(module) == room and id(node) not in _for_types(source)
        }
        for source in sources()
        if _room(source.name) == room
    }
    while leaves := [name for name, needs in arrows.items() if not needs & arrows.keys() - {name}]:
        for name in leaves:
            del arrows[name]
    assert arrows == {}


def test_batches_enter_the_engine_nowhere() -> None:
    """The room for whole data sets stands on doors and on what rooms below share; it looks into nobody."""
    batch = [source for source in sources() if _room(source.name) == "batch"]
    assert len(batch) >= 5
    assert [source.name for source in batch for _, module in _imported(source) if "._fitting" in module] == []
    assert [
        source.where(node)
        for source in batch
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and getattr(node.value, "id", "") not in ("self", "_Walk")
    ] == []
