"""The sizes of one fit: what is known, what is counted on demand, what a black box says.

`Sizes` belongs to one conversation and one counter. With an additive counter each message is
counted when it is first asked for and never again. A black box is a function of a whole list:
it is asked about lists only, and what a part of one costs is a share of the whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

from trimtab.counting._additive import placed
from trimtab.counting._estimate import EstimateCounter
from trimtab.counting._text import TextCounter
from trimtab.errors import ConfigurationError, ContextError, CountingError
from trimtab.formats import Prices, mapping_of


class Walked(Protocol):
    """A history that can read and count at once (`units.History`)."""

    @property
    def read_from(self) -> int:
        """Oldest message read so far."""
        ...

    def walk(self, start: int, room_tokens: int, sizes: list[int | None], prices: Prices, /) -> int | None:
        """Read and count from what was read last back to `start`, until the room is passed."""
        ...


__all__ = ["Fixed", "Shares", "Sizes", "checked_count", "sizes_for"]


class Fixed:
    """What a request costs beside its messages: system text, tools, output schema, framing."""

    __slots__ = ("extra", "system", "tools")

    def __init__(self, system: Any = None, tools: Any = None, extra: Any = None) -> None:
        self.system = system
        self.tools = tools
        self.extra = extra


class Sizes:
    """Sizes in tokens of a conversation's messages under an additive counter."""

    additive = True

    def __init__(self, counter: Any, messages: list[Any], fixed: Fixed, *, has_system: bool) -> None:
        self.counter = counter
        self.messages = messages
        self.known: list[int | None] = [None] * len(messages)
        """Tokens of each message; None where nobody asked."""
        self.fixed_tokens = _fixed_tokens(counter, fixed, has_system)
        self._fixed = fixed
        self._has_system = has_system
        self._back = getattr(counter, "count_back", None)
        self._own = counter.count_message if isinstance(counter, TextCounter) else None

    @property
    def fixed_parts(self) -> FixedParts:
        """Of the fixed tokens, system text and tools; None where they cannot be told apart."""
        return _fixed_parts(self.counter, self._fixed, self.fixed_tokens, self._has_system)

    def of(self, index: int, /) -> int:
        """Count one message, unless it is known."""
        size = self.known[index]
        if size is None:
            message = self.messages[index]
            # our own counters check themselves
            size = self._own(message) if self._own is not None else self.message(message, index)
            self.known[index] = size
        return size

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Count a message that may not be of the conversation (an edited one)."""
        if type(message) is not dict:
            message = mapping_of(message)
        return checked_count(lambda: self.counter.count_message(message), self.counter, index)

    def back(self, start: int, stop: int, room_tokens: int, /) -> int:
        """Count from `stop - 1` down to `start` until their sum passes `room_tokens`.

        Returns:
            The lowest position counted; `stop` if there was nothing to count.
        """
        if self._back is not None:
            return int(self._back(self.messages, start, stop, room_tokens, self.known))
        index = stop
        while index > start and room_tokens >= 0:
            index -= 1
            room_tokens -= self.of(index)
        return index

    def walk(self, history: Walked, start: int, room_tokens: int, /) -> int | None:
        """Count back from what was read last, reading on the way, until the room is passed.

        Returns:
            The lowest position counted; None if counter or format cannot do both at once.
        """
        prices = getattr(self.counter, "prices", None)
        if prices is None:
            return None
        try:
            return history.walk(start, room_tokens, self.known, prices)
        except CountingError as error:
            at = next(i for i in range(history.read_from - 1, -1, -1) if self.known[i] is None)
            raise placed(error, at) from error.__cause__

    def total(self, start: int, stop: int, /) -> int:
        """Sum messages already counted."""
        return sum(cast("list[int]", self.known[start:stop]))


class Shares(Sizes):
    """Sizes under a counter that is a black box over a list of messages."""

    additive = False

    def __init__(self, counter: Any, messages: list[Any], fixed: Fixed, *, has_system: bool) -> None:
        self.counter = counter
        self.messages = messages
        self.known = [None] * len(messages)
        self.fixed_tokens = 0
        self._back = None
        self._own = None
        self._fixed = fixed
        self._estimate = EstimateCounter()
        self._scale: float | None = None
        self._totals: dict[tuple[int, ...], int] = {}

    @property
    def fixed_parts(self) -> FixedParts:
        """A black box does not say what its parts cost."""
        return FixedParts(None, None)

    def request_tokens(self, messages: Sequence[Any], /) -> int:
        """Ask the black box for the size of a whole request."""
        counter, fixed = self.counter, self._fixed
        whole = getattr(counter, "count_request", None)
        listed = list(messages)
        if whole is not None:
            return checked_count(lambda: whole(listed, fixed.system, fixed.tools), counter, None)
        leading = _leading_message(fixed)
        listed = [leading, *listed] if leading is not None else listed
        count = getattr(counter, "count", counter)
        return checked_count(lambda: count(listed), counter, None)

    def message(self, message: Any, index: int | None = None, /) -> int:
        """Return the share of a message: its estimate, scaled to what the black box said."""
        if self._scale is None:
            estimate = sum(self._estimate.count_message(mapping_of(m)) for m in self.messages)
            self._scale = self.request_tokens(self.messages) / max(1, estimate)
        return round(self._estimate.count_message(mapping_of(message)) * self._scale)

    def split(self, messages: Sequence[Any], total_tokens: int, /) -> list[int]:
        """Share a total among messages by their estimates; the shares add up to it."""
        estimates = [self._estimate.count_message(mapping_of(message)) for message in messages]
        whole, passed, shares = sum(estimates), 0, []
        for estimate in estimates:
            before = passed * total_tokens // whole if whole else 0
            passed += estimate
            shares.append((passed * total_tokens // whole if whole else 0) - before)
        return shares

    def back(self, start: int, stop: int, room_tokens: int, /) -> int:
        """Return `start`: a black box cannot count as it goes."""
        return start


def sizes_for(counter: Any, messages: list[Any], fixed: Fixed, *, has_system: bool) -> Sizes:
    """Make the table of sizes for a counter: additive if it counts single messages."""
    kind = Sizes if hasattr(counter, "count_message") else Shares
    return kind(counter, messages, fixed, has_system=has_system)


def check_counter(counter: Any, /) -> Any:
    """Refuse what cannot count: `len`, an async function, a thing that is no counter.

    Raises:
        ConfigurationError: With what to pass instead.
    """
    if counter is len:
        raise ConfigurationError(
            "counter=len counts messages, not tokens; pass counter_from_text(fn) or a Counter"
        )
    if isinstance(counter, str):  # which has a `count` of its own
        raise ConfigurationError(
            f"counter is the text {counter!r}; pass model={counter!r} or counter_for(...)"
        )
    call = getattr(counter, "count", counter)
    if call is not counter and callable(call) and not _is_async(cast("Hashable", type(counter))):
        return counter
    if inspect.iscoroutinefunction(call):
        raise ConfigurationError(
            f"{_name(counter)} counts asynchronously and fit() does not: pass a counter that answers at once"
        )
    if not callable(call):
        raise ConfigurationError(
            f"counter must have count(messages) or be a function over a list of messages, not {counter!r}"
        )
    return counter


@lru_cache(maxsize=64)
def _is_async(kind: Hashable) -> bool:
    return inspect.iscoroutinefunction(getattr(kind, "count", None))


def counter_name(counter: Any, /) -> str:
    """Name a counter for reports and errors."""
    return _name(counter)


def _name(counter: Any) -> str:
    name = getattr(counter, "name", None) or getattr(counter, "__name__", None)
    return str(name) if name else type(counter).__name__


def _where(index: int | None) -> str:
    return "a request" if index is None else f"message {index}"


def checked_count(call: Callable[[], Any], counter: Any, index: int | None) -> int:
    """Call a counter and insist on a count.

    Raises:
        CountingError: It raised, or answered a bool, a negative number or no integer.
    """
    try:
        answer = call()
    except ContextError:
        raise
    except Exception as error:
        raise CountingError(
            f"counter {_name(counter)} failed on {_where(index)}: {type(error).__name__}: {error}",
            counter=_name(counter),
            index=index,
        ) from error
    if isinstance(answer, bool) or not isinstance(answer, int) or answer < 0:
        raise CountingError(
            f"counter {_name(counter)} answered {answer!r} for {_where(index)}; a count is an integer >= 0",
            counter=_name(counter),
            index=index,
            answer=answer,
        )
    return answer


def _fixed_tokens(counter: Any, fixed: Fixed, has_system: bool) -> int:
    of_request = getattr(counter, "fixed_tokens", None)
    if of_request is not None:
        return checked_count(
            lambda: of_request(fixed.system, fixed.tools, has_system=has_system, extra=fixed.extra),
            counter,
            None,
        )
    whole = getattr(counter, "count_request", None)
    if whole is not None:
        return checked_count(lambda: whole([], fixed.system, fixed.tools), counter, None)
    leading = _leading_message(fixed)
    base = checked_count(lambda: counter.count([]), counter, None)
    return base + (checked_count(lambda: counter.count_message(leading), counter, None) if leading else 0)


class FixedParts(NamedTuple):
    """Parts of the fixed tokens."""

    system_tokens: int | None
    tools_tokens: int | None


_NO_PARTS = FixedParts(0, 0)


def _fixed_parts(counter: Any, fixed: Fixed, fixed_tokens: int, has_system: bool) -> FixedParts:
    if not fixed.system and not fixed.tools and not fixed.extra:
        return _NO_PARTS
    bare = _fixed_tokens(counter, Fixed(), has_system)
    without_tools = _fixed_tokens(counter, Fixed(system=fixed.system), has_system)
    return FixedParts(without_tools - bare, fixed_tokens - without_tools)


def _leading_message(fixed: Fixed) -> dict[str, Any] | None:
    """Write system text and tools as one system message, for counters that take a list only."""
    parts = [_text_of(value) for value in (fixed.system, fixed.tools, fixed.extra) if value]
    return {"role": "system", "content": "\n".join(parts)} if parts else None


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json  # not above: loaded where tools are given to a counter that takes a list only

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
