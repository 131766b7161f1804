"""A redaction touches what repeats a message and no more, by ids or by a pattern, and says what (E11)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user, words
from trimtab import Session
from trimtab.errors import ConfigurationError, StoreUnavailableError, UnknownNameError
from trimtab.session import Redaction
from trimtab.stores import Appended, AppendRequest, Event, MemoryStore, Retry, SQLiteStore, Store
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()

SECRET = "My password is swordfish, do not tell."


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Where a session is kept."""
    with MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "chats.db") as made:
        yield made


class Summarizer:
    """Repeats what it is told to, and counts its calls."""

    def __init__(self, *says: str) -> None:
        self.says = list(says)
        self.calls = 0

    def __call__(self, messages: Sequence[Any]) -> str:
        """Say the next text; the last one for good."""
        self.calls += 1
        return self.says.pop(0) if len(self.says) > 1 else self.says[0]


def chat(
    summarizer: Any, count: int = 60, *, store: Store | None = None, **options: Any
) -> tuple[Session, Event]:
    """A session whose first message is the secret, and by now is summarized."""
    session = Session(
        100,
        counter=WORDS,
        summarizer=summarizer,
        must_keep=None,
        store=store or MemoryStore(),
        id="s",
        **options,
    )
    event = session.add(user(SECRET))
    for at in range(count):
        session.add(user(f"{at:03} {words(9)}"))
    return session, event


def log_of(session: Session) -> str:
    """All the log says."""
    return json.dumps([[event.data, event.state] for event in session.history(kinds=None)])


# -- A: what it costs


def test_summaries_that_do_not_repeat_it_stay(store: Store) -> None:
    """The one in force, and those before it: nothing waits again, and nobody is asked."""
    summarizer = Summarizer("They talked about boats.")
    session, secret = chat(summarizer, store=store)
    before, calls = session.status(), summarizer.calls
    done = session.redact(secret)
    assert session.summary == "They talked about boats."
    assert (done.mended, done.stale, done.facts, done.left) == ((), (), (), ())
    assert session.status().pending_messages == before.pending_messages
    for at in range(3):
        session.add(user(f"more {at}"))
    assert summarizer.calls == calls
    assert "swordfish" not in log_of(session)
    assert (
        Session(store=store, id="s", counter=WORDS, summarizer=summarizer, must_keep=None).summary
        == session.summary
    )


def test_a_summary_that_repeats_it_is_made_again(store: Store) -> None:
    """Where few repeat it: they are taken back, and what they covered is summarized again."""
    summarizer = Summarizer("Boats.", "The password is swordfish.", "Boats again.")
    session = Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, store=store, id="s")
    while summarizer.calls < 1:
        session.add(user(words(10)))
    secret = session.add(user(SECRET))
    while summarizer.calls < 2:
        session.add(user(words(10)))
    assert session.summary == "The password is swordfish."
    done = session.redact(secret)
    assert [event.data["text"] for event in done.stale] == [""]
    assert session.summary == "Boats."
    assert session.status().pending_messages > 0
    session.summarize()
    assert session.summary == "Boats again."
    assert "swordfish" not in log_of(session)


def test_summaries_that_repeat_it_are_mended_where_they_are_many(store: Store) -> None:
    """The words are overwritten in each of them, and the rest of it goes on; nobody is asked."""
    summarizer = Summarizer("A boat is wanted; password: swordfish; 17 oars.")
    session, secret = chat(summarizer, store=store)
    before, calls = session.status(), summarizer.calls
    done = session.redact(secret)
    assert session.summary == "A boat is wanted; [redacted]; 17 oars."
    assert (len(done.mended), done.stale) == (calls, ())
    assert (session.status().pending_messages, summarizer.calls) == (before.pending_messages, calls)
    assert "swordfish" not in log_of(session)
    assert WORDS.count(session.messages()) <= 100
    session.undo()
    assert session.summary == "A boat is wanted; [redacted]; 17 oars."


