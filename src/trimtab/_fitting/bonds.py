"""Units that span blocks: a call in one block, its result in another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence, Sized
from itertools import accumulate, pairwise
from typing import TypeVar

from trimtab._fitting.portion import name_block
from trimtab.conversation import History
from trimtab.conversation.pairing import Pairing, open_calls, pair
from trimtab.conversation.transcript import last_turn_of
from trimtab.conversation.units import members
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Kind, Structure

__all__ = ["Bonds", "bonds_of", "by_block", "starts_of"]

T = TypeVar("T")


class Bonds:
    """What belongs together across blocks, by position in the whole request."""

    __slots__ = ("answered", "answers", "held", "units")

    def __init__(self) -> None:
        self.units: list[frozenset[int]] = []
        """Members of each unit that has some in two blocks or more."""
        self.answered: list[tuple[int, str]] = []
        """(message, call id) of calls whose result stands in another block."""
        self.answers: list[tuple[int, str]] = []
        """(message, call id) of those results."""
        self.held: set[int] = set()
        """Members of those units whose results are not all there yet: none of them may leave."""


def bonds_of(
    histories: Sequence[History], names: Sequence[str], *, pending_calls: Collection[str] = ()
) -> Bonds:
    """Find the units that span blocks; `histories` in the order of the request.

    The largest block is read only if another one has a call or a result, or is bound to its neighbour.

    Raises:
        ConfigurationError: A result stands in a block before that of its call.
    """
    found = Bonds()
    by_size = sorted(range(len(histories)), key=lambda at: len(histories[at]))
    for at in by_size[:-1]:
        _read(histories[at], names[at])
    starts = starts_of(histories)
    bound = _bound_borders(histories, names)
    if not bound and not any(_has_tools(histories[at].structure) for at in by_size[:-1]):
        return found
    _read(histories[by_size[-1]], names[by_size[-1]])
    if not bound and sum(_has_tools(history.structure) for history in histories) < 2:
        return found
    whole = _join(histories, starts)
    whole.bound.update(bound)
    pairing = pair(whole, range(whole.count))

    def block_of(index: int) -> int:
        return bisect_right(starts, index) - 1

    def kind_of(index: int) -> Kind:
        at = block_of(index)
        return histories[at].kind(index - starts[at])

    _check_order(whole, pairing, block_of, names)
    for index, owners in pairing.owner.items():
        for (call_id, _), owner in zip(whole.answers[index], owners, strict=True):
            if owner is not None and block_of(owner) != block_of(index):
                found.answered.append((owner, call_id))
                found.answers.append((index, call_id))
    if found.answered or bound:
        # What answers calls of two blocks stays or leaves whole, and with it all whose results it holds.
        apart = {index for index, _ in found.answers}
        groups = (group.indices for group in members(whole, pairing, whole=apart))
        found.units = [frozenset(one) for one in groups if len({block_of(index) for index in one}) > 1]
        last_turn = last_turn_of(whole.count, kind_of, whole.bound.__contains__)
        calls = open_calls(pairing, last_turn=last_turn, pending_calls=pending_calls)
        waiting = {index for index, _ in calls}
        found.held.update(*(unit for unit in found.units if not unit.isdisjoint(waiting)))
    return found


def _read(history: History, name: str) -> None:
    try:
        history.read(0)
    except FormatError as error:
        name_block(error, name)
        raise


def _bound_borders(histories: Sequence[History], names: Sequence[str]) -> list[int]:
    """List the last messages of blocks that stay only together with the first of the next block."""
    if not any(history.format.rules.binds_messages for history in histories):
        return []
    filled = [at for at, history in enumerate(histories) if history.count]
    starts, bound = starts_of(histories), list[int]()
    for before, after in pairwise(filled):
        for at, index in ((before, len(histories[before]) - 1), (after, 0)):
            try:
                histories[at].kind(index)  # which makes a dict of an entry that is none
            except FormatError as error:
                name_block(error, names[at])
                raise
        columns = Structure(2)
        meeting = [histories[before].messages[-1], histories[after].messages[0]]
        histories[before].format.scan(meeting, 0, 2, columns)
        if 0 in columns.bound:
            bound.append(starts[after] - 1)
    return bound


def _has_tools(structure: Structure) -> bool:
    return bool(structure.calls or structure.answers)


def starts_of(of: Sequence[Sized]) -> list[int]:
    """Return where each begins if they stand behind each other."""
    return list(accumulate(map(len, of), initial=0))[:-1]


def _join(histories: Sequence[History], starts: Sequence[int]) -> Structure:
    """Lay the columns of all blocks behind each other."""
    whole = Structure(sum(map(len, histories)))
    for history, start in zip(histories, starts, strict=True):
        one = history.structure
        whole.calls.update({start + index: ids for index, ids in one.calls.items()})
        whole.answers.update({start + index: found for index, found in one.answers.items()})
        whole.loose.update({start + index: parts for index, parts in one.loose.items()})
        whole.bound.update(start + index for index in one.bound)
        whole.references.update(start + index for index in one.references)
    return whole


def _check_order(
    whole: Structure, pairing: Pairing, block_of: Callable[[int], int], names: Sequence[str]
) -> None:
    """Refuse a result whose call stands in a later block, and waits there for one."""
    calls = {call_id: index for index, call_id in pairing.unanswered}
    for index, owners in pairing.owner.items():
        for (call_id, _), owner in zip(whole.answers[index], owners, strict=True):
            later = calls.get(call_id, -1) if owner is None else -1
            if later >= 0 and block_of(later) > block_of(index):
                result, call = names[block_of(index)], names[block_of(later)]
                raise ConfigurationError(
                    f"block {result!r} holds the result of call {call_id!r} and comes before block {call!r},"
                    " which makes the call: set a later position, or add it later"
                )


def by_block(starts: Sequence[int], found: Iterable[tuple[int, T]]) -> dict[int, list[tuple[int, T]]]:
    """Sort (message, value) by block, each message by its position in the block."""
    sorted_out: dict[int, list[tuple[int, T]]] = {}
    for index, value in found:
        at = bisect_right(starts, index) - 1
        sorted_out.setdefault(at, []).append((index - starts[at], value))
    return sorted_out
