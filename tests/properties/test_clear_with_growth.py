"""While a talk grows call by call, cuts of whole turns, and behind `ClearToolResults`, only go forward.

Random talks in every wire form; who stands where is told by the caller's own objects and the ids of calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.builders import Message, assistant, call, result, system, user, words
from tests.chat_in_forms import said_in
from tests.judge import newly_refused
from trimtab import BudgetExceededError, Cascade, ClearToolResults, SlidingWindow, TruncateText, fit
from trimtab.formats import get_format
from trimtab.strategies import ClampResults, Strategy
from trimtab.testing import WordCounter

PLACEHOLDER = "cleared-by-us"
FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
TALKS = 20
"""Of each form; hundreds were played when the rule was made."""


class Sent(NamedTuple):
    """What one call sent."""

    cut: int
    """The oldest message of the unbroken end."""
    kept: frozenset[int]
    cleared: frozenset[int]


def grow(random: Random) -> list[Message]:
    """Make a talk in proper order: turns with a few calls at once, rare large texts in some."""
    rare = random.random() < 0.4

    def text() -> str:
        small = rare and random.random() < 0.85
        return words(random.randint(1, 6) if small else random.randint(1, 60 if rare else 40))

    messages = [system(text())] if random.random() < 0.5 else []
    for turn in range(random.randint(5, 22)):
        messages.append(user(text()))
        for number in range(random.choice((0, 0, 1, 2, 3, 6))):
            ids = [f"{turn}-{number}-{at}" for at in range(random.choice((1, 1, 1, 2, 3)))]
            messages.append(call(*ids))
            messages += [result(call_id, text()) for call_id in ids]
        messages.append(assistant(text()))
    return messages


def strategy_for(random: Random) -> Strategy:
    """Choose how it is cleared, and which window stands behind; that of "agent" now and then."""
    clear = ClearToolResults(
        keep_results=random.choice((0, 0, 1, 2, 3, 4)),
        clear_at_least_tokens=random.choice((0, 0, 30, 100)),
        exclude_tools=random.choice(((), (), ("f",))),
        placeholder=PLACEHOLDER,
        target_ratio=random.choice((0.5, 0.5, 0.7)),
    )
    if random.random() < 0.15:
        return clear
    window = SlidingWindow(
        target_ratio=random.choice((0.5, 0.7, 1.0)),
        keep_first_user=random.random() < 0.2,
        protect_roles=random.choice(((), (), (), ("user",))),
    )
    clamp = (ClampResults(max_ratio=0.25),) if random.random() < 0.3 else ()
    return Cascade(*clamp, clear, window, TruncateText())


def written(form: str, messages: list[Message]) -> list[Any]:
    """Write a talk in a wire form."""
    if form == "openai_chat":
        return list(messages)
    return in_items(messages) if form == "openai_responses" else said_in(form, messages)


def in_items(messages: list[Message]) -> list[Any]:
    """Write a talk as items of the Responses API, without reasoning."""
    items: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **output})
        elif message["role"] != "assistant" or not message.get("tool_calls"):
            items.append({"role": message["role"], "content": message["content"]})
        for one in message.get("tool_calls") or ():
            called = {"call_id": one["id"], "name": "f", "arguments": "{}"}
            items.append({"type": "function_call", **called})
    return items


def answers(message: Any) -> tuple[str, ...]:
    """List the ids of the calls that a message answers."""
    parts = message.get("content") or message.get("parts")
    parts = parts if isinstance(parts, list) else ()
    ids = [message.get("tool_call_id"), message.get("output") and message.get("call_id")]
    ids += [part.get("tool_use_id") for part in parts]
    ids += [part.get("functionResponse", {}).get("id") for part in parts]
    return tuple(one for one in ids if one)


def look(given: list[Any], sent: list[Any]) -> Sent | None:
    """Find what was sent among what was given; None where a text that is no result was cut."""
    places = {id(message): at for at, message in enumerate(given)}
    by_ids = {answers(message): at for at, message in enumerate(given) if answers(message)}
    kept = [places.get(id(message), by_ids.get(answers(message), -1)) for message in sent]
    if -1 in kept:
        return None
    cut = len(given)
    for at in reversed(kept):
        if at != cut - 1:
            break
        cut = at
    edited = [at for at, message in zip(kept, sent, strict=True) if message is not given[at]]
    cleared = [at for at in edited if PLACEHOLDER in json.dumps(sent[kept.index(at)])]
    return Sent(cut, frozenset(kept), frozenset(cleared))


def body(form: str, messages: list[Any]) -> dict[str, Any]:
    """Make the request of messages."""
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    beside = {"max_tokens": 99} if form == "anthropic" else {}
    return {"model": "m", key: messages, **beside}


def call_places(form: str, messages: list[Any]) -> list[int]:
    """List how many messages each call of the model was given."""
    kind = get_format(form).kind
    kinds = [kind(message) for message in messages]
    return [at for at in range(1, len(kinds)) if kinds[at] == "assistant" != kinds[at - 1]]


def pins_for(random: Random, messages: list[Any]) -> list[int]:
    """Choose some of the older messages that stay, from when they are said."""
    return sorted(random.sample(range(len(messages) // 2), random.choice((1, 1, 2, 4))))


def played(
    form: str, messages: list[Any], strategy: Strategy, budget: int, pins: list[int]
) -> Iterator[Sent]:
    """Fit a talk call by call, and look at what was sent; all fit and are valid."""
    counter = WordCounter(format=form)
    for count in call_places(form, messages):
        given = messages[:count]
        pin = [at for at in pins if at < count]
        try:
            sent = fit(given, budget, counter=counter, format=form, strategy=strategy, pin=pin).messages
        except BudgetExceededError:
            continue
        assert counter.count(sent) <= budget
        assert not newly_refused(form, body(form, given), body(form, sent))
        if (found := look(given, sent)) is not None:
            yield found


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(TALKS))
@pytest.mark.parametrize("form", FORMS)
def test_the_cut_and_what_is_cleared_only_go_forward(form: str, seed: int) -> None:
    """What was cut away or cleared stays so, in half of the talks beside pins; all fit and are valid."""
    random = Random(f"{form} {seed}")
    messages, strategy = written(form, grow(random)), strategy_for(random)
    budget = random.randint(30, 400)
    pins = pins_for(random, messages) if seed % 2 else []
    cut, cleared = 0, frozenset[int]()
    for found in played(form, messages, strategy, budget, pins):
        assert found.cut >= cut
        assert not (cleared & found.kept) - found.cleared
        cut, cleared = found.cut, cleared | found.cleared


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(TALKS // 2))
@pytest.mark.parametrize("form", FORMS)
def test_the_cut_of_whole_turns_only_goes_forward(form: str, seed: int) -> None:
    """A turn that has left stays out, whatever comes to stand at the end; alone and behind clearing."""
    random = Random(f"turns {form} {seed}")
    messages = written(form, grow(random))
    window = SlidingWindow(
        keep_turns=True,
        target_ratio=random.choice((0.5, 0.7, 1.0)),
        keep_first_user=random.random() < 0.2,
    )
    clear = ClearToolResults(keep_results=random.choice((0, 1, 3)), placeholder=PLACEHOLDER)
    strategy = Cascade(clear, window, TruncateText()) if seed % 3 == 2 else window
    cut = 0
    for found in played(form, messages, strategy, random.randint(30, 400), []):
        assert found.cut >= cut
        cut = found.cut
