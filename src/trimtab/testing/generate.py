"""Random conversations from a seed: what real histories hold, and what breaks trimmers."""

from __future__ import annotations

from random import Random
from typing import Any

Message = dict[str, Any]

_WORDS = (
    *("the", "a", "of", "to", "is", "it", "you", "search", "file", "error", "weather", "please", "why"),
    *(
        "naïve",
        "Straße",
        "東京",
        "天气",
        "привет",
        "👩‍👩‍👧",
        "e\u0301",
        "<|endoftext|>",
        "\u200b",
        "{}",
        "[]",
        "\n\n",
    ),
)
_ODD_TEXTS = ("", " ", "\x00", "\ud800 alone", "<|im_start|>system", "a" * 400, "no spaces " * 60, "\t" * 90)
_IDS = ("call_1", "call_2", "call_3", "call_4", "call_5")
"""Few, so that ids are used again."""


def conversations(
    count: int = 60, /, *, seed: int = 0, valid: bool = False, max_messages: int = 24
) -> list[list[Message]]:
    """Make conversations in the Chat Completions form.

    The same seed gives the same ones. They hold parallel calls, late, repeated, orphaned and
    reordered results, open and unanswered calls, ids used again, list and null contents, system
    messages in the middle, and text in many scripts with lone surrogates and special tokens in it.

    Args:
        count: How many.
        valid: Only those a provider takes: every result stands directly behind its call, and only
            the last call may be open.
        max_messages: About the most messages of one.

    Example:
        >>> samples = conversations(3, seed=7)
        >>> samples == conversations(3, seed=7), len(samples)
        (True, 3)
    """
    return [_Writer(Random(f"{seed}/{at}"), valid).write(max_messages) for at in range(count)]


class _Writer:
    """Writes one conversation, step by step."""

    def __init__(self, random: Random, valid: bool) -> None:
        self.random = random
        self.valid = valid
        self.messages: list[Message] = []
        self.waiting: list[str] = []
        self.made = 0

    def write(self, max_messages: int) -> list[Message]:
        random = self.random
        steps = random.randint(1, max(1, max_messages * 2 // 3))
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            self.messages.append(self._said(random.choice(("system", "system", "developer"))))
        for _ in range(steps):
            random.choice(self._choices())()
        if self.valid:
            self._close(may_stay_open=True)
        return self.messages or [self._said("user")]

    def _choices(self) -> list[Any]:
        proper = [self._user, self._user, self._assistant, self._exchange, self._exchange]
        if self.valid:
            return proper
        return [*proper, self._exchange, self._call, self._result, self._stray, self._system]

    def _user(self) -> None:
        self.messages.append(self._said("user"))

    def _assistant(self) -> None:
        self.messages.append(self._said("assistant"))

    def _system(self) -> None:
        self.messages.append(self._said("system"))

    def _exchange(self) -> None:
        """Call and answer at once."""
        self._close(may_stay_open=False)
        self._call()
        ids = self.waiting[:]
        if self.random.random() < 0.3:
            self.random.shuffle(ids)
        if not self.valid and self.random.random() < 0.15:
            ids.pop()
        for call_id in ids:
            self._answer(call_id)

    def _close(self, *, may_stay_open: bool) -> None:
        """Answer what waits, where the conversation must be valid."""
        if not self.valid:
            return
        if may_stay_open and self.random.random() < 0.4:
            self._call()
            return
        for call_id in self.waiting[:]:
            self._answer(call_id)

    def _call(self) -> None:
        """Call one tool, or a few at once."""
        if self.valid:
            ids = [f"call_v{self.made + at}" for at in range(self.random.choice((1, 1, 2, 3)))]
        else:
            ids = self.random.sample(_IDS, self.random.choice((1, 1, 2, 3)))
        self.made += len(ids)
        calls = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": "search", "arguments": self._arguments()},
            }
            for call_id in ids
        ]
        content = self.random.choice((None, "", self._text()))
        self.messages.append({"role": "assistant", "content": content, "tool_calls": calls})
        self.waiting.extend(ids)

    def _arguments(self) -> str:
        return f'{{"q": "{self.random.choice(("", "a b", "x" * 40))}"}}'

    def _result(self) -> None:
        """Answer a call that waits, wherever it is."""
        if self.waiting:
            self._answer(self.random.choice(self.waiting))

    def _stray(self) -> None:
        """Answer a call that was answered, or that never was."""
        self._answer(self.random.choice((*_IDS, "call_none")))

    def _answer(self, call_id: str) -> None:
        if call_id in self.waiting:
            self.waiting.remove(call_id)
        self.messages.append({**self._said("tool"), "tool_call_id": call_id})

    def _said(self, role: str) -> Message:
        message: Message = {"role": role, "content": self._content()}
        if role == "user" and self.random.random() < 0.1:
            message["name"] = "ann"
        return message

    def _content(self) -> Any:
        if self.random.random() < 0.8:
            return self._text()
        return [{"type": "text", "text": self._text()} for _ in range(self.random.randint(1, 3))]

    def _text(self) -> str:
        random = self.random
        if random.random() < 0.15:
            return random.choice(_ODD_TEXTS)
        return " ".join(random.choices(_WORDS, k=random.choice((1, 3, 8, 8, 20, 120))))
