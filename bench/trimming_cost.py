"""What trimming costs under a prompt cache: the tables of docs/replay.md.

`python bench/trimming_cost.py [--budget 8000] [--pricing anthropic] [--chart FILE]`; the conversations are
those of ../shared/data, and peers are played where they are installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conversations
import peers
from conversations import Messages

from trimtab import Cascade, ClearToolResults, SlidingWindow
from trimtab.replay import Replayed, chart_page, read_recording, replay, replay_table

MODEL = "gpt-4o"


def policies(budget: int) -> dict[str, Any]:
    """Name what is compared; the first is what all others are measured by."""
    named: dict[str, Any] = {
        "fit, the default": "default",
        "no trimming": None,
        "target_ratio 0.9": SlidingWindow(target_ratio=0.9),
        "target_ratio 0.7": SlidingWindow(target_ratio=0.7),
        "target_ratio 0.5": SlidingWindow(target_ratio=0.5),
        "clear results, then the default": Cascade(ClearToolResults(), SlidingWindow()),
        "clear results, then 0.7": Cascade(ClearToolResults(), SlidingWindow(target_ratio=0.7)),
        "Session": "session",
        "Session, extractive": "session-extractive",
    }
    if peers.missing("langchain-core", "langchain_core") is None:
        named["LangChain, recommended"] = _langchain(budget)
    return named


def _langchain(budget: int) -> Callable[[Messages], Messages]:
    """Trim as LangChain's documentation recommends."""
    converted: dict[int, Any] = {}

    def trim(messages: Messages) -> Messages:
        new = [one for one in messages if id(one) not in converted]
        converted.update(zip(map(id, new), peers.langchain_messages(new), strict=True))
        whole = [converted[id(one)] for one in messages]
        return peers.originals(peers.langchain_trim(whole, budget, peers.langchain_counter()), messages)

    return trim


def run(budget: int, pricing: str) -> dict[str, list[Replayed]]:
    """Play every conversation under every policy."""
    cases = {
        "airline chats, one after the other": conversations.airline(1_200),
        "coding session": conversations.coding_session(),
    }
    found: dict[str, list[Replayed]] = {}
    for name, messages in cases.items():
        recording = read_recording(messages)
        found[name] = [
            replay(recording, policy, budget=budget, model=MODEL, pricing=pricing, name=word)
            for word, policy in policies(budget).items()
        ]
    return found


def main() -> None:
    """Print a table for each conversation, and write charts if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--pricing", default="anthropic")
    parser.add_argument("--chart", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = run(arguments.budget, arguments.pricing)
    for name, results in found.items():
        print(
            f"{name}, {arguments.budget:,} tokens, prices of {arguments.pricing}\n{replay_table(results)}\n"
        )
    if arguments.chart:
        arguments.chart.write_text(chart_page(found, title="What trimming costs"), encoding="utf-8")


if __name__ == "__main__":
    main()
