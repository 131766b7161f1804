"""What of an event can be found, by which words, and in which order: the same on every store.

A store's own index may only preselect; what is found, and in which order, is said here.
"""

from __future__ import annotations

import heapq
import json
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from trimtab.relevance.scripts import patterns, plain_text
from trimtab.stores.base import Event

MAX_TERM_CHARS = 64
"""A longer word is found by its beginning: an index refuses keys of kilobytes, and nobody types them."""

_OPAQUE = frozenset(
    (
        "role",
        "type",
        "id",
        "data",
        "signature",
        "encrypted_content",
        "cache_control",
        "media_type",
        "mime_type",
    )
)
"""Keys of plain data whose values nobody looks for; and every key that ends in `_id`."""

_ENCODED = re.compile(r"data:[^,\s]{0,200},|[A-Za-z0-9+/_-]{200,}={0,2}\s*\Z")
"""A data URL, or a long run of base64 without a space."""


def search_terms(text: str, /) -> tuple[str, ...]:
    """Return the terms a text is found by, each once, in order.

    Words of letters and digits, without case (NFKC, casefold). Where words are not spaced (Chinese,
    Japanese, Korean, Thai…) each character, and each two neighbours.

    Example:
        >>> search_terms("Weather in Berlin, 北京天气")
        ('weather', 'in', 'berlin', '北', '京', '天', '气', '北京', '京天', '天气')
    """
    return tuple(dict.fromkeys(_terms(text, all_sizes=True)))


def query_terms(text: str, /) -> tuple[str, ...]:
    """Return the terms to ask a store for.

    As `search_terms`, but of two neighbours that are not spaced only the pair: it says more.

    Example:
        >>> query_terms("Berlin 天气")
        ('berlin', '天气')
    """
    return tuple(dict.fromkeys(_terms(text, all_sizes=False)))


def usable_terms(terms: Iterable[str], /) -> tuple[str, ...]:
    """Return those of a request's terms that an event can have, each once; others are found nowhere."""
    return tuple(term for term in dict.fromkeys(terms) if term in search_terms(term))


def _terms(text: str, *, all_sizes: bool) -> Iterator[str]:
    if text.isascii():
        yield from (word[:MAX_TERM_CHARS] for word in _ASCII_WORD.findall(text.lower()))
        return
    for match in _words().finditer(plain_text(text)):
        run = match[1]
        if run is None:
            yield match[0][:MAX_TERM_CHARS]
            continue
        if all_sizes or len(run) == 1:
            yield from run
        yield from (run[at : at + 2] for at in range(len(run) - 1))


_ASCII_WORD = re.compile("[a-z0-9]+")


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Match a run of a script without spaces (group 1), or a word of any other."""
    run, word = patterns()
    return re.compile(rf"({run})|{word}")


def searchable_text(event: Event, /) -> str:
    """Return what a "message" event can be found by; empty for every other kind.

    All texts and numbers of its message: content of any shape, names, arguments of calls. Not roles,
    types, ids, nor what is encoded (base64, data URLs, signatures).
    """
    return "\n".join(_strings(event.message)) if event.kind == "message" else ""


def _strings(value: Any) -> Iterator[str]:
    """List the texts in plain data; iteratively, as data may be nested deeper than Python's stack."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not _ENCODED.match(one):
                yield _readable(one)
        elif isinstance(one, Mapping):
            waiting += reversed([one[key] for key in one if not _is_opaque(key)])
        elif isinstance(one, (list, tuple)):
            waiting += reversed(one)
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            yield str(one)


def _is_opaque(key: Any) -> bool:
    return key in _OPAQUE or (isinstance(key, str) and key.endswith("_id"))


def _readable(text: str) -> str:
    """Return JSON inside a text, as the arguments of a call are, with its characters written out."""
    if "\\u" not in text or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def count_terms(event: Event, terms: Iterable[str], /) -> int:
    """Tell how many of the terms, each given once, an event has."""
    there = set(search_terms(searchable_text(event)))
    return sum(term in there for term in terms)


class TermIndex:
    """Knows which events of one session have a term."""

    def __init__(self) -> None:
        self._versions: dict[str, list[int]] = {}
        """By term, ascending."""

    def add(self, event: Event, /) -> None:
        """Put an event into it, which is not there."""
        for term in search_terms(searchable_text(event)):
            insort(self._versions.setdefault(term, []), event.version)

    def remove(self, event: Event, /) -> None:
        """Take an event out of it that was put in as it is."""
        for term in search_terms(searchable_text(event)):
            versions = self._versions[term]
            del versions[bisect_left(versions, event.version)]
            if not versions:
                del self._versions[term]

    def best(self, terms: Iterable[str], limit: int, /) -> list[int]:
        """Return the versions to answer with; see `best_versions`."""
        found: Counter[int] = Counter()
        for term in terms:
            found.update(self._versions.get(term, ()))
        return best_versions(found, limit)


def best_versions(found: Mapping[int, int], limit: int, /) -> list[int]:
    """Return the versions to answer with, by how many terms each has: more first, then newer first."""
    hits = ((terms, version) for version, terms in found.items() if terms > 0)
    return [version for _, version in heapq.nlargest(limit, hits)]
