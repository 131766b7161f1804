"""What a session keeps of rules and values by the kits of others: compaction-conformance-kit and conpact.

    .venv-bench/bin/python -m bench.conformance_kit DATA [--kept 0.3] [--only live] [--misses]

DATA is a folder with tau_airline_gpt4o.jsonl and glaive_toolcall_en.jsonl, one conversation a line.

The kit plants canaries of five kinds, and has a benchmark over budgets in characters, which is run as it is;
only the headers of its canaries ("SAFETY RULE: " …) are taken away, since users do not write such. A round is
sixteen messages more of its own filler; "official" rounds have none, as in the kit. Sizes are counted in
characters, so that the kit's cap is the budget.

conpact has fifteen constraints in three framings that say a duration or call them a constraint. Each is put
before the first or the middle message of a user, as conpact does it. What counts is whether it is in the last
view word for word.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any
from unittest.mock import patch

from compaction_kit import benchmark
from compaction_kit.compacted import CompactedContext
from compaction_kit.compactors import ChecklistCompactor, UpdateAwareChecklistCompactor
from compaction_kit.corpus import build_random_session
from compaction_kit.generated import build_generated_session
from compaction_kit.runner import run_conformance
from compaction_kit.semantic_corpus import build_semantic_heldout_session, build_semantic_session
from conpact.constraints import SCS, render_sc
from conpact.generate import inject

from bench.exact_values import Lossy, conversations, joined
from trimtab import BudgetExceededError, Session, counter_from_text
from trimtab.counting import counter_for, measure

Message = dict[str, Any]

BUDGETS = (0.1, 0.2, 0.3, 0.5)
ROUNDS = 5
CAP = 0.6
"""The share of the view that restated rules may take."""
FRAMINGS = {"strict": (True, False), "direct": (False, True), "both": (True, True)}

_HEADER = re.compile(r"^(SAFETY RULE|HARD CONSTRAINT|FACT|GOAL STATE|USER PREFERENCE): ")


def characters(text: str) -> int:
    """Count as the kit does."""
    return len(text)


COUNTER = counter_from_text(characters, message_overhead=len("[assistant] \n"))


def without_headers(build: Callable[[int], tuple[Any, ...]], seed: int) -> tuple[Any, ...]:
    """Build a session of the kit whose canaries do not say what they are."""
    session, canaries, *rest = build(seed)
    turns = tuple(replace(turn, text=_HEADER.sub("", turn.text)) for turn in session.turns)
    stripped = [replace(one, content=_HEADER.sub("", one.content)) for one in canaries]
    return (replace(session, turns=turns), stripped, *rest)


class Trimtab:
    """A session as a compactor of the kit: a round shows what the session shows then."""

    def __init__(self, name: str, *, kept: float, more: int = 0, summarizer: Any = None) -> None:
        self.name = name
        self._kept = kept
        self.session: Session | None = None
        self._more = more
        self._summarizer = summarizer

    def compact(self, turns: Sequence[Any], round_num: int = 1, budget_chars: int = 0) -> CompactedContext:
        """Take the turns in the first round, and the filler in each that follows."""
        if round_num == 1 or self.session is None:
            self.session = Session(
                budget_chars,
                counter=COUNTER,
                find_rules="all",
                max_rule_tokens=int(CAP * budget_chars),
                must_keep="values",
                max_kept_ratio=self._kept,
                summarizer=self._summarizer,
            )
            chat = [(turn.role, turn.text) for turn in turns]
        else:
            chat = [
                ("assistant", "Acknowledged.") if at % 2 else ("user", f"Reviewing module {round_num}, {at}.")
                for at in range(self._more)
            ]
        for role, text in chat:
            self.session.add({"role": role, "content": text})
        view = self.session.messages()
        text = "\n".join(f"[{message['role']}] {message['content']}" for message in view)
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def official(kept: float) -> None:
    """Run the kit's own benchmark."""
    builders = {
        f"build_{name}": partial(without_headers, build)
        for name, build in (
            ("random_session", build_random_session),
            ("semantic_session", build_semantic_session),
            ("semantic_heldout_session", build_semantic_heldout_session),
        )
    }
    factories = {
        "Session": partial(Trimtab, "Session", kept=kept),
        "Session, lossy": partial(Trimtab, "Session, lossy", kept=kept, summarizer=Lossy(COUNTER)),
        "kit's Checklist": ChecklistCompactor,
        "kit's UpdateAware": UpdateAwareChecklistCompactor,
    }
    with patch.multiple(benchmark, **builders):
        answer = benchmark.run_budget_benchmark(factories, budgets=BUDGETS, rounds=ROUNDS)
    print(f"{'official':20}budget  within  overall  pairs  median by kind")
    for entry in answer["entries"]:
        kinds = entry["randomized"]["final_median_by_type"]
        print(
            f"{entry['compactor']:20}{entry['budget_fraction']:>6.0%}  {entry['budget_compliant']!s:>6}"
            f"  {entry['randomized']['overall_final_survival']:>7.3f}"
            f"  {entry['semantic']['distinct_pair_rate']:>5.3f}  {kinds}"
        )


