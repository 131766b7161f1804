"""What trimming costs under a prompt cache: the tables of docs/replay.md.

`python bench/trimming_cost.py [--budget 8000] [--messages N] [--litellm] [--chart FILE]` plays the
conversations of ../shared/data, and peers where they are installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conversations
import peer_policies
from ceiling import Ceiling
from conversations import Messages

from trimtab import Cascade, ClearToolResults, Session, SlidingWindow, TruncateText, counter_for
from trimtab.replay import Replayed, chart_page, pricing_for, read_recording, replay, replay_table
from trimtab.strategies import Cheapest

MODEL = "gpt-4o"
CHEAPEST = "cheapest"
_COMPARED = ("fit, the default", "target_ratio 0.5", "steady=True", "agent", CHEAPEST, "Session")
"""What is compared on the calls that all of them answer."""


def policies(budget: int) -> dict[str, Any]:
    """Name what is compared; the first is what all others are measured by."""

    def session(**options: Any) -> Callable[[], Session]:
        return lambda: Session(budget, model=MODEL, **options)

    named: dict[str, Any] = {
        "fit, the default": "default",
        "no trimming": None,
        "target_ratio 0.9": SlidingWindow(target_ratio=0.9),
        "target_ratio 0.7": SlidingWindow(target_ratio=0.7),
        "target_ratio 0.5": SlidingWindow(target_ratio=0.5),
        "steady=True": Cascade(SlidingWindow(target_ratio=0.5), TruncateText()),
        CHEAPEST: Cheapest(),
        "clear results, then the default": Cascade(ClearToolResults(), SlidingWindow()),
        "clear results, then 0.7": Cascade(ClearToolResults(), SlidingWindow(target_ratio=0.7)),
        "agent": "agent",
        "Session": "session",
        "Session, target_ratio 0.7": session(target_ratio=0.7),
        "Session, target_ratio 1": session(target_ratio=1),
        "Session, cheapest": session(strategy="cheapest"),
        "Session, max_result_ratio 0.25": session(max_result_ratio=0.25),
        "Session, max_result_ratio None": session(max_result_ratio=None),
        "Session, extractive": "session-extractive",
    }
    return named


def run(budget: int, pricing: str, *, messages: int | None, litellm: bool) -> dict[str, list[Replayed]]:
    """Play every conversation under every policy."""
    count = counter_for(MODEL).count
    others = peer_policies.policies(budget, count, litellm=litellm)
    cases = {
        "airline chats, one after the other": conversations.airline(messages or 1_200),
        "coding session": conversations.coding_session()[:messages],
    }
    found: dict[str, list[Replayed]] = {}
    for name, chat in cases.items():
        recording = read_recording(chat)
        found[name] = [
            replay(recording, policy, budget=budget, model=MODEL, pricing=pricing, name=word)
            for word, policy in (policies(budget) | others).items()
        ]
        found[name].append(_best(chat, found[name], budget, pricing))
    return found


def _best(messages: Messages, found: list[Replayed], budget: int, pricing: str) -> Replayed:
    """Play the best cuts that use as much of the budget as those of `Cheapest`."""
    ours = next(one for one in found if one.policy == CHEAPEST)
    ceiling = Ceiling(messages, counter_for(MODEL).count, budget, pricing_for(pricing))
    policy = ceiling.policy(ceiling.at_fill(ours.steady.fill or 0.0))
    name = "best cuts at the fill of cheapest"
    return replay(messages, policy, budget=budget, model=MODEL, pricing=pricing, name=name)


def answered_by_all(found: list[Replayed]) -> str:
    """Say how much each policy reuses on those calls over the budget that none of them refuses.

    A call that one answers with a prompt of its own counts against it, where another refuses it.
    """
    rows = [*zip(*(one.calls for one in found), strict=True)]
    rows = [row for row in rows if row[0].over_before and not any(call.refused for call in row)]
    lines = [f"reuse on the {len(rows):,} calls over the budget that all of these answer"]
    for one, calls in zip(found, zip(*rows, strict=True), strict=True):
        share = sum(call.shared_tokens for call in calls) / sum(call.tokens for call in calls)
        lines.append(f"  {one.policy:<40}{share:>8.2%}")
    return "\n".join(lines)


def main() -> None:
    """Print a table for each conversation, and write charts if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--pricing", default="anthropic")
    parser.add_argument("--messages", type=int, help="the first N messages of each conversation alone")
    parser.add_argument("--litellm", action="store_true", help="play LiteLLM, too, which takes minutes")
    parser.add_argument("--chart", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = run(arguments.budget, arguments.pricing, messages=arguments.messages, litellm=arguments.litellm)
    for name, results in found.items():
        print(
            f"{name}, {arguments.budget:,} tokens, prices of {arguments.pricing}\n{replay_table(results)}\n"
        )
        ours = [one for one in results if one.policy in _COMPARED]
        print(f"{answered_by_all(ours)}\n")
    if arguments.chart:
        arguments.chart.write_text(chart_page(found, title="What trimming costs"), encoding="utf-8")


if __name__ == "__main__":
    main()
