"""A form whose results are parts of messages, as Anthropic's are: parts leave and move alone."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pair_rules import SAYS, USER, calls, rules_of
from trimtab.conversation import repair, validate
from trimtab.formats import OpenAIChat, Structure


class PartsFormat(OpenAIChat):
    """Results are parts `{"answers": id}` of user messages; other parts are the user's own."""

    name = "parts"

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read results from parts."""
        super().scan(messages, start, stop, structure)
        for index in range(start, stop):
            content = messages[index].get("content")
            parts = content if isinstance(content, list) else []
            found = [(part["answers"], i) for i, part in enumerate(parts) if "answers" in part]
            loose = tuple(i for i, part in enumerate(parts) if "answers" not in part)
            if found:
                structure.answers[index] = tuple(found)
                if loose:
                    structure.loose[index] = loose
                else:
                    structure.kinds[index] = "tool"

    def join_results(self, message: Any, other: Any, /) -> Any:
        """Put results behind those of the message."""
        parts = message["content"]
        end = 1 + max(i for i, part in enumerate(parts) if "answers" in part)
        return {**message, "content": [*parts[:end], *other["content"], *parts[end:]]}

    def faults(self, messages: list[Any], request: Any = None, /) -> list[Any]:
        """Find no faults: only pairs matter here."""
        return []


PARTS = PartsFormat()


def carries(*entries: str) -> dict[str, Any]:
    """Make a user message of parts: "a" answers call a, "!x" is the user's text x."""
    parts = [{"text": e[1:]} if e.startswith("!") else {"answers": e} for e in entries]
    return {"role": "user", "content": parts}


class TestParts:
    """Messages some parts of which are results lose or hand over only those parts."""

    @pytest.mark.parametrize(
        ("messages", "expected"),
        [
            ([calls("a", "b"), carries("b", "a")], [calls("a", "b"), carries("b", "a")]),
            ([calls("a"), carries("a", "!hi")], [calls("a"), carries("a", "!hi")]),
            ([carries("z", "!hi"), SAYS], [carries("!hi"), SAYS]),
            ([carries("z", "y"), SAYS], [SAYS]),
            ([calls("a"), carries("a", "z"), SAYS], [calls("a"), carries("a"), SAYS]),
            ([calls("a"), carries("z", "a", "a", "!hi")], [calls("a"), carries("a", "!hi")]),
            ([calls("a"), USER, carries("a")], [calls("a"), carries("a"), USER]),
            ([calls("a"), USER, carries("!hi", "a")], [calls("a"), carries("a"), USER, carries("!hi")]),
            (
                [calls("a"), calls("b"), carries("a", "b", "!hi")],
                [calls("a"), carries("a"), calls("b"), carries("b", "!hi")],
            ),
            (
                [calls("a"), USER, calls("b"), carries("b", "a")],
                [calls("a"), carries("a"), USER, calls("b"), carries("b")],
            ),
            (
                [calls("a"), USER, carries("a", "a", "!hi")],
                [calls("a"), carries("a"), USER, carries("!hi")],
            ),
            ([calls("a", "b"), carries("a", "!hi")], [calls("a"), carries("a", "!hi")]),
        ],
    )
    def test_only_the_parts_concerned_leave_or_move(self, messages: Any, expected: Any) -> None:
        """The rest of the message stays where it is."""
        before = copy.deepcopy(messages)
        assert repair(messages, format=PARTS).messages == expected
        assert messages == before

    def test_changes_of_parts_are_edits(self) -> None:
        """A message of which something is left was edited, not removed."""
        changes = repair([carries("z", "!hi"), carries("y"), SAYS], format=PARTS).changes
        assert [(c.index, c.action) for c in changes] == [(0, "edited"), (1, "removed")]

    def test_a_part_that_left_does_not_move(self) -> None:
        """A further result for an older call is taken out where it stands."""
        done = repair([calls("a"), carries("a"), calls("b"), carries("b", "a")], format=PARTS)
        assert done.messages == [calls("a"), carries("a"), calls("b"), carries("b")]
        assert [(c.index, c.action, c.rule) for c in done.changes] == [(3, "edited", "repeated_result")]

    @given(
        st.lists(
            st.one_of(
                st.just(SAYS),
                st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(
                    lambda ids: calls(*ids)
                ),
                st.lists(st.sampled_from(["a", "b", "c", "z", "!hi"]), min_size=1, max_size=4).map(
                    lambda entries: carries(*entries)
                ),
            ),
            max_size=8,
        ).map(lambda messages: [copy.deepcopy(m) for m in messages])
    )
    def test_repaired_parts_have_no_pair_violations_and_stay_so(self, messages: Any) -> None:
        """Nothing at fault is left, nothing the user wrote is lost, and a second repair rests."""
        once = repair(messages, format=PARTS).messages
        assert [v for v in validate(once, format=PARTS) if v.fault] == []
        twice = repair(once, format=PARTS)
        assert twice.changes == ()
        assert all(a is b for a, b in zip(once, twice.messages, strict=True))
        assert _texts(once) == _texts(messages)

    def test_a_message_may_call_and_answer_at_once(self) -> None:
        """Tools the provider runs answer in the message that called them, or in the next call's."""
        itself = {**calls("a"), "content": [{"answers": "a"}]}
        between = {**calls("c"), "content": [{"answers": "a"}]}
        for messages in ([itself, USER], [calls("a", "b"), between, carries("b", "c"), USER]):
            assert validate(messages, format=PARTS) == []
            done = repair(messages, format=PARTS)
            assert done.messages == messages
            assert done.changes == ()

    def test_a_repeated_result_is_not_late_as_well(self) -> None:
        """Each result has one rule at most."""
        messages = [calls("a"), carries("a"), USER, carries("a")]
        assert rules_of(validate(messages, format=PARTS)) == [(3, "repeated_result", "a")]

    def test_late_parts_are_told_from_those_in_place(self) -> None:
        """One message may hold both."""
        messages = [calls("a"), calls("b"), carries("a", "b")]
        assert rules_of(validate(messages, format=PARTS)) == [(2, "late_result", "a")]


def _texts(messages: Sequence[Mapping[str, Any]]) -> Counter[str]:
    parts = itertools.chain.from_iterable(
        m["content"] for m in messages if isinstance(m.get("content"), list)
    )
    return Counter(part["text"] for part in parts if "text" in part)
