"""`trimtab count --bills`: recorded calls beside their bills, by numbers that are computed here again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.recorded_logs import ClaudeLog
from trimtab import cli
from trimtab.counting import counter_for, measure
from trimtab.formats import Bill, ForeignConversation, recordings
from trimtab.testing.hooks import Named, Reader, billed_request, compare_with_bills

WORDS = "The lake road is closed for repairs until the end of June, so take the forest track instead. "


def run(*arguments: str | Path) -> Result:
    """Run `trimtab count --bills`."""
    return CliRunner().invoke(cli.command(), ["count", "--bills", *map(str, arguments)])


def answers(result: Result) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Read the rows, and the summary behind them."""
    *rows, last = map(json.loads, result.stdout.splitlines())
    return rows, last["summary"]


def write(path: Path, rows: Sequence[Any]) -> Path:
    """Write values, one a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def a_body(times: int = 1, model: str = "gpt-4o") -> dict[str, Any]:
    """Make a request of one message."""
    return {"model": model, "messages": [{"role": "user", "content": WORDS * times}]}


def billed(tokens: int) -> dict[str, int]:
    """Write the usage of a call."""
    return {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Read a bill in the three shapes of golden_usage, apart from `usage_of`."""
    for key in ("prompt_tokens", "promptTokenCount"):
        if key in usage:
            return int(usage[key])
    cached = (usage.get(f"cache_{what}_input_tokens") or 0 for what in ("read", "creation"))
    return int(usage["input_tokens"]) + sum(cached)


def test_medians_and_the_worst_of_recorded_requests_are_those_of_their_numbers(
    data_dir: Path, tmp_path: Path
) -> None:
    """Of each model: computed from `measure` and the raw usage, requests with unknown costs apart."""
    entries = [json.loads(line) for line in (data_dir / "golden_usage.jsonl").read_text("utf-8").splitlines()]
    some = [one for one in entries if one["model"].startswith(("gpt-4o", "claude-sonnet-4-5"))]
    rows, summary = answers(run(write(tmp_path / "golden.jsonl", some)))
    expected = defaultdict[str, list[tuple[float, int, bool]]](list)
    calls = defaultdict[str, int](int)
    for line, one in enumerate(some, 1):
        name = counter_for(one["model"]).name
        count = measure(one["request"], model=one["model"])
        tokens = input_tokens(one["usage"])
        row = rows[line - 1]
        assert (row["line"], row["billed_tokens"], row["counted_tokens"]) == (line, tokens, count.tokens)
        calls[name] += 1
        if not count.unknown:
            low, high = count.least_tokens, count.most_tokens
            is_within = low is not None and high is not None and low <= tokens <= high
            expected[name].append(((count.tokens - tokens) / tokens, line, is_within))
    assert len(rows) == len(some)
    assert {one["model"] for one in summary["models"]} == set(calls)
    for one in summary["models"]:
        found = expected[one["model"]]
        assert (one["calls"], one["judged_calls"]) == (calls[one["model"]], len(found))
        assert one["within_margin"] == sum(is_within for _, _, is_within in found)
        if not found:
            assert (one["median_deviation"], one["bias"], one["worst"]) == (None, None, None)
            continue
        assert one["median_deviation"] == round(median(abs(off) for off, _, _ in found), 6)
        assert one["bias"] == round(median(off for off, _, _ in found), 6)
        off, line, _ = max(found, key=lambda row: abs(row[0]))
        assert (one["worst"]["line"], one["worst"]["deviation"]) == (line, round(off, 6))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"request": a_body(), "response": {"usage": billed(30)}}, id="response"),
        pytest.param({"request": a_body(), "usage": billed(30)}, id="usage beside"),
        pytest.param({**a_body(), "usage": billed(30)}, id="usage in the body"),
        pytest.param({**a_body(), "response": {"usage": billed(30)}}, id="response in the body"),
        pytest.param({"request": a_body(), "usage": 30}, id="a number"),
        pytest.param({**a_body(), "usage": billed(30), "response": "It is closed."}, id="a text as response"),
        pytest.param(
            {
                "request": {"url": "/v1", "body": a_body()},
                "response": {"status": 200, "body": {"usage": billed(30)}},
            },
            id="with addresses",
        ),
        pytest.param(
            {
                "request": {"messages": a_body()["messages"]},
                "usage": {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 15,
                    "cache_creation_input_tokens": 5,
                },
                "model": "gpt-4o",
            },
            id="cached parts, and a model beside",
        ),
    ],
)
def test_requests_with_usage_are_read_in_every_shape(row: dict[str, Any], tmp_path: Path) -> None:
    """The bill is the input, cached parts included; the body is counted without what stands beside it."""
    read = billed_request(row)
    assert read is not None
    assert read.body in (a_body(), {"messages": a_body()["messages"]})
    result = run(write(tmp_path / "calls.jsonl", [row]))
    (found,), summary = answers(result)
    assert result.exit_code == 0, result.output
    assert (found["line"], found["call"], found["model"], found["billed_tokens"]) == (1, 1, "gpt-4o", 30)
    assert found["counted_tokens"] == measure(a_body()).tokens
    assert (summary["calls"], summary["conversations"], summary["files"]) == (1, 1, 1)


