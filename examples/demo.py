"""Fit a recorded agent session of hundreds of messages into a small budget, and check the result.

    python examples/demo.py                  # or: make demo
    python examples/demo.py --budget 20000
    python examples/demo.py FILE             # every conversation of a JSONL file, or of a folder of them

Two budgets: the first is met by leaving old messages out; in the second not even the newest
tool result fits whole, so it is shortened. Nothing is sent anywhere. If a folder of real
conversations is at hand (TRIMTAB_DATA, or ../shared/data), they are fitted, too, a line a file.
"""

from __future__ import annotations

import argparse
import json
import os
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trimtab import BudgetExceededError, EstimateCounter, Fitted, counter_for, fit, validate
from trimtab.counting import AdditiveCounter, CountRequest
from trimtab.errors import MissingExtraError

SESSION = Path(__file__).resolve().parent / "agent_session.json"
MODEL = "gpt-4o"
SMALL_BUDGET_TOKENS = 2_000
LARGE_BUDGET_TOKENS = 32_000
"""For conversations of which what must stay is larger than the budget."""
DATA = Path(os.environ.get("TRIMTAB_DATA") or SESSION.parents[2] / "shared" / "data")


def main() -> None:
    """Fit the session twice and check both, or fit every conversation of a file or folder."""
    parser = argparse.ArgumentParser(description="Fit the recorded agent session into a token budget.")
    parser.add_argument("--budget", type=int, default=8_000, help="tokens the request may have (8000)")
    parser.add_argument(
        "data", nargs="?", type=Path, metavar="FILE", help="a JSONL file or a folder of them, instead"
    )
    arguments = parser.parse_args()
    counter = choose_counter()
    if arguments.data is None:
        fit_session(counter, budget_tokens=arguments.budget)
    if arguments.data is not None or DATA.is_dir():
        fit_files(arguments.data or DATA, counter=counter, limit_tokens=arguments.budget)


def fit_session(counter: AdditiveCounter, *, budget_tokens: int) -> None:
    """Load the session, fit it twice, check both."""
    session = json.loads(SESSION.read_text(encoding="utf-8"))
    messages, tools = session["messages"], session["tools"]
    before_tokens = counter.count_request(CountRequest(messages, tools=tools))
    print(f"The session: {len(messages)} messages and {len(tools)} tools, {before_tokens:,} tokens.")
    print(textwrap.fill(session["about"], width=80))

    for limit_tokens in (budget_tokens, SMALL_BUDGET_TOKENS):
        print(f"\n=== fit(messages, budget={limit_tokens:_}, model={MODEL!r}, tools=tools)\n")
        fitted = fit(messages, budget=limit_tokens, model=MODEL, counter=counter, tools=tools)
        print(fitted.report)
        check(fitted, counter=counter, limit_tokens=limit_tokens)
        show_cut(fitted.messages[-1]["content"], original=messages[-1]["content"])


@dataclass(slots=True)
class Tally:
    """What became of the conversations of one file."""

    fitted: int = 0
    whole: int = 0
    """Of these, those that fitted as they were."""
    broken: int = 0
    """Of these, those with faults: as many as the conversation came with, or fewer."""
    too_large: list[str] = field(default_factory=list)
    """One sentence for each that did not fit."""
    unread: int = 0
    """Lines that hold no conversation in Chat Completions form."""


def fit_files(path: Path, *, counter: AdditiveCounter, limit_tokens: int) -> None:
    """Fit every conversation of a file, or of every file of a folder; print a line for each file."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    print(f"\n=== every conversation in {path}, each into {limit_tokens:,} tokens\n")
    width = max((len(file.name) for file in files), default=0)
    for file in files:
        tally = Tally()
        for name, conversation in conversations(file, tally):
            fit_one(name, conversation, tally, counter=counter, limit_tokens=limit_tokens)
        if tally.fitted or tally.too_large:
            print("\n    ".join([f"{file.name:<{width}}  {told(tally)}", *tally.too_large]))


def conversations(file: Path, tally: Tally) -> Iterator[tuple[str, Any]]:
    """Read the conversations of a file with their names: lists of messages, or bodies of requests."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row = json.loads(line)
            found = row.get("messages", row.get("request") if row.get("api") == "chat" else None)
            if found is None:
                tally.unread += 1
            else:
                yield str(row.get("id", f"line {number}")), found


