"""Which API a path of a request is of, and in which wire form its body speaks.

Clients build these paths from a base URL; hosts put a version, a project or a deployment before their end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import unquote

PUBLIC_APIS: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Where the providers themselves serve each API, by its name."""

APIS = (*PUBLIC_APIS, "azure")
"""Names of APIs; Azure speaks OpenAI's, by paths and keys of its own."""

OWN_BEGINNINGS: Mapping[str, str] = {"azure": "/openai/"}
"""What only paths of an API begin with, by its name."""

_STANDS_IN = {"azure": "openai", "openai": "azure"}


class ApiCall(NamedTuple):
    """What a path asks for.

    Args:
        api: The name of the API.
        form: The wire form of the body; None: the path is not for conversations.
        model: The model that the path names, which is asked whatever the body says.
        deployment: The deployment of Azure's that it names, the same; what model that is, the body may say.
        counts: Whether the answer is the size of the body, not words of a model.
        within: The key of the body that may hold the request, for an API that wraps what it counts.
    """

    api: str
    form: str | None = None
    model: str | None = None
    deployment: str | None = None
    counts: bool = False
    within: str | None = None

    @property
    def named(self) -> str | None:
        """Whom the path names; None: the body says who is asked."""
        return self.model or self.deployment


_SLASHES = re.compile("//+")
_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/")
_VERB = re.compile(r"/(?:models|endpoints|tunedModels)/([^/:]+):(\w+)$")

# The end of a path: its wire form, and whether it only counts.
_ENDS: tuple[tuple[str, str, str, bool], ...] = (
    ("/chat/completions", "openai", "openai_chat", False),
    ("/responses", "openai", "openai_responses", False),
    ("/responses/input_tokens", "openai", "openai_responses", True),
    ("/v1/messages", "anthropic", "anthropic", False),
    ("/v1/messages/count_tokens", "anthropic", "anthropic", True),
)
FORMS = (*dict.fromkeys(form for _, _, form, _ in _ENDS), "gemini")
"""Wire forms in which conversations come by these paths."""

_VERBS = {"generateContent": False, "streamGenerateContent": False, "countTokens": True}
_WITHIN = "generateContentRequest"


def read_path(path: str, /, headers: Collection[str] = ()) -> ApiCall:
    """Read the path of a request.

    Args:
        path: Decoded, without a query.
        headers: Their names, in small letters: they say whose a path is that several APIs have, as
            `/v1/models`.

    Example:
        >>> read_path("/v1beta/models/gemini-2.5-flash:countTokens").model
        'gemini-2.5-flash'
    """
    path = plain_path(path)
    found = _VERB.search(path)
    if found is not None and found[2] in _VERBS:
        counts = _VERBS[found[2]]
        return ApiCall("gemini", "gemini", found[1], counts=counts, within=_WITHIN if counts else None)
    deployment = _DEPLOYMENT.search(path)
    azure = deployment is not None or path.startswith(OWN_BEGINNINGS["azure"])
    for end, api, form, counts in _ENDS:
        if path.endswith(end):
            named = deployment[1] if deployment is not None else None
            return ApiCall(
                "azure" if azure and api == "openai" else api, form, deployment=named, counts=counts
            )
    return ApiCall("azure" if azure else _api_by(path, headers))


def plain_path(path: str, /) -> str:
    """Write a path as it is read: slashes too many are one, and none is at its end.

    Args:
        path: Decoded, without a query.
    """
    return _SLASHES.sub("/", path).rstrip("/")


def path_of(target: bytes, /) -> str:
    """Return the path of a request, decoded.

    Args:
        target: Path and query, as they are sent.
    """
    return unquote(target.partition(b"?")[0].decode("latin-1"))


def _api_by(path: str, headers: Collection[str]) -> str:
    if "anthropic-version" in headers or path.startswith("/v1/messages"):
        return "anthropic"
    if "x-goog-api-key" in headers or path.startswith(("/v1beta/", "/v1alpha/", "/upload/v1beta/")):
        return "gemini"
    return "openai"


def stand_in_of(api: str, /) -> str | None:
    """Return the API that is spoken in the same words, for who has no address of the one asked for."""
    return _STANDS_IN.get(api)
