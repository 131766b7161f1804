"""Chat Completions request bodies: taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.base import Request, named_in
from trimtab.formats.values import REDACTED, Dict, as_list, blank, item_of

__all__ = ["BODY_MARKS", "read_body", "redacted_of", "write_body"]


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


# What redaction leaves of a message of Chat Completions.


def redacted_of(message: Dict) -> Dict:
    """Return a message that says nothing any more.

    What stays is who says it and which call it makes or answers, where the wire form has that and nowhere
    else: role, ids of calls, the name that is the id of a call without one, kinds of parts and of calls.
    """
    made = {key: _said(message, key, value) for key, value in message.items() if key != "audio"}
    if "audio" in message and message.get("content") is None:
        made["content"] = REDACTED  # a provider looks up what was said by its id: it goes as a whole
    return made


def _said(message: Dict, key: str, value: Any) -> Any:
    if key in ("role", "tool_call_id") and isinstance(value, str):
        return value
    if key == "name" and isinstance(value, str):  # has to stay a name
        return value if message.get("role") == "function" else "redacted"
    if key == "content" and isinstance(value, list):
        return [_part(one) for one in value]
    if key == "tool_calls" and isinstance(value, list):
        return [_call(one) for one in value]
    if key == "function_call" and isinstance(value, dict):
        return {**_called(value), **{name: value[name] for name in ("name",) if name in value}}
    return blank(value)


def _part(part: Any) -> Any:
    """Put a text in the place of a part; of an image, sound or file, too: a provider would look at it."""
    if not isinstance(part, dict):
        return blank(part)
    kind = "refusal" if part.get("type") == "refusal" else "text"
    return {"type": kind, kind: REDACTED}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return blank(call)
    made = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    if call.get("type") in ("function", "custom"):
        made["type"] = call["type"]
    return {**made, **{key: _called(call[key]) for key in ("function", "custom") if key in call}}


def _called(function: Any) -> Any:
    """Blank a called function: its name has to stay a name, and its arguments JSON."""
    if not isinstance(function, dict):
        return blank(function)
    valid = {"name": "redacted", "arguments": "{}", "input": REDACTED}
    return {
        key: valid[key] if isinstance(value, str) else blank(value)
        for key, value in function.items()
        if key in valid
    }
