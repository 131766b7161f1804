"""`Cascade`: what its steps say becomes one answer, and a step that is not needed is not asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_uppercase
from typing import Any

import pytest

from tests.builders import assistant, call, result, talk, user, words
from tests.chat_in_forms import said_in
from tests.test_runner import LINE, WORDS, Custom, cut, kept, written
from trimtab import (
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    fit,
)
from trimtab.errors import StrategyContractError
from trimtab.strategies import EvictionRequest, EvictionResult
from trimtab.testing import WordCounter, eviction_request

ALL = (0, 1, 2, 3, 4, 6)


def never(request: EvictionRequest) -> EvictionResult:
    """Fail where a step is asked that should not be."""
    raise AssertionError("this step is not needed")


def test_cascades_of_the_same_steps_are_equal() -> None:
    """And nothing else is."""
    assert Cascade(Drop(), Strict()) == Cascade(Drop(), Strict())
    assert Cascade(Drop()) != Cascade(Strict())
    assert Cascade(Drop()) != Drop()


def test_it_asks_a_model_if_one_of_its_steps_does() -> None:
    """Whichever it is."""
    summarize = Summarize(lambda messages: "text")
    assert [
        Cascade(*steps).asks_model for steps in ((Drop(), summarize), (summarize, Drop()), (Drop(),))
    ] == [*(True, True, False)]


class Told(Mapping[str, Any]):
    """A message that knows whether anybody looked into it."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message, self.is_read = message, False

    def __getitem__(self, key: str) -> Any:
        self.is_read = True
        return self.message[key]

    def __iter__(self) -> Iterator[str]:
        self.is_read = True
        return iter(self.message)

    def __len__(self) -> int:
        return len(self.message)


def calls(result: str, times: int = 60) -> list[Told]:
    """Make a long chat in which the user asks, and a tool of one call answers, so many times."""
    names = [ascii_uppercase[at % 26] for at in range(times)]
    return [Told(one) for name in names for one in talk(f"u2 a2 c{name} {result.format(name)} a2")]


CLEAR, WINDOW, TASK = ClearToolResults(), SlidingWindow(), SlidingWindow(keep_first_user=True)
OLD, NEWEST = DropNewest(), 299
"""Strategies, and the last message of the chat."""


@pytest.mark.parametrize(
    ("steps", "least", "most_read"),
    [
        pytest.param((WINDOW,), NEWEST, 60, id="a-window"),
        pytest.param((CLEAR, WINDOW), NEWEST, 150, id="results-are-cleared-first"),
        pytest.param((Cascade(CLEAR, CLEAR), WINDOW), NEWEST, 150, id="twice"),
        pytest.param((WINDOW, OLD), NEWEST, 60, id="the-others-get-what-the-window-keeps"),
        pytest.param((OLD, WINDOW), 0, 300, id="the-oldest-stay"),
        pytest.param((CLEAR, OLD, WINDOW), 0, 300, id="the-oldest-stay-and-results-are-cleared-first"),
        pytest.param((CLEAR, TASK), 0, 300, id="the-task-stays"),
        pytest.param((CLEAR, TASK, WINDOW), 0, 300, id="the-task-stays-if-a-window-without-it-follows"),
        pytest.param((CLEAR, Cascade(TASK, WINDOW)), 0, 300, id="in-a-cascade-of-its-own"),
    ],
)
def test_it_is_read_as_far_as_the_step_asks_that_lets_something_leave(
    steps: Any, least: int, most_read: int
) -> None:
    """The first such step says whether old messages have a say; without a say they are not looked at."""
    chat = calls("r{}1")
    fitted = fit(chat, 60, counter=WORDS, strategy=Cascade(*steps))
    positions = [at for at in fitted.positions if at is not None]
    assert least in positions
    assert len(positions) < 40
    assert sum(message.is_read for message in chat) <= most_read


def test_one_that_only_clears_lets_nothing_leave() -> None:
    """The oldest results are cleared, as many as it takes."""
    chat = calls("r{}30")
    size = WORDS.count([dict(one) for one in chat])
    strategy = Cascade(ClearToolResults(target_ratio=1.0))
    fitted = fit(chat, size - 60, counter=WORDS, strategy=strategy)
    assert fitted.positions == list(range(300))
    assert list(fitted.changed) == [3, 8, 13]  # each saves thirty words, and has four for its placeholder


def test_a_result_that_left_is_not_among_the_newest() -> None:
    """Also where it stood between a call and its result, which are still there."""
    chat = talk("u2 cD rD30 cC rC30 cA cB rB30 rA30 a2 u1")
    there = [message for at, message in enumerate(chat) if at not in (6, 7)]
    firsts = (0, 1, 3, 5, 9, 10)  # of all units but that of B
    clear = ClearToolResults(keep_results=2, clear_at_least_tokens=999, target_ratio=1.0)
    strategy = Cascade(Custom(kept(*firsts, fits=False)), clear)
    fitted = fit(chat, WORDS.count(there) - 1, counter=WORDS, strategy=strategy)
    assert fitted.positions == [0, 1, 2, 3, 4, 5, 8, 9, 10]
    assert list(fitted.changed) == [2]


