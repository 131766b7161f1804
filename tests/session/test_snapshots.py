"""A snapshot that somebody changed is refused with CorruptSessionError, or restored as it says (SPEC E10)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS
from trimtab import ConfigurationError, Session
from trimtab.errors import BudgetExceededError, CorruptSessionError, UnknownNameError

Path = tuple[Any, ...]


def summarize(messages: Any) -> str:
    """Write the shortest summary there is."""
    return "sum"


@cache
def taken() -> dict[str, Any]:
    """A snapshot with every kind of event; never changed."""
    given: dict[str, Any] = {"summarizer": summarize, "counter": WORDS}
    session = Session(100, system="sys", anchors=[user("an anchor")], summary_mode="rolling", **given)
    for at in range(12):
        event = session.add(user(f"{at} {words(9)}"))
        if at == 10:
            session.pin(event.id)
            session.unpin(event.id)
            session.pin(event.id)
    session.extend([call("A", "B"), result("A", words(30)), assistant(words(20)), result("B", "late")])
    session.undo()
    session.redact([next(session.history()).id])
    session.set_budget(120)
    session.set_anchors([user("another")])
    session.add(call("C"))
    for _ in range(8):
        session.add(user(words(15)))
    session.add(result("C", "later still"))
    session.add(call("D"))
    return session.snapshot()


def restored(data: Any) -> Session:
    """Restore with what it was made with."""
    return Session.restore(data, summarizer=summarize, counter=WORDS)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """List the places of a snapshot."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from paths(one, (*path, at))


def changed(path: Path, value: Any, *, gone: bool = False) -> dict[str, Any]:
    """Return a snapshot with another value at a place, or with none."""
    data = copy.deepcopy(taken())
    owner: Any = data
    for key in path[:-1]:
        owner = owner[key]
    if gone:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return data


PLACES = [path for path in paths(taken()) if path]
NEAR_THE_END = [path for path in PLACES if path[0] == "events" and len(path) > 2 and path[1] > 40]
SMALL = st.none() | st.booleans() | st.integers(-2, 60) | st.sampled_from(["", "x", 10**6, 0.5, "message"])
VALUES = SMALL | st.sampled_from([[], {}, [1], [[]], [{}], [[1]], [[1, 2]], {"a": 1}, {"content": 1}])


def test_it_has_every_kind_of_event() -> None:
    """Else the fuzz below would pass over some."""
    kinds = {event["kind"] for event in taken()["events"]}
    assert kinds >= {"options", "message", "summary", "evicted", "pinned", "unpinned", "undone", "redacted"}
    assert kinds >= {"budget", "anchors"}


@pytest.mark.long
@given(st.sampled_from(PLACES) | st.sampled_from(NEAR_THE_END), VALUES, st.booleans())
@settings(max_examples=400)
def test_a_changed_snapshot_is_refused_or_restored_as_it_says(path: Path, value: Any, gone: bool) -> None:
    """Taken is what says the same, a number written otherwise; it is the very log that was given."""
    data = changed(path, value, gone=gone)
    before = copy.deepcopy(data)
    try:
        session = restored(data)
    except CorruptSessionError:
        return
    assert taken() == before
    assert session.snapshot()["events"] == before["events"]
    assert restored(session.snapshot()).status() == session.status()
    with suppress(BudgetExceededError):
        session.messages()
    for text in ("y", words(40), "z"):
        session.add(user(text))
    session.add(result("D", "done"))
    with suppress(BudgetExceededError):
        session.messages()
    with suppress(UnknownNameError):
        session.undo()
    with suppress(BudgetExceededError):
        session.clear()
    assert len(list(session.history(kinds=None))) == session.version


def test_what_somebody_changed_is_refused() -> None:
    """Also where a session could say it: a message, the newest event cut off, events in another order."""
    said = changed(("events", -1, "data", "message", "content"), "something else")
    less, other = copy.deepcopy(taken()), copy.deepcopy(taken())
    less["events"].pop()
    other["events"].reverse()
    for data in (said, less, other, {**taken(), "seal": None}):
        with pytest.raises(CorruptSessionError, match="does not match its seal"):
            restored(data)


def test_a_snapshot_passes_through_json_of_other_languages() -> None:
    """They sort keys, and write 1 for 1.0."""
    session = Session(100, counter=WORDS)
    session.add({**user("a"), "weight": 1.0, "part": 0.5})
    text = json.dumps(session.snapshot(), sort_keys=True).replace('"weight": 1.0', '"weight": 1')
    assert '"weight": 1,' in text or '"weight": 1}' in text
    assert Session.restore(json.loads(text), counter=WORDS).messages() == session.messages()