def fit_one(
    name: str, conversation: Any, tally: Tally, *, counter: AdditiveCounter, limit_tokens: int
) -> None:
    """Fit one conversation and check it from outside; one that cannot fit is given the large budget."""
    try:
        fitted = fit_and_check(conversation, counter=counter, limit_tokens=limit_tokens)
    except BudgetExceededError as error:
        tally.too_large.append(f"{name}: {why_not(error)}")
        if limit_tokens < LARGE_BUDGET_TOKENS and (error.needed_tokens or 0) <= LARGE_BUDGET_TOKENS:
            fit_and_check(conversation, counter=counter, limit_tokens=LARGE_BUDGET_TOKENS)
            tally.too_large[-1] += f"; fits in {LARGE_BUDGET_TOKENS:,}"
        return
    tally.fitted += 1
    tally.whole += fitted.report.evicted_message_count + fitted.report.changed_message_count == 0
    tally.broken += faults_of(fitted.request) > 0


def fit_and_check(conversation: Any, *, counter: AdditiveCounter, limit_tokens: int) -> Fitted[Any]:
    """Fit, count again, and see that no fault is new."""
    fitted = fit(conversation, budget=limit_tokens, counter=counter)
    recounted_tokens = counter.count_request(CountRequest(fitted.messages, tools=fitted.tools))
    if recounted_tokens > limit_tokens or faults_of(fitted.request) > faults_of(conversation):
        raise SystemExit(f"This is a bug in trimtab, please report it: {fitted}, {recounted_tokens:,} tokens")
    return fitted


def faults_of(conversation: Any) -> int:
    """Count what a provider would refuse."""
    return sum(violation.fault for violation in validate(conversation))


def why_not(error: BudgetExceededError) -> str:
    """Say what is needed, and which message that must stay is the largest."""
    attempt: Any = error.attempt
    rows = [row for row in attempt.report.messages if row.tokens_after]
    largest = max(rows, key=lambda row: row.tokens_after)
    return (
        f"needs at least {error.needed_tokens:,} tokens, {largest.tokens_after:,} of them for message"
        f" {largest.index} ({largest.role}, {largest.state})"
    )


def told(tally: Tally) -> str:
    """Say in a line what became of a file."""
    said = [f"{tally.fitted} of {tally.fitted + len(tally.too_large)} fit"]
    if tally.fitted:
        said[0] += f" and stay within budget when counted again, {tally.whole} of them whole"
        said.append(f"{tally.broken} with faults they came with" if tally.broken else "all valid")
    if tally.unread:
        said.append(f"{tally.unread} lines in other wire forms")
    return "; ".join(said)


def choose_counter() -> AdditiveCounter:
    """Count as the model does if the tokenizer is installed, else estimate and say so."""
    try:
        return counter_for(MODEL)
    except MissingExtraError as error:
        print(f"The counts below are estimates that err high: {error}\n")
        return EstimateCounter()


def check(fitted: Fitted[Any], *, counter: AdditiveCounter, limit_tokens: int) -> None:
    """Check from outside what the report claims: valid, and within budget when counted again."""
    violations = validate(fitted.messages)
    recounted_tokens = counter.count_request(CountRequest(fitted.messages, tools=fitted.tools))
    print(f"\nchecked: {recounted_tokens:,} of {limit_tokens:,} tokens when counted again; ", end="")
    print(f"violations: {violations or 'none'}")
    if violations or recounted_tokens > limit_tokens:
        raise SystemExit("This is a bug in trimtab: please report it with the lines above.")


def show_cut(text: str, *, original: str) -> None:
    """Print where the newest message was shortened, if it was, with two lines around it."""
    if text == original:
        return
    pairs = zip(text.splitlines(), original.splitlines(), strict=False)
    cut = next((number for number, (ours, theirs) in enumerate(pairs) if ours != theirs), 0)
    print(f"\nThe newest message: {len(original):,} characters, now {len(text):,}. Around the cut:\n")
    print("\n".join(f"    {line[:100]}" for line in text.splitlines()[max(cut - 2, 0) : cut + 3]))


if __name__ == "__main__":
    main()
