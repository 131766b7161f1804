"""Whose words the messages of a history hold (SPEC E14)."""

from __future__ import annotations

from trimtab.conversation.reader import History
from trimtab.formats.origin import Origins, check_origin, lower, origins_in

__all__ = ["origins_at"]


def origins_at(history: History, index: int, /) -> Origins:
    """Tell who said what a message holds: its form says it, and the host may lower it.

    Args:
        history: The conversation.
        index: Of the message, as it stands in `messages`.

    Raises:
        ConfigurationError: The host's function names no origin, or one with more say than the form's.
    """
    format, message = history.format, history.message(index)
    origins = format.origins(message)
    if history.origin_of is not None:
        said = history.origin_of(history.original(index))
        origins = lower(origins, check_origin(origins, said, what=f"message {index}"))
    # What was summarized in an earlier fit says in its mark whose words it is made of.
    return origins.union(*(origins_in(slot.text) for slot in format.texts(message)))
