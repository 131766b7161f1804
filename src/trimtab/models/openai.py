"""Models of OpenAI: rows of facts, and the names they are also known by."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed

CHECKED = "2026-11-22"
_DOCS = "https://platform.openai.com/docs/models/"
_NEWER_DOCS = "https://developers.openai.com/api/docs/models/"
_SDK = "https://github.com/openai/openai-python/blob/v3.54.0/src/openai/types/shared/all_models.py"
"""Has the name; no page that says more of it was found."""

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
    open_weights: bool = False,
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
        open_weights=open_weights,
    )


def _reasoning(
    name: str,
    window_tokens: int | None,
    output_tokens: int | None,
    media: MediaRule,
    *,
    exact: bool = True,
    source: str = "",
) -> ModelFacts:
    return _openai(
        name,
        window_tokens,
        output_tokens,
        framing=_REASONING,
        responses=_REASONING_RESPONSES,
        media=media,
        exact=exact,
        source=source,
    )


def _unbilled(
    name: str, window_tokens: int | None, output_tokens: int | None, *, source: str = ""
) -> ModelFacts:
    """Give a row of a reasoning model of which no bill was seen; its vocabulary is known (tiktoken 0.14)."""
    return _reasoning(
        name, window_tokens, output_tokens, _patches(1.2), exact=False, source=source or _NEWER_DOCS + name
    )


# tiktoken 0.14 (2026-11) names the vocabulary of every gpt-5.x and of no gpt-6: o200k's stands in, and the
# margin is that between OpenAI's last two vocabularies in the worst of five corpora (cl100k has 1.28 of
# o200k's tokens in Chinese, 1.00 in English).
_NEXT_MARGIN = Margin(tokens=90, per_mille=280)


def _gpt_6(name: str, window_tokens: int | None = 1_050_000, source: str = "") -> ModelFacts:
    row = _unbilled(name, window_tokens, window_tokens and 128_000, source=source)
    return replace(row, encoding=None, near_encoding="o200k_base", margin=_NEXT_MARGIN, margins=())


def _gpt_oss(name: str) -> ModelFacts:
    return _openai(
        name,
        131_072,
        None,
        encoding="o200k_harmony",
        framing=_HARMONY,
        exact=False,
        source="https://openai.com/index/gpt-oss-model-card/",
        open_weights=True,
    )


# How the first of them was framed: How_to_count_tokens_with_tiktoken.ipynb (cookbook, @06d9feb5).
_FIRST_CHAT = Framing(per_message_tokens=4, per_name_tokens=-1)

ROWS = (
    _openai("gpt-4o", 128_000, 16_384),
    _openai("gpt-4o-2024-05-13", 128_000, 4_096),
    _openai("gpt-4o-mini", 128_000, 16_384, media=_MINI_TILES),
    _openai("gpt-4o-audio-preview", 128_000, 16_384),
    _openai("gpt-4o-mini-audio-preview", 128_000, 16_384, exact=False),
    _openai("gpt-audio", 128_000, 16_384, exact=False),
    _openai("gpt-audio-1.5", 128_000, 16_384, exact=False),
    _openai("gpt-audio-mini", 128_000, 16_384, exact=False),
    # billed 11 tokens below the rule: the system message is not charged whole
    _openai("gpt-4o-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4o-mini-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4.1", 1_047_576, 32_768),
    _openai("gpt-4.1-mini", 1_047_576, 32_768, media=_patches(1.62)),
    _openai("gpt-4.1-nano", 1_047_576, 32_768, media=_patches(2.46)),
    _openai("gpt-4.5-preview", 128_000, 16_384),
    _openai("computer-use-preview", 8_192, 1_024, exact=False),
    _openai("gpt-4-turbo", 128_000, 4_096, encoding="cl100k_base"),
    _openai("gpt-4", 8_192, 8_192, encoding="cl100k_base"),
    _openai("gpt-4-32k", 32_768, None, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo", 16_385, 4_096, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo-16k", 16_385, 4_096, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo-0613", 4_096, 4_096, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo-0301", 4_096, 4_096, encoding="cl100k_base", framing=_FIRST_CHAT, exact=False),
    _reasoning("o1", 200_000, 100_000, _O_TILES),
    _reasoning("o1-preview", 128_000, 32_768, _O_TILES, exact=False),
    _reasoning("o1-mini", 128_000, 65_536, _O_TILES, exact=False),
    _reasoning("o1-pro", 200_000, 100_000, _O_TILES, exact=False),
    _reasoning("o3", 200_000, 100_000, _O_TILES),
    _reasoning("o3-mini", 200_000, 100_000, _O_TILES),
    _reasoning("o3-pro", 200_000, 100_000, _O_TILES, exact=False),
    _reasoning("o3-deep-research", 200_000, 100_000, _O_TILES, exact=False),
    _reasoning("o4-mini", 200_000, 100_000, _patches(1.72)),
    _reasoning("o4-mini-deep-research", 200_000, 100_000, _patches(1.72), exact=False),
    _reasoning("codex-mini-latest", 200_000, 100_000, _patches(1.72), exact=False),
    _reasoning("gpt-5", 400_000, 128_000, _GPT5_TILES),
    _reasoning("gpt-5-mini", 400_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5-nano", 400_000, 128_000, _patches(1.5)),
    _reasoning(
        "gpt-5-chat-latest",
        128_000,
        16_384,
        _GPT5_TILES,
        exact=False,
        source=_NEWER_DOCS + "gpt-5-chat-latest",
    ),
    _reasoning("gpt-5-codex", 400_000, 128_000, _GPT5_TILES, exact=False, source=_NEWER_DOCS + "gpt-5-codex"),
    _reasoning("gpt-5-pro", 400_000, 272_000, _GPT5_TILES, exact=False, source=_NEWER_DOCS + "gpt-5-pro"),
    _reasoning("gpt-5-search-api", 400_000, 128_000, _GPT5_TILES, exact=False),
    _reasoning("gpt-5.1", 400_000, 128_000, _GPT5_TILES),
    _unbilled("gpt-5.1-mini", None, None, source=_SDK),
    _unbilled("gpt-5.1-chat-latest", 128_000, 16_384),
    _unbilled("gpt-5.1-codex", 400_000, 128_000),
    _unbilled("gpt-5.1-codex-mini", 400_000, 128_000),
    _unbilled("gpt-5.1-codex-max", 400_000, 128_000),
    _reasoning("gpt-5.2", 400_000, 128_000, _patches(1.2)),
    _unbilled("gpt-5.2-chat-latest", 128_000, 16_384),
    _unbilled("gpt-5.2-codex", 400_000, 128_000),
    _unbilled("gpt-5.2-pro", 400_000, 128_000),
    _unbilled("gpt-5.3-chat-latest", 128_000, 16_384),
    _unbilled("gpt-5.3-codex", 400_000, 128_000),
    _reasoning("gpt-5.4", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.4-mini", 400_000, 128_000, _patches(1.62)),
    _unbilled("gpt-5.4-nano", 400_000, 128_000),
    _unbilled("gpt-5.4-pro", 1_050_000, 128_000),
    _unbilled("gpt-5.5", 1_050_000, 128_000),
    _unbilled("gpt-5.5-pro", 1_050_000, 128_000),
    _reasoning("gpt-5.6", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.6-sol", 1_050_000, 128_000, _patches(1.2)),
    _unbilled("gpt-5.6-terra", 1_050_000, 128_000),
    _unbilled("gpt-5.6-luna", 1_050_000, 128_000),
    _unbilled("gpt-5.6-cyber", 400_000, 128_000),
    _gpt_6("gpt-daybreak-blue-latest"),
    _gpt_6("gpt-daybreak-red-latest", 400_000),
    _gpt_6("gpt-rosalind-research", None, _SDK),
    _gpt_6("gpt-6-astra"),
    _gpt_6("gpt-6-sol"),
    _gpt_6("gpt-6-luna"),
    _gpt_6("gpt-6-cyber", None, _SDK),
    _gpt_6("gpt-6-rosalind"),
    _gpt_6("gpt-6.1-sol"),
    _gpt_6("gpt-6.1-terra"),
    _gpt_6("gpt-6.2-sol"),
    _gpt_6("gpt-6.2-astra"),
    _gpt_6("gpt-6.2-astra-law", None, _SDK),
    _gpt_oss("gpt-oss-20b"),
    _gpt_oss("gpt-oss-120b"),
)

UNNAMED = (
    # cl100k has the most tokens of its vocabularies, by half in Chinese and by nothing in English; reasoning
    # models are shown tools with 82 tokens more
    Unnamed(re.compile(r"(gpt-|chatgpt-|codex-|o\d)"), "gpt-4", Margin(tokens=100, per_mille=340)),
)

ALIASES = {
    "chatgpt-4o-latest": "gpt-4o",
    "gpt-4.5": "gpt-4.5-preview",
    "gpt-4-0314": "gpt-4",
    "gpt-4-0613": "gpt-4",
    "gpt-4-32k-0314": "gpt-4-32k",
    "gpt-4-32k-0613": "gpt-4-32k",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-4-turbo-preview": "gpt-4-turbo",
    "gpt-4-vision-preview": "gpt-4-turbo",
    "gpt-3.5-turbo-1106": "gpt-3.5-turbo",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-3.5-turbo-16k-0613": "gpt-3.5-turbo-16k",
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-35-turbo-16k": "gpt-3.5-turbo-16k",
    "gpt-35-turbo-0125": "gpt-3.5-turbo",
    "gpt-35-turbo-1106": "gpt-3.5-turbo",
    "gpt-35-turbo-0613": "gpt-3.5-turbo-0613",
    "gpt-5-chat": "gpt-5-chat-latest",
    "gpt-5.1-chat": "gpt-5.1-chat-latest",
    "gpt-5.2-chat": "gpt-5.2-chat-latest",
    "gpt-5.3-chat": "gpt-5.3-chat-latest",
    "gpt-oss-safeguard-20b": "gpt-oss-20b",
    "gpt-oss-safeguard-120b": "gpt-oss-120b",
}
"""Other names of the same model: old dated ones, and Azure's spelling."""
