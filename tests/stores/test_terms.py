"""What of an event can be found, by which words, and in which order."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.relevance import question_terms, text_terms
from trimtab.stores import AppendRequest, Event, MemoryStore, SearchRequest, searchable_text


def _found(texts: list[str], terms: tuple[str, ...], limit: int = 9) -> list[int]:
    """Say which of some messages are found, by their versions; every store answers as this one does."""
    store = MemoryStore()
    events = [
        Event(id=str(at), kind="message", time=0.0, data={"message": {"content": text}})
        for at, text in enumerate(texts, 1)
    ]
    store.append(AppendRequest(session="s", expected_version=0, events=events))
    return [event.version for event in store.search(SearchRequest(session="s", terms=terms, limit=limit))]


@pytest.mark.parametrize("term", ["a b", "Cat", "", "\ud800", "天气天", '"', "a\0b"])
def test_a_term_that_no_event_can_have_finds_nothing(term: str) -> None:
    """And takes nothing away from the others."""
    texts = ["Cat a b 天气天", "cat"]
    assert _found(texts, (term,)) == []
    assert _found(texts, (term, "cat", "天气")) == _found(texts, ("cat", "天气")) == [1, 2]


def _message(message: Any, kind: str = "message") -> Event:
    return Event(id="e", kind=kind, time=0.0, data={"message": message})


def _fact(data: dict[str, Any]) -> Event:
    return Event(id="f", kind="fact", time=0.0, data=data)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param({"role": "user", "content": "hello"}, "hello", id="content"),
        pytest.param({"role": "user", "content": None, "name": "Ann"}, "Ann", id="name"),
        pytest.param(
            {"content": [{"type": "text", "text": "one"}, "two", {"type": "x", "n": 3.5, "b": True}]},
            "one two 3.5",
            id="parts-and-numbers",
        ),
        pytest.param(
            {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            "f {}",
            id="calls",
        ),
        pytest.param({"tool_call_id": "c1", "content": "done", "media_type": "x"}, "done", id="no-ids"),
        pytest.param({"content": '{"q": "\\u5929\\u6c14"}'}, '{"q": "天气"}', id="escaped-json"),
        pytest.param({"content": ' ["\\u5929"]'}, '["天"]', id="escaped-json-list"),
        pytest.param({"content": '{"q": "\\u5929'}, '{"q": "\\u5929', id="broken-json"),
        pytest.param({"content": '{"a":1,  "b":2}'}, '{"a":1,  "b":2}', id="plain-json-as-it-is"),
        pytest.param({"content": "say \\u5929"}, "say \\u5929", id="no-json"),
        pytest.param({"url": "data:image/png;base64,aGVsbG8="}, "", id="data-url"),
        pytest.param({"url": "https://example.org/data:,x"}, "https://example.org/data:,x", id="other-url"),
        pytest.param({"content": "A" * 200}, "", id="encoded"),
        pytest.param({"content": "A" * 199}, "A" * 199, id="not-so-long"),
        pytest.param({"content": "A" * 200 + " and words"}, "A" * 200 + " and words", id="words-behind"),
        pytest.param({"content": "+/" * 150 + "==\n"}, "", id="encoded-with-its-end"),
        pytest.param("just text", "just text", id="no-mapping"),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_what_of_a_message_can_be_found(message: Any, text: str) -> None:
    """Its texts and numbers in their order; not roles, types, ids, nor what is encoded."""
    assert searchable_text(_message(message)).replace("\n", " ") == text


def test_only_messages_are_found() -> None:
    """A summary or a note is the session's own affair."""
    assert searchable_text(_message("hello", kind="summary")) == ""


def test_a_message_nested_deeper_than_the_stack_is_read() -> None:
    """Whoever sent it."""
    message: Any = "deep"
    for _ in range(50_000):
        message = [message]
    assert searchable_text(_message(message)) == "deep"
    while isinstance(message, list):  # or freeing it would need the stack
        message = message.pop()


def test_a_term_is_asked_for_once() -> None:
    """However often a request says it."""
    texts = ["a cat", "x", "y", "z", "a bird"]
    assert _found(texts, ("bird", "cat", "cat", "cat")) == _found(texts, ("bird", "cat"))


def test_what_finds_a_fact_beside_its_text_is_one_word_each() -> None:
    """And stays as it is, so that it can be looked for: the same for the same text, without case."""
    seen: set[str] = set()
    for at in range(1, 2_000):
        facts = [{"text": text, "supersedes": at} for text in (f"Order {at}", f"order {at}.")]
        said, again = (searchable_text(_fact(fact)) for fact in facts)
        marks = said.split("\n")[1:]
        assert marks == again.split("\n")[1:]
        assert list(text_terms(said)) == ["order", str(at), *marks]
        assert len(marks) == 2
        assert all(mark[0].isdigit() for mark in marks)  # of no such word a stem is taken
        seen.update(marks)
    assert len(seen) == 2 * 1_999
    overwritten = {"text": "", "supersedes": 7, "stale": True}
    assert len(searchable_text(_fact(overwritten)).split()) == 1


@given(st.text())
def test_what_is_asked_for_is_there(text: str) -> None:
    """The terms of a text that is asked find that text, and none is refused by a store."""
    asked = question_terms(text)
    if asked:
        assert _found([text], asked) == [1]
    assert not any(character.isspace() for term in text_terms(text) for character in term)


def test_no_letter_is_lost() -> None:
    """Every character that Unicode calls a letter or a digit is part of some term."""
    lost = [
        chr(code)
        for code in range(0x30000)
        if (chr(code).isalnum() and unicodedata.normalize("NFKC", chr(code)).isalnum())
        and not list(text_terms(chr(code)))
    ]
    assert lost == []
