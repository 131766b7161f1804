"""The programs of examples/integrations run as a user runs them: alone, with no network and no key.

Each needs its framework, so `run.py` asks for those of one adapter, in the environment of that adapter.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.run import examples_of, names

PROGRAMS = {path.stem: path for name in names() for path in examples_of(name)}

ALONE = """
import sys
def refuse(event, args):
    if event == "socket.getaddrinfo" and args[0] not in (None, "127.0.0.1", "::1", "localhost"):
        raise OSError(f"an example asked the network for {args[0]}")
sys.addaudithook(refuse)
"""
"""What Python runs before a program of this test: no name of another machine is found."""

REQUEST = re.compile(r"^ *(\d+) of +(\d+) \w+, ([\d,]+) tokens$", re.MULTILINE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_runs_offline_and_says_what_left_its_requests(name: str, tmp_path: Path) -> None:
    """Every request is within the 4,000 tokens, what left most of them is printed, and nothing is lost."""
    (tmp_path / "sitecustomize.py").write_text(ALONE, encoding="utf-8")
    kept = {key: value for key, value in os.environ.items() if not key.endswith(("_KEY", "_TOKEN"))}
    path = os.pathsep.join(filter(None, (str(tmp_path), kept.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, PROGRAMS[name]],
        capture_output=True,
        encoding="utf-8",
        env={**kept, "PYTHONPATH": path},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if name == "mcp_server":  # it trims a view of a conversation, and sends no request
        assert "the view ends: USER: I did step 39" in done.stdout
        assert "recalled: USER: My order is 7741" in done.stdout
        return
    requests = [tuple(int(n.replace(",", "")) for n in found) for found in REQUEST.findall(done.stdout)]
    assert len(requests) > 30, done.stdout
    assert all(sent <= total and tokens <= 4_000 for sent, total, tokens in requests)
    assert requests[-1][0] < requests[-1][1] / 2
    assert "none of them changed" in done.stdout
