"""`trimtab fit --policy` and `trimtab policy`: blocks from parts of the input, and policies checked."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from jsonschema import Draft202012Validator

from tests.test_cli import CALL, CHAT, QUESTION, RESULT, SYSTEM, answers, lines, run
from trimtab import Session
from trimtab.policy import load_policy, policy_schema

ROOT = Path(__file__).resolve().parents[1]
POLICY = """
counter = "chars:1"
budget = 40

[[blocks]]
name = "system"
priority = 100
strategy = "strict"

[[blocks]]
name = "documents"
priority = 40
strategy = "drop_newest"

[[blocks]]
name = "history"
priority = 50

[[blocks]]
name = "question"
priority = 95
strategy = "strict"
"""
# chars:1 charges a token a character: 9 + 14 of what must stay leave 17 of 40
PARTS = {"system": "Be brief.", "question": "What is 2 + 2?"}
HELLO = {"role": "assistant", "content": "Hello"}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Write the policy of these tests."""
    path = tmp_path / "policy.toml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def fit(policy: Path, *arguments: str, data: Any) -> Result:
    """Run `trimtab fit` by a policy."""
    return run("fit", "--policy", str(policy), *arguments, data=data)


def contents(found: Result) -> list[Any]:
    """List the texts of the messages that stay."""
    (one,) = answers(found)
    return [message["content"] for message in one["messages"]]


# --- parts


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        pytest.param(PARTS, ["Be brief.", "What is 2 + 2?"], id="others stay empty"),
        pytest.param({}, [], id="all empty"),
        pytest.param({**PARTS, "documents": None, "history": []}, ["Be brief.", "What is 2 + 2?"], id="null"),
        pytest.param(
            {"question": "What is 2 + 2?", "history": [HELLO], "system": "Be brief."},
            ["Be brief.", "Hello", "What is 2 + 2?"],
            id="in the order of the policy",
        ),
        pytest.param(
            {**PARTS, "documents": ["x" * 17, "y"]},
            ["Be brief.", "x" * 17, "What is 2 + 2?"],
            id="the newest left",
        ),
        pytest.param(
            {**PARTS, "documents": ["x" * 17], "history": [HELLO]},
            ["Be brief.", "Hello", "What is 2 + 2?"],
            id="history before documents",
        ),
        pytest.param({"history": [QUESTION, CALL, RESULT]}, ["What is 2 + 2?", None, "4"], id="with calls"),
    ],
)
def test_parts_fill_the_blocks_of_their_names(policy: Path, parts: Any, kept: list[Any]) -> None:
    """Text, messages or lists of these; what comes out is a list of messages and a report by block."""
    found = fit(policy, data=parts)
    assert (found.exit_code, found.stderr) == (0, "")
    assert contents(found) == kept
    report = answers(found)[0]["report"]
    assert {block["name"] for block in report["blocks"]} <= {"system", "documents", "history", "question"}
    assert report["tokens_after"] <= 40


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"questoin": "Hi"},
            "no block is called 'questoin'; the policy has: system, documents, history, question; did you"
            " mean question?",
        ),
        ({"zzz": 1}, "no block is called 'zzz'; the policy has: system, documents, history, question"),
        ({**PARTS, "tools": []}, "tool schemas are given by --tools"),
        (
            {**PARTS, "messages": []},
            "no block is called 'messages', and with 'system', which is one, it is not a request",
        ),
        (
            {"system": 5},
            "block 'system': content must be text, a message, a list of messages or None, not int",
        ),
        ({"history": [5]}, "messages[0]"),
        ([5], "block 'history': messages[0]: a message must be a mapping"),
        ([PARTS], "a list of objects with parts, not of messages: write one per line (JSONL)"),
        ({"role": "user", "content": "Hi"}, "a single message, not a list of them"),
        ("Hi", "a conversation must be a list of messages"),
    ],
)
def test_parts_that_go_nowhere_are_an_error_of_the_input(policy: Path, parts: Any, said: str) -> None:
    """Exit 1, with the names of the blocks."""
    found = fit(policy, data=json.dumps(parts))
    assert found.exit_code == 1
    assert said in found.stderr
    assert answers(found)[0]["error"]["type"] == "FormatError"


