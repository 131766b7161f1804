"""`trimtab stats`: numbers that add up to those of `count` and `fit`, of whatever is in a folder."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.chat_in_forms import said_in
from trimtab import cli, fit
from trimtab.errors import BudgetExceededError
from trimtab.models import dollars_for

COUNTER = ("--counter", "chars:4")


def run(*arguments: str | Path) -> Result:
    """Run `trimtab`."""
    return CliRunner().invoke(cli.command(), [*map(str, arguments)])


def stats(*arguments: str | Path) -> dict[str, Any]:
    """Run `trimtab stats` and read its JSON."""
    found = run("stats", *arguments)
    assert found.exit_code == 0, found.output
    return dict(json.loads(found.stdout))


def an_agent(turns: int, log: str = "line of a log ") -> list[Any]:
    """Write turns in each of which a tool is called; the log is longer by the turn."""
    messages: list[Any] = [{"role": "system", "content": "You read logs and answer in a word. " * 4}]
    for turn in range(turns):
        tool = ("read_log", "search")[turn % 2]
        call = {"id": f"c{turn}", "type": "function", "function": {"name": tool, "arguments": '{"n": 1}'}}
        messages += [
            {"role": "user", "content": f"Look at file {turn}, please."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"{log * (turn + 1)}{turn}"},
            {"role": "assistant", "content": f"File {turn} is fine."},
        ]
    return messages


def write(path: Path, conversations: Sequence[Any]) -> Path:
    """Write conversations, one a line."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in conversations), encoding="utf-8")
    return path


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Write a folder of two files with seven conversations."""
    write(tmp_path / "a.jsonl", [an_agent(turns) for turns in (1, 2, 3, 5)])
    write(tmp_path / "b.jsonl", [{"messages": an_agent(turns)} for turns in (8, 13, 21)])
    return tmp_path


def test_the_numbers_are_those_of_count(chats: Path) -> None:
    """All of it adds up: roles and what is beside them, kinds, and the conversations one by one."""
    found = stats(chats, *COUNTER)
    counted = [
        json.loads(line) for line in run("count", chats, *COUNTER, "--each").stdout.splitlines() if line
    ]
    assert (found["files"], found["conversations"]) == (2, len(counted))
    tokens = sorted(one["tokens"] for one in counted)
    assert found["tokens"] == sum(tokens)
    assert found["messages"] == sum(one["total_message_count"] for one in counted)
    sizes = sorted(message["tokens"] for one in counted for message in one["messages"])
    for told, numbers in ((found["conversation_tokens"], tokens), (found["message_tokens"], sizes)):
        half = next(n for n in numbers if sum(other <= n for other in numbers) * 2 >= len(numbers))
        most = next(n for n in numbers if sum(other <= n for other in numbers) * 10 >= 9 * len(numbers))
        assert (told["p50"], told["p90"], told["max"]) == (half, most, numbers[-1])
        assert told["mean"] == round(sum(numbers) / len(numbers), 1)
    roles = {row["role"]: row["tokens"] for row in found["roles"]}
    for role, told_tokens in roles.items():
        own = [row["tokens"] for one in counted for row in one["messages"] if row["role"] == role]
        assert told_tokens == sum(own)
    assert sum(row["tokens"] for row in found["kinds"]) == found["tokens"]
    assert sum(row["tokens"] for row in found["tools"]) == roles["tool"]


@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini", "bedrock"])
def test_the_room_is_told_by_tool_and_kind_in_every_form(tmp_path: Path, form: str) -> None:
    """A result is of the tool that was called, also where it is a part of a message of the user."""
    messages = an_agent(6)
    given = messages if form == "openai_chat" else said_in(form, messages)
    found = stats(write(tmp_path / "a.jsonl", [given]), *COUNTER, "--format", form)
    assert {row["tool"]: row["count"] for row in found["tools"]} == {"read_log": 3, "search": 3}
    assert {"text", "tool calls", "tool results"} <= {row["kind"] for row in found["kinds"]}
    assert sum(row["tokens"] for row in found["kinds"]) == found["tokens"]


def test_a_text_that_is_there_again_is_told(tmp_path: Path) -> None:
    """In the same conversation, and in another; where it stood first is said, and what it is of."""
    page = "the same long page of text " * 20
    again = [
        {"role": "user", "content": page},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": page},
    ]
    other = [{"role": "user", "content": page}, {"role": "assistant", "content": "Yes."}]
    found = stats(write(tmp_path / "a.jsonl", [an_agent(1), again, other]), *COUNTER)["repeats"]
    assert (found["within_conversations"]["count"], found["across_conversations"]["count"]) == (1, 1)
    (most,) = found["most"]
    assert (most["line"], most["index"], most["what"], most["again"]) == (2, 0, "user", 2)
    assert page not in json.dumps(found)


def test_budgets_say_what_fit_would_do_and_what_all_calls_cost_at_most(chats: Path) -> None:
    """Each conversation is fitted as `fit` does it; what is sent is no more than the room at each call."""
    asked = [50, 300, 800]
    budgets = [part for budget in asked for part in ("--budget", str(budget))]
    found = stats(chats, *COUNTER, *budgets, "--model", "gpt-4o")
    conversations = [an_agent(turns) for turns in (1, 2, 3, 5, 8, 13, 21)]
    price = dollars_for("gpt-4o")
    assert price is not None
    for told in found["budgets"]:
        evicted = refused = over = sent = 0
        for messages in conversations:
            for at, message in enumerate(messages):
                if message["role"] == "assistant":
                    whole = fit(messages[:at], 100_000, counter="chars:4", model="gpt-4o", repair=False)
                    sent += min(whole.tokens_after, told["budget"])
            try:
                fitted = fit(messages, told["budget"], counter="chars:4", model="gpt-4o")
            except BudgetExceededError:
                refused, over = refused + 1, over + 1
                continue
            evicted += len(fitted.evicted)
            over += bool(fitted.evicted or fitted.changed)
        assert (told["conversations_over"], told["refused"], told["evicted_message_count"]) == (
            over,
            refused,
            evicted,
        )
        assert told["sent_tokens"] == sent
        assert told["dollars"] == pytest.approx(sent * price / 1e6, abs=1e-6)
    assert found["sent_tokens"] >= found["budgets"][-1]["sent_tokens"] > found["budgets"][0]["sent_tokens"]


def test_without_a_price_there_are_no_dollars(chats: Path) -> None:
    """One conversation of a model nobody knows a price of is enough: a part of a bill is none."""
    found = stats(chats, *COUNTER, "--budget", "300")
    assert found["dollars"] is None
    assert found["budgets"][0]["dollars"] is None
    assert (
        "dollars"
        not in run("stats", chats, *COUNTER, "--budget", "300", "--output", "text").stdout.split("Evicted")[0]
    )


def test_what_cannot_be_read_is_told_by_the_first_of_its_kind(tmp_path: Path) -> None:
    """The others are counted, and the exit code says that not all were."""
    path = write(tmp_path / "a.jsonl", [an_agent(1), 5, 6, an_agent(2)])
    found = run("stats", path, *COUNTER)
    assert found.exit_code == 1
    told = json.loads(found.stdout)
    assert told["conversations"] == 2
    assert told["failed"]["FormatError"]["count"] == 2
    assert told["failed"]["FormatError"]["first"]["line"] == 2
    assert "2 conversations set aside (FormatError), the first in" in found.stderr
    assert "line 2" in found.stderr


def test_a_wrong_budget_or_an_empty_input_is_wrong_usage(tmp_path: Path, chats: Path) -> None:
    """Nothing is on standard output then."""
    empty = tmp_path / "none.jsonl"
    empty.write_text("", encoding="utf-8")
    for arguments in (
        (chats, "--budget", "many"),
        (chats, "--model", "gpt-4o", "--budget", "900k"),
        (empty,),
    ):
        found = run("stats", *arguments, *COUNTER)
        assert (found.exit_code, found.stdout) == (2, ""), found.output


def test_the_page_needs_no_script_and_names_of_others_are_inert(tmp_path: Path) -> None:
    """Names of tools and roles come from whoever wrote the logs."""
    hostile = "<script>alert(1)</script>\x1b[2J"
    text = json.dumps(an_agent(3)).replace("read_log", json.dumps(hostile)[1:-1])
    path = write(tmp_path / "a.jsonl", [json.loads(text)])
    page = run("stats", path, *COUNTER, "--budget", "100", "--output", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    shown = run("stats", path, *COUNTER, "--budget", "100", "--output", "text").stdout
    assert "\x1b" not in shown
    assert "What budgets would do" in shown


def test_no_conversation_is_held(tmp_path: Path) -> None:
    """Of 12 MB in 120 conversations no more than a few are there at a time, with budgets, too."""
    path = tmp_path / "a.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(120):
            file.write(json.dumps(an_agent(20, f"log {number} says much ")) + "\n")
            file.write(json.dumps([{"role": "user", "content": f"{number} " * 30_000}]) + "\n")
    assert path.stat().st_size > 10_000_000
    run("stats", path, *COUNTER, "--budget", "300")  # what is loaded once is not counted
    tracemalloc.start()
    found = run("stats", path, *COUNTER, "--budget", "300", "--budget", "600")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.exit_code == 0
    assert peak < 6_000_000


def test_count_says_how_long_many_conversations_are(chats: Path) -> None:
    """Totals and percentiles stand beside the answers, one of which is of each conversation."""
    found = run("count", chats, *COUNTER)
    tokens = sorted(json.loads(line)["tokens"] for line in found.stdout.splitlines())
    assert f"{sum(tokens):,} tokens in all" in found.stderr
    assert f"half up to {tokens[3]:,}, 90 % up to {tokens[6]:,}, the longest {tokens[6]:,}" in found.stderr
