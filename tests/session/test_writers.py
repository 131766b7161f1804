"""Two sessions on one log, lost answers, ids given by the caller: nothing twice, nothing lost (E12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS, texts
from trimtab import BudgetExceededError, ConfigurationError, Context, Session
from trimtab.errors import FormatError, StoreUnavailableError, VersionConflictError
from trimtab.models import facts_for
from trimtab.session import UNSET
from trimtab.stores import Appended, AppendRequest, MemoryStore, Retry

QUICK = Retry(attempts=5, first_seconds=0.0)


class Forgetful(MemoryStore):
    """Loses the answer of an append after it was stored, if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.loses = 0

    def append(self, request: AppendRequest, /) -> Appended:
        """Store, and lose the answer."""
        done = super().append(request)
        if self.loses:
            self.loses -= 1
            raise StoreUnavailableError("the answer was lost")
        return done


def two(**options: Any) -> tuple[Session, Session]:
    """Two objects on one session, both at its newest version."""
    store = MemoryStore()
    first = Session(200, counter=WORDS, store=store, id="s", **options)
    first.add(user("hello"))
    return first, Session.open(store, "s", counter=WORDS, **({"retry": options["retry"]} if options else {}))


CHANGES: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add(user("mine")),
    "extend": lambda session: session.extend([user("mine"), assistant("yours")]),
    "set_budget": lambda session: session.set_budget(150),
    "set_anchors": lambda session: session.set_anchors([user("a")]),
    "clear": lambda session: session.clear(),
    "redact": lambda session: session.redact([next(session.history()).id]),
    "pin": lambda session: session.pin(next(session.history()).id),
    "pop": lambda session: session.pop(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_slower_writer_is_told_and_changes_nothing(change: Callable[[Session], object]) -> None:
    """Both versions are in the error; done again it succeeds, and both see the same."""
    first, second = two()
    second.messages()
    first.add(user("faster"))
    with pytest.raises(VersionConflictError) as caught:
        change(second)
    assert (caught.value.expected_version, caught.value.actual_version) == (2, 3)
    assert first.refresh() == 3
    change(second)
    first.refresh()
    assert first.messages() == second.messages()
    assert first.status().to_dict() == second.status().to_dict()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_with_a_retry_the_slower_writer_succeeds(change: Callable[[Session], object]) -> None:
    """What it decides on is read anew."""
    first, second = two(retry=QUICK)
    second.messages()
    first.add(user("faster"))
    change(second)
    first.refresh()
    assert first.messages() == second.messages()
    assert "faster" in [event.message["content"] for event in first.history()]


def test_a_summary_of_a_session_that_another_clears_is_not_put_in_force() -> None:
    """The other is faster while the summarizer writes."""
    store = MemoryStore()

    def meanwhile(messages: Any) -> str:
        Session.open(store, "s", counter=WORDS, summarizer=meanwhile).clear()
        return "stale"

    session = Session(100, counter=WORDS, summarizer=meanwhile, store=store, id="s")
    for text in texts(11):
        session.add(user(text))
    session.refresh()
    assert session.summary is None
    assert session.messages() == []


@pytest.mark.parametrize("given", [True, False])
def test_a_result_that_was_stored_though_the_answer_was_lost_is_stored_once(given: bool) -> None:
    """Its call is answered by then: that is no other message."""
    store = Forgetful()
    session = Session(200, counter=WORDS, store=store, id="s", retry=QUICK)
    session.extend([user("hi"), call("A")])
    store.loses = 1
    event = session.add(result("A"), id="mine" if given else None)
    assert event.message == result("A")
    assert event.version == 4
    assert [event.kind for event in session.history(kinds=None)] == ["options", *["message"] * 3]
    assert session.messages() == [user("hi"), call("A"), result("A")]


def test_the_first_add_of_all_survives_a_lost_answer() -> None:
    """The options are written with it."""
    store = Forgetful()
    session = Session(200, counter=WORDS, store=store, id="s", retry=QUICK)
    store.loses = 1
    session.extend([user("a"), assistant("b")])
    assert [event.message for event in session.history()] == [user("a"), assistant("b")]


def test_an_undo_whose_answer_was_lost_takes_back_one_decision() -> None:
    """Not the one before it, too."""
    store = Forgetful()
    session = Session(100, counter=WORDS, store=store, id="s", retry=QUICK, target_ratio=1.0)
    for text in texts(12):
        session.add(user(text))
    decisions = [event.id for event in session.history(kinds=("evicted",))]
    assert len(decisions) == 2
    store.loses = 1
    assert session.undo().id == decisions[-1]
    assert len(list(session.history(kinds=("undone",)))) == 1
    assert session.undo().id == decisions[0]


def test_a_pop_whose_answer_was_lost_takes_off_one_message() -> None:
    """Not the one before it, too."""
    store = Forgetful()
    session = Session(100, counter=WORDS, store=store, id="s", retry=QUICK)
    session.extend([user("a"), user("b")])
    store.loses = 1
    event = session.pop()
    assert event is not None
    assert event.message == user("b")
    assert session.messages() == [user("a")]


def test_a_drop_of_a_rule_whose_answer_was_lost_drops_one() -> None:
    """Of the host or of a user: the rule is returned, and no other one goes."""
    store = Forgetful()
    session = Session(200, counter=WORDS, store=store, id="s", retry=QUICK, find_rules="auto", rules=["Be."])
    session.extend([user("Never deploy on Fridays."), user("Never use emojis.")])
    for rule in session.rules[:2]:
        store.loses = 1
        assert session.drop_rule(rule.id) == rule
    assert [rule.text for rule in session.rules] == ["Never use emojis."]


def test_a_lost_answer_without_a_retry_is_an_error_and_the_session_reads_again() -> None:
    """Added again under its id it is stored once."""
    store = Forgetful()
    session = Session(200, counter=WORDS, store=store, id="s")
    store.loses = 1
    with pytest.raises(StoreUnavailableError):
        session.add(user("a"), id="a")
    assert session.add(user("a"), id="a").version == 2
    assert session.messages() == [user("a")]


def test_an_id_is_given_once() -> None:
    """The same message again is the one that is there; another one is refused."""
    session = Session(200, counter=WORDS)
    event = session.add(user("a"), id="one")
    assert session.add(user("a"), id="one") == event
    with pytest.raises(ConfigurationError, match="one"):
        session.add(user("b"), id="one")
    assert session.messages() == [user("a")]


@pytest.mark.parametrize("ids", [["one", "two"], ["two", "one"]])
def test_messages_of_which_some_are_stored_are_refused_together(ids: list[str]) -> None:
    """Nothing is dropped in silence: all of one call are stored, or none."""
    session = Session(200, counter=WORDS)
    session.add(user("1"), id="one")
    texts_of = {"one": "1", "two": "2"}
    with pytest.raises(ConfigurationError, match="one"):
        session.extend([user(texts_of[one]) for one in ids], ids=ids)
    assert [event.id for event in session.history()] == ["one"]
    session.add(user("2"), id="two")
    assert [event.id for event in session.extend([user(texts_of[one]) for one in ids], ids=ids)] == ids


def test_an_id_holds_after_the_session_was_given_other_options() -> None:
    """They are written with the next event, which is then another than this."""
    store = MemoryStore()
    Session(200, counter=WORDS, store=store, id="s").add(user("a"), id="one")
    session = Session(150, counter=WORDS, store=store, id="s")
    assert session.add(user("a"), id="one").version == 2
    assert session.budget_tokens == 150


@pytest.mark.parametrize("bad", [{"role": "user", "content": float("nan")}, "text", None, 7])
def test_one_message_that_cannot_be_read_refuses_all(bad: Any) -> None:
    """Nothing of the call is stored."""
    session = Session(200, counter=WORDS)
    with pytest.raises(FormatError, match=r"message"):
        session.extend([user("a"), bad, user("b")])
    assert list(session.history(kinds=None)) == []
    assert session.messages() == []


def test_nothing_to_add_adds_nothing() -> None:
    """Twice."""
    session = Session(200, counter=WORDS)
    assert session.extend([]) == []
    session.add(user("a"))
    assert session.extend([]) == []
    assert session.version == 2


def test_what_is_added_is_a_copy() -> None:
    """Nobody who changes the message, or the view, changes the session."""
    session = Session(200, counter=WORDS)
    message = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    session.add(message)
    message["content"] = "changed"
    session.messages()[0]["content"][0]["text"] = "changed"
    next(session.history()).message["content"][0]["text"] = "changed"
    assert session.messages() == [{"role": "user", "content": [{"type": "text", "text": "a"}]}]


def test_views_share_a_message_until_somebody_changes_it() -> None:
    """It is copied once, and again for the view after a change; what holds numbers is copied for each."""
    session = Session(200, counter=WORDS)
    answer = call("A")
    session.extend([user("hi"), answer, result("A", "x"), {**user("so"), "extra": [1, True]}])
    first, second = session.messages(), session.messages()
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True, True, False]
    second[1]["tool_calls"][0]["id"] = "B"
    second[3]["extra"][0] = True
    assert session.messages() == [user("hi"), answer, result("A", "x"), {**user("so"), "extra": [1, True]}]
    assert [type(one) for one in session.messages()[3]["extra"]] == [int, bool]


