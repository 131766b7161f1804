"""What was found about messages or texts, remembered from call to call of a chat while they say the same.

Each call of a chat shows nearly all messages of the call before, mostly as the same objects. An object tells
nothing about its content, which may have been changed in place: so copies are kept, every container of
them new, and the messages are compared with these, in one go. Texts are not copied: they cannot change.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from operator import ne
from types import NoneType
from typing import Any, Protocol, TypeVar, cast

__all__ = ["TERMS", "TEXTS", "WEIGHTS", "Copies", "Memory", "Remembered", "with_latest"]


class Remembered(Protocol):
    """What is known of neighbors; nothing of it is changed once it is kept."""

    @property
    def held(self) -> tuple[int, int]:
        """How many messages or texts it holds, and their characters."""
        ...


R = TypeVar("R", bound=Remembered)
K = TypeVar("K")
V = TypeVar("V")


def with_latest(known: Mapping[K, V], key: K, value: V, /, *, most: int) -> dict[K, V]:
    """Return what is known with one entry more, the last, and of the others as many as there is room for.

    What is known is not changed, so that threads that look at it need no lock: whoever keeps the new dict
    last, wins.

    Args:
        known: Entries, the latest last.
        key: That of the new one.
        value: What it is.
        most: How many there are at most.
    """
    others = [(one, its) for one, its in known.items() if one != key]
    return {**dict(others[max(0, len(others) - most + 1) :]), key: value}


class Memory:
    """What is known of neighbors by where they begin, those used last; shared between threads.

    The key is a hint and no more: what is found is compared with the messages. Of a conversation seen for the
    first time only the key is kept, since most fits that stand alone never ask again.

    Args:
        most_messages: How many are remembered at most; each takes some 400 bytes beside its texts.
        most_chars: Of their texts, which so live on; most of them the caller holds anyway. Each value in them
            counts as 32 beside its text, since a list of numbers takes room, too.
        most_keys: How many there are at most of which something is known.
    """

    def __init__(
        self, *, most_messages: int = 65_536, most_chars: int = 33_554_432, most_keys: int = 1_024
    ) -> None:
        self._most_keys = most_keys
        self._most_messages = most_messages
        self._most_chars = most_chars
        self._lock = threading.Lock()
        self._known: OrderedDict[object, Remembered] = OrderedDict()
        self._messages = self._chars = 0
        if sys.platform != "win32":  # a child in which nobody gives the lock back would wait forever
            lock = self._lock
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )

    def find(self, key: object, blank: R, /) -> R | None:
        """Return what is known of messages; None where they are seen for the first time.

        Args:
            key: Where they begin, and who asks. The form is told by its id in it, since one of a caller's may
                have no hash.
            blank: Knows none; what is remembered of those who ask for the first time.
        """
        with self._lock:
            found = cast("R | None", self._known.get(key))
            if found is None:
                self._put(key, blank)
            else:
                self._known.move_to_end(key)
            return found

    def peek(self, key: object, /) -> Remembered | None:
        """Return what is known of messages, and remember nothing of having been asked."""
        with self._lock:
            return self._known.get(key)

    def keep(self, key: object, known: Remembered, /) -> None:
        """Remember something in place of what was known of it."""
        with self._lock:
            self._put(key, known)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
            self._messages = self._chars = 0

    def __len__(self) -> int:
        """Count the messages remembered."""
        with self._lock:
            return self._messages

    def _put(self, key: object, one: Remembered) -> None:
        known = self._known
        self._add(known.pop(key, None), -1)
        self._add(one, 1)
        known[key] = one
        most, chars = self._most_messages, self._most_chars
        while len(known) > self._most_keys or self._messages > most or self._chars > chars:
            self._add(known.popitem(last=False)[1], -1)

    def _add(self, known: Remembered | None, sign: int) -> None:
        if known is not None:
            count, chars = known.held
            self._messages += sign * count
            self._chars += sign * chars


WEIGHTS, TEXTS, TERMS = Memory(), Memory(), Memory(most_keys=8_192)
"""Those of the process: of messages, of texts that questions are asked about, and of their terms."""


class Copies(list[Any]):
    """Copies of messages in which nothing can change with these."""

    __slots__ = ("_each_chars", "chars")

    def __init__(self, copies: Iterable[Any] = (), each_chars: Iterable[int] = (), /) -> None:
        super().__init__(copies)
        self._each_chars = [*each_chars]
        self.chars = sum(self._each_chars)
        """Characters of all texts in them, and what other values take beside these."""

    def until(self, stop: int, /) -> Copies:
        """Return those before one, in a list of their own."""
        return Copies(self[:stop], self._each_chars[:stop])

    def differences(self, messages: Sequence[Any], /) -> list[int]:
        """List the places where messages say something else; all where they cannot be compared."""
        try:
            if messages == self:  # each is another object than its copy, so that all of it is compared
                return []
            return [at for at, differs in enumerate(map(ne, messages, self)) if differs]
        # A value of the caller's that cannot be compared, as an array, or with its own kind alone.
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return [*range(len(messages))]

    def add(self, messages: Iterable[Any], /) -> None:
        """Copy messages to the end."""
        for message in messages:
            before = self.chars
            self.append(self._of(message))
            self._each_chars.append(self.chars - before)

    def replace(self, at: int, message: Any, /) -> None:
        """Copy a message in place of another."""
        self.chars = before = self.chars - self._each_chars[at]
        self[at] = self._of(message)
        self._each_chars[at] = self.chars - before

    def _of(self, message: Any) -> Any:
        try:
            return self._copy(message)
        except RecursionError:  # nested too deep, or in a circle: where that is not counted, nobody minds
            return object()

    def _copy(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            self.chars += _VALUE_CHARS + len(value)
            return value
        self.chars += _VALUE_CHARS
        if kind is dict and set(map(type, value)) <= {str}:  # the keys 1 and True are one
            return {key: self._copy(one) for key, one in value.items()}
        if kind is list:
            return [*map(self._copy, value)]
        if kind is NoneType:
            return value
        if kind is int or kind is bool or (kind is float and value):  # 0.0 equals -0.0
            return _Plain(value)
        # What may change without its containers, as an object of an SDK, equals nothing: it is weighed again.
        return object()


_VALUE_CHARS = 32
"""What a value takes beside its text, in characters: a container or a number of ours is some 70 bytes."""


class _Plain:
    """A number that equals those of its kind: 1, 1.0 and True are written in texts of different length."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self._value) and other == self._value
