"""Models whose weights are open: a row a family, since hosts give one model many names.

Windows are those of the maker's own endpoint, or of the published weights where it has none; a host may allow
less, so that a name with a host's prefix leads to the row without its limits.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import BY_ESTIMATE, Margin, ModelFacts, Unnamed

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
    name: str,
    provider: str,
    window_tokens: int | None,
    output_tokens: int | None = None,
    *,
    factor: float | None = None,
    encoding: str | None = None,
    source: str = _TABLE,
) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider=provider,
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        encoding=encoding,
        near_encoding=None if factor is None else "o200k_base",
        text_factor=1.0 if factor is None else factor,
        margin=None if factor is None else _MARGIN,
        source=source,
        checked=_CHECKED,
        open_weights=True,
    )


def _llama(name: str, window_tokens: int) -> ModelFacts:
    return _family(name, "meta", window_tokens, factor=_LLAMA)


def _qwen(name: str, window_tokens: int | None, output_tokens: int | None = None) -> ModelFacts:
    """Give a row of the vocabulary of Qwen 2.5 and 3, which no package on the index splits for everyone."""
    return _family(name, "alibaba", window_tokens, output_tokens, factor=_QWEN)


def _newer_qwen(name: str, window_tokens: int | None, output_tokens: int | None = None) -> ModelFacts:
    """Give a row since Qwen 3.5, whose vocabulary comes with toktok-rs; without it, 1.15 of o200k's."""
    return _family(name, "alibaba", window_tokens, output_tokens, factor=1.15, encoding="qwen3.5")


def _deepseek(
    name: str, window_tokens: int, output_tokens: int | None = None, source: str = ""
) -> ModelFacts:
    return _family(name, "deepseek", window_tokens, output_tokens, factor=_DEEPSEEK, source=source or _TABLE)


def _glm(name: str, window_tokens: int, output_tokens: int) -> ModelFacts:
    return _family(name, "z.ai", window_tokens, output_tokens, factor=_GLM, source=_ZAI)


def _kimi(name: str, window_tokens: int, output_tokens: int | None = None) -> ModelFacts:
    # its vocabulary was not looked at: estimates, which err high
    return _family(name, "moonshot", window_tokens, output_tokens)


def _gemma(name: str, window_tokens: int, output_tokens: int) -> ModelFacts:
    """Give a row of Gemma as Google serves it; its vocabulary is Gemini's, nearly o200k's in English."""
    row = _family(name, "google", window_tokens, output_tokens, factor=1.0)
    return replace(row, format="gemini")


_PRICING = "https://api-docs.deepseek.com/quick_start/pricing"
_ZAI = "https://docs.z.ai/guides/overview/pricing"

