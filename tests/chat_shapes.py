"""Chat Completions messages in one readable line each, and the openai package's own opinion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai.types.chat import (
    ChatCompletionMessage,
    ChatCompletionMessageCustomToolCall,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
)
from openai.types.chat.chat_completion_message_custom_tool_call import Custom
from openai.types.chat.chat_completion_message_function_tool_call import Function
from pydantic import TypeAdapter, ValidationError


def function_call(call_id: Any = "a", name: Any = "add", arguments: Any = "{}") -> dict[str, Any]:
    """Make a tool call of a function."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def custom_call(call_id: str = "c") -> dict[str, Any]:
    """Make a tool call of a custom tool."""
    return {"id": call_id, "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}


def calling(*calls: Any, content: Any = None, **more: Any) -> dict[str, Any]:
    """Make an assistant message with tool calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(call_id: Any = "a", content: Any = "4") -> dict[str, Any]:
    """Make a tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def sdk_message(**more: Any) -> ChatCompletionMessage:
    """Make the object the openai package returns, with two parallel calls."""
    calls = [
        ChatCompletionMessageFunctionToolCall(
            id="a", type="function", function=Function(name="add", arguments="{}")
        ),
        ChatCompletionMessageCustomToolCall(id="c", type="custom", custom=Custom(name="shell", input="ls")),
    ]
    return ChatCompletionMessage(**{"role": "assistant", "content": "hm", "tool_calls": calls, **more})


_ADAPTER: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])


def accepted_by_openai(*messages: Any) -> bool:
    """Validate by the openai package's own request types; lazy iterables are read to their end."""
    try:
        read_all(_ADAPTER.validate_python(list(messages)))
    except ValidationError:
        return False
    return True


def read_all(value: Any) -> None:
    """Read lazy iterables of validated values to their end."""
    if isinstance(value, dict):
        for inner in value.values():
            read_all(inner)
    elif isinstance(value, list | Iterator):
        for inner in value:
            read_all(inner)
