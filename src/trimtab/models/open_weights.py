"""Models whose weights are open: a row a family, since hosts give one model many names.

Windows are those of the maker's own endpoint, or of the published weights where it has none; a host may allow
less, so that a name with a host's prefix leads to the row without its limits.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import BY_ESTIMATE, Margin, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_TABLE = "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json"
"""Read in release 1.109.1 (2026-11), which names the maker's page for nearly all of these."""

# Tokens for one of o200k's, by the vocabularies the makers publish, over 400 messages each of four English
# corpora and a Chinese one (2026-11): Llama 3 0.99-1.01 and 1.05, DeepSeek V3 and V4 1.01-1.06 and 0.81,
# GLM 4.5 to 4.7 1.00-1.01 and 0.83, MiniMax M3 0.99-1.01 and 0.77, Qwen 2.5 and 3 1.02-1.11 and 0.88,
# Qwen 3.5 1.04-1.15 and 0.82. The highest is taken. Errs: high in Chinese; low where a host adds text of its
# own, as Groq does (40 tokens to a request of Llama 3.3, 660 to one of Llama 4 with tools).
_LLAMA, _DEEPSEEK, _GLM, _QWEN, _MINIMAX = 1.05, 1.06, 1.02, 1.11, 1.01
_MARGIN = Margin(tokens=40, per_mille=250)
"""Over the spread of those corpora; what frames messages was seen in a handful of bills only."""


def _family(
    provider: str, factor: float | None = None, *, encoding: str | None = None, source: str = _TABLE
) -> ModelFacts:
    """Give a kind of open models; one whose vocabulary was not looked at has estimates, which err high."""
    kind = ModelFacts(name="", provider=provider, source=source, checked=_CHECKED, open_weights=True)
    if factor is None:
        return kind
    return replace(kind, encoding=encoding, near_encoding="o200k_base", text_factor=factor, margin=_MARGIN)


_PRICING = "https://api-docs.deepseek.com/quick_start/pricing"
_META = _family("meta", _LLAMA)
# The vocabulary of Qwen 2.5 and 3 no package on the index splits for everyone; that since 3.5 comes with
# toktok-rs, and without it is 1.15 of o200k's.
_OLD_QWEN, _NEW_QWEN = _family("alibaba", _QWEN), _family("alibaba", 1.15, encoding="qwen3.5")
_SEEK, _SEEK_PRICED = _family("deepseek", _DEEPSEEK), _family("deepseek", _DEEPSEEK, source=_PRICING)
_Z = _family("z.ai", _GLM, source="https://docs.z.ai/guides/overview/pricing")
_KIMI = _family("moonshot")
_MAX = _family("minimax", _MINIMAX)
# As Google serves it; its vocabulary is Gemini's, nearly o200k's in English.
_GEMMA = replace(_family("google", 1.0), format="gemini")

