"""Models whose weights are open: a row a family, since hosts give one model many names.

Windows are those of the maker's own endpoint, or of the published weights where it has none; a host may allow
less, so that a name with a host's prefix leads to the row without its limits.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import BY_ESTIMATE, Framing, Margin, MediaRule, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_TABLE = "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json"
"""Read in release 1.109.1 (2026-11), which names the maker's page for nearly all of these."""

# Tokens for one of o200k's, by the vocabularies the makers publish, over 400 messages each of four English
# corpora and a Chinese one (2026-11): Llama 3 0.99-1.01 and 1.05, DeepSeek V3 and V4 1.01-1.06 and 0.81,
# GLM 4.5 to 4.7 1.00-1.01 and 0.83, MiniMax M3 0.99-1.01 and 0.77, Qwen 2.5 and 3 1.02-1.11 and 0.88,
# Qwen 3.5 1.04-1.15 and 0.82. The highest is taken. Errs: high in Chinese; low where a host adds text of its
# own, as Groq does (40 tokens to a request of Llama 3.3, 660 to one of Llama 4 with tools).
_LLAMA, _DEEPSEEK, _GLM, _QWEN, _MINIMAX = 1.05, 1.06, 1.02, 1.11, 1.01
_MARGIN = Margin(tokens=40, per_mille=50, over_tokens=100, over_per_mille=250)
"""Down by the spread of those corpora, up a little: the factor is the highest of them. Most hosts frame
alike, but some have a shorter way to tell of tools than the maker's template."""
# Qwen's tools cost 80 less at Ollama than at GPUStack.
_QWEN_MARGIN = replace(_MARGIN, tokens=90, plain_tokens=40)
# HF's router bills 330 tokens more for tools than the template has.
_LLAMA_MARGIN = replace(_MARGIN, tokens=340, plain_tokens=40)
_LLAMA_4_MARGIN = replace(_MARGIN, over_tokens=620)
# "reasoning_effort": "high" brings 79 tokens along (two bills); HF's router drops the tools of R1.
_SEEK_MARGIN = replace(_MARGIN, tokens=85, over_tokens=190)


# What the chat templates write that makers publish beside their weights (tokenizer_config.json and
# chat_template.jinja on huggingface.co, 2026-11), by the bills of the half rules are made on. A call is
# written once, and its result is a message.
#
# Qwen's is "<|im_start|>user ... <|im_end|>": 8 tokens with one message (GPUStack, Groq), and 118 that
# introduce tools (GPUStack; Ollama's own template has 50).
_CHATML = Framing(
    per_request_tokens=3,
    per_message_tokens=4,
    per_name_tokens=None,
    per_call_tokens=14,
    call_name_factor=1,
    parallel_calls_tokens=0,
    per_result_tokens=6,
    tools_style="spaced",
    tools_tokens=118,
    tools_saved_by_system_tokens=0,
    tagged_thoughts_dropped=True,
)
# Qwen 2.5 begins with "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
_QWEN_2_5 = replace(_CHATML, default_system_tokens=21)
# Qwen3-Coder and all since 3.5 are told of tools, and call them, in XML (Cerebras).
_QWEN_XML = replace(_CHATML, tools_tokens=214, per_call_tokens=24)
# "<|start_header_id|>user<|end_header_id|>"; since 3.1 with system text that says which date it is, in a
# message of its own where there is none: 25 tokens (vLLM, Cloudflare, Bedrock, Groq; not OpenRouter,
# Snowflake, Ollama).
_LLAMA_3 = replace(
    _CHATML,
    per_request_tokens=5,
    per_call_tokens=8,
    per_result_tokens=2,
    tools_style="indented",
    tools_tokens=56,
)
_LLAMA_3_1 = replace(_LLAMA_3, per_request_tokens=25, default_system_tokens=5)
# Groq introduces tools by 650 tokens of its own (6 of 6), Bedrock by 110.
_LLAMA_4 = replace(_LLAMA_3, tools_style="json", tools_tokens=650)
_LLAMA_4_BEDROCK = replace(_LLAMA_4, tools_tokens=90)
# A token before each message, one behind an answer, and no frame for system text. Tools are introduced by 211
# at DeepSeek itself since V3.2 (5 of 5), by 108 in V3 (OpenRouter).
_SEEKING = replace(
    _CHATML,
    per_request_tokens=2,
    per_message_tokens=2,
    roles_counted=False,
    per_call_tokens=34,
    per_result_tokens=5,
    tools_tokens=211,
    tools_dropped_by_none=True,
)
_SEEKING_V3 = replace(_SEEKING, tools_tokens=108)
# Groq kept thoughts in tags where they were (one bill).
_DISTILLED = replace(_SEEKING_V3, tagged_thoughts_dropped=False)
# Output schemas are free. Reasoning stays where the request asks for that ("clear_thinking": false). Since
# 5.2 a line says how hard to think.
_GLM_FRAMING = replace(
    _CHATML,
    per_message_tokens=2,
    roles_counted=False,
    per_call_tokens=10,
    per_result_tokens=0,
    tools_tokens=80,
    output_schema_tokens=None,
    past_thoughts_charged=True,
)
_GLM_5_2 = replace(_GLM_FRAMING, per_request_tokens=10)
# Kimi is shown tools as OpenAI's models are (Bedrock); MiniMax pays nothing for an output schema (Bedrock).
_KIMI_FRAMING = replace(_CHATML, tools_style="typescript", tools_tokens=18)
_MAX_FRAMING = replace(_CHATML, output_schema_tokens=None)
# A token for 28 x 28 pixels (one bill). Llama 4 cuts tiles of 336 x 336 of 144 tokens, at most 16, and adds
# the whole picture (three bills).
_QWEN_MEDIA = MediaRule(image_tokens=2, tile_tokens=0, pixels_per_token=784, long_pixels=3_600)
_LLAMA_MEDIA = MediaRule(image_tokens=320, tile_tokens=0, pixels_per_token=778, most_image_tokens=2_450)


