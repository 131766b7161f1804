"""`on_trim` of a `Context` and of its blocks (SPEC D9)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import talk, words
from trimtab import Budget, ConfigurationError, Context
from trimtab.context import TrimContext
from trimtab.testing import WordCounter

WORDS = WordCounter()


def removing(*seqs: int) -> Callable[[TrimContext], object]:
    """Make a callback that removes these numbers."""
    return lambda context: context.remove(seqs)


def fates(made: Context) -> str:
    """Write the reason of what left, else a dot; a bar between blocks."""
    short = {None: ".", "callback": "c", "unit_of_removed": "u", "over_limit": "l", "over_cap": "o"}
    report = made.fit().report
    return "|".join(
        "".join(short[row.reason] for row in report.messages if row.block == block.name)
        for block in report.blocks
    )


@pytest.mark.parametrize(
    ("first", "second", "whole", "expected"),
    [
        pytest.param((), (), (), ".....|...", id="nothing"),
        pytest.param((0, 2), (), (), "c.c..|u..", id="numbers-of-the-block"),
        pytest.param((), (2,), (), ".....|..c", id="of-the-second-too"),
        pytest.param((5, -1, 99), (3, -1), (), ".....|...", id="numbers-outside-it-are-unknown"),
        pytest.param((), (), (0, 7), "c....|..c", id="of-the-whole-for-the-context"),
        pytest.param((3,), (), (), "...cu|...", id="with-its-unit"),
        pytest.param((), (0,), (), "..u..|c..", id="a-unit-across-blocks"),
        pytest.param((2,), (0,), (), "..c..|c..", id="both-asked-for"),
        pytest.param((0,), (1,), (2, 6), "c.c..|uc.", id="all-of-them-add-up"),
    ],
)
def test_callbacks_remove_by_the_numbers_of_what_they_see(
    first: Any, second: Any, whole: Any, expected: str
) -> None:
    """A block's are its own, from 0; the context's are those of the request."""
    made = Context(99, counter=WORDS, on_trim=removing(*whole))
    made.add("a", talk("u1 a1 cB cA rA1"), on_trim=removing(*first))
    made.add("b", talk("rB1 a1 u1"), on_trim=removing(*second))
    assert fates(made) == expected


def test_they_run_before_anything_is_decided_in_order_of_adding() -> None:
    """The context's own first; also when all fits; once a fit, whatever the place of the block."""
    seen: list[Any] = []

    def noting(name: str) -> Callable[[TrimContext], object]:
        return lambda context: seen.append(
            (name, context.limit_tokens, [e.seq for e in context.message_elements])
        )

    made = Context(Budget(50, output_reserve=10), counter=WORDS, on_trim=noting("whole"))
    made.add("a", talk("u1 u1"), position=2, on_trim=noting("a"), max_ratio=0.5)
    made.add("b", talk("u1"), position=1, on_trim=noting("b"), max_tokens=7)
    made.add("nothing", None, on_trim=noting("nothing"))
    fitted = made.fit()
    assert seen == [("whole", 40, [0, 1, 2]), ("a", 20, [0, 1]), ("b", 7, [0])]
    fitted.at(20)
    fitted.count_all()
    assert len(seen) == 3
    made.fit()
    assert len(seen) == 6


@pytest.mark.parametrize("counter", [WORDS, WORDS.count], ids=["additive", "black-box"])
def test_without_a_budget_callbacks_alone_decide(counter: Any) -> None:
    """SPEC D9, G: the budget they see is None; shares of none bind nobody, as with `fit`; awaited, too."""
    seen: list[Any] = []

    def noting(*seqs: int) -> Callable[[TrimContext], object]:
        return lambda context: (seen.append((context.budget, context.limit_tokens)), context.remove(seqs))

    made = Context(counter=counter, on_trim=noting(0), system="be brief")
    made.add("a", talk("u3 u4"), max_ratio=0.1).add("b", talk("u5 u6"), share=1, on_trim=noting(0))
    found = made.fit()
    assert seen == [(None, sys.maxsize)] * 2
    assert found.messages[1:] == [talk("u4")[0], talk("u6")[0]]
    report = found.report
    assert (report.tokens_after, report.input_tokens, report.remaining_tokens) == (12, 12, 0)
    assert [(one.limit_tokens, one.cap_tokens) for one in report.blocks] == [(4, None), (6, None)]
    assert "No budget was given: evicted is what on_trim removed, and nothing else." in report.notes
    awaited = asyncio.run(made.afit())
    assert awaited.report.to_dict() == report.to_dict()
    assert found.at(11).report.tokens_after <= 11


def test_without_a_budget_a_cap_in_tokens_holds() -> None:
    """It needs no budget to be a share of; the callback of its block is told it, and the note names it."""
    seen: list[int] = []

    def look(context: TrimContext) -> None:
        seen.append(context.limit_tokens)

    made = Context(counter=WORDS).add("a", talk("u1 u3 u4"), max_tokens=7, on_trim=look)
    report = made.add("b", talk("u9")).fit().report
    assert seen == [7]
    assert [(row.fate, row.reason) for row in report.messages[:2]] == [
        ("evicted", "over_cap"),
        ("kept", None),
    ]
    assert [(one.limit_tokens, one.cap_tokens) for one in report.blocks] == [(7, 7), (9, None)]
    assert any("what passed max_tokens of its block," in note for note in report.notes)


