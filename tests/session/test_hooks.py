"""Hooks are called as E8 says, and stop nothing; options are checked when they are given (E2)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS, one_session, texts
from trimtab import Budget, ConfigurationError, Session
from trimtab.context import TrimContext
from trimtab.errors import SummaryError
from trimtab.session import SessionHooks
from trimtab.stores import MemoryStore


def session_with(told: list[tuple[Any, ...]], summarizer: Any = None, **options: Any) -> Session:
    """Open a session that notes what its hooks are given."""
    hooks = SessionHooks(
        on_evict=lambda messages, reason: told.append(("evict", reason, messages)),
        on_summarize=lambda messages, existing, summary, seconds: told.append(
            ("summarize", messages, existing, summary, seconds)
        ),
        on_budget_exceeded=lambda total, budget: told.append(("exceeded", total, budget)),
    )
    return one_session(summarizer, hooks=hooks, **options)


def test_nothing_is_told_while_all_fits() -> None:
    """Also at exactly the budget."""
    told: list[tuple[Any, ...]] = []
    session = session_with(told)
    for text in texts(10):
        session.add(user(text))
    assert session.token_count == 100
    assert told == []


def test_the_budget_is_told_before_what_leaves_for_it() -> None:
    """Once an add, with what it would have taken."""
    told: list[tuple[Any, ...]] = []
    session = session_with(told, target_ratio=1.0)
    for text in texts(11):
        session.add(user(text))
    first = [user(texts(1)[0])]
    assert told == [("exceeded", 110, 100), ("evict", "budget", first), ("evict", "truncation", first)]


def test_a_summary_is_told_with_what_it_stands_for() -> None:
    """The messages, the summary before, the new one, and how long it took; after the eviction."""
    told: list[tuple[Any, ...]] = []
    session = session_with(told, lambda messages: f"about {len(messages)}", target_ratio=1.0)
    for text in texts(11):
        session.add(user(text))
    exceeded, evicted, summarized = told
    assert exceeded == ("exceeded", 110, 100)
    leaving = [user(text) for text in texts(11)[:4]]  # 70 of 110 may stay
    assert evicted == ("evict", "budget", leaving)
    assert summarized[:4] == ("summarize", leaving, None, "about 4")
    assert summarized[4] >= 0


def test_what_hooks_are_given_is_theirs() -> None:
    """A copy: who changes it changes no session."""
    session = one_session(None, hooks={"on_evict": lambda messages, reason: messages[0].clear()})
    for text in texts(12):
        session.add(user(text))
    assert session.hook_errors == 0
    session.set_budget(1_000)
    assert [message["content"] for message in session.messages()] == texts(12)


def test_a_hook_that_fails_is_logged_and_counted_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """E8: with its traceback; the others are called all the same."""
    told: list[str] = []

    def fails(*arguments: Any) -> None:
        raise RuntimeError("a hook of mine")

    session = one_session(
        lambda messages: "sum",
        hooks={
            "on_evict": fails,
            "on_budget_exceeded": fails,
            "on_summarize": lambda *arguments: told.append("summarize"),
        },
    )
    with caplog.at_level(logging.ERROR, "trimtab.session"):
        for text in texts(11):
            session.add(user(text))
    assert session.hook_errors == session.status().hook_errors == 2
    assert told == ["summarize"]
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert "a hook of mine" in caplog.text
    assert session.summary == "sum"
    assert len(list(session.history())) == 11


def test_what_is_no_exception_passes_through_a_hook() -> None:
    """KeyboardInterrupt is nobody's mistake; what was added is stored."""

    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    session = one_session(None, hooks={"on_budget_exceeded": stop})
    session.add(user(words(60)))
    with pytest.raises(KeyboardInterrupt):
        session.add(user(words(60)))
    assert len(list(session.history())) == 2
    assert WORDS.count(session.messages()) <= 100
    again = Session.open(session.store, session.id, counter=WORDS, hooks={"on_budget_exceeded": stop})
    assert again.messages() == session.messages()


