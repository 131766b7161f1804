"""What of a message of Anthropic Messages is charged for, and which of its texts may be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from trimtab.errors import FormatError
from trimtab.formats.anthropic.read import (
    SERVER_CALLS,
    THINKING,
    blocks_of,
    is_server_result,
    result_id_of,
    type_of,
)
from trimtab.formats.base import Dict, Media, Path, Pieces, TextSlot
from trimtab.formats.values import as_dict, as_list, as_text, compact_json, item_of

_MessageKeys = frozenset({"role", "content"})

# Not part of the prompt: marks for the cache and for citations, who called, what a response says about itself
# (a whole `Message` object may stand in the list), and what the API is told about a block.
_CARRIED = frozenset(
    {
        "cache_control",
        "caller",
        "citations",
        "clear_at",
        "container",
        "context_management",
        "diagnostics",
        "id",
        "metadata",
        "model",
        "output_config",
        "parsed_output",
        "signature",
        "stop_details",
        "stop_reason",
        "stop_sequence",
        "toolset_name",
        "transformations",
        "type",
        "usage",
    }
)
_SEALED = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})
"""Fields the provider alone can read: only their size is known."""


def pieces_of(message: Dict) -> Pieces:
    """List what of a message is charged for; see `Format.pieces`."""
    content = message.get("content")
    role = message.get("role")
    if isinstance(content, str) and message.keys() == _MessageKeys and isinstance(role, str):
        return Pieces(role=role, texts=(content,), parts=1)
    found = _Found()
    blocks = as_list(content)
    if isinstance(content, str):
        found.texts.append(content)
    elif blocks is None:
        found.unknown(content)
    for block in blocks or ():
        found.block(block)
    found.rest(message, _MessageKeys)
    results = [result_id_of(block) for block in blocks or () if type_of(block) == "tool_result"]
    return Pieces(
        role=role if isinstance(role, str) else "" if role is None else compact_json(role),
        texts=tuple(found.texts),
        calls=tuple(found.calls),
        media=tuple(found.media),
        result_id=results[0] or None if len(results) == 1 else None,
        parts=len(blocks) if blocks is not None else int(content is not None),
        results=len(results),
        thoughts=tuple(found.thoughts),
        sealed_chars=found.sealed_chars,
        tools=tuple(found.tools),
        other=tuple(found.other),
    )


class _Found:
    """What was found in one message so far."""

    __slots__ = ("calls", "media", "other", "sealed_chars", "texts", "thoughts", "tools")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.media: list[Media] = []
        self.other: list[str] = []
        self.thoughts: list[str] = []
        self.sealed_chars = 0
        self.tools: list[Any] = []

    def block(self, value: Any) -> None:
        """Take one block: by its type, or as JSON where that is not known."""
        block = None if isinstance(value, str) else as_dict(value)
        if block is None:
            self.texts.append(value) if isinstance(value, str) else self.unknown(value)
            return
        kind = block.get("type")
        read = _READERS.get(kind) if isinstance(kind, str) else None
        if read is not None:
            read(self, block)
        elif is_server_result(kind):
            self._server_result(block)
        else:
            self.unknown(block)

    def blocks(self, value: Any) -> None:
        """Take content inside a block: a string, or blocks."""
        listed = as_list(value)
        if listed is None:
            self.text(value)
        for block in listed or ():
            self.block(block)

    def text(self, value: Any) -> None:
        """Take a text; what should be one and is not, as JSON."""
        self.texts.append(value) if isinstance(value, str) else self.unknown(value)

    def rest(self, owner: Dict, known: frozenset[str]) -> None:
        """Take the keys that have no name here, except those that are carried and not charged."""
        for key, value in owner.items():
            if key not in known and key not in _CARRIED and value not in (None, "", [], {}, ()):
                self.unknown({key: value})

    def unknown(self, value: Any) -> None:
        """Take a value as compact JSON; what is base64 or sealed in it as a medium."""
        if value is None:
            return
        try:
            plain = _without_data(value, self.media)
        except RecursionError as error:
            raise FormatError("a message is nested too deep to be written as JSON") from error
        self.other.append(compact_json(plain))

    def sealed(self, value: Any, name: str) -> None:
        """Take what only the provider can read."""
        if isinstance(value, str) and value:
            self.media.append(Media("file", None, value, name, is_sealed=True))

    def _plain_text(self, block: Dict) -> None:
        self.text(block.get("text"))
        self.rest(block, frozenset({"text"}))

    def _call(self, block: Dict) -> None:
        given = block.get("input")
        arguments = given if isinstance(given, str) else "" if given is None else compact_json(given)
        self.calls.append((as_text(block.get("name")) or "", arguments))
        self.rest(block, frozenset({"name", "input"}))

    def _result(self, block: Dict) -> None:
        self.blocks(block.get("content"))
        self.rest(block, frozenset({"tool_use_id", "content", "is_error"}))

    def _server_result(self, block: Dict) -> None:
        """Take the result of a tool the provider ran: blocks, or values by their names."""
        for value in as_list(block.get("content")) or (block.get("content"),):
            self.block(value) if type_of(value) in _READERS else self.unknown(value)
        self.rest(block, frozenset({"tool_use_id", "content", "is_error"}))

    def _thinking(self, block: Dict) -> None:
        """Take thinking that can be read; of what cannot, only the size is known."""
        thought = block.get("thinking")
        if isinstance(thought, str) and thought:
            self.thoughts.append(thought)
        else:
            self.sealed_chars += len(as_text(block.get("signature")) or "")
        self.rest(block, frozenset({"thinking"}))

    def _redacted(self, block: Dict) -> None:
        self.sealed_chars += len(as_text(block.get("data")) or "")
        self.rest(block, frozenset({"data"}))

    def _compaction(self, block: Dict) -> None:
        self.text(block.get("content"))
        self.sealed(block.get("encrypted_content"), "compaction")
        self.rest(block, frozenset({"content", "encrypted_content"}))

    def _image(self, block: Dict) -> None:
        self._source(block.get("source"), "image")
        self.rest(block, frozenset({"source"}))

    def _document(self, block: Dict) -> None:
        for key in ("title", "context"):
            if block.get(key) is not None:
                self.text(block[key])
        self._source(block.get("source"), "file")
        self.rest(block, frozenset({"title", "context", "source"}))

    def _source(self, value: Any, kind: Literal["image", "file"]) -> None:
        """Take where an image or document comes from: data, an address, the id of a file, text or blocks."""
        source = as_dict(value) or {}
        way = source.get("type")
        if way == "text":
            self.text(source.get("data"))
        elif way == "content":
            self.blocks(source.get("content"))
        elif way == "file":
            self.media.append(Media(kind, None, None, as_text(source.get("file_id"))))
        else:
            data = as_text(source.get("data")) or as_text(source.get("url"))
            self.media.append(Media(kind, None, data, None))

    def _search_result(self, block: Dict) -> None:
        for key in ("title", "source"):
            self.text(block.get(key))
        self.blocks(block.get("content"))
        self.rest(block, frozenset({"title", "source", "content"}))

    def _reference(self, block: Dict) -> None:
        """Take a tool that is loaded from here on; what of its schema is here is the name."""
        self.tools.append({"name": as_text(block.get("tool_name")) or "", "input_schema": {}})

    def _upload(self, block: Dict) -> None:
        self.media.append(Media("file", None, None, as_text(block.get("file_id"))))

    def _unshown(self, block: Dict) -> None:
        """Pass over what the API takes and does not show to the model."""


_READERS: dict[str, Callable[[_Found, Dict], None]] = {
    "text": _Found._plain_text,
    "image": _Found._image,
    "document": _Found._document,
    "search_result": _Found._search_result,
    "tool_reference": _Found._reference,
    "thinking": _Found._thinking,
    "redacted_thinking": _Found._redacted,
    "tool_use": _Found._call,
    "tool_result": _Found._result,
    **dict.fromkeys(SERVER_CALLS, _Found._call),
    "container_upload": _Found._upload,
    "compaction": _Found._compaction,
    "fallback": _Found._unshown,
}


def _without_data(value: Any, media: list[Media]) -> Any:
    """Return a value without what is base64 or sealed in it, which is added to `media`."""
    if isinstance(value, list | tuple):
        return [_without_data(item, media) for item in value]
    entry = value if isinstance(value, Mapping) else as_dict(value)
    if entry is None:
        return value
    kept: Dict = {}
    encoded = as_text(entry.get("media_type"))
    for key, item in entry.items():
        if isinstance(item, str) and key in _SEALED:
            media.append(Media("file", None, item, str(key), is_sealed=True))
        elif isinstance(item, str) and key == "data" and encoded not in (None, "text/plain"):
            media.append(Media("image" if str(encoded).startswith("image/") else "file", None, item, None))
        elif key != "cache_control":
            kept[key] = _without_data(item, media)
    return kept


def texts_of(message: Dict, *, whole: bool = False) -> Iterator[TextSlot]:
    """Yield the texts of a message that may be cut; see `Format.texts`.

    Of the model's none where it thinks, which the API checks, and none with citations, which hold an index
    into it. What the provider's own tools returned stays as it came.

    Args:
        message: Any message.
        whole: Whether texts that may not be cut are listed, too: for reading.
    """
    content = message.get("content")
    if isinstance(content, str):
        yield TextSlot(("content",), content, is_result=False)
        return
    blocks = blocks_of(message)
    by_model = message.get("role") == "assistant" and not whole
    if by_model and any(type_of(block) in THINKING for block in blocks):
        return
    for at, block in enumerate(blocks):
        path: Path = ("content", at)
        if type_of(block) == "tool_result":
            yield from _nested(item_of(block, "content"), (*path, "content"), is_result=True)
        elif not (by_model and item_of(block, "citations")):
            yield from _block_texts(block, path, is_result=False)


def _nested(content: Any, path: Path, *, is_result: bool) -> Iterator[TextSlot]:
    if isinstance(content, str):
        yield TextSlot(path, content, is_result)
        return
    for at, block in enumerate(as_list(content) or ()):
        yield from _block_texts(block, (*path, at), is_result=is_result)


def _block_texts(block: Any, path: Path, *, is_result: bool) -> Iterator[TextSlot]:
    kind = type_of(block)
    if kind == "text":
        text = item_of(block, "text")
        if isinstance(text, str):
            yield TextSlot((*path, "text"), text, is_result)
    elif kind == "search_result":
        yield from _nested(item_of(block, "content"), (*path, "content"), is_result=is_result)
    elif kind == "document":
        source = item_of(block, "source")
        way, data = type_of(source), item_of(source, "data")
        if way == "text" and isinstance(data, str):
            yield TextSlot((*path, "source", "data"), data, is_result)
        elif way == "content":
            yield from _nested(item_of(source, "content"), (*path, "source", "content"), is_result=is_result)
