"""Names spelled like one that nobody knows, for errors that say what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["in_words", "near_names"]

_MOST = 3
"""Names an error lists: more is a list to search, not a hint."""
_LIKE = 0.6
"""How alike two names are, 0 to 1, from which on one may be meant by the other; difflib's own default."""


def near_names(
    name: str, known: Iterable[str], /, *, meaning: Callable[[str], str] | None = None
) -> tuple[str, ...]:
    """List known names spelled like one that is not known, best first; each once.

    Args:
        name: What was written; upper and lower case are one.
        known: The names there are.
        meaning: Tells what a name stands for: of several names for one thing the nearest is listed.

    Example:
        >>> near_names("Sliding_Windw", ["drop", "sliding_window", "sliding_window"])
        ('sliding_window',)
    """
    from difflib import get_close_matches  # not above: only a wrong name needs it

    spelled: dict[str, str] = {}
    for one in known:
        spelled.setdefault(one.lower(), str(one))
    written = name.lower()
    alike = get_close_matches(written, spelled, n=4 * _MOST, cutoff=_LIKE)
    longer = [word for word in spelled if written and word.startswith(written)]  # "openai" for openai_chat
    found: dict[str, str] = {}
    for one in (spelled[word] for word in (*alike, *longer)):
        found.setdefault(one if meaning is None else meaning(one), one)
    return tuple(found.values())[:_MOST]


def in_words(near: Iterable[str], /) -> str:
    """Write near names as the end of a message; nothing where there are none.

    Example:
        >>> in_words(("drop", "strict"))
        '; did you mean drop or strict?'
    """
    names = " or ".join(near)
    return f"; did you mean {names}?" if names else ""
