"""Rules of POST /v1/chat/completions, from OpenAI's reference and the errors people reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.judge._rules import Body, Found, Table, entry, found, items, mistyped, objects, once, text

TABLE = Table()

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS = ("text", "image_url", "input_audio", "refusal", "audio", "file")
MAX_ID = 40
NAME = re.compile(r"[a-zA-Z0-9_-]+")

ARRAY = "empty array. Expected an array with minimum length 1, but got an empty array instead."


@once
def messages(request: Body) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages with their places."""
    return objects(request.get("messages"))


@once
def parts(request: Body) -> Iterator[tuple[int, int, dict[str, Any], dict[str, Any]]]:
    """Yield message place, part place, message, part."""
    for at, message in messages(request):
        for spot, part in objects(message.get("content")):
            yield at, spot, message, part


@once
def calls(request: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each tool call, and the call."""
    for at, message in messages(request):
        for spot, call in objects(message.get("tool_calls")):
            yield f"messages[{at}].tool_calls[{spot}]", call


def call_ids(message: dict[str, Any]) -> list[str]:
    """Return the ids of the calls an assistant message makes."""
    if message.get("role") != "assistant":
        return []
    return [text(call.get("id")) for _, call in objects(message.get("tool_calls")) if text(call.get("id"))]


@TABLE.rule(
    "Missing required parameter: '{where}'.",
    "https://github.com/langchain-ai/langgraphjs/issues/370",
)
def missing_parameter(request: Body) -> Iterator[Found]:
    """Everything of the reference that is required, but for content and tool_call_id (own words)."""
    if request.get("messages") is None:
        yield found("messages")
    for at, message in messages(request):
        if message.get("role") is None:
            yield found(f"messages[{at}].role", "role")
    for at, spot, _, part in parts(request):
        for key in ("type", *({"text", "image_url", "input_audio", "file"} & {text(part.get("type"))})):
            if part.get(key) is None:
                yield found(f"messages[{at}].content[{spot}].{key}", key)
    for path, call in calls(request):
        yield from unsaid(path, call)


def unsaid(path: str, call: dict[str, Any]) -> Iterator[Found]:
    """Yield what a tool call leaves out."""
    key = "custom" if call.get("type") == "custom" else "function"
    yield from (found(f"{path}.{name}", name) for name in ("id", "type", key) if call.get(name) is None)
    if isinstance(call.get(key), dict):
        for name in ("name", "input" if key == "custom" else "arguments"):
            if call[key].get(name) is None:
                yield found(f"{path}.{key}.{name}", name)


@TABLE.rule(
    "Invalid type for '{where}': expected {expected}, but got {got} instead.",
    "https://github.com/pydantic/pydantic-ai/issues/2653",
)
def wrong_type(request: Body) -> Iterator[Found]:
    """A value of another JSON type; arguments are text, not an object (aaif-goose/goose-mobile#20)."""
    both, many = "one of a string or array of objects", "an array of objects"
    yield from mistyped("messages", request.get("messages"), list | tuple, many)
    for at, message in enumerate(items(request.get("messages"))):
        path = f"messages[{at}]"
        yield from mistyped(path, message, dict, "an object", null=True)
        message = entry(message)
        yield from mistyped(f"{path}.role", message.get("role"), str, "a string")
        yield from mistyped(f"{path}.content", message.get("content"), str | list | tuple, both)
        for spot, part in enumerate(items(message.get("content"))):
            yield from mistyped(f"{path}.content[{spot}]", part, dict, "an object", null=True)
            yield from mistyped(f"{path}.content[{spot}].text", entry(part).get("text"), str, "a string")
        yield from mistyped(f"{path}.tool_calls", message.get("tool_calls"), list | tuple, many)
        yield from mistyped(f"{path}.tool_call_id", message.get("tool_call_id"), str, "a string")
    for path, call in calls(request):
        yield from mistyped(f"{path}.id", call.get("id"), str, "a string")
        yield from mistyped(f"{path}.function", call.get("function"), dict, "an object")
        for key in ("name", "arguments"):
            value = entry(call.get("function")).get(key)
            yield from mistyped(f"{path}.function.{key}", value, str, "a string")


@TABLE.rule(f"Invalid 'messages': {ARRAY}", "https://github.com/CopilotKit/CopilotKit/issues/529")
def empty_messages(request: Body) -> Iterator[Found]:
    """At least one message."""
    if isinstance(request.get("messages"), list | tuple) and not request["messages"]:
        yield found("messages")


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
    "and 'developer'.",
    "https://portkey.ai/error-library/invalid-value-error-10477",
)
def unknown_role(request: Body) -> Iterator[Found]:
    """A role of no message; 'developer' came after the report (openai-openapi#398)."""
    for at, message in messages(request):
        if text(message.get("role")) and message["role"] not in ROLES:
            yield found(f"messages[{at}].role", message["role"])


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "
    "'audio', and 'file'.",
    "https://github.com/openai/openai-dotnet/issues/396",
)
def unknown_part(request: Body) -> Iterator[Found]:
    """A content part of no type of this API."""
    for at, spot, _, part in parts(request):
        if text(part.get("type")) and part["type"] not in PARTS:
            yield found(f"messages[{at}].content[{spot}].type", part["type"])


@TABLE.rule(
    "Invalid '{where}'. Image URLs are only allowed for messages with role 'user', but this message with "
    "role '{role}' contains an image URL.",
    "https://github.com/openai/openai-node/issues/1030",
)
def image_outside_user(request: Body) -> Iterator[Found]:
    """Only the user shows images."""
    for at, _, message, part in parts(request):
        if part.get("type") == "image_url" and text(message.get("role")) not in ("user", ""):
            yield found(f"messages[{at}]", message["role"], role=message["role"])


