"""A large tool result does not eat a view, and is found whole by the id in its marker (SPEC C11)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import call, result, user, words
from tests.test_clamp_results import in_form, one_large_log
from tests.test_near_cut import FORMS, written
from trimtab import ConfigurationError, Context, Session, counter_for, validate
from trimtab.errors import UnknownNameError
from trimtab.formats import get_format
from trimtab.stores import SQLiteStore
from trimtab.testing import WordCounter

WORDS = WordCounter()
HANDLE = re.compile(r"\[text cut by trimtab; all of it: message ([^\]]+)\]")


def handles(messages: list[Any]) -> list[str]:
    """List the ids in the markers of a view."""
    return HANDLE.findall(json.dumps(messages))


def steps(count: int, size: int = 100) -> list[Any]:
    """Make a question and so many calls, each with a result of so many words."""
    pairs = (one for at in range(count) for one in (call(f"c{at}"), result(f"c{at}", f"{at} {words(size)}")))
    return [user("go on"), *pairs]


def session(**options: Any) -> Session:
    """Make a session that shows 40 words of a result."""
    return Session(**{"budget": 400, "counter": WORDS, "max_result_ratio": 0.1, **options})


@pytest.mark.parametrize("form", FORMS)
def test_one_large_log_leaves_the_other_steps_in_view(form: str) -> None:
    """At 3,000 tokens; the log keeps it whole, and the marker says where."""
    messages = [
        one for one in in_form(form, one_large_log()) if one["role" if "role" in one else "type"] != "system"
    ]
    chat = Session(3_000, counter=counter_for("gpt-4o"), format=form, max_result_ratio=0.25)
    added = chat.extend(messages)
    view = chat.messages()
    assert len(view) == len(messages)
    assert validate(view, format=form) == []
    assert chat.token_count <= 3_000
    (handle,) = handles(view)
    at = next(at for at, event in enumerate(added) if event.id == handle)
    assert view[at] != messages[at]
    assert chat.view_of(handle) == messages[at]
    assert [event.message for event in chat.history()] == messages
    without = Session(3_000, counter=counter_for("gpt-4o"), format=form)
    without.extend(messages)
    assert len(without.messages()) < len(messages) - 4


def test_a_result_is_shown_alike_in_every_view() -> None:
    """Whatever comes behind it: also before the budget is passed, so that the prefix never changes for it."""
    chat, shown = session(), dict[str, set[str]]()
    for message in steps(30):
        chat.add(message)
        for one in chat.messages():
            if one["role"] == "tool":
                shown.setdefault(one["tool_call_id"], set()).add(one["content"])
    assert len(shown) == 30
    assert all(len(texts) == 1 and WORDS.count_text(min(texts)) <= 40 for texts in shown.values())


def test_the_report_says_how_many_were_cut() -> None:
    """Nothing is silent."""
    chat = session()
    chat.extend([*steps(2), call("d"), result("d", "short")])
    assert "Cut to its share, and whole in the log: a result in 2 messages." in chat.fit().report.notes


def test_results_in_one_message_have_a_share_each_and_one_handle() -> None:
    """The message is what a handle gives."""
    (question, calls, results) = written("u1 cA,B rA90 rB95", "anthropic")
    chat = session(format="anthropic", counter=WORDS.with_format("anthropic"))
    chat.extend([question, calls, results])
    view = chat.messages()
    slots = get_format("anthropic").texts(view[2])
    assert [WORDS.count_text(slot.text) for slot in slots] == [40, 40]
    assert len(set(handles(view))) == 1
    assert chat.view_of(handles(view)[0]) == results


def test_a_result_whose_call_was_summarized_is_cut_too() -> None:
    """It is shown as marked text, and given back so."""
    chat = session()
    chat.extend([user("hi"), result("gone", words(100))])
    shown = chat.messages()[-1]
    assert shown["role"] == "user"
    assert WORDS.count_text(shown["content"]) < 60
    whole = chat.view_of(handles([shown])[0])
    assert whole["content"].startswith('<tool_result of="gone" by="trimtab">')
    assert WORDS.count_text(whole["content"]) >= 100


def test_tags_in_a_result_are_no_marks_because_it_was_cut() -> None:
    """The marker has the name of trimtab in it; `<summary>` in a web page is no mark of trimtab's."""
    page = f"<summary>Weather</summary> {words(100)}"
    chat = session()
    chat.extend([user("look"), call("a"), result("a", page)])
    assert chat.messages()[-1]["content"].startswith("<summary>Weather")


# -- a handle outlives what becomes of the session


