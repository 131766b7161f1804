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
from trimtab import CharCounter, ConfigurationError, Context, Session, counter_for, validate
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


LIMITS = pytest.mark.parametrize(
    ("options", "size"), [({}, 100), ({"max_result_ratio": "auto"}, 250)], ids=["a share", "auto"]
)
"""Options of a session of 400 tokens, and the words of a result that it cuts, once that is not the newest."""

LATER = user("and then?")


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
    without = Session(3_000, counter=counter_for("gpt-4o"), format=form, max_result_ratio=None)
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


# -- what would take more than half of a view, by default


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("size", "shown"), [(150, 150), (200, 200), (201, 100), (9_000, 100)])
def test_by_default_a_result_larger_than_half_is_shown_at_a_quarter(form: str, size: int, shown: int) -> None:
    """As `fit` does; one of half of the budget is not cut to a share."""
    chat = Session(400, counter=WORDS, format=form, min_recent_tokens=0)
    chat.extend(in_form(form, [*steps(1, size - 1), LATER]))  # the step has a number, too
    (slot,) = [slot for slot in get_format(form).texts(chat.messages()[-2]) if slot.is_result]
    assert bool(handles(chat.messages())) == (size > 200)
    assert shown - 10 < WORDS.count_text(slot.text) <= shown
    assert chat.fit().report.tokens_after <= 400


@pytest.mark.parametrize("form", FORMS)
def test_by_default_the_newest_result_is_whole_while_it_is_the_newest(form: str) -> None:
    """It was just asked for: older messages leave that view for it, and come back behind it."""
    said, large = steps(3, 80), [call("d"), result("d", words(300))]
    chat = Session(400, counter=WORDS, format=form)
    chat.extend(in_form(form, said))
    before = chat.messages()
    newest = in_form(form, large)
    chat.extend(newest)
    assert chat.messages()[-1] == newest[-1]
    assert len(chat.messages()) < len(before)
    assert chat.fit().report.tokens_after <= 400
    chat.extend(in_form(form, [LATER]))
    assert chat.messages()[: len(before)] == before
    assert len(handles(chat.messages())) == 1


def test_by_default_a_newest_result_that_no_view_could_hold_is_cut_last() -> None:
    """To what there is beside what must stay, and no further."""
    chat = Session(400, counter=WORDS)
    chat.extend([*steps(1, 80), call("d"), result("d", words(5_000))])
    assert chat.fit().report.tokens_after == 400


def test_by_default_such_a_result_is_shown_alike_once_something_came_behind_it() -> None:
    """And nothing leaves for it."""
    chat, shown = Session(400, counter=WORDS), set[str]()
    chat.extend([user("read it"), call("a"), result("a", words(5_000))])
    for at in range(8):
        chat.add(user(f"and {at}? {words(20)}"))
        shown.update(one["content"] for one in chat.messages() if one["role"] == "tool")
    assert len(shown) == 1
    assert len(chat.messages()) == 11


def test_by_default_a_text_that_no_view_could_hold_is_shown_at_a_quarter() -> None:
    """Once it is no longer what the user asks; the log has it whole."""
    chat, text = Session(400, counter=WORDS), words(500)
    (event,) = chat.extend([{"role": "assistant", "content": text}])
    chat.extend([user("and?"), {"role": "assistant", "content": words(250)}, LATER])
    view = chat.messages()
    assert handles(view) == [event.id]
    assert chat.view_of(event.id)["content"] == text
    assert [WORDS.count_text(one["content"]) for one in view] == [100, 1, 250, 2]


def test_several_results_in_one_message_are_each_held_to_half() -> None:
    """In the wire form of Anthropic: the one of them that passes it is cut."""
    chat = Session(400, counter=WORDS, format="anthropic")
    made = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in "ab"]
    done = [
        {"type": "tool_result", "tool_use_id": one, "content": words(count)}
        for one, count in zip("ab", (90, 210), strict=True)
    ]
    chat.extend([user("look"), {"role": "assistant", "content": made}, {"role": "user", "content": done}])
    assert chat.messages()[-1]["content"] == done
    chat.extend([{"role": "assistant", "content": "seen"}, LATER])
    first, second = chat.messages()[2]["content"]
    assert first == done[0]
    assert handles([second])
    assert WORDS.count_text(second["content"]) <= 100


def test_what_becomes_the_newest_again_is_whole_again(tmp_path: Path) -> None:
    """Also in a session that is opened again."""
    store = SQLiteStore(tmp_path / "chats.db")
    chat = Session(400, counter=WORDS, store=store, id="one")
    chat.extend([*steps(1, 20), call("d"), result("d", words(300))])
    view = chat.messages()
    chat.add(LATER)
    assert len(handles(chat.messages())) == 1
    chat.pop()
    assert chat.messages() == view
    assert Session.open(store, "one", counter=WORDS).messages() == view


