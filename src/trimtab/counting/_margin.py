"""How far a count may be from the bill, as its counter says."""

from __future__ import annotations

from typing import Any

from trimtab.counting._checks import checked_count, counter_name
from trimtab.errors import ConfigurationError

__all__ = ["known_margin", "margin_of"]


def known_margin(counter: Any, tokens: int, /) -> int | None:
    """Ask a counter how far a count of its may be off, either way; None if it does not say.

    Raises:
        CountingError: It answered what is no number of tokens.
    """
    ask = getattr(counter, "margin_tokens", None)
    if ask is None:
        return 0 if getattr(counter, "exact", False) is True else None
    margin = ask(tokens)
    return None if margin is None else checked_count(lambda: margin, counter, None)


def margin_of(counter: Any, tokens: int, /) -> int:
    """Ask the same of a counter that has to know.

    Raises:
        ConfigurationError: It does not say.
    """
    margin = known_margin(counter, tokens)
    if margin is None:
        raise ConfigurationError(
            f"margin='auto': counter {counter_name(counter)} does not say how far its counts may be off"
            " (it needs margin_tokens(tokens)); pass margin= as a number of tokens"
        )
    return margin
