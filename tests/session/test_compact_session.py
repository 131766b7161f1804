"""Results that views of a session write once, whatever becomes of them (SPEC E3)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.result_chats import FORMS, exchange, results, said
from trimtab import ConfigurationError, Context, Session
from trimtab.compact import Compact, Kind, expand
from trimtab.counting import CharCounter
from trimtab.stores import MemoryStore

SOURCE = "\n".join(f"def test_number_{n}(): assert parse('{n}') == {n}" for n in range(20))
COUNTER = CharCounter()


def _reads(form: str, count: int) -> list[dict[str, Any]]:
    """Read the same file again and again."""
    chat = [said(form, "user", "Why does it fail?")]
    for n in range(count):
        chat += exchange(form, [(f"call_{n}", "read", f"{SOURCE}\nread {n}")])
    return chat


def _texts(session: Session, form: str = "openai_chat") -> list[str]:
    return [text for _, _, text in results(form, session.messages())]


@pytest.mark.parametrize("form", FORMS)
def test_a_view_shows_repeats_once_and_the_log_keeps_all_of_them(form: str) -> None:
    """The first result is whole, and later ones refer to it; each message of the log is as it came."""
    session = Session(9_000, counter=COUNTER, format=form, compact=True)
    chat = _reads(form, 3)
    session.extend(chat)
    assert _texts(session, form) == [
        f"{SOURCE}\nread 0",
        "[lines 1-20 as in call_0 from 1]\nread 1",
        "[lines 1-20 as in call_0 from 1]\nread 2",
    ]
    assert expand(session.messages(), format=form) == chat
    assert [event.message for event in session.history()] == chat


def test_nothing_leaves_before_what_is_sent_passes_the_budget() -> None:
    """Eight reads of one file have room where four as they are have none."""
    whole = Session(9_000, counter=COUNTER)
    whole.extend(_reads("openai_chat", 4))
    needed = whole.token_count
    session = Session(needed, counter=COUNTER, compact=True)
    session.extend(_reads("openai_chat", 8))
    assert len(_texts(session)) == 8
    assert session.status().hidden_messages == 0
    plain = Session(needed, counter=COUNTER)
    plain.extend(_reads("openai_chat", 8))
    assert len(_texts(plain)) < 4


def test_the_count_of_a_session_is_what_the_report_of_its_view_says() -> None:
    """Also where results are written: no other number is told than what is sent."""
    session = Session(9_000, counter=COUNTER, compact=True)
    for message in _reads("openai_chat", 6):
        session.add(message)
        report = session.fit().report
        assert session.token_count == report.tokens_after == session.token_breakdown.total
    assert report.written is not None
    assert [(one.index, one.source) for one in report.written.references] == [
        (index, 2) for index in range(4, 13, 2)
    ]


def test_what_a_reference_led_to_is_written_out_once_it_is_redacted() -> None:
    """It is referred to no more, but what stands in its place."""
    chat = _reads("openai_chat", 3)
    session = Session(9_000, counter=COUNTER, compact=True)
    first = session.extend(chat)[2]
    session.redact(first)
    assert _texts(session) == [
        "[redacted]",
        f"{SOURCE}\nread 1",
        "[lines 1-20 as in call_1 from 1]\nread 2",
    ]


def test_a_result_that_is_pinned_is_sent_as_it_is() -> None:
    """And others may refer to it, as long as it stands before them."""
    session = Session(9_000, counter=COUNTER, compact=True)
    events = session.extend(_reads("openai_chat", 3))
    session.pin(events[4])
    assert _texts(session)[1] == f"{SOURCE}\nread 1"
    session.unpin(events[4])
    assert _texts(session)[1] == "[lines 1-20 as in call_0 from 1]\nread 1"


def test_another_worker_writes_the_same_view() -> None:
    """The log has the option, all of it."""
    compacts = (
        Compact(json=None),
        Compact(repeats=False),
        Compact(min_lines=21),
        Compact(min_tokens=1_000),
        Compact(exclude_tools=["read"]),
    )
    chat = [*_reads("openai_chat", 3), *exchange("openai_chat", [("j", "look", '{ "a": [ 1, 2 ] }')])]
    views = []
    for compact in (Compact(), *compacts):
        store = MemoryStore()
        session = Session(2_500, counter=COUNTER, compact=compact, store=store, id="s")
        session.extend(chat)
        assert Session.open(store, "s", counter=COUNTER).messages() == session.messages()
        views.append(_texts(session))
    assert [view == views[0] for view in views] == [True, False, False, False, False, False]
    store = MemoryStore()
    Session(2_500, counter=COUNTER, compact=True, store=store, id="s").extend(_reads("openai_chat", 9))
    off = Session(store=store, id="s", counter=COUNTER, compact=None)
    assert off.token_count <= 2_500
    assert not any("as in call_" in text for text in _texts(off))


def test_kinds_are_passed_again_to_who_opens_a_session() -> None:
    """No log can store a function, and none is forgotten in silence."""
    kind = Kind(name="pytest", match=r"^def test", write=lambda text: "20 tests")
    store = MemoryStore()
    session = Session(9_000, counter=COUNTER, compact=Compact(kinds=[kind]), store=store, id="s")
    session.extend(_reads("openai_chat", 1))
    assert _texts(session) == ["20 tests"]
    with pytest.raises(ConfigurationError, match=re.escape("was made with compact (pytest)")):
        Session.open(store, "s", counter=COUNTER).messages()
    passed = Session.open(store, "s", counter=COUNTER, compact=Compact(kinds=[kind]))
    assert _texts(passed) == ["20 tests"]
    without = Session.open(store, "s", counter=COUNTER, allow_missing=True)
    assert _texts(without) == [f"{SOURCE}\nread 0"]
    restored = Session.restore(session.snapshot(), counter=COUNTER, compact=Compact(kinds=[kind]))
    assert _texts(restored) == ["20 tests"]


def test_a_session_in_a_context_goes_by_what_that_says() -> None:
    """The history is written, and the report of the whole request tells what of it."""
    context = Context(9_000, counter=COUNTER, compact=True)
    context.add("notes", "Be careful.", pinned=True)
    session = Session(context=context)
    session.extend(_reads("openai_chat", 3))
    assert _texts(session)[1:] == [f"[lines 1-20 as in call_0 from 1]\nread {n}" for n in (1, 2)]
    written = session.fit().report.written
    assert written is not None
    assert [(one.index, one.source) for one in written.references] == [(5, 3), (7, 3)]
    with pytest.raises(ConfigurationError, match=re.escape("Context(compact=True)")):
        Session(context=context, compact=True)


def test_a_block_of_the_history_that_says_no_is_sent_as_it_is() -> None:
    """Its word goes before that of the context."""
    context = Context(9_000, counter=COUNTER, compact=True)
    context.add("history", None, compact=False)
    session = Session(context=context)
    session.extend(_reads("openai_chat", 2))
    assert _texts(session) == [f"{SOURCE}\nread 0", f"{SOURCE}\nread 1"]


def test_what_a_view_writes_shorter_counts_as_in_view() -> None:
    """A search in what is out of view finds no result that is in view, whatever line it is written as."""
    session = Session(9_000, counter=COUNTER, compact=True)
    session.extend(_reads("openai_chat", 3))
    assert session.recall("test_number_7") == []


def test_a_switch_says_what_is_sent_before_and_after() -> None:
    """Both as the views write it."""
    session = Session(9_000, counter=COUNTER, compact=True, max_result_ratio=None)
    session.extend(_reads("openai_chat", 8))
    plan = session.plan(budget=session.token_count + 50)
    assert plan.verdict == "fits"
    assert plan.leaving_messages == 0
    assert plan.tokens_before == plan.tokens_after == session.token_count


@pytest.mark.parametrize("wrong", ["yes", 1, {"json": "table"}, {}])
def test_a_wrong_option_is_refused_with_what_to_write(wrong: Any) -> None:
    """Nothing begins with it."""
    with pytest.raises(ConfigurationError, match=r"compact must be True, False or a Compact"):
        Session(9_000, compact=wrong)


def test_a_version_is_shown_as_it_was_then() -> None:
    """Whatever is asked for now: the log says how results were written."""
    store = MemoryStore()
    session = Session(9_000, counter=COUNTER, compact=True, store=store, id="s")
    version = session.extend(_reads("openai_chat", 3))[-1].version
    then = session.messages()
    plain = Session(store=store, id="s", counter=COUNTER, compact=None)
    plain.add(said("openai_chat", "user", "And now?"))
    assert plain.messages()[: len(then)] != then
    assert plain.fit(at=version).messages == then
    assert plain.fork(at=version, id="f").messages() == then


def test_results_in_anchors_are_shown_as_they_are_and_may_be_referred_to() -> None:
    """They are in every view, word for word; the count of the session knows both."""
    call, found = exchange("openai_chat", [("kept", "read", f"{SOURCE}\nkept")])
    anchors = [said("openai_chat", "user", "Look here first."), call, found]
    session = Session(2_000, counter=COUNTER, compact=True, anchors=anchors, max_anchor_tokens=1_000)
    session.extend(_reads("openai_chat", 2))
    assert _texts(session) == [f"{SOURCE}\nkept"] + [
        f"[lines 1-20 as in kept from 1]\nread {n}" for n in range(2)
    ]
    assert session.token_count == session.fit().report.tokens_after


def test_a_view_that_grows_where_it_is_written_still_evicts_on_the_record() -> None:
    """A tool's own lines that look like references are escaped: what has no room then goes out as ever."""
    lines = "\n".join(["[lines 1-3 as in call_1 from 1]"] * 30)
    chat = [said("openai_chat", "user", "Look.")]
    for n in range(4):
        chat += exchange("openai_chat", [(f"x{n}", "read", f"zebra {n}\n{lines}")])
    whole = Session(100_000, counter=CharCounter(1))
    whole.extend(chat)
    gone = list[str]()
    hooks = {"on_evict": lambda events, reason: gone.append(reason)}
    session = Session(whole.token_count + 10, counter=CharCounter(1), compact=True, hooks=hooks)
    session.extend(chat)
    report = session.fit().report
    assert report.evicted_message_count == 0
    assert report.tokens_after == session.token_count <= whole.token_count + 10
    assert gone[0] == "budget"
    assert session.status().hidden_messages > 0


