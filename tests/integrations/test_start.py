"""The programs of docs/programs.md run as a newcomer runs them: alone, in an empty folder.

Each needs its framework, so `run.py` asks for one of them, in the environment of that framework. The docs
tests hold the page to these files. The server they ask refuses what the providers refuse.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judge.server import provider, run_alone

HERE = Path(__file__).resolve().parent

FORMS = {
    "agent_framework": ["openai_chat"],
    "google_adk": ["gemini"],
    "haystack": ["openai_chat"],
    "langchain": ["openai_chat"],
    "litellm": ["openai_chat"],
    "mcp": [],
    "openai_agents": ["openai_responses"],
    "pydantic_ai": ["openai_responses"],
    "strands": ["openai_chat"],
}
"""What each sends; the server of MCP asks no model."""


@pytest.mark.parametrize("name", FORMS)
def test_the_program_of_the_page_sends_a_valid_request_and_prints_the_answer(
    name: str, tmp_path: Path
) -> None:
    """One request, which the judge accepts."""
    with provider() as server:
        told = run_alone([HERE / name / "start.py"], server, tmp_path)
    assert ("Why is the sky blue?" if name == "mcp" else "ok") in told
    assert [form for form, _ in server.bodies] == FORMS[name]