def test_the_first_step_that_fits_is_the_answer() -> None:
    """As it is, with its cut: nothing is grouped for the steps behind it."""
    expected = SlidingWindow().evict(eviction_request(talk(LINE), 15, counter=WORDS))
    cascade = Cascade(SlidingWindow(), Custom(never))
    assert cascade.evict(eviction_request(talk(LINE), 15, counter=WORDS)).cut == expected.cut
    assert expected.cut is not None


def test_it_is_measured_again_after_each_step() -> None:
    """A step that leaves little enough ends it, whatever it says of itself."""
    strategy = Cascade(Custom(kept(*ALL, fits=False)), Custom(kept(0, 4, 6, fits=False)), Custom(never))
    fitted = fit(talk(LINE), 9, counter=WORDS, strategy=strategy)
    assert fitted.report.tokens_after == 9


def test_a_step_that_says_it_fits_and_does_not_is_not_covered_up_by_the_next() -> None:
    """The next step is not asked."""
    strategy = Cascade(Custom(kept(*ALL, fits=False)), Custom(kept(*ALL)), SlidingWindow())
    with pytest.raises(StrategyContractError, match="says it fits"):
        fit(talk(LINE), 9, counter=WORDS, strategy=strategy)


def test_a_later_step_that_loses_what_is_pinned_is_named() -> None:
    """Also where it fits."""
    strategy = Cascade(Custom(kept(*ALL, fits=False)), Custom(kept(0, 3), name="wrong"))
    with pytest.raises(StrategyContractError, match="wrong, step 2 of a cascade"):
        fit(talk(LINE), 9, counter=WORDS, strategy=strategy)


def fails(messages: list[Any]) -> str:
    """Write no summary, so that the fallback is asked."""
    raise ValueError


@pytest.mark.parametrize("at", [1, 2])
def test_what_falls_back_on_a_users_strategy_is_looked_over(at: int) -> None:
    """As any other step is, where it does not fit and where it comes later."""
    loses = Summarize(fails, fallback=Custom(kept(0, 3, fits=at == 2)))
    steps = [Custom(kept(*ALL, fits=False))] * (at - 1)
    with pytest.raises(StrategyContractError, match="mine, the fallback of summarize,"):
        fit(talk(LINE), 9, counter=WORDS, strategy=Cascade(*steps, loses, Custom(never)))


def test_the_answer_says_what_every_step_said() -> None:
    """Each action once and all notes; the reason of the first; what the last one needs."""
    steps = (
        Custom(kept(*ALL, fits=False, actions=("one", "two"), notes=("A.",), reason="over_cap")),
        Custom(
            kept(0, 3, 4, 6, fits=False, actions=("three", "one"), notes=("B.",), protected=frozenset({3}))
        ),
        Custom(kept(0, 3, 6, fits=False, insertions=[written(4, 5)], needed_tokens=77, notes=("C.",))),
    )
    answer = Cascade(*steps).evict(eviction_request(talk(LINE), 5, counter=WORDS))
    assert [unit.first for unit in answer.kept] == [0, 3, 6]
    assert answer.actions == ("one", "two", "three", "mine")
    assert answer.notes == ("A.", "B.", "C.")
    assert (answer.fits, answer.reason, answer.needed_tokens) == (False, "over_cap", 77)
    assert answer.protected == {3}
    assert [one.at for one in answer.insertions] == [4]


@pytest.mark.parametrize(
    ("steps", "line", "actions"),
    [
        ((Custom(cut(6)),), LINE, ("mine",)),
        ((Custom(kept(*ALL, fits=False)), Drop()), LINE, ("mine", "dropped")),
        ((SlidingWindow(), TruncateText()), "a9 u1 a20", ("evicted", "shortened")),
    ],
)
def test_the_report_names_each_step_that_was_asked(steps: Any, line: str, actions: tuple[str, ...]) -> None:
    """By what it says it did, or by its name."""
    fitted = fit(talk(line), 9, counter=WORDS, strategy=Cascade(*steps))
    assert fitted.report.blocks[0].actions == actions


def test_what_leaves_for_the_order_alone_may_be_enough() -> None:
    """Gemini refuses a call behind words of the model: it leaves with its result, and the rest has room."""
    said = said_in(
        "gemini", [user(words(10)), assistant("a"), user("u"), call("c"), result("c", words(20)), user("q")]
    )

    def without_third(request: EvictionRequest) -> EvictionResult:
        return EvictionResult(kept=[unit for unit in request.units if unit.first != 2], fits=False)

    cascade = Cascade(Custom(without_third), Custom(never))
    fitted = fit(said, 15, counter=WordCounter(format="gemini"), format="gemini", strategy=cascade)
    assert fitted.messages == [said[0], said[1], said[5]]
    assert fitted.tokens_after == 10 + 1 + 1
