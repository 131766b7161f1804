"""`trimtab replay`: the table, the answer for programs, thresholds for CI, many files, pages of charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.builders import assistant, system, user
from trimtab import Budget, Session, SlidingWindow, cli
from trimtab.counting import CharCounter
from trimtab.replay import Canary, plant_canaries, read_recording, replay
from trimtab.stores import SQLiteStore

STRIDES = '{"kind": "sliding_window", "target_ratio": 0.5}'


def chat(turns: int = 60, mark: str = "") -> list[dict[str, Any]]:
    """Make a conversation in which no message is like another."""
    made = [system("be brief")]
    for turn in range(turns):
        made += [user(f"{mark}question {turn} " * 32), assistant(f"{mark}answer {turn} " * 32)]
    return made


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    """Run the command; `--budget 4k` and a token for four characters where nothing else is said."""
    given = [str(one) for one in arguments]
    usual = [] if "--budget" in given else ["--budget", "4k"]
    return CliRunner().invoke(cli.command(), ["replay", *given, *usual, "--counter", "chars:4"], input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write one conversation."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat()), encoding="utf-8")
    return path


def test_the_answer_says_what_the_library_says(file: Path) -> None:
    """The baseline comes first; ratios are to it."""
    found = run(file, "--policy", STRIDES)
    assert found.exit_code == 0, found.output
    data = json.loads(found.stdout)
    by_hand = [
        replay(chat(), policy, budget=4_000, counter=CharCounter(4))
        for policy in ("default", SlidingWindow(target_ratio=0.5))
    ]
    assert [one["policy"] for one in data["policies"]] == ["default", "sliding_window target_ratio=0.5"]
    assert [one["totals"] for one in data["policies"]] == [one.totals.to_dict() for one in by_hand]
    assert data["policies"][0]["cost_ratio"] == 1
    assert data["policies"][1]["cost_ratio"] == pytest.approx(by_hand[1].cost_ratio(by_hand[0]))
    assert "calls" not in data["policies"][0]
    assert data["pricing"]["name"] == "anthropic"


def test_text_is_a_table(file: Path) -> None:
    """A line a policy, without colours."""
    lines = run(file, "--policy", "none", "--policy", STRIDES, "--output", "text").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["policy", "default", "none", "sliding_window"]
    assert lines[4] == ""
    assert lines[5].startswith("  room 4,000 tokens; prices of anthropic")


def test_each_call_is_told_if_asked(file: Path) -> None:
    """Under the recording it belongs to."""
    data = json.loads(run(file, "--calls").stdout)
    rows = data["recordings"][0]["policies"][0]["calls"]
    assert [row["index"] for row in rows] == list(range(60))


def test_a_policy_may_be_a_file_of_blocks_or_of_a_strategy(file: Path, tmp_path: Path) -> None:
    """Two files of one name are told apart by their paths."""
    (tmp_path / "a").mkdir()
    blocks, strategy = tmp_path / "steady.toml", tmp_path / "a" / "steady.json"
    blocks.write_text('[[blocks]]\nname = "history"\nstrategy = "sliding_window"\n', encoding="utf-8")
    strategy.write_text(STRIDES, encoding="utf-8")
    data = json.loads(run(file, "--policy", blocks, "--policy", strategy, "--baseline", "none").stdout)
    assert [one["policy"] for one in data["policies"]] == ["none", str(blocks), str(strategy)]


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (["--max-cost-ratio", "0.6"], 0, ""),
        (["--max-cost-ratio", "0.1"], 1, "--max-cost-ratio is 0.1"),
        (["--no-invalid"], 0, ""),
        (["--min-evidence", "0.5"], 1, "no recording has questions"),
    ],
)
def test_thresholds_fail_for_ci(file: Path, options: list[str], code: int, why: str) -> None:
    """What failed is said on standard error and in the answer; the numbers are written all the same."""
    found = run(file, "--policy", STRIDES, *options)
    assert (found.exit_code, why in found.stderr) == (code, True)
    assert bool(json.loads(found.stdout)["failed"]) == bool(code)


def test_the_baseline_is_held_to_no_threshold_unless_it_was_asked_for(file: Path) -> None:
    """It is there to be compared with."""
    limits = ("--max-cost-ratio", "0.9", "--policy", STRIDES)
    assert run(file, *limits).exit_code == 0
    assert run(file, *limits, "--policy", "default").exit_code == 1


def test_evidence_has_a_least_share(tmp_path: Path) -> None:
    """Questions stand beside the messages."""
    path = tmp_path / "asked.json"
    body = {"messages": chat(), "questions": [{"at": 119, "evidence": [1, 117]}]}
    path.write_text(json.dumps(body), encoding="utf-8")
    for least, code in (("0.5", 0), ("0.6", 1)):
        found = run(path, "--policy", "default", "--min-evidence", least)
        assert found.exit_code == code, found.stderr
    assert "50.0% of the evidence" in found.stderr


def test_a_call_that_nothing_is_left_of_is_no_success(tmp_path: Path) -> None:
    """`--no-invalid` is about those, too."""
    path = tmp_path / "large.json"
    path.write_text(json.dumps([user("x" * 90_000), assistant("ok"), user("and now?")]), encoding="utf-8")
    found = run(path, "--policy", "sliding_window", "--no-invalid")
    assert found.exit_code == 1
    assert "without anything to send" in found.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_files_add_up_in_their_order(tmp_path: Path, jobs: str) -> None:
    """One that cannot be read is told, the others are done, and the exit code is 1."""
    for mark in "ab":
        (tmp_path / f"{mark}.json").write_text(json.dumps(chat(20, mark)), encoding="utf-8")
    (tmp_path / "c.json").write_text("[oops", encoding="utf-8")
    (tmp_path / "d.json").write_text("[]", encoding="utf-8")
    found = run(str(tmp_path / "*.json"), "--policy", "none", "--jobs", jobs)
    assert found.exit_code == 1
    data = json.loads(found.stdout)
    assert [Path(one["file"]).name for one in data["recordings"]] == ["a.json", "b.json"]
    assert data["policies"][0]["recordings"] == 2
    assert data["policies"][0]["totals"]["calls"] == 40
    assert "c.json" in found.stderr
    assert "d.json" in found.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"questions": [{"text": "Who?", "evidence": [99]}]},
        {"questions": [{"at": 2, "evidence": [3]}]},
        {"questions": 5},
        {"times": [1.0]},
    ],
)
def test_a_file_with_wrong_questions_or_times_is_named_and_listed(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    """As every file that cannot be read: exit 1, alone as among others."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(chat(2)), encoding="utf-8")
    bad.write_text(json.dumps({"messages": chat(2), **wrong}), encoding="utf-8")
    for files, count in (((bad,), 0), ((good, bad), 1)):
        found = run(*files)
        assert found.exit_code == 1
        data = json.loads(found.stdout)
        assert len(data["recordings"]) == count
        (why,) = data["failed"]
        assert found.stderr == f"trimtab: {why}\n"
        assert why.startswith(f"{bad}: {next(iter(wrong))}")
    assert run(bad, "--output", "text").stdout == ""


