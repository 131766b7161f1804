"""What a counter must be able to do: the public seam, and what an additive one adds to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

TextFunction = Callable[[str], int]
"""Tells how many tokens a text has."""


@runtime_checkable
class Counter(Protocol):
    """Anything that says how many tokens a list of messages has; the public seam.

    A counter that has only this is a black box: it is asked about whole lists, and what it
    answers is never split into parts.
    """

    def count(self, messages: Sequence[Any], /) -> int:
        """Count the tokens of the messages together, framing included."""
        ...


@runtime_checkable
class RequestCounter(Protocol):
    """A counter that can count system text and tools in the provider's own way."""

    def count_request(self, messages: Sequence[Any], system: Any = None, tools: Any = None, /) -> int:
        """Count the tokens of a whole request."""
        ...


@runtime_checkable
class AdditiveCounter(Protocol):
    """A counter whose sizes of single messages, and a fixed part, add up to the whole.

    `count_request(m, s, t) == fixed_tokens(s, t, has_system=…) + sum(count_message(x) for x in m)`.
    """

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own tokenizer and framing.

        Of what else a request may hold, `measure` says whether it is known.
        """
        ...

    def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that is these messages alone."""
        ...

    def count_request(
        self,
        messages: Sequence[Any],
        system: Any = None,
        tools: Any = None,
        extra: Mapping[str, Any] | None = None,
        /,
    ) -> int:
        """Count a whole request; `extra` holds other charged parts of its body by key."""
        ...

    def count_message(self, message: Any, /) -> int:
        """Count one message with its framing."""
        ...

    def count_text(self, text: str, /) -> int:
        """Count a bare text, without any framing."""
        ...

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged beside its messages.

        Args:
            system: System text that stands outside the messages; None if there is none.
            tools: Tool schemas in any provider's form; None or empty if there are none.
            has_system: Whether the first message is a system or developer message.
            extra: Other charged parts of the body, an output schema under "response_format".
        """
        ...

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` back, until their sum passes `room_tokens`.

        Sizes that are known already are kept, and are part of the sum. `messages[start:stop]`
        must be plain dicts.

        Returns:
            The lowest index whose size is filled in; `stop` if there was nothing to do.
        """
        ...


class _CountsMessages(Protocol):
    """A counter as users write it: whatever it calls a message, and whether it is async."""

    def count(self, messages: Any, /) -> int | Awaitable[int]: ...


class _CountsEach(Protocol):
    """A counter of single messages, whose sizes add up."""

    def count_message(self, message: Any, /) -> int | Awaitable[int]: ...


CounterLike: TypeAlias = _CountsMessages | _CountsEach | Callable[[Any], int | Awaitable[int]] | str
"""What `counter=` takes: a counter, a function of a list of messages or of a text, or "estimate", "chars:4".

What is async is for `afit`."""
