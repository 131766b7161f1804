"""What rules that are found cost of a prompt cache: price and reuse with `find_rules`, of those without.

    python -m bench.rules_price DATA

DATA is a folder with tau_airline_gpt4o.jsonl and glaive_toolcall_en.jsonl, one conversation a line. Six chats
are made of them, each of several conversations one behind the other. Fifteen rules are put into the messages
of the user, at equal distances. A session has a budget of 15 % of all tokens, and each message of the user is
a request: what it shares with the request before, in whole messages, costs a tenth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

from trimtab import Session
from trimtab.counting import counter_for, measure

Message = dict[str, Any]

MODEL = "gpt-4o"
CACHED = 0.1
SHARE = 0.15

RULES = (
    "Never book a flight that lands after midnight.",
    "From now on, answer in short sentences.",
    "I prefer aisle seats.",
    "My budget is $1,200 for the whole trip.",
    "Always show prices with tax.",
    "Never use emojis.",
    "Do not send anything to my office without my approval.",
    "Always name the airline first.",
    "I'm allergic to peanuts.",
    "Never change a booking without asking me.",
    "For the rest of this conversation, use metric units.",
    "No more than 3 suggestions per answer.",
    "Under no circumstances may you charge my old card.",
    "Keep your answers under 100 words.",
    "Always quote the confirmation number.",
)


class Cost(NamedTuple):
    """What the requests of a chat cost."""

    price: float
    sent: int
    reused: int
    restated: float
    """The mean share of the budget that the restated rules take."""


def chats(folder: Path) -> list[list[Message]]:
    """Make six chats: three of four long conversations each, three of twenty short ones."""
    tau, glaive = (
        [json.loads(line)["messages"] for line in (folder / name).read_text().splitlines()]
        for name in ("tau_airline_gpt4o.jsonl", "glaive_toolcall_en.jsonl")
    )
    groups = [tau[at : at + 4] for at in (0, 4, 8)] + [glaive[at : at + 20] for at in (0, 20, 40)]
    return [
        [message for chat in group for message in chat if message["role"] != "system"] for group in groups
    ]


def planted(chat: Sequence[Message]) -> list[Message]:
    """Put the rules into messages of the user, at equal distances."""
    users = [at for at, message in enumerate(chat) if message["role"] == "user"]
    places = {users[at * len(users) // len(RULES)]: rule for at, rule in enumerate(RULES)}
    return [
        {**message, "content": f"{message['content']}\n\n{places[at]}"} if at in places else message
        for at, message in enumerate(chat)
    ]


def cost(chat: Sequence[Message], budget: int, find_rules: Any) -> Cost:
    """Play a chat, and add up what is sent at each message of the user."""
    session = Session(budget, model=MODEL, find_rules=find_rules)
    counter = counter_for(MODEL)
    before: list[Message] = []
    price, sent, reused, restated, requests = 0.0, 0, 0, 0, 0
    for message in chat:
        session.add(message)
        if message["role"] != "user":
            continue
        view = session.messages()
        sizes = [counter.count_message(one) for one in view]
        same = sum(1 for _ in takewhile(bool, map(eq, before, view)))
        price += sum(sizes[same:]) + CACHED * sum(sizes[:same])
        sent, reused = sent + sum(sizes), reused + sum(sizes[:same])
        restated, requests = restated + session.token_breakdown.rules, requests + 1
        before = view
    return Cost(price, sent, reused, restated / requests / budget)


def main() -> None:
    """Write a row for each chat."""
    totals = {"off": [0.0, 0, 0], "auto": [0.0, 0, 0]}
    print("chat  messages  budget   price  a token   reuse off   on   restated")
    for number, chat in enumerate(map(planted, chats(Path(sys.argv[1]))), 1):
        budget = int(SHARE * measure(chat, model=MODEL).tokens)
        off, on = (cost(chat, budget, find) for find in ("off", "auto"))
        for name, one in (("off", off), ("auto", on)):
            totals[name] = [a + b for a, b in zip(totals[name], one[:3], strict=True)]
        print(
            f"{number:>4}  {len(chat):>8}  {budget:>6}  {on.price / off.price:>6.3f}"
            f"  {on.price / on.sent / (off.price / off.sent):>7.3f}"
            f"  {off.reused / off.sent:>9.3f}  {on.reused / on.sent:.3f}  {on.restated:>8.1%}"
        )
    off, on = totals["off"], totals["auto"]
    print(
        f" all                    {on[0] / off[0]:>6.3f}  {on[0] / on[1] / (off[0] / off[1]):>7.3f}"
        f"  {off[2] / off[1]:>9.3f}  {on[2] / on[1]:.3f}"
    )


if __name__ == "__main__":
    main()