ROWS = (
    *group(_family("meta"), 4_096, None, "llama-2"),
    *group(_META, 8_192, None, "llama-3"),
    *group(_META, 128_000, None, "llama-3.1 llama-3.2 llama-3.3"),
    *group(_META, 1_000_000, None, "llama-4-maverick"),
    *group(_META, 10_000_000, None, "llama-4-scout"),
    *group(_OLD_QWEN, None, None, "qwen3"),  # 32,768 or 262,144, by size and date
    *group(_OLD_QWEN, 32_768, None, "qwen2.5 qwen3-32b"),
    *group(_OLD_QWEN, 262_144, None, "qwen3-235b-a22b-instruct-2507 qwen3-next"),
    *group(_OLD_QWEN, 262_144, None, "qwen3-coder qwen3-coder-30b-a3b qwen3-coder-480b-a35b"),
    *group(_OLD_QWEN, 131_072, 32_768, "qwen3-vl"),
    *group(_OLD_QWEN, 131_072, None, "qwq-32b"),
    # of Alibaba's own endpoint the most input was read, which is a little below the window
    *group(_OLD_QWEN, 30_720, 8_192, "qwen-max"),
    *group(_OLD_QWEN, 129_024, 16_384, "qwen-plus qwen-turbo"),
    *group(_OLD_QWEN, 997_952, 32_768, "qwen-flash"),
    *group(_OLD_QWEN, 258_048, 65_536, "qwen3-max"),
    *group(_OLD_QWEN, 997_952, 65_536, "qwen3-coder-plus qwen3-coder-flash"),
    *group(_NEW_QWEN, 262_144, None, "qwen3.5"),
    *group(_NEW_QWEN, 991_808, 65_536, "qwen3.5-plus qwen3.7-max qwen3.7-plus"),
    *group(_NEW_QWEN, None, None, "qwen3.6 qwen3.8"),
    *group(_NEW_QWEN, 1_000_000, None, "qwen3.6-plus"),
    *group(_NEW_QWEN, 991_808, 131_072, "qwen3.8-max qwen3.8-flash"),
    *group(_SEEK_PRICED, 131_072, 8_192, "deepseek-chat"),
    *group(_SEEK_PRICED, 131_072, 65_536, "deepseek-reasoner"),
    *group(_SEEK_PRICED, 1_000_000, 393_216, "deepseek-flash deepseek-v4-flash deepseek-v4-pro"),
    *group(_SEEK, 1_048_576, 393_216, "deepseek-v4.1-flash"),
    *group(_SEEK, 65_536, 8_192, "deepseek-v3 deepseek-r1"),
    *group(_SEEK, 131_072, None, "deepseek-v3.1"),
    *group(_SEEK, 163_840, None, "deepseek-v3.2"),
    *group(_family("deepseek", _LLAMA), 131_072, None, "deepseek-r1-distill-llama"),
    *group(_family("deepseek", _QWEN), 131_072, None, "deepseek-r1-distill-qwen"),
    *group(_Z, 128_000, 32_000, "glm-4.5"),
    *group(_Z, 200_000, 128_000, "glm-4.6 glm-4.7 glm-5 glm-5.1"),
    *group(_Z, 1_000_000, 128_000, "glm-5.2 glm-5.3"),
    *group(_KIMI, 131_072, None, "kimi-k2 moonshot-v1-128k"),
    *group(_KIMI, 262_144, None, "kimi-k2-instruct-0905 kimi-k2-thinking"),
    *group(_KIMI, 262_144, 262_144, "kimi-k2.5 kimi-k2.6 kimi-k2.7-code"),
    *group(_KIMI, 1_048_576, 1_048_576, "kimi-k3 kimi-k3.1-pro"),
    *group(_KIMI, 8_192, None, "moonshot-v1-8k"),
    *group(_KIMI, 32_768, None, "moonshot-v1-32k"),
    *group(_MAX, None, None, "minimax-m2"),  # 196,608 to 1,000,000, by version and host
    *group(_MAX, 1_000_000, 128_000, "minimax-m3"),
    *group(_GEMMA, 8_192, 8_192, "gemma-2"),
    *group(_GEMMA, 131_072, 8_192, "gemma-3"),
    *group(_GEMMA, 262_144, 32_768, "gemma-4"),
)

UNNAMED = (
    Unnamed(re.compile(r"(meta-)?llama"), "llama-3.3", _MARGIN),
    # in Chinese its own vocabulary counts 0.72 of what the rows by o200k do
    Unnamed(re.compile(r"qw(en|q)"), "qwen3.5", replace(_MARGIN, per_mille=400)),
    Unnamed(re.compile(r"deepseek"), "deepseek-v4-pro", _MARGIN),
    Unnamed(re.compile(r"glm-"), "glm-5.3", _MARGIN),
    Unnamed(re.compile(r"(kimi|moonshot)-"), "kimi-k3", BY_ESTIMATE),
    Unnamed(re.compile(r"minimax"), "minimax-m3", _MARGIN),
    Unnamed(re.compile(r"gemma-"), "gemma-4", _MARGIN),
)

ALIASES = aliases(
    {
        "llama-2": "llama2",
        "llama-3": "llama3",
        "llama-4-scout": "llama4-scout",
        "llama-4-maverick": "llama4-maverick",
        "deepseek-v4-flash": "deepseek-v4-flash-vision-exp",
        "glm-4.5": "glm-4.5v",
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
    for maker in ("zai-", "meta-", "openai-"):
        plain = plain.removeprefix(maker)
    plain = _LLAMA_NAME.sub(lambda found: "llama-" + _version(found), plain)
    plain = _QWEN_NAME.sub(lambda found: "qwen" + _version(found), plain)
    whole = plain.replace(":", "-")  # Ollama writes "qwen3:0.6b"
    cuts = [at for at, letter in enumerate(whole) if letter in _GAPS]
    return [whole, *(whole[:at] for at in reversed(cuts))][:_MOST_NAMES]


_MOST_NAMES = 16
"""More than any host writes behind a family; each is as long as the name, which may be anything."""


def _version(found: re.Match[str]) -> str:
    return found[1] if found[2] is None else f"{found[1]}.{found[2]}"
