"""What a provider charges where its prompt cache can serve a prefix: `CachePricing`, and the known rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole, is_number, unknown_name
from trimtab.errors import ConfigurationError


class Charge(NamedTuple):
    """The input tokens of one call, by the price each has.

    Args:
        read_tokens: Served by the cache.
        write_tokens: Computed, and stored for the next call.
        base_tokens: Computed, and not stored: the request is shorter than what the provider stores.
        price: What they cost together, in the unit of the prices.
    """

    read_tokens: int
    write_tokens: int
    base_tokens: int
    price: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePricing:
    """What input tokens cost by whether a prompt cache serves, stores or ignores them.

    Prices are multiples of the base price of input; or, with `base` in dollars for a million tokens and the
    others alike, millionths of dollars.

    Args:
        name: What reports call it.
        read: A token that the cache serves.
        write: A token that is stored; the same as `base` where storing is free.
        base: A token that is neither.
        output: A token of an answer; None where it is not known. Only what a summarizer writes is priced.
        min_prefix_tokens: Shorter prefixes are not stored.
        granularity_tokens: What is served is rounded down to a multiple of this.
        lifetime_seconds: After so long without a call what was stored is gone; None: it never is.
        max_breakpoints: How many places of a request are stored, where not every prefix is: then the cache
            serves only prefixes that ended a request before. None: any prefix of whole messages.
        source: Where this was read.
        checked: When, as an ISO date.

    Raises:
        ConfigurationError: A price is below 0, or a number is none.

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
    source: str = ""
    checked: str = ""

    def __post_init__(self) -> None:
        _check_amounts(read=self.read, write=self.write, base=self.base)
        known = {"output": self.output, "lifetime_seconds": self.lifetime_seconds}
        _check_amounts(**{name: value for name, value in known.items() if value is not None})
        check_whole("min_prefix_tokens", self.min_prefix_tokens, least=0)
        check_whole("granularity_tokens", self.granularity_tokens, least=1)
        if self.max_breakpoints is not None:
            check_whole("max_breakpoints", self.max_breakpoints, least=1)

    def charge(self, sent_tokens: int, /, *, reusable_tokens: int = 0) -> Charge:
        """Price the input of one call.

        Args:
            sent_tokens: The whole input.
            reusable_tokens: Of these, the prefix that an earlier call has stored, if it is still there.
        """
        read = min(sent_tokens, reusable_tokens)
        read = 0 if read < self.min_prefix_tokens else read - read % self.granularity_tokens
        stores = sent_tokens >= self.min_prefix_tokens
        written = sent_tokens - read if stores else 0
        rest = 0 if stores else sent_tokens - read
        return Charge(read, written, rest, read * self.read + written * self.write + rest * self.base)

    def is_cold(self, idle_seconds: float | None, /) -> bool:
        """Tell whether nothing is left after so long without a call; None: not known.

        Args:
            idle_seconds: Seconds since the last call; None: not known.
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
        """Read plain data, as `to_dict` writes it; what is left out is as by default.

        Args:
            data: A mapping.

        Raises:
            ConfigurationError: It is no mapping, or a value is not what may stand there.
            UnknownNameError: A key nobody knows.
        """
        if not isinstance(data, Mapping):
            raise ConfigurationError(f"a pricing is a mapping, not {type(data).__name__}")
        known = [one.name for one in fields(cls)]
        for key in data:
            if key not in known:
                raise unknown_name(f"a pricing has no {key!r}; there are: {', '.join(known)}", key, known)
        for key in ("name", "source", "checked"):
            if not isinstance(data.get(key, ""), str):
                raise ConfigurationError(f"{key} of a pricing is a text, not {data[key]!r:.60}")
        return cls(**data)


def _check_amounts(**amounts: object) -> None:
    for name, value in amounts.items():
        if not is_number(value) or value < 0:
            raise ConfigurationError(f"{name} is a number from 0 on, not {value!r:.60}")


_CLAUDE = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
_GPT = "https://developers.openai.com/api/docs/guides/prompt-caching"
_GEMINI = "https://ai.google.dev/gemini-api/docs/caching"
_CHECKED = "2026-11-23"

# Output of Claude costs five times its input in all rows of the price list, of gpt-5 eight times.
_ANTHROPIC = CachePricing(name="anthropic", output=5.0, max_breakpoints=4, source=_CLAUDE, checked=_CHECKED)
# "typically cleared after 5 to 10 minutes of inactivity": the shorter is taken
_OPENAI = CachePricing(
    name="openai", write=1.0, output=8.0, granularity_tokens=128, source=_GPT, checked=_CHECKED
)
_GPT_4 = replace(_OPENAI, output=None, source=f"{_GPT}, prices: developers.openai.com/api/docs/pricing")
# From gpt-5.6 on a write is charged, a prefix matches at a breakpoint, and stays for 30 minutes
_GPT_5_6 = CachePricing(
    name="openai-gpt-5.6", lifetime_seconds=1_800, max_breakpoints=4, source=_GPT, checked=_CHECKED
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
_KNOWN = (
    _ANTHROPIC,
    replace(_ANTHROPIC, name="anthropic-1h", write=2.0, lifetime_seconds=3_600),
    _OPENAI,
    replace(_GPT_4, name="openai-gpt-4.1", read=0.25),
    replace(_GPT_4, name="openai-gpt-4o", read=0.5),
    _GPT_5_6,
    _IMPLICIT,
)
_ROWS = {row.name: row for row in _KNOWN}

_MODELS: tuple[tuple[re.Pattern[str], str, int | None], ...] = (
    (re.compile(r"(?<![a-z0-9-])claude-(?:opus-4[.-][56]|haiku-4[.-]5)"), "anthropic", 4_096),
    (re.compile(r"(?<![a-z0-9-])claude-(?:opus-4[.-]7|3-(?:5-)?haiku)"), "anthropic", 2_048),
    (re.compile(r"(?<![a-z0-9-])claude-(?:opus|fable|mythos)-5"), "anthropic", 512),
    (re.compile(r"(?<![a-z0-9-])claude-"), "anthropic", None),
    (re.compile(r"(?<![a-z0-9-])gpt-(?:5\.[6-9]|[6-9])"), "openai-gpt-5.6", None),
    (re.compile(r"(?<![a-z0-9-])gpt-5"), "openai", None),
    (re.compile(r"(?<![a-z0-9-])gpt-4\.1"), "openai-gpt-4.1", None),
    (re.compile(r"(?<![a-z0-9-])gpt-4o"), "openai-gpt-4o", None),
    (re.compile(r"(?<![a-z0-9-])gemini-2\.5"), "gemini", 2_048),
    (re.compile(r"(?<![a-z0-9-])gemini-3"), "gemini", None),
)
"""Which row a model has, by how its name begins, and its own shortest prefix."""


DEFAULT_PRICING = "anthropic"
"""The row that is taken where nobody names one: the prices under which a broken prefix costs most."""


def pricings() -> list[str]:
    """List the names of the rows there are."""
    return list(_ROWS)


def pricing_for(name: str, /) -> CachePricing:
    """Return what is known of a prompt cache, by the name of a row or of a model.

    Args:
        name: Name of a row, or of a model.

    Raises:
        UnknownNameError: There is no such row, and nobody knows how that model is cached; write a
            `CachePricing` of your own.

    Example:
        >>> pricing_for("claude-opus-4-5").min_prefix_tokens, pricing_for("anthropic-1h").write
        (4096, 2.0)
    """
    known = _ROWS.get(name)
    if known is not None:
        return known
    for pattern, row, least in _MODELS:
        if pattern.search(name.lower()):
            found = replace(_ROWS[row], name=name)
            return found if least is None else replace(found, min_prefix_tokens=least)
    there = f"{', '.join(_ROWS)}, and names of models that these are of"
    raise unknown_name(f"no pricing is called {name!r}; there are: {there}", name, _ROWS)