def test_bodies_of_a_file_are_calls_of_one_conversation(tmp_path: Path) -> None:
    """As a proxy logs them; without the option each is a conversation."""
    messages = chat(4)
    lines = [json.dumps({"messages": messages[:at]}) for at in (2, 4, 6)]
    stdin = "\n".join(lines)
    one = json.loads(run("-", "--requests", "--policy", "none", stdin=stdin).stdout)
    assert [found["recordings"] for found in one["policies"]] == [1, 1]
    assert one["policies"][1]["totals"]["calls"] == 3
    assert one["policies"][1]["totals"]["shared_tokens"] > 0
    many = json.loads(run("-", "--input", "jsonl", "--policy", "none", stdin=stdin).stdout)
    assert many["policies"][1]["recordings"] == 3


def test_a_session_of_a_store_is_replayed(tmp_path: Path) -> None:
    """By the times of its log, without the functions it was made with."""
    path = tmp_path / "chats.db"
    store = SQLiteStore(str(path))
    session = Session(5_000, counter=CharCounter(4), summarizer=lambda messages: "x", store=store, id="ada")
    session.extend(chat(30)[1:])
    store.close()
    found = run("--store", path, "--id", "ada", "--policy", "session", "--pricing", "openai")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["policies"][1]["totals"]["calls"] == 30
    assert run("--store", path).exit_code == 2


