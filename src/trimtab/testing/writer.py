"""`Writer`: the course of a random conversation, spelled by one subclass a wire form."""

from __future__ import annotations

from random import Random
from typing import Any

Message = dict[str, Any]
Body = dict[str, Any]

_WORDS = (
    *("the", "a", "of", "to", "is", "it", "you", "search", "file", "error", "weather", "please", "why"),
    *("naïve", "Straße", "東京", "天气", "привет", "👩‍👩‍👧", "e\u0301", "<|endoftext|>", "{}", "[]", "\n\n"),
)
ODD_TEXTS = ("", " ", "\x00", "\ud800 alone", "<|im_start|>system", "a" * 300, "no spaces " * 40, "\t" * 90)
_LENGTHS = (1, 1, 2, 2, 3, 5, 8, 8, 20, 50)
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""
SIGNATURE = "EqoBCkYIBxABGAIqQL"
NAMES = ("search", "read_file", "run")


class Writer:
    """Writes one request body: questions, rounds of calls with their results, answers.

    A subclass says how each of these is spelled, and what else may stand there.
    """

    key = "messages"
    """Key of the body that holds the messages."""
    parts_key = "content"
    """Key of a message that holds its parts."""

    def __init__(self, random: Random, valid: bool) -> None:
        self.random = random
        self.valid = valid
        self.messages: list[Message] = []
        self.made = 0

    def body(self, max_messages: int) -> Body:
        """Write the body."""
        self.begin()
        self.converse(max_messages)
        return {**self.head(), self.key: self.messages, **self.tail()}

    def converse(self, max_messages: int) -> None:
        """Write turns up to about so many messages, and end anywhere in the last of them."""
        random = self.random
        target = random.randint(1, max_messages)
        while True:
            self.user()
            for _ in range(random.choice((0, 1, 1, 2, 3))):
                if len(self.messages) >= target:
                    break
                self.exchange(random.choice((1, 1, 1, 2, 3)))
            if len(self.messages) >= target:
                break
            if self.chance(0.85):
                self.answer()
        end = random.random()
        if end < 0.15:
            self.answer()
        elif end < 0.3:
            self.open(random.choice((1, 1, 2)))

    # -- what a form spells

    def begin(self) -> None:
        """Write what stands before the first question."""

    def head(self) -> Body:
        """Give what of the body stands before the messages."""
        return {}

    def tail(self) -> Body:
        """Give what of the body stands behind the messages."""
        return {}

    def user(self) -> None:
        """Write a question."""
        raise NotImplementedError

    def answer(self) -> None:
        """Write what the model says without calling anything."""
        raise NotImplementedError

    def exchange(self, count: int) -> None:
        """Write so many calls at once, and their results."""
        raise NotImplementedError

    def open(self, count: int) -> None:
        """Write so many calls at once, and no result, or not all."""
        raise NotImplementedError

    # -- what all share

    def chance(self, share: float) -> bool:
        """Decide by lot."""
        return self.random.random() < share

    def text(self) -> str:
        """Write some words; never blank where the conversation must be valid."""
        random = self.random
        if not self.valid and random.random() < 0.06:
            return random.choice(ODD_TEXTS)
        words = random.choices(_WORDS, k=random.choice(_LENGTHS))
        return "the " + " ".join(words) + " end"

    def new_id(self, prefix: str) -> str:
        """Make an id nothing else has."""
        self.made += 1
        return f"{prefix}{self.made}"

    def shuffled(self, entries: list[Any]) -> list[Any]:
        """Return the entries, now and then in another order."""
        if len(entries) > 1 and self.chance(0.3):
            self.random.shuffle(entries)
        return entries

    def arguments(self) -> dict[str, Any]:
        """Make the arguments of a call."""
        return self.random.choice(({}, {"q": "a b"}, {"path": "x" * 30, "lines": [1, 2]}))
