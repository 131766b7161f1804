"""From answers to bytes: JSON or text on standard output, messages on standard error, the exit code."""

from __future__ import annotations

import functools
import inspect
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, NoReturn, ParamSpec

import click

from trimtab._shared.checks import error_name
from trimtab._shared.strict_json import dump
from trimtab.cli.input import (
    STANDARD_INPUT,
    Entry,
    Files,
    InputKind,
    Piece,
    files_of,
    open_input,
    pieces,
    read_piece,
)
from trimtab.cli.lengths import Lengths
from trimtab.cli.options import input_options, jobs_option, page_options, with_sources
from trimtab.errors import (
    BudgetExceededError,
    ConfigurationError,
    ContextError,
    FormatError,
    Hint,
    MissingExtraError,
    Phrase,
)
from trimtab.report.rows import RowsOf
from trimtab.report.text import plain, plural

P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says of one conversation; each form of it is made by who writes it."""

    ok: bool = True
    """Whether it fits, is valid, was counted."""
    tokens: Callable[[], int] = int
    """Counts it, for the summary of many; 0 where nothing was counted."""
    data: Callable[[], dict[str, Any]]
    """Says it for programs."""
    result: Any = None
    """What was made of the conversation, ready to send, and nothing beside it."""
    text: Callable[[int, bool], str]
    """Says it for people, where it is the only one: in so many columns, with colours or without."""
    row: Callable[[], str]
    """Says it for people in one line (or a few), where it is one of many."""
    html: Callable[[str], str] = str
    """Says it for people as a page, which names where it came from; of a command that writes pages."""
    failed: bool = False
    """There is no answer, but what went wrong."""


class Place(NamedTuple):
    """Where a conversation stands in the input."""

    file: str | None = None
    """None: the input is one file, named as such."""
    line: int | None = None
    """None: the file is this conversation."""
    source: str = ""
    """What the file is called, also where there is one only."""
    conversation: str = ""
    """What tells it from others of the same recording; "" where there is no other."""

    @property
    def is_only(self) -> bool:
        """Whether there are no others."""
        return self.file is None and self.line is None and not self.conversation

    @property
    def data(self) -> dict[str, Any]:
        """What an answer for programs begins with."""
        told = {"file": self.file, "line": self.line, "conversation": self.conversation or None}
        return {key: value for key, value in told.items() if value is not None}

    def label(self, file: str = "") -> str:
        """Name it for people; `file` where the input is one."""
        line = () if self.line is None else (f"line {self.line}",)
        return ", ".join(filter(None, (self.file or file, *line, self.conversation)))


Render = Callable[[Answer, Place], bytes]
"""Writes an answer."""


class Refused(click.ClickException):
    """Wrong usage: nothing was answered, exit 2."""

    exit_code = 2


def usage(command: Callable[P, None]) -> Callable[P, None]:
    """Make errors of ours that no conversation caused a message and exit 2."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ContextError as error:
            raise Refused(in_options(error)) from error

    return run


def _no_answer(error: ContextError, *, with_report: bool, rows: RowsOf) -> Answer:
    """Say what went wrong with one conversation, in the place of an answer.

    For programs the error with its numbers, and the report of the best attempt if there is one; for people
    the report alone, as the error is on standard error, with its line.
    """
    report = error.report if with_report and isinstance(error, BudgetExceededError) else None

    def data() -> dict[str, Any]:
        told = {key: value for key, value in vars(error).items() if type(value) in (int, str) and value != ""}
        heaviest = getattr(error, "heaviest", None)
        told |= {} if heaviest is None else {"heaviest": asdict(heaviest)}
        found = {"error": {"type": error_name(error), "message": in_options(error), **told}}
        return found if report is None else {**found, "report": report.to_dict(rows=rows)}

    return Answer(
        ok=False,
        data=data,
        text=lambda width, colour: "" if report is None else report.to_text(width=width, colour=colour),
        html=lambda source: "" if report is None else report.to_html(source=source),
        row=str,
        failed=True,
    )


class Asked(NamedTuple):
    """One conversation of the input, and where it stands; plain data for another process."""

    place: Place
    piece: Piece


