"""A snapshot may come from anywhere: what no session writes is CorruptSessionError, nothing else (E10)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS
from trimtab import BudgetExceededError, ConfigurationError, Session, counter_from_text
from trimtab.errors import CorruptSessionError, UnknownNameError

MUTATIONS = 1_000
"""Of each snapshot."""

Path = tuple[Any, ...]


def summarize(messages: Any) -> str:
    """Write the shortest summary there is."""
    return "sum"


def nested(levels: int, inside: Callable[[Any], Any]) -> Any:
    """Nest plain data."""
    value: Any = []
    for _ in range(levels):
        value = inside(value)
    return value


HOSTILE: tuple[Any, ...] = (
    nested(100_000, lambda value: [value]),
    nested(100_000, lambda value: {"a": value}),
    nested(300, lambda value: [value]),
    *(sign * 10**digits for digits in (18, 19, 40, 300, 309, 400, 4_000, 5_000) for sign in (1, -1)),
    *(2**bits for bits in (31, 63, 64, 1_024)),
    *(-1, 0, 1, 7, 0.5, 1e308, float("inf"), float("nan")),
    *(None, True, False, "", "x", "\ud800", "a\0b", "9" * 5_000),
    *([], {}, [[]], [None], [1, 1], [10**400], {"a": 1}, {1: 2}, {None: 1}, (1, 2), b"x", object(), {1, 2}),
)


@cache
def chat() -> Session:
    """A session with every kind of event."""
    session = Session(
        200, system="sys", anchors=[user("a")], summarizer=summarize, counter=WORDS, summary_mode="rolling"
    )
    for at in range(12):
        event = session.add(user(f"{at} {words(9)}"))
        session.extend([call(f"c{at}"), result(f"c{at}", words(5)), assistant(words(20))])
    session.undo()
    session.pin(event)
    session.redact(session.add(user("secret")))
    session.messages()
    session.record_usage({"prompt_tokens": 100, "completion_tokens": 3})
    session.set_budget(150)
    session.set_anchors([user("another")])
    session.add(call("open"))
    return session


@cache
def anthropic() -> Session:
    """A session of parts, cleared once."""
    session = Session(300, format="anthropic", system="x")
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
    "chat": lambda: (chat().snapshot(), {"summarizer": summarize, "counter": WORDS}),
    "chat without history": lambda: (
        chat().snapshot(history=False),
        {"summarizer": summarize, "counter": WORDS},
    ),
    "anthropic": lambda: (anthropic().snapshot(), {}),
    "anthropic without history": lambda: (anthropic().snapshot(history=False), {}),
}


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """List the places of a snapshot."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(owner: Any, path: Path, change: Callable[[Any, Any], None]) -> Any:
    """Return a copy of plain data in which one place is changed; the rest is shared."""
    copy = owner.copy()
    if len(path) == 1:
        change(copy, path[0])
    else:
        copy[path[0]] = changed(owner[path[0]], path[1:], change)
    return copy


def mutated(chance: random.Random, data: dict[str, Any], where: list[Path]) -> tuple[Path, Any]:
    """Change one place: another value, one of another place, none, or one more."""
    path, way, value = chance.choice(where), chance.random(), chance.choice(HOSTILE)
    if way > 0.9:
        value = data
        for key in chance.choice(where):
            value = value[key]

    def change(owner: Any, key: Any) -> None:
        if way < 0.1:
            del owner[key]
        elif way < 0.15 and isinstance(owner, list):
            owner.insert(key, value)
        elif way < 0.2 and isinstance(owner, dict):
            owner[chance.choice(("x", "version", "joins", "alone", "older"))] = value
        else:
            owner[key] = value

    return path, changed(data, path, change)


def lived(session: Session) -> None:
    """Do with a session what one does; a message may be too large for its budget."""
    for order in (
        session.messages,
        session.status,
        lambda: session.add(user("hello")),
        session.snapshot,
        session.undo,
        lambda: session.recall("word"),
        lambda: session.set_budget(400),
        session.clear,
    ):
        with suppress(BudgetExceededError, UnknownNameError):
            order()


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_no_session_writes_is_told_as_that(name: str) -> None:
    """A function that is missing, a model or a form nobody knows here is told as such; all else goes on."""
    data, given = SNAPSHOTS[name]()
    where = list(places(data))
    states = [path for path in where if {"state", "options", "time"} & set(path)]
    chance = random.Random(name)
    kinds = [kind_of(*mutated(chance, data, states if at % 2 else where), given) for at in range(MUTATIONS)]
    assert MUTATIONS // 3 < kinds.count("refused") < MUTATIONS
    json.dumps(data)  # it is as it was


def kind_of(path: Path, data: dict[str, Any], given: dict[str, Any]) -> str:
    """Restore a snapshot that was changed at a place, and say what came of it."""
    said = "the snapshot was taken"
    try:
        session = Session.restore(data, **given)
    except CorruptSessionError as error:
        kind, said = "refused", str(error)
    except UnknownNameError:
        kind = path[-1] if path[-1] in ("model", "format") else "unknown"
    except ConfigurationError as error:
        kind, said = "given", str(error)
    else:
        lived(session)
        return "taken"
    assert len(said) < 1_000, said
    if kind == "given" and path[-1] == "message_overhead":
        assert "counter= charges its own" in said  # what tokens are estimated by, and a counter is given
        return kind
    assert kind == "refused" or kind in path, path
    assert kind != "given" or "was made with a" in said
    return kind


TEXT_COUNTER = counter_from_text(lambda text: len(text.split()))


@pytest.mark.parametrize("content", [[1], [[]], [None]])
def test_a_message_that_cannot_be_counted_is_of_a_corrupt_snapshot(content: Any) -> None:
    """Its parts are looked at only where tokens are."""
    session = Session(200, counter=TEXT_COUNTER)
    session.add(user("hi"))
    data = session.snapshot()
    data["events"][1]["data"]["message"]["content"] = content
    with pytest.raises(CorruptSessionError, match="a message of the snapshot cannot be read"):
        Session.restore(data, counter=TEXT_COUNTER)


def test_the_same_in_asyncio() -> None:
    """By `arestore`."""
    session = Session(200, counter=TEXT_COUNTER)
    session.add(user("hi"))
    data = session.snapshot()
    data["events"][1]["data"]["message"]["content"] = [1]
    with pytest.raises(CorruptSessionError, match="a message of the snapshot cannot be read"):
        asyncio.run(Session.arestore(data, counter=TEXT_COUNTER))
