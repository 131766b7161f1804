"""Strategies as plain data: made from a kind or a mapping, written back, refused with near names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from trimtab import (
    Cascade,
    ClearToolResults,
    ConfigurationError,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Strict,
    TruncateText,
    create_strategy,
)
from trimtab.errors import UnknownNameError
from trimtab.models import CachePricing
from trimtab.strategies import (
    Cheapest,
    ClampResults,
    EvictionRequest,
    EvictionResult,
    Place,
    Relevant,
    Strategy,
    StrategyKind,
    Summarize,
    default_score,
    strategy_data,
)


def by_length(message: Mapping[str, Any], place: Place) -> float:
    """Score a message by the length of its content."""
    return float(len(str(message["content"])))


class KeepAll:
    """A strategy of a user's own, without a form as data."""

    name = "keep_all"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Give up at once."""
        return EvictionResult(kept=request.units, fits=False)


STRATEGIES: list[tuple[dict[str, Any], Strategy]] = [
    ({"kind": "sliding_window"}, SlidingWindow()),
    (
        {
            "kind": "sliding_window",
            "protect_roles": ["user", "tool"],
            "keep_turns": True,
            "keep_first_user": True,
            "min_messages": 4,
            "target_ratio": 0.5,
        },
        SlidingWindow(
            protect_roles=("user", "tool"),
            keep_turns=True,
            keep_first_user=True,
            min_messages=4,
            target_ratio=0.5,
        ),
    ),
    ({"kind": "priority_based"}, PriorityBased()),
    ({"kind": "priority_based", "score": "relevance"}, PriorityBased(score={"relevance": 1})),
    (
        {"kind": "priority_based", "score": {"relevance": 1, "role": 0.3}},
        PriorityBased(score={"role": 0.3, "relevance": 1.0}),
    ),
    ({"kind": "relevant"}, Relevant()),
    (
        {
            "kind": "relevant",
            "query": "the cat",
            "score": {"relevance": 1, "recency": 0.5},
            "recent_ratio": 0.2,
            "gap": "… {count} …",
        },
        Relevant("the cat", score={"relevance": 1, "recency": 0.5}, recent_ratio=0.2, gap="… {count} …"),
    ),
    ({"kind": "strict"}, Strict()),
    ({"kind": "drop"}, Drop()),
    ({"kind": "drop_newest"}, DropNewest()),
    ({"kind": "truncate_text"}, TruncateText()),
    ({"kind": "truncate_text", "keep": "both"}, TruncateText(keep="both")),
    ({"kind": "clear_tool_results"}, ClearToolResults()),
    (
        {
            "kind": "clear_tool_results",
            "keep_results": 1,
            "clear_at_least_tokens": 50,
            "exclude_tools": ["plan"],
            "placeholder": "gone",
        },
        ClearToolResults(
            keep_results=1, clear_at_least_tokens=50, exclude_tools=("plan",), placeholder="gone"
        ),
    ),
    ({"kind": "cheapest"}, Cheapest()),
    (
        {
            "kind": "cheapest",
            "pricing": {"write": 2.0, "lifetime_seconds": None},
            "room_weight": 0.2,
            "expected_calls": 9,
            "cold_at": [3, 40],
        },
        Cheapest(
            pricing=CachePricing(write=2.0, lifetime_seconds=None),
            room_weight=0.2,
            expected_calls=9,
            cold_at=(3, 40),
        ),
    ),
    ({"kind": "clamp_results", "max_tokens": 40}, ClampResults(max_tokens=40)),
    (
        {"kind": "clamp_results", "max_tokens": 40, "keep": {"grep": "start"}},
        ClampResults(max_tokens=40, keep={"grep": "start"}),
    ),
    (
        {"kind": "clamp_results", "max_ratio": 0.25, "texts": True},
        ClampResults(max_ratio=0.25, texts=True),
    ),
    (
        {"kind": "cascade", "steps": ["drop_newest", {"kind": "truncate_text", "keep": "end"}]},
        Cascade(DropNewest(), TruncateText(keep="end")),
    ),
    (
        {"kind": "cascade", "steps": [{"kind": "cascade", "steps": ["strict"]}]},
        Cascade(Cascade(Strict())),
    ),
]

NEED_A_SUMMARIZER = {StrategyKind.SUMMARIZE, StrategyKind.SLIDING_WINDOW_WITH_SUMMARY}

every_strategy = pytest.mark.parametrize(
    ("data", "strategy"), STRATEGIES, ids=[json.dumps(data) for data, _ in STRATEGIES]
)


def test_every_kind_is_in_the_table() -> None:
    """A kind that comes is put into the table too; those that need a summarizer are tried below."""
    made = set(StrategyKind) - NEED_A_SUMMARIZER
    assert {data["kind"] for data, _ in STRATEGIES} == made


@every_strategy
def test_data_makes_the_strategy_that_code_makes(data: dict[str, Any], strategy: Strategy) -> None:
    """Each option of the constructor is an option of the data, under the same name."""
    assert create_strategy(data) == strategy


@every_strategy
def test_a_strategy_survives_the_trip_through_json(data: dict[str, Any], strategy: Strategy) -> None:
    """What `strategy_data` writes is plain, complete, and read back as an equal strategy."""
    written = strategy_data(strategy)
    assert written["kind"] == data["kind"]
    assert data.keys() <= written.keys()
    assert create_strategy(json.loads(json.dumps(written))) == strategy


NEEDS_MORE = {StrategyKind.CASCADE, StrategyKind.CLAMP_RESULTS, *NEED_A_SUMMARIZER}


@pytest.mark.parametrize("kind", [kind for kind in StrategyKind if kind not in NEEDS_MORE])
def test_a_kind_alone_is_enough(kind: StrategyKind) -> None:
    """As a word, as a member of `StrategyKind`, and as a mapping."""
    assert create_strategy(kind) == create_strategy(kind.value) == create_strategy({"kind": kind.value})
    assert create_strategy(kind).name == kind


@pytest.mark.parametrize(
    ("alias", "strategy"),
    [("truncate_oldest", SlidingWindow()), ("drop_head", SlidingWindow()), ("drop_tail", DropNewest())],
)
def test_words_of_other_libraries_are_understood(alias: str, strategy: Strategy) -> None:
    """SPEC C10 names them."""
    assert create_strategy(alias) == strategy


@pytest.mark.parametrize(
    ("word", "near"),
    [("sliding-window", "sliding_window"), ("slidingwindow", "sliding_window"), ("drop_tails", "drop_tail")],
)
def test_a_misspelt_kind_is_answered_with_near_names(word: str, near: str) -> None:
    """The names are in the message and in `.near`."""
    with pytest.raises(UnknownNameError, match=near) as caught:
        create_strategy(word)
    assert caught.value.name == word
    assert near in caught.value.near


def test_a_kind_like_no_other_lists_all() -> None:
    """Nothing is suggested where nothing is near."""
    with pytest.raises(UnknownNameError, match="sliding_window, cheapest, priority_based") as caught:
        create_strategy("zzz")
    assert caught.value.near == ()


@pytest.mark.parametrize("kind", sorted(NEED_A_SUMMARIZER))
@pytest.mark.parametrize("options", [{}, {"max_summary_tokens": 9}])
def test_a_summary_without_a_summarizer_is_an_error_at_once(kind: str, options: dict[str, Any]) -> None:
    """Not a window that silently loses what it was to summarize."""
    with pytest.raises(ConfigurationError, match=f"{kind} needs a summarizer"):
        create_strategy({"kind": kind, **options})


@pytest.mark.parametrize("kind", sorted(NEED_A_SUMMARIZER))
def test_a_summarizer_is_written_by_its_name(kind: str) -> None:
    """The function is given again when the data is read."""
    data = {
        "kind": kind,
        "summarizer": "mine",
        "max_summary_tokens": 50,
        "role": "system",
        "fallback": "drop",
    }
    names = {"mine": _summary}
    strategy = create_strategy(data, names=names)
    assert isinstance(strategy, Summarize)
    assert (strategy.max_summary_tokens, strategy.role, strategy.fallback) == (50, "system", Drop())
    written = json.loads(json.dumps(strategy_data(strategy)))
    assert written == {**data, "kind": "summarize", "fallback": {"kind": "drop"}, **_BY_DEFAULT}
    assert strategy_data(create_strategy(written, names=names)) == written
    with pytest.raises(UnknownNameError, match="no summarizer is called 'mine'; names= has: mime"):
        create_strategy(data, names={"mime": _summary})
    with pytest.raises(ConfigurationError, match="has no name for data"):
        strategy_data(Summarize(_summary))


_BY_DEFAULT = {"trust_summaries": False, "must_keep": "values"}


def _summary(messages: list[Any]) -> str:
    return f"{len(messages)} messages"


def test_a_strategy_of_ones_own_needs_a_name() -> None:
    """Reports and data say which strategy it was."""

    class Nameless:
        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            return EvictionResult(kept=request.units, fits=False)

    with pytest.raises(ConfigurationError, match="a name for reports"):
        create_strategy("mine", names={"mine": Nameless()})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param({}, "needs 'kind'", id="no-kind"),
        pytest.param({"kind": 3}, "needs 'kind'", id="kind-no-word"),
        pytest.param(["strict"], "a kind or a mapping", id="list"),
        pytest.param(None, "a kind or a mapping", id="none"),
        pytest.param({"kind": "strict", "keep": "end"}, "no option 'keep'.*no options", id="option-of-none"),
        pytest.param(
            {"kind": "truncate_text", "Keep": "end"}, "no option 'Keep'.* has: keep", id="unknown-option"
        ),
        pytest.param({"kind": "truncate_text", "keep": "middle"}, "keep must be one of", id="keep"),
        pytest.param({"kind": "truncate_text", "keep": "ends"}, "not 'ends'; did you mean end", id="near"),
        pytest.param({"kind": "sliding_window", "target_ratio": 0}, "target_ratio", id="ratio-0"),
        pytest.param({"kind": "sliding_window", "target_ratio": 1.01}, "target_ratio", id="ratio-above-1"),
        pytest.param({"kind": "sliding_window", "min_messages": -1}, "min_messages", id="negative"),
        pytest.param({"kind": "sliding_window", "min_messages": True}, "min_messages", id="bool-for-count"),
        pytest.param({"kind": "sliding_window", "protect_roles": "user"}, "protect_roles", id="bare-role"),
        pytest.param(
            {"kind": "sliding_window", "keep_turns": "x"}, "keep_turns must be True", id="turns-word"
        ),
        pytest.param({"kind": "sliding_window", "keep_turns": 1}, "keep_turns must be True", id="turns-1"),
        pytest.param({"kind": "sliding_window", "keep_turns": None}, "keep_turns", id="turns-none"),
        pytest.param(
            {"kind": "sliding_window", "keep_first_user": "false"},
            "keep_first_user must be True",
            id="first-word",
        ),
        pytest.param(
            {"kind": "sliding_window", "keep_first_user": 0}, "keep_first_user must be True", id="first-0"
        ),
        pytest.param({"kind": "clear_tool_results", "keep_results": -1}, "keep_results", id="results"),
        pytest.param({"kind": "clear_tool_results", "placeholder": 3}, "placeholder", id="placeholder"),
        pytest.param({"kind": "cascade"}, "steps must be a list", id="no-steps"),
        pytest.param({"kind": "cascade", "steps": "strict"}, "steps must be a list", id="steps-word"),
        pytest.param({"kind": "cascade", "steps": []}, "at least one", id="steps-empty"),
        pytest.param({"kind": "cascade", "steps": [{}]}, "needs 'kind'", id="step-without-kind"),
        pytest.param({"kind": "priority_based", "score": by_length}, "must be a name", id="score-function"),
    ],
)
def test_what_makes_no_strategy_is_refused(data: Any, said: str) -> None:
    """Each error names the option and what it may be."""
    with pytest.raises(ConfigurationError, match=said):
        create_strategy(data)


def test_a_score_is_written_by_the_name_it_was_given() -> None:
    """`names=` holds the function, the data its name."""
    data = {"kind": "priority_based", "score": "long_first"}
    strategy = create_strategy(data, names={"long_first": by_length})
    assert strategy == PriorityBased(score=by_length, score_name="long_first")
    assert strategy_data(strategy) == data


def test_a_score_nobody_named_is_answered_with_near_names() -> None:
    """The names given are listed."""
    with pytest.raises(UnknownNameError, match="long_first") as caught:
        create_strategy({"kind": "priority_based", "score": "long_fist"}, names={"long_first": by_length})
    assert caught.value.near == ("long_first",)
    with pytest.raises(UnknownNameError, match="nothing"):
        create_strategy({"kind": "priority_based", "score": "long_first"})


def test_a_score_without_a_name_is_not_written() -> None:
    """A function cannot be plain data; the default needs no name."""
    with pytest.raises(ConfigurationError, match="without a name"):
        strategy_data(PriorityBased(score=by_length))
    assert strategy_data(PriorityBased(score=default_score)) == {"kind": "priority_based"}


def test_a_strategy_of_ones_own_is_used_by_name() -> None:
    """Alone and as a step; the very object given."""
    own = KeepAll()
    assert create_strategy("mine", names={"mine": own}) is own
    cascade = create_strategy({"kind": "cascade", "steps": ["mine", "drop"]}, names={"mine": own})
    assert cascade == Cascade(own, Drop())


@pytest.mark.parametrize(
    ("data", "value", "said"),
    [
        pytest.param({"kind": "mine", "keep": "end"}, KeepAll(), "takes no options", id="options"),
        pytest.param("mine", by_length, "no evict method", id="a-score"),
    ],
)
def test_a_name_that_cannot_be_a_strategy_is_refused(data: Any, value: Any, said: str) -> None:
    """The error says which name."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        create_strategy(data, names={"mine": value})
    assert "mine" in str(caught.value)


@pytest.mark.parametrize("strategy", [KeepAll(), Cascade(Strict(), KeepAll())], ids=["alone", "as-a-step"])
def test_a_strategy_without_a_form_as_data_says_so(strategy: Strategy) -> None:
    """Instead of writing something that cannot be read."""
    with pytest.raises(ConfigurationError, match="names="):
        strategy_data(strategy)
