"""`TrimContext`: what an `on_trim` callback sees, and how it takes messages out."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from trimtab._shared.checks import move_to_source, whole_of
from trimtab.budget import Budget
from trimtab.errors import ConfigurationError, CountingError, FormatError

if TYPE_CHECKING:
    from trimtab.conversation import History, Unit
    from trimtab.counting.sizes import Sizes
    from trimtab.report import Reason

__all__ = ["MessageElement", "OnTrim", "TrimContext", "let_trim", "view_of_block"]


class MessageElement(Mapping[str, Any]):
    """One message as a callback sees it: `seq`, `message`, `tokens`, `role`.

    Readable as attributes and as a mapping; `tokens` is counted when it is first read.
    """

    __slots__ = ("_context", "_place", "seq")

    def __init__(self, context: TrimContext, place: int) -> None:
        self._context = context
        self._place = place
        self.seq = context._seq_of(place)
        """Position among the messages given to the call, from 0; nothing shifts it, no repair either."""

    @property
    def message(self) -> Any:
        """The caller's own message object; a copy if a repair edited it."""
        return self._context._history.original(self._place)

    @property
    def tokens(self) -> int:
        """Tokens of the message; a share of the whole if the counter is a black box."""
        return self._context._tokens_of(self._place)

    @property
    def role(self) -> str:
        """The message's own role."""
        kind = self._context._history.kind(self._place)
        return str(self._context._history.messages[self._place].get("role") or kind)

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

    A callback may remove messages. Each removal takes effect at once. It changes this call only, never the
    stored messages. After a repair, removed messages are missing, moved messages are in their new place, and
    each `seq` is still the position in the input. Two elements have the same `seq` if parts of one message
    were moved apart; removing that number removes both.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> def drop_small_talk(ctx):
        ...     ctx.remove([e.seq for e in ctx.message_elements if e.message["content"] == "hm"])
        >>> messages = [{"role": "user", "content": text} for text in ("hi", "hm", "bye")]
        >>> fitted = fit(messages, budget=99, counter=FixedCounter(per_message=1), on_trim=drop_small_talk)
        >>> [message["content"] for message in fitted.messages]
        ['hi', 'bye']
    """

    __slots__ = (
        "_budget",
        "_by_seq",
        "_gone",
        "_history",
        "_lead",
        "_limit_tokens",
        "_members",
        "_origin",
        "_refused",
        "_removed",
        "_sizes",
        "_stop",
        "_whole",
    )

    def __init__(
        self,
        history: History,
        sizes: Sizes,
        *,
        budget: Budget | None,
        limit_tokens: int,
        lead: int = 0,
        stop: int | None = None,
        origin: Sequence[int] | None = None,
    ) -> None:
        self._history = history
        self._sizes = sizes
        self._lead = lead
        self._stop = history.count if stop is None else stop
        self._origin = origin
        self._by_seq: dict[int, list[int]] | None = None
        self._removed: dict[int, Reason] = {}
        self._gone: set[int] = set()
        self._members: dict[int, list[Unit]] | None = None
        self._whole: TrimContext | None = None
        self._refused: FormatError | None = None
        self._budget = budget
        self._limit_tokens = limit_tokens

    def __setattr__(self, name: str, value: object) -> None:
        """Set what is trimtab's own; what a callback reads tells, and is not told."""
        if not name.startswith("_"):
            raise ConfigurationError(
                f"{name} of a TrimContext cannot be set: remove messages with remove(seq), and pass another"
                " budget to the call itself"
            )
        object.__setattr__(self, name, value)

    @property
    def budget(self) -> Budget | None:
        """The budget of the call; None if there is none."""
        return self._budget

    @property
    def limit_tokens(self) -> int:
        """The block's cap, or the input room; `sys.maxsize` if there is no budget."""
        return self._limit_tokens

    @property
    def message_elements(self) -> list[MessageElement]:
        """The remaining messages, oldest first; a new list."""
        self._look_over()
        return [
            MessageElement(self, index)
            for index in range(self._lead, self._stop)
            if index not in self._removed
        ]

    @property
    def messages(self) -> list[Any]:
        """The caller's remaining message objects, oldest first; a new list."""
        return [element.message for element in self.message_elements]

    @property
    def total_tokens(self) -> int:
        """Tokens of the remaining messages; counts each of them once."""
        return sum(element.tokens for element in self.message_elements)

    def remove(self, seqs: int | Iterable[int] | None, /) -> Self:
        """Remove messages from this call, with the rest of their units.

        Args:
            seqs: One or more `seq` numbers; None means none, and unknown numbers are ignored.
                Pinned messages may be removed; a call whose result can still come is kept.

        Raises:
            ConfigurationError: The argument is something else, such as a message element instead of its
                `seq`.
        """
        if seqs is None:
            return self
        self._look_over()
        several: Iterable[Any] = (seqs,)
        if isinstance(seqs, Iterable) and whole_of(seqs) is None:
            several = (seqs,) if isinstance(seqs, (str, bytes, Mapping)) else seqs
        for seq in several:
            if (number := whole_of(seq)) is None:
                raise _no_number(seq)
            for place in self._places_of(number):
                self._remove(place)
        return self

    def _look_over(self) -> None:
        """Refuse messages of no wire form before one is shown; a callback that asks for none pays nothing.

        At 10,000 messages the look takes ten times as long as the rest of a fit.
        """
        try:
            self._history.look_over(0)
        except FormatError as error:
            self._refused = error
            move_to_source(error, lead=self._lead, origin=self._origin)
            raise

    def _seq_of(self, place: int) -> int:
        at = place - self._lead
        return at if self._origin is None else self._origin[at]

    def _tokens_of(self, place: int) -> int:
        try:
            return self._sizes.of(place)
        except (CountingError, FormatError) as error:
            move_to_source(error, lead=self._lead, origin=self._origin)
            raise

    def _places_of(self, seq: int) -> list[int]:
        """List the positions in the history of the message with this number; empty if it is unknown."""
        if self._origin is None:
            return [seq + self._lead] if 0 <= seq < self._stop - self._lead else []
        if self._by_seq is None:
            self._by_seq = {}
            for at, position in enumerate(self._origin):
                self._by_seq.setdefault(position, []).append(at + self._lead)
        return self._by_seq.get(seq, [])

    def _remove(self, index: int) -> None:
        for unit in self._members_of_messages[index]:
            if unit.open:
                continue
            if id(unit) not in self._gone:
                self._gone.add(id(unit))
                for member in unit.indices:
                    self._removed.setdefault(member, "unit_of_removed")
            self._removed[index] = "callback"
        if self._sizes.unread and self._sizes.unread.stop in self._removed:
            self._read_without_compaction()

    def _read_without_compaction(self) -> None:
        """Charge for what a compaction stood for that is there no more."""
        there = [at for at in range(len(self._history)) if at not in self._removed]
        unread = self._history.format.unread([self._history.messages[at] for at in there])
        self._sizes.leave_unread(range(there[unread.start], there[unread.stop]) if unread else unread)

    @property
    def _members_of_messages(self) -> dict[int, list[Unit]]:
        if self._whole is not None:
            return self._whole._members_of_messages
        if self._members is None:
            self._members = {}
            for unit in self._history.units:
                for index in unit.indices:
                    if index >= self._lead:
                        self._members.setdefault(index, []).append(unit)
        return self._members

    @property
    def removed(self) -> dict[int, Reason]:
        """Reason of each removal so far, by position."""
        return dict(self._removed)

    @property
    def remaining(self) -> list[Unit]:
        """Remaining units, in order."""
        return [unit for unit in self._history.units if id(unit) not in self._gone]


