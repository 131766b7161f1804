"""The only file of the bench that knows trimtab's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conversations import Messages

import trimtab
from trimtab.counting import clear_counts, measure
from trimtab.stores import SQLiteStore
from trimtab.strategies import ClampResults, DropNewest, Relevant

MODEL = "gpt-4o"
"""Its exact counter has the encoding and the formula of formula.py; cases.py checks the totals."""


STORE_SYNCHRONOUS = "FULL"
"""How sure SQLiteStore is by default that a commit is on the disk."""

STRIDES = trimtab.SlidingWindow(target_ratio=0.7)
AGENT = trimtab.Cascade(trimtab.ClearToolResults(keep_results=2), STRIDES, trimtab.TruncateText())
"""The cascade of docs/guides/agent.md."""
PRIORITY = trimtab.PriorityBased()
RELEVANT = Relevant()


def fresh_counter() -> Any:
    """Return a counter that remembers no text; the tokenizer behind it stays loaded.

    `counter_for` gives everyone the same counter, so what it remembers has to be cleared. Checked each
    time: a bench whose cache is not empty measures look-ups, and looks splendid.
    """
    clear_counts()
    counter = trimtab.counter_for(MODEL)
    remembered = len(counter._cache)
    if remembered:
        raise RuntimeError(f"the counter still remembers {remembered} texts: this would time a warm cache")
    return counter


def trim(messages: Messages, limit_tokens: int, counter: Any) -> Messages:
    """Fit and take the messages: what a user does before a call."""
    kept: Messages = trimtab.fit(messages, budget=limit_tokens, counter=counter).messages
    return kept


def trim_and_report(messages: Messages, limit_tokens: int, counter: Any) -> Messages:
    """Fit, take the messages and build every row of the report."""
    fitted = trimtab.fit(messages, budget=limit_tokens, counter=counter)
    fitted.report.to_dict()
    kept: Messages = fitted.messages
    return kept


def reported_tokens(messages: Messages, limit_tokens: int, counter: Any) -> int:
    """Return the size after fitting as trimtab's own report gives it."""
    return int(trimtab.fit(messages, budget=limit_tokens, counter=counter).report.tokens_after)


def warm(counter: Any) -> None:
    """Load the tokenizer with one short text, as the plain loop's process does too."""
    counter.count([{"role": "user", "content": "hi"}])


def fitted(messages: Any, limit_tokens: int, counter: Any, **options: Any) -> Any:
    """Fit in any way and take the messages."""
    return trimtab.fit(messages, limit_tokens, counter=counter, **options).messages


def fitted_blocks(blocks: list[Messages], limit_tokens: int, counter: Any) -> Messages:
    """Fit a context whose blocks may each have an equal part of the budget."""
    context = trimtab.Context(limit_tokens, counter=counter)
    for number, block in enumerate(blocks):
        context.add(f"block {number}", block, max_ratio=1 / len(blocks))
    kept: Messages = context.fit().messages
    return kept


def tool_tokens(tools: list[dict[str, Any]]) -> int:
    """Return what tools add to a request."""
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    return int(measure({**body, "tools": tools}).tokens - measure(body).tokens)


def session(limit_tokens: int, messages: Messages, **options: Any) -> Any:
    """Return a session that holds messages."""
    made = trimtab.Session(limit_tokens, counter=fresh_counter(), **options)
    made.extend(messages)
    return made


def stored_session(file: Path, limit_tokens: int, messages: Messages) -> Any:
    """Return a session that is stored in a file of SQLite."""
    return session(limit_tokens, messages, store=SQLiteStore(file), id="bench")


def sliding(limit_tokens: int, *, target_ratio: float) -> Callable[[Messages], Messages | None]:
    """Return a stateless trim with `SlidingWindow(target_ratio=…)`; only counts are remembered.

    It answers None where trimtab refuses: what must stay does not fit.
    """
    counter = fresh_counter()
    strategy = trimtab.SlidingWindow(target_ratio=target_ratio)

    def trim_or_none(messages: Messages) -> Messages | None:
        try:
            fitted = trimtab.fit(messages, budget=limit_tokens, counter=counter, strategy=strategy)
        except trimtab.BudgetExceededError:
            return None
        kept: Messages = fitted.messages
        return kept

    return trim_or_none


def options() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield each option of each strategy with what `fit` is asked, and whether all messages have a say."""
    from tests.own_strategies import FromNewest, Unchanged  # not above: no other table needs the tests

    window, clear, cut = trimtab.SlidingWindow, trimtab.ClearToolResults, trimtab.TruncateText

    def cleared(**given: Any) -> Any:
        return trimtab.Cascade(clear(**given), STRIDES, cut())

    def clamped(**given: Any) -> Any:
        return trimtab.Cascade(ClampResults(max_ratio=0.25, **given), window())

    yield "default", {}, False
    yield "steady", {"steady": True}, False
    yield "agent preset", {"strategy": "agent"}, False
    yield "SlidingWindow()", {"strategy": window()}, False
    yield "  target_ratio=0.7", {"strategy": STRIDES}, False
    yield "  min_messages=10", {"strategy": window(min_messages=10)}, False
    yield "  keep_first_user", {"strategy": window(keep_first_user=True)}, False
    yield "  keep_turns", {"strategy": window(keep_turns=True)}, False
    yield "  keep_cached", {"strategy": window(keep_cached=True)}, True
    yield "  protect_roles=system", {"strategy": window(protect_roles=["system"])}, True
    yield "ClearToolResults(), window, cut", {"strategy": cleared()}, False
    yield "  keep_results=10", {"strategy": cleared(keep_results=10)}, False
    yield "  clear_at_least_tokens=2000", {"strategy": cleared(clear_at_least_tokens=2_000)}, False
    yield "  exclude_tools", {"strategy": cleared(exclude_tools=["think"])}, False
    yield "  target_ratio=1", {"strategy": cleared(target_ratio=1.0)}, False
    yield (
        "ClampResults(0.25), window",
        {"strategy": trimtab.Cascade(ClampResults(max_ratio=0.25), window())},
        False,
    )
    yield "  texts", {"strategy": trimtab.Cascade(ClampResults(max_ratio=0.25, texts=True), window())}, True
    yield "TruncateText()", {"strategy": cut()}, True
    yield "DropNewest()", {"strategy": DropNewest()}, True
    yield "PriorityBased()", {"strategy": PRIORITY}, True
    yield "Relevant()", {"strategy": RELEVANT}, True
    yield "cheapest", {"strategy": "cheapest"}, True
    yield "a class derived from SlidingWindow", {"strategy": Unchanged()}, False
    yield "one's own, newest_first()", {"strategy": FromNewest()}, False
    yield "pin", {"pin": [4]}, False
    yield "repair", {"repair": True}, False
    yield "on_trim that does nothing", {"on_trim": lambda context: None}, False
