"""Budget: how many tokens of a context window the input may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from trimtab.errors import ConfigurationError

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The room for input in a context window, in tokens.

    Tools and system text are no part of it: give them to `fit`, which counts them once.

    Raises:
        ConfigurationError: `window` is not above 0, another number is negative, or one is not
            a finite whole number.

    Example:
        >>> budget = Budget(128_000, output_reserve=4_096)
        >>> budget.input_tokens, budget.available(used=100_000), budget.would_exceed(123_904)
        (123904, 23904, False)
    """

    window: int
    """Most tokens the model takes, input and output together; above 0."""
    output_reserve: int = 0
    """Tokens kept free for the answer."""
    overhead_tokens: int = 0
    """Tokens that something outside of trimtab adds to every request."""
    margin: int = 0
    """Tokens kept free because counts may be too low."""

    def __init__(
        self, window: int, *, output_reserve: int = 0, overhead_tokens: int = 0, margin: int = 0
    ) -> None:
        for name, value, least in (
            ("window", window, 1),
            ("output_reserve", output_reserve, 0),
            ("overhead_tokens", overhead_tokens, 0),
            ("margin", margin, 0),
        ):
            object.__setattr__(self, name, _whole(name, value, least))

    @classmethod
    def of(cls, value: Budget | int, /) -> Budget:
        """Return a budget as it is; read a bare number as `Budget(number)`.

        Raises:
            ConfigurationError: It is neither, or no number a budget can have.
        """
        if isinstance(value, cls):
            return value
        if type(value) is int:
            return _bare(value)
        if not isinstance(value, (int, float)):
            raise ConfigurationError(f"budget is a number of tokens or a Budget, not {value!r}")
        return cls(value)

    @property
    def input_tokens(self) -> int:
        """Tokens the input may take; 0 if the rest takes all."""
        return max(0, self.window - self.output_reserve - self.overhead_tokens - self.margin)

    def available(self, used: int = 0) -> int:
        """Return the input tokens left beside `used`; never below 0."""
        return max(0, self.input_tokens - _whole("used", used, 0))

    def utilization(self, used: int) -> float:
        """Return `used` as a share of the input room, 0.0 to 1.0; 1.0 if there is no room."""
        room, used = self.input_tokens, _whole("used", used, 0)
        return min(1.0, used / room) if room else 1.0

    def would_exceed(self, used: int) -> bool:
        """Tell whether `used` tokens are more than the input room."""
        return _whole("used", used, 0) > self.input_tokens


@lru_cache(maxsize=64, typed=True)
def _bare(window: int) -> Budget:
    return Budget(window)


def _whole(name: str, value: object, least: int) -> int:
    """Check one number of a budget; a float is taken if it is whole."""
    if type(value) is int and value >= least:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(f"{name} must be a whole number of tokens, not {value!r}")
    if not math.isfinite(value) or value != int(value):
        raise ConfigurationError(f"{name} must be a finite whole number of tokens, not {value!r}")
    if value < least:
        raise ConfigurationError(f"{name} must be at least {least}, not {value!r}")
    return int(value)
