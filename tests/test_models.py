"""Facts about models: which names lead to them, and what happens where none does."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import Budget, Context, Fitted, Session, fit
from trimtab.counting import ENCODINGS, FixedCounter, counter_for, measure
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
        pytest.param("meta-llama/Llama-3.3-70B-Instruct-Turbo", "llama-3.3", id="together-llama"),
        pytest.param("groq/llama-3.3-70b-versatile", "llama-3.3", id="groq-llama"),
        pytest.param("cerebras/llama3.1-8b", "llama-3.1", id="cerebras-llama"),
        pytest.param("us.meta.llama3-3-70b-instruct-v1:0", "llama-3.3", id="bedrock-llama"),
        pytest.param("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-3.1", id="fireworks-llama"),
        pytest.param("meta.llama4-scout-17b-instruct-v1:0", "llama-4-scout", id="bedrock-llama-4"),
        pytest.param("Meta-Llama-3.1-405B-Instruct", "llama-3.1", id="azure-llama"),
        pytest.param(
            "vertex_ai/meta/llama-4-scout-17b-16e-instruct-maas", "llama-4-scout", id="vertex-llama"
        ),
        pytest.param("llama3-8b-8192", "llama-3", id="size-of-llama"),
        pytest.param("cerebras/zai-glm-4.7", "glm-4.7", id="cerebras-glm"),
        pytest.param("openai-gpt-oss-120b", "gpt-oss-120b", id="digitalocean-gpt-oss"),
        pytest.param("minimax/minimax-m2.5", "minimax-m2", id="version-of-minimax"),
        pytest.param("llama-3" + "-x" * 15, "llama-3", id="longest"),
        pytest.param("qwen3:0.6b", "qwen3", id="ollama-qwen"),
        pytest.param("qwen/qwen3-32b", "qwen3-32b", id="groq-qwen"),
        pytest.param("cerebras/qwen-3-32b", "qwen3-32b", id="cerebras-qwen"),
        pytest.param("qwen.qwen3-coder-480b-a35b-v1:0", "qwen3-coder-480b-a35b", id="bedrock-qwen"),
        pytest.param("together_ai/Qwen/Qwen3.5-9B", "qwen3.5", id="together-qwen"),
        pytest.param("dashscope/qwen3-max-2026-01-23", "qwen3-max", id="alibaba"),
        pytest.param("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2-instruct-0905", id="kimi"),
        pytest.param("fireworks_ai/kimi-k2p5", "kimi-k2.5", id="fireworks-kimi"),
        pytest.param("zai-org/GLM-4.6", "glm-4.6", id="together-glm"),
        pytest.param("fireworks_ai/glm-4p6", "glm-4.6", id="fireworks-glm"),
        pytest.param("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3.1", id="together-deepseek"),
        pytest.param("us.deepseek.r1-v1:0", "deepseek-r1", id="bedrock-deepseek"),
        pytest.param("deepseek-r1-distill-llama-70b", "deepseek-r1-distill-llama", id="groq-deepseek"),
        pytest.param("openrouter/x-ai/grok-4", "grok-4", id="openrouter-grok"),
        pytest.param("xai/grok-4.20-0309-reasoning", "grok-4.20", id="grok"),
        pytest.param("us.amazon.nova-2-lite-v1:0", "nova-2-lite", id="bedrock-nova"),
        pytest.param("cohere.command-r-plus-v1:0", "command-r-plus-08-2024", id="bedrock-command"),
        pytest.param("ollama/gpt-oss:20b", "gpt-oss-20b", id="ollama-gpt-oss"),
        pytest.param("groq/openai/gpt-oss-120b", "gpt-oss-120b", id="groq-gpt-oss"),
        pytest.param("bedrock_mantle/openai.gpt-6-sol", "gpt-6-sol", id="bedrock-gpt"),
        pytest.param("azure/gpt-35-turbo-16k", "gpt-3.5-turbo-16k", id="azure-16k"),
        pytest.param(
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
            id="arn-profile",
        ),
        pytest.param(
            "arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/meta.llama3-3-70b-instruct-v1:0",
            "llama-3.3",
            id="arn-model",
        ),
        pytest.param(
            "bedrock/arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", "nova-lite", id="arn"
        ),
        pytest.param("databricks-claude-sonnet-4-5", "databricks-claude-sonnet-4-5", id="databricks"),
        pytest.param(
            "databricks/databricks-claude-3-7-sonnet", "databricks-claude-3-7-sonnet", id="databricks-twice"
        ),
        pytest.param("databricks-meta-llama-3-3-70b-instruct", "llama-3.3", id="databricks-llama"),
        pytest.param("databricks-llama-4-maverick", "llama-4-maverick", id="databricks-llama-4"),
        pytest.param("databricks-gpt-oss-120b", "gpt-oss-120b", id="databricks-gpt-oss"),
        pytest.param("databricks-gemini-2-5-pro", "gemini-2.5-pro", id="databricks-gemini"),
        pytest.param("databricks-gpt-5-1", "gpt-5.1", id="databricks-gpt"),
        pytest.param("databricks-gpt-5-mini", "gpt-5-mini", id="databricks-gpt-mini"),
        pytest.param("databricks-qwen3-next-80b-a3b-instruct", "qwen3-next", id="databricks-qwen"),
        pytest.param("databricks-gemma-3-12b", "gemma-3", id="databricks-gemma"),
        pytest.param("GPT-4O", "gpt-4o", id="upper-case"),
        pytest.param("OpenAI/GPT-4o-2024-08-06", "gpt-4o", id="mixed-case"),
        pytest.param("Claude-Sonnet-4-5", "claude-sonnet-4-5", id="claude-case"),
        pytest.param("US.Anthropic.Claude-Sonnet-4-5-20250929-V1:0", "claude-sonnet-4-5", id="bedrock-case"),
        pytest.param("Vertex_AI/Gemini-2.5-Pro", "vertex/gemini-2.5-pro", id="vertex-case"),
        pytest.param("moonshotai/Kimi-K2-Instruct", "kimi-k2", id="kimi-case"),
        pytest.param("Mistral-Large-Latest", "mistral-large-latest", id="mistral-case"),
        pytest.param("Grok-4", "grok-4", id="grok-case"),
        pytest.param("claude-opus-5.5@20261001", "claude-opus-5-5", id="dotted-and-dated"),
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
        "acme/gpt-4o",
        "/",
        "acme.claude-sonnet-4-5",
        "mars.anthropic.claude-sonnet-4-5",
        "mini-gpt-4o",
        "groq/whisper",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
        "databricks-dbrx-instruct",
    ],
)
def test_a_name_that_tells_no_maker_is_unknown(name: str) -> None:
    """A name that only looks like a known one is unknown."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for(name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "costliest"),
    [
        ("gpt-9", "gpt-4"),
        ("gpt-4o-pro", "gpt-4"),
        ("gpt-4o:latest", "gpt-4"),
        ("o9-mini", "gpt-4"),
        ("claude-sonnet-9", "claude-opus-4-7"),
        ("bedrock/eu.anthropic.claude-sonnet-9-v1:0", "claude-opus-4-7"),
        ("gemini-9-flash", "gemini-3.8-flash"),
        ("vertex_ai/gemini-9-flash", "vertex/gemini-3.8-flash"),
        ("mistral-huge-latest", "mistral-small-latest"),
        ("magistral-9", "mistral-small-latest"),
        ("x-ai/grok-9", "grok-4"),
        ("groq/llama-9-70b", "llama-3.3"),
        ("Qwen/Qwen9-7B", "qwen3.5"),
        ("meta-llama-9", "llama-3.3"),
        ("llama-3" + "-x" * 16, "llama-3.3"),
        ("qwq-9", "qwen3.5"),
        ("qwen-maxp1", "qwen3.5"),
        ("kimi-k2p", "kimi-k3"),
        ("deepseek-v9", "deepseek-v4-pro"),
        ("us.amazon.nova-9-v1:0", "nova-2-lite"),
        ("command-z", "command-a-plus-05-2026"),
    ],
)
def test_a_name_that_tells_its_maker_is_counted_as_the_makers_costliest(name: str, costliest: str) -> None:
    """Never exactly, and its limits stay unknown: a new model may have others."""
    facts = facts_for(name)
    assert (facts.name, facts.counted_as) == (name, costliest)
    assert (facts.window_tokens, facts.output_tokens, facts.exact) == (None, None, False)
    assert (facts.encoding, facts.near_encoding) == (
        facts_for(costliest).encoding,
        facts_for(costliest).near_encoding,
    )
    assert counter_for(name).name == name


