"""Exact values through the summaries of a session: rounds, the log, hooks, status, redaction (SPEC E16)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.builders import assistant, system, user, words
from tests.injections import FORMS, text_message, tool_messages
from trimtab import Context, Session
from trimtab.errors import ConfigurationError, CorruptSessionError
from trimtab.report import SummaryCheck
from trimtab.stores import MemoryStore
from trimtab.summaries import ExtractiveSummarizer, SummaryRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()
LABEL = "\nExact values: "


def forgets(messages: list[Any], existing: str | None) -> str:
    """Summarize as badly as can be."""
    return "They talked."


def made(budget: int = 200, **options: Any) -> Session:
    """Make a session that summarizes early."""
    given: dict[str, Any] = {
        "summarizer": forgets,
        "counter": WORDS,
        "summarize_threshold_messages": 2,
        "summarize_threshold_tokens": 20,
    }
    return Session(budget, **(given | options))


def go_on(session: Session, rounds: int, form: str = "openai_chat") -> None:
    """Say so much that several summaries are written, and no value."""
    for _ in range(rounds):
        session.add(text_message(form, "assistant", words(90)))
        session.add(text_message(form, "user", "go on, please"))


def summaries(session: Session) -> list[Any]:
    """List the data of the summaries in the log."""
    return [event.data for event in session.history(kinds=("summary",))]


def line_of(session: Session) -> str:
    """Return the values that the summary restates."""
    return (session.summary or "").partition(LABEL)[2]


@pytest.mark.parametrize("mode", ["incremental", "rolling", "anchored"])
@pytest.mark.parametrize("form", FORMS)
def test_a_value_outlives_summary_after_summary(form: str, mode: Any) -> None:
    """In each form and mode; a value of a tool that nobody used does not."""
    session = made(format=form, summary_mode=mode)
    session.add(text_message(form, "user", "I am Ada, in ORD-7."))
    session.extend(tool_messages(form, "c", "EVIL-9"))
    go_on(session, 12, form)
    assert len(summaries(session)) > 3
    shown = str(session.messages())
    assert "Ada; ORD-7" in shown
    assert "EVIL-9" not in shown


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "$500; ORD-7"),
        ({"find_rules": "all"}, "ORD-7; $500"),
        ({"rules": ["Never book flights above $500."]}, "ORD-7; $500"),
        ({"find_rules": "all", "max_rule_tokens": 0}, "$500; ORD-7"),
    ],
)
def test_a_value_that_a_rule_says_again_comes_last(options: dict[str, Any], line: str) -> None:
    """The view restates the rule, so the room is for others; not where no rule has room."""
    session = made(budget=400, **options)
    session.add(user("Never book flights above $500. The order is ORD-7."))
    go_on(session, 12)
    assert len(summaries(session)) >= 2
    assert line_of(session) == line


def test_without_the_option_a_value_is_forgotten() -> None:
    """Nothing is looked for, and nothing said of it."""
    session = made(must_keep=None)
    session.add(user("I am Ada, in ORD-7."))
    go_on(session, 6)
    assert session.summary == "They talked."
    assert not any("checked" in data for data in summaries(session))
    assert session.fit().report.values is None
    assert session.status().values == 0


def test_the_log_the_hook_the_report_and_the_status_say_the_same() -> None:
    """The hook is told which values are lost as well, and the log only how many."""
    told: list[tuple[str, SummaryCheck, list[str]]] = []
    values = [f"ID-{at}" for at in range(60)]
    session = made(hooks={"on_summary_checked": lambda *given: told.append(given)})
    session.add(user(f"Keep {' '.join(values)}."))
    go_on(session, 2)
    text, checked, lost = told[-1]
    data = summaries(session)[-1]
    assert (text, checked.to_dict()) == (session.summary, data["checked"])
    assert checked.values == checked.restated + checked.lost
    assert checked.restated == len(line_of(session).split("; "))
    assert len(lost) == checked.lost > 0
    assert lost == values[-checked.lost :]
    status, report = session.status(), session.fit().report
    assert report.values == checked
    assert (status.values, status.restated_values, status.lost_values, status.invented_values) == (
        checked.values,
        checked.restated,
        checked.lost,
        0,
    )
    assert any("Without room in a summary" in note for note in report.notes)


def test_a_summary_says_what_was_invented() -> None:
    """It is counted and not corrected."""
    session = made(summarizer=lambda messages: "They paid 43 EUR.")
    session.add(user("I pay 42 EUR."))
    go_on(session, 3)
    assert session.status().invented_values == 1
    assert session.summary == "They paid 43 EUR.\nExact values: 42 EUR"


@pytest.mark.parametrize("ratio", [0.1, 0.3, 1.0])
def test_the_line_takes_its_share_of_the_summary(ratio: float) -> None:
    """At most so much of the room of the cap, and the view is within its budget."""
    session = made(500, max_summary_tokens=104, max_kept_ratio=ratio)
    session.add(user(" ".join(f"ID-{at}" for at in range(200))))
    go_on(session, 12)
    room = 104 - WORDS.count(
        [text_message("openai_chat", "user", '<summary of="2 messages" by="trimtab">\n\n</summary>')]
    )
    count = len(f"{LABEL}{line_of(session)}".split())
    assert room * ratio - 2 <= count <= room * ratio or ratio == 1.0
    assert session.token_count <= 500


def test_a_cap_without_room_for_the_line_loses_values_and_keeps_the_summary() -> None:
    """And says so."""
    session = made(max_summary_tokens=9)
    session.add(user("I am Ada."))
    go_on(session, 3)
    assert session.summary == "They talked."
    assert session.status().lost_values == 1


def test_a_copied_line_is_written_once() -> None:
    """A summarizer that repeats the summary so far with its line."""

    def copies(messages: list[Any], existing: str | None) -> str:
        return existing or "They talked."

    session = made(summarizer=copies)
    session.add(user("I am Ada."))
    go_on(session, 3)
    session.add(user("Now it is ORD-7."))
    go_on(session, 6)
    assert session.summary == "They talked.\nExact values: Ada; ORD-7"


class _Asked:
    """A summarizer that notes its requests."""

    def __init__(self, *, reads_all: bool = False) -> None:
        self.reads_all = reads_all
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest, /) -> str:
        """Say nothing."""
        self.requests.append(request)
        return "They talked."


@pytest.mark.parametrize("reads_all", [True, False])
def test_no_summarizer_is_asked_more_often(reads_all: bool) -> None:
    """And of one that reads all, what it reads again is a source, too."""
    asked = {}
    for must_keep in ("values", None):
        summarizer = _Asked(reads_all=reads_all)
        session = made(summarizer=summarizer, must_keep=must_keep, max_summary_tokens=40)
        session.add(user("I am Ada."))
        go_on(session, 8)
        asked[must_keep] = len(summarizer.requests)
    assert asked["values"] <= asked[None] + 1


def test_it_is_the_same_awaited_in_the_background_and_in_a_context() -> None:
    """One line in each."""

    async def later(messages: list[Any]) -> str:
        return "They talked."

    async def run() -> str:
        session = made(summarizer=later, background=True)
        await session.aadd(user("I am Ada."))
        for _ in range(6):
            await session.aadd(assistant(words(90)))
            await session.aadd(user("go on, please"))
            await session.adrain()
        return line_of(session)

    assert asyncio.run(run()) == "Ada"
    context = Context(400, counter=WORDS).add("rules", [system("be brief")])
    session = Session(context=context, summarizer=forgets, summarize_threshold_messages=2)
    session.add(user("I am Ada."))
    go_on(session, 14)
    fitted = session.fit()
    assert "Exact values: Ada" in str(fitted.messages)
    assert fitted.report.values == SummaryCheck(values=1, missing=1, restated=1)


def test_extracted_summaries_keep_values_that_their_sentences_do_not_have() -> None:
    """Round after round."""
    session = made(300, summarizer=ExtractiveSummarizer(counter=WORDS), max_summary_tokens=60)
    session.add(user("Hello there. My order is ORD-7, I think. The weather is fine, and so on and on."))
    for at in range(20):
        session.add(assistant(f"The weather is fine, and the sea is calm, and so on. {words(20)}"))
        session.add(user(f"word {'so ' * at} is what we say of the sea and the weather"))
    assert "ORD-7" in (session.summary or "")


# What was stored.


def test_a_session_keeps_its_option_in_the_log() -> None:
    """A pattern with its flags; a later order changes it from there on."""
    store = MemoryStore()
    first = made(store=store, id="s", must_keep=re.compile(r"k\d", re.IGNORECASE), max_kept_ratio=0.5)
    first.add(user("Case K1 of Ada."))
    go_on(first, 3)
    assert line_of(first) == "K1"
    again = Session.open(store, "s", summarizer=forgets, counter=WORDS)
    go_on(again, 3)
    assert line_of(again) == "K1"
    data = next(event.data for event in again.history(kinds=("options",)))["options"]
    assert (data["must_keep"], data["max_kept_ratio"]) == ({"pattern": r"k\d", "flags": "i"}, 0.5)
    off = made(store=store, id="s", must_keep=None)
    go_on(off, 3)
    assert off.summary == "They talked."


def _cases(text: str) -> list[str]:
    return re.findall(r"K\d", text)


def test_a_function_is_known_by_its_name_and_missed_when_it_is_not_there() -> None:
    """As every function a session is made with (SPEC E12b)."""
    store = MemoryStore()
    session = made(store=store, id="s", must_keep=_cases)
    session.add(user("Case K1 of Ada."))
    go_on(session, 3)
    assert line_of(session) == "K1"
    with pytest.raises(ConfigurationError, match=r"must_keep \(_cases\)"):
        Session.open(store, "s", summarizer=forgets, counter=WORDS).messages()
    with pytest.raises(ConfigurationError, match=r"must_keep \(_cases\)"):
        Session.restore(session.snapshot(), summarizer=forgets, counter=WORDS)
    with_it = Session.open(store, "s", summarizer=forgets, counter=WORDS, must_keep=_cases)
    go_on(with_it, 3)
    assert line_of(with_it) == "K1"
    without = Session.open(store, "s", summarizer=forgets, counter=WORDS, allow_missing=True)
    go_on(without, 3)
    assert without.missing == {"must_keep": "_cases"}
    assert without.summary == "They talked."


def test_a_function_that_fails_loses_nothing() -> None:
    """It is a summary that failed."""

    def fails(text: str) -> list[str]:
        raise ValueError(text)

    session = made(must_keep=fails)
    session.add(user("I am Ada."))
    go_on(session, 3)
    assert session.summary is None
    assert "must_keep fails failed with ValueError" in str(session.status().last_failure)


@pytest.mark.parametrize("history", [True, False])
def test_snapshots_forks_and_undo_have_the_line_and_its_numbers(history: bool) -> None:
    """They are of the summary's event."""
    session = made()
    session.add(user("I am Ada."))
    go_on(session, 3)
    restored = Session.restore(session.snapshot(history=history), summarizer=forgets, counter=WORDS)
    assert (restored.summary, restored.status().values) == (session.summary, 1)
    go_on(restored, 4)
    assert line_of(restored) == "Ada"
    fork = session.fork()
    go_on(fork, 4)
    assert line_of(fork) == "Ada"
    last = session.history(kinds=("summary",))
    session.undo([*last][-1])
    go_on(session, 4)
    assert line_of(session) == "Ada"


def test_a_redacted_value_is_in_no_line() -> None:
    """Nor in the next summary, for which the line is a source."""
    session = made()
    told = session.add(user("I am Ada, in ORD-7."))
    session.add(user("My city is Oslo."))
    go_on(session, 4)
    assert line_of(session) == "Ada; ORD-7; Oslo"
    session.redact(told)
    go_on(session, 6)
    assert "Ada" not in str(session.messages())
    assert "ORD-7" not in str([event.data for event in session.history()])
    assert line_of(session).split("; ")[-1] == "Oslo"
    assert "redacted" not in line_of(session)


@pytest.mark.parametrize("checked", [7, {}, {"values": 1}, {"values": "1"}, None])
def test_a_changed_snapshot_is_refused(checked: Any) -> None:
    """Where its numbers are none."""
    session = made()
    session.add(user("I am Ada."))
    go_on(session, 3)
    data = session.snapshot()
    data["version"] = 1  # of the form that has no seal
    event = next(event for event in data["events"] if event["kind"] == "summary")
    event["data"]["checked"] = checked
    with pytest.raises(CorruptSessionError, match="checked"):
        Session.restore(data, summarizer=forgets, counter=WORDS)
