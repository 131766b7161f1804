"""`trimtab mcp`: its tools and resources in memory, as a process on stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ResourceTemplateReference

from tests.judge import newly_refused
from trimtab import Session, counter_for
from trimtab.counting import EstimateCounter
from trimtab.errors import ConfigurationError, StoreUnavailableError
from trimtab.formats import get_format
from trimtab.integrations.mcp import make_server
from trimtab.stores import MemoryStore, SQLiteStore, Store
from trimtab.testing import request_bodies

T = TypeVar("T")

FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
WORDS = "the harbour was quiet that night "

exactly = counter_for("gpt-4o").count_text


def ask(server: Any, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a server in memory, as a client of the SDK's does."""

    async def run() -> T:
        async with Client(server) as client:
            return await question(client)

    return asyncio.run(run())


def call(server: Any, tool: str, **arguments: Any) -> CallToolResult:
    """Call a tool."""
    return ask(server, lambda client: client.call_tool(tool, arguments))


def data_of(result: CallToolResult) -> Any:
    """Return the data of a result that is no error; its text is the same data."""
    assert not result.is_error, result.content
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result."""
    [content] = result.content
    assert content.type == "text"
    return content.text


def error_of(result: CallToolResult) -> str:
    """Return what a tool says went wrong."""
    assert result.is_error
    return text_of(result)


def read(server: Any, uri: str) -> str:
    """Read a resource."""

    async def question(client: Client) -> str:
        [content] = (await client.read_resource(uri)).contents
        return str(getattr(content, "text", None))

    return ask(server, question)


def refusal(server: Any, uri: str) -> str:
    """Return what a resource that cannot be read says."""

    async def question(client: Client) -> str:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return str(caught.value)

    return ask(server, question)


def talk(store: Store, name: str, turns: int, *, budget: int = 600) -> Session:
    """Keep a conversation; the order number is said in its first message alone."""
    session = Session(budget=budget, system="Be brief.", store=store, id=name)
    for turn in range(turns):
        order = " about order 7741" if turn == 0 else ""
        session.add({"role": "user", "content": f"Question {turn}{order}: {WORDS * 5}"})
        session.add({"role": "assistant", "content": f"Answer {turn}: {WORDS * 5}"})
    return session


@pytest.fixture
def store() -> Store:
    """A store with a conversation of thirty turns."""
    store = MemoryStore()
    talk(store, "ada", 30)
    return store


# The tools.


def test_a_model_is_told_what_each_tool_and_argument_means(store: Store) -> None:
    """Four tools that change nothing, each with a description, and each of their arguments with one."""
    tools = ask(make_server(store), lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["fit", "count", "recall", "read_result"]
    for tool in tools:
        assert tool.description
        assert "\n  " not in tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_each_strategy_that_a_model_is_told_of_is_one(store: Store) -> None:
    """By its name alone, as the model writes it."""
    tools = ask(make_server(store), lambda client: client.list_tools()).tools
    [told] = [
        tool.input_schema["properties"]["strategy"]["description"] for tool in tools if tool.name == "fit"
    ]
    names = told.partition(": ")[2].partition(".")[0].split(", ")
    assert {"agent", "sliding_window", "truncate_text"} <= {*names}
    talk: Any = [{"role": "user", "content": WORDS * 5} for _ in range(3)]
    for name in names:
        data_of(call(make_server(store), "fit", messages=talk, budget=5_000, strategy=name))


@pytest.mark.parametrize("form", FORMS)
def test_rules_are_shown_word_for_word_and_counted(store: Store, form: str) -> None:
    """Of the host, or of the model that asks; a rule that is none is an error with its name."""
    talk = [get_format(form).message("user", [WORDS * 5]) for _ in range(3)]
    server, rule = make_server(store), "Never deploy on Fridays."
    given: Any = {"messages": talk, "budget": 5_000, "format": form}
    plain, ruled = data_of(call(server, "fit", **given)), data_of(call(server, "fit", rules=[rule], **given))
    assert rule in json.dumps([ruled["system"], ruled["messages"]])
    assert ruled["tokens_after"] > plain["tokens_after"]
    refused = call(server, "fit", rules=[" "], **given)
    assert refused.is_error
    assert "rules" in str(refused.content)


@pytest.mark.parametrize("form", FORMS)
def test_what_fits_is_valid_and_within_the_budget(form: str) -> None:
    """In every wire form, by the judge; each message that stays is the one that stood at its position."""
    server, fits = make_server(MemoryStore()), 0
    for body in request_bodies(60, format=form, seed=5, valid=True, max_messages=30):
        request = get_format(form).read_request(body)
        try:
            json.dumps(request.messages, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue  # nothing that a client could send
        given = {"messages": request.messages, "budget": 400, "format": form}
        given |= {"system": request.system} if isinstance(request.system, str) else {}
        result = call(server, "fit", **given)
        if result.is_error:
            assert "tokens are needed" in error_of(result)
            continue
        found, fits = data_of(result), fits + 1
        assert found["tokens_after"] <= 400
        if "system" not in given:
            whole = EstimateCounter().with_format(get_format(form)).count(request.messages)
            assert found["tokens_before"] == whole
        sent = get_format(form).write_request(request, found["messages"])
        assert newly_refused(form, body, sent) == []
        for at, position in enumerate(found["positions"]):
            if position is not None and at not in found["changed"]:
                assert found["messages"][at] == request.messages[position]
    assert fits >= 20


def test_a_budget_above_what_a_result_may_have_is_refused(store: Store) -> None:
    """A result is written into the window of who asks: the error says how much there is, and the option."""
    said = error_of(call(make_server(store, max_tokens=500), "fit", messages=[], budget=501))
    assert "501" in said
    assert "500" in said
    assert "--max-tokens" in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"messages": [{"role": "user", "content": WORDS * 50}], "budget": 20}, "tokens are needed and 20"),
        ({"messages": [{"role": "user", "content": "hi"}], "budget": 20, "model": "nobody-7"}, "nobody-7"),
        (
            {"messages": [{"role": "user", "content": "hi"}], "budget": 20, "strategy": "slide_window"},
            "did you mean sliding_window",
        ),
        ({"messages": [{"role": "user", "content": "hi"}], "budget": 20, "format": "gemni"}, "gemini"),
        ({"messages": [{"content": "hi"}], "budget": 20}, "messages[0]"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "budget"),
    ],
)
def test_an_error_says_what_to_change(store: Store, given: dict[str, Any], words: str) -> None:
    """In trimtab's own words, as an error of the tool, so that a model can mend its call."""
    assert words in error_of(call(make_server(store), "fit", **given))


