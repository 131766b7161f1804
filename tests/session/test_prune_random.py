"""Whatever came before: a pruned session shows, undoes and goes on as one that was not pruned."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import assistant, call, result, user
from tests.sizes import sizes
from trimtab import BudgetExceededError, ConfigurationError, Session
from trimtab.errors import PrunedError, SummaryError, UnknownNameError
from trimtab.session import Pruning
from trimtab.stores import LoadRequest, MemoryStore, copy_session
from trimtab.summaries import Fact, FactRequest, SummaryRequest

WORDS = ("heron", "amber", "quartz", "willow", "copper", "lantern", "harbor", "maple", "summit", "violet")
RULES = ("Never deploy on Fridays.", "Always quote the ticket.", "My budget is $500.", "My budget is $800.")
MORE_LIKE_PROGRAMS = (8, 3, 2, 1, 1, 1, 1, 1, 1, 1)


class Writer:
    """A summarizer of a few words of what it is given."""

    def __init__(self, *, reads_all: bool) -> None:
        self.reads_all = reads_all

    def summarize(self, request: SummaryRequest) -> str:
        """Quote the beginnings of messages."""
        said = [str(one["content"]).split()[:2] for one in request.messages if one.get("content")]
        return " ".join(word for words in said for word in words)[:60] or "nothing"


class Extractor:
    """A fact extractor that corrects and confirms now and then, as its texts say."""

    def extract(self, request: FactRequest) -> list[Fact]:
        """Go by the length of each message."""
        found = list[Fact]()
        for message, source in zip(request.messages, request.ids, strict=True):
            text = str(message.get("content"))
            old = request.known[len(text) % len(request.known)].text if request.known else None
            if len(text) % 3 == 0:
                found.append(Fact(text=f"fact {text[:18]}", sources=[source], supersedes=old))
            elif old is not None and len(text) % 7 == 0:
                found.append(Fact(text=old, sources=[source]))
            elif len(text) % 3 == 1:
                found.append(Fact(text=f"known {text[:18]}", sources=[source], weight=1.0 + len(text) % 4))
        return found


@dataclass
class Pair:
    """A session that is pruned, and the same one that is not."""

    draw: random.Random
    options: dict[str, Any]
    count: int = 0

    def __post_init__(self) -> None:
        self.store, self.other = MemoryStore(), MemoryStore()
        self.one = self.two = Session(store=self.store, id="s", **self.options)

    @property
    def reads_old(self) -> bool:
        """Whether what is decided later goes by messages that may be pruned."""
        summarizer = self.options["summarizer"]
        return self.options["recall_ratio"] > 0 or (summarizer is not None and summarizer.reads_all)

    def message(self) -> dict[str, Any]:
        """Make a message of a few words, a call or a result, now and then with a rule."""
        words = self.draw.choices(WORDS, k=self.draw.randint(1, 25))
        if self.draw.random() < 0.1:
            words.append(self.draw.choice(RULES))
        kind = self.draw.random()
        self.count += 1
        if kind < 0.15:
            return call(f"call-{self.count}")
        if kind < 0.4 and self.count > 1:
            return result(f"call-{self.draw.randint(max(1, self.count - 4), self.count)}", " ".join(words))
        return (user if kind < 0.7 else assistant)(" ".join(words))

    def both(self, name: str, *arguments: Any, **named: Any) -> None:
        """Do the same to both; where the first needs what was pruned, the second is left alone as well."""
        try:
            getattr(self.one, name)(*arguments, **named)
            refused: type[Exception] | None = None
        except (PrunedError, BudgetExceededError, ConfigurationError, SummaryError) as error:
            refused = type(error)
        if self.two is self.one or refused is PrunedError or (name == "pin" and refused):
            return  # or it stays for a rule, but no longer waits
        if refused is None:
            getattr(self.two, name)(*arguments, **named)
        else:
            with pytest.raises(refused):
                getattr(self.two, name)(*arguments, **named)

    def step(self) -> None:
        """Do something that a program might."""
        actions = ("add", "undo", "pop", "pin", "unpin", "redact", "clear", "usage", "summarize", "refresh")
        match self.draw.choices(actions, MORE_LIKE_PROGRAMS)[0]:
            case "add":
                given = [self.message() for _ in range(self.draw.randint(1, 4))]
                self.both("extend", given, ids=[f"m{self.count}-{at}" for at in range(len(given))])
            case "clear":
                if self.draw.random() < 0.2:
                    self.both("clear")
            case "pin" | "unpin" | "redact" as name:
                ids = [event.id for event in self.one.history()]
                if ids:
                    self.both(name, self.draw.choice(ids))
            case "usage":
                if self.two is self.one:  # what is billed goes by the view that was asked for last
                    with suppress(BudgetExceededError):
                        self.one.messages()
                        self.one.record_usage({"prompt_tokens": self.draw.randint(100, 600)})
            case "summarize":
                self.both("summarize")
            case name:
                self.both(name)

    def split(self) -> None:
        """Go on with a copy, which is not pruned."""
        if self.one.version:
            copy_session(self.store, self.other, "s")
        self.one, self.two = (
            Session(store=store, id="s", **self.options) for store in (self.store, self.other)
        )

    def compare(self, *, later: bool = False) -> None:
        """Compare all that can be seen; what came later does not recall what was pruned."""
        again = Session(store=self.store, id="s", **self.options)
        views = [seen_of(session) for session in (self.one, again, self.two)]
        assert views[0] == views[1]
        if not (later and self.reads_old):
            assert views[0] == views[2]
        if not later:  # then both have the same ids
            self.compare_recall(again)
        assert stored(again) == stored(self.one)

    def compare_recall(self, again: Session) -> None:
        """Compare what is found of messages and facts: what stays, in whatever order.

        By words, only what has one: others are found beside these, and stand beside others then.
        """
        words, log = ("heron", "amber", "known", "fact", "friday"), self.store.load(LoadRequest(session="s"))
        ranks = self.options["ranker"] is not None
        stays = {
            event.id
            for event in log
            if event.kind != "pruned" and (ranks or any(word in str(event.data).lower() for word in words))
        }
        found, whole = ({one.id for one in by.recall(" ".join(words), 1_000)} for by in (again, self.two))
        assert found & stays == whole & stays
        assert found <= {event.id for event in log if event.kind != "pruned"}


def stored(session: Session) -> dict[str, Any]:
    """The numbers that do not depend on what an object saw itself."""
    own = ("last_failure", "last_fact_failure", "stale_summaries", "hook_errors")
    return {name: value for name, value in session.status().to_dict().items() if name not in own}


def seen_of(session: Session) -> list[Any]:
    """What can be seen of a session, and is the same without what was pruned."""
    with suppress(BudgetExceededError):
        return [
            session.messages(),
            session.summary,
            session.facts,
            [rule.to_dict() for rule in session.rules],
            session.token_count,
            session.recent_message_count,
            session.status().facts,
            session.status().hidden_facts,
            session.status().stale_facts,
            session.status().rules,
        ]
    return ["no room"]


def rank(query: str, messages: list[Any]) -> list[float]:
    """Score by the letters of a message."""
    return [len(str(one.get("content"))) % 7 for one in messages]


def options_by(draw: random.Random) -> dict[str, Any]:
    """Draw the options of a session."""
    return {
        "budget": draw.choice((220, 300, 500)),
        "counter": lambda messages: sum(2 + len(str(one.get("content")).split()) for one in messages),
        "summarizer": Writer(reads_all=draw.random() < 0.3) if draw.random() < 0.6 else None,
        "fact_extractor": Extractor() if draw.random() < 0.5 else None,
        "summarize_threshold_tokens": draw.choice((20, 60)),
        "summary_mode": draw.choice(("incremental", "rolling", "anchored")),
        "target_ratio": draw.choice((0.5, 0.9, 1.0)),
        "recall_ratio": draw.choice((0.0, 0.2)),
        "ranker": draw.choice((None, rank)),
        "find_rules": draw.choice(("off", "auto", "all")),
    }


@sizes(25, 1_000)
def test_a_pruned_session_goes_on_as_one_that_was_not(size: int) -> None:
    """Live view, fresh view, each view since, undo of the last decisions, and what comes later."""
    for seed in range(size):
        compare_by(random.Random(f"prune {seed}"))


def compare_by(draw: random.Random) -> None:
    """Talk, prune one of two, and go on with both."""
    pair = Pair(draw, options_by(draw))
    for _ in range(draw.randint(5, 60)):
        pair.step()
    pair.split()
    pair.compare()
    keep, version = draw.choice((0, 1, 2, 4)), pair.one.version
    receipt = pair.one.prune(keep=keep)
    pair.compare()
    receipt_is_true(pair, receipt, version)
    assert pair.one.prune(keep=keep).events == 0
    for at in range(max(1, receipt.oldest), version + 1):
        assert view_at(pair.one, at) == view_at(pair.two, at)
    at = draw.randint(receipt.oldest, version)
    assert view_at(pair.one.fork(at=at), at) == view_at(pair.two, at)
    if draw.random() < 0.5:
        undo_kept(pair, keep)
    for _ in range(draw.randint(0, 12)):
        pair.step()
        pair.compare(later=True)
    if draw.random() < 0.5:
        pair.one.prune(keep=keep)
        pair.compare(later=True)
        for _ in range(draw.randint(0, 4)):
            pair.step()
            pair.compare(later=True)
    shortened(pair)


def receipt_is_true(pair: Pair, receipt: Pruning, version: int) -> None:
    """What it says is gone is what is not there any more."""
    log, whole = pair.store.load(LoadRequest(session="s")), pair.other.load(LoadRequest(session="s"))
    gone = [event for event in log if event.kind == "pruned"]
    assert receipt.events == len(gone)
    assert receipt.messages == sum(whole[event.version - 1].kind == "message" for event in gone)
    assert [(one.version, one.id, one.time) for one in log[:version]] == [
        (one.version, one.id, one.time) for one in whole
    ]
    assert all(not one.data and not one.state for one in gone)
    if receipt.version:
        assert receipt.kept == len(log) - len(gone)
    assert (receipt.events > 0) == (len(log) > version)


def view_at(session: Session, version: int) -> Any:
    """Show a past view, if what must stay has room."""
    try:
        return session.view_at(version)
    except BudgetExceededError:
        return "no room"


def undo_kept(pair: Pair, keep: int) -> None:
    """Take back as many decisions as were kept."""
    for _ in range(keep):
        try:
            pair.two.undo()
        except UnknownNameError:
            with pytest.raises(UnknownNameError):
                pair.one.undo()
            return
        pair.one.undo()
        pair.compare()


def shortened(pair: Pair) -> None:
    """Snapshots, with the log and without, give the same session."""
    for history in (True, False) if not pair.options["recall_ratio"] else (True,):
        functions = {
            name: pair.options[name]
            for name in ("counter", "summarizer", "fact_extractor", "ranker", "find_rules")
        }
        again = Session.restore(pair.one.snapshot(history=history), **functions)
        with suppress(BudgetExceededError):
            assert again.messages() == pair.one.messages()