def test_a_summary_that_fails_is_told_with_what_was_raised(caplog: pytest.LogCaptureFixture) -> None:
    """on_error has the error and its cause; the log has the traceback at DEBUG."""
    told: list[SummaryError] = []

    def fails(messages: Any) -> str:
        raise ValueError("no such model")

    session = one_session(fails, hooks={"on_error": told.append})
    with caplog.at_level(logging.DEBUG, "trimtab"):
        for _ in range(11):
            session.add(user(words(10)))
    (error,) = told
    assert str(error) == session.status().last_failure == "summarizer fails failed with ValueError"
    assert str(error.__cause__) == "no such model"
    assert [record.levelname for record in caplog.records] == ["DEBUG", "WARNING"]
    assert "no such model" in caplog.text
    assert session.hook_errors == 0


def test_a_summary_that_cannot_be_used_is_told_too() -> None:
    """An empty one has no cause; also in the background, and on demand."""
    told: list[str] = []
    hooks = {"on_error": lambda error: told.append(str(error))}
    session = one_session(lambda messages: " ", hooks=hooks)
    for _ in range(11):
        session.add(user(words(10)))
    assert len(told) == 1
    with pytest.raises(SummaryError):
        session.summarize()
    assert len(told) == 2
    with one_session(lambda messages: " ", hooks=hooks, background=True) as beside:
        for _ in range(11):
            beside.add(user(words(10)))
    assert len(told) >= 3
    assert all("empty summary" in one for one in told)


def test_a_callback_takes_messages_out_of_a_view() -> None:
    """SPEC D9: of each view, also when all fits; what waits, the log and what is pinned stay as they are."""
    limits: list[Any] = []

    def drop_small_talk(context: TrimContext) -> None:
        limits.append((context.budget, context.limit_tokens))
        context.remove([one.seq for one in context.message_elements if one.message["content"] == "hm"])

    session = Session(100, counter=WORDS, system="sys", anchors=[user("an")], on_trim=drop_small_talk)
    for text in ("one", "hm", "two", "hm"):
        session.add(user(text))
    for view in (session.messages(), asyncio.run(session.amessages()), session.view_at(session.version)):
        assert [message["content"] for message in view] == ["sys", "an", "one", "two"]
    assert limits == [(Budget(100), 100)] * 3
    report = session.fit().report
    assert (report.kept_message_count, report.tokens_after) == (4, 4)
    assert len(list(session.history())) == 4
    assert session.token_count == 6
    forked = session.fork()
    assert forked.messages() == session.messages()
    later = Session.open(session.store, session.id, counter=WORDS, on_trim=lambda context: context.remove(0))
    assert [message["content"] for message in later.messages()] == ["an", "one", "hm", "two", "hm"]
    bare = Session.open(session.store, session.id, counter=WORDS, allow_missing=True)
    assert len(bare.messages()) == 6
    assert bare.missing == {"on_trim": "drop_small_talk"}


def filters(context: Any) -> None:
    """Keep secrets out of a view."""
    context.remove([one.seq for one in context.message_elements if "secret" in one.message["content"]])


def told(*said: Any) -> None:
    """Hear of anything."""


OPENED = {
    "open": lambda store, **given: Session.open(store, "s", counter=WORDS, **given),
    "Session": lambda store, **given: Session(store=store, id="s", counter=WORDS, **given),
    "restore": lambda store, **given: Session.restore(
        Session.open(store, "s", counter=WORDS, allow_missing=True).snapshot(), counter=WORDS, **given
    ),
}


