"""A light stemmer for English: endings of number and tense, so that "booked" finds "booking"."""

from __future__ import annotations

__all__ = ["stem"]

_VOWELS = frozenset("aeiouy")
_SHORTEST = 4
"""Shorter words are their own stems."""


def stem(word: str, /) -> str:
    """Return the stem of a word in small letters; what is no word of English letters stays as it is.

    Harman's S stemmer, then -ed and -ing as in the first step of Porter's, then a last e and a double
    consonant. A stem need not be a word: "moving" and "moves" are both "mov".

    Source: D. Harman, "How effective is suffixing?", JASIS 42 (1991); M. F. Porter, "An algorithm for suffix
    stripping", Program 14 (1980).

    Example:
        >>> [stem(word) for word in ("flights", "parties", "stopped", "moving", "class", "北京")]
        ['flight', 'party', 'stop', 'mov', 'clas', '北京']
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = _without_tense(_without_plural(word))
    if len(word) >= _SHORTEST and word[-1] == "e":
        word = word[:-1]
    if len(word) >= _SHORTEST and word[-1] == word[-2] and word[-1] not in _VOWELS:
        word = word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("ied"):
        return f"{word[:-3]}y"
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and not word.endswith("eed") and not _VOWELS.isdisjoint(rest):
            return rest
    return word
