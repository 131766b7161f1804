"""Conversations in one readable line, and hypothesis strategies of conversations nobody would write."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from trimtab.testing import WordCounter

Message = dict[str, Any]

ROLES = {"s": "system", "d": "developer", "u": "user", "a": "assistant"}


def without_address(value: object) -> str:
    """Write a value as an id of a test: the same in every process, also where it holds functions."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def words(count: int) -> str:
    """Write a text of so many words: that many tokens for a WordCounter."""
    return " ".join(["w"] * count)


def user(text: Any = "hi") -> Message:
    """Make a user message."""
    return {"role": "user", "content": text}


def assistant(text: Any = "ok") -> Message:
    """Make a message of the model."""
    return {"role": "assistant", "content": text}


def system(text: Any = "be brief") -> Message:
    """Make a system message."""
    return {"role": "system", "content": text}


def call(*ids: str, text: str | None = None) -> Message:
    """Make a message that calls a tool once for each id; 2 words a call."""
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(call_id: str, text: Any = "done") -> Message:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def talk(line: str) -> list[Message]:
    """Write a conversation in one line: role and number of words of each message.

    `s d u a` are roles, `cA,B` calls A and B (2 words each), `rA9` is the result of A with 9 words:
    `talk("s3 u5 cA,B rA9 rB4 u1")`.
    """
    return [_message(word) for word in line.split()]


def _message(word: str) -> Message:
    letter, rest = word[0], word[1:]
    if letter == "c":
        return call(*rest.split(","))
    if letter == "r":
        return result(rest[0], words(int(rest[1:] or 1)))
    return {"role": ROLES[letter], "content": words(int(rest or 1))}


def units(line: str) -> list[Message]:
    """Write user messages by their sizes: `units("3 5 2")`."""
    return talk(" ".join(f"u{size}" for size in line.split()))


def places(output: list[Any], messages: list[Any]) -> list[int]:
    """Tell which messages of the input came out, by identity."""
    where = {id(message): at for at, message in enumerate(messages)}
    return [where[id(message)] for message in output]


IDS = ("A", "B", "C", "D")
"""Few, so that ids are used again."""

TEXTS = st.one_of(
    st.integers(0, 12).map(words),
    st.integers(20, 90).map(words),
    st.sampled_from(
        ("", " ", "\x00", "\ud800", "天气很好", "👩‍👩‍👧 e\u0301", "<|endoftext|>", "x" * 300, " " * 400)
    ),
)
CONTENTS = st.one_of(
    TEXTS,
    TEXTS,
    TEXTS,
    st.lists(TEXTS, min_size=1, max_size=3).map(lambda ts: [{"type": "text", "text": t} for t in ts]),
)
SOME_IDS = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)


def _said(role: str) -> st.SearchStrategy[list[Message]]:
    return CONTENTS.map(lambda content: [{"role": role, "content": content}])


_CALL = st.tuples(SOME_IDS, st.none() | TEXTS).map(lambda drawn: [call(*drawn[0], text=drawn[1])])
_RESULT = st.tuples(st.sampled_from((*IDS, "Z")), CONTENTS).map(lambda drawn: [result(*drawn)])


@st.composite
def _exchange(draw: st.DrawFn) -> list[Message]:
    """Calls with their results behind them, in any order, sometimes with a message between."""
    ids = draw(SOME_IDS)
    answers = [result(call_id, draw(CONTENTS)) for call_id in draw(st.permutations(ids))]
    made = [call(*ids), *answers]
    if draw(st.integers(0, 9)) == 0:
        made.insert(draw(st.integers(1, len(made))), user("wait"))
    return made


_STEPS = st.one_of(
    _said("user"),
    _said("user"),
    _said("assistant"),
    _exchange(),
    _exchange(),
    _CALL,
    _RESULT,
    _said("system"),
)
_PROPER_STEPS = st.one_of(_said("user"), _said("user"), _said("assistant"), _said("system"))
_HEAD = st.lists(st.sampled_from(("system", "developer")).flatmap(_said), max_size=2)


def conversations() -> st.SearchStrategy[list[Message]]:
    """Make conversations with everything in them, valid for a provider or not; never empty."""
    steps = st.lists(_STEPS, min_size=1, max_size=14)
    return st.tuples(_HEAD, steps).map(lambda drawn: [m for part in drawn for step in part for m in step])


@st.composite
def valid_conversations(draw: st.DrawFn) -> list[Message]:
    """Make conversations whose every result stands right behind its call; the last call may be open."""
    messages = [m for step in draw(_HEAD) for m in step]
    for at in range(draw(st.integers(1, 14))):
        if draw(st.booleans()):
            messages += draw(_PROPER_STEPS)
            continue
        ids = [f"{call_id}{at}" for call_id in draw(SOME_IDS)]
        messages.append(call(*ids))
        messages += [result(call_id, draw(CONTENTS)) for call_id in draw(st.permutations(ids))]
    if draw(st.booleans()):
        messages.append(call("open1", "open2"))
        messages += [result("open2", "half")] if draw(st.booleans()) else []
    return messages or [user()]


class LaterCounter:
    """Counts words a message, as an async counter that adds up does: it answers when it is awaited."""

    name = "later"

    async def count(self, messages: list[Any]) -> int:
        """Count words."""
        return WordCounter().count(messages)

    async def count_message(self, message: Any) -> int:
        """Count words."""
        return WordCounter().count_message(message)

    async def fixed_tokens(self, *given: Any, **more: Any) -> int:
        """Charge nothing."""
        return 0
