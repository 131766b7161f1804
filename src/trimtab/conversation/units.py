"""What a unit is, and which messages or parts of messages make one."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, cast

from trimtab._shared.checks import check_parameters, whole_of
from trimtab.conversation.pairing import Pairing
from trimtab.conversation.turns import LastTurn
from trimtab.errors import ConfigurationError
from trimtab.formats import Kind, Structure

__all__ = [
    "NO_PARTS",
    "Group",
    "Parts",
    "Span",
    "State",
    "Stretch",
    "Unit",
    "members",
    "missing_ids",
    "pins_given",
    "resolve_pins",
    "span_of",
    "unit_of",
    "with_openers",
    "with_stored",
    "with_thinking",
]

State = Literal["pinned", "held", "free"]
"""A pinned unit is neither evicted nor changed. A held one may be shortened, a free one also evicted."""

Parts = Mapping[int, tuple[int, ...]]
"""Parts by message."""

NO_PARTS: Parts = {}
"""What a unit of whole messages has for `parts`."""


class Unit:
    """Messages that are kept or evicted together, by index in the conversation.

    It cannot be changed: a strategy sees what is pinned and cannot unpin it.

    Args:
        indices: Positions of its messages, ascending.
        kind: Kind of its first message.
        state: Whether it is pinned, held or free.
        open: True while a result can still come (SPEC A4b).
        parts: Which parts of a message belong to it, if it shares the message with other units.

    Example:
        >>> from trimtab.conversation import group
        >>> [unit.indices for unit in group([
        ...     {"role": "user", "content": "2 + 2?"},
        ...     {"role": "assistant", "tool_calls": [
        ...         {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}]},
        ...     {"role": "tool", "tool_call_id": "a", "content": "4"}])]
        [(0,), (1, 2)]
    """

    __slots__ = ("indices", "kind", "open", "parts", "state")

    indices: tuple[int, ...]
    """Positions of its messages, ascending."""
    kind: Kind
    """Kind of its first message."""
    state: State
    open: bool
    """True while a result can still come (SPEC A4b)."""
    parts: Parts
    """Which parts of a message belong to it, if it shares the message with other units."""

    def __init__(
        self,
        indices: tuple[int, ...],
        *,
        kind: Kind,
        state: State = "free",
        open: bool = False,
        parts: Parts = NO_PARTS,
    ) -> None:
        _put_indices(self, indices)
        _put_kind(self, kind)
        _put_state(self, state)
        _put_open(self, open)
        _put_parts(self, parts)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a unit is read-only: the {name} of {self!r} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a unit is read-only: the {name} of {self!r} cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return _unit, (self.indices, self.kind, self.state, self.open, dict(self.parts))

    @property
    def first(self) -> int:
        """Position of its first message; units are ordered by it."""
        return self.indices[0]

    def __repr__(self) -> str:
        """Show the positions and the state."""
        shared = f", parts={dict(self.parts)}" if self.parts else ""
        return f"Unit({list(self.indices)}, {self.kind}, {self.state}{shared})"


# Slots are written by their descriptors: __setattr__ refuses, and this is the cheapest way around it.
_put_indices = Unit.__dict__["indices"].__set__
_put_kind = Unit.__dict__["kind"].__set__
_put_state = Unit.__dict__["state"].__set__
_put_open = Unit.__dict__["open"].__set__
_put_parts = Unit.__dict__["parts"].__set__
_new = object.__new__


def _unit(indices: tuple[int, ...], kind: Kind, state: State, open: bool, parts: Parts) -> Unit:
    """Make a unit again from a copy or a pickle."""
    return Unit(indices, kind=kind, state=state, open=open, parts=parts)


class Stretch(Unit):
    """Neighboring messages that are not told apart into units, and stay or leave together until they are."""

    __slots__ = ()


Span = tuple[int, int, State, "Kind | None", "Unit | None"]
"""Where a unit begins and ends, its state and kind (None: a stretch), and the unit, where it was made.

