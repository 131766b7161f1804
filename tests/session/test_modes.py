"""Modes, zones and thresholds: E2, E3, E5, E6."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import user, words
from tests.session.test_summarizers import WORDS, Summarizer, one_session, texts
from trimtab import BudgetExceededError, Session


def marked(text: str, count: int) -> str:
    """Write a summary as it stands in a view."""
    return f'<summary of="{count} messages" by="trimtab">\n{text}\n</summary>'


def test_a_rolling_summary_is_the_first_of_the_messages() -> None:
    """E5: marked, from the user; nothing is given as existing."""
    summarizer = Summarizer(lambda request: f"part {len(summarizer.requests)}")
    session = one_session(summarizer, summary_mode="rolling")
    for text in texts(30):
        session.add(user(text))
    first, second, *_ = summarizer.requests
    assert not str(first.messages[0]["content"]).startswith("<summary")
    assert second.messages[0] == {"role": "user", "content": marked("part 1", len(first.messages))}
    assert {request.existing for request in summarizer.requests} == {None}


def test_the_first_summary_becomes_the_anchor_and_stays() -> None:
    """E5 anchored: asked for at max_anchor_tokens, and in every view from then on, word for word."""
    summarizer = Summarizer(lambda request: f"part {len(summarizer.requests)}")
    session = one_session(summarizer, summary_mode="anchored", max_summary_tokens=40, max_anchor_tokens=12)
    for text in texts(60):
        session.add(user(text))
        if summarizer.requests:
            assert session.messages()[0] == {
                "role": "user",
                "content": marked("part 1", len(summarizer.requests[0].messages)),
            }
    assert summarizer.requests[0].max_tokens == 12 - 5
    assert summarizer.requests[1].max_tokens == 40 - 7 - 5  # together under the cap; 7 are taken
    assert session.summary == f"part {len(summarizer.requests)}"
    breakdown = session.token_breakdown
    assert breakdown.anchors + breakdown.summary <= 40
    assert summarizer.requests[1].messages[0]["content"] not in marked("part 1", 0)


def test_the_anchor_is_cut_where_the_first_summary_is_too_long() -> None:
    """At max_anchor_tokens, at a sentence."""
    session = one_session(
        Summarizer(lambda request: "One two. " * 9),
        summary_mode="anchored",
        max_summary_tokens=40,
        max_anchor_tokens=12,
        max_summary_rounds=0,
    )
    for text in texts(11):
        session.add(user(text))
    assert marked("One two. One two. One two.", 1)[20:] in str(session.messages()[0]["content"])
    assert session.token_breakdown.anchors <= 12


def test_given_anchors_are_kept_and_no_summary_becomes_one() -> None:
    """E5 anchored, with anchors of one's own; the rest rolls under what they leave."""
    summarizer = Summarizer(lambda request: "rest")
    anchor = user("never forget this")
    session = one_session(summarizer, summary_mode="anchored", anchors=[anchor], max_summary_tokens=30)
    for text in texts(40):
        session.add(user(text))
    assert session.messages()[0] == anchor
    assert session.anchors == [anchor]
    assert {request.max_tokens for request in summarizer.requests} == {30 - 3 - 5}
    assert session.summary == "rest"


@pytest.mark.parametrize(
    ("budget", "cap", "recent", "threshold"),
    [(100, 30, 30, 10), (101, 30, 30, 10), (109, 32, 32, 10), (110, 33, 33, 11), (999, 299, 299, 99)],
)
def test_shares_follow_the_budget_in_force(budget: int, cap: int, recent: int, threshold: int) -> None:
    """E2: 0.3, 0.3, 0.1 of it, rounded down; also after set_budget."""
    sized = Session(budget, counter=WORDS, summarizer=lambda messages: "a", must_keep=None)
    changed = Session(500, counter=WORDS, summarizer=lambda messages: "a", must_keep=None)
    changed.set_budget(budget)
    for session in (sized, changed):
        assert session.allocate_zones() == (0, cap, budget - cap)
    asked: list[Any] = []
    session = one_session(lambda messages: asked.append(messages) or "a")
    session.set_budget(budget)
    session.add(user(words(budget - 1)))
    session.add(user(words(2)))
    assert len(asked) == 1
    assert recent == budget * 3 // 10
    assert threshold == budget // 10


@pytest.mark.parametrize(
    ("sizes", "messages", "asked"),
    [
        pytest.param([40], 99, True, id="at-the-token-threshold"),
        pytest.param([39], 99, False, id="one-token-less"),
        pytest.param([10, 10], 2, True, id="messages-and-half-the-tokens"),
        pytest.param([10, 9], 2, False, id="less-than-half-the-tokens"),
        pytest.param([10, 10], 3, False, id="one-message-less"),
    ],
)
def test_when_a_summary_is_asked_for(sizes: list[int], messages: int, asked: bool) -> None:
    """E6: enough tokens wait; or enough messages, with half the tokens."""
    summarizer = Summarizer(lambda request: "a")
    session = one_session(
        summarizer, summarize_threshold_tokens=40, summarize_threshold_messages=messages, min_recent_tokens=0
    )
    for size in sizes:
        session.add(user(words(size)))
    session.add(user(words(85)))  # passes the budget, and alone the 70 tokens that may stay
    assert bool(summarizer.requests) == asked


