"""A chat with the OpenAI SDK: the whole talk is kept as it is, and each request fits the budget.

Run it with OPENAI_API_KEY set and type; OPENAI_BASE_URL leads to any compatible endpoint.
"""

from __future__ import annotations

import sys
from typing import Any

from openai import OpenAI

from trimtab import fit

MODEL, BUDGET = "gpt-4o", 4_000


def main() -> None:
    """Answer each line of standard input."""
    client = OpenAI()
    talk: list[Any] = [{"role": "system", "content": "You are a terse assistant."}]
    for line in sys.stdin:
        talk.append({"role": "user", "content": line.strip()})
        fitted = fit(talk, BUDGET, model=MODEL)
        answer = client.chat.completions.create(model=MODEL, messages=fitted.messages)
        talk.append(answer.choices[0].message)  # the SDK's own object, which the next request takes, too
        print(answer.choices[0].message.content)
        evicted = len(fitted.evicted)
        print(f"({fitted.report.tokens_after:,} of {BUDGET:,} tokens; {evicted} old messages evicted)")


if __name__ == "__main__":
    main()
