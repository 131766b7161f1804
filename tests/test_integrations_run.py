"""Which adapters CI tests: those that stand on what changed, all for the public API, and three in turn."""

from __future__ import annotations

import pytest

from tests.integrations.run import ROOT, chosen, examples_of, names, sources

KNOWN = names()
CLIENTS = {"anthropic", "bedrock", "google_genai", "openai", "openai_compatible"}


@pytest.mark.parametrize(
    "path",
    [
        "src/trimtab/_fit.py",
        "src/trimtab/_fitting/settle.py",
        "src/trimtab/integrations/base.py",
        "src/trimtab/strategies/__init__.py",
        "tests/guards/public_signatures.txt",
        "tests/integrations/upstream.py",
    ],
)
def test_what_all_adapters_stand_on_runs_all(path: str) -> None:
    """The front door, the public names, what adapters share, and the loops they are tested by."""
    missing = {*KNOWN} - {*chosen(KNOWN, [path], 0)}
    assert missing <= {"fastapi", "gateway", "mcp", "ray", "spark"}  # which are no adapters of requests


@pytest.mark.parametrize(
    "path",
    [
        "src/trimtab/counting/totals.py",
        "src/trimtab/strategies/cut_memory.py",
        "src/trimtab/integrations/chats.py",
    ],
)
def test_what_some_stand_on_runs_these(path: str) -> None:
    """What only the clients use runs the clients, and three in turn."""
    found = {*chosen(KNOWN, [path], 0)}
    assert found >= CLIENTS
    assert len(found) <= 8


def test_what_no_adapter_names_runs_three_in_turn() -> None:
    """Each is run within as many commits as there are threes of them."""
    path = "src/trimtab/counting/graphemes.py"
    turns = [chosen(KNOWN, [path], commits) for commits in range(len(KNOWN))]
    assert all(len(turn) == 3 for turn in turns)
    assert {name for turn in turns[: -(-len(KNOWN) // 3)] for name in turn} == {*KNOWN}


def test_every_adapter_stands_on_its_own_files() -> None:
    """Its module and its tests, and what an adapter imports is a file that is there."""
    for name in KNOWN:
        assert f"tests/integrations/{name}/" in sources(name)
    assert "src/trimtab/integrations/strands.py" in sources("strands")
    assert "src/trimtab/batch/" in sources("ray")


def test_every_example_is_run_for_one_adapter_and_a_change_of_it_runs_that_adapter() -> None:
    """No program of examples/integrations is left out, nor run for two."""
    owners = [(name, path) for name in KNOWN for path in examples_of(name)]
    programs = [path for _, path in owners]
    assert sorted(programs) == sorted((ROOT / "examples" / "integrations").glob("*.py"))
    for name, path in owners:
        assert path.relative_to(ROOT).as_posix() in sources(name)