Of neighboring whole messages no unit has to be made to know all there is of it.
"""


def span_of(unit: Unit) -> Span:
    """Write a unit as a span."""
    kind = None if isinstance(unit, Stretch) else unit.kind
    return unit.indices[0], unit.indices[-1] + 1, unit.state, kind, unit


def unit_of(span: Span) -> Unit:
    """Make the unit of a span, unless it is made."""
    first, stop, state, kind, unit = span
    if unit is not None:
        return unit
    if kind is None:
        return Stretch(tuple(range(first, stop)), kind="other")
    made = _new(Unit)  # a constructor with keywords takes twice the time
    _put_indices(made, (first,) if stop == first + 1 else tuple(range(first, stop)))
    _put_kind(made, kind)
    _put_state(made, state)
    _put_open(made, False)
    _put_parts(made, NO_PARTS)
    return made


class Group:
    """A unit in the making."""

    __slots__ = ("indices", "kind", "parts")

    def __init__(self, kind: Kind | None = None) -> None:
        self.kind: Kind | None = kind
        self.indices: set[int] = set()
        self.parts: dict[int, list[int]] = {}

    def add(self, index: int, part: int | None) -> None:
        """Take a message, or one part of it, into the group."""
        self.indices.add(index)
        if part is not None:
            self.parts.setdefault(index, []).append(part)

    def shift(self, by: int) -> Group:
        """Return the same group further back in a longer conversation."""
        made = Group(self.kind)
        made.indices = {index + by for index in self.indices}
        made.parts = {index + by: parts for index, parts in self.parts.items()}
        return made

    def hold_whole(self, structure: Structure) -> None:
        """Name no parts where it shares none of its messages: whole messages are looked at in fewer steps.

        Args:
            structure: Columns of its messages.
        """
        if all(len(own) == len(structure.parts_of(index)) for index, own in self.parts.items()):
            self.parts = {}

    def take(self, other: Group) -> None:
        """Become one with another."""
        self.indices |= other.indices
        for index, parts in other.parts.items():
            self.parts.setdefault(index, []).extend(parts)


class _Groups(dict[Any, Group]):
    """Units in the making, by the message that began each; which unit a message is at home in."""

    def __init__(self) -> None:
        super().__init__()
        self._home: dict[int, int] = {}

    def of(self, key: Any) -> Group:
        return self.setdefault(self._home.get(key, key), Group())

    def bind(self, index: int, to: int) -> None:
        """Make a message a part of another's unit."""
        self._home[index] = self._home.get(to, to)

    def keep_whole(self, index: int, owners: Sequence[int | None]) -> None:
        """Put a message into the unit of every call it answers, which become one."""
        homes = dict.fromkeys(self._home.get(one, one) for one in owners if one is not None)
        first, *others = homes or [index]
        group = self.of(first)
        group.add(index, None)
        for other in others:
            group.take(self.pop(other))
            self._home.update({one: first for one, home in self._home.items() if home == other})
            self._home[other] = first


def members(structure: Structure, pairing: Pairing, *, whole: Collection[int] = ()) -> list[Group]:
    """Sort messages, or their parts, into units.

    Args:
        structure: Columns of all the messages.
        pairing: What answers what.
        whole: Messages that stay or leave whole, since a part of them belongs to something elsewhere.
    """
    groups = _Groups()
    for index in range(structure.count):
        if index - 1 in structure.bound:
            groups.bind(index, index - 1)
        answers = structure.answers.get(index)
        if answers is None:
            groups.of(index).add(index, None)
            continue
        if index in whole and answers[0][1] is not None:
            groups.keep_whole(index, pairing.owner[index])
            continue
        for (_, part), owner in zip(answers, pairing.owner[index], strict=True):
            if owner is not None:
                groups.of(owner).add(index, part)
            elif part is None:
                groups.of(index).add(index, None)
            else:
                groups[index, part] = orphan = Group("tool")
                orphan.add(index, part)
        if (loose := structure.loose.get(index)) is not None:
            # Where the message calls, too, the results of its calls are members.
            rest = groups.of(index if index in structure.calls else (index,))
            for part in loose:
                rest.add(index, part)
    made = list(groups.values())
    return _with_references(made, structure, pairing, whole) if structure.references else made


def _with_references(
    groups: list[Group], structure: Structure, pairing: Pairing, whole: Collection[int]
) -> list[Group]:
    """Make results without a call, and the references before them, one unit: any of these may be the call.

    A result directly behind a reference is bound to that, and to no other.
    """
    first = min(structure.references)
    strays = [
        index
        for index, owners in pairing.owner.items()
        if index > first and None in owners and index not in whole and index - 1 not in structure.bound
    ]
    if not strays:
        return groups
    joining = {*strays, *(index for index in structure.references if index < max(strays))}
    one, rest = Group(), list[Group]()
    for group in groups:
        if joining.isdisjoint(group.indices):
            rest.append(group)
        else:
            one.take(group)
    return [*rest, one]


