"""Breakpoints: where a request that fits is marked for the provider's prompt cache.

A provider that stores only marked prefixes reads where an earlier request had a mark, and looks no more than
some blocks back from a mark of this one. So the places are, in the order of what they are worth: the newest
message, which the next call reads; system text or tools, which stay when a cut moves; where the call before
ended; and what stands in front of every cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from trimtab._fitting.request import Mark
from trimtab._fitting.settlement import AnyOutcome, Marks, Settlement
from trimtab.counting.sizes import Fixed, Shares, sizes_for
from trimtab.formats import Format, Request, mapping_of

__all__ = ["with_breakpoints"]

_TOOLS, _SYSTEM = -2, -1
"""Places beside the messages, in the order the provider reads them."""


def with_breakpoints(settlement: Settlement, mark: Mark, /) -> Settlement:
    """Return a settlement whose output is marked; the same where it does not fit.

    Settled for another budget it is marked as well.
    """
    settlement = replace(settlement, mark=partial(_with_breakpoints, mark=mark))
    return _with_breakpoints(settlement, mark=mark)


def _with_breakpoints(settlement: Settlement, *, mark: Mark) -> Settlement:
    outcome = settlement.outcome
    if not outcome.fits:
        return settlement
    output, marks = _set_marks(outcome, mark)
    return replace(settlement, messages=output.messages, marks=marks)


@dataclass(frozen=True, slots=True)
class _Output:
    """The messages and what stands beside them, with some places marked."""

    messages: list[Any]
    body: Request
    places: tuple[int, ...] = ()
    """Where it was marked, the most worth first."""


def _set_marks(outcome: AnyOutcome, asked: Mark) -> tuple[_Output, Marks]:
    """Mark as many places of the output as there is room for, those that are worth most first."""
    format, unmarked = outcome.format, _Output(outcome.messages(), outcome.body)
    most = format.most_marks(outcome.model)
    if not most:
        has = f"{format.name} has no marks for a prompt cache"
        why = f"{outcome.model!r} takes no marks: its cache, if it has one, finds prefixes by itself"
        note = f"No breakpoints were set: {why if format.rules.mark_keys else has}."
        return unmarked, Marks((), notes=(note,))
    mark = _as_written(format, asked)
    room, places = outcome.budget.input_tokens - outcome.tokens, _Places(unmarked, outcome, mark).best(most)
    wanted, output, cost = len(places), unmarked, 0
    while places:
        output = _marked_at(unmarked, places, format, mark)
        cost = _cost_of(output, unmarked, outcome)
        if cost <= room:
            break
        places = places[:-1]
    else:
        output, cost = unmarked, 0
    notes, lost = list[str](), [key for key in asked if key not in mark and key != "type"]
    if places and lost:
        notes.append(
            f"Breakpoints were set without {', '.join(lost)}: a mark of {format.name} cannot say it."
        )
    if len(places) < wanted:
        notes.append(f"Breakpoints left out, since there was no room: {wanted - len(places)}.")
    positions = outcome.positions()
    carry = frozenset(at for place in places if place >= 0 and (at := positions[place]) is not None)
    before = tuple(sorted({max(0, place + 1) for place in places}))
    return output, Marks(before, at=carry, tokens=cost, notes=tuple(notes), body=output.body)


def _cost_of(marked: _Output, plain: _Output, outcome: AnyOutcome) -> int:
    """Return what the marks cost: with most counters nothing."""
    at = [place for place in marked.places if place >= 0]
    leads = bool(plain.messages) and _kind(outcome.format, plain.messages[0]) == "system"

    def tokens(output: _Output) -> int:
        beside = output.body
        fixed = Fixed(system=beside.system, tools=beside.tools, extra=beside.extra or None)
        messages = list(map(mapping_of, output.messages))
        sizes = sizes_for(outcome.counter, messages, fixed, unread=outcome.format.unread(messages))
        if isinstance(sizes, Shares):
            return sizes.request_tokens(messages)
        return sizes.fixed_tokens(leads) + sizes.sum(at)

    return tokens(marked) - tokens(plain)


def _as_written(format: Format, mark: Mark) -> Mark:
    """Return what of a mark a wire form can say: Responses knows one kind, without a lifetime."""
    marks = format.cache_marks(mapping_of(format.with_cache_control(format.message("user", ["-"]), mark)))
    return marks[-1] if marks and isinstance(marks[-1], Mapping) else mark


def _kind(format: Format, message: Any) -> str:
    return str(format.kind(mapping_of(message)))


def _is_long(mark: object) -> bool:
    return isinstance(mark, Mapping) and mark.get("ttl") == "1h"


class _Places:
    """Where one request may be marked, and where it is already."""

    def __init__(self, output: _Output, outcome: AnyOutcome, mark: Mark) -> None:
        self._output, self._outcome, self._mark = output, outcome, mark
        self._format = outcome.format
        self._given = list(self._there())

    def _there(self) -> Iterator[tuple[int, Any]]:
        """List the marks that are there, each with its place."""
        marks, body = self._format.cache_marks, self._output.body
        yield from ((_TOOLS, one) for one in marks(body.tools))
        yield from ((_SYSTEM, one) for one in marks(body.system))
        for at, message in enumerate(self._output.messages):
            yield from ((at, one) for one in marks(mapping_of(message)))
        # one beside all messages has the provider mark the last block
        yield from ((len(self._output.messages) - 1, one) for one in marks(body.body))

    def best(self, most: int) -> list[int]:
        """List the places to mark beside those that are marked, the most worth first."""
        found: list[int] = []
        for place in self._by_worth():
            if len(found) + len(self._given) >= most:
                break
            if place not in found and self._is_open(place):
                found.append(place)
        return found

    def _by_worth(self) -> Iterator[int]:
        messages, stable = self._output.messages, self._outcome.stable
        front = self._count_front()
        yield from self._markable(len(messages) - 1, down_to=front)
        if front:
            yield from self._markable(front - 1, down_to=0)
        elif self._output.body.system is not None:
            yield _SYSTEM
        elif self._output.body.tools:
            yield _TOOLS
        yield from self._markable(self._end_before(front) - 1, down_to=front)
        yield from self._markable(stable - 1, down_to=front)

    def _count_front(self) -> int:
        """Count the system messages that lead; of those only that a cut does not change, if it is known."""
        count = 0
        for message in self._output.messages:
            if _kind(self._format, message) != "system":
                break
            count += 1
        return min(count, self._outcome.stable) if self._outcome.stable else count

    def _end_before(self, front: int) -> int:
        """Count those of the messages that the call before had: up to the model's last turn."""
        kinds = [_kind(self._format, message) for message in self._output.messages]
        at = len(kinds) - 1
        while at > front and kinds[at] != "assistant":
            at -= 1
        while at > front and kinds[at - 1] == "assistant":
            at -= 1
        return at

    def _markable(self, place: int, *, down_to: int) -> Iterator[int]:
        """Give the nearest message at or before a place that can carry a mark."""
        for at in range(place, down_to - 1, -1):
            message = self._output.messages[at]
            if self._format.cache_marks(mapping_of(message)):
                return  # what is wanted is there
            if self._format.with_cache_control(message, self._mark) is not message:
                yield at
                return

    def _is_open(self, place: int) -> bool:
        """Tell whether a place is not marked yet, and may be: long-lived marks stand before the others."""
        if any(at == place for at, _ in self._given):
            return False
        body = self._output.body
        if place == _TOOLS and self._format.mark_last(body.tools, self._mark) is body.tools:
            return False
        if place == _SYSTEM and self._format.mark_last(body.system, self._mark) is body.system:
            return False
        if _is_long(self._mark):
            return all(_is_long(one) or at > place for at, one in self._given)
        return all(not _is_long(one) or at < place for at, one in self._given)


def _marked_at(output: _Output, places: Sequence[int], format: Format, mark: Mark) -> _Output:
    """Return a copy of the output that is marked at some places."""
    messages, body = list(output.messages), output.body
    for place in places:
        if place == _TOOLS:
            body = replace(body, tools=format.mark_last(body.tools, mark))
        elif place == _SYSTEM:
            body = replace(body, system=format.mark_last(body.system, mark))
        else:
            messages[place] = format.with_cache_control(messages[place], mark)
    return _Output(messages, body, tuple(places))
