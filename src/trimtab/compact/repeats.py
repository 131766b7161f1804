"""Lines that stand in an earlier result, written as references; and put back.

Only lines that are sent are looked for: a line that a reference stands for is none of the text that has it.
So no reference leads to another, and each is resolved in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trimtab.compact.markers import (
    Reference,
    escape,
    looks_like_marker,
    marker_in,
    number_of_line,
    renumber,
    unescape,
)

__all__ = ["Lines", "Repeats", "escape_lines", "lines_of", "put_back"]

_MOST_PLACES = 4
"""Places that are remembered of one line: braces and blank lines are everywhere."""
_CHARS = 4
"""Characters to a token, about: no count is asked for, so that a text is written alike for every counter."""
_MARKER_WEIGHT = 1.7
"""A reference is digits, signs and an id: so many times the tokens of as many characters of text."""

Lines = list["str | None"]
"""The lines of a result as it is sent; None for references, and for lines that are escaped."""


class _Run(NamedTuple):
    """Neighboring lines that stand in an earlier result."""

    at: int
    length: int
    source: int
    start: int
    by: int = 0
    """How much larger the numbers in front of the lines are than there."""


class Repeats:
    """The lines of results that are sent whole, and what of a later result stands among them.

    Args:
        min_lines: The fewest lines to refer to.
        min_tokens: The fewest tokens, about, that they have.
    """

    def __init__(self, min_lines: int, min_tokens: int) -> None:
        self._min_lines = min_lines
        self._min_chars = min_tokens * _CHARS
        self._sources: list[Lines] = []
        self._places: dict[str, list[tuple[int, int]]] = {}
        """Where a line stands: source and line, the first few."""
        self._bodies: dict[str, list[tuple[int, int]]] = {}
        """Where a line with a number in front stands, by what is behind the number."""

    def add(self, lines: Lines, /) -> None:
        """Take the lines of a result that later ones may refer to."""
        number, places = len(self._sources), self._places
        self._sources.append(lines)
        for at, line in enumerate(lines):
            if line is None:
                continue
            known = places.get(line)
            if known is None:
                places[line] = [(number, at)]
            elif len(known) < _MOST_PLACES:
                known.append((number, at))
        for at, (_, _, body) in _gutter_of(lines).items():
            known = self._bodies.setdefault(body, [])
            if len(known) < _MOST_PLACES:
                known.append((number, at))

    def write(
        self, lines: Sequence[str], handle_of: Callable[[int], str | int], /
    ) -> tuple[list[str], Lines, set[int]]:
        """Write a text with references.

        Args:
            lines: Its lines.
            handle_of: Names a source: the id of its call, or how many results back it is.

        Returns:
            Its lines as they are sent; those of them that a later result may refer to; and the numbers of the
            sources that it refers to.
        """
        sent, plain, used = list[str](), Lines(), set[int]()

        def copy(start: int, stop: int) -> None:
            for line in lines[start:stop]:
                written = escape(line)
                sent.append(written)
                plain.append(line if written is line else None)

        done = 0
        for run, reference in self._runs(lines, handle_of):
            copy(done, run.at)
            sent.append(str(reference))
            plain.append(None)
            used.add(run.source)
            done = run.at + run.length
        copy(done, len(lines))
        return sent, plain, used

    def _runs(
        self, lines: Sequence[str], handle_of: Callable[[int], str | int]
    ) -> list[tuple[_Run, Reference]]:
        """Find the runs from the first line on, the longest at each place, and how each is written."""
        found, at, done = list[tuple[_Run, Reference]](), 0, 0
        failed: dict[tuple[int, int, int], int] = {}
        gutter = _gutter_of(lines) if self._bodies else {}
        while at < len(lines):
            if lines[at] not in self._places and at not in gutter:  # as most lines are
                at += 1
                continue
            best: _Run | None = None
            for run in self._at(lines, at, failed, gutter):
                if best is None or run.length >= best.length:
                    best = run
            if best is not None:
                best = self._from_before(best, lines, done)
                reference = _reference(best, handle_of(best.source), gutter)
                if self._pays(best, lines, reference):
                    found.append((best, reference))
                    at = done = best.at + best.length
                    continue
            at += 1
        return found

    def _at(
        self,
        lines: Sequence[str],
        at: int,
        failed: dict[tuple[int, int, int], int],
        gutter: dict[int, tuple[str, int, str]],
    ) -> list[_Run]:
        """List the runs that begin with a line: each pair of texts is walked along once."""
        line, runs = lines[at], list[_Run]()
        places = [(source, start, 0) for source, start in self._places.get(line, ())]
        own = gutter.get(at)
        if own is not None:
            for source, start in self._bodies.get(own[2], ()):
                parts = number_of_line(self._sources[source][start] or "")
                if parts is not None and parts[1] != own[1]:
                    places.append((source, start, own[1] - parts[1]))
        for source, start, by in places:
            side = (source, start - at, by)
            if failed.get(side, 0) > at:
                continue
            count = self._count(lines, at, source, start, by, gutter)
            failed[side] = at + max(count, 1)
            if count >= 1:
                runs.append(_Run(at, count, source, start, by))
        return runs

    def _count(
        self,
        lines: Sequence[str],
        at: int,
        source: int,
        start: int,
        by: int,
        gutter: dict[int, tuple[str, int, str]],
    ) -> int:
        """Count how many lines on from two places are the same."""
        there, count = self._sources[source], 0
        most = min(len(lines) - at, len(there) - start)
        if not by:
            return _alike(there, start, lines, at, most)
        first = gutter[at][1]
        while count < most:
            line, own = there[start + count], gutter.get(at + count)
            if line is None or own is None or own[1] != first + count:
                break
            if renumber(line, by) != lines[at + count]:
                break
            count += 1
        return count

    def _from_before(self, run: _Run, lines: Sequence[str], done: int) -> _Run:
        """Let a run begin where it does: its first lines may be some that stand everywhere."""
        if run.by:
            return run
        there, back = self._sources[run.source], 0
        most = min(run.at - done, run.start)
        while back < most and there[run.start - back - 1] == lines[run.at - back - 1]:
            back += 1
        return run._replace(at=run.at - back, start=run.start - back, length=run.length + back)

    def _pays(self, run: _Run, lines: Sequence[str], reference: Reference) -> bool:
        if run.length < self._min_lines:
            return False
        least, chars = max(self._min_chars, int(len(str(reference)) * _MARKER_WEIGHT) + 1), 0
        for line in lines[run.at : run.at + run.length]:
            chars += len(line.strip()) + 2
            if chars >= least:
                return True
        return False


def _alike(there: Lines, start: int, lines: Sequence[str], at: int, most: int) -> int:
    """Count how many lines on from two places are the same, some at a time: lists are compared faster."""
    count, step = 0, 1
    while step:
        stop = min(count + step, most)
        if stop > count and there[start + count : start + stop] == lines[at + count : at + stop]:
            count, step = stop, 2 * step
        else:
            step = min(step, most - count) // 2
    return count


def _reference(run: _Run, handle: str | int, gutter: dict[int, tuple[str, int, str]]) -> Reference:
    number = gutter[run.at][1] if run.by else None
    return Reference(run.at + 1, run.length, handle, run.start + 1, number)


def _gutter_of(lines: Sequence[str | None]) -> dict[int, tuple[str, int, str]]:
    """Map lines with numbers in front that run on from line to line to their parts."""
    found: dict[int, tuple[str, int, str]] = {}
    last, last_at = None, -2
    for at, line in enumerate(lines):
        if not line or not (line[0].isdigit() or (line[0].isspace() and line.lstrip()[:1].isdigit())):
            continue
        parts = number_of_line(line)
        if parts is None:
            continue
        if last is not None and last_at == at - 1 and parts[1] == last[1] + 1:
            found[at - 1], found[at] = last, parts
        last, last_at = parts, at
    return found


def escape_lines(text: str, /) -> str:
    """Return a text without references as it is sent."""
    return "\n".join(map(escape, text.split("\n"))) if "[lines " in text else text


def lines_of(text: str, /) -> Lines:
    """Return the lines of a text that is sent as it is, for later results to refer to."""
    return [None if looks_like_marker(line) else line for line in text.split("\n")]


def put_back(text: str, lines_at: Callable[[str | int], Lines | None], /) -> str:
    """Return a text with what its references stand for.

    What does not stand where it says that it stands is no reference of ours, but a text that looks like one.

    Args:
        text: The text as it is sent.
        lines_at: Finds the lines of an earlier result by what a reference names it; None: there is none.
    """
    if "[lines " not in text:
        return text
    made = list[str]()
    for line in text.split("\n"):
        reference = marker_in(line)
        if reference is None:
            made.append(unescape(line))
            continue
        lines = _lines_for(reference, lines_at) if reference.first == len(made) + 1 else None
        made += [line] if lines is None else lines
    return "\n".join(made)


def _lines_for(reference: Reference, lines_at: Callable[[str | int], Lines | None]) -> list[str] | None:
    there, start = lines_at(reference.handle), reference.start - 1
    found = None if there is None else there[start : start + reference.length]
    if found is None or len(found) < reference.length:
        return None
    lines = [line for line in found if line is not None]
    if len(lines) < reference.length:
        return None
    if reference.number is None:
        return lines
    parts = number_of_line(lines[0])
    if parts is None:
        return None
    by = reference.number - parts[1]
    numbers = [renumber(line, by) for line in lines]
    made = [line for line in numbers if line is not None]
    return made if len(made) == len(lines) else None
