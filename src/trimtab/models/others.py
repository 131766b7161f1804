"""Models of Mistral, xAI, Amazon and Cohere; those that many hosts serve are in `open_weights.py`."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import BY_ESTIMATE, Framing, Margin, MediaRule, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_TABLE = "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json"
"""Read in release 1.109.1 (2026-11), where the maker's own page was not at hand."""

_GENAI = "https://github.com/pydantic/genai-prices/blob/main/prices/data.json"
"""Read in release 0.2.3 (2026-11-27)."""

# Tekken makes 1.13 times o200k's tokens of 6,567 real messages (2026-11).
_FRAMING = Framing(
    per_request_tokens=1,
    per_message_tokens=2,
    roles_counted=False,
    tools_style="json",
    tools_tokens=2,
    tools_dropped_by_none=True,
    tools_saved_by_system_tokens=0,
    past_thoughts_charged=True,
)


# Begins each request with {"reasoning_effort": "none"}, in brackets: 12 tokens (billed, 2026-11).
_SETTINGS = replace(_FRAMING, per_request_tokens=13)
# "We recommend having the following system prompt (currently default)" (docs.mistral.ai,
# capabilities/reasoning/native, 2026-11); a bill of one short request was without (10 tokens).
_MAGISTRAL = replace(_FRAMING, prompts_by_default=True)
_MISTRAL_MARGIN = Margin(tokens=8, per_mille=150)


_MISTRAL = ModelFacts(
    name="",
    provider="mistral",
    encoding="tekken",
    near_encoding="o200k_base",
    text_factor=1.13,
    framing=_FRAMING,
    margin=_MISTRAL_MARGIN,
    source=_TABLE,
    checked=_CHECKED,
)
# Pixtral's images are cut by 16 pixels, and up to 1,024 long (docs.mistral.ai, capabilities/vision, 2026-11).
_FINE_PATCHES = MediaRule(pixels_per_token=256, long_pixels=1_024)
# A name without a date leads to another model some day, and then its bills were off: by 1 to 4 tokens (6 of
# 30 bills), or by 12 (2).
_BILLED = replace(_MISTRAL, margin=Margin(tokens=5, per_mille=20, over_tokens=13))
_PAGE = "https://docs.mistral.ai/models/"
_CARDS = _PAGE + "model-cards/"


def _closed_kind(provider: str) -> ModelFacts:
    """Give a kind of models whose vocabulary nobody outside has: estimates, which err high."""
    return ModelFacts(name="", provider=provider, margin=BY_ESTIMATE, source=_TABLE, checked=_CHECKED)


# Before Tekken: their vocabulary needs a package that is not asked for.
_OLD_MISTRAL = _closed_kind("mistral")
_COMMAND = _closed_kind("cohere")

# Billed for half of 40 requests to Bedrock (2026-11): Micro takes o200k's tokens of a short text and no more,
# Lite 19 to 30 beside them; a prompt of some 345 tokens comes with tools. Nova 2 has one of 40 with each
# request and of 830 with tools. Errs: by as much as these lie apart.
_NOVA_FRAMING = Framing(
    per_request_tokens=5,
    per_message_tokens=2,
    roles_counted=False,
    system_framed=False,
    per_call_tokens=15,
    call_name_factor=1,
    parallel_calls_tokens=0,
    per_result_tokens=8,
    tools_style="schemas",
    tools_tokens=345,
    tools_saved_by_system_tokens=0,
)
# "Image understanding" and "Video understanding" of the Nova user guide
# (docs.aws.amazon.com/nova/latest/userguide, 2026-11): an image of 900 x 900 pixels about 1,300 tokens, one
# of 1,300 x 1,300 about 2,600; a frame a second of a video, 288 tokens each. A page of a PDF was billed
# 2,550.
_NOVA_MEDIA = MediaRule(
    image_tokens=300,
    pixels_per_token=760,
    long_pixels=8_000,
    video_tokens_per_second=288,
    page_tokens=2_560,
    file_tokens=2_560,
    pdf_bytes_per_token=None,
)
_NOVA = replace(
    _closed_kind("amazon"),
    near_encoding="o200k_base",
    text_factor=1.1,
    capital_tokens=0.07,
    framing=_NOVA_FRAMING,
    media=_NOVA_MEDIA,
    margin=Margin(tokens=20, per_mille=60),
)
# Images of Nova 2: "usage is billed at a flat rate of 230 tokens per image"
# (docs.aws.amazon.com/nova/latest/nova2-userguide, 2026-11), but one of 400 x 301 pixels was billed 157.
_NOVA_2 = replace(
    _NOVA,
    text_factor=1.0,
    framing=replace(_NOVA_FRAMING, per_request_tokens=40, tools_tokens=830),
    media=replace(_NOVA_MEDIA, image_tokens=0, pixels_per_token=750),
)

