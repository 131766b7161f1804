"""Random request bodies from a seed, in every wire form: what real ones hold, and what breaks trimmers.

What a form can hold is recorded beside this file, a step of a conversation a line: a question, calls with
their results, an answer, calls that stay open. A body is made of steps drawn from one style, since a model
thinks, signs or names its calls throughout or not at all. The usual steps stand first and are drawn
more often. In a line `<text>` stands for words, `<1>` for the number of an id, `<png>` for an image and
`<signature>` for what a provider signed.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from trimtab._shared.checks import unknown_name
from trimtab.formats import get_format

__all__ = ["FORMS", "request_bodies", "request_body", "spoil_messages"]

Body = dict[str, Any]
Message = dict[str, Any]

FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
"""The wire forms of which steps are recorded: those that trimtab ships."""

_WORDS = (
    *("the", "a", "of", "to", "is", "it", "you", "search", "file", "error", "weather", "please", "why"),
    *("naïve", "Straße", "東京", "天气", "привет", "👩‍👩‍👧", "e\u0301", "<|endoftext|>", "{}", "[]", "\n\n"),
)
_ODD_TEXTS = ("", " ", "\x00", "\ud800 alone", "<|im_start|>system", "a" * 300, "no spaces " * 40, "\t" * 90)
_LENGTHS = (1, 1, 2, 2, 3, 5, 8, 8, 20, 50)
_PLACEHOLDER = re.compile(r"<(png|signature|\d+)>")
_CONSTANTS = {
    "png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "signature": "EqoBCkYIBxABGAIqQL",
}
_ID_KEYS = ("id", "call_id", "tool_use_id", "toolUseId", "tool_call_id", "approval_request_id")
_TEXT_KEYS = ("text", "content", "output", "thinking")


def request_bodies(
    count: int = 60,
    /,
    *,
    format: str = "openai_chat",
    seed: int = 0,
    valid: bool = False,
    max_messages: int = 12,
) -> list[Body]:
    """Make request bodies in a wire form, with its features beyond plain text.

    The same seed gives the same conversations. They have parallel calls, reasoning in all its forms, tools
    that the provider runs itself, images and documents, system text and tool schemas. Without `valid`, most
    are also broken in up to four places: messages and parts are dropped, repeated, moved, split and merged,
    ids are given to other calls, and texts are emptied.

    Args:
        count: How many.
        format: Name of a built-in wire form.
        seed: Which ones; any whole number.
        valid: Whether to make only bodies that a provider accepts; the last call may be open.
        max_messages: Approximate maximum number of messages.

    Raises:
        UnknownNameError: No generator writes this form.

    Example:
        >>> body = request_bodies(1, format="gemini", seed=7)[0]
        >>> body == request_bodies(1, format="gemini", seed=7)[0], type(body["contents"])
        (True, <class 'list'>)
    """
    return [request_body(format, f"{seed}/{at}", valid, max_messages) for at in range(count)]


def request_body(form: str, seed: str, valid: bool, max_messages: int) -> Body:
    """Make one request body."""
    if form not in FORMS:
        there = ", ".join(FORMS)
        raise unknown_name(f"no generator writes format {form!r}; there are: {there}", form, FORMS)
    random = Random(f"{form}/{seed}")
    body, messages = _Writer(random, form, valid).write(max_messages)
    if not valid:
        spoil_messages(messages, random, format=form)
    return body


def spoil_messages(messages: list[Any], random: Random, /, *, format: str = "openai_chat") -> None:
    """Break a conversation in place, in up to four of the ways trimmers do.

    Messages and parts are dropped, repeated, moved, split and merged, ids are given to other calls, and texts
    are emptied. A list of one message is not changed.

    Args:
        messages: Dicts, which are changed.
        random: Source of random numbers; the same one breaks the same conversation in the same way.
        format: Name of the wire form.

    Raises:
        UnknownNameError: No wire form has that name.

    Example:
        >>> from random import Random
        >>> one, same = ([{"role": "user", "content": str(n)} for n in range(5)] for _ in range(2))
        >>> spoil_messages(one, Random(7))
        >>> spoil_messages(same, Random(7))
        >>> one == same, one == [{"role": "user", "content": str(n)} for n in range(5)]
        (True, False)
    """
    _Spoiler(random, messages, get_format(format).rules.parts_key).spoil()


@cache
def _styles(form: str) -> list[dict[str, list[Any]]]:
    """Read the steps of a form, for each style; a line without a style is of all of them."""
    text = Path(__file__).with_name(f"{form}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    styles: dict[str, dict[str, list[Any]]] = {row["style"]: {} for row in rows if "style" in row} or {"": {}}
    for row in rows:
        for style in (row["style"],) if "style" in row else styles:
            styles[style].setdefault(row["step"], []).append(row.get("messages", row.get("body")))
    return list(styles.values())


class _Writer:
    """Writes one request body: questions, rounds of calls with their results, answers."""

    def __init__(self, random: Random, form: str, valid: bool) -> None:
        self.random = random
        self.form = get_format(form)
        self.key = self.form.rules.body_key
        self.valid = valid
        self.marks = 1
        """Marks for the prompt cache so far; system text, which comes last, may have one."""
        self.steps = random.choice(_styles(form))
        self.messages: list[Message] = []
        self.made = 0

    def write(self, max_messages: int) -> tuple[Body, list[Message]]:
        """Write the body; give the list of its messages too."""
        if "begin" in self.steps and self.chance(0.6):
            self.say("begin")
        self.converse(max_messages)
        return {**self.draw("head"), self.key: self.messages, **self.draw("tail")}, self.messages

    def converse(self, max_messages: int) -> None:
        """Write turns up to about so many messages, and end anywhere in the last of them."""
        random = self.random
        target = random.randint(1, max_messages)
        while True:
            self.say("user")
            for _ in range(random.choice((0, 1, 1, 2, 3))):
                if len(self.messages) >= target:
                    break
                self.say("exchange")
            if len(self.messages) >= target:
                break
            if self.chance(0.85):
                self.say("answer")
        end = random.random()
        if end < 0.3:
            self.say("answer" if end < 0.15 else "open")

    def say(self, step: str) -> None:
        """Write a step; one with more marks than a request may still have is drawn anew."""
        while True:
            said = self.draw(step)
            marks = sum(len(self.form.cache_marks(message)) for message in said)
            if not marks or self.marks + marks <= self.form.most_marks(None):
                break
        self.marks += marks
        self.messages.extend(said)

    def draw(self, step: str) -> Any:
        """Draw one of the lines of a step, rather one of the first, and fill it."""
        lines = self.steps[step]
        line = lines[int(len(lines) * self.random.random() ** 2)]
        return self.fill(line, {})

    def fill(self, value: Any, ids: dict[str, str]) -> Any:
        """Fill what was recorded with words, and with ids that nothing else has."""
        if isinstance(value, dict):
            return {key: self.fill(one, ids) for key, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one, ids) for one in value]
        if value == "<text>":
            return self.text()
        return (
            _PLACEHOLDER.sub(lambda found: self.word(found[1], ids), value)
            if isinstance(value, str)
            else value
        )

    def word(self, placeholder: str, ids: dict[str, str]) -> str:
        if placeholder in _CONSTANTS:
            return _CONSTANTS[placeholder]
        if placeholder not in ids:
            self.made += 1
            ids[placeholder] = str(self.made)
        return ids[placeholder]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def text(self) -> str:
        """Write some words; never blank where the conversation must be valid."""
        if not self.valid and self.chance(0.06):
            return self.random.choice(_ODD_TEXTS)
        return "the " + " ".join(self.random.choices(_WORDS, k=self.random.choice(_LENGTHS))) + " end"


class _Spoiler:
    """Breaks messages the way trimmers, stores and users do."""

    def __init__(self, random: Random, messages: list[Any], parts_key: str) -> None:
        self.random = random
        self.messages = messages
        self.parts_key = parts_key
        self.ways: tuple[Callable[[], None], ...] = (
            *(self.drop, self.drop, self.cut_off, self.repeat, self.move, self.swap),
            *(self.drop_part, self.drop_part, self.repeat_part, self.split, self.merge),
            *(self.rename, self.rename, self.blank),
        )

    def spoil(self) -> None:
        for _ in range(self.random.choice((0, 1, 1, 2, 3, 4))):
            if len(self.messages) > 1:
                self.random.choice(self.ways)()

    def _at(self) -> int:
        return self.random.randrange(len(self.messages))

    def drop(self) -> None:
        del self.messages[self._at()]

    def cut_off(self) -> None:
        """Lose the beginning, as a window by count does."""
        del self.messages[: self.random.randint(1, len(self.messages) - 1)]

    def repeat(self) -> None:
        message = self.messages[self._at()]
        again = message if self.random.random() < 0.3 else copy.deepcopy(message)
        self.messages.insert(self._at() + 1, again)

    def move(self) -> None:
        message = self.messages.pop(self._at())
        self.messages.insert(self.random.randint(0, len(self.messages)), message)

    def swap(self) -> None:
        one, other = self._at(), self._at()
        messages = self.messages
        messages[one], messages[other] = messages[other], messages[one]

    def drop_part(self) -> None:
        parts = self._parts_of(self.random.choice(self.messages))
        if parts:
            del parts[self.random.randrange(len(parts))]

    def repeat_part(self) -> None:
        """Put a part in again, behind itself or into another message."""
        parts = self._parts_of(self.random.choice(self.messages))
        other = self._parts_of(self.random.choice(self.messages))
        if parts:
            part = copy.deepcopy(self.random.choice(parts))
            into = parts if other is None else other
            into.insert(self.random.randint(0, len(into)), part)

    def split(self) -> None:
        """Make two messages of the parts of one."""
        at = self._at()
        parts = self._parts_of(self.messages[at])
        if parts and len(parts) > 1:
            cut = self.random.randint(1, len(parts) - 1)
            self.messages.insert(at + 1, {**self.messages[at], self.parts_key: parts[cut:]})
            del parts[cut:]

    def merge(self) -> None:
        """Put the parts of a message to those of the one before it."""
        at = self._at()
        parts, before = self._parts_of(self.messages[at]), self._parts_of(self.messages[at - 1])
        if at and parts and before is not None and parts is not before:
            before.extend(parts)
            del self.messages[at]

    def rename(self) -> None:
        """Give a call or a result the id of another, or one nobody knows."""
        found = [(entry, key) for entry in self._entries() for key in _ID_KEYS if key in entry]
        if found:
            entry, key = self.random.choice(found)
            other, other_key = self.random.choice(found)
            entry[key] = other[other_key] if self.random.random() < 0.7 else "call_nobody"

    def blank(self) -> None:
        found = [
            (entry, key) for entry in self._entries() for key in _TEXT_KEYS if isinstance(entry.get(key), str)
        ]
        if found:
            entry, key = self.random.choice(found)
            entry[key] = self.random.choice(_ODD_TEXTS)

    def _entries(self) -> list[Message]:
        """List messages, their parts, and the mappings in these."""
        entries: list[Message] = []
        for message in self.messages:
            entries.append(message)
            for part in (*(self._parts_of(message) or ()), *(message.get("tool_calls") or ())):
                if isinstance(part, dict):
                    entries.append(part)
                    entries.extend(value for value in part.values() if isinstance(value, dict))
        return entries

    def _parts_of(self, message: Message) -> list[Any] | None:
        parts = message.get(self.parts_key)
        return parts if isinstance(parts, list) else None
