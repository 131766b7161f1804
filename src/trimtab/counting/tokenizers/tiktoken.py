"""tiktoken, guarded: offline only, no special tokens, no text long enough to make it panic."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.counting.base import TextFunction
from trimtab.counting.graphemes import border_before

PIECE_CHARS = 98_304
"""Longest text given to tiktoken at once. Version 0.14 panics on about 1,000,000 whitespace
characters in a row; a multiple of the longest whitespace tokens, so that runs stay exact."""

_TOO_MUCH = ("PanicException", "TokenLimitError")
"""What encoders raise for a text they cannot take whole, by name: pyo3's panic is a
BaseException that cannot be imported, the other is of bpe-openai (over 200,000 tokens)."""


class Vocabulary(NamedTuple):
    """Where an encoding's ranks are published, and how it splits text before merging."""

    url: str
    sha256: str
    pattern: str


# URLs, hashes and patterns: tiktoken 0.14.0, tiktoken_ext/openai_public.py (MIT), 2026-08.
_O200K = Vocabulary(
    "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
)
_CL100K = Vocabulary(
    "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
)
VOCABULARIES = {"o200k_base": _O200K, "o200k_harmony": _O200K, "cl100k_base": _CL100K}

_SHIPPED = (
    ("litellm", "litellm_core_utils/tokenizers/{key}"),
    ("llama_index.core", "_static/tiktoken_cache/{key}"),
    ("bpe_openai", "data/{name}.gz"),
)
"""Packages that carry the published files, and where in them."""


def load_tiktoken(encoding: str) -> TextFunction | None:
    """Return a guarded count for an encoding; None without tiktoken or its vocabulary on disk."""
    if find_spec("tiktoken") is None:
        return None
    vocabulary = VOCABULARIES[encoding]
    data = _find(vocabulary)
    if data is None:
        return None
    tiktoken: Any = import_module("tiktoken")
    lines = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoder = tiktoken.Encoding(
        encoding, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return guard(encoder.encode_ordinary)


def guard(encode: Callable[[str], list[int]]) -> TextFunction:
    """Make a count of an `encode_ordinary`: long texts in pieces, what it refuses in halves."""

    def count(text: str) -> int:
        if len(text) > PIECE_CHARS:
            return sum(count(piece) for piece in pieces_of(text))
        try:
            return len(encode(text))
        except BaseException as refusal:
            if type(refusal).__name__ not in _TOO_MUCH or len(text) < 2:
                raise
            half = len(text) // 2
            return count(text[:half]) + count(text[half:])

    return count


def pieces_of(text: str) -> Iterator[str]:
    """Cut a long text into pieces of at most `PIECE_CHARS`, between tokens wherever it can."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        stop = start + PIECE_CHARS
        stop = border_before(text, stop) or stop
        yield text[start:stop]
        start = stop
    yield text[start:]


def _find(vocabulary: Vocabulary) -> bytes | None:
    for path in _places(vocabulary):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            if hashlib.sha256(data).hexdigest() == vocabulary.sha256:
                return data
    return None


def _places(vocabulary: Vocabulary) -> Iterator[Path]:
    key = hashlib.sha1(vocabulary.url.encode(), usedforsecurity=False).hexdigest()
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], key)
    yield Path(tempfile.gettempdir(), "data-gym-cache", key)
    name = vocabulary.url.rpartition("/")[2]
    for package, place in _SHIPPED:
        for folder in _folders(package):
            yield folder / place.format(key=key, name=name)


def _folders(package: str) -> list[Path]:
    # found by folder, never imported: importing litellm takes 1.8 s
    top, _, rest = package.partition(".")
    spec = find_spec(top)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(location, *rest.split(".")) for location in spec.submodule_search_locations]
