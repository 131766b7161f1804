"""Units: what stays or leaves together, and how little has to be read to know it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.builders import assistant, talk
from trimtab import ConfigurationError
from trimtab.conversation import History, group, resolve_pins
from trimtab.formats import OpenAIChat, Structure, get_format

OPENAI = get_format("openai_chat")


def written(messages: list[Any], **options: Any) -> str:
    """Write units in one line: indices, then p(inned), h(eld) or f(ree), then `!` if open."""
    return " ".join(
        ",".join(map(str, unit.indices)) + unit.state[0] + ("!" if unit.open else "")
        for unit in group(messages, **options)
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ""),
        ("u", "0p"),
        ("a", "0h"),
        ("s", "0p"),
        ("s d u a", "0p 1p 2p 3h"),
        ("s u s u", "0p 1f 2f 3p"),
        ("u a u a", "0f 1f 2p 3h"),
        ("a a a", "0f 1f 2h"),
        # calls and what answers them
        ("u cA rA u", "0f 1,2f 3p"),
        ("u cA rA", "0p 1,2h"),
        ("u cA,B rB rA a", "0p 1,2,3f 4h"),
        ("u cA a rA u", "0f 1,3f 2f 4p"),
        ("u cA a rA", "0p 1,3h 2f"),
        ("u cA u rA", "0f 1,3h 2p"),
        ("u cA cB rA rB u", "0f 1,3f 2,4f 5p"),
        # ids used again: the nearest earlier unanswered call
        ("u cA rA cA rA u", "0f 1,2f 3,4f 5p"),
        ("cA cA rA rA u", "0,3f 1,2f 4p"),
        ("u cA rA rA u", "0f 1,2,3f 4p"),
        ("cA rA cA rA rA u", "0,1f 2,3,4f 5p"),
        # results without a call
        ("u rA u", "0f 1f 2p"),
        ("rA cA u", "0f 1f 2p"),
        ("rA rA", "0f 1h"),
        # calls without a result
        ("u cA", "0p 1h!"),
        ("u cA,B rA", "0p 1,2h!"),
        ("u cA,B rA rB", "0p 1,2,3h"),
        ("u cA a", "0p 1f 2h"),
        ("u cA u", "0f 1f 2p"),
        ("u cA s", "0p 1h! 2h"),
        ("u cA cB rB", "0p 1f 2,3h"),
        ("u cA rB", "0p 1h! 2h"),
    ],
)
def test_units_are_calls_with_their_results_and_single_messages(line: str, expected: str) -> None:
    """Pinned: leading system, latest user; held: the newest unit and open calls (SPEC A4, A4b)."""
    assert written(talk(line)) == expected


@pytest.mark.parametrize(
    ("pin", "expected"),
    [
        ((), "0f 1,2f 3f 4p"),
        ([0], "0p 1,2f 3f 4p"),
        ([2], "0f 1,2p 3f 4p"),
        ([-2], "0f 1,2f 3p 4p"),
        ([-5, 4], "0p 1,2f 3f 4p"),
        (lambda message, index: index == 1, "0f 1,2p 3f 4p"),
        (lambda message, index: message["role"] == "assistant" and "content" in message, "0f 1,2p 3p 4p"),
    ],
)
def test_a_pinned_message_pins_its_unit(pin: Any, expected: str) -> None:
    """By index, from the end, or by a predicate."""
    assert written(talk("u cA rA a u"), pin=pin) == expected


@pytest.mark.parametrize("pin", [[5], [-6], ["1"], [True], "12", b"1", 3])
def test_a_pin_that_is_none_is_refused(pin: Any) -> None:
    """Out of range, or no index."""
    with pytest.raises(ConfigurationError, match="pin"):
        resolve_pins(pin, talk("u a u a u"))


def test_the_ends_of_a_conversation_can_be_pinned() -> None:
    """First and last index, from either side."""
    assert resolve_pins([0, 2, -1, -3], talk("u a u")) == {0, 2}


def test_a_pending_call_is_open_whatever_follows() -> None:
    """SPEC A4b: its id is in `pending_calls`."""
    messages = talk("u cA,B rA u a u")
    assert written(messages) == "0f 1,2f 3f 4f 5p"
    assert written(messages, pending_calls=["B"]) == "0f 1,2h! 3f 4f 5p"
    assert written(messages, pending_calls=["A"]) == "0f 1,2f 3f 4f 5p"


class Columns(OpenAIChat):
    """A form that reads what it was told to read."""

    name = "columns"

    def __init__(self, structure: Structure) -> None:
        self._given = structure

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Fill the columns of that part."""
        there = range(start, stop)
        structure.kinds.update({index: self.kind(messages[index]) for index in there})
        structure.bound |= self._given.bound.intersection(there)
        for column in ("calls", "answers", "loose"):
            given = getattr(self._given, column)
            getattr(structure, column).update({index: given[index] for index in there if index in given})


