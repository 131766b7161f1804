"""Places in a text where tokenizers split, whatever stands on either side."""

from __future__ import annotations

import re

__all__ = ["border_after", "border_before"]

# A word or number ends before a blank or a mark, whatever follows; a letter before a digit; a line
# end before a word. All patterns of our encodings split there, and none of them looks further
# ahead, so counts of the pieces add up exactly.
_BORDER = r"(?:(?<=[^\W_])(?=[ \t.,;:()\"，。、；：！？])|(?<=[a-zA-Z])(?=[0-9])|(?<=\n)(?=[^\W_]))"
_NEXT = re.compile(_BORDER)
_LAST = re.compile(f"(?s:.*){_BORDER}")

_SEARCHED_CHARS = 1_024
"""How far a border is looked for."""


def border_before(text: str, index: int, /) -> int:
    """Return the last border before `index`, at least a character away; 0 if none is near."""
    found = _LAST.match(text, max(0, index - _SEARCHED_CHARS), index)
    return 0 if found is None else found.end()


def border_after(text: str, index: int, /) -> int:
    """Return the first border after `index`, at least a character away; the end if none is near."""
    found = _NEXT.search(text, index + 1, index + _SEARCHED_CHARS)
    return len(text) if found is None else found.end()
