"""Joined blocks: documents that are weighed one by one and sent as one message.

Each document is a message of its own while it is decided what stays. What stays becomes one message, and
that is what the counter is asked about: a text is not the sum of its parts to a tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab._fitting.blocks import Block
from trimtab.conversation.assemble import Document
from trimtab.counting.base import AdditiveCounter, checked_count
from trimtab.counting.sizes import Shares, Sizes
from trimtab.formats import Format, mapping_of

__all__ = ["Joint", "joint_of", "sizes_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """How the documents of a block become one message."""

    format: Format
    role: str
    separator: str
    wrap: str | None
    """Element each document stands in; None: it stands bare."""

    def documents(self, texts: Sequence[str], labels: Sequence[str]) -> list[Any]:
        """Write each document as a message that knows its label."""
        return [
            Document(self.format.message(self.role, [text]), label=labels[at] if labels else None)
            for at, text in enumerate(texts)
        ]

    def merge(self, messages: Sequence[Any]) -> list[Any]:
        """Put documents into one message; none of none."""
        if not messages:
            return []
        return [self.format.message(self.role, [self.separator.join(map(self._text, messages))])]

    def _text(self, message: Any) -> str:
        text = "".join(slot.text for slot in self.format.texts(mapping_of(message)))
        if self.wrap is None or not isinstance(message, Document):  # a summary has marks of its own
            return text
        from html import escape  # not above: it brings every named entity of HTML

        label = "" if message.label is None else f' label="{escape(message.label)}"'
        return f"<{self.wrap}{label}>\n{escape(text, quote=False)}\n</{self.wrap}>"


def joint_of(block: Block, format: Format, role: str, /) -> Joint:
    """Return how a block's documents are joined; some separator stands between them."""
    return Joint(format=format, role=role, separator=block.separator or "", wrap=block.wrap)


def sizes_of(counter: Any, messages: list[Any], joint: Joint, /, *, unread: range) -> Sizes:
    """Make the table of sizes of one block whose documents are joined."""
    return _JoinedSizes(counter, messages, joint, is_unread=bool(unread))


class _JoinedSizes(Shares):
    """Sizes of documents that become one message: it is asked about whole, and each has a share of it."""

    def __init__(self, counter: Any, messages: list[Any], joint: Joint, *, is_unread: bool) -> None:
        super().__init__(counter, messages, None)
        self._joint = joint
        self._is_free = is_unread and isinstance(counter, AdditiveCounter)

    def _ask(self, messages: Sequence[Any]) -> int:
        merged = self._joint.merge(messages)
        if not isinstance(self.counter, AdditiveCounter):
            return super()._ask(merged)
        return self.alone(merged[0]) if merged else 0

    def alone(self, message: Any, /) -> int:
        """Count a message as it is sent; a black box is asked about a request of it."""
        if self._is_free:
            return 0
        if not isinstance(self.counter, AdditiveCounter):
            return max(0, super()._ask([message]) - self.base_tokens())
        return checked_count(lambda: self.counter.count_message(message), self.counter, None)