def test_a_result_that_is_cut_takes_no_part_in_references() -> None:
    """Its lines are not those of the tool any more, by whose numbers a model would read them again."""
    long = "\n".join(f"line {n} of the big file, which is long enough to be cut" for n in range(200))
    session = Session(1_500, counter=COUNTER, compact=True, max_result_ratio=0.2)
    chat = [said("openai_chat", "user", "Read it.")]
    for n in range(2):
        chat += exchange("openai_chat", [(f"c{n}", "read", f"{long}\nread {n}")])
    session.extend([*chat, said("openai_chat", "assistant", "Both are long.")])
    assert all("cut by trimtab" in text and "as in" not in text for text in _texts(session))


def test_what_a_kind_drops_is_found_by_a_search() -> None:
    """A lossy kind leaves a marker, and what is not in view can be recalled."""
    tail = Kind(name="tail", tools=["read"], write=lambda text: text[-20:], lossy=True)
    session = Session(9_000, counter=COUNTER, compact=Compact(kinds=[tail]))
    events = session.extend(_reads("openai_chat", 1))
    assert "all of it: result of call_0" in _texts(session)[0]
    assert [event.id for event in session.recall("test_number_7")] == [events[2].id]


def test_a_kind_that_raises_leaves_the_result_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    """What is in a log must be shown; the log of the program says what failed."""
    broken = Kind(name="broken", tools=["read"], write=lambda text: str(1 / 0))
    session = Session(9_000, counter=COUNTER, compact=Compact(kinds=[broken]))
    session.extend(_reads("openai_chat", 1))
    assert _texts(session) == [f"{SOURCE}\nread 0"]
    assert "kind 'broken' failed" in caplog.text


def test_a_cut_goes_by_what_is_sent() -> None:
    """Where all of it takes less than a cut would leave, nothing goes; else about half of the room stays."""
    session = Session(9_000, counter=COUNTER, compact=True)
    session.extend(_reads("openai_chat", 8))
    assert session.cut() == 0
    assert session.status().pending_messages == 0
    small = Session(600, counter=COUNTER, compact=True, max_result_ratio=None)
    for message in _reads("openai_chat", 40):
        before = small.token_count
        small.add(message)
        if small.token_count < before:
            assert 0.4 * 600 <= small.token_count <= 0.75 * 600
            break
    else:
        pytest.fail("it was never cut")


def test_a_plan_goes_by_the_counter_it_is_asked_for() -> None:
    """Nothing changes where everything has room: so many tokens before as after."""
    session = Session(9_000, counter=COUNTER, compact=True, max_result_ratio=None)
    session.extend(_reads("openai_chat", 6))
    plan = session.plan(budget=9_000, counter=CharCounter(1))
    assert plan.tokens_before == plan.tokens_after > session.token_count
