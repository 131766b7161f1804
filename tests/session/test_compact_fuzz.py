"""Any order of operations, in five forms: references in views of a session lead to lines that are sent."""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import pytest

from tests.result_chats import FORMS, chat, results, said, unresolved
from trimtab import BudgetExceededError, Context, Session, validate
from trimtab.compact import Compact, expand
from trimtab.counting import CharCounter
from trimtab.errors import ContextError, UnknownNameError
from trimtab.stores import Event, MemoryStore

CUT = "cut by trimtab"


class Work:
    """A session of an agent to which anything may happen."""

    def __init__(self, form: str, draw: Random) -> None:
        self.form, self.draw = form, draw
        self.store, self.name = MemoryStore(), "work"
        self.budget = draw.choice((1_500, 3_000, 8_000))
        self.in_context = draw.random() < 0.2
        self.pins = draw.random() < 0.3
        self.summarizes = draw.random() < 0.4
        self.compact = Compact(json=None, min_lines=draw.choice((1, 3)), min_tokens=draw.choice((0, 20)))
        self.ratio, self.chars = draw.choice((None, "auto", 0.2)), draw.choice((1, 4))
        self.anchors = chat(form, draw, turns=1, lookalikes=False) if draw.random() < 0.2 else []
        self.strides = draw.choice((0.5, 1.0))
        self.is_first_budget = True
        self.waiting = list[dict[str, Any]]()
        self.events = list[Event]()
        self.session = self.open(
            max_result_ratio=self.ratio,
            anchors=self.anchors,
            max_anchor_tokens=1_000,
            target_ratio=self.strides,
            **({} if self.in_context else {"compact": self.compact, "format": self.form}),
        )
        self.before = dict[int, list[str]]()
        self.references, self.kind = 0, "add"
        self.do_add()  # before that nothing is stored of how it was made

    def open(self, **options: Any) -> Session:
        """Open the session: what one worker knew is what the store has."""
        given: dict[str, Any] = {"counter": CharCounter(self.chars, format=self.form)}
        if self.in_context:
            context = Context(self.budget, format=self.form, compact=self.compact, counter=given["counter"])
            context.add("notes", [said(self.form, "user", "Be careful.")], pinned=True)
            given |= {"context": context, "counter": None}
        else:
            given["budget"] = self.budget
        if self.summarizes:
            given["summarizer"] = lambda messages: f"{len(messages)} were said."
        return Session(id=self.name, store=self.store, **given, **options)

    def do_add(self) -> None:
        """Say what follows, a few messages."""
        if not self.waiting:
            # What is pinned is sent as it is, also what looks like a reference.
            self.waiting = chat(self.form, self.draw, turns=6, lookalikes=not self.pins)
        taken = self.draw.choice((1, 2, 5))
        for message in self.waiting[:taken]:
            self.events.append(self.session.add(message))
        self.waiting = self.waiting[taken:]

    def do_pop(self) -> None:
        """Take off the newest message."""
        self.session.pop()
        self.waiting = []

    def do_undo(self) -> None:
        """Take back the newest decision."""
        with contextlib.suppress(UnknownNameError):
            self.session.undo()

    def do_redact(self) -> None:
        """Overwrite a message."""
        if self.events:
            self.session.redact(self.draw.choice(self.events))

    def do_pin(self) -> None:
        """Keep a message in view."""
        if self.events and self.pins:
            with contextlib.suppress(ContextError):
                self.session.pin(self.draw.choice(self.events[-8:]))

    def do_budget(self) -> None:
        """Change the budget."""
        if not self.in_context:
            with contextlib.suppress(BudgetExceededError):
                self.budget = self.draw.choice((1_500, 3_000, 8_000))
                self.session.set_budget(self.budget)
                self.is_first_budget = False

    def do_kill(self) -> None:
        """Another worker goes on."""
        self.session = self.open()

    def do_cut(self) -> None:
        """Cut the view."""
        self.session.cut()

    def do_fork(self) -> None:
        """Go on with a fork."""
        self.name += "f"
        self.session = self.session.fork(id=self.name)

    def step(self) -> None:
        """Let one thing happen."""
        kind = self.kind = self.draw.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        with contextlib.suppress(BudgetExceededError):
            getattr(self, f"do_{kind}")()

    def check(self) -> None:
        """Look at the view, and at that of another worker."""
        try:
            fitted = self.session.fit()
        except BudgetExceededError:
            return
        assert fitted.tokens_after <= self.budget
        messages = [one for one in fitted.messages if not is_text(one)]
        output = results(self.form, messages)
        assert unresolved(output) == []
        faults = {one.rule for one in validate(fitted.messages, format=self.form) if one.fault}
        assert faults <= {"wrong_order", "blank_text", "empty_text"}  # as the chats have them
        if not self.in_context and not fitted.report.evicted_message_count and CUT not in str(messages):
            assert self.session.token_count >= fitted.tokens_after  # equal, unless calls nobody answers go
        sent = self.sent_texts(fitted.messages)
        if self.is_first_budget or self.ratio is None:  # a share is of the budget a session is opened with
            assert self.open().messages() == fitted.messages
        written = fitted.report.written
        self.references += 0 if written is None else len(written.references)
        versions, before = [*sent], self.before
        if self.kind in ("add", "kill", "fork") and versions[: len(before)] == [*before]:
            assert {version: sent[version] for version in before} == before
        self.before = sent

    def sent_texts(self, messages: list[Any]) -> dict[int, list[str]]:
        """Compare what a view says, without references, with the log; return results by their version.

        A result that is cut is none: the newest is shown whole for as long as it is that.
        """
        origins = self.session.origins()
        offset = len(messages) - len(origins)
        whole = {event.version: event for event in self.session.history()}
        expanded = expand(messages, format=self.form)
        sent = dict[int, list[str]]()
        for message, shown, origin in zip(messages[offset:], expanded[offset:], origins, strict=True):
            if origin.kind != "message" or is_text(message) or CUT in str(message):
                continue
            version = origin.versions[0]
            told = texts_of(self.form, self.session.view_of(whole[version]))
            assert texts_of(self.form, shown) == told
            sent[version] = texts_of(self.form, message)
        return sent


def is_text(message: dict[str, Any]) -> bool:
    """Tell whether a message is text that a session wrote."""
    return isinstance(message.get("content"), str) and message.get("role") != "tool"


def texts_of(form: str, message: dict[str, Any]) -> list[str]:
    """List the texts of the results in a message."""
    return [text for _, _, text in results(form, [message])]


WEIGHTS = {
    "add": 14,
    "pop": 1,
    "undo": 1,
    "redact": 1,
    "pin": 1,
    "budget": 1,
    "kill": 1,
    "cut": 1,
    "fork": 1,
}


def play(seed: int) -> int:
    """Let thirty things happen to a session, and return how many references were seen."""
    draw = Random(seed)
    work = Work(draw.choice(FORMS), draw)
    for _ in range(30):
        work.step()
        work.check()
    return work.references


@pytest.mark.parametrize("part", range(4))
def test_every_reference_in_a_view_leads_to_lines_that_are_sent(part: int) -> None:
    """Undo, redact, pins, cuts, other budgets and workers: references resolve, and originals come back."""
    assert sum(play(seed) for seed in range(part * 10, part * 10 + 10)) > 50


@pytest.mark.long
def test_every_reference_in_views_of_many_sessions_leads_to_lines_that_are_sent() -> None:
    """The same, of more sessions."""
    assert sum(play(seed) for seed in range(100, 180)) > 800
