"""Part of a text, by its lines or around a word, within a number of tokens. Knows no messages.

A line ends with a line feed and nothing else, so that its number is that which `grep -n` and editors give it.
Whatever is asked, the text is gone through a few times at most, and what is counted goes by the answer.
"""

from __future__ import annotations

import re
import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from trimtab._shared.checks import is_whole
from trimtab.counting.graphemes import boundary_at_or_after, boundary_at_or_before
from trimtab.counting.shorten import shorten
from trimtab.errors import ConfigurationError

CountText: TypeAlias = Callable[[str], int]

LineRange: TypeAlias = str | int | Sequence[int] | None
"""Which lines of a text: "120-188", "120-", 120, (120, 188), or "1+4000", line 1 behind 4,000 characters."""

LEAST_TOKENS = 100
"""The least an answer may be asked to have: what it is of, how to go on, and some words."""

MOST_WORD_CHARS = 200
"""The longest text that can be looked for."""

_CHARS_PER_TOKEN = 8
"""No more characters of a text are counted than so many for each token of the answer."""

_CONTEXT_LINES = 5
_CONTEXT_CHARS = (400, 200, 100, 50, 20, 0)
"""What is shown before and behind a place, the most first: less where not even the first place has room."""

_LINES = re.compile(r"\s*(\d{1,15})(?:\+(\d{1,15}))?(?:\s*[-:]\s*(\d{1,15})?)?\s*")


class _Span(NamedTuple):
    """Characters of a text, from `start` to `stop`."""

    start: int
    stop: int


def excerpt(
    text: str, title: str, /, *, lines: LineRange, around: str | None, max_tokens: int, count: CountText
) -> str:
    """Return a part of a text, with what part it is above it and how to go on below it.

    Args:
        text: The text.
        title: What it is, for the first line.
        lines: Its lines; None: all.
        around: A text that stands in what is wanted; of other case, if it is nowhere as it is written.
        max_tokens: The most tokens of all of it.
        count: Tokens of a text.

    Raises:
        ConfigurationError: `lines` or `around` cannot be read, or there are no such lines.
    """
    page = _Page(text, title, max_tokens, count)
    if not text:
        return f"[{title} is empty]"
    span = page.span_of(lines)
    if around is None:
        return page.read(span)
    return page.find(span, _checked_word(around))


def _checked_word(around: object) -> str:
    if not isinstance(around, str) or not around.strip() or len(around) > MOST_WORD_CHARS:
        what = f"a text of {len(around):,} characters" if isinstance(around, str) else repr(around)[:80]
        raise ConfigurationError(
            f"around must be a word or a few, 1 to {MOST_WORD_CHARS} characters that stand in the result, not"
            f" {what}",
            argument="around",
        )
    return around


