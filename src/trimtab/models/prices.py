"""What a provider charges where its prompt cache can serve a prefix: `CachePricing`, and the known rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole, is_number, unknown_name
from trimtab.errors import ConfigurationError


class Charge(NamedTuple):
    """The input tokens of one call, by their prices.

    Args:
        read_tokens: Served by the cache.
        write_tokens: Computed, and stored for the next call.
        base_tokens: Computed, and not stored: the request is shorter than what the provider stores.
        price: The total cost, in the unit of the prices.
    """

    read_tokens: int
    write_tokens: int
    base_tokens: int
    price: float


class PriceTier(NamedTuple):
    """Prices of a whole request that is above a number of tokens.

    Args:
        above_tokens: The largest input at lower prices.
        input: Factor on the prices of input, including read and written tokens.
        output: Factor on the price of output.
    """

    above_tokens: int
    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePricing:
    """Prices of input tokens that a prompt cache serves, stores or ignores.

    Prices are multiples of the base price of input; or, if `base` is in dollars per million tokens and so are
    the others, millionths of a dollar.

    Args:
        name: Its name in reports.
        read: A token that the cache serves.
        write: A token that is stored; the same as `base` if storing costs nothing extra.
        base: A token that is neither served nor stored.
        output: A token of an answer; None if unknown. Only the output of a summarizer is priced.
        min_prefix_tokens: Minimum length of a stored prefix.
        granularity_tokens: Served tokens are rounded down to a multiple of this.
        lifetime_seconds: Seconds without a call after which stored tokens expire; None: never.
        max_breakpoints: Number of stored places per request, if not every prefix is stored: the cache then
            serves only prefixes that ended an earlier request. None: any prefix of whole messages.
        tiers: Prices of larger requests, as `PriceTier` or (above_tokens, input, output); the last tier below
            the size of a request applies.
        source: Source of the prices.
        checked: Date on which the source was read, in ISO format.

    Raises:
        ConfigurationError: A price is below 0, or a value is not a number.

    Example:
        >>> pricing_for("openai").charge(10_000, reusable_tokens=8_000)
        Charge(read_tokens=7936, write_tokens=2064, base_tokens=0, price=2857.6)
    """

    name: str = "custom"
    read: float = 0.1
    write: float = 1.25
    base: float = 1.0
    output: float | None = None
    min_prefix_tokens: int = 1_024
    granularity_tokens: int = 1
    lifetime_seconds: float | None = 300
    max_breakpoints: int | None = None
    tiers: tuple[PriceTier, ...] = ()
    source: str = ""
    checked: str = ""

    def __post_init__(self) -> None:
        _check_amounts(read=self.read, write=self.write, base=self.base)
        known = {"output": self.output, "lifetime_seconds": self.lifetime_seconds}
        _check_amounts(**{name: value for name, value in known.items() if value is not None})
        put, most = object.__setattr__, self.max_breakpoints
        put(self, "min_prefix_tokens", check_whole("min_prefix_tokens", self.min_prefix_tokens, least=0))
        put(self, "granularity_tokens", check_whole("granularity_tokens", self.granularity_tokens, least=1))
        if most is not None:
            put(self, "max_breakpoints", check_whole("max_breakpoints", most, least=1))
        put(self, "tiers", _tiers(self.tiers))

    def tier_of(self, sent_tokens: int, /) -> PriceTier | None:
        """Return the price tier of a request; None if no tier is dearer.

        Args:
            sent_tokens: Tokens of its whole input.
        """
        passed = [tier for tier in self.tiers if sent_tokens > tier.above_tokens]
        return passed[-1] if passed else None

    def charge(self, sent_tokens: int, /, *, reusable_tokens: int = 0) -> Charge:
        """Price the input of one call.

        Args:
            sent_tokens: Tokens of the whole input.
            reusable_tokens: Tokens of the prefix that an earlier call stored, if it has not expired.
        """
        read = min(sent_tokens, reusable_tokens)
        read = 0 if read < self.min_prefix_tokens else read - read % self.granularity_tokens
        stores = sent_tokens >= self.min_prefix_tokens
        written = sent_tokens - read if stores else 0
        rest = 0 if stores else sent_tokens - read
        tier = self.tier_of(sent_tokens)
        price = read * self.read + written * self.write + rest * self.base
        return Charge(read, written, rest, price if tier is None else price * tier.input)

    def is_cold(self, idle_seconds: float | None, /) -> bool:
        """Tell whether stored tokens expire in this many seconds; None: unknown.

        Args:
            idle_seconds: Seconds since the last call; None: unknown.
        """
        return (
            idle_seconds is not None
            and self.lifetime_seconds is not None
            and idle_seconds > self.lifetime_seconds
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any, /) -> CachePricing:
        """Read plain data, as `to_dict` writes it; a missing key has its default.

        Args:
            data: A mapping.

        Raises:
            ConfigurationError: The data is not a mapping, or a value is invalid.
            UnknownNameError: A key is unknown.
        """
        if not isinstance(data, Mapping):
            raise ConfigurationError(f"a pricing must be a mapping, not {type(data).__name__}")
        known = [one.name for one in fields(cls)]
        for key in data:
            if key not in known:
                raise unknown_name(f"a pricing has no {key!r}; there are: {', '.join(known)}", key, known)
        for key in ("name", "source", "checked"):
            if not isinstance(data.get(key, ""), str):
                raise ConfigurationError(
                    f"{key} of a pricing must be a text, not {data[key]!r:.60}", argument=key
                )
        return cls(**data)


def _tiers(given: Any) -> tuple[PriceTier, ...]:
    """Read tiers, from the smallest on; in plain data each is a list."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigurationError(
            f"tiers must be a list of (above_tokens, input, output), not {given!r:.60}", argument="tiers"
        )
    made: list[PriceTier] = []
    for one in given:
        if isinstance(one, str) or not isinstance(one, Sequence) or len(one) != len(PriceTier._fields):
            raise ConfigurationError(f"each of tiers must be (above_tokens, input, output), not {one!r:.60}")
        tier = PriceTier(*one)
        check_whole("above_tokens of a tier", tier.above_tokens, least=1)
        _check_amounts(**{"input of a tier": tier.input, "output of a tier": tier.output})
        made.append(tier)
    return tuple(sorted(made))