def test_a_snapshot_without_a_seal_is_taken_as_it_stands() -> None:
    """Those of version 1 have none; the one taken of what was restored has one."""
    old = {name: value for name, value in taken().items() if name != "seal"} | {"version": 1}
    session = restored(old)
    assert session.snapshot() == taken()
    with pytest.raises(CorruptSessionError, match="seal"):
        restored({**old, "version": 2})


@pytest.mark.parametrize(
    "data", [{"events": [5]}, {"events": 5}, {"id": 5}, {"id": ""}, {"options": {}, "events": []}]
)
def test_one_without_a_seal_that_is_none_is_refused(data: Any) -> None:
    """As what it is."""
    with pytest.raises(CorruptSessionError, match="snapshot"):
        restored({**taken(), "version": 1, **data})


def test_a_function_of_a_wrong_kind_is_no_fault_of_the_snapshot() -> None:
    """The caller hears what to pass."""
    with pytest.raises(ConfigurationError, match="hooks must be") as caught:
        Session.restore(taken(), summarizer=summarize, counter=WORDS, hooks=5)
    assert not isinstance(caught.value, CorruptSessionError)


@pytest.mark.parametrize(
    "first", [lambda session: session.set_anchors([user("changed")]), lambda session: session.clear()]
)
def test_the_options_are_written_with_the_state_before_the_first_order(first: Any) -> None:
    """What is decided next is not known yet: a fork from there, and the view of it, are as at first."""
    session = Session(100, counter=WORDS, anchors=[user("given")])
    first(session)
    assert session.view_at(1) == [user("given")]
    assert session.fork(1).messages() == [user("given")]
    assert Session.restore(session.snapshot(), counter=WORDS).messages() == session.messages()


def continued(session: Session, *, budget: int = 100, **options: Any) -> Session:
    """Restore what is needed to go on, through JSON."""
    data = json.loads(json.dumps(session.snapshot(history=False)))
    return Session.restore(data, counter=WORDS, **options)


def tell(session: Session, seed: str) -> None:
    """Say something in every shape there is."""
    for at in range(4):
        session.add(user(f"{seed}{at} {words(9)}"))
    session.add(call(f"{seed}A", f"{seed}B"))
    session.add(result(f"{seed}A", words(5)))
    session.add(assistant(words(12)))
    session.add(user(words(8)))
    session.add(result(f"{seed}B", "late"))


@pytest.mark.parametrize("mode", ["incremental", "rolling", "anchored"])
@pytest.mark.parametrize("told", range(1, 8))
def test_what_is_needed_to_go_on_goes_on_the_same(mode: Any, told: int) -> None:
    """The same view, counts and budget, and the same again after everything that is done next."""
    functions: dict[str, Any] = {"summarizer": lambda messages: f"sum of {len(messages)}"}
    session = Session(100, counter=WORDS, system="sys", summary_mode=mode, **functions)
    pinned = session.add(user("pinned"))
    session.pin(pinned)
    for at in range(told):
        tell(session, f"m{at}")
    if told == 5:
        session.set_anchors([user("an")])
        session.set_budget(150)
    other = continued(session, **functions)
    done: list[Callable[[Session], object]] = [
        lambda one: one.messages(),
        lambda one: tell(one, "x"),
        lambda one: one.unpin(pinned.id),
        lambda one: tell(one, "y"),
        lambda one: one.set_budget(300),
        lambda one: tell(one, "z"),
        lambda one: one.clear(),
        lambda one: tell(one, "c"),
    ]
    for step in done:
        step(session)
        step(other)
        assert other.messages() == session.messages()
        numbers = [{**one.status().to_dict(), "version": 0} for one in (session, other)]
        assert numbers[0] == numbers[1]
        assert other.total_message_count == session.total_message_count


@pytest.mark.long
def test_what_is_needed_to_go_on_does_not_grow_with_the_log() -> None:
    """Without a summarizer what left the view is left out: one log, ten times as long, is as long."""
    lengths = []
    for count in (200, 2_000):
        session = Session(300, counter=WORDS, system="sys", target_ratio=1.0)
        session.pin(session.add(user("pinned")))
        session.extend([user(f"{at:04} {words(9)}") for at in range(count)])
        data = session.snapshot(history=False)
        lengths.append((len(data["events"]), len(json.dumps(data))))
        assert len(data["events"]) == session.recent_message_count + 2
        assert continued(session).messages() == session.messages()
    (few, short), (many, long) = lengths
    assert few == many
    assert abs(long - short) < short / 100  # versions and times have more digits


