"""`fit` at the front door: the room it takes where no budget is given."""

from __future__ import annotations

import pytest

from tests.builders import result
from trimtab import ConfigurationError, EstimateCounter, fit
from trimtab.counting import FixedCounter

TALK = [{"role": "user", "content": "What is new?"}]


@pytest.mark.parametrize(
    ("model", "window", "reserve"),
    [
        pytest.param("gpt-4o", 128_000, 16_384, id="output-limit-below-half"),
        pytest.param("gpt-4", 8_192, 4_096, id="output-limit-is-the-window"),
        pytest.param("o1", 200_000, 100_000, id="output-limit-is-half"),
        pytest.param("o1-mini", 128_000, 64_000, id="output-limit-above-half"),
        pytest.param("gpt-oss-20b", 131_072, 0, id="output-limit-unknown"),
    ],
)
def test_without_a_budget_the_models_window_is_the_room(model: str, window: int, reserve: int) -> None:
    """Its output limit is kept free, but at most half the window: a request needs room too."""
    report = fit(TALK, model=model, counter=EstimateCounter()).report
    assert report.window_tokens == window
    assert report.output_reserve_tokens == reserve
    assert report.input_tokens == window - reserve


def test_without_a_budget_and_a_model_nothing_is_guessed() -> None:
    """The error says what to pass."""
    with pytest.raises(ConfigurationError, match="budget="):
        fit(TALK)


def test_of_nothing_but_orphans_the_newest_stays() -> None:
    """It is held (SPEC A4), although each result is a unit of its own."""
    messages = [result("a", "old"), result("a", "new")]
    fitted = fit(messages, 10, counter=FixedCounter(10))
    assert fitted.messages == [messages[1]]
    assert [(row.fate, row.state) for row in fitted.report.messages] == [
        ("evicted", "free"),
        ("kept", "held"),
    ]
    assert fit(messages, 10, counter=EstimateCounter()).messages == [messages[1]]