def test_a_snapshot_and_spans_are_files_like_others(tmp_path: Path) -> None:
    """What the file is, is seen in it."""
    session = Session(5_000, counter=CharCounter(4))
    session.extend(chat(5)[1:])
    snapshot, spans = tmp_path / "snapshot.json", tmp_path / "spans.json"
    snapshot.write_text(json.dumps(session.snapshot()), encoding="utf-8")
    asked = [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    value = {"stringValue": json.dumps(asked)}
    span = {"startTimeUnixNano": "5", "attributes": [{"key": "gen_ai.input.messages", "value": value}]}
    spans.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}), encoding="utf-8")
    data = json.loads(run(snapshot, spans).stdout)
    assert [one["policies"][0]["totals"]["calls"] for one in data["recordings"]] == [5, 1]


def test_prices_may_come_from_a_file(file: Path, tmp_path: Path) -> None:
    """In dollars for a million tokens, if it says so."""
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nread = 0.3\nwrite = 3.75\nbase = 3.0\n', encoding="utf-8")
    mine, usual = (json.loads(run(file, "--pricing", one).stdout) for one in (path, "claude-sonnet-4-5"))
    prices = [found["policies"][0]["totals"]["price"] for found in (mine, usual)]
    assert mine["pricing"]["name"] == "mine"
    assert prices[0] > 2 * prices[1]


