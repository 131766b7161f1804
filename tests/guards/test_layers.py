"""A module imports only from the layers before its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.guards.source import Source, sources

# In the order of DESIGN section 2. A new arrow is a diff in this list, and a decision in design/.
LAYERS = (
    ("errors", "_later", "_names", "_steps"),
    ("_extra",),
    ("_arguments",),
    ("models",),
    ("formats",),
    ("_pairing",),
    ("_grouping",),
    ("_history",),
    ("units",),
    ("_order",),
    ("_repairing",),
    ("validity",),
    ("counting",),
    ("budget",),
    ("report",),
    ("summaries._base",),
    ("strategies",),
    ("blocks",),
    ("allocation",),
    ("trimming",),
    ("_driving",),
    ("_margins",),
    ("_portion",),
    ("_joint",),
    ("_asking",),
    ("_fitting",),
    ("_reporting",),
    ("_fit_plan",),
    ("_fitted",),
    ("_quick",),
    ("_fit",),
    ("_afit",),
    ("_bonds",),
    ("_composing",),
    ("_outcome",),
    ("_settling",),
    ("_context_report",),
    ("_context_plan",),
    ("context",),
    ("policy",),
    ("summaries",),
    ("history",),
    ("stores",),
    ("session",),
    ("cli", "testing"),
    ("__main__",),
    ("__init__",),
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}


def _top(module: str) -> str:
    """Give the part of a dotted name that a layer is named after; the package itself is `__init__`.

    A module of a package may have a layer of its own, where strategies need it and the rest needs them.
    """
    inner = module.removeprefix("trimtab.")
    return inner if inner in RANK else [*module.split("."), "__init__"][1]


def _package(source: Source) -> list[str]:
    parts = source.name.split(".")
    return parts if source.path.name == "__init__.py" else parts[:-1]


def _imported(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """List (statement, module of ours), those inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if alias.name.startswith("trimtab"))
        elif isinstance(node, ast.ImportFrom):
            package = _package(source)
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "trimtab":
                yield from ((node, _member(alias.name)) for alias in node.names)
            elif module.startswith("trimtab."):
                yield node, module


def _member(name: str) -> str:
    """Tell `from trimtab import units` (a module) from `from trimtab import fit` (the package's own name)."""
    return f"trimtab.{name}" if name in RANK else "trimtab"


def test_the_guard_sees_the_package() -> None:
    """The guard cannot pass by finding nothing."""
    assert len(sources()) >= 20
    assert sum(1 for source in sources() for _ in _imported(source)) >= 40


def test_every_module_has_a_layer() -> None:
    """A new top-level module is put in its place in LAYERS."""
    assert {_top(source.name) for source in sources()} - RANK.keys() == set()


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_a_module_imports_only_from_layers_before_its_own(source: Source) -> None:
    """No arrow points up; inside one package and one module anything goes."""
    mine = _top(source.name)
    breaches = [
        f"{source.where(node)}: {source.name} imports {module}"
        for node, module in _imported(source)
        if _top(module) != mine and RANK.get(_top(module), len(LAYERS)) >= RANK.get(mine, -1)
    ]
    assert breaches == []