def _check_amounts(**amounts: object) -> None:
    for name, value in amounts.items():
        if not is_number(value) or value < 0:
            raise ConfigurationError(
                f"{name} must be a number of at least 0, not {value!r:.60}", argument=name
            )


_CLAUDE = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
_GPT = "https://developers.openai.com/api/docs/guides/prompt-caching"
_GEMINI = "https://ai.google.dev/gemini-api/docs/caching"
_TABLES = (
    "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json (1.110.2) and"
    " https://github.com/pydantic/genai-prices (0.2.3), where the maker's own page was not at hand"
)
_CHECKED = "2026-11-27"

# Output of Claude costs five times its input in all rows of the price list.
_ANTHROPIC = CachePricing(name="anthropic", output=5.0, max_breakpoints=4, source=_CLAUDE, checked=_CHECKED)
# "typically cleared after 5 to 10 minutes of inactivity": the shorter is taken
_OPENAI = CachePricing(
    name="openai", write=1.0, output=8.0, granularity_tokens=128, source=_GPT, checked=_CHECKED
)
_GPT_4 = replace(_OPENAI, output=4.0, source=f"{_GPT}, prices: developers.openai.com/api/docs/pricing")
_LONG_GPT = (PriceTier(272_000, 2.0, 1.5),)
# From gpt-5.6 on a write is charged, a prefix matches at a breakpoint, and stays for 30 minutes
_GPT_5_6 = CachePricing(
    name="openai-gpt-5.6",
    output=5.0,
    lifetime_seconds=1_800,
    max_breakpoints=4,
    tiers=_LONG_GPT,
    source=_GPT,
    checked=_CHECKED,
)
# Implicit caching, which has no price for storing; how long it lasts is not said anywhere
_IMPLICIT = CachePricing(
    name="gemini",
    write=1.0,
    min_prefix_tokens=4_096,
    lifetime_seconds=None,
    source=f"{_GEMINI}, discount: docs.cloud.google.com, context cache overview",
    checked=_CHECKED,
)
_OTHERS = CachePricing(write=1.0, lifetime_seconds=None, source=_TABLES, checked=_CHECKED)
_KNOWN = (
    _ANTHROPIC,
    replace(_ANTHROPIC, name="anthropic-1h", write=2.0, lifetime_seconds=3_600),
    _OPENAI,
    replace(_GPT_4, name="openai-gpt-4.1", read=0.25),
    replace(_GPT_4, name="openai-gpt-4o", read=0.5),
    _GPT_5_6,
    _IMPLICIT,
    # "hits are counted in units of 64 tokens" (api-docs.deepseek.com/guides/kv_cache)
    replace(_OTHERS, name="deepseek", output=4.0, min_prefix_tokens=64, granularity_tokens=64),
    replace(_OTHERS, name="xai", read=0.25, output=3.0, tiers=(PriceTier(200_000, 2.0, 2.0),)),
    replace(_OTHERS, name="mistral", output=3.0),
    replace(_OTHERS, name="moonshot", output=5.0),
    replace(_OTHERS, name="zai", read=0.186, output=3.14),
    replace(_OTHERS, name="minimax", output=4.0),
    # marked prefixes, as Anthropic's (alibabacloud.com/help/en/model-studio/context-cache)
    replace(_OTHERS, name="qwen", output=3.0, write=1.25, lifetime_seconds=300, max_breakpoints=4),
    replace(_OTHERS, name="nova", read=0.25, output=4.0, lifetime_seconds=300, max_breakpoints=4),
)
_ROWS = {row.name: row for row in _KNOWN}


