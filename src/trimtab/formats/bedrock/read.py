"""Reading Bedrock's Converse messages: what a block is, what is charged of it, and what may be cut.

A block is named by its one key. What belongs together is as in Anthropic's messages, so that the reader of
those is asked: `view_of` shows it a message block for block, without what says nothing between them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from trimtab.formats.anthropic.read import kind_of as kind_of_view
from trimtab.formats.base import Media, Pieces, TextSlot
from trimtab.formats.content import Found
from trimtab.formats.structure import Kind, Structure
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    as_text,
    compact_json,
    item_of,
    longest_strings_in,
    to_text,
)

BLOCKS = (
    *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint"),
    *("reasoningContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval"),
)
"""Keys of `ContentBlock` in the service model of bedrock-runtime (botocore 1.44.5, 2026-11)."""

CACHE_POINT, CALL, RESULT, THOUGHT = "cachePoint", "toolUse", "toolResult", "reasoningContent"

_TYPES = {CALL: "tool_use", RESULT: "tool_result", THOUGHT: "thinking", "searchResult": "search_result"}
"""What Anthropic calls blocks that have another name here."""


def blocks_of(message: object) -> Sequence[object]:
    """List the blocks of a message; none where its content is a string."""
    return as_list(item_of(message, "content")) or ()


def key_of(block: object) -> str:
    """Return the key that names a block: one of the API's, else its first; "" if it has none."""
    if isinstance(block, str) or (entry := as_dict(block)) is None:
        return ""
    if len(entry) == 1:  # as nearly all are
        (only,) = entry
        return only if isinstance(only, str) else ""
    found = next((key for key in BLOCKS if entry.get(key) is not None), None)
    return found or next((key for key in entry if isinstance(key, str)), "")


def is_cache_point(block: object) -> bool:
    """Tell whether a block only marks where a cached prefix ends."""
    return key_of(block) == CACHE_POINT


def is_blank(block: object) -> bool:
    """Tell whether a block is a text without words."""
    text = item_of(block, "text")
    return isinstance(text, str) and not text.strip()


def places_of(message: object) -> list[int]:
    """List the positions of the blocks that say something: those that are no cache points.

    Nor blank text where all else is results: the API takes it beside them, and refuses it alone.
    """
    blocks = blocks_of(message)
    keys = [*map(key_of, blocks)]
    places = [at for at, key in enumerate(keys) if key != CACHE_POINT]
    if RESULT in keys and "text" in keys and item_of(message, "role") == "user":
        said = [at for at in places if not is_blank(blocks[at])]
        if all(keys[at] == RESULT for at in said):
            return said
    return places


def view_of(message: object) -> Dict:
    """Show a message as Anthropic's reader knows it: blocks with a type, ids of calls and results, texts."""
    role, content = item_of(message, "role"), item_of(message, "content")
    if (blocks := as_list(content)) is None:
        return {"role": role, "content": content}
    shown = [_view_of_block(block, key) for block in blocks if (key := key_of(block)) != CACHE_POINT]
    if role == "user" and len(shown) > 1 and len(places := places_of(message)) < len(shown):
        shown = [_view_of_block(blocks[at], key_of(blocks[at])) for at in places]
    return {"role": role, "content": shown}


def _view_of_block(block: object, key: str) -> Dict:
    data = item_of(block, key) if key else None
    if key == CALL:
        by_provider = item_of(data, "type") == "server_tool_use"
        kind = "server_tool_use" if by_provider else "tool_use"
        return {"type": kind, "id": item_of(data, "toolUseId")}
    if key == RESULT:
        kind = "server_tool_result" if item_of(data, "type") else "tool_result"
        return {"type": kind, "tool_use_id": item_of(data, "toolUseId")}
    return {"type": _TYPES.get(key, key), "text": data} if key == "text" else {"type": _TYPES.get(key, key)}


class Views(list[Dict]):
    """Messages as Anthropic's reader knows them, each made when it is asked for, by its position."""

    def __init__(self, messages: list[object], structure: Structure) -> None:
        super().__init__()
        self._messages, self._structure = messages, structure

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        return view_of(self._structure.read_as_dict(self._messages, index))


def kind_of(message: object) -> Kind:
    """Tell whom a message is from; a user message that says nothing but results is the tools'."""
    role = item_of(message, "role")
    if role != "user" or not (blocks := blocks_of(message)):
        return kind_of_view({"role": role})
    results = [*map(key_of, blocks)].count(RESULT)
    alone = results and (results == len(blocks) or results == len(places_of(message)))
    return "tool" if alone else "user"


_CARRIED = frozenset({CACHE_POINT, "citations", "signature", "status", "toolUseId", "type"})
"""Not part of the prompt: marks, citations, which call is answered."""