def test_charts_are_a_page(file: Path, tmp_path: Path) -> None:
    """Written beside the table, and nowhere if they cannot be."""
    page = tmp_path / "costs.html"
    assert run(file, "--policy", STRIDES, "--chart", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<figure") == 3
    assert "room 4,000 tokens" in text
    refused = run(file, "--chart", tmp_path / "no" / "folder.html")
    assert (refused.exit_code, refused.stdout) == (2, "")


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (("--output-reserve", "500"), {"budget": Budget(4_000, output_reserve=500)}),
        (("--margin", "400"), {"budget": Budget(4_000, margin=400)}),
        (("--tools", json.dumps(TOOLS)), {"tools": TOOLS}),
        (("--format", "openai_responses"), {"format": "openai_responses"}),
        (("--model", "gpt-4o"), {"model": "gpt-4o"}),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_an_option_does_what_it_does_in_a_program(
    file: Path, tmp_path: Path, options: tuple[str, str], keywords: dict[str, Any]
) -> None:
    """The sums are those of `replay` with the same word."""
    name, value = options
    if name == "--tools":
        (tmp_path / "tools.json").write_text(value, encoding="utf-8")
        value = str(tmp_path / "tools.json")
    data = json.loads(run(file, name, value, "--policy", "session").stdout)
    by_hand = replay(chat(), "session", **{"budget": 4_000, "counter": CharCounter(4), **keywords})
    assert data["policies"][1]["totals"] == by_hand.totals.to_dict()


def test_system_text_stands_beside_the_messages(tmp_path: Path) -> None:
    """Of a text, or of a file."""
    path, text = tmp_path / "chat.json", tmp_path / "system.txt"
    path.write_text(json.dumps(chat()[1:]), encoding="utf-8")
    text.write_text("be brief " * 50, encoding="utf-8")
    by_hand = replay(chat()[1:], "session", budget=4_000, counter=CharCounter(4), system="be brief " * 50)
    for given in ("be brief " * 50, f"@{text}"):
        data = json.loads(run(path, "--system", given, "--policy", "session").stdout)
        assert data["policies"][1]["totals"] == by_hand.totals.to_dict()


def test_a_model_brings_its_window(file: Path) -> None:
    """Less what is kept for the answer; without a budget."""
    asked = ["replay", str(file), "--model", "gpt-4o", "--output-reserve", "28000", "--calls"]
    found = CliRunner().invoke(cli.command(), [*asked, "--counter", "chars:4"])
    (row, *_) = json.loads(found.stdout)["recordings"][0]["policies"][0]["calls"]
    assert row["limit_tokens"] == 128_000 - 28_000


def test_sessions_are_data(file: Path, tmp_path: Path) -> None:
    """Inline, and in a file that `trimtab policy` takes."""
    toml = tmp_path / "recalling.toml"
    toml.write_text('kind = "session"\nrecall_ratio = 0.3\nsummarizer = "extractive"\n', encoding="utf-8")
    inline = '{"kind": "session", "recall_ratio": 0.3, "summarizer": "extractive"}'
    data = json.loads(run(file, "--policy", toml, "--policy", inline, "--policy", "session").stdout)
    first, second, plain = data["policies"][1:]
    assert first["policy"] == "recalling"
    assert first["totals"] == second["totals"] != plain["totals"]
    assert CliRunner().invoke(cli.command(), ["policy", str(toml)]).exit_code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["--policy", "slidng_window", "did you mean sliding_window"],
        ["--policy", "sesion", "did you mean session"],
        ["--policy", "missing.toml", "missing.toml: No such file"],
        ["--policy", "mine.txt", "a policy ends in .toml or .json"],
        ["--policy", "{oops", "a policy that begins with { must be JSON"],
        ["--policy", '{"kind": "sliding_window", "ratio": 2}', "no option 'ratio'"],
        ["--policy", '{"kind": "session", "recall_ratio": 1}', "from 0 to below 1, not 1"],
        ["--baseline", "nothing", "no policy is called 'nothing'; there are: none, default, steady, session"],
        ["--pricing", "free", "no pricing is called 'free'; there are"],
        ["--pricing", "missing.json", "--pricing missing.json: No such file"],
        ["--min-evidence", "2", "2 is not a number from 0 to 1"],
        ["--min-evidence", "nan", "nan is not a number from 0 to 1"],
        ["--max-cost-ratio", "-1", "-1 is not a number of at least 0"],
        ["--jobs", "0", "0 is not in the range x>=1"],
        ["--store", "chats.db", "--store needs --id NAME, and cannot be combined with FILEs"],
        ["--id", "ada", "pass --store URL, too"],
        ["--tools", "missing.json", "--tools missing.json: No such file"],
    ],
)
def test_wrong_usage_is_refused_before_anything_is_played(file: Path, wrong: list[str]) -> None:
    """Exit 2, and nothing on standard output; the message says what to change."""
    *options, why = wrong
    found = run(file, *options)
    assert (found.exit_code, found.stdout) == (2, ""), found.output
    assert why in found.stderr


def test_without_room_nothing_is_played(file: Path) -> None:
    """Neither a budget nor a model: what should a call fit into?"""
    found = CliRunner().invoke(cli.command(), ["replay", str(file)])
    assert found.exit_code == 2
    assert "--budget" in found.stderr


def test_calls_are_counted_by_a_calibration(file: Path, tmp_path: Path) -> None:
    """By what was learned of the counter that counts, for the model that is given."""
    learned = tmp_path / "learned.json"
    numbers = {"calls": 9, "calls_apart": 0, "factor": 2.0, "constant_tokens": 0}
    numbers |= {"smallest_tokens": 9, "largest_tokens": 99}
    spread = {"above_per_mille": 9, "below_per_mille": 9, "deviation_before": 0.5, "deviation_after": 0.1}
    models = {"gpt-4o": {"counter": CharCounter(4).name, **numbers, **spread}}
    data = {"schema": "trimtab.calibration", "version": 1, "models": models}
    learned.write_text(json.dumps(data), encoding="utf-8")
    plain, doubled = (
        json.loads(run(file, "--budget", "100k", "--model", "gpt-4o", *given).stdout)["policies"][0]["totals"]
        for given in ([], ["--calibration", learned])
    )
    assert doubled["tokens"] == 2 * plain["tokens"]


# What is lost.


def silent_talk(turns: int) -> list[dict[str, Any]]:
    """Make a conversation that says no exact value and no rule."""
    return [one for _ in range(turns) for one in (user("It rains again today"), assistant("So have tea"))]


