"""The calls of a conversation so far and where each was cut, remembered while the conversation goes on."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any, NamedTuple

from trimtab._shared.memory import WEIGHTS, Copies
from trimtab.strategies.base import EvictionRequest

__all__ = ["Course"]


class _Cut(NamedTuple):
    """A call at which something was decided."""

    call: int
    """Its number, from 0."""
    end: int
    """How many messages it had."""
    cut: int
    """Where it was cut."""


class _Past(NamedTuple):
    """What is known of the calls before; nothing of it is changed once it is kept.

    Places are counted from the first message behind system text in front.
    """

    form: object
    told_by: object
    """What sizes follow from beside what messages say."""
    copies: Copies
    """The messages as they were."""
    sums: list[int]
    """The tokens before each, and of all together."""
    users: list[int]
    """Messages of the user."""
    calls: list[int]
    """How many messages each call had that an answer of the model followed."""
    asked: object
    """By what the cuts were decided."""
    pins: list[int]
    cuts: list[_Cut]

    @property
    def held(self) -> tuple[int, int]:
        """How many messages it holds, and their characters."""
        return len(self.copies), self.copies.chars


class Course:
    """The calls so far, and where each was cut: a pure function of the conversation and of what is asked.

    The messages of the call before are compared with copies of them. While they say the same, their sizes and
    all that was decided are known, and what is new is looked at alone: a call of 10,000 messages takes 3 ms
    where it took 23.

    Args:
        request: The request.
        asked: The strategy that asks: it has a memory of its own.
        cold: How many messages, those in front left out, each call had that found the cache cold; ascending.
        share: Which share of a room a cut frees, by `Cheapest.free_share`.
    """

    def __init__(
        self, request: EvictionRequest, *, asked: object, cold: Sequence[int], share: Callable[..., float]
    ) -> None:
        self._request, self._asked, self._cold, self._share = request, asked, cold, share
        self._history = history = request.history
        self._head, self._count = history.head, history.count - history.head
        self._pins = sorted([at - self._head for at in history.pins if at >= self._head])
        self._key: object = None
        past = self._recall()
        start = len(past.sums) - 1
        self._sums, self._users, self._calls = self._read(past, start)
        self._pinned = [*accumulate(map(self._size, self._pins), initial=0)]
        """What stands before each pin of all pins."""
        self._fixed = request.fixed_tokens + request.costs.between(0, self._head)
        self._room = request.constant_limit_tokens - self._fixed
        self._cuts = self._cuts_of(past)
        self._copies = past.copies
        if self._key is not None:
            self._copies = past.copies.until(start)
            self._copies.add(self._messages(start, self._count))

    def cut(self) -> int:
        """Return the cut of the newest call, and remember all that is known."""
        calls, decided = [*self._calls, self._count], self._cuts
        cut, at = (decided[-1].cut, decided[-1].call + 1) if decided else (0, 0)
        while (at := self._next(calls, cut, at)) < len(calls):
            cut = self._choose(cut, calls[at], at + 1)
            decided.append(_Cut(at, calls[at], cut))
            at += 1
        if self._key is not None:
            form, told_by = self._history.format, self._request.sizes.told_by
            known = (self._copies, self._sums, self._users, self._calls)
            WEIGHTS.keep(
                self._key, _Past(form, told_by, *known, (self._fixed, self._room), self._pins, decided)
            )
        return self._head + cut

    # -- what is known, and what is new

    def _recall(self) -> _Past:
        """Return what is known of the messages that say the same as in the call before."""
        request, form, told_by = self._request, self._history.format, self._request.sizes.told_by
        past = _Past(form, told_by, Copies(), [0], [], [], None, [], [])
        if told_by is None or request.edits or not self._count:
            return past
        # A hint and no more: what is found is compared. The form lives as long as what is known of it.
        key = (Course, self._asked, id(form), id(self._history.original(self._head)))
        known = WEIGHTS.find(key, past)
        if known is None:  # seen for the first time: most fits that stand alone never ask again
            return past
        self._key = key
        if known.told_by != told_by:
            return past
        same = min(self._count, len(known.copies))
        copies = known.copies if same == len(known.copies) else known.copies.until(same)
        if changed := copies.differences(self._messages(0, same)):
            same = changed[0]
        if same == len(known.copies):
            return known
        return known._replace(
            copies=known.copies.until(same),
            sums=known.sums[: same + 1],
            users=known.users[: bisect_left(known.users, same)],
            calls=known.calls[: bisect_left(known.calls, same)],
            cuts=[one for one in known.cuts if one.end <= same],
        )

    def _read(self, past: _Past, start: int) -> tuple[list[int], list[int], list[int]]:
        """Read and count the new messages."""
        request, history, head, count = self._request, self._history, self._head, self._count
        if count - start > _FEW and request.additive:  # in one go, which takes less time than one by one
            request.sizes.walk(history, head + start, sys.maxsize)
        sizes = request.costs.each(head + start, head + count)
        sums = [*past.sums[:-1], *accumulate(sizes, initial=past.sums[-1])]
        first = max(0, start - 1)
        kinds = history.kinds(head + first, head + count)
        users = [at for at, kind in enumerate(kinds, first) if kind == "user" and at >= start]
        pairs = enumerate(pairwise(kinds), first + 1)
        calls = [at for at, (before, kind) in pairs if before != kind == "assistant"]
        return sums, [*past.users, *users], [*past.calls, *calls]

    def _messages(self, start: int, stop: int) -> list[Any]:
        """Return neighboring messages as dicts."""
        return self._history.messages_between(self._head + start, self._head + stop)

    def _cuts_of(self, past: _Past) -> list[_Cut]:
        """List the decisions about calls that have not changed."""
        if past.asked != (self._fixed, self._room):
            return []
        calls = [*self._calls, self._count]
        stop = min({*past.pins}.symmetric_difference(self._pins), default=self._count)
        return [
            *takewhile(lambda one: one.end <= stop and calls[one.call : one.call + 1] == [one.end], past.cuts)
        ]

    # -- what is decided

    def _next(self, calls: list[int], cut: int, at: int) -> int:
        """Return the first call from one on at which something is decided: it has no room, or was cold."""
        full = self._sums[cut] + self._room - self._beside(cut)
        forced = bisect_left(calls, bisect_right(self._sums, full), lo=at)
        if at < len(calls) and (later := bisect_left(self._cold, calls[at])) < len(self._cold):
            return min(forced, bisect_left(calls, self._cold[later], lo=at))
        return forced

    def _choose(self, cut: int, end: int, calls: int) -> int:
        """Return the place, from the cut so far on, that leaves nearest to what is best free."""
        share = self._share(
            self._sums[end] / calls, room_tokens=self._room, fixed_tokens=self._fixed, calls=calls
        )
        free = share * self._room
        near = bisect_left(self._sums, self._sums[end] + free - self._room, lo=cut, hi=end)
        newer = self._border_at_or_after(near)
        while newer < end and self._room_at(newer, end) < 0:
            newer = self._border_at_or_after(newer + 1)
        newest = self._border_at_or_before(end - 1)
        places = {max(cut, self._border_at_or_before(near - 1)), max(cut, min(newer, newest))}
        fitting = [place for place in sorted(places) if self._room_at(place, end) >= 0]
        return min(fitting, key=lambda place: abs(self._room_at(place, end) - free), default=max(cut, newest))

    def _border_at_or_after(self, index: int) -> int:
        return self._history.border_at_or_after(self._head + index) - self._head

    def _border_at_or_before(self, index: int) -> int:
        return self._history.border_at_or_before(self._head + index) - self._head

    def _room_at(self, cut: int, end: int) -> int:
        """Return the room that stays free if the messages up to one are cut there."""
        return self._room - self._beside(cut) - (self._sums[end] - self._sums[cut])

    def _beside(self, cut: int) -> int:
        """Return the tokens of what stays before a cut: pins, and the message that opened its turn."""
        users, pins = self._users, self._pins
        at = bisect_right(users, cut) - 1
        user = users[at] if at >= 0 else cut
        opens = user != cut and user not in pins
        return self._pinned[bisect_left(pins, cut)] + (self._size(user) if opens else 0)

    def _size(self, index: int) -> int:
        return self._sums[index + 1] - self._sums[index]


_FEW = 64
"""So many messages are counted one by one: a walk over them begins at the newest of all."""