def _family(
    provider: str,
    factor: float | None = None,
    *,
    encoding: str | None = None,
    source: str = _TABLE,
    framing: Framing = _CHATML,
) -> ModelFacts:
    """Give a kind of open models; one whose vocabulary was not looked at has estimates, which err high."""
    kind = ModelFacts(
        name="",
        provider=provider,
        source=source,
        checked=_CHECKED,
        open_weights=True,
        framing=framing,
        margin=BY_ESTIMATE,
    )
    if factor is None:
        return kind
    return replace(kind, encoding=encoding, near_encoding="o200k_base", text_factor=factor, margin=_MARGIN)


_PRICING = "https://api-docs.deepseek.com/quick_start/pricing"
_META = replace(_family("meta", _LLAMA, framing=_LLAMA_3_1), margin=_LLAMA_MARGIN)
_META_4 = replace(
    _META,
    framing=_LLAMA_4,
    framings=(("bedrock", _LLAMA_4_BEDROCK),),
    media=_LLAMA_MEDIA,
    margin=_LLAMA_4_MARGIN,
)
# The vocabulary of Qwen 2.5 and 3 no package on the index splits for everyone; that since 3.5 comes with
# toktok-rs, and without it is 1.15 of o200k's.
_OLD_QWEN = replace(_family("alibaba", _QWEN), digits_apart=True, media=_QWEN_MEDIA, margin=_QWEN_MARGIN)
_XML_QWEN = replace(_OLD_QWEN, framing=_QWEN_XML)
_NEW_QWEN = replace(
    _family("alibaba", 1.15, encoding="qwen3.5", framing=_QWEN_XML), media=_QWEN_MEDIA, margin=_QWEN_MARGIN
)
_SEEK = replace(_family("deepseek", _DEEPSEEK, framing=_SEEKING), margin=_SEEK_MARGIN)
_SEEK_PRICED = replace(_SEEK, source=_PRICING)
_Z = _family("z.ai", _GLM, source="https://docs.z.ai/guides/overview/pricing", framing=_GLM_FRAMING)
_KIMI = _family("moonshot", framing=_KIMI_FRAMING)
_MAX = _family("minimax", _MINIMAX, framing=_MAX_FRAMING)
# As Google serves it; its vocabulary is Gemini's, nearly o200k's in English.
_GEMMA = replace(
    _family("google", 1.0, framing=Framing()), format="gemini", digits_apart=True, lines_apart=True
)

