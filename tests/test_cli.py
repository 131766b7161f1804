"""The command line: what it reads, what it writes where, how it exits."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from tests.chat_shapes import calling, function_call, result
from trimtab import CharCounter, Session, cli
from trimtab import fit as fit_in_python
from trimtab.counting import measure

SCRIPT = Path(sys.executable).with_name("trimtab")
COMMANDS = ("fit", "count", "validate")
SYSTEM = {"role": "system", "content": "Be brief."}
QUESTION = {"role": "user", "content": "What is 2 + 2?"}
CALL, RESULT = calling(function_call("a")), result("a")
CHAT = [SYSTEM, {"role": "assistant", "content": "Hello"}, CALL, RESULT, QUESTION]
ORPHAN = [QUESTION, result("lost")]
# chars:1 charges a token a character: of CHAT 9 + 5 + (3 + 2) + 1 + 14
CHARS = ("--counter", "chars:1")


def run(*arguments: str, data: bytes | str | object = b"") -> Result:
    """Run a command in this process; what is no text goes in as JSON."""
    given = data if isinstance(data, bytes | str) else json.dumps(data)
    found = CliRunner().invoke(cli.command(), list(arguments), input=given)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def lines(*values: Any) -> bytes:
    """Write JSONL; bytes and text are lines as they are."""
    written = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in values]
    return b"\n".join(written) + b"\n"


def o200k_tokens(text: str) -> int:
    """Count a text with a library that is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # bpe_openai opens its files the old way
        from bpe_openai import get_encoding
    return len(get_encoding("o200k_base").encode(text))


def without_time(page: str) -> str:
    """Return a page without the time it was made at."""
    return re.sub(r"<time.*?</time>", "", page)


def answers(found: Result) -> list[Any]:
    """Read what was written on standard output, JSON a line."""
    return [json.loads(line) for line in found.stdout.splitlines()]


# --- what comes in


@pytest.mark.parametrize(
    ("data", "extra"),
    [
        pytest.param(json.dumps(CHAT), (), id="list"),
        pytest.param(json.dumps(CHAT, indent=2), (), id="list over many lines"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps(CHAT).encode(), (), id="byte order mark"),
        pytest.param(b"\n\n" + json.dumps(CHAT, indent=2).encode(), (), id="blank lines first"),
        pytest.param(json.dumps(CHAT), ("--input", "json"), id="said to be JSON"),
        pytest.param(lines(*CHAT), ("--input", "messages-jsonl"), id="one message per line"),
        pytest.param(
            b"\xef\xbb\xbf" + lines(*CHAT), ("--input", "messages-jsonl"), id="a message a line, with a mark"
        ),
    ],
)
def test_one_conversation_is_answered_with_one_object(data: bytes | str, extra: tuple[str, ...]) -> None:
    """However it is written, it comes out as the list that went in, without a line number."""
    found = run("fit", "--budget", "1000", *extra, data=data)
    assert found.exit_code == 0
    assert answers(found)[0]["messages"] == CHAT
    assert "line" not in answers(found)[0]


def test_a_request_body_comes_out_as_a_request_body() -> None:
    """What else stands in it stays, and its tools are counted."""
    body = {"model": "m", "temperature": 0.1, "n": 10**30, "messages": CHAT, "tools": [{"type": "function"}]}
    found = answers(run("fit", "--budget", "1000", data=body))[0]
    assert found["request"] == body
    assert found["report"]["fixed_tokens"] > 0


@pytest.mark.parametrize(
    ("name", "data", "extra", "numbers"),
    [
        ("a.txt", lines(CHAT, {"messages": CHAT}), (), [1, 2]),
        ("a.txt", lines(b"[oops]", CHAT), (), [1, 2]),
        ("a.txt", lines(b"", CHAT, b"  ", CHAT), (), [2, 4]),
        ("a.txt", b"\xef\xbb\xbf" + lines(CHAT, CHAT), (), [1, 2]),
        ("a.jsonl", lines(CHAT), (), [1]),
        ("a.NDJSON", lines(b"", CHAT), (), [2]),
        ("a.jsonl", b"", (), []),
        ("a.txt", lines(CHAT), ("--input", "jsonl"), [1]),
        ("a.json", b"\xef\xbb\xbf" + lines(CHAT, b"", CHAT), ("--input", "jsonl"), [1, 3]),
        ("a.txt", lines(CHAT, CHAT).rstrip(), (), [1, 2]),
    ],
)
def test_lines_are_conversations_and_keep_their_numbers(
    tmp_path: Path, name: str, data: bytes, extra: tuple[str, ...], numbers: list[int]
) -> None:
    """By suffix, by option, or because the first two lines are each complete."""
    (tmp_path / name).write_bytes(data)
    found = run("count", str(tmp_path / name), *extra)
    assert [one["line"] for one in answers(found)] == numbers


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_line_is_reported_and_the_rest_is_done(command: str) -> None:
    """In input order: an answer, the error with its number on both streams, an answer."""
    arguments = [command, *(["--budget", "1000"] if command == "fit" else [])]
    found = run(*arguments, data=lines(CHAT, b'[{"role": oops}]', CHAT))
    first, bad, last = answers(found)
    assert found.exit_code == 1
    assert bad["line"] == 2
    assert bad["error"]["type"] == "FormatError"
    assert "column 11" in bad["error"]["message"]
    assert {**first, "line": 3} == last
    assert "standard input, line 2: not JSON" in found.stderr
    assert "1 of 3 conversations" in found.stderr


