"""What is known of models by name: windows, encodings, and what a request is charged for.

The only place with facts about models; each row says where they come from and when they were
looked up. What is not known is None, and nothing is guessed from how a name looks.
"""

from __future__ import annotations

import re
import threading

from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.models import _anthropic, _google, _openai, _others
from trimtab.models._checks import check_facts
from trimtab.models._facts import Framing, Margin, MediaRule, ModelFacts, ToolsStyle

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

_PREFIXES = frozenset(
    (
        "openai",
        "azure",
        "azure_ai",
        "openrouter",
        "openai-chat",
        "openai-responses",
        "github",
        "anthropic",
        "google",
        "google-gla",
        "google-vertex",
        "gemini",
        "vertex_ai",
        "mistral",
        "mistralai",
        "groq",
        "bedrock",
        "models",
    )
)
"""Words that gateways and frameworks put before a model's name, with "/" or ":"."""

_VERTEX = ("google-vertex", "vertex_ai")
"""Prefixes of models that Vertex serves, which bills some of them differently."""

_DATED = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|20\d{6})\Z")

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
    for name in _spellings(model):
        found = _FACTS.get(name) or _FACTS.get(_ALIASES.get(name, name))  # a name that was registered is it
        if found is not None:
            return found
    from difflib import get_close_matches  # not above: only a wrong name needs it

    near = tuple(get_close_matches(model, [*_FACTS, *_ALIASES], n=3, cutoff=0.6))
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UnknownNameError(
        f"unknown model {model!r}{meant}: pass counter=EstimateCounter() and a budget, or describe it"
        f" once with register_model(ModelFacts(name={model!r}, window_tokens=..., encoding='o200k_base'))",
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


def _spellings(model: str) -> list[str]:
    """List a name as given, without known prefixes, and without its date, in that order."""
    names = [model]
    head, mark, tail = _split(model)
    while mark and (head in _PREFIXES or head == "ft"):
        if head in _VERTEX:
            names.append("vertex/" + tail)
        # a fine-tuned model is "ft:base:organisation:suffix:id"
        names.append(tail.split(":")[0] if head == "ft" else tail)
        head, mark, tail = _split(names[-1])
    return names + [_DATED.sub("", name) for name in names]


def _split(name: str) -> tuple[str, str, str]:
    marks = [mark for mark in "/:" if mark in name]
    return name.partition(min(marks, key=name.index)) if marks else (name, "", "")
