"""Names that people use, and their windows: those of gateways, of Ollama, of clouds, and old dated ones."""

from __future__ import annotations

import re

import pytest

from trimtab.models import anthropic, facts_for, google, model_names, open_weights, openai, others, prices

NAMES = {
    "gemma3:4b": ("gemma-3", 131_072),
    "ollama/gemma3:4b": ("gemma-3", None),
    "phi4": ("phi-4", 16_384),
    "granite3.2-vision": ("granite-3", None),
    "granite-4.0-h-micro": ("granite-4", 131_072),
    "devstral-2": ("devstral-2512", 262_144),
    "xai/grok-4-fast-reasoning": ("grok-4-fast", 2_000_000),
    "grok-4-1-fast-non-reasoning-latest": ("grok-4.1-fast", 2_000_000),
    "grok-4.20-multi-agent-0309": ("grok-4.20", 1_000_000),
    "grok-4.20-experimental-beta-0304-reasoning": ("grok-4.20", 1_000_000),
    "grok-3-fast": ("grok-3", 131_072),
    "grok-4-latest": ("grok-4", 256_000),
    "grok-code-fast-1-0825": ("grok-code-fast-1", 256_000),
    "perplexity/perplexity/sonar": ("sonar", 128_000),
    "sonar-pro": ("sonar-pro", 200_000),
    "perplexity/openai/gpt-5.2": ("gpt-5.2", 400_000),
    "us.writer.palmyra-x4-v1:0": ("palmyra-x4", 128_000),
    "jamba-large-1.7": ("jamba", 256_000),
    "ai21.jamba-1-5-large-v1:0": ("jamba", None),
    "nvidia/nemotron-3-nano-30b-a3b": ("nemotron-3", 262_144),
    "nvidia.nemotron-nano-9b-v2": ("nemotron-nano", None),
    "anthropic/claude-opus-4.6:1m": ("claude-opus-4-6", 1_000_000),
    "claude-sonnet-4-5[1m]": ("claude-sonnet-4-5", 1_000_000),
    "claude-sonnet-4-5": ("claude-sonnet-4-5", 200_000),
    "azure/eu/gpt-5-2025-08-07": ("gpt-5", 400_000),
    "azure/global-standard/gpt-4o-mini": ("gpt-4o-mini", 128_000),
    "bedrock/us-west-2/anthropic.claude-sonnet-4-5-20250929-v1:0": ("claude-sonnet-4-5", 200_000),
    "chatgpt/gpt-5.5": ("gpt-5.5", 1_050_000),
    "claude-fable-5-2": ("claude-fable-5-2", 1_000_000),
    "claude-mythos-5.2": ("claude-mythos-5-2", 1_000_000),
    "qwen-plus-latest": ("qwen-plus-latest", 997_952),
    "qwen-plus-2025-07-28": ("qwen-plus-latest", 997_952),
    "qwen-plus-2025-04-28": ("qwen-plus", 129_024),
    "qwen-turbo-2025-04-28": ("qwen-turbo-latest", 1_000_000),
    "dashscope/qwen3-vl-plus": ("qwen3-vl-plus", 260_096),
    "mistral/zai-glm-5-3": ("glm-5.3", 1_000_000),
    "mistral/zai-glm-5-2": ("glm-5.2", 1_000_000),
    "gpt-5.1-mini": ("gpt-5.1-mini", 400_000),
    "gpt-6-cyber": ("gpt-6-cyber", 1_050_000),
    "gemini-4-hydrogen": ("gemini-4-hydrogen", 1_048_576),
    "gemini-omni-1.1-flash": ("gemini-omni-1.1-flash", 131_072),
    "gemini-omni-1.2-flash": ("gemini-omni-1.2-flash", 131_072),
    "gemini-4-argon@default": ("gemini-4-argon", 1_048_576),
    "groq/compound-beta": ("compound", 131_072),
    "mistral-medium-2508": ("mistral-medium-2508", 131_072),
    "mistral.devstral-2-123b": ("devstral-2512", 262_144),
    "command-a-reasoning": ("command-a-reasoning-08-2025", 256_000),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_people_use_finds_its_model(name: str) -> None:
    """With its window where one is known; a host of an open model may allow less."""
    facts = facts_for(name)
    assert facts.counted_as is None
    assert (facts.name, facts.window_tokens) == NAMES[name]


@pytest.mark.parametrize("name", ["mistral:7b", "mistral", "devstral:24b", "mixtral:8x7b"])
def test_a_name_with_a_tag_tells_its_maker(name: str) -> None:
    """As Ollama writes it; it is counted, and no window is claimed."""
    facts = facts_for(name)
    assert (facts.counted_as, facts.window_tokens) == ("mistral-small-latest", None)


def test_a_reason_to_differ_from_other_tables_has_a_date_and_a_row() -> None:
    """`make models` prints them, and wants one for each value that both tables contradict."""
    for module in (openai, anthropic, google, others, open_weights, prices):
        for (model, what), reason in module.REASONS.items():
            assert model in model_names()
            assert what in ("window", "output", "read", "write", "answer", "tiers")
            assert re.match(r"202\d-[01]\d-[0-3]\d: \w", reason)