@pytest.mark.parametrize(("floor", "lowered"), [({"min_tokens": 9}, True), ({"min_ratio": 0.5}, False)])
def test_without_a_budget_a_floor_in_tokens_is_lowered(floor: Any, lowered: bool) -> None:
    """A share of no budget is no floor."""
    made = Context(counter=WORDS).add("a", talk("u1"), max_tokens=7, on_trim=removing(), **floor)
    told = [note for note in made.add("b", talk("u30")).fit().report.notes if "has a floor" in note]
    assert len(told) == lowered
    assert all("a floor of 9 tokens and a cap of 7:" in note for note in told)


def test_without_a_budget_an_async_counter_is_asked_before_the_callback() -> None:
    """Which runs once, and may read any size."""
    seen: list[int] = []

    async def count(messages: list[Any]) -> int:
        return WORDS.count(messages)

    made = Context(counter=count, on_trim=lambda context: seen.append(context.total_tokens))
    assert len(asyncio.run(made.add("a", talk("u3 u4")).afit()).messages) == 2
    assert seen == [7]


def test_without_a_budget_and_without_a_callback_there_is_no_fit() -> None:
    """Then nobody says what may leave."""
    with pytest.raises(ConfigurationError, match="pass budget="):
        Context(counter=WORDS).add("a", talk("u3")).fit()


def test_each_sees_what_those_before_it_left() -> None:
    """Tokens and budget are there; removing acts at once."""
    seen: list[Any] = []

    def second(context: TrimContext) -> None:
        assert context.budget is not None
        seen.append((context.total_tokens, context.messages, context.budget.window))
        context.remove(1)
        seen.append(context.total_tokens)

    made = Context(50, counter=WORDS).add("a", talk("cA u1"), on_trim=removing(0))
    made.add("b", talk("rA9 u3 u4"), on_trim=second)
    assert fates(made) == "c.|uc."
    assert seen == [(7, talk("u3 u4"), 50), 4]


def test_what_they_leave_is_fitted() -> None:
    """Pinned messages may be removed, open calls not; nothing left is no error."""
    made = Context(6, counter=WORDS).add("a", talk("u9 u4"), pinned=True, on_trim=removing(0))
    assert fates(made.add("b", talk("u2 u2"))) == "c.|l."
    opened = Context(9, counter=WORDS).add("a", talk("u1 cA"), on_trim=removing(0, 1))
    assert fates(opened) == "c."
    gone = Context(1, counter=WORDS, on_trim=removing(*range(9))).add("a", talk("u9 u9"), pinned=True).fit()
    assert gone.messages == []
    assert gone.report.blocks[0].actions == ("removed_by_callback",)
    assert gone.report.blocks_dropped == ("a",)
    assert gone.report.fits


def test_removing_the_user_message_behind_a_call_opens_it() -> None:
    """A4 applies to what is left."""
    made = Context(4, counter=WORDS).add("a", talk("u3 cA")).add("b", talk("u2"), on_trim=removing(0))
    row = made.fit().report.messages[1]
    assert (row.state, row.fate) == ("held", "kept")


def test_the_report_counts_what_left_before() -> None:
    """Sizes the callbacks asked for are used again; the rest is counted by count_all."""
    counted: list[Any] = []

    class Noting(WordCounter):
        def count_message(self, message: Any, /) -> int:
            counted.append(message)
            return super().count_message(message)

    def reading(context: TrimContext) -> None:
        assert context.total_tokens == 7
        context.remove(0)

    made = Context(99, counter=Noting()).add("a", talk("u3 u4"), on_trim=reading).add("b", words(2))
    report = made.fit().report
    assert len(counted) == 3
    assert [(row.tokens_before, row.tokens_after) for row in report.messages] == [(3, None), (4, 4), (2, 2)]
    assert (report.tokens_before, report.tokens_after) == (9, 6)
    assert [block.actions for block in report.blocks] == [("removed_by_callback",), ("kept",)]


@pytest.mark.parametrize("counter", [WORDS, WORDS.count], ids=["additive", "black-box"])
def test_count_all_counts_what_callbacks_removed(counter: Any) -> None:
    """Under both kinds of counters the total before is that of everything given."""
    made = Context(99, counter=counter, on_trim=removing(0)).add("a", talk("u3 u4")).add("b", words(2))
    report = made.fit().count_all()
    assert (report.tokens_before, report.tokens_after) == (9, 6)
    assert [row.tokens_after for row in report.messages] == [None, 4, 2]


def test_a_black_box_is_asked_about_what_callbacks_leave() -> None:
    """Which fits as a whole, though its blocks round up."""

    def rounded(messages: list[Any]) -> int:
        return -(-WORDS.count(messages) // 4)

    made = (
        Context(1, counter=rounded, on_trim=removing(0)).add("a", talk("u40 u1")).add("b", "w").add("c", "w")
    )
    report = made.fit().report
    assert (report.kept_message_count, report.tokens_after, report.tokens_before) == (3, 1, None)


def test_an_exception_goes_on_with_a_note_that_names_the_block() -> None:
    """Or the context."""

    def failing(context: TrimContext) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        Context(9, counter=WORDS).add("a", "x").add("b", "y", on_trim=failing).fit()
    assert raised.value.__notes__ == ["raised by on_trim of block 'b'"]
    with pytest.raises(ZeroDivisionError) as raised:
        Context(9, counter=WORDS, on_trim=failing).add("a", "x").fit()
    assert raised.value.__notes__ == ["raised by on_trim of the context"]


def test_an_async_callback_is_refused() -> None:
    """When it is given."""

    async def later(context: TrimContext) -> None:
        """Come too late."""

    with pytest.raises(ConfigurationError, match="on_trim must be synchronous"):
        Context(9, on_trim=later)
    with pytest.raises(ConfigurationError, match="on_trim must be synchronous"):
        Context(9).add("a", "x", on_trim=later)
