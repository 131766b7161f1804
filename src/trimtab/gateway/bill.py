"""What an answer says was billed, read while it passes: each part was sent on before it is looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trimtab.counting.usage import billed_parts
from trimtab.errors import ConfigurationError
from trimtab.gateway.encodings import AnswerReader
from trimtab.integrations.usages import metadata_in, usage_in, usage_with
from trimtab.models.dollars import BilledParts, dollars_of

MOST_LINE_BYTES = 8 * 2**20
"""Of a line of a stream that is read; the last event of Responses holds the whole answer."""
MOST_BODY_BYTES = 16 * 2**20
"""Of an answer that is not streamed and is read."""

_SAYS = re.compile(rb'"usage(?:Metadata)?"\s*:\s*\{')


class BillReader:
    """Takes the parts of an answer, and knows at its end what was billed.

    Args:
        kind: The header Content-Type.
        encoding: The header Content-Encoding.
    """

    def __init__(self, kind: str, encoding: str, /) -> None:
        self._streams = kind.lower().startswith("text/event-stream")
        self._text = AnswerReader(encoding)
        self._parts: list[bytes] = []
        """Of a line, or of a whole answer, whose end is still to come."""
        self._size = 0
        self._billed: Mapping[str, Any] | None = None

    def take(self, part: bytes, /) -> None:
        """Look at a part."""
        text = self._text.read(part)
        if not self._streams:
            self._keep(text, MOST_BODY_BYTES)
            return
        lines, end, rest = text.rpartition(b"\n")
        if end:
            self._read_lines(b"".join((*self._parts, lines)))
            self._parts, self._size = [], 0
        self._keep(rest, MOST_LINE_BYTES)

    def _keep(self, text: bytes, most: int) -> None:
        self._size += len(text)
        if text and self._size <= most:
            self._parts.append(text)
        elif text:
            self._parts = []  # too long: what is kept would not be JSON

    def _read_lines(self, lines: bytes) -> None:
        if _SAYS.search(lines) is None:
            return
        for line in lines.splitlines():
            if line.startswith(b"data:") and _SAYS.search(line) is not None:
                self._add(_json(line[5:]))

    def _add(self, said: Any) -> None:
        for one in said if isinstance(said, list) else [said]:
            if isinstance(one, dict):
                self._billed = usage_with(self._billed, metadata_in(one) or usage_in(one))

    def read(self) -> Mapping[str, Any] | None:
        """Return what was billed; None where the answer did not say."""
        rest = b"".join(self._parts)
        if self._streams:
            self._read_lines(rest)
        elif _SAYS.search(rest) is not None:
            self._add(_json(rest))
        self._parts = []
        return self._billed


def charge_in(
    usage: Mapping[str, Any] | None, model: str | None, /
) -> tuple[BilledParts | None, float | None]:
    """Return what was billed by price, and the dollars that this is; None where nobody knows.

    Args:
        usage: What an answer said was billed; None: nothing.
        model: Who was asked.
    """
    if usage is None:
        return None, None
    try:
        parts = billed_parts(usage)
    except ConfigurationError:  # it is in no shape that is known
        return None, None
    return parts, None if model is None else dollars_of(parts, model)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # whoever asked reads what it is
        return None