def test_a_count_is_what_the_provider_charges(store: Store) -> None:
    """By OpenAI's rule: three tokens a message, its role and text, and three for the answer."""
    messages = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": "Yes."}]
    found = data_of(call(make_server(store), "count", messages=messages, model="gpt-4o"))
    assert found["tokens"] == 3 + sum(3 + 1 + exactly(str(one["content"])) for one in messages)
    assert found["exact"]
    assert found["margin_tokens"] == 0
    assert not data_of(call(make_server(store), "count", messages=messages))["exact"]


def test_recall_finds_what_is_no_longer_in_view(store: Store) -> None:
    """The message with the order number, whole, with what `Session.recall` finds and in its order."""
    session = Session.open(store, "ada")
    expected = [event.id for event in session.recall("order 7741", 5)]
    found = data_of(call(make_server(store), "recall", session="ada", query="order 7741", max_tokens=8_000))
    assert [one["id"] for one in found["found"]] == expected
    first = found["found"][0]
    assert "order 7741" in first["text"]
    assert first["text"].startswith("USER: ")
    assert not first["cut"]
    assert found["left_out"] == 0


def test_recall_says_before_which_message_not_all_were_looked_at() -> None:
    """Where more than a thousand have the one word of the query."""
    with MemoryStore() as store:
        session = Session(200, counter="chars:4", store=store, id="ada")
        session.extend([{"role": "user", "content": "The belt is dry"} for _ in range(1_100)])
        versions = [event.version for event in session.history()]
        server = make_server(store)
        found = data_of(call(server, "recall", session="ada", query="belt"))
        assert found["not_all_before"] == versions[-1_000]
        assert data_of(call(server, "recall", session="ada", query="zebra"))["not_all_before"] is None


@pytest.mark.parametrize("max_tokens", [100, 300, 1_000, 8_000])
def test_a_result_of_recall_has_no_more_tokens_than_asked_for(max_tokens: int) -> None:
    """As JSON and all, by the model's own tokenizer; short texts stay whole where a huge one is cut."""
    store = MemoryStore()
    session = Session(budget=500, store=store, id="ada")
    huge = 'zebra "quoted"\n\t東京 ' * 20_000
    for text in (huge, "zebra one", huge, "zebra two", "zebra three", WORDS * 60, WORDS * 60):
        session.add({"role": "user", "content": text})
    result = call(make_server(store), "recall", session="ada", query="zebra", limit=9, max_tokens=max_tokens)
    assert 0 < exactly(text_of(result)) <= max_tokens
    found = data_of(result)
    assert found["found"]
    assert len(found["found"]) + found["left_out"] == len(session.recall("zebra", 9))
    cut = {one["cut"] for one in found["found"] if len(one["text"]) < 30}
    assert cut <= {False} or max_tokens < 1_000


