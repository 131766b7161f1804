"""Tests of the recorded session, of the script that records it, and of the demo."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(scope="module")
def session() -> dict[str, Any]:
    """Give the committed session."""
    return _session_of(EXAMPLES / "agent_session.json")


@pytest.fixture(scope="module")
def small_session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Record all scenes over a project of three files nobody could have scripted outputs for."""
    return _recorded_in(tmp_path_factory.mktemp("project"))


SMALL_PROJECT = {
    "README.md": "A zebra called Quagga-7741.\n",
    "src/trimtab/errors.py": "def only_here():\n    raise KeyError('a token')\n",
    "tests/test_numbers.py": "def test_sum():\n    assert 17 + 25 == 43\n",
}


def _recorded_in(root: Path) -> dict[str, Any]:
    for path, text in SMALL_PROJECT.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    output = root / "session.json"
    _run("record_session.py", "--root", str(root), "--output", str(output))
    return _session_of(output)


def _session_of(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _run(
    script: str, *arguments: str, python: tuple[str, ...] = (), code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run an example; `python=("-S",)` is an interpreter that sees no installed package."""
    done = subprocess.run(
        [sys.executable, *python, str(EXAMPLES / script), *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(EXAMPLES.parent / "src")},
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def _faults(messages: list[dict[str, Any]]) -> list[str]:
    """Pair calls and results by hand: every call is answered directly after its message, in any order."""
    faults: list[str] = []
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                faults.append(f"{index}: answers no call")
            waiting.discard(message["tool_call_id"])
            continue
        faults += [f"{index}: {call_id} not answered" for call_id in sorted(waiting)]
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return faults + [f"end: {call_id} not answered" for call_id in sorted(waiting)]


def _calls(session: dict[str, Any], *, tool: str) -> dict[str, dict[str, Any]]:
    """Give the arguments of every call of a tool by the result's text."""
    results = {m["tool_call_id"]: m["content"] for m in session["messages"] if m["role"] == "tool"}
    return {
        results[call["id"]]: json.loads(call["function"]["arguments"])
        for message in session["messages"]
        for call in message.get("tool_calls", ())
        if call["function"]["name"] == tool
    }


def test_the_pairing_used_here_sees_broken_conversations() -> None:
    """The check below could fail: it finds a missing, a late and an extra result."""
    ask = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}
    a, b = ({"role": "tool", "tool_call_id": name, "content": ""} for name in "ab")
    user = {"role": "user", "content": "?"}
    assert _faults([ask, b, a, user]) == []
    assert _faults([ask, a]) == ["end: b not answered"]
    assert _faults([ask, a, user, b]) == ["2: b not answered", "3: answers no call"]
    assert _faults([ask, a, a, b]) == ["2: answers no call"]


def test_the_committed_session_is_valid(session: dict[str, Any]) -> None:
    """Every call is answered once, directly after it, and ids are unique."""
    messages = session["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert _faults(messages) == []
    assert len(ids) == len(set(ids))
    assert messages[0]["role"] == "system"
    assert messages[1]["role"] == "user"


def test_the_committed_session_says_what_is_scripted_and_what_is_real(session: dict[str, Any]) -> None:
    """Nobody who opens the file takes it for a model's work."""
    assert session["about"].startswith("A scripted session")
    assert "no model was asked" in session["about"]
    assert "tool outputs are real" in session["about"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", session["recorded"]["date"])


def test_the_committed_session_is_long_and_waits_for_the_model(session: dict[str, Any]) -> None:
    """Hundreds of messages, many user turns, and a tool result at the end."""
    roles = [message["role"] for message in session["messages"]]
    assert 300 <= len(roles) <= 450
    assert 8 <= roles.count("user") <= 15
    assert roles[-1] == "tool"


def test_the_committed_session_has_every_promised_ingredient(session: dict[str, Any]) -> None:
    """Parallel calls, an error, a failed snippet, one huge output, null contents, other scripts."""
    messages = session["messages"]
    calls_each = {len(message.get("tool_calls", ())) for message in messages}
    outputs = [message["content"] for message in messages if message["role"] == "tool"]
    assert {1, 2, 3} <= calls_each
    assert any(output.startswith("error: no such file") for output in outputs)
    assert any(output.startswith("exit code 1") and "AssertionError" in output for output in outputs)
    assert any(output.startswith("exit code 0") and " passed" in output for output in outputs)
    assert max(len(output.encode()) for output in outputs) > 20_000
    assert {type(m["content"]) for m in messages if m.get("tool_calls")} == {str, type(None)}
    assert "预算" in "".join(m["content"] for m in messages if m["role"] == "assistant" and m["content"])


def test_the_committed_session_uses_only_declared_tools(session: dict[str, Any]) -> None:
    """Names and arguments of all calls are as the schemas say, and every tool is used."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in session["tools"]}
    used = set()
    for message in session["messages"]:
        for call in message.get("tool_calls", ()):
            schema = schemas[call["function"]["name"]]
            arguments = set(json.loads(call["function"]["arguments"]))
            assert set(schema["required"]) <= arguments <= set(schema["properties"])
            used.add(call["function"]["name"])
    assert used == set(schemas)


def test_the_committed_session_names_no_machine_and_stays_small() -> None:
    """No absolute folder of the recording machine, and less than 700 kB."""
    text = (EXAMPLES / "agent_session.json").read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.~-])/(?:work|root|tmp|home|opt|Users)(?![\w-])", text) == []
    assert len(text.encode()) < 700_000


def test_recording_really_reads_the_tree(small_session: dict[str, Any]) -> None:
    """Text that only stands in the project's files comes back from read, search and count."""
    assert "   1  A zebra called Quagga-7741." in _calls(small_session, tool="read_file")
    found = "src/trimtab/errors.py:2: raise KeyError('a token')"
    assert found in _calls(small_session, tool="search")
    assert "1 lines, 4 words, 28 bytes" in _calls(small_session, tool="word_count")
    assert "   1  def only_here (2 lines)" in _calls(small_session, tool="outline")
    assert f"{47:>7} src/trimtab/errors.py" in _calls(small_session, tool="list_files")


def test_recording_really_runs_tests_and_snippets(small_session: dict[str, Any]) -> None:
    """The wrong sum fails under pytest, and the wrong claim about an emoji fails in Python."""
    (tested,) = _calls(small_session, tool="run_tests")
    assert tested.startswith("exit code 1")
    assert "assert (17 + 25) == 43" in tested
    assert "AssertionError: 5 code points" in "".join(_calls(small_session, tool="run_python"))


def test_the_same_tree_gives_the_same_messages(small_session: dict[str, Any], tmp_path: Path) -> None:
    """Durations, folders and addresses are not in the messages, also when another folder is used."""
    assert _recorded_in(tmp_path)["messages"] == small_session["messages"]


@pytest.mark.long
def test_recording_stops_after_the_scenes_asked_for(tmp_path: Path) -> None:
    """`--turns 1` gives the first scene: one user message, its calls answered."""
    output = tmp_path / "short.json"
    _run("record_session.py", "--turns", "1", "--output", str(output))
    messages = _session_of(output)["messages"]
    assert [message["role"] for message in messages].count("user") == 1
    assert _faults(messages) == []


def test_the_demo_fits_the_session_and_checks_itself() -> None:
    """`python examples/demo.py` exits 0; both results are valid, and the second has a shortened message."""
    first, second = _run("demo.py").stdout.split("=== fit(")[1:]
    assert "of 8,000 tokens when counted again; violations: none" in first
    assert "of 2,000 tokens when counted again; violations: none" in second
    assert "evicted" in first
    assert "shortened" not in first
    assert "evicted, then shortened" in second
    assert "The newest message: " in second


def test_the_demo_takes_a_budget() -> None:
    """`--budget` replaces the first budget."""
    assert "of 12,345 tokens when counted again" in _run("demo.py", "--budget", "12345").stdout


def test_the_demo_runs_with_nothing_but_the_standard_library() -> None:
    """Without the tokenizer it estimates, gives the install line, and both results still fit."""
    shown = _run("demo.py", python=("-S",)).stdout
    assert "pip install 'trimtab[exact]'" in shown
    assert shown.count("violations: none") == 2


FILES = (
    "glaive_toolcall_en",
    "glaive_toolcall_zh",
    "golden_usage",
    "pydantic_ai_chats",
    "swe_agent_trajectories",
    "tau_airline_gpt4o",
)


def _told_of(shown: str, file: str) -> str:
    (line,) = [line for line in shown.splitlines() if line.startswith(file + ".jsonl ")]
    return line


def test_the_demo_fits_every_real_conversation(data_dir: Path) -> None:
    """Into 8,000 tokens; but for one, whose latest user message alone is larger, and which fits in 32,000."""
    shown = _run("demo.py", str(data_dir)).stdout
    for file in FILES:
        fit, conversations = re.findall(r"(\d+) of (\d+) fit and stay within", _told_of(shown, file))[0]
        assert int(fit) == int(conversations) > 0
        assert ("all valid" in _told_of(shown, file)) == (file != "golden_usage")
    assert "0 of 1 fit" in _told_of(shown, "pi_coding_sessions")
    assert re.search(r"needs at least 27,\d{3} tokens, 27,\d{3} of them for .*; fits in 32,000", shown)
    assert "=== fit(" not in shown


def test_the_demo_fits_one_file(data_dir: Path) -> None:
    """Into the budget asked for: then the coding session fits, too."""
    shown = _run("demo.py", str(data_dir / "pi_coding_sessions.jsonl"), "--budget", "32000").stdout
    assert "1 of 1 fit" in _told_of(shown, "pi_coding_sessions")


def test_the_demo_without_arguments_fits_the_real_conversations_last(data_dir: Path) -> None:
    """Where they are at hand; the session comes first."""
    shown = _run("demo.py").stdout
    assert 0 < shown.index("=== fit(") < shown.index("=== every conversation in")


def test_the_demo_does_without_real_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said of them where they are not."""
    monkeypatch.setenv("TRIMTAB_DATA", str(tmp_path / "none"))
    assert "every conversation" not in _run("demo.py").stdout


def test_the_demo_reads_lists_of_messages_and_request_bodies(tmp_path: Path) -> None:
    """One line each; a line in another wire form is counted, not fitted."""
    messages = [{"role": "user", "content": "hi"}]
    rows = [
        {"id": "a", "messages": messages},
        {"api": "chat", "request": {"messages": messages}},
        {"api": "x"},
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    told = _told_of(_run("demo.py", str(tmp_path)).stdout, "some")
    assert "2 of 2 fit and stay within budget when counted again, 2 of them whole; all valid" in told
    assert told.endswith("; 1 lines in other wire forms")


BARE = ("-S",)
"""An interpreter that sees no installed package: the examples need none."""


def _used(shown: str) -> list[int]:
    """Give the tokens of each request an example says it would have sent."""
    return [int(number.replace(",", "")) for number in re.findall(r" ([\d,]+) tokens[;,]", shown)]


def test_the_support_bot_fits_every_turn_and_says_that_it_is_scripted() -> None:
    """Six requests within the budget; documents and old messages left, the question never did."""
    shown = _run("support_bot.py", python=BARE).stdout
    assert "no model is asked" in shown
    assert len(_used(shown)) == shown.count("\n> ") == 6
    assert max(_used(shown)) <= 420
    assert "; without " in shown
    assert "old messages evicted" in shown
    assert re.search(r"kept +\d+ +question: user", shown)
    assert "All requests are within the budget and valid." in shown


def test_the_support_bot_really_searches() -> None:
    """What a question is about is found, best first; what shares no word with it is not."""
    shown = _run("support_bot.py", "--budget", "5000", python=BARE).stdout
    found = dict(re.findall(r"> (.+)\n.*documents: ([^;\n]+)", shown))
    assert found["Is the workshop in Bremen open on Saturday?"].startswith("opening hours")
    assert found["What does it cost to measure the belt tension?"].split(", ")[0] in (
        "belt tension",
        "belt drive",
    )
    assert not any("tyres" in names for question, names in found.items() if "belt" in question)


def test_the_support_bot_keeps_everything_in_a_large_budget() -> None:
    """Nothing leaves where all fits, but the documents' cap holds."""
    shown = _run("support_bot.py", "--budget", "5000", python=BARE).stdout
    assert "; without " not in shown
    assert "old messages evicted" not in shown
    assert "19 in: 19 kept" in shown


def test_the_support_bot_says_what_a_budget_is_too_small_for() -> None:
    """System text and question alone pass it: exit 1, and the numbers."""
    done = _run("support_bot.py", "--budget", "50", python=BARE, code=1)
    assert "The request does not fit: block" in done.stderr


def test_the_agent_loop_runs_its_tools_and_answers_by_them() -> None:
    """The longest module and the errors are those of this tree; nobody wrote them into the script."""
    shown = _run("agent_loop.py", "--budget", "9000", python=BARE).stdout
    package = EXAMPLES.parent / "src" / "trimtab"
    longest = max(package.rglob("*.py"), key=lambda path: (path.stat().st_size, path.name))
    lines = longest.read_text(encoding="utf-8").count("\n")
    assert f"The longest module is {longest.relative_to(EXAMPLES.parent).as_posix()} ({lines} lines" in shown
    errors = re.findall(r"^class (\w+)", (package / "errors.py").read_text(encoding="utf-8"), re.M)
    assert f"defines {len(errors)} errors: {', '.join(errors)}." in shown


@pytest.mark.long
def test_the_agent_loop_fits_every_step() -> None:
    """Within small and smaller budgets; old results are blanked, the task and the newest step stay."""
    for budget in (4_000, 1_200):
        shown = _run("agent_loop.py", "--budget", str(budget), python=BARE).stdout
        assert "no model is asked; the tools run" in shown
        assert len(_used(shown)) == 9
        assert max(_used(shown)) <= budget
        assert "blanked or cut" in shown
        assert re.search(r"kept +\d+ +task: user", shown)
        assert re.search(r"kept +\d+ +latest: assistant \+ tool, calls", shown)
        assert "All requests are within the budget and valid." in shown


def test_the_agent_loop_keeps_every_step_in_a_large_budget() -> None:
    """Nothing leaves where all fits."""
    shown = _run("agent_loop.py", "--budget", "60000", python=BARE).stdout
    assert "evicted" not in shown
    assert "blanked or cut" not in shown


def test_the_agent_loop_says_what_a_budget_is_too_small_for() -> None:
    """Without room for the listing there is no answer; without room for the tools, exit 1 and the numbers."""
    assert "I cannot tell" in _run("agent_loop.py", "--budget", "740", python=BARE).stdout
    done = _run("agent_loop.py", "--budget", "600", python=BARE, code=1)
    assert "The request does not fit:" in done.stderr


def test_the_chat_session_goes_on_in_a_second_process() -> None:
    """Every view fits; what one process left is what the other finds, also what is out of view."""
    shown = _run("chat_session.py", python=BARE).stdout
    assert "no model is asked" in shown
    sizes = [int(size.replace(",", "")) for size in re.findall(r"-> +([\d,]+) tokens", shown)]
    assert len(sizes) > 10
    assert max(sizes) <= 8_000
    states = re.findall(r"Version (\d+): ([\d,]+) of 8,000 tokens in view; (\d+) messages summarized", shown)
    assert states[0] == states[1]
    assert int(states[2][2]) < int(states[1][2]) == int(states[3][2])
    assert "user: If a text gets cut, can it cut a family emoji in half?" in shown
    assert shown.count("- “") == 13
    assert "it is valid and fits" in shown


@pytest.mark.long
def test_the_chat_session_keeps_its_file_and_takes_no_other(tmp_path: Path) -> None:
    """A file that holds the session already is left alone."""
    file = tmp_path / "chats.db"
    assert "Everything fits" in _run("chat_session.py", "--budget", "300000", "--store", str(file)).stdout
    before = file.read_bytes()
    assert "already" in _run("chat_session.py", "--store", str(file), code=1).stderr
    assert file.read_bytes() == before


def test_the_chat_session_says_what_a_budget_is_too_small_for() -> None:
    """System text and tools alone pass it."""
    assert "does not fit: " in _run("chat_session.py", "--budget", "300", python=BARE, code=1).stderr
