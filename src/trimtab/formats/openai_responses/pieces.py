"""What of a Responses input item is charged for, and which of its texts may be shortened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.formats.base import Dict, Media, Path, Pieces
from trimtab.formats.openai_chat.read import Found
from trimtab.formats.openai_responses.read import (
    ITEM_TYPES,
    OUTPUT_OF,
    answered_id_of,
    kind_of,
    tool_name,
    type_of,
)
from trimtab.formats.values import as_dict, as_list, as_text, compact_json

TEXT_PARTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
MEDIA_PARTS = frozenset({"input_image", "computer_screenshot", "input_file", "input_audio"})

# Where what a call asks for stands, by item type: the first of the keys that is there.
_ASKED: dict[str, tuple[str, ...]] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "computer_call": ("actions", "action"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",),
    "program": ("code",),
    "mcp_approval_request": ("arguments",),
    "mcp_call": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
}
_BRING_TOOLS = ("additional_tools", "tool_search_output")
_RESULT_KEYS = ("output", "outputs", "results", "result", "error")
# What is asked for, and what only the caller's machine has to know of it.
_CALL_KEYS = frozenset({key for keys in _ASKED.values() for key in keys}) | {
    "pending_safety_checks",
    "environment",
}
# Not of the prompt: identity and state of the item, marks for the cache, keys the API has to see again.
_CARRIED = frozenset(
    {
        "id",
        "type",
        "role",
        "status",
        "call_id",
        "phase",
        "caller",
        "async",
        "execution",
        "namespace",
        "server_label",
        "name",
        "approval_request_id",
        "container_id",
        "fingerprint",
        "encrypted_content",
        "created_by",
        "parsed_arguments",
        "prompt_cache_breakpoint",
    }
)
_PART_CARRIED = frozenset(
    {"type", "text", "refusal", "annotations", "logprobs", "parsed", "prompt_cache_breakpoint"}
)


def text_paths(item: Dict) -> Iterator[tuple[Path, str]]:
    """Yield the texts of an item that may be shortened: of messages, and of results."""
    name = type_of(item)
    if name == "message":
        yield from _texts_under("content", item)
    elif name == "shell_call_output":
        for index, value in enumerate(as_list(item.get("output")) or ()):
            chunk = as_dict(value) or {}
            for key in ("stdout", "stderr"):
                if isinstance(chunk.get(key), str):
                    yield ("output", index, key), chunk[key]
    elif name == "mcp_call" or (name.endswith("_call_output") and name in ITEM_TYPES):
        yield from _texts_under("output", item)


def _texts_under(key: str, item: Dict) -> Iterator[tuple[Path, str]]:
    content = item.get(key)
    if isinstance(content, str):
        yield (key,), content
        return
    for index, value in enumerate(as_list(content) or ()):
        if isinstance(value, str):
            yield (key, index), value
            continue
        part = as_dict(value) or {}
        if part.get("type") in ("input_text", "output_text") and isinstance(part.get("text"), str):
            yield (key, index, "text"), part["text"]


def pieces_of(item: Dict) -> Pieces:
    """List what of an item is charged for; see `Format.pieces`."""
    name, role = type_of(item), item.get("role")
    found = _Found()
    if name == "message":
        found.read_content(item.get("content"))
        found.read_rest(item, frozenset({"content"}))
    elif name in _ASKED:
        found.read_call(name, item)
    elif name == "reasoning":
        found.read_reasoning(item)
    elif name in _BRING_TOOLS:
        found.read_rest(item, frozenset({"tools"}))
    elif name == "compaction":
        found.read_compaction(item)
    elif name not in ("item_reference", "compaction_trigger", "configuration_update"):
        key = "result" if name == "program_output" else "output"
        found.read_content(item.get(key))
        found.read_rest(item, frozenset({key}), carried=name in ITEM_TYPES)
    return Pieces(
        role=role if isinstance(role, str) else _role_of(item),
        texts=tuple(found.texts),
        calls=tuple(found.calls),
        media=tuple(found.media),
        result_id=answered_id_of(item) or None,
        parts=found.parts,
        thoughts=tuple(found.thoughts),
        sealed_chars=len(as_text(item.get("encrypted_content")) or "") if name == "reasoning" else 0,
        tools=tuple(as_list(item.get("tools")) or ()) if name in _BRING_TOOLS else (),
        is_elsewhere=name == "item_reference",
        other=tuple(found.other),
    )


def call_text(item: Dict) -> tuple[str, str]:
    """Return the name of the tool an item calls and what it asks for, as text."""
    keys = _ASKED.get(type_of(item), ())
    asked = next((item[key] for key in keys if item.get(key) is not None), None)
    return tool_name(item), _string(asked)


def _role_of(item: Dict) -> str:
    kind = kind_of(item)
    return "developer" if kind == "system" else "" if kind == "other" else kind


class _Found(Found):
    """What was found in one item so far."""

    __slots__ = ("thoughts",)

    carried = _CARRIED
    noun = "an item"

    def __init__(self) -> None:
        super().__init__()
        self.thoughts: list[str] = []

    def read_object(self, content: Any) -> None:
        """Take an object as a part."""
        self.read_part(content)

    def read_part(self, value: Any) -> None:
        """Take one content part: text, refusal, medium, or unknown as JSON."""
        part = None if isinstance(value, str) else as_dict(value)
        if part is None:
            self.texts.append(value) if isinstance(value, str) else self.read_unknown(value)
            return
        kind = part.get("type")
        if kind == "refusal" and isinstance(part.get("refusal"), str):
            self.texts.append(part["refusal"])
        elif isinstance(kind, str) and kind in TEXT_PARTS and isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        elif isinstance(kind, str) and kind in MEDIA_PARTS:
            self.media.append(_medium(kind, part))
            return
        elif isinstance(part.get("stdout"), str) and isinstance(part.get("stderr"), str):
            self.texts.extend(text for text in (part["stdout"], part["stderr"]) if text)
            self.read_rest(part, frozenset({"stdout", "stderr"}))
            return
        else:
            self.read_unknown(part)
            return
        self.read_rest(part, _PART_CARRIED)

    def read_call(self, name: str, item: Dict) -> None:
        """Take a call, and the result that an item of a call the provider ran holds as well."""
        self.calls.append(call_text(item))
        if name in OUTPUT_OF:
            self.read_rest(item, _CALL_KEYS)
            return
        for key in _RESULT_KEYS:
            self.read_result(item.get(key), is_image=name == "image_generation_call")

    def read_result(self, result: Any, *, is_image: bool = False) -> None:
        """Take what a call found: a text, a picture in base64, anything else as JSON."""
        if result in (None, "", [], {}, ()):
            return
        if not isinstance(result, str):
            self.read_unknown(result)
        elif is_image:
            self.media.append(Media("image", None, result, None))
        else:
            self.texts.append(result)
            self.parts += 1

    def read_reasoning(self, item: Dict) -> None:
        """Take what can be read of reasoning; of what is encrypted only the size is known."""
        for key in ("content", "summary"):
            for value in as_list(item.get(key)) or ():
                text = (as_dict(value) or {}).get("text")
                if isinstance(text, str) and text:
                    self.thoughts.append(text)

    def read_compaction(self, item: Dict) -> None:
        """Take what stands for all that was before, sealed, as a file: it is charged in every turn."""
        if sealed := as_text(item.get("encrypted_content")):
            self.media.append(Media("file", None, sealed, "compaction", is_sealed=True))


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)


def _medium(kind: str, part: Dict) -> Media:
    return _MEDIA[kind](part)


def _image(part: Dict) -> Media:
    file_id = as_text(part.get("file_id"))
    return Media("image", as_text(part.get("detail")), as_text(part.get("image_url")), file_id)


def _file(part: Dict) -> Media:
    data = as_text(part.get("file_data")) or as_text(part.get("file_url"))
    return Media(
        "file",
        as_text(part.get("detail")),
        data,
        as_text(part.get("filename")) or as_text(part.get("file_id")),
    )


def _audio(part: Dict) -> Media:
    audio = as_dict(part.get("input_audio")) or {}
    return Media("audio", None, as_text(audio.get("data")), None)


_MEDIA: dict[str, Callable[[Dict], Media]] = {
    "input_image": _image,
    "computer_screenshot": _image,
    "input_file": _file,
    "input_audio": _audio,
}
