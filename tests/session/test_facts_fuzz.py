"""Any order of operations: facts in view are those the log says, nothing redacted is there (E13)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.playing import living
from trimtab import BudgetExceededError, Session, validate
from trimtab.errors import UnknownNameError
from trimtab.stores import Event, MemoryStore
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()


class Moody:
    """Finds a fact in each message with a secret, of some weight; fails when it is told.

    Now and then a fact supersedes a known one, and one is found again, in view or not.
    """

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.whim = random.Random(7)
        self.failing = False
        self.read: list[str] = []
        self.found: list[str] = []

    def extract(self, request: FactRequest) -> list[Fact]:
        """Answer, or fail."""
        if self.failing:
            raise ConnectionError("away")
        self.read += request.ids
        found: list[Fact] = []
        for message, id in zip(request.messages, request.ids, strict=True):
            text = str(message.get("content"))
            if "secret" in text:
                known = [fact.text for fact in request.known]
                old = self.draw.choice(known) if known and self.draw.random() < 0.3 else None
                word = next(word for word in text.split() if "secret" in word)
                weight = self.whim.choice([0.5, 1, 1, 1, 2])
                found.append(Fact(text=f"noted {word}", sources=[id], supersedes=old, weight=weight))
                if self.found and self.whim.random() < 0.3:
                    found.append(Fact(text=self.whim.choice(self.found).upper(), weight=weight))
        self.found += [fact.text for fact in found if fact.text.islower()]
        return found


def in_force(events: list[Event]) -> list[Event]:
    """Play the log: which facts are in force at its end, oldest first, stale ones left out."""
    force: list[list[Event]] = [[]]  # after each event, by version
    batch: list[Event] = []
    for event in events:
        now = force[-1]
        if event.kind == "fact":
            batch.append(event)
        elif event.kind == "facts":
            out = {one.data["supersedes"] for one in batch}
            now = [one for one in now if one.version not in out] + batch
            batch = []
        elif event.kind == "cleared":
            now = []
        elif event.kind == "undone":
            now = force[event.data["version"] - 1]
        elif event.kind == "popped":
            while told := [one for one in now if event.data["event"] in one.data["sources"]]:
                now = force[told[0].version - told[0].data["at"] - 1]
        force.append(now)
    return [one for one in force[-1] if not one.data.get("stale")]


def ranking(events: list[Event]) -> list[Event]:
    """List the facts in force, the best first: by weight, then confirmations; equal ones from both ends."""
    waiting, best = sorted(in_force(events), key=age), list[Event]()
    while waiting:
        most = max(map(worth, waiting))
        equal = [one for one in waiting if worth(one) == most]
        turn = sum(worth(one) == most for one in best)
        best.append(equal[-1 if turn % 2 else 0])
        waiting.remove(best[-1])
    return best


def worth(event: Event) -> tuple[float, int]:
    """Return what a fact is ranked by before its age."""
    return event.data.get("weight", 1.0), event.data.get("confirmations", 0)


def newest(event: Event) -> int:
    """Return its version."""
    return event.version


def age(event: Event) -> tuple[int, int]:
    """Return where a fact stands in view."""
    return event.data.get("since", event.version), event.version


def had_again(session: Session, at: int, draw: random.Random, functions: dict[str, Any]) -> Session:
    """Do something with a session, or have it again in some way."""
    order = draw.random()
    if order < 0.65:
        session.add(user(f"secret{at}x {words(draw.randint(4, 16))}"))
    elif order < 0.77:
        session.extend([call(f"c{at}"), result(f"c{at}", f"secret{at}x"), assistant("done")])
    elif order < 0.83:
        session.undo()
    elif order < 0.85:
        session.set_budget(draw.randint(110, 200))
    elif order < 0.87:
        for _ in range(draw.randint(1, 20)):
            session.pop()
    elif order < 0.88:
        session.clear()
    elif order < 0.93:
        return Session.open(session.store, session.id, **functions)
    elif order < 0.97:
        return Session.restore(session.snapshot(), **functions)
    else:
        return session.fork()
    return session


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 112))]
)
def test_facts_hold_through_any_order_of_operations(seed: int) -> None:
    """Adds, tool loops, redactions, undo, budgets, failures, clear, and every way to have it again."""
    draw = random.Random(seed)
    extractor = Moody(draw)
    functions: dict[str, Any] = {
        "fact_extractor": extractor,
        "summarizer": (lambda messages: f"about {len(messages)}") if seed % 2 else None,
        "counter": WORDS,
    }
    options: dict[str, Any] = {
        "target_ratio": draw.choice([0.3, 0.5, 1.0]),
        "summary_mode": draw.choice(["rolling", "anchored"]),
    }
    session = Session(130, id="s", store=MemoryStore(), max_fact_tokens=30, **functions, **options)
    session.add(user("hello"))
    gone: set[str] = set()
    for at in range(120):
        order = draw.random()
        extractor.failing = draw.random() < 0.1
        try:
            if order < 0.08:
                event = draw.choice([*session.history()] or [session.add(user("hi"))])
                gone |= {word for word in str(event.message).replace("'", " ").split() if "secret" in word}
                session.redact(event)
            else:
                session = had_again(session, at, draw, functions)
        except (UnknownNameError, BudgetExceededError):
            session.refresh()
        view = session.messages()
        assert WORDS.count(view) <= session.budget_tokens
        events = list(session.history(kinds=None))
        there = [event.message for event in living(events) if event.kind == "message"]
        halves = {one.call_id for one in validate(there) if one.fault}  # the result was taken off
        assert not [one for one in validate(view) if one.fault and one.call_id not in halves]
        expected = ranking(events)
        shown = [fact.text for fact in session.facts]
        best, others = expected[: len(shown)], expected[len(shown) :]
        assert shown == [one.data["text"] for one in sorted(best, key=age)]
        line = 3 + (others[:1] != [] and others[0].data["origin"] != "user")  # it names another's
        assert not others or not shown or session.token_breakdown.facts + line > 30
        found = {one.version for one in session.recall("noted", 200) if one.kind == "fact"}
        texts = {one.data["text"].casefold() for one in best}
        hidden = {one.data["text"].casefold(): one.version for one in sorted(others, key=newest)}
        assert found == {version for text, version in hidden.items() if text not in texts}
        status = session.status()
        assert status.facts + status.hidden_facts == len(expected)
        said = str([one.data for one in events])
        assert not [word for word in gone if word in said]
    assert len(extractor.read) >= 20
