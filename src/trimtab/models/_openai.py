"""Models of OpenAI: rows of facts, and the names they are also known by."""

from __future__ import annotations

from dataclasses import replace

from trimtab.models._facts import Framing, Margin, MediaRule, ModelFacts

__all__ = ["ALIASES", "CHECKED", "ROWS"]

CHECKED = "2026-11-22"
_DOCS = "https://platform.openai.com/docs/models/"

# Reasoning models start the answer with two tokens, are shown tools with a longer preamble,
# and frame calls differently (fitted on gpt-5, gpt-5-mini, gpt-5.4-mini, o3-mini; 2026-11).
_REASONING = Framing(
    per_request_tokens=2, per_call_tokens=11, tools_tokens=90, tools_saved_by_system_tokens=0
)
# The Responses API shows tools with a shorter preamble, and an empty message costs nothing
# (fitted on the half of the bills that rules are made on; 2026-11).
_RESPONSES = Framing(tools_tokens=1, tools_saved_by_system_tokens=-1, empty_messages_free=True)
# Encrypted reasoning: 318 tokens were billed for 2,916 characters of it, once; it errs high, since what is
# of an earlier turn is not billed and a message does not say of which turn it is.
_REASONING_RESPONSES = replace(
    _REASONING,
    tools_tokens=8,
    late_tools_tokens=92,
    empty_messages_free=True,
    thoughts_counted=False,
    sealed_chars_per_token=9,
)
# A short user message is billed 67-71 tokens by hosts of gpt-oss: a system text the template adds. Tools
# cost 26 beside their text there (3 bills).
_HARMONY = replace(_REASONING, per_request_tokens=68, tools_tokens=26)

# Of requests with tools, calls, schemas or media, on the half of the bills that rules are made on.
_MARGIN, _RESPONSES_MARGIN = Margin(tokens=3, per_mille=10), Margin(tokens=3, per_mille=40)

_TILES = MediaRule()
_O_TILES = MediaRule(image_tokens=75, tile_tokens=150)
_GPT5_TILES = MediaRule(image_tokens=70, tile_tokens=140)
_MINI_TILES = MediaRule(image_tokens=2_833, tile_tokens=5_667)


def _patches(factor: float) -> MediaRule:
    # two tokens an image beside its patches, as billed for gpt-5-mini (2026-11)
    return MediaRule(image_tokens=2, patch_factor=factor)


def _openai(
    name: str,
    window_tokens: int | None,
    output_tokens: int | None,
    *,
    encoding: str = "o200k_base",
    framing: Framing | None = None,
    responses: Framing = _RESPONSES,
    media: MediaRule = _TILES,
    exact: bool = True,
    source: str = "",
) -> ModelFacts:
    return ModelFacts(
        name=name,
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        encoding=encoding,
        framing=framing or Framing(),
        framings=(("openai_responses", responses),),
        media=media,
        exact=exact,
        margin=_MARGIN,
        margins=(("openai_responses", _RESPONSES_MARGIN),),
        source=source or _DOCS + name,
        checked=CHECKED,
    )


def _reasoning(
    name: str, window_tokens: int, output_tokens: int, media: MediaRule, *, exact: bool = True
) -> ModelFacts:
    return _openai(
        name,
        window_tokens,
        output_tokens,
        framing=_REASONING,
        responses=_REASONING_RESPONSES,
        media=media,
        exact=exact,
    )


def _gpt_oss(name: str) -> ModelFacts:
    return _openai(
        name,
        131_072,
        None,
        encoding="o200k_harmony",
        framing=_HARMONY,
        exact=False,
        source="https://openai.com/index/gpt-oss-model-card/",
    )


ROWS = (
    _openai("gpt-4o", 128_000, 16_384),
    _openai("gpt-4o-2024-05-13", 128_000, 4_096),
    _openai("gpt-4o-mini", 128_000, 16_384, media=_MINI_TILES),
    _openai("gpt-4o-audio-preview", 128_000, 16_384),
    # billed 11 tokens below the rule: the system message is not charged whole
    _openai("gpt-4o-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4o-mini-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4.1", 1_047_576, 32_768),
    _openai("gpt-4.1-mini", 1_047_576, 32_768, media=_patches(1.62)),
    _openai("gpt-4.1-nano", 1_047_576, 32_768, media=_patches(2.46)),
    _openai("gpt-4.5-preview", 128_000, 16_384),
    _openai("gpt-4-turbo", 128_000, 4_096, encoding="cl100k_base"),
    _openai("gpt-4", 8_192, 8_192, encoding="cl100k_base"),
    _openai("gpt-4-32k", 32_768, None, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo", 16_385, 4_096, encoding="cl100k_base"),
    _reasoning("o1", 200_000, 100_000, _O_TILES),
    _reasoning("o1-mini", 128_000, 65_536, _O_TILES, exact=False),
    _reasoning("o3", 200_000, 100_000, _O_TILES),
    _reasoning("o3-mini", 200_000, 100_000, _O_TILES),
    _reasoning("o4-mini", 200_000, 100_000, _patches(1.72)),
    _reasoning("gpt-5", 400_000, 128_000, _GPT5_TILES),
    _reasoning("gpt-5-mini", 400_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5-nano", 400_000, 128_000, _patches(1.5)),
    _reasoning("gpt-5.1", 400_000, 128_000, _GPT5_TILES),
    _reasoning("gpt-5.2", 400_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.4", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.5", 1_050_000, 128_000, _patches(1.2), exact=False),  # no bill of it was seen
    _reasoning("gpt-5.6", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.6-sol", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.4-mini", 400_000, 128_000, _patches(1.62)),
    _gpt_oss("gpt-oss-20b"),
    _gpt_oss("gpt-oss-120b"),
)

ALIASES = {
    "chatgpt-4o-latest": "gpt-4o",
    "gpt-4.5": "gpt-4.5-preview",
    "gpt-4-0613": "gpt-4",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-4-turbo-preview": "gpt-4-turbo",
    "gpt-3.5-turbo-1106": "gpt-3.5-turbo",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-5-chat-latest": "gpt-5",
    "gpt-5.1-chat-latest": "gpt-5.1",
    "gpt-5.2-chat-latest": "gpt-5.2",
}
"""Other names of the same model: old dated ones, and Azure's spelling."""
