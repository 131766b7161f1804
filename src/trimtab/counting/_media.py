"""What images, sounds and files are charged, from as much of them as a message holds.

Nothing here decodes a picture: sizes are read from the first bytes of the data. Where a size
cannot be known, the most the rule allows is taken.
"""

from __future__ import annotations

import binascii
import math
import re
from typing import NamedTuple

from trimtab.formats._base import Media
from trimtab.models import MediaRule

_HEADER_CHARS = 400_000
"""Base64 characters looked at for an image's size: a JPEG may have a thumbnail before it."""

_PATCH_PIXELS, _MAX_PATCHES = 32, 1_536
_TILE_PIXELS, _LONG_PIXELS, _SHORT_PIXELS = 512, 2_048, 768
_MOST_TILES = 8

_BYTES_PER_SECOND = 8_000
"""Of compressed sound at 64 kbit/s; at a higher rate the estimate is too high, on the safe side."""
_AUDIO_FRAMING_TOKENS = 3

_PDF_BYTES_PER_TOKEN = 16
"""Billed: 1 token per 20 and 60 bytes for two small PDFs on gpt-5-mini and gpt-4o (2026-11)."""
_PAGE_TOKENS = 1_500
"""A PDF page is charged as an image of it and its text; no page seen cost more."""
_PAGE = re.compile(rb"/Type\s*/Page\b")


class Pixels(NamedTuple):
    """Size of an image."""

    width: int
    height: int


def media_tokens(media: Media, rule: MediaRule, /) -> int:
    """Count one image, sound or file by a model's rule."""
    if rule.part_tokens is not None:
        return rule.part_tokens
    if media.kind == "image":
        return _image_tokens(media, rule)
    if media.kind == "audio":
        return _audio_tokens(_base64_of(media.data), rule)
    return _file_tokens(_base64_of(media.data), rule)


def _image_tokens(media: Media, rule: MediaRule) -> int:
    size = image_size(_base64_of(media.data)[:_HEADER_CHARS])
    if rule.patch_factor is not None:
        patches = _MAX_PATCHES if size is None else _patches(size)
        return rule.image_tokens + math.ceil(patches * rule.patch_factor)
    if media.detail == "low":
        return rule.image_tokens
    tiles = _MOST_TILES if size is None else _tiles(size)
    return rule.image_tokens + tiles * rule.tile_tokens


def _patches(size: Pixels) -> int:
    across = math.ceil(size.width / _PATCH_PIXELS) * math.ceil(size.height / _PATCH_PIXELS)
    return min(across, _MAX_PATCHES)


def _tiles(size: Pixels) -> int:
    """Scale into a square, then to the short side, never up, and count the squares it covers."""
    scale = min(1.0, _LONG_PIXELS / max(size))
    scale *= min(1.0, _SHORT_PIXELS / (min(size) * scale))
    width, height = (max(1, round(side * scale)) for side in size)
    return math.ceil(width / _TILE_PIXELS) * math.ceil(height / _TILE_PIXELS)


def image_size(encoded: str, /) -> Pixels | None:
    """Read the pixels of a PNG, GIF, JPEG or WebP from its first bytes; None if it says none."""
    data = _decoded(encoded)
    size = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        size = Pixels(_big(data, 16, 4), _big(data, 20, 4))
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        size = Pixels(_little(data, 6, 2), _little(data, 8, 2))
    elif data.startswith(b"\xff\xd8"):
        size = _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        size = _webp_size(data)
    return size if size is not None and min(size) > 0 else None


def _jpeg_size(data: bytes) -> Pixels | None:
    """Walk the segments to the start of a frame (C0 to CF, of which C4, C8 and CC are tables)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return Pixels(_big(data, at + 7, 2), _big(data, at + 5, 2))
        at += 2 + max(2, _big(data, at + 2, 2))
    return None


def _webp_size(data: bytes) -> Pixels | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return Pixels(_little(data, 24, 3) + 1, _little(data, 27, 3) + 1)
    if kind == b"VP8L":
        bits = _little(data, 21, 4)
        return Pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        return Pixels(_little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
    return None


def _audio_tokens(encoded: str, rule: MediaRule) -> int:
    data = _decoded(encoded[:64])
    bytes_per_second = _BYTES_PER_SECOND
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE" and len(data) >= 32:
        bytes_per_second = _little(data, 28, 4) or _BYTES_PER_SECOND
    seconds = _bytes_in(encoded) / bytes_per_second
    return math.ceil(seconds * rule.audio_tokens_per_second) + _AUDIO_FRAMING_TOKENS


def _file_tokens(encoded: str, rule: MediaRule) -> int:
    if not encoded:
        return rule.file_tokens
    tokens = math.ceil(_bytes_in(encoded) / _PDF_BYTES_PER_TOKEN)
    if encoded.startswith("JVBERi"):  # "%PDF-" in base64
        pages = len(_PAGE.findall(_decoded(encoded)))
        return min(tokens, pages * _PAGE_TOKENS) if pages else tokens
    # text, most likely, and few texts have less than three bytes a token
    return math.ceil(_bytes_in(encoded) / 3)


def _base64_of(data: str | None) -> str:
    """Return the base64 in a data URL or bare; "" for a web address or nothing."""
    if data is None or data.startswith(("http://", "https://", "file-", "gs://", "s3://")):
        return ""
    if data.startswith("data:"):
        return data.partition(",")[2]
    return data


def _bytes_in(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=", -2)


def _decoded(encoded: str) -> bytes:
    try:
        return binascii.a2b_base64(encoded[: len(encoded) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _big(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "big")


def _little(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")
