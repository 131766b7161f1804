"""The command `trimtab session`: a conversation in a store, from the command line."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from tests.chat_shapes import calling, function_call, result
from tests.stores.stores import Place, params, placed
from trimtab import Budget, CharCounter, Session, cli
from trimtab.counting import FixedCounter
from trimtab.formats import get_format
from trimtab.stores import SQLiteStore
from trimtab.strategies import Cheapest

SCRIPT = Path(sys.executable).with_name("trimtab")
HELLO = {"role": "user", "content": "Hello, I am Ada. My order is 77x41."}
TALK = [
    {"role": role, "content": f"{role} says some words about the belt, number {turn}"}
    for turn in range(6)
    for role in ("assistant", "user")
]
BUDGET = ("--budget", "120", "--counter", "chars:4", "--system", "Be brief.")

AWAY = (
    "postgresql://ada:geheim@127.0.0.1:1/0",
    "redis://ada:geheim@127.0.0.1:1/0",
    "redis://:geheim@127.0.0.1:1/0",
    "redis://:re@127.0.0.1:1/0",
)
"""Servers nobody reaches."""
Away = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", autouse=True)
def away() -> Iterator[Away]:
    """Ask each of the servers that are away; gives what the command said in the end.

    It asks them again and again for some 17 seconds. So all are asked at once, and before the first test of
    this file, which has others to run meanwhile.
    """
    command = [str(SCRIPT), "session", "show"]
    asked = {
        url: subprocess.Popen(
            [*command, *at(url)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        for url in AWAY
    }

    @cache
    def answer(url: str) -> subprocess.CompletedProcess[str]:
        stdout, stderr = asked[url].communicate()
        return subprocess.CompletedProcess(command, asked[url].returncode, stdout, stderr)

    yield answer
    for process in asked.values():
        with process:  # which closes its pipes
            process.kill()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture(params=params("sqlite", "postgres", "redis"))
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of each store other processes can open."""
    with placed(request.param, tmp_path) as made:
        place: Place = made
        assert place.url is not None
        yield place.url


def run(*arguments: str, data: bytes | str | object = b"", code: int = 0) -> Result:
    """Run a session command; what is no text goes in as JSON."""
    given = data if isinstance(data, bytes | str) else json.dumps(data)
    found = CliRunner().invoke(cli.command(), ["session", *arguments], input=given)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.exit_code == code, (found.stdout, found.stderr)
    return found


def at(url: str, name: str = "ada") -> tuple[str, ...]:
    """Name a session in a store."""
    return ("--store", url, "--id", name)


def said(found: Result) -> Any:
    """Read what was written on standard output."""
    return json.loads(found.stdout)


def lines(found: Result) -> list[Any]:
    """Read JSON, a line each."""
    return [json.loads(line) for line in found.stdout.splitlines()]


def begin(url: str, messages: Any = None) -> list[Any]:
    """Begin a session of many messages, most of them out of view."""
    run("add", *at(url), *BUDGET, "--event-id", "hello", data=HELLO)
    added: list[Any] = said(run("add", *at(url), data=TALK if messages is None else messages))
    return added