ROWS = (
    *group(_family("meta"), 4_096, None, "llama-2"),
    *group(_META, 8_192, None, "llama-3", framing=_LLAMA_3),
    *group(_META, 128_000, None, "llama-3.1 llama-3.2 llama-3.3"),
    *group(_META_4, 1_000_000, None, "llama-4-maverick"),
    *group(_META_4, 10_000_000, None, "llama-4-scout"),
    *group(_OLD_QWEN, None, None, "qwen3"),  # 32,768 or 262,144, by size and date
    *group(_OLD_QWEN, 32_768, None, "qwen2.5", framing=_QWEN_2_5),
    *group(_OLD_QWEN, 32_768, None, "qwen3-32b"),
    *group(_OLD_QWEN, 262_144, None, "qwen3-235b-a22b-instruct-2507 qwen3-next"),
    *group(_XML_QWEN, 262_144, None, "qwen3-coder qwen3-coder-30b-a3b qwen3-coder-480b-a35b"),
    *group(_OLD_QWEN, 131_072, 32_768, "qwen3-vl"),
    *group(_OLD_QWEN, 131_072, None, "qwq-32b"),
    # of Alibaba's own endpoint the most input was read, which is a little below the window
    *group(_OLD_QWEN, 30_720, 8_192, "qwen-max"),
    *group(_OLD_QWEN, 129_024, 16_384, "qwen-plus qwen-turbo"),
    *group(_OLD_QWEN, 997_952, 32_768, "qwen-plus-latest"),
    *group(_OLD_QWEN, 1_000_000, 16_384, "qwen-turbo-latest qwen-coder"),
    *group(_OLD_QWEN, 98_304, 8_192, "qwq-plus"),
    *group(_OLD_QWEN, 260_096, 32_768, "qwen3-vl-plus"),
    *group(_OLD_QWEN, 997_952, 32_768, "qwen-flash"),
    *group(_OLD_QWEN, 258_048, 65_536, "qwen3-max"),
    *group(_XML_QWEN, 997_952, 65_536, "qwen3-coder-plus qwen3-coder-flash"),
    *group(_NEW_QWEN, 262_144, None, "qwen3.5"),
    *group(_NEW_QWEN, 991_808, 65_536, "qwen3.5-plus qwen3.7-max qwen3.7-plus"),
    *group(_NEW_QWEN, None, None, "qwen3.6 qwen3.8"),
    *group(_NEW_QWEN, 1_000_000, None, "qwen3.6-plus"),
    *group(_NEW_QWEN, 991_808, 131_072, "qwen3.8-max qwen3.8-flash"),
    *group(_SEEK_PRICED, 131_072, 8_192, "deepseek-chat"),
    *group(_SEEK_PRICED, 131_072, 65_536, "deepseek-reasoner"),
    *group(_SEEK_PRICED, 1_000_000, 393_216, "deepseek-flash deepseek-v4-flash deepseek-v4-pro"),
    *group(_SEEK, 1_048_576, 393_216, "deepseek-v4.1-flash"),
    *group(_SEEK, 65_536, 8_192, "deepseek-v3 deepseek-r1", framing=_SEEKING_V3),
    *group(_SEEK, 131_072, None, "deepseek-v3.1", framing=_SEEKING_V3),
    *group(_SEEK, 163_840, None, "deepseek-v3.2"),
    *group(_SEEK, 131_072, None, "deepseek-r1-distill-llama", framing=_DISTILLED, text_factor=_LLAMA),
    *group(_SEEK, 131_072, None, "deepseek-r1-distill-qwen", framing=_DISTILLED, text_factor=_QWEN),
    *group(_Z, 128_000, 32_000, "glm-4.5"),
    *group(_Z, 200_000, 128_000, "glm-4.6 glm-4.7 glm-5 glm-5.1"),
    *group(_Z, 1_000_000, 128_000, "glm-5.2 glm-5.3", framing=_GLM_5_2),
    *group(_KIMI, 131_072, None, "kimi-k2 moonshot-v1-128k"),
    *group(_KIMI, 262_144, None, "kimi-k2-instruct-0905 kimi-k2-thinking"),
    *group(_KIMI, 262_144, 262_144, "kimi-k2.5 kimi-k2.6 kimi-k2.7-code"),
    *group(_KIMI, 1_048_576, 1_048_576, "kimi-k3 kimi-k3.1-pro"),
    *group(_KIMI, 8_192, None, "moonshot-v1-8k"),
    *group(_KIMI, 32_768, None, "moonshot-v1-32k"),
    *group(_MAX, None, None, "minimax-m2"),  # 196,608 to 1,000,000, by version and host
    *group(_MAX, 1_000_000, 128_000, "minimax-m3"),
    *group(_family("ai21"), 256_000, None, "jamba"),
    *group(_family("microsoft"), 16_384, None, "phi-4"),
    *group(_family("microsoft"), None, None, "phi-3 phi-3.5"),  # 4,096 to 131,072, by name
    *group(_family("ibm"), None, None, "granite granite-3"),  # 8,192 to 131,072, by version and host
    *group(_family("ibm"), 131_072, None, "granite-4"),
    *group(_family("nvidia"), None, None, "nemotron"),  # 128,000 to 262,144, by version
    *group(_family("nvidia"), 262_144, None, "nemotron-3"),
    *group(_family("nvidia"), 128_000, None, "nemotron-nano"),
    *group(_GEMMA, 8_192, 8_192, "gemma-2"),
    *group(_GEMMA, 131_072, 8_192, "gemma-3"),
    *group(_GEMMA, 262_144, 32_768, "gemma-4"),
)

