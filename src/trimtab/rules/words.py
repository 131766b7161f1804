"""A text as words: where each begins and ends, in small letters."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["CLOSED", "HIDDEN", "Words", "lower", "places_of", "words_of"]

HIDDEN = "\ue000"
"""Stands for each character that is not the writer's own: a run of them is one word."""

CLOSED = "\ue001"
"""The same, where what is hidden ended a sentence."""

_WORD = re.compile(
    r"[^\W\d_\u3400-\u9fff]+(?:'[^\W\d_\u3400-\u9fff]+)*|\d+(?:[.,:]\d+)*|[\ue000\ue001]+|[^\s]"
)

_ASCII_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*|\d+(?:[.,:]\d+)*|\S")
"""The same of a text that is all ASCII, in half the time."""


class Words(NamedTuple):
    """The words of a sentence, and where each begins and ends in the text."""

    words: list[str]
    starts: list[int]
    ends: list[int]


def lower(text: str, /) -> str:
    """Write a text in small letters and with one kind of apostrophe, each sign in its place."""
    small = text.lower()
    if len(small) != len(text):  # some capitals become two signs
        small = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    return small.replace("’", "'")


def words_of(small: str, start: int, end: int, /) -> list[str]:
    """Split a part of a text in small letters into words, numbers, signs and single Han characters."""
    return (_ASCII_WORD if small.isascii() else _WORD).findall(small, start, end)


def places_of(small: str, start: int, end: int, /) -> Words:
    """Split it as `words_of` does, and tell where each word is."""
    found = list(_WORD.finditer(small, start, end))
    return Words([one.group() for one in found], [one.start() for one in found], [one.end() for one in found])