class _Found(Found):
    __slots__ = ()

    carried = _CARRIED

    def without_url(self, value: object) -> object:
        """Return a value that holds no others; bytes are added to the media."""
        if not isinstance(value, bytes | bytearray):
            return value
        self.media.append(Media("file", None, b64encode(value).decode("ascii"), None))
        return ""

    def takes(self, entry: Mapping[object, object], key: object, item: object) -> bool:
        return bool(key == CACHE_POINT)

    def read_block(self, value: object) -> None:
        """Take one block: by its key, or as JSON where nobody knows that."""
        key = key_of(value)
        read = _READERS.get(key)
        if read is None:
            self.read_text(value) if isinstance(value, str) else self.read_unknown(value)
            return
        entry = as_dict(value) or {}
        read(self, entry[key])
        if len(entry) > 1:
            self.read_rest(entry, (key,))

    def read_blocks(self, value: object) -> None:
        """Take content inside a block."""
        listed = as_list(value)
        if listed is None:
            self.read_text(value)
        for block in listed or ():
            self.read_block(block)

    def read_nothing(self, value: object) -> None:
        """Pass over what is free."""

    def read_json(self, value: object) -> None:
        """Take what a tool returned as an object: the model is shown JSON."""
        self.texts.append(self.to_json(value))

    def read_call(self, value: object) -> None:
        """Take a call: its name, and its input as JSON."""
        call = as_dict(value)
        if call is None:
            self.read_unknown({CALL: value})
            return
        self.read_rest(call, ("name", "input"))
        self.calls.append((as_text(call.get("name")) or "", to_text(call.get("input"), self.write_json)))

    def read_result(self, value: object) -> None:
        """Take the result of a call."""
        result = as_dict(value)
        if result is None:
            self.read_unknown({RESULT: value})
            return
        self.read_blocks(result.get("content") or ())
        self.read_rest(result, ("content",))

    def read_thought(self, value: object) -> None:
        """Take reasoning: text that was signed, or what only the provider can read."""
        entry = as_dict(value) or {}
        thought = as_dict(entry.get("reasoningText")) or {}
        if said := as_text(thought.get("text")):
            self.thoughts.append(said)
        else:
            self.sealed_chars += _chars_in(thought.get("signature"))
        self.sealed_chars += _chars_in(entry.get("redactedContent"))

    def read_image(self, value: object) -> None:
        """Take an image."""
        self.read_medium(value, "image")

    def read_video(self, value: object) -> None:
        """Take a video."""
        self.read_medium(value, "video")

    def read_audio(self, value: object) -> None:
        """Take a sound."""
        self.read_medium(value, "audio")

    def read_medium(self, value: object, kind: Literal["image", "audio", "video", "file"]) -> None:
        """Take where a medium comes from: bytes, which JSON writes in base64, or a place in S3."""
        source = item_of(value, "source")
        data = item_of(source, "bytes")
        if isinstance(data, bytes | bytearray):
            data = b64encode(data).decode("ascii")
        place = item_of(item_of(source, "s3Location"), "uri")
        self.media.append(Media(kind, None, as_text(data), as_text(place)))

    def read_document(self, value: object) -> None:
        """Take a document: its name, what is said of it, and a file, text or blocks."""
        document = as_dict(value)
        source = as_dict(item_of(value, "source")) or {}
        if document is None:
            self.read_unknown({"document": value})
            return
        for key in ("name", "context"):
            self.read_text(document.get(key))
        self.read_cited(document)
        self.documents += "text" in source or "content" in source
        if "text" in source:
            self.read_text(source["text"])
        elif "content" in source:
            self.read_blocks(source["content"])
        else:
            self.read_medium(value, "file")

    def read_cited(self, value: object) -> None:
        """Note whether the model may cite a document or what was found."""
        self.is_cited |= item_of(item_of(value, "citations"), "enabled") is True

    def read_search_result(self, value: object) -> None:
        """Take what was found, and where."""
        self.read_cited(value)
        for key in ("title", "source"):
            self.read_text(item_of(value, key))
        self.read_blocks(item_of(value, "content") or ())

    def read_citations(self, value: object) -> None:
        """Take what the model said with citations."""
        self.read_blocks(item_of(value, "content") or ())

    def read_guard(self, value: object) -> None:
        """Take what a guardrail looks at."""
        entry = as_dict(value) or {}
        for one in (entry.get("text"), entry.get("image")):
            if as_dict(one) is not None and item_of(one, "source") is None:
                self.read_text(item_of(one, "text"))
            elif one is not None:
                self.read_medium(one, "image")


def _chars_in(value: object) -> int:
    """Return how many characters of base64 something sealed has."""
    if isinstance(value, bytes | bytearray):
        return len(value) * 4 // 3
    return len(value) if isinstance(value, str) else 0


_Reader: TypeAlias = Callable[[_Found, object], None]

