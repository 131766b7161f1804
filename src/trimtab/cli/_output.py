"""From answers to bytes: JSON or text on standard output, messages on standard error, the exit code."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NoReturn, ParamSpec, Protocol

import click

from trimtab.cli._input import Entry, InputKind, entries
from trimtab.cli._json import dump
from trimtab.cli._progress import Progress
from trimtab.errors import ConfigurationError, ContextError, FormatError, MissingExtraError
from trimtab.report._lines import plain

__all__ = [
    "Answer",
    "Refused",
    "answer_all",
    "encoded",
    "leave_pipe",
    "standard_input",
    "usage",
    "wants_colour",
]

P = ParamSpec("P")


class Answer(Protocol):
    """What a command says of one conversation."""

    @property
    def ok(self) -> bool:
        """Whether it fits, is valid, was counted."""
        ...

    def data(self) -> dict[str, Any]:
        """Say it for programs."""
        ...

    def text(self, *, width: int, colour: bool) -> str:
        """Say it for people, where it is the only one."""
        ...

    def row(self) -> str:
        """Say it for people in one line (or a few), where it is one of many."""
        ...


def _public_name(error: ContextError) -> str:
    """Name the class of the error tree that an error is of."""
    tree = ContextError.__module__
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == tree)


Render = Callable[[Answer, int | None], bytes]
"""Writes an answer; the line is None where it is the only one."""


class Refused(click.ClickException):
    """Wrong usage: nothing was answered, exit 2."""

    exit_code = 2


def usage(command: Callable[P, None]) -> Callable[P, None]:
    """Make errors of ours that no conversation caused a message and exit 2."""

    @functools.wraps(command)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ContextError as error:
            raise Refused(str(error)) from error

    return checked


class _Unanswered:
    """In the place of an answer: what went wrong with one conversation."""

    ok = False

    def __init__(self, error: ContextError) -> None:
        self.error = error
        self.report = getattr(error, "report", None)

    def data(self) -> dict[str, Any]:
        """Give the error with its numbers, and the report of the best attempt if there is one."""
        error = self.error
        told = {key: value for key, value in vars(error).items() if type(value) in (int, str) and value != ""}
        data: dict[str, Any] = {"error": {"type": _public_name(error), "message": str(error), **told}}
        return data if self.report is None else {**data, "report": self.report.to_dict()}

    def text(self, *, width: int, colour: bool) -> str:
        """Show the best attempt; the error itself is on standard error."""
        return "" if self.report is None else str(self.report.to_text(width=width, colour=colour))

    def row(self) -> str:
        """Say nothing: the error is on standard error, with its line."""
        return ""


def answer_all(
    answer: Callable[[Any], Answer],
    *,
    file: BinaryIO | None,
    kind: InputKind,
    output: str,
    failing: str,
    full: bool = False,
    parts: bool = False,
) -> NoReturn:
    """Answer every conversation of the input in its order, and exit 0 or 1.

    Ends early where nobody reads on.

    Args:
        answer: Answers one conversation.
        file: The input; None is standard input.
        kind: What the input is.
        output: "json" or "text".
        failing: What conversations do that make the exit code 1, as in "do not fit".
        full: In text, write more than a row for each of many.
        parts: An entry may be a mapping with parts of a request.

    Raises:
        Refused: The only conversation was refused for how trimtab was called.
    """
    source = standard_input() if file is None else file
    name = source.name if isinstance(getattr(source, "name", None), str) else ""
    label = "standard input" if name in ("", "-", "<stdin>") else name
    progress = Progress(source, errors=sys.stderr, results=sys.stdout)
    render = _as_json if output == "json" else _as_report if full else _as_text
    done = failed = 0
    for done, entry in enumerate(entries(source, kind=kind, name=name, parts=parts), 1):
        found, written = _answered(answer, entry, render)
        if not found.ok:
            failed += 1
            progress.clear()
        if isinstance(found, _Unanswered):
            where = label if entry.line is None else f"{label}, line {entry.line}"
            click.echo(f"trimtab: {plain(where)}: {plain(str(found.error))}", err=True)
        try:
            click.echo(written, nl=False)
        except BrokenPipeError:
            leave_pipe()
            break
        progress.step(done)
    progress.clear()
    if failed and done > 1:
        click.echo(f"trimtab: {failed:,} of {done:,} conversations {failing}", err=True)
    sys.exit(1 if failed else 0)


def leave_pipe() -> None:
    """Write into nothing from now on: who read our output has enough (`| head`), and that is no fault."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def standard_input() -> BinaryIO:
    if sys.stdin.isatty():
        raise click.UsageError("give a FILE, or pipe one into standard input ('-' reads what you type)")
    return sys.stdin.buffer


def _answered(answer: Callable[[Any], Answer], entry: Entry, render: Render) -> tuple[Answer, bytes]:
    """Answer one conversation and write the answer; among many an error is its answer."""
    try:
        if entry.error is not None:
            raise entry.error
        found = answer(entry.value)
        return found, render(found, entry.line)
    except MissingExtraError as error:
        raise Refused(str(error)) from error
    except ConfigurationError as error:
        if entry.line is None:
            raise Refused(str(error)) from error
        failed = _Unanswered(error)
    except ContextError as error:
        failed = _Unanswered(error)
    except RecursionError:
        failed = _Unanswered(FormatError("nested too deep"))
    return failed, render(failed, entry.line)


def _as_json(found: Answer, line: int | None) -> bytes:
    place: Mapping[str, Any] = {} if line is None else {"line": line}
    indent = 2 if line is None and sys.stdout.isatty() else None
    return dump({**place, **found.data()}, indent=indent)


def _as_text(found: Answer, line: int | None) -> bytes:
    if line is None:
        return _as_report(found, line)
    row = found.row()
    return encoded(f"line {line}: {row}\n" if row else "")


def _as_report(found: Answer, line: int | None) -> bytes:
    text = found.text(width=shutil.get_terminal_size().columns, colour=wants_colour())
    shown = f"{text}\n" if line is None else f"line {line}\n{text}\n\n"
    return encoded(shown if text else "")


def wants_colour() -> bool:
    """Colour for a terminal that can show it, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def encoded(text: str) -> bytes:
    """Encode text, escaping what the encoding of the terminal does not have."""
    return text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