def test_other_commands_do_not_load_sessions() -> None:
    """They bring asyncio and the stores with them, which costs every pipe that counts tokens."""
    code = (
        "import sys; from trimtab import cli; cli.command();"
        " print([one for one in sys.modules if 'session' in one])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the life of a session, on each store


def test_everything_said_is_kept_and_the_view_fits(any_url: str) -> None:
    """What is added comes out of the history; what does not fit is found by its words."""
    added = begin(any_url)
    assert [event["data"]["message"] for event in added] == TALK
    history = lines(run("history", *at(any_url)))
    assert [event["data"]["message"] for event in history] == [HELLO, *TALK]
    view = said(run("show", *at(any_url)))
    assert view[0] == {"role": "system", "content": "Be brief."}
    assert view[-1] == TALK[-1]
    assert sum(len(one["content"]) for one in view) <= 120 * 4
    found, *_ = said(run("recall", *at(any_url), "order 77x41"))
    assert (found["id"], found["data"]["message"]) == ("hello", HELLO)
    status = said(run("stats", *at(any_url)))
    assert status["id"] == "ada"
    assert status["version"] == lines(run("history", *at(any_url), "--kinds", "all"))[-1]["version"]


def test_the_same_event_id_is_stored_once(any_url: str) -> None:
    """A script that is not sure asks again, and is given what is stored."""
    begin(any_url)
    again = said(run("add", *at(any_url), "--event-id", "hello", data=HELLO))
    assert [(event["id"], event["version"]) for event in again] == [("hello", 2)]
    assert len(lines(run("history", *at(any_url)))) == 13
    run("add", *at(any_url), "--event-id", "hello", data=TALK[0], code=1)


def test_the_origin_of_added_messages_is_lowered(url: str) -> None:
    """What a user passes on is no word of theirs (SPEC E14); more say than the form gives is refused."""
    begin(url)
    (event,) = said(run("add", *at(url), "--origin", "document", data=HELLO))
    assert lines(run("history", *at(url)))[-1]["data"]["origin"] == "document", event
    refused = run("add", *at(url), "--origin", "system", data=HELLO, code=1).stderr
    assert "would raise this message" in refused


def test_an_eviction_is_taken_back(any_url: str) -> None:
    """The newest first, or the one that is named; then there is none."""
    begin(any_url)
    run("add", *at(any_url), data=TALK)
    evicted = lines(run("history", *at(any_url), "--kinds", "evicted"))
    assert said(run("undo", *at(any_url)))["id"] == evicted[-1]["id"]
    assert said(run("undo", *at(any_url), evicted[0]["id"]))["id"] == evicted[0]["id"]
    assert "no current summary, facts or eviction" in run("undo", *at(any_url), code=1).stderr
    assert said(run("stats", *at(any_url)))["pending_messages"] == 0


def test_the_newest_message_is_taken_off(any_url: str) -> None:
    """The view is without it and the history is not; where none is left, that is exit 1."""
    begin(any_url)
    view = json.loads(run("show", *at(any_url)).stdout)
    before = lines(run("history", *at(any_url)))
    assert said(run("pop", *at(any_url))) == before[-1]
    assert json.loads(run("show", *at(any_url)).stdout)[-1] == view[-2]
    assert lines(run("history", *at(any_url))) == before
    run("clear", *at(any_url))
    assert "no message that could be taken off" in run("pop", *at(any_url), code=1).stderr


def test_a_session_goes_through_a_file_and_to_another_name(any_url: str, tmp_path: Path) -> None:
    """Exported, imported, copied: the same history and the same view."""
    begin(any_url)
    file = tmp_path / "ada.json"
    run("export", *at(any_url), str(file))
    assert file.read_bytes() == run("export", *at(any_url)).stdout_bytes
    said(run("import", *at(any_url, "eve"), str(file)))
    run("copy", *at(any_url), "--to", any_url, "--as", "bob")
    views = [run("show", *at(any_url, name)).stdout for name in ("ada", "eve", "bob")]
    assert len(set(views)) == 1
    assert [row["id"] for row in said(run("list", "--store", any_url))] == ["ada", "bob", "eve"]
    assert said(run("copy", *at(any_url), "--to", any_url, "--as", "bob"))["events"] == 0


def test_words_are_overwritten_and_sessions_deleted(any_url: str) -> None:
    """Neither is found again."""
    begin(any_url)
    done = said(run("redact", *at(any_url), "hello", "--yes"))
    names = (
        "mended_summaries",
        "stale_summaries",
        "stale_facts",
        "misattributed_facts",
        "stale_rules",
        "left",
    )
    nothing: dict[str, list[str]] = {name: [] for name in names}
    assert done == {"redacted": ["hello"], **nothing}
    assert "77x41" not in run("history", *at(any_url)).stdout
    assert "77x41" not in run("export", *at(any_url)).stdout
    assert said(run("recall", *at(any_url), "77x41")) == []
    assert said(run("delete", *at(any_url), "--yes"))["deleted"] == "ada"
    run("show", *at(any_url), code=1)
    assert said(run("list", "--store", any_url)) == []


# --- what comes in


def test_recall_says_on_standard_error_what_was_not_looked_at(url: str) -> None:
    """The answer is as ever: a list of events."""
    session = Session(200, counter=FixedCounter(20), store=url, id="ada")
    session.extend([{"role": "user", "content": "The belt is dry"} for _ in range(1_100)])
    versions = [event.version for event in session.history()]
    found = run("recall", *at(url), "belt")
    assert len(said(found)) == 5
    assert f"before message {versions[-1_000]} not all of them were looked at" in found.stderr
    assert "looked at" not in run("recall", *at(url), "zebra").stderr


@pytest.mark.parametrize(
    ("data", "extra", "count"),
    [
        pytest.param(json.dumps(HELLO), (), 1, id="a message"),
        pytest.param(json.dumps(HELLO, indent=2), (), 1, id="a message over lines"),
        pytest.param(b"\xef\xbb\xbf" + json.dumps([HELLO]).encode(), (), 1, id="a list, with a mark"),
        pytest.param(json.dumps(TALK, indent=1), (), 12, id="a list over lines"),
        pytest.param("\n".join(map(json.dumps, TALK)), (), 12, id="one message per line"),
        pytest.param(json.dumps(HELLO) + "\n", ("--input", "messages-jsonl"), 1, id="one line"),
        pytest.param("[\n" + json.dumps(HELLO) + "\n]", ("--input", "json"), 1, id="said to be JSON"),
    ],
)
def test_messages_are_read_however_they_are_written(
    url: str, data: bytes | str, extra: tuple[str, ...], count: int
) -> None:
    """A message, a list of them, or one a line."""
    assert len(said(run("add", *at(url), "--budget", "500", *extra, data=data))) == count


def test_a_file_in_jsonl_may_hold_one_line(url: str, tmp_path: Path) -> None:
    """Its name says so."""
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps(HELLO) + "\n\n", encoding="utf-8")
    assert len(said(run("add", *at(url), "--budget", "500", str(file)))) == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"[]", "no messages"),
        (b"5", "is not a message"),
        (b'["x"]', "[0] is not a message"),
        (json.dumps({"messages": TALK}), "'messages' is not a message"),
        (json.dumps({"choices": []}), "'choices' is not a message"),
        (json.dumps(HELLO) + "\n{oops}", "line 2"),
        (json.dumps(HELLO) + "\n[]", "line 2"),
        (b'{"role": "us', "line 1, column 10"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_is_stored(url: str, data: bytes | str, why: str) -> None:
    """Exit 1 and a line that says why; what came before it in the same input is not stored either."""
    begin(url)
    found = run("add", *at(url), data=data, code=1)
    assert why in found.stderr
    assert found.stdout == ""
    assert len(lines(run("history", *at(url)))) == 13


def test_there_are_as_many_ids_as_messages(url: str) -> None:
    """Half of a list with ids would be stored twice by a script that asks again."""
    found = run("add", *at(url), *BUDGET, "--event-id", "a", data=TALK, code=2).stderr
    assert "--event-id is passed 1 time for 12 messages: pass one for each" in found


# --- options


def test_a_new_session_needs_a_budget(url: str, tmp_path: Path) -> None:
    """A name that is mistyped begins nothing; without a file none is made."""
    assert "--budget N" in run("add", *at(url), data=HELLO, code=1).stderr
    assert not (tmp_path / "chats.db").exists()
    begin(url)
    found = run("add", *at(url, "adda"), data=HELLO, code=1).stderr
    assert "did you mean 'ada'" in found
    assert "--budget N" in found
    assert [row["id"] for row in said(run("list", "--store", url))] == ["ada"]


def test_a_model_brings_its_window(url: str) -> None:
    """Less what is kept for the answer."""
    run("add", *at(url), "--model", "gpt-4o", "--output-reserve", "28000", data=HELLO)
    assert said(run("stats", *at(url)))["budget_tokens"] == 100_000


@pytest.mark.parametrize(("margin", "tokens"), [("400", 9_600), ("auto", 9_298)])
def test_a_session_may_keep_a_margin(url: str, margin: str, tokens: int) -> None:
    """So many tokens, or as many as its counter may be off by: of Claude 4 and 75 thousandths."""
    model = ("--model", "claude-sonnet-4-5", "--format", "openai_chat")
    run("add", *at(url), *model, "--budget", "10000", "--margin", margin, data=HELLO)
    assert said(run("stats", *at(url)))["budget_tokens"] == tokens


def test_options_of_a_session_that_is_there_change_it(url: str) -> None:
    """Those that are not given stay as they are."""
    begin(url)
    run("add", *at(url), "--budget", "300", data=HELLO)
    assert said(run("stats", *at(url)))["budget_tokens"] == 300
    run("add", *at(url), "--system", "Be kind.", data=HELLO)
    view = said(run("show", *at(url)))
    assert view[0]["content"] == "Be kind."
    options = [event["data"]["options"] for event in lines(run("history", *at(url), "--kinds", "options"))]
    assert [(one["budget_tokens"], one["system"], one["counted_by"]) for one in options] == [
        (120, "Be brief.", "chars/4"),
        (300, "Be brief.", "chars/4"),
        (300, "Be kind.", "chars/4"),
    ]


LONG = [
    HELLO,
    {"role": "user", "content": "Look it up."},
    *TALK,
    calling(function_call("A")),
    result("A", "line after line " * 60),
    *TALK,
    {"role": "user", "content": "What is my order, 77x41?"},
]
"""A fact that leaves the view, a result larger than half of 400 tokens, and a question about the fact."""
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
BY_DEFAULT: list[dict[str, Any]] = [
    {"recall_ratio": 0.0},
    {"max_result_ratio": "auto"},
    {"breakpoints": False},
]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("option", "value", "keyword"),
    [
        ("--recall-ratio", "0.4", {"recall_ratio": 0.4}),
        ("--recall-ratio", "0", {"recall_ratio": 0.0}),
        ("--target-ratio", "1", {"target_ratio": 1.0}),
        ("--target-ratio", "0.2", {"target_ratio": 0.2}),
        ("--max-result-ratio", "0.2", {"max_result_ratio": 0.2}),
        ("--max-result-ratio", "none", {"max_result_ratio": None}),
        ("--max-result-ratio", "auto", {"max_result_ratio": "auto"}),
        ("--strategy", "cheapest", {"strategy": "cheapest"}),
        ("--strategy", '{"kind": "cheapest", "expected_calls": 1}', {"strategy": Cheapest(expected_calls=1)}),
        ("--breakpoints", None, {"breakpoints": True}),
        ("--no-breakpoints", None, {"breakpoints": False}),
        ("--tools", json.dumps(TOOLS), {"tools": TOOLS}),
        ("--output-reserve", "30", {"budget": Budget(400, output_reserve=30)}),
    ],
)
def test_an_option_of_a_session_does_what_it_does_in_a_program(
    url: str, tmp_path: Path, option: str, value: str | None, keyword: dict[str, Any]
) -> None:
    """The view after each message is the same, and that of a session with none of the options is another."""
    if value is not None and value.startswith(("{", "[")):
        (tmp_path / "data.json").write_text(value, encoding="utf-8")
        value = str(tmp_path / "data.json")
    words = (option,) if value is None else (option, value)
    given = {"budget": 400, "counter": CharCounter(4), "system": "Be brief.", "format": "openai_chat"}
    code, plain = Session(**{**given, **keyword}), Session(**given)
    views = []
    for number, message in enumerate(LONG):
        budget = ("--budget", "400", "--counter", "chars:4", "--system", "Be brief.", *words)
        run("add", *at(url), *budget, "--event-id", f"e{number}", data=message)
        code.add(message, id=f"e{number}")  # which is the handle of a result that is cut
        plain.add(message, id=f"e{number}")
        views.append((said(run("show", *at(url))), code.messages(), plain.messages()))
    assert [shell for shell, _, _ in views] == [program for _, program, _ in views]
    differs = any(program != without for _, program, without in views)
    assert differs == (keyword not in BY_DEFAULT)
    assert len(lines(run("history", *at(url), "--kinds", "options"))) == 1
    assert ("77x41" in str(views[-1][0][:-1])) == (keyword == {"recall_ratio": 0.4})


