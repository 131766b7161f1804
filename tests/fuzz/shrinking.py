"""Make a failing case small: drop messages, parts and options while it still fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.checking import problems
from tests.fuzz.plans import Plan
from trimtab.formats import get_format

_MOST_TRIES = 3_000
_BARE: dict[str, Any] = {}
"""Blocks without options."""
_PLAINER: tuple[dict[str, Any], ...] = (
    {"removed": None},
    {"pin": ()},
    {"pending_calls": ()},
    {"repair": False},
    {"black_box": False},
    {"strategy": None},
    {"door": "list", "cuts": (), "options": ()},
    {"counter": "words"},
    _BARE,
)
"""Values of a case that make it plainer, unless it has them."""


def shrink(plan: Plan) -> tuple[Plan, list[str]]:
    """Return the smallest case found that has the first problem of this one, and what is wrong with it."""
    found = problems(plan)
    wanted, tries = kind_of(found[0]), 0
    changed = True
    while changed and tries < _MOST_TRIES:
        changed = False
        for smaller in _smaller(plan):
            tries += 1
            try:
                now = problems(smaller)
            except (LookupError, TypeError, ValueError):  # what is left is no case any more
                continue
            if any(kind_of(one) == wanted for one in now):
                plan, found, changed = smaller, now, True
                break
    return plan, [one for one in found if kind_of(one) == wanted]


def kind_of(problem: str) -> str:
    """Say what kind of problem it is, without ids and numbers."""
    return re.split(r" of | \d", problem)[0]


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Give cases a step smaller, the largest steps first."""
    key = get_format(plan.form).rules.body_key
    messages = plan.body[key]
    for size in (len(messages) // 2, 1):
        for at in range(0, len(messages), max(1, size)) if size else ():
            yield _with(plan, key, messages[:at] + messages[at + size :], at, size)
    for name in plan.body:
        if name not in (key, "model"):
            yield replace(plan, body={k: v for k, v in plan.body.items() if k != name})
    for plainer in _PLAINER:
        blocks = {"options": tuple({} for _ in plan.options)} if plainer is _BARE else plainer
        if any(getattr(plan, name) != value for name, value in blocks.items()):
            yield replace(plan, **blocks)
    for at, message in enumerate(messages):
        for less in _less(message):
            yield replace(plan, body={**plan.body, key: [*messages[:at], less, *messages[at + 1 :]]})


def _with(plan: Plan, key: str, messages: list[Any], at: int, size: int) -> Plan:
    """Take messages out, and move what points at those behind them."""

    def moved(index: int) -> int:
        return index if index < at else max(at, index - size)

    return replace(
        plan,
        body={**plan.body, key: messages},
        pin=tuple(moved(index) for index in plan.pin if not at <= index < at + size),
        cuts=tuple(moved(index) for index in plan.cuts),
        removed=None if plan.removed is None else tuple(map(moved, plan.removed)),
    )


def _less(message: Any) -> Iterator[Any]:
    """Give a message with a part, a field or the length of a text less."""
    for name, value in message.items() if isinstance(message, dict) else ():
        for less in _less_of(name, value):
            yield {**message, name: less}
    for name in message if isinstance(message, dict) else ():
        if name not in ("role", "type", *_IDS):
            yield {key: value for key, value in message.items() if key != name}


_IDS = ("id", "call_id", "tool_use_id", "tool_call_id")


def _less_of(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, part in enumerate(value):
            yield from ([*value[:at], less, *value[at + 1 :]] for less in _less(part))
    elif isinstance(value, dict):
        yield from _less(value)
    elif isinstance(value, str) and len(value.split()) > 1 and name not in ("role", "type"):
        yield value.split()[0]
