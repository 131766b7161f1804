"""Counts of a known vocabulary times a factor, for models whose own vocabulary is not public."""

from __future__ import annotations

import threading

from trimtab.counting.cache import TextCache
from trimtab.counting.tokenizers import Tokenizer, load_tokenizer

_PER = 1_000


def scaled(tokenizer: Tokenizer, factor: float, /) -> TextCache:
    """Return what remembers counts by text: the tokenizer's own counts, or those times a factor.

    Each text is rounded by itself, to the nearest, so that counts of messages still add up.
    """
    thousandths = round(factor * _PER)
    if thousandths == _PER:
        return tokenizer.cache
    key = (tokenizer, thousandths)
    with _LOCK:
        found = _SCALED.get(key)
        if found is None:
            count = tokenizer.count

            def count_scaled(text: str) -> int:
                return (count(text) * thousandths + _PER // 2) // _PER

            found = _SCALED[key] = TextCache(
                count_scaled,
                name=f"{tokenizer.encoding} x {factor:g}",
                origin=(_find_scaled, (tokenizer.encoding, tokenizer.package or None, factor)),
            )
        return found


def _find_scaled(encoding: str, package: str | None, factor: float) -> TextCache:
    return scaled(load_tokenizer(encoding, package=package), factor)


def forget_scaled() -> None:
    """Forget the counts remembered for texts, by every factor."""
    with _LOCK:
        for cache in _SCALED.values():
            cache.clear()


_SCALED: dict[tuple[Tokenizer, int], TextCache] = {}
_LOCK = threading.Lock()
