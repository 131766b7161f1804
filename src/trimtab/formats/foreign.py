"""Messages of other libraries, which look like those of a wire form: what they are, and how to convert them.

They would be read without a word, and wrongly: their roles, calls and results stand under other names.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.programs import said_of

_OWN = "one dict a message, {'role': ..., 'content': ...}"

# By the first part of the name of the module that defines a class.
_LIBRARIES = {
    "langchain_core": (
        "LangChain",
        "convert_to_openai_messages(messages) of langchain_core.messages, or take trim_messages of"
        " trimtab.integrations.langchain",
    ),
    "llama_index": ("LlamaIndex", "to_openai_message_dicts(messages) of llama_index.llms.openai.utils"),
    "autogen_core": ("AutoGen", _OWN),
    "autogen_agentchat": ("AutoGen", _OWN),
}
"""What a message of a library is called, and what to pass in its place."""

_LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})
"""What LangChain writes under `type` where the wire forms have a role; no item of Responses is called so."""

FORMS = frozenset({"anthropic", "bedrock", "gemini", "openai_chat", "openai_responses"})
"""The wire forms of trimtab, which know none of these; one that a user registered may be one of them."""


ROLES = frozenset(
    {
        *("system", "developer", "user", "assistant", "tool", "function", "model"),
        *("critic", "discriminator", "unknown"),  # of messages in OpenAI's Conversations API
    }
)
"""Roles that a provider documents; a form that has none such says so in `validate`."""

_ANSWERS = {
    "choices": "append answer['choices'][0]['message']",
    "output": "extend the list by answer['output']",
    "candidates": "append answer['candidates'][0]['content']",
}
"""Where the messages of a whole answer are, written as a dict; it has no role of its own."""


def foreign_class(kind: type, /) -> str | None:
    """Say what an object of a class of another library is, and how to convert it; None if nobody knows it."""
    for base in kind.__mro__:
        found = _LIBRARIES.get(base.__module__.partition(".")[0])
        if found is not None:
            library, instead = found
            return f"it is a {library} message ({kind.__name__}): pass {instead}"
    return None


def check_message(
    message: dict[str, Any], form: str, /, *, listed: bool = False, counted: bool = False
) -> None:
    """Refuse a message of which no wire form knows what it is, or whom it is from: it would be read wrongly.

    Looked at are its keys, its role, and the blocks of its content, of which each names its type.

    Args:
        message: The message.
        form: Name of the wire form it is read in; one of the caller's own may have anything.
        listed: The caller lists roles and untyped blocks as violations, or mends them: they pass.
        counted: The caller counts: roles and untyped blocks cost what they hold.

    Raises:
        FormatError: With what it looks like and what to pass instead.
    """
    if form not in FORMS:
        return
    said = _foreign_dict(message)
    content = message.get("content")
    if said is None and form != "bedrock" and isinstance(content, (list, tuple)):
        said = _untyped_blocks(content, listed=listed or counted)
    if said is None and not listed:
        said = _foreign_role(message, form, counted=counted)
    if said is not None:
        raise FormatError(said)


def _foreign_role(message: dict[str, Any], form: str, *, counted: bool) -> str | None:
    role = message.get("role")
    if isinstance(role, str) and (counted or role in ROLES):
        if message.get("type") == "message" and "stop_reason" in message and "usage" in message:
            return f"it is a whole answer, not a message: {_ANSWER}"
        return _empty_of(message, form)
    if role is None and (block := _block_of(message, form)) is not None:
        return block
    if role is None and form == "openai_responses" and ("type" in message or message.keys() == {"id"}):
        return None  # an item, of which the API may know more than we do, or a reference to one
    if role is None and form == "gemini":
        return None
    if role is None:
        if (answer := answer_in(message)) is not None:
            return f"it is a whole answer, not a message: {answer}"
        if isinstance(message.get("message"), dict):
            return "it holds a message, and is none: append its 'message'"
    held = "it has no role" if role is None else f"no provider has the role {reprlib.repr(role)}"
    return (
        f"{held}: write {{'role': 'user', 'content': ...}}, or 'system', 'developer', 'assistant' or 'tool';"
        " roles of your own need a wire form of your own (register_format)"
    )


def _empty_of(message: dict[str, Any], form: str) -> str | None:
    """Say of a message that it holds something, under no key of its wire form; None: it may be empty."""
    if form == "openai_responses" or not message.keys().isdisjoint(SAID_IN[form]):
        return None
    other = next((key for key, held in message.items() if key not in _BESIDE and held), None)
    if other is None:
        return None
    key = "parts" if form == "gemini" else "content"
    return f"it has a role and {other!r}, and no {key!r}: write {{'role': {message['role']!r}, {key!r}: ...}}"


SAID_IN = {
    "openai_chat": (
        *("content", "tool_calls", "function_call", "refusal", "audio", "images"),
        *("reasoning_content", "reasoning", "reasoning_details", "thinking"),
    ),
    "anthropic": ("content",),
    "bedrock": ("content",),
    "gemini": ("parts",),
}
"""Where a message of a wire form holds what is said; one item of Responses is as good as the next."""

_BESIDE = frozenset({"role", "name", "id", "type", "tool_call_id", "call_id", "status", "weight"})
"""What a message may have that says nothing."""


def answer_in(body: Mapping[str, Any], /) -> str | None:
    """Say how what a provider answered becomes a message, where the whole of it is given; None for others."""
    held = body.get("output")
    if isinstance(held, dict) and "message" in held:
        return "append answer['output']['message']"
    return next((_ANSWERS[key] for key in _ANSWERS if isinstance(body.get(key), list)), None)


def instead_of_body(body: Mapping[str, Any], /) -> str:
    """Say what to write where a mapping is no request body: an answer, or conversations by their names."""
    if (answer := answer_in(body)) is not None:
        return f"; it is what a model answered: {answer} to the list of messages"
    name = next((name for name, held in body.items() if isinstance(held, (list, tuple))), None)
    return (
        "" if name is None else f"; it has a list under {name!r}: pass that list, one conversation at a time"
    )


def _block_of(message: dict[str, Any], form: str) -> str | None:
    """Say of a block of content that it is no message; None if it is none."""
    kind = message.get("type")
    if isinstance(kind, str):
        if kind not in _BLOCKS:
            return None
        instead = "{'role': 'user', 'content': [block]}" if kind.endswith("result") else None
        return f"it is a block of content ({kind}), not a message: {_ANSWER if instead is None else instead}"
    if message.keys().isdisjoint(("content", "parts")) and (keys := _PARTS & message.keys()):
        key = "parts" if form == "gemini" else "content"
        return (
            f"it is a block of content ({min(keys)}), not a message: write {{'role': ..., '{key}': [block,"
            " ...]} with all blocks of a message, or append the message that holds them"
        )
    return None


_ANSWER = "append {'role': 'assistant', 'content': answer.content}"
"""How the answer of Anthropic's becomes a message of the conversation, whole or given as its blocks."""