class Reply(NamedTuple):
    """What is written of one conversation; plain data from another process."""

    written: bytes = b""
    """On standard output."""
    ok: bool = False
    tokens: int = 0
    said: str = ""
    """On standard error."""
    refused: str = ""
    """How trimtab was called is wrong, and this ends all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How replies are made of answers."""

    output: str
    full: bool
    """In text more than a row for each of many."""
    bare: bool
    """What was made of each, and nothing beside it."""
    parts: bool
    """An entry may be a mapping with parts of a request."""
    with_tokens: bool
    """Whether somebody reads how many tokens there are."""
    with_report: bool
    """Whether what does not fit has the report of the nearest attempt."""
    rows: RowsOf
    """What a row of that is of."""

    @property
    def render(self) -> Render:
        """What writes an answer."""
        if self.bare:
            return _as_result
        return _AS[self.output] if self.output != "text" else _as_report if self.full else _as_text


def on_conversations(
    *, passing: str, failing: str, pages: bool = False, lengths: bool = False
) -> Callable[[Callable[..., Callable[[Any], Answer]]], Callable[..., None]]:
    """Make a command of a function of options that gives a function of one conversation.

    The command has the input options, and those named `full`, `bare` and `without_report` mean the same in
    all that have them: in text more than a row for each of many; what was made of each, and nothing beside
    it; no report. With a `policy` an entry may be a mapping with parts of a request. A summary says "all 3
    conversations in 2 files *passing*", or "1 of 3 conversations *failing*". With `pages` it writes pages
    for people, too; with `lengths` the summary says how long many conversations are.
    """

    def make(command: Callable[..., Callable[[Any], Answer]]) -> Callable[..., None]:
        @(page_options if pages else input_options)
        @jobs_option
        @usage
        @functools.wraps(command)
        def run(files: Sequence[str], kind: InputKind, output: str, jobs: int, **given: Any) -> None:
            given = with_sources(given)
            answer = command(**given)  # what is wrong with the options is refused at once
            bare, without_report = bool(given.get("bare")), bool(given.get("without_report"))
            if (bare or without_report) and output != "json":
                raise Refused(f"messages alone are always JSON: leave out --output {output}")
            found = files_of(files)
            form = Form(
                output=output,
                full=bool(given.get("full")),
                bare=bare,
                parts=given.get("policy") is not None,
                with_tokens=found.many or lengths,
                with_report=not without_report,
                rows=given.get("rows", "runs"),
            )
            progress = Progress(len(found.paths))
            asked = read_all(found, progress, functools.partial(pieces, kind=kind))
            replies: Iterator[Reply] = chain.from_iterable(map(_replier(answer, form), asked))
            if jobs > 1:
                from trimtab.cli.jobs import share_out  # not above: one process needs no others

                named = (command.__module__, command.__name__)
                replies = share_out(jobs, _make, *named, given, form, work=asked, size=size_of)
            _write_all(replies, found, progress, verdicts=(passing, failing), lengths=lengths)

        return run

    return make


def _write_all(
    replies: Iterator[Reply], files: Files, progress: Progress, *, verdicts: tuple[str, str], lengths: bool
) -> NoReturn:
    """Write every reply in its order, and exit 0 or 1.

    Ends early where nobody reads on.

    Raises:
        Refused: The only conversation was refused for how trimtab was called.
    """
    done, failed, is_read = 0, 0, True
    tokens = Lengths()
    for reply in replies:
        if reply.refused:
            raise Refused(reply.refused)
        done += 1
        if reply.ok or reply.tokens:
            tokens.add(reply.tokens)
        if not reply.ok:
            failed += 1
            progress.clear()
        if reply.said:
            click.echo(reply.said, err=True)
        is_read = put(reply.written)
        if not is_read:
            break
        progress.step(done)
    progress.clear()
    asks = lengths and len(tokens) > 1 and is_read
    if (failed and done > 1) or files.many or asks:
        said = _summary(done, failed, tokens.total, files, verdicts)
        click.echo(f"trimtab: {said}{f', {tokens.sentence()}' if asks else ''}", err=True)
    sys.exit(1 if failed else 0)


