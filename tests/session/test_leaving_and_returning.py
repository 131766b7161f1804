"""What leaves the view is told, what comes back is shown, and what is summarized is whole."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import Session, counter_from_text
from trimtab.counting import FixedCounter
from trimtab.errors import ConfigurationError
from trimtab.session import allocate_zones

TWENTIES = FixedCounter(per_message=20)
LETTERS = counter_from_text(lambda text: len(text), message_overhead=0)


def user(text: str) -> dict[str, Any]:
    """Make a message of the user."""
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    """Make an answer."""
    return {"role": "assistant", "content": text}


def calls(call_id: str) -> dict[str, Any]:
    """Make a call."""
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": call_id,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def answers(call_id: str, text: str) -> dict[str, Any]:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def texts(session: Session) -> list[Any]:
    """List what the view says."""
    return [message["content"] for message in session.messages()]


def test_what_leaves_the_view_behind_newer_messages_is_told() -> None:
    """The question that was pinned as the latest is older than what left before it, and slips out at once."""
    left: list[tuple[str, list[str]]] = []

    def on_evict(messages: list[Any], reason: str) -> None:
        left.append((reason, [message["content"] for message in messages]))

    session = Session(100, counter=TWENTIES, target_ratio=1.0, hooks={"on_evict": on_evict})
    for message in (user("first"), *map(says, "abcdef"), user("second")):
        session.add(message)
    assert texts(session) == ["c", "d", "e", "f", "second"]
    assert left == [
        ("budget", ["a"]),
        ("truncation", ["a"]),
        ("budget", ["b"]),
        ("truncation", ["b"]),
        ("budget", ["first"]),
        ("truncation", ["first"]),
    ]


def test_a_summary_that_ends_with_a_call_and_its_result_is_put_in_force() -> None:
    """The result stands behind the border of what is covered; the unit is covered with it."""
    asked: list[int] = []
    away = True

    def summarize(messages: list[Any]) -> str:
        if away:
            raise ConnectionError
        asked.append(len(messages))
        return "tea"

    session = Session(100, counter=TWENTIES, summarizer=summarize, summarize_threshold_tokens=20)
    said = [user("q"), *map(says, "abc"), calls("x"), answers("x", "r"), *map(says, "defghij")]
    for message in said:
        session.add(message)
    away = False
    for letter in "klmnopqrstuvw":
        if not asked:
            session.add(says(letter))
    assert asked == [5]
    assert (session.summary, session.status().stale_summaries) == ("tea", 0)


def test_the_result_of_a_summarized_call_is_no_limit_for_the_next_summary() -> None:
    """However large it was: the next summary is of what waits now."""
    asked: list[list[str]] = []

    def summarize(messages: list[Any], existing: str | None) -> str:
        asked.append([message["content"][:2] for message in messages])
        return "tea"

    session = Session(
        200,
        counter=LETTERS,
        summarizer=summarize,
        max_summary_tokens=90,  # the mark names a tool, and takes 76 letters
        summarize_threshold_tokens=150,
        max_result_ratio=None,
    )
    session.add(calls("x1"))
    session.add(answers("x1", "r1" + "r" * 300))
    for n in range(2, 9):
        session.add(says(f"a{n}" + "a" * 58))
    assert asked[0] == ["x1", "r1"]
    assert len(asked) > 1
    assert asked[1][0] == "a2"


def test_a_result_that_brings_its_call_back_makes_room_for_another_that_waits() -> None:
    """The call was the newest out of view; then another is, and is shown where it fits."""
    session = Session(240, counter=LETTERS, target_ratio=1.0)
    first, small = "u" * 60, "s" * 30
    for message in (user(first), says(small), calls("x"), says("v" * 70), says("w" * 40), user("now")):
        session.add(message)
    assert texts(session) == [first, "v" * 70, "w" * 40, "now"]
    session.add(answers("x", "r"))
    assert texts(session) == [small, "x", "r", "v" * 70, "w" * 40, "now"]  # a result stands behind its call
    again = Session.restore(session.snapshot(), counter=LETTERS)
    assert texts(session) == texts(again)
    assert session.token_breakdown == again.token_breakdown


def test_a_summary_that_is_left_out_is_not_counted() -> None:
    """What must stay takes its room; the numbers are those of what is sent."""
    session = Session(200, counter=LETTERS, summarizer=lambda messages: "tea", summarize_threshold_tokens=20)
    for n in range(5):
        session.add(says(str(n) * 60))
    assert session.summary == "tea"
    session.add(user("u" * 180))
    assert texts(session) == ["u" * 180]
    assert session.token_count == session.token_breakdown.total == 180
    assert (session.token_breakdown.summary, session.total_message_count) == (0, 1)
    assert session.summary == "tea"


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        pytest.param({"max_summary_tokens": -50}, "max_summary_tokens", id="negative"),
        pytest.param({"min_recent_tokens": 0.5}, "min_recent_tokens", id="fraction"),
    ],
)
def test_zones_are_shares_of_whole_numbers(numbers: dict[str, Any], named: str) -> None:
    """A negative cap of the summary gave recent messages more than there is."""
    with pytest.raises(ConfigurationError, match=named):
        allocate_zones(1000, 0, **numbers)
    with pytest.raises(ConfigurationError, match="used_tokens"):
        allocate_zones(1000, -1)


def test_an_undo_leaves_recent_what_a_late_result_brought_back() -> None:
    """Decisions are taken back and messages are not: of what was evicted before, the call stays recent."""
    session = Session(100, counter=FixedCounter(per_message=10), target_ratio=1.0)
    session.extend([user("first"), calls("A")])
    for at in range(12):
        session.add(user(f"{at}"))
    session.add({"role": "tool", "tool_call_id": "A", "content": "late"})
    evicted = list(session.history(kinds=["evicted"]))
    assert [event.data["units"] for event in evicted] == [[[2]], [[3]], [[4]], [[5]], [[6], [7]]]
    session.undo(evicted[3])
    status = session.status()
    assert status.pending_messages == 2  # the first message, and the one evicted after the call
    assert status.recent_messages == 13


def test_a_result_finds_its_call_though_two_summaries_were_taken_back() -> None:
    """The call was said after the first of them and covered by the second; its result comes after both."""
    session = Session(100, counter=FixedCounter(per_message=10), summarizer=lambda messages: "sum")
    for at in range(12):
        session.add(user(f"{at}"))
    first = next(session.history(kinds=["summary"]))
    session.add(calls("A"))
    (call,) = session.history(after=session.version - 1)
    for at in range(20):
        session.add(user(f"later {at}"))
    assert any([call.version] in event.data["covers"] for event in session.history(kinds=["summary"]))
    session.undo(first)
    result = session.add({"role": "tool", "tool_call_id": "A", "content": "late"})
    assert result.data.get("joins") == call.version
