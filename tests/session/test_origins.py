"""What each message of a view is of, and the view with another budget: looked at, and nothing written."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import CharCounter, Context, Session
from trimtab.errors import ConfigurationError
from trimtab.stores import MemoryStore

COUNTER = CharCounter(4)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"target_ratio": 0.5},
    "recall": {"recall_ratio": 0.2},
    "waiting first": {"pending_first": True, "summarizer": lambda messages: f"{len(messages)} things"},
    "summaries": {"summarizer": lambda messages: f"They spoke of {len(messages)} things"},
    "anchors": {"anchors": [{"role": "user", "content": "I am Ada."}]},
}


def _session(budget: int = 300, **options: Any) -> Session:
    session = Session(budget=budget, system="Be brief.", counter=COUNTER, **options)
    for turn in range(60):
        text = f"message {turn} about belt {turn % 7} " + "x" * (turn * 13 % 90)
        session.add({"role": ("user", "assistant")[turn % 2], "content": text})
    return session


@pytest.fixture(params=list(KINDS))
def session(request: pytest.FixtureRequest) -> Session:
    """Give one of each kind, most of what was said out of its view."""
    return _session(**KINDS[request.param])


def test_a_message_of_a_view_is_of_the_version_that_says_it(session: Session) -> None:
    """Now and at an older version, whatever stands before, between and behind."""
    said = {event.version: event.message for event in session.history()}
    for at in (None, session.version // 2):
        fitted, origins = session.fit(at=at), session.origins(at=at)
        assert len(origins) == len(fitted.report.messages)
        for message, index in zip(fitted.messages, fitted.positions, strict=True):
            assert index is not None
            origin = origins[index]
            if origin.kind == "message":
                [version] = origin.versions
                assert said[version] == message
            else:
                assert message not in said.values()


def test_what_was_recalled_names_all_that_it_shows() -> None:
    """As `diff` does."""
    session = _session(**KINDS["recall"])
    recalled = [one.versions for one in session.origins() if one.kind == "recalled"]
    assert recalled == [tuple(event.version for event in session.diff(0, session.version).recalled_after)]
    assert recalled[0]


def test_in_a_context_the_rows_of_the_history_are_named() -> None:
    """What other blocks hold before and behind is not among them."""
    context = Context(budget=400, counter=COUNTER)
    context.add("docs", ["alpha " * 10], role="user")
    context.add("history", None)
    context.add("notes", ["omega " * 10], role="user")
    session = Session(context=context)
    for turn in range(40):
        session.add({"role": ("user", "assistant")[turn % 2], "content": f"message {turn} " + "x" * 50})
    fitted = session.fit()
    rows = [row for row in fitted.report.messages if row.block == "history"]
    said = {event.version: event.message for event in session.history()}
    origins = session.origins()
    assert len(rows) == len(origins) < len(said)
    for row, origin in zip(rows, origins, strict=True):
        assert fitted.messages[fitted.positions.index(row.index)] == said[origin.versions[0]]
    with pytest.raises(ConfigurationError, match="the budget of this session is its Context's"):
        session.fit(budget=200)


@pytest.mark.parametrize("budget", [150, 250, 300, 500, 2_000])
def test_a_view_with_another_budget_is_that_of_a_fork_that_was_given_it(
    session: Session, budget: int
) -> None:
    """Where no summarizer is asked; and the log is as before."""
    before = session.version
    for at in (before, before // 2):
        fork = session.fork(at, store=MemoryStore())
        one, twin = (
            Session.open(kept.store, kept.id, counter=COUNTER, summarizer=None, allow_missing=True)
            for kept in (session, fork)
        )
        twin.set_budget(budget)
        fitted = one.fit(at=at, budget=budget)
        assert fitted.messages == twin.messages()
        assert len(one.origins(at=at, budget=budget)) == len(fitted.report.messages)
    assert session.refresh() == before
    assert session.fit().report.input_tokens == 300