def test_results_of_a_view_are_written_once_until_that_is_taken_back(url: str) -> None:
    """The log keeps the option, and each result as it came."""
    found, tight = '{ "found": [ 1, 2 ] }', '{"found":[1,2]}'
    chat = [HELLO, calling(function_call("A")), result("A", found)]
    run("add", *at(url), *BUDGET, "--compact", data=chat)
    assert said(run("show", *at(url)))[-1]["content"] == tight
    run("add", *at(url), data={"role": "assistant", "content": "Two."})
    assert said(run("show", *at(url)))[-2]["content"] == tight
    assert found in json.dumps(lines(run("history", *at(url)))).replace('\\"', '"')
    run("add", *at(url), "--no-compact", data=HELLO)
    assert said(run("show", *at(url)))[-3]["content"] == found


def test_the_limit_of_results_and_the_marks_are_taken_away_and_given_back(url: str) -> None:
    """A word each; what is left out stays as it is."""
    long = result("A", "line after line " * 60)
    said_then = [{"role": "assistant", "content": "It does."}, HELLO]  # the newest result is whole
    roomy = ("--budget", "400", *BUDGET[2:], "--breakpoints")
    run("add", *at(url), *roomy, data=[HELLO, calling(function_call("A")), long, *said_then])
    view = json.dumps(said(run("show", *at(url))))
    assert "all of it: message" in view
    assert "cache_control" in view
    changes = (("--max-result-ratio", "none"), ("--no-breakpoints",), ("--max-result-ratio", "auto"))
    for words in changes:
        run("add", *at(url), *words, data=HELLO)
    options = [event["data"]["options"] for event in lines(run("history", *at(url), "--kinds", "options"))]
    assert [(one["max_result_ratio"], bool(one["breakpoints"])) for one in options] == [
        ("auto", True),
        (None, True),
        (None, False),
        ("auto", False),
    ]
    assert "cache_control" not in json.dumps(said(run("show", *at(url))))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--strategy", "drop"), "strategy must be 'cheapest' or Cheapest(...)"),
        (("--strategy", "cheapest", "--target-ratio", "0.3"), "pass one"),
        (("--strategy", "cheapst"), "did you mean cheapest"),
        (("--max-result-ratio", "all"), "all is not a number above 0 and at most 1, auto or none"),
        (("--max-result-ratio", "0"), "0 is not a number above 0 and at most 1, auto or none"),
    ],
)
def test_an_option_that_no_session_takes_is_refused(url: str, words: tuple[str, ...], why: str) -> None:
    """Before anything is written, in words that say what there is."""
    done = run("add", *at(url), *BUDGET, *words, data=HELLO, code=2)
    assert why in " ".join(done.stderr.split())
    run("show", *at(url), code=1)


@pytest.mark.parametrize(("option", "nothing"), [("--system", ""), ("--anchor", "[]")])
def test_what_a_session_has_is_taken_away_by_nothing(url: str, option: str, nothing: str) -> None:
    """Given as nothing, which is not left out; the rest stays."""
    run("add", *at(url), *BUDGET, "--anchor", "Ada rides.", data=HELLO)
    assert len(said(run("show", *at(url)))) == 3
    run("add", *at(url), option, nothing, data=HELLO)
    gone = "Be brief." if option == "--system" else "Ada rides."
    view = [message["content"] for message in said(run("show", *at(url)))]
    assert len(view) == 3
    assert gone not in view