class _Page:
    """One text, of which a part is to be written."""

    def __init__(self, text: str, title: str, max_tokens: int, count: CountText) -> None:
        self._text, self._title = text, title
        self._max_tokens, self._count = max_tokens, count
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        """Where each line begins."""
        if len(self._starts) > 1 and self._starts[-1] == len(text):
            self._starts.pop()

    # Which lines.

    def span_of(self, lines: LineRange) -> _Span:
        """Return where lines stand."""
        if lines is None:
            return _Span(0, len(self._text))
        first, beyond, last = _numbers(lines)
        there = len(self._starts)
        last = there if last is None else min(last, there)
        if not 1 <= first <= there:
            raise self._no_lines(f"there is no line {first:,}", lines)
        if last < first:
            raise self._no_lines("the first of the lines stands behind the last", lines)
        start, end = self._starts[first - 1], self._end_of(first)
        if beyond > end - start:
            raise self._no_lines(f"line {first:,} has {end - start:,} characters", lines)
        return _Span(start + beyond, self._end_of(last))

    def _no_lines(self, why: str, lines: LineRange) -> ConfigurationError:
        there = len(self._starts)
        return ConfigurationError(
            f"{why}: {self._title} has {there:,} line{'s' * (there != 1)}, not lines={lines!r:.60}; pass the"
            ' first and the last, as in lines="1-40"',
            argument="lines",
        )

    def _end_of(self, line: int) -> int:
        """Return where a line ends, with its break."""
        return self._starts[line] if line < len(self._starts) else len(self._text)

    def _line_at(self, place: int) -> int:
        return bisect_right(self._starts, place)

    def _label_of(self, span: _Span) -> str:
        """Say which lines a part is, and which characters of them where it is not whole lines."""
        first, last = self._line_at(span.start), self._line_at(max(span.start, span.stop - 1))
        said = f"line {first}" if first == last else f"lines {first}-{last}"
        begins = span.start == self._starts[first - 1]
        ends = span.stop >= self._end_of(last) or self._text.startswith("\n", span.stop)
        if begins and ends:
            return said
        start, stop = self._starts[first - 1], span.stop - self._starts[last - 1]
        if first == last:
            return f"{said}, characters {span.start - start + 1}-{stop}"
        begun = "" if begins else f" from character {span.start - start + 1}"
        return f"{said}{begun}{'' if ends else f', the last to character {stop}'}"

    def _rest(self, place: int, stop: int) -> str:
        """Write what is to be passed as `lines` for what stands from one place to another."""
        first, last = self._line_at(place), self._line_at(max(place, stop - 1))
        beyond = place - self._starts[first - 1]
        said = f"{first}+{beyond}" if beyond else f"{first}"
        return said if last == first else f"{said}-{last}"

    def _head(self, named: str) -> str:
        there = len(self._starts)
        return f"[{self._title}: {named} of {there}]" if there > 1 else f"[{self._title}: {named}]"

    # By lines.

    def read(self, span: _Span) -> str:
        """Write as much of a part as has room, whole lines if it is more than one."""
        room = self._max_tokens - self._count(self._head(self._label_of(span)) + self._more(span) + "\n\n")
        answer = ""
        for _ in range(_ROUNDS):
            part = _Span(span.start, self._fitting(span, max(1, room)))
            answer = f"{self._head(self._label_of(part))}\n{self._text_in(part)}"
            if part.stop < span.stop:
                answer += "\n" + self._more(_Span(part.stop, span.stop))
            over = self._count(answer) - self._max_tokens
            if over <= 0:
                break
            room -= over
        return answer

    def _more(self, span: _Span) -> str:
        return f'[goes on: lines="{self._rest(span.start, span.stop)}"]'

    def _text_in(self, span: _Span) -> str:
        part = self._text[span.start : span.stop]
        return part.removesuffix("\n")

    def _fitting(self, span: _Span, room: int) -> int:
        """Return where the longest beginning of a part that has room ends: behind a line, if one has room."""
        most = min(span.stop, span.start + room * _CHARS_PER_TOKEN)
        if most < span.stop:
            most = max(span.start, boundary_at_or_before(self._text, most))
        part = self._text[span.start : most]
        kept = shorten(part, room, count=self._count, keep="start", marker="") or ""
        end = span.start + len(kept)
        if end >= span.stop:
            return span.stop
        line_end = self._text.rfind("\n", span.start, end) + 1
        # Without a place to go on from, what asks again gets the same: one cluster at least.
        return line_end or max(end, boundary_at_or_after(self._text, span.start + 1))

    # Around a word.

    def find(self, span: _Span, word: str) -> str:
        """Write the places of a word that have room, each with what stands around it."""
        shown = word if len(word) <= _SHOWN_CHARS else f"{word[:_SHOWN_CHARS]}…"
        said = f'"{shown}"' if shown.isprintable() else ascii(shown)
        searched, word = self._search_texts(span, word)
        total = searched.count(word, span.start, span.stop)
        if not total:
            named = "" if span == (0, len(self._text)) else f" in {self._label_of(span)}"
            there = len(self._starts)
            return f"[{self._title}: {said} does not occur{named}; it has {there} line{'s' * (there != 1)}]"
        places = [*islice(_places(searched, word, span), self._max_tokens)]
        head = f"[{self._title}: {said}, {total} place{'s' * (total > 1)}]"

        def others(stop: int) -> int:
            return searched.count(word, stop, span.stop) if stop > span.start else total

        answer = ""
        for chars in _CONTEXT_CHARS:
            passages = self._passages(span, places, chars=chars, word_chars=len(word))
            answer, fits = self._with_room(head, passages, span, others)
            if fits:
                break
        return answer

    def _search_texts(self, span: _Span, word: str) -> tuple[str, str]:
        """Return the text and the word as they are searched: in one case if it does not occur as it is."""
        if self._text.find(word, span.start, span.stop) >= 0:
            return self._text, word
        return _in_one_case(self._text), _in_one_case(word)

    def _with_room(
        self, head: str, passages: Iterable[_Span], span: _Span, others: Callable[[int], int]
    ) -> tuple[str, bool]:
        """Write passages until the next has no room; and tell whether the first has.

        Args:
            head: The first line.
            passages: What stands around places, in order.
            span: Where they were looked for.
            others: Counts the places from one on.
        """
        room = self._max_tokens - self._count(f"{head}\n{self._others(others(0), span)}")
        taken = list[tuple[str, int]]()
        for part in passages:
            said = f"[{self._label_of(part)}]\n{self._text_in(part)}"
            room -= self._count(said) + 1
            if room < 0:
                break
            taken.append((said, part.stop))
        while True:
            stop = taken[-1][1] if taken else span.start
            more = others(stop)
            ends = [self._others(more, _Span(stop, span.stop))] if more else []
            answer = "\n".join([head, *(said for said, _ in taken), *ends])
            # What stands beside another may count for more than both.
            if not taken or self._count(answer) <= self._max_tokens:
                return answer, bool(taken)
            taken.pop()

    def _others(self, count: int, span: _Span) -> str:
        return f'[{count} more place{"s" * (count > 1)} with lines="{self._rest(span.start, span.stop)}"]'

    def _passages(
        self, span: _Span, places: Iterable[int], *, chars: int, word_chars: int
    ) -> Iterator[_Span]:
        """Yield what stands around places; a few that meet are one passage."""
        part = _Span(span.start, span.start)
        most = 4 * (2 * chars + word_chars)
        for place in places:
            near = self._near(span, place, place + word_chars, chars)
            if part.start < part.stop and near.start <= part.stop:
                if near.stop - part.start <= most:
                    part = _Span(part.start, max(part.stop, near.stop))
                    continue
                start = place if place < part.stop < place + word_chars else part.stop
                near = _Span(start, max(start, near.stop))
            if part.start < part.stop:
                yield part
            part = near
        yield part

    def _near(self, span: _Span, place: int, end: int, chars: int) -> _Span:
        """Return some whole lines before and behind a place; of long ones some characters."""
        starts, context = self._starts, _CONTEXT_LINES if chars else 0
        least, most = max(span.start, place - chars), min(span.stop, end + chars)
        first, last = self._line_at(place) - 1, self._line_at(max(place, end - 1))
        before = max(first - context, bisect_left(starts, least) if least > span.start else 0)
        start = starts[before] if before <= first else boundary_at_or_before(self._text, least)
        whole = len(starts) if most == span.stop else bisect_right(starts, most) - 1  # lines that end by then
        behind = min(last + context, whole)
        stop = self._end_of(behind) if behind >= last else boundary_at_or_after(self._text, most)
        return _Span(max(span.start, start), min(span.stop, stop))


