"""Units of messages, what a provider would refuse in a conversation, and how it is repaired.

A unit is an assistant message with calls and every message that answers them, wherever they are; a message
bound to the next one, and that one; or a single message. Its members are whole messages or, where one message
answers several calls, parts of messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from trimtab._shared.checks import check_pending_calls, list_messages
from trimtab._shared.lazy import later
from trimtab.conversation.reader import History
from trimtab.conversation.units import State, Unit, resolve_pins
from trimtab.formats import Format, format_of, refuse_foreign

if TYPE_CHECKING:
    from trimtab.conversation.validity import Change, Repaired, Violation, repair, validate
else:
    # What a `fit` of a valid conversation does not need.
    __getattr__ = later(
        globals(),
        dict.fromkeys(
            ("Change", "Repaired", "Violation", "repair", "validate"), "trimtab.conversation.validity"
        ),
    )

__all__ = ["Change", "History", "Repaired", "State", "Unit", "Violation", "group", "repair", "validate"]


def group(
    messages: Iterable[Any],
    *,
    format: str | Format = "auto",
    pin: Any = (),
    pending_calls: Collection[str] = (),
) -> tuple[Unit, ...]:
    """Group a conversation into units, in order of their first message.

    Args:
        messages: A list of messages; it is read and not changed.
        format: Name of the wire form, or a `Format`; "auto" decides by the shapes that occur.
        pin: Indices, or a predicate `(message, index)`, of messages that must not be evicted.
        pending_calls: Ids of calls whose results are still to come (SPEC A4b).

    Returns:
        Units that contain every message, or part of a message, exactly once. A result without a call is a
        unit by itself.

    Raises:
        ConfigurationError: An argument is of the wrong kind, or a pin is out of range.
        FormatError: An entry is not a message; `.path` names it.

    Complexity: O(n) in messages and calls.
    """
    items, ids = list_messages(messages), check_pending_calls(pending_calls)
    chosen, pins = format_of(items, format), resolve_pins(pin, items)
    refuse_foreign(items, chosen.name, listed=True)
    return History(items, format=chosen, pins=pins, pending_calls=ids, looked_over=True).units
