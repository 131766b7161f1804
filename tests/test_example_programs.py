"""A user's program for each role, run as users run it: real clients, against servers on this machine.

The servers refuse what the providers refuse (tests/judge), so a program that ends has sent valid requests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.judge.server import Provider, answered, provider
from trimtab.counting import counter_for

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PROGRAMS = ("chat_openai", "rag_openai", "agent_anthropic", "service_sqlite", "batch_cli")

for package in ("openai", "anthropic"):
    pytest.importorskip(package)


def command(name: str, *arguments: str) -> list[str]:
    """Give the line that runs a program."""
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]


def surroundings(server: Provider | None = None) -> dict[str, str]:
    """Give an environment in which the SDKs ask the server, and `trimtab` is on the path."""
    address = "http://127.0.0.1:9" if server is None else server.address
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "PYTHONIOENCODING": "utf-8"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    urls = {"OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address}
    source = {"PYTHONPATH": str(EXAMPLES.parent / "src")}
    return {**os.environ, **keys, **urls, **source, "PATH": path}


def run(server: Provider | None, name: str, *arguments: str, given: str = "", code: int = 0) -> str:
    """Run a program to its end; gives what it printed."""
    done = subprocess.run(
        command(name, *arguments),
        input=given,
        capture_output=True,
        encoding="utf-8",
        env=surroundings(server),
        cwd=EXAMPLES.parent,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_as_long_as_a_screen(name: str) -> None:
    """At most 40 lines, so that somebody reads it."""
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 40


@pytest.mark.long
def test_a_chat_keeps_the_whole_talk_and_sends_what_fits() -> None:
    """Sixty long questions: the system text and the newest are in each request, none passes the budget."""
    question = "Why is the sky blue over the sea, and what colour has it over a field of barley? " * 6
    with provider() as server:
        shown = run(server, "chat_openai", given=f"{question}\n" * 60)
    sizes = [counter_for("gpt-4o").count(body["messages"]) for _, body in server.bodies]
    assert len(sizes) == 60
    assert max(sizes) <= 4_000 < sum(sizes[:2]) * 30
    for _, body in server.bodies:
        assert body["messages"][0]["role"] == "system"
        assert body["messages"][-1] == {"role": "user", "content": question.strip()}
    assert "0 old messages evicted" in shown
    assert len(server.bodies[-1][1]["messages"]) < 120
    assert f"({sizes[-1]:,} of 4,000 tokens" in shown


def test_questions_are_answered_from_documents_within_a_policy() -> None:
    """The best section that fits its share is sent, the question last."""
    with provider() as server:
        shown = run(server, "rag_openai", "Which keys may a policy hold, and how are blocks ranked?")
    ((_, body),) = server.bodies
    contents = [message["content"] for message in body["messages"]]
    assert contents[0].startswith("Answer from the documents")
    assert contents[-1].startswith("Which keys may a policy hold")
    assert any("policy" in text for text in contents[1:-1])
    assert counter_for("gpt-4o").count(body["messages"]) <= 7_168
    assert "documents" in shown


def reading(*paths: str) -> Any:
    """Make a model that reads one file a turn, and then answers."""
    left = list(paths)

    def answer(form: str, body: dict[str, Any]) -> Any:
        said = answered(form, body["model"])
        if not left:
            return said
        call = {
            "type": "tool_use",
            "id": f"toolu_{len(left)}",
            "name": "read_file",
            "input": {"path": left.pop(0)},
        }
        return {**said, "content": [call], "stop_reason": "tool_use"}

    return answer


@pytest.mark.long
def test_an_agent_reads_many_files_and_each_request_is_taken() -> None:
    """Old results are blanked, calls keep theirs; the task is in every request."""
    files = [
        f"src/trimtab/{name}.py" for name in ("errors", "budget", "units", "history", "blocks", "allocation")
    ]
    task = "What do these modules do?"
    with provider(reading(*files, "none.py")) as server:
        shown = run(server, "agent_anthropic", task)
    assert len(server.bodies) == len(files) + 2
    assert shown.splitlines()[-1] == "ok"
    for _, body in server.bodies:
        assert body["messages"][0] == {"role": "user", "content": task}
        assert counter_for("claude-sonnet-5").count(body["messages"]) <= 8_000 - 1_024
    assert "no file none.py" in json.dumps(server.bodies[-1][1])
    assert "(0 " not in shown
    blanked = [line for line in shown.splitlines() if "results blanked" in line and "; 0 results" not in line]
    assert blanked  # in which request depends on how long these files are


def asked(port: int, user: str, text: str) -> str:
    """Ask the service once."""
    import socket

    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(json.dumps({"user": user, "text": text}).encode() + b"\n")
        return line.makefile(encoding="utf-8").read()


@pytest.mark.long
def test_a_service_keeps_each_users_talk_across_processes(tmp_path: Path) -> None:
    """Two users, two processes one after the other, one file: each goes on with what was said."""
    with provider() as server:
        for texts in (["I ride a red bicycle.", "It squeaks."], ["Why?"]):
            with subprocess.Popen(
                command("service_sqlite", str(tmp_path / "chats.db"), "0"),
                stdout=subprocess.PIPE,
                env=surroundings(server),
                encoding="utf-8",
            ) as service:
                assert service.stdout is not None
                port = int(service.stdout.readline().split()[1])
                try:
                    for text in texts:
                        assert asked(port, "ada", text) == "ok\n"
                    assert asked(port, "bob", "Hello") == "ok\n"
                finally:
                    service.kill()
    last = {json.dumps(body["messages"][-1]): body["messages"] for _, body in server.bodies}
    talks = [[message["content"] for message in messages] for messages in last.values()]
    assert ["Be brief.", "I ride a red bicycle.", "ok", "It squeaks.", "ok", "Why?"] in talks
    assert ["Be brief.", "Hello", "ok", "Hello"] in talks


def test_many_chats_become_one_batch(tmp_path: Path) -> None:
    """Each fits, or is named on standard error and left out; nothing is sent by anybody."""
    long = [{"role": role, "content": "some words " * 400} for role in ("user", "assistant") * 20]
    (tmp_path / "deep").mkdir()
    chats = {"a.json": long, "deep/b.json": [{"role": "user", "content": "Hi"}], "c.json": "no chat"}
    for name, chat in chats.items():
        (tmp_path / name).write_text(json.dumps(chat), encoding="utf-8")
    requests = [json.loads(line) for line in run(None, "batch_cli", str(tmp_path), code=1).splitlines()]
    assert [request["custom_id"] for request in requests] == ["a", "deep/b"]
    assert all(counter_for("gpt-4o").count(request["body"]["messages"]) <= 8_000 for request in requests)
    assert len(requests[0]["body"]["messages"]) < len(long)
    for name in ("a.json", "c.json"):
        (tmp_path / name).unlink()
    assert [json.loads(line)["custom_id"] for line in run(None, "batch_cli", str(tmp_path)).splitlines()] == [
        "deep/b"
    ]
