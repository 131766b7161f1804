"""Whom messages are from and what belongs together: the columns that a wire form fills while it reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from trimtab.formats.values import Dict, entry_of

Kind = Literal["system", "user", "assistant", "tool", "other"]
"""The author of a message, whatever the wire form names it.

`user` is something the user wrote; a message with only tool results is `tool`, even if the wire form gives it
the role "user". `system` includes "developer".
"""

Step = Literal["thinks", "speaks", "answers", ""]
"""The place of a message in its turn of the model.

The model's message, with or without thinking at its beginning; a message with results of its calls; any
other.
"""


class Thinking(NamedTuple):
    """What a model requires of thinking that is sent back to it.

    Args:
        leads: Whether the last turn of the model has to begin with thinking if it goes on from results; "" if
            not.
        bound: Whether thinking is refused once anything before it has changed.
    """

    leads: Literal["", "maybe", "surely"] = ""
    bound: bool = False


class Said(NamedTuple):
    """A message of the model's."""

    at: int
    thinks: bool
    """It begins with thinking."""


def model_messages(steps: Iterable[tuple[int, Step]], /, *, answered: bool = False) -> Iterator[Said]:
    """Yield the model's messages of the turn in which it is to go on from results, from the newest back.

    Results join what the model says before and behind them to one turn, as do words of the user's beside
    them; what the model says with nothing between is one, too.

    Args:
        steps: Positions and steps of messages, the newest first; read no further than the turn goes.
        answered: Whether results of the newest stand elsewhere, behind it.
    """
    behind = False
    for index, step in steps:
        if step in ("thinks", "speaks"):
            if not answered:
                return
            behind = True
            yield Said(index, step == "thinks")
        else:
            answered = (answered and not behind) or step == "answers"
            behind = False


def head_of_turn(steps: Iterable[tuple[int, Step]], /) -> Said | None:
    """Return the first message of the model's in that turn; None where it is not to go on from results."""
    said = deque(model_messages(steps), maxlen=1)
    return said[0] if said else None


def lacks_thinking(messages: Sequence[Any], step: Callable[[Any], Step]) -> bool:
    """Tell whether the model is to go on with a turn that does not begin with thinking.

    Args:
        messages: The conversation.
        step: Says what a message is to its turn.
    """
    head = head_of_turn((at, step(messages[at])) for at in range(len(messages) - 1, -1, -1))
    return head is not None and not head.thinks


UNNAMED = "call #"
"""Stands, with a number, in place of the id a call does not have: the first of its message is "call #1"."""


_Matches = TypeVar("_Matches", bound=Callable[..., bool])


def told_by(*keys: str) -> Callable[[_Matches], _Matches]:
    """Say by which keys a form's `matches` tells its messages.

    It is False of every message that has none of them, and no parts in a list. `detect` goes by that. A form
    that is derived from this one and has a `matches` of its own has promised nothing.

    Args:
        keys: Keys of a message.
    """

    def promise(matches: _Matches) -> _Matches:
        vars(matches)["keys"] = frozenset(keys)
        return matches

    return promise


class Structure:
    """What a format read from a conversation's messages: columns by message index.

    The columns are sparse: what nobody asks about costs nothing, however many messages there are.

    Args:
        count: Number of messages.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        """Number of messages."""
        self.kinds: dict[int, Kind] = {}
        """Kind of each message that was scanned, or whose kind was asked for."""
        self.calls: dict[int, tuple[str, ...]] = {}
        """Ids of the calls a message makes, in its order; only messages that make any. See `UNNAMED`."""
        self.answers: dict[int, tuple[tuple[str, int | None], ...]] = {}
        """(call id, part index) of the results a message carries; part None: the whole message.

        A result without an id has "" until it is paired.
        """
        self.loose: dict[int, tuple[int, ...]] = {}
        """Parts that answer no call, in messages where other parts do; they form a unit of their own."""
        self.bound: set[int] = set()
        """Messages that stay only together with the message after them (a reasoning item)."""
        self.needs: dict[int, int] = {}
        """Messages that may not stay without another one, of those bound; found where all is read at once."""
        self.thought: set[int] = set()
        """Messages of the last turn in front of one that goes on with their thinking, and does not begin so.

        They are units of their own: what remains of the turn needs that thinking, and not all behind it.
        """
        self.dangling: set[int] = set()
        """Messages that mean nothing where they are, since what they would be bound to is not there."""
        self.references: set[int] = set()
        """Messages that only name one that is stored: each may be the call of a result without one."""
        self.elsewhere = False
        """Whether messages refer to stored ones that cannot be read: calls may be among those."""
        self.kept: set[int] = set()
        """Messages the conversation means nothing without: those that stand for what was before them."""
        self.replaced: dict[int, Any] = {}
        """Entries that were no dict, as they were; the list read holds their dict form now."""
        self.kinds_back: list[Kind] = []
        """While reading back: kinds of the messages read, the newest first; a form may leave it empty."""
        self.callers: set[int] = set()
        """While reading back, where kinds are noted: messages that call; of the odd ones not all."""
        self.behind: list[str] = []
        """While reading back: ids of the results read since the last message that is no result."""
        self.odd: set[int] = set()
        """While reading back: messages around which only `scan` can tell what belongs together."""
        self.unanswered: set[int] = set()
        """While reading back: messages with a call that no result directly behind them answers."""
        self.foreign = False
        """While reading back: whether a message looked like one of another wire form."""
        self.tied = -1
        """While reading back: the oldest message from which on a row of the model's messages was bound."""

    def read_as_dict(self, messages: list[Any], index: int, /) -> Dict:
        """Return an entry as a dict; any other entry is replaced, and kept in `replaced`.

        Args:
            messages: The messages; the list is changed.
            index: Index of the entry.

        Raises:
            FormatError: The entry is not a message; `.path` names it.
        """
        message = messages[index]
        if type(message) is dict:
            return message
        made = entry_of(messages, index)
        self.replaced.setdefault(index, message)
        messages[index] = made
        return made

    def parts_of(self, index: int, /) -> set[int]:
        """List the parts of a message that are kept or evicted separately, if any.

        Args:
            index: Which message.
        """
        parts = {part for _, part in self.answers.get(index, ()) if part is not None}
        return parts.union(self.loose.get(index, ()))

    def close(self, ids: Sequence[str], index: int, /) -> None:
        """Match the results read last with the calls of the message at `index`.

        Args:
            ids: Ids of the calls, in order.
            index: Index of the message that makes them.
        """
        behind = self.behind
        if len(behind) != 1 or len(ids) != 1 or behind[0] != ids[0]:
            answered = set(behind)
            if len(answered) != len(behind) or not answered.issubset(ids):
                self.odd.add(index)
            if len(behind) < len(ids) or not answered.issuperset(ids):
                self.unanswered.add(index)
        behind.clear()


def complete_ids(ids: Iterable[str | None], /) -> Iterator[str]:
    """Yield the ids of a message's calls, each that is missing or empty as a number of its own."""
    unnamed = 0
    for call_id in ids:
        if call_id:
            yield call_id
        else:
            unnamed += 1
            yield f"{UNNAMED}{unnamed}"
