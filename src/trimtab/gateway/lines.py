"""The log of a gateway, written in a thread of its own: whoever reads it slowly stops no request."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, BinaryIO, Self

from trimtab._shared.strict_json import dump

MOST_LINES = 10_000
"""Lines that wait to be written; more are dropped, and the next line that is written says how many."""

PAUSE_SECONDS = 0.05
"""How long the thread rests behind a line: those that come meanwhile wake it once. A wake for each line took
0.3 ms of processors of a request's 8 (2026-11-29, two busy cores).
"""

END_SECONDS = 2.0
"""How long lines that wait have at the end of the process."""


class LineWriter:
    """Writes lines of JSON to a file, in the background.

    Args:
        file: Where they go, such as standard output.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: queue.Queue[Mapping[str, Any] | None] = queue.Queue(MOST_LINES)
        self._dropped = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write, name="trimtab-log", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what waits, for so long."""
        self._ends.set()
        try:
            self._lines.put(None, timeout=END_SECONDS)
        except queue.Full:
            return
        self._thread.join(END_SECONDS)

    def write(self, line: Mapping[str, Any], /) -> None:
        """Take a line; never waits."""
        dropped = self._dropped
        try:
            self._lines.put_nowait({**line, "dropped_lines": dropped} if dropped else line)
        except queue.Full:
            self._dropped += 1
        else:
            self._dropped = 0

    def _write(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                self._file.write(dump(line))
                if self._lines.empty():
                    self._file.flush()
                    self._ends.wait(PAUSE_SECONDS)
        except OSError:  # nobody reads any more
            return
