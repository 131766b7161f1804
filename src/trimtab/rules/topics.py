"""What a rule is about and what it sets, so that a later one is told that says it with another value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.rules.language import Index, is_number
from trimtab.rules.rule import Rule
from trimtab.rules.words import CLOSED, HIDDEN, Words

__all__ = ["Subject", "subject_of", "supersedes"]

_MOST_TOPIC = 24
"""More words than this are no topic."""
_SIGNS = "$€£¥%#"


class Subject(NamedTuple):
    """What a sentence is about, and what it sets."""

    topic: tuple[str, ...]
    values: tuple[str, ...]
    forbids: bool
    adds: bool
    """It says that it comes on top of what was said before."""


def subject_of(index: Index, text: str, parts: Words) -> Subject:
    """Tell the values of a sentence from the words it is about.

    A value is a number with its unit, a word of a class, or a name behind a word like "in".
    """
    words, starts, ends = parts
    topic: set[str] = set()
    values: list[str] = []
    adds = False
    at = 0
    while at < len(words):
        size = _value(index, text, words, starts, at)
        if size:
            values.append(text[starts[at] : ends[at + size - 1]].lower())
        elif words[at] in index.additions:
            adds = True
        elif words[at][0].isalnum() and words[at] not in index.idle and words[at] not in index.joints:
            topic.add(_stem(words[at]))
        at += size or 1
    about = tuple(sorted(topic)) if len(topic) <= _MOST_TOPIC else ()
    return Subject(about, tuple(values), not index.negations.isdisjoint(words), adds)


def _stem(word: str) -> str:
    """Take off the ending of a plural, so that "times" is "time"."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _value(index: Index, text: str, words: Sequence[str], starts: Sequence[int], at: int) -> int:
    """Tell how many words from here on are one value; 0: none."""
    word = words[at]
    if word in _SIGNS and at + 1 < len(words) and is_number(index, words[at + 1]):
        return 2
    if is_number(index, word):
        return 2 if at + 1 < len(words) and (words[at + 1][0].isalpha() or words[at + 1] in _SIGNS) else 1
    if word in index.classes:
        return 1
    if word[0] in HIDDEN + CLOSED:
        return 1
    for size in (4, 3, 2):  # words of a language without spaces are several here
        if "".join(words[at : at + size]) in index.classes and at + size <= len(words):
            return size
    named = at > 0 and words[at - 1] in index.slots and text[starts[at]].isupper()
    return int(named)


def supersedes(newer: Rule, older: Rule, /) -> bool:
    """Tell whether a rule says again what an older one says, with another value.

    True only where that is plain: the same kind, the same words but for the value, and as many values of the
    same sort, such as two prices. Otherwise both hold, also where a person would see which one replaces the
    other.

    What is forbidden is never superseded by another thing that is forbidden, only by another limit. What
    allows something is not found as a rule, so it takes nothing back.

    Args:
        newer: The rule that was said later.
        older: One that was said before it.

    Example:
        >>> from trimtab.rules import find_rules, supersedes
        >>> older, = find_rules("The budget is $500.")
        >>> newer, = find_rules("The budget is now $800.")
        >>> supersedes(newer, older)
        True
        >>> fridays, = find_rules("Never deploy on Fridays.")
        >>> mondays, = find_rules("Never deploy on Mondays.")
        >>> supersedes(mondays, fridays)
        False
    """
    if newer.kind != older.kind or newer.kind == "order" or newer.language != older.language:
        return False
    if not newer.topic or newer.topic != older.topic or newer.values == older.values:
        return False
    if len(newer.values) != len(older.values) or newer.adds:
        return False
    if newer.forbids != older.forbids or (newer.forbids and newer.kind != "limit"):
        return False
    return all(
        new == old or _sort(new) == _sort(old) for new, old in zip(newer.values, older.values, strict=True)
    )


def _sort(value: str) -> str:
    """Give what two values that can replace each other have in common: the unit, or that they are names."""
    if value[0] in _SIGNS:
        return value[0]
    number = value[0].isdigit()
    unit = value.lstrip("0123456789.,: ") if number else value.partition(" ")[2]
    return _stem(unit) or ("#" if number else "")
