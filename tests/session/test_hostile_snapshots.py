"""A snapshot may come from anywhere: what no session writes is CorruptSessionError, nothing else (E10)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS
from trimtab import Session
from trimtab.errors import CorruptSessionError

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


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_no_session_writes_is_told_as_that(name: str) -> None:
    """Wherever it was changed, and to whatever: one error, of a length a log can hold."""
    data, given = SNAPSHOTS[name]()
    where = list(places(data))
    states = [path for path in where if {"state", "options", "time"} & set(path)]
    chance = random.Random(name)
    for at in range(MUTATIONS):
        path, spoiled = mutated(chance, data, states if at % 2 else where)
        said = ""
        try:
            taken = Session.restore(spoiled, **given).snapshot()
        except CorruptSessionError as error:
            said = str(error)
        assert said or spoiled["version"] == 1 or taken == spoiled, path
        assert len(said) < 1_000
