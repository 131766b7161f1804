"""What a tool result is written as: JSON tight, and what an earlier result says as a reference to that."""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.compact.expansion import expand
from trimtab.compact.options import Compact, CompactLike, Kind

__all__ = ["Compact", "CompactLike", "Kind", "expand"]

__dir__ = public_dir(globals())
