"""What is registered is looked at once: a wrong fact would break a count far from here."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from trimtab.errors import ConfigurationError
from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts

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
    for name, (is_one, wanted) in _FACTS.items():
        value = getattr(facts, name)
        if not is_one(value):
            raise ConfigurationError(f"{facts.name}: {name} is {wanted}, not {value!r:.80}")


def _is_limit(value: Any) -> bool:
    return value is None or (type(value) is int and value > 0)


def _is_factor(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and isfinite(value) and value > 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_by_form(value: Any, kind: type) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], kind)
        for pair in value
    )


_LIMIT = (_is_limit, "a whole number of tokens above 0, or None")
_ENCODING = (_is_text_or_none, "the name of an encoding, or None")
_FACTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "window_tokens": _LIMIT,
    "output_tokens": _LIMIT,
    "text_factor": (_is_factor, "a number above 0"),
    "provider": (_is_text, "a text"),
    "format": (_is_text, "a text"),
    "encoding": _ENCODING,
    "near_encoding": _ENCODING,
    "exact": (_is_flag, "True or False"),
    "open_weights": (_is_flag, "True or False"),
    "framing": (lambda value: isinstance(value, Framing), "a Framing"),
    "media": (lambda value: isinstance(value, MediaRule), "a MediaRule"),
    "margin": (lambda value: value is None or isinstance(value, Margin), "a Margin, or None"),
    "framings": (lambda value: _is_by_form(value, Framing), "a tuple of (wire form, Framing)"),
    "margins": (lambda value: _is_by_form(value, Margin), "a tuple of (wire form, Margin)"),
}
