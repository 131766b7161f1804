"""Bodies that are compressed: those of requests are read whole, those of answers as they pass."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any

_GZIP = 16 + zlib.MAX_WBITS
_ZSTD = ("compression.zstd", "backports.zstd")
"""Where Python has it (3.14), or a package of the same names."""


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
        made: bytes = decoder.decompress(body, max_bytes + 1)
    except (zlib.error, ValueError, EOFError) as error:
        raise EncodingError(400, f"the body is not {name}: {error}") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # the class of a module that may not be there
            raise
        raise EncodingError(400, f"the body is not {name}: {error}") from error
    if len(made) > max_bytes:
        raise EncodingError(413, f"the body has more than {max_bytes:,} bytes when it is decompressed")
    if not decoder.eof:
        raise EncodingError(400, f"the body is cut off: its {name} has no end")
    return made


def _decoder(name: str) -> Any:
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(_GZIP)
    if name == "deflate":
        return zlib.decompressobj()
    if name == "zstd":
        for module in _ZSTD:
            try:
                return import_module(module).ZstdDecompressor()
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
            text: bytes = self._decoder.decompress(part)
        except zlib.error:
            self._reads = False
            return b""
        return text
