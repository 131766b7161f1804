"""`TrimContext`: what an `on_trim` callback sees, and how it takes messages out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from trimtab.budget import Budget

if TYPE_CHECKING:
    from trimtab.counting._sizes import Sizes
    from trimtab.report import Reason
    from trimtab.units import History, Unit

__all__ = ["MessageElement", "OnTrim", "TrimContext"]


class MessageElement(Mapping[str, Any]):
    """One message as a callback sees it: `seq`, `message`, `tokens`, `role`.

    Reads as attributes and as a mapping; `tokens` is counted when it is first read.
    """

    __slots__ = ("_context", "seq")

    def __init__(self, context: TrimContext, seq: int) -> None:
        self._context = context
        self.seq = seq
        """Position among the messages given to the call, from 0; it never shifts."""

    @property
    def message(self) -> Any:
        """The caller's own message object."""
        return self._context._history.originals[self.seq + self._context._lead]

    @property
    def tokens(self) -> int:
        """Tokens of the message; a share of the whole if the counter is a black box."""
        return self._context._sizes.of(self.seq + self._context._lead)

    @property
    def role(self) -> str:
        """The message's own role."""
        place = self.seq + self._context._lead
        kind = self._context._history.kind(place)
        return str(self._context._history.messages[place].get("role") or kind)

    def __getitem__(self, key: str) -> Any:
        if key in ("seq", "message", "tokens", "role"):
            return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("seq", "message", "tokens", "role"))

    def __len__(self) -> int:
        return 4


class TrimContext:
    """The messages of one call, before anything is decided.

    A callback may remove some. Removing acts at once, and adds up. It changes this call only, never
    what is stored.

    Example:
        >>> from trimtab import FixedCounter, fit
        >>> def drop_small_talk(ctx):
        ...     ctx.remove([e.seq for e in ctx.message_elements if e.message["content"] == "hm"])
        >>> messages = [{"role": "user", "content": text} for text in ("hi", "hm", "bye")]
        >>> fitted = fit(messages, budget=99, counter=FixedCounter(per_message=1), on_trim=drop_small_talk)
        >>> [message["content"] for message in fitted.messages]
        ['hi', 'bye']
    """

    __slots__ = ("_gone", "_history", "_lead", "_members", "_removed", "_sizes", "budget", "limit_tokens")

    def __init__(
        self, history: History, sizes: Sizes, *, budget: Budget | None, limit_tokens: int, lead: int = 0
    ) -> None:
        self._history = history
        self._sizes = sizes
        self._lead = lead
        self._removed: dict[int, Reason] = {}
        self._gone: set[int] = set()
        self._members: dict[int, list[Unit]] | None = None
        self.budget = budget
        """The budget of the call; None if there is none."""
        self.limit_tokens = limit_tokens
        """The block's cap, or the input room."""

    @property
    def message_elements(self) -> list[MessageElement]:
        """The messages still there, oldest first; a fresh list."""
        return [
            MessageElement(self, index - self._lead)
            for index in range(self._lead, len(self._history))
            if index not in self._removed
        ]

    @property
    def messages(self) -> list[Any]:
        """The caller's message objects still there, oldest first; a fresh list."""
        return [element.message for element in self.message_elements]

    @property
    def total_tokens(self) -> int:
        """Tokens of the messages still there; counts each of them once."""
        return sum(element.tokens for element in self.message_elements)

    def remove(self, seqs: int | Iterable[int] | None, /) -> Self:
        """Take messages out of this call, and what cannot be without them.

        Args:
            seqs: One or more `seq` numbers; unknown ones and None are ignored. Pinned messages may go;
                a call whose result can still come stays.
        """
        if seqs is None:
            return self
        for seq in [seqs] if isinstance(seqs, int) else seqs:
            index = seq + self._lead
            if not isinstance(seq, bool) and seq >= 0 and index in self._units_by_message:
                self._remove(index)
        return self

    def _remove(self, index: int) -> None:
        for unit in self._units_by_message[index]:
            if unit.open:
                continue
            if id(unit) not in self._gone:
                self._gone.add(id(unit))
                for member in unit.indices:
                    self._removed.setdefault(member, "unit_of_removed")
            self._removed[index] = "callback"

    @property
    def _units_by_message(self) -> dict[int, list[Unit]]:
        if self._members is None:
            self._members = {}
            for unit in self._history.units:
                for index in unit.indices:
                    if index >= self._lead:
                        self._members.setdefault(index, []).append(unit)
        return self._members

    @property
    def removed(self) -> dict[int, Reason]:
        """Reason by position of every message taken out so far."""
        return dict(self._removed)

    @property
    def remaining(self) -> list[Unit]:
        """Units still there, in order."""
        return [unit for unit in self._history.units if id(unit) not in self._gone]


OnTrim = Callable[[TrimContext], object]
"""A callback of `fit`; what it returns is ignored."""
