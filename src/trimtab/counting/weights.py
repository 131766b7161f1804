"""What messages weigh in strides, remembered from one call of a chat to the next while they say the same.

Each call of a chat shows nearly all messages of the call before, mostly as the same objects. An object tells
nothing about its content, which may have been changed in place: so copies are kept, every container of
them new, and the messages are compared with these, in one go. Texts are not copied: they cannot change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from operator import ne
from types import NoneType
from typing import Any, NamedTuple

__all__ = ["WEIGHTS", "Copies", "Weighed", "WeightMemory"]


class Weighed(NamedTuple):
    """Neighboring messages as they were, and what they weigh; nothing of it is changed once it is kept."""

    copies: Copies
    sums: list[float]
    """What stands before each message, and in all."""
    marks: dict[float, list[int]]
    """The marks found in them by stride, ascending."""


class WeightMemory:
    """Weighed messages by where they begin, those used last; shared between threads.

    The key is a hint and no more: what is found is compared with the messages. Of a conversation seen for the
    first time only the key is kept, since most fits that stand alone never ask again.

    Args:
        most_messages: How many are remembered at most; each takes some 400 bytes beside its texts.
        most_chars: Of their texts, which so live on; most of them the caller holds anyway.
    """

    def __init__(self, *, most_messages: int = 65_536, most_chars: int = 33_554_432) -> None:
        self._most_messages = most_messages
        self._most_chars = most_chars
        self._lock = threading.Lock()
        self._known: OrderedDict[object, Weighed] = OrderedDict()
        self._messages = self._chars = 0

    def find(self, key: object, /) -> Weighed | None:
        """Return what is known of messages; None where they are seen for the first time."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                self._put(key, Weighed(Copies(), [0.0], {}))
            else:
                self._known.move_to_end(key)
            return found

    def keep(self, key: object, weighed: Weighed, /) -> None:
        """Remember what was weighed in place of what was known of it."""
        with self._lock:
            self._put(key, weighed)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
            self._messages = self._chars = 0

    def __len__(self) -> int:
        """Count the messages remembered."""
        with self._lock:
            return self._messages

    def _put(self, key: object, weighed: Weighed) -> None:
        known = self._known
        self._add(known.pop(key, None), -1)
        self._add(weighed, 1)
        known[key] = weighed
        while (
            len(known) > _MOST_KEYS or self._messages > self._most_messages or self._chars > self._most_chars
        ):
            self._add(known.popitem(last=False)[1], -1)

    def _add(self, weighed: Weighed | None, sign: int) -> None:
        if weighed is not None:
            self._messages += sign * len(weighed.copies)
            self._chars += sign * weighed.copies.chars


_MOST_KEYS = 1_024

WEIGHTS = WeightMemory()
"""Those of the process."""


class Copies(list[Any]):
    """Copies of messages in which nothing can change with these."""

    __slots__ = ("chars",)

    def __init__(self, copies: Iterable[Any] = (), *, chars: int = 0) -> None:
        super().__init__(copies)
        self.chars = chars
        """Characters of texts in them, about: of a part the part, and of those replaced both."""

    def until(self, stop: int, /) -> Copies:
        """Return those before one."""
        return Copies(self[:stop], chars=self.chars * stop // max(1, len(self)))

    def changed(self, messages: Sequence[Any], /) -> list[int]:
        """List the places where messages say something else; all where they cannot be compared."""
        try:
            if messages == self:  # each is another object than its copy, so that all of it is compared
                return []
            return [at for at, differs in enumerate(map(ne, messages, self)) if differs]
        # A value of the caller's that cannot be compared, as an array or a tensor.
        except (TypeError, ValueError, RuntimeError, AttributeError):
            return [*range(len(messages))]

    def add(self, messages: Iterable[Any], /) -> None:
        """Copy messages to the end."""
        self += [*map(self.of, messages)]

    def of(self, message: Any, /) -> Any:
        """Copy one message; what is nested too deep for that equals nothing, and is weighed again."""
        try:
            return self._copy(message)
        except RecursionError:
            return object()

    def _copy(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            self.chars += len(value)
            return value
        if kind is dict:
            return {key: self._copy(one) for key, one in value.items()}
        if kind is list:
            return [*map(self._copy, value)]
        if kind is NoneType:
            return value
        # What may change without its containers, as an object of an SDK, equals nothing: it is weighed again.
        return _Plain(value) if kind in (int, float, bool) else object()


class _Plain:
    """A number that equals those of its kind: 1, 1.0 and True are written in texts of different length."""

    __slots__ = ("_value",)
    # It says that there is none; the type of `object` says that there is one.
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self._value) and other == self._value
