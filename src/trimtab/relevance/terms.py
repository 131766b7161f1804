"""The terms of a text, in any script: stems of words, pairs of characters, identifiers whole and in parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from trimtab.relevance.scripts import patterns
from trimtab.relevance.spellings import plain_text
from trimtab.relevance.stems import stem

__all__ = ["MAX_TERM_CHARS", "question_terms", "text_terms"]

MAX_TERM_CHARS = 64
"""A longer run of letters is more than one term: it is no word, and nobody types it."""

_RUN = rf"[a-z0-9]{{1,{MAX_TERM_CHARS}}}"
_ASCII_WORD = re.compile(rf"{_RUN}(?:[_.@/:-]{_RUN}){{0,7}}")
"""A word, or an identifier, number or date, whose parts are joined."""

_PART = re.compile("[^_.@/:-]+")


def text_terms(text: str, /) -> Iterator[str]:
    """Yield the terms of a text, with repeats.

    Terms are words of letters and digits without case and accents, with stems for English words; an
    identifier as a whole and each of its parts; a number without the signs between its digits; "ü" as "u" and
    as "ue". In unspaced scripts (Chinese, Japanese, Korean, Thai…), terms are each character and each pair of
    neighbors.

    Args:
        text: Any text.

    Example:
        >>> list(text_terms("Booked flights: AB-17, 北京天气"))
        ['book', 'flight', 'ab-17', 'ab', '17', '北', '京', '天', '气', '北京', '京天', '天气']
        >>> list(text_terms("getUserName, 030 1234, Zoë Müller"))
        ['getusernam', '030', '1234', 'zoe', 'muller', 'get', 'user', 'nam', '0301234', 'mueller']
    """
    for run, terms in _runs(text):
        if run:
            yield from run
            yield from _pairs(run)
        else:
            yield from terms


def question_terms(text: str, /) -> tuple[str, ...]:
    """Return the terms to search for, each once.

    They are those of `text_terms`, except that unspaced characters give only pairs, and that words of most
    questions ("what", "did", "的") are omitted, unless there are no others.

    Args:
        text: The question.

    Example:
        >>> question_terms("What is the weather in Berlin? 北京的天气怎么样")
        ('weather', 'berlin', '北京', '京的', '的天', '天气', '气怎', '么样')
    """
    found: dict[str, None] = {}
    for run, terms in _runs(text):
        found |= dict.fromkeys(terms or _pairs(run) or run)
    telling = [term for term in found if term not in _question_words()]
    return tuple(telling or found)


def _runs(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a run of characters that are not spaced, or "" and the terms of a word."""
    plain = plain_text(text)
    if plain.isascii():
        for word in _ASCII_WORD.findall(plain):
            yield "", _terms_of(word)
        return
    for match in _words().finditer(plain):
        run = match[1]
        if run is None:
            yield "", _terms_of(match[0][:MAX_TERM_CHARS])
        else:
            yield run, ()


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Match a run of a script without spaces (group 1), or a word of any other."""
    run, word = patterns()
    return re.compile(rf"({run})|{word}(?:[_.@/:-]{word}){{0,7}}")


@lru_cache(maxsize=1 << 15)
def _terms_of(word: str) -> tuple[str, ...]:
    """Return the stem of a word, or an identifier and each of its parts."""
    parts = _PART.findall(word)
    return (stem(word),) if len(parts) == 1 else (word, *map(stem, parts))


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[at : at + 2] for at in range(len(run) - 1))


@lru_cache(maxsize=1)
def _question_words() -> frozenset[str]:
    """Return the terms that say how something is asked, and not what."""
    return frozenset((*map(stem, _ENGLISH.split()), *_CHINESE.split(), *_JAPANESE.split()))


# Function words. In a chat they are rarer than in prose: by rarity alone "what" and "did" would count.
_ENGLISH = (
    "a an the and or but if of at by for with about to from in into on up out as is are was were be been"
    " being am do does did have has had having will would can could should i you he she it we they me him her"
    " us them my your his its our their what which who whom whose when where why how that this these those"
    " there here not no so than then too very just also please s t re ve ll d m"
    " any all some other another each both few more most much many such same own only again yes"
)
_CHINESE = (
    "的 了 吗 呢 是 在 我 你 他 她 它 什么 怎么 怎样 哪里 哪个 哪些 哪天 多少 几个 时候 么时 我的 你的"
    " 他的 她的 我们 你们 他们 这个 那个 是什 是不 不是 有没 没有 可以 请问 告诉 诉我 了吗 的吗 为什"
)
_JAPANESE = "です ます した して から ので とは はい いつ どこ どの"