_BLOCKS = frozenset(
    {
        *("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "server_tool_use", "image"),
        *("document", "search_result", "image_url", "input_text", "input_image", "output_text", "refusal"),
        *("input_audio", "input_file", "web_search_tool_result", "code_execution_tool_result"),
    }
)
"""Types of blocks of a message's content; no item of Responses has one of these."""

_PARTS = frozenset(
    {
        *("toolUse", "toolResult", "reasoningContent", "functionCall", "functionResponse", "text"),
        *("function_call", "function_response", "inlineData", "inline_data", "fileData", "file_data"),
    }
)
"""What blocks without a type hold, those of Converse and of Gemini."""


def _untyped_blocks(content: Iterable[Any], *, listed: bool) -> str | None:
    """Find blocks without a type, which only their keys tell from others."""
    held = set[Any]()
    for part in content:
        if type(part) is dict and "type" not in part:
            held.update(part)
    if not held:
        return None
    for keys, said in _UNTYPED[:1] if listed else _UNTYPED:
        if found := keys & held:
            return said.format(key=min(found))
    return None


_UNTYPED = (
    (
        frozenset({"toolUse", "toolResult", "cachePoint", "reasoningContent", "guardContent"}),
        "it is a message of Bedrock's Converse API (or of Strands): pass format='bedrock', and all"
        " messages in that form",
    ),
    (
        frozenset({"text", "image", "document", "video"}),
        "its content has a block {key!r} without a type, as Bedrock's Converse API, Strands and"
        " Haystack write it: write {{'type': 'text', 'text': ...}}, or your provider's {key}, or pass"
        " format='bedrock'",
    ),
)
"""Keys of such blocks, and what is said of them: those of an API that no form reads, and what may be mended.

Gemini's parts stand under another key than "content".
"""


def _foreign_dict(message: dict[str, Any]) -> str | None:
    if (said := said_of(message)) is not None:
        return said
    if "role" not in message:
        kind = message.get("type")
        if "lc" in message or (
            isinstance(kind, str) and kind in _LANGCHAIN_TYPES and not message.keys().isdisjoint(_HELD)
        ):
            library, instead = _LIBRARIES["langchain_core"]
            if "data" in message:  # which only its own function reads
                instead = instead.replace("(messages)", "(messages_from_dict(messages))")
            return f"it is a {library} message as a dict: pass {instead}"
        if "source" in message and isinstance(kind, str) and "content" in message:
            library, instead = _LIBRARIES["autogen_core"]
            return f"it is an {library} message as a dict: pass {instead}"
        if "from" in message and "value" in message:
            return f"it has 'from' and 'value' (as ShareGPT's data): pass {_OWN}"
    elif "content" not in message and isinstance(message.get("blocks"), list):
        library, instead = _LIBRARIES["llama_index"]
        return f"it is a {library} message as a dict: pass {instead}"
    return None


_HELD = ("content", "data")
"""Where LangChain's dicts hold the words: of `model_dump()`, and of `messages_to_dict`."""
