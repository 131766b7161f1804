"""Budget: how many tokens of a context window the input may take."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from trimtab.errors import ConfigurationError

if TYPE_CHECKING:
    from trimtab.counting import CounterLike, RequestCounter

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The room for input in a context window, in tokens.

    Tools and system text are no part of it: give them to `fit`, which counts them once.

    A fraction of a token is rounded down: a budget worked out as a share of something may be given as it is.

    Args:
        window: Most tokens the model takes, input and output together; above 0.
        output_reserve: Tokens kept free for the answer.
        overhead_tokens: Tokens that something outside of trimtab adds to every request.
        margin: Tokens kept free because counts may be too low; "auto" is as many as the counter may be off
            by.

    Raises:
        ConfigurationError: `window` is less than 1, another number is negative, or one is not finite.

    Example:
        >>> budget = Budget(128_000, output_reserve=4_096)
        >>> budget.input_tokens, budget.available(used=100_000), budget.would_exceed(123_904)
        (123904, 23904, False)
    """

    window: int
    output_reserve: int = 0
    overhead_tokens: int = 0
    margin: int | Literal["auto"] = 0

    def __init__(
        self,
        window: float,
        *,
        output_reserve: float = 0,
        overhead_tokens: float = 0,
        margin: float | Literal["auto"] = 0,
    ) -> None:
        for name, value, least in (
            ("window", window, 1),
            ("output_reserve", output_reserve, 0),
            ("overhead_tokens", overhead_tokens, 0),
        ):
            object.__setattr__(self, name, _floor(name, value, least))
        object.__setattr__(self, "margin", "auto" if margin == "auto" else _floor("margin", margin, 0))

    @classmethod
    def of(cls, value: Budget | float, /) -> Budget:
        """Return a budget as it is; read a bare number as `Budget(number)`.

        Args:
            value: Tokens, or a `Budget`.

        Raises:
            ConfigurationError: It is neither, or no number a budget can have.
        """
        if isinstance(value, cls):
            return value
        if type(value) is int:
            return _bare(value)
        if not isinstance(value, (int, float)):
            raise ConfigurationError(f"budget is a number of tokens or a Budget, not {reprlib.repr(value)}")
        return cls(_floor("budget", value, 1))

    @property
    def input_tokens(self) -> int:
        """Tokens the input may take; 0 if the rest takes all.

        Raises:
            ConfigurationError: The margin is "auto", and which that is the counter has to say.
        """
        margin = self.margin
        if margin == "auto":
            raise ConfigurationError(
                "margin='auto' is not a number before the counter is known: call budget.resolved(counter),"
                " or leave it to fit, Context or Session"
            )
        return max(0, self.window - self.output_reserve - self.overhead_tokens - margin)

    def resolved(self, counter: CounterLike, /, *, unsure_tokens: int = 0) -> Budget:
        """Return the budget with its margin in tokens, as the counter says.

        One that has it already comes back itself. The input room is then the most tokens that stay within
        the rest together with how far a count of so many may be off. `fit`, `Context` and `Session` do this;
        the first two find out by themselves what of a request is unsure.

        Args:
            counter: Says how far a count may be off.
            unsure_tokens: How much more of the request it cannot know: nested schemas, media nobody sees.

        Raises:
            ConfigurationError: The counter does not say how far it may be off.

        Example:
            >>> from trimtab.counting import counter_for
            >>> Budget(100_000, margin="auto").resolved(counter_for("gpt-4o")).margin
            994
        """
        if self.margin != "auto":
            return self
        from trimtab.counting.door import as_counter  # not above: only margin="auto" needs it

        room = replace(self, margin=0).input_tokens
        known = max(0, room - unsure_tokens)
        return replace(self, margin=room - _most_within(known, as_counter(counter, later=True)))

    def available(self, used: int = 0) -> int:
        """Return the input tokens left beside `used`; never below 0.

        Args:
            used: Tokens that are taken already.
        """
        return max(0, self.input_tokens - _whole("used", used, 0))

    def utilization(self, used: int) -> float:
        """Return `used` as a share of the input room, 0.0 to 1.0; 1.0 if there is no room.

        Args:
            used: Tokens that are taken.
        """
        room, used = self.input_tokens, _whole("used", used, 0)
        return min(1.0, used / room) if room else 1.0

    def would_exceed(self, used: int) -> bool:
        """Tell whether `used` tokens are more than the input room.

        Args:
            used: Tokens that would be taken.
        """
        return _whole("used", used, 0) > self.input_tokens


def _most_within(room_tokens: int, counter: RequestCounter) -> int:
    """Find the largest count that stays in a room together with its margin; 0 if none does."""
    from trimtab.counting.margin import margin_of  # not above: only margin="auto" needs it

    least, most = 0, room_tokens
    while least < most:
        middle = (least + most + 1) // 2
        margin = margin_of(counter, middle)
        if middle + margin <= room_tokens:
            least = middle
        else:
            most = middle - 1
    return least


@lru_cache(maxsize=64, typed=True)
def _bare(tokens: int) -> Budget:
    return Budget(_whole("budget", tokens, 1))


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


MOST_TOKENS = 1 << 53
"""Numbers above are not told apart by a float, which shares of a budget are; no window comes near."""


def _floor(name: str, value: object, least: int) -> int:
    """Read one number of a budget; a fraction of a token is rounded down (SPEC D1)."""
    if isinstance(value, float) and math.isfinite(value) and value >= least:
        return _whole(name, math.floor(value), least)
    return _whole(name, value, least)


def _whole(name: str, value: object, least: int) -> int:
    """Check a number of tokens that were used; a float is taken if it is whole."""
    if type(value) is int and least <= value <= MOST_TOKENS:
        return value
    if isinstance(value, int) and value > MOST_TOKENS:  # which may be too long to be shown
        raise ConfigurationError(f"{name} must be at most {MOST_TOKENS:,} tokens; it is far above that")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(f"{name} must be a number of tokens, not {value!r}")
    if not math.isfinite(value) or (value >= least and value != int(value)):
        raise ConfigurationError(f"{name} must be a finite number of tokens, not {value!r}")
    if value < least:
        raise ConfigurationError(f"{name} must be at least {_tokens(least)}, not {value!r}")
    return int(value)
