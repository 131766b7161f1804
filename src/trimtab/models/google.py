"""Models of Google: their vocabulary is not on PyPI, so counts are o200k's by a factor."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_DOCS = "https://ai.google.dev/gemini-api/docs/models"
_SDK = "https://github.com/googleapis/python-genai/blob/v3.4.0/google/genai/_gaos/types/interactions/model.py"
"""Has the name; no page that says more of it was found."""

# All by one half of 371 recorded bills (2026-11), whose English a Gemma vocabulary splits almost as o200k
# does. Gemini 1.5 and 2.0, and Vertex, charge the words of a request and next to nothing for its structure.
# Output schemas are free. Errs: low for tools with schemas inside schemas, which cost up to 18 times their
# words (one bill, of a schema that refers to itself); the margin allows for that.
_WORDS = Framing(
    per_request_tokens=0,
    per_message_tokens=0,
    roles_counted=False,
    system_framed=False,
    per_name_tokens=None,
    per_call_tokens=0,
    call_name_factor=1,
    parallel_calls_tokens=0,
    per_result_tokens=-9,  # the JSON around a result is not charged
    tools_style="words",
    tools_tokens=0,
    per_tool_tokens=2,
    nested_schemas_factor=18,
    tools_saved_by_system_tokens=0,
    output_schema_tokens=None,
    thoughts_counted=False,
)
_GEMINI_2_5 = replace(
    _WORDS,
    per_message_tokens=1,
    system_framed=True,
    per_call_tokens=7,
    per_result_tokens=4,
    per_tool_tokens=20,
    per_property_tokens=9,
    sealed_unsure_chars_per_token=6,
)
# The signature of a thought is billed by its length while the turn lasts (20 bills), but for how it begins;
# errs high in a long conversation, since a message does not say of which turn it is. Of 2.5 three of eleven
# bills have 0.16 tokens a character, the others nothing.
_GEMINI_3 = replace(
    _WORDS,
    per_message_tokens=1,
    system_framed=True,
    per_call_tokens=7,
    per_result_tokens=4,
    per_tool_tokens=15,
    per_property_tokens=28,
    sealed_chars_per_token=4.65,
    sealed_free_chars=200,
)

# https://ai.google.dev/gemini-api/docs/tokens and /media-resolution (2026-11), and the same bills: 258 tokens
# an image or page on 2.5, 258 a tile before, about 1,095 an image on 3; a sampled frame a second of video.
_TILED = MediaRule(
    image_tokens=258,
    tile_tokens=258,
    crops=True,
    audio_tokens_per_second=32,
    audio_tokens=0,
    video_tokens_per_second=263,
    page_tokens=258,
    file_tokens=258,
    pdf_bytes_per_token=None,
)
_FLAT = replace(_TILED, crops=False, tile_tokens=0)
_SHARP = replace(_FLAT, image_tokens=1_095, page_tokens=532, file_tokens=532, video_tokens_per_second=70)

_MARGIN = Margin(tokens=12, per_mille=45, over_tokens=30, plain_tokens=6)
_VERTEX_MARGIN = Margin(tokens=8, per_mille=50)
_MARGIN_2_0 = Margin(tokens=50, per_mille=60, over_tokens=30, plain_tokens=12)
"""2.0's name was billed as by a newer model at last, with 48 tokens more for a tool."""


_GEMINI = ModelFacts(
    name="",
    provider="google",
    format="gemini",
    near_encoding="o200k_base",
    digits_apart=True,
    lines_apart=True,
    framing=_GEMINI_3,
    media=_SHARP,
    margin=_MARGIN,
    source=_DOCS,
    checked=_CHECKED,
)
_OLDER = replace(_GEMINI, framing=_GEMINI_2_5, media=_FLAT)
_WINDOW = 1_048_576


def _with_vertex(kind: ModelFacts, output_tokens: int, names: str) -> tuple[ModelFacts, ...]:
    """Give rows of models, and those of the same on Vertex, which bills them differently."""
    vertex = replace(kind, provider="google-vertex", framing=_WORDS, margin=_VERTEX_MARGIN)
    others = " ".join(f"vertex/{name}" for name in names.split())
    return (*group(kind, _WINDOW, output_tokens, names), *group(vertex, _WINDOW, output_tokens, others))


