"""A session does what SPEC E says, whatever is done to it in whatever order: against a plain model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.plain import Settings
from tests.session.playing import COUNTERS, OPERATIONS, SETTINGS, Operation, play
from tests.sizes import sizes
from trimtab.stores import SQLiteStore


@sizes(20, 250)
def test_a_session_is_what_is_said_plainly(size: int) -> None:
    """Log, states, hooks, views, counts; and read from the store anew after each operation."""

    @given(SETTINGS, OPERATIONS)
    @settings(max_examples=size, report_multiple_bugs=False)
    def histories(options: Settings, operations: list[Operation]) -> None:
        play(options, operations)

    histories()


BLACK_BOXES = [name for name in COUNTERS if name not in ("words", "estimate")]


@pytest.mark.long
@given(SETTINGS, OPERATIONS, st.sampled_from(BLACK_BOXES))
@settings(max_examples=80, report_multiple_bugs=False)
def test_with_a_black_box_too(options: Settings, operations: list[Operation], counter: str) -> None:
    """What a part costs is what the black box says of it alone."""
    play(options, operations, counter=counter)


@pytest.mark.long
@given(SETTINGS, OPERATIONS)
@settings(max_examples=80, report_multiple_bugs=False)
def test_in_a_file_too(options: Settings, operations: list[Operation]) -> None:
    """SQLite gives back what memory gives back."""
    with TemporaryDirectory() as folder, SQLiteStore(Path(folder, "log.db")) as store:
        play(options, operations, store=store)


def told_apart(played: Any) -> list[Any]:
    """The log without ids and times, which differ from run to run."""
    return [(event.kind, _without_ids(event.data), event.state) for event in played.log()]


def _without_ids(data: Any) -> Any:
    return {key: value for key, value in data.items() if key not in ("event", "events", "stale")}


@pytest.mark.long
@given(SETTINGS, OPERATIONS)
@settings(max_examples=20, report_multiple_bugs=False)
def test_sync_and_async_write_the_same_log(options: Settings, operations: list[Operation]) -> None:
    """One algorithm, two colours: events, data and states are the same; so are the hooks."""
    first = play(options, operations)
    second = play(options, operations, colour="async")
    assert told_apart(first) == told_apart(second)
    assert first.told == second.told