# xAI's, by one half of 29 bills: English costs what it does in o200k, a message 4 tokens, and each request
# what nobody shows: 188 tokens on grok-4.3 (5 of 6, Responses), 680 on grok-4 (one, OpenRouter), none on
# 4.1-fast (Azure). What the newer add was in no bill: it is taken as on 4.3.
_XAI = Framing(
    per_request_tokens=188,
    per_name_tokens=None,
    call_name_factor=1,
    parallel_calls_tokens=0,
    tools_style="json",
    tools_tokens=44,
    tools_saved_by_system_tokens=0,
    output_schema_tokens=27,
    thoughts_counted=False,
    past_thoughts_charged=True,
    sealed_chars_per_token=7,
)
# 448 x 448 pixels are a tile of 256 tokens, at most 6 and the whole picture (docs.x.ai, image understanding,
# 2026-11); on 4.3 a small one cost 20 instead of 257.
_XAI_TILES = MediaRule(image_tokens=257, tile_tokens=0, pixels_per_token=784, most_image_tokens=1_792)
_GROK = replace(
    _closed_kind("xai"),
    near_encoding="o200k_base",
    framing=_XAI,
    media=replace(_XAI_TILES, image_tokens=8),
    margin=Margin(tokens=500, per_mille=150, over_tokens=200, over_per_mille=350),
)
_GROK_BILLED = replace(_GROK, margin=Margin(tokens=40, per_mille=150))
_GROK_4 = replace(
    _GROK_BILLED, framing=replace(_XAI, per_request_tokens=680, tools_tokens=141), media=_XAI_TILES
)
_GROK_FAST = replace(_GROK_4, framing=replace(_XAI, per_request_tokens=0, tools_tokens=141))
_GROK_3 = replace(_GROK_4, framing=replace(_XAI, per_request_tokens=2, tools_tokens=80))


