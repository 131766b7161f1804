"""How scripts are written: which put no space between words, and what belongs to the letter before it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["breaks_words", "patterns"]

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul: words carry their particles
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese
    "\u2e80-\u2fdf\u3100-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han, Bopomofo
    "\U00016fe0-\U00018cff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
"""Scripts that are written without spaces between words, or whose words are not cut at spaces."""


@lru_cache(maxsize=1)
def patterns() -> tuple[str, str]:
    """Return the patterns of a run of a script without spaces, and of a word of any other."""
    # A mark belongs to the letter before it, or Hindi and Thai fall into pieces; `\w` knows no marks.
    marks = _marks()
    unspaced = rf"[{_UNSPACED}](?<=[\w{marks}])"
    spaced = rf"[^\W_](?<![{_UNSPACED}])"
    return rf"(?:{unspaced})+", rf"{spaced}(?:{spaced}|[{marks}](?<![{_UNSPACED}]))*"


def _marks() -> str:
    """List the marks as ranges of characters."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x1F000):
        if unicodedata.category(chr(code))[0] != "M":
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def breaks_words(sign: str, /) -> bool:
    """Tell whether a character is of a script without spaces, or a mark, which is a letter behind letters."""
    return re.match(f"[{_UNSPACED}]", sign) is not None or unicodedata.category(sign)[0] == "M"
