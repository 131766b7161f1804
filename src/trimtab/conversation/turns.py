"""The model's last turn: where it has to begin with thinking, what of it opens what remains of it.

"When `thinking` is enabled, a final `assistant` message must start with a thinking block": a model that
thinks once and then calls tools has one message that may open what remains of the turn.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.formats import Dict, Step, mapping_of
from trimtab.formats.structure import Said, model_messages

__all__ = ["LastTurn", "turn_of"]


def turn_of(messages: Sequence[Any], step: Callable[[Dict], Step], /) -> list[Said]:
    """List the model's messages of that turn, the newest first."""
    places = range(len(messages) - 1, -1, -1)
    return list(model_messages((at, step(mapping_of(messages[at]))) for at in places))


class LastTurn:
    """That turn of a conversation, read from the newest message back and no further than it is asked about.

    Args:
        messages: The conversation.
        step: Says what a message is to its turn.
        answered: Whether results of the newest stand elsewhere, behind it.
    """

    def __init__(
        self, messages: Sequence[Any], step: Callable[[Dict], Step], *, answered: bool = False
    ) -> None:
        places = range(len(messages) - 1, -1, -1)
        steps: Iterator[tuple[int, Step]] = ((at, step(mapping_of(messages[at]))) for at in places)
        self._row = model_messages(steps, answered=answered)
        self._said: list[int] = []
        """What was read, the newest first: positions with the sign turned, so that they ascend."""
        self._thinking: list[int] = []
        """Of these, those that begin with thinking."""

    def _read(self) -> bool:
        """Read one more; False if the turn has no more."""
        said = next(self._row, None)
        if said is not None:
            self._said.append(-said.at)
            if said.thinks:
                self._thinking.append(-said.at)
        return said is not None

    def holds(self, index: int, /) -> bool:
        """Tell whether the turn has a message of the model's at or before one.

        Args:
            index: Of a message.
        """
        while not self._said or self._said[-1] < -index:
            if not self._read():
                return False
        return True

    def thinks(self, index: int, /) -> bool:
        """Tell whether a message is one of those read that begin with thinking.

        Args:
            index: Of a message.
        """
        at = bisect_left(self._thinking, -index)
        return at < len(self._thinking) and self._thinking[at] == -index

    def thinking_for(self, index: int, /) -> int | None:
        """Find what has to stay for the rest of the turn, from a message on, to begin with thinking.

        Args:
            index: Of a message.

        Returns:
            The nearest message before that begins so; None if none is needed, or there is none.
        """
        if not self.holds(index):
            return None
        first = self._said[bisect_right(self._said, -index) - 1] if self._said[0] <= -index else None
        at = bisect_right(self._thinking, -index)
        if first is None or (at and self._thinking[at - 1] == first):
            return None
        while at == len(self._thinking):
            if not self._read():
                return None
        return -self._thinking[at]
