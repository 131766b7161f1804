"""Chat requests broken by hand."""

from __future__ import annotations

from typing import Any

from tests.judge._broken import Broken


def _call(call_id: str, arguments: Any = '{"city": "Paris"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def _result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "sunny"}


LOOP = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "The weather in Paris and Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [_call("call_1"), _call("call_2")]},
        _result("call_1"),
        _result("call_2"),
        {"role": "assistant", "content": "Sunny in both."},
        {"role": "user", "content": "Thanks."},
    ],
}
SEEN = {
    "model": "gpt-4o",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
        {"role": "user", "content": "And its name?"},
    ],
}
LONG = "ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87"
EMPTY = "empty array. Expected an array with minimum length 1, but got an empty array instead."
ORPHAN = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_2"
)


def _rename(body: dict[str, Any]) -> None:
    body["messages"][2]["tool_calls"][1]["id"] = body["messages"][4]["tool_call_id"] = LONG


BROKEN = [
    Broken(
        "missing_parameter",
        LOOP,
        lambda body: body["messages"][0].pop("role"),
        "Missing required parameter: 'messages[0].role'.",
        "langgraphjs/issues/370",
    ),
    Broken(
        "missing_parameter",
        SEEN,
        lambda body: body["messages"][0]["content"][0].pop("type"),
        "Missing required parameter: 'messages[0].content[0].type'.",
        "langgraphjs/issues/370",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["messages"][2]["tool_calls"].__setitem__(0, _call("call_1", {"city": "Paris"})),
        "Invalid type for 'messages[2].tool_calls[0].function.arguments': expected a string, but got an "
        "object "
        "instead.",
        "pydantic-ai/issues/2653",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["messages"][1].update(content={"text": "The weather?"}),
        "Invalid type for 'messages[1].content': expected one of a string or array of objects, but got an "
        "object instead.",
        "pydantic-ai/issues/2653",
    ),
    Broken(
        "empty_messages",
        LOOP,
        lambda body: body["messages"].clear(),
        f"Invalid 'messages': {EMPTY}",
        "CopilotKit/issues/529",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["messages"][6].update(role="human"),
        "Invalid value: 'human'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
        "and "
        "'developer'.",
        "invalid-value-error-10477",
    ),
    Broken(
        "unknown_part",
        SEEN,
        lambda body: body["messages"][0]["content"][0].update(type="binary"),
        "Invalid value: 'binary'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "
        "'audio', "
        "and 'file'.",
        "openai-dotnet/issues/396",
    ),
    Broken(
        "image_outside_user",
        SEEN,
        lambda body: body["messages"][1].update(content=body["messages"][0]["content"]),
        "Invalid 'messages[1]'. Image URLs are only allowed for messages with role 'user', but this message "
        "with role 'assistant' contains an image URL.",
        "openai-node/issues/1030",
    ),
    Broken(
        "null_content",
        LOOP,
        lambda body: body["messages"][6].update(content=None),
        "Invalid value for 'content': expected a string, got null.",
        "langchainjs/issues/4153",
    ),
    Broken(
        "null_content",
        LOOP,
        lambda body: body["messages"][5].update(content=None),
        "Invalid value for 'content': expected a string, got null.",
        "langchainjs/issues/4153",
    ),
    Broken(
        "empty_content",
        SEEN,
        lambda body: body["messages"][0].update(content=[]),
        f"Invalid 'messages[0].content': {EMPTY}",
        "minItems 1)",
    ),
    Broken(
        "empty_tool_calls",
        LOOP,
        lambda body: body["messages"][5].update(tool_calls=[]),
        f"Invalid 'messages[5].tool_calls': {EMPTY}",
        "openai-python/issues/2061",
    ),
    Broken(
        "calls_outside_assistant",
        LOOP,
        lambda body: body["messages"][6].update(tool_calls=[_call("call_3")]),
        "Invalid parameter: only messages with role 'assistant' can have a function call.",
        "agentcy-cli/issues/4",
    ),
    Broken(
        "long_call_id",
        LOOP,
        _rename,
        "Invalid 'messages[2].tool_calls[1].id': string too long. Expected a string with maximum length "
        "40, but "
        "got a string with length 51 instead.",
        "vercel/ai/issues/8132",
    ),
    Broken(
        "bad_function_name",
        LOOP,
        lambda body: body["messages"][2]["tool_calls"][0]["function"].update(name="get weather"),
        "Invalid 'messages[2].tool_calls[0].function.name': string does not match pattern. Expected a string "
        "that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "mcp-use/pull/94",
    ),
    Broken(
        "missing_tool_call_id",
        LOOP,
        lambda body: body["messages"].insert(5, {"role": "tool", "content": "rain"}),
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        "ell/issues/325",
    ),
    Broken(
        "result_without_call",
        LOOP,
        lambda body: body["messages"].append(_result("call_2")),
        ORPHAN,
        "smarter/issues/264",
    ),
    Broken(
        "result_without_call",
        LOOP,
        lambda body: body.update(messages=body["messages"][3:]),
        ORPHAN,
        "smarter/issues/264",
    ),
    Broken(
        "result_of_another_call",
        LOOP,
        lambda body: body["messages"].insert(5, _result("call_9")),
        "Invalid parameter: 'tool_call_id' of 'call_9' not found in 'tool_calls' of previous message.",
        "dapr-agents/issues/145",
    ),
    Broken(
        "repeated_result",
        LOOP,
        lambda body: body["messages"].insert(5, _result("call_2")),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_2', in messages[4] and messages[5].",
        "agno/issues/5116",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"].pop(4),
        UNANSWERED,
        "litellm/issues/10083",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"].insert(4, body["messages"].pop(6)),
        UNANSWERED,
        "litellm/issues/10083",
        also=("result_without_call",),
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body.update(messages=body["messages"][:4]),
        UNANSWERED,
        "litellm/issues/10083",
    ),
]
