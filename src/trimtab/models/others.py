"""Models of Mistral, xAI, Amazon and Cohere; those that many hosts serve are in `open_weights.py`."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import BY_ESTIMATE, Framing, Margin, ModelFacts, Unnamed

_CHECKED = "2026-11-22"
_TABLE = "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json"
"""Read in release 1.109.1 (2026-11), where the maker's own page was not at hand."""

# Tekken makes 1.13 times o200k's tokens of 6,567 real messages (2026-11).
_FRAMING = Framing(
    per_request_tokens=1,
    per_message_tokens=2,
    roles_counted=False,
    tools_style="json",
    tools_tokens=2,
    tools_saved_by_system_tokens=0,
)


# Begins each request with {"reasoning_effort": "none"}, in brackets: 12 tokens (billed, 2026-11).
_SETTINGS = replace(_FRAMING, per_request_tokens=13)
# "We recommend having the following system prompt (currently default)" (docs.mistral.ai,
# capabilities/reasoning/native, 2026-11); a bill of one short request was without (10 tokens).
_MAGISTRAL = replace(_FRAMING, prompts_by_default=True)
_MISTRAL_MARGIN = Margin(tokens=8, per_mille=150)


def _mistral(
    name: str,
    window_tokens: int | None,
    page: str = "",
    framing: Framing = _FRAMING,
    *,
    output_tokens: int | None = None,
    exact: bool = False,
) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider="mistral",
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        encoding="tekken",
        near_encoding="o200k_base",
        text_factor=1.13,
        exact=exact,
        framing=framing,
        margin=_MISTRAL_MARGIN,
        source="https://docs.mistral.ai/models/" + page if page else _TABLE,
        checked=_CHECKED,
    )


def _older_mistral(name: str, window_tokens: int) -> ModelFacts:
    """Give a row of a model before Tekken, whose vocabulary needs a package that is not asked for."""
    return _closed(name, "mistral", window_tokens, None)


def _closed(
    name: str, provider: str, window_tokens: int | None, output_tokens: int | None, source: str = _TABLE
) -> ModelFacts:
    """Give a row of a model whose vocabulary nobody outside has: estimates, which err high."""
    return ModelFacts(
        name=name,
        provider=provider,
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        source=source,
        checked=_CHECKED,
    )


# Where a table gives the whole window as the most output, nothing else limits it: None here.
ROWS = (
    _mistral("mistral-large-latest", 262_144, "mistral-large-3-25-12", exact=True),
    _mistral("mistral-medium-latest", 262_144, "model-cards/mistral-medium-3-5-26-04", exact=True),
    _mistral("mistral-small-latest", 262_144, "model-cards/mistral-small-4-0-26-03", _SETTINGS, exact=True),
    _mistral("codestral-latest", 128_000, "model-cards/codestral-25-08", exact=True),
    _mistral("magistral-medium-latest", 262_144, framing=_MAGISTRAL, exact=True),
    _mistral("magistral-small-latest", 262_144, framing=_MAGISTRAL),
    _mistral("ministral-8b-latest", 262_144, exact=True),
    _mistral("ministral-14b-latest", 262_144),
    _mistral("ministral-3b-latest", 131_072),
    _mistral("mistral-large-4", 1_048_576),
    _mistral("devstral-medium-latest", 256_000),
    _mistral("devstral-small-latest", 256_000),
    _mistral("pixtral-large-latest", 128_000),
    _mistral("pixtral-12b", 128_000),
    _mistral("voxtral-small-latest", 32_768),
    _mistral("open-mistral-nemo", 128_000),
    _mistral("ministral-8b-2410", 128_000),
    _mistral("mistral-small-2409", 32_000),
    _older_mistral("mistral-large-2411", 128_000),
    _older_mistral("mistral-large-2407", 128_000),
    _older_mistral("mistral-large-2402", 32_000),
    _older_mistral("mistral-medium-2312", 32_000),
    _older_mistral("mistral-small-2402", 32_000),
    _older_mistral("mistral-small-2312", 32_000),
    _older_mistral("mistral-tiny-2407", 128_000),
    _older_mistral("mistral-tiny-2312", 32_000),
    _older_mistral("open-mixtral-8x22b", 65_536),
    _older_mistral("codestral-2405", 32_000),
    _older_mistral("codestral-mamba-2407", 256_000),
    _closed("grok-4.7", "xai", 500_000, None),
    _closed("grok-4.6", "xai", 500_000, None),
    _closed("grok-4.5", "xai", 500_000, None),
    _closed("grok-4.3", "xai", 1_000_000, None),
    _closed("grok-4.20", "xai", 1_000_000, None),
    _closed("grok-4", "xai", 256_000, None, "https://openrouter.ai/x-ai/grok-4"),
    _closed("grok-3", "xai", 131_072, None, "https://vercel.com/ai-gateway/models/grok-3"),
    _closed("grok-3-mini", "xai", 131_072, None, "https://vercel.com/ai-gateway/models/grok-3-mini"),
    _closed("grok-code-fast-1", "xai", 256_000, None),
    _closed("grok-build-0.1", "xai", 256_000, None),
    _closed("nova-micro", "amazon", 128_000, 10_000),
    _closed("nova-lite", "amazon", 300_000, 10_000),
    _closed("nova-pro", "amazon", 300_000, 10_000),
    _closed("nova-premier", "amazon", 1_000_000, 10_000),
    _closed("nova-2-lite", "amazon", 1_000_000, 64_000),
    _closed("nova-2-pro-preview", "amazon", 1_000_000, 64_000),
    _closed(
        "command-a-plus-05-2026", "cohere", 128_000, 64_000, "https://docs.cohere.com/docs/command-a-plus"
    ),
    _closed("command-a-03-2025", "cohere", 256_000, 8_000),
    _closed("command-r-08-2024", "cohere", 128_000, 4_096),
    _closed("command-r-plus-08-2024", "cohere", 128_000, 4_096),
    _closed("command-r7b-12-2024", "cohere", 128_000, 4_096),
)

