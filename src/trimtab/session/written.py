"""What results take as a view writes them: as `compact` says, without what earlier ones have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from trimtab.formats import Dict, Path, mapping_of
from trimtab.session.messages import MessageReader, SessionUnit

if TYPE_CHECKING:
    from trimtab.compact import Compact

_Savings = dict[int, tuple[Dict, Mapping[Path, str], int]]


class WrittenSizes:
    """Tells by how much results of a session are shorter as a view writes them.

    A state adds up messages as they are, since what a result may refer to is known of a view alone.

    Args:
        reader: Reads and measures the messages.
        compact: How results are written.
    """

    def __init__(self, reader: MessageReader, compact: Compact) -> None:
        self._reader = reader
        self._compact = compact
        self._savings: _Savings = {}
        """By version: the message, what its texts were written as last, and what that saved."""
        self._latest: tuple[tuple[object, ...], int] = ((), 0)

    def saved_tokens(self, units: Iterable[SessionUnit], pins: Collection[int]) -> int:
        """Return the tokens that a view of these units does not take.

        Args:
            units: The units.
            pins: Versions of messages that are shown as they are.
        """
        listed = sorted((row for unit in units for row in _rows(unit)), key=itemgetter(0))
        key = (*((version, id(message)) for version, message, _ in listed), *sorted(pins))
        if self._latest[0] != key:
            self._latest = key, self._saved_by(listed, pins)
        return self._latest[1]

    def _saved_by(self, listed: list[tuple[int, Dict, int]], pins: Collection[int]) -> int:
        from trimtab.compact.windows import Window, chat_key, write_results  # not above: as `compact` is

        reader, compact = self._reader, self._compact
        messages = [message for _, message, _ in listed]
        window = Window(
            fixed=frozenset([at for at, (version, _, _) in enumerate(listed) if version in pins]),
            unread=reader.format.unread(messages),
        )
        key = chat_key(reader.format, compact, (0, self))
        savings: _Savings = {}
        for at, texts in write_results(reader.format, compact, messages, window, key).edits().items():
            version, message, tokens = listed[at]
            known = self._savings.get(version)
            if known is None or known[0] is not message or known[1] != texts:
                written = mapping_of(reader.format.with_texts(message, texts))
                known = message, texts, tokens - reader.lasting_tokens(written)
            savings[version] = known
        self._savings = savings
        return sum(saved for _, _, saved in savings.values())


def _rows(unit: SessionUnit) -> Iterable[tuple[int, Dict, int]]:
    return zip(unit.members, unit.members.values(), unit.sizes, strict=True)
