"""Work shared out among processes: `--jobs`. Results come in order, each as one process makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import click

from trimtab._shared.workers import Workers, WorkersLostError

A = TypeVar("A")
R = TypeVar("R")

_SHARE_BYTES = 1 << 20
"""Bytes of input that go to a process at a time, if they are so many."""
_SHARE_COUNT = 256
"""Pieces of input that go to a process at a time at most."""


def share_out(
    jobs: int,
    make: Callable[..., Callable[[list[A]], list[R]]],
    *arguments: Any,
    work: Iterable[A],
    size: Callable[[A], int],
) -> Iterator[R]:
    """Do work in several processes.

    Args:
        jobs: How many.
        make: Called once in each; gives what does a share.
        arguments: What it is called with.
        work: Pieces of input, in order.
        size: Says how many bytes a piece has.

    Raises:
        click.ClickException: The input cannot be read on; all before it is done.
    """
    shares = _Shares(work, size)
    try:
        for done in Workers[list[A], list[R]](jobs, make, *arguments)(shares):
            yield from done
    except WorkersLostError as error:
        raise click.UsageError("processes end before they do any work: pass fewer --jobs") from error
    if shares.error is not None:
        raise shares.error


class _Shares(Generic[A]):
    """The input in shares; one that cannot be read on ends it, which is told when all before it is done."""

    def __init__(self, work: Iterable[A], size: Callable[[A], int]) -> None:
        self._work = work
        self._size = size
        self.error: click.ClickException | None = None

    def __iter__(self) -> Iterator[list[A]]:
        share, size = list[A](), 0
        try:
            for piece in self._work:
                share.append(piece)
                size += self._size(piece)
                if size >= _SHARE_BYTES or len(share) >= _SHARE_COUNT:
                    yield share
                    share, size = [], 0
        except click.ClickException as error:
            self.error = error
        if share:
            yield share
