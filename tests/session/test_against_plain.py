"""A session does what SPEC E says, whatever is done to it in whatever order: against a plain model."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.playing import COUNTERS, OPERATIONS, SETTINGS, Operation, play
from tests.session.plain import Settings


@given(SETTINGS, OPERATIONS)
def test_a_session_is_what_is_said_plainly(options: Settings, operations: list[Operation]) -> None:
    """Log, states, hooks, views, counts; and read from the store anew after each operation."""
    play(options, operations)


@given(SETTINGS, OPERATIONS, st.sampled_from([name for name in COUNTERS if name != "words"]))
@settings(max_examples=40)
def test_with_a_black_box_too(options: Settings, operations: list[Operation], counter: str) -> None:
    """What a part costs is what the black box says of it alone."""
    play(options, operations, counter=counter)
