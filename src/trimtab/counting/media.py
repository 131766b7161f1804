"""What images, sounds and files are charged, from as much of them as a message holds.

Nothing here decodes a picture: sizes are read from the first bytes of the data, and pages of a PDF from
its list of objects. Where a size cannot be known, more is taken than is likely, or the most there can be.
"""

from __future__ import annotations

import binascii
import math
import re
import zlib
from itertools import islice
from struct import unpack_from
from typing import NamedTuple

from trimtab.formats.base import Media
from trimtab.models import MediaRule

_HEADER_CHARS = 400_000
"""Base64 characters looked at for an image's size: a JPEG may have a thumbnail before it."""

_PATCH_PIXELS, _MAX_PATCHES = 32, 1_536
_TILE_PIXELS, _LONG_PIXELS, _SHORT_PIXELS = 512, 2_048, 768
_CROP_PIXELS, _SMALL_PIXELS = (256, 768), 384
_MOST_TILES, _MOST_CROPS = 8, 12

_BYTES_PER_SECOND = 8_000
"""Of compressed sound at 64 kbit/s; at a higher rate the estimate is too high, on the safe side."""

_MP3_KILOBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0)
_SOUND_CHARS = 65_536
"""Base64 characters looked at for a sound's rate: an MP3 may have a picture before it."""
_VIDEO_BYTES_PER_SECOND = 100_000
"""Of video at 0.8 Mbit/s, the low end of what is sent; errs high."""
_VIDEO_SECONDS = 60
"""Of a video that is not in the message; nothing is known of it."""
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b")
_STREAM = re.compile(rb"stream\r?\n")
"""Where compressed objects begin, among them pages, since PDF 1.5 (ISO 32000-1, 7.5.7)."""
_DICTIONARY_BYTES = 400
_MOST_OBJECT_STREAMS = 2_000
"""Of some 100 objects each; a file may be made to be slow to read."""
_MOST_OBJECT_BYTES = 64_000_000
"""Of them unpacked: a file of zeros could be any size. 1,000 pages have about 300,000."""
_FIRST_PAGE_BYTES, _LEAST_PAGE_BYTES, _MOST_PAGES = 20_000, 3_000, 100
"""Of a PDF whose pages nobody can count, an encrypted one say: fonts and all with the first (billed: one page
for 13 and 19 kB, 2026-11), and few others are smaller. Errs high; Claude takes no more pages (docs "PDF
support", 2026-11)."""


_PACKED = "UEsDB"
"""How base64 of a ZIP begins, which tables and letters of office programs are: their words are packed (128
tokens were billed for one of 5,670 bytes, 2026-11)."""


class Pixels(NamedTuple):
    """Size of an image."""

    width: int
    height: int


def is_seen(media: Media, rule: MediaRule, /) -> bool:
    """Tell whether a message holds enough of a medium to know what it is charged."""
    if rule.part_tokens is not None:
        return True
    encoded = base64_of(media.data)
    if media.kind == "image":
        flat = rule.patch_factor is None and rule.pixels_per_token is None and not rule.tile_tokens
        return flat or media.detail == "low" or image_size(encoded) is not None
    if media.kind == "audio":
        return _bytes_a_second(encoded) is not None
    if media.kind == "video" and rule.video_tokens_per_second is not None:
        return _video_seconds(encoded) is not None
    if not _is_pdf(encoded):
        return bool(encoded) and not encoded.startswith(_PACKED)
    return rule.pdf_bytes_per_token is None and _pages(_decode(encoded)) > 0


def text_in(media: Media, /) -> str | None:
    """Return what a file says that is a text, and is charged as one; None for any other medium."""
    encoded = base64_of(media.data) if media.kind == "file" and not media.is_sealed else ""
    if not encoded or _is_pdf(encoded):
        return None
    try:
        text = _decode(encoded).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def media_tokens(media: Media, rule: MediaRule, /) -> int:
    """Count one image, sound or file by a model's rule."""
    if rule.part_tokens is not None:
        return rule.part_tokens
    encoded = base64_of(media.data)
    if media.kind == "image":
        return rule.image_tokens + _image_tokens(image_size(encoded), rule, is_low=media.detail == "low")
    if media.kind == "audio":
        seconds = _bytes_in(encoded) / (_bytes_a_second(encoded) or _BYTES_PER_SECOND)
        return math.ceil(seconds * rule.audio_tokens_per_second) + rule.audio_tokens
    if media.kind == "video" and rule.video_tokens_per_second is not None:
        known = _video_seconds(encoded)
        guess = _bytes_in(encoded) / _VIDEO_BYTES_PER_SECOND if encoded else _VIDEO_SECONDS
        return math.ceil(max(1.0, guess if known is None else known) * rule.video_tokens_per_second)
    return _file_tokens(encoded, rule)


def _image_tokens(size: Pixels | None, rule: MediaRule, *, is_low: bool) -> int:
    if rule.patch_factor is not None:
        patches = _MAX_PATCHES
        if size is not None:
            patches = min(patches, math.prod(math.ceil(side / _PATCH_PIXELS) for side in size))
        return math.ceil(patches * rule.patch_factor)
    if rule.pixels_per_token is not None:
        return _area_tokens(size, rule)
    if not rule.tile_tokens or is_low:
        return 0
    return (_crops(size) if rule.crops else _tiles(size)) * rule.tile_tokens


def _tiles(size: Pixels | None) -> int:
    """Scale into a square, then to the short side, never up, and count the squares it covers."""
    if size is None:
        return _MOST_TILES
    scale = min(1.0, _LONG_PIXELS / max(size))
    scale *= min(1.0, _SHORT_PIXELS / (min(size) * scale))
    return math.prod(math.ceil(max(1, round(side * scale)) / _TILE_PIXELS) for side in size)