_READERS: dict[str, _Reader] = {
    "text": _Found.read_text,
    "json": _Found.read_json,
    "image": _Found.read_image,
    "video": _Found.read_video,
    "audio": _Found.read_audio,
    "document": _Found.read_document,
    "searchResult": _Found.read_search_result,
    "citationsContent": _Found.read_citations,
    "guardContent": _Found.read_guard,
    CALL: _Found.read_call,
    RESULT: _Found.read_result,
    THOUGHT: _Found.read_thought,
    CACHE_POINT: _Found.read_nothing,
}
"""How the blocks are read that are charged by more than their JSON."""


def pieces_of(message: Dict, write_json: Callable[[Any], str] = compact_json) -> Pieces:
    """List what of a message is charged for; see `Format.pieces`."""
    content, found = message.get("content"), _Found(write_json)
    blocks = as_list(content)
    if blocks is None:
        found.read_text(content)
    for block in blocks or ():
        found.read_block(block)
    found.read_rest(message, ("role", "content"))
    results = [result_id_of(block) for block in blocks or () if key_of(block) == RESULT]
    found.parts = (
        int(content is not None) if blocks is None else sum(not is_cache_point(block) for block in blocks)
    )
    return found.pieces(
        message.get("role"), result_id=results[0] or None if len(results) == 1 else None, results=len(results)
    )


def result_id_of(block: object) -> str:
    """Return the id of the call a result answers; "" if it names none."""
    return as_text(item_of(item_of(block, RESULT), "toolUseId")) or ""


def plain_words(message: Dict) -> str:
    """Return what a plain message says; see `Format.full_text`. It takes a few lookups.

    Raises:
        KeyError: It is not plain.
        TypeError: The same.
    """
    if len(message) != 2 or "role" not in message:
        raise KeyError
    texts, calls = [], []
    for block in message["content"]:
        (key,) = block if len(block) == 1 else ("",)
        data = block[key]
        if key == "text":
            texts.append(data)
        elif key == CALL and data.keys() == _CALL_KEYS:
            calls.append(f"{data['name']} {to_text(data['input'])}")
        elif key == RESULT:
            for part in data["content"]:
                ((kind, told),) = part.items()
                if kind not in ("text", "json") or told.__class__ not in (str, dict):
                    raise KeyError
                texts.append(told if kind == "text" else compact_json(told))
        elif key != CACHE_POINT:
            raise KeyError
    return "\n".join(texts + calls)


_CALL_KEYS = frozenset({"toolUseId", "name", "input"})


def texts_of(message: Dict, *, whole: bool = False) -> Iterator[TextSlot]:
    """Yield the texts of a message that may be cut; see `Format.texts`.

    Of the model's none where it reasons, which is signed, and none that is cited, which others point into.

    Args:
        message: object message.
        whole: Whether texts that may not be cut are listed, too: for reading.
    """
    content = message.get("content")
    if isinstance(content, str):
        yield TextSlot(("content",), content, is_result=False)
        return
    blocks = blocks_of(message)
    if message.get("role") == "assistant" and not whole and any(key_of(block) == THOUGHT for block in blocks):
        return
    for at, block in enumerate(blocks):
        path: Path = ("content", at)
        if key_of(block) == RESULT:
            inside: Path = (*path, RESULT, "content")
            for inner, one in enumerate(as_list(item_of(item_of(block, RESULT), "content")) or ()):
                yield from _texts_in(one, (*inside, inner), is_result=True)
        elif key_of(block) != "citationsContent" or whole:
            yield from _texts_in(block, path, is_result=False)


def _texts_in(block: object, path: Path, *, is_result: bool) -> Iterator[TextSlot]:
    key = key_of(block)
    data = item_of(block, key) if key else None
    if key == "json":
        for place, text in longest_strings_in(data):
            yield TextSlot((*path, key, *place), text, is_result)
        return
    at: Path = _TEXT_AT.get(key, ())
    inner = data
    for step in at:
        inner = item_of(inner, step)
    if isinstance(inner, str) and key in _TEXT_AT:
        yield TextSlot((*path, key, *at), inner, is_result)
    where: Path = _BLOCKS_AT.get(key, ())
    listed = data if where else None
    for step in where:
        listed = item_of(listed, step)
    for index, one in enumerate(as_list(listed) or ()):
        yield from _texts_in(one, (*path, key, *where, index), is_result=is_result)


_TEXT_AT: dict[str, Path] = {"text": (), "guardContent": ("text", "text"), "document": ("source", "text")}
"""Where in a block of a kind its text is."""

_BLOCKS_AT: dict[str, Path] = {
    "document": ("source", "content"),
    "searchResult": ("content",),
    "citationsContent": ("content",),
}
"""Where in a block of a kind more blocks are."""