@pytest.mark.parametrize(
    "value",
    [[], "x", a_body(), {"request": a_body()}, {"request": a_body(), "response": {"id": "x"}}, {"usage": 30}],
)
def test_what_has_no_request_or_no_usage_is_no_bill(value: Any) -> None:
    """A response without a usage says nothing, and a usage alone is of nothing."""
    assert billed_request(value) is None


def test_a_model_is_named_by_who_answered_and_an_unknown_one_by_itself(tmp_path: Path) -> None:
    """A dated name is summed up with its model; what nobody knows is estimated under its own name."""
    rows = [
        {"request": a_body(model="mine"), "response": {"model": "gpt-4o-2024-08-06", "usage": billed(30)}},
        {"request": a_body(model="gpt-4o"), "response": {"model": "mine", "usage": billed(30)}},
        {"request": a_body(model="mine"), "usage": billed(30)},
        {"request": {"messages": a_body()["messages"]}, "usage": billed(30)},
    ]
    found, _ = answers(run(write(tmp_path / "calls.jsonl", rows)))
    named = [(row["model"], row["counter"]) for row in found]
    assert named == [("gpt-4o", "gpt-4o")] * 2 + [("mine", "estimate"), ("no model named", "estimate")]
    found, _ = answers(run(tmp_path / "calls.jsonl", "--model", "gpt-4.1"))
    assert {row["model"] for row in found} == {"gpt-4.1"}


def test_batch_files_are_read_in_pairs(tmp_path: Path) -> None:
    """A request and its answer find each other by their id, in any order; what has none is told."""
    asked = [{"custom_id": name, "method": "POST", "body": a_body(n)} for n, name in enumerate("abc", 1)]
    told = [
        {"custom_id": name, "response": {"status_code": 200, "body": {"model": "gpt-4o", "usage": billed(n)}}}
        for name, n in (("b", 50), ("a", 25), ("d", 99))
    ]
    write(tmp_path / "in.jsonl", [*asked, asked[0]])
    write(tmp_path / "out.jsonl", told)
    for names in (("in.jsonl", "out.jsonl"), ("out.jsonl", "in.jsonl")):
        result = run(*(tmp_path / name for name in names))
        rows, summary = answers(result)
        pairs = {(row["line"], row["billed_tokens"]) for row in rows if "error" not in row}
        assert pairs == {(1, 25), (2, 50)}
        counted = {row["line"]: row["counted_tokens"] for row in rows if "error" not in row}
        assert counted == {n: measure(a_body(n)).tokens for n in (1, 2)}
        assert summary["failed"] == 3
        assert "no batch file answers 'c'" in result.stderr
        assert "no batch file asks 'd'" in result.stderr
        assert result.exit_code == 1


# -- conversations of other programs


def a_session(model: str, *, calls: int = 6, hidden: int = 0) -> ForeignConversation:
    """Make a conversation whose bills are its counts and a part that is not recorded."""
    messages = list[Any]()
    bills = list[Bill]()
    for number in range(calls):
        messages.append({"role": "user", "content": f"{number}: {WORDS * 20}"})
        body = {"model": model, "messages": list(messages)}
        tokens = measure(body, model=model).tokens + hidden
        bills.append(Bill(at=len(messages), usage={"prompt_tokens": tokens}, model=model))
        messages.append({"role": "assistant", "content": f"{number}: closed until June."})
    return ForeignConversation(
        program="agent",
        name="main",
        format="openai_chat",
        body={"model": model, "messages": messages},
        bills=tuple(bills),
        complete=not hidden,
    )


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> list[ForeignConversation]:
    """Read files of a program of our own: what the list holds then is in each of them."""
    held = list[ForeignConversation]()
    reader = Reader(
        lambda source: bool(source) and isinstance(source, list) and "agent" in source[0],
        lambda source: list(held),
        by_line=True,
    )
    monkeypatch.setattr(recordings, "READERS", (reader, *recordings.READERS))
    return held


