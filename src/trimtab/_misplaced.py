"""Messages that stand where the provider does not take them, as they came or after a repair."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from trimtab._grouping import Group, members
from trimtab._pairing import last_turn_of, open_calls, pair
from trimtab.formats import Dict, Format, Structure, mapping_of

__all__ = ["Placed", "Placing", "order_faults"]


class Placed(NamedTuple):
    """A message of the repaired conversation, and where it came from."""

    position: int
    """Position in the input; two entries share one where parts of a message moved away."""
    message: Any


def order_faults(format: Format, messages: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Find messages the provider does not take behind the one before them, and its words.

    Each is passed over from then on: what follows is looked at as if it were not there.
    """
    if not format.rules.ordered:
        return
    previous: Dict | None = None
    for index, message in enumerate(messages):
        entry = mapping_of(message)
        if previous is None and format.kind(entry) == "system":
            continue
        words = format.order_fault(previous, entry)
        if words is None:
            previous = entry
        else:
            yield index, words


class Placing:
    """One pass over a conversation that takes units out wherever a message of theirs may not stand.

    Args:
        format: The wire form.
        result: The conversation.
        pending_calls: Ids of calls whose results are still to come.
        lead: Whether the first message has to be one that may come first.
    """

    def __init__(
        self, format: Format, result: Sequence[Placed], pending_calls: Collection[str], *, lead: bool
    ) -> None:
        self._format = format
        self._positions = [placed.position for placed in result]
        self._entries = [mapping_of(placed.message) for placed in result]
        self._lead = lead
        count = len(result)
        self.structure = Structure(count)
        format.scan(self._entries, 0, count, self.structure)
        pairing = pair(self.structure, range(count))
        self._owners: dict[int, list[Group]] = {}
        for group in members(self.structure, pairing):
            for index in group.indices:
                self._owners.setdefault(index, []).append(group)
        last_turn = last_turn_of(count, self.structure.kinds.get, self.structure.bound.__contains__)
        waiting = open_calls(pairing, last_turn=last_turn, pending_calls=pending_calls)
        self._waiting = {index for index, _ in waiting}
        self._gone: dict[int, Group] = {}

    @property
    def leaving(self) -> list[Group]:
        """The units that leave."""
        return list(self._gone.values())

    def run(self) -> bool:
        """Look at each message behind what stays; tell whether what was looked at has to be again."""
        again, before = False, -1
        for index, entry in enumerate(self._entries):
            if before < 0 and self._format.kind(entry) == "system":
                continue
            owners = self._owners[index]
            if all(id(group) in self._gone for group in owners):
                continue
            if self._stands(entry, index, before):
                before = index
                continue
            if before >= 0 and index in self._waiting:  # what waits for a result stays; see `open_calls`
                owners, before = self._owners[before], index
            self._gone.update((id(group), group) for group in owners)
            again = again or any(min(group.indices) < index for group in owners)
        return again

    def _stands(self, entry: Dict, index: int, before: int) -> bool:
        if before < 0 and (not self._lead or index in self.structure.kept):
            return True
        previous = None if before < 0 else self._entries[before]
        parted = before >= 0 and self._positions[index] - self._positions[before] not in (0, 1)
        return self._format.order_fault(previous, entry, parted=parted) is None