@pytest.mark.parametrize("open_again", OPENED.values(), ids=OPENED)
@pytest.mark.parametrize(
    ("functions", "named"),
    [
        ({"on_trim": filters}, r"an on_trim \(filters\)"),
        ({"hooks": {"on_evict": told, "on_error": told}}, r"hooks \(on_evict, on_error\)"),
    ],
)
def test_a_session_does_not_lose_its_callback_or_hooks_in_silence(
    functions: Any, named: str, open_again: Any
) -> None:
    """E12b: a missing filter that keeps secrets out of requests is an error, as a missing summarizer is."""
    store = MemoryStore()
    session = Session(100, counter=WORDS, store=store, id="s", **functions)
    session.extend([user("the secret"), user("hello")])
    with pytest.raises(ConfigurationError, match=f"was made with {named}"):
        open_again(store).messages()
    given = open_again(store, **functions)
    assert given.messages() == session.messages()
    assert given.missing == {}
    assert len(open_again(store, allow_missing=True).messages()) == 2
    assert session.fork().missing == {}


def test_a_callback_and_hooks_are_taken_away_by_none() -> None:
    """None is a value: who opens the session says that it goes on without, and the log remembers that."""
    store = MemoryStore()
    session = Session(100, counter=WORDS, store=store, id="s", on_trim=filters, hooks={"on_evict": told})
    session.add(user("the secret"))
    bare = Session(store=store, id="s", counter=WORDS, on_trim=None, hooks=None)
    bare.add(user("hello"))
    assert len(Session.open(store, "s", counter=WORDS).messages()) == 2


def test_what_a_callback_leaves_of_a_view_fits() -> None:
    """What stays is still known to stay: anchors and the latest message the user wrote."""
    session = Session(
        100, counter=WORDS, anchors=[user("an")], on_trim=lambda context: context.remove([1, 2])
    )
    session.add(user(words(30)))
    session.add(assistant(words(30)))
    session.add(user(words(30)))
    session.add(assistant(words(9)))
    assert [len(message["content"].split()) for message in session.messages()] == [1, 30, 9]


def test_a_callback_of_a_session_is_a_function_that_acts_at_once() -> None:
    """As everywhere."""

    async def later(context: Any) -> None: ...

    for bad in (5, later):
        with pytest.raises(ConfigurationError, match="on_trim"):
            Session(100, on_trim=bad)  # type: ignore[arg-type]


def test_a_unit_leaves_whole() -> None:
    """A call and its results are told together, in order of time."""
    told: list[tuple[Any, ...]] = []
    session = session_with(told)
    unit = [call("A", "B"), result("B", words(20)), result("A", words(20))]
    session.extend([*unit, user(words(50)), user(words(10))])
    assert [entry for entry in told if entry[0] == "evict"] == [
        ("evict", "budget", unit),
        ("evict", "truncation", unit),
    ]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"budget": 99}, "at least 100"),
    ({"budget": 0}, "at least 1"),
    ({"budget": float("inf")}, "budget|window"),
    ({"budget": True}, "budget|window"),
    ({"summary_mode": "other"}, "'incremental', 'rolling', 'anchored'"),
    ({"summary_role": "tool"}, "'system', 'user'"),
    ({"max_summary_tokens": 0}, "max_summary_tokens must be a whole number of at least 1"),
    ({"min_recent_tokens": -1}, "min_recent_tokens must be a whole number of at least 0"),
    ({"summarize_threshold_tokens": 0.5}, "summarize_threshold_tokens"),
    ({"summarize_threshold_messages": 0}, "summarize_threshold_messages"),
    ({"max_summary_rounds": -1}, "max_summary_rounds"),
    ({"max_anchor_tokens": True}, "max_anchor_tokens"),
    ({"message_overhead": -1}, "message_overhead"),
    ({"summary_timeout_seconds": 0}, "above 0"),
    ({"summary_timeout_seconds": True}, "above 0"),
    ({"summary_instructions": 5}, "summary_instructions must be a text"),
    ({"background": 1}, "background must be True or False"),
    ({"pending_first": None}, "pending_first must be True or False"),
    ({"anchors": "text"}, "anchors must be a list of messages"),
    ({"anchors": {"role": "user"}}, "anchors must be a list of messages"),
    ({"hooks": {"on_nothing": print}}, "there is no hook 'on_nothing'; there are on_budget_exceeded"),
    ({"hooks": {"on_evict": 5}}, "hook on_evict must be a synchronous function"),
    ({"hooks": 5}, "hooks must be a SessionHooks or a mapping"),
    ({"summarizer": 5}, "summarizer"),
    ({"counter": len}, "counts messages, not tokens"),
    ({"counter": int}, "is a class"),
    ({"store": 5}, "store must be a Store"),
    ({"store": "chats"}, "or the path of a SQLite file, such as 'chats.db'; not this text of 5 characters"),
    ({"store": "chats.db"}, "pass id='…'"),
    ({"id": ""}, "1 to 512 characters"),
    ({"format": "nothing"}, "nothing"),
    ({"model": "no-such-model"}, "no-such-model"),
]


