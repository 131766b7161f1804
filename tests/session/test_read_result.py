"""A session reads a result again, part by part, in view or not; and recall knows what a view cut out."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Message, assistant, user, words
from tests.judge import judge
from tests.test_near_cut import FORMS, in_form
from tests.test_results import LOG, step
from trimtab import Context, Session
from trimtab.counting import EstimateCounter
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.results import read_result, result_tool
from trimtab.stores import MemoryStore, SQLiteStore
from trimtab.testing import WordCounter

WORDS = WordCounter()
READ = re.compile(r'read_result\("([^"]+)"\)')


def tools_of(form: str = "openai_chat") -> list[Any]:
    """The tool, before there is a session."""
    return [result_tool([], format=form).schema]


def session_with(*messages: Message, form: str = "openai_chat", **options: Any) -> Session:
    """Keep a conversation."""
    session = Session(**{"budget": 2_000, "format": form, **options})
    session.extend(in_form(list(messages), form))
    return session


# -- what is read


@pytest.mark.parametrize("form", FORMS)
def test_a_result_is_read_by_the_id_of_its_call_in_every_form(form: str) -> None:
    """In view and cut, and after it left the view; as from the caller's own list."""
    messages = [user("Why?"), *step("call_1", LOG)]
    session = session_with(*messages, form=form)
    wanted = read_result(in_form(messages, form), "call_1", lines="599-601", format=form)
    assert session.read_result("call_1", lines="599-601") == wanted
    assert asyncio.run(session.aread_result("call_1", lines="599-601")) == wanted
    for _ in range(20):
        session.extend(in_form([user(words(200)), assistant(words(200))], form))
    assert "line 1:" not in json.dumps(session.messages())
    assert session.read_result("call_1", lines="599-601") == wanted
    tool = session.result_tool()
    assert tool("call_1", lines="599-601") == asyncio.run(tool.acall("call_1", lines="599-601")) == wanted
    assert tool.schema == tools_of(form)[0]


@pytest.mark.parametrize("form", FORMS)
def test_a_marker_in_a_view_says_how_to_read_the_rest(form: str) -> None:
    """By the id of the message, which is unique where calls of several turns share theirs."""
    messages = [user("Why?"), *step("call_0", LOG), *step("call_0", LOG.replace("600", "700")), user("And?")]
    session = session_with(*messages, form=form, tools=tools_of(form))
    shown = json.dumps(session.messages()).replace('\\"', '"')
    handles = READ.findall(shown)
    assert len(handles) == 2
    answers = [session.result_tool()(handle, around="NEEDLE-42") for handle in handles]
    assert ["line 600: NEEDLE-42" in answers[0], "line 700: NEEDLE-42" in answers[1]] == [True, True]
    assert session.fit().report.tokens_after == session.token_count
    without = session_with(*messages, form=form)
    assert "read_result" not in json.dumps(without.messages())
    assert "all of it: message " in json.dumps(without.messages())


def test_a_tool_that_comes_or_goes_changes_the_markers_and_their_sizes(tmp_path: Path) -> None:
    """The session is opened with other tools; what it says it takes is what it takes."""
    store = SQLiteStore(tmp_path / "chats.db")
    session_with(user("Why?"), *step("a", LOG), user("And?"), store=store, id="one")
    for tools in (tools_of(), [], tools_of()):
        again = Session(store=store, id="one", tools=tools)
        assert bool(READ.search(json.dumps(again.messages()).replace('\\"', '"'))) is bool(tools)
        again.add(user("More?"))
        assert again.token_count == again.fit().report.tokens_after


def test_the_tools_of_a_context_are_those_of_its_session() -> None:
    """Where they are declared once."""
    context = Context(2_000, tools=tools_of())
    session = Session(context=context)
    session.extend([user("Why?"), *step("a", LOG), user("And?")])
    assert READ.search(str(session.messages()))


def test_an_answer_is_whole_in_the_view_it_is_added_to() -> None:
    """It is no larger than a result that a view shows whole, so it is never cut and asked for again."""
    for budget in (600, 1_000, 2_000, 8_000):
        session = session_with(user("Why?"), *step("a", LOG * 3), budget=budget, tools=tools_of())
        answer = session.result_tool(max_tokens=100_000)("a", lines="1-")
        session.extend([*step("b", answer, "read_result"), user("And?")])
        [shown] = [one for one in session.messages() if one.get("tool_call_id") == "b"]
        assert shown["content"] == answer
        assert len(answer) > 200


def test_what_a_view_cuts_of_a_users_text_is_read_by_the_id_in_its_marker() -> None:
    """Results alone have calls; a message has an id."""
    session = session_with(
        user(f"begin {words(3_000)} kayak {words(3_000)} end"), assistant("Yes."), user("?")
    )
    event = next(iter(session.history()))
    assert "kayak" in session.read_result(event.id, around="kayak")


