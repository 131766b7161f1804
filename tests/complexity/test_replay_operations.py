"""What it costs to look for uses in a replay: lines run where that is done, however long the recording is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.complexity.counting_machine import operations_of
from tests.complexity.shapes import Message, calls, result, said, user
from trimtab.replay import read_recording, replay
from trimtab.strategies import ClearToolResults

FILES = ("replay/uses.py", "replay/details.py")
"""What fits a call and counts what a cache serves reads each view, as a provider does, and is not counted."""


def _chat(turns: int) -> list[Message]:
    """Make turns in which the model takes an id from the result at once, and that of ten turns ago again."""
    made: list[Message] = []
    for at in range(turns):
        text = f"ORD-{at}77 is in src/part{at}/file.py\nand another line of {at}, which is long\n" * 2
        made += [user(f"question {at}"), calls(f"c{at}"), result(f"c{at}", text)]
        made += [said(f"See ORD-{at}77 and src/part{max(0, at - 10)}/file.py")]
    return made


def _lines(chat: list[Message], policy: Any) -> int:
    recording = read_recording(chat)
    return operations_of(
        lambda _: replay(recording, policy, budget=4_000, counter="chars:4"), files=FILES
    ).lines


POLICIES: dict[str, Callable[[], Any]] = {
    "no trimming": lambda: None,
    "strides": lambda: "steady",
    "cleared results": lambda: ClearToolResults(keep_results=3),
    "a window that slides": lambda: lambda messages: messages[-20:],
}


@pytest.mark.parametrize("policy", POLICIES)
def test_uses_are_looked_for_in_lines_that_grow_with_the_recording(policy: str) -> None:
    """What a call shows is known from the call before: only what comes and goes is looked into.

    Read anew at each call, twice the turns would take four times the lines.
    """
    less, more = (_lines(_chat(turns), POLICIES[policy]()) for turns in (30, 60))
    assert more <= 2.1 * less


def test_a_turn_runs_few_lines() -> None:
    """Those of four messages, with some details each; it took 541."""
    less, more = (_lines(_chat(turns), None) for turns in (30, 60))
    assert more - less <= 30 * 600
