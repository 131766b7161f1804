"""Bodies that are compressed: those of requests are read whole, those of answers as they pass."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

_GZIP = 16 + zlib.MAX_WBITS
_ZSTD = ("compression.zstd", "backports.zstd")
"""Where Python has it (3.14), or a package of the same names."""

MOST_MEMBERS = 1_024
"""Of a compressed body; programs that compress in blocks of 64 KiB have as many for a body of 64 MiB."""
_PIECE_BYTES = 64 * 2**10


class EncodingError(Exception):
    """A body cannot be read.

    Args:
        status: What is answered.
        message: Why.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def decode(body: bytes, encoding: str, /, *, max_bytes: int) -> bytes:
    """Return a body as it was before it was compressed.

    Args:
        body: As it came.
        encoding: The header Content-Encoding; "" for none.
        max_bytes: How long the result may be: a small body can hold gigabytes.

    Raises:
        EncodingError: The encoding is unknown here, the body is not in it, or the result is too long.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    decoder = _decoder(name)
    if decoder is None:
        raise EncodingError(415, f"Content-Encoding {encoding!r:.40} cannot be read here: send gzip or none")
    try:
        made = decoder.read(body, max_bytes + 1)
    except (zlib.error, ValueError, EOFError) as error:
        raise EncodingError(400, f"the body is not {name}: {error}") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # the class of a module that may not be there
            raise
        raise EncodingError(400, f"the body is not {name}: {error}") from error
    if len(made) > max_bytes:
        raise EncodingError(413, f"the body has more than {max_bytes:,} bytes when it is decompressed")
    if not decoder.is_whole:
        raise EncodingError(400, f"the body is cut off: its {name} has no end")
    return made


class _Decoder:
    """Reads what is compressed; of gzip and zstd one member may stand behind the other.

    RFC 1952, 2.2 and RFC 8878, 3.1: whoever reads the first alone reads another body than the upstream.

    Args:
        make: Makes what reads a member.
        has_members: Whether there may be more than one.
    """

    def __init__(self, make: Callable[[], Any], *, has_members: bool) -> None:
        self._make, self._most = make, MOST_MEMBERS if has_members else 1
        self._member, self._count = make(), 1

    @property
    def is_whole(self) -> bool:
        """Whether what was read is at an end."""
        return bool(self._member.eof)

    def read(self, data: bytes, most: int = 0) -> bytes:
        """Read on.

        Args:
            data: What is compressed.
            most: How many bytes are made at the most; 0: all there are.

        Raises:
            zlib.error: It is something else, or has too many members.
        """
        made, size = [], 0
        # In pieces, as what stands behind a member is copied: 64 MB of empty ones would be copied each time.
        for start in range(0, len(data), _PIECE_BYTES):
            rest = data[start : start + _PIECE_BYTES]
            while rest:
                if self._member.eof:
                    self._begin_next()
                made.append(self._member.decompress(rest, most and most - size))
                size += len(made[-1])
                if most and size >= most:
                    return b"".join(made)
                rest = self._member.unused_data
        return b"".join(made)

    def _begin_next(self) -> None:
        if self._count == self._most:
            raise zlib.error(
                f"there is more behind {'its end' if self._most == 1 else f'{self._most:,} members'}"
            )
        self._member = self._make()
        self._count += 1


def _decoder(name: str) -> _Decoder | None:
    if name in ("gzip", "x-gzip"):
        return _Decoder(partial(zlib.decompressobj, _GZIP), has_members=True)
    if name == "deflate":
        return _Decoder(zlib.decompressobj, has_members=False)
    if name == "zstd":
        for module in _ZSTD:
            try:
                return _Decoder(import_module(module).ZstdDecompressor, has_members=True)
            except ModuleNotFoundError:
                continue
    return None


class AnswerReader:
    """Reads an answer as its parts pass; what cannot be read is nothing.

    Args:
        encoding: The header Content-Encoding of the answer.
    """

    def __init__(self, encoding: str, /) -> None:
        name = encoding.strip().lower()
        self._decoder = _decoder(name) if name in ("gzip", "x-gzip", "deflate") else None
        self._reads = self._decoder is not None or name in ("", "identity")

    def read(self, part: bytes, /) -> bytes:
        """Return the text of a part."""
        if not self._reads:
            return b""
        if self._decoder is None:
            return part
        try:
            text = self._decoder.read(part)
        except zlib.error:
            self._reads = False
            return b""
        return text
