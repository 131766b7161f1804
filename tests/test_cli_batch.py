"""`trimtab batch`: options become a task, what happened becomes an exit code and a line."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.chat_vocabulary import write_small_model
from tests.result_chats import exchange
from trimtab import Budget, cli
from trimtab.batch import BatchTask, Operation
from trimtab.counting import counter_from_tokenizer

CHAT = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " * 40} for n in range(20)]


def run(*arguments: str | Path) -> Result:
    """Run `trimtab batch`."""
    return CliRunner().invoke(cli.command(), ["batch", *map(str, arguments)])


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Write three rows, one of which is none."""
    table = pa.table({"id": [1, 2, 3], "messages": [json.dumps(CHAT), "none", json.dumps(CHAT[:2])]})
    pq.write_table(table, tmp_path / "chats.parquet")
    return tmp_path / "chats.parquet"


def _by_kernel(task: BatchTask, table: pa.Table, file: str) -> pa.Table:
    """Make of the table what a run makes of a file."""
    return task.run(table, range(1, table.num_rows + 1), file=file)


def test_the_answer_says_how_it_went(chats: Path, tmp_path: Path) -> None:
    """A row that was set aside is exit 1."""
    out = tmp_path / "out.parquet"
    found = run("count", chats, out, "--counter", "chars:4", "--workers", "1", "--engine", "local")
    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout) == {
        "rows": 3,
        "failed_rows": 1,
        "errors": {"FormatError": 1},
        "first_failed": {
            "FormatError": {
                "file": "chats.parquet",
                "row": 2,
                "message": "not JSON: Expecting value (column 1)",
            }
        },
        "resumed_rows": 0,
        "outputs": [str(out)],
        "other_files": 0,
    }
    assert "exists already" in run("count", chats, out, "--counter", "chars:4").stderr
    assert run("count", chats, out, "--overwrite", "--workers", "1").exit_code == 1
    assert pq.read_table(out).equals(
        _by_kernel(BatchTask(operation="count"), pq.read_table(chats), "chats.parquet")
    )