class Bytes(WordCounter):
    """A token a byte, which is the most that a tokenizer makes of a text; knows what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def count_text(self, text: str, /) -> int:
        """Count its bytes."""
        self.asked.append(text)
        return len(text.encode())


def test_a_text_with_no_more_bytes_than_half_of_the_budget_is_not_counted_for_it() -> None:
    """A counter is asked what it is asked without the option; one byte more, and the result is cut."""
    asked = []
    for ratio in ("auto", None):
        counter = Bytes()
        chat = Session(400, counter=counter, max_result_ratio=ratio)
        chat.extend([*steps(9, 60), call("a"), result("a", "é" * 100), LATER])
        assert handles(chat.messages()) == []
        asked.append(counter.asked)
    assert asked[0] == asked[1]
    chat.extend([call("b"), result("b", "é" * 100 + "e"), LATER])
    assert handles(chat.messages()) == []
    other = Session(400, counter=Bytes())
    other.extend([call("b"), result("b", "é" * 100 + "e"), LATER])
    assert len(handles(other.messages())) == 1


@pytest.mark.parametrize(
    "counter",
    [CharCounter(0.5), lambda messages: sum(2 * len(one["content"] or "") for one in messages)],
    ids=["additive", "black box"],
)
def test_a_counter_that_charges_more_than_a_token_a_byte_has_a_result_cut_later(counter: Any) -> None:
    """Once it has more bytes than half of the budget has tokens; until then it is as without a limit."""
    for size, is_cut in ((190, False), (210, True)):
        views = []
        for ratio in ("auto", None):
            chat = Session(400, counter=counter, max_result_ratio=ratio)
            chat.extend([user("go"), call("a"), result("a", "b" * size), LATER])
            views.append(chat.messages())
            assert chat.fit().report.tokens_after <= 400
        assert bool(handles(views[0])) == is_cut
        assert (views[0] == views[1]) == (not is_cut)


def test_a_number_holds_results_to_their_share_whatever_a_token_is() -> None:
    """Also where a counter charges more than a token for each byte."""
    chat = Session(400, counter=CharCounter(0.5), max_result_ratio=0.5)
    chat.extend([user("go"), call("a"), result("a", "b" * 150)])
    assert len(handles(chat.messages())) == 1


@pytest.mark.parametrize("ratio", ["auto", 0.25])
def test_a_session_with_the_window_of_its_model_shows_small_results_whole(ratio: Any) -> None:
    """The share is of the window less its output reserve, where no budget is given."""
    chat = Session(model="gpt-4o", max_result_ratio=ratio)
    chat.extend(steps(2))
    assert handles(chat.messages()) == []
    chat.extend([call("a"), result("a", "a word " * 200_000), LATER])
    assert len(handles(chat.messages())) == 1


def test_a_session_of_an_older_log_has_no_limit_until_it_is_given_one() -> None:
    """Nothing in it is counted again; logs that do not know the option at all are older still."""
    data = Session(400, counter=WORDS, max_result_ratio=None).snapshot()
    for known in (
        data["options"],
        {key: value for key, value in data["options"].items() if "ratio" not in key},
    ):
        chat = Session.restore({**data, "version": 1, "options": known}, counter=WORDS)
        chat.extend([user("go"), call("a"), result("a", words(450)), LATER])
        assert handles(chat.messages()) == []
        assert chat.recall(next(iter(chat.history())).id) == []
    new = Session.restore(data, counter=WORDS, max_result_ratio="auto")
    new.extend([user("go"), call("a"), result("a", words(450)), LATER])
    assert len(handles(new.messages())) == 1


# -- a handle outlives what becomes of the session


@LIMITS
def test_a_handle_survives_reopening_and_forking(tmp_path: Path, options: Any, size: int) -> None:
    """The view is the same, and so is what the handle gives."""
    store = SQLiteStore(tmp_path / "chats.db")
    chat = session(store=store, id="one", **options)
    messages = [*steps(6, size), LATER]
    chat.extend(messages)
    view = chat.messages()
    assert handles(view)
    again = Session.open(store, "one", counter=WORDS)
    assert again.messages() == view
    assert again.token_count == chat.token_count == WORDS.count(view)
    for handle in handles(view):
        assert again.view_of(handle) in messages
        assert again.fork().view_of(handle) == again.view_of(handle)
        assert asyncio.run(again.aview_of(handle)) == again.view_of(handle)


@LIMITS
@pytest.mark.parametrize("history", [True, False])
def test_a_handle_survives_a_snapshot(history: bool, options: Any, size: int) -> None:
    """As long as the snapshot has the message."""
    chat = session(**options)
    chat.extend(steps(12, size))
    view = chat.messages()
    restored = Session.restore(chat.snapshot(history=history), counter=WORDS)
    assert restored.messages() == view
    assert [restored.view_of(one) for one in handles(view)] == [chat.view_of(one) for one in handles(view)]


@LIMITS
@pytest.mark.parametrize("background", [False, True])
def test_a_handle_survives_a_summary_and_its_undo(options: Any, size: int, background: bool) -> None:
    """The summary is made of what was in view; undone, the messages are shown as before."""
    told: list[Any] = []

    def gist(messages: list[Any]) -> str:
        told.extend(messages)
        return "steps were made"

    chat = session(summarizer=gist, background=background, **options)
    chat.extend([*steps(3, size), LATER])
    known = handles(chat.messages())
    assert known
    for message in steps(20, size)[9:]:
        chat.add(message)
        chat.drain()
    assert chat.summary is not None
    assert max(WORDS.count_text(one["content"] or "") for one in told) <= 100
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


def test_recall_finds_the_words_of_what_was_cut_out_of_a_result_in_view() -> None:
    """Whoever ranks, awaited or not; not the words that the view shows of it, nor what it shows whole."""
    for ranker in (None, lambda query, messages: [1.0] * len(messages)):
        chat = session(ranker=ranker)
        long = f"begin {words(60)} kayak {words(60)} end"
        chat.extend([user("key?"), call("a"), result("a", long), call("b"), result("b", "a short kayak")])
        shown = str(chat.messages())
        assert ("begin" in shown, shown.count("kayak")) == (True, 1)
        event = list(chat.history())[2]
        assert chat.recall("Where is the kayak?") == asyncio.run(chat.arecall("kayak")) == [event]
        assert long in chat.recall_tool()(query="kayak")
        assert chat.recall("begin short") == []


# -- the option


def test_the_share_may_be_changed_when_the_session_is_opened_again(tmp_path: Path) -> None:
    """Then all is counted again; a view of an earlier version is as it was. "auto" is not 0.25."""
    store = SQLiteStore(tmp_path / "chats.db")
    chat = session(store=store, id="one")
    chat.extend(steps(3, 110))
    before, version = chat.messages(), chat.version
    for ratio, largest in ((0.2, 80), (None, 111), (0.25, 100), ("auto", 111), (0.25, 100), (0.1, 40)):
        again = Session(store=store, id="one", counter=WORDS, max_result_ratio=ratio)
        again.add(user("and?"))
        view = again.messages()
        assert max(WORDS.count_text(one["content"] or "") for one in view) == largest
        assert again.token_count == WORDS.count(view)
        assert again.view_at(version) == before


def test_the_budget_may_be_changed_when_a_session_is_opened_again(tmp_path: Path) -> None:
    """What no view could hold goes by the one in force, and all is counted again."""
    store = SQLiteStore(tmp_path / "chats.db")
    Session(1_000, counter=WORDS, store=store, id="one").extend(steps(1, 450))
    for budget, largest in ((400, 100), (1_000, 451), (440, 110)):
        again = Session(budget, store=store, id="one", counter=WORDS)
        again.add(user("and?"))
        view = again.messages()
        assert largest - 10 < max(WORDS.count_text(one["content"] or "") for one in view) <= largest
        assert again.token_count == WORDS.count(view)


@LIMITS
def test_a_smaller_budget_leaves_the_share_as_it_was(options: Any, size: int) -> None:
    """It is of the budget that the session was made with: no view changes for it."""
    chat = session(**options)
    chat.extend([*steps(3, size), LATER])
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


@pytest.mark.parametrize("cap", [400, None])
@pytest.mark.parametrize("more", [0, 1])
def test_in_a_context_a_result_is_held_to_the_most_that_the_history_may_have(
    cap: int | None, more: int
) -> None:
    """Half of the cap of its block, or of the budget: what the other blocks hold may come to be less."""
    size, is_cut = (cap or 800) // 2 + more, bool(more)
    for other in (5, 300):
        context = Context(800, counter=WORDS).add("system", words(other), priority=9)
        context.add("history", None, max_tokens=cap)
        chat = Session(context=context)
        chat.extend([user("go"), call("a"), result("a", words(size)), LATER])
        assert bool(handles(chat.messages())) == is_cut


def test_a_session_that_gets_a_context_counts_by_the_room_there(tmp_path: Path) -> None:
    """What was small in its own budget passes that of the history there."""
    store = SQLiteStore(tmp_path / "chats.db")
    Session(2_000, counter=WORDS, store=store, id="one").extend(steps(1, 450))
    context = Context(2_000, counter=WORDS).add("history", None, max_tokens=400)
    again = Session(store=store, id="one", context=context, allow_missing=True)
    again.add(user("and?"))
    assert len(handles(again.messages())) == 1
    assert again.token_count == WORDS.count(again.messages())


@pytest.mark.parametrize("ratio", [0, 1.5, -0.5, "half", "none", True])
def test_a_share_that_is_none_is_refused(ratio: Any) -> None:
    """When the session is made; the error names what else there is."""
    with pytest.raises(ConfigurationError, match=r"max_result_ratio must be a number above 0 .* 'auto'"):
        session(max_result_ratio=ratio)


def test_a_handle_of_no_message_is_an_error() -> None:
    """A typed one."""
    chat = session()
    chat.add(user("hi"))
    with pytest.raises(UnknownNameError):
        chat.view_of("nothing")
