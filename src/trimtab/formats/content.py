"""What was found in a message while a wire form reads it, before it is `Pieces`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Literal

from trimtab.errors import FormatError
from trimtab.formats.base import Media, Pieces
from trimtab.formats.values import Dict, as_dict, compact_json, to_text

_KINDS: tuple[Literal["image", "audio", "video"], ...] = ("image", "audio", "video")
"""Kinds of media that are told by how their MIME type begins; all else is a file."""


class Found:
    """What was found in one message so far, until it is `Pieces`; each form reads parts its own way."""

    __slots__ = (
        "calls",
        "documents",
        "is_cited",
        "media",
        "other",
        "parts",
        "sealed_chars",
        "texts",
        "thoughts",
        "tools",
        "write_json",
    )

    carried: ClassVar[frozenset[str]]
    """Keys that are not charged, wherever they stand."""
    noun: ClassVar[str] = "a message"
    """What an error calls the message."""

    def __init__(self, write_json: Callable[[Any], str] = compact_json) -> None:
        self.write_json = write_json
        self.texts: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.media: list[Media] = []
        self.other: list[str] = []
        self.thoughts: list[str] = []
        self.tools: list[Any] = []
        self.parts = self.sealed_chars = self.documents = 0
        self.is_cited = False

    def without_data(self, value: Any) -> Any:
        """Return plain data without what is encoded in it, which is added to the media."""
        if isinstance(value, list | tuple):
            return [self.without_data(item) for item in value]
        entry = value if isinstance(value, Mapping) else as_dict(value)
        if entry is None:
            return self.without_url(value)
        return {
            key: self.without_data(item) for key, item in entry.items() if not self.takes(entry, key, item)
        }

    def without_url(self, value: Any) -> Any:
        """Return a value that holds no others; a data URL is added to the media, and "" stands for it."""
        head = value[:128] if isinstance(value, str) and value.startswith("data:") else ""
        if ";base64," not in head:
            return value
        self.media.append(Media(self.media_kind(head[5:]), None, value, None))
        return ""

    def takes(self, entry: Mapping[Any, Any], key: Any, item: Any) -> bool:
        """Tell whether a value of a mapping was taken as a medium, or is free."""
        raise NotImplementedError

    def media_kind(self, mime: Any) -> Literal["image", "audio", "video", "file"]:
        """Tell the kind of a medium by its MIME type."""
        text = mime if isinstance(mime, str) else ""
        for kind in _KINDS:
            if text.startswith(f"{kind}/"):
                return kind
        return "file"

    def read_text(self, value: Any) -> None:
        """Take a text; what should be one and is not, as JSON."""
        self.texts.append(value) if isinstance(value, str) else self.read_unknown(value)

    def read_rest(self, owner: Dict, known: Collection[str], *, carried: bool = True) -> None:
        """Take the keys that have no name here, except those that are carried and not charged."""
        for key, value in owner.items():
            if key in known or (carried and key in self.carried) or value in (None, "", [], {}, ()):
                continue
            self.read_unknown({key: value})

    def read_unknown(self, value: Any) -> None:
        """Take a value as JSON, what is encoded in it as a medium."""
        if value is not None:
            self.other.append(self.to_json(value))

    def to_json(self, value: Any) -> str:
        """Write a value as JSON; what is encoded in it is taken as a medium.

        Raises:
            FormatError: It is nested too deep, or in a circle.
        """
        try:
            return self.write_json(self.without_data(value))
        except RecursionError as error:
            raise FormatError(f"{self.noun} is nested too deep to be written as JSON") from error

    def pieces(self, role: Any, /, **known: Any) -> Pieces:
        """Write down what was found, with what else is known of the message."""
        return Pieces(
            role=to_text(role),
            texts=tuple(self.texts),
            calls=tuple(self.calls),
            media=tuple(self.media),
            parts=self.parts,
            thoughts=tuple(self.thoughts),
            sealed_chars=self.sealed_chars,
            tools=tuple(self.tools),
            documents=self.documents,
            is_cited=self.is_cited,
            other=tuple(self.other),
            **known,
        )
