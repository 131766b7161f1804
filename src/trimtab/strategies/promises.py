"""What a strategy says of itself beside its name: promises, which make it quick, and what it needs."""

from __future__ import annotations

from collections.abc import Collection

from trimtab.conversation import History

__all__ = [
    "asks_model",
    "clears_results",
    "follows_plan",
    "has_last_word",
    "landmarks",
    "protect_roles",
    "reads_newest",
    "waits",
]


def reads_newest(strategy: object, history: History | None = None, /) -> bool:
    """Tell whether a strategy promises that no unit has a say that is older than those that fit.

    It says so by `reads`; one for which that depends on the conversation by `reads_in` as well.

    Args:
        strategy: The strategy.
        history: The conversation; None: whether it is so of any.
    """
    reads_in = None if history is None else getattr(strategy, "reads_in", None)
    return bool((getattr(strategy, "reads", "all") if reads_in is None else reads_in(history)) == "newest")


def landmarks(strategy: object, history: History, /) -> Collection[int]:
    """List messages that have a say for a strategy that reads the newest, however old they are."""
    find = getattr(strategy, "landmarks", None)
    found: Collection[int] = () if find is None else find(history)
    return found


def clears_results(strategy: object, /) -> bool:
    """Tell whether a strategy makes results smaller where that is needed, and lets nothing leave."""
    return bool(getattr(strategy, "clears_results", False))


def has_last_word(strategy: object, /) -> bool:
    """Tell whether nothing is to be tried behind a strategy: not even the newest unit is cut."""
    return bool(getattr(strategy, "has_last_word", False))


def asks_model(strategy: object, /) -> bool:
    """Tell whether a strategy may ask a model, or a function of the caller's, which is asked once."""
    return bool(getattr(strategy, "asks_model", False))


def follows_plan(strategy: object, /) -> bool:
    """Tell whether a strategy cuts at `planned_cut` where that fits."""
    return bool(getattr(strategy, "follows_plan", False))


def protect_roles(strategy: object, /) -> Collection[str]:
    """List the roles of which no message leaves by a strategy."""
    roles: Collection[str] = getattr(strategy, "protect_roles", ())
    return roles


def waits(strategy: object, /) -> bool:
    """Tell whether a strategy may need something from outside, and is asked by its generator `evicting`."""
    return hasattr(strategy, "evicting") and bool(getattr(strategy, "asks_model", True))
