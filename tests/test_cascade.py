"""`Cascade`: what its steps say becomes one answer, and a step that is not needed is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import talk
from tests.test_runner import LINE, WORDS, Custom, cut, kept, written
from trimtab import Cascade, Drop, SlidingWindow, Strict, Summarize, TruncateText, fit
from trimtab.errors import StrategyContractError
from trimtab.strategies import EvictionRequest, EvictionResult
from trimtab.testing import eviction_request

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
