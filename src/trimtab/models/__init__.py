"""Facts about models by name: windows, encodings, and charges of a request.

This is the only place with facts about models; each row gives its source and the date on which
that was read. An unknown fact is None.
An unknown name that shows its maker (`claude-…`) is counted as that maker's costliest known model, never
exactly, and its limits are unknown. Register your own rows with `register_model`, from a file with
`register_models`, or from the file named in the environment variable `TRIMTAB_MODELS`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.lazy import later
from trimtab.errors import ConfigurationError, Hint, UnknownNameError, phrase
from trimtab.models.facts import (
    Framing,
    Margin,
    MediaRule,
    ModelFacts,
    SchemaStyle,
    ToolsStyle,
    Unnamed,
    check_facts,
)

if TYPE_CHECKING:
    from trimtab.models.dollars import BilledParts, dollars_for, dollars_of
    from trimtab.models.prices import (
        DEFAULT_PRICING,
        CachePricing,
        Charge,
        PriceTier,
        pricing_for,
        pricings,
    )
else:
    # What neither a fit nor a count asks for.
    __getattr__ = later(
        globals(),
        {
            **dict.fromkeys(("BilledParts", "dollars_for", "dollars_of"), "trimtab.models.dollars"),
            **dict.fromkeys(
                ("DEFAULT_PRICING", "CachePricing", "Charge", "PriceTier", "pricing_for", "pricings"),
                "trimtab.models.prices",
            ),
        },
    )

__all__ = [
    "DEFAULT_PRICING",
    "BilledParts",
    "CachePricing",
    "Charge",
    "Framing",
    "Margin",
    "MediaRule",
    "ModelFacts",
    "PriceTier",
    "SchemaStyle",
    "ToolsStyle",
    "dollars_for",
    "dollars_of",
    "facts_for",
    "model_names",
    "pricing_for",
    "pricings",
    "register_model",
    "register_models",
]

_MAKERS = frozenset(
    {
        *("openai", "openai-chat", "openai-responses", "anthropic", "google", "google-gla", "gemini"),
        *("mistral", "mistralai", "deepseek", "deepseek-ai", "zai", "z-ai", "zai-org", "xai", "x-ai"),
        *("meta", "meta_llama", "meta-llama", "qwen", "alibaba", "dashscope", "moonshot"),
        *("moonshotai", "minimax", "minimaxai", "cohere", "cohere_chat", "amazon", "amazon-nova"),
        *("amazon_nova", "models", "nvidia", "microsoft", "ibm", "ibm-granite", "writer", "ai21", "ai21labs"),
    }
)
_HOSTS = frozenset(
    {
        *("azure", "azure_ai", "azure-ai", "openrouter", "github", "github_copilot", "google-vertex"),
        *("vertex_ai", "groq", "bedrock", "bedrock_converse", "bedrock_mantle", "converse", "invoke"),
        *("cerebras", "together", "together_ai", "fireworks", "fireworks_ai", "accounts"),
        *("huggingface", "ollama", "ollama_chat", "deepinfra", "novita", "nebius", "hyperbolic"),
        *("sambanova", "nvidia_nim", "databricks", "snowflake", "cloudflare", "@cf", "vercel"),
        *("vercel_ai_gateway", "baseten", "replicate", "watsonx", "hosted_vllm", "vllm", "lm_studio"),
        *("perplexity", "chatgpt"),
    }
)
"""Who serves models of others, perhaps with a smaller window."""

_PLACE = re.compile(
    r"(?:us|eu|apac|jp|au|global|global-standard|data-zone|[a-z]{2}(?:-gov)?-[a-z]+-\d|\d-month-commitment)\Z"
)
"""Where LiteLLM says that a host runs a model: "azure/eu/gpt-4o", "bedrock/us-west-2/…"."""

_PREFIXES = _MAKERS | _HOSTS
"""Words that gateways and frameworks put before a model's name, with "/" or ":"."""


def _is_prefix(head: str) -> bool:
    return head in _PREFIXES or _PLACE.match(head) is not None


_VERTEX = ("google-vertex", "vertex_ai")
"""Prefixes of models that Vertex serves, which bills some of them differently."""

_DATED = re.compile(r"(?:[-@](\d{4}-\d{2}-\d{2}|20\d{6})|@(?:default|latest))\Z")
"""A date, or Vertex's word for the newest."""

_MILLION = re.compile(r"(?::1m|\[1m\])\Z")
"""How coding agents ask for a window of a million tokens, where a model's usual one is smaller."""

_NUMBERED = re.compile(r"\A(gemini-.+)-\d{3}\Z")
"""Stable versions of Gemini models. Source: ai.google.dev/gemini-api/docs/models (2026-11-22)."""

