"""Reading Chat Completions: ids of calls and results, and what is charged."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from trimtab.formats.base import Media, Pieces
from trimtab.formats.content import Found
from trimtab.formats.foreign import ROLES, SAID_IN
from trimtab.formats.programs import program_of
from trimtab.formats.values import Dict, as_dict, as_list, as_text, python_json, to_text

LEGACY_PREFIX = "function:"
"""Stands before the function's name in place of the id a legacy call does not have."""

_PLAIN_KEYS = frozenset({"role", "content"})
_THOUGHT_KEYS = ("reasoning_content", "reasoning")
"""Where hosts of open models hand out, and take back, what the model thought; OpenAI has no such keys."""
_READ_KEYS = frozenset(
    {
        *("role", "content", "name", "refusal", "tool_calls", "function_call", "tool_call_id", "audio"),
        "images",
        "reasoning_details",
    }
)
# Not part of the prompt: stored beside it, marks for the cache, and the SDK's parsed copy of the content.
_CARRIED_KEYS = frozenset({"metadata", "cache_control", "prompt_cache_breakpoint", "parsed"})
_CALL_KEYS = frozenset({"id", "type", "function", "custom", "index"})
_KINDS = ("image", "audio", "video")
"""Types of parts of open models' templates: data stands under "base64", or a key called like the type."""
_MIME_KEYS = ("media_type", "mime_type", "mimeType")


def call_id_of(call: Dict | None) -> str | None:
    """Return the id of a tool call; None if it has none that is a non-empty string."""
    return None if call is None else as_text(call.get("id"))


def result_id_of(message: Dict) -> str | None:
    """Return the id of the call a message answers; None if it answers none or does not say."""
    role = message.get("role")
    if role == "tool":
        return as_text(message.get("tool_call_id"))
    if role == "function":
        name = as_text(message.get("name"))
        return as_text(message.get("tool_call_id")) or (None if name is None else LEGACY_PREFIX + name)
    return None


def call_text(call: Dict) -> tuple[str, str]:
    """Return a call's tool name and its arguments as text, "" for what is missing.

    Arguments that are an object are written as those write them who take any: Ollama, and the templates of
    open models, whose filter `tojson` is `json.dumps` with spaces (transformers 5.1, 2026-11).
    """
    function = as_dict(call.get("function"))
    if function is not None:
        return to_text(function.get("name")), to_text(function.get("arguments"), python_json)
    custom = as_dict(call.get("custom")) or {}
    return to_text(custom.get("name")), to_text(custom.get("input"), python_json)


def pieces_of(message: Dict) -> Pieces:
    """List what of a message is charged for; see `Format.pieces`."""
    content = message.get("content")
    # Most messages of a chat are these two keys; each one kept is read here once.
    if isinstance(content, str) and message.keys() == _PLAIN_KEYS:
        return Pieces(role=to_text(message["role"]), texts=(content,), parts=1)
    found = _Found()
    found.read_content(content)
    if isinstance(message.get("refusal"), str):
        found.texts.append(message["refusal"])
    if message.get("audio") is not None:
        found.read_audio(message["audio"])
    found.read_images(message.get("images"))
    found.read_calls(message)
    said = {key for key in _THOUGHT_KEYS if isinstance(message.get(key), str)}
    found.thoughts += [message[key] for key in _THOUGHT_KEYS if key in said][:1]  # both hold the same
    found.read_reasoning(message.get("reasoning_details"))
    found.read_rest(message, _READ_KEYS | said)
    return found.pieces(
        message.get("role"), name=as_text(message.get("name")), result_id=result_id_of(message)
    )


def is_foreign(message: Dict) -> bool:
    """Tell whether a message looks like one of another wire form, or of none."""
    role = message.get("role")
    if role.__class__ is not str or role not in ROLES or message.get("type") == "message":
        return True  # whose nobody knows, an item of Responses, or what Anthropic answers
    content = message.get("content")
    if isinstance(content, (list, tuple)):
        parts = [part for part in content if type(part) is dict]
        if not all(_is_part(part) for part in parts):
            return True
    elif "parts" in message or (content is None and message.keys().isdisjoint(SAID_IN["openai_chat"])):
        return True
    return program_of(message) is not None


def _is_part(part: Dict) -> bool:
    kind = part.get("type")
    return (isinstance(kind, str) and kind in _PARTS) or thought_in(part) is not None


