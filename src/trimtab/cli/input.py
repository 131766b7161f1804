"""From FILE arguments to conversations: which files, what kind of input, and one entry a conversation.

JSONL is read line by line and never held whole. What cannot be read becomes an entry with an
error, so that the lines after it are still answered.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import click

from trimtab._shared.files import BYTE_ORDER_MARK, CODECS, LINE_SUFFIXES, PARQUET_SUFFIXES, visible_paths
from trimtab._shared.strict_json import BrokenJSONError, parse
from trimtab.errors import FormatError
from trimtab.formats import detect, refuse_foreign
from trimtab.report.text import plain

if TYPE_CHECKING:
    from trimtab.formats.recordings import ForeignConversation

InputKind = Literal["auto", "json", "jsonl", "messages-jsonl"]
INPUT_KINDS: tuple[InputKind, ...] = ("auto", "json", "jsonl", "messages-jsonl")

_SUFFIXES = (".json", *LINE_SUFFIXES)
"""What files of a folder are called that hold conversations."""
_OF_BATCHES = (*PARQUET_SUFFIXES, *CODECS)
_NO_JSON = (".csv", ".tsv", ".xlsx", ".html", ".htm", ".xml", ".toml", ".yaml", ".yml", ".md", ".pdf")
"""What files are called that hold something else."""
_HEAD_LINES = 2
"""Lines looked at to tell JSON from JSONL; neither is decided by the first alone."""
STANDARD_INPUT = "-"


# The FILE arguments of a command: names, patterns, or standard input.


class Files(NamedTuple):
    """The files of the input."""

    paths: list[str]
    many: bool
    """Whether there may be more than one, so that each answer says which file it is of."""


def files_of(names: Sequence[str]) -> Files:
    """List the files of the input; a pattern is looked up where no file has its name, a folder gone through.

    Shells expand patterns themselves, unless they are quoted or are too many names for one command. A pattern
    or a folder stands for many files also where it finds one: what reads the answers need not know how many
    there are.
    """
    if not names:
        standard_input()
        return Files([STANDARD_INPUT], many=False)
    many = len(names) > 1 or _is_pattern(names[0]) or Path(names[0]).is_dir()
    return Files([path for name in names for path in _paths(name)], many)


def _is_pattern(name: str) -> bool:
    return glob.has_magic(name) and not os.path.lexists(name)


def _paths(name: str) -> list[str]:
    if name == STANDARD_INPUT:
        return [name]
    if _is_pattern(name):
        found = sorted(filter(os.path.isfile, glob.glob(name, recursive=True)))
        if not found:
            raise click.UsageError(f"no file is called {name!r}")
    elif os.path.isdir(name):
        return _files_in(name)
    elif not os.path.exists(name):
        raise click.UsageError(f"{name!r}: No such file or directory")
    elif not os.access(name, os.R_OK):
        raise click.UsageError(f"{name!r}: Permission denied")
    else:
        found = [name]
    for path in found:
        if PurePath(path).suffix.lower() in _NO_JSON:
            raise click.UsageError(
                f"{path!r}: conversations are read from JSON and JSONL: write"
                ' {"messages": [{"role": "user", "content": "..."}, ...]}, one per file or one per line'
            )
        if PurePath(path).suffix.lower() in _OF_BATCHES:
            raise click.UsageError(f"{path!r}: Parquet and packed lines are read by `trimtab batch`")
    return found


def _files_in(folder: str) -> list[str]:
    """List the files of conversations in a folder and those below it; hidden ones are passed over."""
    found = [
        str(path)
        for path in visible_paths(Path(folder))
        if path.suffix.lower() in _SUFFIXES and path.is_file()
    ]
    if not found:
        known = ", ".join(_SUFFIXES)
        raise click.UsageError(f"{folder!r}: the folder has no file that ends in one of {known}")
    return found


@contextmanager
def open_input(path: str) -> Generator[BinaryIO]:
    """Open a file of the input; standard input stays open."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise click.UsageError(f"{path!r}: {error.strerror or error}") from None


def standard_input() -> BinaryIO:
    """Return standard input, unless somebody would have to type it."""
    if sys.stdin.isatty():
        raise click.UsageError("pass a FILE, or pipe one into standard input ('-' reads from the terminal)")
    return sys.stdin.buffer