OnTrim = Callable[[TrimContext], object]
"""A callback of `fit`, a `Context` or one of its blocks; its return value is ignored."""


def _no_number(seq: Any) -> ConfigurationError:
    if isinstance(seq, Mapping):
        return ConfigurationError("remove takes numbers: write element.seq, not the element itself")
    return ConfigurationError(
        f"remove takes the numbers of messages, such as element.seq, not {reprlib.repr(seq)}"
    )


def view_of_block(
    whole: TrimContext, *, start: int, stop: int, limit_tokens: int, origin: Sequence[int] | None = None
) -> TrimContext:
    """Return what the callback of one block sees; it removes from the whole."""
    view = TrimContext(
        whole._history,
        whole._sizes,
        budget=whole.budget,
        limit_tokens=limit_tokens,
        lead=start,
        stop=stop,
        origin=origin,
    )
    view._removed, view._gone, view._whole = whole._removed, whole._gone, whole
    return view


def let_trim(on_trim: OnTrim, context: TrimContext, *, block: str | None) -> None:
    """Call a callback; what it raises goes on, with a note that names the block.

    Args:
        on_trim: The callback.
        context: What it sees.
        block: The block it was given for; None: the whole `Context`.
    """
    try:
        on_trim(context)
    except BaseException as error:
        if error is context._refused:  # it is about a message, and not the callback's
            raise
        error.add_note("raised by on_trim of " + ("the context" if block is None else f"block {block!r}"))
        raise
