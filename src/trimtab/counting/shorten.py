"""Shorten one text to a number of tokens, with a marker where it was cut. Knows no tokenizer.

A tokenizer is not additive (a letter more can mean a token less), so sizes found on the way only steer the
search; what is returned has itself been counted. Each count costs its text, so the search first jumps to
where the average size of a character points, and only then closes in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from trimtab.counting.graphemes import (
    border_after,
    border_before,
    boundary_at_or_after,
    boundary_at_or_before,
)

Keep = Literal["end", "start", "both"]
"""Which part of a text stays."""

CUT_MARKER = "[text cut by trimtab]"
"""The marker where text was cut (SPEC A10); 6 tokens in o200k and cl100k.

It has no number, so equal input gives equal output, and a text that was cut before and fits is not changed.
It makes no claim and no request, so a tool that writes it itself gains nothing.
"""

_MARKER = re.compile(r"\[(?:text cut by trimtab(?:; all of it: [^][\n]{1,160})?|trimtab: [^][\n]{1,160})\]")
"""What stands for text that was cut or cleared before."""

_MARKER_CHARS = 200
"""No marker is longer."""


def marker_with(handle: str, /) -> str:
    """Write the marker with what the whole text is found by.

    Args:
        handle: Says where that is; it has no square brackets.
    """
    return f"{CUT_MARKER[:-1]}; all of it: {handle}]"


def shares_of(sizes: Sequence[int], room: int, /) -> list[int]:
    """Return how much room each of some texts may take: the largest are cut down to one size.

    Args:
        sizes: What each takes whole.
        room: What all of them may take.
    """
    shares = [0] * len(sizes)
    for rank, at in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[at] = room // (len(sizes) - rank)
        room -= min(sizes[at], shares[at])
    return shares


def shorten(
    text: str,
    limit_tokens: int,
    *,
    count: Callable[[str], int],
    keep: Keep,
    marker: str = CUT_MARKER,
    size_tokens: int | None = None,
) -> str | None:
    """Return the longest part of `text` that fits, with `marker` for what was cut.

    Cuts fall between grapheme clusters. The result has been counted and fits; with the cluster next to a cut
    put back (for "both": on either side) it would not fit, or nothing would be cut.

    Args:
        limit_tokens: The most the result may have by `count`, the marker included.
        count: Tokens of a text; need not be additive. Called O(log n) times, first with `text` and `marker`.
        keep: "end": marker, then the tail. "start": the head, then the marker. "both": head, marker and
            tail, head and tail of about equal length, the odd code point to the head.
        size_tokens: `count(text)` if it is known, to save counting it.

    Returns:
        `text` itself if it fits, the bare marker if only that fits, None if not even that does.

    Example:
        >>> shorten("one two three four five six seven", 28, count=len, keep="both")
        'one [text cut by trimtab]ven'
    """
    size_tokens = count(text) if size_tokens is None else size_tokens
    if size_tokens <= limit_tokens:
        return text
    marker_tokens = count(marker)
    if marker_tokens > limit_tokens:
        return None
    job = _Job(text=text, limit_tokens=limit_tokens, size_tokens=size_tokens, count=count, marker=marker)
    job.known_tokens[_Cut(0, len(text))] = marker_tokens
    bracket = Bracket(low=0, low_tokens=marker_tokens, high=len(text) + 1, high_tokens=size_tokens)
    cut = _longest(job, bracket, place=lambda kept_chars: _cut_keeping(text, kept_chars, keep))
    return _write(text, _fill(job, cut) if keep == "both" else cut, marker)


_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")


def cut_at_sentence(text: str, limit_tokens: int, size: Callable[[str], int]) -> str | None:
    """Cut a text after the last sentence that fits, or inside the first one if not even that does.

    Returns:
        The beginning of the text; None if nothing of it fits.

    Example:
        >>> cut_at_sentence("It is red. It is new. It is mine.", 24, len)
        'It is red. It is new.'
    """
    ends = [match.start() for match in _SENTENCE_END.finditer(text)]
    fitting = bisect_left(ends, True, key=lambda end: size(text[:end].strip()) > limit_tokens)
    for at in range(fitting - 1, -1, -1):  # sizes are not quite monotonic
        head = text[: ends[at]].strip()
        if head and size(head) <= limit_tokens:
            return head
    cut = shorten(text, limit_tokens, count=size, keep="start")
    return cut if cut is not None and cut.strip() else None


def cut_text(text: str, kept_chars: int, *, keep: Keep, marker: str = CUT_MARKER) -> str:
    """Keep at most `kept_chars` code points of `text`, and a marker for the rest.

    Counts nothing. The marker is not among the `kept_chars`. More of them never keep less of the text.

    Returns:
        `text` itself if it has no more than `kept_chars`, the bare marker if no cluster fits in them.

    Example:
        >>> cut_text("one two three", 6, keep="both")
        'one[text cut by trimtab]ree'
    """
    kept_chars = max(0, kept_chars)
    return text if len(text) <= kept_chars else _write(text, _cut_keeping(text, kept_chars, keep), marker)


def cut_text_near(
    text: str, kept_chars: int, other_chars: int, *, keep: Keep, marker: str = CUT_MARKER
) -> str:
    """Return what `cut_text(text, kept_chars)` has near its cut, without what `other_chars` keeps, too.

    It ends at borders between tokens, so two cuts differ in size by as much as these parts of them
    do; for a function that counts in another way it is an estimate.

    Example:
        >>> cut_text_near("one two three four five six", 8, 12, keep="end")
        '[text cut by trimtab]five'
        >>> cut_text_near("one two three four five six", 12, 8, keep="end")
        '[text cut by trimtab]our five'
    """
    cut, other = (_cut_keeping(text, chars, keep) for chars in (kept_chars, other_chars))
    start = border_before(text, min(cut.start, other.start))
    stop = border_after(text, max(cut.stop, other.stop))
    part = text[start : cut.start], text[cut.stop : stop]
    return (marker if cut.start < cut.stop else "").join(part)


class Ends(NamedTuple):
    """What stays of a text that was cut, on either side of its marker."""

    head_chars: int
    tail_chars: int
    marker: str

    def of(self, text: str, /) -> str:
        """Cut the text there."""
        return text[: self.head_chars] + self.marker + text[len(text) - self.tail_chars :]


def ends_of(text: str, cut: str, /) -> Ends | None:
    """Find where a text was cut; None: the other one is not this text with a marker in it.

    Args:
        text: The whole text.
        cut: What became of it.

    Example:
        >>> ends_of("one two three", "one[text cut by trimtab]ree").of("one two three")
        'one[text cut by trimtab]ree'
    """
    for found in _MARKER.finditer(cut):
        head_chars, tail = found.start(), cut[found.end() :]
        is_part = head_chars + len(tail) <= len(text) and text.endswith(tail)
        if is_part and text.startswith(cut[:head_chars]):
            return Ends(head_chars, len(tail), found.group())
    return None


class _Cut(NamedTuple):
    """What is cut out of a text: the code points from `start` to `stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One text to shorten, and how to measure the outcome."""

    text: str
    limit_tokens: int
    size_tokens: int
    count: Callable[[str], int]
    marker: str
    known_tokens: dict[_Cut, int] = field(default_factory=dict)
    """Sizes counted so far: neighbouring numbers of code points often mean the same cut."""

    def tokens(self, cut: _Cut) -> int:
        """Count the text with `cut` taken out; an empty cut leaves the whole text."""
        if cut.start >= cut.stop:
            return self.size_tokens
        if cut not in self.known_tokens:
            self.known_tokens[cut] = self.count(_write(self.text, cut, self.marker))
        return self.known_tokens[cut]


def _write(text: str, cut: _Cut, marker: str) -> str:
    return text[: cut.start] + marker + text[cut.stop :]


def _cut_keeping(text: str, kept_chars: int, keep: Keep) -> _Cut:
    """Cut out all but so many code points; what is kept of a cluster is all of it or nothing."""
    kept_chars = min(kept_chars, len(text))
    head_chars = {"end": 0, "start": kept_chars, "both": (kept_chars + 1) // 2}[keep]
    start = _head_end(text, head_chars)
    if kept_chars == len(text):
        return _Cut(start, start)  # also where head and tail meet inside a cluster
    return _Cut(start, _tail_start(text, len(text) - (kept_chars - head_chars)))


def _head_end(text: str, position: int) -> int:
    """Return where a head of at most so many code points ends: behind a cluster, and in or behind no marker.

    A marker of an earlier cut stays whole or goes, so that none is cut in its turn and no two stand together.
    """
    border = boundary_at_or_before(text, position)
    for start, stop in reversed(_markers_near(text, border)):
        border = start if start < border <= stop else border
    return border


def _tail_start(text: str, position: int) -> int:
    """Return where a tail of at most the code points from a position begins; see `_head_end`."""
    border = boundary_at_or_after(text, position)
    for start, stop in _markers_near(text, border):
        border = stop if start <= border < stop else border
    return border


def _markers_near(text: str, position: int) -> list[tuple[int, int]]:
    """List where markers that a position may be in begin and end."""
    first = max(0, position - _MARKER_CHARS)
    near = text[first : position + _MARKER_CHARS]
    if "trimtab" not in near:
        return []
    return [(first + found.start(), first + found.end()) for found in _MARKER.finditer(near)]


def _longest(job: _Job, bracket: Bracket, *, place: Callable[[int], _Cut]) -> _Cut:
    """Find a cut that fits while the next one in the order of `place` does not."""
    bracket.close(lambda kept_chars: job.tokens(place(kept_chars)), limit_tokens=job.limit_tokens)
    return place(bracket.low)


def _fill(job: _Job, cut: _Cut) -> _Cut:
    """Give back what still fits on either side; one may take more than the other."""
    for _ in range(_ROUNDS):
        wider = _longest_side(job, _longest_side(job, cut, grow=_more_head), grow=_more_tail)
        if wider == cut:
            break
        cut = wider
    return cut


_ROUNDS = 8
"""Bounds the counts. Two rounds were enough for every text tried; more are for counters that play tricks."""


def _more_head(job: _Job, cut: _Cut, chars: int) -> _Cut:
    return _Cut(min(cut.stop, max(cut.start, _head_end(job.text, cut.start + chars))), cut.stop)


def _more_tail(job: _Job, cut: _Cut, chars: int) -> _Cut:
    return _Cut(cut.start, max(cut.start, min(cut.stop, _tail_start(job.text, cut.stop - chars))))


def _longest_side(job: _Job, cut: _Cut, *, grow: Callable[[_Job, _Cut, int], _Cut]) -> _Cut:
    """Move one border of `cut` inwards as far as fits."""
    chars = 1
    while (first := grow(job, cut, chars)) == cut and chars < cut.stop - cut.start:
        chars += 1
    tokens = job.tokens(first)
    if tokens > job.limit_tokens:
        return cut
    bracket = Bracket(
        low=chars, low_tokens=tokens, high=cut.stop - cut.start + 1, high_tokens=job.size_tokens
    )
    return _longest(job, bracket, place=lambda more_chars: grow(job, cut, more_chars))


@dataclass(slots=True, kw_only=True)
class Bracket:
    """The search for the most code points that fit, by sizes that need not be monotone.

    Of two numbers of kept code points `low` fits and `high` does not; sizes in tokens.
    """

    low: int
    low_tokens: int
    high: int
    high_tokens: int
    stalls: int = 0
    """Steps that did not halve the bracket, less those that did."""

    def close(self, size: Callable[[int], int], *, limit_tokens: int) -> None:
        """Narrow it to two neighbours, asking for the sizes of few numbers between."""
        while self.high - self.low > 1:
            kept_chars = self.probe(limit_tokens)
            self.narrow(kept_chars, size(kept_chars), limit_tokens=limit_tokens)

    def narrow(self, kept_chars: int, tokens: int, *, limit_tokens: int) -> None:
        """Take in that keeping `kept_chars` costs `tokens`."""
        width = self.high - self.low
        if tokens <= limit_tokens:
            self.low, self.low_tokens = kept_chars, tokens
        else:
            self.high, self.high_tokens = kept_chars, tokens
        self.stalls = self.stalls + 1 if (self.high - self.low) * 2 > width + 1 else max(0, self.stalls - 1)

    def probe(self, limit_tokens: int) -> int:
        """Choose the next number of code points to try, strictly between the two."""
        under, over = limit_tokens - self.low_tokens, self.high_tokens - limit_tokens
        if max(under, over) <= _NEAR_TOKENS:
            return (self.low + self.high) // 2
        # From the nearer end to just past the limit, so that the bracket closes around it; farther past it
        # each time that fails, since then the text is not as even as the average takes it to be.
        aim_tokens = min(under, over) + _PAST_TOKENS * _PAST_GROWTH**self.stalls
        chars = max(1, int((self.high - self.low) * min(0.5, aim_tokens / (under + over))))
        return self.low + chars if under <= over else self.high - chars


_NEAR_TOKENS = 3
"""Nearer than this the average says nothing: halving needs fewer counts."""
_PAST_TOKENS, _PAST_GROWTH = 1.5, 8