def test_the_same_options_again_change_nothing(url: str) -> None:
    """A script gives them every time."""
    for _ in range(3):
        run("add", *at(url), *BUDGET, "--anchor", "Ada rides a belt drive.", data=HELLO)
    assert len(lines(run("history", *at(url), "--kinds", "options"))) == 1


def test_anchors_are_texts_messages_or_files(url: str, tmp_path: Path) -> None:
    """They stand after the system text."""
    (tmp_path / "one.json").write_text(json.dumps([HELLO]), encoding="utf-8")
    (tmp_path / "one.txt").write_text("From a file.\n", encoding="utf-8")
    anchors = ("Ada.", json.dumps(TALK[0]), f"@{tmp_path / 'one.json'}", f"@{tmp_path / 'one.txt'}")
    given = [part for one in anchors for part in ("--anchor", one)]
    run("add", *at(url), "--budget", "2000", *given, data=TALK[1])
    assert said(run("show", *at(url))) == [
        {"role": "system", "content": "Ada."},
        TALK[0],
        HELLO,
        {"role": "system", "content": "From a file."},
        TALK[1],
    ]


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (("--budget", "50"), "at least 100"),
        (("--budget", "x"), "no number of tokens"),
        (("--output-reserve", "5"), "needs --budget or --model"),
        (("--margin", "5"), "needs --budget or --model"),
        (("--budget", "500", "--margin", "450"), "at least 100"),
        (("--budget", "500", "--margin", "auto"), "does not say how far"),
        (("--budget", "500", "--model", "gtp-99"), "unknown model"),
        (("--budget", "500", "--counter", "words"), "--counter"),
        (("--budget", "500", "--anchor", "@missing.json"), "No such file"),
        (("--budget", "500", "--anchor", "{oops"), "--anchor {oops"),
        (("--budget", "500", "--anchor", "[5]"), "message"),
        (("--budget", "500", "--recall-ratio", "1"), "'--recall-ratio': 1 is not a number from 0 to below 1"),
        (("--budget", "500", "--recall-ratio", "nan"), "nan is not a number from 0 to below 1"),
        (("--budget", "500", "--recall-ratio", "much"), "much is not a number from 0 to below 1"),
        (
            ("--budget", "500", "--target-ratio", "0"),
            "'--target-ratio': 0 is not a number above 0 and at most",
        ),
        (("--budget", "500", "--max-result-ratio", "1.1"), "1.1 is not a number above 0 and at most 1"),
        (("--budget", "500", "--tools", "missing.json"), "--tools missing.json: No such file"),
    ],
)
def test_wrong_options_are_refused(url: str, extra: tuple[str, ...], why: str) -> None:
    """Exit 2, and no session was begun."""
    assert why in run("add", *at(url), *extra, data=HELLO, code=2).stderr
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_a_system_text_that_passes_the_budget_begins_nothing(url: str) -> None:
    """It does not fit, which is exit 1 everywhere."""
    long = "word " * 500
    assert "too many" in run("add", *at(url), "--budget", "100", "--system", long, data=HELLO, code=1).stderr


# --- what comes out


def test_a_past_view_is_shown_again(url: str) -> None:
    """At a version, with its report."""
    begin(url)
    assert said(run("show", *at(url), "--at", "2"))[1:] == [HELLO]
    assert said(run("show", *at(url), "--at", "0")) == [{"role": "system", "content": "Be brief."}]
    report = said(run("show", *at(url), "--at", "2", "--report"))
    assert report["kept_message_count"] == 2
    assert "versions 0 to" in run("show", *at(url), "--at", "999", code=1).stderr


def test_text_is_for_people(url: str) -> None:
    """Messages in full, then the report; nothing of them steers the terminal."""
    begin(url, [{"role": "user", "content": "two\nlines \x1b[31m"}])
    text = run("show", *at(url), "--output", "text").stdout
    assert "USER: two\n    lines \\u001b[31m" in text
    assert "fits, by estimate" in text
    assert "USER: two" not in run("show", *at(url), "--output", "text", "--report").stdout
    assert "\x1b" not in run("history", *at(url), "--output", "text", "--kinds", "all").stdout


def test_a_text_line_of_the_history_says_when_or_which(url: str) -> None:
    """With `--ids` the id takes the place of the time."""
    begin(url)
    first = run("history", *at(url), "--output", "text").stdout.splitlines()[0].split()
    assert [first[0], *first[3:5]] == ["2", "USER:", "Hello,"]
    assert first[1].startswith("20")
    with_id = run("history", *at(url), "--output", "text", "--ids").stdout.splitlines()[0].split()
    assert with_id[:3] == ["2", "hello", "USER:"]