def grouped(structure: Structure) -> list[tuple[list[int], dict[int, tuple[int, ...]]]]:
    """Group columns, however a form came to them."""
    units = group([assistant()] * structure.count, format=Columns(structure))
    return sorted(
        [(list(unit.indices), dict(unit.parts)) for unit in units],
        key=lambda one: (one[0], [*one[1].values()]),
    )


def test_a_chain_of_bound_messages_is_one_unit() -> None:
    """Each stays only with the next one; the last of them may be a call with its results."""
    structure = Structure(6)
    structure.bound = {1, 2}
    structure.calls, structure.answers = {3: ("a",)}, {4: (("a", None),)}
    assert grouped(structure) == [([0], {}), ([1, 2, 3, 4], {}), ([5], {})]


def test_parts_of_one_message_may_belong_to_several_units() -> None:
    """Answers go with their calls, an orphan and what is loose each alone."""
    structure = Structure(3)
    structure.calls = {0: ("a", "b"), 1: ("c",)}
    structure.answers = {2: (("a", 0), ("c", 1), ("b", 3), ("z", 4))}
    structure.loose = {2: (2, 5)}
    assert grouped(structure) == [
        ([0, 2], {2: (0, 3)}),
        ([1, 2], {2: (1,)}),
        ([2], {2: (2, 5)}),
        ([2], {2: (4,)}),
    ]


# -- what a history reads


def history(messages: list[Any], **options: Any) -> History:
    """Make a history of Chat Completions messages."""
    return History(messages, format=OPENAI, **options)


def test_the_question_of_a_turn_is_found_in_any_order_of_asking() -> None:
    """Remembering the last turn changes no answer: compared with a plain loop at random places."""
    random = Random(3)
    for _ in range(40):
        line = " ".join(
            random.choices(["u", "a", "s", "cA rA"], weights=[1, 4, 1, 2], k=random.randrange(60))
        )
        messages = talk(line)
        asked = history(messages)
        for index in random.choices(range(-1, len(messages)), k=80):
            users = [i for i in range(index + 1) if messages[i]["role"] == "user"]
            assert asked.user_at_or_before(index) == (users[-1] if users else None)


@pytest.mark.parametrize(
    ("line", "index", "expected"),
    [("a u a", 0, 1), ("a u a", 1, 1), ("a u a", 2, None), ("", 0, None), ("u", 1, None)],
)
def test_the_next_question_is_found(line: str, index: int, expected: int | None) -> None:
    """At the place itself or after it."""
    assert history(talk(line)).user_at_or_after(index) == expected


def test_a_history_is_read_from_the_end_message_by_message() -> None:
    """And remembers how far."""
    read = history(talk("u a u"))
    for start in (2, 1, 1, 2, 0):
        read.read(start)
        assert start in read.structure.kinds
    assert read.read_from == 0


@pytest.mark.parametrize(("line", "expected"), [("", 0), ("u", 0), ("s d u s", 2), ("s s", 2), ("a s", 0)])
def test_only_leading_system_messages_are_at_the_head(line: str, expected: int) -> None:
    """A later one is an ordinary unit."""
    assert history(talk(line)).head == expected
