"""What else counts tokens, asked about the same requests: a published rule, characters, two packages.

They know Chat Completions only, so a request of another wire form is written as one for them: texts, calls,
results and images in place, tools as function tools. What they raise is no count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from trimtab.formats import get_format

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

Message = dict[str, Any]
Rival = Callable[[str, Sequence[Message], Sequence[Message]], int]
"""Counts a request: the model, messages and tools in Chat's form."""


def as_chat(request: Mapping[str, Any], format: str, /) -> tuple[list[Message], list[Message]]:
    """Write a request of any wire form as messages and tools of Chat Completions."""
    form = get_format(format)
    body = form.read_request(request)
    messages: list[Message] = [{"role": "system", "content": text} for text in _texts(body.system)]
    for entry in body.messages:
        pieces = form.pieces(entry)
        parts: list[Message] = [{"type": "text", "text": text} for text in (*pieces.texts, *pieces.other)]
        images = [
            {"type": "image_url", "image_url": {"url": one.data, "detail": one.detail or "auto"}}
            for one in pieces.media
            if one.kind == "image" and one.data and one.data.startswith("data:")
        ]
        role = {"model": "assistant", "": "user"}.get(pieces.role, pieces.role)
        message: Message = {"role": role, "content": [*parts, *images] if images else _joined(parts)}
        if pieces.calls:
            message["role"] = "assistant"
            message["tool_calls"] = [
                {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": text}}
                for at, (name, text) in enumerate(pieces.calls)
            ]
        if message["role"] == "tool":
            message["tool_call_id"] = "call_0"
        messages.append(message)
    tools = [body.tools] if isinstance(body.tools, dict) else body.tools  # Gemini's may be one tool
    return messages, [*map(_tool, _functions(tools or ()))]


_DECLARED = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")


def _functions(tools: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield what holds the name of each function tool, in whichever form, that is shown from the start."""
    for tool in tools:
        if tool.get("defer_loading") is True:
            continue
        if declared := next((tool[key] for key in _DECLARED if tool.get(key)), None):
            yield from declared
        elif "function" in tool:
            yield tool["function"]
        elif "name" in tool and (tool.get("type", "function") == "function" or "input_schema" in tool):
            yield tool


def _tool(function: Mapping[str, Any]) -> Message:
    """Write a function tool as Chat Completions do."""
    described = {key: function[key] for key in ("name", "description") if function.get(key)}
    schema = next((function[key] for key in _SCHEMAS if function.get(key)), {})
    return {"type": "function", "function": {**described, "parameters": dict(schema)}}


def _texts(system: Any) -> list[str]:
    """List the texts of a system prompt that stands beside the messages."""
    if isinstance(system, str) or not system:
        return [system] if system else []
    if isinstance(system, Mapping):
        return [system["text"] if isinstance(system.get("text"), str) else json.dumps(system)]
    return [text for part in system for text in _texts(part)]


def _joined(parts: Sequence[Message]) -> str:
    return "\n".join(part["text"] for part in parts)


def cookbook(model: str, messages: Sequence[Message], tools: Sequence[Message]) -> int:
    """The rule of OpenAI's cookbook with tiktoken: for messages, and its second one for tools of gpt-4o."""
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")

    def count(value: Any) -> int:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return len(encoding.encode_ordinary(text))

    tokens = 3
    for message in messages:
        tokens += 3 + sum(count(value) for key, value in message.items() if key != "tool_call_id")
    for tool in tools:
        function = tool["function"]
        line = f"{function['name']}:{str(function.get('description', '')).removesuffix('.')}"
        tokens += 7 + count(line)
        properties = function["parameters"].get("properties") or {}
        tokens += 3 if properties else 0
        for key, field in properties.items():
            enum = field.get("enum") or ()
            tokens += 3 + (-3 if enum else 0) + sum(3 + count(str(item)) for item in enum)
            about = str(field.get("description", "")).removesuffix(".")
            tokens += count(f"{key}:{field.get('type')}:{about}")
    return tokens + (12 if tools else 0)


def characters(model: str, messages: Sequence[Message], tools: Sequence[Message]) -> int:
    """A quarter of the characters of everything."""
    texts = [json.dumps([message.get("content"), message.get("tool_calls")]) for message in messages]
    return (sum(map(len, texts)) + (len(json.dumps(tools)) if tools else 0)) // 4


def langchain(model: str, messages: Sequence[Message], tools: Sequence[Message]) -> int:
    """LangChain's count_tokens_approximately, which is what its trim_messages counts by."""
    from langchain_core.messages import convert_to_messages
    from langchain_core.messages.utils import count_tokens_approximately

    entries = convert_to_messages(list(messages))
    try:
        return int(count_tokens_approximately(entries, tools=list(tools) or None))
    except TypeError:  # a version that knows no tools
        return int(count_tokens_approximately(entries))


def litellm(model: str, messages: Sequence[Message], tools: Sequence[Message]) -> int:
    """LiteLLM's token_counter, by the model's name."""
    from litellm import token_counter

    return int(token_counter(model=model, messages=list(messages), tools=list(tools) or None))


RIVALS: dict[str, Rival] = {
    "cookbook": cookbook,
    "chars/4": characters,
    "langchain": langchain,
    "litellm": litellm,
}


_NEEDS = {"cookbook": "tiktoken", "langchain": "langchain_core", "litellm": "litellm"}


def missing() -> list[str]:
    """List those whose package is not installed: they are not asked, and miss nothing."""
    return [name for name in RIVALS if name in _NEEDS and find_spec(_NEEDS[name]) is None]


def asked(rival: Rival, model: str, messages: Sequence[Message], tools: Sequence[Message]) -> int | None:
    """Ask one of them; None if it raised."""
    try:
        return rival(model, messages, tools)
    except Exception:
        return None
