"""The table of the README: trimtab beside what people use instead, on three conversations of agents.

`python bench/first_table.py [--messages 150]` plays each model call: recorded airline chats and a coding
session into 8,000 tokens, and twenty turns of an agent with one result of 5,400 tokens into 5,000.
"""

from __future__ import annotations

import argparse
from typing import Any

import conversations
import peer_policies
import peers
from conversations import Messages

from trimtab import counter_for, fit
from trimtab.replay import Replayed, read_recording, replay

MODEL = "gpt-4o"
PRICING = "anthropic"
LOOP = "drop the oldest message"
NAMES = {
    "steady": "trimtab: `fit(…, steady=True)`",
    LOOP: "a loop: drop the oldest until it fits",
    "LangChain, recommended": "LangChain's `trim_messages`, as its documentation recommends",
    "LiteLLM": "LiteLLM's `trim_messages`",
}
"""What is compared, by its name among the policies."""


def reader() -> Messages:
    """Return twenty turns in which a file is read, the eighteenth of 5,400 tokens, and a question."""
    messages: Messages = [{"role": "system", "content": "You are an agent."}]
    for at in range(20):
        call = {"name": "read_file", "arguments": f'{{"path": "f{at}.py"}}'}
        text = f"def f{at}():\n    return {at}\n" * (600 if at == 17 else 4)
        messages += [
            {"role": "user", "content": f"look at file {at}"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{at}", "content": text},
            {"role": "assistant", "content": f"File {at} defines f{at}."},
        ]
    return [
        *messages,
        {"role": "user", "content": "What does file 3 define?"},
        {"role": "assistant", "content": "f3."},
    ]


def play(messages: Messages, budget: int) -> dict[str, Replayed]:
    """Play a conversation under each of them."""
    policies: dict[str, Any] = {
        "steady": lambda chat: fit(chat, budget, model=MODEL, steady=True).messages,
    }
    policies |= peer_policies.policies(budget, counter_for(MODEL).count, litellm=True)
    recording = read_recording(messages)
    return {
        name: replay(recording, policies[name], budget=budget, model=MODEL, pricing=PRICING, name=name)
        for name in NAMES
        if name in policies
    }


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--messages", type=int, default=150, help="of each recorded conversation (default 150)"
    )
    count = parser.parse_args().messages
    recorded = (conversations.airline(count), conversations.coding_session()[:count])
    agent = reader()
    found = [play(chat, 8_000) for chat in recorded] + [play(agent, 5_000)]
    price = {name: sum(one[name].totals.price for one in found) for name in found[0]}
    rows = [("", "refused by the provider", "over budget", "price", f"kept of {len(agent) - 1}")]
    for name in found[0]:
        totals = [one[name].totals for one in found]
        rows.append(
            (
                NAMES[name],
                f"{sum(one.invalid for one in totals):,}",
                f"{sum(one.over_limit for one in totals):,}",
                f"{price[name] / price[LOOP]:.2f}",
                str(found[-1][name].calls[-1].sent_messages),
            )
        )
    versions = ", ".join(f"{name} {version}" for name, version in peers.versions().items())
    print(f"{totals_of_calls(found):,} model calls; {versions}\n")
    rows.insert(1, ("---", *["---:"] * 4))
    for row in rows:
        print(f"| {' | '.join(row)} |")


def totals_of_calls(found: list[dict[str, Replayed]]) -> int:
    """Count the calls that each of them was asked for."""
    return sum(next(iter(one.values())).totals.calls for one in found)


if __name__ == "__main__":
    main()