def test_a_summary_of_which_nothing_is_left_is_made_again_in_a_bounded_number_of_calls() -> None:
    """Not all that were ever written."""
    summarizer = Summarizer("swordfish")
    session, secret = chat(summarizer, 200)
    calls = summarizer.calls
    assert calls > 20
    done = session.redact(secret)
    assert 1 <= len(done.stale) <= 4
    summarizer.says = ["boats"]
    for at in range(12):
        session.add(user(f"{at:03} {words(9)}"))
    session.summarize()
    assert session.summary == "boats"
    assert "swordfish" not in log_of(session)


@pytest.mark.parametrize("mode", ["incremental", "rolling", "anchored"])
@pytest.mark.parametrize("count", [15, 90])
def test_every_mode_goes_on_after_it(mode: Any, count: int) -> None:
    """A summary that became an anchor repeats it, and so do those beside it."""
    summarizer = Summarizer("they said swordfish once")
    session, secret = chat(summarizer, count, summary_mode=mode)
    session.redact(secret)
    assert "swordfish" not in log_of(session)
    summarizer.says = ["boats"]
    for at in range(20):
        session.add(user(f"{at:03} {words(9)}"))
        assert WORDS.count(session.messages()) <= 100
        assert session.messages()[-1]["content"].startswith(f"{at:03}")
    again = Session.restore(session.snapshot(), counter=WORDS, summarizer=summarizer)
    assert again.messages() == session.messages()


@pytest.mark.parametrize(
    ("says", "again", "mended"),
    [
        (["swordfish"], "A", ""),
        (["swordfish", "one"], "AS", ""),
        (["swordfish", "one", "two", "three"], "ASSS", ""),
        (["swordfish", "one", "two", "three", "four"], "", "A"),
        (["anchor", "swordfish"], "S", ""),
        (["anchor", "one", "swordfish"], "S", ""),
        (["anchor", "swordfish", "two"], "", "S"),
    ],
)
def test_a_summary_that_is_the_anchor_is_made_again_with_all_that_stand_beside_it(
    says: list[str], again: str, mended: str, store: Store
) -> None:
    """It stays where one of those repeats the words, and where they are many."""
    summarizer = Summarizer(*says)
    session = Session(
        100,
        counter=WORDS,
        summarizer=summarizer,
        must_keep=None,
        summary_mode="anchored",
        store=store,
        id="s",
    )
    secret = session.add(user(SECRET))
    while summarizer.calls < len(says):
        session.add(user(words(10)))
    anchor, *_ = session.history(kinds=("summary",))
    done = session.redact(secret)

    def kinds(events: Sequence[Event]) -> str:
        return "".join("A" if event.id == anchor.id else "S" for event in events)

    assert (kinds(done.stale), kinds(done.mended)) == (again, mended)
    assert "swordfish" not in log_of(session)
    summarizer.says = ["anew"]
    session.summarize()
    shown = json.dumps(session.messages())
    assert ("anew" in shown, says[0] in shown) == (bool(again), again in ("S", "") and says[0] == "anchor")


@pytest.mark.parametrize("mode", ["incremental", "anchored"])
def test_a_number_that_another_message_says_as_well_is_left_and_told(mode: Any) -> None:
    """Of the summary in force, and of the anchor; a word alone is not worth telling."""
    summarizer = Summarizer("The code is 4711.", "They like boats.")
    session = Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, summary_mode=mode)
    secret = session.add(user("My door has the code 4711, I like it."))
    session.add(user("The code is 4711, they like it."))
    while summarizer.calls < (1 if mode == "incremental" else 2):
        session.add(user(words(10)))
    done = session.redact(secret)
    assert [event.data["text"] for event in done.left] == ["The code is 4711."]
    assert (done.mended, done.stale) == ((), ())


def test_a_number_that_is_overwritten_is_not_left() -> None:
    """What is told is told of the summary as it is now."""
    session, secret = chat(Summarizer("A boat for 4711."), 60)
    session.redact(secret)
    card = session.add(user("The number is 4711."))
    for at in range(60):
        session.add(user(f"{at:03} {words(9)}"))
    done = session.redact(card)
    assert session.summary == "A boat for [redacted]."
    assert done.left == ()


