"""`RedisStore`: sessions in Redis, for many processes and machines (extra `redis`)."""

from __future__ import annotations

from typing import Any, Self

from trimtab._shared.steps import Steps
from trimtab.errors import ConfigurationError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, SearchRequest
from trimtab.stores.redis.connections import ClientOptions, Clients
from trimtab.stores.redis.operations import Operations

__all__ = ["RedisStore"]


class RedisStore:
    """Keeps sessions in Redis 6 or newer, or what speaks like it.

    Nothing is connected before first use. One store serves the threads of a process, its event loops and
    the processes forked from it; each gets connections of its own.

    An append is one script on one key, so that it runs on a cluster too. What was acknowledged survives a
    crash of the server as far as the server was told to write it down: with `appendonly yes` and
    `appendfsync always` all of it; with `everysec`, its default, all but about the last second; with
    snapshots only, what the last one holds. A replica that takes over may lack the last appends.

    A server that removes keys when its memory is full (`maxmemory-policy allkeys-…`) is refused at first
    use. Each session has an index of its words beside it, in the same key; that takes memory as well.

    Deleting or redacting removes the text from memory at once. With `scrub_on_delete` the server is then
    asked to write its files anew (`BGREWRITEAOF`, `BGSAVE`), and waited for, so that no byte of the text
    stays in them: that costs it a copy of all it holds. Where that is much, switch it off and call
    `scrub()` at night. Replicas and backups are not reached by either.

    Example:
        >>> from trimtab.stores import RedisStore
        >>> store = RedisStore("redis://:secret@cache.internal:6379/0", prefix="chats")
    """

    # Each wait has a limit of its own, as operators set them.
    def __init__(
        self,
        url: str,
        *,
        prefix: str = "trimtab",
        cluster: bool = False,
        max_connections: int = 10,
        pool_timeout_seconds: float = 10.0,
        connect_timeout_seconds: float = 5.0,
        command_timeout_seconds: float = 10.0,
        scrub_on_delete: bool = True,
        scrub_timeout_seconds: float = 60.0,
    ) -> None:
        """Make a store; nothing is connected yet.

        Args:
            url: `redis://user:password@host:6379/0`, `rediss://…` with TLS, or `unix://…`. What stands
                behind a `?` goes to redis-py, and before the arguments below.
            prefix: What every key begins with; stores with different ones do not see each other. None of its
                parts between colons is "session".
            cluster: The URL is of any node of a Redis Cluster.
            max_connections: Most connections of each process and each event loop (in a cluster, to each
                node); further calls wait for one.
            pool_timeout_seconds: Longest wait for a connection; a cluster's client does not wait.
            connect_timeout_seconds: Longest wait for the server to accept one.
            command_timeout_seconds: Longest wait for an answer.
            scrub_on_delete: Have the server write its files anew after a deletion or redaction.
            scrub_timeout_seconds: Longest wait for that.

        Raises:
            MissingExtraError: redis-py is not installed.
            ConfigurationError: The URL, prefix or a number cannot be meant.
        """
        if not 0 < len(prefix) <= 200 or not prefix.isprintable() or "{" in prefix:
            raise ConfigurationError(
                f"prefix is 1 to 200 printable characters without {{, not {prefix!r:.80}"
            )
        if ":session:" in f"{prefix}:":
            raise ConfigurationError(
                f"prefix {prefix!r}: keys are PREFIX:session:NAME, so its sessions would also be those of the"
                f" prefix {prefix.partition(':session')[0]!r}. Take another word than session between colons"
            )
        if max_connections < 1:
            raise ConfigurationError(f"max_connections is 1 or more, not {max_connections!r:.80}")
        for name, seconds in (
            ("pool_timeout_seconds", pool_timeout_seconds),
            ("connect_timeout_seconds", connect_timeout_seconds),
            ("command_timeout_seconds", command_timeout_seconds),
            ("scrub_timeout_seconds", scrub_timeout_seconds),
        ):
            if not seconds > 0:
                raise ConfigurationError(f"{name} is more than 0, not {seconds!r:.80}")
        options = ClientOptions(
            cluster=cluster,
            max_connections=max_connections,
            pool_timeout_seconds=pool_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
            command_timeout_seconds=command_timeout_seconds,
        )
        self._clients = Clients(url, options=options)
        self._operations = Operations(
            prefix, redis=self._clients.package, scrub_seconds=scrub_timeout_seconds
        )
        self._scrub_on_delete = scrub_on_delete
        self._shown = f"prefix={prefix!r}, max_connections={max_connections}"

    def __repr__(self) -> str:
        """Show the server and the options; no user and no password."""
        return f"<RedisStore in {self._clients.name}, {self._shown}>"

    def _run(self, steps: Steps[Any]) -> Any:
        return self._clients.run(steps, prepare=self._operations.prepare)

    async def _arun(self, steps: Steps[Any]) -> Any:
        return await self._clients.arun(steps, prepare=self._operations.prepare)

    def append(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""
        appended: Appended = self._run(self._operations.append(request))
        if request.rewrites and self._scrub_on_delete:
            self.scrub()
        return appended

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""
        events: list[Event] = self._run(self._operations.load(request))
        return events

    def search(self, request: SearchRequest, /) -> list[Event]:
        """Find messages by an index of terms; see `Store.search`.

        Appends fill the index, 100 events at a time; fewer are read where they stand. A log of an older
        trimtab catches up by a part with each append; the first search does the rest, and takes longer.
        """
        events: list[Event] = self._run(self._operations.search(request))
        return events

    def delete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; see `Store.delete`.

        Raises:
            SessionDeletedError: Another one than the one that was meant has its name now.
            StoreUnavailableError: It is removed, but the server has not written its files anew; call
                `delete` or `scrub` again.
        """
        self._run(self._operations.delete(session, incarnation))
        if self._scrub_on_delete:
            self.scrub()

    def sessions(self) -> list[str]:
        """List the names of all sessions, sorted; looks at every key of the database."""
        names: list[str] = self._run(self._operations.sessions())
        return names

    def scrub(self) -> None:
        """Have the server write its files anew, and wait until it has.

        A server that keeps no files is left as it is.
        """
        self._run(self._operations.scrub())

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        self._clients.close()

    async def aappend(self, request: AppendRequest, /) -> Appended:
        """Add events in one step; see `Store.append`."""
        appended: Appended = await self._arun(self._operations.append(request))
        if request.rewrites and self._scrub_on_delete:
            await self.ascrub()
        return appended

    async def aload(self, request: LoadRequest, /) -> list[Event]:
        """Read events; see `Store.load`."""
        events: list[Event] = await self._arun(self._operations.load(request))
        return events

    async def asearch(self, request: SearchRequest, /) -> list[Event]:
        """Find messages; see `search`."""
        events: list[Event] = await self._arun(self._operations.search(request))
        return events

    async def adelete(self, session: str, /, *, incarnation: str | None = None) -> None:
        """Remove a session; see `delete`."""
        await self._arun(self._operations.delete(session, incarnation))
        if self._scrub_on_delete:
            await self.ascrub()

    async def asessions(self) -> list[str]:
        """List the names of all sessions; see `sessions`."""
        names: list[str] = await self._arun(self._operations.sessions())
        return names

    async def ascrub(self) -> None:
        """Have the server write its files anew; see `scrub`."""
        await self._arun(self._operations.scrub())

    async def aclose(self) -> None:
        """Close the connections of the running event loop and those of `close`."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()
