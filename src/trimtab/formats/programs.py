"""Programs whose messages are told by their keys: those a reader reads, and those that are refused.

It imports nothing: the door of every wire form asks here, and the readers of `recordings` stand above that.
Sources: the functions that are named, as released in 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERCEL, TELEMETRY = "the Vercel AI SDK", "OpenTelemetry"
CLAUDE_CODE, CODEX = "Claude Code", "Codex"
"""Programs that a reader reads."""

ADK, PYDANTIC_AI, INSPECT, LETTA = "Google's ADK", "pydantic-ai", "inspect_ai", "Letta"
GEMINI_CLI, SHAREGPT, TANSTACK, AG_UI = "gemini-cli", "ShareGPT", "TanStack AI", "AG-UI"
"""Programs that are refused."""

_READ = {
    VERCEL: f"a message of {VERCEL}",
    TELEMETRY: f"a message of {TELEMETRY}",
    CLAUDE_CODE: f"a line of {CLAUDE_CODE}'s log",
    CODEX: f"a line of {CODEX}'s log",
}
"""What a message of such a program is called."""

INSTEAD = {
    ADK: "pass [event['content'] for event in events if event.get('content')] with format='gemini'",
    PYDANTIC_AI: "pass read_foreign([one.model_dump(by_alias=True) for one in VercelAIAdapter.dump_messages("
    "ModelMessagesTypeAdapter.validate_python(messages))]) of trimtab.formats, pydantic_ai.ui.vercel_ai and"
    " pydantic_ai.messages",
    INSPECT: "pass await messages_to_openai(sample.messages) of inspect_ai.model, for each sample of"
    " read_eval_log(file).samples of inspect_ai.log",
    LETTA: "pass [{'role': one['role'], **{key: one[key] for key in ('tool_calls', 'tool_call_id') if"
    " one.get(key)}, 'content': [part for part in one['content'] or () if part['type'] == 'text']} for one in"
    " agent['messages']], for each agent of file['agents']",
    GEMINI_CLI: "write `/chat share chat.json` in it, and pass that list with format='gemini'",
    SHAREGPT: "pass [{'role': {'human': 'user', 'gpt': 'assistant'}.get(one['from'], one['from']), 'content':"
    " one['value']} for one in row['conversations']], one row at a time",
    TANSTACK: "pass what convertMessagesToModelMessages(messages) of @tanstack/ai makes, with 'tool_calls'"
    " for 'toolCalls' and 'tool_call_id' for 'toolCallId'",
    AG_UI: "pass [{{'toolCalls': 'tool_calls', 'toolCallId': 'tool_call_id'}.get(key, key): value for key,"
    " value in one.items()} for one in messages]",
}
"""What to write instead of the messages of a program that is refused."""

_VERCEL_PARTS = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"})
_TELEMETRY_PARTS = frozenset({"tool_call", "tool_call_response", "blob", "uri"})
_CLAUDE_CODE_KEYS = frozenset({"uuid", "leafUuid", "sessionId", "message"})


def said_of(message: Mapping[str, Any], /) -> str | None:
    """Say of which program a message is and what to write instead; None if it is of none that is told.

    Looked at are its keys and those of its parts. A message that has all a wire form reads is not told, as a
    plain message of a user.
    """
    program = program_of(message)
    if program is None:
        return None
    if program in _READ:
        return f"it is {_READ[program]}: read_foreign(messages) of trimtab.formats reads it"
    return f"it is a message of {program}: {INSTEAD[program]}"


def program_of(message: Mapping[str, Any], /) -> str | None:
    """Name the program that writes such messages; None for those that a wire form may have."""
    if "role" not in message:
        return _of_line(message)
    if len(message) == 2 and message.get("content").__class__ is str:
        return None  # as nearly every message is
    if message.get("toolInvocations") is not None:
        return VERCEL
    if message.get("toolCalls") or message.get("toolCallId"):
        return AG_UI
    if "tool_returns" in message or ("otid" in message and "id" in message):
        return LETTA
    listed = message.get("parts")
    if isinstance(listed, list | tuple):
        found = next((found for part in listed if (found := _of_part(part)) is not None), None)
        if found == VERCEL and "id" not in message and message["role"] in ("user", "model"):
            return None  # a content of Gemini's with a key too many; each message of the SDK has an id
        return found
    listed = message.get("content")
    if isinstance(listed, list | tuple) and any(map(_is_vercel, listed)):
        return VERCEL
    calls = message.get("tool_calls")
    if isinstance(calls, list | tuple) and calls and isinstance(calls[0], Mapping):
        return INSPECT if isinstance(calls[0].get("function"), str) else None
    return INSPECT if message["role"] == "tool" and isinstance(message.get("function"), str) else None


def _is_vercel(part: Any) -> bool:
    """Tell a part of a ModelMessage's content; its texts are as those of OpenAI Chat."""
    if part.__class__ is not dict and not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    if kind == "file":
        return "mediaType" in part or "mimeType" in part
    if kind == "image":
        return "mediaType" in part or "mimeType" in part or _is_data(part.get("image"))
    return isinstance(kind, str) and kind in _VERCEL_PARTS


def _is_data(image: Any) -> bool:
    """Tell an address or the data of an image from the path of a file, as trainers have it."""
    if not isinstance(image, str):
        return image is not None
    return image.startswith(("http:", "https:", "data:")) or (len(image) > 64 and "." not in image)


def _of_part(part: Any) -> str | None:
    """Name the program of one of a message's `parts`; those of Gemini have no type."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return None
    if kind in _TELEMETRY_PARTS:
        return TELEMETRY
    if kind in ("tool-call", "tool-result", "thinking"):
        return TANSTACK
    if kind in ("text", "reasoning", "file"):
        held = "content" in part or "file_id" in part
        return TELEMETRY if held else VERCEL
    named = kind.startswith(("tool-", "data-", "source-"))
    return VERCEL if named or kind in ("dynamic-tool", "step-start") else TELEMETRY


def _of_line(message: Mapping[str, Any]) -> str | None:
    """Name the program of what has no role: an event or a line of a log."""
    kind = message.get("type")
    if isinstance(kind, str):
        if isinstance(message.get("payload"), Mapping):
            return CODEX
        if "timestamp" in message and "content" in message and kind in ("user", "gemini", "info"):
            return GEMINI_CLI if "message" not in message and "uuid" not in message else CLAUDE_CODE
        held = len(_CLAUDE_CODE_KEYS & message.keys())
        return CLAUDE_CODE if "leafUuid" in message or held > 1 else None
    if message.get("kind") in ("request", "response") and "parts" in message:
        return PYDANTIC_AI
    if "author" in message and ("invocationId" in message or "invocation_id" in message):
        return ADK
    return LETTA if "message_type" in message else None
