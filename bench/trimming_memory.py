"""What trimming forgets: the table of docs/replay.md, the share of known evidence that is in view.

`python bench/trimming_memory.py [FILE ...] [--budget 8000]`. Without files on the made conversations of
tests/planted.py, English and Chinese, of equal lengths and of long answers; with files on those: LoCoMo,
BEAM, or messages with `questions`. Of the calls every 25th is played, since only what is in view when a
question comes matters here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests import planted
from trimtab import PriorityBased, Session, SlidingWindow
from trimtab.replay import Recording, Replayed, read_recording, read_recordings, replay
from trimtab.strategies import Relevant

MODEL = "gpt-4o"
EVERY = 25
DAYS = 180
"""Of a made conversation: four windows of 8,000 tokens long."""


def policies(budget: int) -> dict[str, Any]:
    """Name what is compared."""
    named: dict[str, Any] = {
        "sliding window": SlidingWindow(),
        "sliding window, target_ratio 0.5": SlidingWindow(target_ratio=0.5),
        "PriorityBased": PriorityBased(),
        "PriorityBased, by relevance": PriorityBased(score="relevance"),
        "PriorityBased, relevance 1, role 0.3": PriorityBased(score={"relevance": 1, "role": 0.3}),
        "Relevant": Relevant(),
        "Relevant, by relevance alone": Relevant(score="relevance"),
        "Session": "session",
        "Session, extractive summary": "session-extractive",
        "Session, recall_ratio 0.5": lambda: Session(budget, model=MODEL, recall_ratio=0.5),
    }
    return named


def made() -> dict[str, list[Recording]]:
    """Make conversations in two languages; each question is asked at the end.

    Talk of two who say as much as each other, and requests of a line with long answers.
    """
    talks = {
        "English": planted.planted(planted.ENGLISH, days=DAYS),
        "Chinese": planted.planted(planted.CHINESE, days=DAYS),
        "English, long answers": planted.advised(planted.ENGLISH_ADVICE),
        "Chinese, long answers": planted.advised(planted.CHINESE_ADVICE),
    }
    return {
        name: [
            read_recording(
                {
                    "messages": talk.messages,
                    "questions": [{"text": text, "evidence": [at]} for text, at in talk.questions],
                }
            )
        ]
        for name, talk in talks.items()
    }


def of_files(paths: list[Path]) -> dict[str, list[Recording]]:
    """Read files, each with all its conversations; what is left out is said."""
    found = {}
    for path in paths:
        recordings = read_recordings(json.loads(path.read_text(encoding="utf-8")))
        for name, one in recordings.items():
            for note in one.notes:
                print(f"{path.name}: {name}: {note}", file=sys.stderr)
        found[path.name] = [one for one in recordings.values() if one.questions]
    return found


def thinned(recording: Recording) -> Recording:
    """Keep every 25th call and the last."""
    return replace(recording, calls=recording.calls[::-EVERY][::-1])


def run(cases: dict[str, list[Recording]], budget: int) -> Iterator[tuple[str, list[Replayed]]]:
    """Play every conversation under every policy: a result for each case."""
    for word, policy in policies(budget).items():
        yield (
            word,
            [
                reduce(
                    add,
                    (
                        replay(thinned(one), policy, budget=budget, model=MODEL, name=word)
                        for one in recordings
                    ),
                )
                for recordings in cases.values()
            ],
        )


def cell(found: Replayed) -> str:
    """Write the share in view, and which part of it is not there as it was said."""
    evidence = found.totals.evidence
    if not evidence.sought:
        return ""
    told = f" ({(evidence.shortened + evidence.retold) / evidence.sought:.0%} retold)"
    return f"{evidence.seen / evidence.sought:.0%}{told if evidence.shortened + evidence.retold else ''}"


def main() -> None:
    """Print the share of the evidence in view, a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--budget", type=int, default=8_000)
    arguments = parser.parse_args()
    cases = of_files(arguments.files) if arguments.files else made()
    for name, recordings in cases.items():
        asked = sum(len(one.questions) for one in recordings)
        print(f"{name}: {len(recordings)} conversations, {asked:,} questions, {arguments.budget:,} tokens")
    print(f"\n{'policy':<40}{''.join(f'{name:>24}' for name in cases)}")
    for word, found in run(cases, arguments.budget):
        print(f"{word:<40}{''.join(f'{cell(one):>24}' for one in found)}", flush=True)


if __name__ == "__main__":
    main()