@pytest.mark.parametrize(("most_tokens", "usual_tokens"), [(300, 300), (800, 800), (8_000, 1_000)])
def test_recall_without_a_number_has_what_the_server_gives(most_tokens: int, usual_tokens: int) -> None:
    """A thousand tokens, or fewer where no result has so many; by words, and by an id."""
    store = MemoryStore()
    session = Session(budget=500, store=store, id="ada")
    event = session.add({"role": "user", "content": "zebra " * 9_000})
    session.add({"role": "user", "content": WORDS * 60})
    server = make_server(store, max_tokens=most_tokens)
    for asked in ({"query": "zebra"}, {"id": event.id}):
        result = call(server, "recall", session="ada", **asked)
        assert data_of(result)["found"]
        assert usual_tokens / 2 < exactly(text_of(result)) <= usual_tokens


def test_a_long_message_is_read_part_by_part() -> None:
    """Each part within the tokens asked for, all of them together the message, to its last character."""
    store = MemoryStore()
    session = Session(budget=500, store=store, id="ada")
    text = "".join(f'line {n}: \\ "quoted" 東京 👩‍👩‍👧\n' for n in range(3_000))
    event = session.add({"role": "user", "content": text})
    server, parts, offset = make_server(store), list[str](), 0
    while offset is not None:
        result = call(server, "recall", session="ada", id=event.id, offset=offset, max_tokens=6_000)
        assert exactly(text_of(result)) <= 6_000
        found = data_of(result)
        [said] = found["found"]
        assert said["cut"]
        assert said["id"] == event.id
        parts.append(said["text"])
        offset = found["next_offset"]
    assert len(parts) > 5
    assert "".join(parts) == f"USER: {text}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"session": "ada"}, "pass either query"),
        ({"session": "ada", "query": "order", "id": "x"}, "pass either query, words to search for, or id"),
        ({"session": "adda", "query": "order"}, "did you mean 'ada'"),
        ({"session": "ada", "id": "nobody"}, "'nobody'"),
        ({"session": "ada", "query": "order", "max_tokens": 99}, "100 to 8,000"),
        ({"session": "ada", "query": "order", "max_tokens": 8_001}, "--max-tokens"),
    ],
)
def test_recall_says_what_it_cannot_do(store: Store, given: dict[str, Any], words: str) -> None:
    """Which session or message is meant, and how much a result may have."""
    assert words in error_of(call(make_server(store), "recall", **given))


def log_of(store: Store, lines: int = 1_000) -> Session:
    """Keep a conversation with one long result, of which line 600 says something."""
    session = Session(budget=2_000, store=store, id="log")
    function = {"name": "log", "arguments": "{}"}
    text = "\n".join(f"line {n}: {'NEEDLE-42' if n == 600 else 'fine'} \\ 東京" for n in range(1, lines + 1))
    session.add({"role": "user", "content": "Why?"})
    session.add(
        {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    )
    session.add({"role": "tool", "tool_call_id": "call_1", "content": text})
    return session


def test_part_of_a_result_is_read_by_lines_or_around_a_word() -> None:
    """Word for word, with what part it is above it."""
    store = MemoryStore()
    session = log_of(store)
    server = make_server(store)
    for call_id in ("call_1", list(session.history())[2].id):
        lines = text_of(call(server, "read_result", session="log", call_id=call_id, lines="599-600"))
        head = f"[result of {call_id}: "
        assert lines == f"{head}lines 599-600 of 1000]\nline 599: fine \\ 東京\nline 600: NEEDLE-42 \\ 東京"
        around = text_of(call(server, "read_result", session="log", call_id=call_id, around="needle-42"))
        assert around.startswith(f'{head}"needle-42", 1 place]\n[lines 595-605]\n')


@pytest.mark.parametrize(
    ("asked", "usual"), [({}, 1_000), ({"max_tokens": 100}, 100), ({"max_tokens": 7_000}, 7_000)]
)
def test_an_answer_of_read_result_has_at_most_as_many_tokens_as_are_asked_for(
    asked: dict[str, Any], usual: int
) -> None:
    """It says how to go on."""
    store = MemoryStore()
    log_of(store, 20_000)
    said = text_of(call(make_server(store), "read_result", session="log", call_id="call_1", **asked))
    assert re.search(r'\[goes on: lines="\d+-20000"\]$', said)
    assert exactly(said) <= usual


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"session": "lag", "call_id": "call_1"}, "did you mean 'log'"),
        ({"session": "log", "call_id": "call_2"}, "did you mean call_1"),
        ({"session": "log", "call_id": "call_1", "lines": "2000"}, "there is no line 2,000"),
        ({"session": "log", "call_id": "call_1", "lines": "x"}, "the first and the last line"),
        ({"session": "log", "call_id": "call_1", "around": ""}, "around must be a word"),
        ({"session": "log", "call_id": "call_1", "max_tokens": 99}, "100 to 8,000"),
    ],
)
def test_read_result_says_what_it_cannot_do(given: dict[str, Any], words: str) -> None:
    """And what there is."""
    store = MemoryStore()
    log_of(store)
    assert words in error_of(call(make_server(store), "read_result", **given))


