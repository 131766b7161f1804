"""What messages weigh is remembered while they say the same, whatever a caller does with them between calls.

Random chats are in properties/test_remembered_weights.py.
"""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import DecimalException
from functools import partial
from threading import Event
from typing import Any

import pytest

from tests.builders import Message, assistant, system, talk, user, words
from trimtab import Budget, Context, SlidingWindow, fit
from trimtab.formats import Anthropic, OpenAIChat, register_format
from trimtab.testing import WordCounter

STRIDES = SlidingWindow(target_ratio=0.7)
BUDGET = 1_000
PLACE = 70
"""Behind the fixed place that the cut goes by, and far before the cut."""


def _chat() -> list[Message]:
    return [user(words(15 + at % 11)) if at % 2 == 0 else assistant(words(19)) for at in range(150)]


def _sent(messages: list[Any], form: str = "openai_chat") -> list[Any]:
    return fit(messages, BUDGET, counter=WordCounter(), strategy=STRIDES, format=form).messages


def _sent_unseen(messages: list[Any], form: str = "openai_chat") -> list[Any]:
    """Return what is sent of messages that nobody has seen before, which are new objects."""
    return _sent(copy.deepcopy(messages), form)


def _see(messages: list[Any], form: str = "openai_chat") -> None:
    """Fit messages until they are remembered."""
    for _ in range(3):
        _sent(messages, form)


