"""What redaction writes in the place of what was said, in every wire form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"

REDACTED_NAME = "redacted"
"""In the place of a name: providers take letters, digits and underscores."""


def blank(value: Any) -> Any:
    """Return a value of the same kind that says nothing."""
    if value is None:
        return None
    if isinstance(value, str):
        return REDACTED
    return {} if isinstance(value, Mapping) else type(value)()


def texts_of_ids(owner: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return what of an item says which it is: those of the keys that are there and hold text."""
    return {key: owner[key] for key in keys if isinstance(owner.get(key), str)}