# The resources.


def test_sessions_are_listed_with_addresses_that_can_be_read() -> None:
    """Whatever their names look like, also those begun after the server was made."""
    store = MemoryStore()
    server = make_server(store)
    names = ["../../etc/passwd", "/top", "a b?after=c#d", "ada", "Zoë 東京", "100%"]
    for name in names:
        talk(store, name, 1)
    listed = json.loads(read(server, "trimtab://sessions"))
    assert [one["id"] for one in listed["sessions"]] == sorted(names)
    resources = ask(server, lambda client: client.list_resources()).resources
    assert [one.name for one in resources] == ["sessions", *sorted(names)]
    assert [one.uri for one in resources[1:]] == [one["uri"] for one in listed["sessions"]]
    for one in listed["sessions"]:
        assert "about order 7741" in read(server, one["uri"])
        assert one["version"] == Session.open(store, one["id"]).version


def test_keys_of_encrypted_sessions_are_no_sessions(store: Store) -> None:
    """They stand beside them under names of their own; a server without the keys lists none of them."""
    talk(store, "trimtab:key:0123456789abcdef", 1)
    server = make_server(store)
    listed = json.loads(read(server, "trimtab://sessions"))["sessions"]
    assert listed
    assert not [one for one in listed if one["id"].startswith("trimtab:key:")]


def test_many_sessions_come_page_by_page() -> None:
    """Each once, and no page without an end; the first hundred are listed as resources."""
    store = MemoryStore()
    for number in range(230):
        talk(store, f"talk & {number:03}", 1)
    server, found, pages = make_server(store), list[str](), 0
    uri: str | None = "trimtab://sessions"
    while uri is not None:
        page = json.loads(read(server, uri))
        assert len(page["sessions"]) <= 100
        found += [one["id"] for one in page["sessions"]]
        uri, pages = page["next"], pages + 1
    assert found == [f"talk & {number:03}" for number in range(230)]
    assert pages == 3
    assert len(ask(server, lambda client: client.list_resources()).resources) == 101


def test_a_name_of_a_session_is_completed(store: Store) -> None:
    """For a host that asks while somebody types an address."""
    talk(store, "adele", 1)
    talk(store, "bob", 1)
    address = ResourceTemplateReference(uri="trimtab://sessions/{id}{?budget}")

    async def question(client: Client) -> list[str]:
        found = await client.complete(address, {"name": "id", "value": "ad"})
        return found.completion.values

    assert ask(make_server(store), question) == ["ada", "adele"]


def test_a_view_is_what_the_model_of_the_session_sees(store: Store) -> None:
    """Its messages as text, system text first, within its own budget where that is the smaller one."""
    session = Session.open(store, "ada")
    expected = [session.format.transcript(message) for message in session.messages()]
    assert expected[0] == "SYSTEM: Be brief."
    assert read(make_server(store), "trimtab://sessions/ada") == "\n\n".join(expected)


@pytest.mark.parametrize("budget", [100, 250, 500])
def test_a_view_is_within_a_smaller_budget(store: Store, budget: int) -> None:
    """By the model's own tokenizer, and with the newest message."""
    text = read(make_server(store), f"trimtab://sessions/ada?budget={budget}")
    assert budget / 2 < exactly(text) <= budget
    assert text.endswith((WORDS * 5)[-60:])


