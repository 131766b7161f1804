"""A snapshot may come from anywhere: what no session writes is CorruptSessionError, nothing else (E10).

What is changed here is sealed again, as somebody does who changes it on purpose: what stands behind the seal
is tried, and whatever is restored all the same goes on as a session.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS
from trimtab import Session
from trimtab.errors import ConfigurationError, ContextError, CorruptSessionError
from trimtab.stores import AppendRequest, Event, LoadRequest, SQLiteStore
from trimtab.summaries import Fact

CASES = 80
"""Places of each snapshot changed at random, however deep."""

Place = tuple[Any, ...]

GONE = object()
"""Stands for a value that is taken away."""


def summarize(messages: Any) -> str:
    """Write the shortest summary there is."""
    return "sum"


def extract(request: Any) -> list[Fact]:
    """Give a fact about the last message; every other time it takes the place of one that is known."""
    text = f"penguins: {request.messages[-1]}"[:60]
    old = request.known[0].text if len(request.known) > 1 else None
    return [Fact(text=text, sources=[request.ids[-1]], supersedes=old)]


FUNCTIONS: dict[str, Any] = {"summarizer": summarize, "fact_extractor": extract, "counter": WORDS}


def nested(levels: int, inside: Callable[[Any], Any]) -> Any:
    """Nest plain data."""
    value: Any = []
    for _ in range(levels):
        value = inside(value)
    return value


SHAPES: tuple[Any, ...] = (None, True, -1, 0, 2**64, 0.5, float("nan"), "x", [], {}, [[1]], GONE)
"""What is put into every field there is."""

HOSTILE: tuple[Any, ...] = (
    *SHAPES,
    nested(100_000, lambda value: [value]),
    nested(100_000, lambda value: {"a": value}),
    nested(300, lambda value: [value]),
    *(sign * 10**digits for digits in (18, 19, 40, 300, 309, 400, 4_000, 5_000) for sign in (1, -1)),
    *(2**bits for bits in (31, 63, 1_024)),
    *(1, 7, 1e308, float("inf")),
    *(False, "", "\ud800", "a\0b", "9" * 5_000),
    *(
        [[]],
        [None],
        [1, 1],
        [2, 1],
        [[1, 2]],
        [10**400],
        {"a": 1},
        {1: 2},
        {None: 1},
        (1, 2),
        b"x",
        object(),
        {1, 2},
    ),
)


@cache
def chat() -> Session:
    """A session with nearly every kind of event."""
    answers = iter(["sum", "", *["sum"] * 99])  # the second is none, and fails

    def summarize(messages: Any) -> str:
        return next(answers)

    session = Session(
        160,
        system="sys",
        anchors=[user("a")],
        summary_mode="rolling",
        recall_ratio=0.2,
        **{**FUNCTIONS, "summarizer": summarize},
    )
    for at in range(12):
        event = session.add(user(f"{at} penguin {words(8)}"))
        session.extend([call(f"c{at}"), result(f"c{at}", words(5)), assistant(words(20))])
    session.undo()
    session.pin(event)
    session.unpin(event)
    session.pin(event)
    session.redact(session.add(user("secret")))
    session.messages()
    session.record_usage({"prompt_tokens": 100, "completion_tokens": 3})
    session.set_budget(140)
    session.set_anchors([user("another")])
    session.add(user("and the penguin 3?"))
    session.pop()
    session.add(user("what of the penguin 3?"))
    session.add(call("open"))
    return session


@cache
def anthropic() -> Session:
    """A session of parts, cleared once."""
    session = Session(200, format="anthropic", system="x")
    for at in range(9):
        if at == 5:
            session.clear()
        use = {"type": "tool_use", "id": f"t{at}", "name": "f", "input": {"a": {"b": [1]}}}
        answer = {"type": "tool_result", "tool_use_id": f"t{at}", "content": "42"}
        session.add({"role": "user", "content": [{"type": "text", "text": words(9)}]})
        session.add({"role": "assistant", "content": [use]})
        session.add({"role": "user", "content": [answer]})
    return session


SNAPSHOTS: dict[str, Callable[[], tuple[dict[str, Any], dict[str, Any]]]] = {
    "chat": lambda: (chat().snapshot(), FUNCTIONS),
    "chat without history": lambda: (chat().snapshot(history=False), FUNCTIONS),
    "anthropic": lambda: (anthropic().snapshot(), {}),
    "anthropic without history": lambda: (anthropic().snapshot(history=False), {}),
}


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """Seal a snapshot: a hash of its JSON, in which 1.0 is 1. What is no JSON has the version without."""

    def number(text: str) -> float:
        return int(float(text)) if float(text).is_integer() else float(text)

    try:
        said = json.loads(json.dumps({**data, "seal": None}, allow_nan=False), parse_float=number)
        text = json.dumps(said, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError):
        return {**data, "version": 1}
    return {**data, "seal": hashlib.blake2b(text, digest_size=16).hexdigest()}


def test_what_was_sealed_here_is_sealed_as_a_session_does() -> None:
    """Else the tests below would try the seal and nothing behind it."""
    for make in SNAPSHOTS.values():
        data, _ = make()
        assert sealed({**data, "seal": None}) == data


def test_there_is_every_kind_of_event() -> None:
    """Else one would not be changed."""
    there = {event["kind"] for make in SNAPSHOTS.values() for event in make()[0]["events"]}
    decided = {"options", "anchors", "budget", "usage", "pinned", "unpinned", "cleared", "abridged"}
    made = {"message", "summary", "fact", "facts", "evicted", "failed", "recalled"}
    assert there == {*decided, *made, "popped", "undone", "redacted"}


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """List the places of a snapshot."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def fields(data: dict[str, Any]) -> Iterator[Place]:
    """List every field of the newest event of each kind, of the newest state, and of the options."""
    newest = {event["kind"]: at for at, event in enumerate(data["events"])}
    for at in newest.values():
        event = data["events"][at]
        yield from (("events", at, column) for column in event)
        yield from (("events", at, "data", name) for name in event["data"])
    last = len(data["events"]) - 1
    named = {name for event in data["events"] for name in event["state"]}
    yield from (("events", last, "state", name) for name in sorted(named))
    first = data["events"][0]["data"]["options"]
    yield from (("events", 0, "data", "options", name) for name in first)
    yield from ((name,) for name in data if name != "seal")


