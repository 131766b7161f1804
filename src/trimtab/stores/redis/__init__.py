"""`RedisStore`: sessions in Redis, for many processes and machines (extra `redis`)."""

from __future__ import annotations

from dataclasses import asdict

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.stores.redis.connections import ClientOptions, Clients
from trimtab.stores.redis.operations import Operations
from trimtab.stores.server import ServedStore, check_seconds


class RedisStore(ServedStore):
    """Keeps sessions in Redis 6 or newer, or a compatible server.

    No connection is opened before first use. One store serves the threads of a process, its event loops and
    the processes forked from it; each gets its own connections.

    An append is one script on one key, so it also runs on a cluster. Which acknowledged events survive a
    crash depends on the server's persistence: with `appendonly yes` and `appendfsync always`, all of them;
    with `everysec`, its default, all but about the last second; with snapshots only, those in the last
    snapshot. A replica that is promoted may lack the last appends.

    A server that removes keys when its memory is full (`maxmemory-policy allkeys-…`) is refused at first use.
    Each session has an index of its words in the same key, filled 100 events at a time; it takes memory, too.

    Deletion and redaction remove the text from memory at once. With `scrub_on_delete` the store then has the
    server rewrite its files (`BGREWRITEAOF`, `BGSAVE`) and waits, and no byte of the text remains in them.
    This costs the server a copy of all its data. With much data, switch it off and call `scrub()` at night. A
    server without files is not asked. Neither reaches replicas and backups.

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
        """Make a store; no connection is opened yet.

        Args:
            url: `redis://user:password@host:6379/0`, `rediss://…` with TLS, or `unix://…`. Options after a
                `?` are passed to redis-py, and override the arguments below.
            prefix: Prefix of every key; stores with different prefixes do not see each other. None of its
                parts between colons may be "session".
            cluster: The URL is of any node of a Redis Cluster.
            max_connections: Maximum number of connections of each process and each event loop (in a cluster,
                to each node); further calls wait for one.
            pool_timeout_seconds: Maximum wait for a connection; a cluster's client does not wait.
            connect_timeout_seconds: Maximum wait for the server to accept one.
            command_timeout_seconds: Maximum wait for an answer.
            scrub_on_delete: Whether the server rewrites its files after a deletion or redaction.
            scrub_timeout_seconds: Maximum wait for that.

        Raises:
            MissingExtraError: redis-py is not installed.
            ConfigurationError: The URL, the prefix or a number is invalid.
        """
        if not 0 < len(prefix) <= 200 or not prefix.isprintable() or "{" in prefix:
            raise ConfigurationError(
                f"prefix must be 1 to 200 printable characters without {{, not {prefix!r:.80}",
                argument="prefix",
            )
        if ":session:" in f"{prefix}:":
            raise ConfigurationError(
                f"prefix {prefix!r}: keys are PREFIX:session:NAME, so its sessions would also be those of"
                f" the prefix {prefix.partition(':session')[0]!r}. Use another word than session between"
                " colons"
            )
        if max_connections < 1:
            raise ConfigurationError(
                f"max_connections must be 1 or more, not {max_connections!r:.80}", argument="max_connections"
            )
        options = ClientOptions(
            cluster=cluster,
            max_connections=max_connections,
            pool_timeout_seconds=pool_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
            command_timeout_seconds=command_timeout_seconds,
        )
        check_seconds({**asdict(options), "scrub_timeout_seconds": scrub_timeout_seconds})
        package = package_of("redis", package="redis", needed_by="RedisStore")
        operations = Operations(
            prefix,
            redis=package,
            scrub_on_delete=scrub_on_delete,
            scrub_seconds=scrub_timeout_seconds,
            cluster=cluster,
        )
        clients = Clients(url, redis=package, options=options, prepare=operations.prepare)
        shown = f"prefix={prefix!r}, max_connections={max_connections}"
        super().__init__(clients, operations, scrub_on_delete=scrub_on_delete, shown=shown)