def test_each_call_of_a_conversation_is_counted_as_it_was_sent(
    agent: list[ForeignConversation], tmp_path: Path
) -> None:
    """A call had the messages before its answer: counts are those of `measure`, and off by nothing."""
    agent.append(a_session("gpt-4o"))
    rows, summary = answers(run(write(tmp_path / "log.jsonl", [{"agent": 1}, {}])))
    assert [row["call"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert all(row["conversation"] == "main" and row["basis"] == "request" for row in rows)
    assert [row["billed_tokens"] for row in rows] == [row["counted_tokens"] for row in rows]
    (model,) = summary["models"]
    assert (model["median_deviation"], model["within_margin"], model["unrecorded_tokens"]) == (0, 6, None)


def test_what_is_not_recorded_is_told_and_growth_is_judged(
    agent: list[ForeignConversation], tmp_path: Path
) -> None:
    """A constant that no message has is found; with it taken off counts are as they are billed."""
    agent.append(a_session("gpt-4o", hidden=20_000))
    path = write(tmp_path / "log.jsonl", [{"agent": 1}, {}])
    rows, summary = answers(run(path))
    assert [row["basis"] for row in rows] == [None, *["growth"] * 5]
    assert {row["unrecorded_tokens"] for row in rows} == {20_000}
    for row in rows[1:]:
        growth = row["billed_tokens"] - rows[0]["billed_tokens"]
        assert (row["billed_growth_tokens"], row["counted_growth_tokens"]) == (growth, growth)
        assert (row["deviation"], row["within_margin"]) == (0, True)
    (model,) = summary["models"]
    assert (model["calls"], model["judged_calls"], model["unrecorded_tokens"]) == (6, 5, 20_000)
    text = run(path, "--output", "text").stdout
    assert "gpt-4o: constant part not in the recording: about 20,000 tokens; judged is what calls" in text


@pytest.mark.parametrize("calls", [1, 2])
def test_too_short_a_conversation_is_not_judged(
    agent: list[ForeignConversation], calls: int, tmp_path: Path
) -> None:
    """Of fewer than three calls nothing tells what is missing from what is counted wrong."""
    agent.append(a_session("gpt-4o", calls=calls, hidden=20_000))
    path = write(tmp_path / "log.jsonl", [{"agent": 1}, {}])
    rows, summary = answers(run(path))
    assert [row["basis"] for row in rows] == [None] * calls
    assert summary["models"][0]["judged_calls"] == 0
    assert (
        "not judged: system text and tools are not in the recording" in run(path, "--output", "text").stdout
    )


def test_a_growth_of_a_few_tokens_is_not_judged() -> None:
    """Framing is a large share of it: 199 tokens say nothing, 200 do."""
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    bills = [Bill(at=1, usage={"input_tokens": tokens}) for tokens in (1_000, 1_199, 1_200)]
    session = ForeignConversation(
        program="p", format="openai_chat", body=body, bills=tuple(bills), complete=False
    )
    found = compare_with_bills(session, lambda _: Named("m", "gpt-4o", counter_for("gpt-4o")))
    assert [call.basis for call in found.calls] == [None, None, "growth"]
    assert found.unrecorded_tokens == {"m": 1_199 - measure(body, model="gpt-4o").tokens}


def test_a_growth_by_something_of_unknown_cost_is_not_judged(
    agent: list[ForeignConversation], tmp_path: Path
) -> None:
    """From the call on that has it; nor does it teach anything."""
    session = a_session("gpt-4o", calls=9, hidden=20_000)
    messages = [dict(one) for one in session.body["messages"]]
    page = {"type": "file", "file": {"file_id": "file-1"}}
    messages[14]["content"] = [{"type": "text", "text": messages[14]["content"]}, page]
    bills = [
        replace(one, usage={"prompt_tokens": one.usage["prompt_tokens"] + 5_000 * (at > 6)})
        for at, one in enumerate(session.bills)
    ]
    agent.append(replace(session, body={**session.body, "messages": messages}, bills=tuple(bills)))
    learned = tmp_path / "learned.json"
    path = write(tmp_path / "log.jsonl", [{"agent": 1}, {}])
    rows, summary = answers(run(path, "--learn", learned))
    assert [bool(row["unknown"]) for row in rows] == [False] * 7 + [True] * 2
    assert [row["basis"] for row in rows] == [None, *["growth"] * 6, None, None]
    assert summary["models"][0]["median_deviation"] == 0
    found = json.loads(learned.read_text())["models"]["gpt-4o"]
    assert (found["calls"], found["calls_apart"], found["above_per_mille"]) == (6, 0, 0)


def test_models_of_a_conversation_are_judged_apart(agent: list[ForeignConversation], tmp_path: Path) -> None:
    """What is not recorded costs each model other tokens."""
    one, two = a_session("gpt-4o", hidden=9_000), a_session("gpt-4", hidden=7_000)
    mixed = [pair[at % 2] for at, pair in enumerate(zip(one.bills, two.bills, strict=True))]
    agent.append(
        ForeignConversation(
            program="agent", format=one.format, body=one.body, bills=tuple(mixed), complete=False
        )
    )
    _, summary = answers(run(write(tmp_path / "log.jsonl", [{"agent": 1}, {}])))
    found = {row["model"]: (row["judged_calls"], row["unrecorded_tokens"]) for row in summary["models"]}
    assert found == {"gpt-4o": (2, 9_000), "gpt-4": (2, 7_000)}


def test_a_usage_of_something_else_is_set_aside(agent: list[ForeignConversation], tmp_path: Path) -> None:
    """Compacted by the server, or no number: told, and no failure while others are billed."""
    compacted = {"input_tokens": 23, "iterations": [{"type": "compaction", "input_tokens": 9}]}
    session = a_session("gpt-4o")
    bills = (Bill(at=1, usage=compacted), Bill(at=1, usage={"input_tokens": 0}), *session.bills)
    agent.append(ForeignConversation(program="agent", format=session.format, body=session.body, bills=bills))
    result = run(write(tmp_path / "log.jsonl", [{"agent": 1}, {}]))
    rows, summary = answers(result)
    assert result.exit_code == 0
    assert [row["error"]["type"] for row in rows if "error" in row] == ["UsageError"] * 2
    assert (summary["calls"], summary["unusable_bills"]) == (6, 2)
    assert "2 bills set aside, the first in" in result.stderr
    assert "call 1: the server compacted" in result.stderr


def test_a_folder_of_a_coding_agents_logs_is_read(tmp_path: Path) -> None:
    """Claude Code's system text and tools are in no log: they are told, and what calls grew by is exact."""
    hidden, model, messages = 15_000, "claude-sonnet-4-5", list[Any]()
    log = ClaudeLog()
    for number in range(6):
        asked = f"{number}: {WORDS * 20}"
        messages.append({"role": "user", "content": asked})
        tokens = measure({"model": model, "messages": messages}).tokens + hidden
        log.user(asked)
        log.answer(f"m{number}", "It is closed.", model=model)
        usage = {"input_tokens": 3, "cache_read_input_tokens": tokens - 3, "output_tokens": 9}
        log.lines[-1]["message"]["usage"] = usage
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "It is closed."}]})
    for project in ("a", "b"):
        (tmp_path / project).mkdir()
        write(tmp_path / project / "log.jsonl", log.lines)
    result = run(tmp_path)
    _, summary = answers(result)
    (found,) = summary["models"]
    assert result.exit_code == 0, result.output
    assert (summary["files"], summary["conversations"], summary["calls"]) == (2, 2, 12)
    assert (found["judged_calls"], found["median_deviation"], found["unrecorded_tokens"]) == (10, 0, hidden)


