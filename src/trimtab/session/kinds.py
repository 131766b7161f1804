"""Kinds of results in a session: one that raises writes nothing, since what is in a log must be shown."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from trimtab.compact import Compact

__all__ = ["with_safe_kinds"]

_log = logging.getLogger("trimtab.session")


@lru_cache(maxsize=32)
def with_safe_kinds(compact: Compact, /) -> Compact:
    """Return the same with kinds of which none raises: then their result is shown as it came."""
    kinds = [replace(one, write=_SafeWrite(one.name, one.write)) for one in compact.kinds]
    return replace(compact, kinds=kinds)


@dataclass(frozen=True, slots=True)
class _SafeWrite:
    """Writes a result of a kind; as it came if that raises."""

    name: str
    write: Callable[[str], str]

    def __call__(self, text: str, /) -> str:
        try:
            return self.write(text)
        # As with hooks (SPEC E8): what is raised goes no further, and is in the log of the program.
        except Exception:
            _log.exception("kind %r failed: its result is shown as it came", self.name)
            return text