ROWS = (
    _family("llama-2", "meta", 4_096),
    _llama("llama-3", 8_192),
    _llama("llama-3.1", 128_000),
    _llama("llama-3.2", 128_000),
    _llama("llama-3.3", 128_000),
    _llama("llama-4-maverick", 1_000_000),
    _llama("llama-4-scout", 10_000_000),
    _qwen("qwen2.5", 32_768),
    _qwen("qwen3", None),  # 32,768 or 262,144, by size and date
    _qwen("qwen3-32b", 32_768),
    _qwen("qwen3-235b-a22b-instruct-2507", 262_144),
    _qwen("qwen3-coder", 262_144),
    _qwen("qwen3-coder-30b-a3b", 262_144),
    _qwen("qwen3-coder-480b-a35b", 262_144),
    _qwen("qwen3-next", 262_144),
    _qwen("qwen3-vl", 131_072, 32_768),
    _qwen("qwq-32b", 131_072),
    # of Alibaba's own endpoint the most input was read, which is a little below the window
    _qwen("qwen-max", 30_720, 8_192),
    _qwen("qwen-plus", 129_024, 16_384),
    _qwen("qwen-turbo", 129_024, 16_384),
    _qwen("qwen-flash", 997_952, 32_768),
    _qwen("qwen3-max", 258_048, 65_536),
    _qwen("qwen3-coder-plus", 997_952, 65_536),
    _qwen("qwen3-coder-flash", 997_952, 65_536),
    _newer_qwen("qwen3.5", 262_144),
    _newer_qwen("qwen3.5-plus", 991_808, 65_536),
    _newer_qwen("qwen3.6", None),
    _newer_qwen("qwen3.6-plus", 1_000_000),
    _newer_qwen("qwen3.7-max", 991_808, 65_536),
    _newer_qwen("qwen3.7-plus", 991_808, 65_536),
    _newer_qwen("qwen3.8", None),
    _newer_qwen("qwen3.8-max", 991_808, 131_072),
    _newer_qwen("qwen3.8-flash", 991_808, 131_072),
    _deepseek("deepseek-chat", 131_072, 8_192, _PRICING),
    _deepseek("deepseek-reasoner", 131_072, 65_536, _PRICING),
    _deepseek("deepseek-flash", 1_000_000, 393_216, _PRICING),
    _deepseek("deepseek-v4-flash", 1_000_000, 393_216, _PRICING),
    _deepseek("deepseek-v4-pro", 1_000_000, 393_216, _PRICING),
    _deepseek("deepseek-v4.1-flash", 1_048_576, 393_216),
    _deepseek("deepseek-v3", 65_536, 8_192),
    _deepseek("deepseek-v3.1", 131_072),
    _deepseek("deepseek-v3.2", 163_840),
    _deepseek("deepseek-r1", 65_536, 8_192),
    _family("deepseek-r1-distill-llama", "deepseek", 131_072, factor=_LLAMA),
    _family("deepseek-r1-distill-qwen", "deepseek", 131_072, factor=_QWEN),
    _glm("glm-4.5", 128_000, 32_000),
    _glm("glm-4.6", 200_000, 128_000),
    _glm("glm-4.7", 200_000, 128_000),
    _glm("glm-5", 200_000, 128_000),
    _glm("glm-5.1", 200_000, 128_000),
    _glm("glm-5.2", 1_000_000, 128_000),
    _glm("glm-5.3", 1_000_000, 128_000),
    _kimi("kimi-k2", 131_072),
    _kimi("kimi-k2-instruct-0905", 262_144),
    _kimi("kimi-k2-thinking", 262_144),
    _kimi("kimi-k2.5", 262_144, 262_144),
    _kimi("kimi-k2.6", 262_144, 262_144),
    _kimi("kimi-k2.7-code", 262_144, 262_144),
    _kimi("kimi-k3", 1_048_576, 1_048_576),
    _kimi("kimi-k3.1-pro", 1_048_576, 1_048_576),
    _kimi("moonshot-v1-8k", 8_192),
    _kimi("moonshot-v1-32k", 32_768),
    _kimi("moonshot-v1-128k", 131_072),
    _family("minimax-m2", "minimax", None, factor=_MINIMAX),  # 196,608 to 1,000,000, by version and host
    _family("minimax-m3", "minimax", 1_000_000, 128_000, factor=_MINIMAX),
    _gemma("gemma-2", 8_192, 8_192),
    _gemma("gemma-3", 131_072, 8_192),
    _gemma("gemma-4", 262_144, 32_768),
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

ALIASES = {
    "llama2": "llama-2",
    "llama3": "llama-3",
    "llama4-scout": "llama-4-scout",
    "llama4-maverick": "llama-4-maverick",
    "deepseek-v4-flash-vision-exp": "deepseek-v4-flash",
    "glm-4.5v": "glm-4.5",
    "deepseek.v3": "deepseek-v3",
    "deepseek.v3.1": "deepseek-v3.1",
    "deepseek.v3.2": "deepseek-v3.2",
    "deepseek.r1": "deepseek-r1",
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
    """List what a name of an open model may stand for, the longest first, in the spelling of the rows.

    Example:
        >>> "llama-3.1" in family_names("Meta-Llama-3.1-8B-Instruct-Turbo")
        True
        >>> "qwen3" in family_names("qwen-3:0.6b")
        True
    """
    plain = _POINTED.sub(".", name.lower())
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
