"""Conversations shared out among processes: `--jobs`. What is written is what one process would write."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import click

from trimtab._shared.workers import Workers, WorkersLostError
from trimtab.cli.output import Asked, Form, Refused, Reply, replier

_SHARE_BYTES = 1 << 20
"""Bytes of input that go to a process at a time, if they are so many."""
_SHARE_COUNT = 256
"""Conversations that go to a process at a time at most."""


def share_out(
    jobs: int, name: str | None, given: Mapping[str, Any], form: Form, asked: Iterable[Asked], /
) -> Iterator[Reply]:
    """Answer conversations in several processes; replies come in the order of the input.

    Args:
        jobs: Processes.
        name: Of the command.
        given: Its options.
        form: How replies are made.
        asked: The conversations.

    Raises:
        click.ClickException: A file cannot be read; all before it is answered.
    """
    shares = _Shares(asked)
    workers = Workers[list[Asked], list[Reply]](jobs, _make, name, dict(given), form)
    try:
        with closing(workers(shares)) as done:
            for replies in done:
                yield from replies
    except WorkersLostError as error:
        where = "" if error.piece is None else f" at {_where(error.piece)}"
        raise Refused(f"processes end before they have done anything{where}: give fewer --jobs") from error
    if shares.error is not None:
        raise shares.error


def _where(share: list[Asked]) -> str:
    first = share[0]
    return first.place.label(first.label)


def _make(name: str, given: Mapping[str, Any], form: Form) -> Callable[[list[Asked]], list[Reply]]:
    """Make, in another process, what the command makes of its options."""
    from trimtab.cli.commands import trimtab

    command: Any = inspect.unwrap(trimtab.commands[name].callback or _make)
    reply = replier(command(**given), form)
    return lambda share: list(map(reply, share))


class _Shares:
    """The input in shares; one that cannot be read on ends it, and is told when all before it is answered."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._asked = asked
        self.error: click.ClickException | None = None

    def __iter__(self) -> Iterator[list[Asked]]:
        share, size = list[Asked](), 0
        try:
            for one in self._asked:
                share.append(one)
                size += len(one.piece.raw) + sum(len(line.raw) for line in one.piece.messages or ())
                if size >= _SHARE_BYTES or len(share) >= _SHARE_COUNT:
                    yield share
                    share, size = [], 0
        except click.ClickException as error:
            self.error = error
        if share:
            yield share
