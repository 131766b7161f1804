"""A request broken by hand, and the valid one it was made from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple


class Broken(NamedTuple):
    """One break: what was done to a valid request, who refuses it and how."""

    rule: str
    valid: dict[str, Any]
    breaks: Callable[[dict[str, Any]], object]
    """Changes a copy of the valid request in place."""
    words: str
    """The provider's text, written out."""
    source: str
    """The end of the address it was reported at."""
    also: tuple[str, ...] = ()
    """Other rules that cannot but see the same break."""

    def request(self) -> dict[str, Any]:
        """Return the broken request."""
        made = copy.deepcopy(self.valid)
        self.breaks(made)
        return made