def with_openers(
    units: Sequence[Unit], cannot_lead: Callable[[int], bool], opener_of: Callable[[int], int | None]
) -> list[Unit]:
    """Hold the user messages that open the turns of what must stay and cannot lead.

    Where no user message does, it is the nearest unit before it whose first message may lead.

    Args:
        units: All units of a conversation.
        cannot_lead: Tells whether the provider refuses a message as the first.
        opener_of: Finds the user message that opens the turn of a message.
    """
    users, others = set[int | None](), set[int | None]()
    for unit in units:
        if unit.state != "free" and cannot_lead(unit.first):
            user = opener_of(unit.first)
            users.add(user)
            if user is None:
                before = (one.first for one in reversed(units) if one.first < unit.first)
                others.add(next((first for first in before if not cannot_lead(first)), None))
    return [
        _hold(unit)
        if unit.state == "free"
        and (unit.first in others or (unit.kind == "user" and not users.isdisjoint(unit.indices)))
        else unit
        for unit in units
    ]


def with_thinking(units: Sequence[Unit], turn: LastTurn) -> list[Unit]:
    """Hold the thinking that opens what must stay of the last turn, if that does not begin so."""
    said = (unit.first for unit in units if unit.state != "free" and unit.kind == "assistant")
    first = next(filter(turn.holds, said), None)
    thinking = None if first is None else turn.thinking_for(first)
    return [_hold(unit) if unit.state == "free" and thinking in unit.indices else unit for unit in units]


def with_stored(units: Sequence[Unit], pairing: Pairing) -> list[Unit]:
    """Hold results without a call, where the provider has stored calls: without it theirs would wait."""
    stored = {index for index, owners in pairing.owner.items() if None in owners}
    return [
        _hold(unit) if unit.state == "free" and not stored.isdisjoint(unit.indices) else unit
        for unit in units
    ]


def _hold(unit: Unit) -> Unit:
    return Unit(unit.indices, kind=unit.kind, state="held", open=unit.open, parts=unit.parts)


def missing_ids(
    answers: Mapping[int, tuple[tuple[str, int | None], ...]], index: int, ids: tuple[str, ...]
) -> list[str]:
    """List the ids of a call that the messages directly behind it do not answer."""
    missing = dict.fromkeys(ids)
    i = index + 1
    while (found := answers.get(i)) is not None:
        for call_id, _ in found:
            missing.pop(call_id, None)
        i += 1
    return list(missing)


def resolve_pins(pin: object, messages: Sequence[Any]) -> frozenset[int]:
    """Turn `pin=` into positions: indices (negative ones from the end) or a predicate's matches.

    Raises:
        ConfigurationError: An index is out of range, or `pin` is neither.
    """
    pins = pins_given(pin)
    if callable(pins):
        return frozenset(i for i, message in enumerate(messages) if pins(message, i))
    count = len(messages)
    found = set()
    for index in pins:
        if not -count <= index < count:
            raise ConfigurationError(
                f"pin: index {index} is out of range for {count} messages", argument="pin"
            )
        found.add(index % count)
    return frozenset(found)


def pins_given(pin: object) -> tuple[int, ...] | Callable[[Any, int], bool]:
    """Return what `pin=` was given so that it can be read again: positions, or the predicate.

    Raises:
        ConfigurationError: It is neither.
    """
    if callable(pin):
        check_parameters("pin", pin, "message", "index")
        return cast("Callable[[Any, int], bool]", pin)
    if isinstance(pin, (str, bytes)) or not isinstance(pin, Iterable):
        raise ConfigurationError(
            "pin must be a list of positions or a function (message, index) -> bool, not"
            f" {reprlib.repr(pin)}",
            argument="pin",
        )
    pins = []
    for given in pin:
        if (index := whole_of(given)) is None:
            raise ConfigurationError(
                "pin must be positions of messages, such as [0, -1], or a function (message, index) ->"
                f" bool; {reprlib.repr(given)} is not a position",
                argument="pin",
            )
        pins.append(index)
    return tuple(pins)