def test_a_view_whose_newest_message_is_too_large_is_cut() -> None:
    """An error would leave it unreadable: the end of it is shown."""
    store = MemoryStore()
    Session(budget=50_000, store=store, id="ada").add({"role": "user", "content": WORDS * 4_000 + "THE END"})
    text = read(make_server(store, max_tokens=1_000), "trimtab://sessions/ada")
    assert exactly(text) <= 1_000
    assert text.startswith("[text cut by trimtab]")
    assert text.endswith("THE END")


def test_a_log_is_read_page_by_page(store: Store) -> None:
    """Every message once, in order, each page within what a result may have."""
    session = Session.open(store, "ada")
    session.add({"role": "user", "content": WORDS * 9_000})
    server, found = make_server(store, max_tokens=1_500), list[dict[str, Any]]()
    uri: str | None = "trimtab://sessions/ada/log"
    while uri is not None:
        text = read(server, uri)
        assert exactly(text) <= 1_500
        page = json.loads(text)
        found += page["messages"]
        uri = page["next"]
    assert [one["id"] for one in found] == [event.id for event in session.history()]
    assert [one["cut"] for one in found] == [False] * 60 + [True]


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("trimtab://sessions/adda", "did you mean 'ada'"),
        ("trimtab://sessions/ada?budget=99", "100 to 8,000"),
        ("trimtab://sessions/ada?budget=8001", "--max-tokens"),
        ("trimtab://sessions/ada?budget=many", "budget must be a whole number"),
        ("trimtab://sessions/ada/log?after=-1", "after must be a whole number"),
        ("trimtab://sesions", "Unknown resource"),
    ],
)
def test_a_resource_that_cannot_be_read_says_why(store: Store, uri: str, words: str) -> None:
    """As an error of the protocol, in trimtab's own words."""
    assert words in refusal(make_server(store), uri)


def test_nothing_is_changed_in_the_store(store: Store) -> None:
    """Whatever is asked: the log is as long as before."""
    session, server = Session.open(store, "ada"), make_server(store)
    before = [event.id for event in session.history(kinds=None)]
    call(server, "recall", session="ada", query="order 7741")
    call(server, "recall", session="ada", id=before[2])
    for uri in ("", "/ada", "/ada?budget=100", "/ada/log"):
        read(server, f"trimtab://sessions{uri}")
    session.refresh()
    assert [event.id for event in session.history(kinds=None)] == before


def test_half_a_pair_of_surrogates_can_be_sent() -> None:
    """No text on a wire may have it, and a log may."""
    store = MemoryStore()
    event = Session(budget=500, store=store, id="ada").add({"role": "user", "content": "odd \ud800 text"})
    server = make_server(store)
    [said] = data_of(call(server, "recall", session="ada", id=event.id))["found"]
    assert said["text"] == "USER: odd ? text"
    assert read(server, "trimtab://sessions/ada") == "USER: odd ? text"


def test_a_session_is_opened_with_the_functions_it_was_made_with() -> None:
    """`open_session` gives them back: here the ranker that finds what has no word of the query."""
    store = MemoryStore()

    def ranker(query: str, messages: list[Any]) -> list[float]:
        return [float("7741" in str(message)) for message in messages]

    session = Session(budget=600, store=store, id="ada", ranker=ranker)
    for turn in range(30):
        session.add({"role": "user", "content": f"{turn} {7741 if turn == 3 else ''} {WORDS * 5}"})
    server = make_server(store, open_session=lambda name: Session.open(store, name, ranker=ranker))
    found = data_of(call(server, "recall", session="ada", query="merchandise", limit=1))
    assert "7741" in found["found"][0]["text"]


def test_no_password_of_a_store_is_told() -> None:
    """A store that is away says where it was looked for."""

    class Away(MemoryStore):
        def load(self, request: Any, /) -> Any:
            raise StoreUnavailableError("postgresql://ada:hunter2@db/chats is away")

    said = error_of(call(make_server(Away()), "recall", session="ada", query="order"))
    assert "is away" in said
    assert "hunter2" not in said


def test_a_server_whose_results_say_nothing_is_refused() -> None:
    """Fewer than a hundred tokens have no room for a message and its id."""
    with pytest.raises(ConfigurationError, match="max_tokens"):
        make_server(MemoryStore(), max_tokens=99)


# The command: a process, on stdio and over HTTP.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a conversation."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        talk(store, "ada", 30)
    return tmp_path / "chats.db"


def command(*arguments: str) -> list[str]:
    """Write the command as a host starts it."""
    return [sys.executable, "-m", "trimtab", "mcp", *arguments]


