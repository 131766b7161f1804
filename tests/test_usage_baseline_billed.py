"""The usage baseline on a recorded session, every call of which was billed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy_baseline import pi_calls, pi_rows
from trimtab import counter_for


@pytest.mark.long
def test_the_new_part_of_a_real_agents_calls_is_known_within_15_percent(data_dir: Path) -> None:
    """In the median of the judged half; margins hold in 95 %, and in 94 % without the answer's size."""
    with_answer, without, null = pi_rows(data_dir)
    assert with_answer.calls >= 200
    assert with_answer.median_error <= 0.05
    assert without.median_error <= 0.15
    assert null.median_error == 1
    for row, inside in ((with_answer, 0.95), (without, 0.94)):
        assert row.inside is not None
        assert row.inside >= inside
        assert row.median_margin is not None
        assert row.median_margin <= 0.03


@pytest.mark.long
def test_an_exact_looking_counter_of_another_model_is_calibrated_as_well(data_dir: Path) -> None:
    """o200k counts of what Claude was billed for are off by a third, and learned."""
    calls = pi_calls(data_dir, counter=lambda: _inexact(counter_for("gpt-4o")))
    errors = sorted(one.new_error for one in calls if one.judged)
    assert errors[len(errors) // 2] <= 0.05


def _inexact(counter: Any) -> Any:
    twin = copy.copy(counter)  # everybody gets the same counter of a model
    twin.exact = False
    return twin
