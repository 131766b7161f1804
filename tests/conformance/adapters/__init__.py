"""One file a reference system: names and shapes translated onto the public API."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.adapters import (
    contexty,
    contexty_05,
    llm_context_core,
    looma,
    phronomy,
    sliding_context,
)
from tests.conformance.judging import System

SYSTEMS: Mapping[str, System] = {
    "contexty": contexty.OPS,
    "contexty-0.5": contexty_05.OPS,
    "llm_context_core": llm_context_core.OPS,
    "looma-slots": looma.OPS,
    "phronomy": phronomy.OPS,
    "sliding-context": sliding_context.OPS,
}
"""Adapters by the name of their system in the vectors."""