@pytest.fixture
def talk_file(tmp_path: Path) -> Path:
    """Write a conversation in which a user says three things at its begin."""
    path = tmp_path / "chat.json"
    said = user("My order is ORD-7741. Never call me before 9 am.")
    path.write_text(json.dumps([said, assistant("Fine"), *silent_talk(60)]), encoding="utf-8")
    return path


def run_lost(*arguments: str | Path) -> Result:
    """Run the command in a small room."""
    return run(*arguments, "--budget", "300")


@pytest.mark.parametrize(
    ("policy", "least", "code"),
    [("none", "1", 0), ("default", "0.9", 1), ("default", "0", 0)],
)
def test_survival_has_a_least_share(talk_file: Path, policy: str, least: str, code: int) -> None:
    """The exit code says whether enough is in view at the end."""
    for options in (["--canaries", "20", "--seed", "4"], ["--lost"]):
        found = run_lost(talk_file, "--policy", policy, *options, "--min-survival", least)
        assert found.exit_code == code, found.output
        assert ("--min-survival is 0.9" in found.stderr) == bool(code)


def test_the_answer_lists_what_was_planted_and_what_is_lost(talk_file: Path) -> None:
    """As the library says it, with places; texts of several recordings are listed with each."""
    found = json.loads(run_lost(talk_file, "--canaries", "10", "--seed", "4").stdout)
    by_hand = plant_canaries(read_recording(json.loads(talk_file.read_text(encoding="utf-8"))), 10, seed=4)
    [recording] = found["recordings"]
    assert [Canary(**one) for one in recording["canaries"]] == [*by_hand.canaries]
    lost = recording["policies"][0]["survival"]["canaries_lost"]
    assert 0 < len(lost) == found["policies"][0]["survival"]["lost"]
    assert all(one in recording["canaries"] for one in lost)


def test_what_is_lost_is_listed_by_message(talk_file: Path) -> None:
    """For people: a line a message, under each policy that loses it."""
    found = run_lost(talk_file, "--lost", "--policy", "none", "--output", "text")
    lines = [line.strip() for line in found.stdout.splitlines()]
    at = lines.index(f"lost of {talk_file} by default:")
    told = "#0  value “ORD-7741”; value “9 am”; rule “Never call me before 9 am.”"
    assert lines[at + 1] == told
    assert "by none" not in found.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--canaries", "5", "--lost"], "take one of them"),
        (["--seed", "5"], "pass --canaries N"),
        (["--min-survival", "0.5"], "pass --canaries N or --lost"),
        (["--canaries", "0"], "--canaries"),
        (["--canaries", "101"], "--canaries"),
        (["--canaries", "5", "--min-survival", "2"], "not a number from 0 to 1"),
    ],
)
def test_options_without_effect_are_refused(talk_file: Path, options: list[str], said: str) -> None:
    """With exit code 2, as any wrong usage."""
    found = run_lost(talk_file, *options)
    assert found.exit_code == 2
    assert said in found.stderr


def test_a_recording_where_nothing_can_be_planted_or_found(tmp_path: Path) -> None:
    """The first is no recording for it; in the second there is nothing that could survive."""
    path = tmp_path / "silent.json"
    path.write_text(json.dumps([assistant("Hello"), assistant("?")]), encoding="utf-8")
    found = run_lost(path, "--canaries", "5")
    assert found.exit_code == 1
    assert "the user's own" in found.stderr
    path.write_text(json.dumps(silent_talk(20)), encoding="utf-8")
    found = run_lost(path, "--policy", "none", "--lost", "--min-survival", "0.5")
    assert found.exit_code == 1
    assert "no user says an exact value or a rule" in found.stderr


# What the model's messages take.


