"""A session of a model that binds its thinking: cuts are told by what was said; thinking leaves first."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from trimtab import Session
from trimtab.counting import CharCounter, CounterLike, EstimateCounter
from trimtab.formats import get_format
from trimtab.stores import MemoryStore

TOLD: dict[str, Any] = {"model": "claude-opus-5-5", "format": "anthropic", "counter": CharCounter(4)}


class Talk:
    """Writes an agent's turns, whose model thinks about each answer."""

    def __init__(self, seed: int, *, most_words: int) -> None:
        self.random, self.most_words, self.made = Random(seed), most_words, 0
        self.steps = 0

    def said(self) -> list[dict[str, Any]]:
        """Write some words of the model's, behind thinking."""
        self.made += 1
        words = "hm " * self.random.randint(1, self.most_words)
        thought = {"type": "thinking", "thinking": words, "signature": f"E{self.made}"}
        text = {"type": "text", "text": "x " * self.random.randint(1, 30)}
        return [thought, text]

    def next(self) -> list[dict[str, Any]]:
        """Write what comes in front of the model's next call, and what it says to that."""
        if self.steps:
            self.steps -= 1
            result = {"type": "tool_result", "tool_use_id": f"t{self.made}", "content": "r " * 20}
            asked = {"role": "user", "content": [result]}
        else:
            self.steps = self.random.randint(0, 3)
            asked = {"role": "user", "content": "w " * self.random.randint(1, 40)}
        blocks = self.said()
        if self.steps:
            blocks.append({"type": "tool_use", "id": f"t{self.made}", "name": "run", "input": {}})
        return [asked, {"role": "assistant", "content": blocks}]


def without_thinking(messages: list[Any]) -> list[Any]:
    """Return messages as they are where none thinks."""
    return [get_format("anthropic").without_thinking(message) for message in messages]


def thoughts(message: Any) -> list[Any]:
    """List the thinking of a message."""
    blocks = message["content"] if isinstance(message["content"], list) else []
    return [block for block in blocks if block["type"] == "thinking"]


@pytest.mark.parametrize("counter", [CharCounter(4), EstimateCounter()], ids=["characters", "estimate"])
def test_what_fits_without_its_stale_thinking_stays(counter: CounterLike) -> None:
    """Whether a counter has prices, so that it counts on the way back, or counts message by message."""
    told = {**TOLD, "counter": counter}
    session, plain, talk = Session(300, **told), Session(300, **told), Talk(60, most_words=60)
    for _ in range(30):
        asked, answer = talk.next()
        session.add(asked)
        plain.add(asked)
        assert without_thinking(session.messages()) == plain.messages()
        session.add(answer)
        plain.add(without_thinking([answer])[0])


@pytest.mark.few(1)
@pytest.mark.parametrize("most_words", [5, 60, 400])
@pytest.mark.parametrize(
    "options", [{}, {"target_ratio": 1.0}, {"summarizer": lambda request: "so far"}, {"recall_ratio": 0.2}]
)
def test_what_is_in_view_is_what_would_be_without_thinking(options: Any, most_words: int) -> None:
    """However long it is; opened from the store again at any time, too. What is shown was made so.

    A summarizer is given the thinking, too, and so less at once.
    """
    functions = {name: options[name] for name in options if name == "summarizer"}
    store, plain = MemoryStore(), Session(300, **TOLD, **options)
    talk, shown = Talk(most_words, most_words=most_words), 0
    session = Session(300, store=store, id="a", **TOLD, **options)
    made: dict[str, list[Any]] = {}
    for turn in range(60):
        asked, answer = talk.next()
        session.add(asked)
        plain.add(asked)
        if talk.random.random() < 0.1:
            session = Session.open(store, "a", counter=TOLD["counter"], **functions)
        view = session.fit()
        assert view.report.tokens_after <= 300
        assert functions or without_thinking(view.messages) == plain.messages()
        for at, message in enumerate(view.messages):
            for block in thoughts(message):
                assert view.messages[:at] == made[block["signature"]]
                shown += 1
        made[f"E{talk.made}"] = copy.deepcopy(view.messages)
        session.add(answer)
        plain.add(without_thinking([answer])[0])
        assert functions or session.status() == plain.status()
        if turn % 6 == 0:
            assert Session.open(store, "a", counter=TOLD["counter"], **functions).status() == session.status()
    assert shown > (20 if most_words < 100 else 0)


def test_thinking_has_the_room_that_is_left() -> None:
    """All of it stays as long as it fits; then none does, and what is said stays whole."""
    talk = Talk(7, most_words=1)
    session = Session(2_000, **TOLD)
    messages = [message for _ in range(6) for message in talk.next()]
    while talk.steps:
        messages += talk.next()
    session.extend(messages)
    assert session.messages() == messages
    long = {"type": "thinking", "thinking": "hm " * 4_000, "signature": "E"}
    session.extend([{"role": "user", "content": "q"}, {"role": "assistant", "content": [long, *talk.said()]}])
    assert without_thinking(session.messages()[: len(messages)]) == without_thinking(messages)
