"""Models of Google: their vocabulary is not on PyPI, so counts are o200k's by a factor."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed

_CHECKED = "2026-11-22"
_DOCS = "https://ai.google.dev/gemini-api/docs/models"
_SDK = "https://github.com/googleapis/python-genai/blob/v3.4.0/google/genai/_gaos/types/interactions/model.py"
"""Has the name; no page that says more of it was found."""

# All by one half of 107 recorded bills (2026-11), whose English a Gemma vocabulary splits almost as o200k
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
    per_tool_tokens=18,
    per_property_tokens=10,
)
# The signature of a thought is billed by its length while the turn lasts (22 bills, 0.2 tokens a character);
# errs high in a long conversation, since a message does not say of which turn it is.
_GEMINI_3 = replace(
    _WORDS,
    per_call_tokens=8,
    per_result_tokens=5,
    per_tool_tokens=15,
    per_property_tokens=28,
    sealed_chars_per_token=5,
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

_MARGIN, _VERTEX_MARGIN = Margin(tokens=1, per_mille=45), Margin(tokens=5, per_mille=20)


def _gemini(
    name: str,
    output_tokens: int | None,
    *,
    framing: Framing = _GEMINI_3,
    media: MediaRule = _SHARP,
    vertex: bool = False,
    window_tokens: int | None = 1_048_576,
    source: str = _DOCS,
) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider="google-vertex" if vertex else "google",
        format="gemini",
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        near_encoding="o200k_base",
        text_factor=1.0,
        framing=framing,
        media=media,
        margin=_VERTEX_MARGIN if vertex else _MARGIN,
        source=source,
        checked=_CHECKED,
    )


def _rows(
    name: str, output_tokens: int, framing: Framing = _GEMINI_3, media: MediaRule = _SHARP
) -> tuple[ModelFacts, ModelFacts]:
    """Give a model's row, and the one of the same model on Vertex, which bills it differently."""
    return (
        _gemini(name, output_tokens, framing=framing, media=media),
        _gemini(f"vertex/{name}", output_tokens, framing=_WORDS, media=media, vertex=True),
    )


ROWS = (
    # input and output share the window; what is more than 65,536 is continued in further requests
    # (docs.cloud.google.com, "Gemini 4 Carbon", 2026-11)
    *_rows("gemini-4-argon", 65_536),
    *_rows("gemini-4-carbon", 65_536),
    _gemini("gemini-4-hydrogen", None, window_tokens=None, source=_SDK),
    *_rows("gemini-3.8-flash", 65_536),
    *_rows("gemini-3.7-flash", 65_536),
    *_rows("gemini-3.6-flash", 65_536),
    *_rows("gemini-3.5-flash", 65_536),
    *_rows("gemini-3.5-flash-lite", 65_536),
    *_rows("gemini-3.1-flash-lite", 65_536),
    *_rows("gemini-3-flash-preview", 65_536),
    *_rows("gemini-3-pro-preview", 65_536),
    *_rows("gemini-3.1-pro-preview", 65_536),
    _gemini("gemini-flash-latest", 65_536),
    _gemini("gemini-flash-lite-latest", 65_536),
    _gemini("gemini-pro-latest", 65_536),
    _gemini("gemini-3-pro-image", 32_768, window_tokens=65_536),
    _gemini("gemini-3.1-flash-image", 32_768, window_tokens=65_536),
    _gemini("gemini-3.1-flash-lite-image", 4_096, window_tokens=65_536),
    _gemini("gemini-nano-banana-2.1", 32_768, window_tokens=131_072),
    _gemini("gemini-omni-flash-preview", 65_536, window_tokens=131_072),
    _gemini("gemini-omni-1.1-flash", 65_536),
    _gemini("gemini-omni-1.2-flash", None, window_tokens=None, source=_SDK),
    _gemini("gemini-robotics-er-2-preview", 65_536, window_tokens=131_072),
    _gemini("gemini-robotics-er-1.6-preview", None, window_tokens=None, source=_SDK),
    _gemini("gemini-3.5-transcribe", 32_768, window_tokens=98_304),
    # speech is not of the window
    _gemini("gemini-3.8-flash-tts", None, window_tokens=8_192),
    _gemini("gemini-3.8-flash-lite-tts", None, window_tokens=8_192),
    _gemini("gemini-3.1-flash-tts-preview", None, window_tokens=8_192),
    _gemini("gemini-2.5-flash-preview-tts", None, window_tokens=8_192, framing=_GEMINI_2_5, media=_FLAT),
    *_rows("gemini-2.5-pro", 65_536, _GEMINI_2_5, _FLAT),
    *_rows("gemini-2.5-flash", 65_536, _GEMINI_2_5, _FLAT),
    *_rows("gemini-2.5-flash-lite", 65_536, _GEMINI_2_5, _FLAT),
    _gemini("gemini-2.5-flash-image", 32_768, window_tokens=65_536, framing=_GEMINI_2_5, media=_FLAT),
    _gemini(
        "gemini-2.5-computer-use-preview-10-2025",
        64_000,
        window_tokens=128_000,
        framing=_GEMINI_2_5,
        media=_FLAT,
    ),
    *_rows("gemini-2.0-flash", 8_192, _WORDS, _TILED),
    *_rows("gemini-1.5-flash", 8_192, _WORDS, _TILED),
)

# What Gemini 3 charges for tools is the most, and the words alone, as on Vertex, the least.
UNNAMED = (
    Unnamed(re.compile(r"vertex/gemini-"), "vertex/gemini-3.8-flash", _VERTEX_MARGIN),
    Unnamed(re.compile(r"gemini-"), "gemini-3.8-flash", Margin(tokens=40, per_mille=100)),
)

ALIASES = {
    "gemini-3.1-pro-preview-customtools": "gemini-3.1-pro-preview",
    "gemini-3-pro-image-preview": "gemini-3-pro-image",
    "nano-banana-pro-preview": "gemini-3-pro-image",
    "gemini-3.1-flash-image-preview": "gemini-3.1-flash-image",
    "gemini-3.1-flash-lite-preview": "gemini-3.1-flash-lite",
    "gemini-2.5-pro-preview-03-25": "gemini-2.5-pro",
    "gemini-2.5-pro-preview-05-06": "gemini-2.5-pro",
    "gemini-2.5-pro-preview-06-05": "gemini-2.5-pro",
    "gemini-2.5-pro-exp-03-25": "gemini-2.5-pro",
    "gemini-2.5-flash-preview-04-17": "gemini-2.5-flash",
    "gemini-2.5-flash-preview-05-20": "gemini-2.5-flash",
    "gemini-2.5-flash-preview-09-2025": "gemini-2.5-flash",
    "gemini-2.5-flash-lite-preview-06-17": "gemini-2.5-flash-lite",
    "gemini-2.5-flash-lite-preview-09-2025": "gemini-2.5-flash-lite",
    "gemini-2.0-flash-exp": "gemini-2.0-flash",
    "gemini-2.0-flash-exp:free": "gemini-2.0-flash",
    "gemini-2.0-flash-001": "gemini-2.0-flash",
    "gemini-2.0-flash-lite": "gemini-2.0-flash",
    "gemini-2.0-flash-lite-001": "gemini-2.0-flash",
}
"""Previews of the same model, and others with its limits and charges."""
