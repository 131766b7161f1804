"""What an adapter costs beside `fit` on the same messages as dicts; run by the adapter's own interpreter.

`.venv-integrations/NAME/bin/python bench/adapter_cost.py NAME MESSAGES.json BUDGET` prints the median of the
ratios, and of the milliseconds. `tests/integrations/NAME/cost.py` writes the messages as the framework's, and
has the adapter fit them as the framework would.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAIRS = 200


def main(name: str, file: str, budget: int) -> None:
    """Print how often a fit of dicts fits into the adapter's call, and how long that takes."""
    sys.path[:0] = [str(ROOT)]
    messages = json.loads(Path(file).read_text(encoding="utf-8"))
    ours, bare = import_module(f"tests.integrations.{name}.cost").pair(messages, budget)
    ours(), bare()  # what is read and counted once is
    found = [(_ns(ours), _ns(bare)) for _ in range(PAIRS)]
    print(median(one / other for one, other in found), median(one for one, _ in found) / 1e6)


def _ns(run: Callable[[], Any]) -> int:
    start = perf_counter_ns()
    run()
    return perf_counter_ns() - start


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