# -- the command


def test_recordings_without_a_bill_say_so(tmp_path: Path) -> None:
    """A line each for programs and one for people; exit 1 where no recording has any."""
    write(tmp_path / "a.jsonl", [a_body(), {"request": a_body(), "usage": billed(30)}])
    write(tmp_path / "b.jsonl", [a_body()])
    result = run(tmp_path)
    rows, summary = answers(result)
    errors = [row for row in rows if "error" in row]
    assert result.exit_code == 0
    assert [(Path(row["file"]).name, row["line"]) for row in errors] == [("a.jsonl", 1), ("b.jsonl", 1)]
    assert {row["error"]["message"] for row in errors} == {"no call of it has a usage"}
    assert (summary["calls"], summary["recordings_without_bill"]) == (1, 2)
    assert "2 recordings without a bill, the first in" in result.stderr
    for output in ("json", "text"):
        assert run(tmp_path / "b.jsonl", "--output", output).exit_code == 1


def test_a_broken_line_fails_and_the_others_are_counted(tmp_path: Path) -> None:
    """As in other commands: told with its place, exit 1, and the rest is there."""
    path = write(tmp_path / "a.jsonl", [{"request": a_body(), "usage": billed(30)}])
    path.write_text(path.read_text() + "{broken\n", encoding="utf-8")
    result = run(path)
    rows, summary = answers(result)
    assert result.exit_code == 1
    assert (summary["calls"], summary["failed"]) == (1, 1)
    assert rows[1]["line"] == 2
    assert rows[1]["error"]["type"] == "FormatError"
    assert "a.jsonl, line 2: not JSON" in result.stderr


