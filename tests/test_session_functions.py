"""A session and the functions no log can keep: missing, given again, of one argument or two."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trimtab import BudgetExceededError, ConfigurationError, Session
from trimtab.counting import FixedCounter
from trimtab.stores import MemoryStore


def talk(first: int, last: int) -> list[dict[str, Any]]:
    """Give messages that say their number."""
    return [{"role": "user", "content": f"fact {number}"} for number in range(first, last)]


def facts(messages: Any) -> str:
    """Keep every fact that is in the messages: what is not given here is forgotten."""
    return " ".join(word for one in messages for word in str(one["content"]).split() if word.isdigit())


def made(**options: Any) -> Session:
    """Make a session of 20 tokens a message, and a summarizer of messages alone."""
    return Session(100, counter=FixedCounter(per_message=20), summarizer=facts, **options)


@pytest.mark.parametrize("mode", ["incremental", "rolling"])
def test_a_function_of_messages_alone_forgets_nothing(mode: Any) -> None:
    """It is given the summary so far as the first of the messages, since it takes it no other way."""
    session = made(summary_mode=mode)
    for message in talk(0, 30):
        session.add(message)
    assert session.summary is not None
    covered = session.status().summarized_messages
    assert covered > 10
    assert session.summary.split() == [str(number) for number in range(covered)]


def test_a_function_of_two_is_given_the_summary_so_far_beside_the_messages() -> None:
    """Once, not twice."""
    given: list[tuple[int, str | None]] = []

    def summarize(messages: list[Any], existing: str | None) -> str:
        given.append((sum("<summary" in one["content"] for one in messages), existing))
        return f"part {len(given)}"

    session = Session(100, counter=FixedCounter(per_message=20), summarizer=summarize)
    for message in talk(0, 30):
        session.add(message)
    assert [existing for _, existing in given[:3]] == [None, "part 1", "part 2"]
    assert {inside for inside, _ in given} == {0}


def test_what_is_missing_is_known_and_stays_known() -> None:
    """Going on without a function does not make the log forget that there is one."""
    store = MemoryStore()
    made(store=store, id="a").extend(talk(0, 9))
    with pytest.raises(ConfigurationError, match=r"summarizer \(facts\)"):
        Session.open(store, "a").messages()
    for _ in range(2):
        without = Session.open(store, "a", allow_missing=True)
        assert set(without.missing) == {"summarizer", "counter"}
        assert without.missing["summarizer"] == "facts"
        without.add({"role": "user", "content": "more"})
    again = Session.open(store, "a", summarizer=facts, counter=FixedCounter(per_message=20))
    assert again.missing == {}
    assert len(list(again.history())) == 11


def test_a_counter_that_counts_higher_does_not_hide_the_log() -> None:
    """Opened without its counter the permanent part may pass the budget: the view says so, and only it."""
    store = MemoryStore()
    counter = FixedCounter(per_message=5)
    Session(100, counter=counter, system="word " * 300, store=store, id="a").add(talk(0, 1)[0])
    without = Session.open(store, "a", allow_missing=True)
    assert [event.message for event in without.history()] == talk(0, 1)
    with pytest.raises(BudgetExceededError):
        without.messages()
    with pytest.raises(BudgetExceededError, match="Raise the budget"):
        Session(100, system="word " * 300, store=store, id="a", allow_missing=True).messages()


def test_a_past_view_has_its_report() -> None:
    """`fit(at=…)` is `view_at` with the report, sync and async."""
    session = made()
    session.extend(talk(0, 9))
    for version in (0, 2, 5):
        fitted = session.fit(at=version)
        assert fitted.messages == session.view_at(version)
        assert fitted.report.kept_message_count == len(fitted.messages)
        assert asyncio.run(session.afit(at=version)).messages == fitted.messages
    assert session.fit(at=session.version).messages == session.messages()
