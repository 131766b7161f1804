"""A margin that holds for what comes out: what nobody can know of a request is known once it is fitted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from trimtab.budget import Budget
from trimtab.counting.margin import margin_of, unsure_of
from trimtab.formats import Format, mapping_of
from trimtab.strategies.summarizer import SummaryCall

__all__ = ["Decided", "held", "within"]

T = TypeVar("T")

Decided = tuple[bool, int, Callable[[], Iterable[Any]]]
"""Whether it fits, tokens of the whole, and what gives its messages."""


def within(budget: Budget, counter: Any, tools: Any, /) -> Budget:
    """Resolve a budget for a request of which its tools alone are known."""
    if budget.margin != "auto":
        return budget
    return budget.resolved(counter, unsure_tokens=unsure_of(counter, tools, ()) or 0)


def held(
    budget: Budget,
    counter: Any,
    tools: Any,
    format: Format,
    /,
    *,
    decide: Callable[[Budget], Generator[SummaryCall, str | None, T]],
    decided: Callable[[T], Decided],
    everything: Callable[[], Iterable[Any]],
) -> Generator[SummaryCall, str | None, T]:
    """Decide for a budget so that its margin holds for what stays.

    With the tools' part of it first; if what stays has more that nobody can know, again with that, and
    then with all there is in the input, of which what stays can only be a part.
    """
    made = yield from decide(within(budget, counter, tools))
    if budget.margin != "auto" or not hasattr(counter, "unsure_tokens"):
        return made
    room_tokens = Budget(
        budget.window, output_reserve=budget.output_reserve, overhead_tokens=budget.overhead_tokens
    ).input_tokens

    def unsure_in(messages: Iterable[Any]) -> int:
        pieces = [format.pieces(mapping_of(message)) for message in messages]
        return unsure_of(counter, tools, pieces) or 0

    for widest in (False, True):
        fits, tokens, messages = decided(made)
        if not fits:
            return made  # and with less room it would not either
        unsure_tokens = unsure_in(messages())
        if tokens + margin_of(counter, tokens) + unsure_tokens <= room_tokens:
            return made
        if widest:
            unsure_tokens = unsure_in(everything())
        made = yield from decide(budget.resolved(counter, unsure_tokens=unsure_tokens))
    return made