def test_a_fact_that_says_a_number_of_another_message_is_left_and_told() -> None:
    """It is in force, and it comes from there; what comes from the message itself is forgotten."""
    extract = facts_of(("Zoe has 4711", 1), ("Ada has 4711", 0), ("Boats have oars", 1))
    session = Session(100, counter=WORDS, fact_extractor=extract, max_fact_tokens=40)
    secret = session.add(user("Ada has 4711 on the door."))
    session.add(user("Zoe has 4711, too, and boats have oars."))
    for at in range(12):
        session.add(user(f"{at:03} {words(9)}"))
    assert session.status().facts == 3
    done = session.redact(secret)
    assert [event.data["text"] for event in done.left] == ["Zoe has 4711"]
    assert [fact.text for fact in session.facts] == ["Zoe has 4711", "Boats have oars"]


def test_what_is_redacted_twice_is_found_nowhere_the_second_time(store: Store) -> None:
    """The mark that stands in its place is no word of anybody, in a message or in a summary."""
    summarizer = Summarizer("A boat is wanted; password: swordfish; 17 oars.")
    session, secret = chat(summarizer, store=store)
    session.redact(secret)
    done = session.redact(secret)
    assert session.summary == "A boat is wanted; [redacted]; 17 oars."
    assert (done.mended, done.stale, done.left) == ((), (), ())


def test_a_message_that_was_redacted_says_nothing_that_another_says() -> None:
    """Its mark has the word, and does not make it a word that the summary may have from there."""
    session = Session(100, counter=WORDS, summarizer=Summarizer("Boats, once redacted."), must_keep=None)
    first, second = session.add(user(SECRET)), session.add(user("It was redacted by Zoe."))
    for at in range(60):
        session.add(user(f"boat {at:03} {words(8)}"))
    session.redact(first)
    session.redact(second)
    assert session.summary == "Boats, once [redacted]."


def test_what_another_message_says_as_well_is_kept(store: Store) -> None:
    """A summary may have it from there, and made again it would say it again."""
    summarizer = Summarizer("Ada likes boats.")
    session = Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, store=store, id="s")
    secret = session.add(user("Ada likes boats and has the PIN 4711."))
    session.add(user("Yes, Ada likes boats."))
    for at in range(30):
        session.add(user(f"{at:03} {words(9)}"))
    done = session.redact(secret)
    assert session.summary == "Ada likes boats."
    assert [event.data["text"] for event in done.left] == ["Ada likes boats."]


@pytest.mark.parametrize(
    ("said", "text", "mended"),
    [
        ("我的名字是王小明，住在北京。", "用户王小明想买一条船。", "用户[redacted]想买一条船。"),
        (
            "Ich heiße Müßig und wohne in Ürzig.",
            "Herr MÜSSIG will ein Boot.",
            "Herr [redacted] will ein Boot.",
        ),
        ("order AB-17 and AB-18", "wants a boat; AB-17 was sent", "wants a boat; [redacted] was sent"),
        ("card 4111 1111 1111 1111", "card: 4111-1111-1111-1111, boat", "[redacted], boat"),
        ("Zoe drowned us", "A boat; Zoe drowned us, and more.", "A boat; [redacted], and more."),
        ("Jo is in Ürzig", "Jo wants a boat.", "Jo wants a boat."),
        (
            "I leave my wife on Monday",
            "A boat. They leave their wife Mondays.",
            "A boat. They [redacted] their [redacted].",
        ),
    ],
)
def test_words_are_found_as_a_model_writes_them(said: str, text: str, mended: str) -> None:
    """In other cases, forms and scripts; what is too short to be told from other words is found in runs."""
    session = Session(100, counter=WORDS, summarizer=lambda _: text, must_keep=None)
    secret = session.add(user(said))
    for _ in range(60):
        session.add(user(f"boat {words(9)}"))
    session.redact(secret)
    assert session.summary == mended


