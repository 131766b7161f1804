"""Breakpoints: where a request that fits is marked for the provider's prompt cache.

A provider that stores only marked prefixes reads where an earlier request had a mark, and looks no more than
some blocks back from a mark of this one. So the places are, in the order of what they are worth: the newest
message, which the next call reads; system text or tools, which stay when a cut moves; where the call before
ended; and what stands in front of every cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from trimtab._fitting.fitted import NO_MARKS, Marks, Plan, PlanAround
from trimtab.budget import Budget
from trimtab.counting.sizes import Fixed, Shares, sizes_for
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, Request, mapping_of

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["MarkedPlan", "check_breakpoints", "with_breakpoints"]

Mark: TypeAlias = Mapping[str, Any]
"""A mark in the provider's own words."""

_TOOLS, _SYSTEM = -2, -1
"""Places beside the messages, in the order the provider reads them."""


def check_breakpoints(value: object, /) -> Mark | None:
    """Return the mark to set, in the provider's own words; None: none is asked for.

    Raises:
        ConfigurationError: It is neither True, False nor a mapping.
    """
    if value is None or value is False:
        return None
    if value is True:
        return {"type": "ephemeral"}
    if isinstance(value, Mapping) and value:
        return value
    raise ConfigurationError(
        "breakpoints is True, False, or the mark as the provider has it,"
        f" {{'type': 'ephemeral', 'ttl': '1h'}}, not {value!r:.60}"
    )


def with_breakpoints(plan: Plan, mark: Mark | None, /) -> Plan:
    """Return a plan whose output is marked; the plan itself where nothing is asked for, or does not fit."""
    if mark is None or not plan.fits:
        return plan
    return MarkedPlan(plan, mark)


@dataclass(frozen=True, slots=True)
class _Output:
    """The messages and what stands beside them, with some places marked."""

    messages: list[Any]
    body: Request
    places: tuple[int, ...] = ()
    """Where it was marked, the most worth first."""


class MarkedPlan(PlanAround):
    """A plan, and its output with marks."""

    def __init__(self, plain: Plan, mark: Mark) -> None:
        super().__init__(plain)
        self._asked = mark
        self._mark = mark = _as_written(plain.format, mark)
        self._notes: tuple[str, ...] = ()
        self._cost = 0
        self._unmarked = _Output(plain.messages(), plain.body)
        self._marked = self._unmarked
        most = plain.format.most_marks(plain.model)
        if not most:
            has = f"{plain.format.name} has no marks for a prompt cache"
            why = f"{plain.model!r} takes no marks: its cache, if it has one, finds prefixes by itself"
            self._notes = (f"No breakpoints were set: {why if plain.format.rules.mark_keys else has}.",)
            return
        self._put(_Places(self._unmarked, plain, mark).best(most))

    def _put(self, places: list[int]) -> None:
        """Mark as many of the places as there is room for."""
        room, wanted = self.plain.budget.input_tokens - self.plain.tokens, len(places)
        while places:
            self._marked = _marked_at(self._unmarked, places, self.plain.format, self._mark)
            self._cost = self._cost_of(self._marked)
            if self._cost <= room:
                break
            places = places[:-1]
        else:
            self._marked, self._cost = self._unmarked, 0
        lost = [key for key in self._asked if key not in self._mark and key != "type"]
        if places and lost:
            form = self.plain.format.name
            self._notes = (
                f"Breakpoints were set without {', '.join(lost)}: a mark of {form} cannot say it.",
            )
        if len(places) < wanted:
            left = f"Breakpoints left out, since there was no room: {wanted - len(places)}."
            self._notes = (*self._notes, left)

    def _cost_of(self, marked: _Output) -> int:
        """Return what the marks cost: with most counters nothing."""
        plain, at = self._unmarked, [place for place in marked.places if place >= 0]
        leads = bool(plain.messages) and _kind(self.plain.format, plain.messages[0]) == "system"

        def tokens(output: _Output) -> int:
            beside = output.body
            fixed = Fixed(system=beside.system, tools=beside.tools, extra=beside.extra or None)
            messages = list(map(mapping_of, output.messages))
            unread = self.plain.format.unread(messages)
            sizes = sizes_for(self.plain.counter, messages, fixed, unread=unread)
            if isinstance(sizes, Shares):
                return sizes.request_tokens(messages)
            return sizes.fixed_tokens(leads) + sizes.sum(at)

        return tokens(marked) - tokens(plain)

    @property
    def places(self) -> tuple[int, ...]:
        """How many messages stand before each mark, ascending; 0: it is on system text or tools."""
        return tuple(sorted({max(0, place + 1) for place in self._marked.places}))

    @property
    def tokens(self) -> int:
        """Tokens of the whole request, marks included."""
        return self.plain.tokens + self._cost

    @property
    def body(self) -> Request:
        """What was asked for, as a request; system text or tools may be marked."""
        return self._marked.body

    def messages(self) -> list[Any]:
        """Put the output together; marked messages are shallow copies."""
        return list(self._marked.messages)

    def report(self, messages: list[Any], /, *, marks: Marks = NO_MARKS) -> Report:
        """Make the report of the fit; what marks cost is beside the messages."""
        positions = self.plain.positions()
        there = [positions[place] for place in self._marked.places if place >= 0]
        at = frozenset(index for index in there if index is not None)
        return self.plain.report(self._unmarked.messages, marks=Marks(at, self._cost, self._notes))

    def at(self, budget: Budget, /) -> Plan:
        """Decide for another budget."""
        return with_breakpoints(self.plain.at(budget), self._asked)


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

    def __init__(self, output: _Output, plan: Plan, mark: Mark) -> None:
        self._output, self._plan, self._mark = output, plan, mark
        self._format = plan.format
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
        messages, stable = self._output.messages, self._plan.stable
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
        return min(count, self._plan.stable) if self._plan.stable else count

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
