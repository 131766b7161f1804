"""Messages of other libraries, which look like those of a wire form: what they are, and how to convert them.

They would be read without a word, and wrongly: their roles, calls and results stand under other names.
"""

from __future__ import annotations

from typing import Any

__all__ = ["foreign_object", "foreign_part"]

_OWN = "one dict a message, {'role': ..., 'content': ...}"

# By the first part of the name of the module that defines a class.
_LIBRARIES = {
    "langchain_core": ("LangChain", "convert_to_openai_messages(messages) of langchain_core.messages"),
    "llama_index": ("LlamaIndex", "to_openai_message_dicts(messages) of llama_index.llms.openai.utils"),
    "autogen_core": ("AutoGen", _OWN),
    "autogen_agentchat": ("AutoGen", _OWN),
}
"""What a message of a library is called, and what to pass in its place."""

_CONVERSE_KEYS = frozenset({"toolUse", "toolResult", "cachePoint", "reasoningContent", "guardContent"})
"""Content blocks that Bedrock's Converse API alone knows; Strands writes the same."""


def foreign_object(message: object, /) -> str | None:
    """Say what an object of another library is, and how to convert it; None if nobody knows it."""
    for kind in type(message).__mro__:
        found = _LIBRARIES.get(kind.__module__.partition(".")[0])
        if found is not None:
            library, instead = found
            return f"it is a {library} message ({type(message).__name__}): pass {instead}"
    return None


def foreign_part(message: dict[str, Any], /) -> str | None:
    """Say that a message holds blocks of Bedrock's Converse API; None if it holds none."""
    content = message.get("content")
    if not isinstance(content, list):
        return None
    for part in content:
        if type(part) is dict and "type" not in part and not _CONVERSE_KEYS.isdisjoint(part):
            return (
                "it is a message of Bedrock's Converse API (or of Strands): write its blocks as Anthropic's,"
                " {'type': 'tool_use', ...}, or as OpenAI's tool_calls"
            )
    return None
