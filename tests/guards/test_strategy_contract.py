"""What our own strategies ask of their request: what is listed for those of other people."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.guards.source import PACKAGE, ROOT, Source, sources

ENGINE = ("base", "rows", "runner")
"""The request, its units, and who asks: what these say to each other is no business of a strategy's."""

REQUESTS = ("request", "left", "held")
"""What a request is called where one is asked."""


def _asked(source: Source, *, of: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """List the members that a file asks of objects with some names, and where."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "").lstrip("_")
        if name in of:
            yield node.attr, f"{source.where(node)}: {name}.{node.attr}"


def _strategies() -> list[Source]:
    folder = PACKAGE / "strategies"
    return [one for one in sources() if one.path.parent == folder and one.path.stem not in ENGINE]


def _listed(word: str) -> set[str]:
    """List what two pages say that a request has: words in code in tables; of `costs` those in its row."""
    guide = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    design = (ROOT / "design" / "001-units.md").read_text(encoding="utf-8")
    part = guide.split("### What the request offers")[1].split("**To replace a text**")[0]
    part += design.split("## What a strategy may ask in addition")[1]
    rows = [row for row in part.splitlines() if row.startswith("| `")]
    if word == "request":
        first = [row.split("|")[1] for row in rows]
    else:
        first = [row.split("|")[2] for row in rows if f"`{word}`" in row.split("|")[1]]
    return {name for cell in first for name in re.findall(r"`(\w+)", cell)}


@pytest.mark.parametrize(("of", "word", "least"), [(REQUESTS, "request", 30), (("costs",), "costs", 8)])
def test_a_strategy_of_ours_asks_what_any_may_ask(of: tuple[str, ...], word: str, least: int) -> None:
    """Each member it asks of its request, and of the costs of that, is in a table of one of two pages."""
    # A `SummaryRequest` is called so, too: it is another object.
    asked = {
        where: name
        for one in _strategies()
        for name, where in _asked(one, of=of)
        if one.path.stem not in ("summarizer", "fact_extractor")
    }
    assert len(set(asked.values())) >= least
    assert [where for where, name in asked.items() if name.startswith("_")] == []
    known = _listed(word) | {"isdisjoint"}
    assert [where for where, name in asked.items() if name not in known] == []
