"""contexty 0.5 (SEMANTICS X20 to X23): the strategies have other names, a call costs 20 tokens more."""

from __future__ import annotations

from tests.conformance.adapters.contexty import apply_strategy, counting

OPS = {"apply_strategy": apply_strategy, "count": counting(20)}
