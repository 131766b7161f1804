"""Models of OpenAI: rows of facts, and the names they are also known by."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_DOCS = "https://platform.openai.com/docs/models/"
_NEWER_DOCS = "https://developers.openai.com/api/docs/models/"
_SDK = "https://github.com/openai/openai-python/blob/v3.54.0/src/openai/types/shared/all_models.py"
"""Has the name; no page that says more of it was found."""

# All of this was fitted on the half of the bills that rules are made on (2026-11). Calls side by side are one
# of a tool that makes them all; a tool to be called is named at the start of the answer.
_CHAT = Framing(named_tool_tokens=7, parallel_calls_tokens=14, further_call_tokens=-2)
# The Responses API has a shorter preamble for tools and output schemas.
_RESPONSES = Framing(
    named_tool_tokens=7, tools_tokens=3, tools_saved_by_system_tokens=1, output_schema_tokens=1
)
# GPT-5 is shown a conversation in harmony (https://github.com/openai/harmony, docs/format.md, 2026-11): what
# the model says has a channel, reasoning of turns that are over is left out..
_GPT_5 = replace(
    _CHAT,
    per_request_tokens=2,
    answer_frame_tokens=5,
    reasoning_framed=False,
    per_call_tokens=9,
    tools_tokens=90,
    named_tool_tokens=None,
    tools_saved_by_system_tokens=0,
)
# Encrypted reasoning: 318 tokens were billed for 2,916 characters of it, once; it errs high, since what is
# of an earlier turn is not billed and a message does not say of which turn it is.
_GPT_5_RESPONSES = replace(
    _GPT_5,
    per_call_tokens=10,
    tools_tokens=9,
    serial_calls_tokens=78,
    output_schema_tokens=0,
    late_tools_tokens=90,
    thoughts_counted=False,
    sealed_chars_per_token=9,
)
# o3-mini is shown tools and calls as gpt-4o is (2 bills).
_O_SERIES = replace(_CHAT, per_request_tokens=2)
_O_RESPONSES = replace(_GPT_5_RESPONSES, answer_frame_tokens=None, reasoning_framed=True, per_call_tokens=11)
# The template of gpt-oss begins with a system text: 63 tokens with the start of the answer are billed by
# Ollama, 67 by Groq (5 bills). Tools cost 26 beside their text there (3 bills).
_HARMONY = replace(_GPT_5, per_request_tokens=66, tools_tokens=26)

# Of requests with tools, calls, schemas or media, on the half of the bills that rules are made on.
# Over it are calls side by side, which cost a model as many tokens more as another fewer.
_MARGIN = Margin(tokens=6, per_mille=10, over_tokens=12, plain_tokens=3)
_RESPONSES_MARGIN = Margin(tokens=12, per_mille=20, plain_tokens=4)

_TILES = MediaRule()
_O_TILES = MediaRule(image_tokens=75, tile_tokens=150)
_GPT5_TILES = MediaRule(image_tokens=70, tile_tokens=140)
_MINI_TILES = MediaRule(image_tokens=2_833, tile_tokens=5_667)


def _patches(factor: float) -> MediaRule:
    # two tokens an image beside its patches, as billed for gpt-5-mini (2026-11)
    return MediaRule(image_tokens=2, patch_factor=factor)


_OPENAI = ModelFacts(
    name="",
    encoding="o200k_base",
    framing=_CHAT,
    framings=(("openai_responses", _RESPONSES),),
    media=_TILES,
    exact=True,
    margin=_MARGIN,
    margins=(("openai_responses", _RESPONSES_MARGIN),),
    source=_DOCS + "{}",
    checked=_CHECKED,
)
_NO_BILL = replace(_OPENAI, exact=False)
_CL100K = replace(_OPENAI, encoding="cl100k_base")
_REASONS = replace(_OPENAI, framing=_O_SERIES, framings=(("openai_responses", _O_RESPONSES),))
_REASONS_NO_BILL = replace(_REASONS, exact=False)
_GPT_5_BILLED = replace(_OPENAI, framing=_GPT_5, framings=(("openai_responses", _GPT_5_RESPONSES),))
# Of these no bill was seen; their vocabulary is known (tiktoken 0.14).
_UNBILLED = replace(_GPT_5_BILLED, exact=False, media=_patches(1.2), source=_NEWER_DOCS + "{}")
# tiktoken 0.14 (2026-11) names the vocabulary of every gpt-5.x and of no gpt-6: o200k's stands in, and the
# margin is that between OpenAI's last two vocabularies in the worst of five corpora (cl100k has 1.28 of
# o200k's tokens in Chinese, 1.00 in English).
_GPT_6 = replace(
    _UNBILLED,
    encoding=None,
    near_encoding="o200k_base",
    margin=Margin(tokens=90, per_mille=280, plain_tokens=3),
    margins=(),
)
_GPT_OSS = replace(
    _NO_BILL,
    encoding="o200k_harmony",
    framing=_HARMONY,
    framings=(),
    margin=Margin(tokens=6, per_mille=20, over_tokens=16, plain_tokens=6),
    margins=(),
    source="https://openai.com/index/gpt-oss-model-card/",
    open_weights=True,
)
# How the first of them was framed: How_to_count_tokens_with_tiktoken.ipynb (cookbook, @06d9feb5).
_FIRST_CHAT = Framing(per_message_tokens=4, per_name_tokens=-1)

_ROWS = (
    *group(_OPENAI, 128_000, 16_384, "gpt-4o gpt-4o-audio-preview gpt-4.5-preview"),
    *group(_OPENAI, 128_000, 4_096, "gpt-4o-2024-05-13"),
    *group(_OPENAI, 128_000, 16_384, "gpt-4o-mini", media=_MINI_TILES),
    *group(_NO_BILL, 128_000, 16_384, "gpt-4o-mini-audio-preview gpt-audio gpt-audio-1.5 gpt-audio-mini"),
    # billed 11 tokens below the rule: the system message is not charged whole
    *group(_NO_BILL, 128_000, 16_384, "gpt-4o-search-preview gpt-4o-mini-search-preview"),
    *group(_OPENAI, 1_047_576, 32_768, "gpt-4.1"),
    *group(_OPENAI, 1_047_576, 32_768, "gpt-4.1-mini", media=_patches(1.62)),
    *group(_OPENAI, 1_047_576, 32_768, "gpt-4.1-nano", media=_patches(2.46)),
    *group(_NO_BILL, 8_192, 1_024, "computer-use-preview"),
    *group(_CL100K, 128_000, 4_096, "gpt-4-turbo"),
    *group(_CL100K, 8_192, 8_192, "gpt-4"),
    *group(_CL100K, 32_768, None, "gpt-4-32k"),
    *group(_CL100K, 16_385, 4_096, "gpt-3.5-turbo gpt-3.5-turbo-16k"),
    *group(_CL100K, 4_096, 4_096, "gpt-3.5-turbo-0613"),
    *group(_CL100K, 4_096, 4_096, "gpt-3.5-turbo-0301", framing=_FIRST_CHAT, exact=False),
    *group(_REASONS, 200_000, 100_000, "o1 o3 o3-mini", media=_O_TILES),
    *group(_REASONS_NO_BILL, 128_000, 32_768, "o1-preview", media=_O_TILES),
    *group(_REASONS_NO_BILL, 128_000, 65_536, "o1-mini", media=_O_TILES),
    *group(_REASONS_NO_BILL, 200_000, 100_000, "o1-pro o3-pro o3-deep-research", media=_O_TILES),
    *group(_REASONS, 200_000, 100_000, "o4-mini", media=_patches(1.72)),
    *group(
        _REASONS_NO_BILL, 200_000, 100_000, "o4-mini-deep-research codex-mini-latest", media=_patches(1.72)
    ),
    *group(_GPT_5_BILLED, 400_000, 128_000, "gpt-5 gpt-5.1", media=_GPT5_TILES),
    *group(_GPT_5_BILLED, 400_000, 128_000, "gpt-5-mini gpt-5.2", media=_patches(1.2)),
    *group(_GPT_5_BILLED, 400_000, 128_000, "gpt-5-nano", media=_patches(1.5)),
    *group(_GPT_5_BILLED, 400_000, 128_000, "gpt-5.4-mini", media=_patches(1.62)),
    *group(_UNBILLED, 128_000, 16_384, "gpt-5-chat-latest", media=_GPT5_TILES),
    *group(_UNBILLED, 400_000, 128_000, "gpt-5-codex", media=_GPT5_TILES),
    *group(_UNBILLED, 400_000, 272_000, "gpt-5-pro", media=_GPT5_TILES),
    *group(_UNBILLED, 400_000, 128_000, "gpt-5-search-api", media=_GPT5_TILES),
    # by genai-prices 0.2.3 (2026-11-27), which has it as gpt-5.1-codex-mini
    *group(_UNBILLED, 400_000, 128_000, "gpt-5.1-mini", source=_SDK),
    *group(_UNBILLED, 128_000, 16_384, "gpt-5.1-chat-latest gpt-5.2-chat-latest gpt-5.3-chat-latest"),
    *group(_UNBILLED, 400_000, 128_000, "gpt-5.1-codex gpt-5.1-codex-mini gpt-5.1-codex-max gpt-5.2-codex"),
    *group(_UNBILLED, 400_000, 128_000, "gpt-5.2-pro gpt-5.3-codex gpt-5.4-nano gpt-5.6-cyber"),
    *group(_GPT_5_BILLED, 1_050_000, 128_000, "gpt-5.4 gpt-5.6 gpt-5.6-sol", media=_patches(1.2)),
    *group(_UNBILLED, 1_050_000, 128_000, "gpt-5.4-pro gpt-5.5 gpt-5.5-pro gpt-5.6-terra gpt-5.6-luna"),
    *group(_GPT_6, 1_050_000, 128_000, "gpt-6-astra gpt-6-sol gpt-6-luna gpt-6-rosalind"),
    *group(_GPT_6, 1_050_000, 128_000, "gpt-6.1-sol gpt-6.1-terra gpt-6.2-sol gpt-6.2-astra"),
    *group(_GPT_6, 1_050_000, 128_000, "gpt-daybreak-blue-latest"),
    *group(_GPT_6, 400_000, 128_000, "gpt-daybreak-red-latest"),
    # by litellm 1.110.2 (2026-11-27)
    *group(_GPT_6, 1_050_000, 128_000, "gpt-6-cyber gpt-6-astra-law", source=_SDK),
    *group(_GPT_6, None, None, "gpt-rosalind-research gpt-rosalind-discovery gpt-6.2-astra-law", source=_SDK),
    *group(_UNBILLED, None, None, "gpt-5.5-cyber", source=_SDK),
    *group(_GPT_OSS, 131_072, None, "gpt-oss-20b gpt-oss-120b"),
)

# What they take of input, whatever the answer takes: "Input tokens exceed the configured limit of 272000
# tokens" is what the API says above (github.com/cline/cline/issues/5474), and "922K input, 128K output"
# (openrouter.ai/openai/gpt-5.4; both read 2026-11-27).
_INPUT_TOKENS = {400_000: 272_000, 1_050_000: 922_000}
ROWS = tuple(replace(row, input_tokens=_INPUT_TOKENS.get(row.window_tokens or 0)) for row in _ROWS)

UNNAMED = (
    # cl100k has the most tokens of its vocabularies, by half in Chinese and by nothing in English; reasoning
    # models are shown tools with 82 tokens more
    Unnamed(
        re.compile(r"(gpt-|chatgpt-|codex-|o\d)"), "gpt-4", Margin(tokens=100, per_mille=340, plain_tokens=3)
    ),
)

# Old dated ones, and Azure's spelling.
ALIASES = aliases(
    {
        "gpt-4o": "chatgpt-4o-latest",
        "gpt-4.5-preview": "gpt-4.5",
        "gpt-4": "gpt-4-0314 gpt-4-0613",
        "gpt-4-32k": "gpt-4-32k-0314 gpt-4-32k-0613",
        "gpt-4-turbo": "gpt-4-1106-preview gpt-4-0125-preview gpt-4-turbo-preview gpt-4-vision-preview"
        " gpt-4-turbo-vision-preview",
        "codex-mini-latest": "codex-mini",
        "gpt-5.5-cyber": "gpt-5.5-cyber-preview",
        "gpt-daybreak-red-latest": "daybreak-red-latest",
        "gpt-daybreak-blue-latest": "daybreak-blue-latest",
        "gpt-3.5-turbo": "gpt-3.5-turbo-1106 gpt-3.5-turbo-0125"
        " gpt-35-turbo gpt-35-turbo-0125 gpt-35-turbo-1106",
        "gpt-3.5-turbo-16k": "gpt-3.5-turbo-16k-0613 gpt-35-turbo-16k",
        "gpt-3.5-turbo-0613": "gpt-35-turbo-0613",
        **{f"gpt-{version}-chat-latest": f"gpt-{version}-chat" for version in ("5", "5.1", "5.2", "5.3")},
        "gpt-oss-20b": "gpt-oss-safeguard-20b",
        "gpt-oss-120b": "gpt-oss-safeguard-120b",
    }
)

REASONS = {("gpt-4", "output"): "2026-11-22: OpenAI's own page of the model has 8,192"}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