ROWS = (
    # input and output share the window; what is more than 65,536 is continued in further requests
    # (docs.cloud.google.com, "Gemini 4 Carbon", 2026-11)
    *_with_vertex(_GEMINI, 65_536, "gemini-4-argon gemini-4-carbon"),
    *_with_vertex(_GEMINI, 65_536, "gemini-3.8-flash gemini-3.7-flash gemini-3.6-flash gemini-3.5-flash"),
    *_with_vertex(_GEMINI, 65_536, "gemini-3.5-flash-lite gemini-3.1-flash-lite gemini-3-flash-preview"),
    *_with_vertex(_GEMINI, 65_536, "gemini-3-pro-preview gemini-3.1-pro-preview"),
    *group(_GEMINI, _WINDOW, 65_536, "gemini-flash-latest gemini-flash-lite-latest gemini-pro-latest"),
    *group(_GEMINI, 131_072, 65_536, "gemini-omni-1.1-flash"),
    # by litellm 1.110.2 (2026-11-27); what is more is continued, as of the others of Gemini 4
    *group(_GEMINI, _WINDOW, 65_536, "gemini-4-hydrogen", source=_SDK),
    *group(_GEMINI, 131_072, 65_536, "gemini-omni-1.2-flash", source=_SDK),
    *group(_GEMINI, None, None, "gemini-robotics-er-1.6-preview gemini-4-neon", source=_SDK),
    *group(_GEMINI, 65_536, 32_768, "gemini-3-pro-image"),
    *group(_GEMINI, 131_072, 32_768, "gemini-3.1-flash-image"),
    *group(_GEMINI, 65_536, 4_096, "gemini-3.1-flash-lite-image"),
    *group(_GEMINI, 131_072, 32_768, "gemini-nano-banana-2.1"),
    *group(_GEMINI, 131_072, 65_536, "gemini-omni-flash-preview gemini-robotics-er-2-preview"),
    *group(_GEMINI, 98_304, 32_768, "gemini-3.5-transcribe"),
    # speech is not of the window
    *group(_GEMINI, 8_192, None, "gemini-3.8-flash-tts gemini-3.8-flash-lite-tts"),
    *group(_GEMINI, 8_192, None, "gemini-3.1-flash-tts-preview"),
    *group(_OLDER, 8_192, None, "gemini-2.5-flash-preview-tts gemini-2.5-pro-preview-tts"),
    *_with_vertex(_OLDER, 65_536, "gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite"),
    *group(_OLDER, 65_536, 32_768, "gemini-2.5-flash-image"),
    *group(_OLDER, 128_000, 64_000, "gemini-2.5-computer-use-preview-10-2025"),
    *_with_vertex(
        replace(_GEMINI, framing=_WORDS, media=_TILED, margin=_MARGIN_2_0),
        8_192,
        "gemini-2.0-flash gemini-1.5-flash",
    ),
)

# What Gemini 3 charges for tools is the most, and the words alone, as on Vertex, the least.
UNNAMED = (
    Unnamed(re.compile(r"vertex/gemini-"), "vertex/gemini-3.8-flash", _VERTEX_MARGIN),
    Unnamed(re.compile(r"gemini-"), "gemini-3.8-flash", Margin(tokens=60, per_mille=100)),
)

# Previews of the same model, and others with its limits and charges.
ALIASES = aliases(
    {
        "gemini-3.1-pro-preview": "gemini-3.1-pro-preview-customtools",
        "gemini-3-pro-image": "gemini-3-pro-image-preview nano-banana-pro-preview",
        "gemini-3.1-flash-image": "gemini-3.1-flash-image-preview",
        "gemini-3.1-flash-lite": "gemini-3.1-flash-lite-preview",
        "gemini-robotics-er-2-preview": "gemini-robotics-er-2-streaming-preview",
        "gemini-2.5-pro": "gemini-2.5-pro-preview-03-25 gemini-2.5-pro-preview-05-06"
        " gemini-2.5-pro-preview-06-05 gemini-2.5-pro-exp-03-25",
        "gemini-2.5-flash": "gemini-2.5-flash-preview-04-17 gemini-2.5-flash-preview-05-20"
        " gemini-2.5-flash-preview-09-2025",
        "gemini-2.5-flash-lite": "gemini-2.5-flash-lite-preview-06-17 gemini-2.5-flash-lite-preview-09-2025",
        "gemini-2.0-flash": "gemini-2.0-flash-exp gemini-2.0-flash-exp:free gemini-2.0-flash-001"
        " gemini-2.0-flash-lite gemini-2.0-flash-lite-001",
    }
)

REASONS = {
    (
        model,
        "output",
    ): "2026-11-22: one answer has 65,536 (docs.cloud.google.com, Gemini 4); more is continued"
    for model in ("gemini-4-argon", "gemini-4-hydrogen")
}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