def test_a_snapshot_has_the_options_that_are_not_written_yet() -> None:
    """E10: the restored session has the budget this one has."""
    store = MemoryStore()
    Session(200, counter=WORDS, store=store, id="s").add(user(words(150)))
    session = Session(160, counter=WORDS, store=store, id="s", system="s s s")
    session.messages()
    restored = Session.restore(session.snapshot(), counter=WORDS)
    assert restored.budget_tokens == session.budget_tokens == 160
    assert restored.messages() == session.messages()


def test_a_fork_of_a_session_without_events_is_one() -> None:
    """With its options."""
    session = Session(200, counter=WORDS, system="s")
    fork = session.fork()
    fork.add(user("a"))
    assert [message["content"] for message in fork.messages()] == ["s", "a"]
    assert session.messages() == [{"role": "system", "content": "s"}]


def test_a_session_is_not_its_own_fork() -> None:
    """Under its own id in the same store it would be the original; in another store it may have it."""
    session = Session(200, counter=WORDS)
    session.add(user("a"))
    with pytest.raises(ConfigurationError, match="cannot be its own fork"):
        session.fork(id=session.id)
    with pytest.raises(ConfigurationError, match="cannot be its own fork"):
        asyncio.run(session.afork(id=session.id, store=session.store))
    fork = session.fork(id=session.id, store=MemoryStore())
    fork.add(user("b"))
    assert (len(fork.messages()), len(session.messages())) == (2, 1)