BAD = {
    "nothing": (b"", "it is empty"),
    "blank": (b" \n\n", "it is empty"),
    "cut off": (b'[{"role": "user",', "line 1, column 18"),
    "wrong in line 2": (b'[\n{"role" "user"}]', "line 2, column 9"),
    "trailing words": (b"[] []", "line 1, column 4"),
    "invalid UTF-8": (b'[{"role":\n"\xff"}]', "not UTF-8: 0xff (line 2, byte 2)"),
    "surrogate in UTF-8": (b'[{"role": "\xed\xa0\x80"}]', "not UTF-8: 0xed"),
    "UTF-16": ("[]".encode("utf-16"), "UTF-16"),
    "NaN": (b"[NaN]", "NaN"),
    "infinite": (b"[1e999]", "1e999"),
    "5,000 digits": (b"[" + b"1" * 5_000 + b"]", "digits"),
    "deep": (b"[" * 100_000, "nested too deep"),
    "deep and closed": (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
    "text": (b'"hello"', "not 'hello'"),
    "number": (b"5", "not 5"),
    "other mapping": (b'{"id": 1, "request": 2}', "'id', 'request'"),
    "empty mapping": (b"{}", "no keys"),
    "list of conversations": (json.dumps([CHAT, CHAT]).encode(), "one per line"),
    "list of bodies": (json.dumps([{"messages": CHAT}]).encode(), "one per line"),
    "single message": (json.dumps(QUESTION).encode(), "--input messages-jsonl"),
    "single message over lines": (json.dumps(QUESTION, indent=1).encode(), "--input messages-jsonl"),
    "single item": (b'{"type": "custom_tool_call", "input": "x"}', "--input messages-jsonl"),
    "body without a list": (b'{"messages": 5}', "'messages'"),
    "no message": (b"[5]", "messages[0]"),
}


@pytest.mark.parametrize(("data", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_a_typed_error(data: bytes, said: str) -> None:
    """Never a traceback: one line for people, one object for programs, exit 1."""
    for arguments in (("fit", "--budget", "9"), ("count",)):
        found = run(*arguments, data=data)
        assert found.exit_code == 1
        assert [set(one) for one in answers(found)] == [{"error"}]
        assert answers(found)[0]["error"]["type"] == "FormatError"
        assert said in answers(found)[0]["error"]["message"]
        assert len(found.stderr.splitlines()) == 1
        assert said in found.stderr


def test_a_line_that_is_cut_off_says_at_which_column() -> None:
    """The end of the line, Windows or not, is no part of it."""
    for end in (b"\n", b"\r\n"):
        found = run("count", data=end.join([b"[]", b'[{"role":"user"', b"[]", b""]))
        assert "line 2: not JSON: Expecting ',' delimiter (column 16)" in found.stderr


def test_lines_that_look_like_single_messages_name_the_option() -> None:
    """Once for the whole input, not a line each."""
    found = run("fit", "--budget", "9", data=lines(*CHAT * 20))
    assert found.exit_code == 1
    assert found.stderr.count("--input messages-jsonl") == 1
    assert len(answers(found)) == 1


def test_one_line_that_looks_like_a_message_is_one_bad_line() -> None:
    """The conversations around it are answered."""
    found = run("count", data=lines(CHAT, QUESTION, CHAT))
    assert ["error" in one for one in answers(found)] == [False, True, False]
    assert "line 2: a single message" in found.stderr


@pytest.mark.parametrize("name", ["chat.csv", "page.HTML", "policy.toml"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind_is_refused_with_what_is_read(tmp_path: Path, command: str, name: str) -> None:
    """And with how a conversation is written."""
    (tmp_path / name).write_text("role,content\nuser,hi\n")
    found = run(command, str(tmp_path / name), *(() if command == "validate" else CHARS))
    assert found.exit_code == 2
    assert "conversations are read from JSON and JSONL" in " ".join(found.stderr.split())
    assert '"messages": [{"role": "user"' in " ".join(found.stderr.split())


@pytest.mark.parametrize("bad", [b"[]", b'"x"', b'{"messages": []}', b"{oops}"])
def test_a_bad_line_among_messages_is_named(bad: bytes) -> None:
    """Lines of one conversation are not skipped: half of it would be another conversation."""
    found = run("count", "--input", "messages-jsonl", data=lines(QUESTION, bad, QUESTION))
    assert found.exit_code == 1
    assert answers(found)[0]["error"]["message"].startswith("line 2: ")


def test_unusual_text_goes_through_unharmed() -> None:
    """Lone surrogates, NUL, other scripts, line separators and big numbers."""
    chat = [{"role": "user", "content": "\ud800 \x00 中文 \u2028 🧑‍🚀", "n": 2**64 + 1}]
    found = run("fit", "--budget", "1000", data=lines(chat, [{**QUESTION, "content": "中文"}]))
    assert found.exit_code == 0
    assert answers(found)[0]["messages"] == chat
    assert "中文" in found.stdout.splitlines()[1]


def test_an_answer_that_cannot_be_written_is_an_error_too() -> None:
    """What is carried and not looked at can be too deep for writing only; the exit code knows."""
    seen = set()
    for depth in range(850, 1_000, 4):
        deep = b'[{"role": "user", "content": "x", "metadata": ' + b"[" * depth + b"]" * depth + b"}]"
        for data in (deep, deep + b"\n[]"):
            found = run("fit", "--budget", "99", data=data)
            failed = ["error" in one for one in answers(found)]
            assert found.exit_code == int(any(failed))
            seen.add(failed[0])
    assert seen == {True, False}


# --- options


def fit(*arguments: str, chat: object = CHAT) -> Any:
    """Fit with a token a character and give the answer."""
    found = run("fit", *CHARS, *arguments, data=chat)
    assert found.stdout, found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("--budget", "34"), [0, 1, 2, 3, 4]),
        (("--budget", "33"), [0, 2, 3, 4]),
        (("--budget", "28"), [0, 4]),
        (("--budget", "40", "--output-reserve", "7"), [0, 2, 3, 4]),
        (("--budget", "40", "--margin", "7"), [0, 2, 3, 4]),
        (("--budget", "40", "--margin", "4", "--output-reserve", "3"), [0, 2, 3, 4]),
        (("--budget", "28", "--pin", "1"), [0, 1, 4]),
        (("--budget", "28", "--pin", "-4"), [0, 1, 4]),
        (("--budget", "28", "--pin", "0:2"), [0, 1, 4]),
        (("--budget", "29", "--pin", "2:4"), [0, 2, 3, 4]),
        (("--budget", "28", "--pin", "0", "--pin", ":2"), [0, 1, 4]),
        (("--budget", "33", "--strategy", "drop"), [0, 4]),
        (("--budget", "33", "--strategy", "drop_head"), [0, 2, 3, 4]),
        (("--budget", "33", "--strategy", "drop_newest"), [0, 1, 4]),
    ],
)
def test_options_of_fit_say_what_stays(arguments: tuple[str, ...], kept: list[int]) -> None:
    """Sizes are 9, 5, 5, 1 and 14, added by hand."""
    assert fit(*arguments)["messages"] == [CHAT[index] for index in kept]


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("s.json", '{"kind": "drop"}', [0, 4]),
        ("s.toml", 'kind = "cascade"\nsteps = [{kind = "drop_newest"}]', [0, 1, 4]),
        ("plan", '"drop"', [0, 4]),
    ],
)
def test_a_strategy_can_be_a_file(tmp_path: Path, name: str, text: str, kept: list[int]) -> None:
    """JSON, or TOML by its suffix."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = fit("--budget", "33", "--strategy", str(tmp_path / name))
    assert found["messages"] == [CHAT[index] for index in kept]


def test_a_strategy_can_be_json() -> None:
    """As a policy of `trimtab replay`; what is wrong in it exits as it does in a file."""
    for data, kept in (
        ({"kind": "drop"}, [0, 4]),
        ({"kind": "cascade", "steps": ["drop_newest"]}, [0, 1, 4]),
    ):
        found = fit("--budget", "33", "--strategy", json.dumps(data))
        assert found["messages"] == [CHAT[index] for index in kept]
    for text, said in (
        ('{"kind": ', "not JSON"),
        ('{"kind": "drop", "hard": true}', "no option"),
        ('{"kind": "drop", "share": 1e999}', "1e999 is too large to be written as JSON"),
    ):
        broken = run("fit", "--budget", "9", "--strategy", text, data=CHAT)
        assert (broken.exit_code, broken.stdout) == (2, "")
        assert said in broken.stderr
        assert f"--strategy {text}" in broken.stderr


def test_breakpoints_mark_what_comes_out() -> None:
    """As `fit(…, breakpoints=True)` does, for a provider whose cache wants marks."""
    chat = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    (message,) = fit("--budget", "999", "--format", "anthropic", "--breakpoints", chat=chat)["messages"]
    assert message["content"] == [{**chat[0]["content"][0], "cache_control": {"type": "ephemeral"}}]


def test_the_newest_is_cut_or_left_alone() -> None:
    """As `fit(…, cut_newest=False)` does; a policy says it by its blocks."""
    chat = [QUESTION, calling(function_call("a")), {**result("a"), "content": "word " * 400}]
    cut = fit("--budget", "100", "--strategy", "cheapest", chat=chat)["messages"]
    assert "[text cut by trimtab" in cut[-1]["content"]
    refused = run("fit", "--budget", "100", "--strategy", "cheapest", "--no-cut-newest", data=chat)
    assert (refused.exit_code, "does not fit" in refused.stderr) == (1, True)


def test_steady_cuts_in_strides() -> None:
    """As `fit(…, steady=True)` does: further than it must, at a mark."""
    chat = [{"role": "user", "content": f"{number:09}"} for number in range(40)]
    counter = CharCounter(chars_per_token=1)
    wanted = fit_in_python(chat, 180, counter=counter, steady=True).messages
    assert fit("--budget", "180", "--steady", chat=chat)["messages"] == wanted
    assert len(fit("--budget", "180", chat=chat)["messages"]) > len(wanted) > 0


def test_steady_takes_what_a_cut_leaves() -> None:
    """As a word of its own or behind a sign; a file behind it is no number."""
    chat = [{"role": "user", "content": f"{number:09}"} for number in range(200)]
    deep = fit_in_python(chat, 400, counter=CharCounter(chars_per_token=1), steady=0.2).messages
    plain = fit_in_python(chat, 400, counter=CharCounter(chars_per_token=1), steady=True).messages
    assert len(deep) < len(plain)
    for words in (("--steady", "0.2"), ("--steady=0.2",)):
        assert fit("--budget", "400", *words, chat=chat)["messages"] == deep
    assert fit("--budget", "400", "--steady", "-", chat=chat)["messages"] == plain
    for word in ("0", "1", "1.5", "nan"):
        refused = run("fit", "--budget", "400", "--steady", word, data=chat)
        assert (refused.exit_code, "above 0 and below 1" in refused.stderr) == (2, True)


def test_charge_as_counts_what_messages_become() -> None:
    """As `fit(…, charge_as=…)` does: a call and its result are items of their own in Responses."""
    chat = [QUESTION, calling(function_call("a")), result("a")]
    options = ("fit", "--budget", "999", "--model", "gpt-4o", "--report")

    def tokens(*more: str) -> Any:
        return json.loads(run(*options, *more, data=chat).stdout)["report"]["tokens_after"]

    wanted = fit_in_python(chat, 999, model="gpt-4o", charge_as="openai_responses").report.tokens_after
    assert tokens("--charge-as", "openai_responses") == wanted != tokens()


def test_a_report_is_written_as_a_page_of_one_conversation() -> None:
    """`--output html` writes what `Fitted.to_html` does; of several there is no one page."""
    chat = [QUESTION] * 9
    options = ("fit", *CHARS, "--budget", "60", "--output", "html")
    counter = CharCounter(chars_per_token=1)
    fitted = fit_in_python(chat, 60, counter=counter)
    page = fitted.to_html(source="standard input")
    assert without_time(run(*options, data=chat).stdout) == without_time(page)
    told = run(*options, "--include-text", data=chat).stdout
    assert without_time(told) == without_time(fitted.to_html(source="standard input", include_text=True))
    assert "<pre" in told
    assert "<pre" not in page
    many = run(*options, data=f"{json.dumps(chat)}\n{json.dumps(chat)}\n")
    assert many.exit_code == 2
    assert "one conversation" in many.stderr


def test_system_text_and_tools_are_given_beside_the_messages(tmp_path: Path) -> None:
    """Both are counted; the text, from a file too, leads where the wire form keeps it among messages."""
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "add"}]), encoding="utf-8")
    (tmp_path / "system.txt").write_text("Be kind.\n", encoding="utf-8")
    tools = ("--tools", str(tmp_path / "tools.json"))
    for system in ("Be kind.", f"@{tmp_path / 'system.txt'}"):
        found = fit("--budget", "99", *tools, "--system", system, chat=[QUESTION])
        assert found["messages"] == [{"role": "system", "content": "Be kind."}, QUESTION]
        assert found["report"]["fixed_tokens"] == len('[{"name":"add"}]')
        assert found["report"]["tokens_after"] == 8 + 14 + len('[{"name":"add"}]')
        counted = run("count", *CHARS, *tools, "--system", system, data=[QUESTION])
        assert answers(counted)[0]["tokens"] == found["report"]["tokens_after"]


def test_pending_calls_and_repair_decide_about_a_call_without_result() -> None:
    """A call followed by a user message is a fault, unless its result is still to come or it is mended."""
    chat = [QUESTION, CALL, QUESTION]
    assert run("validate", data=chat).exit_code == 1
    assert run("validate", "--pending-call", "a", data=chat).exit_code == 0
    assert fit("--budget", "99", "--repair", chat=chat)["messages"] == [QUESTION, QUESTION]
    pending = fit("--budget", "99", "--repair", "--pending-call", "b", "--pending-call", "a", chat=chat)
    assert pending["messages"] == chat


def test_the_report_can_come_alone() -> None:
    """Without the messages, in the form `Report.from_dict` reads."""
    alone = fit("--budget", "33", "--report")
    assert alone == {"report": fit("--budget", "33")["report"]}
    assert (alone["report"]["tokens_after"], alone["report"]["evicted_message_count"]) == (29, 1)


def test_rows_of_a_report_are_of_runs_or_of_messages() -> None:
    """Also in the report of what does not fit."""
    runs = fit("--budget", "33", "--report")["report"]["runs"]
    rows = fit("--budget", "33", "--report", "--rows", "messages")["report"]["messages"]
    assert [(run["fate"], run["message_count"]) for run in runs] == [
        ("kept", 1),
        ("evicted", 1),
        ("kept", 2),
        ("kept", 1),
    ]
    assert [row["fate"] for row in rows] == ["kept", "evicted", "kept", "kept", "kept"]
    (over,) = answers(run("fit", "--budget", "1", "--rows", "messages", *CHARS, data=CHAT))
    assert (over["report"]["fits"], len(over["report"]["messages"])) == (False, len(CHAT))


def test_the_model_gives_counter_and_window() -> None:
    """The model's own tokenizer counts, and its window less its output is the room."""
    report = answers(run("fit", "--model", "gpt-4o", data=CHAT))[0]["report"]
    assert report["exact"] is True
    assert report["input_tokens"] == 128_000 - 16_384
    assert report["output_reserve_tokens"] == 16_384
    found = run("fit", "--model", "gpt-4o", "--output-reserve", "8000", *CHARS, data=CHAT)
    assert answers(found)[0]["report"]["input_tokens"] == 120_000
    assert answers(found)[0]["report"]["exact"] is False


