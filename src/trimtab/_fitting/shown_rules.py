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
    def of(
        cls, texts: tuple[str, ...], format: Format, messages: Sequence[Any], starts: Sequence[int] = ()
    ) -> tuple[ShownRules, int | None]:
        """Write rules, and find where an earlier fit wrote them; None: nowhere.

        Args:
            texts: The rules.
            format: The wire form.
            messages: All there are.
            starts: Where blocks begin in which the earlier fit may have written them, too.
        """
        made = cls(format, texts, rules_message(format, texts, _role_in_front(messages, format)))
        found = (made.stored_at(messages[start:], start) for start in (0, *starts))
        at = next((at for at in found if at is not None), None)
        if at is not None and made._says_the_same(messages[at]):
            made = cls(format, texts, messages[at])
        return made, at

    def _says_the_same(self, message: Any) -> bool:
        kinds = {self.format.kind(mapping_of(one)) for one in (message, self.message)}
        return len(kinds) == 1 and _text_of(message, self.format) == _text_of(self.message, self.format)

    @property
    def is_system(self) -> bool:
        """True if it is system text, and so may be the first of a request."""
        return self.format.kind(mapping_of(self.message)) == "system"

    def stored_at(self, messages: Sequence[Any], start: int = 0) -> int | None:
        """Find the rules that an earlier fit wrote: among the messages in front, or where these end.

        Args:
            messages: A conversation, or a block of one.
            start: Where it begins in what is counted from.
        """
        last = min(len(messages) - 1, self.place(messages))
        return next((start + at for at in range(last + 1) if self._is_stored(messages[at])), None)

    def _is_stored(self, message: Any) -> bool:
        return self.format.kind(mapping_of(message)) in ("system", "user") and _is_rules(message, self.format)

    def place(self, messages: Sequence[Any]) -> int:
        """Return how many messages stand before it: the system messages in front.

        What a compaction stands for is not read. There it is as soon behind it as it may stand: before
        words of the user, or behind results of tools.
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

    def insert(self, messages: Sequence[Any]) -> list[Any]:
        """Return messages with it at its place."""
        at = self.place(messages)
        return [*messages[:at], self.message, *messages[at:]]

    def put_in(self, messages: Sequence[Any]) -> list[Any]:
        """Return messages with it, in place of what an earlier fit wrote."""
        if any(one is self.message for one in messages):
            return list(messages)
        at = self.stored_at(messages)
        return self.insert(messages if at is None else [*messages[:at], *messages[at + 1 :]])

    def sentence(self, tokens: int, /) -> str:
        """Say in an error what they take, and what they are."""
        named = ", ".join(f'"{text.strip():.80}"' for text in self.texts)
        return f" The rules take {tokens:,} tokens and always stay ({named})."


def _role_in_front(messages: Sequence[Any], format: Format) -> str:
    """Return the role of the system text that rules stand behind: some models refuse two roles of it."""
    front = messages[: leading_count(messages, format)]
    roles = [mapping_of(one).get("role") for one in front if not _is_rules(one, format)]
    return roles[-1] if roles and isinstance(roles[-1], str) else "system"


def _is_rules(message: Any, format: Format) -> bool:
    return is_rules_text(_text_of(message, format) or "")


def _text_of(message: Any, format: Format) -> str | None:
    """Return the text of a message that has one text and nothing else; None for others."""
    texts = format.texts(mapping_of(message))
    return texts[0].text if len(texts) == 1 else None