# -- B: where=, and what it says


def test_by_a_pattern(store: Store) -> None:
    """In every message of the log, and in what repeats them; everything else stays."""
    summarizer = Summarizer("A boat for card 4111 1111 1111 1111.")
    session = Session(100, counter=WORDS, summarizer=summarizer, must_keep=None, store=store, id="s")
    first = session.add(user("My card is 4111 1111 1111 1111."))
    for at in range(30):
        session.add(user(f"boat {at:03} {words(8)}"))
    last = session.add(user("Or 4222 2222 2222 2222?"))
    done = session.redact(where=r"\b(\d{4} ?){4}\b")
    assert [event.id for event in done] == [first.id, last.id]
    assert [event.message for event in done] == [user("[redacted]")] * 2
    assert not re.search(r"\d{4} \d{4}", log_of(session))
    assert next(event.message for event in session.history()) == user("[redacted]")


@pytest.mark.parametrize(
    "where",
    [
        "(?i)SWORDFISH",
        re.compile("sword.*sh", re.IGNORECASE),
        lambda event: "sword" in event.message["content"],
    ],
)
def test_by_a_pattern_or_a_function(where: Any) -> None:
    """A text, a compiled pattern, a function of the event."""
    session, secret = chat(Summarizer("boats"), 5)
    assert [event.id for event in session.redact(where=where)] == [secret.id]
    with pytest.raises(UnknownNameError, match="no unredacted message"):
        session.redact(where=where)


def test_what_matches_in_a_summary_is_overwritten_though_no_message_says_it() -> None:
    """A model wrote another number; and what is redacted once is not found again."""
    session, secret = chat(Summarizer("boats, PIN 4999"))
    session.redact(where=r"PIN \d+|swordfish")
    assert session.summary == "boats, [redacted]"
    assert secret.id not in [event.id for event in session.redact(where=lambda event: True)]


def test_a_pattern_is_searched_in_arguments_of_calls_and_in_what_was_popped() -> None:
    """All a message says; not its role, and no id."""
    session = Session(500, counter=WORDS)
    call = {
        "id": "user",
        "type": "function",
        "function": {"name": "look", "arguments": '{"q": "swordf\\u0069sh"}'},
    }
    session.add(user("hi"))
    asked = session.add({"role": "assistant", "content": None, "tool_calls": [call]})
    popped = session.add(user("swordfish"))
    session.pop()
    assert [event.id for event in session.redact(where="swordfish")] == [asked.id, popped.id]
    with pytest.raises(UnknownNameError):
        session.redact(where="user|assistant|function")


WRONG: dict[str, tuple[Callable[[Session], object], str]] = {
    "neither": (lambda one: one.redact(), "either events"),
    "both": (lambda one: one.redact("a", where="b"), "either events"),
    "no pattern": (lambda one: one.redact(where="("), "not a regular expression"),
    "an empty text": (lambda one: one.redact(where="x*"), "matches an empty text"),
    "bytes": (lambda one: one.redact(where=re.compile(b"x")), "not bytes"),  # type: ignore[arg-type]  # wrong
    "a number": (lambda one: one.redact(where=5), "not 5"),  # type: ignore[arg-type]  # wrong
    "an empty list": (lambda one: one.redact([]), "at least one event id"),
}