@pytest.mark.parametrize(
    ("named", "arguments", "model", "exact"),
    [
        ("gpt-4o", (), "gpt-4o", True),
        ("gpt-4o", ("--model", "gpt-3.5-turbo"), "gpt-3.5-turbo", True),
        ("gpt-4o", CHARS, "gpt-4o", False),
        ("nobody's", (), None, False),
        ({}, (), None, False),
    ],
)
def test_a_known_model_of_the_body_is_counted_for(
    named: Any, arguments: tuple[str, ...], model: str | None, exact: bool
) -> None:
    """By `fit` and `count` alike, unless another one is asked for."""
    body = {"model": named, "messages": CHAT}
    counted = answers(run("count", *arguments, data=body))[0]
    assert counted["model"] == model
    text = answers(run("count", *arguments, data={**body, "messages": [QUESTION]}))[0]
    assert (text["model"], text["exact"]) == (model, exact)
    fitted = answers(run("fit", "--budget", "1000", *arguments, data=body))[0]["report"]
    assert (fitted["exact"], fitted["tokens_after"]) == (counted["exact"], counted["tokens"])


def test_the_model_of_the_body_gives_the_room() -> None:
    """Line by line; a line that names none, or an unknown one, is an error of that line."""
    bodies = [{"model": name, "messages": CHAT} for name in ("gpt-4o", "gpt-4", "nobody's")]
    found = run("fit", "--output-reserve", "1000", "--margin", "8", data=lines(*bodies, CHAT))
    fine, small, *others = answers(found)
    assert [one["report"]["input_tokens"] for one in (fine, small)] == [128_000 - 1_008, 8_192 - 1_008]
    assert [one["error"]["type"] for one in others] == ["ConfigurationError"] * 2
    assert answers(run("fit", data=bodies[0]))[0]["report"]["input_tokens"] == 128_000 - 16_384


def test_legacy_functions_are_tools_to_count() -> None:
    """Of the same number of tokens, and part of what `fit` reports."""
    functions = [{"name": "add", "description": "word " * 50}]
    for counter in ((), CHARS, ("--model", "gpt-4o")):
        found = [
            answers(run("count", *counter, data={"messages": CHAT, key: functions}))[0]
            for key in ("tools", "functions")
        ]
        for one in found:  # bills of the older key are few, so a count of it may be less sure
            del one["exact"], one["margin_tokens"], one["over_margin_tokens"]
        assert found[0] == found[1]
        assert found[1]["tools_tokens"] >= 50
        fitted = answers(
            run("fit", "--budget", "9999", *counter, data={"messages": CHAT, "functions": functions})
        )
        assert fitted[0]["report"]["tokens_after"] == found[1]["tokens"]


def test_tools_given_to_fit_are_in_the_body_that_comes_out(tmp_path: Path) -> None:
    """It can be sent as it is."""
    tools = [{"type": "function", "function": {"name": "add"}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    body = {"model": "gpt-4o", "messages": CHAT}
    found = run("fit", "--tools", str(tmp_path / "tools.json"), data=body)
    assert answers(found)[0]["request"] == {**body, "tools": tools}


@pytest.mark.parametrize("command", [("fit", "--budget", "999"), ("count",)])
def test_tools_given_twice_are_told_in_words_of_the_command_line(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """By the option's name."""
    (tmp_path / "tools.json").write_text('[{"name": "add"}]', encoding="utf-8")
    body = {"messages": CHAT, "tools": [{"name": "add"}]}
    found = run(*command, "--tools", str(tmp_path / "tools.json"), data=body)
    assert found.exit_code == 2
    assert "tools is given twice: by --tools and in the request body" in found.stderr


USAGE = {
    "no command": ((), "Usage:"),
    "no budget": (("fit",), "--budget"),
    "zero budget": (("fit", "--budget", "0"), "--budget"),
    "budget is not a number": (("fit", "--budget", "8 thousand"), "--budget"),
    "negative margin": (("fit", "--budget", "9", "--margin", "-1"), "--margin"),
    "unknown model": (("fit", "--model", "gtp-4o"), "did you mean"),
    "unknown model to count": (("count", "--model", "gtp-4o"), "--counter estimate"),
    "unknown strategy": (("fit", "--budget", "9", "--strategy", "sliding"), "did you mean"),
    "cascade without steps": (("fit", "--budget", "9", "--strategy", "cascade"), "steps"),
    "no strategy file": (("fit", "--budget", "9", "--strategy", "no.toml"), "No such file"),
    "steady and a strategy": (("fit", "--budget", "9", "--steady", "--strategy", "drop"), "--strategy"),
    "unknown counter": (("count", "--counter", "words"), "chars:N"),
    "counter of zero": (("count", "--counter", "chars:0"), "above 0"),
    "counter of words": (("count", "--counter", "chars:x"), "not a number"),
    "no tools file": (("count", "--tools", "no.json"), "No such file"),
    "no system file": (("count", "--system", "@no.txt"), "No such file"),
    "unknown format": (("validate", "--format", "morse"), "openai_chat"),
    "unknown input": (("validate", "--input", "xml"), "messages-jsonl"),
    "unknown output": (("validate", "--output", "xml"), "text"),
    "no file": (("count", "no.json"), "No such file"),
    "pin is a word": (("fit", "--budget", "9", "--pin", "x"), "range"),
    "pin has two colons": (("fit", "--budget", "9", "--pin", "1:2:3"), "range"),
    "pin is out of range": (("fit", "--budget", "9", "--pin", "7"), "index 7"),
    "unknown option": (("fit", "--limit", "9"), "--limit"),
}


@pytest.mark.parametrize(("arguments", "said"), USAGE.values(), ids=USAGE)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], said: str) -> None:
    """Nothing on standard output, what to change on standard error."""
    found = run(*arguments, data=CHAT)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


ALL_ORPHANS = [QUESTION, result("lost"), QUESTION]
FIT = ("fit", "--budget", "99")
BLOCK = '[[blocks]]\nname = "history"\n'
MISTAKES: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "strict": ((*FIT, "--strict"), ALL_ORPHANS, "--strict was set"),
    "strict, what mends": ((*FIT, "--strict"), ALL_ORPHANS, "Repair it with `trimtab repair`"),
    "strict, left out": ((*FIT, "--strict"), ALL_ORPHANS, "or leave --strict out"),
    "no room at all": (("fit",), CHAT, "Pass --budget N"),
    "window passed": (("fit", "--model", "gpt-4o", "--budget", "1m"), CHAT, "--budget 1,000,000"),
    "unknown model": (("fit", "--model", "gtp-4o"), CHAT, "--counter estimate"),
    "unknown window": (("fit", "--model", "gpt-99"), CHAT, "--budget N"),
    "margin unknown": (
        (*FIT, "--margin", "auto", "--counter", "chars:4"),
        CHAT,
        "--margin auto: counter chars/4",
    ),
    "margin, what to give": (
        (*FIT, "--margin", "auto", "--counter", "chars:4"),
        CHAT,
        "pass --margin as a number",
    ),
    "counter unknown": ((*FIT, "--counter", "tiktoken"), CHAT, "--counter must be estimate or chars:N"),
    "summarize": ((*FIT, "--strategy", "summarize"), CHAT, "which only a program has"),
    "cascade": ((*FIT, "--strategy", "cascade"), CHAT, "needs steps, as data"),
    "clamp_results": ((*FIT, "--strategy", "clamp_results"), CHAT, "needs a share, as data"),
    "kind unknown": ((*FIT, "--strategy", "foo"), CHAT, "no strategy is called 'foo'"),
    "pin out of range": ((*FIT, "--pin", "99"), CHAT, "index 99"),
    "must stay": (("fit", "--budget", "3"), CHAT, "Raise the budget"),
    "role unknown": (FIT, [{"role": "weird", "content": "hi"}], "need a wire form of your own"),
    "system twice": ((*FIT, "--system", "x"), {"system": "a", "messages": [QUESTION]}, "by --system and in"),
    "no conversation": (FIT, {"text": "hi"}, "a conversation must be a list of messages"),
    "a single message": (FIT, QUESTION, "--input messages-jsonl"),
    "policy and strict": (
        ("fit", "--budget", "99", "--strict", "--policy", BLOCK),
        ALL_ORPHANS,
        "--strict was set",
    ),
    "policy, model unknown": (
        ("policy", 'model = "nope-1"\n' + BLOCK),
        "",
        "the file that TRIMTAB_MODELS names",
    ),
    "policy, function": (("policy", BLOCK + 'on_trim = "mine"'), "", "--name NAME"),
    "policy, strategy": (("policy", BLOCK + 'strategy = "mine"'), "", "--name NAME"),
    "policy, counter": (
        ("fit", "--policy", 'counter = "mine"\n' + BLOCK),
        CHAT,
        "the name of a counter that a program",
    ),
    "policy, summarizer": (
        ("fit", "--policy", BLOCK + 'strategy = "summarize"'),
        CHAT,
        "summarizer that a program",
    ),
}
PYTHON = re.compile(r"(?<![\w-])[a-z_]+=|=True|[A-Za-z]\(")