SAMPLES = {
    "English": [{"role": "user", "content": "How many tokens has this? " * 40}],
    "Chinese": [{"role": "user", "content": "请问这一句话有多少个词元？" * 40}],
    "code": [{"role": "user", "content": "def f(x):\n    return [y ** 2 for y in x]\n" * 40}],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Look something up.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
    }
]


UNNAMED = [
    *("gpt-9", "claude-9", "gemini-9", "vertex/gemini-9", "mistral-9", "grok-9", "nova-9", "command-z"),
    *("llama-9", "qwen9", "deepseek-v9", "glm-9", "kimi-k9", "minimax-m9", "gemma-9"),
]
"""A name nobody knows of each maker."""


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "tools"])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", UNNAMED)
def test_the_margin_of_an_unnamed_model_covers_what_the_known_ones_of_its_maker_count(
    name: str, sample: str, tools: list[Any] | None
) -> None:
    """So that the bill is inside if the new model is like any of them."""
    unnamed = facts_for(name)
    counted = measure(SAMPLES[sample], model=name, tools=tools, format=unnamed.format)
    assert counted.exact is False
    assert counted.margin_tokens is not None
    assert counted.least_tokens is not None
    for known in model_names():
        facts = facts_for(known)
        if facts.provider == unnamed.provider:
            other = measure(SAMPLES[sample], model=known, tools=tools, format=unnamed.format).tokens
            assert counted.least_tokens <= other <= counted.tokens + counted.margin_tokens, known