# Conversations, one by one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One conversation of the input, or why it cannot be read."""

    line: int | None = None
    """Its line in JSONL, from 1; None if the input is this conversation."""
    value: Any = None
    """A list of messages, a mapping that holds one, or (if asked for) one with parts of a request."""
    error: FormatError | None = None
    foreign: ForeignConversation | None = None
    """What else another program wrote of it; the value is its body."""

    @property
    def name(self) -> str:
        """What tells it from others of the same recording; "" where there is no other."""
        return "" if self.foreign is None else self.foreign.name

    def notes_at(self, label: str) -> str:
        """Say what of a recording is not in the conversation, a line each; "" where all of it is."""
        return "" if self.foreign is None else notes_text(label, self.foreign.notes)


def notes_text(label: str, notes: Iterable[str]) -> str:
    """Say what of a recording or a data set was not read, a line each."""
    return "\n".join(f"trimtab: {plain(label)}: {plain(note)}" for note in notes)


class _Line(NamedTuple):
    """One line of the input that is not blank, and where it stands, from 1."""

    number: int
    raw: bytes


class Piece(NamedTuple):
    """One conversation of the input, or one recording with several: bytes that nobody has read yet."""

    raw: bytes = b""
    line: int | None = None
    """Its line in JSONL, from 1; None if the input is this conversation."""
    messages: tuple[_Line, ...] | None = None
    """A message each, or an event, where the lines of the input are one conversation or recording."""
    refused: str = ""
    """Why it is none, where that shows before it is read."""


def entries(
    file: BinaryIO, *, kind: InputKind = "auto", name: str = "", parts: bool = False
) -> Iterator[Entry]:
    """Read conversations one by one; see `pieces` and `read_piece`."""
    return (entry for piece in pieces(file, kind=kind, name=name) for entry in read_piece(piece, parts=parts))


def pieces(file: BinaryIO, *, kind: InputKind = "auto", name: str = "") -> Iterator[Piece]:
    """Take conversations from a file one by one; with kind "jsonl" no line waits for the one after it.

    Lines that another program wrote of one session are one piece.

    Args:
        file: The bytes; read once, forward.
        kind: What they are; "auto" goes by the suffix of `name`, then by the first two lines.
        name: Name of the file, if it has one.
    """
    from trimtab.formats.recordings import reader_of  # not above: commands that read no input need no reader

    raw, head = _head(file) if kind == "auto" else (b"", [])
    if kind == "auto":
        kind = "jsonl" if PurePath(name).suffix.lower() in LINE_SUFFIXES else _kind_of(head)
    if kind == "json":
        yield Piece((raw + file.read()).removeprefix(BYTE_ORDER_MARK))
        return
    lines = chain(head, _number_lines(file, raw.count(b"\n") + 1))
    values = [_value(line) for line in head]
    recorder = reader_of(values)
    if kind == "messages-jsonl" or (recorder is not None and recorder.by_line):
        yield Piece(messages=tuple(lines))
    elif len(head) == _HEAD_LINES and all(map(_is_message, values)):
        yield Piece(refused=_single_message("the lines look like single messages", values))
    else:
        yield from (Piece(line.raw, line.number) for line in lines)


def read_piece(piece: Piece, *, parts: bool = False) -> list[Entry]:
    """Read one conversation, or all of a recording.

    Args:
        piece: What the input has of it.
        parts: Any mapping will do that is no message: the caller knows what its keys are.
    """
    from trimtab.formats.recordings import read_foreign  # not above: as `pieces` says
    from trimtab.formats.recordings.refusals import said_of_bytes

    if piece.refused:
        return [Entry(error=FormatError(piece.refused))]
    try:
        if piece.messages is None:
            if (said := said_of_bytes(piece.raw)) is not None:
                raise FormatError(said)
            value = parse(piece.raw, whole=piece.line is None)
        else:
            value = _lines_of(piece.messages)
        found = read_foreign(value)
        if found is not None:
            return [Entry(line=piece.line, value=one.body, foreign=one) for one in found]
        if piece.messages is None:
            value = _conversation(value, parts=parts)
        else:
            _check_messages(piece.messages, value)
        return [Entry(line=piece.line, value=value)]
    except FormatError as error:
        return [Entry(line=piece.line, error=error)]


def _head(file: BinaryIO) -> tuple[bytes, list[_Line]]:
    """Read until two lines have something in them; give all bytes, and these lines."""
    raw, lines = b"", list[_Line]()
    while len(lines) < _HEAD_LINES and (one := file.readline()):
        lines += _number_lines([one], raw.count(b"\n") + 1)
        raw += one
    return raw, lines


