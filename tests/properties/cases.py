"""One fit and everything about it that a claim may want to look at; strategies and counters to try."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.builders import conversations
from tests.properties import oracle
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    EstimateCounter,
    Fitted,
    PriorityBased,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    counter_for,
    fit,
    testing,
)
from trimtab.formats import mapping_of
from trimtab.strategies import Cheapest, ClampResults, EvictionRequest, EvictionResult, Relevant, Strategy
from trimtab.testing import WordCounter

WORDS = WordCounter()


def primed(messages: list[Any]) -> int:
    """Count words, and 3 for the answer, as OpenAI's cookbook does."""
    return 3 + WORDS.count(messages)


def rounded(messages: list[Any]) -> int:
    """Count as a black box with one rounding over the whole list (X11)."""
    return -(-sum(map(WORDS.count_message, messages)) // 4)


def jumpy(messages: list[Any]) -> int:
    """Count as a black box that a further message may make smaller, as real tokenizers do."""
    return WORDS.count(messages) + 3 * (len(messages) % 3)


ADDITIVE = (WORDS, EstimateCounter(), counter_for("gpt-4o"))
BLACK_BOXES = (WORDS.count, rounded, primed)
COUNTERS = (*ADDITIVE, *BLACK_BOXES, jumpy)

LARGE = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
DEFAULT = Cascade(LARGE, SlidingWindow(), TruncateText())
WINDOWS = (
    SlidingWindow(),
    SlidingWindow(keep_turns=True),
    SlidingWindow(keep_first_user=True),
    SlidingWindow(protect_roles=("user",)),
    SlidingWindow(protect_roles=("system", "tool"), keep_first_user=True),
    SlidingWindow(keep_turns=True, keep_first_user=True),
    SlidingWindow(keep_turns=True, protect_roles=("system",)),
    SlidingWindow(keep_cached=True),
)
"""Those that take unit by unit, or turn by turn."""
STRIDES = tuple(
    SlidingWindow(target_ratio=ratio, keep_turns=turns, keep_first_user=first)
    for ratio in (0.5, 0.7)
    for turns in (False, True)
    for first in (False, True)
)
MINIMUMS = (
    SlidingWindow(min_messages=4),
    SlidingWindow(min_messages=6, keep_turns=True, keep_first_user=True),
    SlidingWindow(min_messages=3, target_ratio=0.5, protect_roles=("system",)),
)
OTHERS = (
    DEFAULT,
    Strict(),
    Drop(),
    DropNewest(),
    PriorityBased(),
    TruncateText(),
    TruncateText("end"),
    TruncateText("start"),
    TruncateText("both"),
    ClearToolResults(),
    ClearToolResults(keep_results=0),
    ClearToolResults(keep_results=1, clear_at_least_tokens=30, exclude_tools=("f",)),
    Cheapest(),
    Cascade(Cheapest(room_weight=2, cold_at=(3, 6)), TruncateText()),
    ClampResults(max_tokens=4),
    ClampResults(max_ratio=0.4, texts=True),
    Cascade(ClampResults(max_ratio=0.3), ClearToolResults(), SlidingWindow(target_ratio=0.5), TruncateText()),
    Cascade(ClampResults(max_tokens=7, texts=True), PriorityBased(), TruncateText("both")),
    Cascade(ClearToolResults(keep_results=0), SlidingWindow(keep_turns=True), TruncateText("both")),
    Cascade(SlidingWindow(keep_first_user=True, target_ratio=0.5), TruncateText()),
    Cascade(ClearToolResults(keep_results=1), PriorityBased(), TruncateText("start")),
    Cascade(DropNewest(), TruncateText()),
    Cascade(TruncateText(), Drop()),
    PriorityBased(score={"relevance": 1, "role": 0.3, "recency": 0.1}),
    Relevant(),
    Relevant("w ok", score="recency", recent_ratio=0),
    Cascade(Relevant(recent_ratio=1), TruncateText()),
)
GAPS = (
    Relevant(gap="[… {count} messages left out …]"),
    Cascade(ClearToolResults(keep_results=0), Relevant(gap="gap", recent_ratio=0.2), TruncateText()),
)
"""What puts a line where messages left; room is set aside for these."""


def gist(messages: list[Any]) -> str:
    """Summarize in a few words, the same ones every time."""
    return f"{len(messages)} messages, the first from {mapping_of(messages[0])['role']}"


SUMMARIES = (
    Summarize(gist),
    Summarize(gist, max_summary_tokens=12),
    Summarize(gist, max_summary_tokens=9_999, role="system"),
    Summarize(lambda messages: "", fallback=Cascade(SlidingWindow(), TruncateText())),
    Cascade(ClearToolResults(keep_results=0), Summarize(gist, fallback=DropNewest()), TruncateText()),
)
"""Those that put a message in; a result of theirs may be summarized again (A7)."""

STRATEGIES: tuple[Strategy, ...] = (*WINDOWS, *STRIDES, *MINIMUMS, *OTHERS)


class Watched:
    """A strategy that remembers what it was asked and what it answered."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.answers: list[EvictionResult] = []

    @property
    def name(self) -> str:
        """Give its own name."""
        return self.strategy.name

    @property
    def has_last_word(self) -> bool:
        """Say what it says: whether the newest may be cut behind it."""
        return getattr(self.strategy, "has_last_word", False)

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Ask it, and note the answer."""
        self.answers.append(self.strategy.evict(request))
        return self.answers[-1]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of `fit` and its outcome."""

    messages: list[Any]
    before: list[Any]
    """A deep copy made before."""
    limit: int
    strategy: Strategy
    counter: Any
    answers: list[EvictionResult]
    fitted: Fitted[Any] | None
    error: BudgetExceededError | None

    @property
    def attempt(self) -> Fitted[Any]:
        """What came out, or what came nearest."""
        found = self.fitted if self.error is None else self.error.attempt
        assert found is not None
        return found

    def count(self, messages: list[Any]) -> int:
        """Recount a request from nothing."""
        return int(getattr(self.counter, "count", self.counter)([mapping_of(m) for m in messages]))

    def __repr__(self) -> str:
        name = getattr(self.counter, "name", None) or self.counter.__qualname__
        return f"Case(limit={self.limit}, {self.strategy}, {name}, {self.before})"


def run(messages: list[Any], limit: int, strategy: Strategy, counter: Any, **how: Any) -> Case:
    """Call `fit` and note what came of it."""
    before = copy.deepcopy(messages)
    watched, fitted, error = Watched(strategy), None, None
    try:
        fitted = fit(messages, limit, counter=counter, strategy=watched, **how)
    except BudgetExceededError as caught:
        error = caught
    return Case(
        messages=messages,
        before=before,
        limit=limit,
        strategy=strategy,
        counter=counter,
        answers=watched.answers,
        fitted=fitted,
        error=error,
    )


def total(messages: list[Any], counter: Any) -> int:
    """Count a whole request."""
    return int(getattr(counter, "count", counter)(messages))


SEEDED = st.integers(0, 9_999).map(lambda seed: testing.conversations(1, seed=seed)[0])
"""Longer ones, from the generator that users of `trimtab.testing` get."""

TALKS = st.one_of(conversations(), conversations(), SEEDED)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    strategies: tuple[Strategy, ...] = STRATEGIES,
    counters: tuple[Any, ...] = COUNTERS,
    talks: st.SearchStrategy[list[Any]] | None = None,
) -> Case:
    """Fit a random conversation, mostly into less than it has and more than must stay anyway."""
    messages = draw(TALKS if talks is None else talks)
    counter = draw(st.sampled_from(counters))
    strategy = draw(st.sampled_from(strategies))
    return run(messages, draw(limits(messages, counter)), strategy, counter)


def limits(messages: list[Any], counter: Any) -> st.SearchStrategy[int]:
    """Draw a limit between half of what must stay and a little more than all."""
    whole = total(messages, counter)
    least = total(oracle.chosen(messages, oracle.staying(messages)), counter)

    def limit(percent: int) -> int:
        room = (whole - least) * percent if percent > 0 else least * percent
        return max(1, least + room // 100)

    return st.integers(-40, 110).map(limit)