def test_the_report_says_that_a_model_is_counted_as_another() -> None:
    """With the names that may have been meant."""
    (note,) = fit(SAMPLES["English"], 2_000, model="gpt-4oo").report.notes
    assert "'gpt-4oo' is not known" in note
    assert "'gpt-4'" in note
    assert "did you mean gpt-4o" in note
    assert fit(SAMPLES["English"], 2_000, model="gpt-4oo", counter=FixedCounter(5)).report.notes == ()
    context = Context(2_000, model="claude-9").add("question", "Hello")
    assert "'claude-9' is not known" in context.fit().report.notes[0]


def test_measure_says_what_the_report_says_of_a_model_nobody_knows() -> None:
    """By its name or by that of a body; not where another counter counted, nor of a known one."""
    (note,) = fit(SAMPLES["English"], 2_000, model="claude-9").report.notes
    assert measure(SAMPLES["English"], model="claude-9").notes == (note,)
    assert measure({"model": "claude-9", "messages": SAMPLES["English"]}).notes == (note,)
    assert measure({"model": "claude-9", "messages": QUESTION}, counter=FixedCounter(5)).notes == ()
    for known in ("claude-opus-5", "Claude-Opus-5", "databricks-claude-opus-4-1"):
        assert measure(SAMPLES["English"], model=known).notes == ()


def test_a_session_says_the_same_of_its_model() -> None:
    """Of one that only tells its maker, and of a window that is smaller than the session's budget."""
    session = Session(budget=2_000, model="claude-9")
    session.add(SAMPLES["English"][0])
    assert "'claude-9' is not known" in session.fit().report.notes[0]
    session = Session(budget=Budget(100_000, over_limit=True), model="gpt-4")
    session.add(SAMPLES["English"][0])
    assert "a window of 100,000 tokens; that of 'gpt-4' is known to be 8,192" in session.fit().report.notes[0]