def _numbers(lines: LineRange) -> tuple[int, int, int | None]:
    """Read which lines are meant: the first, how many of its characters are passed over, and the last."""
    if is_whole(lines):
        return lines, 0, lines
    if isinstance(lines, str) and (found := _LINES.fullmatch(lines)):
        first, beyond, last = found.groups()
        is_open = "-" in lines or ":" in lines
        end = int(last) if last else None if is_open else int(first)
        return int(first), int(beyond or 0), end
    if isinstance(lines, (list, tuple)) and len(lines) == 2 and all(map(is_whole, lines)):
        return lines[0], 0, lines[1]
    raise ConfigurationError(
        'lines must be the numbers of the first and the last line, as in "120-188", not'
        f" {reprlib.repr(lines)}",
        argument="lines",
    )


def _places(text: str, word: str, span: _Span) -> Iterator[int]:
    """Yield where a word stands, one behind the other."""
    at = text.find(word, span.start, span.stop)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word), span.stop)


def _in_one_case(text: str) -> str:
    """Return a text in small letters, each where it stood."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join([one if len(one.lower()) != 1 else one.lower() for one in text])


_SHOWN_CHARS = 40
"""How much of a word the answer says again."""

_ROUNDS = 8
"""Bounds the counts: what frames a part may count otherwise beside another."""
