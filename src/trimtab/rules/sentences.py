"""Where the sentences of a passage begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.rules.words import CLOSED

__all__ = ["sentences"]

_END = re.compile(r"(?<![.!?…])[.!?…]+(?=[\s)\]\"'”’»」』）*_]|$)|[。！？\ue001]+")
_CLOSERS = ")]\"'”’»」』）*_"
_SHORTENED = """
e.g i.e eg ie vs z.b zb d.h bzw usw ca nr vgl ggf p.ej ej sr sra srta dr mr mrs ms st no max min approx resp
art inc co fig p pp m mme mlle cf env ed al jr prof abs
"""
"""Words that are shortened by a full stop: no sentence ends behind them."""
_SHORT = frozenset(_SHORTENED.split())
_LONGEST_SHORT = 8
"""More characters than the longest of these has."""
_LONGEST_NUMBER = 16
"""So much of a line is looked at for what stands before a number in it."""
_BEFORE = re.compile(r"[\s(\[]")


def sentences(text: str, start: int, end: int, /) -> Iterator[tuple[int, int]]:
    """List (start, end) of the sentences of a passage, without the white space around them.

    Args:
        text: The message, with quotes hidden.
        start: Where the passage begins.
        end: Where it ends.
    """
    begin = start
    for match in _END.finditer(text, start, end):
        stop = match.end()
        while stop < end and text[stop] in _CLOSERS:
            stop += 1
        if _ends(text, match.end() - 1, stop, end):
            yield from _bare(text, begin, stop)
            begin = stop
    yield from _bare(text, begin, end)


def _ends(text: str, sign: int, stop: int, end: int) -> bool:
    """Tell whether a sentence ends at a sign, which closing marks may follow."""
    if text[sign] in "。！？":
        return True
    if stop < end and not text[stop].isspace():
        return False
    if text[sign] == CLOSED:
        after = text[stop:end][:3].strip()[:1]
        return not after or after.isupper()
    if text[sign] != ".":
        return True
    if sign > 1 and text[sign - 2] == " " and text[sign - 1].isalpha():
        return False  # an initial ends nothing; there may be one every third sign
    word = _word_before(text, sign)
    if word.isdigit():  # ends nothing where it numbers a line
        line = text[max(0, sign - _LONGEST_NUMBER) : sign].rpartition("\n")[2]
        return not line.strip().isdigit()
    return len(word) > 1 and word not in _SHORT


def _word_before(text: str, end: int) -> str:
    before = text[max(0, end - _LONGEST_SHORT) : end]
    return _BEFORE.split(before)[-1].lower()


def _bare(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    if part.strip():
        yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())