def test_lines_are_requests_of_their_own(policy: Path) -> None:
    """Nothing of one is in the next; a line that does not fit is answered, and the rest is done."""
    data = lines(PARTS, {"question": "x" * 41}, {"zzz": 1}, CHAT, {"system": "Be brief."})
    found = fit(policy, "--input", "jsonl", data=data)
    assert found.exit_code == 1
    first, second, third, fourth, fifth = answers(found)
    assert [message["content"] for message in first["messages"]] == list(PARTS.values())
    assert (second["error"]["block"], second["error"]["limit_tokens"]) == ("question", 40)
    assert third["error"]["type"] == "FormatError"
    assert fourth["messages"] == CHAT
    assert [message["content"] for message in fifth["messages"]] == ["Be brief."]


# --- conversations


def test_a_conversation_fills_history_and_its_leading_system_messages_the_block_of_these(
    policy: Path,
) -> None:
    """Or they would leave first, as the oldest of the history."""
    long = [SYSTEM, *({"role": "user", "content": f"{n}" * 10} for n in range(5)), QUESTION]
    found = fit(policy, data=long)
    assert contents(found) == ["Be brief.", "4444444444", "What is 2 + 2?"]
    assert [block["name"] for block in answers(found)[0]["report"]["blocks"]] == ["system", "history"]


def test_without_a_block_for_them_leading_system_messages_stay_in_the_history(tmp_path: Path) -> None:
    """They are pinned there, whatever its cap and strategy let leave; `trimtab batch` reads it alike."""
    path = tmp_path / "history.toml"
    path.write_text(POLICY.replace('name = "system"', 'name = "facts"'), encoding="utf-8")
    long = [SYSTEM, *({"role": "user", "content": f"{n}" * 10} for n in range(5)), QUESTION]
    found = fit(path, data=long)
    assert contents(found) == ["Be brief.", "4444444444", "What is 2 + 2?"]
    assert [block["name"] for block in answers(found)[0]["report"]["blocks"]] == ["history"]


def test_a_request_body_comes_out_as_one(policy: Path) -> None:
    """With everything in it that is no message; its tools are counted."""
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    body = {"model": "gpt-4o", "temperature": 0, "messages": CHAT, "tools": tools}
    found = fit(policy, "--budget", "1000", data=body)
    (one,) = answers(found)
    assert one["request"] == body
    assert one["report"]["tools_tokens"] > 0
    twice = fit(policy, "--tools", str(policy), data=body)
    assert twice.exit_code == 2


def test_what_a_body_is_charged_for_beside_messages_takes_room(policy: Path) -> None:
    """An output schema is sent too, so less of the budget is left."""
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    plain, charged = (
        answers(fit(policy, "--budget", "1000", data={"messages": CHAT, **extra}))[0]["report"]
        for extra in ({}, {"response_format": schema})
    )
    assert plain["overhead_tokens"] == 0 < charged["overhead_tokens"]
    assert charged["input_tokens"] == 1_000 - charged["overhead_tokens"]


HI = {"role": "user", "content": "Hi"}
HI_TO_GEMINI = {"role": "user", "parts": [{"text": "Hi"}]}


@pytest.mark.parametrize(
    ("form", "data", "request_written"),
    [
        (
            "anthropic",
            {"system": "Be brief.", "history": [HI]},
            {"system": "Be brief.", "messages": [HI]},
        ),
        ("anthropic", [SYSTEM, HI], {"system": "Be brief.", "messages": [HI]}),
        (
            "anthropic",
            {"system": "Be brief.", "model": "m", "messages": [HI]},
            {"system": "Be brief.", "model": "m", "messages": [HI]},
        ),
        (
            "gemini",
            {"system": "Be brief.", "history": [HI_TO_GEMINI]},
            {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [HI_TO_GEMINI]},
        ),
        ("auto", {"system": "Be brief.", "messages": [HI]}, {"system": "Be brief.", "messages": [HI]}),
    ],
)
def test_system_text_is_in_what_is_written_wherever_the_form_keeps_it(
    policy: Path, form: str, data: Any, request_written: dict[str, Any]
) -> None:
    """A request body holds it beside the messages; a body's own key may have the name of a block."""
    found = fit(policy, "--format", form, "--budget", "1000", data=json.dumps(data))
    assert found.exit_code == 0, found.stderr
    assert answers(found)[0]["request"] == request_written