class _OfModels(NamedTuple):
    """The row of models, by how their names begin, and what is not as in it."""

    names: tuple[str, ...]
    row: str
    changes: Mapping[str, Any]


def _models(names: str, row: str, **changes: Any) -> _OfModels:
    """Say whose row it is; names stand with blanks between them, and with dashes for points."""
    return _OfModels(tuple(names.split()), row, changes)


def _tier(*tiers: tuple[int, float, float]) -> tuple[PriceTier, ...]:
    return tuple(PriceTier(*one) for one in tiers)


_LONG_GEMINI = _tier((200_000, 2.0, 1.5))
_NOT_CACHED = {"read": 1.0, "write": 1.0}
"""Of models for which the price list has no cached token."""

_MODELS = (
    _models("claude-haiku-5-5", "anthropic", tiers=_tier((100_000, 5.0, 5.0))),
    _models("claude-opus-5-5", "anthropic", read=0.05, min_prefix_tokens=512),
    _models("claude-sonnet-5-5", "anthropic", read=0.05),
    _models(
        "claude-fable-5-1 claude-fable-5-2 claude-mythos-5-1 claude-mythos-5-2",
        "anthropic",
        read=0.025,
        min_prefix_tokens=512,
    ),
    _models("claude-opus-4-5 claude-opus-4-6 claude-haiku-4-5", "anthropic", min_prefix_tokens=4_096),
    _models("claude-opus-4-7 claude-3-5-haiku", "anthropic", min_prefix_tokens=2_048),
    _models("claude-3-haiku", "anthropic", read=0.12, write=1.2, min_prefix_tokens=2_048),
    _models("claude-opus-5 claude-fable-5 claude-mythos-5", "anthropic", min_prefix_tokens=512),
    _models("claude-", "anthropic"),
    _models("gpt-5-pro gpt-5-2-pro", "openai", **_NOT_CACHED),
    _models("gpt-5-4-pro gpt-5-5-pro", "openai", **_NOT_CACHED, output=6.0, tiers=_LONG_GPT),
    _models("gpt-5-6-terra gpt-5-6-luna", "openai-gpt-5.6", output=6.0),
    _models("gpt-5-6-cyber gpt-daybreak-red daybreak-red", "openai-gpt-5.6", output=6.0, tiers=()),
    _models("gpt-6-cyber gpt-rosalind", "openai-gpt-5.6", tiers=()),
    _models("gpt-6-1 gpt-6-2", "openai-gpt-5.6", read=0.05),
    _models("gpt-5-6 gpt-5-7 gpt-5-8 gpt-5-9 gpt-6 gpt-7 gpt-daybreak-blue daybreak-blue", "openai-gpt-5.6"),
    _models("gpt-5-4-mini gpt-5-5-cyber", "openai", output=6.0),
    _models("gpt-5-4-nano", "openai", output=6.25),
    _models("gpt-5-4 gpt-5-5", "openai", output=6.0, tiers=_LONG_GPT),
    _models("gpt-5", "openai"),
    _models("gpt-4-turbo gpt-4-1106 gpt-4-0125 gpt-4-vision", "openai", **_NOT_CACHED, output=3.0),
    _models("gpt-4-1 o3-deep o4-mini codex-mini", "openai-gpt-4.1"),
    _models("computer-use", "openai-gpt-4.1", **_NOT_CACHED),
    _models("o1-pro o3-pro", "openai-gpt-4o", **_NOT_CACHED),
    _models("o1 o3-mini", "openai-gpt-4o"),
    _models("o3", "openai-gpt-4.1"),
    _models("gpt-4o-2024-05-13", "openai-gpt-4o", **_NOT_CACHED, output=3.0),
    _models("gpt-4o-audio gpt-4o-mini-audio gpt-audio", "openai-gpt-4o", **_NOT_CACHED),
    _models("gpt-4o chatgpt-4o", "openai-gpt-4o"),
    _models("gpt-4-5", "openai-gpt-4o", output=2.0),
    _models("gpt-4", "openai", **_NOT_CACHED, output=2.0),
    _models("gpt-3-5-turbo-16k gpt-3-5-turbo-0", "openai", **_NOT_CACHED, output=1.333),
    _models("gpt-3-5 gpt-35", "openai", **_NOT_CACHED, output=3.0),
    _models("gemini-4", "gemini", read=0.05, output=5.0),
    _models(
        "gemini-2-5-flash-preview-tts gemini-2-5-pro-preview-tts",
        "gemini",
        min_prefix_tokens=2_048,
        output=20.0,
    ),
    _models(
        "gemini-2-5-pro gemini-2-5-computer",
        "gemini",
        min_prefix_tokens=2_048,
        output=8.0,
        tiers=_LONG_GEMINI,
    ),
    _models("gemini-2-5-flash-lite", "gemini", min_prefix_tokens=2_048, output=4.0),
    _models("gemini-2-5", "gemini", min_prefix_tokens=2_048, output=8.33),
    _models(
        "gemini-3-pro-preview gemini-3-1-pro-preview gemini-pro-latest",
        "gemini",
        output=6.0,
        tiers=_LONG_GEMINI,
    ),
    _models("gemini-3-5-flash-lite gemini-flash-lite-latest", "gemini", output=8.33),
    _models("gemini-3-1-flash-tts", "gemini", output=20.0),
    _models("gemini-3-8-flash-lite-tts", "gemini", read=0.25, output=12.0),
    _models("gemini-3-8-flash-tts", "gemini", read=0.25, output=18.0),
    _models(
        "gemini-3-6-flash gemini-3-7-flash gemini-3-8-flash gemini-flash-latest gemini-robotics"
        " gemini-nano-banana",
        "gemini",
        output=5.0,
    ),
    _models("gemini-3 gemini-omni", "gemini", output=6.0),
    _models("gemini-2-0-flash", "gemini", read=0.25, output=4.0),
    _models("gemini-1-5-flash", "gemini", read=0.25, output=4.0, tiers=_tier((128_000, 2.0, 2.0))),
    _models("grok-4-5 grok-build-latest", "xai", read=0.15),
    _models("grok-4-3 grok-4-20", "xai", read=0.16, output=2.0),
    _models("grok-4-6 grok-4-7", "xai"),
    _models("grok-code-fast grok-build", "xai", read=0.2, output=2.0),
    _models("grok-4-fast grok-4-1", "xai", output=2.5, tiers=()),
    _models("grok-3-mini", "xai", output=1.667, tiers=()),
    _models("grok-3 grok-4", "xai", output=5.0, tiers=()),
    _models("deepseek-v4-pro", "deepseek", read=0.033, output=3.0),
    _models("deepseek-v4 deepseek-flash", "deepseek", read=0.02),
    _models("deepseek-v3-2", "deepseek", output=1.43),
    _models("deepseek-v3 deepseek-r1", "deepseek", read=0.255),
    _models("deepseek-chat deepseek-reasoner", "deepseek", output=1.5),
    _models("mistral-small magistral-small voxtral", "mistral", output=4.0),
    _models("mistral-medium-2312", "mistral"),
    _models("mistral-medium magistral-medium devstral-medium", "mistral", output=5.0),
    _models("ministral open-mistral-nemo pixtral-12b", "mistral", output=1.0),
    _models("mistral- open-mixtral mixtral- codestral- devstral- pixtral-", "mistral"),
    _models("kimi-k2-5", "moonshot", read=0.167),
    _models("kimi-k2-6", "moonshot", read=0.168, output=4.21),
    _models("kimi-k2-7", "moonshot", read=0.2, output=4.21),
    _models("kimi-k2", "moonshot", read=0.25, output=4.1),
    _models("kimi-", "moonshot"),
    _models("glm-4-5 glm-4-6 glm-4-7", "zai", read=0.183, output=3.67),
    _models("glm-5-1 glm-5-2 glm-5-3", "zai"),
    _models("glm-5", "zai", read=0.2, output=3.2),
    _models("minimax-m3", "minimax", read=0.2, tiers=_tier((512_000, 2.0, 2.0))),
    _models("minimax-m2", "minimax", write=1.25),
    _models("qwen-flash", "qwen", output=8.0, tiers=_tier((256_000, 5.0, 5.0))),
    _models("qwen-max qwen-turbo", "qwen", output=4.0),
    _models("qwen-plus", "qwen"),
    _models(
        "qwen3-coder-plus",
        "qwen",
        output=5.0,
        tiers=_tier((32_000, 1.8, 1.8), (128_000, 3.0, 3.0), (256_000, 6.0, 12.0)),
    ),
    _models(
        "qwen3-coder-flash",
        "qwen",
        output=5.0,
        tiers=_tier((32_000, 1.67, 1.67), (128_000, 2.67, 2.67), (256_000, 5.33, 6.4)),
    ),
    _models("qwen3-max", "qwen", output=5.0, tiers=_tier((32_000, 2.0, 2.0), (128_000, 2.5, 2.5))),
    _models("qwen3-5-plus", "qwen", output=6.0, tiers=_tier((256_000, 1.25, 1.25))),
    _models("qwen3-7-plus", "qwen", output=4.0, tiers=_tier((256_000, 3.0, 3.0))),
    _models("qwen3-7-max", "qwen", read=0.2),
    _models("qwen3-8-max", "qwen", read=0.125),
    _models("qwen3-8-flash", "qwen", read=0.107, write=1.333, output=3.13),
    _models("nova-premier", "nova", output=5.0),
    _models("nova-2", "nova", output=8.33),
    _models("nova-", "nova"),
)
"""Which row a model has: the first of which one name begins its own, behind what a gateway puts before it."""