@pytest.mark.parametrize(("arguments", "data", "said"), MISTAKES.values(), ids=MISTAKES)
def test_errors_speak_of_options_not_of_python(
    tmp_path: Path, arguments: tuple[str, ...], data: Any, said: str
) -> None:
    """Also those the library raises, and those written as JSON."""
    (tmp_path / "policy.toml").write_text(arguments[-1], encoding="utf-8")
    if BLOCK in arguments[-1]:
        arguments = (*arguments[:-1], str(tmp_path / "policy.toml"))
    found = run(*arguments, data=data)
    assert found.exit_code != 0
    errors = [one["error"]["message"] for one in answers(found) if "error" in one]
    assert said in found.stderr
    for text in (found.stderr, *errors):
        assert not PYTHON.search(text.replace("message(s)", "")), text


def test_what_an_error_quotes_is_not_turned_into_options() -> None:
    """A value that looks like a parameter of Python is told as it was given; a path is one, too."""
    assert "'a budget=3'" in run(*FIT, "--counter", "a budget=3", data=CHAT).stderr
    assert "x/model=4.json" in run(*FIT, "--tools", "x/model=4.json", data=CHAT).stderr


def test_a_value_that_was_given_is_told_with_its_option(tmp_path: Path) -> None:
    """As it was given, with the option in front; also of a policy, and of a session of its own."""
    policy = tmp_path / "p.toml"
    policy.write_text(BLOCK, encoding="utf-8")
    model = ("--model", "gpt-4o")
    assert (
        "Error: --budget tier means the room below"
        in run("fit", "--budget", "tier", *model, data=CHAT).stderr
    )
    beside = run("fit", "--budget", "9000", "--output-reserve", "9000", *model, data=CHAT)
    assert "with --output-reserve 9,000 and" in beside.stderr
    both = ("--system", "x", "--policy", str(policy))
    twice = run(*FIT, *both, data={"system": "a", "messages": [QUESTION]})
    assert "by --system and in" in twice.stderr
    new = ("session", "add", "--store", str(tmp_path / "chats.db"), "--id", "a", "--budget", "1m", *model)
    assert "--budget 1,000,000 exceeds the window" in run(*new, data=QUESTION).stderr
    assert "over_limit" not in run(*new, data=QUESTION).stderr


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--tools", "{}", "a list"),
        ("--tools", "[", "not JSON"),
        (
            "--tools",
            '[{"name": "f"}, {"role": "user", "content": "hi"}]',
            "[1] is a message, not a tool schema",
        ),
        ("--tools", "[1]", "[0] is 1, not a tool schema"),
        ("--strategy", "[", "not JSON"),
        ("--strategy", '{"kind": "drop", "hard": true}', "no option"),
    ],
)
def test_a_bad_file_of_an_option_exits_2(tmp_path: Path, option: str, text: str, said: str) -> None:
    """The file and the option are named."""
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    found = run("fit", "--budget", "9", option, str(tmp_path / "x.json"), data=CHAT)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
    assert f"{option} {tmp_path / 'x.json'}" in found.stderr


def test_bytes_that_are_no_text_in_option_files_exit_2(tmp_path: Path) -> None:
    """A binary file given by mistake is no traceback."""
    for name in ("x.json", "x.toml", "x.txt"):
        (tmp_path / name).write_bytes(b"\xff\x00")
    for option, value in (("--tools", "x.json"), ("--strategy", "x.toml"), ("--system", "@x.txt")):
        place = value.replace("x.", f"{tmp_path}/x.")
        assert run("fit", "--budget", "9", option, place, data=CHAT).exit_code == 2


def test_what_contradicts_one_line_is_an_error_of_that_line(tmp_path: Path) -> None:
    """An index that only one of many lacks, or tools that only one brings, stop nobody else."""
    (tmp_path / "tools.json").write_text("[]", encoding="utf-8")
    found = run("fit", "--budget", "99", *CHARS, "--pin", "3", data=lines(CHAT, [QUESTION], CHAT))
    assert [one.get("error", {}).get("type") for one in answers(found)] == [None, "ConfigurationError", None]
    tools = ("--tools", str(tmp_path / "tools.json"))
    for command in (("fit", "--budget", "99"), ("count",)):
        found = run(*command, *tools, data=lines({"messages": CHAT, "tools": []}, CHAT))
        assert ["error" in one for one in answers(found)] == [True, False]
        assert found.exit_code == 1


# --- what comes out


def test_what_does_not_fit_exits_1_with_the_numbers() -> None:
    """System text and question alone are 23; the report of the nearest attempt is there."""
    found = run("fit", *CHARS, "--budget", "20", data=lines(CHAT, [QUESTION]))
    over, fine = answers(found)
    assert found.exit_code == 1
    error = {key: over["error"][key] for key in ("type", "needed_tokens", "limit_tokens", "block")}
    assert error == {
        "type": "BudgetExceededError",
        "needed_tokens": 23,
        "limit_tokens": 20,
        "block": "history",
    }
    heaviest = over["error"]["heaviest"]
    assert CHAT[heaviest["index"]]["role"] == heaviest["role"]
    assert (
        f"message {heaviest['index']}, role {heaviest['role']}, {heaviest['tokens']} tokens" in found.stderr
    )
    assert over["report"]["fits"] is False
    assert fine["messages"] == [QUESTION]
    assert "line 1: block 'history' does not fit" in found.stderr


def test_count_adds_up() -> None:
    """Messages and what stands beside them are the total; each is there if asked for."""
    plain = answers(run("count", "--model", "gpt-4o", data=CHAT))[0]
    each = answers(run("count", "--model", "gpt-4o", "--each", data=CHAT))[0]
    rows = each.pop("messages")
    assert each == plain
    assert [(row["index"], row["role"]) for row in rows] == [
        (index, message["role"]) for index, message in enumerate(CHAT)
    ]
    assert sum(row["tokens"] for row in rows) == plain["messages_tokens"]
    assert plain["messages_tokens"] + plain["fixed_tokens"] == plain["tokens"]
    assert (plain["exact"], plain["model"], plain["total_message_count"]) == (True, "gpt-4o", 5)
    # three tokens of framing each, its role, its text; three for the answer (OpenAI cookbook)
    assert rows[0]["tokens"] == 3 + 1 + o200k_tokens(str(SYSTEM["content"]))


def test_count_as_text_is_a_small_table() -> None:
    """The numbers stand below each other and the total comes last."""
    table = run("count", *CHARS, "--each", "--output", "text", data=CHAT).stdout.splitlines()
    assert [line.split()[0] for line in table] == ["9", "5", "5", "1", "14", "34"]
    assert table[-1].endswith("total, by estimate (chars/1)")
    assert run("count", *CHARS, "--output", "text", data=CHAT).stdout == (
        "34  5 messages\n34  total, by estimate (chars/1)\n"
    )
    rows = run("count", *CHARS, "--output", "text", data=lines(CHAT, [QUESTION])).stdout.splitlines()
    assert rows[1] == "line 2: 14 tokens in 1 message, by estimate (chars/1)"


def test_violations_are_a_list_and_in_text_a_line_each() -> None:
    """An open call is listed and is no fault."""
    found = run("validate", data=ORPHAN)
    violation = answers(found)[0]["violations"][0]
    assert found.exit_code == 1
    assert answers(found)[0]["valid"] is False
    assert (violation["index"], violation["rule"], violation["call_id"], violation["fault"]) == (
        1,
        "orphan_result",
        "lost",
        True,
    )
    assert run("validate", "--output", "text", data=ORPHAN).stdout.startswith(
        "message 1, orphan_result, call lost: "
    )
    opened = run("validate", "--output", "text", data=[QUESTION, CALL])
    assert opened.exit_code == 0
    assert opened.stdout.splitlines()[0] == "valid"
    assert opened.stdout.splitlines()[1].startswith("message 1, open_call, ")
    many = run("validate", "--output", "text", data=lines(CHAT, ORPHAN))
    assert many.exit_code == 1
    assert many.stdout.splitlines()[:2] == ["line 1: valid", "line 2: invalid"]
    assert many.stdout.splitlines()[2].startswith("  message 1, orphan_result, ")