_REGION = re.compile(r"\A(?:us|us-gov|eu|apac|jp|au|in|ca|global)\.(?=[a-z0-9]+\.)")
_BEDROCK = re.compile(
    r"\A(?:anthropic|openai|mistral|deepseek|zai|meta|amazon|cohere|qwen|moonshot|moonshotai|xai|minimax|google"
    r"|nvidia|writer|ai21)"
    r"\.(.+?)(?:-v?\d+:\d+|-v\d+)?\Z"
)
"""Bedrock's ids: an inference profile's region, the maker, the model, its version. Source: the Bedrock
user guide, "Supported Regions and models for inference profiles" (2026-11-22)."""

_ARN = re.compile(
    r"(?:\A|(?<=[/:]))arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d*:(?:foundation-model|inference-profile)/"
)
"""What stands before such an id in Amazon's resource names; those of profiles of one's own hold none. Source:
the Service Authorization Reference, "Resource types defined by Amazon Bedrock" (2026-11-22)."""

_ENDPOINT = re.compile(r"(?:\A|(?<=[/:]))databricks-(?=[a-z])")
"""What Databricks' own endpoints begin with. Source: docs.databricks.com, "Supported foundation models on
Mosaic AI Model Serving" (2026-11-22)."""

_DASHED = re.compile(r"(?<=[a-z-]\d)-(?=\d(?:-|\Z))")
"""A version that is written with a dash where the maker has a point: "gemini-2-5-pro"."""

_RESOURCE = re.compile(r"\A(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/models/([^/]+)\Z")
"""Vertex's resource names."""

_ROUTED = re.compile(r":(nitro|floor|exacto|online)\Z")
"""OpenRouter's routing variants, whose facts are the model's own. Source: openrouter.ai/docs,
"Model Variants" (2026-11-22)."""

_LISTED = re.compile(r":(free|batch|extended|thinking)\Z")
"""Its catalog variants (same page), whose limits may differ from the model's."""


def spellings(model: str, /) -> list[tuple[str, bool]]:
    """List a name as given, without known prefixes, and without its date or version, in that order.

    Behind these the same in lower case, then with a point in the version where the name has a dash.

    Returns:
        Names, each with whether the limits of that model are those of the one that was named.
    """
    found: list[tuple[str, bool]] = []
    for written in dict.fromkeys((model, model.lower(), _bare(_MILLION.sub("", model.lower())))):
        found += [(name, True) for name in _bare_names(_ROUTED.sub("", written), first=written)]
        if _LISTED.search(written):
            found += [(name, False) for name in _bare_names(_LISTED.sub("", written))]
    return [*found, *((_DASHED.sub(".", name), is_own) for name, is_own in found if _DASHED.search(name))]


def _bare(model: str) -> str:
    """Return a name in lower case, without how resources of Bedrock and endpoints of Databricks begin."""
    return _ENDPOINT.sub("", _ARN.sub("", model.lower()))


def is_hosted(model: str, /) -> bool:
    """Tell whether a name says that another than the maker serves the model."""
    model, given = _bare(model), model.lower()
    if _ENDPOINT.search(given) or _BEDROCK.match(_REGION.sub("", model)):
        return True
    head, mark, tail = _split(model)
    while mark and _is_prefix(head):
        if head in _HOSTS or _BEDROCK.match(_REGION.sub("", tail)):
            return True
        head, mark, tail = _split(tail)
    return False


def _bare_names(model: str, *, first: str | None = None) -> list[str]:
    names = [model if first is None else first]
    if model not in names:
        names.append(model)
    resource = _RESOURCE.match(model)
    if resource:
        names += ["vertex/" + resource[1], resource[1]]
    head, mark, tail = _split(model)
    while mark and (_is_prefix(head.lower()) or head == "ft"):
        if head in _VERTEX:
            names.append("vertex/" + tail)
        # a fine-tuned model is "ft:base:organisation:suffix:id"
        names.append(tail.split(":")[0] if head == "ft" else tail)
        head, mark, tail = _split(names[-1])
    names += [bare for name in names if (bare := _REGION.sub("", name)) not in names]
    names += [found[1] for found in map(_BEDROCK.match, names) if found]
    names += [_DATED.sub("", name) for name in names]
    return names + [found[1] for found in map(_NUMBERED.match, names) if found]


def _split(name: str) -> tuple[str, str, str]:
    marks = [mark for mark in "/:" if mark in name]
    return name.partition(min(marks, key=name.index)) if marks else (name, "", "")


_LOCK = threading.RLock()