UNNAMED = (
    Unnamed(
        re.compile(r"(open-)?(mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|voxtral)-"),
        "mistral-small-latest",
        Margin(tokens=60, per_mille=150),
    ),
    Unnamed(re.compile(r"grok-"), "grok-4.7", BY_ESTIMATE),
    Unnamed(re.compile(r"nova-"), "nova-2-lite", BY_ESTIMATE),
    Unnamed(re.compile(r"command-"), "command-a-plus-05-2026", BY_ESTIMATE),
)

ALIASES = {
    "mistral-large-2512": "mistral-large-latest",
    "mistral-large-3": "mistral-large-latest",
    "mistral-large-4-0": "mistral-large-4",
    "mistral-medium-2604": "mistral-medium-latest",
    "mistral-medium-3.5": "mistral-medium-latest",
    "mistral-medium-3-5": "mistral-medium-latest",
    "mistral-small-2603": "mistral-small-latest",
    "codestral-2508": "codestral-latest",
    "ministral-8b-2512": "ministral-8b-latest",
    "ministral-14b-2512": "ministral-14b-latest",
    "ministral-3b-2512": "ministral-3b-latest",
    "devstral-latest": "devstral-medium-latest",
    "voxtral-small-2507": "voxtral-small-latest",
    "pixtral-large-2411": "pixtral-large-latest",
    "pixtral-12b-2409": "pixtral-12b",
    "pixtral-12b-latest": "pixtral-12b",
    "open-mistral-nemo-2407": "open-mistral-nemo",
    "open-mixtral-8x22b-2404": "open-mixtral-8x22b",
    "grok-4.5-latest": "grok-4.5",
    "grok-4.3-latest": "grok-4.3",
    "grok-4.20-reasoning": "grok-4.20",
    "grok-4.20-non-reasoning": "grok-4.20",
    "grok-4.20-0309-reasoning": "grok-4.20",
    "grok-4.20-0309-non-reasoning": "grok-4.20",
    "grok-4-0709": "grok-4",
    "grok-code-fast": "grok-code-fast-1",
    "command-a": "command-a-03-2025",
    "command-r": "command-r-08-2024",
    "command-r-plus": "command-r-plus-08-2024",
    "nova-micro-v1": "nova-micro",
    "nova-lite-v1": "nova-lite",
    "nova-pro-v1": "nova-pro",
    "nova-premier-v1": "nova-premier",
    "nova-2-lite-v1": "nova-2-lite",
}
"""What "latest" stands for, and how gateways and dates spell them."""