def test_text_of_a_fit_is_the_report_and_of_many_a_row_each() -> None:
    """With --report the whole report of each line."""
    one = run("fit", *CHARS, "--budget", "33", "--output", "text", data=CHAT)
    assert one.stdout.startswith("fits, by estimate: 29 of 33 tokens")
    assert "\x1b" not in one.stdout
    many = run("fit", *CHARS, "--budget", "33", "--output", "text", data=lines(CHAT, b"oops", [QUESTION]))
    assert many.stdout.splitlines() == [
        "line 1: fits, by estimate: 29 of 33 tokens; 4 kept, 1 evicted",
        "line 3: fits, by estimate: 14 of 33 tokens; 1 kept",
    ]
    full = run("fit", *CHARS, "--budget", "33", "--output", "text", "--report", data=lines(CHAT, CHAT))
    assert full.stdout == "".join(f"line {number}\n{one.stdout}\n" for number in (1, 2))
    over = run("fit", *CHARS, "--budget", "20", "--output", "text", data=CHAT)
    assert over.exit_code == 1
    assert over.stdout.startswith("DOES NOT FIT")
    assert "does not fit" in over.stderr


def test_text_of_others_cannot_steer_the_terminal() -> None:
    """Escape sequences in roles, keys and ids are shown, not sent."""
    evil = "\x1b[2J"
    for data in ([{"role": evil, "content": "x"}], {evil: 1}, [{**RESULT, "tool_call_id": evil}]):
        for command in (("count", "--each"), ("validate",), ("fit", "--budget", "1")):
            found = run(*command, "--output", "text", data=data)
            assert "\x1b" not in found.stdout + found.stderr


def test_the_width_of_the_terminal_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of the report are at most as wide as COLUMNS says."""
    names = ("list_all_the_files", "read_a_whole_file", "search_in_every_file")
    called = calling(*(function_call(name, name) for name in names))
    chat = [QUESTION, called, *map(result, names), *({"role": "user", "content": "x"} for _ in range(50))]
    monkeypatch.setenv("COLUMNS", "64")
    narrow = run("fit", *CHARS, "--budget", "30", "--output", "text", data=chat).stdout.splitlines()
    monkeypatch.setenv("COLUMNS", "120")
    wide = run("fit", *CHARS, "--budget", "30", "--output", "text", data=chat).stdout.splitlines()
    assert max(map(len, narrow)) <= 64
    assert max(map(len, wide)) > 64


def test_every_option_has_help() -> None:
    """Nobody has to guess; and the help of every command is in docs/cli.md."""
    docs = Path(__file__).parents[1] / "docs"
    documented = "".join((docs / name).read_text(encoding="utf-8") for name in ("cli.md", "cli-session.md"))
    trimtab = cli.command()
    context = click.Context(trimtab)
    found = {name: trimtab.get_command(context, name) for name in trimtab.list_commands(context)}
    late = {"batch", "inspect", "mcp", "replay", "serve", "session", "stats", "wrap"}
    assert set(found) == {*COMMANDS, "models", "policy", "repair", *late}
    group = found["session"]
    assert isinstance(group, click.Group)
    inner = {f"session {name}": one for name, one in group.commands.items()}
    for name, command in {**found, **inner}.items():
        assert command is not None
        assert f"$ trimtab {name} --help\nUsage: trimtab {name}" in documented
        for option in command.params:
            argument = isinstance(option, click.Argument)
            assert argument or getattr(option, "help", None), f"{name} {option.name}"
            shown = [word for word in option.opts if word.startswith("--")]
            assert all(word in documented for word in shown)


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    """It is made without them: the first sentence of each help, in the order of their names."""
    trimtab = cli.command()
    context = click.Context(trimtab)
    names = trimtab.list_commands(context)
    assert names == sorted(names)
    said = [trimtab.get_command(context, name).get_short_help_str(limit=200) for name in names]  # type: ignore[union-attr]
    shown = run("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=1) for line in shown.splitlines()] == [
        [name, sentence] for name, sentence in zip(names, said, strict=True)
    ]
    assert trimtab.get_command(context, "nothing") is None


LOADED = """
import atexit, sys
atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
from trimtab.cli import main
main()
"""
BESIDE_COMMANDS = {"commands", "input", "jobs", "lengths", "options", "output"}
"""Modules of the command line that are no command."""


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["nothing"], set()),
        (["fit", "--help"], {"fit"}),
        (["repair", "--help"], {"validate"}),
        (["batch", "--help"], {"batch"}),
        (["batch", "fit", "--help"], {"batch"}),
        (["replay", "--help"], {"replay"}),
        (["session", "add", "--help"], {"session"}),
    ],
)
def test_help_loads_no_command_but_the_one_it_is_about(words: list[str], commands: set[str]) -> None:
    """Nor anything that messages are fitted by, where no command is shown."""
    found = shell(sys.executable, "-c", LOADED, *words)
    modules = found.stderr.decode().split()
    assert "trimtab.cli" in modules
    inside = {name.split(".")[2] for name in modules if name.startswith("trimtab.cli.")}
    assert inside - BESIDE_COMMANDS == commands
    rooms = {name.split(".")[1] for name in modules if name.startswith("trimtab.")}
    assert commands or words == ["nothing"] or rooms <= {"_shared", "cli", "errors"}


# --- the doors, really opened


def shell(*arguments: str, data: bytes = b"", **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    environment = {**os.environ, **settings}
    return subprocess.run(arguments, input=data, capture_output=True, env=environment, check=False)


@pytest.mark.parametrize("door", [(str(SCRIPT),), (sys.executable, "-m", "trimtab")])
def test_the_script_and_the_module_are_one_command(door: tuple[str, ...]) -> None:
    """Exit codes, streams and bytes as a shell sees them, even where the locale is ASCII."""
    chat = json.dumps([{"role": "user", "content": "中文 \ud800"}], ensure_ascii=True).encode()
    found = shell(
        *door, "fit", "--budget", "99", data=chat, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii"
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert json.loads(found.stdout)["messages"] == json.loads(chat)
    assert shell(*door, "fit", data=chat).returncode == 2
    assert shell(*door, "count", data=b"oops").returncode == 1


@pytest.mark.parametrize("call", ["main()", "runpy.run_module('trimtab', run_name='__main__')"])
def test_without_click_the_install_line_is_printed(call: str) -> None:
    """On standard error, with exit 2; other missing modules stay what they are."""
    code = f"import runpy, sys; sys.modules['click'] = None; from trimtab.cli import main; {call}"
    found = shell(sys.executable, "-c", code)
    assert (found.returncode, found.stdout) == (2, b"")
    assert found.stderr.decode().splitlines() == [
        "trimtab: the command line needs click: pip install 'trimtab[cli]'"
    ]
    broken = shell(sys.executable, "-c", code.replace("'click'", "'trimtab.cli.commands'"))
    assert b"ModuleNotFoundError" in broken.stderr


def test_without_a_tokenizer_the_install_line_is_printed() -> None:
    """A model is asked for that nothing here can count: exit 2, and another way to count is named."""
    block = "sys.modules.update(dict.fromkeys(('toktok', 'tiktoken', 'bpe_openai')))"
    code = f"import sys; {block}; sys.argv = ['trimtab', 'count', '--model', 'gpt-4o']"
    found = shell(sys.executable, "-c", f"{code}; from trimtab.cli import main; main()", data=b"[]")
    assert (found.returncode, found.stdout) == (2, b"")
    assert b"pip install 'trimtab[exact]', or pass --counter estimate" in found.stderr


@pytest.mark.few(3)
@pytest.mark.parametrize("command", ["fit --budget 99", "fit --budget 99 --output text", "count", "validate"])
@pytest.mark.parametrize(("first", "code"), [(CHAT, 0), ("no conversation", 1)])
def test_a_reader_that_stops_early_is_no_error(tmp_path: Path, command: str, first: Any, code: int) -> None:
    """`trimtab … | head -1` is quiet, and its exit code says how it went so far."""
    (tmp_path / "many.jsonl").write_bytes(lines(first, *[CHAT] * 2_000))
    files = f"'{tmp_path / 'many.jsonl'}' 2> '{tmp_path / 'errors'}'"
    piped = f"set -o pipefail; '{SCRIPT}' {command} {files} | head -1"
    found = shell("bash", "-c", piped)
    assert (found.returncode, found.stdout.count(b"\n")) == (code, 1)
    said = (tmp_path / "errors").read_bytes()
    assert b"Traceback" not in said
    assert b"roken" not in said
    assert bool(said) == bool(code)


def test_lines_are_answered_as_they_come() -> None:
    """With --input jsonl a program can ask, read the answer, and ask again."""
    command = [str(SCRIPT), "count", "--input", "jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2, 3):
            process.stdin.write(lines(CHAT))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["line"] == number
        process.stdin.close()
    assert process.returncode == 0


def test_many_lines_need_the_memory_of_one(tmp_path: Path) -> None:
    """40 MB of lines take less than 10 MB more than one line does."""
    one = lines([{"role": "user", "content": "x" * 100_000}])
    (tmp_path / "one.jsonl").write_bytes(one)
    (tmp_path / "many.jsonl").write_bytes(one * 400)
    peaks = []
    for name in ("one.jsonl", "many.jsonl"):
        command = [str(SCRIPT), "validate", str(tmp_path / name)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))  # bytes; Linux says kB
    assert peaks[1] - peaks[0] < 10_000_000


def on_terminal(
    *arguments: str,
    program: str | Path = SCRIPT,
    stdout: Any = None,
    stdin: Any = subprocess.DEVNULL,
    **settings: str,
) -> tuple[int, str]:
    """Run a program with standard error, and output if not given, on a terminal; give what it showed."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "80", **settings}
    process = subprocess.Popen(
        [str(program), *arguments],
        stdin=theirs if stdin is None else stdin,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # Linux says EIO when the last writer is gone
            break
    os.close(ours)
    return process.wait(), shown.decode()


def test_colour_and_lines_are_for_terminals(tmp_path: Path) -> None:
    """Colour on a terminal unless NO_COLOR says no; JSON there is indented for reading."""
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(CHAT), encoding="utf-8")
    arguments = ("fit", "--budget", "99", str(file), "--output", "text")
    assert "\x1b[32mfits" in on_terminal(*arguments)[1]
    assert "\x1b[" not in on_terminal(*arguments, NO_COLOR="1")[1]
    assert "\x1b[" not in on_terminal(*arguments, TERM="dumb")[1]
    assert '\r\n  "tokens": ' in on_terminal("count", str(file))[1]