def test_a_body_that_names_an_unknown_model_is_told_so() -> None:
    """Not that it names none."""
    messages = [{"role": "user", "content": "Hello"}]
    for name in ("acme-9", "gpt-9"):
        with pytest.raises(ConfigurationError, match=f"the window of '{name}' is not known: pass budget="):
            fit({"model": name, "messages": messages})
    with pytest.raises(ConfigurationError, match="no model is named: pass budget="):
        fit({"messages": messages})


@pytest.mark.parametrize("over", [0, 1])
def test_a_bare_budget_passes_no_known_window(over: int) -> None:
    """No request of that size is taken; `over_limit` is the caller's word on it, and the report has both."""
    messages = [{"role": "user", "content": "Hello"}]
    window = 8_192
    if over:
        with pytest.raises(
            ConfigurationError, match=r"8,193 exceeds the window of 'gpt-4', 8,192 tokens.*Budget\("
        ):
            fit(messages, window + over, model="gpt-4")
        with pytest.raises(ConfigurationError, match="8,193 exceeds the window"):
            Context(window + over, model="gpt-4")
        with pytest.raises(ConfigurationError, match="8,193 exceeds the window"):
            Context(window, model="gpt-4").add("question", "Hello").fit(window + over)
    else:
        assert fit(messages, window, model="gpt-4").report.notes == ()
        assert Context(window, model="gpt-4").add("question", "Hello").fit().report.notes == ()
    for report in (
        fit(messages, Budget(window + over, over_limit=True), model="gpt-4").report,
        Context(Budget(window + over, over_limit=True), model="gpt-4").add("question", "Hello").fit().report,
    ):
        assert (report.window_tokens, report.model_window_tokens) == (window + over, window)
        assert len(report.notes) == over
    assert fit(messages, 10**9).report.model_window_tokens is None


QUESTION = [{"role": "user", "content": "Hello"}]


def _fitted_for_gpt_4() -> dict[str, Fitted[Any]]:
    """Fit a question by every way that leads to a plan of its own."""
    body = {"model": "gpt-4", "messages": QUESTION}
    return {
        "quick": fit(QUESTION, 500, model="gpt-4"),
        "full": fit(QUESTION, 500, model="gpt-4", tools=TOOLS),
        "body": fit(body, 500),
        "context": Context(500, model="gpt-4").add("question", "Hello").fit(),
    }


@pytest.mark.parametrize("way", ["quick", "full", "body", "context"])
def test_fitting_again_for_another_budget_passes_no_known_window(way: str) -> None:
    """`at` says of a bare number what `fit` says, and the report what it says of a `Budget`."""
    fitted = _fitted_for_gpt_4()[way]
    assert fitted.report.notes == fitted.at(8_192).report.notes == ()
    with pytest.raises(
        ConfigurationError, match=r"8,193 exceeds the window of 'gpt-4', 8,192 tokens.*Budget\("
    ):
        fitted.at(8_193)
    with pytest.raises(ConfigurationError, match="8,193 exceeds the window of 'gpt-4'"):
        asyncio.run(fitted.aat(8_193))
    said = "The budget goes by a window of 8,193 tokens; that of 'gpt-4' is known to be 8,192."
    wider = fitted.at(Budget(8_193, over_limit=True))
    assert wider.report.notes == (said,)
    assert wider.at(500).report.notes == ()  # the note is about the budget of that fit


def test_fitting_again_without_a_model_takes_any_number() -> None:
    """There is no window to pass."""
    assert fit(QUESTION, 500).at(10**9).report.window_tokens == 10**9


