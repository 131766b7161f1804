"""Readings of messages that a framework copies at each call, or changes in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import TypeVar

from trimtab.history import ReadCache

M = TypeVar("M")
R = TypeVar("R")

_MOST_MISSES = 8
"""How many messages are looked for in vain among those known before the rest is taken as new: that takes as
long as to read them."""

_MOST_CONVERSATIONS = 100
"""How many conversations a `CopyCache` remembers: each call looks at how all of them begin."""


class CopyCache(ReadCache[M, R]):
    """A `ReadCache` for messages that are copied at each call or changed in place: known by what they say.

    A copy of its own stands beside each reading. The messages of a call are compared in order with those of
    the conversation that begins like it for longest, which is cheap: copies share their texts.

    Args:
        read: What reads a message.
        most_objects: How many readings are kept; those of the conversation used last always are.
    """

    def __init__(self, read: Callable[[M], R], *, most_objects: int) -> None:
        super().__init__(read, most_objects=most_objects)
        self._known: tuple[tuple[list[M], list[R]], ...] = ()
        """Copies and readings of conversations, that used last at the end."""

    def __call__(self, object: M, /) -> R:
        """Return what a message reads as."""
        return self._read(object)

    def readings(self, objects: Sequence[M], /) -> list[R | None]:
        """List what these messages read as; what is new is read."""
        messages, others = list(objects), [*self._known]
        ranks = ((*_alike(copies, messages), at) for at, (copies, _) in enumerate(others))
        alike, _, at = max(ranks, default=(0, True, -1))
        copies, known = others.pop(at) if others else ([], [])
        if alike < len(copies):
            places = [*range(alike), *_places(messages, copies, alike)]
            if alike == len(messages) or 2 * places.count(None) >= len(places):
                others.append((copies, known))  # another conversation, that may begin like this one
            copies = [
                deepcopy(one) if at is None else copies[at] for one, at in zip(messages, places, strict=True)
            ]
            known = [
                self._read_new(one) if at is None else known[at]
                for one, at in zip(copies, places, strict=True)
            ]
        fresh = [*map(deepcopy, messages[len(copies) :])]
        copies, known = [*copies, *fresh], [*known, *map(self._read_new, fresh)]
        del others[: -_MOST_CONVERSATIONS + 1]
        while others and sum(len(one) for one, _ in others) + len(copies) > self._most:
            del others[0]
        self._known = (*others, (copies, known))
        return [*known]

    def _read_new(self, message: M) -> R:
        reading = self._read(message)
        self._note(reading)
        return reading


def _alike(known: Sequence[M], messages: Sequence[M]) -> tuple[int, bool]:
    """Count with how many messages both begin; say whether these are all that is known of a conversation."""
    pairs = enumerate(zip(known, messages, strict=False))
    count = next((at for at, (one, other) in pairs if one != other), min(len(known), len(messages)))
    return count, count == len(known)


def _places(messages: Sequence[M], known: Sequence[M], start: int) -> list[int | None]:
    """List which of those known each message from `start` on is; once many are new, the rest is new."""
    places, at, misses = list[int | None](), start, 0
    for message in messages[start:]:
        place = None
        if misses < _MOST_MISSES and at < len(known):
            with suppress(ValueError):
                place = known.index(message, at)
        at, misses = (at, misses + 1) if place is None else (place + 1, misses)
        places.append(place)
    return places