def changed(owner: Any, path: Place, value: Any) -> Any:
    """Return a copy of plain data with another value at a place, or with none; the rest is shared."""
    copy = owner.copy()
    if len(path) > 1:
        copy[path[0]] = changed(owner[path[0]], path[1:], value)
    elif value is not GONE:
        copy[path[0]] = value
    elif isinstance(owner, list) or path[0] in owner:
        del copy[path[0]]
    return copy


def go_on(session: Session, *, messages_hold: bool) -> int:
    """Do everything a session can do; what it cannot is a typed error.

    `messages_hold`: what it says is as it was, so that its views are valid and within the budget.

    Returns:
        How often its log was said to be at fault.
    """

    def view() -> None:
        shown = session.messages()
        if messages_hold:
            status = session.status()
            assert status.expected_tokens <= status.budget_tokens
            rules = {fault.rule for fault in trimtab.validate(shown)}
            assert rules <= {"open_call"}

    steps: tuple[Callable[[], object], ...] = (
        view,
        lambda: [session.view_at(version) for version in range(0, session.version + 1, 11)],
        lambda: session.diff(1, session.version),
        lambda: session.recall("penguin 3"),
        lambda: session.snapshot(history=False),
        lambda: session.extend([{"role": "user", "content": f"penguin {words(9)}"}] * 4),
        view,
        session.undo,
        session.pop,
        lambda: session.redact([event.id for event in session.history()][:1]),
        session.summarize,
        lambda: session.set_budget(120),
        view,
        session.clear,
        lambda: list(session.history(kinds=None)),
    )
    told: list[ContextError] = []
    for step in steps:
        try:
            step()
        except ContextError as error:
            told.append(error)
    return sum(isinstance(error, CorruptSessionError) for error in told)


def check(data: dict[str, Any], given: dict[str, Any], path: Place, value: Any) -> bool:
    """Change a place, seal it again, and restore it; False: it was refused."""
    refused: ContextError | None = None
    try:
        session = Session.restore(sealed(changed(data, path, value)), **given)
    except ContextError as error:
        refused = error
    if refused is None:
        go_on(session, messages_hold={"message", "anchors", "system"}.isdisjoint(path))
        return True
    assert isinstance(refused, CorruptSessionError) or "was made with" in str(refused), path
    assert len(str(refused)) < 1_000
    return False