def test_json_on_a_terminal_cannot_steer_it_and_says_the_same(tmp_path: Path) -> None:
    """Control characters of eight bits, and those that turn the direction, of a message and of a name."""
    steering = "\u009b31m\u202e\U000e0041 é 中"
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"role": "user", "content": steering}]), encoding="utf-8")
    name = "a\u202eb"
    Session(500, id=name, store=store).add({"role": "user", "content": steering})
    commands = [
        ("fit", "--budget", "99", str(chat)),
        ("session", "show", "--store", store, "--id", name),
        ("session", "history", "--store", store, "--id", name),
        ("session", "export", "--store", store, "--id", name),
        ("session", "list", "--store", store, "--output", "json"),
    ]
    for arguments in commands:
        _, shown = on_terminal(*arguments)
        written = shown.replace("\r\n", "\n")
        assert all(char.isprintable() or char == "\n" for char in written), arguments
        assert json.loads(written.splitlines()[-1] if "history" in arguments else written)
        if "list" not in arguments:
            assert "é 中" in written


def test_nobody_waits_for_a_terminal_to_give_input() -> None:
    """Without FILE and without a pipe the command says what is missing."""
    code, shown = on_terminal("count", stdin=None)
    assert code == 2
    assert "pass a FILE" in shown


def test_progress_is_shown_on_a_terminal_and_taken_away(tmp_path: Path) -> None:
    """Where results go elsewhere and the input takes longer than a second: each look at this clock does."""
    slow = "import itertools, time; time.monotonic = itertools.count().__next__; from trimtab.cli import main"
    arguments = ("-c", f"{slow}; main()", "count", "--input", "jsonl", str(tmp_path / "two.jsonl"))
    (tmp_path / "two.jsonl").write_bytes(lines([], []))
    with (tmp_path / "out").open("wb") as out:
        code, shown = on_terminal(*arguments, program=sys.executable, stdout=out)
    assert code == 0
    progress = "\r\x1b[K1 conversation, 50% …\r\x1b[K2 conversations, 100% …\r\x1b[K"
    assert shown.startswith(f"{progress}trimtab: all 2 conversations are counted; ")
    assert (tmp_path / "out").read_bytes().count(b"\n") == 2
    assert "…" not in on_terminal(*arguments, program=sys.executable)[1]


def test_progress_says_how_much_of_a_file_is_read(tmp_path: Path) -> None:
    """Nothing in the first second, then at most five times a second; it makes way for messages."""
    looks = "itertools.chain([0.0, 0.9, 1.1, 1.2, 1.4, 1.7], itertools.repeat(1.7)).__next__"
    slow = f"import itertools, time; time.monotonic = {looks}; from trimtab.cli import main"
    (tmp_path / "five.jsonl").write_bytes(b"[ ]\n" * 4 + b"[  \n")
    arguments = ("-c", f"{slow}; main()", "count", str(tmp_path / "five.jsonl"))
    with (tmp_path / "out").open("wb") as out:
        code, shown = on_terminal(*arguments, program=sys.executable, stdout=out)
    clear = "\r\x1b[K"
    progress, _, rest = shown.partition(f"{clear}trimtab: ")
    assert code == 1
    assert progress == f"{clear}2 conversations, 40% …{clear}4 conversations, 80% …"
    summary = f"\r\n{clear}5 conversations, 100% …{clear}trimtab: 1 of 5 conversations cannot be counted; "
    assert summary in rest


# --- many files, and one command after another


def many(folder: Path) -> tuple[str, ...]:
    """Write three files: a conversation, two of them a line each, and one that is none."""
    (folder / "a.json").write_bytes(json.dumps(CHAT).encode())
    (folder / "b.jsonl").write_bytes(lines(CHAT, CHAT))
    (folder / "c.json").write_bytes(b"[oops]")
    return tuple(str(folder / name) for name in ("a.json", "b.jsonl", "c.json"))


