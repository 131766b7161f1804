"""How far a long input is, for people who wait at a terminal."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import BinaryIO, TextIO

from trimtab.report.lines import counted

_FIRST_SECONDS = 1.0
"""Work that is done sooner shows nothing."""
_EVERY_SECONDS = 0.2
_CLEAR = "\r\x1b[K"


class Progress:
    """A line on standard error that is rewritten; silent where nobody would see it.

    It needs a terminal, and is not shown where the results themselves scroll by.
    """

    def __init__(
        self, files: int, *, errors: TextIO, results: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._files = files
        self._begun = 0
        self._errors = errors
        self._active = errors.isatty() and not results.isatty()
        self._due_seconds = clock() + _FIRST_SECONDS
        self._part: Callable[[], str] = str
        self._shown = False

    def begin(self, file: BinaryIO) -> None:
        """Go on with the next file."""
        self._begun += 1
        if self._files > 1:
            self._part = lambda: f", file {self._begun:,} of {self._files:,}"
        elif self._active and (total_bytes := _size_bytes(file)):
            self._part = lambda: f", {file.tell() / total_bytes:.0%}"

    def step(self, done: int) -> None:
        """Say how many conversations are done, if it is time to."""
        now_seconds = self._clock() if self._active else 0.0
        if not self._active or now_seconds < self._due_seconds:
            return
        self._due_seconds = now_seconds + _EVERY_SECONDS
        self._errors.write(f"{_CLEAR}{counted(done, 'conversation')}{self._part()} …")
        self._errors.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away, so that a message can be written in its place."""
        if self._shown:
            self._errors.write(_CLEAR)
            self._errors.flush()
            self._shown = False


def _size_bytes(file: BinaryIO) -> int:
    """Give the size of a regular file; 0 for a pipe and anything else."""
    try:
        found = os.fstat(file.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