def _number_lines(lines: Iterable[bytes], start: int) -> Iterator[_Line]:
    """Number lines and leave out blank ones; the first may begin with a byte order mark."""
    for number, line in enumerate(lines, start):
        # Without its end, so that the column of a line that is cut off is a column of this line.
        raw = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).rstrip(b"\r\n")
        if raw.strip():
            yield _Line(number, raw)


def _kind_of(head: list[_Line]) -> InputKind:
    """Tell JSON from JSONL: in JSONL a line is complete, in a document the first is not.

    A first line that is broken, not cut off, is a bad line of JSONL if the second one is whole.
    """
    if len(head) < _HEAD_LINES:
        return "json"
    try:
        parse(head[0].raw)
    except BrokenJSONError as error:
        if error.cut_off or not isinstance(_value(head[1]), list | dict):
            return "json"
    return "jsonl"


def _value(line: _Line) -> Any:
    try:
        return parse(line.raw)
    except BrokenJSONError:
        return None


def _is_body(value: object) -> bool:
    """Tell whether it looks like a request body; the `input` of a tool call does not make one."""
    if not isinstance(value, Mapping) or "role" in value:
        return False
    return "messages" in value or "contents" in value or ("input" in value and "type" not in value)


def _is_conversation(value: object) -> bool:
    return isinstance(value, list) or _is_body(value)


def _is_message(value: object) -> bool:
    """Tell whether it looks like one message, not like a conversation."""
    return isinstance(value, Mapping) and not _is_body(value) and ("role" in value or "type" in value)


def _conversation(value: Any, *, parts: bool = False) -> Any:
    """Insist on a conversation."""
    value = _unpack(value)
    if isinstance(value, list) and value and all(map(_is_conversation, value)):
        raise FormatError(
            "a list of conversations, not of messages: write one per line and use --input jsonl"
        )
    if isinstance(value, Mapping) and _is_message(value):
        raise FormatError(_single_message("a single message, not a list of them", [value]))
    if not _is_conversation(value) and not (parts and isinstance(value, Mapping)):
        what = f"a mapping with {_keys(value)}" if isinstance(value, Mapping) else f"{value!r:.40}"
        raise FormatError(
            "a conversation must be a list of messages, or a mapping with 'messages', 'input' or"
            f" 'contents', not {what}"
        )
    return value


_ANSWER_KEYS = frozenset({"file", "line", "report", "changes", "violations"})
"""What our commands write beside a conversation."""


def _unpack(value: Any) -> Any:
    """Take the conversation out of what `fit` or `repair` wrote: commands can be piped into each other."""
    if not isinstance(value, Mapping):
        return value
    beside = _ANSWER_KEYS.intersection(value)
    if isinstance(value.get("error"), Mapping) and len(value) == 1 + len(beside):
        raise FormatError(f"refused earlier: {value['error'].get('message', value['error'])}")
    if len(value) != 1 + len(beside):
        return value
    if not beside.isdisjoint(("report", "changes")):
        return value.get("messages", value.get("request", value))
    return value["request"] if _is_body(value.get("request")) else value


def _keys(value: Mapping[str, Any]) -> str:
    names = ", ".join(map(repr, list(value)[:4])) + (", …" if len(value) > 4 else "")
    return names or "no keys"


def _single_message(what: str, values: list[Mapping[str, Any]]) -> str:
    """Say that messages were given one by one, and how lines of messages are read, if these are such."""
    from trimtab.formats.recordings import reader_of  # not above: as `pieces` says

    if reader_of(values) is None:
        try:
            refuse_foreign(values, detect(values).name)
        except FormatError as error:
            return f"{what}: {error}"
    return f"{what}; if all lines together are one conversation, a message a line, use --input messages-jsonl"


def _lines_of(lines: Iterable[_Line]) -> list[Any]:
    """Parse lines; the first bad one ends it."""
    values = list[Any]()
    for number, raw in lines:
        try:
            values.append(parse(raw))
        except BrokenJSONError as error:
            raise FormatError(f"line {number}: {error}") from None
    return values


def _check_messages(lines: Iterable[_Line], values: Iterable[Any]) -> None:
    """Insist on a message a line."""
    for line, value in zip(lines, values, strict=True):
        if not isinstance(value, Mapping) or _is_body(value):
            what = "a whole conversation (use --input jsonl)" if _is_conversation(value) else f"{value!r:.40}"
            raise FormatError(f"line {line.number}: a message must be a mapping, not {what}")