def _with_arguments(rows: list[Any]) -> tuple[list[Message], Message]:
    """Make a chat whose model called a tool with these rows, and the part that calls."""
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"rows": rows}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "done"}
    chat = _chat()
    chat[PLACE - 1 : PLACE + 1] = [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    return chat, call


@pytest.mark.parametrize(
    ("row", "other"),
    [
        pytest.param(1, True, id="a number and a truth"),
        pytest.param(1, 1.0, id="whole and not"),
        pytest.param(0.0, -0.0, id="signs of nothing"),
        pytest.param({1: 2}, {True: 2}, id="numbers as keys"),
        pytest.param({"a": 1}, {"a": 1.0}, id="in dicts"),
        pytest.param([1], [1.0], id="in lists"),
        pytest.param("a", "ab", id="texts"),
        pytest.param(None, "null", id="nothing and its name"),
        pytest.param((1,), (1, 1), id="tuples"),
    ],
)
def test_what_equals_and_is_written_otherwise_weighs_otherwise(row: Any, other: Any) -> None:
    """Python says that 1 and True are equal; as JSON one is longer, and the cut moves."""
    places = set[int]()
    for count in (20, 30, 40, 50):
        chat, call = _with_arguments([row] * count)
        _see(chat, "anthropic")
        before = _sent_unseen(chat, "anthropic")
        call["input"]["rows"][:] = [other] * count
        after = _sent_unseen(chat, "anthropic")
        assert _sent(chat, "anthropic") == after
        places.add(len(before) - len(after))
    assert places != {0}, "the change shows nowhere"


def test_a_system_text_that_comes_and_goes_in_front_does_not_move_marks() -> None:
    """The messages behind it are the same objects, and stand one place further on."""
    chat = talk("u30 a20 u10 cA rA90 a40 u60 cB rB20 a10 " * 20)
    lead = system()
    for end in range(100, len(chat) + 1):
        if chat[end - 1].get("tool_calls"):
            continue
        for shown in ([lead, *chat[:end]], chat[:end]):
            assert _sent(shown) == _sent_unseen(shown), end


def _circle() -> Message:
    """Make metadata that nobody sends, and in which there is a circle."""
    made: Message = {}
    made["self"] = made
    return made


def _deep() -> Message:
    made: Message = {}
    for _ in range(700):
        made = {"in": made}
    return made


class _Incomparable:
    """Raises where it is compared, as an array does, or a class that asks for an attribute of anything."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        raise self.error

    def __hash__(self) -> int:
        return 0


ERRORS = (AttributeError, DecimalException, KeyError, RuntimeError, TypeError, ValueError)
"""What is raised by attributes, numbers, fields of a mapping, tensors, and arrays."""


@pytest.mark.parametrize(
    "make",
    [_circle, _deep, *(partial(_Incomparable, error) for error in ERRORS)],
    ids=["a circle", "deep", *(error.__name__ for error in ERRORS)],
)
def test_a_value_that_cannot_be_compared_or_copied_is_no_hindrance(make: Callable[[], Any]) -> None:
    """It stands beside the text, where nobody counts it; what the message says is weighed each time."""
    chat = _chat()
    chat[PLACE]["metadata"] = make()
    plain = _chat()
    for text in ("short", words(80), words(90)):
        for messages in (chat, plain):
            messages[PLACE]["content"] = text
            _see(messages)
        assert [one["content"] for one in _sent(chat)] == [one["content"] for one in _sent_unseen(plain)]


@dataclass
class _Options(OpenAIChat):
    """A form that is a dataclass: it says what it equals, and so has no hash."""

    name: str = "with_options"
    share: float = 1.0

    def weight(self, message: Message, /) -> tuple[int, int]:
        size, calls = super().weight(message)
        return int(size * self.share), calls


def test_forms_without_a_hash_are_told_apart() -> None:
    """Two forms that equal each other are two: one weighs words twice."""
    chat = _chat()
    sent = []
    for share in (1.0, 4.0, 1.0, 4.0):
        register_format(_Options(share=share), replace=True)
        _see(chat, "with_options")
        sent.append(_sent(chat, "with_options"))
        assert sent[-1] == _sent_unseen(chat, "with_options")
    assert sent[0] == sent[2] != sent[1] == sent[3]


class _Labelled(dict[str, Any]):
    """A dict of a caller's own class."""


def test_messages_of_a_class_derived_from_dict_may_be_changed_in_place() -> None:
    """As documents in a block may: each call says what the caller's object says now."""
    chat: list[Any] = [_Labelled(message) for message in _chat()]

    def sent(messages: list[Any]) -> list[Any]:
        context = Context(Budget(BUDGET), counter=WordCounter())
        return context.add("chat", messages, strategy=STRIDES).fit().messages

    for count in (1, 80, 200, 90):
        chat[PLACE]["content"] = words(count)
        for _ in range(2):
            assert sent(chat) == sent(copy.deepcopy(chat))


def test_what_a_caller_gives_is_not_changed_and_not_kept_whole() -> None:
    """The copies are new containers; nothing of what a caller holds is written to."""
    chat, call = _with_arguments([{"a": [1, 2]}] * 30)
    before = copy.deepcopy(chat)
    _see(chat, "anthropic")
    assert chat == before
    call["input"]["rows"][0]["a"] += [1] * 900
    assert _sent(chat, "anthropic") == _sent_unseen(chat, "anthropic")


def _status_of_child(messages: list[Any]) -> int:
    """Fit in a forked process; 0 if it could, and the signal that ended it if it waited."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(30)
            _sent(messages)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_a_form_looks_for_a_compaction_can_fit() -> None:
    """No lock of a class is held meanwhile, which the child would wait for."""
    looks, may_go_on = Event(), Event()

    class Waiting(Anthropic):
        def latest_compaction(self, messages: Any, /) -> int:
            looks.set()
            may_go_on.wait()
            return int(super().latest_compaction(messages))

    said = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}] * 30
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(fit, said, 40, counter=WordCounter(), format=Waiting())
        looks.wait()
        status = _status_of_child(_chat())
        may_go_on.set()
        assert other.result().messages
    assert status == 0


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_threads_fit_can_fit() -> None:
    """What a thread held at that moment is held by nobody in the child, which would wait for it forever."""
    chat, done = _chat(), Event()

    def fit_on() -> None:
        own = copy.deepcopy(chat)
        while not done.is_set():
            _sent(own)

    with ThreadPoolExecutor(3) as pool:
        fits = [pool.submit(fit_on) for _ in range(3)]
        try:
            statuses = [_status_of_child(chat) for _ in range(60)]
        finally:
            done.set()
        for one in fits:
            one.result()
    assert statuses == [0] * 60
