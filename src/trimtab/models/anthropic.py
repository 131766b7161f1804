"""Models of Anthropic: no tokenizer of theirs is public since Claude 3, so counts are o200k's by a factor."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed

_CHECKED = "2026-11-22"
_DOCS = "https://platform.claude.com/docs/en/about-claude/models/overview"
_SDK = "https://github.com/anthropics/anthropic-sdk-python/blob/v2.12.0/src/anthropic/types/model.py"
"""Has the name; no page that says more of it was found."""

# Billed for one half of 62 recorded requests (2026-11): a text takes 1.11 times its o200k tokens up to Claude
# 4.6. Its tokenizer since 4.7 makes "approximately 30 % more" of the same text, which two more bills bear out
# (platform.claude.com/docs/en/about-claude/pricing, 2026-08). Errs: English prose and JSON are within 5 %,
# other scripts were not in those bills.
_FACTOR, _NEWER_FACTOR = 1.11, 1.35

_MARGIN = Margin(tokens=2, per_mille=75)

# docs "Vision" (2026-11): width x height / 750, after scaling to a long side of 1,568 pixels and about 1,600
# tokens; 2,576 pixels and three times the tokens since Opus 4.7. A page of a PDF is an image and its text:
# "1,500 to 3,000 tokens"; billed 1,590 for a short one.
_MEDIA = MediaRule(
    pixels_per_token=750,
    most_image_tokens=1_600,
    image_tokens=0,
    page_tokens=1_600,
    file_tokens=1_600,
    pdf_bytes_per_token=None,
)
_SHARPER_MEDIA = MediaRule(
    pixels_per_token=750,
    long_pixels=2_576,
    most_image_tokens=4_784,
    image_tokens=0,
    page_tokens=2_200,
    file_tokens=2_200,
    pdf_bytes_per_token=None,
)


def _framing(auto_tokens: int, forced_tokens: int, *, newer: bool, keeps_thoughts: bool) -> Framing:
    """Frame as billed; the prompt that tools bring along differs by model and is documented."""
    framing = Framing(
        per_request_tokens=3,
        per_message_tokens=4,
        roles_counted=False,
        system_framed=False,
        per_call_tokens=38,
        call_name_factor=1,
        parallel_calls_tokens=0,
        per_result_tokens=18,
        tools_style="schemas",
        tools_tokens=auto_tokens,
        forced_tools_tokens=forced_tokens,
        per_tool_tokens=13,
        tools_saved_by_system_tokens=0,
        output_schema_tokens=150,
        thinking_tokens=28,  # billed: 16 to 29
        task_budget_tokens=37,
        calls_framed_by_tools=True,  # 510 were billed without tools, 711 counted with the frames
        late_tools_tokens=45,
        past_thoughts_charged=keeps_thoughts,
        sealed_chars_per_token=5,
    )
    if not newer:
        return framing
    # what frames calls and tools is text as well, in the finer vocabulary
    return replace(
        framing, per_call_tokens=50, per_result_tokens=24, per_tool_tokens=17, late_tools_tokens=60
    )


def _claude(
    name: str,
    window_tokens: int | None,
    output_tokens: int | None,
    hidden: tuple[int, int],
    *,
    newer: bool = False,
    keeps_thoughts: bool = True,
    source: str = _DOCS,
) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider="anthropic",
        format="anthropic",
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        near_encoding="o200k_base",
        text_factor=_NEWER_FACTOR if newer else _FACTOR,
        framing=_framing(*hidden, newer=newer, keeps_thoughts=keeps_thoughts),
        media=_SHARPER_MEDIA if newer else _MEDIA,
        margin=_MARGIN,
        source=source,
        checked=_CHECKED,
    )


# Thinking of earlier turns stays in the context since Opus 4.5 and Sonnet 4.6, and is taken out before that
# and by every Haiku (docs "Extended thinking", "Thinking block preservation", 2026-11, as quoted in projects
# that follow it). Bills of Sonnet 4.5 were the same without it.
# What tools bring along (auto or none, any or tool): pricing page of the docs (2026-08), "Tool use system
# prompt token overhead".
# Not documented where we looked for those after Opus 5: as for the last of their line that is.
ROWS = (
    _claude("claude-opus-5-5", 1_000_000, 128_000, (286, 406), newer=True),
    _claude("claude-sonnet-5-5", 1_000_000, 128_000, (354, 474), newer=True),
    _claude("claude-haiku-5-5", 1_000_000, 128_000, (354, 474), newer=True, keeps_thoughts=False),
    _claude("claude-fable-5-1", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-fable-5-2", None, None, (290, 410), newer=True, source=_SDK),
    _claude("claude-mythos-5", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-mythos-5-1", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-mythos-5-2", None, None, (290, 410), newer=True, source=_SDK),
    _claude("claude-mythos-preview", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-opus-5", 1_000_000, 128_000, (286, 406), newer=True),
    _claude("claude-opus-4-8", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-opus-4-7", 1_000_000, 128_000, (675, 804), newer=True),
    _claude("claude-opus-4-6", 1_000_000, 128_000, (497, 589)),
    _claude("claude-opus-4-5", 200_000, 64_000, (496, 588)),
    _claude("claude-opus-4-1", 200_000, 32_000, (313, 315), keeps_thoughts=False),
    _claude("claude-opus-4", 200_000, 32_000, (313, 315), keeps_thoughts=False),
    # not documented for it: as for Opus 4.8, which its bill bears out
    _claude("claude-fable-5", 1_000_000, 128_000, (290, 410), newer=True),
    _claude("claude-sonnet-5", 1_000_000, 128_000, (354, 474), newer=True),
    _claude("claude-sonnet-4-6", 1_000_000, 128_000, (497, 589)),
    _claude("claude-sonnet-4-5", 200_000, 64_000, (496, 588), keeps_thoughts=False),
    _claude("claude-sonnet-4", 200_000, 64_000, (313, 315), keeps_thoughts=False),
    _claude("claude-haiku-4-5", 200_000, 64_000, (496, 588), keeps_thoughts=False),
    _claude("claude-3-5-haiku", 200_000, 8_192, (264, 355), keeps_thoughts=False),
    # the prompt for tools: not documented where we looked, as for Sonnet 4
    _claude("claude-3-7-sonnet", 200_000, 64_000, (313, 315), keeps_thoughts=False),
    _claude("claude-3-5-sonnet", 200_000, 8_192, (313, 315), keeps_thoughts=False),
    # docs.anthropic.com, "Tool use pricing and tokens", in its first form
    _claude("claude-3-opus", 200_000, 4_096, (530, 281), keeps_thoughts=False),
    _claude("claude-3-sonnet", 200_000, 4_096, (159, 235), keeps_thoughts=False),
    _claude("claude-3-haiku", 200_000, 4_096, (264, 340), keeps_thoughts=False),
)

# The finer vocabulary and the longest prompt for tools of all; the margin reaches down to the least.
UNNAMED = (Unnamed(re.compile(r"claude-"), "claude-opus-4-7", Margin(tokens=660, per_mille=260)),)

ALIASES = {
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
    "claude-3-5-haiku-latest": "claude-3-5-haiku",
    "claude-4-opus": "claude-opus-4",
    "claude-4-sonnet": "claude-sonnet-4",
    "claude-3-7-sonnet-latest": "claude-3-7-sonnet",
    "claude-3.7-sonnet": "claude-3-7-sonnet",
    "claude-3.5-sonnet": "claude-3-5-sonnet",
    "claude-3.5-haiku": "claude-3-5-haiku",
    "claude-3-5-sonnet-latest": "claude-3-5-sonnet",
    "claude-3-opus-latest": "claude-3-opus",
    "claude-opus-5.5": "claude-opus-5-5",
    "claude-sonnet-5.5": "claude-sonnet-5-5",
    "claude-haiku-5.5": "claude-haiku-5-5",
    "claude-fable-5.1": "claude-fable-5-1",
    "claude-opus-4.8": "claude-opus-4-8",
    "claude-opus-4.7": "claude-opus-4-7",
    "claude-opus-4.6": "claude-opus-4-6",
    "claude-opus-4.5": "claude-opus-4-5",
    "claude-opus-4.1": "claude-opus-4-1",
    "claude-sonnet-4.6": "claude-sonnet-4-6",
    "claude-sonnet-4.5": "claude-sonnet-4-5",
    "claude-haiku-4.5": "claude-haiku-4-5",
    "claude-4.6-sonnet": "claude-sonnet-4-6",
    "claude-4.5-sonnet": "claude-sonnet-4-5",
    "claude-4.6-opus": "claude-opus-4-6",
    "claude-4.5-opus": "claude-opus-4-5",
    "claude-4.5-haiku": "claude-haiku-4-5",
}
"""As gateways spell them."""
