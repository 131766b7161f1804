"""What synchronous stores share: their forms for asyncio, each call in a thread."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from trimtab.stores.base import Appended, AppendRequest, ClosedStore, Event, LoadRequest, SearchRequest
from trimtab.stores.labels import Receipt, Sessions
from trimtab.stores.lists import EXPIRE_LIMIT, ListRequest, check_limit, check_time
from trimtab.stores.newest import Newest

T = TypeVar("T")


class ThreadedStore(ClosedStore):
    """Adds asyncio forms to a synchronous store, each call in a thread, and checks of what is listed."""

    def sessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        return self._list(
            ListRequest(
                owner=owner,
                prefix=prefix,
                metadata=metadata,
                used_before=used_before,
                used_after=used_after,
                limit=limit,
                after=after,
            )
        )

    @abstractmethod
    def _list(self, request: ListRequest) -> Sessions:
        """List a page of sessions."""

    def expire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        return self._expire(check_time(time.time() if now is None else now), check_limit(limit))

    @abstractmethod
    def _expire(self, now: float, limit: int) -> Receipt:
        """Remove sessions whose time is over."""

    async def aappend(self, request: AppendRequest, /) -> Appended:
        return await in_thread(self.append, request)

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        return await in_thread(self.load, request)

    @abstractmethod
    def load_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions at once.

        Args:
            names: Of sessions; one that is not there has no entry in the answer.

        Returns:
            The newest event of each by its name, or the error that says why it cannot be read.
        """

    async def aload_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions at once; see `load_newest`."""
        return await in_thread(self.load_newest, names)

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        return await in_thread(self.search, request)

    async def adelete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        return await in_thread(partial(self.delete, session, owner=owner, incarnation=incarnation))

    @abstractmethod
    def delete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names, in one order."""

    async def adelete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names; see `delete_many`."""
        return await in_thread(self.delete_many, names)

    async def asessions(
        self,
        *,
        owner: str | None = None,
        prefix: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        used_before: float | None = None,
        used_after: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sessions:
        return await in_thread(
            self._list,
            ListRequest(
                owner=owner,
                prefix=prefix,
                metadata=metadata,
                used_before=used_before,
                used_after=used_after,
                limit=limit,
                after=after,
            ),
        )

    async def aexpire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        return await in_thread(partial(self.expire, now=now, limit=limit))

    async def aclose(self) -> None:
        await in_thread(self.close)


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Call in a thread, while other tasks of the event loop go on."""
    import asyncio  # takes longer to import than all of trimtab.stores

    return await asyncio.to_thread(call, *arguments)
