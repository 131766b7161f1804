"""One property of every adapter: whatever it is asked for, what is sent is valid and within the budget.

An adapter says how it plays a loop, and which of its own words it takes beside those of `fit`; what is asked
for, and what has to hold of it, is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import pytest

from tests.integrations.loops import Loop, short
from tests.integrations.upstream import BUDGET_TOKENS, Score, count_marks
from trimtab import Budget, Context
from trimtab.errors import ConfigurationError
from trimtab.strategies import Cascade, ClampResults, SlidingWindow, TruncateText, create_strategy

LOOP = short()


class Play(Protocol):
    """Plays a loop with an adapter that is given a budget and options; returns what was sent and kept."""

    def __call__(self, loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
        """Play it."""


class Way(NamedTuple):
    """A way to send messages through an adapter: a model class, a wire form, streamed or not."""

    play: Play
    most_marks: int = 0
    """How many marks a request may have; 0: the model takes none, or needs none."""
    refuses_marks: str | None = None
    """The word of its own beside which the adapter refuses to set marks; "": beside any."""
    has_marks: bool = False
    """Whether the marks of the loop's user are written, in the framework's own words."""
    counts: bool = True
    """Whether what is counted is never below what is sent."""


RULES = ["Never deploy on Fridays."]

ASKED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "breakpoints": {"breakpoints": True},
    "breakpoints, an hour": {"breakpoints": {"type": "ephemeral", "ttl": "1h"}},
    "steady": {"steady": True},
    "pin": {"pin": [0]},
    "pin by a function, breakpoints": {"pin": lambda message, at: at == 2, "breakpoints": True},
    "what looks on": {"on_trim": lambda event: None, "origin": lambda message: None, "strict": True},
    "repair": {"repair": True},
    "rules": {"rules": RULES},
    "rules, breakpoints": {"rules": RULES, "breakpoints": True},
    **{
        f"{name}, breakpoints": {"strategy": name, "breakpoints": True} for name in ("agent", "truncate_text")
    },
    **{
        f"{name}, breakpoints": {
            "strategy": Cascade(ClampResults(max_ratio=0.2), create_strategy(name), TruncateText()),
            "breakpoints": True,
        }
        for name in ("cheapest", "relevant", "sliding_window")
    },
}
"""Options of `fit`, as a user of any adapter may say them."""

STRIDES = Cascade(ClampResults(max_ratio=0.2), SlidingWindow(target_ratio=0.75), TruncateText())

BUDGETS: dict[str, Callable[[], Any]] = {
    "a reserve": lambda: Budget(BUDGET_TOKENS + 500, output_reserve=500),
    "a number": lambda: BUDGET_TOKENS,
    "a context": lambda: Context(BUDGET_TOKENS).add("history", [], strategy=STRIDES),
    "a context, rules": lambda: Context(BUDGET_TOKENS, rules=RULES).add("history", [], strategy=STRIDES),
    "a context, breakpoints": lambda: Context(BUDGET_TOKENS, breakpoints=True).add(
        "history", [], strategy=STRIDES
    ),
}
"""Budgets that mean the same number of tokens."""


BESIDE = ("nothing", "breakpoints", "a context, breakpoints")
"""What is asked for beside an adapter's own words."""


EVERY = 4
"""Each way is asked for what is most often asked for, and for one in so many of the others; the ways begin at
different ones, and `make test-integrations LONG=1` asks each for all."""


def cases(ways: Mapping[str, Way], own: Mapping[str, Mapping[str, Any]]) -> Iterator[Any]:
    """List what each way is asked for: each of those above, beside each of an adapter's own words."""
    for first, (name_of_way, way) in enumerate(ways.items()):
        for at, (name, budget, options) in enumerate(_asked(own)):
            often = name == "breakpoints" or (at - first) % EVERY == 0
            yield pytest.param(
                *(way, budget, options, "breakpoints" in name),
                id=f"{name_of_way}-{name}",
                marks=() if often else pytest.mark.long,
            )


def _asked(own: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for words, more in {"": {}, **own}.items():
        said: list[tuple[str, Any, Mapping[str, Any]]] = []
        said += ((name, "4k", options) for name, options in ASKED.items() if not more or name in BESIDE)
        said += ((name, budget, {}) for name, budget in BUDGETS.items() if not more or name in BESIDE)
        for name, budget, options in said:
            yield ", ".join(filter(None, (name, words))), budget, {**options, **more}


def property_of(ways: Mapping[str, Way], own: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """Make the test of an adapter.

    Args:
        ways: Its ways to send messages.
        own: The words that it takes beside those of `fit`.
    """

    @pytest.mark.parametrize(("way", "budget", "options", "asks_marks"), list(cases(ways, own or {})))
    def test(way: Way, budget: Any, options: dict[str, Any], asks_marks: bool) -> None:
        """The body that was sent, judged and counted in the form of the wire."""
        hold_way(way, budget() if callable(budget) else budget, options, asks_marks=asks_marks)

    return test


def hold_way(way: Way, budget: Any, options: dict[str, Any], *, asks_marks: bool) -> None:
    """Play a loop, and hold what was sent to what every adapter promises."""
    if asks_marks and way.refuses_marks is not None and way.refuses_marks in ("", *options):
        with pytest.raises(ConfigurationError, match="breakpoints"):
            way.play(LOOP, budget, **options)
        return
    seen: list[Any] = []
    score, kept = way.play(LOOP, budget, on_fitted=seen.append, **options)
    counted = [fitted.report.tokens_after for fitted in seen]
    pairs = zip(score.sizes, counted, strict=True) if len(score.sizes) == len(counted) else ()
    found: dict[str, Any] = {
        "not asked": [] if score.requests == LOOP.model_calls else [score.requests],
        "invalid": score.invalid,
        "over": score.over,
        "sent, and counted less": [pair for pair in pairs if way.counts and pair[0] > pair[1]],
    }
    if "rules" in options or (isinstance(budget, Context) and budget.policy.rules):
        # objects of some frameworks are written without their text
        shows = [
            str([getattr(one, "text", 0) or one for one in fitted.messages]).count(RULES[0])
            for fitted in seen
        ]
        found["rules that are not there once"] = [count for count in shows if count != 1]
    own = sum(question.is_marked for question in LOOP.questions) if way.has_marks else 0
    found["marks of ours that stay"] = [kept] if count_marks(kept) > own else []
    most, least = (way.most_marks, 1) if way.most_marks and asks_marks else (0, 0)
    found["marks"] = [count for count in score.marks if not way.has_marks and not least <= count <= most]
    assert not any(found.values()), {name: faults for name, faults in found.items() if faults}
