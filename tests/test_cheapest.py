"""`Cheapest` cuts as seldom and as deep as costs least under a prompt cache, without memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.ceiling import Ceiling
from tests.builders import Message, assistant, call, result, system, user, words
from tests.test_prompt_cache import airline, coding, cut_of, growing, replay
from trimtab import (
    BudgetExceededError,
    Cascade,
    ConfigurationError,
    TruncateText,
    counter_for,
    fit,
)
from trimtab.errors import UnknownNameError
from trimtab.replay import CachePricing, pricing_for, read_recording
from trimtab.replay import replay as played
from trimtab.strategies import Cheapest
from trimtab.testing import WordCounter, check_strategy


def even(turns: int, size: int = 9) -> list[Message]:
    """Make a chat whose messages are all of one size: `size` words each."""
    return [one for _ in range(turns) for one in (user(words(size)), assistant(words(size)))]


def cuts_of(messages: list[Message], budget: int, strategy: Cheapest) -> list[int]:
    """Fit call by call, and give the cut of each."""
    return [cut for _, cut in replay(messages, budget=budget, strategy=strategy, counter=WordCounter())]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("conversation", "budget", "messages"),
    [
        pytest.param(airline, 8_000, 400, id="airline-8k"),
        pytest.param(airline, 32_000, 700, id="airline-32k"),
        pytest.param(coding, 32_000, 400, id="coding-32k"),
    ],
)
def test_it_costs_at_most_1_15_of_the_best_that_cuts_could_do(
    data_dir: Path, conversation: Any, budget: int, messages: int
) -> None:
    """Against the best sequence of cuts with the future known that uses as much of the budget."""
    chat = conversation(data_dir)[:messages]
    counter = counter_for("gpt-4o")
    prices = CachePricing()
    ceiling = Ceiling(chat, counter.count, budget, prices)
    options: dict[str, Any] = {"budget": budget, "counter": counter, "pricing": prices}
    ours = played(read_recording(chat), Cheapest(), **options)
    fill = ours.steady.fill or 0.0
    best = played(read_recording(chat), ceiling.policy(ceiling.at_fill(fill)), **options)
    assert (best.steady.fill or 0.0) >= fill - 0.02
    assert best.totals.over_limit == best.totals.invalid == ours.totals.over_limit == ours.totals.invalid == 0
    assert ours.steady.price <= 1.15 * best.steady.price


@given(
    growing(),
    st.integers(60, 400),
    st.sampled_from((0.05, 0.3, 2.0)),
    st.booleans(),
    st.lists(st.integers(0, 90), max_size=4),
)
def test_the_cut_never_moves_back_while_a_conversation_grows(
    messages: list[Message], budget: int, weight: float, texts: bool, cold_at: list[int]
) -> None:
    """And nothing that is sent is over the budget, whatever the weights and the cold calls."""
    cheapest = Cheapest(room_weight=weight, cold_at=cold_at)
    strategy = Cascade(cheapest, TruncateText()) if texts else cheapest
    calls = replay(messages, budget=budget, strategy=strategy, counter=WordCounter())
    cuts = [cut for _, cut in calls]
    assert cuts == sorted(cuts)
    assert all(WordCounter().count(sent) <= budget for sent, _ in calls if cuts)


def test_a_cut_frees_the_share_at_which_writing_again_and_empty_room_cost_least() -> None:
    """Found by trying all shares on a chat of messages of one size, and no formula."""
    room, growth, weight = 1_800, 18, 0.3
    prices = CachePricing(min_prefix_tokens=0)

    def cost(freed: int) -> float:
        """Return what a cut that frees so much costs at each call of those until the next."""
        calls = freed / growth
        return ((prices.write - prices.read) * (room - freed) + weight * freed / 2 * calls) / calls

    best = min(range(growth, room, growth), key=cost)
    cuts = cuts_of(even(400), room, Cheapest(pricing=prices, room_weight=weight))
    moves = [after - before for before, after in pairwise(sorted(set(cuts)))][1:]
    assert moves
    assert all(abs(9 * move - best) <= 2 * growth for move in moves)


def cut_at(end: int, strategy: Cheapest) -> int:
    """Return the cut of one call of a chat of 18 words a turn, in 900."""
    chat = even(200)[:end]
    return cut_of(fit(chat, 900, counter=WordCounter(), strategy=strategy).messages, chat)


def test_it_cuts_where_the_cache_is_cold_anyway() -> None:
    """In the middle between two cuts: one is made that saves the next, and stays."""
    ends = range(101, 399, 2)
    cuts = [cut_at(end, Cheapest()) for end in ends]
    moves = [end for (before, after), end in zip(pairwise(cuts), ends[1:], strict=True) if before < after]
    first, second = moves[:2]
    late = second - 6
    cold = Cheapest(cold_at=[late])
    assert cut_at(late - 2, cold) == cut_at(late, Cheapest()) < cut_at(late, cold)
    assert cut_at(second, cold) == cut_at(late, cold)
    early = first + 2
    gained = cut_at(early, Cheapest(cold_at=[early])) - cut_at(early, Cheapest())
    assert 0 <= gained <= 2, "directly behind a cut no more leaves than came since"


def test_with_few_calls_to_come_no_more_leaves_than_these_need() -> None:
    """One more call: the cut is near the oldest that fits; many: as if nothing was said."""
    assert cut_at(101, Cheapest(expected_calls=51)) <= 4
    assert cut_at(101, Cheapest(expected_calls=10_000)) == cut_at(101, Cheapest()) > 4


def test_no_cut_moves_back_in_a_chat_whose_end_is_known() -> None:
    """The cuts before are worked out with what was to come then."""
    cuts = [cut_at(end, Cheapest(expected_calls=200)) for end in range(101, 400, 2)]
    assert cuts == sorted(cuts)
    assert len({*cuts}) > 4


@pytest.mark.long
def test_dearer_room_makes_cuts_less_deep_and_more_frequent() -> None:
    """And dearer writing the other way."""
    chat = even(300)
    moves = [len(set(cuts_of(chat, 900, Cheapest(room_weight=weight)))) for weight in (0.1, 0.5, 5.0)]
    assert moves == sorted(moves)
    assert moves[0] < moves[2]
    dear = CachePricing(name="dear", write=5.0)
    assert len(set(cuts_of(chat, 900, Cheapest(pricing=dear, room_weight=5.0)))) < moves[2]


def test_what_stays_anyway_is_counted_among_what_fills_the_room() -> None:
    """A long pinned message and system text never leave, and the cut stays put all the same."""
    chat = [system(words(40)), *even(120)]
    chat[3] = user(words(200))
    cuts = []
    for at in range(60, len(chat), 2):
        fitted = fit(chat[:at], 500, counter=WordCounter(), strategy=Cheapest(), pin=[3])
        assert fitted.messages[:2] == [chat[0], chat[3]] or fitted.messages[:3] == [chat[0], chat[1], chat[2]]
        cuts.append(cut_of(fitted.messages, chat[:at]))
    assert cuts == sorted(cuts)
    assert len(set(cuts)) < len(cuts) / 4


def test_a_cut_keeps_no_more_than_has_room_beside_what_a_pin_holds() -> None:
    """The result of a pinned call stays with it: 200 words for which nobody asked."""
    chat = [user("go"), call("A"), result("A", words(200)), *even(60)]
    for end in range(20, len(chat), 2):
        fitted = fit(chat[:end], 500, counter=WordCounter(), strategy=Cheapest(), pin=[1])
        assert chat[1:3] == [message for message in fitted.messages if message in chat[1:3]]
        assert WordCounter().count(fitted.messages) <= 500


@pytest.mark.long
def test_it_keeps_the_contract_of_strategies() -> None:
    """Whole units, the order, what is pinned, the limit; it takes more than it must."""
    check_strategy(Cheapest(), thrifty=False)


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"pricing": "no such"}, UnknownNameError, "no such"),
        ({"pricing": {"reed": 1}}, UnknownNameError, "reed"),
        ({"pricing": 3}, ConfigurationError, "a CachePricing, the name of one or of a model, or a mapping"),
        ({"pricing": None}, ConfigurationError, "not NoneType"),
        ({"room_weight": 0}, ConfigurationError, "room_weight"),
        ({"room_weight": float("nan")}, ConfigurationError, "room_weight"),
        ({"room_weight": "much"}, ConfigurationError, "room_weight"),
        ({"expected_calls": 0}, ConfigurationError, "expected_calls"),
        ({"cold_at": "12"}, ConfigurationError, "cold_at must be a list"),
        (
            {"cold_at": [-1]},
            ConfigurationError,
            "each of cold_at must be a whole number of at least 0, not -1",
        ),
        ({"cold_at": 3}, ConfigurationError, "cold_at must be a list"),
    ],
)
def test_an_option_out_of_range_says_so(options: dict[str, Any], error: type[Exception], why: str) -> None:
    """When it is made, not when it is asked."""
    with pytest.raises(error, match=why):
        Cheapest(**options)


def test_prices_may_be_a_mapping_of_any_kind() -> None:
    """As its type says: also one that nobody can change."""
    assert Cheapest(pricing=MappingProxyType({"write": 2.0})).pricing == CachePricing(write=2.0)


def test_known_prices_are_written_by_name_and_others_whole() -> None:
    """So that a policy can be read, and means the same prices when rows change."""
    mine = CachePricing(name="mine", write=2.0)
    assert Cheapest(pricing="openai").to_dict()["pricing"] == "openai"
    assert Cheapest(pricing=pricing_for("claude-opus-4-5")).to_dict()["pricing"] == "claude-opus-4-5"
    assert Cheapest(pricing=mine).to_dict()["pricing"] == mine.to_dict()
    assert Cheapest(pricing=mine.to_dict()) == Cheapest(pricing=mine)


def test_what_alone_is_too_large_is_refused() -> None:
    """As with any window: nothing is ever over the budget."""
    with pytest.raises(BudgetExceededError):
        fit([*even(3), user(words(50))], 40, counter=WordCounter(), strategy="cheapest")
