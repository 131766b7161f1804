"""Rules of the host in a request: one message behind the system text, charged beside all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.formats import Format, leading_count, mapping_of
from trimtab.strategies.rules_message import is_rules_text, rules_message

__all__ = ["ShownRules"]


@dataclass(frozen=True, slots=True)
class ShownRules:
    """The message that shows rules, and its place."""

    format: Format
    texts: tuple[str, ...]
    message: Any
    """As it is sent: the caller's own where the input has it already."""

    @classmethod
    def of(cls, texts: tuple[str, ...], format: Format, messages: Sequence[Any]) -> ShownRules:
        """Write rules for messages that may have them already."""
        made = cls(format, texts, rules_message(format, texts))
        at = made.stored_at(messages)
        if at is None or made.text_of(messages[at]) != made.text_of(made.message):
            return made
        if format.kind(mapping_of(messages[at])) != format.kind(made.message):
            return made
        return cls(format, texts, messages[at])

    @property
    def is_system(self) -> bool:
        """True if it is system text, and so may be the first of a request."""
        return self.format.kind(mapping_of(self.message)) == "system"

    def text_of(self, message: Any) -> str | None:
        """Return the text of a message that has one text and nothing else; None for others."""
        texts = self.format.texts(mapping_of(message))
        return texts[0].text if len(texts) == 1 else None

    def stored_at(self, messages: Sequence[Any]) -> int | None:
        """Find the rules that an earlier fit wrote: among the messages in front, or where these end."""
        last = min(len(messages) - 1, self.place(messages))
        return next((at for at in range(last + 1) if self._is_stored(messages[at])), None)

    def _is_stored(self, message: Any) -> bool:
        if self.format.kind(mapping_of(message)) not in ("system", "user"):
            return False
        return is_rules_text(self.text_of(message) or "")

    def place(self, messages: Sequence[Any]) -> int:
        """Return how many messages stand before it: the system messages in front.

        What a compaction stands for is not read. There it is as soon behind it as it may stand: before words of
        the user, or behind results of tools.
        """
        at, format = leading_count(messages, self.format), self.format
        if not format.rules.keeps_messages:
            return at
        unread = format.unread([*messages[:at], self.message, *messages[at:]])
        if at not in unread:
            return at
        kinds = [format.kind(mapping_of(one)) for one in messages[unread.stop :]]
        for place, (kind, later) in enumerate(zip(kinds, [*kinds, None][1:], strict=True), unread.stop):
            if kind == "user":
                return place
            if kind == "tool" and later != "tool":
                return place + 1
        return at

    def at(self, messages: Sequence[Any]) -> int:
        """Find it in an output, by identity."""
        return next(at for at, message in enumerate(messages) if message is self.message)

    def put_in(self, messages: Sequence[Any]) -> list[Any]:
        """Return messages with it, in place of what an earlier fit wrote."""
        at = self.stored_at(messages)
        rest = list(messages) if at is None else [*messages[:at], *messages[at + 1 :]]
        rest.insert(self.place(rest), self.message)
        return rest

    def sentence(self, tokens: int, /) -> str:
        """Say in an error what they take, and what they are."""
        named = ", ".join(f'"{text.strip():.80}"' for text in self.texts)
        return f" The rules take {tokens:,} tokens and always stay ({named})."
