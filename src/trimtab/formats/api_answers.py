"""Errors as each API writes them, for who answers in the place of a provider.

Clients look at the status, the type or code and, of requests that are too long, at the very words: they
retry, shorten or give up by these. The words are those of `api_errors`, which reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Read 2026-11-29 in the clients of the providers, which make a class of each (openai._exceptions,
# anthropic.types.shared, google.genai.errors), and in their pages on errors.
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_GEMINI_STATUS = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    504: "DEADLINE_EXCEEDED",
}


def write_error(api: str, status: int, message: str, /, *, code: str | None = None) -> dict[str, Any]:
    """Write an error as an API does.

    Args:
        api: Its name.
        status: That of the answer.
        message: What went wrong.
        code: A word for programs, in APIs that have one.

    Example:
        >>> write_error("anthropic", 503, "busy")
        {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'busy'}}
    """
    return _WRITERS.get(api, _openai)(status, message, code)


def write_too_long(api: str, needed_tokens: int, limit_tokens: int, why: str, /) -> dict[str, Any]:
    """Write that a request is too long, in the words in which clients know it.

    Args:
        api: Its name.
        needed_tokens: What the request has, at the least.
        limit_tokens: What it may have.
        why: More about it.
    """
    words = _TOO_LONG.get(api, _TOO_LONG["openai"]).format(needed=needed_tokens, limit=limit_tokens)
    return write_error(api, 400, f"{words} {why}", code="context_length_exceeded")


def _openai(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else _INVALID
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = _ANTHROPIC_TYPES.get(status, "api_error" if status >= 500 else _INVALID)
    return {"type": "error", "error": {"type": kind, "message": message}}


def _gemini(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = _GEMINI_STATUS.get(status, "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": message, "status": kind}}


_INVALID = "invalid_request_error"
_WRITERS: Mapping[str, Callable[[int, str, str | None], dict[str, Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
_TOO_LONG = {
    "openai": "This model's maximum context length is {limit} tokens. However, your messages resulted in"
    " {needed} tokens. Please reduce the length of the messages.",
    "anthropic": "prompt is too long: {needed} tokens > {limit} maximum.",
    "gemini": "The input token count ({needed}) exceeds the maximum number of tokens allowed ({limit}).",
}