def test_a_handle_survives_reopening_and_forking(tmp_path: Path) -> None:
    """The view is the same, and so is what the handle gives."""
    store = SQLiteStore(tmp_path / "chats.db")
    chat = session(store=store, id="one")
    messages = steps(6)
    chat.extend(messages)
    view = chat.messages()
    again = Session.open(store, "one", counter=WORDS)
    assert again.messages() == view
    assert again.token_count == chat.token_count == WORDS.count(view)
    for handle in handles(view):
        assert again.view_of(handle) in messages
        assert again.fork().view_of(handle) == again.view_of(handle)
        assert asyncio.run(again.aview_of(handle)) == again.view_of(handle)


@pytest.mark.parametrize("history", [True, False])
def test_a_handle_survives_a_snapshot(history: bool) -> None:
    """As long as the snapshot has the message."""
    chat = session()
    chat.extend(steps(12))
    view = chat.messages()
    restored = Session.restore(chat.snapshot(history=history), counter=WORDS)
    assert restored.messages() == view
    assert [restored.view_of(one) for one in handles(view)] == [chat.view_of(one) for one in handles(view)]


def test_a_handle_survives_a_summary_and_its_undo() -> None:
    """The summary is made of what was in view; undone, the messages are shown as before."""
    told: list[Any] = []

    def gist(messages: list[Any]) -> str:
        told.extend(messages)
        return "steps were made"

    chat = session(summarizer=gist)
    chat.extend(steps(4))
    known = handles(chat.messages())
    for message in steps(20)[9:]:
        chat.add(message)
    assert chat.summary is not None
    assert set(handles(told)) & set(known)
    assert all(WORDS.count_text(chat.view_of(one)["content"]) > 90 for one in known)
    while chat.summary is not None:
        chat.undo()
    assert chat.token_count <= 400
    assert all(WORDS.count_text(chat.view_of(one)["content"]) > 90 for one in known)


def test_a_redacted_result_is_gone_whole() -> None:
    """From the view and from what its handle gives."""
    chat = session()
    chat.extend([user("key?"), call("a"), result("a", f"secret {words(100)} secret")])
    (handle,) = handles(chat.messages())
    chat.redact(handle)
    assert "secret" not in json.dumps([chat.messages(), chat.view_of(handle)])
    assert handles(chat.messages()) == []
    assert chat.token_count == WORDS.count(chat.messages())


def test_recall_finds_a_message_by_its_handle() -> None:
    """In view or not; and so does the tool of an agent."""
    chat = session()
    chat.extend(steps(3))
    handle = handles(chat.messages())[0]
    assert [event.id for event in chat.recall(handle)] == [handle]
    assert words(99) in chat.recall_tool()(query=handle)
    assert chat.recall("0123456789abcdef") == []


# -- the option


def test_the_share_may_be_changed_when_the_session_is_opened_again(tmp_path: Path) -> None:
    """Then all is counted again; a view of an earlier version is as it was."""
    store = SQLiteStore(tmp_path / "chats.db")
    chat = session(store=store, id="one")
    chat.extend(steps(3))
    before, version = chat.messages(), chat.version
    for ratio, largest in ((0.2, 80), (None, 101), (0.1, 40)):
        again = Session(store=store, id="one", counter=WORDS, max_result_ratio=ratio)
        again.add(user("and?"))
        view = again.messages()
        assert max(WORDS.count_text(one["content"] or "") for one in view) == largest
        assert again.token_count == WORDS.count(view)
        assert again.view_at(version) == before


def test_a_smaller_budget_leaves_the_share_as_it_was() -> None:
    """It is of the budget that the session was made with: no view changes for it."""
    chat = session()
    chat.extend(steps(3))
    shown = chat.messages()
    chat.set_budget(200)
    assert all(one in shown for one in chat.messages())


def test_in_a_context_the_share_is_of_the_cap_of_the_history() -> None:
    """Whatever the other blocks hold."""
    for other in (5, 100):
        context = Context(800, counter=WORDS).add("system", words(other), priority=9)
        context.add("history", None, max_tokens=400)
        chat = Session(context=context, max_result_ratio=0.1)
        chat.extend(steps(3))
        sizes = {WORDS.count_text(one["content"]) for one in chat.messages() if one["role"] == "tool"}
        assert sizes == {40}


@pytest.mark.parametrize("ratio", [0, 1.5, -0.5, "half", True])
def test_a_share_that_is_none_is_refused(ratio: Any) -> None:
    """When the session is made."""
    with pytest.raises(ConfigurationError, match="max_result_ratio must be a number above 0 and at most 1"):
        session(max_result_ratio=ratio)


def test_a_handle_of_no_message_is_an_error() -> None:
    """A typed one."""
    chat = session()
    chat.add(user("hi"))
    with pytest.raises(UnknownNameError):
        chat.view_of("nothing")