@TABLE.rule(
    "Invalid value for 'content': expected a string, got null.",
    "https://github.com/langchain-ai/langchainjs/issues/4153",
)
def null_content(request: Body) -> Iterator[Found]:
    """Only an assistant message that calls, refuses or speaks may say nothing."""
    for at, message in messages(request):
        if message.get("content") is None and text(message.get("role")):
            says = ("tool_calls", "function_call", "refusal", "audio")
            if message["role"] != "assistant" or not any(message.get(key) is not None for key in says):
                yield found(f"messages.[{at}].content", message["role"])


@TABLE.rule(
    f"Invalid '{{where}}': {ARRAY}",
    "https://github.com/openai/openai-openapi (ChatCompletionRequest*MessageContent: minItems 1)",
)
def empty_content(request: Body) -> Iterator[Found]:
    """A list of parts has one."""
    for at, message in messages(request):
        if isinstance(message.get("content"), list | tuple) and not message["content"]:
            yield found(f"messages[{at}].content", message.get("role"))


@TABLE.rule(f"Invalid '{{where}}': {ARRAY}", "https://github.com/openai/openai-python/issues/2061")
def empty_tool_calls(request: Body) -> Iterator[Found]:
    """`tool_calls` is absent rather than empty."""
    for at, message in messages(request):
        if isinstance(message.get("tool_calls"), list | tuple) and not message["tool_calls"]:
            yield found(f"messages[{at}].tool_calls")


@TABLE.rule(
    "Invalid parameter: only messages with role 'assistant' can have a function call.",
    "https://github.com/SCTY-Inc/agentcy-cli/issues/4",
)
def calls_outside_assistant(request: Body) -> Iterator[Found]:
    """Nobody else calls."""
    for at, message in messages(request):
        makes = message.get("tool_calls") or message.get("function_call")
        if makes and text(message.get("role")) not in ("assistant", ""):
            yield found(f"messages.[{at}].role", message["role"])


@TABLE.rule(
    "Invalid '{where}': string too long. Expected a string with maximum length 40, but got a string with "
    "length {length} instead.",
    "https://github.com/vercel/ai/issues/8132",
)
def long_call_id(request: Body) -> Iterator[Found]:
    """Ids of calls are at most 40 characters long."""
    for path, call in calls(request):
        if len(text(call.get("id"))) > MAX_ID:
            yield found(f"{path}.id", call["id"], length=len(call["id"]))


@TABLE.rule(
    "Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
    "'^[a-zA-Z0-9_-]+$'.",
    "https://github.com/mcp-use/mcp-use/pull/94",
)
def bad_function_name(request: Body) -> Iterator[Found]:
    """A name that no tool can have."""
    for path, call in calls(request):
        name = entry(call.get("function")).get("name")
        if isinstance(name, str) and not NAME.fullmatch(name):
            yield found(f"{path}.function.name", name)


@TABLE.rule(
    "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
    "https://github.com/MadcowD/ell/issues/325",
)
def missing_tool_call_id(request: Body) -> Iterator[Found]:
    """A result names its call."""
    for at, message in messages(request):
        if message.get("role") == "tool" and not message.get("tool_call_id"):
            yield found(f"messages.[{at}].tool_call_id")


@once
def runs(request: Body) -> Iterator[tuple[int, list[str] | None, list[tuple[int, str]]]]:
    """Yield each run: place, ids called (None: no call before it), and the results right behind."""
    at, called, results = -1, None, []
    for here, message in messages(request):
        if message.get("role") == "tool":
            results.append((here, text(message.get("tool_call_id"))))
            continue
        yield at, called, results
        at, called, results = here, call_ids(message) or None, []
    yield at, called, results


@TABLE.rule(
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'.",
    "https://github.com/smarter-sh/smarter/issues/264",
)
def result_without_call(request: Body) -> Iterator[Found]:
    """A result stands behind a message that calls."""
    for _, called, results in runs(request):
        if called is None:
            yield from (found(f"messages.[{at}].role", call_id) for at, call_id in results)


@TABLE.rule(
    "Invalid parameter: 'tool_call_id' of '{about}' not found in 'tool_calls' of previous message.",
    "https://github.com/dapr/dapr-agents/issues/145",
    kin="result_without_call",
)
def result_of_another_call(request: Body) -> Iterator[Found]:
    """A result answers a call of the message it stands behind."""
    for _, called, results in runs(request):
        known = set(called or ())
        for at, call_id in results:
            if called is not None and call_id and call_id not in known:
                yield found(f"messages.[{at}].tool_call_id", call_id)


@TABLE.rule(
    "Invalid parameter: Duplicate value for 'tool_call_id' of '{about}', in messages[{first}] and "
    "messages[{second}].",
    "https://github.com/agno-agi/agno/issues/5116",
    kin="result_without_call",
)
def repeated_result(request: Body) -> Iterator[Found]:
    """A call has one result."""
    for _, called, results in runs(request):
        seen: dict[str, int] = {}
        for at, call_id in results:
            if called is not None and call_id and call_id in seen:
                path = f"messages.[{at}].tool_call_id"
                yield found(path, call_id, first=seen[call_id], second=at)
            seen.setdefault(call_id, at)


@TABLE.rule(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {about}",
    "https://github.com/BerriAI/litellm/issues/10083",
)
def call_without_result(request: Body) -> Iterator[Found]:
    """Every call is answered right behind its message."""
    for at, called, results in runs(request):
        answered = {call_id for _, call_id in results}
        for call_id in called or ():
            if call_id not in answered:
                yield found(f"messages.[{at + 1 + len(results)}].role", call_id)