def test_a_host_of_an_open_model_may_allow_less() -> None:
    """So its window is not known there; that of the maker's own endpoint is, and so is a closed model's."""
    assert facts_for("deepseek/deepseek-chat").window_tokens == 131_072
    assert facts_for("deepseek-chat").window_tokens == 131_072
    assert facts_for("openrouter/deepseek/deepseek-chat").window_tokens is None
    assert facts_for("us.meta.llama3-3-70b-instruct-v1:0").window_tokens is None
    arn = "arn:aws:bedrock:us-east-1::foundation-model/"
    assert facts_for(arn + "meta.llama3-3-70b-instruct-v1:0").window_tokens is None
    assert facts_for(arn + "anthropic.claude-sonnet-4-5-20250929-v1:0").window_tokens == 200_000
    assert facts_for("databricks-gpt-oss-120b").window_tokens is None
    assert facts_for("databricks/databricks-meta-llama-3-3-70b-instruct").window_tokens is None
    assert facts_for("databricks-claude-sonnet-4-5").window_tokens == 200_000
    assert facts_for("openrouter/x-ai/grok-4").window_tokens == 256_000
    assert facts_for("us.amazon.nova-lite-v1:0").window_tokens == 300_000


def test_an_unknown_model_says_near_names_and_the_line_to_write() -> None:
    """The error is enough to go on."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for("gtp-4o-mini")
    assert caught.value.near[0] == "gpt-4o-mini"
    for part in ("'gtp-4o-mini'", "gpt-4o-mini", "counter=", "register_model(ModelFacts("):
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
    assert margin.of(tokens, is_plain=True) == margin.of(tokens)
    assert margin.over_of(tokens) == min(tokens, margin.of(tokens))
    narrow = replace(margin, plain_tokens=0, over_per_mille=0)
    assert narrow.of(tokens, is_plain=True) == margin.of(tokens) - least
    assert narrow.over_of(tokens) == min(tokens, least)
    assert narrow.over_of(tokens, is_plain=True) == 0


def test_another_name_of_a_model_is_taken_and_can_be_replaced() -> None:
    """What was registered is what is found."""
    own = ModelFacts(name="gpt-4-0613", window_tokens=999)
    with pytest.raises(ConfigurationError, match="exists already as 'gpt-4'"):
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


@pytest.mark.parametrize(
    ("name", "near"), [("GTP-4o-mini", "gpt-4o-mini"), ("Cluade-Sonnet-4-5", "claude-sonnet-4-5")]
)
def test_a_slip_in_another_case_is_near_the_right_name(name: str, near: str) -> None:
    """Case alone is no slip; of another the error says what was meant."""
    with pytest.raises(UnknownNameError) as caught:
        facts_for(name)
    assert caught.value.near[0] == near


def test_a_registered_model_is_known_in_any_case_and_first_by_its_own() -> None:
    """Two names that differ in case alone stay two."""
    upper, lower = (
        ModelFacts(name="Acme-Case", window_tokens=1),
        ModelFacts(name="acme-case", window_tokens=2),
    )
    register_model(lower)
    assert facts_for("Acme-Case") is facts_for("openai/ACME-CASE") is lower
    register_model(upper)
    assert (facts_for("Acme-Case"), facts_for("acme-case")) == (upper, lower)


def test_an_estimate_has_the_margin_its_model_was_registered_with() -> None:
    """It was lost where no vocabulary was given."""
    register_model(ModelFacts(name="acme-estimated", margin=Margin(tokens=5, per_mille=500)))
    found = measure(QUESTION, model="acme-estimated")
    assert found.margin_tokens == 5 + -(-found.tokens // 2)
    assert counter_for("acme-estimated").margin_tokens(100) == 55


def test_a_sessions_report_names_its_model_and_the_window_of_it() -> None:
    """Beside the window of the budget, as that of a fit; also where a counter is given."""
    for counter in (None, "chars:4"):
        session = Session(1_000, model="gpt-4", counter=counter)
        session.add({"role": "user", "content": "Hello"})
        report = session.fit().report
        assert (report.model, report.window_tokens, report.model_window_tokens) == ("gpt-4", 1_000, 8_192)
