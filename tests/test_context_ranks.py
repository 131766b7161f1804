"""Who gives way in a `Context`: ranks, ties, caps, floors, what must stay (SPEC D5 to D8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import talk, words
from trimtab import BudgetExceededError, Context, Drop, Strict
from trimtab.testing import WordCounter

WORDS = WordCounter()


def context(budget: Any = 99, **options: Any) -> Context:
    """Make one that counts words."""
    return Context(budget, counter=WORDS, **options)


@pytest.mark.parametrize(
    ("ties", "options", "expected"),
    [
        (None, {}, [0, 3]),
        ("newest", {}, [0, 3]),
        ("first", {}, [3, 0]),
        (None, {"tier": 2}, [3, 0]),
        ("newest", {"tier": 2}, [0, 3]),
    ],
)
def test_of_equal_ranks(ties: Any, options: Any, expected: list[int]) -> None:
    """The one added earlier gives way; with tiers, or by ties="first", the later (D6)."""
    made = context(5, ties=ties).add("a", talk("u3"), **options).add("b", talk("u3"), **options)
    assert [block.tokens_after for block in made.fit().report.blocks] == expected


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(9, [4, 5]), (8, [4, 2]), (6, [4, 2]), (5, [4, 0]), (4, [4, 0])],
)
def test_the_lower_rank_gives_way(budget: int, expected: list[int]) -> None:
    """Whole messages from the oldest; what is left of the room stays unused."""
    made = context(budget).add("a", talk("u4"), priority=1).add("b", talk("u3 u2"))
    fitted = made.fit()
    assert [block.tokens_after for block in fitted.report.blocks] == expected
    assert fitted.report.remaining_tokens == budget - sum(expected)


@pytest.mark.parametrize(
    ("options", "budget", "expected"),
    [
        pytest.param({}, 8, [("s", 5), ("h", 3)], id="exactly"),
        pytest.param({}, 7, [("s", 5), ("h", 0)], id="system-is-not-trimmed"),
        pytest.param({}, 4, None, id="never"),
        pytest.param({"max_tokens": 3}, 7, [("s", 0), ("h", 3)], id="but-its-cap-applies"),
        pytest.param({"priority": -1}, 7, [("s", 2), ("h", 3)], id="unless-ranks-are-used"),
    ],
)
def test_blocks_of_system_messages_stay_where_nothing_is_ranked(
    options: Any, budget: int, expected: Any
) -> None:
    """D7: also a block of another name; a developer message is one."""
    made = context(budget).add("s", talk("s3 d2") if "max_tokens" not in options else talk("s4"), **options)
    made.add("h", talk("u3"))
    if expected is None:
        with pytest.raises(BudgetExceededError, match="'s' does not fit"):
            made.fit()
        return
    assert [(block.name, block.tokens_after) for block in made.fit().report.blocks] == expected


def test_any_ranked_block_ends_the_rule_for_system_blocks() -> None:
    """Even one without content."""
    made = context(3).add("s", talk("s3")).add("h", talk("u3"))
    assert [block.tokens_after for block in made.fit().report.blocks] == [3, 0]
    made.add("later", None, priority=5)
    assert [block.tokens_after for block in made.fit().report.blocks] == [0, 3]
    tiered = context(3).add("h", talk("u3"), tier=1).add("s", talk("s3"), tier=1)
    assert [block.tokens_after for block in tiered.fit().report.blocks] == [3, 0]


def test_a_cap_holds_though_all_would_fit() -> None:
    """L11; the reason says which limit it was."""
    report = context(99).add("a", talk("u3 u2"), max_tokens=3).fit().report
    assert [(row.fate, row.reason) for row in report.messages] == [("evicted", "over_cap"), ("kept", None)]
    assert (report.blocks[0].limit_tokens, report.blocks[0].tokens_after) == (3, 2)


def test_without_a_cap_what_leaves_is_over_the_limit() -> None:
    """Also where a block alone fills the room, and where its cap is the room."""
    for options in ({}, {"max_tokens": 3}, {"max_ratio": 1.0}):
        report = context(3).add("a", talk("u3 u2"), **options).fit().report
        assert report.messages[0].reason == "over_limit"


@pytest.mark.parametrize(
    ("floor", "budget", "expected", "ignored", "missed"),
    [
        pytest.param({"min_tokens": 4}, 10, [6, 4], False, 0, id="held"),
        pytest.param({"min_tokens": 9}, 10, [6, 4], False, 0, id="no-more-than-it-has"),
        pytest.param({"min_ratio": 0.4}, 10, [6, 4], False, 0, id="as-a-ratio"),
        pytest.param({"min_tokens": 3}, 9, [6, 2], False, 1, id="whole-messages-cannot-hold-it"),
        pytest.param({"min_tokens": 3, "max_tokens": 2}, 10, [8, 2], False, 0, id="lowered-to-its-cap"),
    ],
)
def test_floors(floor: Any, budget: int, expected: list[int], ignored: bool, missed: int) -> None:
    """D5, D8: held before a higher rank takes the room."""
    made = context(budget).add("a", talk("u2 u2 u2 u2"), priority=9).add("b", talk("u2 u2"), **floor)
    report = made.fit().report
    assert [block.tokens_after for block in report.blocks] == expected
    assert (report.floors_ignored, report.blocks[1].floor_missed_tokens) == (ignored, missed)


@pytest.mark.parametrize(
    ("limits", "lowered"),
    [
        pytest.param(
            {"min_tokens": 1009, "max_tokens": 4},
            {4: None, 5: (1009, 4), 20: (1009, 4), 99: (1009, 4)},
            id="tokens-where-the-cap-is-below-the-room",
        ),
        pytest.param(
            {"min_ratio": 0.5, "max_tokens": 4},
            {4: None, 8: None, 10: (5, 4), 99: (49, 4)},
            id="a-share-above-tokens",
        ),
        pytest.param(
            {"min_tokens": 5, "max_ratio": 0.25}, {8: (5, 2), 19: (5, 4), 20: None}, id="tokens-above-a-share"
        ),
        pytest.param(
            {"min_ratio": 0.5, "min_tokens": 7, "max_ratio": 0.25, "max_tokens": 6},
            {8: (7, 2), 20: (10, 5), 99: (49, 6)},
            id="the-larger-floor-and-the-smaller-cap",
        ),
        pytest.param({"min_tokens": 4, "max_tokens": 4}, {10: None}, id="at-the-cap"),
        pytest.param({"min_tokens": 9, "max_tokens": 4, "pinned": True}, {10: None}, id="pinned"),
        pytest.param({"min_tokens": 9}, {5: None}, id="above-the-room-alone"),
    ],
)
def test_a_floor_that_its_cap_lowers_is_told(limits: Any, lowered: dict[int, tuple[int, int] | None]) -> None:
    """D2: with both numbers, whether anything had to leave or not; the report has the cap for its floor."""
    made = context().add("a", talk("u2"), priority=9, min_tokens=2).add("b", talk("u1 u1"), **limits)
    for budget, numbers in lowered.items():
        report = made.fit(budget).report
        told = [note for note in report.notes if "floor" in note]
        if numbers is None:
            assert told == []
            continue
        floor, cap = numbers
        assert told == [
            f"Block 'b' has a floor of {floor:,} tokens and a cap of {cap}: the floor is lowered to the cap."
        ]
        assert (report.blocks[1].floor_tokens, report.blocks[1].cap_tokens) == (cap, cap)


def test_floors_that_pass_the_room_together_are_ignored() -> None:
    """What is pinned is not; the report says so, and nobody missed anything."""
    made = context(8).add("p", "p p", pinned=True, max_tokens=1)
    made.add("a", talk("u2 u2"), min_tokens=4, priority=1).add("b", talk("u2 u2"), min_tokens=3)
    report = made.fit().report
    assert report.floors_ignored
    assert [(block.tokens_after, block.floor_missed_tokens) for block in report.blocks] == [
        (2, 0),
        (4, 0),
        (2, 0),
    ]
    assert not made.fit(9).report.floors_ignored


def test_what_is_held_for_a_floor_and_not_used_is_offered_once_more() -> None:
    """The documents leave whole; the history gets their floor."""
    made = context(10).add("history", talk("u2 u2 u2 u2"), priority=9)
    made.add("documents", talk("u7"), min_tokens=4, strategy=Drop())
    report = made.fit().report
    assert [(block.offered_tokens, block.tokens_after) for block in report.blocks] == [(8, 8), (4, 0)]
    assert report.blocks_dropped == ("documents",)
    assert [row.reason for row in report.messages][-1] == "block_dropped"


def test_a_strict_block_that_does_not_fit_is_named_with_the_numbers() -> None:
    """C1: no lower block gives way for it, nor a pinned one."""
    made = context(10).add("q", "one two three four", strategy=Strict()).add("p", words(7), pinned=True)
    with pytest.raises(BudgetExceededError) as raised:
        made.fit()
    error = raised.value
    assert (error.block, error.needed_tokens, error.limit_tokens) == ("q", 11, 10)
    assert "block 'q' does not fit: it needs at least 4 tokens and 3 remain for it" in str(error)
    assert "(strategy strict). The heaviest that stays is message 0, role user, 4 tokens." in str(error)
    assert "Raise the budget or its rank" in str(error)
    assert error.attempt is not None
    assert [m["content"] for m in error.attempt.messages] == ["one two three four", words(7)]
    assert not error.attempt.report.fits


def test_a_strict_block_over_its_cap_is_told_to_raise_it() -> None:
    """The numbers are those of the cap."""
    with pytest.raises(BudgetExceededError, match="Raise its cap") as raised:
        context(10).add("q", "one two three four", strategy=Strict(), max_tokens=3).fit()
    assert (raised.value.needed_tokens, raised.value.limit_tokens) == (4, 3)


def test_pinned_blocks_that_pass_the_room_are_an_error() -> None:
    """The attempt is what must stay: pinned and system blocks whole, the rest gone."""
    made = context(10, system="be kind").add("s", talk("s1")).add("h", talk("u3 u2"))
    with pytest.raises(BudgetExceededError) as raised:
        made.add("p", words(9), pinned=True).fit()
    error = raised.value
    assert (error.block, error.needed_tokens, error.limit_tokens) == ("p", 12, 10)
    assert "In addition to the blocks, the request takes 2 of 10 tokens" in str(error)
    assert error.attempt is not None
    assert WORDS.count(error.attempt.messages) == 12 == error.attempt.report.tokens_after


def test_system_text_alone_may_pass_the_room() -> None:
    """The number needed has what must stay, too."""
    with pytest.raises(BudgetExceededError, match="system text, tools and framing take 4") as raised:
        context(3, system=words(4)).add("p", "hi", pinned=True).add("h", "ho").fit()
    assert (raised.value.needed_tokens, raised.value.limit_tokens, raised.value.block) == (5, 3, None)