def test_what_waits_for_a_summary_is_needed_to_go_on() -> None:
    """Also out of view: no summarizer has seen it yet."""
    answers: list[str] = []

    def answer(messages: list[Any]) -> str:
        return answers.pop()

    session = Session(100, counter=WORDS, summarizer=answer)
    session.extend([user(f"{at} {words(9)}") for at in range(40)])
    assert session.status().hidden_messages > 20
    other = continued(session, summarizer=answer)
    assert other.status().pending_messages == session.status().pending_messages
    answers.extend(["sum"] * 9)
    assert other.summarize() == session.status().pending_messages


def test_a_backlog_is_needed_to_go_on_no_further_than_its_budgets() -> None:
    """A summarizer that was away for a long time: one log, ten times as long, is as long; the newest stay."""
    lengths = []
    for count in (400, 4_000):
        session = Session(100, counter=WORDS, summarizer=lambda _: 1 / 0)
        session.extend([user(f"{at:04} {words(9)}") for at in range(count)])
        data = session.snapshot(history=False)
        lengths.append((len(data["events"]), len(json.dumps(data))))
        other = continued(session, summarizer=lambda _: "sum")
        assert other.messages() == session.messages()
        waits = other.status().pending_messages - other.status().hidden_messages
        assert other.summarize() == waits + 80  # eight budgets of ten messages
    (few, short), (many, long) = lengths
    assert few == many
    assert abs(long - short) < short / 100  # versions and times have more digits


def test_an_abridged_log_says_what_it_is() -> None:
    """Nothing before it is taken back, found or shown; ids and pins are those of the messages."""
    session = Session(100, counter=WORDS, system="sys", summarizer=summarize)
    for at in range(30):
        event = session.add(user(f"{at} {words(9)}"))
    session.pin(event)
    other = continued(session, summarizer=summarize)
    kinds = [one.kind for one in other.history(kinds=None)]
    assert kinds == ["options", "summary", *["message"] * (len(kinds) - 3), "abridged"]
    (last,) = other.history(kinds=("abridged",))
    assert last.data == {"of": session.version}
    with pytest.raises(UnknownNameError):
        other.undo()
    assert other.recall("w") == []
    for version in range(1, other.version):
        assert [message["role"] for message in other.view_at(version)] == ["system", "user"][:version]
        assert other.fork(version).messages() == other.view_at(version)
    assert other.add(user(f"29 {words(9)}"), id=event.id) == next(
        one for one in other.history() if one.id == event.id
    )
    other.unpin(event.id)
    other.redact(event.id)
    assert other.messages()[-1] == user("[redacted]")
    for at in range(20):
        other.add(user(f"{at} {words(9)}"))
    assert other.undo().kind in ("summary", "evicted")
    again = continued(continued(other, summarizer=summarize), summarizer=summarize)
    assert again.messages() == other.messages()


def test_a_session_without_events_has_nothing_to_leave_out() -> None:
    """It is restored by its options."""
    session = Session(100, counter=WORDS, system="sys")
    assert session.snapshot(history=False) == session.snapshot()
    assert continued(session).messages() == session.messages()


@pytest.mark.parametrize("path", [("of",), ()])
def test_an_abridged_log_that_was_changed_is_refused(path: Path) -> None:
    """As any other."""
    session = Session(100, counter=WORDS)
    session.add(user("a"))
    data = session.snapshot(history=False)
    data["events"][-1]["data"] = {"of": 0} if path else {}
    with pytest.raises(CorruptSessionError, match="does not match its seal"):
        Session.restore(data, counter=WORDS)


def test_whether_history_is_kept_is_yes_or_no() -> None:
    """A number of messages is neither."""
    with pytest.raises(ConfigurationError, match="history must be True or False, not 5"):
        Session(100).snapshot(history=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("summarizer", [None, summarize])
def test_both_counts_are_of_the_view(summarizer: Any) -> None:
    """The whole is the recent ones, system text, anchors and the summary; what is hidden is in neither."""
    session = Session(100, counter=WORDS, system="sys", anchors=[user("an")], summarizer=summarizer)
    for at in range(40):
        session.add(user(f"{at} {words(9)}"))
    assert len(session.messages()) == session.total_message_count
    front = 2 if summarizer is None else 3
    assert session.recent_message_count == session.total_message_count - front
    status = session.status()
    outside = status.hidden_messages + status.summarized_messages
    assert session.recent_message_count + outside == len(list(session.history()))
