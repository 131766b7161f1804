"""What the Responses API refuses in the shape of items."""

from __future__ import annotations

from typing import Any

from trimtab.formats._base import Fault


def faults_of(messages: list[Any]) -> list[Fault]:
    """List what is wrong with each item, in order; see `Format.faults`."""
    return []