def test_every_kind_of_event_has_a_line(url: str, tmp_path: Path) -> None:
    """Whatever a program did with the session, the history in text says it in words."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        session = Session(100, counter=CharCounter(), store=store, id="ada", summarizer=lambda _: "Ada rode.")
        for one in [HELLO, *TALK]:
            event = session.add(one)
        session.pin(event.id)
        session.unpin(event.id)
        session.set_anchors([{"role": "system", "content": "A"}])
        session.set_budget(500)
        session.undo()
        session.redact([event.id])
        session.pop()
        session.clear()
        failing = Session.open(store, "ada", summarizer=_fails, counter=CharCounter())
        failing.set_budget(100)
        failing.extend([HELLO, *TALK])
        Session.open(store, "ada", summarizer=lambda _: "More.", counter=CharCounter()).extend(TALK)
    shown = run("history", *at(url), "--kinds", "all", "--output", "text").stdout
    kinds = {event["kind"] for event in lines(run("history", *at(url), "--kinds", "all"))}
    assert kinds >= {"summary", "evicted", "failed", "options", "budget", "anchors", "cleared", "pinned"}
    assert kinds >= {"unpinned", "undone", "redacted", "popped", "message"}
    assert {line.split()[3].strip("()") for line in shown.splitlines() if "  (" in line} == kinds - {
        "message"
    }


def test_a_session_goes_on_with_another_model(any_url: str) -> None:
    """What it means first, which writes nothing; then it is done, and opening it as before is refused."""
    model, smaller = ("--model", "gpt-4.1"), ("--model", "gpt-4o", "--budget", "120")
    rule = {"role": "user", "content": "Never deploy on Fridays."}
    talk = [HELLO, rule, *TALK, *TALK]
    run("add", *at(any_url), *model, "--budget", "2000", "--find-rules", "auto", data=talk)
    planned = said(run("plan", *at(any_url), *smaller))
    assert (planned["verdict"], planned["model"], planned["budget_tokens"]) == ("evict", "gpt-4o", 120)
    assert said(run("plan", *at(any_url), "--budget", "2k"))["verdict"] == "fits"
    text = run("plan", *at(any_url), *smaller, "--output", "text").stdout
    assert text.startswith("gpt-4o, 120 tokens: fits, with ")
    assert text.endswith("Without room in view: 1 rule.\n")
    events = len(lines(run("history", *at(any_url), "--kinds", "all")))
    done = said(run("switch", *at(any_url), *smaller))
    assert done == {**planned, "version": events + 2}  # the switch, and what it evicted
    assert said(run("stats", *at(any_url)))["hidden_messages"] == planned["leaving_messages"]
    assert said(run("rules", *at(any_url)))["hidden_rules"] == planned["hidden_rules"] == 1
    log = run("history", *at(any_url), "--kinds", "options", "--output", "text").stdout
    assert "switched from gpt-4.1 and 2,000 tokens to gpt-4o: 120 tokens" in log
    refused = run("add", *at(any_url), *model, data=HELLO, code=1).stderr
    assert "leave --model out to go on with 'gpt-4o'" in refused
    run("add", *at(any_url), data=HELLO)


def test_a_switch_that_is_wrong_is_refused(tmp_path: Path) -> None:
    """Without anything to switch to, an unknown counter, and no room for what must stay."""
    url = str(tmp_path / "chats.db")
    run("add", *at(url), "--model", "gpt-4o", "--budget", "2000", "--system", "word " * 150, data=HELLO)
    assert "pass --model NAME, --budget N, or both" in run("plan", *at(url), code=2).stderr
    assert "--counter must be" in run("switch", *at(url), "--budget", "500", "--counter", "x", code=2).stderr
    assert said(run("plan", *at(url), "--budget", "120"))["verdict"] == "impossible"
    assert "its budget is 120" in run("switch", *at(url), "--budget", "120", code=1).stderr
    assert said(run("plan", *at(url), "--budget", "500", "--counter", "chars:4"))["verdict"] == "fits"


def _fails(_: object) -> str:
    raise OSError("no model")


def test_the_history_is_limited_by_kind_version_and_number(url: str) -> None:
    """Bounds are left out themselves."""
    begin(url)
    versions = [event["version"] for event in lines(run("history", *at(url), "--kinds", "all"))]
    assert versions == list(range(1, len(versions) + 1))
    some = lines(run("history", *at(url), "--kinds", "all", "--after", "3", "--before", "9", "--limit", "4"))
    assert [event["version"] for event in some] == [4, 5, 6, 7]
    kinds = {event["kind"] for event in lines(run("history", *at(url), "--kinds", "evicted, options"))}
    assert kinds == {"evicted", "options"}
    assert "'oops' is not one of message" in run("history", *at(url), "--kinds", "oops", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("stats", "--id", "ada"), "120  budget tokens"),
        (("list",), "  ada"),
        (("recall", "--id", "ada", "77x41"), "USER: Hello, I am Ada."),
        (("recall", "--id", "ada", "zebra"), "nothing found"),
        (("undo", "--id", "ada"), "from the recent messages"),
        (("pop", "--id", "ada"), "taken off:"),
        (("redact", "--id", "ada", "hello", "--yes"), "1 message overwritten"),
        (("redact", "--id", "ada", "--where", r"7\dx\d{2}", "--yes"), "1 message overwritten"),
        (("delete", "--id", "ada", "--yes"), "events deleted"),
    ],
)
def test_every_answer_has_a_form_for_people(url: str, arguments: tuple[str, ...], shown: str) -> None:
    """No JSON in it."""
    begin(url)
    text = run(*arguments, "--store", url, "--output", "text").stdout
    assert shown in text
    assert "{" not in text


def test_what_is_added_is_told_to_people_with_the_room_it_takes(url: str) -> None:
    """The last line is the view's."""
    begin(url)
    text = run("add", *at(url), "--event-id", "e9", "--output", "text", data=HELLO).stdout
    assert "  e9  USER: Hello" in text
    assert " of 120 tokens, " in text.splitlines()[-1]


def test_who_reads_no_further_is_no_fault(url: str) -> None:
    """`| head` ends the command without a word."""
    begin(url, [{"role": "user", "content": f"word {n} " * 200} for n in range(400)])
    command = f"'{SCRIPT}' session history --store '{url}' --id ada | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stderr, len(done.stdout.splitlines())) == ("", 1)


# --- orders that cannot be taken back


@pytest.mark.parametrize("order", [("delete",), ("redact", "hello")])
def test_without_a_terminal_nothing_is_lost_unless_it_is_said(url: str, order: tuple[str, ...]) -> None:
    """A script says --yes."""
    begin(url)
    before = run("export", *at(url)).stdout
    assert "pass --yes" in run(*order, *at(url), data="y\n", code=2).stderr
    assert run("export", *at(url)).stdout == before


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_it_is_asked(url: str, answer: str, code: int) -> None:
    """The answer is no, unless it is yes."""
    begin(url)
    ours, theirs = pty.openpty()
    command = [str(SCRIPT), "session", "delete", *at(url)]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(ours, answer.encode())
    out, errors = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert b"Delete 'ada' with" in errors
    assert bool(out) == (code == 0)
    assert bool(said(run("list", "--store", url))) == (code == 1)


@pytest.mark.parametrize("order", [("pin",), ("unpin",), ("redact", "--yes"), ("undo",)])
def test_an_event_nobody_knows_is_told_with_where_ids_are(url: str, order: tuple[str, ...]) -> None:
    """Exit 1, and nothing changed."""
    begin(url)
    before = run("history", *at(url), "--kinds", "all").stdout
    found = run(order[0], *at(url), *order[1:], "nobody", code=1)
    assert "'nobody'" in found.stderr
    assert "`trimtab session history --kinds all --ids` shows the ids" in found.stderr
    assert run("history", *at(url), "--kinds", "all").stdout == before