class OpenAIFound(Found):
    """What was found in one message so far, in either of OpenAI's forms; each reads parts its own way."""

    __slots__ = ()

    def takes(self, entry: Mapping[Any, Any], key: Any, item: Any) -> bool:
        """Tell whether a value is data whose type stands beside it."""
        if not isinstance(item, str):
            return False
        kind = entry.get("type")
        if kind in _KINDS and key in (kind, "base64"):
            self.media.append(Media(kind, None, item, None))
            return True
        if key != "data":
            return False
        mime = next((entry[key] for key in _MIME_KEYS if isinstance(entry.get(key), str)), None)
        if mime is not None:
            self.media.append(Media(self.media_kind(mime), None, item, None))
        return mime is not None

    def read_content(self, content: Any) -> None:
        """Take string content as one part, a list part by part, anything else as one."""
        parts = as_list(content)
        if isinstance(content, str):
            self.texts.append(content)
            self.parts = 1
        elif parts is not None:
            self.parts = len(parts)
            for part in parts:
                self.read_part(part)
        elif content is not None:
            self.parts = 1
            self.read_object(content)

    def read_part(self, value: Any) -> None:
        """Take one content part."""
        raise NotImplementedError

    def read_object(self, content: Any) -> None:
        """Take content that is neither a text nor a list: as JSON."""
        self.read_unknown(content)


class _Found(OpenAIFound):
    __slots__ = ()

    carried = _CARRIED_KEYS

    def read_part(self, value: Any) -> None:
        """Take one content part: text, refusal, medium, or unknown as JSON."""
        part = None if isinstance(value, str) else as_dict(value)
        if part is None:
            self.read_text(value)
            return
        kind = part.get("type")
        key = kind if isinstance(kind, str) else ""
        if key in ("text", "refusal") and isinstance(part.get(key), str):
            self.texts.append(part[key])
        elif key in _MEDIA and part.get(key) is not None:
            self.media.append(_MEDIA[key](part[key]))
        elif key == "thinking" and (thought := thought_in(part)) is not None:
            self.thoughts.append(thought)
        else:
            self.read_unknown(part)
            return
        self.read_rest(part, frozenset(("type", key)))

    def read_audio(self, audio: Any) -> None:
        """Take the audio of an earlier answer, which a request names by its id."""
        entry = as_dict(audio)
        if entry is None:
            self.read_unknown({"audio": audio})
        else:
            self.media.append(Media("audio", None, as_text(entry.get("data")), as_text(entry.get("id"))))

    def read_images(self, images: Any) -> None:
        """Take pictures that stand beside the content: Ollama's in base64, OpenRouter's as parts."""
        for image in as_list(images) or (() if images is None else (images,)):
            if isinstance(image, bytes | bytearray):
                self.media.append(Media("image", None, b64encode(image).decode("ascii"), None))
            elif isinstance(image, str):
                self.media.append(Media("image", None, image, None))
            else:
                self.read_part(image)

    def read_reasoning(self, details: Any) -> None:
        """Take the reasoning that gateways carry beside an answer: text, a summary, or what is encrypted.

        The signature of a text is not charged: 651 tokens were billed for 952 with it (2026-11).
        Source: openrouter.ai/docs, "Reasoning Tokens", reasoning_details (2026-11).
        """
        for value in as_list(details) or ():
            detail = as_dict(value) or {}
            said = as_text(detail.get("text")) or as_text(detail.get("summary"))
            if said:
                self.thoughts.append(said)
            else:
                self.sealed_chars += len(as_text(detail.get("data")) or "")

    def read_calls(self, message: Dict) -> None:
        """Take tool calls and the legacy function call; what is no call goes as JSON."""
        tool_calls = message.get("tool_calls")
        listed = as_list(tool_calls)
        if listed is None:
            listed = () if tool_calls is None else (tool_calls,)
        for value in listed:
            call = as_dict(value)
            if call is None or not ("function" in call or "custom" in call):
                self.read_unknown(value)
                continue
            self.calls.append(call_text(call))
            self.read_rest(call, _CALL_KEYS)
        if message.get("function_call") is not None:
            self.calls.append(call_text({"function": message["function_call"]}))


def thought_in(part: Dict) -> str | None:
    """Return what a part of Mistral's reasoning models says; None for a part of another kind.

    It holds a list of texts, where Anthropic's block of that type holds one text. Source: `ThinkChunk` of
    docs.mistral.ai/openapi.yaml (2026-11).
    """
    chunks = as_list(part.get("thinking")) if part.get("type") == "thinking" else None
    if chunks is None:
        return None
    texts = (chunk if isinstance(chunk, str) else (as_dict(chunk) or {}).get("text") for chunk in chunks)
    return "".join(text for text in texts if isinstance(text, str))


def _image(value: Any) -> Media:
    image = as_dict(value)
    if image is None:
        return Media("image", None, as_text(value), None)
    return Media("image", as_text(image.get("detail")), as_text(image.get("url")), None)


def _audio(value: Any) -> Media:
    held = as_dict(value)
    return Media("audio", None, as_text(value if held is None else held.get("data")), None)


def _document(value: Any) -> Media:
    return Media("file", None, as_text(value), None)


def _file(value: Any) -> Media:
    file = as_dict(value) or {}
    name = as_text(file.get("filename")) or as_text(file.get("file_id"))
    return Media("file", None, as_text(file.get("file_data")), name)


_MEDIA = {"image_url": _image, "input_audio": _audio, "file": _file, "document_url": _document}
_PARTS = frozenset({*_MEDIA, "text", "refusal"})