def _crops(size: Pixels | None) -> int:
    """Count the crops of an image: none if it is small, squares of two thirds of the short side else."""
    if size is None:
        return _MOST_CROPS
    if max(size) <= _SMALL_PIXELS:
        return 0
    least, most = _CROP_PIXELS
    crop = min(max(int(min(size) / 1.5), least), most)
    return math.prod(math.ceil(side / crop) for side in size)


def _area_tokens(size: Pixels | None, rule: MediaRule) -> int:
    """Count an image by its pixels, scaled down to the longest side and the most tokens allowed."""
    most = rule.most_image_tokens
    if size is None:
        return most or _MAX_PATCHES
    scale = min(1.0, rule.long_pixels / max(size))
    tokens = math.ceil(size.width * size.height * scale * scale / (rule.pixels_per_token or 1))
    return tokens if most is None else min(tokens, most)


def image_size(encoded: str, /) -> Pixels | None:
    """Read the pixels of a PNG, GIF, JPEG or WebP from its first bytes; None if it says none."""
    data = _decode(encoded[:_HEADER_CHARS])
    size = None
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        size = Pixels(*unpack_from(">II", data, 16))
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        size = Pixels(*unpack_from("<HH", data, 6))
    elif data.startswith(b"\xff\xd8"):
        size = _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        size = _webp_size(data)
    return size if size is not None and min(size) > 0 else None


def _jpeg_size(data: bytes) -> Pixels | None:
    """Walk the segments to the start of a frame (C0 to CF, of which C4, C8 and CC are tables)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length, _, height, width = unpack_from(">BHBHH", data, at + 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return Pixels(width, height)
        at += 2 + max(2, length)
    return None


def _webp_size(data: bytes) -> Pixels | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return Pixels(width + 1, height + 1)
    if kind == b"VP8L":
        (bits,) = unpack_from("<I", data, 21)
        return Pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return Pixels(width & 0x3FFF, height & 0x3FFF)
    return None


def _bytes_a_second(encoded: str) -> int | None:
    """Read the rate of a WAVE file or of an MP3's first frame; None if it says none."""
    data = _decode(encoded[:_SOUND_CHARS])
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE" and len(data) >= 32:
        return int.from_bytes(data[28:32], "little") or None
    at = 0
    if data[:3] == b"ID3" and len(data) >= 10:
        size = 0
        for byte in data[6:10]:
            size = size << 7 | byte & 0x7F
        at = 10 + size
    frame = data[at : at + 3]
    # 11 bits of sync, then version 1 and layer 3, as nearly every MP3 has them
    if len(frame) == 3 and frame[0] == 0xFF and frame[1] & 0xFE == 0xFA:
        return _MP3_KILOBITS[frame[2] >> 4] * 125 or None
    return None


def _video_seconds(encoded: str) -> float | None:
    """Read the length of an MP4 from its movie header; None if it has none."""
    data = _decode(encoded)
    at = data.find(b"mvhd")
    if data[4:8] != b"ftyp" or at < 0 or at + 24 > len(data):
        return None
    wide = data[at + 4] == 1
    scale = int.from_bytes(data[at + (24 if wide else 16) :][:4])
    length = int.from_bytes(data[at + (28 if wide else 20) :][: 8 if wide else 4])
    return length / scale if scale else None


def _file_tokens(encoded: str, rule: MediaRule) -> int:
    if not encoded:
        return rule.file_tokens
    if not _is_pdf(encoded):
        # text, most likely: few texts have less than three bytes a token
        return math.ceil(_bytes_in(encoded) / 3)
    pages = _pages(_decode(encoded))
    if not pages and rule.pdf_bytes_per_token is not None:
        return math.ceil(_bytes_in(encoded) / rule.pdf_bytes_per_token)
    likely = 1 + math.ceil(max(0, _bytes_in(encoded) - _FIRST_PAGE_BYTES) / _LEAST_PAGE_BYTES)
    return (pages or min(_MOST_PAGES, likely)) * rule.page_tokens


def _pages(data: bytes) -> int:
    """Count the pages of a PDF, those in compressed objects too; 0 where none can be seen."""
    pages, left, view = len(_PAGE.findall(data)), _MOST_OBJECT_BYTES, memoryview(data)
    for found in islice(_OBJECTS.finditer(data), _MOST_OBJECT_STREAMS):
        begin = _STREAM.search(data, found.end(), found.end() + _DICTIONARY_BYTES)
        if begin is None or left <= 0:
            continue
        try:
            objects = zlib.decompressobj().decompress(view[begin.end() :], left)
        except zlib.error:  # encrypted, or packed in another way
            continue
        pages += len(_PAGE.findall(objects))
        left -= len(objects)
    return pages


def _is_pdf(encoded: str) -> bool:
    return encoded.startswith("JVBERi")  # "%PDF-" in base64


def base64_of(data: str | None) -> str:
    """Return the base64 in a data URL or bare; "" for a web address or nothing."""
    if data is None or data.startswith(("http://", "https://", "file-", "gs://", "s3://")):
        return ""
    if data.startswith("data:"):
        return data.partition(",")[2]
    return data


def _bytes_in(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=", -2)


def _decode(encoded: str) -> bytes:
    """Decode base64 of either alphabet; google-genai sends media in that of URLs."""
    plain = encoded[: len(encoded) // 4 * 4].replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(plain)
    except (binascii.Error, ValueError):
        return b""