@pytest.mark.long
def test_ctrl_c_ends_a_run_at_once_and_a_second_one_too(chats: Path, tmp_path: Path) -> None:
    """No worker is waited for; finished work is kept, and the same command goes on."""
    table = pa.concat_tables([pq.read_table(chats)] * 500)
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=10)
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "batch",
        "fit",
        "many.parquet",
        "out.parquet",
        "--workers",
        "2",
    ]
    command += ["--budget", "100", "--counter", "chars:4"]
    for presses in (1, 2):
        run = subprocess.Popen(
            command,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        manifest = tmp_path / ".out.parquet.trimtab" / "manifest.jsonl"
        while run.poll() is None and not (
            manifest.exists() and manifest.read_bytes().count(b"\n") > 3 * presses
        ):
            time.sleep(0.01)
        for _ in range(presses):
            os.killpg(run.pid, signal.SIGINT)
            time.sleep(0.05)
        said = run.communicate(timeout=120)[1]  # it hung here for ever
        assert run.returncode in ((130,) if presses == 1 else (130, -signal.SIGINT)), said
        assert "the same command goes on" in said or presses == 2
    went_on = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert json.loads(went_on.stdout)["resumed_rows"] >= 30
    task = BatchTask(operation="fit", budget=100, counter="chars:4")
    assert pq.read_table(tmp_path / "out.parquet").equals(_by_kernel(task, table, "many.parquet"))


def test_processes_end_where_nobody_reads_their_answers_any_more(tmp_path: Path) -> None:
    """Also while they hand over answers that are larger than a pipe; half of one was waited for for ever."""
    line = json.dumps([{"role": "user", "content": "tea " * 4_000}] * 40) + "\n"
    (tmp_path / "chats.jsonl").write_text(line * 40)
    command = [sys.executable, "-m", "trimtab", "fit", "chats.jsonl", "--budget", "1m", "--jobs", "3"]
    run = subprocess.Popen([*command, "--counter", "chars:4"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.read(100)
    run.stdout.close()
    assert run.wait(timeout=120) is not None


def test_a_policy_may_be_long_json(chats: Path, tmp_path: Path) -> None:
    """Longer than the name of any file."""
    policy = json.dumps({"kind": "sliding_window"})[:-1] + " " * 5_000 + "}"
    found = run(
        "fit", chats, tmp_path / "out.parquet", "--budget", "200", "--workers", "1", "--policy", policy
    )
    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout)["failed_rows"] == 1


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OPEN = [*CHAT[:2], {"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "well?"}]
FORM = ["--format", "openai_chat"]
ROOM = ["--budget", "300", "--output-reserve", "50", "--margin", "10", "--counter", "chars:4"]
ROOM_MEANS: dict[str, Any] = {
    "budget": Budget(300, output_reserve=50, margin=10),
    "counter": "chars:4",
    "format": "openai_chat",
}
BESIDE = ["--system", "be brief", "--tools", "tools.json"]
BESIDE_MEANS: dict[str, Any] = {"system": "be brief", "tools": TOOLS}
STRIDES = '{"kind": "sliding_window", "target_ratio": 0.5}'


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("operation", "options", "means"),
    [
        ("fit", [*FORM, *ROOM, *BESIDE], {**ROOM_MEANS, **BESIDE_MEANS}),
        ("fit", [*ROOM, *FORM, "--policy", STRIDES], {**ROOM_MEANS, "policy": STRIDES}),
        ("fit", ["--model", "gpt-4o", "--repair"], {"model": "gpt-4o", "repair": True}),
        ("fit", [*FORM, *ROOM, "--strict"], {**ROOM_MEANS, "strict": True}),
        ("fit", [*FORM, *ROOM, "--pending-call", "a"], {**ROOM_MEANS, "pending_calls": ("a",)}),
        ("fit", [*ROOM, "--columns", "chat, tokens_after"], {**ROOM_MEANS, "columns": ("tokens_after",)}),
        ("fit", [*ROOM, "--columns", ""], {**ROOM_MEANS, "columns": ()}),
        ("count", ["--columns", "exact,tokens"], {"columns": ("tokens", "exact")}),
        ("count", ["--model", "gpt-4o", *BESIDE], {"model": "gpt-4o", **BESIDE_MEANS}),
        ("validate", ["--pending-call", "a"], {"pending_calls": ("a",)}),
        (
            "validate",
            ["--pending-call", "a", "--model", "gpt-5"],
            {"pending_calls": ("a",), "model": "gpt-5"},
        ),
        ("replay", ["--pricing", "openai", *FORM, *ROOM], {"pricing": "openai", **ROOM_MEANS}),
    ],
)
def test_options_are_those_of_the_task(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    options: list[str],
    means: dict[str, Any],
) -> None:
    """What comes out is what the kernel makes of the table with them, `--column` and `--prefix` too."""
    monkeypatch.chdir(tmp_path)
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    table = pa.table({"chat": [json.dumps(chat) for chat in (CHAT, CHAT[:2], OPEN)]})
    pq.write_table(table, "in.parquet")
    named = ["--column", "chat", "--prefix", "t_", "--workers", "1"]
    found = run(operation, "in.parquet", "out.parquet", *named, *options)
    task = BatchTask(operation=operation, column="chat", prefix="t_", **means)
    assert pq.read_table("out.parquet").equals(_by_kernel(task, table, "in.parquet")), found.output
    room = {"budget": 120} if "budget" in means or operation == "fit" else {}
    plain = BatchTask(operation=operation, column="chat", prefix="t_", **room)
    assert not task(table).equals(plain(table))


def test_files_that_are_passed_over_are_counted(tmp_path: Path) -> None:
    """One of another kind, one that is packed otherwise and a link to a folder; hidden ones are meant so."""
    (tmp_path / "in").mkdir()
    (tmp_path / "elsewhere").mkdir()
    for name in ("in/a.jsonl", "in/b.json", "in/c.jsonl.bz2", "in/_SUCCESS", "in/.d", "elsewhere/e.jsonl"):
        (tmp_path / name).write_text(json.dumps(CHAT))
    (tmp_path / "in" / "deep").mkdir()
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "f.jsonl").symlink_to(tmp_path / "elsewhere" / "e.jsonl")
    found = run("validate", tmp_path / "in", tmp_path / "out", "--workers", "1", "--output", "text")
    assert found.stdout == "2 rows in 2 files; 3 files of another kind passed over\n"
    found = run("validate", tmp_path / "in", tmp_path / "all.jsonl", "--workers", "1")
    assert json.loads(found.stdout)["other_files"] == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("operation", ["count", "validate", "replay"])
def test_the_other_commands_do_theirs(chats: Path, tmp_path: Path, operation: str) -> None:
    """For people one line says how it went."""
    by_policy = ["--policy", "default", "--budget", "300"]
    options = {"count": ["--counter", "chars:4"], "validate": [], "replay": by_policy}
    out = tmp_path / "out.jsonl"
    found = run(operation, chats, out, "--workers", "1", "--output", "text", *options[operation])
    assert found.stdout == "3 rows in 1 file; 1 set aside (FormatError 1)\n"
    key = {"count": "tokens", "validate": "valid", "replay": "price"}[operation]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row[key] is None for row in rows] == [False, True, False]
    assert rows[0]["messages"] == CHAT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["count", "nothing.jsonl", "out.jsonl"], "No such file"),
        (["fit", "{chats}", "{chats}"], "is an input and would be overwritten"),
        (["fit", "{chats}", "out.parquet", "--margin", "5"], "--margin needs a budget"),
        (["fit", "{chats}", "out.parquet", "--policy", "dropp", "--budget", "9"], "is called 'dropp'"),
        (["count", "{chats}", "{folder}/there.jsonl"], "overwrite it with --overwrite"),
        (["fit", "{chats}", "out.parquet", "--columns", "fate"], "no column 'fate'"),
        (["count", "{chats}", "none.v2"], "('none.v2/')"),
        (
            ["count", "{folder}/there.jsonl", "out.jsonl", "--column", "id"],
            "--column id is the key of the ids in JSON lines",
        ),
        (["count", "{chats}", "out.parquet", "--column", "message"], "there is no column 'message'"),
        (["count", "{chats}", "out.parquet", "--model", "nobody-1"], "unknown model 'nobody-1'"),
    ],
)
def test_wrong_usage_is_exit_2(chats: Path, arguments: list[str], said: str) -> None:
    """Nothing is written; what to change is said in words of the command line."""
    chats.with_name("there.jsonl").write_bytes(b"")
    found = run(*(one.format(chats=chats, folder=chats.parent) for one in arguments))
    assert found.exit_code == 2
    assert said in " ".join(found.stderr.split())


