"""Budget: what is left for the input, to the token."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trimtab import Budget, ConfigurationError


@pytest.mark.parametrize(
    ("budget", "room"),
    [
        (Budget(100), 100),
        (Budget(100, output_reserve=30), 70),
        (Budget(100, output_reserve=30, overhead_tokens=5), 65),
        (Budget(100, output_reserve=30, overhead_tokens=5, margin=1), 64),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=9), 1),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=10), 0),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=11), 0),
        (Budget(1), 1),
    ],
)
def test_the_input_room_is_the_window_less_everything_reserved(budget: Budget, room: int) -> None:
    """Never below 0 (SPEC D1)."""
    assert budget.input_tokens == room


@pytest.mark.parametrize(
    ("used", "available", "share", "exceeds"),
    [
        (0, 80, 0.0, False),
        (20, 60, 0.25, False),
        (79, 1, 0.9875, False),
        (80, 0, 1.0, False),
        (81, 0, 1.0, True),
        (200, 0, 1.0, True),
    ],
)
def test_what_is_used_is_measured_against_the_input_room(
    used: int, available: int, share: float, exceeds: bool
) -> None:
    """At the room itself nothing is exceeded."""
    budget = Budget(100, output_reserve=20)
    assert budget.available(used) == available
    assert budget.utilization(used) == share
    assert budget.would_exceed(used) is exceeds


def test_nothing_is_used_unless_said() -> None:
    """`available()` is the whole room."""
    assert Budget(10).available() == 10


def test_no_room_is_full() -> None:
    """A budget whose reserve takes all has a utilization of 1."""
    budget = Budget(10, output_reserve=10)
    assert (budget.available(), budget.utilization(0), budget.would_exceed(0)) == (0, 1.0, False)


NUMBERS = ("window", "output_reserve", "overhead_tokens", "margin")


@pytest.mark.parametrize("value", [-1, 1.5, math.inf, math.nan, True, "8", None, -0.5])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    """Negative, fractional, infinite, boolean or text."""
    with pytest.raises(ConfigurationError, match=name):
        Budget(**{"window": 100, name: value})


@pytest.mark.parametrize("value", [-1, 0.5, True, "8", math.nan])
@pytest.mark.parametrize("method", ["available", "utilization", "would_exceed"])
def test_what_is_used_must_be_a_number_of_tokens(method: str, value: Any) -> None:
    """Like the numbers of the budget itself."""
    with pytest.raises(ConfigurationError, match="used"):
        getattr(Budget(100), method)(value)


def test_a_window_of_nothing_is_refused_and_other_numbers_may_be_0() -> None:
    """The window is above 0, the rest at least 0."""
    with pytest.raises(ConfigurationError, match="window must be at least 1"):
        Budget(0)
    assert Budget(5, output_reserve=0, overhead_tokens=0, margin=0) == Budget(5)


def test_a_whole_float_is_taken_as_its_integer() -> None:
    """`8e3` is how people write thousands."""
    budget = Budget(8e3, margin=2.0)  # type: ignore[arg-type]  # what a configuration file may give
    assert (budget.window, type(budget.window), type(budget.margin)) == (8000, int, int)
    least = Budget(1.0, margin=0.0)  # type: ignore[arg-type]  # the same
    assert least.input_tokens == 1


def test_a_bare_number_is_a_budget_and_a_budget_stays_itself() -> None:
    """`Budget.of` is what `fit` calls."""
    budget = Budget(9, margin=1)
    assert Budget.of(budget) is budget
    assert Budget.of(9) == Budget(9)
    assert Budget.of(9) is not budget
    with pytest.raises(ConfigurationError):
        Budget.of(True)
    with pytest.raises(ConfigurationError):
        Budget.of("9")  # type: ignore[arg-type]  # that is the test
