"""What results take less as a view writes them: as `compact` says, without what earlier ones have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

from trimtab._shared.memory import with_latest
from trimtab.compact import Compact
from trimtab.compact.windows import Window, chat_key, write_results
from trimtab.formats import Dict, Path, mapping_of
from trimtab.session.messages import MessageReader, SessionUnit

__all__ = ["Savings"]

_MOST_ASKED = 3
"""Sets of messages that one change of a session asks about by turns: recent, in view, and those that stay."""


class Savings:
    """Tells by how much results of a session are shorter as a view writes them.

    A state adds up messages as they are, since what a result may refer to is known of a view alone.

    Args:
        reader: Reads and measures the messages.
        compact: How results are written.
    """

    def __init__(self, reader: MessageReader, compact: Compact) -> None:
        self._reader = reader
        self._compact = compact
        self._known: dict[int, tuple[Dict, Mapping[Path, str], int]] = {}
        """By version: the message, what its texts were written as last, and what that saved."""
        self._latest: dict[tuple[object, ...], tuple[int, object]] = {}
        """What was found last, by what was asked: beside the messages, whose identities are part of that."""

    def tokens(
        self, units: Iterable[SessionUnit], *, front: Sequence[Dict] = (), pins: Collection[int] = ()
    ) -> int:
        """Return the tokens that a view does not take; below 0 where it takes more.

        Args:
            units: What is in view.
            front: Messages before these, which are shown as they are: later results may refer to them.
            pins: Versions of messages that are shown as they are.
        """
        rows = sorted((row for unit in units for row in unit.members.items()), key=itemgetter(0))
        key = (*map(id, front), *((version, id(message)) for version, message in rows), *sorted(pins))
        found = self._latest.get(key)
        if found is None:
            found = self._count(rows, front, pins), (rows, list(front))
            self._latest = with_latest(self._latest, key, found, most=_MOST_ASKED)
        return found[0]

    def _count(self, rows: list[tuple[int, Dict]], front: Sequence[Dict], pins: Collection[int]) -> int:
        reader, compact, start = self._reader, self._compact, len(front)
        messages = [*front, *(message for _, message in rows)]
        fixed = {*range(start), *(at for at, (version, _) in enumerate(rows, start) if version in pins)}
        window = Window(fixed=frozenset(fixed), unread=reader.format.unread(messages))
        written = write_results(
            reader.format, compact, messages, window, chat_key(reader.format, compact, (start, self))
        )
        known: dict[int, tuple[Dict, Mapping[Path, str], int]] = {}
        for at, texts in written.edits().items():
            version, message = rows[at - start]
            found = self._known.get(version)
            if found is None or found[0] is not message or found[1] != texts:
                after = mapping_of(reader.format.with_texts(message, texts))
                found = message, texts, reader.lasting_tokens(message) - reader.lasting_tokens(after)
            known[version] = found
        self._known = known
        return sum(saved for _, _, saved in known.values())
