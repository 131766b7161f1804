"""What each way to trim keeps of what later messages take from results: a table of docs/what-survives.md.

    python -m bench.uses_kept DATA

DATA is a folder with tau_airline_gpt4o.jsonl, swe_agent_trajectories.jsonl and pi_coding_sessions.jsonl, one
conversation a line. Each is replayed call by call into a budget; observations that SWE-agent wrote as the
user's messages are results of what the model ran. No model is called.

A way more is a line of `ways`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from trimtab import Cascade, Session, SlidingWindow
from trimtab.counting import counter_for
from trimtab.replay import Replayed, read_recording, replay
from trimtab.strategies import ClampResults, ClearToolResults
from trimtab.summaries import ExtractiveSummarizer

MODEL = "gpt-4o"
SETS = {
    "airline 4k": ("tau_airline_gpt4o.jsonl", 4_000),
    "SWE-agent 4k": ("swe_agent_trajectories.jsonl", 4_000),
    "coding 100k": ("pi_coding_sessions.jsonl", 100_000),
    "coding 32k": ("pi_coding_sessions.jsonl", 32_000),
}
"""The file of each, and the room of a call in tokens."""


def ways(budget: int, counter: Any) -> dict[str, Any]:
    """Name what is compared: whatever `replay` takes as a policy.

    Args:
        budget: The room of each.
        counter: Counts for all of them.
    """

    def session(**options: Any) -> Callable[[], Session]:
        return lambda: Session(budget, model=MODEL, counter=counter, **options)

    strides = SlidingWindow(target_ratio=0.5)
    return {
        "no trimming": None,
        "`fit`": "default",
        "`SlidingWindow(target_ratio=0.5)`": strides,
        "`ClampResults(max_tokens=500)`, then that": Cascade(ClampResults(max_tokens=500), strides),
        "`ClearToolResults(keep_results=3)`, then that": Cascade(ClearToolResults(keep_results=3), strides),
        '`strategy="agent"`': "agent",
        "`Session`": session(),
        "`Session`, extractive summary": session(summarizer=ExtractiveSummarizer(counter=counter)),
    }


def conversations(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Read conversations, with observations as results."""
    for line in path.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        yield [*_with_results(messages)] if path.name.startswith("swe") else messages


def _with_results(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Make what the user said behind a message of the model the result of what the model ran."""
    has_results = any(one["role"] == "tool" for one in messages)
    for at, message in enumerate(messages):
        following = messages[at + 1] if at + 1 < len(messages) else {"role": ""}
        before = messages[at - 1] if at else {"role": ""}
        if has_results:
            yield message
        elif message["role"] == "assistant" and following["role"] == "user":
            said, _, ran = message["content"].partition("```\n")
            name = ran.split()[0] if ran.split() else "run"
            function = {"name": name, "arguments": json.dumps({"command": ran.removesuffix("\n```")})}
            yield {
                **{"role": "assistant", "content": said},
                "tool_calls": [{"id": f"call_{at}", "type": "function", "function": function}],
            }
        elif message["role"] == "user" and before["role"] == "assistant":
            yield {"role": "tool", "tool_call_id": f"call_{at - 1}", "content": message["content"]}
        else:
            yield message


def cell(found: Replayed) -> str:
    """Write the shares of uses and needs that are in view, and how many calls could not be sent."""
    shares = f"{found.uses.share or 0:.3f}, {found.uses.needs_share or 0:.3f}"
    return f"{shares} ({found.totals.refused})" if found.totals.refused else shares


def main(folder: Path) -> None:
    """Print a table: a row for each way, a column for each set."""
    counter = counter_for(MODEL)
    table: dict[str, list[str]] = {}
    for name, (file, budget) in SETS.items():
        recordings = [read_recording(one) for one in conversations(folder / file)]
        for way, policy in ways(budget, counter).items():
            each = (replay(one, policy, budget=budget, model=MODEL, counter=counter) for one in recordings)
            found = reduce(add, each)
            table.setdefault(way, []).append(cell(found))
            print(f"{name}, {way}: {found.uses}", file=sys.stderr, flush=True)
    print(f"| uses, needs in view | {' | '.join(SETS)} |\n| --- |{' --- |' * len(SETS)}")
    for way, cells in table.items():
        print(f"| {way} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
