"""What a million tokens of plain input cost in dollars, by model: prices are multiples of that elsewhere."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from trimtab.models.prices import find_pricing, pricing_for

__all__ = ["dollars_for"]

# Looked up on 2026-11-28: what litellm's table (1.106.2) and genai-prices (0.2.3) have. Where they contradict
# each other there is no row. Of models with price tiers it is the lowest. Sounds and images cost more.
_PRICES = {
    0.0375: "command-r7b-12-2024",
    0.05: "gpt-5-nano qwen-turbo qwen-turbo-latest",
    0.075: "gemini-1.5-flash",
    0.1: (
        "claude-haiku-5-5 devstral-small-latest gemini-2.0-flash gemini-2.5-flash-lite "
        "gpt-4.1-nano gpt-6-luna ministral-3b-latest"
    ),
    0.15: (
        "command-r-08-2024 gpt-4o-mini gpt-4o-mini-search-preview magistral-small-latest "
        "ministral-8b-latest mistral-small-latest qwen3.8-flash"
    ),
    0.2: "gpt-5.4-nano gpt-5.6-luna ministral-14b-latest",
    0.25: "claude-3-haiku gemini-3.1-flash-lite gpt-5-mini gpt-5.1-codex-mini",
    0.3: (
        "codestral-latest deepseek-flash deepseek-v4-flash gemini-2.5-flash "
        "gemini-3.5-flash-lite gemini-flash-lite-latest grok-3-mini minimax-m3 qwen-coder"
    ),
    0.4: "devstral-2512 devstral-medium-latest gpt-4.1-mini qwen-plus",
    0.5: "gemini-3-flash-preview gpt-3.5-turbo mistral-large-latest",
    0.6: "glm-4.5 glm-4.6 glm-4.7 kimi-k2.5",
    0.75: "gemini-flash-latest gpt-5.4-mini",
    0.8: "claude-3-5-haiku",
    0.95: "kimi-k2.6 kimi-k2.7-code",
    1.0: "claude-haiku-4-5 glm-5 gpt-6.1-terra grok-build-0.1",
    1.1: "o1-mini o3-mini o4-mini",
    1.25: (
        "gemini-2.5-pro gpt-5 gpt-5-chat-latest gpt-5-codex gpt-5-search-api gpt-5.1 "
        "gpt-5.1-chat-latest gpt-5.1-codex gpt-5.1-codex-max grok-4.20 grok-4.3"
    ),
    1.32: "deepseek-v4-pro",
    1.4: "glm-5.1 glm-5.2 glm-5.3",
    1.5: "gemini-3.5-flash gpt-3.5-turbo-0613 magistral-medium-latest mistral-medium-latest",
    1.6: "qwen-max",
    1.75: "gpt-5.2 gpt-5.2-chat-latest gpt-5.2-codex gpt-5.3-chat-latest gpt-5.3-codex",
    2.0: (
        "claude-sonnet-5 claude-sonnet-5-5 gemini-3-pro-preview gemini-3.1-pro-preview "
        "gemini-pro-latest gpt-4.1 gpt-5.6-terra gpt-6-sol gpt-6.1-sol grok-4.5 grok-4.6 "
        "grok-4.7 grok-build-latest kimi-k3.1-pro o3 o4-mini-deep-research "
        "pixtral-large-latest qwen3.8-max"
    ),
    2.5: ("command-a-03-2025 command-r-plus-08-2024 gpt-4o gpt-4o-search-preview gpt-5.4 qwen3.7-max"),
    2.7: "mistral-medium-2312",
    3.0: (
        "claude-3-5-sonnet claude-3-7-sonnet claude-3-sonnet claude-sonnet-4 "
        "claude-sonnet-4-5 claude-sonnet-4-6 gpt-3.5-turbo-16k grok-3 kimi-k3"
    ),
    4.0: "claude-opus-5-5 gpt-5.6 gpt-5.6-sol gpt-daybreak-blue-latest",
    5.0: (
        "claude-opus-4-5 claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5 "
        "gpt-4o-2024-05-13 gpt-5.5 gpt-rosalind-discovery gpt-rosalind-research"
    ),
    8.0: "claude-fable-5-2 claude-mythos-5-2",
    10.0: (
        "claude-fable-5 claude-fable-5-1 claude-mythos-5 claude-mythos-5-1 "
        "claude-mythos-preview gpt-4-turbo gpt-6-astra o3-deep-research"
    ),
    12.5: "gpt-5.5-cyber gpt-5.6-cyber gpt-daybreak-red-latest",
    15.0: "claude-3-opus claude-opus-4 claude-opus-4-1 gpt-5-pro gpt-6-rosalind o1 o1-preview",
    20.0: "gpt-6-cyber o3-pro",
    21.0: "gpt-5.2-pro",
    30.0: "gpt-4 gpt-5.4-pro gpt-5.5-pro",
    60.0: "gpt-4-32k",
    75.0: "gpt-4.5-preview",
    150.0: "o1-pro",
}
_MAKERS = (
    "anthropic",
    "cohere",
    "deepseek",
    "gemini",
    "google",
    "mistral",
    "moonshot",
    "openai",
    "xai",
    "zai",
)
"""What may stand before a name and a slash: whoever else serves the model has prices of their own."""
_DATED = re.compile(r"(?P<name>.+?)-(?:\d{8}|\d{4}-\d\d-\d\d|latest)")


@cache
def _rows() -> dict[str, float]:
    return {name: dollars for dollars, names in _PRICES.items() for name in names.split()}


def dollars_for(model: str, /) -> float | None:
    """Return the price of a million tokens of plain input in dollars; None: unknown.

    Args:
        model: Name of a model, with or without a date; a maker may precede it, as in `openai/gpt-4o`.

    Example:
        >>> dollars_for("gpt-4o"), dollars_for("openai/gpt-4o-2024-08-06"), dollars_for("gpt-9")
        (2.5, 2.5, None)
    """
    maker, slash, rest = model.lower().rpartition("/")
    name = rest if not slash or maker in _MAKERS else model.lower()
    dated = _DATED.fullmatch(name)
    rows = _rows()
    return rows.get(name, None if dated is None else rows.get(dated["name"]))


class BilledParts(NamedTuple):
    """The bill of a request and its answer, in tokens, by price.

    Args:
        base_tokens: Input that no cache served or stored.
        read_tokens: Input that a cache served.
        write_tokens: Input that was stored for what follows.
        hour_tokens: Input that was stored for an hour.
        output_tokens: The answer, with what the model thought.
    """

    base_tokens: int = 0
    """Input that no cache served or stored."""
    read_tokens: int = 0
    """Input that a cache served."""
    write_tokens: int = 0
    """Input that was stored for what follows."""
    hour_tokens: int = 0
    """Input that was stored for an hour."""
    output_tokens: int = 0
    """The answer, with what the model thought."""

    @property
    def input_tokens(self) -> int:
        """All of the input."""
        return self.base_tokens + self.read_tokens + self.write_tokens + self.hour_tokens


def dollars_of(parts: BilledParts, model: str, /) -> float | None:
    """Return the dollars of a request and its answer, by the maker's list.

    None: the price of the model is unknown.

    Errs: low where a provider charges for storing and does not report it, and where it charges for more than
    tokens; high where it gives a discount, as for batches.

    Args:
        parts: What was billed.
        model: Name of a model, as for `dollars_for`.

    Example:
        >>> parts = BilledParts(base_tokens=1_000, read_tokens=100_000, output_tokens=500)
        >>> dollars_of(parts, "claude-sonnet-4-5")
        0.0405
    """
    million, pricing = dollars_for(model), find_pricing(model)
    if million is None or pricing is None or (pricing.output is None and parts.output_tokens):
        return None
    tier = pricing.tier_of(parts.input_tokens)
    stored = parts.write_tokens * pricing.write + parts.hour_tokens * pricing_for("anthropic-1h").write
    sent = parts.base_tokens * pricing.base + parts.read_tokens * pricing.read + stored
    said = parts.output_tokens * (pricing.output or 0.0)
    price = sent * (1.0 if tier is None else tier.input) + said * (1.0 if tier is None else tier.output)
    return price * million / 1e6
