"""What stores on servers share: two colours, and connections of a process and of its event loops."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from trimtab._shared.steps import Steps, arun, run
from trimtab.errors import ConfigurationError, ContextError
from trimtab.stores.base import Appended, AppendRequest, ClosedStore, Event, Found, LoadRequest, SearchRequest
from trimtab.stores.labels import Receipt, Sessions, check_owner
from trimtab.stores.lists import EXPIRE_LIMIT, ListRequest, check_limit, check_one, check_time
from trimtab.stores.newest import Newest
from trimtab.stores.secrets import mask

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
C = TypeVar("C")

_abandoned: list[object] = []
"""What a parent process connects by: to let it go would end the parent's connections."""


class Connections(ABC, Generic[C]):
    """Runs operations on connections to one server.

    Threads of the process share one `C` that they connect by, and the tasks of an event loop another. An
    operation becomes calls of the client, which are made or awaited: the client of each colour has the same.
    """

    def __init__(self, place: str, *, name: str, errors: tuple[type[Exception], ...]) -> None:
        """Begin with no connection; `name` says where the server is, `errors` what its client raises."""
        self._place = place
        self.name = mask(name, place)
        """Where the server is; no user and no password."""
        self._errors = errors
        self._begin()

    def _begin(self) -> None:
        """Begin with no connection, also in a process that was forked: the parent's are the parent's."""
        self._pid = os.getpid()
        self._lock = Lock()
        self._of_process: C | None = None
        self._of_loops: dict[int, tuple[asyncio.AbstractEventLoop, C]] = {}

    @abstractmethod
    def _new(self, *, awaited: bool) -> C:
        """Make what threads connect by, or what tasks do."""

    @abstractmethod
    def _calls(self, mine: C, steps: Steps[T], *, alone: bool) -> Steps[T]:
        """Run an operation as calls of the client, without arguments."""

    @abstractmethod
    def _end(self, mine: C) -> Steps[None]:
        """Close connections, as calls of the client."""

    @abstractmethod
    def _our_error(self, error: Exception, said: str) -> ContextError:
        """Make the error of ours for one of the client's, in these words."""

    def run(self, steps: Steps[T], *, alone: bool = False) -> T:
        """Run an operation on a connection of this process; `alone`: one of its own, in its own time."""
        with self._raising_ours():
            return run(self._calls(self._mine(), steps, alone=alone), _call)

    async def arun(self, steps: Steps[T], *, alone: bool = False) -> T:
        """Run an operation on a connection of the running event loop; see `run`."""
        with self._raising_ours():
            return await arun(self._calls(self._mine_of_loop(), steps, alone=alone), _call)

    def close(self) -> None:
        """Close the connections of this process."""
        self._leave_parent()
        mine, self._of_process = self._of_process, None
        if mine is not None:
            run(self._end(mine), _call)

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and those of this process."""
        import asyncio

        self._leave_parent()
        mine = self._of_loops.pop(id(asyncio.get_running_loop()), None)
        if mine is not None:
            await arun(self._end(mine[1]), _call)
        self.close()

    def _leave_parent(self) -> None:
        if self._pid != os.getpid():
            _abandoned.extend((self._of_process, self._of_loops))
            self._begin()

    def _mine(self) -> C:
        self._leave_parent()
        with self._lock:
            if self._of_process is None:
                self._of_process = self._new(awaited=False)
            return self._of_process

    def _mine_of_loop(self) -> C:
        """Return what tasks of the running event loop connect by; the loops that were closed go."""
        import asyncio  # takes longer to import than the rest of trimtab.stores

        self._leave_parent()
        loop = asyncio.get_running_loop()
        with self._lock:
            for key, (other, _) in list(self._of_loops.items()):
                if other.is_closed():
                    del self._of_loops[key]  # what it connected by closes with it
            if id(loop) not in self._of_loops:
                self._of_loops[id(loop)] = loop, self._new(awaited=True)
            return self._of_loops[id(loop)][1]

    @contextmanager
    def _raising_ours(self) -> Generator[None]:
        try:
            yield
        except self._errors as error:
            said = mask(str(error), self._place)
            # a password that is not written as a URL wants it is read as another part, and quoted
            raise self._our_error(error, said) from (error if said == str(error) else None)
        except UnicodeError:
            # from the resolver, which may quote a password that is not written as a URL wants it
            raise ConfigurationError(f"{self.name}: its host is not a valid host name") from None


def _call(call: Callable[[], Any]) -> Any:
    return call()


class _Operations(Protocol):
    """What a store asks its server: each operation once, for both colours."""

    def append(self, request: AppendRequest) -> Steps[Appended]: ...
    def load(self, request: LoadRequest) -> Steps[list[Event]]: ...
    def load_newest(self, names: Sequence[str]) -> Steps[Newest]: ...
    def search(self, request: SearchRequest) -> Steps[Found]: ...
    def delete(self, session: str, incarnation: str | None) -> Steps[Receipt]: ...
    def delete_owned(self, owner: str) -> Steps[Receipt]: ...
    def delete_many(self, names: Sequence[str]) -> Steps[Receipt]: ...
    def expire(self, now: float, limit: int) -> Steps[Receipt]: ...
    def list_page(self, request: ListRequest) -> Steps[Sessions]: ...
    def is_unclean(self) -> Steps[bool]: ...
    def scrub(self) -> Steps[None]: ...


class ServedStore(ClosedStore):
    """A store on a server: its operations run on sync or async connections, as the caller needs."""

    def __init__(
        self, connections: Connections[Any], operations: _Operations, *, scrub_on_delete: bool, shown: str
    ) -> None:
        self._connections = connections
        self._operations = operations
        self._scrub_on_delete = scrub_on_delete
        self._shown = shown

    def __repr__(self) -> str:
        """Show the server and the options; no user and no password."""
        return f"<{type(self).__name__} in {self._connections.name}, {self._shown}>"

    def append(self, request: AppendRequest, /) -> Appended:
        appended = self._connections.run(self._operations.append(request))
        if request.rewrites and request.erase and self._scrub_on_delete:
            self.scrub()
        return appended

    def load(self, request: LoadRequest, /) -> list[Event]:
        return self._connections.run(self._operations.load(request))

    def load_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions by one request.

        Args:
            names: Of sessions; one that is not there has no entry in the answer.

        Returns:
            The newest event of each by its name, or the error that says why it cannot be read.
        """
        return self._connections.run(self._operations.load_newest(names))

    def search(self, request: SearchRequest, /) -> Found:
        """Find messages by an index of terms; see `Store.search`.

        Appends fill the index, a batch of events at a time. A log of an older trimtab is indexed in parts
        with each append; the first search indexes the rest, and takes longer.
        """
        return self._connections.run(self._operations.search(request))

    def delete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        """Remove a session, or all of an owner; see `Store.delete`.

        The server rewrites its files once for each call.

        Raises:
            SessionDeletedError: Another session has its name now.
            StoreUnavailableError: The session is removed, but the server's files still contain its bytes:
                another connection reads them, or the server has not rewritten them. Call `delete` or `scrub`
                again. For an owner the receipt says so.
        """
        removal = self._removal(session, owner, incarnation)
        return self._remove(removal, scrubs=True, of_one=owner is None)

    def _removal(self, session: str | None, owner: str | None, incarnation: str | None) -> Steps[Receipt]:
        check_one(session, owner)
        if session is None:
            return self._operations.delete_owned(check_owner(owner))
        return self._operations.delete(session, incarnation)

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
        return self._connections.run(
            self._operations.list_page(
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
        )

    def delete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names; the server rewrites its files once.

        Args:
            names: Of sessions that are nobody's.
        """
        return self._remove(self._operations.delete_many(names))

    def expire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        return self._remove(self._expiry(now, limit))

    def _expiry(self, now: float | None, limit: int) -> Steps[Receipt]:
        return self._operations.expire(check_time(time.time() if now is None else now), check_limit(limit))

    def _remove(self, steps: Steps[Receipt], *, scrubs: bool = False, of_one: bool = False) -> Receipt:
        """Run an order, and have the files written anew; `scrubs` even if nothing went, as a repeated one.

        One that was killed between the two has removed all: the next finds nothing, and has the files to do.
        """
        receipt = self._connections.run(steps)
        if not self._scrub_on_delete:
            return _without_scrub(receipt)
        if not (scrubs or receipt.sessions or self._connections.run(self._operations.is_unclean())):
            return receipt
        try:
            self.scrub()
        except ContextError as error:
            return _after_failure(receipt, error, of_one=of_one)
        return receipt

    def scrub(self) -> None:
        """Remove deleted and redacted text from the server's files; see the class."""
        self._connections.run(self._operations.scrub(), alone=True)

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        self._connections.close()

    async def aappend(self, request: AppendRequest, /) -> Appended:
        appended = await self._connections.arun(self._operations.append(request))
        if request.rewrites and request.erase and self._scrub_on_delete:
            await self.ascrub()
        return appended

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        return await self._connections.arun(self._operations.load(request))

    async def aload_newest(self, names: Sequence[str], /) -> Newest:
        """Read the newest events of many sessions by one request; see `load_newest`."""
        return await self._connections.arun(self._operations.load_newest(names))

    async def asearch(self, request: SearchRequest, /) -> Found:
        return await self._connections.arun(self._operations.search(request))

    async def adelete(
        self, session: str | None = None, /, *, owner: str | None = None, incarnation: str | None = None
    ) -> Receipt:
        removal = self._removal(session, owner, incarnation)
        return await self._aremove(removal, scrubs=True, of_one=owner is None)

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
        return await self._connections.arun(
            self._operations.list_page(
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
        )

    async def adelete_many(self, names: Sequence[str], /) -> Receipt:
        """Remove sessions by their names; see `delete_many`."""
        return await self._aremove(self._operations.delete_many(names))

    async def aexpire(self, *, now: float | None = None, limit: int = EXPIRE_LIMIT) -> Receipt:
        return await self._aremove(self._expiry(now, limit))

    async def _aremove(self, steps: Steps[Receipt], *, scrubs: bool = False, of_one: bool = False) -> Receipt:
        """Run an order, and have the files written anew; see `_remove`."""
        receipt = await self._connections.arun(steps)
        if not self._scrub_on_delete:
            return _without_scrub(receipt)
        if not (scrubs or receipt.sessions or await self._connections.arun(self._operations.is_unclean())):
            return receipt
        try:
            await self.ascrub()
        except ContextError as error:
            return _after_failure(receipt, error, of_one=of_one)
        return receipt

    async def ascrub(self) -> None:
        """Remove deleted and redacted text from the server's files; see `scrub`."""
        await self._connections.arun(self._operations.scrub(), alone=True)

    async def aclose(self) -> None:
        """Close the connections of the running event loop and those of `close`."""
        await self._connections.aclose()


def _without_scrub(receipt: Receipt) -> Receipt:
    """Say what remains where the store is not to have its files written anew."""
    if not receipt.sessions:
        return receipt
    why = "the server's files are not rewritten, as scrub_on_delete=False says: call scrub()"
    return replace(receipt, not_erased=why)


def _after_failure(receipt: Receipt, error: ContextError, *, of_one: bool) -> Receipt:
    """Say what remains where writing the files anew failed; of one session it is raised, as ever."""
    if of_one:
        raise error
    return replace(receipt, not_erased=str(error))


def check_seconds(waits: Mapping[str, Any], /) -> None:
    """Refuse a wait, whose name ends with `_seconds`, that is not above 0; None is no limit."""
    for name, seconds in waits.items():
        if name.endswith("_seconds") and seconds is not None and not seconds > 0:
            raise ConfigurationError(f"{name} must be more than 0, not {seconds!r:.80}", argument=name)
