"""An add costs its message and a view what it shows, however long the conversation is by now (issue 4)."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.complexity.counting_machine import operations_of
from trimtab import Session
from trimtab.stores import Appended, AppendRequest, Event, LoadRequest, MemoryStore
from trimtab.summaries import Fact, FactRequest, SummaryRequest
from trimtab.testing import WordCounter

FEW, MANY = 1_000, 8_000
MOST_GROWTH = 1.2
"""Most times the cost of the short session that the cost of the long one may be (issue 4).

What grows with the length would be eight times as much.
"""

PAGE = 128
"""Events that one page more has: where the last page ends is not the same everywhere."""

ADDS = 240
"""How many adds are measured: several summaries are among them."""


class Measured(MemoryStore):
    """Counts the bytes it is given and gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.written_bytes = 0
        self.read_events = 0

    def append(self, request: AppendRequest, /) -> Appended:
        """Store, and count what it is given."""
        for event in (*request.events, *request.rewrites):
            self.written_bytes += len(json.dumps([event.id, event.kind, event.data, event.state]))
        return super().append(request)

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read, and count what is given back."""
        events = super().load(request)
        self.read_events += len(events)
        return events


def talk(at: int) -> list[dict[str, Any]]:
    """Say four messages that look the same wherever they stand: texts of one length, ids of one length."""
    return [
        user(f"{at:09} {words(9)}"),
        call(f"call{at:09}"),
        result(f"call{at:09}", words(12)),
        assistant(words(8)),
    ]


def summary(messages: Any) -> str:
    """Write one of one length."""
    return words(20)


@lru_cache(maxsize=8)
def session_of(count: int, *, summarizes: bool, cheapest: bool = False) -> Session:
    """Make a session of so many messages, said in steps of a third of the budget: nothing piles up."""
    store = Measured()
    options: dict[str, Any] = {"strategy": "cheapest"} if cheapest else {}
    if summarizes:
        options["summarizer"] = summary
    session = Session(1_000, counter=WordCounter(), store=store, id="s", **options)
    for start in range(0, count // 4, 10):
        session.extend([message for at in range(start, start + 10) for message in talk(at)])
    return session


def measured(session: Session) -> Measured:
    """Its store."""
    store = session.store
    assert isinstance(store, Measured)
    return store


def cost(session: Session, call_it: Callable[[], object]) -> tuple[int, int, int]:
    """Count lines run in trimtab, bytes written and events read."""
    store = measured(session)
    written, read = store.written_bytes, store.read_events
    lines = operations_of(lambda _: call_it()).lines
    return lines, store.written_bytes - written, store.read_events - read


def shown_more(sizes: list[int]) -> float:
    """How many times as many messages the long session shows; 1 where it shows fewer."""
    return max(1.0, sizes[1] / sizes[0])


def add_some(session: Session) -> None:
    """Add messages one by one, so that some of them pass the budget."""
    start = session.version
    for at in range(ADDS // 4):
        for message in talk(start + at):
            session.add(message)


@pytest.mark.long
@pytest.mark.parametrize("summarizes", [True, False], ids=["summaries", "truncation"])
def test_an_add_costs_late_in_a_session_what_it_costs_early(summarizes: bool) -> None:
    """Operations, bytes written, events read: at most 1.2 times."""
    few, many = (session_of(count, summarizes=summarizes) for count in (FEW, MANY))
    assert many.version > MANY
    for less, more in zip(cost(few, lambda: add_some(few)), cost(many, lambda: add_some(many)), strict=True):
        assert more <= MOST_GROWTH * less
    if summarizes:
        for session in (few, many):  # behind it stand the exact values it lost
            assert session.summary is not None
            assert session.summary.partition("\n")[0] == words(20)


@pytest.mark.long
def test_cuts_that_cost_least_go_by_running_totals() -> None:
    """However much was said: an add, with the cuts among them, and a view read from the store anew."""
    few, many = (session_of(count, summarizes=False, cheapest=True) for count in (FEW, MANY))
    for less, more in zip(cost(few, lambda: add_some(few)), cost(many, lambda: add_some(many)), strict=True):
        assert more <= MOST_GROWTH * less
    sizes = [len(session.messages()) for session in (few, many)]
    costs = [
        cost(session, lambda session=session: (session.refresh(), session.messages()))
        for session in (few, many)
    ]
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH * less * shown_more(sizes)


@pytest.mark.few(1)
@pytest.mark.parametrize("summarizes", [True, False], ids=["summaries", "truncation"])
def test_a_view_costs_what_it_shows(summarizes: bool) -> None:
    """From memory, and read from the store anew."""
    few, many = (session_of(count, summarizes=summarizes) for count in (FEW, MANY))
    for look in (lambda session: session.messages(), lambda session: (session.refresh(), session.messages())):
        costs = [cost(session, lambda session=session, look=look: look(session)) for session in (few, many)]
        sizes = [len(session.messages()) for session in (few, many)]
        for less, more in zip(*costs, strict=True):
            assert more <= MOST_GROWTH * less * shown_more(sizes)


def held(session: Session) -> int:
    """Messages a session holds in memory: those that can be reached from it, but for its store's."""
    seen: dict[int, object] = {id(session.store): session.store}
    left: list[object] = [session]
    found = 0
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType):
            seen[id(one)] = one
            found += isinstance(one, dict) and "role" in one
            left += gc.get_referents(one)
    return found


