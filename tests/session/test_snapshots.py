"""A snapshot that somebody changed is refused with CorruptSessionError, or restored as it says (SPEC E10)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
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


@given(st.sampled_from(PLACES) | st.sampled_from(NEAR_THE_END), VALUES, st.booleans())
@settings(max_examples=400)
def test_a_changed_snapshot_is_refused_or_restored_as_it_says(path: Path, value: Any, gone: bool) -> None:
    """No other error, then or later; what is taken is the very log that was given."""
    data = changed(path, value, gone=gone)
    before = copy.deepcopy(data)
    try:
        session = restored(data)
    except (CorruptSessionError, ConfigurationError):
        return
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


def last(kind: str) -> int:
    """Place of the newest event of a kind."""
    return max(at for at, event in enumerate(taken()["events"]) if event["kind"] == kind)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("events", -1, "state", "summary"), 5, id="a-summary-that-is-a-message"),
        pytest.param(("events", -1, "state", "summary"), 10**6, id="a-summary-to-come"),
        pytest.param(("events", -1, "state", "budget_tokens"), -100, id="a-negative-budget"),
        pytest.param(("events", -1, "state", "beside"), [[]], id="an-empty-unit"),
        pytest.param(("events", -1, "state", "beside"), [{}], id="a-unit-that-is-a-mapping"),
        pytest.param(("events", -1, "state", "pins"), [0], id="a-pin-on-nothing"),
        pytest.param(("events", -1, "state", "waiting"), [[[2], []]], id="waits-for-nothing"),
        pytest.param(("events", -1, "state"), [], id="a-state-that-is-a-list"),
        pytest.param(("events", last("summary"), "data", "text"), True, id="a-summary-without-text"),
        pytest.param(("events", last("message"), "data", "joins"), [1], id="joins-a-list"),
        pytest.param(("events", last("message"), "kind"), "note", id="another-kind"),
        pytest.param(("events", 0, "data", "options", "given"), None, id="options-without-given"),
        pytest.param(("events", 0, "data", "options", "anchors"), ["x"], id="an-anchor-that-is-a-text"),
        pytest.param(("events", 0, "data", "options", "system"), 5, id="system-text-that-is-a-number"),
        pytest.param(("events", 0, "data", "options", "model"), 5, id="a-model-that-is-a-number"),
        pytest.param(("events", 0, "data", "options", "budget_tokens"), "5", id="a-budget-that-is-a-text"),
        pytest.param(("events", last("anchors"), "data", "anchors"), ["x"], id="another-anchor"),
        pytest.param(("events", 3, "id"), taken()["events"][2]["id"], id="an-id-that-stands-twice"),
    ],
)
def test_what_no_session_writes_is_refused(path: Path, value: Any) -> None:
    """With CorruptSessionError, which says where."""
    with pytest.raises(CorruptSessionError, match=r"event|options"):
        restored(changed(path, value))


def test_a_function_of_a_wrong_kind_is_no_fault_of_the_snapshot() -> None:
    """The caller hears what to pass."""
    with pytest.raises(ConfigurationError, match="hooks is") as caught:
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