def test_a_message_nobody_knows_is_not_redacted(url: str) -> None:
    """Nor are the others that were named with it."""
    begin(url)
    run("redact", *at(url), "hello", "nobody", "--yes", code=1)
    assert "77x41" in run("history", *at(url)).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "--where PATTERN"),
        (("hello", "--where", "x"), 2, "--where PATTERN"),
        (("--where", "("), 1, "not a regular expression"),
        (("--where", "zebra"), 1, "no unredacted message with where='zebra'"),
    ],
)
def test_what_is_to_be_redacted_is_said_once(
    url: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    """By ids or by a pattern; where that finds nothing, nothing is changed."""
    begin(url)
    assert says in run("redact", *at(url), *arguments, "--yes", code=code).stderr
    assert "77x41" in run("history", *at(url)).stdout


# --- files


def test_looking_makes_no_file(tmp_path: Path) -> None:
    """A mistyped name is said."""
    for command in (("show",), ("history",), ("recall", "x"), ("export",), ("delete", "--yes")):
        found = run(*command, *at(f"sqlite:///{tmp_path / 'typo.db'}"), code=1)
        assert "no file" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    """Exit 1, and the file is as it was."""
    file = tmp_path / "chats.db"
    file.write_bytes(b"no database at all, but long enough to be one" * 100)
    before = file.read_bytes()
    assert str(file) in run("show", *at(f"sqlite:///{file}"), code=1).stderr
    assert file.read_bytes() == before


def test_an_export_is_written_whole_and_for_its_owner(url: str, tmp_path: Path) -> None:
    """It replaces the file; a folder that is not there is wrong usage."""
    begin(url)
    file = tmp_path / "ada.json"
    file.write_text("old", encoding="utf-8")
    run("export", *at(url), str(file))
    assert json.loads(file.read_bytes())["id"] == "ada"
    assert file.stat().st_mode & 0o077 == 0
    assert "missing" in run("export", *at(url), str(tmp_path / "missing" / "x.json"), code=2).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ada.json", "chats.db"]


def test_an_export_without_history_goes_on(url: str, tmp_path: Path) -> None:
    """The view is the same, and what left it before is not in the file."""
    begin(url, [HELLO, *TALK, *TALK])
    file = str(tmp_path / "short.json")
    run("export", *at(url), file, "--no-history")
    assert "77x41" in run("export", *at(url)).stdout
    assert "77x41" not in Path(file).read_text(encoding="utf-8")
    run("import", "--store", url, "--id", "short", file)
    assert said(run("show", *at(url, "short"))) == said(run("show", *at(url)))
    (last,) = lines(run("history", *at(url, "short"), "--kinds", "abridged"))
    assert last["data"] == {"of": said(run("stats", *at(url)))["version"]}
    text = run("history", *at(url, "short"), "--kinds", "abridged", "--output", "text").stdout
    assert "goes on from version" in text


def test_every_kind_of_event_may_be_asked_for(url: str) -> None:
    """Those a program alone can cause, too; what is no kind is refused with those there are."""
    begin(url)
    assert lines(run("history", *at(url), "--kinds", "usage,budget,pinned")) == []
    assert "usage" in run("history", *at(url), "--kinds", "uses", code=2).stderr


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"oops", "not JSON"),
        (b"[]", "a snapshot must be a mapping"),
        (b'{"version": 99}', "version 99"),
        (b'{"version": 1, "id": "a", "events": [5]}', "cannot be read"),
        (b'{"version": 1, "id": "a", "events": []}', "has options None"),
    ],
)
def test_what_was_not_exported_is_not_imported(url: str, data: bytes, why: str) -> None:
    """Exit 1 and nothing stored."""
    assert why in run("import", "--store", url, data=data, code=1).stderr


def test_an_import_does_not_mix_two_sessions(url: str) -> None:
    """One of the same name is only added to if it is the beginning."""
    begin(url)
    data = run("export", *at(url)).stdout
    run("add", *at(url, "bob"), *BUDGET, data=TALK)
    assert "other" in run("import", *at(url, "bob"), data=data, code=1).stderr
    assert said(run("import", *at(url), data=data))["version"] == json.loads(data)["events"][-1]["version"]


# --- sessions a program made


def _words(messages: Any) -> int:
    return sum(len(str(one.get("content")).split()) for one in messages)


def test_a_session_is_read_without_the_functions_it_was_made_with(url: str, tmp_path: Path) -> None:
    """History and summary are as they were; what that means is said on standard error."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        counter = FixedCounter(per_message=20)
        session = Session(
            100, counter=counter, store=store, id="ada", summarizer=lambda _: "Ada rode a bike."
        )
        session.extend([HELLO, *TALK])
        assert session.summary == "Ada rode a bike.\nExact values: 77x41"
    found = run("show", *at(url))
    assert "Ada rode a bike." in found.stdout
    assert "tokens are estimated" in found.stderr
    assert "no summary is written" in found.stderr
    assert len(lines(run("history", *at(url)))) == 13
    assert run("history", *at(url)).stderr == ""


def test_adding_says_that_tokens_are_estimated_and_forgets_no_function(url: str, tmp_path: Path) -> None:
    """Who opens the session after that without them is still told what is missing."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        session = Session(100, counter=FixedCounter(per_message=20), store=store, id="ada", summarizer=_fails)
        session.extend(TALK)
    errors = run("add", *at(url), data=HELLO).stderr
    assert "messages may leave earlier or later" in errors
    assert "waits for who opens it with one" in errors
    assert "tokens are estimated" in run("add", *at(url), data=HELLO).stderr
    with SQLiteStore(tmp_path / "chats.db") as store:
        again = Session.open(store, "ada", allow_missing=True)
        assert set(again.missing) == {"summarizer", "counter"}
        assert len(list(again.history())) == 14


def test_a_counter_that_is_named_by_its_rule_is_made_again(url: str) -> None:
    """`chars:4` needs no notice, and counts as it did."""
    begin(url)
    found = run("stats", *at(url))
    assert found.stderr == ""
    with SQLiteStore(url.removeprefix("sqlite:///")) as store:
        there = Session.open(store, "ada", counter=CharCounter(4)).status().view_tokens
    assert said(found)["view_tokens"] == there