def test_text_has_a_row_for_each_model_with_its_worst_call(tmp_path: Path) -> None:
    """Median, bias, how many within the margin, and where the worst is."""
    tokens = measure(a_body(10)).tokens
    rows = [{"request": a_body(10), "usage": billed(round(tokens * share))} for share in (1, 1.25, 0.8)]
    path = write(tmp_path / "calls.jsonl", [*rows, {"request": a_body(model="gpt-4"), "usage": billed(26)}])
    lines = run(path, "--output", "text").stdout.splitlines()
    assert lines[0] == "4 calls in 4 conversations of 1 file: counts beside their bills"
    cells = [line.split() for line in lines[2:5]]
    assert cells[0] == [
        "model",
        "calls",
        "judged",
        "median",
        "bias",
        "within",
        "worst",
        "billed",
        "counted",
        "margin",
        "where",
    ]
    low = round(tokens * 0.8)
    worst = [f"{100 * (tokens - low) / low:+.1f}", "%", str(low), str(tokens), "0", f"{path},", "line", "3"]
    high = round(tokens * 1.25)
    middle = f"{100 * (high - tokens) / high:.1f}"
    assert cells[1] == ["gpt-4o", "3", "3", middle, "%", "+0.0", "%", "1", *worst]
    assert cells[2][:3] == ["gpt-4", "1", "1"]


def test_jobs_write_the_same(tmp_path: Path) -> None:
    """Two processes, in order, with one summary at the end."""
    for name in ("a", "b"):
        rows = [{"request": a_body(n), "usage": billed(20 * n)} for n in range(1, 30)]
        write(tmp_path / f"{name}.jsonl", rows)
    one, two = run(tmp_path), run(tmp_path, "--jobs", "2")
    assert one.stdout == two.stdout
    assert answers(two)[1]["calls"] == 58


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--bills", "--each"), "--each lists messages, and --bills lists calls"),
        (("--learn", "x.json"), "--learn FILE needs --bills"),
        (("--bills", "--learn", "no/such/folder.json"), "--learn no/such/folder.json"),
        (("--bills", "--learn", "x.json", "--calibration", "c.json"), "leave out --calibration"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: Sequence[str], told: str) -> None:
    """Before anything is read, with exit 2."""
    result = CliRunner().invoke(cli.command(), ["count", *arguments, __file__])
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize("model", ["gpt-4o", "gemini-2.5-flash"])
def test_what_half_of_the_bills_teach_helps_the_other_half(
    data_dir: Path, model: str, tmp_path: Path
) -> None:
    """Estimates are far off; corrected by what other bills of the model taught by less than half as much."""
    lines = [
        line
        for name in ("golden_usage.jsonl", "golden_usage_2.jsonl")
        for line in (data_dir / name).read_text("utf-8").splitlines()
    ]
    some = [one for one in map(json.loads, lines) if one["model"] == model]
    taught, other = write(tmp_path / "taught.jsonl", some[::2]), write(tmp_path / "other.jsonl", some[1::2])
    learned = tmp_path / "learned.json"
    result = run(taught, "--counter", "estimate", "--learn", learned)
    assert f"--learn: {model}: factor 0." in result.stderr
    _, before = answers(run(other, "--counter", "estimate"))
    _, after = answers(run(other, "--counter", "estimate", "--calibration", learned))
    cold = next(one for one in before["models"] if one["model"] == model)
    warm = next(one for one in after["models"] if one["model"] == model)
    assert warm["judged_calls"] == cold["judged_calls"] > 40
    assert warm["median_deviation"] < cold["median_deviation"] / 2
    assert abs(warm["bias"]) < abs(cold["bias"]) / 2
    assert warm["within_margin"] > 0.8 * warm["judged_calls"]


