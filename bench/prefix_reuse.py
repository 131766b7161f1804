"""How much of each prompt is a prefix of the one before: what a prompt cache can serve.

Stateless, call by call, from the first call over budget on. `python bench/prefix_reuse.py [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import conversations
import recount
from conversations import Message, Messages

AIM = 0.9
TARGET_RATIO = 0.7
Trim = Callable[[Messages], Messages | None]
"""Returns what is sent, or None if the request was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """One conversation under one rule."""

    conversation: str
    budget: int
    rule: str
    calls: int
    """Calls from the first one over budget on."""
    reused_share: float
    """Tokens that are a prefix of the call before, of all tokens sent, whole messages, 0 to 1."""
    budget_share: float
    """Mean tokens sent of the budget."""
    cut_moves: int
    backward_moves: int
    """How often the oldest message of the unbroken newest run was older than at the call before."""
    refused: int
    """Calls for which there was no output."""
    over_budget: int
    broken: int
    """Outputs with an orphan result or an unanswered call the input did not have."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(slots=True)
class _Call:
    given: Messages
    sent: Messages
    tokens: int
    cut: int


class _Sizes:
    """Recounted sizes by identity: the conversation lives as long as the measurement."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[Message, int]] = {}

    def of(self, messages: Sequence[Message]) -> int:
        """Return the tokens of `messages`, without the fixed part of a request."""
        return sum(self._one(message) for message in messages)

    def _one(self, message: Message) -> int:
        known = self._sizes.get(id(message))
        if known is None:
            known = self._sizes[id(message)] = (message, recount.recount([message]) - recount.recount([]))
        return known[1]


def measure(conversation: str, messages: Messages, budget: int, *, rule: str, trim: Trim) -> Reuse:
    """Replay every model call under `trim` and compare each prompt with the one before."""
    sizes = _Sizes()
    fixed = recount.recount([])
    calls: list[_Call] = []
    before: _Call | None = None
    refused = 0
    for given in conversations.model_calls(messages):
        over = fixed + sizes.of(given) > budget
        sent = trim(given)
        if sent is None:
            refused += 1
            continue
        call = _Call(given, sent, fixed + sizes.of(sent), cut_of(given, sent))
        if over and not calls and before is not None:
            calls.append(before)
        if over or calls:
            calls.append(call)
        before = call
    return _summed(calls, sizes, conversation=conversation, budget=budget, rule=rule, refused=refused)


def cut_of(given: Messages, sent: Messages) -> int:
    """Return the index in `given` from which on everything was sent; edited messages count as sent."""
    cut, left = len(given), len(sent)
    while cut and left and _same_place(given[cut - 1], sent[left - 1]):
        cut, left = cut - 1, left - 1
    return cut


def _same_place(given: Message, sent: Message) -> bool:
    """Tell whether `sent` is `given`, or a shortened copy of it."""
    if given is sent:
        return True
    keys = ("role", "tool_call_id", "tool_calls")
    return all(given.get(key) == sent.get(key) for key in keys) and given["role"] == "tool"


def _common(one: Messages, other: Messages) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a is not b and a != b:
            break
        length += 1
    return length


def _summed(calls: list[_Call], sizes: _Sizes, **named: Any) -> Reuse:
    """Add up; the first of `calls` is only what the first one over budget is compared with."""
    pairs = list(pairwise(calls))
    sent = sum(after.tokens for _, after in pairs)
    reused = sum(sizes.of(after.sent[: _common(before.sent, after.sent)]) for before, after in pairs)
    return Reuse(
        calls=len(pairs),
        reused_share=reused / sent if sent else 1.0,
        budget_share=sent / len(pairs) / named["budget"] if pairs else 0.0,
        cut_moves=sum(before.cut != after.cut for before, after in pairs),
        backward_moves=sum(after.cut < before.cut for before, after in pairs),
        over_budget=sum(after.tokens > named["budget"] for _, after in pairs),
        broken=sum(_broken(after) for _, after in pairs),
        **named,
    )


def _broken(call: _Call) -> bool:
    return bool(recount.faults(call.sent, already_open=recount.unanswered(call.given)))


def cases() -> list[tuple[str, Messages, int]]:
    """Return the conversations and budgets of the aim."""
    airline, coding = conversations.airline(), conversations.coding_session()
    return [("airline", airline, 8_000), ("airline", airline, 32_000), ("coding", coding, 32_000)]


def run() -> list[Reuse]:
    """Measure trimtab with strides, and without for comparison, in every case."""
    import subject

    found = []
    for name, messages, budget in cases():
        for ratio in (TARGET_RATIO, 1.0):
            trim = subject.sliding(budget, target_ratio=ratio)
            found.append(measure(name, messages, budget, rule=f"target_ratio={ratio}", trim=trim))
    return found


def lines(found: Sequence[Reuse]) -> list[str]:
    """Return a table for a terminal."""
    head = f"{'conversation':<13}{'budget':>7}  {'rule':<18}{'calls':>6}{'prefix':>8}{'of budget':>11}"
    table = [head + f"{'cut moved':>11}{'back':>6}{'refused':>9}{'over':>6}{'broken':>8}"]
    for one in found:
        table.append(
            f"{one.conversation:<13}{one.budget:>7,}  {one.rule:<18}{one.calls:>6}{one.reused_share:>8.1%}"
            f"{one.budget_share:>11.0%}{one.cut_moves:>11}{one.backward_moves:>6}{one.refused:>9}"
            f"{one.over_budget:>6}{one.broken:>8}"
        )
    return table


def main() -> None:
    """Print the table, and write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = run()
    print("\n".join(lines(found)))
    if arguments.json:
        data = [one.to_dict() for one in found]
        arguments.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