# Where a table gives the whole window as the most output, nothing else limits it: None here.
ROWS = (
    *group(_BILLED, 262_144, None, "mistral-large-latest", source=_PAGE + "mistral-large-3-25-12"),
    *group(_BILLED, 262_144, None, "mistral-medium-latest", source=_CARDS + "mistral-medium-3-5-26-04"),
    *group(
        _BILLED,
        262_144,
        None,
        "mistral-small-latest",
        framing=_SETTINGS,
        source=_CARDS + "mistral-small-4-0-26-03",
    ),
    *group(_MISTRAL, 128_000, None, "codestral-latest", source=_CARDS + "codestral-25-08"),
    *group(_MISTRAL, 262_144, None, "magistral-medium-latest magistral-small-latest", framing=_MAGISTRAL),
    *group(_BILLED, 262_144, None, "ministral-8b-latest"),
    *group(_MISTRAL, 262_144, None, "ministral-14b-latest"),
    *group(_MISTRAL, 131_072, None, "ministral-3b-latest"),
    *group(_MISTRAL, 1_048_576, None, "mistral-large-4"),
    *group(_MISTRAL, 256_000, None, "devstral-medium-latest devstral-small-latest"),
    *group(_MISTRAL, 262_144, None, "devstral-2512", source=_GENAI),
    *group(_MISTRAL, 131_072, None, "mistral-medium-2508"),
    *group(_MISTRAL, 128_000, None, "mistral-small-2506"),
    *group(_MISTRAL, 128_000, 40_000, "magistral-medium-2509", framing=_MAGISTRAL),
    *group(_MISTRAL, 128_000, None, "pixtral-large-latest pixtral-12b", media=_FINE_PATCHES),
    *group(_MISTRAL, 128_000, None, "open-mistral-nemo ministral-8b-2410"),
    *group(_MISTRAL, 32_768, None, "voxtral-small-latest"),
    *group(_MISTRAL, 32_000, None, "mistral-small-2409"),
    *group(_OLD_MISTRAL, 128_000, None, "mistral-large-2411 mistral-large-2407 mistral-tiny-2407"),
    *group(_OLD_MISTRAL, 32_000, None, "mistral-large-2402 mistral-medium-2312 mistral-small-2402"),
    *group(_OLD_MISTRAL, 32_000, None, "mistral-small-2312 mistral-tiny-2312 codestral-2405"),
    *group(_OLD_MISTRAL, 65_536, None, "open-mixtral-8x22b"),
    *group(_OLD_MISTRAL, 256_000, None, "codestral-mamba-2407"),
    *group(_GROK, 500_000, None, "grok-4.7 grok-4.6 grok-4.5"),
    *group(_GROK_BILLED, 1_000_000, None, "grok-4.3"),
    *group(_GROK, 1_000_000, None, "grok-4.20"),
    *group(_GROK, 256_000, None, "grok-code-fast-1 grok-build-0.1"),
    *group(_GROK, 500_000, None, "grok-build-latest"),
    *group(_GROK_FAST, 2_000_000, None, "grok-4.1-fast grok-4-fast", source=_GENAI),
    *group(_GROK_3, 32_768, None, "grok-2", source=_GENAI),
    *group(_GROK_4, 256_000, None, "grok-4", source="https://openrouter.ai/x-ai/{}"),
    *group(_GROK_3, 131_072, None, "grok-3 grok-3-mini", source="https://vercel.com/ai-gateway/models/{}"),
    *group(_NOVA, 128_000, 10_000, "nova-micro"),
    *group(_NOVA, 300_000, 10_000, "nova-lite nova-pro"),
    *group(_NOVA, 1_000_000, 10_000, "nova-premier"),
    *group(_NOVA_2, 1_000_000, 64_000, "nova-2-lite nova-2-pro-preview"),
    *group(
        _COMMAND,
        128_000,
        64_000,
        "command-a-plus-05-2026",
        source="https://docs.cohere.com/docs/command-a-plus",
    ),
    *group(_COMMAND, 256_000, 8_000, "command-a-03-2025"),
    *group(_COMMAND, 256_000, 8_192, "command-a-reasoning-08-2025"),
    *group(_COMMAND, 128_000, 4_000, "command-a-vision-07-2025 command-a-translate-08-2025"),
    *group(_closed_kind("perplexity"), 128_000, None, "sonar sonar-reasoning sonar-deep-research"),
    *group(_closed_kind("perplexity"), 200_000, 8_000, "sonar-pro"),
    *group(_closed_kind("writer"), 128_000, 8_192, "palmyra-x4 palmyra-x5"),
    *group(
        _closed_kind("groq"),
        131_072,
        8_192,
        "compound compound-mini",
        # searches and runs code by itself: 14,100 tokens were billed for a short question
        framing=Framing(prompts_by_default=True),
        source="https://console.groq.com/docs/compound",
    ),
    *group(_COMMAND, 128_000, 4_096, "command-r-08-2024 command-r-plus-08-2024 command-r7b-12-2024"),
)

# Ollama has "mistral:7b".
UNNAMED = (
    Unnamed(
        re.compile(
            r"(open-)?(mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|voxtral)(?![a-z/])"
        ),
        "mistral-small-latest",
        Margin(tokens=60, per_mille=150),
    ),
    Unnamed(re.compile(r"grok-"), "grok-4", replace(BY_ESTIMATE, over_tokens=720)),
    # the prompt for tools of Nova 2 is longer by 515 tokens
    Unnamed(re.compile(r"nova-"), "nova-2-lite", Margin(tokens=540, per_mille=100)),
    Unnamed(re.compile(r"command-"), "command-a-plus-05-2026", BY_ESTIMATE),
)

