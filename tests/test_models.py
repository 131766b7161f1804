"""Facts about models: which names lead to them, and what happens where none does."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import models
from trimtab.counting import ENCODINGS, counter_for
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.formats import formats
from trimtab.models import Framing, Margin, ModelFacts, facts_for, model_names, register_model


@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param("gpt-4o", "gpt-4o", id="as-it-is"),
        pytest.param("gpt-4o-2024-08-06", "gpt-4o", id="dated"),
        pytest.param("gpt-4o-2024-05-13", "gpt-4o-2024-05-13", id="dated-with-facts-of-its-own"),
        pytest.param("openai/gpt-4o", "gpt-4o", id="prefix"),
        pytest.param("openai:gpt-4.1-mini", "gpt-4.1-mini", id="prefix-with-colon"),
        pytest.param("azure/gpt-35-turbo", "gpt-3.5-turbo", id="azure-spelling"),
        pytest.param("openrouter/openai/gpt-5-mini-2025-08-07", "gpt-5-mini", id="two-prefixes-and-a-date"),
        pytest.param("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini", id="fine-tuned"),
        pytest.param("gpt-4-0613", "gpt-4", id="old-date"),
        pytest.param("o3-mini-2025-01-31", "o3-mini", id="reasoning"),
        pytest.param("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", id="bedrock"),
        pytest.param("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", id="region"),
        pytest.param(
            "us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", id="region-gov"
        ),
        pytest.param("bedrock:global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", id="bedrock-colon"),
        pytest.param("bedrock/converse/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        pytest.param("openai.gpt-oss-120b-1:0", "gpt-oss-120b", id="bedrock-openai"),
        pytest.param("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5", id="vertex-dated"),
        pytest.param("vertex_ai/gemini-2.5-pro", "vertex/gemini-2.5-pro", id="vertex"),
        pytest.param("publishers/google/models/gemini-2.5-pro", "vertex/gemini-2.5-pro", id="publisher"),
        pytest.param(
            "projects/p/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929",
            "claude-sonnet-4-5",
            id="vertex-resource",
        ),
        pytest.param("gemini-2.5-flash-001", "gemini-2.5-flash", id="gemini-stable"),
        pytest.param("deepseek/deepseek-chat", "deepseek-chat", id="deepseek"),
        pytest.param("openrouter/deepseek/deepseek-chat", "deepseek-chat", id="openrouter-deepseek"),
        pytest.param("zai/glm-5", "glm-5", id="zai"),
        pytest.param("openrouter/z-ai/glm-4.7", "glm-4.7", id="z-ai"),
        pytest.param("openrouter/anthropic/claude-sonnet-4.5:nitro", "claude-sonnet-4-5", id="routed"),
        pytest.param("google/gemini-2.5-pro:free", "gemini-2.5-pro", id="free"),
    ],
)
def test_a_name_leads_to_its_model(name: str, model: str) -> None:
    """Dates and prefixes of gateways change nothing about a model."""
    assert facts_for(name).name == model


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt",
        "gpt-9",
        "gpt-4o-",
        "gpt-4o-pro",
        "gpt-4o-2024",
        "acme/gpt-4o",
        "GPT-4O",
        "claude-sonnet-9",
        "/",
        "anthropic.claude-sonnet-9-v1:0",
        "acme.claude-sonnet-4-5",
        "mars.anthropic.claude-sonnet-4-5",
        "gpt-4o:latest",
        "gpt-4o-001",
    ],
)
def test_a_family_is_not_guessed(name: str) -> None:
    """A name that only looks like a known one is unknown."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for(name)
    assert caught.value.name == name


