"""What each option of each strategy takes at 1,000 and 10,000 messages, and beside a fit by default.

One counter, and a chat that grows by a turn a call: what is known of it from the calls before is known. A
row that takes more than twice as long at ten times the messages grows with the history; for those that look
at all messages on purpose the table says so.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import thread_time
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # subject.options takes strategies of the tests

import subject
from conversations import Messages, airline

SIZES = (1_000, 10_000)
BUDGET = 8_000
RUNS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to fit, at both sizes."""

    name: str
    milliseconds: tuple[float, float]
    usual: float
    """Of a fit by default at the larger size, in the same run."""
    reads_all: bool

    @property
    def growth(self) -> float:
        """How many times as long it takes at ten times the messages."""
        return self.milliseconds[1] / self.milliseconds[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "growth": self.growth, "x_default": self.milliseconds[1] / self.usual}


def options() -> Iterator[Option]:
    """Measure each option."""
    counter = subject.trimtab.counter_for(subject.MODEL)
    chats = [airline(size) for size in SIZES]
    usual = _took(chats[1], counter, {})
    for name, asked, reads_all in subject.options():
        took = [_took(chat, counter, asked) for chat in chats]
        yield Option(name=name, milliseconds=(took[0], took[1]), usual=usual, reads_all=reads_all)


def _took(chat: Messages, counter: Any, asked: dict[str, Any]) -> float:
    """Return the median of the last calls of a chat, each of which adds a turn; two go before them."""
    ends = [at for at, message in enumerate(chat, 1) if message["role"] == "user"][-RUNS - 2 :]
    times = []
    for end in ends:
        shown = chat[:end]
        start = thread_time()
        subject.fitted(shown, BUDGET, counter, **asked)
        times.append(thread_time() - start)
    return statistics.median(times[2:]) * 1e3