@pytest.mark.parametrize("summarizes", [True, False], ids=["summaries", "truncation"])
def test_what_is_held_in_memory_does_not_grow(summarizes: bool) -> None:
    """It is what is recent or in view; so is what an event says of where the session stands."""
    few, many = (session_of(count, summarizes=summarizes) for count in (FEW, MANY))
    shown = [len(session.messages()) for session in (few, many)]  # each stands somewhere between two cuts
    assert 0 < held(many) * shown[0] <= MOST_GROWTH * held(few) * shown[1]
    newest = [
        session.store.load(LoadRequest(session="s", limit=200, newest_first=True)) for session in (few, many)
    ]
    less, more = (max(len(json.dumps(event.state)) for event in events) for events in newest)
    assert more <= MOST_GROWTH * less


class Away:
    """A summarizer that fails until it is back."""

    def __init__(self) -> None:
        self.back = False

    def summarize(self, request: SummaryRequest) -> str:
        """Fail, or answer."""
        if not self.back:
            raise ConnectionError
        return words(20)


@pytest.mark.long
def test_a_summary_after_a_long_outage_reads_what_it_covers() -> None:
    """Not all that waits: one budget's worth a time, however much it is."""
    read = []
    for count in (2_000, 8_000):
        summarizer, store = Away(), Measured()
        session = Session(1_000, counter=WordCounter(), summarizer=summarizer, store=store, id="s")
        for start in range(0, count // 4, 50):
            session.extend([message for at in range(start, start + 50) for message in talk(at)])
        summarizer.back = True
        before, version = store.read_events, session.version
        for _ in range(count // 200 + 10):
            if session.summary is None:  # the next attempt is as far off as the failures were many
                session.extend([message for _ in range(100) for message in talk(session.version)])
        assert session.summary is not None
        add_some(session)
        events = store.read_events - before
        summaries = list(session.history(after=version, kinds=("summary",)))
        assert len(summaries) >= 10
        read.append(events / len(summaries))
    assert read[1] <= MOST_GROWTH * read[0] + PAGE


MOST_GROWTH_OF_ORDERS = 1.3
"""Most times the cost in the short session that an order in the long one may have (issue 11)."""


def redact_newest(session: Session) -> None:
    """Redact the message that was said last."""
    session.redact(session.add(user(words(20))))


def undo_newest(session: Session) -> None:
    """Take back what was decided last: a summary, or an eviction."""
    session.undo()


def pop_newest(session: Session) -> None:
    """Take off the message that was said last."""
    session.pop()


ORDERS = {"redact": redact_newest, "pop": pop_newest, "undo": undo_newest}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("summarizes", [True, False], ids=["summaries", "truncation"])
def test_an_order_costs_what_it_changes(summarizes: bool, order: Callable[[Session], None]) -> None:
    """Operations, bytes written, events read: at most 1.3 times, and a page of events more."""
    few, many = (session_of(count, summarizes=summarizes) for count in (FEW, MANY))
    costs = [cost(session, lambda session=session: order(session)) for session in (few, many)]
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH_OF_ORDERS * less, costs


def test_an_order_about_what_waits_does_not_read_all_that_waits() -> None:
    """Without a summarizer every message out of view waits: the oldest is redacted and pinned alone."""
    sessions = [session_of(count, summarizes=False) for count in (FEW, MANY)]
    for order in (Session.redact, Session.pin, Session.unpin):
        costs = []
        for session in sessions:
            (oldest,) = session.history(after=1, before=3)
            costs.append(cost(session, partial(order, session, oldest.id)))
        for less, more in zip(*costs, strict=True):
            assert more <= MOST_GROWTH_OF_ORDERS * less, (order, costs)


def test_recall_costs_what_is_found() -> None:
    """One message of many has the word; the first search pays for no index."""
    sessions = [session_of(count, summarizes=True) for count in (FEW, MANY)]
    costs = []
    for session in sessions:
        (oldest,) = session.history(after=1, before=3)
        word = oldest.message["content"].split()[0]
        found: list[Event] = []
        costs.append(cost(session, partial(_recall, session, word, found)))
        assert oldest.id in [event.id for event in found]
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH_OF_ORDERS * less, costs


@pytest.mark.long
def test_a_view_with_recall_reads_what_it_shows_and_the_index() -> None:
    """A question whose word few messages have: 100 times the log, at most 1.3 times lines and events."""
    costs = []
    for count in (1_000, 100_000):
        store = Measured()
        session = Session(1_000, counter=WordCounter(), store=store, id="s", recall_ratio=0.3)
        session.add(user(f"zebra {words(9)}"))
        for start in range(0, count // 4, 250):
            session.extend([message for at in range(start, start + 250) for message in talk(at)])
        assert len(list(session.history(after=session.version - 9))) > 0
        costs.append(cost(session, partial(_ask, session)))
        assert "zebra" in str(session.messages()[-2])
        view = cost(session, session.messages)
        assert view[2] == 0  # what was found is remembered: a view reads no event
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH_OF_ORDERS * less, costs


def _ask(session: Session) -> None:
    session.add(user("zebra"))
    session.messages()


def _recall(session: Session, word: str, found: list[Event]) -> None:
    found += session.recall(word)


def _facts(request: FactRequest) -> list[Fact]:
    """Find two facts in each answer, of which the second stands in the place of the newest that is known."""
    old = request.known[-1].text if request.known else None
    noted = [f"noted {one}" for one in request.ids[:2]]
    return [Fact(text=noted[0]), Fact(text=noted[1], supersedes=old)]


@pytest.mark.long
def test_recall_of_a_fact_costs_what_it_finds() -> None:
    """The oldest of all hidden facts, in a session that was just opened: not the answers since."""
    costs = []
    for count in (FEW, MANY):
        store = Measured()
        functions: dict[str, Any] = {"counter": WordCounter(), "fact_extractor": _facts}
        session = Session(1_000, store=store, id="s", max_fact_tokens=12, **functions)
        for start in range(0, count // 4, 10):
            session.extend([message for at in range(start, start + 10) for message in talk(at)])
        assert session.status().hidden_facts >= count / 100
        known, told = {fact.text for fact in session.facts}, list(session.history(kinds=("fact",)))
        superseded = {one.data["supersedes"] for one in told}
        oldest = next(one for one in told if one.version not in superseded and one.data["text"] not in known)
        session = Session(store=store, id="s", **functions)
        found: list[Event] = []
        query = "what of " + oldest.data["text"].split()[1]  # the id alone is a handle, and finds its message
        costs.append(cost(session, partial(_recall, session, query, found)))
        assert [event.version for event in found if event.kind == "fact"] == [oldest.version]
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH_OF_ORDERS * less, costs


@pytest.mark.long
def test_adds_cost_the_same_however_many_facts_there_are() -> None:
    """Each answer has new facts, a correction, and one told again: the best are ranked, not all."""
    costs = []
    for count in (FEW, MANY):
        told: list[str] = []

        def find(request: FactRequest, told: list[str] = told) -> list[Fact]:
            new = [f"noted {one} more" for one in request.ids[2:10]]
            told += new
            return [*_facts(request), *(Fact(text=one) for one in (*new, told[len(told) // 2]))]

        functions: dict[str, Any] = {"counter": WordCounter(), "fact_extractor": find}
        session = Session(1_000, store=Measured(), id="s", max_fact_tokens=60, **functions)
        for start in range(0, count // 4, 10):
            session.extend([message for at in range(start, start + 10) for message in talk(at)])
        assert session.status().hidden_facts >= count / 100
        found = len(told)
        costs.append(cost(session, partial(add_some, session)))
        assert len(told) > found
    for less, more in zip(*costs, strict=True):
        assert more <= MOST_GROWTH_OF_ORDERS * less, costs


MOST_LINES_OF_A_VIEW = 70
"""Lines run for each message of a view; the half of it is its copy, its place and its report."""


@lru_cache(maxsize=2)
def full_view_of(count: int) -> Session:
    """A session that shows so many messages, and has more; each add makes the oldest leave."""
    session = Session(10 * count, counter=WordCounter(), store=Measured(), id="s", target_ratio=1.0)
    said = [user(words(10)), assistant(words(10))]
    session.extend(said * count)
    for message in said * 5:
        session.add(message)
    assert len(session.messages()) == count
    return session


def say_ten(session: Session) -> None:
    """Add messages that take another's room each."""
    for _ in range(5):
        session.add(user(words(10)))
        session.add(assistant(words(10)))


def test_an_add_does_not_go_through_what_is_in_view() -> None:
    """With 2,000 messages in view it runs the lines it runs with 100: none is sorted or listed."""
    few, many = (cost(full_view_of(count), partial(say_ten, full_view_of(count))) for count in (100, 2_000))
    assert many[0] <= MOST_GROWTH * few[0], (few, many)


@pytest.mark.long
def test_a_stride_costs_each_add_the_same_however_much_it_takes_out() -> None:
    """From one cut to the one after the next: 2,000 messages in view are cut seldom, 100 often."""
    lines = []
    for count in (100, 2_000):
        session = Session(10 * count, counter=WordCounter(), store=Measured(), id="s")
        said = [user(words(10)), assistant(words(10))]
        session.extend(said * (count // 2 + 1))
        assert len(session.messages()) < count  # it was cut just now
        adds = 4 * count

        def add_all(session: Session = session, adds: int = adds, said: Any = said) -> None:
            for at in range(adds):
                session.add(said[at % 2])

        before = session.version
        found = cost(session, add_all)
        assert len(list(session.history(after=before, kinds=("evicted",)))) >= 4
        lines.append([one / adds for one in found])
    for less, more in zip(*lines, strict=True):
        assert more <= MOST_GROWTH * less, lines


class ReadsAll:
    """A summarizer that wants everything it stands for; notes how much it was given."""

    reads_all = True

    def __init__(self) -> None:
        self.given: list[int] = []

    def summarize(self, request: SummaryRequest) -> str:
        """Answer one of one length."""
        self.given.append(len(request.messages))
        return words(20)


@pytest.mark.long
def test_who_reads_all_reads_no_more_of_a_long_session_than_of_a_short_one() -> None:
    """Sixteen budgets of what was summarized before, however long it is: events read and messages given."""
    found = []
    for count in (6_000, 18_000):
        store, summarizer = Measured(), ReadsAll()
        session = Session(400, counter=WordCounter(), summarizer=summarizer, store=store, id="s")
        for start in range(0, count // 4, 5):
            session.extend([message for at in range(start, start + 5) for message in talk(at)])
        summarizer.given.clear()
        before = store.read_events
        add_some(session)
        assert len(summarizer.given) >= 5
        found.append((store.read_events - before, max(summarizer.given)))
    for less, more in zip(*found, strict=True):
        assert more <= MOST_GROWTH * less, found


def test_a_view_goes_through_its_messages_few_times() -> None:
    """They are in order already: listed once, copied once, fitted once."""
    for count in (100, 2_000):
        session = full_view_of(count)
        lines, written, read = cost(session, session.messages)
        assert lines <= MOST_LINES_OF_A_VIEW * count
        assert (written, read) == (0, 0)