CORPORA: dict[str, tuple[Callable[[int], tuple[Any, ...]], range]] = {
    "random": (build_random_session, range(1, 7)),
    "generated": (build_generated_session, range(24)),
}


def live(kept: float, *, misses: bool) -> None:
    """Survival in the first and in the last round, with sixteen messages more in each."""
    print(f"\n{'live':26}budget  all r1 -> r5   safety rules r1 -> r5   by kind in r5")
    for corpus, (build, seeds) in CORPORA.items():
        for way, summarizer in (("none", None), ("lossy", Lossy(COUNTER))):
            for share in BUDGETS[1:]:
                found: dict[tuple[int, str], list[bool]] = {}
                why = Counter[str]()
                for seed in seeds:
                    session, canaries, *_ = without_headers(build, seed)
                    compactor = Trimtab(way, kept=kept, more=16, summarizer=summarizer)
                    run = run_conformance(
                        session, compactor, rounds=ROUNDS, canaries=canaries, budget_fraction=share
                    )
                    for number in (0, ROUNDS - 1):
                        for canary in canaries:
                            survived = run.rounds[number].survived[canary.id]
                            found.setdefault((number, canary.type.value), []).append(survived)
                            if number and not survived:
                                why[f"{canary.type.value}: {reason(compactor, canary)}"] += 1
                rates = {key: mean(values) for key, values in found.items()}
                overall = [
                    mean(one for (number, _), values in found.items() if number == at for one in values)
                    for at in (0, ROUNDS - 1)
                ]
                safety = [rates[at, "safety_rule"] for at in (0, ROUNDS - 1)]
                kinds = {kind: round(rate, 2) for (number, kind), rate in rates.items() if number}
                print(
                    f"{corpus + ', summarizer ' + way:26}{share:>6.0%}  {overall[0]:.2f} -> {overall[1]:.2f}"
                    f"   {safety[0]:.2f} -> {safety[1]:.2f}   {kinds}"
                )
                if misses:
                    for line, count in why.most_common():
                        print(f"    {count:>3}  {line}")


def reason(compactor: Trimtab, canary: Any) -> str:
    """Say where the rules of a canary are that did not survive."""
    assert compactor.session is not None
    places = sorted(
        {
            f"{rule.place} ({rule.kind} {rule.strength})"
            for rule in compactor.session.rules
            if rule.text in canary.content
        }
    )
    return f"{', '.join(places) or 'not found'}: {canary.content}"


def constraint_views(messages: list[Message], share: float, said: str) -> Iterator[tuple[bool, bool]]:
    """Yield for both places whether a constraint fits beside the latest message, and whether it is shown."""
    counter = counter_for("gpt-4o")
    for place in ("top", "middle"):
        chat, _ = inject(messages, said, place, 1, Random(0))
        budget = int(share * measure(chat, counter=counter).tokens)
        room = measure([{"role": "user", "content": said}, chat[-1]], counter=counter).tokens
        cap = min(0.1 * budget, 1_000)
        fits = room <= budget and counter.count_text(said) + 45 <= cap
        try:
            session = Session(budget, counter=counter, find_rules="auto")
            for message in chat:
                session.add(message)
            view = session.messages()
        except BudgetExceededError:
            yield False, False
            continue
        text = unescape("\n".join(str(message.get("content")) for message in view))
        yield fits, said in text


def constraints(folder: Path, *, misses: bool) -> None:
    """Put the constraints of conpact into chats, and look for them in the last view."""
    sets = {
        "tau": joined(list(conversations(folder / "tau_airline_gpt4o.jsonl")), 3)[:3],
        "glaive": joined(list(conversations(folder / "glaive_toolcall_en.jsonl")), 12)[:3],
    }
    print("\nconpact        budget  framing  in view where it fits  in view of all")
    for name, chats in sets.items():
        for share in (0.2, 0.5):
            for framing, (strict, direct) in FRAMINGS.items():
                rows = list[tuple[bool, bool]]()
                lost = Counter[str]()
                for one in SCS:
                    said = render_sc(one["sc"], strict, direct)
                    for chat in chats:
                        found = list(constraint_views(chat, share, said))
                        rows += found
                        lost[said] += sum(fits and not shown for fits, shown in found)
                fitting = [shown for fits, shown in rows if fits]
                print(
                    f"{name:15}{share:>6.0%}  {framing:7}  {sum(fitting):>4} of {len(fitting):<4}"
                    f" {mean(fitting or [0]):.3f}   {sum(shown for _, shown in rows):>4} of {len(rows)}"
                )
                if misses:
                    for said, count in lost.most_common():
                        if count:
                            print(f"    {count:>3}  {said}")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--kept", type=float, default=0.3, help="max_kept_ratio; 0.3 by default, as in a session"
    )
    parser.add_argument("--misses", action="store_true", help="say of what did not survive where it is")
    parser.add_argument("--only", choices=("official", "live", "conpact"))
    given = parser.parse_args()
    if given.only in (None, "official"):
        official(given.kept)
    if given.only in (None, "live"):
        live(given.kept, misses=given.misses)
    if given.only in (None, "conpact"):
        constraints(given.data, misses=given.misses)


if __name__ == "__main__":
    main()
