"""What a store in this process does when the process is forked.

Threads that are in a store at that moment do not exist in the child, and what they held stays held there:
locks of ours, and those SQLite remembers for the whole process. So a fork waits until no thread is in a
store, and each of the two processes goes on from there.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from threading import RLock
from weakref import WeakSet


class Forked(ABC):
    """A store that is notified of forks."""

    def __init__(self) -> None:
        with _listing:
            _stores.add(self)

    @abstractmethod
    def _before_fork(self) -> None:
        """Wait for other threads, and keep them out."""

    @abstractmethod
    def _after_fork(self, *, in_child: bool) -> None:
        """Let threads in again."""


_stores: WeakSet[Forked] = WeakSet()
_told: list[Forked] = []
_listing = RLock()
"""Held while the stores are listed or added to, and so through a fork."""


def _before() -> None:
    _listing.acquire()
    for store in list(_stores):
        store._before_fork()
        _told.append(store)


def _after(*, in_child: bool) -> None:
    global _listing
    while _told:
        _told.pop()._after_fork(in_child=in_child)
    if in_child:
        _listing = RLock()
    else:
        _listing.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _after(in_child=False),
        after_in_child=lambda: _after(in_child=True),
    )
