"""Prices in dollars: as makers' own lists have them, and none where none is known."""

from __future__ import annotations

import pytest

from trimtab.models import dollars_for, model_names


@pytest.mark.parametrize(
    ("model", "dollars"),
    [  # as the makers' own lists of prices have them
        ("gpt-4o", 2.5),
        ("gpt-4o-mini", 0.15),
        ("gpt-4.1", 2.0),
        ("o3", 2.0),
        ("claude-3-haiku", 0.25),
        ("claude-sonnet-4-5", 3.0),
        ("claude-opus-4-1", 15.0),
        ("gemini-2.5-pro", 1.25),
        ("mistral-large-latest", 0.5),
    ],
)
def test_a_price_is_that_of_the_maker(model: str, dollars: float) -> None:
    """A million tokens of plain input."""
    assert dollars_for(model) == dollars


@pytest.mark.parametrize("name", ["openai/gpt-4o", "gpt-4o-2024-08-06", "GPT-4o", "openai/gpt-4o-2024-11-20"])
def test_the_same_model_by_another_name_costs_the_same(name: str) -> None:
    """With its maker before it, or its date behind it."""
    assert dollars_for(name) == dollars_for("gpt-4o")


def test_a_date_that_has_a_price_of_its_own_keeps_it() -> None:
    """The first gpt-4o cost twice as much."""
    assert dollars_for("gpt-4o-2024-05-13") == 5.0


@pytest.mark.parametrize("name", ["gpt-9", "azure/gpt-4o", "gpt-4o-audio-preview", "claude-", "", "openai/"])
def test_what_is_not_known_has_no_price(name: str) -> None:
    """Nor has what another host serves, or what is no text."""
    assert dollars_for(name) is None


def test_most_models_of_the_large_makers_have_a_price() -> None:
    """A million tokens cost between a cent and 200 dollars."""
    found = {name: dollars for name in model_names() if (dollars := dollars_for(name)) is not None}
    assert len(found) > 100
    assert all(0.01 <= dollars <= 200 for dollars in found.values())
