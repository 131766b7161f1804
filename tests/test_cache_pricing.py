"""Prices of a prompt cache: what is read, what is written, and the rows there are."""

from __future__ import annotations

import json

import pytest

from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.models import CachePricing, pricing_for, pricings


def test_what_is_not_served_is_written_and_costs_more() -> None:
    """Anthropic: a read costs a tenth, a write a quarter more than input."""
    charge = pricing_for("anthropic").charge(10_000, reusable_tokens=8_000)
    assert (charge.read_tokens, charge.write_tokens, charge.base_tokens) == (8_000, 2_000, 0)
    assert charge.price == pytest.approx(8_000 * 0.1 + 2_000 * 1.25)


def test_a_short_prefix_is_neither_served_nor_stored() -> None:
    """Below the minimum the request costs what it costs without a cache; at the minimum it is stored."""
    pricing = CachePricing(min_prefix_tokens=1_024)
    assert pricing.charge(1_023, reusable_tokens=1_000) == (0, 0, 1_023, 1_023.0)
    assert pricing.charge(1_024)[:3] == (0, 1_024, 0)
    assert pricing.charge(2_000, reusable_tokens=1_023)[:3] == (0, 2_000, 0)
    assert pricing.charge(2_000, reusable_tokens=1_024)[:3] == (1_024, 976, 0)


def test_reads_come_in_whole_steps() -> None:
    """OpenAI serves multiples of 128 tokens, rounded down."""
    assert pricing_for("openai").charge(5_000, reusable_tokens=1_151)[:2] == (1_024, 3_976)


def test_never_more_is_read_than_was_sent() -> None:
    """The prefix that is stored may be longer than the request."""
    assert pricing_for("anthropic").charge(2_000, reusable_tokens=9_000)[:3] == (2_000, 0, 0)


def test_a_cache_is_cold_behind_its_lifetime() -> None:
    """At the lifetime it still serves; without times, or a lifetime, it always does."""
    pricing = CachePricing(lifetime_seconds=300)
    assert [pricing.is_cold(idle) for idle in (None, 0, 300, 300.1)] == [False, False, False, True]
    assert not CachePricing(lifetime_seconds=None).is_cold(1e9)


@pytest.mark.parametrize("name", pricings())
def test_each_row_says_where_it_was_read_and_when(name: str) -> None:
    """A price without a source is a guess; a row can be written as JSON and read again."""
    row = pricing_for(name)
    assert row.name == name
    assert row.source.startswith("https://")
    assert row.checked.startswith("2026-")
    assert row.read < row.base <= row.write
    assert CachePricing.from_dict(json.loads(json.dumps(row.to_dict()))) == row


@pytest.mark.parametrize(
    ("model", "read", "write", "least"),
    [
        ("claude-opus-4-5", 0.1, 1.25, 4_096),
        ("anthropic/claude-opus-4.6", 0.1, 1.25, 4_096),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 0.1, 1.25, 4_096),
        ("claude-sonnet-4-5", 0.1, 1.25, 1_024),
        ("claude-opus-5", 0.1, 1.25, 512),
        ("claude-3-5-haiku-latest", 0.1, 1.25, 2_048),
        ("gpt-5.6", 0.1, 1.25, 1_024),
        ("gpt-5-mini", 0.1, 1.0, 1_024),
        ("gpt-5.4", 0.1, 1.0, 1_024),
        ("gpt-4.1", 0.25, 1.0, 1_024),
        ("openai/gpt-4o", 0.5, 1.0, 1_024),
        ("o3", 0.25, 1.0, 1_024),
        ("claude-sonnet-5-5", 0.05, 1.25, 1_024),
        ("claude-fable-5-2", 0.025, 1.25, 512),
        ("gpt-6.1-sol", 0.05, 1.25, 1_024),
        ("gemini-4-argon", 0.05, 1.0, 4_096),
        ("deepseek/deepseek-v4-flash", 0.02, 1.0, 64),
        ("xai/grok-4.7", 0.25, 1.0, 1_024),
        ("mistral-large-latest", 0.1, 1.0, 1_024),
        ("moonshotai/kimi-k3", 0.1, 1.0, 1_024),
        ("qwen3.8-max", 0.125, 1.25, 1_024),
        ("gemini-2.5-pro", 0.1, 1.0, 2_048),
        ("gemini-3.1-pro-preview", 0.1, 1.0, 4_096),
    ],
)
def test_a_model_has_the_prices_of_its_family(model: str, read: float, write: float, least: int) -> None:
    """Models of one provider differ in the shortest prefix, and in what a read costs."""
    found = pricing_for(model)
    assert (found.name, found.read, found.write, found.min_prefix_tokens) == (model, read, write, least)


def test_a_name_nobody_knows_is_refused_with_those_like_it() -> None:
    """Prices are never guessed from a name."""
    with pytest.raises(UnknownNameError, match="anthropic") as caught:
        pricing_for("antropic")
    assert "anthropic" in caught.value.near
    for unknown in ("llama-3", "my-gpt-4o", "command-r"):
        with pytest.raises(UnknownNameError):
            pricing_for(unknown)


@pytest.mark.parametrize(
    "wrong",
    [
        {"read": -0.1},
        {"write": "1.25"},
        {"base": True},
        {"lifetime_seconds": -1},
        {"granularity_tokens": 0},
        {"max_breakpoints": 0},
        {"min_prefix_tokens": 1.5},
        {"raed": 0.1},
        {"name": 3},
        ["read", 0.1],
    ],
)
def test_wrong_prices_are_refused_where_they_are_given(wrong: object) -> None:
    """A file of prices with a slip in it must not price anything."""
    with pytest.raises(ConfigurationError):
        CachePricing.from_dict(wrong)