class _Tables(NamedTuple):
    """What is known of models, by name."""

    own: Mapping[str, ModelFacts]
    """The rows that trimtab brings."""
    facts: dict[str, ModelFacts]
    """These, and what was registered."""
    aliases: dict[str, str]
    """Other names of the same model: old dated ones, and those of gateways."""
    unnamed: Sequence[Unnamed]
    """What names that only tell their maker are counted as."""


_LOADED: list[_Tables] = []
"""All of it, once it was asked for."""


def _tables() -> _Tables:
    """Give all rows; they are loaded with the first name that is looked up."""
    if not _LOADED:
        with _LOCK:
            if not _LOADED:
                _LOADED.append(_load())
    return _LOADED[0]


def _load() -> _Tables:
    # Not above: they take longer than the rest of this package, and a fit by an estimate needs none of them.
    from trimtab.models import anthropic, google, open_weights, openai, others

    tables = (openai, anthropic, google, others, open_weights)
    own = {row.name: row for table in tables for row in table.ROWS}
    return _Tables(
        own=own,
        facts=dict(own),
        aliases={name: model for table in tables for name, model in table.ALIASES.items()},
        unnamed=tuple(unnamed for table in tables for unnamed in table.UNNAMED),
    )


_VARIABLE = "TRIMTAB_MODELS"
_READ: list[str] = []
"""The file of the environment once it was read; "" if there is none."""


def model_names() -> list[str]:
    """List the known models, sorted; names with a date or prefix are known too."""
    if not _READ:
        _read_environment()
    return sorted(_tables().facts)


def facts_for(model: str, /) -> ModelFacts:
    """Look up a model by name, with or without a date or a provider's prefix.

    An unknown name that shows its maker gets the facts of that maker's costliest known model, without limits
    and not exact; `counted_as` names that model.

    Args:
        model: Name of the model, such as "gpt-4o".

    Raises:
        ConfigurationError: The argument is not a name, or the file named by `TRIMTAB_MODELS` cannot be read.
        UnknownNameError: The name is not registered and does not show its maker; `.near` lists known names
            with a similar spelling.

    Example:
        >>> facts_for("openai/gpt-4o-2024-08-06").window_tokens
        128000
        >>> facts_for("claude-opus-77").counted_as
        'claude-opus-4-7'
    """
    found = find_facts(model)
    if found is not None:
        return found
    near = near_models(model)
    raise UnknownNameError(
        phrase(
            f"unknown model {model!r}: pass ",
            Hint("counter", "counter=EstimateCounter()", "estimate"),
            " and a budget, or register it once with ",
            Hint(
                "facts",
                f"register_model(ModelFacts(name={model!r}, window_tokens=..., encoding='o200k_base'))",
            ),
            in_words(near),
        ),
        name=model,
        near=near,
        argument="model",
    )


def find_facts(model: str, /) -> ModelFacts | None:
    """Look a model up as `facts_for` does; None if nobody knows it, without a search for names like it.

    Raises:
        ConfigurationError: The argument is not a name, or the file named by `TRIMTAB_MODELS` cannot be read.
    """
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be the name of a model, not {model!r:.80}", argument="model")
    if not _READ:
        _read_environment()
    return _tables().facts.get(model) or _find(model) or _by_maker(model)


def model_in(body: object, /) -> str | None:
    """Return the model a request body names; None if it names none, or is no body."""
    held = body if isinstance(body, Mapping) else {}
    named = held.get("model", held.get("modelId"))
    return named if isinstance(named, str) else None


def known_model_in(body: object, /) -> str | None:
    """Return the model a request body names, if it is known."""
    named = model_in(body)
    return None if named is None or find_facts(named) is None else named


def charge_of(facts: ModelFacts, form: str, /) -> object:
    """Return what decides the count of a text in a wire form: equal for models that are charged alike."""
    return facts.encoding, dict(facts.framings).get(form, facts.framing)


def exact_features_for(facts: ModelFacts, /) -> dict[str, frozenset[str]] | None:
    """List by wire form the features of requests that were billed as counted; see `trimtab.models.features`.

    Returns:
        None for a model that is not trimtab's own, or is charged otherwise than it is there: no bill of it
        was compared.
    """
    own = _tables().own.get(facts.name)
    if own is None or (own.encoding, own.framing, own.framings) != (
        facts.encoding,
        facts.framing,
        facts.framings,
    ):
        return None
    return exact_table().get(facts.name, {})


@cache
def exact_table() -> dict[str, dict[str, frozenset[str]]]:
    """Read by model and wire form the features whose bills came out exact."""
    from trimtab.models.features import EXACT  # not above: who asks for no exact model needs none of it

    found: dict[str, dict[str, frozenset[str]]] = {}
    for form, models, features in EXACT:
        listed = frozenset(feature.strip() for feature in features.split("|")) - {""}
        for model in models.split():
            found.setdefault(model, {})[form] = listed
    return found


