"""How gateways, clouds and frameworks spell the names of models."""

from __future__ import annotations

import re

__all__ = ["is_hosted", "spellings"]

_MAKERS = frozenset(
    (
        "openai",
        "openai-chat",
        "openai-responses",
        "anthropic",
        "google",
        "google-gla",
        "gemini",
        "mistral",
        "mistralai",
        "deepseek",
        "deepseek-ai",
        "zai",
        "z-ai",
        "zai-org",
        "xai",
        "x-ai",
        "meta",
        "meta_llama",
        "meta-llama",
        "qwen",
        "alibaba",
        "dashscope",
        "moonshot",
        "moonshotai",
        "minimax",
        "minimaxai",
        "cohere",
        "cohere_chat",
        "amazon",
        "amazon-nova",
        "amazon_nova",
        "models",
    )
)
_HOSTS = frozenset(
    (
        "azure",
        "azure_ai",
        "azure-ai",
        "openrouter",
        "github",
        "github_copilot",
        "google-vertex",
        "vertex_ai",
        "groq",
        "bedrock",
        "bedrock_converse",
        "bedrock_mantle",
        "converse",
        "invoke",
        "cerebras",
        "together",
        "together_ai",
        "fireworks",
        "fireworks_ai",
        "accounts",
        "huggingface",
        "ollama",
        "ollama_chat",
        "deepinfra",
        "novita",
        "nebius",
        "hyperbolic",
        "sambanova",
        "nvidia_nim",
        "databricks",
        "snowflake",
        "cloudflare",
        "@cf",
        "vercel",
        "vercel_ai_gateway",
        "baseten",
        "replicate",
        "watsonx",
        "hosted_vllm",
        "vllm",
        "lm_studio",
    )
)
"""Who serves models of others, perhaps with a smaller window."""
_PREFIXES = _MAKERS | _HOSTS
"""Words that gateways and frameworks put before a model's name, with "/" or ":"."""

_VERTEX = ("google-vertex", "vertex_ai")
"""Prefixes of models that Vertex serves, which bills some of them differently."""

_DATED = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|20\d{6})\Z")

_NUMBERED = re.compile(r"\A(gemini-.+)-\d{3}\Z")
"""Stable versions of Gemini models. Source: ai.google.dev/gemini-api/docs/models (2026-11-22)."""

_REGION = re.compile(r"\A(?:us|us-gov|eu|apac|jp|au|in|ca|global)\.(?=[a-z0-9]+\.)")
_BEDROCK = re.compile(
    r"\A(?:anthropic|openai|mistral|deepseek|zai|meta|amazon|cohere|qwen|moonshot|moonshotai|xai|minimax|google)"
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
    for written in dict.fromkeys((model, model.lower(), _bare(model))):
        found += [(name, True) for name in _unprefixed(_ROUTED.sub("", written), first=written)]
        if _LISTED.search(written):
            found += [(name, False) for name in _unprefixed(_LISTED.sub("", written))]
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
    while mark and head in _PREFIXES:
        if head in _HOSTS or _BEDROCK.match(_REGION.sub("", tail)):
            return True
        head, mark, tail = _split(tail)
    return False


def _unprefixed(model: str, *, first: str | None = None) -> list[str]:
    names = [model if first is None else first]
    if model not in names:
        names.append(model)
    resource = _RESOURCE.match(model)
    if resource:
        names += ["vertex/" + resource[1], resource[1]]
    head, mark, tail = _split(model)
    while mark and (head.lower() in _PREFIXES or head == "ft"):
        if head in _VERTEX:
            names.append("vertex/" + tail)
        # a fine-tuned model is "ft:base:organisation:suffix:id"
        names.append(tail.split(":")[0] if head == "ft" else tail)
        head, mark, tail = _split(names[-1])
    names += [bare for bare in map(_without_region, names) if bare not in names]
    names += [found[1] for found in map(_BEDROCK.match, names) if found]
    names += [_DATED.sub("", name) for name in names]
    return names + [found[1] for found in map(_NUMBERED.match, names) if found]


def _without_region(name: str) -> str:
    return _REGION.sub("", name)


def _split(name: str) -> tuple[str, str, str]:
    marks = [mark for mark in "/:" if mark in name]
    return name.partition(min(marks, key=name.index)) if marks else (name, "", "")
