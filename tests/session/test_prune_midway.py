"""Between the steps of an order to prune, and after an interruption: everybody goes by it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import assistant, call, result, user
from trimtab import Session
from trimtab.errors import PrunedError, UnknownNameError
from trimtab.stores import Appended, AppendRequest, LoadRequest, MemoryStore
from trimtab.summaries import Fact, FactRequest

SAID = "hello number{0} about zebra{0} crossing the road"


class Interrupted(BaseException):
    """The process ends here."""


class Between(MemoryStore):
    """A store that does something after each step of an order that removes events."""

    then: Callable[[], object] | None = None
    steps = 0

    def append(self, request: AppendRequest, /) -> Appended:
        """Store it, and do something then; what is done meanwhile counts for itself."""
        done = super().append(request)
        if self.then is not None and any(event.kind == "pruned" for event in request.rewrites):
            then, self.then = self.then, None
            self.steps += 1
            then()
            self.then = then
        return done

    def interrupt(self) -> None:
        """End the process that prunes."""
        raise Interrupted


def _count(messages: Iterable[Any]) -> int:
    return sum(len(str(one.get("content") or "").split()) + 3 for one in messages)


def _open(store: MemoryStore, **more: Any) -> Session:
    given = {"summarizer": lambda messages: f"{len(messages)} so far", "summarize_threshold_tokens": 20}
    return Session(200, store=store, id="s", counter=_count, **(given | more))


def _fill(session: Session, count: int = 120) -> Session:
    for at in range(count):
        session.add(user(SAID.format(at)))
    return session


def _interrupted(store: Between, *, keep: int = 0, **more: Any) -> Session:
    """Interrupt an order after its first page, and open the session anew."""
    store.then = store.interrupt
    with pytest.raises(Interrupted):
        _open(store, **more).prune(keep=keep)
    store.then = None
    return _open(store, **more)


def _log(store: MemoryStore) -> str:
    return str(store.load(LoadRequest(session="s")))


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("ranker", [None, lambda query, messages: [1.0] * len(messages)])
def test_a_question_recalls_nothing_that_an_order_is_about_to_remove(ranker: Any, step: int) -> None:
    """Asked after one of its steps; then the session can be read, and goes on."""
    store = Between()
    options = {"recall_ratio": 0.4, "ranker": ranker}
    _fill(_open(store, **options))
    other = _open(store, **options)
    asked: list[int] = []

    def ask() -> None:
        if store.steps == step:
            asked.append(other.add(user("what about zebra60 crossing?")).version)

    store.then = ask
    _open(store, **options).prune(keep=0)
    store.then = None
    assert len(asked) == 1
    again = _open(store, **options)
    assert again.messages() == other.messages()
    assert Session.restore(again.snapshot(history=False), counter=_count, allow_missing=True).messages()
    assert again.add(user("and then?")).version > asked[-1]
    assert again.prune(keep=0).version > asked[-1]


@pytest.mark.parametrize("most", [None, 400])
@pytest.mark.parametrize("ranker", [None, lambda query, messages: [1.0] * len(messages)])
def test_what_an_order_is_about_to_remove_is_recalled_by_nobody(ranker: Any, most: int | None) -> None:
    """Neither by words, nor by a ranker, nor as part of a unit, nor by its id."""
    store = Between()
    _fill(_open(store))
    removed = next(event for event in _open(store).history() if "zebra70" in str(event.message))
    session = _interrupted(store, ranker=ranker, max_candidates=most, max_result_ratio=0.5)
    assert "zebra70" in _log(store)
    assert "zebra70" not in str(session.recall("zebra70 crossing", 200))
    assert session.recall("zebra119 crossing", 200) != []
    assert removed.id not in [event.id for event in session.recall(removed.id)]
    with pytest.raises(PrunedError, match=r"was pruned on 20.* shown is \d+"):
        session.view_of(removed)


def test_of_a_call_that_an_order_is_about_to_remove_in_part_the_rest_is_recalled() -> None:
    """It is what will be there when the order is done."""
    store = Between()
    options = {"recall_ratio": 0.4}
    session = _open(store, **options)
    _fill(session, 60)
    session.extend([user("look"), call("c1"), result("c1", "the ibex is in yukon"), assistant("seen")])
    _fill(session, 60)
    session = _interrupted(store, **options)
    session.add(user("where is the ibex of yukon?"))
    assert session.prune(keep=0).events > 0
    assert _open(store, **options).messages() == session.messages()


def test_a_question_that_another_order_overtakes_is_looked_up_again() -> None:
    """The order took away what said which older events stay: no failure of the ranker's, and no error."""
    store = Between()
    overtake = list[Callable[[], object]]()

    def rank(query: str, messages: list[Any]) -> list[float]:
        while overtake:
            overtake.pop()()
        return [float("yukon" in str(one)) for one in messages]

    options = {"recall_ratio": 0.4, "ranker": rank}
    session = _fill(_open(store, **options))
    session.extend([user("look"), call("c1"), result("c1", "the ibex is in yukon"), assistant("seen")])
    _fill(session, 60)
    decisions = len([*session.history(kinds=("summary", "evicted"))])
    assert session.prune(keep=decisions * 2 // 3).events > 0
    _fill(session, 20)
    session.add(user("where is the ibex of yukon?"))
    assert "the ibex is in yukon" in str(session.messages())
    overtake.append(lambda: _open(store, **options).prune(keep=0))
    asked = session.add(user("where is that ibex of yukon?"))
    assert overtake == []
    assert session.messages() == _open(store, **options).messages()
    recalled = [event.data for event in session.history(kinds=("recalled",))][-1]
    assert recalled["question"] == asked.version
    assert "error" not in recalled
    assert "the ibex is in yukon" in str(session.messages())


def test_history_shows_only_what_stays_once_an_order_is_begun() -> None:
    """What stays is seldom alone, and what stands between is not shown before it is removed either."""
    store = Between()
    session = _open(store)
    kept = list[str]()
    for at in range(40):
        event = session.add(user(f"number {at}"))
        if at % 10 == 0:
            session.pin(event)
            kept.append(event.id)
    _fill(session)
    session = _interrupted(store)
    then = [event.id for event in session.history(kinds=None)]
    assert set(kept) <= set(then)
    session.prune(keep=0)
    done = [event.id for event in session.history(kinds=None)]
    assert [one for one in done if one in then] == then
    assert len(done) == len(then) + 1


@pytest.mark.parametrize("by_id", [False, True])
def test_redaction_finds_what_an_interrupted_order_has_yet_to_remove(by_id: bool) -> None:
    """Messages, by a pattern; of one that stays, too, summaries that were taken back."""
    secret, store = "card4111", Between()

    def quote(messages: list[Any]) -> str:
        return f"they said {secret}" if secret in str(messages) else "they talked"

    session = _open(store, summarizer=quote)
    _fill(session, 40)
    event = session.add(user(f"my {secret} is a secret"))
    _fill(session, 30)
    while secret in str(session.summary):
        session.undo()
    if by_id:
        session.pin(event)
    _fill(session)
    assert any(secret in one.data["text"] for one in session.history(kinds=("summary",)))
    session = _interrupted(store, summarizer=quote)
    assert any(
        secret in str(one.data) for one in store.load(LoadRequest(session="s")) if one.kind == "summary"
    )
    done = session.redact(event) if by_id else session.redact(where=secret)
    assert [one.id for one in done] == [event.id]
    assert secret not in _log(store)
    seen = session.messages()
    session.prune(keep=0)
    assert session.messages() == _open(store, summarizer=quote).messages() == seen


def test_a_message_that_an_order_has_yet_to_remove_can_be_redacted_by_its_id() -> None:
    """Who wants it gone need not know of the order."""
    store = Between()
    session = _fill(_open(store))
    event = next(event for event in session.history() if "zebra70" in str(event.message))
    session = _interrupted(store)
    assert [one.id for one in session.redact(event)] == [event.id]
    assert "zebra70 crossing" not in _log(store)
    session.prune(keep=0)
    with pytest.raises(PrunedError):
        session.redact(event)


def test_a_view_leaves_out_what_was_recalled_and_is_gone() -> None:
    """Even if a store lost it by another way than an order."""
    store = MemoryStore()
    session = _fill(_open(store, recall_ratio=0.4))
    session.add(user("what about zebra60 crossing?"))
    said = SAID.format(60)
    assert said in str(session.messages())
    event = next(event for event in session.history() if said in str(event.message))
    gone = replace(event, kind="pruned", data={}, state={})
    store.append(AppendRequest(session="s", expected_version=session.version, events=(), rewrites=[gone]))
    again = _open(store, recall_ratio=0.4)
    assert said not in str(again.messages())
    assert "zebra" in str(again.messages())
    again.add(user("and then?"))


def test_a_result_that_an_order_has_yet_to_remove_is_read_by_nobody() -> None:
    """Neither by the id of its call, nor by its own; one that stays is."""
    store = Between()
    session = _open(store)
    pinned = session.extend([user("first"), call("c0"), result("c0", "pinned result")])[1]
    session.pin(pinned)
    _fill(session, 40)
    removed = session.extend([user("go"), call("c1"), result("c1", "removed result")])[2]
    _fill(session)
    session = _interrupted(store)
    assert "removed result" in _log(store)
    assert "pinned result" in session.read_result("c0")
    for one in ("c1", removed.id):
        with pytest.raises(UnknownNameError):
            session.read_result(one)


def test_redaction_that_finds_no_message_says_that_an_order_is_not_done() -> None:
    """What repeats a message may still be there, though the message is gone: the next order removes it."""
    store = Between()
    session = _open(store)
    session.add(user("my card4111 is a secret"))
    _fill(session)
    session = _interrupted(store)
    with pytest.raises(UnknownNameError, match=r"card4111.*prune\(\) again"):
        session.redact(where="card4111")
    session.prune(keep=0)
    with pytest.raises(UnknownNameError, match=r"card4111.*nothing was changed$"):
        session.redact(where="card4111")


def test_redaction_forgets_facts_that_an_interrupted_order_has_yet_to_remove() -> None:
    """Those in whose place others stand."""
    secret, store = "card4111", Between()

    class Extractor:
        def extract(self, request: FactRequest) -> list[Fact]:
            texts = [str(one["content"]) for one in request.messages]
            told = next((f"they have {secret}" for text in texts if secret in text), texts[-1][:15])
            old = request.known[-1].text if request.known else None
            return [Fact(text=told, sources=request.ids[-1:], supersedes=old)]

    options = {"summarizer": None, "fact_extractor": Extractor()}
    session = _open(store, **options)
    _fill(session, 40)
    event = session.add(user(f"my {secret} is a secret"))
    _fill(session)
    assert secret not in str(session.facts)
    session = _interrupted(store, **options)
    facts = [one for one in store.load(LoadRequest(session="s")) if one.kind == "fact"]
    assert any(secret in one.data["text"] for one in facts)
    done = session.redact(where=secret)
    assert [one.id for one in done] == [event.id]
    assert secret not in _log(store)
    assert session.facts == _open(store, **options).facts


def test_facts_in_force_are_recalled_by_a_ranker_as_before() -> None:
    """With what else stays of what is older than the part that is whole."""

    class Extractor:
        def extract(self, request: FactRequest) -> list[Fact]:
            return [Fact(text=f"fact of {str(one['content']).split()[1]} zebra") for one in request.messages]

    def rank(query: str, messages: list[Any]) -> list[float]:
        return [float("number3" in str(one["content"])) for one in messages]

    store = MemoryStore()
    session = _open(store, fact_extractor=Extractor(), ranker=rank)
    _fill(session)
    before = {event.id for event in session.recall("number3 zebra fact", 400) if event.kind == "fact"}
    assert session.prune(keep=0).events > 0
    found = session.recall("number3 zebra fact", 400)
    assert {event.id for event in found if event.kind == "fact"} == before
    assert "number3" in found[0].data["text"]


def test_a_pop_at_the_border_says_when_it_was_pruned() -> None:
    """And what is the oldest version, as every other door."""
    session = _fill(_open(MemoryStore()))
    oldest = session.prune(keep=0).oldest

    def pop_all() -> None:
        while True:
            session.pop()

    with pytest.raises(PrunedError, match=rf"was pruned on 20.*shown is {oldest}") as told:
        pop_all()
    assert told.value.oldest == oldest


def test_an_add_with_the_id_of_a_pruned_message_says_what_to_do() -> None:
    """Nobody knows whether it is the same."""
    session = _fill(_open(MemoryStore()))
    first = next(session.history())
    session.prune(keep=0)
    with pytest.raises(PrunedError, match=r"If it is the same message, skip it"):
        session.add(first.message, id=first.id)
