"""What is remembered of weighed messages: within which bounds, and what a copy tells from its message."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.testing.hooks import WeightMemory


def _copies(*messages: Any) -> Any:
    """Copy messages as a memory does."""
    memory = WeightMemory()
    memory.find("any")
    found = memory.find("any")
    assert found is not None
    found.copies.add(messages)
    return found.copies


def _keep(memory: WeightMemory, key: str, count: int, text: str = "four") -> None:
    memory.find(key)
    found = memory.find(key)
    assert found is not None
    sums = [float(at) for at in range(count + 1)]
    memory.keep(key, type(found)(_copies(*[{"content": text}] * count), sums, {}))


def test_what_is_seen_for_the_first_time_is_not_copied_yet() -> None:
    """Most fits stand alone: a key is all that stays of them, until it is asked for again."""
    memory = WeightMemory()
    assert memory.find("a") is None
    found = memory.find("a")
    assert found is not None
    assert (len(found.copies), len(memory)) == (0, 0)


@pytest.mark.parametrize(
    ("last", "left"),
    [
        pytest.param(4, {"b", "c"}, id="at the bound"),
        pytest.param(5, {"c"}, id="one over"),
        pytest.param(11, set(), id="more than it may hold"),
    ],
)
def test_those_used_last_stay_within_the_most_messages(last: int, left: set[str]) -> None:
    """What is over leaves, whatever was asked for longest ago first."""
    memory = WeightMemory(most_messages=10)
    _keep(memory, "b", 6)
    _keep(memory, "c", last)
    assert {key for key in "bc" if (found := memory.find(key)) is not None and found.copies} == left
    assert len(memory) <= 10


def test_texts_are_held_within_the_most_characters() -> None:
    """A memory of few and large messages is bounded, too."""
    memory = WeightMemory(most_chars=100)
    _keep(memory, "a", 10, "x" * 8)
    _keep(memory, "b", 10, "x" * 8)
    assert len(memory) == 10
    memory.clear()
    assert len(memory) == 0


PART = {"type": "text", "text": "words"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _put(message: Any, *path: Any) -> None:
    *way, key, value = path
    for step in way:
        message = message[step]
    message[key] = value


@pytest.mark.parametrize(
    ("message", "path"),
    [
        pytest.param({"role": "user", "content": "a"}, ("content", "b"), id="a text of the same length"),
        pytest.param({"role": "user", "content": "a"}, ("role", "tool"), id="its role"),
        pytest.param({"role": "user", "content": "a"}, ("more", "b"), id="a key more"),
        pytest.param({"role": "user", "content": [PART]}, ("content", 0, "text", "b"), id="a text in a part"),
        pytest.param({"tool_calls": [CALL]}, ("tool_calls", 0, "function", "arguments", "[]"), id="a call"),
        pytest.param({"args": {"n": 1}}, ("args", "n", 1.0), id="a number of another kind"),
        pytest.param({"args": {"n": 1}}, ("args", "n", True), id="a number that is a flag"),
    ],
)
def test_a_change_in_place_is_noticed(message: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Nothing of a copy is shared with its message but texts, which cannot change."""
    shown = [{"role": "user", "content": "other"}, copy.deepcopy(message)]
    copies = _copies(*shown)
    assert copies.changed(shown) == []
    _put(shown[1], *path)
    assert copies.changed(shown) == [1]


class _Unclear:
    def __eq__(self, other: object) -> bool:
        raise ValueError("which of my values?")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "value",
    [pytest.param(bytearray(b"a"), id="of an SDK"), pytest.param(_Unclear(), id="that cannot be compared")],
)
def test_a_value_that_may_change_unseen_counts_as_changed(value: Any) -> None:
    """Its message is weighed again in each call."""
    assert _copies({"content": [value]}).changed([{"content": [value]}]) == [0]
