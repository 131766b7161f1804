"""Codex through a gateway, from npm: each question a run of its command that goes on from the one before."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import gateway
from tests.integrations.gateway.agents import agents_model, last_words
from tests.integrations.gateway.test_node import told_of
from tests.integrations.loops import IMAGE, LOOPS, Loop, Question
from tests.integrations.upstream import Score, hold
from tests.npm import installed

pytestmark = pytest.mark.long  # its package has 400 MB

PACKAGES = ("@openai/codex@0.171.0",)
BUDGET_TOKENS = 24_000
"""Its instructions and tools have 8,000 of them."""
SETTINGS = """
model = "gpt-5"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = {address}
wire_api = "responses"
env_key = "GATEWAY_KEY"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.loop]
command = {python}
args = {arguments}
[analytics]
enabled = false
"""
OPTIONS = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
"""It runs no command here but the tool of the loop, which it would ask somebody about."""


def play(loop: Loop, home: Path) -> Score:
    """Play a loop with Codex, its own instructions and all of its tools."""
    program = installed(PACKAGES) / "node_modules" / ".bin" / "codex"
    places, picture = home / "answers.json", home / "picture.png"
    places.write_text(json.dumps(told_of(loop)["answers"]), encoding="utf-8")
    picture.write_bytes(base64.b64decode(IMAGE.partition(",")[2]))
    answers = []
    with ExitStack() as stack:
        behind = stack.enter_context(agents_model(loop, _put_in_namespace, budget_tokens=BUDGET_TOKENS))
        front = stack.enter_context(gateway(behind.address, budgets={"*": str(BUDGET_TOKENS)}))
        _write_settings(home, front.address, places)
        for number, question in enumerate(loop.questions):
            words = [program, "exec", *OPTIONS, *(["resume", "--last"] if number else [])]
            answers.append(_answer([*words, *_asked(question, picture)], home))
    assert answers == last_words(loop)
    return behind.score


def _put_in_namespace(call: dict[str, Any]) -> None:
    call["namespace"] = "mcp__loop"


def _write_settings(home: Path, address: str, places: Path) -> None:
    given = {
        "address": f"{address}/v1",
        "python": sys.executable,
        "arguments": [str(Path(__file__).with_name("look.py")), str(places)],
    }
    text = SETTINGS.format(**{name: json.dumps(value) for name, value in given.items()})
    (home / "config.toml").write_text(text, encoding="utf-8")


def _asked(question: Question, picture: Path) -> list[str]:
    return [*([f"--image={picture}"] if question.has_image else []), question.text]


def _answer(words: list[Any], home: Path) -> str:
    """Run Codex once; gives its last message."""
    own = {"CODEX_HOME": str(home), "HOME": str(home), "GATEWAY_KEY": "none"}
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        words,
        env=kept | own,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    events = [json.loads(line) for line in done.stdout.splitlines()]
    said = [one["item"]["text"] for one in events if one.get("item", {}).get("type") == "agent_message"]
    return str(said[-1])


def test_a_small_loop_of_codex_is_valid_and_within_the_budget(tmp_path: Path) -> None:
    """Seven questions: a picture, results side by side, and a call that fails."""
    short = replace(LOOPS[0], questions=LOOPS[0].questions[:7])
    score = play(short, tmp_path)
    assert (score.invalid, score.over, score.blind) == ([], [], [])
    assert score.requests == short.model_calls


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_loop_of_codex_is_as_good_as_with_an_adapter(loop: Loop, tmp_path: Path) -> None:
    """Valid, within the budget, nothing new out of sight; the budget used, the prefix kept.

    At any price: a third or more of each request is what the program says of itself.
    """
    hold(play(loop, tmp_path), loop, price=1)
