"""Messages that need one behind them, and results whose calls the provider has stored: in any wire form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.properties.toy_format import Message, ToyFormat, answers, asks, said, words
from trimtab import fit, repair, validate
from trimtab.formats import Request, Structure
from trimtab.testing import WordCounter


class Storing(ToyFormat):
    """The toy form; a thought at the end means nothing, and a body may go on from stored messages."""

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Note thoughts that nothing of the model follows."""
        super().scan(messages, start, stop, structure)
        for at in range(start, stop):
            behind = messages[at + 1]["role"] if at + 1 < len(messages) else None
            if messages[at]["role"] == "thought" and behind != "assistant":
                structure.dangling.add(at)

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Say whether there is more than the body holds."""
        return replace(super().read_request(body), elsewhere="goes_on" in body)


FORM = Storing()
USER, THOUGHT = said("user", words("hi")), said("thought", words("hm"))


class TestDangling:
    """What a repair would leave alone leaves as well."""

    @pytest.mark.parametrize(
        ("messages", "left"),
        [
            ([USER, THOUGHT, said("assistant", asks("a")), USER], [0, 3]),
            ([USER, THOUGHT, said("assistant", asks("a"), words("so")), USER], [0, 1, 2, 3]),
            ([USER, THOUGHT, said("assistant", words("so"))], [0, 1, 2]),
            ([USER, THOUGHT], [0]),
        ],
    )
    def test_a_message_leaves_with_what_it_was_bound_to(
        self, messages: list[Message], left: list[int]
    ) -> None:
        """By a call that is repaired away, or since it was alone to begin with."""
        done = repair(messages, format=FORM)
        assert list(done.positions) == left
        gone = {change.index for change in done.changes if change.rule == "dangling"}
        assert gone == {at for at, message in enumerate(messages) if message is THOUGHT} - set(left)
        assert repair(done.messages, format=FORM).changes == ()


class TestStored:
    """A result may answer a call that the request does not hold."""

    TURNS = (said("user", answers("a", "w " * 20)), said("user", answers("b", "w " * 20)), USER)

    def test_it_is_no_fault_where_there_is_more(self) -> None:
        """And it stays; without stored messages it is an orphan."""
        body = {"turns": list(self.TURNS), "goes_on": True}
        found = [(one.rule, one.fault) for one in validate(body, format=FORM) if one.rule == "orphan_result"]
        assert found == [("orphan_result", False)] * 2
        assert {one.index for one in validate({"turns": list(self.TURNS)}, format=FORM) if one.fault} == {
            0,
            1,
        }
        assert [change.rule for change in repair({"turns": list(self.TURNS)}, format=FORM).changes] == (
            ["orphan_result"] * 2
        )
        assert "orphan_result" not in [change.rule for change in repair(body, format=FORM).changes]

    def test_a_fit_keeps_it(self) -> None:
        """Whatever the budget: the provider would wait for it."""
        turns = [USER, said("user", words("w " * 50)), *self.TURNS]
        counter = WordCounter(format=FORM)
        kept = fit({"turns": turns, "goes_on": True}, format=FORM, counter=counter, budget=60)
        assert [one for one in kept.messages if one in self.TURNS[:2]] == list(self.TURNS[:2])
        loose = fit({"turns": turns}, format=FORM, counter=counter, budget=30)
        assert not [one for one in loose.messages if one in self.TURNS[:2]]