def test_nothing_that_was_popped_or_redacted_is_read() -> None:
    """Neither by the call nor by the message."""
    session = session_with(user("Why?"), *step("a", "the secret"))
    event = session.pop()
    assert event is not None
    for one in ("a", event.id):
        with pytest.raises(UnknownNameError):
            session.read_result(one)
    session = session_with(user("Why?"), *step("a", "the secret"), user("And?"))
    event = list(session.history())[2]
    session.redact(event.id)
    for one in ("a", event.id):
        assert "secret" not in session.result_tool()(one)


def test_an_unknown_id_is_told_with_those_like_it() -> None:
    """As an error, and to the model; whatever stands in the id."""
    session = session_with(user("Why?"), *step("call_17", "x"))
    with pytest.raises(UnknownNameError) as caught:
        session.read_result("call_1")
    assert caught.value.near == ("call_17",)
    tool = session.result_tool()
    assert tool("call_1").endswith("did you mean call_17?]")
    for evil in ("\x00", "\ud800", "a\nb", "x" * 100_000, "' OR 1=1 --"):
        told = tool(evil)
        assert told.startswith("[no result in this conversation answers a call ")
        assert (told.isprintable(), len(told) < 400) == (True, True)
        assert asyncio.run(tool.acall(evil)).isprintable()
    for wrong in ("", 7, None):
        with pytest.raises(ConfigurationError, match="call_id must be"):
            session.read_result(wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="max_tokens"):
        session.result_tool(max_tokens=99)


@pytest.mark.parametrize("form", FORMS)
def test_the_provider_takes_the_tool_of_a_session(form: str) -> None:
    """In the form of its messages."""
    session = session_with(user("Why?"), *step("a", "x"), user("And?"), form=form)
    key = {"gemini": "contents", "openai_responses": "input"}.get(form, "messages")
    schema = session.result_tool().schema
    tools = {"toolConfig": {"tools": [schema]}} if form == "bedrock" else {"tools": [schema]}
    assert not judge(form, {key: session.messages(), **tools})


# -- what recall knows of what was cut


def test_recall_finds_what_a_fit_cut_out_of_the_newest_result() -> None:
    """Where no share of a result is kept to, and what must stay is cut until it fits."""
    text = f"begin {words(400)} NEEDLE-42 {words(400)} end"
    session = Session(300, counter=WORDS, max_result_ratio=None)
    session.extend([user("Why?"), *step("a", text)])
    shown = str(session.messages())
    assert ("begin" in shown, "NEEDLE-42" in shown) == (True, False)
    event = list(session.history())[2]
    assert session.recall("NEEDLE-42") == asyncio.run(session.arecall("NEEDLE-42")) == [event]
    assert "NEEDLE-42" in session.recall_tool()(query="NEEDLE-42")
    assert session.recall("begin") == []


def test_recall_finds_a_word_that_stands_in_the_cut_out_part_as_well() -> None:
    """What is shown of it once does not hide where else it stands."""
    text = f"kayak {words(200)} kayak {words(200)} end"
    session = Session(400, counter=WORDS, max_result_ratio=0.25)
    session.extend([user("Why?"), *step("a", text), user("And?")])
    assert str(session.messages()).count("kayak") == 1
    assert [event.version for event in session.recall("kayak")] == [4]
    assert session.recall("end") == []


def test_recall_of_a_view_that_shows_all_finds_nothing_more() -> None:
    """No part was cut."""
    session = Session(4_000, counter=WORDS)
    session.extend([user("Why?"), *step("a", f"kayak {words(200)} kayak"), user("And?")])
    assert session.recall("kayak") == []


def test_recall_does_not_fail_where_no_view_fits() -> None:
    """What must stay is too large: nothing of it is shown, and what left is found all the same."""
    store = MemoryStore()
    session = Session(300, counter=WORDS, store=store, id="one")
    session.extend(
        [user("a kayak"), assistant(words(200)), user("Why?"), assistant(words(200)), user("And?")]
    )
    again = Session(300, counter=WORDS, store=store, id="one", system=words(250))
    assert again.recall("kayak")[0].message["content"] == "a kayak"


def test_an_answer_of_recall_is_cut_to_what_is_asked_and_says_how_to_read_the_rest() -> None:
    """The longest texts first; short ones stay whole."""
    session = Session(600, counter=WORDS)
    long = session.add(user(f"kayak {words(3_000)}"))
    session.add(user("a short kayak"))
    session.extend([one for _ in range(4) for one in (user(words(200)), assistant(words(200)))])
    answer = session.recall_tool(max_tokens=200)(query="kayak")
    assert f'all of it: read_result("{long.id}")]' in answer
    assert "a short kayak" in answer
    assert EstimateCounter().count_text(answer) < 300
    assert "of 1" not in session.read_result(long.id, around="kayak")
    assert words(3_000) in session.recall_tool()(query="kayak")
