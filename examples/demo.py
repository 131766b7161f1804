"""Fit a recorded agent session of hundreds of messages into a small budget, and check the result.

    python examples/demo.py                  # or: make demo
    python examples/demo.py --budget 20000

Two budgets: the first is met by leaving old messages out; in the second not even the newest
tool result fits whole, so it is shortened. Nothing is sent anywhere.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from trimtab import EstimateCounter, Fitted, counter_for, fit, validate
from trimtab.counting import AdditiveCounter
from trimtab.errors import MissingExtraError

SESSION = Path(__file__).resolve().parent / "agent_session.json"
MODEL = "gpt-4o"
SMALL_BUDGET_TOKENS = 2_000


def main() -> None:
    """Load the session, fit it twice, check both."""
    parser = argparse.ArgumentParser(description="Fit the recorded agent session into a token budget.")
    parser.add_argument("--budget", type=int, default=8_000, help="tokens the request may have (8000)")
    budget_tokens: int = parser.parse_args().budget
    session = json.loads(SESSION.read_text(encoding="utf-8"))
    messages, tools = session["messages"], session["tools"]
    counter = choose_counter()
    before_tokens = counter.count_request(messages, None, tools)
    print(f"The session: {len(messages)} messages and {len(tools)} tools, {before_tokens:,} tokens.")
    print(textwrap.fill(session["about"], width=80))

    for limit_tokens in (budget_tokens, SMALL_BUDGET_TOKENS):
        print(f"\n=== fit(messages, budget={limit_tokens:_}, model={MODEL!r}, tools=tools)\n")
        fitted = fit(messages, budget=limit_tokens, model=MODEL, counter=counter, tools=tools)
        print(fitted.report)
        check(fitted, counter=counter, limit_tokens=limit_tokens)
        show_cut(fitted.messages[-1]["content"], original=messages[-1]["content"])


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
    recounted_tokens = counter.count_request(fitted.messages, None, fitted.tools)
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