def test_many_files_are_answered_in_order_each_with_its_place(tmp_path: Path) -> None:
    """The one that cannot be read stops none; one line at the end says how it went with all."""
    a, b, c = many(tmp_path)
    found = run("count", *CHARS, a, b, c)
    assert found.exit_code == 1
    told = answers(found)
    assert [(one["file"], one.get("line")) for one in told] == [(a, None), (b, 1), (b, 2), (c, None)]
    tokens = [one["tokens"] for one in told[:3]]
    assert told[3]["error"]["type"] == "FormatError"
    *_, summary = found.stderr.splitlines()
    assert summary.startswith(
        f"trimtab: 1 of 4 conversations in 3 files cannot be counted; {sum(tokens):,} tokens in all, "
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("fit", "--budget", "100"), "all 3 conversations in 2 files fit; "),
        (("fit", "--budget", "30"), "all 3 conversations in 2 files fit; "),
        (("fit", "--budget", "20"), "3 of 3 conversations in 2 files do not fit or cannot be read"),
        (("count",), "all 3 conversations in 2 files are counted; "),
        (("validate",), "all 3 conversations in 2 files are valid"),
        (("repair",), "all 3 conversations in 2 files are valid"),
    ],
)
def test_the_summary_is_one_line_whatever_came_of_it(
    tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    """Of several files also if all is well."""
    a, b, _ = many(tmp_path)
    counting = CHARS if command[0] in ("fit", "count") else ()
    found = run(*command, *counting, a, b)
    *_, summary = found.stderr.splitlines()
    assert summary.startswith(f"trimtab: {said}")


def test_a_row_of_text_names_file_and_line(tmp_path: Path) -> None:
    """And `-` is standard input among files."""
    _, b, _ = many(tmp_path)
    found = run("validate", "--output", "text", b, "-", data=ORPHAN)
    assert found.stdout.splitlines()[:3] == [
        f"{b}, line 1: valid",
        f"{b}, line 2: valid",
        "standard input: invalid",
    ]
    assert "in 2 files are invalid" in found.stderr


def test_a_pattern_is_looked_up_where_no_shell_did(tmp_path: Path) -> None:
    """In order of name, folders below with `**`; a file whose name looks like a pattern is itself."""
    a, _, c = many(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.json").write_bytes(json.dumps(CHAT).encode())
    found = answers(run("count", str(tmp_path / "*.json")))
    assert [one["file"] for one in found] == [a, c]
    found = answers(run("count", str(tmp_path / "**" / "*.json")))
    assert [one["file"] for one in found] == [a, c, str(tmp_path / "deep" / "d.json")]
    (one,) = answers(run("count", str(tmp_path / "a*.json")))
    assert one["file"] == a
    (tmp_path / "[ac].json").write_bytes(json.dumps([]).encode())
    assert "file" not in answers(run("count", str(tmp_path / "[ac].json")))[0]


@pytest.mark.parametrize("name", ["c.jsonl.gz", "*.jsonl*", "*"])
def test_what_batches_read_is_sent_there(tmp_path: Path, name: str) -> None:
    """By its plain name and by a pattern; of a folder it is passed over."""
    many(tmp_path)
    (tmp_path / "c.jsonl.gz").write_bytes(b"\x1f\x8b")
    found = run("count", str(tmp_path / name))
    assert found.exit_code == 2
    assert "c.jsonl.gz': Parquet and packed lines are read by `trimtab batch`" in found.stderr
    assert "c.jsonl.gz" not in run("count", str(tmp_path)).output


def test_a_folder_is_all_files_of_conversations_in_it(tmp_path: Path) -> None:
    """In order of name, folders below too; hidden ones and files of other kinds are passed over."""
    a, b, c = many(tmp_path)
    hidden, deep = tmp_path / ".git", tmp_path / "deep"
    for folder in (hidden, deep):
        folder.mkdir()
        (folder / "d.ndjson").write_bytes(lines(CHAT))
    (tmp_path / "notes.txt").write_text("no conversation", encoding="utf-8")
    (tmp_path / "_old.json").write_bytes(b"[]")
    found = run("count", *CHARS, str(tmp_path))
    assert [one["file"] for one in answers(found)] == [a, b, b, c, str(deep / "d.ndjson")]
    assert "1 of 5 conversations in 4 files cannot be counted" in found.stderr
    (one,) = answers(run("count", *CHARS, str(deep)))
    assert one["file"] == str(deep / "d.ndjson")


@pytest.mark.parametrize("name", ["none.json", "none*.json", "folder"])
def test_a_file_that_is_not_there_stops_all_before_the_first(tmp_path: Path, name: str) -> None:
    """Wrong usage: nothing is on standard output, and the file is named."""
    a, *_ = many(tmp_path)
    (tmp_path / "folder").mkdir()
    found = run("count", a, str(tmp_path / name))
    assert (found.exit_code, found.stdout) == (2, "")
    assert name in found.stderr


JOBS = {
    "fit": ("fit", "--budget", "60", "--counter", "chars:1", "--pin", "-1"),
    "fit in text": ("fit", "--budget", "60", "--counter", "chars:1", "--output", "text"),
    "fit by a policy": ("fit", "--policy", "policy.toml", "--budget", "60", "--counter", "chars:1"),
    "messages alone": ("fit", "--budget", "60", "--counter", "chars:1", "--messages-only"),
    "count": ("count", "--model", "gpt-4o", "--each"),
    "validate": ("validate", "--pending-call", "b"),
    "repair": ("repair",),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("command", JOBS.values(), ids=JOBS)
def test_jobs_write_what_one_process_writes(tmp_path: Path, command: tuple[str, ...]) -> None:
    """All bytes, errors and the summary among them, of more lines than a process gets at once."""
    chats = [
        CHAT,
        ORPHAN,
        b"[oops]",
        [{"role": "user", "content": "x" * 90}],
        {"model": "gpt-4o", "messages": CHAT},
    ]
    for name, times in (("a.jsonl", 70), ("b.jsonl", 1)):
        (tmp_path / name).write_bytes(lines(*chats * times))
    (tmp_path / "c.json").write_bytes(json.dumps(CHAT).encode())
    (tmp_path / "policy.toml").write_text(BLOCK, encoding="utf-8")
    names = ("a.jsonl", "b.jsonl", "c.json")
    one, two = (
        subprocess.run(
            [str(SCRIPT), *command, *extra, *names], capture_output=True, cwd=tmp_path, check=False
        )
        for extra in ((), ("--jobs", "2"))
    )
    assert one.stdout.count(b"\n") > 150
    assert (one.returncode, b"Traceback" in one.stderr) == (1, False)
    assert (two.returncode, two.stdout, two.stderr) == (one.returncode, one.stdout, one.stderr)


PIPED = {
    "system": ("--system", "@{}", b"Speak like a pirate."),
    "tools": ("--tools", "{}", json.dumps([{"name": "f", "parameters": {}}]).encode()),
    "strategy": ("--strategy", "named.json", b'{"kind": "drop"}'),
    "policy": ("--policy", "named.toml", BLOCK.encode()),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("option", PIPED)
def test_jobs_know_what_an_option_read_from_a_pipe(tmp_path: Path, option: str) -> None:
    """A pipe can be read once, and what it said is in every conversation, as with one process."""
    (tmp_path / "a.jsonl").write_bytes(lines(*[CHAT[1:]] * 3))
    name, value, said = PIPED[option]
    asked = ["fit", "--budget", "90", "--counter", "chars:1", name]

    def run_piped(*extra: str) -> subprocess.CompletedProcess[bytes]:
        """Give the option a pipe that only this process may read, as a shell does by `<(…)`."""
        reads, writes = os.pipe()
        os.write(writes, said)
        os.close(writes)
        path = f"/dev/fd/{reads}"
        if value.startswith("named"):  # by its suffix
            (tmp_path / value).unlink(missing_ok=True)
            (tmp_path / value).symlink_to(path)
        command = [str(SCRIPT), *asked, value.format(path), *extra, "a.jsonl"]
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, pass_fds=[reads], check=False)
        os.close(reads)
        return done

    one, two = run_piped(), run_piped("--jobs", "2")
    assert one.stdout.count(b"\n") == 3
    assert (two.returncode, two.stdout, two.stderr) == (one.returncode, one.stdout, one.stderr)


def test_what_only_another_process_cannot_read_is_an_error_of_the_command(tmp_path: Path) -> None:
    """It is named, and nothing of how processes end is shown."""
    (tmp_path / "a.jsonl").write_bytes(lines(CHAT))
    models = {"models": {"mine-1": {"window_tokens": 900, "encoding": "o200k_base"}}}
    (tmp_path / "models.json").write_text(json.dumps(models), encoding="utf-8")
    program = "import os; from trimtab import cli\n"
    program += "if __name__ == '__main__': cli.main()\n"
    program += "else: os.environ['TRIMTAB_MODELS'] = 'gone.json'\n"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    one, two = (
        subprocess.run(
            [sys.executable, "program.py", "count", "--model", "mine-1", *extra, "a.jsonl"],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "TRIMTAB_MODELS": "models.json"},
            check=False,
        )
        for extra in ((), ("--jobs", "2"))
    )
    assert one.returncode == 0
    assert (two.returncode, two.stdout) == (2, b"")
    assert two.stderr.startswith(b"Error: TRIMTAB_MODELS: gone.json")
    assert two.stderr.count(b"\n") == 1


def test_jobs_answer_what_stands_before_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is gone when its turn comes ends the command, after all before it, as with one process."""
    (tmp_path / "a.jsonl").write_bytes(lines(CHAT, CHAT))
    gone = "import pathlib, sys; from trimtab import cli; own = pathlib.Path.open\n"
    gone += "def gone(self, *given, **more):\n"
    gone += "    if self.name == 'b.json': raise FileNotFoundError(2, 'No such file')\n"
    gone += "    return own(self, *given, **more)\n"
    gone += "if __name__ == '__main__': pathlib.Path.open = gone; cli.main()\n"
    (tmp_path / "b.json").write_bytes(b"[]")
    (tmp_path / "program.py").write_text(gone, encoding="utf-8")
    one, two = (
        subprocess.run(
            [sys.executable, "program.py", "count", *extra, "a.jsonl", "b.json"],
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )
        for extra in ((), ("--jobs", "3"))
    )
    assert (one.returncode, one.stdout.count(b"\n")) == (2, 2)
    assert b"'b.json': No such file" in one.stderr
    assert (two.returncode, two.stdout, two.stderr) == (2, one.stdout, one.stderr)


def test_what_fit_writes_goes_into_the_other_commands() -> None:
    """Lists and bodies, a line each or alone; what did not fit is still an error of its line."""
    body = {"model": "gpt-4o", "messages": CHAT}
    long = [{"role": "user", "content": "x" * 900}]
    fitted = run("fit", "--budget", "200", *CHARS, data=lines(CHAT, body, long))
    assert fitted.exit_code == 1
    first, second, third = answers(fitted)
    for command in COMMANDS[1:]:
        found = answers(run(command, data=fitted.stdout))
        alone = [answers(run(command, data=one))[0] for one in (first["messages"], second["request"])]
        assert [{**one, "line": at} for at, one in enumerate(alone, 1)] == found[:2]
        assert third["error"]["message"] in found[2]["error"]["message"]
    assert answers(run("count", data=fitted.stdout.splitlines()[0]))[0]["total_message_count"] == len(CHAT)
    again = answers(run("fit", "--budget", "200", *CHARS, data=fitted.stdout.splitlines()[1]))[0]
    assert again["request"] == body


def test_a_part_of_a_policy_may_be_called_as_our_answers_are(tmp_path: Path) -> None:
    """Only what `fit` and `repair` write is unpacked."""
    (tmp_path / "p.json").write_text('{"budget": 500, "blocks": [{"name": "report"}]}', encoding="utf-8")
    found = run("fit", "--policy", str(tmp_path / "p.json"), data={"report": "all is well"})
    assert answers(found)[0]["messages"] == [{"role": "user", "content": "all is well"}]


def test_messages_can_come_alone(tmp_path: Path) -> None:
    """Ready to send; of many a line each, and none for one that does not fit."""
    body = {"model": "gpt-4o", "messages": CHAT}
    alone = ("fit", "--budget", "200", *CHARS, "--messages-only")
    assert answers(run(*alone, data=CHAT)) == [CHAT]
    assert answers(run(*alone, data=body)) == [body]
    long = [{"role": "user", "content": "x" * 900}]
    found = run(*alone, data=lines(CHAT, long, body))
    assert (found.exit_code, answers(found)) == (1, [CHAT, body])
    assert "line 2: " in found.stderr
    for other in (("--report",), ("--output", "text")):
        refused = run(*alone, *other, data=CHAT)
        assert (refused.exit_code, refused.stdout) == (2, "")


def test_the_report_can_be_left_out(tmp_path: Path) -> None:
    """What stays has its file and line, and goes into the other commands; what does not fit has its error."""
    body, long = {"model": "gpt-4o", "messages": CHAT}, [{"role": "user", "content": "x" * 900}]
    file = tmp_path / "chats.jsonl"
    file.write_bytes(lines(CHAT, long, body))
    quiet = ("fit", "--budget", "200", *CHARS, "--no-report")
    found = run(*quiet, str(tmp_path))
    listed, refused, with_body = answers(found)
    assert listed == {"file": str(file), "line": 1, "messages": CHAT}
    assert with_body == {"file": str(file), "line": 3, "request": body}
    assert (refused["error"]["type"], refused["line"]) == ("BudgetExceededError", 2)
    assert "report" not in refused
    assert answers(run(*quiet, data=body)) == [{"request": body}]
    again = answers(run("fit", "--budget", "200", *CHARS, "--messages-only", data=found.stdout))
    assert again == [{"file": str(file), "line": 1, "messages": CHAT}, body]
    assert answers(run("count", *CHARS, data={"request": body}))[0]["total_message_count"] == len(CHAT)
    for other in ("--report", "--messages-only"):
        assert run(*quiet, other, data=CHAT).exit_code == 2
    assert run(*quiet, "--output", "text", data=CHAT).exit_code == 2


def test_repair_writes_what_is_mended_and_what_was_done() -> None:
    """The messages or the body, each change by its place; what is still refused makes the exit code 1."""
    found = run("repair", data=ORPHAN)
    told = answers(found)[0]
    assert (found.exit_code, told["messages"], told["violations"]) == (0, [QUESTION], [])
    assert told["changes"] == [{"index": 1, "action": "removed", "rule": "orphan_result", "call_id": "lost"}]
    assert answers(run("repair", data={"messages": ORPHAN}))[0]["request"] == {"messages": [QUESTION]}
    assert answers(run("repair", "--messages-only", data=ORPHAN)) == [[QUESTION]]
    assert answers(run("validate", data=run("repair", data=ORPHAN).stdout))[0]["valid"]
    open_call = [QUESTION, CALL, QUESTION]
    assert answers(run("repair", data=open_call))[0]["messages"] == [QUESTION, QUESTION]
    kept = run("repair", "--pending-call", "a", data=open_call)
    assert answers(kept)[0]["messages"] == open_call
    broken = run("repair", data=[*ORPHAN, {"role": "user", "content": 5}])
    assert broken.exit_code == 1
    assert [one["index"] for one in answers(broken)[0]["violations"]] == [1]


def test_a_repair_for_people_is_a_line_a_change() -> None:
    """Of many a row each."""
    shown = run("repair", "--output", "text", data=ORPHAN).stdout
    assert shown == "repaired: 1 change\n  1 removed: orphan_result of call 'lost'\n"
    assert run("repair", "--output", "text", data=CHAT).stdout == "nothing to repair\n"
    rows = run("repair", "--output", "text", data=lines(CHAT, ORPHAN)).stdout
    assert rows == "line 1: nothing to repair\nline 2: repaired: 1 change\n"


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        ("4000", 4_000),
        ("4k", 4_000),
        ("4K", 4_000),
        ("1.5k", 1_500),
        ("0.004m", 4_000),
        ("4_000", 4_000),
        ("4,000", 4_000),
        ("4000.5", 4_000),
    ],
)
def test_a_budget_may_be_written_in_thousands(given: str, tokens: int) -> None:
    """So may what is kept free; a fraction of a token is rounded down, as in Python."""
    report = answers(run("fit", "--budget", given, "--report", data=CHAT))[0]["report"]
    assert report["input_tokens"] == tokens
    report = answers(run("fit", "--budget", "9k", "--output-reserve", given, "--report", data=CHAT))[0][
        "report"
    ]
    assert report["input_tokens"] == 9_000 - tokens


@pytest.mark.parametrize("given", ["4kk", "k", "0.0001k", "-4k", "0k", "1e3", "four"])
def test_what_is_no_number_of_tokens_is_refused(given: str) -> None:
    """Less than a token too; exit 2, with the option and the value."""
    found = run("fit", f"--budget={given}", data=CHAT)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "--budget" in found.stderr


def test_help_shows_kinds_and_examples() -> None:
    """Every kind that can stand alone, and a line to copy."""
    shown = " ".join(run("fit", "--help").stdout.split())
    for kind in ("sliding_window", "drop", "clear_tool_results", "priority_based", "truncate_text"):
        assert run("fit", "--budget", "99", "--strategy", kind, data=CHAT).exit_code == 0
        assert kind in shown
    for command in ("fit", "count", "validate", "repair", "policy", "session"):
        assert f"Examples: trimtab {command} " in " ".join(run(command, "--help").stdout.split())


def completions(*arguments: str, incomplete: str = "") -> list[str]:
    """List what a shell is offered."""
    found = ShellComplete(cli.command(), {}, "trimtab", "_TRIMTAB_COMPLETE").get_completions(
        list(arguments), incomplete
    )
    return [one.value for one in found]


def test_a_shell_is_offered_names_that_are_known() -> None:
    """Commands, models, kinds of strategies, wire forms, providers."""
    assert {"fit", "repair", "session"} <= set(completions())
    assert completions(incomplete="re") == ["repair", "replay"]
    assert completions(incomplete="--v") == ["--version"]
    assert completions("replay", "--policy", incomplete="che") == ["cheapest"]
    assert "gpt-4o" in completions("count", "--model", incomplete="gpt-4")
    assert all(name.startswith("claude-") for name in completions("models", incomplete="claude-"))
    assert completions("fit", "--strategy", incomplete="drop") == ["drop", "drop_newest"]
    assert completions("fit", "--format", incomplete="anth") == ["anthropic"]
    assert "anthropic" in completions("models", "--provider", incomplete="a")


# --- real conversations


CONVERSATIONS = (
    "glaive_toolcall_en",
    "glaive_toolcall_zh",
    "pi_coding_sessions",
    "pydantic_ai_chats",
    "swe_agent_trajectories",
    "tau_airline_gpt4o",
)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_real_conversations_fit_into_8000_tokens(data_dir: Path, name: str) -> None:
    """One that does not is one whose system text and latest user message alone pass them."""
    path = data_dir / f"{name}.jsonl"
    found = run("fit", str(path), "--budget", "8000", "--model", "gpt-4o")
    given = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    got = answers(found)
    assert [one["line"] for one in got] == list(range(1, len(given) + 1))
    for body, answer in zip(given, got, strict=True):
        if "error" in answer:
            assert answer["error"]["type"] == "BudgetExceededError"
            assert least_tokens(body["messages"]) > 8_000
        else:
            assert answer["report"]["tokens_after"] <= 8_000
            assert {**answer["request"], "messages": None} == {**body, "messages": None}
            assert run("validate", data=answer["request"]).exit_code == 0
    assert found.exit_code == int(any("error" in one for one in got))


def least_tokens(messages: list[dict[str, Any]]) -> int:
    """Count the texts that may not leave, by another library and without framing."""
    leading = 0
    while leading < len(messages) and messages[leading]["role"] in ("system", "developer"):
        leading += 1
    latest = [message for message in messages if message["role"] == "user"][-1:]
    return sum(o200k_tokens(message["content"]) for message in [*messages[:leading], *latest])


def test_requests_that_are_no_conversations_are_named(data_dir: Path) -> None:
    """Records that hold a request below a key are errors of their lines, each with its number."""
    found = run("validate", str(data_dir / "golden_usage.jsonl"))
    assert found.exit_code == 1
    assert [one["line"] for one in answers(found)] == list(range(1, 749))
    assert all("'request'" not in one or "error" in one for one in answers(found))


def test_count_says_what_a_request_is_made_of_and_how_far_it_may_be_off() -> None:
    """For a body of any wire form; the parts add up, and what cannot be seen is in the margin."""
    body = {
        "model": "claude-sonnet-4-5",
        "system": "Be brief.",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://a.example/b"}}],
            }
        ],
        "tools": [{"name": "add", "input_schema": {"type": "object"}}],
    }
    found = answers(run("count", data=body))[0]
    assert found["format"] == "anthropic"
    assert found["tokens"] == found["messages_tokens"] + found["media_tokens"] + found["fixed_tokens"]
    parts = ("system_tokens", "tools_tokens", "framing_tokens", "output_schema_tokens")
    assert all(found[name] > 0 for name in parts[:2])
    assert sum(found[name] for name in parts) == found["fixed_tokens"]
    assert found["over_margin_tokens"] > found["margin_tokens"] > found["media_tokens"] > 1_000
    assert not found["exact"]
    shown = run("count", "--output", "text", data=body).stdout.splitlines()
    assert [line.strip().split("  ", 1)[-1].removeprefix("margin ") for line in shown] == [
        "1 message",
        "media",
        "system",
        "tools",
        "total, by estimate (claude-sonnet-4-5)",
        f"-{found['over_margin_tokens']:,} / +{found['margin_tokens']:,}",
        "1 image whose size the request does not hold",
    ]
    assert found["unknown"] == ["1 image whose size the request does not hold"]


def test_an_unknown_model_is_answered_with_options_the_command_has() -> None:
    """`count` knows no budget."""
    assert "--budget" not in run("count", "--model", "foo", data=CHAT).stderr
    assert "--counter estimate instead of --model" in run("count", "--model", "foo", data=CHAT).stderr
    assert "--budget N" in run("fit", "--model", "foo", data=CHAT).stderr


PICTURE = "iVBORw0KGgo" + "A" * 60_000
FORMS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + PICTURE}}],
            }
        ]
    },
    "openai_responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
    },
    "anthropic": {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
        ],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}],
    },
    "bedrock": {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": PICTURE}}}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {}}]}}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "model", [None, "gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.0-flash", "mistral-small-latest"]
)
def test_count_says_what_measure_says(form: str, model: str | None) -> None:
    """In every wire form, whatever form the model is asked in: one calculation for both."""
    body = FORMS[form]
    found = answers(run("count", "--each", *(("--model", model) if model else ()), data=body))[0]
    meant = measure(body, model=model)
    names = (
        "tokens",
        "exact",
        "margin_tokens",
        "messages_tokens",
        "media_tokens",
        "system_tokens",
        "tools_tokens",
    )
    for name in (*names, "output_schema_tokens", "framing_tokens", "counter", "format"):
        assert found[name] == getattr(meant, name), name
    assert found["format"] == form
    assert tuple(row["tokens"] for row in found["messages"]) == meant.sizes
    assert found["tokens"] < 10_000  # base64 is no text


@pytest.mark.parametrize("given", [["--model", "grok-99"], []], ids=["option", "body"])
def test_count_says_that_a_model_is_counted_as_another(given: list[str]) -> None:
    """In the words of the report, as data and as text; of a known model nothing."""
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "grok-99", "messages": messages} if not given else messages
    (note,) = measure(messages, model="grok-99").notes
    assert "counted as for 'grok-4'" in note
    assert answers(run("count", *given, data=body))[0]["notes"] == [note]
    assert note in run("count", *given, "--output", "text", data=body).stdout
    assert answers(run("count", "--model", "grok-4", data=messages))[0]["notes"] == []


def test_system_text_given_beside_is_not_among_the_messages() -> None:
    """Also where the wire form has it there."""
    found = answers(run("count", "--model", "gpt-4o", "--each", "--system", "Be kind.", data=[QUESTION]))[0]
    meant = measure([QUESTION], model="gpt-4o", system="Be kind.")
    assert (found["tokens"], len(found["messages"])) == (meant.tokens, 1)
    assert meant.sizes == (found["system_tokens"], found["messages_tokens"])
