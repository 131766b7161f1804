"""What of a Gemini content is charged for."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal

from trimtab.errors import FormatError
from trimtab.formats.base import Dict, Media, Pieces
from trimtab.formats.gemini.read import SIGNATURE, key_in, parts_in, results_of, value_in
from trimtab.formats.values import as_dict, as_list, as_text, compact_json

# Not part of the prompt: marks, settings of how a medium is sampled, and what the model heard.
_CARRIED = frozenset(
    {
        "thought",
        SIGNATURE,
        "video_metadata",
        "media_resolution",
        "media_processing",
        "part_metadata",
        "audio_transcription",
        "speech_metadata",
        "document_metadata",
        "spreadsheet_metadata",
        "audio_metadata",
    }
)
_SNAKE = str.maketrans({chr(code): f"_{chr(code + 32)}" for code in range(65, 91)})


_PLACEHOLDER_CHARS = 64
"""Longest of the texts that the API takes in place of a signature ("skip_thought_signature_validator")."""


def pieces_of(message: Dict) -> Pieces:
    """List what of a content is charged for; see `Format.pieces`."""
    found = _Found()
    listed = as_list(message.get("parts"))
    try:
        if listed is None and message.get("parts") is not None:
            found.read_other(message["parts"])
        for value in listed or ():
            found.read_part(value)
        for key, value in message.items():
            if key not in ("role", "parts") and value is not None:
                found.read_other({key: value})
    except RecursionError as error:
        raise FormatError("a content is nested too deep to be written as JSON") from error
    results = results_of(parts_in(message))
    role = message.get("role")
    return Pieces(
        role=role if isinstance(role, str) else "user" if role is None else compact_json(role),
        texts=tuple(found.texts),
        calls=tuple(found.calls),
        media=tuple(found.media),
        result_id=results[0].id if len(results) == 1 else None,
        parts=len(listed or ()),
        results=len(results),
        thoughts=tuple(found.thoughts),
        sealed_chars=found.sealed_chars,
        other=tuple(found.other),
    )


class _Found:
    """What was found in one content so far."""

    __slots__ = ("calls", "media", "other", "sealed_chars", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.media: list[Media] = []
        self.other: list[str] = []
        self.thoughts: list[str] = []
        self.sealed_chars = 0

    def read_part(self, value: Any) -> None:
        """Take one part: text, thought, call, response, medium, or unknown as JSON."""
        if isinstance(value, str):
            self.texts.append(value)
            return
        part = as_dict(value)
        if part is None:
            self.read_other(value)
            return
        for key, data in part.items():
            name = key.translate(_SNAKE) if isinstance(key, str) else ""
            if data is None or name in _CARRIED:
                continue
            if name == "text" and isinstance(data, str):
                (self.thoughts if part.get("thought") is True else self.texts).append(data)
            elif name == "function_call":
                self.read_call(data)
                self.read_signature(value_in(part, SIGNATURE))
            elif name == "function_response":
                self.read_response(data)
            elif name in ("inline_data", "file_data") and as_dict(data) is not None:
                self.media.append(_medium(as_dict(data) or {}, part))
            else:
                self.read_other({key: data})

    def read_call(self, value: Any) -> None:
        """Take a function call: its name, and its arguments as JSON."""
        call = as_dict(value)
        if call is None:
            self.read_other({"functionCall": value})
            return
        args = call.get("args")
        text = "" if args is None else compact_json(without_bytes(args, self.media))
        self.calls.append((_string(call.get("name")), text))

    def read_signature(self, value: Any) -> None:
        """Take the encrypted thought behind a call; what stands for one that is missing is short."""
        chars = (
            len(value) if isinstance(value, str) else len(value) * 4 // 3 if isinstance(value, bytes) else 0
        )
        self.sealed_chars += chars if chars > _PLACEHOLDER_CHARS else 0

    def read_response(self, value: Any) -> None:
        """Take a function response: name and response as JSON, and the media beside them."""
        entry = as_dict(value)
        if entry is None:
            self.read_other({"functionResponse": value})
            return
        shown = {key: entry[key] for key in ("name", "response") if entry.get(key) is not None}
        self.read_other(shown)
        for part in as_list(entry.get("parts")) or ():
            self.read_part(part)

    def read_other(self, value: Any) -> None:
        """Take a value as compact JSON, what is bytes or base64 in it as a medium."""
        self.other.append(compact_json(without_bytes(value, self.media)))


def without_bytes(value: Any, media: list[Media]) -> Any:
    """Return a value without its base64 and bytes, which are added to `media`."""
    if isinstance(value, bytes | bytearray):
        media.append(Media("file", None, b64encode(value).decode("ascii"), None))
        return ""
    if isinstance(value, list | tuple):
        return [without_bytes(item, media) for item in value]
    entry = value if isinstance(value, Mapping) else as_dict(value)
    if entry is None:
        return _without_data_url(value, media) if isinstance(value, str) else value
    plain = {key: item for key, item in entry.items() if isinstance(key, str)}
    if key_in(plain, "mime_type") is not None and plain.get("data") is not None:
        media.append(_medium(plain, {}))
        entry = {key: item for key, item in entry.items() if key != "data"}
    return {key: without_bytes(item, media) for key, item in entry.items()}


def _without_data_url(text: str, media: list[Media]) -> str:
    head = text[:128] if text.startswith("data:") else ""
    if ";base64," not in head:
        return text
    media.append(Media(_kind_of(head[5:]), None, text, None))
    return ""


def _medium(entry: Dict, part: Dict) -> Media:
    """Read `inlineData` (base64, or bytes in the SDK's objects) or `fileData` (a URI)."""
    data = entry.get("data")
    if isinstance(data, bytes | bytearray):
        data = b64encode(data).decode("ascii")
    return Media(
        _kind_of(value_in(entry, "mime_type")),
        _detail(value_in(part, "media_resolution")),
        as_text(data) or as_text(value_in(entry, "file_uri")),
        as_text(value_in(entry, "display_name")),
    )


def _detail(resolution: Any) -> str | None:
    """Read `MEDIA_RESOLUTION_LOW` as "low"."""
    entry = as_dict(resolution)
    level = resolution if entry is None else entry.get("level")
    text = as_text(getattr(level, "value", level))
    return None if text is None else text.removeprefix("MEDIA_RESOLUTION_").lower()


def _kind_of(mime: Any) -> Literal["image", "audio", "video", "file"]:
    text = mime if isinstance(mime, str) else ""
    if text.startswith("image/"):
        return "image"
    if text.startswith("video/"):
        return "video"
    return "audio" if text.startswith("audio/") else "file"


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else compact_json(value)
