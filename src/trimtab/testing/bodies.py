"""Random request bodies from a seed, in every wire form: what real ones hold, and what breaks trimmers."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from trimtab._shared.names import in_words, near_names
from trimtab.errors import UnknownNameError
from trimtab.testing.bodies_anthropic import AnthropicWriter
from trimtab.testing.bodies_gemini import GeminiWriter
from trimtab.testing.bodies_openai_chat import ChatWriter
from trimtab.testing.bodies_openai_responses import ResponsesWriter
from trimtab.testing.writer import ODD_TEXTS, Body, Message, Writer

_WRITERS: dict[str, type[Writer]] = {
    "openai_chat": ChatWriter,
    "openai_responses": ResponsesWriter,
    "anthropic": AnthropicWriter,
    "gemini": GeminiWriter,
}
_ID_KEYS = ("id", "call_id", "tool_use_id", "tool_call_id", "approval_request_id")
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
    """Make request bodies in a wire form, with what that form has beyond plain text.

    The same seed gives the same ones. They hold parallel calls, reasoning in all its forms, tools the
    provider runs itself, images and documents, system text and tool schemas. Without `valid` most are
    also broken, in up to four places: messages and parts dropped, repeated, moved, split and merged,
    ids of one call given to another, texts emptied.

    Args:
        count: How many.
        format: Name of the wire form, one that trimtab ships.
        valid: Only those a provider takes; the last call may be open.
        max_messages: About the most messages of one.

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
    writer_type = _WRITERS.get(form)
    if writer_type is None:
        near = near_names(form, _WRITERS)
        raise UnknownNameError(
            f"no generator writes format {form!r}; there are: {', '.join(_WRITERS)}{in_words(near)}",
            name=form,
            near=near,
        )
    random = Random(f"{form}/{seed}")
    writer = writer_type(random, valid)
    body = writer.body(max_messages)
    if not valid:
        _Spoiler(random, body[writer.key], writer.parts_key).spoil()
    return body


class _Spoiler:
    """Breaks messages the way trimmers, stores and users do."""

    def __init__(self, random: Random, messages: list[Any], parts_key: str) -> None:
        self.random = random
        self.messages = messages
        self.parts_key = parts_key
        self.ways = (
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
            entry[key] = self.random.choice(ODD_TEXTS)

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
