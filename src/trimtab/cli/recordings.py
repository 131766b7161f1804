"""From FILE arguments to recordings with bills: of programs that have a reader, and requests beside usage.

Nothing of it is read before a process has it, but lines of batch files, whose requests and answers are two.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from trimtab._shared.files import BYTE_ORDER_MARK
from trimtab._shared.strict_json import BrokenJSONError, dump, parse
from trimtab.cli.input import STANDARD_INPUT, Files, InputKind, open_input, pieces
from trimtab.cli.output import Place, Progress
from trimtab.counting.bills import billed_request
from trimtab.errors import FormatError
from trimtab.formats import detect, get_format
from trimtab.formats.recordings import Bill, ForeignConversation, reader_of
from trimtab.models import find_facts

_HEAD_LINES = 2
"""Lines by which the program is told that wrote a file of them."""
_BATCH_MARK = b'"custom_id"'
_READ_WHOLE = "messages-jsonl"


class Recording(NamedTuple):
    """A recording as it stands in the input, which nobody has read yet; plain data for another process."""

    place: Place
    lines: tuple[bytes, ...] = ()
    """One, or all of a file whose lines are one recording."""
    is_whole: bool = False
    """Whether the lines are one recording."""
    refused: str = ""
    """Why it is none, where that shows before it is read."""


def recordings(files: Files, kind: InputKind, progress: Progress) -> Iterator[Recording]:
    """Take the recordings from all files; the requests and answers of batch files are put together."""
    batch = _Batch()
    for path in files.paths:
        is_stdin = path == STANDARD_INPUT
        label = "standard input" if is_stdin else path
        with open_input(path) as opened:
            progress.begin(opened)
            file = opened if opened.seekable() else io.BytesIO(opened.read())
            for number, lines, is_whole in _lines(file, kind, "" if is_stdin else path):
                place = Place(label if files.many else None, number, label)
                yield from batch.take(Recording(place, lines, is_whole))
    yield from batch.rest()


def _lines(file: BinaryIO, kind: InputKind, name: str) -> Iterator[tuple[int | None, tuple[bytes, ...], bool]]:
    """Give a number and the lines of each recording, and whether they are one."""
    start = file.tell()
    filled = (raw for line in file if (raw := line.removeprefix(BYTE_ORDER_MARK).strip()))
    head = [_value(raw) for raw in islice(filled, _HEAD_LINES)]
    reader = reader_of(head)
    file.seek(start)
    if kind == _READ_WHOLE or (reader is not None and reader.by_line):
        yield None, tuple(file.read().removeprefix(BYTE_ORDER_MARK).splitlines()), True
        return
    for piece in pieces(file, kind=kind, name=name):
        yield piece.line, (piece.raw,), False


def _value(raw: bytes) -> Any:
    try:
        return parse(raw)
    except BrokenJSONError:
        return None


def conversations_in(recording: Recording, *, format: str, model: str | None) -> list[ForeignConversation]:
    """Read the conversations of a recording, with their bills; those of none are read, too.

    Args:
        recording: The recording.
        format: Name of the wire form of requests; "auto" goes by their shapes.
        model: Whom requests are for; None: whom they name.

    Raises:
        FormatError: It cannot be read.
    """
    if recording.refused:
        raise FormatError(recording.refused)
    if recording.is_whole:
        value: Any = [_parsed(raw, number) for number, raw in enumerate(recording.lines, 1) if raw.strip()]
    else:
        value = parse(recording.lines[0], whole=recording.place.line is None)
    reader = reader_of(value)
    if reader is not None:
        return reader.read(value)
    rows = value if isinstance(value, list) and value else [value]
    found = [_of_request(row, format, model) for row in rows]
    return [one for one in found if one is not None]


def _parsed(raw: bytes, number: int) -> Any:
    try:
        return parse(raw)
    except BrokenJSONError as error:
        raise FormatError(f"line {number}: {error}") from error


def _of_request(row: Any, format: str, model: str | None) -> ForeignConversation | None:
    billed = billed_request(row)
    if billed is None:
        return None
    named = next((one for one in billed.models if find_facts(one) is not None), None)
    told = named or next(iter(billed.models), None)
    known = model or named
    form = detect(billed.body, model=known) if format == "auto" else get_format(format)
    length = len(form.for_model(known).read_request(billed.body).messages)
    return ForeignConversation(
        program="",
        format=form.name,
        body=billed.body,
        bills=(Bill(at=length, usage=billed.usage, model=told),),
    )


class _Batch:
    """Requests of batch files (`{"custom_id", "body"}`) that wait for their answers, and the other way."""

    def __init__(self) -> None:
        self._requests: dict[str, tuple[Recording, Any]] = {}
        self._answers: dict[str, tuple[Recording, Any]] = {}

    def take(self, recording: Recording) -> Iterator[Recording]:
        """Give a recording back, a request with its answer; nothing while the other is to come."""
        line = recording.lines[0] if len(recording.lines) == 1 else b""
        value = _value(line) if _BATCH_MARK in line else None
        name = value.get("custom_id") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(name, str) or "request" in value:
            yield recording
            return
        request = value.get("body")
        own, other = (
            (self._requests, self._answers)
            if isinstance(request, Mapping)
            else (self._answers, self._requests)
        )
        if name in own:
            yield recording._replace(refused=f"two lines of batch files are called {name!r:.80}: give one pair")
        elif name in other:
            first, told = other.pop(name)
            asked, answer = (recording, told) if isinstance(request, Mapping) else (first, value)
            body = request if isinstance(request, Mapping) else told.get("body")
            yield asked._replace(lines=(dump({"request": body, "response": answer.get("response")}),))
        else:
            own[name] = (recording, value)

    def rest(self) -> Iterator[Recording]:
        """Give back what has no counterpart."""
        for name, (recording, _) in self._requests.items():
            yield recording._replace(refused=f"no line of a batch file answers {name!r:.80}")
        for name, (recording, _) in self._answers.items():
            yield recording._replace(refused=f"no line of a batch file asks {name!r:.80}")
