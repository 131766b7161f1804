"""Prices in dollars: as makers' own lists have them, and none where none is known."""

from __future__ import annotations

import pytest

from trimtab.counting import billed_parts
from trimtab.models import BilledParts, dollars_for, dollars_of, model_names


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


@pytest.mark.parametrize(
    ("usage", "parts"),
    [
        (  # Chat Completions: what a cache served is a part of the input
            {
                "prompt_tokens": 1_000,
                "completion_tokens": 40,
                "prompt_tokens_details": {"cached_tokens": 640},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (360, 640, 0, 0, 40),
        ),
        (
            {"prompt_tokens": 1_000, "completion_tokens": 4, "prompt_cache_hit_tokens": 640},
            (360, 640, 0, 0, 4),
        ),
        ({"prompt_tokens": 1_000, "cached_tokens": 640}, (360, 640, 0, 0, 0)),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, (10, 0, 0, 0, 0)),
        (  # Responses
            {"input_tokens": 900, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 512}},
            (388, 512, 0, 0, 7),
        ),
        (  # Anthropic: the parts stand apart
            {
                "input_tokens": 3,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
                "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 20},
                "output_tokens": 40,
            },
            (3, 900, 30, 20, 40),
        ),
        (  # Gemini: thoughts are charged as the answer, and are apart from it
            {
                "promptTokenCount": 1_000,
                "cachedContentTokenCount": 300,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
            },
            (700, 300, 0, 0, 12),
        ),
        (  # Converse
            {"inputTokens": 3, "cacheReadInputTokens": 90, "cacheWriteInputTokens": 5, "outputTokens": 4},
            (3, 90, 5, 0, 4),
        ),
        ({"prompt_eval_count": 100, "eval_count": 9}, (100, 0, 0, 0, 9)),
    ],
)
def test_parts_of_a_bill_are_read_in_the_shape_of_each_provider(
    usage: dict[str, object], parts: tuple[int, ...]
) -> None:
    """Plain input, what a cache served, what was stored for minutes and for an hour, and the answer."""
    assert tuple(billed_parts(usage)) == parts
    assert tuple(billed_parts({"usage": usage})) == parts


@pytest.mark.parametrize(
    ("model", "parts", "millionths"),
    [
        # 3 dollars a million; read at a tenth, stored for 1.25, for an hour twice, answers five times
        ("claude-sonnet-4-5", BilledParts(1_000, 10_000, 400, 100, 200), 3_000 + 3_000 + 1_500 + 600 + 3_000),
        # 2.50; read at half, answers four times
        ("gpt-4o", BilledParts(20_000, 80_000, 0, 0, 1_000), 50_000 + 100_000 + 10_000),
        # 1.25; above 200,000 tokens input is twice that, and answers are 1.5 times eight times
        ("gemini-2.5-pro", BilledParts(300_000, 0, 0, 0, 1_000), 750_000 + 15_000),
    ],
)
def test_a_bill_costs_what_the_price_list_says(model: str, parts: BilledParts, millionths: float) -> None:
    """By the part of the input, and by the tier of its size."""
    found = dollars_of(parts, model)
    assert found == pytest.approx(millionths / 1e6)


def test_a_bill_without_a_price_has_no_dollars() -> None:
    """Of a model nobody knows."""
    assert dollars_of(BilledParts(100), "gpt-9") is None


def test_what_a_cache_served_and_stored_is_a_part_of_the_input() -> None:
    """Whatever a server says: 50 of 5 tokens are 5."""
    served = billed_parts({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 50}})
    assert (served.input_tokens, served.read_tokens, served.base_tokens) == (5, 5, 0)