@pytest.mark.parametrize(
    ("names", "data", "code", "said"),
    [
        (["chat"], [QUESTION], 0, ""),
        (
            ["notes", "chat"],
            [QUESTION],
            1,
            "a conversation is the content of the block 'history', which the policy does not have",
        ),
        (["messages", "notes"], {"messages": [QUESTION]}, 0, ""),
        (["input"], {"input": "Hi"}, 0, ""),
        ([], [QUESTION], 2, "the policy has no blocks"),
    ],
)
def test_it_is_clear_which_block_a_conversation_fills(
    tmp_path: Path, names: list[str], data: Any, code: int, said: str
) -> None:
    """The history; the only block; or those that are named as a body's keys are."""
    path = tmp_path / "policy.json"
    path.write_text(
        json.dumps({"budget": 99, "blocks": [{"name": name} for name in names]}), encoding="utf-8"
    )
    found = fit(path, data=data)
    assert found.exit_code == code
    assert said in found.stderr


# --- options


@pytest.mark.parametrize(
    ("options", "report"),
    [
        ((), {"window_tokens": 40, "counter": "chars/1"}),
        (("--budget", "50", "--margin", "2"), {"window_tokens": 50, "margin_tokens": 2}),
        (("--output-reserve", "3"), {"window_tokens": 40, "output_reserve_tokens": 3}),
        (("--margin", "3"), {"window_tokens": 40, "margin_tokens": 3}),
        (("--counter", "chars:2"), {"counter": "chars/2"}),
        (("--model", "gpt-4o"), {"model": "gpt-4o", "counter": "chars/1"}),
        (("--model", "gpt-4o", "--counter", "estimate"), {"model": "gpt-4o", "counter": "estimate"}),
        (("--system", "x" * 3), {"tokens_after": 9 + 14 + 3}),
    ],
)
def test_options_take_the_place_of_what_the_policy_says(
    policy: Path, options: tuple[str, ...], report: dict[str, Any]
) -> None:
    """Each of its own key; `--budget` of the whole budget."""
    found = fit(policy, *options, data=PARTS)
    assert found.exit_code == 0, found.stderr
    assert answers(found)[0]["report"].items() >= report.items()


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("[[blocks]]\nname = 'a'\nmax_ratio = 2", (), ": blocks[0].max_ratio is a number from 0 to 1, not 2"),
        ("[[blocks]]\nname = 'a'", (), "the budget is missing. Pass --budget N (tokens), or --model NAME"),
        (
            "model = 'gtp-4o'\n[[blocks]]\nname = 'a'",
            (),
            "policy.toml: unknown model 'gtp-4o': pass --counter estimate",
        ),
        (
            POLICY,
            ("--model", "gtp-4o", "--counter", "", "--budget", "9"),
            "--counter must be estimate or chars:N",
        ),
        (POLICY, ("--strategy", "drop"), "--strategy cannot be combined with --policy"),
        (POLICY, ("--steady",), "--steady cannot be combined with --policy"),
        (POLICY, ("--pin", "0"), "--pin cannot be combined with --policy"),
        (POLICY, ("--repair",), "--repair cannot be combined with --policy"),
        (
            POLICY + "on_trim = 'mine'",
            (),
            "blocks[3].on_trim: no callback is called 'mine'; declared are: none",
        ),
    ],
)
def test_a_policy_that_cannot_be_used_is_wrong_usage(
    policy: Path, text: str, options: tuple[str, ...], said: str
) -> None:
    """Exit 2, before anything is written."""
    policy.write_text(text, encoding="utf-8")
    found = fit(policy, *options, data=PARTS if text == POLICY else {"a": "Hi"})
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


def test_the_model_of_a_policy_gives_tokenizer_and_window(policy: Path) -> None:
    """Where it says no budget; a model of the body does not take its place."""
    policy.write_text("model = 'gpt-4o'\n[[blocks]]\nname = 'history'", encoding="utf-8")
    report = answers(fit(policy, data={"model": "gpt-3.5-turbo", "messages": CHAT}))[0]["report"]
    assert (report["model"], report["exact"], report["window_tokens"]) == ("gpt-4o", True, 128_000)
    assert answers(fit(policy, "--model", "gpt-4", data=CHAT))[0]["report"]["window_tokens"] == 8_192


