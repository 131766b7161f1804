"""The way of a request: how many of our functions it calls, in how many files, and who of them calls upward.

What is held here is drawn in design/035-way.md. The numbers may only shrink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import trimtab
from trimtab import CharCounter, Context, fit
from trimtab.counting import EstimateCounter

PACKAGE = Path(trimtab.__file__).parent

FLOORS = {"_shared": 2, "models": 3, "report": 3, "formats": 4, "conversation": 5, "counting": 5}
"""Floors of design/house.md below the engine's; `strategies` and `budget` are on 6."""

CLIMBS = {
    ("_shared/steps.py", "_fitting/settle.py"),
    ("strategies/rows.py", "_fitting/settle.py"),
}
"""Who calls above itself: the loop that runs a generator, and units that are told apart once asked for."""


def chat() -> list[dict[str, Any]]:
    """Return 41 messages, a call with its result among each five."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 20}]
    for n in range(8):
        call = {"id": f"call_{n}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"Question {n}. " * 8},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": f"Found {n}. " * 30},
            {"role": "assistant", "content": f"Answer {n}. " * 8},
            {"role": "user", "content": f"Thanks {n}."},
        ]
    return messages


class Way:
    """What a call goes through."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.calls = 0
        self.files = set[str]()
        self.climbs = set[tuple[str, str]]()
        call()  # what is loaded once is loaded
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        name = self._file(frame)
        if event != "call" or name is None:
            return
        self.calls += 1
        self.files.add(name)
        caller = frame.f_back
        while caller is not None and self._file(caller) is None:
            caller = caller.f_back
        above = None if caller is None else self._file(caller)
        if above is not None and self._floor(name) > self._floor(above):
            self.climbs.add((above, name))

    @staticmethod
    def _file(frame: FrameType) -> str | None:
        path = Path(frame.f_code.co_filename)
        return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None

    @staticmethod
    def _floor(name: str) -> int:
        room = name.partition("/")[0].removesuffix(".py")
        return FLOORS.get(room, {"_fitting": 7, "_fit": 8, "context": 8}.get(room, 6))


def one_block(counter: Any) -> object:
    """Fit half of a chat."""
    return fit(chat(), 500, counter=counter)


def three_blocks(counter: Any) -> object:
    """Fit half of it in a context."""
    first, *rest = chat()
    context = Context(500, counter=counter)
    context.add("system", first["content"]).add("history", rest).add("question", "And now?")
    return context.fit()


PRICED = EstimateCounter()


@pytest.mark.parametrize(
    ("call", "counter", "calls", "files"),
    [
        pytest.param(one_block, PRICED, 280, 25, id="fit"),
        pytest.param(one_block, CharCounter(), 618, 31, id="fit, without prices"),
        pytest.param(three_blocks, PRICED, 676, 34, id="Context"),
    ],
)
def test_a_request_goes_no_further_than_it_has_to(
    call: Callable[[Any], object], counter: Any, calls: int, files: int
) -> None:
    """So many calls of our functions in so many files, and none upward but those that are drawn."""
    way = Way(lambda: call(counter))
    assert way.climbs <= CLIMBS
    assert len(way.files) <= files, sorted(way.files)
    assert way.calls <= calls
