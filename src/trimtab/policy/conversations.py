"""A whole conversation put into the blocks of a policy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats import Format

_HISTORY = "history"
"""The block that a conversation goes into, if there is one of that name."""

_SYSTEM = "system"
"""The block that leading system messages of a conversation go into, if there is one of that name."""


def blocks_for(messages: Sequence[Any], names: Collection[str], format: Format, /) -> dict[str, Any]:
    """Say what of a conversation goes into which block.

    Leading system messages go into the block for these, if there is one: in the block of the history they
    would leave first.

    Raises:
        FormatError: No block is called "history", and there are several.
    """
    name = _name_for_conversations(names)
    if name == _SYSTEM or _SYSTEM not in names:
        return {name: messages}
    heads = takewhile(lambda one: isinstance(one, dict) and format.kind(one) == "system", messages)
    head = list(heads)
    return {_SYSTEM: head, name: messages[len(head) :]}


def _name_for_conversations(names: Collection[str]) -> str:
    """Name the block that a list of messages or a request body fills."""
    if _HISTORY in names:
        return _HISTORY
    if len(names) == 1:
        return next(iter(names))
    raise FormatError(
        f"a conversation goes into the block {_HISTORY!r}, and the policy has none: write an object with"
        f" a key for each block ({', '.join(names)})"
    )