def test_what_an_estimate_says_does_not_fit_can_still_be_read(url: str, tmp_path: Path) -> None:
    """The log is there whatever is counted; the view alone says that it does not fit."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        Session(100, counter=FixedCounter(per_message=5), system="word " * 200, store=store, id="ada").add(
            HELLO
        )
    assert lines(run("history", *at(url)))[0]["data"]["message"] == HELLO
    assert "77x41" in run("export", *at(url)).stdout
    assert "100" in run("show", *at(url), code=1).stderr


def test_calls_are_shown_to_people(url: str) -> None:
    """A call and its result each have a line."""
    begin(url, [calling(function_call("a")), result("a")])
    text = run("history", *at(url), "--output", "text").stdout
    assert "[tool_calls]" in text
    assert "TOOL(a)" in text


# --- stores


WRONG_URLS = {
    "memory://": "ends with the command",
    "sqlite:///:memory:": "ends with the command",
    "mysql://ada:geheim@db/x": "no store has the scheme mysql://",
    "postgresql:/ada:geheim@db/x": "--store must be a file",
    "geheim": "--store must be a file",
    "sqlite://ada:geheim@db": "write sqlite:///relative.db",
    "redis://ada:geheim@db:port/x": "--store",
    "postgresql://ada:ge%zzheim@db/x": "",
    "postgresql://ada:geh/eim@db/x": "is not a number",
    "postgresql://ada@db/x?password=geheim&oops": "",
}


@pytest.mark.parametrize(("url", "why"), WRONG_URLS.items())
def test_no_wrong_url_shows_its_password(url: str, why: str) -> None:
    """It is said what is wrong with it, and what stands where a password might is not."""
    found = CliRunner().invoke(cli.command(), ["session", "show", *at(url)])
    assert found.exit_code in (1, 2)
    assert isinstance(found.exception, SystemExit)
    assert "geh" not in found.output
    assert "heim" not in found.output
    assert why in found.stderr


@pytest.mark.parametrize("url", [url for url in (*WRONG_URLS, *AWAY) if "@" in url])
def test_no_url_in_the_wrong_place_shows_its_password(url: str) -> None:
    """Behind the options there is no URL; it is not repeated."""
    output = run("show", *at("sqlite:///x.db"), url, code=2).output
    assert "geh" not in output
    assert "heim" not in output


@pytest.mark.parametrize(
    "command",
    [
        *(("inspect",), ("mcp",), ("mcp", "--store"), ("mcp", "--max-tokens", "x", "--store"), ("replay",)),
        *(("fit",), ("count",), ("validate",), ("batch",), ("policy", "show"), ("session",), ()),
        *(("replay", "--store"), ("inspect", "--id", "x", "y", "--store"), ("session", "list")),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("user", ["ada:geheim@", ""])
def test_no_command_shows_the_password_of_a_url(command: tuple[str, ...], user: str) -> None:
    """Wherever it is written: as the store, as a file that is not there, as a command."""
    url = f"postgres://{user}127.0.0.1:1/x?api_key=geheim"
    found = CliRunner().invoke(cli.command(), [*command, url])
    assert found.exit_code in (1, 2)
    assert "geheim" not in found.output


@pytest.mark.few(2)
@pytest.mark.parametrize("url", AWAY)
def test_a_server_that_is_away_is_said_without_the_password(url: str, away: Away) -> None:
    """Exit 1; it may be back later."""
    done = away(url)
    assert done.returncode == 1
    assert urlsplit(url).netloc.rpartition("@")[2].partition(":")[0] in done.stderr
    for text in (done.stdout, done.stderr):
        assert "geh" not in text
        assert "heim" not in text


def test_short_passwords_do_not_spoil_other_words(away: Away) -> None:
    """Only whole words are hidden: what is said of a server is the same whatever its password."""
    short, long = (away(f"redis://:{word}@127.0.0.1:1/0").stderr for word in ("re", "geheim"))
    assert short == long
    assert "Redis at 127.0.0.1" in short


def test_the_store_may_stand_in_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is in no list of processes."""
    monkeypatch.setenv("TRIMTAB_STORE", url)
    run("add", "--id", "ada", *BUDGET, data=HELLO)
    assert said(run("show", "--id", "ada"))[1:] == [HELLO]


@pytest.mark.parametrize(("kind", "package"), [("postgresql", "psycopg"), ("redis", "redis")])
def test_a_client_that_is_missing_is_named_with_its_line(kind: str, package: str) -> None:
    """Wrong usage: exit 2 and what to install."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; from trimtab.cli import main;"
        f" sys.argv = ['trimtab', 'session', 'list', '--store', '{kind}://ada:geheim@127.0.0.1:1/0']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    extra = "postgres" if kind == "postgresql" else "redis"
    assert f"pip install 'trimtab[{extra}]'" in done.stderr
    assert "geheim" not in done.stderr


def test_an_mcp_server_without_its_package_says_what_to_install(url: str) -> None:
    """Wrong usage: exit 2 and the line, on standard error, where a host keeps it in its log."""
    begin(url)
    code = (
        "import sys; sys.modules['mcp'] = None; from trimtab.cli import main;"
        f" sys.argv = ['trimtab', 'mcp', '--store', {url!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'trimtab[mcp]'" in done.stderr


def test_two_writers_of_one_session_both_get_through(url: str, tmp_path: Path) -> None:
    """The command reads again and repeats, where another was faster."""
    begin(url)
    (tmp_path / "one.json").write_text(json.dumps(HELLO), encoding="utf-8")
    command = [str(SCRIPT), "session", "add", *at(url), str(tmp_path / "one.json")]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    assert len(lines(run("history", *at(url)))) == 17


@pytest.mark.parametrize(
    ("form", "system"),
    [
        ("anthropic", {"system": "Be brief."}),
        ("openai_responses", {"instructions": "Be brief."}),
        ("gemini", {"systemInstruction": {"parts": [{"text": "Be brief."}]}}),
        ("bedrock", {"system": [{"text": "Be brief."}]}),
    ],
)
def test_a_view_with_system_text_beside_it_is_a_request_body(
    url: str, form: str, system: dict[str, Any]
) -> None:
    """A text anchor is the form's own message; later options need not name the form again."""
    format = get_format(form)
    hello = format.message("user", ["Hello"])
    options = ("--budget", "200", "--format", form, "--system", "Be brief.", "--anchor", "Tea.")
    run("add", *at(url), *options, data=hello)
    run("add", *at(url), data=format.message("assistant", ["Hi"]))
    body = said(run("show", *at(url)))
    anchor, first, second = body.pop(format.rules.body_key)
    assert body == system
    assert (first, second) == (hello, format.message("assistant", ["Hi"]))
    assert format.kind(anchor) == ("system" if form == "openai_responses" else "user")
    assert "SYSTEM: Be brief." in run("show", *at(url), "--output", "text").output
    other = "gemini" if form == "anthropic" else "anthropic"
    refused = run("add", *at(url), "--format", other, data=hello, code=2).stderr
    assert f"is opened with --format {other}: leave --format out" in refused


def test_a_pinned_message_stays_until_it_is_let_go(any_url: str) -> None:
    """The first message of a long talk is in the view as long as it is pinned."""
    added = begin(any_url)
    assert HELLO not in said(run("show", *at(any_url)))
    assert said(run("pin", *at(any_url), "hello"))["pinned"] == ["hello"]
    assert HELLO in said(run("show", *at(any_url)))
    newest = [one["id"] for one in added[-2:]]
    assert run("pin", *at(any_url), *newest, "--output", "text").stdout == "2 messages pinned\n"
    assert said(run("unpin", *at(any_url), "hello", *newest))["unpinned"] == ["hello", *newest]
    run("add", *at(any_url), data=TALK)
    assert HELLO not in said(run("show", *at(any_url)))


