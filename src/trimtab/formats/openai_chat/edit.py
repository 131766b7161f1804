"""Chat Completions request bodies: taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.base import Request, named_in
from trimtab.formats.values import as_list, item_of

__all__ = ["BODY_MARKS", "read_body", "write_body"]

BODY_MARKS = frozenset(
    {
        *("max_completion_tokens", "stop", "response_format", "stream_options", "n", "seed", "logit_bias"),
        *("frequency_penalty", "presence_penalty", "logprobs", "functions", "function_call", "modalities"),
    }
)
"""Keys Anthropic's do not know (https://platform.openai.com/docs/api-reference/chat/create, 2026-11)."""


_UNSEEN = {
    "web_search_options": "a web search that the provider runs",
    "plugins": "plugins that the provider runs",
    "prompt_mode": "the system prompt that the provider adds (prompt_mode)",
}


def read_body(body: Mapping[str, Any], /) -> Request:
    """Take a request body apart.

    Legacy `functions` and an output schema are in `extra`; counters charge the functions as tools.

    Raises:
        FormatError: `messages` is missing or no list.
    """
    messages = body.get("messages")
    if as_list(messages) is None:
        raise FormatError(
            f"a Chat Completions body needs a list under 'messages', not {type(messages).__name__}",
            path="messages",
        )
    extra = {"functions": body["functions"]} if body.get("functions") else {}
    if item_of(body.get("response_format"), "type") == "json_schema":
        extra["response_format"] = body["response_format"]
    return Request(
        messages=messages or [],
        tools=body.get("tools"),
        body=body,
        extra=extra,
        unseen=named_in(body, _UNSEEN),
    )


def write_body(request: Request, messages: list[Any], /) -> Any:
    """Put messages back into a copy of the body, and tools that were given beside it."""
    if request.body is None:
        return messages
    written = {**request.body, request.key: messages}
    return {**written, "tools": request.tools} if request.tools else written