@pytest.mark.parametrize(("call", "says"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_and_changes_nothing(call: Callable[[Session], object], says: str) -> None:
    """One of the two, and a pattern that means something."""
    session, _ = chat(Summarizer("boats"), 5)
    before = session.snapshot()["events"]
    with pytest.raises(ConfigurationError, match=says):
        call(session)
    assert session.snapshot()["events"] == before


def test_a_function_that_is_async_or_raises_changes_nothing() -> None:
    """A coroutine is true whatever it would answer."""
    session, _ = chat(Summarizer("boats"), 5)

    async def meant(event: Event) -> bool:
        return False

    def broken(event: Event) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ConfigurationError, match="is async"):
        session.redact(where=meant)
    with pytest.raises(ZeroDivisionError):
        session.redact(where=broken)
    assert "swordfish" in log_of(session)


def facts_of(*facts: tuple[str, int]) -> Callable[[FactRequest], list[Fact]]:
    """An extractor that names for each text one of the messages it was given, and says each once."""
    left = list(facts)

    def extract(request: FactRequest) -> list[Fact]:
        found = [Fact(text=text, sources=(request.ids[at],)) for text, at in left]
        left.clear()
        return found

    return extract


def test_a_fact_with_a_wrong_source_is_found_by_its_words(store: Store) -> None:
    """An extractor is a model: it names the second message for what the first says."""
    extract = facts_of(("The password is swordfish", 1), ("Boats have oars", 1), ("It is secret", 0))
    session = Session(100, counter=WORDS, store=store, id="s", fact_extractor=extract, max_fact_tokens=40)
    secret, other = session.add(user(SECRET)), session.add(user("Boats have oars, is it a secret?"))
    for at in range(12):
        session.add(user(f"{at:03} {words(9)}"))
    assert session.status().facts == 3
    done = session.redact(secret)
    assert [event.data["sources"] for event in done.misattributed] == [[other.id]]
    assert len(done.facts) == 2
    assert [fact.text for fact in session.facts] == ["Boats have oars"]
    assert "swordfish" not in log_of(session)
    assert [one["found_by"] for one in done.to_dict()["facts"]] == ["words", "source"]


def test_a_receipt_says_what_and_where_and_no_content() -> None:
    """It can be kept: by ids and versions alone. The log has the same."""
    session, secret = chat(Summarizer("swordfish and boats"))
    done = session.redact(secret)
    receipt = done.to_dict()
    assert json.loads(json.dumps(receipt)) == receipt
    assert receipt["messages"] == [{"id": secret.id, "version": secret.version}]
    assert {one["done"] for one in receipt["summaries"]} == {"mended"}
    (order,) = session.history(kinds=("redacted",))
    assert order.version == receipt["version"] == done.version == session.version
    assert order.data["mended"] == [one["id"] for one in receipt["summaries"]]
    assert "swordfish" not in json.dumps(receipt)
    assert "swordfish" not in repr(done)
    assert isinstance(done, list)
    assert isinstance(done, Redaction)


class Lost(MemoryStore):
    """Stores a redaction, and fails then, once."""

    failing = True

    def append(self, request: AppendRequest, /) -> Appended:
        """Store, and fail."""
        done = super().append(request)
        if self.failing and request.rewrites:
            self.failing = False
            raise StoreUnavailableError("the answer was lost")
        return done


def test_a_receipt_is_the_same_where_the_answer_was_lost() -> None:
    """A `Retry` asks again: one event in the log, and the whole receipt."""

    def redact(store: Store, retry: Retry | None) -> tuple[dict[str, Any], int]:
        session = Session(
            100,
            counter=WORDS,
            summarizer=Summarizer("swordfish and boats"),
            must_keep=None,
            store=store,
            id="s",
            retry=retry,
        )
        session.add(user(SECRET), id="secret")
        for at in range(60):
            session.add(user(f"{at:03} {words(9)}"))
        receipt = session.redact(where="swordfish").to_dict()
        for part in receipt["summaries"]:
            del part["id"]
        return receipt, len(list(session.history(kinds=("redacted",))))

    assert redact(Lost(), Retry()) == redact(MemoryStore(), None)


def test_the_async_form_does_the_same() -> None:
    """By ids, by a pattern, with the same receipt."""

    async def run() -> None:
        session = Session(100, counter=WORDS, summarizer=Summarizer("swordfish and boats"), must_keep=None)
        secret = await session.aadd(user(SECRET))
        for at in range(60):
            await session.aadd(user(f"{at:03} {words(9)}"))
        done = await session.aredact(where="swordfish")
        assert [event.id for event in done] == [secret.id]
        assert session.summary == "[redacted] and boats"
        assert [event.id for event in await session.aredact(secret)] == [secret.id]

    asyncio.run(run())