def read_all(files: Files, progress: Progress, pieces_of: Callable[..., Iterator[Piece]]) -> Iterator[Asked]:
    """Take the conversations from all files, each with its place and the name of its file."""
    for path in files.paths:
        is_stdin = path == STANDARD_INPUT
        label = "standard input" if is_stdin else path
        with open_input(path) as file:
            progress.begin(file)
            for piece in pieces_of(file, name="" if is_stdin else path):
                yield Asked(Place(label if files.many else None, piece.line, label), piece)


def _summary(done: int, failed: int, tokens: int, files: Files, verdicts: tuple[str, str]) -> str:
    listed = plural(done, "conversation")
    listed += f" in {plural(len(files.paths), 'file')}" if files.many else ""
    total = f"; {plural(tokens, 'token')} in all" if tokens else ""
    passing, failing = verdicts
    return (f"{failed:,} of {listed} {failing}" if failed else f"all {listed} {passing}") + total


def put(written: bytes) -> bool:
    """Write on standard output; False where nobody reads on."""
    out = sys.stdout.buffer
    try:
        out.write(written)
        out.flush()
    except BrokenPipeError:
        leave_pipe()
        return False
    return True


def leave_pipe() -> None:
    """Write into nothing from now on: who read our output has enough (`| head`), and that is no fault."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replier(answer: Callable[[Any], Answer], form: Form, /) -> Callable[[Asked], list[Reply]]:
    """Make what answers conversations and writes the answers; among many an error is its answer."""
    render = form.render

    def replies(asked: Asked) -> list[Reply]:
        return [reply(asked.place, entry) for entry in read_piece(asked.piece, parts=form.parts)]

    def reply(place: Place, entry: Entry) -> Reply:
        place = place._replace(conversation=entry.name)
        try:
            if entry.error is not None:
                raise entry.error
            found = answer(entry.value)
            said = entry.notes_at(place.label(place.source))
            return Reply(render(found, place), found.ok, found.tokens() if form.with_tokens else 0, said)
        except Refused as error:
            return Reply(refused=error.message)
        except (ContextError, RecursionError) as error:
            if isinstance(error, MissingExtraError) or (
                isinstance(error, ConfigurationError) and place.is_only
            ):
                return Reply(refused=in_options(error))
            why = as_ours(error)
        failed = _no_answer(why, with_report=form.with_report, rows=form.rows)
        said = f"trimtab: {plain(place.label(place.source))}: {plain(in_options(why))}"
        return Reply(render(failed, place), said=said)

    return replies


def _make(
    module: str, name: str, given: Mapping[str, Any], form: Form
) -> Callable[[list[Asked]], list[Reply]]:
    """Make in another process what a command makes of its options, for many conversations at once."""
    command: Any = inspect.unwrap(vars(import_module(module))[name].callback)
    replies = _replier(command(**given), form)
    return lambda share: [reply for asked in share for reply in replies(asked)]


def size_of(asked: Asked) -> int:
    """Give the bytes of a piece of the input."""
    return len(asked.piece.raw) + sum(len(line.raw) for line in asked.piece.messages or ())


def _as_json(found: Answer, place: Place) -> bytes:
    return json_text({**place.data, **found.data()}, indent=place.is_only)


def _as_result(found: Answer, place: Place) -> bytes:
    return b"" if found.failed else json_text(found.result, indent=place.is_only)


def _as_text(found: Answer, place: Place) -> bytes:
    if place.is_only:
        return _as_report(found, place)
    row = found.row()
    return encode(f"{plain(place.label())}: {row}\n" if row else "")


def _as_report(found: Answer, place: Place) -> bytes:
    text = found.text(shutil.get_terminal_size().columns, wants_colour())
    shown = f"{text}\n" if place.is_only else f"{plain(place.label())}\n{text}\n\n"
    return encode(shown if text else "")


def _as_page(found: Answer, place: Place) -> bytes:
    if not place.is_only:
        raise Refused("--output html writes a page for one conversation: pass one, or use --output text")
    return found.html(place.source).encode()


_AS: dict[str, Render] = {"json": _as_json, "html": _as_page}
"""How an answer is written where there is one way only."""


def wants_colour() -> bool:
    """Colour for a terminal that can show it, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def json_text(data: Any, *, indent: bool = True) -> bytes:
    """Write JSON for standard output; on a terminal indented, and so that nothing of it can steer that.

    Args:
        data: Plain data.
        indent: Whether a terminal is shown it on several lines.
    """
    if not sys.stdout.isatty():
        return dump(data)
    text = dump(data, indent=2 if indent else None).decode()
    shown = (char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return encode("".join(shown))


def encode(text: str) -> bytes:
    """Encode text, escaping what the encoding of the terminal does not have."""
    return text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")


# What an error of the library says, in words of the command line: `--strict` for `strict=True`.


_HINTS = {
    "event": "`trimtab session history --kinds all --ids` shows the ids",
    "facts": "a row in the file that TRIMTAB_MODELS names",
    "in names": " that a program gives",
    "margin_tokens": "",
    "mend": "`trimtab repair`",
    "names": "declared are",
    "over_limit": "say so in the file that TRIMTAB_MODELS names",
    "path": "",
    "purpose": "--for training",
    "room": "--budget N",
    "snapshot": "as `trimtab session export` writes it",
}
"""What an error suggests that is no option of the same name."""


def in_options(error: Exception) -> str:
    """Return the text of an error for somebody at a shell; its words stay, its hints are options."""
    text = error.args[0] if isinstance(error, ContextError) and error.args else str(error)
    if not isinstance(text, Phrase):
        return str(error)
    return "".join(part if isinstance(part, str) else _option_of(part) for part in text.parts)


def as_ours(error: ContextError | RecursionError) -> ContextError:
    """Return what went wrong with one conversation as an error of ours: Python's own means deep nesting."""
    return error if isinstance(error, ContextError) else FormatError("nested too deep")


def _option_of(hint: Hint) -> str:
    if hint.name in _HINTS:
        return _HINTS[hint.name]
    value = f" {hint.value}" if hint.value else ""
    return f"--{hint.name.replace('_', '-')}{value}"


# How far a long input is, for people who wait at a terminal.


_FIRST_SECONDS = 1.0
"""Work that is done sooner shows nothing."""
_EVERY_SECONDS = 0.2
_CLEAR = "\r\x1b[K"


class Progress:
    """A line on standard error that is rewritten; silent where nobody would see it.

    It needs a terminal, and is not shown where the results themselves scroll by.

    Args:
        files: How many files there are.
        noun: What is counted.
        into_files: Results go into files, and nothing scrolls by.
        part: Says what else there is to say.
    """

    def __init__(
        self,
        files: int,
        *,
        noun: str = "conversation",
        into_files: bool = False,
        part: Callable[[], str] = str,
    ) -> None:
        self._files = files
        self._noun = noun
        self._begun = 0
        self._active = sys.stderr.isatty() and (into_files or not sys.stdout.isatty())
        self._due_seconds = time.monotonic() + _FIRST_SECONDS
        self._part = part
        self._shown = False

    def begin(self, file: BinaryIO) -> None:
        """Go on with the next file."""
        self._begun += 1
        if self._files > 1:
            self._part = lambda: f", file {self._begun:,} of {self._files:,}"
        elif self._active and (total_bytes := _size_bytes(file)):
            self._part = lambda: f", {file.tell() / total_bytes:.0%}"

    def step(self, done: int) -> None:
        """Say how many are done, if it is time to."""
        now_seconds = time.monotonic() if self._active else 0.0
        if self._active and now_seconds >= self._due_seconds:
            self._due_seconds = now_seconds + _EVERY_SECONDS
            self._write(f"{_CLEAR}{plural(done, self._noun)}{self._part()} …", shown=True)

    def clear(self) -> None:
        """Take the line away, so that a message can be written in its place."""
        if self._shown:
            self._write(_CLEAR, shown=False)

    def _write(self, text: str, *, shown: bool) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
        self._shown = shown


def _size_bytes(file: BinaryIO) -> int:
    """Give the size of a regular file; 0 for a pipe and anything else."""
    try:
        found = os.fstat(file.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
