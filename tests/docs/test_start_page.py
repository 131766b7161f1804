"""The programs to begin with, for each role, SDK and framework, run as a newcomer runs them: alone, in an
empty folder.

The server they ask refuses what the providers refuse, so a program that ends has sent valid requests. Both
type checkers read each as a file of its own in `make types`. The frameworks are not here: their programs are
files of `tests/integrations`, which run where the framework is.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT, blocks
from tests.judge.server import Provider, answered, provider, run_alone

PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
PROGRAMS = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
SDKS = [block.text for block in blocks(PROGRAMS) if block.kind == "python"]
CHAT, DOCUMENTS, AGENT, SERVICE = [block.text for block in blocks(PAGE) if block.kind == "python"]


def run(program: str, server: Provider, folder: Path) -> str:
    """Run a program alone; gives what it printed."""
    return run_alone(["-c", program], server, folder, PYTHONPATH=str(ROOT / "src"))


def length(program: str) -> int:
    """Count the lines of a program beside its imports."""
    imports = [node for node in ast.parse(program).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(bool(line.strip()) for line in program.splitlines()) - len(imports)


@pytest.mark.parametrize("program", [CHAT, DOCUMENTS, AGENT, SERVICE])
def test_a_program_has_ten_lines_beside_its_imports(program: str) -> None:
    """So that a newcomer reads it at once."""
    assert length(program) <= 10


def test_the_chat_sends_its_history(tmp_path: Path) -> None:
    """The second request has the first question and its answer."""
    with provider() as server:
        assert run(CHAT, server, tmp_path) == "ok\nok\n"
    asked = [[message["role"] for message in body["messages"]] for _, body in server.bodies]
    assert asked == [["system", "user"], ["system", "user", "assistant", "user"]]


def test_the_documents_stand_between_instructions_and_question(tmp_path: Path) -> None:
    """One request, all parts in order."""
    with provider() as server:
        assert run(DOCUMENTS, server, tmp_path) == "ok\n"
    ((_, body),) = server.bodies
    said = [message["content"] for message in body["messages"]]
    assert said[0] == "Answer from the documents."
    assert said[-1] == "When is the disk of host 7 cleaned?"
    assert "Host 7" in "".join(said[1:-1])


def test_the_agent_runs_its_tool_and_ends_with_the_answer(tmp_path: Path) -> None:
    """Three calls of the tool, each with the files of the folder it runs in, then the answer."""
    (tmp_path / "letter.txt").touch()
    left = [1, 2, 3]

    def answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
        said = answered("anthropic", body["model"])
        if not left:
            return said
        call = {"type": "tool_use", "id": f"toolu_{left.pop()}", "name": "list_files", "input": {}}
        return {**said, "content": [call], "stop_reason": "tool_use"}

    with provider(answer) as server:
        run(AGENT, server, tmp_path)
    assert len(server.bodies) == 4
    results = [
        block["content"]
        for message in server.bodies[-1][1]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    assert results == ["letter.txt"] * 3


@pytest.mark.long
def test_the_service_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """Two processes, one file: the second request has what was said in the first."""
    with provider() as server:
        for text in ("Hello", "And now?"):
            run(f"{SERVICE}\nprint(reply('ada', {text!r}))", server, tmp_path)
    said = [message["content"] for message in server.bodies[-1][1]["messages"]]
    assert said == ["Hello", "ok", "And now?"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("form", "program"),
    list(zip(["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"], SDKS, strict=True)),
)
def test_a_program_for_an_sdk_sends_a_valid_request_and_prints_the_answer(
    form: str, program: str, tmp_path: Path
) -> None:
    """In the form that its heading says."""
    with provider() as server:
        assert run(program, server, tmp_path) == "ok\n"
    assert [asked for asked, _ in server.bodies] == [form]


def test_a_program_for_a_framework_is_the_file_that_runs_where_the_framework_is() -> None:
    """Each adapter's, word for word, and no other."""
    files = (ROOT / "tests" / "integrations").glob("*/start.py")
    shown = sorted(block.text for block in blocks(PROGRAMS) if block.kind == "py")
    assert shown == sorted(file.read_text(encoding="utf-8") for file in files)
    assert len(shown) >= 9


def test_a_program_for_an_sdk_or_a_framework_has_six_lines_or_little_more() -> None:
    """Beside its imports; that of MCP is a client as well."""
    programs = [block.text for block in blocks(PROGRAMS) if block.kind in ("python", "py")]
    assert [program for program in programs if length(program) > (8 if "mcp" in program else 6)] == []