def test_an_unknown_model_says_near_names_and_the_line_to_write() -> None:
    """The error is enough to go on."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for("gpt-4o-minii")
    assert caught.value.near[0] == "gpt-4o-mini"
    for part in ("'gpt-4o-minii'", "gpt-4o-mini", "counter=", "register_model(ModelFacts("):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", model_names())
def test_every_row_is_sound(name: str) -> None:
    """A row has a source and a date, limits that fit together, and names we can count and read."""
    facts = facts_for(name)
    assert facts.name == name
    assert facts.source.startswith("https://")
    assert datetime.date.fromisoformat(facts.checked) <= datetime.date(2100, 1, 1)
    assert facts.encoding is None or facts.encoding in ENCODINGS
    assert facts.format in formats()
    if facts.window_tokens is not None and facts.output_tokens is not None:
        assert 0 < facts.output_tokens <= facts.window_tokens


def test_a_registered_model_is_known_and_a_name_is_taken_once() -> None:
    """What a user describes is used; changing it has to be said."""
    facts = ModelFacts(name="test-models-own", window_tokens=1_000)
    register_model(facts)
    assert facts_for("test-models-own") is facts
    with pytest.raises(ConfigurationError, match="replace=True"):
        register_model(ModelFacts(name="test-models-own"))
    register_model(ModelFacts(name="test-models-own", window_tokens=2_000), replace=True)
    assert facts_for("test-models-own").window_tokens == 2_000


@pytest.mark.parametrize("limit", [0, -1])
def test_a_window_of_nothing_is_refused(limit: int) -> None:
    """Unknown is None, not 0."""
    with pytest.raises(ConfigurationError, match="above 0, or None"):
        register_model(ModelFacts(name="test-models-empty", window_tokens=limit))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-4.6-sonnet-20260217", "claude-sonnet-4-6"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("gemini/gemini-2.5-flash", "gemini-2.5-flash"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("vertex_ai/gemini-2.5-pro", "vertex/gemini-2.5-pro"),
        ("google-vertex:gemini-3-flash-preview", "vertex/gemini-3-flash-preview"),
        ("mistral/mistral-large-latest", "mistral-large-latest"),
    ],
)
def test_names_of_other_providers_lead_to_their_models(name: str, model: str) -> None:
    """Dates, prefixes and spellings of gateways; Vertex has rows of its own."""
    assert facts_for(name).name == model


@pytest.mark.parametrize("name", model_names())
def test_a_row_without_an_own_encoding_says_how_far_it_may_be_off(name: str) -> None:
    """A factor over another vocabulary without a margin would be a guess."""
    facts = facts_for(name)
    if facts.near_encoding is not None:
        assert facts.margin is not None
        assert 1 <= facts.text_factor < 2
        assert facts.encoding is not None or not facts.exact


def test_a_model_is_counted_in_the_wire_form_it_is_asked_about() -> None:
    """The same model costs more for tools in Chat than in Responses."""
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
    chat = counter_for("gpt-5")
    responses = chat.with_format("openai_responses")
    assert chat.fixed_tokens(None, tools, has_system=False) > responses.fixed_tokens(
        None, tools, has_system=False
    )
    assert (chat.exact, responses.exact, responses.with_format("openai_chat").exact) == (True, False, True)


def test_texts_are_scaled_one_by_one_so_that_sizes_add_up() -> None:
    """Sums of messages are the whole, whatever the factor."""
    counter = counter_for("claude-sonnet-4-5")
    messages = [{"role": "user", "content": "word " * n} for n in range(1, 50)]
    fixed = counter.fixed_tokens(None, None, has_system=False)
    assert counter.count(messages) == fixed + sum(map(counter.count_message, messages))
    plain = counter_for("gpt-4o").count_text("word " * 100)
    assert counter.count_text("word " * 100) == round(plain * facts_for("claude-sonnet-4-5").text_factor)


@given(st.integers(0, 10**7), st.integers(0, 200), st.integers(0, 500))
def test_a_margin_grows_with_its_count(tokens: int, least: int, per_mille: int) -> None:
    """And is rounded up, never down."""
    margin = Margin(tokens=least, per_mille=per_mille)
    assert margin.of(tokens) * 1_000 >= least * 1_000 + tokens * per_mille
    assert margin.of(tokens) <= margin.of(tokens + 1)
    assert margin.of(tokens, is_plain=True) == margin.of(tokens) - least


def test_another_name_of_a_model_is_taken_and_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was registered is what is found."""
    monkeypatch.setattr(models, "_FACTS", dict(models._FACTS))
    own = ModelFacts(name="gpt-4-0613", window_tokens=999)
    with pytest.raises(ConfigurationError, match="known already as 'gpt-4'"):
        register_model(own)
    register_model(own, replace=True)
    assert facts_for("gpt-4-0613") is own
    assert facts_for("openai/gpt-4-0613") is own
    assert facts_for("gpt-4").window_tokens == 8_192


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": 5},
        {"window_tokens": "128k"},
        {"window_tokens": 1.5},
        {"window_tokens": True},
        {"output_tokens": -1},
        {"text_factor": float("nan")},
        {"text_factor": -1},
        {"text_factor": "2"},
        {"encoding": 5},
        {"format": None},
        {"framing": {}},
        {"framings": {"gemini": Framing()}},
        {"framings": (("gemini", None),)},
        {"margins": ((5, Margin()),)},
        {"margin": 5},
        {"media": None},
    ],
    ids=str,
)
def test_what_cannot_be_a_fact_is_refused_when_it_is_registered(wrong: dict[str, Any]) -> None:
    """And not where a count fails of it."""
    (key,) = wrong
    with pytest.raises(ConfigurationError, match=key):
        register_model(ModelFacts(**{"name": "acme-wrong", **wrong}))
    assert "acme-wrong" not in model_names()


def test_what_is_no_description_is_refused() -> None:
    """A dict has no facts."""
    with pytest.raises(ConfigurationError, match="ModelFacts"):
        register_model({"name": "x"})  # type: ignore[arg-type]


def test_a_variant_with_limits_of_its_own_counts_as_its_model_and_has_no_known_window() -> None:
    """OpenRouter's ":free" may have a shorter window; ":nitro" is the model itself."""
    whole = facts_for("gpt-4o")
    free = facts_for("openrouter/openai/gpt-4o:free")
    assert (free.window_tokens, free.output_tokens) == (None, None)
    assert (free.encoding, free.framing) == (whole.encoding, whole.framing)
    assert facts_for("openrouter/openai/gpt-4o:free") is free
    assert facts_for("openai/gpt-4o:floor") is whole


@pytest.mark.parametrize("name", ["GPT-4o-mini", "Claude-Sonnet-4-5"])
def test_a_name_in_the_wrong_case_is_near_the_right_one(name: str) -> None:
    """Providers refuse it; the error says what was meant."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for(name)
    assert caught.value.near[0] == name.lower()