# Up to what Groq adds for Llama 4's tools; in Chinese Qwen's own vocabulary counts 0.72 of what the rows by
# o200k do.
_ANY_LLAMA = replace(_MARGIN, tokens=620, per_mille=250, plain_tokens=40)
_ANY_QWEN = replace(_MARGIN, tokens=60, per_mille=400, over_per_mille=400)

UNNAMED = (
    Unnamed(re.compile(r"(meta-)?llama"), "llama-3.3", _ANY_LLAMA),
    Unnamed(re.compile(r"qw(en|q)"), "qwen3.5", _ANY_QWEN),
    Unnamed(re.compile(r"deepseek"), "deepseek-v4-pro", replace(_SEEK_MARGIN, per_mille=250)),
    Unnamed(re.compile(r"glm-"), "glm-5.3", replace(_MARGIN, per_mille=250)),
    Unnamed(re.compile(r"(kimi|moonshot)-"), "kimi-k3", BY_ESTIMATE),
    Unnamed(re.compile(r"minimax"), "minimax-m3", replace(_MARGIN, per_mille=250)),
    Unnamed(re.compile(r"gemma-"), "gemma-4", replace(_MARGIN, per_mille=250)),
)

ALIASES = aliases(
    {
        "qwen-plus-latest": "qwen-plus-2025-07-28 qwen-plus-2025-09-11",
        "qwen-turbo-latest": "qwen-turbo-2025-04-28 qwen-turbo-2024-11-01",
        "llama-2": "llama2",
        "llama-3": "llama3",
        "llama-4-scout": "llama4-scout",
        "llama-4-maverick": "llama4-maverick",
        "deepseek-v3": "deepseek-chat-v3 deepseek-chat-v3-0324",
        "deepseek-v3.1": "deepseek-chat-v3.1",
        "deepseek-v4-flash": "deepseek-v4-flash-vision-exp",
        "glm-4.5": "glm-4.5v",
        "glm-5.3": "zai-glm-latest",
        "granite": "granite-vision granite-guardian",
    }
) | {
    name.replace("-", "."): name for name in ("deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "deepseek-r1")
}

_POINTED = re.compile(r"(?<=\d)p(?=\d)")
"""Fireworks writes "v3p1" and "k2p5" for 3.1 and 2.5."""
_VERSION = r"(\d)(?:-(\d)\b)?"
"""What a size follows, as in "3-8b", is a version of one number."""
_LLAMA_NAME = re.compile(r"llama-?v?" + _VERSION)
"""Bedrock has "llama3-1-8b", Cerebras "llama3.1-8b", Fireworks "llama-v3p1-8b", Meta "Meta-Llama-3.1-8B"."""
_QWEN_NAME = re.compile(r"qwen-?" + _VERSION)
_GLM_NAME = re.compile(r"glm-" + _VERSION)
"""Mistral serves "zai-glm-5-3"."""
_SHORT_NAME = re.compile(r"\A(gemma|phi|granite)(?=\d)(\d)")
"""Ollama has "gemma3:4b", "phi4" and "granite3.2-vision"."""
_GAPS = "-."
"""What may follow the name of a family: MiniMax has "minimax-m2.5"."""


def family_names(name: str, /) -> list[str]:
    """List what a name of an open model, in lower case, may stand for: the longest first, spelled as in rows.

    Example:
        >>> "llama-3.1" in family_names("meta-llama-3.1-8b-instruct-turbo")
        True
        >>> "qwen3" in family_names("qwen-3:0.6b")
        True
    """
    plain = _POINTED.sub(".", name)
    for maker in ("zai-", "meta-", "openai-", "nvidia-"):
        plain = plain.removeprefix(maker)
    plain = _LLAMA_NAME.sub(lambda found: "llama-" + _version(found), plain)
    plain = _QWEN_NAME.sub(lambda found: "qwen" + _version(found), plain)
    plain = _GLM_NAME.sub(lambda found: "glm-" + _version(found), plain)
    plain = _SHORT_NAME.sub(r"\1-\2", plain)
    whole = plain.replace(":", "-")  # Ollama writes "qwen3:0.6b"
    cuts = [at for at, letter in enumerate(whole) if letter in _GAPS]
    return [whole, *(whole[:at] for at in reversed(cuts))][:_MOST_NAMES]


_MOST_NAMES = 16
"""More than any host writes behind a family; each is as long as the name, which may be anything."""


def _version(found: re.Match[str]) -> str:
    return found[1] if found[2] is None else f"{found[1]}.{found[2]}"


REASONS: dict[tuple[str, str], str] = {}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