def order_chat(mark: str = "", fill: int = 400) -> list[dict[str, Any]]:
    """Make a chat in which ids of a result are written at once, and others after much has been said."""
    function = {"name": "lookup", "arguments": "{}"}
    found = [f"{mark}ORD-{number}7731" for number in range(6)]
    chat: list[dict[str, Any]] = [user("Where are my orders?")]
    for number in range(6):
        call_id = f"{mark}call_{number}"
        calls = [{"id": call_id, "type": "function", "function": function}]
        chat.append({"role": "assistant", "content": None, "tool_calls": calls})
        chat.append(
            {"role": "tool", "tool_call_id": call_id, "content": f"{found[number]} {mark}now{number}77"}
        )
    chat += [assistant(f"{mark}now577 {'as I said ' * 50}"), user("what else " * fill)]
    return [*chat, assistant("\n".join(found))]


@pytest.fixture
def order_file(tmp_path: Path) -> Path:
    """Write one."""
    path = tmp_path / "orders.json"
    path.write_text(json.dumps(order_chat()), encoding="utf-8")
    return path


def run_uses(*arguments: str | Path) -> Result:
    """Run the command with room for the last question alone."""
    return run(*arguments, "--policy", "sliding_window", "--budget", "1050")


def test_too_few_uses_fail_and_results_are_named_by_id(order_file: Path) -> None:
    """Of seven uses one is taken at once; the six ids of six results are not in view any more."""
    found = run_uses(order_file, "--min-uses", "0.97")
    assert found.exit_code == 1
    ids = ", ".join(f"1 of call_{number}" for number in range(5))
    said = "sliding_window has lost 6 of 7 uses, 14.3% are in view, and --min-uses is 0.97"
    assert f"trimtab: {said}; lost: {ids}, and others of 1 more result\n" in found.stderr
    assert f"{said}; lost: {ids}, and others of 1 more result" in json.loads(found.stdout)["failed"]
    assert run_uses(order_file, "--min-uses", "0.14", "--min-needs", "0.14").exit_code == 0


def test_too_few_needs_fail(order_file: Path) -> None:
    """They have no ids: anything earlier may have had them."""
    found = run_uses(order_file, "--min-needs", "0.15")
    assert found.exit_code == 1
    said = "trimtab: sliding_window has lost 6 of 7 needs, 14.3% are in view, and --min-needs is 0.15\n"
    assert said in found.stderr


def test_a_baseline_that_loses_uses_fails_nothing(order_file: Path) -> None:
    """Thresholds are of what is asked for."""
    asked = [order_file, "--baseline", "sliding_window", "--budget", "1050", "--min-uses", "1"]
    assert run(*asked).exit_code == 0
    assert run(*asked, "--policy", "none").exit_code == 0


def test_results_of_many_recordings_are_named_with_theirs(tmp_path: Path) -> None:
    """The largest losses first."""
    path = tmp_path / "orders.jsonl"
    chats = [order_chat("A-"), order_chat("B-", fill=1)]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in chats), encoding="utf-8")
    found = run_uses(path, "--min-uses", "0.97")
    assert "has lost 6 of 14 uses, 57.1% are in view" in found.stderr
    assert f"1 of A-call_0 in {path}, line 1" in found.stderr
    assert "B-call" not in found.stderr


def test_recordings_without_results_have_no_uses(file: Path) -> None:
    """A threshold that nothing can pass is no threshold."""
    found = run(file, "--policy", "none", "--min-uses", "0.5", "--min-needs", "0.5")
    assert found.exit_code == 1
    assert "none: no message of the model has a detail from results, and --min-uses is 0.5" in found.stderr
    assert "none: no message of the model has a detail from anything earlier" in found.stderr
    assert run(file, "--min-uses", "1.5").exit_code == 2


def test_lost_uses_are_listed_for_programs(order_file: Path) -> None:
    """With each recording, in the order in which they were taken."""
    data = json.loads(run_uses(order_file).stdout)
    [recording] = data["recordings"]
    [total], [one] = data["policies"][1:], recording["policies"][1:]
    assert total["uses"]["lost"] == 6
    lost = one["uses"]["uses_lost"]
    assert [use["text"] for use in lost] == [f"ORD-{number}7731" for number in range(6)]
    assert [use["result"] for use in lost] == [f"call_{number}" for number in range(6)]
    assert {use["tool"] for use in lost} == {"lookup"}
    assert total["uses"]["by_tool"] == {"lookup": {"sought": 7, "lost": 6}}