_BEGINNING = re.compile(r"(?<![a-z0-9-])[a-z]")
"""Where a name may begin."""


DEFAULT_PRICING = "anthropic"
"""The default row: the prices under which a broken prefix costs most."""


def pricings() -> list[str]:
    """List the names of the rows."""
    return list(_ROWS)


def pricing_for(name: str, /) -> CachePricing:
    """Return the prices of a prompt cache by the name of a row or of a model.

    Args:
        name: Name of a row, or of a model.

    Raises:
        UnknownNameError: There is no such row, and the caching of that model is unknown; write your own
            `CachePricing`.

    Example:
        >>> pricing_for("claude-opus-4-5").min_prefix_tokens, pricing_for("anthropic-1h").write
        (4096, 2.0)
        >>> pricing_for("gpt-5.5").tiers[0].above_tokens
        272000
    """
    known = _ROWS.get(name) or find_pricing(name)
    if known is not None:
        return known
    there = f"{', '.join(_ROWS)}, and names of models with these prices"
    raise unknown_name(f"no pricing is called {name!r}; there are: {there}", name, _ROWS, argument="pricing")


@lru_cache(maxsize=256)
def find_pricing(model: str, /) -> CachePricing | None:
    """Return the prices of a model; None if nobody knows them."""
    row = row_of(model)
    return None if row is None else replace(_ROWS[row.row], name=model, **row.changes)


def row_of(model: str, /) -> _OfModels | None:
    """Return which row a model has, and what of it is the model's own; None if there is none."""
    lower = model.lower()
    dashed = lower.replace(".", "-")
    starts = [found.start() for found in _BEGINNING.finditer(lower)]
    return next((one for one in _MODELS if any(dashed.startswith(one.names, at) for at in starts)), None)


REASONS = {
    (
        "gpt-5.6-cyber",
        "tiers",
    ): "2026-11-27: it takes 272,000 tokens of input, so that none is above the tier",
    ("gpt-daybreak-red-latest", "tiers"): "2026-11-27: as gpt-5.6-cyber",
    (
        "claude-sonnet-4-5",
        "tiers",
    ): "2026-11-27: only of the beta with a million tokens, which is not its window",
}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
