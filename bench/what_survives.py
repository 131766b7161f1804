"""What each way to trim keeps of rules and exact values: the table of docs/what-survives.md.

    python -m bench.what_survives DATA

DATA is a folder with tau_airline_gpt4o.jsonl and glaive_toolcall_en.jsonl, one conversation a line. Short
conversations are put together without their system text, twenty canaries are planted in each of these, and
each is replayed call by call into a share of its tokens. No model is called: the summarizer is a bad one,
which keeps three of ten sentences and half of the numbers in them (bench/exact_values.py).

A way more is a line of `ways`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

from bench.exact_values import Lossy
from trimtab import Context, Session
from trimtab.counting import counter_for, measure
from trimtab.replay import Recording, Replayed, Tally, find_canaries, plant_canaries, read_recording, replay
from trimtab.strategies import Summarize
from trimtab.summaries import ExtractiveSummarizer

MODEL = "gpt-4o"
SHARES = (0.2, 0.5)
CANARIES = 20
FILES = {"airline": ("tau_airline_gpt4o.jsonl", 8, 4), "tools": ("glaive_toolcall_en.jsonl", 30, 3)}
"""Of each file, how many conversations make one, and how many of these there are."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "planted rules": ("rule", "limit", "preference"),
    "planted values": ("name", "id"),
    "users' own values": ("own value",),
}
"""Kinds of canaries that are one column."""


def ways(budget: int, counter: Any, rules: Sequence[str]) -> dict[str, Any]:
    """Name what is compared: whatever `replay` takes as a policy.

    Args:
        budget: The room of each.
        counter: Counts for all of them.
        rules: The planted rules, for a host that knows them.
    """

    def session(**options: Any) -> Callable[[], Session]:
        return lambda: Session(budget, model=MODEL, counter=counter, **options)

    lossy, extractive = Lossy(counter), ExtractiveSummarizer(counter=counter)
    return {
        "fit": "default",
        "fit, steady=True": "steady",
        'fit, strategy="agent"': "agent",
        "fit, Summarize, must_keep=None": Summarize(lossy, must_keep=None),
        "fit, Summarize": Summarize(lossy),
        "fit, rules": Context(budget, model=MODEL, counter=counter, rules=rules).add("history", []),
        "Session": session(),
        "Session, extractive, must_keep=None": session(summarizer=extractive, must_keep=None),
        "Session, extractive": session(summarizer=extractive),
        "Session, find_rules": session(find_rules="auto"),
        "Session, extractive, find_rules": session(summarizer=extractive, find_rules="auto"),
        "Session, summarizer, must_keep=None": session(summarizer=lossy, must_keep=None),
        "Session, summarizer": session(summarizer=lossy),
    }


def recordings(path: Path, together: int, count: int) -> Iterator[Recording]:
    """Put conversations together, plant canaries, and look for what their users say as well."""
    lines = path.read_text(encoding="utf-8").splitlines()
    talks = [[one for one in json.loads(line)["messages"] if one["role"] != "system"] for line in lines]
    for start, end in pairwise(range(0, together * count + 1, together)):
        messages = [message for talk in talks[start:end] for message in talk]
        recording = read_recording(messages)
        planted = plant_canaries(recording, CANARIES)
        own = [replace(one, kind=f"own {one.kind}") for one in find_canaries(recording).canaries]
        yield replace(planted, canaries=(*planted.canaries, *own))


def cell(found: Replayed, kinds: tuple[str, ...]) -> str:
    """Write the share of kinds that is in view at the end."""
    tallies = (found.survival.by_kind.get(kind, Tally()) for kind in kinds)
    total = sum(tallies, Tally())
    return f"{(total.sought - total.lost) / total.sought:.2f}" if total.sought else "-"


def main(folder: Path) -> None:
    """Print a table for each file and share, a line for each way."""
    counter = counter_for(MODEL)
    for name, (file, together, count) in FILES.items():
        made = list(recordings(folder / file, together, count))
        for share in SHARES:
            results: dict[str, list[Replayed]] = {}
            for recording in made:
                budget = int(share * measure(recording.messages, counter=counter).tokens)
                rules = [one.text for one in recording.canaries if one.kind in COLUMNS["planted rules"]]
                for way, policy in ways(budget, counter, rules).items():
                    found = replay(recording, policy, budget=budget, model=MODEL, counter=counter, name=way)
                    results.setdefault(way, []).append(found)
            totals = {way: reduce(add, few) for way, few in results.items()}
            sought = {word: _sought(next(iter(totals.values())), kinds) for word, kinds in COLUMNS.items()}
            print(f"\n{name}, {share:.0%} of the tokens: {len(made)} conversations, {sought}")
            print(f"| way | {' | '.join(COLUMNS)} | refused |\n| --- |{' --- |' * (len(COLUMNS) + 1)}")
            for way, found in totals.items():
                cells = " | ".join(cell(found, kinds) for kinds in COLUMNS.values())
                print(f"| {way} | {cells} | {found.totals.refused} |", flush=True)


def _sought(found: Replayed, kinds: tuple[str, ...]) -> int:
    return sum(found.survival.by_kind.get(kind, Tally()).sought for kind in kinds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
