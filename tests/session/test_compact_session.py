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


def test_what_a_reference_led_to_is_written_out_once_it_is_gone() -> None:
    """A redacted, an undone and a popped result are referred to no more."""
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
    store, compact = MemoryStore(), Compact(json=None, min_lines=2, min_tokens=0, exclude_tools=["grep"])
    session = Session(2_500, counter=COUNTER, compact=compact, store=store, id="s")
    session.extend(_reads("openai_chat", 9))
    again = Session.open(store, "s", counter=COUNTER)
    assert again.messages() == session.messages()
    assert any("as in call_" in text for text in _texts(again))
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


@pytest.mark.parametrize("wrong", ["yes", 1, {"repeat": True}])
def test_a_wrong_option_is_refused_with_what_to_write(wrong: Any) -> None:
    """Nothing begins with it."""
    with pytest.raises(ConfigurationError, match=r"compact must be True, False or a Compact"):
        Session(9_000, compact=wrong)
