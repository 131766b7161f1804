"""What may be asked of a store, and what its answers mean: requests, events, the rules of an append."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trimtab import ConfigurationError
from trimtab.errors import CorruptSessionError
from trimtab.stores import AppendRequest, Event, LoadRequest, MemoryStore, SearchRequest, SQLiteStore

EVENT = Event(id="e", kind="note", time=1.5, data={"b": 1, "a": 2}, state={"s": 1}, version=3)


def test_an_append_of_nothing_is_refused() -> None:
    """Where it is made."""
    with pytest.raises(ConfigurationError, match="no event to append"):
        AppendRequest(session="s", expected_version=0, events=[])


def test_events_are_numbered_from_the_version_expected() -> None:
    """In order, from the one after it; those given stay as they are."""
    request = AppendRequest(session="s", expected_version=4, events=[EVENT, EVENT])
    assert [event.version for event in request.numbered()] == [5, 6]
    assert EVENT.version == 3


@pytest.mark.parametrize("limit", [-1, True, 1.5, "2"])
def test_a_limit_is_a_whole_number(limit: Any) -> None:
    """Zero is one; and no limit at all may be had where the whole is read."""
    with pytest.raises(ConfigurationError, match="limit"):
        LoadRequest(session="s", limit=limit)
    with pytest.raises(ConfigurationError, match="limit"):
        SearchRequest(session="s", terms=(), limit=limit)
    assert LoadRequest(session="s", limit=0).limit == SearchRequest(session="s", terms=(), limit=0).limit == 0
    assert LoadRequest(session="s").limit is None


def test_only_a_message_has_a_message() -> None:
    """The shortcut of an event."""
    assert EVENT.message is None
    assert replace(EVENT, data={"message": {"role": "user"}}).message == {"role": "user"}


@pytest.mark.parametrize("version", [-1, True])
def test_a_version_is_a_whole_number(version: Any) -> None:
    """0 says that there is nothing yet."""
    with pytest.raises(ConfigurationError, match="version"):
        MemoryStore().append(AppendRequest(session="s", expected_version=version, events=[EVENT]))


@pytest.mark.parametrize(
    ("rewrite", "refused"),
    [
        (replace(EVENT, version=3), None),
        (replace(EVENT, version=1), None),
        (replace(EVENT, version=0), "of version 0 is not stored yet: append it"),
        (replace(EVENT, version=4), "of version 4 is not stored yet: append it"),
        (replace(EVENT, id="a\0"), "an event's id must be"),
        (replace(EVENT, kind=""), "an event's kind must be"),
    ],
)
def test_a_rewrite_is_of_a_stored_version(rewrite: Event, refused: str | None) -> None:
    """From 1 to the version expected, with an id and a kind that an event can have; the error says which."""
    store = MemoryStore()
    three = [replace(EVENT, id=f"e{at}") for at in (1, 2, 3)]
    store.append(AppendRequest(session="s", expected_version=0, events=three))
    if not refused:
        rewrite = replace(rewrite, id=f"e{rewrite.version}", data={"new": True})
    request = AppendRequest(session="s", expected_version=3, events=[EVENT], rewrites=[rewrite])
    if refused:
        with pytest.raises(ConfigurationError, match=refused):
            store.append(request)
    else:
        store.append(request)
        changed = [one.version for one in store.load(LoadRequest(session="s")) if one.data == {"new": True}]
        assert changed == [rewrite.version]


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("s", True),
        ("x" * 512, True),
        ("é" * 512, True),
        ("x" * 513, False),
        ("", False),
        ("a\0", False),
        ("\ud800", False),
        (None, False),
        (b"s", False),
    ],
)
def test_a_session_has_a_name(name: Any, fits: bool) -> None:
    """A text of 1 to 512 characters that every database keeps as it is."""
    store, request = MemoryStore(), AppendRequest(session=name, expected_version=0, events=[EVENT])
    if fits:
        store.append(request)
        assert store.sessions() == [name]
    else:
        with pytest.raises(ConfigurationError):
            store.append(request)


@pytest.mark.parametrize("name", ["f", "é" * 512, "x" * 513, "", "a\0", "\ud800"])
def test_an_id_that_no_event_can_have_is_of_none(name: str) -> None:
    """Whoever asks for it gets what else was asked for; one that is asked for twice comes once."""
    with SQLiteStore(":memory:") as store:
        store.append(AppendRequest(session="s", expected_version=0, events=[EVENT]))
        found = store.load(LoadRequest(session="s", ids=(name, "e", name, "e")))
        assert [event.id for event in found] == ["e"]


def test_a_retry_may_order_its_keys_otherwise() -> None:
    """Equal data are the same event; another kind or other data are not."""
    store = MemoryStore()
    request = AppendRequest(session="s", expected_version=0, events=[EVENT, replace(EVENT, id="f")])
    store.append(request)
    turned = replace(EVENT, data={"a": 2, "b": 1})
    assert store.append(replace(request, events=[turned]))[:2] == (2, True)
    for other in (replace(EVENT, kind="other"), replace(EVENT, data={"a": 2})):
        with pytest.raises(ConfigurationError, match="taken"):
            store.append(replace(request, events=[other]))


@pytest.mark.parametrize(
    ("there", "asked", "version", "missing"),
    [
        pytest.param([1, 2, 3], {}, 3, None, id="whole"),
        pytest.param([1, 3], {}, 3, 2, id="one-in-between"),
        pytest.param([2, 3], {}, 3, 1, id="the-first"),
        pytest.param([1, 2], {}, 3, 3, id="the-last"),
        pytest.param([], {}, 2, 1, id="all"),
        pytest.param([3, 2], {"after": 1, "newest_first": True}, 3, None, id="backwards"),
        pytest.param([3, 1], {"newest_first": True}, 3, 2, id="backwards-one-in-between"),
        pytest.param([3], {"newest_first": True, "limit": 1}, 3, None, id="backwards-limit"),
        pytest.param([2], {"newest_first": True, "limit": 1}, 3, 3, id="backwards-the-last"),
        pytest.param([1, 2], {"limit": 2}, 9, None, id="limit"),
        pytest.param([2], {"after": 1, "before": 3}, 9, None, id="between"),
        pytest.param([2], {"after": 1, "before": 99}, 2, None, id="before-what-is-not-there"),
        pytest.param([2], {"ids": ("e2",)}, 9, None, id="ids"),
    ],
)
def test_gaps_are_found(
    tmp_path: Path, there: list[int], asked: dict[str, Any], version: int, missing: int | None
) -> None:
    """Whichever way was read: what a session's version says is there and is not, and was asked for."""
    path = tmp_path / "s.db"
    with SQLiteStore(path) as store:
        events = [replace(EVENT, id=f"e{at}") for at in range(1, version + 1)]
        store.append(AppendRequest(session="s", expected_version=0, events=events))
    with closing(sqlite3.connect(path)) as connection, connection:
        kept = ", ".join(map(str, there))
        connection.execute(f"DELETE FROM trimtab_events WHERE version NOT IN ({kept})")
    with SQLiteStore(path) as store:
        request = LoadRequest(session="s", **asked)
        if missing is None:
            assert [event.version for event in store.load(request)] == there
        else:
            with pytest.raises(CorruptSessionError, match="missing") as caught:
                store.load(request)
            assert caught.value.version == missing