def test_text_and_report_are_as_without_a_policy(policy: Path) -> None:
    """A report for people, by block; the report alone."""
    text = fit(policy, "--output", "text", data=PARTS)
    assert "fits, by estimate: 23 of 40 tokens" in text.stdout
    assert "question" in text.stdout
    (alone,) = answers(fit(policy, "--report", data=PARTS))
    assert alone.keys() == {"report"}


# --- trimtab policy


def test_a_policy_is_checked_and_written_as_json(policy: Path, tmp_path: Path) -> None:
    """What is written is the same policy."""
    found = run("policy", str(policy))
    assert (found.exit_code, found.stderr) == (0, "")
    path = tmp_path / "again.json"
    path.write_text(found.stdout, encoding="utf-8")
    assert load_policy(path).blocks == load_policy(policy).blocks


def test_a_policy_with_a_mistake_is_named_and_exits_1(policy: Path) -> None:
    """On standard error, with nothing on standard output."""
    policy.write_text("bugdet = 9", encoding="utf-8")
    found = run("policy", str(policy))
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith(f"trimtab: {policy}: no key is called 'bugdet'")
    assert "did you mean budget?" in found.stderr


FUNCTIONS = """
budget = 9000
counter = "tally"
[[blocks]]
name = "facts"
on_trim = "tidy"
strategy = "own"
[[blocks]]
name = "history"
[blocks.strategy]
kind = "cascade"
steps = [{kind = "summarize", summarizer = "sum_up"}, {kind = "priority_based", score = "rate"}]
"""


def test_a_policy_with_functions_of_a_program_is_checked_by_their_names(policy: Path) -> None:
    """What is written has the names; one that is not declared is named, and how to declare it."""
    policy.write_text(FUNCTIONS, encoding="utf-8")
    names = ("tally", "tidy", "own", "sum_up", "rate")
    given = [word for name in names for word in ("--name", name)]
    found = run("policy", str(policy), *given)
    assert (found.exit_code, found.stderr) == (0, "")
    written = json.loads(found.stdout)
    assert (written["counter"], written["blocks"][0]["on_trim"]) == ("tally", "tidy")
    assert written["blocks"][0]["strategy"] == "own"
    assert [
        step.get("summarizer", step.get("score")) for step in written["blocks"][1]["strategy"]["steps"]
    ] == [
        "sum_up",
        "rate",
    ]
    for at, name in enumerate(names):
        missing = run("policy", str(policy), *given[: 2 * at], *given[2 * at + 2 :])
        assert (missing.exit_code, missing.stdout) == (1, "")
        assert repr(name) in missing.stderr
        assert "--name" in missing.stderr or name == "own"
    policy.write_text(FUNCTIONS.replace("9000", "'9000 g'"), encoding="utf-8")
    assert run("policy", str(policy), *given).exit_code == 1


