"""What may be asked of a store, and what its answers mean: requests, rows, the rules of an append."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trimtab import ConfigurationError
from trimtab.errors import CorruptSessionError
from trimtab.stores import AppendRequest, Event, LoadRequest, MemoryStore, SearchRequest
from trimtab.stores.rows import check_session_name, from_row, storable_ids, to_row, to_rows, without_gaps

EVENT = Event(id="e", kind="note", time=1.5, data={"b": 1, "a": 2}, state={"s": 1}, version=3)


def test_an_append_of_nothing_is_refused() -> None:
    """Where it is made."""
    with pytest.raises(ConfigurationError, match="nothing to append"):
        AppendRequest(session="s", expected_version=0, events=[])


def test_events_are_numbered_from_the_version_expected() -> None:
    """In order, from the one after it; those given stay as they are."""
    request = AppendRequest(session="s", expected_version=4, events=[EVENT, EVENT])
    assert [event.version for event in request.numbered()] == [5, 6]
    assert [row.version for row in to_rows(replace(request, events=[EVENT]))[0]] == [5]
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
        to_rows(AppendRequest(session="s", expected_version=version, events=[EVENT]))


@pytest.mark.parametrize(
    ("rewrite", "refused"),
    [
        (EVENT, False),
        (replace(EVENT, version=1), False),
        (replace(EVENT, version=0), True),
        (replace(EVENT, version=4), True),
        (replace(EVENT, id="a\0"), True),
        (replace(EVENT, kind=""), True),
    ],
)
def test_a_rewrite_is_of_a_stored_version(rewrite: Event, refused: bool) -> None:
    """From 1 to the version expected, with an id and a kind that an event can have."""
    request = AppendRequest(session="s", expected_version=3, events=[EVENT], rewrites=[rewrite])
    if refused:
        with pytest.raises(ConfigurationError):
            to_rows(request)
    else:
        assert [row.version for row in to_rows(request)[1]] == [rewrite.version]


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
    if fits:
        assert check_session_name(name) == name
    else:
        with pytest.raises(ConfigurationError):
            check_session_name(name)
        with pytest.raises(ConfigurationError):
            to_rows(AppendRequest(session=name, expected_version=0, events=[EVENT]))
    assert storable_ids([name, name]) == ([name] if fits else [])


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 4},
        {"id": "f"},
        {"kind": "other"},
        {"time": 2.5},
        {"body": '{"data":{},"state":{}}'},
        {"seal": ""},
        {"body": None},
        {"version": None},
        {"kind": 5},
    ],
)
def test_a_seal_covers_every_column(changed: dict[str, Any]) -> None:
    """What was changed by hand does not match it."""
    row = to_row(EVENT)
    assert from_row(row, session="s") == EVENT
    with pytest.raises(CorruptSessionError):
        from_row(row._replace(**changed), session="s")


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
        pytest.param([2], {"ids": ("e",)}, 9, None, id="ids"),
    ],
)
def test_gaps_are_found(there: list[int], asked: dict[str, Any], version: int, missing: int | None) -> None:
    """Whichever way was read."""
    events = [replace(EVENT, version=one) for one in there]
    request = LoadRequest(session="s", **asked)
    if missing is None:
        assert without_gaps(events, request, version=version) == events
    else:
        with pytest.raises(CorruptSessionError, match="missing") as caught:
            without_gaps(events, request, version=version)
        assert caught.value.version == missing
