"""Text that wants to steer a terminal, forge a line or fill a screen does no harm where people read.

The page is held by test_report_html.py, the log and observers by test_observe.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab import CharCounter, Context, Session, cli, fit
from trimtab.stores import SQLiteStore

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m"
BIDI = "\u202egnp.exe\u2066\u200f"
SCRIPT = "<script>alert(1)</script>"
FORGED = "\r\nfits: 1 of 2 tokens\n\x0b\x0c\u2028\x85  after     0 tokens"
HOSTILE = {"escapes": ESCAPES, "bidi": BIDI, "script": SCRIPT, "forged": FORGED}
every_hostile = pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE)

MOST_LINES = 60


def conversation(evil: str) -> list[dict[str, Any]]:
    """Say it wherever a conversation can."""
    call = {"id": evil, "type": "function", "function": {"name": f"tool{evil}", "arguments": evil}}
    return [
        {"role": "system", "content": evil},
        {"role": "user", "content": evil, "name": evil},
        {"role": "assistant", "content": [{"type": "text", "text": evil}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": evil, "content": f"{evil} {'x' * 400}"},
        {"role": "tool", "tool_call_id": f"lost{evil}", "content": evil},
        {"role": "user", "content": f"last {evil}"},
    ]


def assert_harmless(shown: str, *, most_lines: int = MOST_LINES) -> None:
    """Every line is printable, none is forged, and there are not many."""
    lines = shown.split("\n")
    assert all(line.isprintable() for line in lines), [line for line in lines if not line.isprintable()]
    assert sum(line.startswith(("fits:", "DOES NOT FIT")) for line in lines) <= 1
    assert sum(line.startswith("  after ") for line in lines) <= 1
    assert len(lines) <= most_lines


@every_hostile
def test_a_report_is_harmless(evil: str) -> None:
    """Printed as it is, with texts, and in colour, whose escapes are ours alone."""
    report = fit(conversation(evil), 150, counter=CharCounter()).report
    assert_harmless(str(report))
    assert_harmless(report.to_text(include_text=True))
    coloured = report.to_text(colour=True, include_text=True)
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"):
        coloured = coloured.replace(code, "")
    assert_harmless(coloured)


@every_hostile
def test_a_report_of_blocks_is_harmless(evil: str) -> None:
    """Names and labels are shown as well."""
    context = Context(150, counter=CharCounter())
    context.add(f"docs{evil}", [evil * 30, evil], labels=[evil, "b"], max_tokens=40)
    context.add("history", conversation(evil)[1:3])
    assert_harmless(context.fit().report.to_text(include_text=True))


def assert_harmless_markup(shown: str) -> None:
    """No element of others, and no control or mark of direction."""
    assert all(char.isprintable() for char in shown.replace("\n", "")), shown
    assert "<script" not in shown


@every_hostile
def test_notebooks_are_harmless(evil: str) -> None:
    """What they show of a fit, a report, a context and a session, names of tools and blocks with it."""
    context = Context(150, counter=CharCounter())
    context.add(f"docs{evil}", [evil * 30, evil], labels=[evil, "b"], max_tokens=40)
    context.add("history", conversation(evil)[1:3])
    fitted = fit(conversation(evil), 150, counter=CharCounter())
    session = Session(budget=4_000, counter=CharCounter())
    session.extend(conversation(evil)[1:5])
    for shown in (fitted, fitted.report, context.fit(), context, session, session.fit()):
        assert_harmless_markup(shown._repr_html_())


@pytest.mark.parametrize("evil", [f"{'x' * 5_000_000}", "<b>\x1b\u202e" * 1_000_000])
def test_a_line_of_five_megabytes_fills_no_notebook(evil: str) -> None:
    """Nor does a name of a tool, a call or a label."""
    context = Context(150, counter=CharCounter())
    context.add("docs", [evil, "b"], labels=[evil, "b"])
    fitted = fit(conversation(evil), 10**8, counter=CharCounter(), repair=True)
    for shown in (fitted, fitted.report, context.fit(), context):
        page = shown._repr_html_()
        assert_harmless_markup(page)
        assert len(page) < 60_000


@every_hostile
@pytest.mark.parametrize("command", ["fit", "count", "validate"])
def test_the_command_line_is_harmless(command: str, evil: str) -> None:
    """Standard output for people, and what is said beside it."""
    counter = [] if command == "validate" else ["--counter", "chars:4"]
    budget = ["--budget", "150"] if command == "fit" else []
    found = CliRunner().invoke(
        cli.command(),
        [command, *counter, *budget, "--output", "text"],
        input=json.dumps(conversation(evil)),
    )
    assert found.exit_code in (0, 1)
    assert found.stdout or command == "validate"
    assert_harmless(found.stdout)
    assert_harmless(found.stderr)


@every_hostile
def test_what_the_command_line_refuses_is_harmless(evil: str) -> None:
    """It is quoted in the error."""
    for data in (f'[{{"role": {json.dumps(evil)}}}]', f"[{evil}", json.dumps([{"role": "user", evil: evil}])):
        found = CliRunner().invoke(cli.command(), ["fit", "--budget", "9", "--model", evil], input=data)
        assert found.exit_code in (1, 2)
        assert_harmless(found.stderr)


@every_hostile
@pytest.mark.parametrize("words", [("history", "--kinds", "all"), ("show",), ("stats",)])
def test_a_session_on_the_command_line_is_harmless(words: tuple[str, ...], evil: str, tmp_path: Path) -> None:
    """Its log and its view."""
    path = tmp_path / "chats.db"
    store = SQLiteStore(path)
    session = Session(1_000, store=store, id="ada", counter=CharCounter(), system=evil)
    session.extend(conversation(evil)[1:])
    store.close()
    name, *options = words
    where = ["--store", f"sqlite:///{path}", "--id", "ada"]
    arguments = ["session", name, *where, *options, "--output", "text"]
    found = CliRunner().invoke(cli.command(), arguments)
    assert found.exit_code == 0, found.stderr
    assert found.stdout
    assert_harmless(found.stdout, most_lines=200)


@pytest.mark.few(1)
@pytest.mark.parametrize("evil", [f"{'x' * 5_000_000}", "\x1b[2J" * 1_250_000, "\u202e" * 1_700_000])
def test_a_line_of_five_megabytes_fills_no_screen(evil: str) -> None:
    """As text of a message, and as name of a tool or a call."""
    messages = conversation(evil)
    report = fit(messages, 10_000_000, counter=CharCounter(), format="openai_chat").report
    for shown in (str(report), report.to_text(include_text=True)):
        assert_harmless(shown)
        assert max(map(len, shown.split("\n"))) <= 80