def test_an_event_is_as_good_as_its_id() -> None:
    """What add() returned goes to pin, unpin, undo and redact."""
    session = Session(100, counter=WORDS)
    events = [session.add(user(f"{at} {words(9)}")) for at in range(4)]
    session.pin(events[0])
    for _ in range(12):
        session.add(user(words(10)))
    assert session.messages()[0] == events[0].message
    session.unpin(events[0])
    session.add(user(words(10)))
    assert session.messages()[0] != events[0].message
    evicted = [event for event in session.history(kinds=None) if event.kind == "evicted"]
    assert session.undo(evicted[-1]) == evicted[-1]
    assert [event.id for event in session.redact(events[0])] == [events[0].id]
    assert [event.id for event in session.redact((events[1], events[2].id))] == [events[1].id, events[2].id]
    said = [event.message["content"] for event in session.history()]
    assert said[:4] == ["[redacted]"] * 3 + [events[3].message["content"]]


ORDERS: dict[str, Callable[[Session, Any], object]] = {
    "pin": Session.pin,
    "unpin": Session.unpin,
    "undo": Session.undo,
    "redact": Session.redact,
    "redact several": lambda session, event: session.redact([event]),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("event", [5, user("a"), b"id", 1.5])
def test_what_is_no_event_is_refused(order: Callable[[Session, Any], object], event: Any) -> None:
    """With what to pass instead."""
    session = Session(100, counter=WORDS)
    session.add(user("a"))
    with pytest.raises(ConfigurationError, match="pass an event, from add"):
        order(session, event)
    assert session.version == 2


@pytest.mark.parametrize(
    ("add", "message"),
    [
        pytest.param(lambda session: session.add(user("a"), id=""), "a message's id must be a text", id="id"),
        pytest.param(lambda session: session.extend(user("a")), r"write extend\(\[message\]\)", id="one"),
        pytest.param(lambda session: session.extend("a"), r"write extend\(\[message\]\)", id="text"),
        pytest.param(lambda session: session.extend(None), r"write extend\(\[message\]\)", id="nothing"),
        pytest.param(lambda session: session.extend([user("a")], ids="a"), r"write \['a'\]", id="ids"),
        pytest.param(lambda session: session.extend([user("a")], ids=5), "ids must be a list", id="no-ids"),
    ],
)
def test_what_is_no_list_of_messages_is_refused(add: Callable[[Session], object], message: str) -> None:
    """With what to write, and nothing is stored."""
    session = Session(100, counter=WORDS)
    with pytest.raises(ConfigurationError, match=message):
        add(session)
    assert session.version == 0


def made(**more: Any) -> MemoryStore:
    """A store with a session that has options of its own."""
    store = MemoryStore()
    options: dict[str, Any] = {"system": "sys", "anchors": [user("an")], "pending_first": True, **more}
    Session(300, counter=WORDS, store=store, id="ada", **options).add(user("hello"))
    return store


def test_a_session_gone_on_with_without_a_budget_is_as_its_log_has_it() -> None:
    """Nothing that was left out is reset: not in the view, and not for who opens it next."""
    store = made()
    first = Session(counter=WORDS, store=store, id="ada")
    first.set_budget(200)
    assert [message["content"] for message in first.messages()] == ["sys", "an", "hello"]
    assert len(list(first.history(kinds=("options",)))) == 1
    again = Session(counter=WORDS, store=store, id="ada")
    assert again.budget_tokens == 200
    assert again.messages() == first.messages()


def test_what_is_given_without_a_budget_changes_that_and_no_more() -> None:
    """And is remembered."""
    store = made(summary_instructions="keep names")
    Session(counter=WORDS, store=store, id="ada", system="new").add(user("there"))
    opened = Session.open(store, "ada", counter=WORDS)
    assert [message["content"] for message in opened.messages()] == ["new", "an", "hello", "there"]
    *_, options = opened.history(kinds=("options",))
    assert options.data["options"]["summary_instructions"] == "keep names"
    assert options.data["options"]["budget_tokens"] == 300


def contents(session: Session) -> list[Any]:
    """Say what a view holds."""
    return [message["content"] for message in session.messages()]


def test_what_is_given_with_a_budget_changes_that_and_no_more() -> None:
    """SPEC G: leaving out is never dropping, with a budget as without one."""
    store = made(summary_instructions="keep names")
    session = Session(400, counter=WORDS, store=store, id="ada")
    assert (session.budget_tokens, contents(session)) == (400, ["sys", "an", "hello"])
    session.add(user("there"))
    opened = Session.open(store, "ada", counter=WORDS)
    assert (opened.budget_tokens, contents(opened)) == (400, ["sys", "an", "hello", "there"])
    *_, options = opened.history(kinds=("options",))
    assert options.data["options"]["summary_instructions"] == "keep names"
    assert options.data["options"]["pending_first"] is True


@pytest.mark.parametrize(
    ("option", "value", "left"),
    [("system", None, ["an", "hello"]), ("system", "", ["an", "hello"]), ("anchors", (), ["sys", "hello"])],
)
def test_none_takes_an_option_away_and_unset_does_not(option: str, value: Any, left: list[str]) -> None:
    """None is a value; left out is `UNSET`, which may be written too. Who opens it next sees the same."""
    store = made()
    unset: dict[str, Any] = {option: UNSET}
    given: dict[str, Any] = {option: value}
    assert contents(Session(300, counter=WORDS, store=store, id="ada", **unset)) == ["sys", "an", "hello"]
    session = Session(300, counter=WORDS, store=store, id="ada", **given)
    assert contents(session) == left
    session.add(user("there"))
    assert contents(Session.open(store, "ada", counter=WORDS)) == [*left, "there"]


def test_a_default_that_is_written_out_is_given() -> None:
    """It replaces what the log has, as any other value does."""
    store = made()
    session = Session(counter=WORDS, store=store, id="ada", pending_first=False, max_summary_tokens=None)
    session.add(user("there"))
    *_, options = session.history(kinds=("options",))
    assert options.data["options"]["pending_first"] is False


def test_a_function_is_taken_away_by_none_alone() -> None:
    """Left out it is missing, which is an error; None makes the log forget it for good."""
    store = made(summarizer=lambda messages: "sum")
    with pytest.raises(ConfigurationError, match="made with a summarizer"):
        Session(300, counter=WORDS, store=store, id="ada").add(user("there"))
    Session(300, counter=WORDS, store=store, id="ada", summarizer=None).add(user("there"))
    assert Session.open(store, "ada", counter=WORDS).missing == {}


def test_a_function_that_is_new_is_remembered() -> None:
    """The log learns of it with the next event, so that it is missed where it is left out."""
    store = made()
    Session(counter=WORDS, store=store, id="ada", summarizer=lambda messages: "sum").add(user("there"))
    with pytest.raises(ConfigurationError, match="made with a summarizer"):
        Session.open(store, "ada", counter=WORDS).messages()


def test_anchors_that_are_given_replace_those_set_since() -> None:
    """As a budget that is given replaces one that was set; the same as in the log replace nothing."""
    store = made()
    Session(counter=WORDS, store=store, id="ada").set_anchors([user("set")])
    assert contents(Session(300, counter=WORDS, store=store, id="ada", anchors=[user("an")]))[1] == "set"
    session = Session(300, counter=WORDS, store=store, id="ada", anchors=[user("given")])
    assert contents(session) == ["sys", "given", "hello"]
    with pytest.raises(BudgetExceededError, match="max_anchor_tokens"):
        Session(300, counter=WORDS, store=store, id="ada", anchors=[user(words(50))]).messages()


def test_a_summarizer_in_the_background_stays_there() -> None:
    """An async one may then be used by sync calls, which without that is refused."""

    async def summarize(messages: Any) -> str:
        return "sum"

    store = made(summarizer=summarize, background=True)
    with Session(300, counter=WORDS, store=store, id="ada", summarizer=summarize) as session:
        session.add(user("there"))
    assert contents(session) == ["sys", "an", "hello", "there"]


def test_a_budget_is_needed_where_the_context_that_had_it_is_taken_away() -> None:
    """With one the session goes on by itself."""
    store = MemoryStore()
    Session(context=Context(300, counter=WORDS), store=store, id="s").add(user("hello"))
    with pytest.raises(ConfigurationError, match="opened with context=None"):
        Session(context=None, counter=WORDS, store=store, id="s").add(user("there"))
    session = Session(200, context=None, counter=WORDS, store=store, id="s")
    assert (session.budget_tokens, contents(session)) == (200, ["hello"])


def test_restoring_takes_options() -> None:
    """What is given changes, what is left out is as it was; an unknown name is refused."""
    session = Session(300, system="sys", anchors=[user("an")], counter=WORDS)
    session.add(user("hello"))
    data = session.snapshot()
    restored = Session.restore(data, counter=WORDS, system="new", budget=200)
    assert (restored.budget_tokens, contents(restored)) == (200, ["new", "an", "hello"])
    assert contents(Session.restore(data, counter=WORDS, anchors=())) == ["sys", "hello"]
    with pytest.raises(TypeError, match=r"restore\(\) got an unexpected keyword argument 'sistem'"):
        Session.restore(data, counter=WORDS, sistem="new")  # type: ignore[call-arg]


def test_options_are_restored_where_there_are_no_events() -> None:
    """Also into a store, and changed by those given."""
    data = Session(300, system="sys", counter=WORDS).snapshot()
    store = MemoryStore()
    restored = Session.restore(data, counter=WORDS, store=store, id="s", anchors=[user("an")])
    restored.add(user("hello"))
    assert contents(Session.open(store, "s", counter=WORDS)) == ["sys", "an", "hello"]


def test_a_new_session_has_the_window_of_its_model() -> None:
    """Less the output reserve, as in fit(); one in the log keeps its budget."""
    session = Session(model="gpt-4o", counter=WORDS)
    session.add(user("hello"))
    facts = facts_for("gpt-4o")
    assert facts.window_tokens is not None
    assert session.budget_tokens == facts.window_tokens - facts.output_reserve_tokens
    again = Session(model="gpt-4o", counter=WORDS, store=made(), id="ada")
    assert again.budget_tokens == 300
    with pytest.raises(ConfigurationError, match="pass budget="):
        Session(counter=WORDS).add(user("hello"))


ORDERS: dict[str, Callable[[Session, Any], object]] = {
    "redact": lambda session, event: session.redact(event),
    "pin": lambda session, event: session.pin(event),
    "unpin": lambda session, event: session.unpin(event),
    "view_at": lambda session, event: session.view_at(event.version),
    "diff": lambda session, event: session.diff(1, event.version),
    "fork": lambda session, event: session.fork(event.version),
}


@pytest.mark.parametrize("retry", [None, QUICK], ids=["once", "retry"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_what_another_writer_added_can_be_named_at_once(
    order: Callable[[Session, Any], object], retry: Retry | None
) -> None:
    """An object that has not seen the message yet reads the session again before it acts."""
    first, second = two(**({} if retry is None else {"retry": retry}))
    second.messages()
    event = first.add(user("my password is hunter2"))
    order(second, event)
    assert second.version >= event.version
    first.refresh()
    assert first.messages() == second.messages()


def test_a_redaction_of_what_another_writer_added_takes_the_text_away() -> None:
    """Out of the view and out of the log, for both."""
    first, second = two()
    second.messages()
    second.redact(first.add(user("my password is hunter2")))
    first.refresh()
    assert "hunter2" not in str([first.messages(), second.messages(), first.snapshot()])


def test_a_summary_that_another_writer_had_written_can_be_undone_by_its_id() -> None:
    """Also where this object knew of none."""
    store = MemoryStore()
    first = Session(200, counter=WORDS, summarizer=lambda _: "short", store=store, id="s")
    first.add(user("hello"))
    second = Session.open(store, "s", counter=WORDS, summarizer=lambda _: "short")
    second.messages()
    while first.summary is None:
        first.add(user(words(20)))
    (event,) = first.history(kinds=("summary",))
    assert second.undo(event).id == event.id
    assert second.summary is None


class Uncleaned(MemoryStore):
    """Stores a redaction, and fails at what comes after it, as a full disk does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[AppendRequest] = []
        self.failures = 2

    def append(self, request: AppendRequest, /) -> Appended:
        """Store; then fail as often as it is told to."""
        done = super().append(request)
        if request.rewrites:
            self.asked.append(request)
            if len(self.asked) <= self.failures:
                raise StoreUnavailableError("the text is removed, but the files still hold it")
        return done


def test_a_redaction_that_is_asked_for_again_is_one() -> None:
    """The store is asked with the same append until it has cleaned its files; the log says it once."""
    store = Uncleaned()
    session = Session(200, counter=WORDS, id="s", store=store, retry=QUICK)
    event = session.add(user("my password is hunter2"))
    assert [one.id for one in session.redact(event)] == [event.id]
    assert len(store.asked) == 3
    assert len({request.events[0].id for request in store.asked}) == 1
    assert all([one.version for one in request.rewrites] == [event.version] for request in store.asked)
    assert [one.kind for one in session.history(kinds=None)] == ["options", "message", "redacted"]
    assert "hunter2" not in str(session.snapshot())


class Resent(MemoryStore):
    """Sends an append again, as a client of a server does whose first answer was lost on the way."""

    def append(self, request: AppendRequest, /) -> Appended:
        """Store it, and ask again."""
        super().append(request)
        return super().append(request)


def last_id(session: Session) -> str:
    """Id of the newest message."""
    return list(session.history())[-1].id


def pin_and_unpin(session: Session) -> None:
    """Two writes of one event each."""
    session.pin(last_id(session))
    session.unpin(last_id(session))


OWN: dict[str, Callable[[Session], object]] = {
    **CHANGES,
    "undo": lambda session: session.undo(),
    "pin": lambda session: session.pin(last_id(session)),
    "unpin": pin_and_unpin,
    "summarize": lambda session: session.extend([user(text) for text in texts(30)]),
}


@pytest.mark.parametrize("change", OWN.values(), ids=OWN.keys())
def test_an_append_that_the_client_sent_again_is_known_as_our_own(
    change: Callable[[Session], object],
) -> None:
    """The only writer of a session meets no conflict with itself, and hooks are told as ever."""
    told: list[str] = []
    hooks = {"on_evict": lambda messages, reason: told.append(reason)}
    sessions = [
        Session(100, counter=WORDS, store=store, id="s", summarizer=lambda messages: "short", hooks=hooks)
        for store in (MemoryStore(), Resent())
    ]
    seen = []
    for session in sessions:
        told.clear()
        session.extend([user(text) for text in texts(12)])
        change(session)
        session.add(user("and on"))
        seen.append((session.messages(), session.version, list(told)))
    assert seen[0] == seen[1]