_GROK_MODES = ("reasoning", "non-reasoning", "reasoning-latest", "non-reasoning-latest")
_GROK_ENDS = (
    ("latest",),
    ("reasoning",),
    ("non-reasoning",),
    ("latest", "reasoning"),
    ("latest", "non-reasoning"),
    ("reasoning", "latest"),
    ("non-reasoning", "latest"),
    ("reasoning", "gv2"),
    ("non-reasoning", "gv2"),
)
"""What xAI writes behind a name: how it thinks, and which version it is."""

# What "latest" stands for, and how gateways and dates spell them.
ALIASES = aliases(
    {
        "mistral-large-latest": "mistral-large-2512 mistral-large-3 mistral-large-3-675b-instruct",
        "mistral-large-4": "mistral-large-4-0",
        "mistral-medium-latest": "mistral-medium-2604 mistral-medium-3.5 mistral-medium-3-5 mistral-medium",
        "mistral-medium-2508": "mistral-medium-3.1 mistral-medium-3-1 mistral-medium-2505 mistral-medium-3",
        "mistral-small-2506": "mistral-small-3.2 mistral-small-3.2-24b-instruct mistral-small-2503"
        " mistral-small-3.1-24b-instruct",
        "magistral-medium-2509": "magistral-small-2509",
        "devstral-2512": "devstral-2 devstral-2-123b",
        "codestral-mamba-2407": "codestral-mamba-latest",
        "mistral-small-latest": "mistral-small-2603",
        "codestral-latest": "codestral-2508",
        "ministral-8b-latest": "ministral-8b-2512 ministral-3-8b-2512 ministral-3-8b-instruct",
        "ministral-14b-latest": "ministral-14b-2512 ministral-3-14b-2512 ministral-3-14b-instruct",
        "ministral-3b-latest": "ministral-3b-2512 ministral-3-3b-2512 ministral-3-3b-instruct",
        "devstral-medium-latest": "devstral-latest",
        "voxtral-small-latest": "voxtral-small-2507 voxtral-small-24b-2507",
        "pixtral-large-latest": "pixtral-large-2411 pixtral-large-2502",
        "pixtral-12b": "pixtral-12b-2409 pixtral-12b-latest",
        "open-mistral-nemo": "open-mistral-nemo-2407",
        "open-mixtral-8x22b": "open-mixtral-8x22b-2404",
        **{f"grok-{version}": f"grok-{version}-latest" for version in ("4.7", "4.6", "4.3")},
        "grok-4.5": "grok-4.5-latest grok-latest",
        "grok-4": "grok-4-0709 grok-4-latest",
        "grok-3": "grok-3-latest grok-3-beta grok-3-fast grok-3-fast-latest grok-3-fast-beta",
        "grok-3-mini": "grok-3-mini-latest grok-3-mini-beta grok-3-mini-fast grok-3-mini-fast-latest"
        " grok-3-mini-fast-beta",
        "grok-2": "grok-2-1212 grok-2-latest grok-2-vision grok-2-vision-1212 grok-2-vision-latest",
        "grok-4.1-fast": " ".join(f"grok-4.1-fast-{words}" for words in _GROK_MODES),
        "grok-4-fast": " ".join(f"grok-4-fast-{words}" for words in _GROK_MODES),
        "grok-4.20": " ".join(
            "-".join(filter(None, ("grok-4.20", agents, beta, date, *words)))
            for agents in ("", "multi-agent")
            for beta in ("", "beta", "experimental-beta")
            for date in ("", "0309", "0304")
            for words in ((), *_GROK_ENDS)
            if agents or beta or date or words
        ),
        "grok-code-fast-1": "grok-code-fast grok-code-fast-1-0825",
        "sonar-reasoning": "sonar-reasoning-pro",
        "compound": "compound-beta",
        "compound-mini": "compound-beta-mini",
        "command-a-03-2025": "command-a",
        "command-a-reasoning-08-2025": "command-a-reasoning",
        "command-a-vision-07-2025": "command-a-vision",
        "command-r-08-2024": "command-r",
        "command-r-plus-08-2024": "command-r-plus",
    }
) | {f"{name}-v1": name for name in ("nova-micro", "nova-lite", "nova-pro", "nova-premier", "nova-2-lite")}

REASONS: dict[tuple[str, str], str] = {}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
