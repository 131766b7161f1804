"""Plugin of a mutant's run of pytest: what killed a neighbour goes first, and who kills is written down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

KILLERS = Path(os.environ.get("TRIMTAB_KILLERS", os.devnull))
"""Names of tests, a line each, the first to run first."""

KILLED = Path(os.environ.get("TRIMTAB_KILLED", os.devnull))
"""Gets the name of the test, or of the file, that failed."""

ONLY = os.environ.get("TRIMTAB_KILLERS_ONLY") == "1"
"""Run no other test."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the killers first; the others keep their order."""
    names = KILLERS.read_text(encoding="utf-8").splitlines()
    rank = {name: at for at, name in enumerate(names)}
    items.sort(key=lambda item: rank.get(item.nodeid, len(rank)))
    if ONLY:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in rank])
        items[:] = [item for item in items if item.nodeid in rank]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down the test that failed."""
    _note(report.failed, report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down the file that cannot be imported."""
    _note(report.failed, report.nodeid)


def _note(failed: bool, name: str) -> None:
    if failed:
        with KILLED.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
