"""Messages that may not stand where eviction put them: the provider's order, kept up without knowing it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.formats import Format, mapping_of
from trimtab.strategies._assembly import Insertion, keep_parts
from trimtab.units import History, Unit

__all__ = ["Standing", "in_order", "misplaced"]


class Standing(NamedTuple):
    """A message that stays, and where it was."""

    place: int
    """Its position among all there were; -2 for one that was put in, which stands beside none of them."""
    message: Any


def misplaced(format: Format, standing: Sequence[Standing], first: int) -> Iterator[tuple[int, int]]:
    """Find messages that may not stand behind what is now before them, and did not before.

    Args:
        format: The wire form; its `order_fault` says what may not be.
        standing: What stays, in order, without leading system messages.
        first: Position of the first message there was, but for leading system messages.

    Yields:
        (position of the message, position of the one before it); the message is passed over from then on.
        Negative for one that was put in, and for none.
    """
    before = Standing(first - 1, None)
    for one in standing:
        if one.place >= 0 and one.place != before.place + 1:
            after = None if before.message is None else mapping_of(before.message)
            if format.order_fault(after, mapping_of(one.message), parted=True) is not None:
                yield one.place, -1 if after is None else before.place
                continue
        before = one


def in_order(
    history: History,
    units: Sequence[Unit],
    kept: Sequence[Unit],
    insertions: Sequence[Insertion],
    *,
    held_too: bool = False,
) -> tuple[list[Unit], frozenset[int]]:
    """Let go of what the provider would refuse where it stands now.

    Args:
        history: The conversation; nothing happens where its wire form takes any order.
        units: Every unit of it that was there.
        kept: Those that stay, in order.
        insertions: Messages that are put in.
        held_too: Whether what is held leaves as well, open calls apart: a callback may take all but these.

    Returns:
        What still stays, and the messages that left for this.
    """
    chosen = list(kept)
    if not history.format.rules.ordered or len(chosen) == len(units):
        return chosen, frozenset()
    first = _begin(history)
    while True:
        owners: dict[int, list[Unit]] = {}
        for unit in chosen:
            for index in unit.indices:
                owners.setdefault(index, []).append(unit)
        gone: set[int] = set()
        again = False
        for index, before in misplaced(history.format, _standing(history, owners, insertions), first):
            leaving = [unit for unit in owners[index] if _may_leave(unit, held_too)]
            if not leaving and before >= 0:  # it must stay, so what stands before it gives way
                leaving = [unit for unit in owners[before] if _may_leave(unit, held_too)]
                again = True
            gone.update(map(id, leaving))
            again = again or any(unit.indices != (index,) for unit in leaving)
        if not gone:
            break
        chosen = [unit for unit in chosen if id(unit) not in gone]
        if not again:
            break
    left = {index for unit in chosen for index in unit.indices}
    return chosen, frozenset(i for unit in kept for i in unit.indices if i not in left)


def _may_leave(unit: Unit, held_too: bool) -> bool:
    return unit.state == "free" or (held_too and unit.state == "held" and not unit.open)


def _begin(history: History) -> int:
    """Return the first message that is no leading system message."""
    first = history.head
    while first < history.count and history.kind(first) == "system":
        first += 1
    return first


def _standing(
    history: History, owners: Mapping[int, Sequence[Unit]], insertions: Sequence[Insertion]
) -> list[Standing]:
    """List what stays and what is put in, in order, but for leading system messages."""
    structure = history.structure
    rows: list[Standing] = []
    indices = sorted(owners)
    for index in indices:
        message = history.messages[index]
        parts = {part for unit in owners[index] for part in unit.parts.get(index, ())}
        if parts and parts != structure.parts_of(index):
            message = keep_parts(history, index, message, parts)
        rows.append(Standing(index, message))
    for shift, one in enumerate(insertions):
        rows.insert(bisect_right(indices, one.at - 1) + shift, Standing(-2, one.message))
    begin = 0
    while begin < len(rows) and history.format.kind(mapping_of(rows[begin].message)) == "system":
        begin += 1
    return rows[begin:]
