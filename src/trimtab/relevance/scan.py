"""Looking for a few terms in many texts, without taking the texts apart."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, compress, islice, repeat
from operator import ne
from typing import NamedTuple

from trimtab._shared.memory import TERMS, TEXTS
from trimtab.relevance.scripts import breaks_words
from trimtab.relevance.spellings import LEAST_DIGITS, fold, more_words, plain_text
from trimtab.relevance.stems import stem
from trimtab.relevance.terms import MAX_TERM_CHARS, text_terms

__all__ = ["find_terms"]

_MOST_TERMS = 24
"""Terms that are looked for one by one: each is a pass over all texts. With more, texts are taken apart."""

_LETTER = "\x80"
"""Stands for any letter or digit that is not ASCII: no term that is looked for has it."""

_WORDS_ALONE = bytes(
    code
    if chr(code) == _LETTER
    else ord(chr(code).lower())
    if chr(code).isascii() and chr(code).isalnum()
    else ord(" ")
    for code in range(256)
)
"""Writes ASCII in small letters, with a space for all that is neither letter nor digit."""

_MOST_SIGNS = 16
"""Characters of a text that are not ASCII and are put into it one by one."""


def find_terms(texts: Sequence[str], terms: Collection[str], /) -> dict[str, dict[int, int]]:
    """Return which of the texts have each term, by place, and how often: as an `Index` would know."""
    found: dict[str, dict[int, int]] = {term: {} for term in terms}
    words = [term for term in found if term.isascii() and term.isalnum()]
    if len(words) < len(found) or len(found) > _MOST_TERMS:
        _find_apart(texts, found)
    elif found:
        numbers = any(len(word) >= LEAST_DIGITS and word.isdigit() for word in words)
        corpus = _corpus_of([*texts], numbers=numbers)
        _find_words(corpus, found)
        others = {*range(len(texts))}.difference(corpus.places) if len(corpus.places) < len(texts) else ()
        _count_in(texts, sorted(others), found)
    return found


def _count_in(texts: Sequence[str], places: Iterable[int], found: dict[str, dict[int, int]]) -> None:
    """Look for terms in some texts, one by one."""
    for place in places:
        for term, count in _counts(texts[place], found):
            found[term][place] = count


class _Terms(NamedTuple):
    """The terms of some neighboring texts; empty where they were seen once."""

    postings: Mapping[str, tuple[int, ...]]
    """By term the texts that have it, and how often each does, in turn."""

    @property
    def held(self) -> tuple[int, int]:
        """How many texts it holds, and what it takes in characters: an entry is some 160 bytes."""
        return (_TOGETHER, 160 * len(self.postings)) if self.postings else (0, 0)

    @classmethod
    def of(cls, texts: Iterable[str]) -> _Terms:
        """Take texts apart."""
        found = dict[str, list[int]]()
        for place, text in enumerate(texts):
            for term, count in Counter(text_terms(text)).items():
                found.setdefault(term, []).extend((place, count))
        return cls({term: tuple(places) for term, places in found.items()})


def _find_apart(texts: Sequence[str], found: dict[str, dict[int, int]]) -> None:
    """Look for terms that no search finds: texts are taken apart, and of a chat that grows remembered so.

    Of neighbors that were asked about before all terms are kept, some at each call: to take 10,000 messages
    apart takes half a second, and to look up what is known of them 2 ms.
    """
    left = _MOST_AT_ONCE
    for start in range(0, len(texts), _TOGETHER):
        few = tuple(texts[start : start + _TOGETHER])
        known = TERMS.find(few, _Terms({})) if len(few) == _TOGETHER else None
        if known is not None and not known.postings and left:
            known, left = _Terms.of(few), left - 1
            TERMS.keep(few, known)
        if known is None or not known.postings:
            _count_in(texts, range(start, start + len(few)), found)
            continue
        for term, counts in found.items():
            if places := known.postings.get(term):
                counts.update(zip([start + at for at in places[::2]], places[1::2], strict=True))


_TOGETHER = 64
"""Texts of which the terms are remembered together; of fewer, at the end of a chat, they are not."""
_MOST_AT_ONCE = 16
"""So often neighbors are taken apart in one call to be remembered."""


class _Corpus(NamedTuple):
    """Texts as they are searched; nothing of it is changed once it is kept."""

    texts: list[str]
    joined: bytes
    """Words of all of them that can be searched as ASCII, with a space before, between and behind them."""
    stops: list[int]
    """Where each of these ends in that."""
    places: list[int]
    """Which of the texts these are."""

    @property
    def held(self) -> tuple[int, int]:
        """How many texts it holds, and their characters, which are there twice."""
        return len(self.texts), 2 * len(self.joined)

    def until(self, count: int) -> _Corpus:
        """Return the first of the texts."""
        if count == len(self.texts):
            return self
        there = bisect_left(self.places, count)
        end = self.stops[there - 1] if there else 0
        return _Corpus(self.texts[:count], self.joined[: end + 1], self.stops[:there], self.places[:there])

    def extend(self, texts: list[str], *, numbers: bool) -> _Corpus:
        """Return all of some texts, of which the first are known.

        Args:
            texts: All of them.
            numbers: Whether digits of numbers are asked for.
        """
        start = len(self.texts)
        new = texts[start:]
        in_ascii = [_in_ascii(text) for text in new]
        _add_spellings(new, in_ascii, numbers=numbers)
        there = [text for text in in_ascii if text is not None]
        joined = "".join([f"{text} " for text in there]).encode("latin-1").translate(_WORDS_ALONE)
        ends = accumulate([len(text) + 1 for text in there], initial=self.stops[-1] if self.stops else 0)
        places = [place for place, text in enumerate(in_ascii, start) if text is not None]
        return _Corpus(
            texts, self.joined + joined, [*self.stops, *islice(ends, 1, None)], [*self.places, *places]
        )


def _corpus_of(texts: list[str], *, numbers: bool) -> _Corpus:
    """Prepare texts to be searched; those of a chat that grows are known from the call before."""
    blank = _Corpus([], b" ", [], [])
    if len(texts) < _LEAST_REMEMBERED:
        return blank.extend(texts, numbers=numbers)
    key = (numbers, *texts[:_KEY_TEXTS])
    known = TEXTS.find(key, blank)
    if known is None:  # seen for the first time: most are never asked about again
        return blank.extend(texts, numbers=numbers)
    same = _same(known.texts, texts)
    corpus = known.until(same).extend(texts, numbers=numbers)
    if not same == len(known.texts) == len(texts):
        TEXTS.keep(key, corpus)
    return corpus


_LEAST_REMEMBERED = 64
"""So many texts are soon prepared."""
_KEY_TEXTS = 4
"""By so many texts in front a conversation is told from others."""


def _same(one: list[str], other: list[str]) -> int:
    """Count the texts in front that two have alike."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(at for at, differs in enumerate(map(ne, one, other)) if differs)


