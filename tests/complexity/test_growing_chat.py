"""What one call of a chat that grows costs: lines run inside trimtab, where the calls before are counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.complexity.counting_machine import exact_counter, operations_of
from tests.complexity.shapes import Message, calls, result, said, user
from trimtab import Cascade, ClearToolResults, SlidingWindow, TruncateText, fit

STRIDES = SlidingWindow(target_ratio=0.7)
AGENT = Cascade(ClearToolResults(keep_results=2), STRIDES, TruncateText())


def _chat(count: int) -> list[Message]:
    """Make turns of four messages, whose results are longer than what stands for a cleared one."""
    made: list[Message] = []
    for at in range(count // 4):
        found = f"found {at}: " + "row of the table, " * 8
        made += [user(f"question {at}"), calls(f"c{at}"), result(f"c{at}", found), said(f"answer {at}")]
    return made


def _lines(chat: list[Message], budget: int, strategy: Any) -> int:
    """Return the lines of a call that knows the counts of all its messages but the newest two."""
    counter = exact_counter()
    fit(chat[:-2], budget, counter=counter, strategy=strategy)
    return operations_of(lambda _: fit(chat, budget, counter=counter, strategy=strategy)).lines


@pytest.mark.parametrize(
    ("strategy", "budget", "most"),
    [(STRIDES, 8_000, 12_900), (AGENT, 8_000, 62_500), (AGENT, 32_000, 229_500)],
    ids=["strides", "an agent", "an agent with much room"],
)
def test_a_call_of_a_growing_chat_runs_few_lines(strategy: Any, budget: int, most: int) -> None:
    """Each message that is weighed, counted or cleared costs a few.

    The bounds are a tenth above what was counted once, and below what it took to ask for each size, kind and
    blank by itself: 13,000, 144,000 and 551,000.
    """
    assert _lines(_chat(9_900), budget, strategy) <= most
