"""What of an event can be found, by which words, and in which order."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.stores import (
    AppendRequest,
    Event,
    MemoryStore,
    SearchRequest,
    query_terms,
    search_terms,
    searchable_text,
)


def _found(texts: list[str], terms: tuple[str, ...], limit: int = 9) -> list[int]:
    """Say which of some messages are found, by their versions; every store answers as this one does."""
    store = MemoryStore()
    events = [
        Event(id=str(at), kind="message", time=0.0, data={"message": {"content": text}})
        for at, text in enumerate(texts, 1)
    ]
    store.append(AppendRequest(session="s", expected_version=0, events=events))
    return [event.version for event in store.search(SearchRequest(session="s", terms=terms, limit=limit))]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("The cat, the CAT.", "the cat", id="each-once-in-order-without-case"),
        pytest.param("find_heron-2x 3.5", "find heron 2x 3 5", id="words-of-letters-and-digits"),
        pytest.param("Straße STRASSE", "strasse", id="casefold"),
        pytest.param("ﬁne ①", "fine 1", id="compatibility-forms"),
        pytest.param("e\u0301t\u00e9", "été", id="composed"),
        pytest.param("naïve_café", "naïve café", id="not-at-accents"),
        pytest.param("नमस्ते दुनिया", "नमस्ते दुनिया", id="marks-belong-to-words"),
        pytest.param("١٢ a", "١٢ a", id="digits-of-other-scripts"),
        pytest.param("天", "天", id="one-character"),
        pytest.param("北京天", "北 京 天 北京 京天", id="characters-and-pairs"),
        pytest.param("在iPhone上", "在 iphone 上", id="scripts-mixed"),
        pytest.param("北京，天", "北 京 北京 天", id="no-pair-across-a-comma"),
        pytest.param("かな・カナ", "か な かな カ ナ カナ", id="the-middle-dot-is-none"),
        pytest.param("날씨가", "날 씨 가 날씨 씨가", id="korean"),
        pytest.param("ไทย", "ไ ท ย ไท ทย", id="thai"),
        pytest.param("𠮷野", "𠮷 野 𠮷野", id="beyond-the-bmp"),
        pytest.param("\ud800 a\0b 👩‍👩‍👧 \u0301", "a b", id="no-words"),
    ],
)
def test_terms(text: str, terms: str) -> None:
    """Of a text that is found."""
    assert " ".join(search_terms(text)) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("the CAT the", "the cat", id="words"),
        pytest.param("天", "天", id="one-character"),
        pytest.param("天气", "天气", id="two"),
        pytest.param("北京天气 in 上", "北京 京天 天气 in 上", id="pairs-only"),
    ],
)
def test_a_query_asks_for_pairs_rather_than_characters(text: str, terms: str) -> None:
    """A character alone is asked for only where it stands alone."""
    assert " ".join(query_terms(text)) == terms


def test_a_long_word_is_found_by_its_first_64_characters() -> None:
    """On both sides, so that it is found at all; 64 is within one word and not one over."""
    assert search_terms("a" * 64) == ("a" * 64,)
    assert search_terms("a" * 65) == query_terms("a" * 99) == ("a" * 64,)
    assert search_terms("ä" * 65) == ("ä" * 64,)


@given(st.text())
def test_what_is_asked_for_is_there(text: str) -> None:
    """The query of a text finds the text; each term is a term by itself, so that stores may check it."""
    terms = search_terms(text)
    assert set(query_terms(text)) <= set(terms)
    assert all(term in search_terms(term) for term in terms)
    assert len(set(terms)) == len(terms)
    assert not any(character.isspace() or character == "_" for term in terms for character in term)


@given(st.text(alphabet=st.characters(codec="ascii")), st.text(alphabet=st.characters(codec="ascii")))
def test_the_quick_way_for_ascii_is_the_same(left: str, right: str) -> None:
    """A letter beyond ASCII that stands apart changes nothing about the others."""
    text = f"{left} {right}"
    assert search_terms(f"{text} é") == tuple(dict.fromkeys((*search_terms(text), "é")))


@pytest.mark.parametrize("term", ["a b", "Cat", "", "\ud800", "天气天", '"'])
def test_a_term_that_no_event_can_have_finds_nothing(term: str) -> None:
    """And takes nothing away from the others."""
    texts = ["Cat a b 天气天", "cat"]
    assert _found(texts, (term,)) == []
    assert _found(texts, (term, "cat", "天气")) == [1, 2]


def _message(message: Any, kind: str = "message") -> Event:
    return Event(id="e", kind=kind, time=0.0, data={"message": message})


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


def test_terms_are_counted_once_each() -> None:
    """However often they stand there, and however often they are asked for."""
    texts = ["cat 天气", "cat cat cat", "bird"]
    assert _found(texts, ("cat", "天气", "bird", "bird", "bird")) == [1, 3, 2]


@pytest.mark.parametrize(
    ("terms_of", "limit", "versions"),
    [
        pytest.param([1, 1, 1], 9, [3, 2, 1], id="newer-first"),
        pytest.param([3, 1, 2, 2], 9, [1, 4, 3, 2], id="more-terms-first"),
        pytest.param([0, 1], 9, [2], id="none-is-not-found"),
        pytest.param([1, 1, 1], 2, [3, 2], id="at-most"),
        pytest.param([1], 0, [], id="no-limit-left"),
        pytest.param([0], 5, [], id="nothing"),
    ],
)
def test_the_order_of_what_is_found(terms_of: list[int], limit: int, versions: list[int]) -> None:
    """More distinct terms first, then newer first."""
    asked = ("heron", "otter", "newt")
    texts = [" ".join(("other", *asked[:count])) for count in terms_of]
    assert _found(texts, asked, limit) == versions


def test_no_letter_is_lost() -> None:
    """Every character that Unicode calls a letter or a digit is part of some term."""
    lost = [
        chr(code)
        for code in range(0x30000)
        if (chr(code).isalnum() and unicodedata.normalize("NFKC", chr(code)).isalnum())
        and not search_terms(chr(code))
    ]
    assert lost == []