def test_nothing_is_learned_from_few_calls(tmp_path: Path) -> None:
    """Four calls of a model teach nothing, and no file is there; a fifth does."""
    rows = [{"request": a_body(n), "usage": billed(40 * n)} for n in range(1, 6)]
    learned = tmp_path / "learned.json"
    result = run(write(tmp_path / "calls.jsonl", rows[:4]), "--learn", learned)
    assert result.exit_code == 1
    assert "--learn: gpt-4o: 4 calls teach nothing; 5 or more are needed" in result.stderr
    assert not learned.exists()
    assert run(write(tmp_path / "calls.jsonl", rows), "--learn", learned).exit_code == 0
    assert json.loads(learned.read_text())["models"]["gpt-4o"]["calls"] == 5


def test_learning_overwrites_a_calibration_and_nothing_else(tmp_path: Path) -> None:
    """Neither what is read, by whatever name, nor a file of something else; a calibration is made anew."""
    rows = [{"request": a_body(n), "usage": billed(40 * n)} for n in range(1, 6)]
    calls, other = write(tmp_path / "calls.jsonl", rows), write(tmp_path / "other.json", [a_body()])
    link, learned = tmp_path / "link.json", tmp_path / "learned.json"
    link.symlink_to(calls)
    before = calls.read_bytes(), other.read_bytes()
    for path, told in (
        (calls, "is one of the files that are read"),
        (link, "is one of the files that are read"),
        (other, "exists and is not a trimtab.calibration"),
    ):
        result = run(calls, "--learn", path)
        assert result.exit_code == 2
        assert told in result.output
    assert (calls.read_bytes(), other.read_bytes()) == before
    learned.touch()
    for _ in range(2):
        assert run(calls, "--learn", learned).exit_code == 0
    assert json.loads(learned.read_text())["models"]["gpt-4o"]["calls"] == 5


def test_bills_of_another_model_teach_nothing_of_the_one_that_is_named(tmp_path: Path) -> None:
    """They are set aside and told; a name that nobody knows may be that of the model."""
    names = ["gpt-4o-2024-08-06", "gpt-4", "mine", "gpt-4o", "gpt-4", "gpt-4o", "gpt-4o"]
    rows = [{"request": a_body(n, name), "usage": billed(40 * n)} for n, name in enumerate(names, 1)]
    calls, learned = write(tmp_path / "calls.jsonl", rows), tmp_path / "learned.json"
    result = run(calls, "--model", "gpt-4o", "--learn", learned)
    assert result.exit_code == 0
    assert "2 bills set aside, the first in" in result.stderr
    assert "line 2, call 1: its model is gpt-4, and --learn learns for gpt-4o" in result.stderr
    assert json.loads(learned.read_text())["models"]["gpt-4o"]["calls"] == 5
    assert answers(run(calls, "--model", "gpt-4o"))[1]["calls"] == 7


def test_calls_that_are_all_set_aside_say_so(tmp_path: Path) -> None:
    """Bills ten times the count are of something else, however many there are."""
    rows = [{"request": a_body(9), "usage": billed(10 * measure(a_body(9)).tokens)} for _ in range(12)]
    calls, learned = write(tmp_path / "calls.jsonl", rows), tmp_path / "learned.json"
    result = run(calls, "--learn", learned)
    assert (result.exit_code, learned.exists()) == (1, False)
    assert "--learn: gpt-4o: 12 calls, all set aside: their bills are" in result.stderr
    result = run(write(calls, [*rows, *[{"request": a_body(), "usage": billed(25)}] * 2]), "--learn", learned)
    assert "--learn: gpt-4o: 14 calls, 12 set aside: their bills are" in result.stderr
