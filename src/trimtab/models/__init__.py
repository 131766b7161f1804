"""What is known of models by name: windows, encodings, and what a request is charged for.

The only place with facts about models; each row says where they come from and when they were
looked up. What is not known is None, and nothing is guessed from how a name looks.
"""

from __future__ import annotations

import threading
from dataclasses import replace as changed
from functools import cache

from trimtab._names import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.models import _anthropic, _google, _openai, _others
from trimtab.models._checks import check_facts
from trimtab.models._facts import Framing, Margin, MediaRule, ModelFacts, ToolsStyle
from trimtab.models._spellings import spellings

__all__ = [
    "Framing",
    "Margin",
    "MediaRule",
    "ModelFacts",
    "ToolsStyle",
    "facts_for",
    "model_names",
    "register_model",
]

_TABLES = (_openai, _anthropic, _google, _others)
_ROWS = tuple(row for table in _TABLES for row in table.ROWS)
_ALIASES = {name: model for table in _TABLES for name, model in table.ALIASES.items()}
"""Other names of the same model: old dated ones, and those of gateways."""

_FACTS: dict[str, ModelFacts] = {row.name: row for row in _ROWS}
_LOCK = threading.Lock()


def model_names() -> list[str]:
    """List the known models, sorted; their dated and prefixed names are known too."""
    return sorted(_FACTS)


def facts_for(model: str, /) -> ModelFacts:
    """Look a model up by its name, dated or with a provider's prefix or not.

    Raises:
        ConfigurationError: It is no name.
        UnknownNameError: Nobody registered it; `.near` has known names spelled like it.

    Example:
        >>> facts_for("openai/gpt-4o-2024-08-06").window_tokens
        128000
    """
    if not isinstance(model, str):
        raise ConfigurationError(f"model is the name of a model, not {model!r:.80}")
    for name, is_own in spellings(model):
        found = _FACTS.get(name) or _FACTS.get(_ALIASES.get(name, name))  # a name that was registered is it
        if found is not None:
            return found if is_own else _without_limits(found)
    near = near_names(model, [*_FACTS, *_ALIASES], meaning=lambda name: _ALIASES.get(name, name))
    raise UnknownNameError(
        f"unknown model {model!r}: pass counter=EstimateCounter() and a budget, or describe it once with"
        f" register_model(ModelFacts(name={model!r}, window_tokens=..., encoding='o200k_base'))"
        f"{in_words(near)}",
        name=model,
        near=near,
    )


def register_model(facts: ModelFacts, /, *, replace: bool = False) -> None:
    """Make a model known by its name, for this process.

    Raises:
        ConfigurationError: The name is taken and `replace` is not given, or a fact cannot be one.
    """
    check_facts(facts)
    with _LOCK:
        if (facts.name in _FACTS or facts.name in _ALIASES) and not replace:
            other = _ALIASES.get(facts.name)
            known = f" as {other!r}" if other and facts.name not in _FACTS else ""
            raise ConfigurationError(
                f"model {facts.name!r} is known already{known}; pass replace=True to change it"
            )
        _FACTS[facts.name] = facts


@cache
def _without_limits(facts: ModelFacts) -> ModelFacts:
    return changed(facts, window_tokens=None, output_tokens=None)