def _add_spellings(texts: Sequence[str], in_ascii: list[str | None], *, numbers: bool) -> None:
    """Put behind texts what else their words may be looked for by; digits of numbers if any are asked for."""
    stops = list(accumulate(1 + (len(text) if text.isascii() else len(_bytes(text))) for text in texts))
    more: dict[int, list[str]] = {}
    for start, words in more_words("\n".join(texts), numbers=numbers):
        more.setdefault(bisect_right(stops, start), []).append(words)
    for place, others in more.items():
        if (text := in_ascii[place]) is not None:
            in_ascii[place] = " ".join((text, *others))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _in_ascii(text: str) -> str | None:
    """Return a text with a sign for each letter that is not ASCII; None where a term may be told otherwise.

    Quotes, dashes and accents are in most texts that are not ASCII, and to take such a text apart takes
    thirty times as long as to look for words in it.
    """
    if text.isascii():
        return text
    plain = fold(text).replace(_LETTER, " ")
    signs = [sign for sign in set(plain) if not sign.isascii()]
    if len(signs) > _MOST_SIGNS or max(map(len, plain.split()), default=0) > MAX_TERM_CHARS:
        return None
    for sign in signs:
        instead = _instead(sign)
        if instead is None:
            return None
        plain = plain.replace(sign, instead)
    return plain


@lru_cache(maxsize=1 << 12)
def _instead(sign: str) -> str | None:
    """Return what stands for a character: part of a word, or between words; None: neither, by itself."""
    if breaks_words(sign):
        return None
    return _LETTER if sign.isalnum() else " "


def _find_words(corpus: _Corpus, found: dict[str, dict[int, int]]) -> None:
    """Look for words in texts, all at once: one long text is searched, and cut apart, in C."""
    places, joined, stops = corpus.places, corpus.joined, corpus.stops
    for term, counts in found.items():
        prefix = _prefix(term)
        sought = f" {prefix}".encode("ascii")
        pieces = joined.split(sought)  # a pattern would look at every character
        # how the word goes on at each place where one begins so, and where that is
        rests = [piece.partition(b" ")[0] for piece in pieces[1:]]
        ends = accumulate(map(len(sought).__add__, map(len, pieces)))
        same = {rest for rest in set(rests) if stem(prefix + rest.decode("latin-1")) == term}
        hits = map(bisect_left, repeat(stops), compress(ends, map(same.__contains__, rests)))
        counts.update((places[at], often) for at, often in Counter(hits).items())


def _counts(text: str, terms: Collection[str]) -> Iterator[tuple[str, int]]:
    """Count those of the terms that a text has."""
    plain = plain_text(text)
    there = [term for term in terms if _prefix(term) in plain] if len(terms) <= _MOST_TERMS else terms
    if any(term.isascii() or len(set(term)) != len(term) for term in there):
        counted = Counter(text_terms(text))
        yield from ((term, counted[term]) for term in there if term in counted)
    else:  # pairs of characters, which occur where they stand
        yield from ((term, plain.count(term)) for term in there if term in plain)


def _prefix(term: str) -> str:
    """Return what every word of a stem begins with: "party" is the stem of "parties"."""
    return term.removesuffix("y") or term
