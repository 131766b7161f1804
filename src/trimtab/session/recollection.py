"""What is recalled for a question: units of the log, and the one message that shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from trimtab.formats import Dict, OriginName
from trimtab.formats.origin import Origins, from_attribute
from trimtab.session.messages import RECALL_TAG, MessageReader
from trimtab.session.state import Members
from trimtab.stores import Event


class RecalledUnit(NamedTuple):
    """Messages of the log that belong together, and how they are shown."""

    members: Members
    text: str
    origins: Origins
    """The origins of its content."""


class Recalled(NamedTuple):
    """What a view shows of what was found."""

    message: Dict
    tokens: int
    versions: Members
    """Versions of the messages in it, ascending."""


@dataclass(slots=True, kw_only=True)
class Recollection:
    """What was found for a question."""

    before: int
    """Version of the message that it precedes."""
    units: tuple[RecalledUnit, ...] = ()
    """The best first."""
    error: str | None = None
    """Why the ranker's scores were not used, if it failed."""
    _chosen: tuple[object, Recalled | None] = field(default=(None, None))
    """What was chosen last, and among what."""

    def choose(self, reader: MessageReader, limit_tokens: int, seen: Collection[int]) -> Recalled | None:
        """Choose the best of the units that fit, but for those a view shows anyway; None if none does."""
        units = [unit for unit in self.units if unit.members[0] not in seen]
        key = (limit_tokens, [unit.members for unit in units])
        if self._chosen[0] != key:
            self._chosen = (key, compose(reader, choose(reader, units, limit_tokens), limit_tokens))
        return self._chosen[1]


_MOST_REST = 63
"""Number of questions for which a repeatedly failing ranker is not called."""


@dataclass(slots=True)
class RankerFailures:
    """How often a ranker failed in a row, and for how many questions it is not called (SPEC E7)."""

    count: int = 0
    rest: int = 0
    last: str | None = None
    """What was wrong."""

    def rests(self) -> bool:
        """Tell whether the ranker is not asked this time; one question less remains then."""
        self.rest -= self.rest > 0
        return self.rest > 0

    def note(self, error: str) -> str:
        """Take note of a failure: one question is passed over, then three, seven, and so on."""
        self.count += 1
        self.rest = min(2**self.count, _MOST_REST + 1)
        self.last = error
        return error


def unit_text(reader: MessageReader, events: Iterable[Event]) -> str:
    """Write messages for reading, escaped; all lines but the first of each begin with a space.

    So that nothing a message says can look like the beginning of another one.
    """
    written = (
        _say_origin(event) + reader.format.transcript(reader.clamp(event.message, event.id))
        for event in events
    )
    return "\n".join(escape("\n ".join(text.splitlines()), quote=False) for text in written)


def _say_origin(event: Event) -> str:
    """Say in front of a message whose words they are, where the host said that they are not its role's."""
    return f"[{event.data['origin']}] " if event.data.get("origin") else ""


def origins_of(reader: MessageReader, events: Iterable[Event]) -> Origins:
    """Tell who said what messages of the log hold."""
    return frozenset[OriginName]().union(*(reader.origins(event.data) for event in events))


def write(reader: MessageReader, units: Iterable[RecalledUnit]) -> Dict:
    """Write units as one message, marked as earlier text, in the order of the log."""
    listed = sorted(units)
    count = sum(len(unit.members) for unit in listed)
    of = f"{count} earlier message{'' if count == 1 else 's'}"
    whose = from_attribute(frozenset[OriginName]().union(*(unit.origins for unit in listed)))
    body = "\n".join(unit.text for unit in listed)
    # The user's, as results without their calls are: no role has less say, and every form takes it.
    mark = f'<{RECALL_TAG} of="{of}"{whose} by="trimtab">'
    return reader.format.message("user", [f"{mark}\n{body}\n</{RECALL_TAG}>"])


def choose(reader: MessageReader, units: Iterable[RecalledUnit], limit_tokens: int) -> list[RecalledUnit]:
    """Take the best units while they fit; one that does not is passed over."""
    around = reader.tokens(write(reader, ()))
    taken, left = list[RecalledUnit](), limit_tokens - around
    for unit in units:
        if left <= 0:
            break
        tokens = reader.tokens(write(reader, (unit,))) - around
        if tokens <= left:
            taken.append(unit)
            left -= tokens
    return taken


def compose(reader: MessageReader, units: Sequence[RecalledUnit], limit_tokens: int) -> Recalled | None:
    """Write units as one message; the last leave while it does not fit: sizes do not quite add up."""
    for count in range(len(units), 0, -1):
        message = write(reader, units[:count])
        tokens = reader.tokens(message)
        if tokens <= limit_tokens:
            versions = sorted(version for unit in units[:count] for version in unit.members)
            return Recalled(message, tokens, tuple(versions))
    return None


def recalled_data(question: int, made: Recollection) -> dict[str, Any]:
    """Write what was found as an event's data: which messages, and no word of them."""
    data: dict[str, Any] = {
        "question": question,
        "before": made.before,
        "units": [list(unit.members) for unit in made.units],
    }
    return data if made.error is None else {**data, "error": made.error}
