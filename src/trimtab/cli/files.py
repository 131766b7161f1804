"""The FILE arguments of a command: names, patterns, or standard input."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

__all__ = ["STANDARD_INPUT", "Files", "files_of", "opened", "standard_input"]

STANDARD_INPUT = "-"


class Files(NamedTuple):
    """The files of the input."""

    paths: list[str]
    many: bool
    """Whether there may be more than one, so that each answer says which file it is of."""


def files_of(names: Sequence[str]) -> Files:
    """List the files of the input; a pattern is looked up where no file has its name.

    Shells expand patterns themselves, unless they are quoted or are too many names for one command. A pattern
    stands for many files also where it finds one: what reads the answers need not know how many there are.

    Raises:
        click.UsageError: A file is not there or not readable, no file is of a pattern; or nothing is given,
            and standard input is a terminal.
    """
    if not names:
        standard_input()
        return Files([STANDARD_INPUT], many=False)
    return Files([path for name in names for path in _found(name)], len(names) > 1 or _is_pattern(names[0]))


def _is_pattern(name: str) -> bool:
    return glob.has_magic(name) and not os.path.lexists(name)


def _found(name: str) -> list[str]:
    if name == STANDARD_INPUT:
        return [name]
    if _is_pattern(name):
        found = sorted(filter(os.path.isfile, glob.glob(name, recursive=True)))
        if not found:
            raise click.UsageError(f"no file is called {name!r}")
        return found
    if os.path.isdir(name):
        raise click.UsageError(f"{name!r} is a folder: give a pattern, as '{name.rstrip(os.sep)}/*.json'")
    if not os.path.exists(name):
        raise click.UsageError(f"{name!r}: No such file or directory")
    if not os.access(name, os.R_OK):
        raise click.UsageError(f"{name!r}: Permission denied")
    return [name]


@contextmanager
def opened(path: str) -> Generator[BinaryIO]:
    """Open a file of the input; standard input stays open.

    Raises:
        click.UsageError: It cannot be read any more.
    """
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise click.UsageError(f"{path!r}: {error.strerror or error}") from None


def standard_input() -> BinaryIO:
    """Return standard input, unless somebody would have to type it.

    Raises:
        click.UsageError: It is a terminal.
    """
    if sys.stdin.isatty():
        raise click.UsageError("give a FILE, or pipe one into standard input ('-' reads what you type)")
    return sys.stdin.buffer