def test_what_is_no_message_is_not_pinned(url: str) -> None:
    """Exit 1 and the id."""
    begin(url)
    assert "'nobody'" in run("pin", *at(url), "nobody", code=1).stderr
    run("pin", *at(url), code=2)


def test_a_fork_goes_on_by_itself(any_url: str) -> None:
    """It holds what was said up to a version, and no name is taken twice."""
    begin(any_url)
    assert said(run("fork", *at(any_url), "--as", "eve", "--at", "3"))["version"] == 3
    run("add", *at(any_url, "eve"), data={"role": "user", "content": "Another way."})
    texts = [one["data"]["message"]["content"] for one in lines(run("history", *at(any_url, "eve")))]
    assert texts == [HELLO["content"], TALK[0]["content"], "Another way."]
    assert len(lines(run("history", *at(any_url)))) == 1 + len(TALK)
    taken = run("fork", *at(any_url), "--as", "eve", code=2)
    assert "'eve' exists already" in taken.stderr
    assert run("fork", *at(any_url), "--as", "bob", "--output", "text").stdout.startswith("bob: ")
    assert [row["id"] for row in said(run("list", "--store", any_url))] == ["ada", "bob", "eve"]


def test_a_cleared_session_begins_anew_and_forgets_nothing(any_url: str) -> None:
    """The view is empty, but for the system text; the log and its past views are there."""
    begin(any_url)
    before = said(run("show", *at(any_url)))
    version = said(run("stats", *at(any_url)))["version"]
    assert said(run("clear", *at(any_url)))["version"] == version + 1
    assert said(run("show", *at(any_url))) == [{"role": "system", "content": "Be brief."}]
    assert said(run("show", *at(any_url), "--at", str(version))) == before
    assert len(lines(run("history", *at(any_url)))) == 1 + len(TALK)
    assert "an empty view" in run("clear", *at(any_url), "--output", "text").stdout


def test_a_store_may_be_the_name_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file as its URL, relative or not, and a budget in thousands; a bare word is a mistake."""
    monkeypatch.chdir(tmp_path)
    run("add", *at("chats.db"), "--budget", "4k", data=HELLO)
    assert said(run("stats", *at(f"sqlite:///{tmp_path / 'chats.db'}")))["budget_tokens"] == 4_000
    assert said(run("show", *at(str(tmp_path / "chats.db")))) == [HELLO]
    for word in ("chats", "postgres", "host=db password=geheim.db", "db:5432/x.y"):
        refused = run("add", *at(word), "--budget", "4k", data=HELLO, code=2)
        assert "--store must be a file" in refused.stderr
        assert "geheim" not in refused.stderr
    run("show", *at("other.db"), code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["chats.db"]


def test_history_is_whole_in_a_pipe_and_as_wide_as_a_terminal(url: str) -> None:
    """What is searched or paged is not cut; a terminal has a width."""
    text = " ".join(f"word{number}" for number in range(100))
    begin(url, [{"role": "user", "content": text}])
    assert text in run("history", *at(url), "--output", "text").stdout
    ours, theirs = pty.openpty()
    command = [str(SCRIPT), "session", "history", *at(url), "--output", "text"]
    with subprocess.Popen(
        command, stdout=theirs, env={**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 65_536)
            except OSError:  # the last writer is gone
                break
    os.close(ours)
    assert process.returncode == 0
    assert max(map(len, shown.decode().splitlines())) <= 60


def test_a_shell_is_offered_sessions_and_kinds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the store that is named, or in the environment; where there is none, nothing, and without a word."""

    def offered(*arguments: str, incomplete: str = "") -> list[str]:
        shell = ShellComplete(cli.command(), {}, "trimtab", "_TRIMTAB_COMPLETE")
        return [one.value for one in shell.get_completions(["session", *arguments], incomplete)]

    begin(url)
    run("fork", *at(url), "--as", "adam")
    assert offered("show", "--store", url, "--id") == ["ada", "adam"]
    assert offered("show", "--store", url, "--id", incomplete="adam") == ["adam"]
    assert offered("show", "--id") == []
    assert offered("show", "--store", "none.db", "--id") == []
    monkeypatch.setenv("TRIMTAB_STORE", url)
    assert offered("show", "--id") == ["ada", "adam"]
    assert offered("history", "--kinds", incomplete="message,ev") == ["message,evicted"]
    assert {"pin", "unpin", "fork", "clear", "list"} <= set(offered())


def test_rules_are_listed_and_dropped(url: str) -> None:
    """Those given and those found, with where they are; a dropped one is gone from the view."""
    told = {"role": "user", "content": "Never deploy on Fridays. My name is Ada."}
    run(
        "add",
        *at(url),
        *BUDGET,
        "--rule",
        "Be honest.",
        "--find-rules",
        "auto",
        "--max-rule-tokens",
        "50",
        data=told,
    )
    host, found = said(run("rules", *at(url)))["rules"]
    assert (host["text"], host["by"], host["place"]) == ("Be honest.", "host", "shown")
    assert (found["text"], found["by"], found["place"]) == ("Never deploy on Fridays.", "found", "in view")
    lines_of = run("rules", *at(url), "--output", "text").stdout.splitlines()
    assert lines_of[0].endswith("shown       Be honest. (of the host)")
    assert lines_of[-1] == "in force: 2, without room in view: 0"
    assert said(run("rules", *at(url), "--hidden")) == {"rules": [], "hidden_rules": 0}
    assert '<rules by="trimtab">' in run("show", *at(url), "--output", "text").stdout
    assert said(run("rules", *at(url), "--drop", host["id"]))["rules"] == [found]
    assert "<rules" not in run("show", *at(url)).stdout
    assert "has no rule" in run("rules", *at(url), "--drop", "nope", code=1).stderr


def test_rules_of_a_session_come_from_a_file_too(url: str, tmp_path: Path) -> None:
    """As those of `fit`; without the options they stay, and an empty text removes all."""
    path = tmp_path / "rules.txt"
    path.write_text("From the file.\n\n", encoding="utf-8")
    hello = {"role": "user", "content": "Hello"}

    def rules(*given: str) -> list[str]:
        run("add", *at(url), *given, data=hello)
        return [one["text"] for one in said(run("rules", *at(url)))["rules"]]

    assert rules(*BUDGET, "--rules", str(path), "--rule", "Never.") == ["From the file.", "Never."]
    assert rules() == ["From the file.", "Never."]
    assert rules("--rule", "") == []