@pytest.mark.long
def test_a_terminal_shows_rows_speed_and_time_to_go(tmp_path: Path) -> None:
    """Once it takes longer than a second; the line is gone at the end."""
    table = pa.table({"messages": [json.dumps(CHAT)] * 800})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=50)
    main, side = pty.openpty()
    command = [sys.executable, "-m", "trimtab", "batch", "replay", "in.parquet", "out.parquet"]
    command += ["--workers", "1", "--policy", "default", "--budget", "300", "--counter", "chars:4"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=side) as process:
        os.close(side)
        shown = b""
        while piece := _read(main):
            shown += piece
    os.close(main)
    assert process.returncode == 0
    lines = shown.decode().split("\r\x1b[K")
    assert re.fullmatch(r"[\d,]+ rows, [\d,]+ a second, \d+:\d\d to go …", lines[1])
    assert lines[-1] == ""


def _read(main: int) -> bytes:
    try:
        return os.read(main, 4_096)
    except OSError:  # the other side was closed
        return b""


# Training data.


ROAD = "The lake road is closed for repairs until the end of June, so take the forest track instead. " * 8
CASE = [
    {"role": "user", "content": f"Q1 {ROAD}"},
    {"role": "assistant", "content": "A1"},
    {"role": "user", "content": f"Q2 {ROAD}"},
    {"role": "assistant", "content": f"A2 {ROAD}"},
]
"""Case 08: a chat whose last answer was cut, and trained on."""


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Write it as a line."""
    (tmp_path / "in.jsonl").write_text(json.dumps({"messages": CASE}) + "\n", "utf-8")
    return tmp_path / "in.jsonl"


def test_case_08_is_said_without_the_flag_and_set_aside_with_it(lines: Path, tmp_path: Path) -> None:
    """The line and the number say what was cut; the reason of the row is counted apart."""
    options = ["--budget", "180", "--model", "gpt-4o", "--workers", "1", "--output"]
    found = run("fit", lines, tmp_path / "a.jsonl", *options, "text")
    said = "1 assistant message was shortened; for training data use --for training"
    assert (found.exit_code, found.stdout) == (0, f"1 row in 1 file; {said}\n")
    found = run("fit", lines, tmp_path / "b.jsonl", *options, "json", "--for", "training")
    summary = json.loads(found.stdout)
    assert (found.exit_code, summary["errors"]) == (1, {"BudgetExceededError": 1})
    assert (summary["failed_rows"], summary["cut_targets"]) == (1, 0)
    assert "the turn of the last answer that is trained on needs 337 tokens" in found.stderr
    assert "messages" not in json.loads((tmp_path / "b.jsonl").read_text("utf-8"))


def test_what_would_change_a_message_is_refused_in_words_of_options(lines: Path, tmp_path: Path) -> None:
    """Each by its name."""
    options = ("fit", lines, tmp_path / "out.jsonl", "--for", "training", "--budget", "99")
    for option, said in (
        (("--policy", "agent"), "--policy says what is cut, and --for training cuts no message"),
        (("--repair",), "--repair rewrites messages, and --for training keeps them as they are"),
    ):
        found = run(*options, *option)
        assert (found.exit_code, said in found.output) == (2, True)


def test_rows_are_counted_by_the_template_of_a_model(lines: Path, tmp_path: Path) -> None:
    """Of a folder, of a tokenizer.json, of a template beside one; and not by two counters."""
    folder = write_small_model(tmp_path / "acme-8b")
    expected = counter_from_tokenizer(folder).count_whole(CASE[2:], answer_begins=False)
    for name in ("", "tokenizer.json", "other.jinja"):
        out = tmp_path / f"out-{name}.jsonl"
        budget = ("--budget", str(expected + 1), "--workers", "1")
        found = run("fit", lines, out, "--for", "training", "--template", folder / name, *budget)
        assert found.exit_code == 0, found.output
        line = json.loads(out.read_text("utf-8"))
        assert (line["messages"], line["tokens_after"]) == (CASE[2:], expected)
    options = ("fit", lines, tmp_path / "no.jsonl", "--budget", "99", "--template")
    found = run(*options, folder, "--counter", "chars:4")
    assert (found.exit_code, "pass one of them" in found.output) == (2, True)
    found = run(*options, folder, "--model", "gpt-4o", "--calibration", lines)
    assert (found.exit_code, "--calibration corrects another" in found.output) == (2, True)
    found = run(*options, folder / "none.jinja")
    assert (found.exit_code, "cannot be read" in found.output) == (2, True)


@pytest.mark.parametrize("operation", ["count", "fit", "replay"])
def test_a_calibration_counts_in_every_row(tmp_path: Path, operation: str) -> None:
    """By the model that is given; a run that goes on finds it is the same one."""
    learned, chats, out = (tmp_path / name for name in ("learned.json", "chats.jsonl", "out.jsonl"))
    numbers = {"calls": 9, "calls_apart": 0, "factor": 2.0, "constant_tokens": 0}
    numbers |= {"smallest_tokens": 9, "largest_tokens": 99}
    spread = {"above_per_mille": 9, "below_per_mille": 9, "deviation_before": 0.5, "deviation_after": 0.1}
    models = {"gpt-4o": {"counter": "gpt-4o", **numbers, **spread}}
    data = {"schema": "trimtab.calibration", "version": 1, "models": models}
    learned.write_text(json.dumps(data), encoding="utf-8")
    chats.write_text(json.dumps({"messages": CHAT}) + "\n", encoding="utf-8")
    room = [] if operation == "count" else ["--budget", "8k"]
    more = ["--policy", "none"] if operation == "replay" else []
    for given in ([], ["--calibration", learned]):
        options = ["--workers", "1", "--overwrite", "--model", "gpt-4o", *room, *more, *given]
        found = run(operation, chats, out, *options)
        assert found.exit_code == 0, found.output
        row = json.loads(out.read_text("utf-8"))
        key = {"count": "tokens", "fit": "tokens_after", "replay": "tokens"}[operation]
        data[str(len(given))] = row[key]
    assert data["2"] == 2 * data["0"]
    refused = run(operation, chats, out, "--overwrite", *room, *more, "--calibration", learned)
    assert refused.exit_code == 2
    assert "--calibration needs a model: pass --model NAME" in refused.output


def test_rules_of_the_host_are_in_every_row(chats: Path, tmp_path: Path) -> None:
    """From texts and a file; rows of training data have none of trimtab's."""
    rules, out = tmp_path / "rules.txt", tmp_path / "out.parquet"
    rules.write_text("Never deploy.\n", encoding="utf-8")
    options = ("--counter", "chars:4", "--budget", "300", "--workers", "1", "--engine", "local")
    run("fit", chats, out, *options, "--rule", "Be kind.", "--rules", rules)
    first, _, last = pq.read_table(out).column("messages").to_pylist()
    for row in (first, last):
        assert json.loads(row)[0]["content"].splitlines()[1:-1] == ["- Never deploy.", "- Be kind."]
    training = run("fit", chats, tmp_path / "t.parquet", *options, "--for", "training", "--rule", "Be kind.")
    assert training.exit_code == 2
    assert "--rule" in training.stderr


def test_results_are_compacted_in_each_row(tmp_path: Path) -> None:
    """Unless the command line takes back what a policy says."""
    text = "\n".join(f"    value_{n} = compute(first_argument, second_argument, {n})" for n in range(40))
    chat = [{"role": "user", "content": "Look."}]
    for name in ("call_0", "call_1"):
        chat += exchange("openai_chat", [(name, "read", text)])
    pq.write_table(pa.table({"messages": [json.dumps(chat)]}), tmp_path / "in.parquet")
    for at, option in enumerate(["--compact", "--no-compact"]):
        out = tmp_path / f"out{at}.parquet"
        done = run("fit", "--budget", "100k", "--counter", "chars:4", option, tmp_path / "in.parquet", out)
        assert done.exit_code == 0, done.output
        (found,) = pq.read_table(out).column("messages").to_pylist()
        assert ("[lines 1-40 as in call_0 from 1]" in found) == (option == "--compact")
