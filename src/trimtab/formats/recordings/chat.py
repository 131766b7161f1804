"""Messages of OpenAI Chat, put together from what other programs record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from trimtab.formats.values import Dict, compact_json, text_part

Piece: TypeAlias = Literal["part", "call", "result"]
"""What a message is made of."""

WHY_NO_REASONING = "no provider takes reasoning back from a recording"
"""Why reasoning is in no message."""

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Formats of `input_audio` by media type; Chat takes no other, and none at an address."""


def content_of_parts(parts: Sequence[Dict], /) -> str | list[Dict]:
    """Write the content of a message: one text is a string, as a user writes it."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return list(parts)


def message(role: str, parts: Sequence[Dict], calls: Sequence[Dict] = (), /) -> Dict:
    """Write a message with content, calls or both."""
    if not calls:
        return {"role": role, "content": content_of_parts(parts)}
    return {"role": role, "content": content_of_parts(parts) or None, "tool_calls": list(calls)}


def call(call_id: object, name: object, arguments: object, /) -> Dict:
    """Write a call; arguments may be the JSON they were sent as."""
    return {
        "id": str(call_id or ""),
        "type": "function",
        "function": {"name": str(name or ""), "arguments": words({} if arguments is None else arguments)},
    }


def result(call_id: object, content: str | list[Dict], /) -> Dict:
    """Write a result: a text, or parts."""
    return {"role": "tool", "tool_call_id": str(call_id or ""), "content": content}


def words(value: object, /) -> str:
    """Write what a tool gave: a text as it is, and all else as JSON."""
    return value if isinstance(value, str) else compact_json(value)


def tool(name: object, description: object, schema: Any, /, **beside: Any) -> Dict:
    """Write a tool."""
    function: Dict = {"name": str(name), "parameters": schema}
    if description:
        function["description"] = description
    return {"type": "function", "function": function | beside}


def text(value: object, /) -> Dict:
    """Write a text; what is none is written as JSON."""
    return text_part(words(value))


def media(media_type: str, /, *, address: str | None = None, data: str = "", name: str | None = None) -> Dict:
    """Write an image, a sound or a file.

    Args:
        media_type: As `image/png`, or only `image`.
        address: Where it is; None: nowhere but here. An address may hold the data.
        data: In base64.
        name: Name of the file.
    """
    kind = media_type.partition("/")[0]
    if address is not None and address.startswith("data:") and ";base64," in address:
        data, address = address.partition(";base64,")[2], None
    if kind == "audio" and address is None:
        sound = _SOUNDS.get(media_type, media_type.rpartition("/")[2])
        return {"type": "input_audio", "input_audio": {"data": data, "format": sound}}
    if address is None:
        known = media_type if "/" in media_type and "*" not in media_type else _USUAL.get(kind, _BYTES)
        address = f"data:{known};base64,{data}"
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": address}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": address}}


def file_by_id(file_id: object, /) -> Dict:
    """Write a file that the provider holds."""
    return {"type": "file", "file": {"file_id": str(file_id)}}


_BYTES = "application/octet-stream"
_USUAL = {"image": "image/png"}
"""What a media type is where only its kind is known."""


def turn(pieces: Iterable[tuple[Piece, Dict]], role: str = "assistant", /) -> list[Dict]:
    """Write what a model said and called, and results that are among it: these come behind their calls.

    What comes after the result of the last open call is a message of its own.

    Args:
        pieces: What each is, and how it is written.
        role: Whose words they are; results are always of a tool.
    """
    made = list[Dict]()
    parts, calls, results = list[Dict](), list[Dict](), list[Dict]()
    for kind, piece in pieces:
        if kind == "result":
            results.append(piece)
            continue
        if results and len(results) >= len(calls):
            made += [*([message(role, parts, calls)] if parts or calls else []), *results]
            parts, calls, results = [], [], []
        (calls if kind == "call" else parts).append(piece)
    return [*made, *([message(role, parts, calls)] if parts or calls else []), *results]