ENVIRONMENT = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def test_a_host_starts_it_and_asks_over_stdio(file: Path) -> None:
    """The SDK's client and a real process: tools, resources, and many calls at once from one file."""
    program, *arguments = command("--store", str(file), "--max-tokens", "2000")
    server = StdioServerParameters(command=program, args=arguments, env=ENVIRONMENT)

    async def question() -> None:
        async with Client(stdio_client(server)) as client:
            assert len((await client.list_tools()).tools) == 4
            view = (await client.read_resource("trimtab://sessions/ada")).contents[0]
            assert str(getattr(view, "text", "")).startswith("SYSTEM: Be brief.")
            asked = {"session": "ada", "query": "order 7741", "max_tokens": 2_000}
            results = await asyncio.gather(*(client.call_tool("recall", asked) for _ in range(16)))
            texts = {text_of(result) for result in results}
            assert len(texts) == 1
            assert "order 7741" in texts.pop()
            assert "100 to 2,000" in error_of(
                await client.call_tool("recall", {**asked, "max_tokens": 2_001})
            )

    asyncio.run(question())


def test_it_goes_on_with_a_counter_that_a_log_can_name(tmp_path: Path) -> None:
    """As the other commands do: a session counted by characters is counted so again."""
    with SQLiteStore(tmp_path / "chats.db") as store:
        session = Session(budget=600, counter="chars:2", store=store, id="ada")
        session.add({"role": "user", "content": WORDS})
    program, *arguments = command("--store", str(tmp_path / "chats.db"))
    server = StdioServerParameters(command=program, args=arguments, env=ENVIRONMENT)

    async def question() -> str:
        async with Client(stdio_client(server)) as client:
            return str((await client.read_resource("trimtab://sessions/ada")).contents[0])

    assert WORDS.strip() in asyncio.run(question())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--store", "nowhere/chats.db"], 1, "there is no file nowhere/chats.db yet"),
        (["--store", "memory://"], 2, "a store in memory ends with the command"),
        (["--store", "chats.db", "--max-tokens", "99"], 2, "--max-tokens"),
        ([], 2, "--store"),
    ],
)
def test_a_command_that_cannot_serve_says_why(arguments: list[str], code: int, words: str) -> None:
    """On standard error, where a host keeps it in its log."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


@contextmanager
def served(file: Path, **environment: str) -> Iterator[tuple[str, str]]:
    """Start the command on a free port; gives its address, and what it says of the token."""
    process = subprocess.Popen(
        command("--store", str(file), "--port", "0"),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None
    try:
        found = re.fullmatch(
            r"trimtab: (http://\S+) answers who sends the token (.+)\n", process.stderr.readline()
        )
        assert found is not None
        yield found[1], found[2]
    finally:
        process.terminate()
        process.communicate()


def over_http(address: str, token: str, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask over HTTP, with a token."""

    async def run() -> T:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            return await question(client)

    return asyncio.run(run())


def status_of(address: str, **headers: str) -> int:
    """Send a request by hand; return its status."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accepted = {"Accept": "application/json, text/event-stream"}
    return httpx2.post(address, json=asked, headers={**accepted, **headers}).status_code


def test_it_serves_this_machine_over_http(file: Path) -> None:
    """With the token it wrote; without it, with another, or from a page in a browser nothing is answered."""
    with served(file, TRIMTAB_MCP_TOKEN="") as (address, token):
        asked = {"session": "ada", "query": "order 7741"}
        found = over_http(address, token, lambda client: client.call_tool("recall", asked))
        assert "order 7741" in text_of(found)
        listed = over_http(address, token, lambda client: client.list_resources())
        assert "ada" in [one.name for one in listed.resources]
        known = {"Authorization": f"Bearer {token}"}
        assert status_of(address) == 401
        assert status_of(address, Authorization="Bearer other") == 401
        assert status_of(address, **known, Host="evil.example") == 421
        assert status_of(address, **known, Origin="http://evil.example") == 403


def test_the_token_may_come_from_the_environment(file: Path) -> None:
    """Then it is not written anywhere."""
    with served(file, TRIMTAB_MCP_TOKEN="a secret of ours") as (address, said):
        assert said == "in TRIMTAB_MCP_TOKEN"
        tools = over_http(address, "a secret of ours", lambda client: client.list_tools())
        assert len(tools.tools) == 4


def test_a_port_that_is_taken_is_told(file: Path) -> None:
    """Before anything is served."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            command("--store", str(file), "--port", str(port)), capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in done.stderr
