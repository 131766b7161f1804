"""What is registered is looked at once: a wrong fact would break a count far from here."""

from __future__ import annotations

from math import isfinite
from typing import Any

from trimtab.errors import ConfigurationError
from trimtab.models._facts import Framing, Margin, MediaRule, ModelFacts

__all__ = ["check_facts"]


def check_facts(facts: Any, /) -> None:
    """Refuse facts that cannot be.

    Raises:
        ConfigurationError: With the fact and what it has to be.
    """
    if not isinstance(facts, ModelFacts):
        raise ConfigurationError(f"a model is described by ModelFacts(...), not by {facts!r:.80}")
    if not isinstance(facts.name, str) or not facts.name:
        raise ConfigurationError(f"the name of a model is a text, not {facts.name!r:.80}")
    for name in ("window_tokens", "output_tokens"):
        limit = getattr(facts, name)
        if limit is not None and (type(limit) is not int or limit <= 0):
            raise _refused(facts, name, "a whole number of tokens above 0, or None")
    factor: Any = facts.text_factor
    is_number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
    if not is_number or not isfinite(factor) or factor <= 0:
        raise _refused(facts, "text_factor", "a number above 0")
    for name in ("provider", "format"):
        if not isinstance(getattr(facts, name), str):
            raise _refused(facts, name, "a text")
    for name in ("encoding", "near_encoding"):
        if not isinstance(getattr(facts, name), (str, type(None))):
            raise _refused(facts, name, "the name of an encoding, or None")
    for name, kind in (("framing", Framing), ("media", MediaRule)):
        if not isinstance(getattr(facts, name), kind):
            raise _refused(facts, name, f"a {kind.__name__}")
    if facts.margin is not None and not isinstance(facts.margin, Margin):
        raise _refused(facts, "margin", "a Margin, or None")
    for name, kind in (("framings", Framing), ("margins", Margin)):
        if not _is_by_form(getattr(facts, name), kind):
            raise _refused(facts, name, f"a tuple of (wire form, {kind.__name__})")


def _is_by_form(value: Any, kind: type) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], kind)
        for pair in value
    )


def _refused(facts: ModelFacts, name: str, wanted: str) -> ConfigurationError:
    return ConfigurationError(f"{facts.name}: {name} is {wanted}, not {getattr(facts, name)!r:.80}")