@pytest.mark.parametrize(
    ("options", "message"), BAD, ids=[f"{next(iter(one))}-{at}" for at, (one, _) in enumerate(BAD)]
)
def test_an_option_is_checked_when_it_is_given(options: dict[str, Any], message: str) -> None:
    """E2: with a message that says what to write."""
    with pytest.raises(ConfigurationError, match=message):
        Session(**{"budget": 500, "counter": None, **options})


async def _later(*arguments: Any) -> None:
    raise AssertionError


class _Later:
    async def __call__(self, *arguments: Any) -> None:
        raise AssertionError


def test_an_async_hook_is_refused() -> None:
    """Nobody would await it."""
    with pytest.raises(ConfigurationError, match="synchronous function"):
        Session(500, hooks={"on_evict": _later})
    with pytest.raises(ConfigurationError, match="synchronous function"):
        Session(500, hooks={"on_evict": _Later()})


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("budget", 50, "set_budget("),
        ("budget_tokens", 50, "set_budget("),
        ("anchors", [], "set_anchors("),
        ("summarizer", print, "Session(summarizer=…, store=session.store, id=session.id)"),
        ("system", "Be brief.", "Session(system=…, store=session.store, id=session.id)"),
        ("on_trim", print, "Session(on_trim=…, store=session.store, id=session.id)"),
        ("context", None, "session.context"),
        ("id", "other", "fork(id=…)"),
        ("summary", "none", "it is read-only"),
    ],
)
def test_an_option_set_as_an_attribute_is_refused(name: str, value: Any, instead: str) -> None:
    """It would have no effect: the error says what has one."""
    session = Session(500, counter=WORDS)
    with pytest.raises(ConfigurationError) as caught:
        setattr(session, name, value)
    assert f"{name} of a Session cannot be set" in str(caught.value)
    assert instead in str(caught.value)


def test_every_option_of_a_session_is_refused_as_an_attribute() -> None:
    """No parameter of `Session` can be set later without a word."""
    session = Session(500, counter=WORDS)
    for name in inspect.signature(Session).parameters:
        with pytest.raises(ConfigurationError, match=f"{name} of a Session cannot be set"):
            setattr(session, name, None)


class Tenant(Session):
    """A session with attributes of its own, two of them named as options are."""

    model: str
    tools: tuple[int, ...] = ()

    def __init__(self, owner: str) -> None:
        self.tenant = owner
        super().__init__(500, counter=WORDS)
        self.model = "a model"


def test_a_class_derived_from_session_sets_its_own_attributes() -> None:
    """Those it declares are its own, whatever they are called; the others are refused as before."""
    session = Tenant("Ada")
    session.tools = (1,)
    assert (session.tenant, session.model, session.tools) == ("Ada", "a model", (1,))
    session.add(user("one"))
    assert session.total_message_count == 1
    with pytest.raises(ConfigurationError, match=r"set_budget\("):
        setattr(session, "budget", 50)  # noqa: B010 - a type checker refuses the assignment
