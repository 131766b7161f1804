"""Counts by text: measured when missing, bounded, shared between threads, nearly free to hit."""

from __future__ import annotations

import threading
from typing import Any

from trimtab.counting.base import TextFunction, count_of, failure_of

MAX_ENTRIES = 131_072
"""Maximum number of remembered texts; each takes about 150 bytes in addition to its characters."""

MAX_CHARS = 33_554_432
"""Maximum number of remembered characters: 32 to 128 MB, mostly texts that the caller has anyway."""


class TextCounts(dict[Any, int]):
    """One generation of counts: `counts[text]` is a plain lookup, and measures what is missing.

    `counts[None]` is 0, since null content costs nothing. Other keys that are no text raise TypeError.
    """

    __slots__ = ("_cache", "_count", "_left_chars", "_max_entries", "old")

    def __init__(self, cache: TextCache, old: dict[Any, int]) -> None:
        super().__init__({None: 0})
        self._cache = cache
        self.old = old
        """The other generation: the one before, or, once this one is full, the one after."""
        self._count = cache.count_text
        self._max_entries = cache.max_entries
        self._left_chars = cache.max_chars

    def __missing__(self, text: Any) -> int:
        """Look a text up in the generation before this one, or measure it; and remember it here.

        A cold fit spends most of its time here, so no lock is taken: the tally of characters may
        lose a text where threads meet, which only lets a generation grow by as much.
        """
        if text.__class__ is not str and not isinstance(text, str):
            raise TypeError(f"{type(text).__name__} is not a text")
        size = self.old.get(text)
        if size is None:
            try:
                size = self._count(text)
            except BaseException as cause:
                if not isinstance(cause, UnicodeEncodeError | TypeError):
                    raise self._cache.failure(text, cause) from cause
                size = self._cache.second_try(text, cause)
            if size.__class__ is not int or size < 0:
                size = self._cache.check(text, size)
        left_chars = self._left_chars - len(text)
        if left_chars < 0 or len(self) > self._max_entries:
            self._cache.add(text, size)
        else:
            self._left_chars = left_chars
            self[text] = size
        return size

    def has_room(self, text: str) -> bool:
        """Tell whether a text may be added."""
        return len(self) <= self._max_entries and len(text) <= self._left_chars

    def add(self, text: str, count: int) -> None:
        """Remember the count of a text for which there is room."""
        self._left_chars -= len(text)
        self[text] = count


class TextCache:
    """Remembers the counts of a text function; the most recently used half is certain to be kept.

    Two generations, a young and an old one. New counts go to the young one; when that is half of
    what is allowed it becomes the old one, and what was old and never asked for again is
    forgotten. Reading takes no lock: a loop holds `young` and sees one generation or another, each
    of them right.
    """

    __slots__ = ("_lock", "_name", "_origin", "count_text", "max_chars", "max_entries", "young")

    def __init__(
        self,
        count_text: TextFunction,
        /,
        *,
        name: str,
        max_entries: int = MAX_ENTRIES,
        max_chars: int = MAX_CHARS,
        origin: tuple[Any, ...] | None = None,
    ) -> None:
        self.count_text = count_text
        self._name = name
        self._lock = threading.Lock()
        self.max_entries = max_entries // 2
        """Maximum entries of one generation."""
        self.max_chars = max_chars // 2
        """Maximum characters of one generation."""
        self.young = TextCounts(self, {})
        """The newest counts, for a hot loop to look in."""
        self._origin = origin or (_make, (count_text, name, max_entries, max_chars))
        """What makes it, or finds it, in another process: a function and its arguments."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by what it is made of: the counts stay behind."""
        return self._origin

    def get(self, text: str) -> int | None:
        """Return the count of a text, or None if it is not remembered."""
        young = self.young
        if text in young or text in young.old:
            return young[text]
        return None

    def second_try(self, text: str, cause: Exception) -> int:
        """Count again with lone surrogates replaced, which most tokenizers refuse.

        Raises:
            CountingError: The text function failed again, or there was nothing to replace.
        """
        plain = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if plain == text:
            raise self.failure(text, cause) from cause
        try:
            return self.count_text(plain)
        except BaseException as again:
            raise self.failure(text, again) from again

    def failure(self, text: str, cause: BaseException) -> BaseException:
        """Turn an exception of the text function into our error."""
        return failure_of(cause, counter=self._name, of=_describe(text))

    def check(self, text: str, answer: object) -> int:
        """Refuse an answer that is not a count."""
        return count_of(answer, counter=self._name, of=_describe(text))

    def add(self, text: str, count: int) -> None:
        """Remember a text for which a generation has no room, in a new one if need be."""
        if len(text) > self.max_chars:
            return
        with self._lock:
            # a loop may still hold a generation that another thread, or itself, has filled before
            if not self.young.has_room(text):
                full = self.young
                # what is older is forgotten, and loops that hold the full one find what is newer
                full.old = self.young = TextCounts(self, full)
            self.young.add(text, count)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self.young = TextCounts(self, {})

    def __len__(self) -> int:
        """Count the texts remembered."""
        with self._lock:
            return len((self.young.keys() | self.young.old.keys()) - {None})


def _make(count_text: TextFunction, name: str, max_entries: int, max_chars: int) -> TextCache:
    return TextCache(count_text, name=name, max_entries=max_entries, max_chars=max_chars)


def _describe(text: str) -> str:
    return f"a text of {len(text)} characters ({text[:40]!r})"