@pytest.mark.long
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_field_of_every_kind_of_event_is_checked(name: str) -> None:
    """Another type, another sign, a number no version can be, none at all: refused, or a session."""
    data, given = SNAPSHOTS[name]()
    taken = [check(data, given, path, value) for path in fields(data) for value in SHAPES]
    assert taken.count(False) > 0.5 * len(taken)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_no_session_writes_is_told_as_that(name: str) -> None:
    """Wherever it was changed, and to whatever: one error, of a length a log can hold."""
    data, given = SNAPSHOTS[name]()
    chance = random.Random(name)
    where = list(places(data))
    for _ in range(CASES):
        path, value = chance.choice(where), chance.choice(HOSTILE)
        if chance.random() < 0.1:  # that of another place
            value = data
            for key in chance.choice(where):
                value = value[key]
        check(data, given, path, value)


@pytest.mark.long
def test_rows_of_a_store_are_checked_as_they_are_read(tmp_path: Path) -> None:
    """A store takes the events of whoever writes to it: what no session writes is told, and nothing else."""
    data, chance = chat().snapshot(), random.Random(0)
    cases = [
        (path, value) for path in fields(data) for value in SHAPES if path[0] == "events" and len(path) > 3
    ]
    told = 0
    with SQLiteStore(tmp_path / "chats.db") as store:
        for at, (path, value) in enumerate(chance.sample(cases, CASES)):
            name = f"s{at}"
            events = [Event(**event) for event in changed(data, path, value)["events"]]
            with suppress(ConfigurationError):  # what is no plain data no store takes
                store.append(AppendRequest(session=name, expected_version=0, events=events))
            if store.load(LoadRequest(session=name, limit=1)):
                try:
                    told += go_on(Session.open(store, name, **FUNCTIONS), messages_hold=False)
                except CorruptSessionError:
                    told += 1
    assert told > CASES / 2


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("data", "message"), "x", "(message) has data.message 'x', and it is a mapping"),
        (("data", "joins"), 10**6, "has data.joins 1000000, and it is the version of a message before it"),
        (("data", "joins"), 1, "names in data.joins event 1, which is of the kind options and not message"),
        (("state", "summary"), 2, "names in state.summary event 2, which is of the kind message and not"),
        (("state", "options"), GONE, "has no state.options: it is the version of an event of kind options"),
        (("state", "a_new_one"), 5, "does not know: a newer one wrote it, so update this one"),
        (("time",), "now", "has time 'now', and it is a number of seconds since 1970"),
        (("kind",), "rewound", "is of the kind 'rewound', which this version of trimtab does not know"),
        (("id",), "", "has id '', and it is the id of an event"),
    ],
)
def test_the_error_says_where_and_what_and_what_to_write(path: Place, value: Any, said: str) -> None:
    """Three lines of a log are enough to find it."""
    data = chat().snapshot()
    last = len(data["events"]) - 1
    assert data["events"][last]["kind"] == "message"
    with pytest.raises(CorruptSessionError) as caught:
        Session.restore(sealed(changed(data, ("events", last, *path), value)), **FUNCTIONS)
    assert f"event {last + 1}" in str(caught.value)
    assert said in str(caught.value)
    assert str(caught.value).endswith("Take the snapshot again, or restore the store from a backup")
    assert caught.value.version == last + 1


def test_an_id_that_stands_twice_is_told() -> None:
    """Not as an error of the store that would keep it."""
    data = chat().snapshot()
    twice = changed(data, ("events", 5, "id"), data["events"][4]["id"])
    with pytest.raises(CorruptSessionError, match=r"event 6 .* has the id of an event before it"):
        Session.restore(sealed(twice), **FUNCTIONS)


def test_what_is_refused_is_kept_nowhere(tmp_path: Path) -> None:
    """An import of it leaves the store as it was."""
    data = chat().snapshot()
    wrong = sealed(changed(data, ("events", 9, "state", "live"), -1))
    with SQLiteStore(tmp_path / "chats.db") as store:
        with pytest.raises(CorruptSessionError):
            Session.restore(wrong, store=store, **FUNCTIONS)
        assert store.sessions() == []


def test_a_wrong_sum_lets_no_view_pass_its_budget() -> None:
    """What is recent is counted when it is read."""
    data = chat().snapshot()
    last = len(data["events"]) - 1
    wrong = sealed(changed(data, ("events", last, "state", "recent_tokens"), 0))
    session = Session.restore(wrong, **FUNCTIONS)
    assert session.status() == Session.restore(data, **FUNCTIONS).status()