def near_models(model: str, /) -> tuple[str, ...]:
    """List known names spelled like one that nobody knows, best first."""
    aliases = _tables().aliases
    return near_names(model, [*_tables().facts, *aliases], meaning=lambda name: aliases.get(name, name))


def register_model(facts: ModelFacts, /, *, replace: bool = False) -> None:
    """Register a model by its name, for this process.

    Args:
        facts: The facts about it, with its `name`.
        replace: Whether to replace a model of that name; otherwise the name must be new.

    Raises:
        ConfigurationError: The name is taken and `replace` is not given, or a fact is invalid.
    """
    check_facts(facts)
    rows, aliases = _tables().facts, _tables().aliases
    with _LOCK:
        if (facts.name in rows or facts.name in aliases) and not replace:
            other = aliases.get(facts.name)
            known = f" as {other!r}" if other and facts.name not in rows else ""
            raise ConfigurationError(
                f"model {facts.name!r} exists already{known}; pass replace=True to replace it"
            )
        rows[facts.name] = facts
        _by_maker.cache_clear()  # it may be a maker's row, or now be known


def register_models(path: str | os.PathLike[str], /) -> list[str]:
    """Register the models of a TOML or JSON file, for this process; all or none.

    A row with a known name changes its facts and keeps the others; a row with a new name starts from the
    model under `like`, or from nothing. See docs/counting.md for the shape of the file.

    Args:
        path: Path that ends in `.toml` or `.json`.

    Returns:
        The names, in the order of the file.

    Raises:
        ConfigurationError: The file cannot be read, or has another shape; the error names the row and the
            key.
    """
    from trimtab.models.files import read_rows  # not above: few have such a file

    with _LOCK:
        rows, aliases = read_rows(path, known=facts_for)
        _tables().facts.update((row.name, row) for row in rows)
        _tables().aliases.update(aliases)
        _by_maker.cache_clear()
        return [row.name for row in rows]


def _read_environment() -> None:
    """Read the file the environment names, once for the process."""
    with _LOCK:
        if _READ:
            return
        path = os.environ.get(_VARIABLE, "")
        _READ.append(path)  # before it is read: its rows are looked up here
        if not path:
            return
        try:
            register_models(path)
        except ConfigurationError as error:
            _READ.clear()
            raise ConfigurationError(f"{_VARIABLE}: {error}") from error


def _find(model: str) -> ModelFacts | None:
    from trimtab.models.open_weights import family_names

    spelled = spellings(model)
    for name, is_own in spelled:
        found = _row(name)  # a name that was registered is it
        if found is not None:
            return _as_served(found, model, is_own=is_own)
    for name, is_own in spelled:
        for family in family_names(name):
            found = _row(family)
            if found is not None and found.open_weights:
                return _as_served(found, model, is_own=is_own)
    return None


def _row(name: str) -> ModelFacts | None:
    tables = _tables()
    return tables.facts.get(name) or tables.facts.get(tables.aliases.get(name, name))


def _as_served(found: ModelFacts, model: str, *, is_own: bool) -> ModelFacts:
    if found.open_weights and is_hosted(model):
        return _from_host(found)
    if _MILLION.search(model.lower()):
        return _of_a_million(found)
    return found if is_own else _without_limits(found)


@lru_cache(maxsize=256)
def _by_maker(model: str) -> ModelFacts | None:
    """Make the facts of a name that only tells its maker; None if it does not even that."""
    for name, _ in spellings(model):
        for unnamed in _tables().unnamed:
            if unnamed.name.match(name):
                row = _tables().facts[unnamed.costliest]
                return changed(
                    _without_limits(row),
                    name=model,
                    exact=False,
                    margin=unnamed.margin,
                    margins=(),
                    counted_as=row.name,
                    source="",
                    checked="",
                )
    return None


@cache
def _from_host(facts: ModelFacts) -> ModelFacts:
    """Give an open model as others than its maker serve it: in Chat's form, with limits of their own."""
    framing = changed(facts.framing, tools_dropped_by_none=False)  # seen at their makers alone
    return changed(_without_limits(facts), format="openai_chat", framing=framing)


@cache
def _of_a_million(facts: ModelFacts) -> ModelFacts:
    """Give a model with the window that was asked for by its name."""
    return changed(facts, window_tokens=max(1_000_000, facts.window_tokens or 0))


@cache
def _without_limits(facts: ModelFacts) -> ModelFacts:
    return changed(facts, window_tokens=None, input_tokens=None, output_tokens=None)