def test_the_schema_is_written_for_editors() -> None:
    """The one of `policy_schema()`."""
    found = run("policy", "--schema")
    assert found.exit_code == 0
    assert json.loads(found.stdout) == policy_schema()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "pass a FILE to check, or --schema"),
        (("policy.toml", "--schema"), "pass a FILE to check, or --schema"),
        (("--schema", "policy.toml"), "'policy.toml' is not one of 'policy', 'strategy', 'session'"),
    ],
)
def test_a_policy_or_the_schema_is_asked_for(arguments: tuple[str, ...], why: str) -> None:
    """Not both, and not neither."""
    found = run("policy", *arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert why in found.stderr


def test_the_schema_of_a_session_describes_each_option_as_its_help_does() -> None:
    """An option of a session is written once: an editor says what `help(Session)` says, and its default."""
    options = json.loads(run("policy", "--schema", "session").stdout)["properties"]
    told = " ".join((inspect.getdoc(Session) or "").split())
    for name in options.keys() - {"kind", "$schema"}:
        words = options[name]["description"]
        assert words
        assert words.replace("left out", "None").replace('"none"', "None") in told.partition(f" {name}: ")[2]
    assert options["summarize_threshold_messages"] | {"description": ""} == {
        "description": "",
        "default": 6,
        "type": "integer",
        "minimum": 1,
    }
    assert options["summary_role"]["enum"] == ["system", "user"]
    assert options["min_recent_tokens"]["minimum"] == 0


ALONE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "session"}, {"kind": "session"}),
    ({"kind": "session", "rules": ["Be kind."]}, {"kind": "session", "rules": ["Be kind."]}),
    (
        {"kind": "session", "recall_ratio": 0.3, "target_ratio": 0.5, "pending_first": False},
        {"kind": "session", "recall_ratio": 0.3},
    ),
    ({"kind": "session", "summarizer": "extractive"}, {"kind": "session", "summarizer": "extractive"}),
    ({"kind": "drop"}, {"kind": "drop"}),
    (
        {"kind": "sliding_window", "target_ratio": 0.5, "min_messages": 0},
        {"kind": "sliding_window", "target_ratio": 0.5},
    ),
    (
        {"kind": "cascade", "steps": ["clear_tool_results", {"kind": "drop"}]},
        {"kind": "cascade", "steps": ["clear_tool_results", "drop"]},
    ),
]
"""Strategies and sessions by themselves, and what differs from the defaults."""


@pytest.mark.parametrize(("data", "short"), ALONE, ids=[json.dumps(data) for data, _ in ALONE])
def test_a_strategy_or_a_session_by_itself_is_checked_too(
    data: dict[str, Any], short: dict[str, Any], tmp_path: Path
) -> None:
    """By its `kind`; the schema of its kind takes it, before and after."""
    path = tmp_path / "alone.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    found = run("policy", str(path))
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout) == short
    word = "session" if data["kind"] == "session" else "strategy"
    schema = json.loads(run("policy", "--schema", word).stdout)
    Draft202012Validator.check_schema(schema)
    for one in (data, short):
        assert Draft202012Validator(schema).is_valid(one)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"kind": "session", "recall_ratio": 1}, "recall_ratio is a number from 0 to below 1, not 1"),
        ({"kind": "session", "target_ratio": 0}, "target_ratio is a number above 0 and at most 1, not 0"),
        ({"kind": "session", "model": "gpt-4o"}, "no key is called 'model'"),
        ({"kind": "session", "summary_mode": "x"}, "summary_mode is 'incremental', 'rolling' or 'anchored'"),
        ({"kind": "sliding_window", "target_ratio": 3}, "target_ratio is a number above 0 and at most 1"),
        ({"kind": "slidingwindow"}, "did you mean sliding_window"),
    ],
)
def test_a_wrong_strategy_or_session_is_told_with_its_file_and_key(
    data: dict[str, Any], why: str, tmp_path: Path
) -> None:
    """Exit 1; the schema of its kind refuses it, too."""
    path = tmp_path / "alone.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    found = run("policy", str(path))
    assert (found.exit_code, found.stdout) == (1, "")
    assert why in found.stderr.partition("alone.json: ")[2]
    word = "session" if data["kind"] == "session" else "strategy"
    schema = json.loads(run("policy", "--schema", word).stdout)
    assert not Draft202012Validator(schema).is_valid(data)


@pytest.mark.parametrize("data", [{"kind": "drop"}, {"session": {"recall_ratio": 0.1}}])
def test_what_is_no_policy_of_blocks_says_where_it_goes(data: dict[str, Any], tmp_path: Path) -> None:
    """A file that was measured by `trimtab replay` is given to `fit` in another way."""
    path = tmp_path / "steady.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    found = run("fit", "--policy", str(path), data=[QUESTION])
    assert found.exit_code == 2
    assert "--strategy" in found.stderr
    assert "trimtab replay" in found.stderr


def test_the_example_takes_the_recorded_session() -> None:
    """As docs/policies.md does."""
    found = fit(ROOT / "examples" / "policy.toml", str(ROOT / "examples" / "agent_session.json"), data=b"")
    (one,) = answers(found)
    assert found.exit_code == 0
    assert one["report"]["tokens_after"] <= 7_168
    assert one["request"]["messages"][0]["role"] == "system"
    assert run("validate", data=one["request"]).exit_code == 0