def test_recent_is_cut_to_what_the_summary_leaves_it() -> None:
    """E3: budget - system - anchors - the summary's share, unit by unit from the oldest."""
    session = one_session(
        lambda messages: "a",
        system=words(8),
        anchors=[user("w w")],
        summarize_threshold_tokens=90,
        target_ratio=1.0,
    )
    for _ in range(10):
        session.add(user(words(9)))
    # 8 + 2 + 90 fit exactly; the next one passes 100, and 100 - 10 - 30 = 60 is the target
    assert session.status().pending_messages == 0
    session.add(user(words(9)))
    assert session.status().recent_tokens == 54
    assert session.status().pending_tokens == 45


@pytest.mark.parametrize(
    ("pending_first", "order"),
    [(False, "sys anc <summary c d e"), (True, "sys anc c <summary d e")],
)
def test_the_order_is_that_of_time_or_as_asked(pending_first: bool, order: str) -> None:
    """E1; `pending_first` changes the order and nothing else."""
    session = one_session(
        lambda messages: "sum",
        system="sys",
        anchors=[user("anc")],
        pending_first=pending_first,
        summarize_threshold_tokens=70,
        target_ratio=1.0,
    )
    for letter, size in (("a", 80), ("b", 15), ("c", 38), ("d", 25), ("e", 20)):
        session.add(user(f"{letter} {words(size - 1)}"))
    assert session.summary == "sum"
    assert session.status().pending_messages == 2
    assert " ".join(message["content"].split()[0] for message in session.messages()) == order


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda session: session.set_budget(100), "takes 101 tokens", id="budget"),
        pytest.param(lambda session: session.set_anchors([user(words(19))]), "anchors take 19", id="cap"),
        pytest.param(lambda session: session.set_anchors([user(words(50))]), "anchors take 50", id="far"),
    ],
)
def test_a_setter_that_leaves_no_room_changes_nothing(call: Any, message: str) -> None:
    """E3, E9: not in memory, and not in the log."""
    session = Session(150, counter=WORDS, system=words(101))  # of anchors 0.4 * 0.3 * 150 = 18 tokens
    session.add(user("a"))
    before = session.snapshot(), session.messages(), session.budget_tokens
    with pytest.raises(BudgetExceededError, match=message):
        call(session)
    assert (session.snapshot(), session.messages(), session.budget_tokens) == before
    again = Session.open(session.store, session.id, counter=WORDS)
    assert (again.snapshot(), again.messages(), again.budget_tokens) == before


def test_a_larger_budget_brings_back_what_was_truncated_and_nothing_that_was_summarized() -> None:
    """E3."""
    truncated = Session(100, counter=WORDS)
    summarized = one_session(lambda messages: "sum")
    for session in (truncated, summarized):
        for text in texts(30):
            session.add(user(text))
        session.set_budget(1_000)
    assert [message["content"] for message in truncated.messages()] == texts(30)
    covered = summarized.status().summarized_messages
    assert covered
    assert [message["content"] for message in summarized.messages()] == [
        marked("sum", covered),
        *texts(30)[covered:],
    ]


def test_clear_keeps_the_budget_and_brings_back_the_anchors_given() -> None:
    """E9; the log stays."""
    session = one_session(lambda messages: "sum", anchors=[user("given")])
    session.set_budget(200)
    session.set_anchors([user("changed")])
    for text in texts(40):
        session.add(user(text))
    session.clear()
    assert session.messages() == [user("given")]
    assert session.budget_tokens == 200
    assert session.summary is None
    assert session.recent_message_count == 0
    assert len(list(session.history())) == 40


@pytest.mark.parametrize(("waits", "asked"), [(10, True), (9, False)])
def test_the_threshold_is_a_tenth_of_the_budget(waits: int, asked: bool) -> None:
    """E2: exactly, where so little leaves."""
    summarizer = Summarizer(lambda request: "a")
    session = one_session(summarizer, min_recent_tokens=95)
    for size in (waits, 85, 16 - waits):
        session.add(user(words(size)))
    assert bool(summarizer.requests) == asked


def test_recent_messages_keep_three_tenths_of_the_budget_where_little_is_left() -> None:
    """E2, E3: 60 of 100 are system text, so the summary gets 10; one that takes 19 leaves 21."""
    session = one_session(lambda messages: words(99), system=words(60), max_summary_tokens=30)
    for _ in range(5):
        session.add(user(words(10)))
    assert session.status().recent_tokens == 30
    assert session.token_breakdown.summary == 19
    session.add(user(words(10)))
    assert session.status().recent_tokens == 20


@pytest.mark.parametrize(
    ("given", "budget", "message"),
    [
        pytest.param(60, 150, "anchors take 60 tokens, but may take 18", id="cap"),
        pytest.param(60, 101, "takes 111 tokens, but its budget is 101", id="room"),
    ],
)
def test_clear_brings_back_no_anchors_without_room(given: int, budget: int, message: str) -> None:
    """E3: they were given under a larger budget; the session stays as it was."""
    session = Session(500, counter=WORDS, system=words(51), anchors=[user(words(given))])
    session.add(user("a"))
    session.set_anchors([user("changed")])
    session.set_budget(budget)
    before = session.snapshot(), session.messages()
    with pytest.raises(BudgetExceededError, match=message):
        session.clear()
    assert (session.snapshot(), session.messages()) == before
    again = Session.open(session.store, session.id, counter=WORDS)
    assert (again.snapshot(), again.messages()) == before


def test_clear_leaves_anchors_that_did_not_change_where_they_are() -> None:
    """Their cap is checked when they are set; a smaller budget is no reason never to clear again."""
    session = Session(500, counter=WORDS, anchors=[user(words(60))])
    session.set_budget(150)
    session.add(user("a"))
    session.clear()
    assert session.messages() == [user(words(60))]
