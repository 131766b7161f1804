"""The first call of a fresh process: plain loop and trimtab, each in its own process.

The tokenizer is loaded and has counted one short text; it has not seen the conversation. The child is
`python first_call.py NAME FILE BUDGET` and prints nanoseconds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter_ns

from conversations import Messages

BATCHES = 2
RUNS = 7
NAMES = ("plain loop", "trimtab")


def first_calls(file: Path, budget: int, *, runs: int = RUNS) -> list[dict[str, float]]:
    """Return a mapping a batch, contender to median milliseconds of its first call."""
    batches = []
    for _ in range(BATCHES):
        times: dict[str, list[int]] = {name: [] for name in NAMES}
        for turn in range(runs):
            for name in NAMES if turn % 2 else reversed(NAMES):
                times[name].append(_in_a_process(name, file, budget))
        batches.append({name: statistics.median(values) / 1e6 for name, values in times.items()})
    return batches


def _in_a_process(name: str, file: Path, budget: int) -> int:
    command = [sys.executable, __file__, name, str(file), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"first call of {name} failed:\n{done.stderr[-2000:]}")
    return int(done.stdout)


def _time_plain_loop(messages: Messages, budget: int) -> int:
    from floors import plain_loop
    from formula import COUNT

    COUNT("hi")
    start = perf_counter_ns()
    plain_loop(messages, budget)
    return perf_counter_ns() - start


def _time_trimtab(messages: Messages, budget: int) -> int:
    import subject

    counter = subject.fresh_counter()
    subject.warm(counter)
    start = perf_counter_ns()
    subject.trim(messages, budget, counter)
    return perf_counter_ns() - start


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    measure = _time_trimtab if sys.argv[1] == "trimtab" else _time_plain_loop
    print(measure(given, int(sys.argv[3])))
