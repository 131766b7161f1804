"""Clients of `RedisStore`: one a process, one a running event loop, made at first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from trimtab._shared.steps import Steps, relay
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    StoreError,
    StoreUnavailableError,
)
from trimtab.stores.redis.commands import SCAN_KEYS, Command, Scan
from trimtab.stores.secrets import mask
from trimtab.stores.server import Connections

T = TypeVar("T")

_PASSING = (
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
)
"""First words of errors that pass; newer servers have some that the client has no class for."""


_OURS = frozenset(
    ("decode_responses", "encoding", "encoding_errors", "retry", "retry_on_error", "retry_on_timeout")
)
"""Options of a connection that would change what answers are, or ask twice for what may have been done."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How connections are made and shared."""

    cluster: bool
    max_connections: int
    pool_timeout_seconds: float
    connect_timeout_seconds: float
    command_timeout_seconds: float


class _Client(NamedTuple):
    """A client of either colour."""

    client: Any
    awaited: bool


class Clients(Connections[_Client]):
    """Runs operations on clients of one server or cluster; the very first one after `prepare`."""

    def __init__(
        self, url: str, *, redis: Any, options: ClientOptions, prepare: Callable[[], Steps[None]]
    ) -> None:
        self._redis = redis
        self._options = options
        self._prepare = prepare
        self._prepared = False
        try:
            place = redis.connection.parse_url(url)
        except ValueError:
            # its words quote the URL, and so perhaps a password
            raise ConfigurationError(
                "this is not a URL of Redis: write redis://user:password@host:6379/0, with characters other"
                " than letters and digits percent-encoded, such as %20 for a space"
            ) from None
        self._is_file = "path" in place
        at = place.get("path") or f"{place.get('host', 'localhost')}:{place.get('port', 6379)}"
        errors = (redis.exceptions.RedisError, redis.exceptions.RedisClusterException)
        super().__init__(url, name=f"Redis at {at}/{place.get('db', 0)}", errors=errors)
        self._check_options()

    def _check_options(self) -> None:
        """Make a connection that is not connected: options of the URL are its arguments."""
        given = parse_qs(urlsplit(self._place).query, keep_blank_values=True)
        for name in sorted(_OURS.intersection(given)):
            raise ConfigurationError(
                f"the URL may not set {name}, because the store sets how answers are read and retried: leave"
                " it out"
            )
        try:
            pool = self._redis.ConnectionPool.from_url(self._place, **self._for_connection())
            pool.make_connection()
        except (TypeError, ValueError, self._redis.exceptions.RedisError) as error:
            # "… got an unexpected keyword argument 'x'" names it; other words may quote what was given
            said = str(error).partition("() ")[2] if isinstance(error, TypeError) else type(error).__name__
            raise ConfigurationError(
                f"redis-py does not accept the options after the ? of this URL ({mask(said, self._place)});"
                " options are socket_timeout, health_check_interval, ssl_cert_reqs and others"
            ) from None

    def _for_connection(self) -> dict[str, Any]:
        options = self._options
        timeouts: dict[str, Any] = {"socket_timeout": options.command_timeout_seconds}
        if not self._is_file:  # a socket of the file system knows neither
            timeouts["socket_connect_timeout"] = options.connect_timeout_seconds
            timeouts["socket_keepalive"] = True
        return timeouts

    def _calls(self, mine: _Client, steps: Steps[T], *, alone: bool) -> Steps[T]:
        client = mine.client
        if mine.awaited and self._options.cluster:
            yield client.initialize  # nodes are asked for below, and not known before

        def answer(step: Command | Scan) -> Steps[Any]:
            if isinstance(step, Scan):
                return (yield partial(_scan_later if mine.awaited else _scan, client, step.pattern))
            call = partial(client.execute_command, *step.words, **self._to(client, step))
            return _answers(step, (yield call))

        if not self._prepared:
            yield from relay(self._prepare(), answer)
            self._prepared = True
        return (yield from relay(steps, answer))

    def _to(self, client: Any, step: Command) -> dict[str, Any]:
        return {"target_nodes": client.get_primaries()} if step.everywhere and self._options.cluster else {}

    def _new(self, *, awaited: bool) -> _Client:
        package = import_module("redis.asyncio") if awaited else self._redis
        options = self._options
        connection = self._for_connection()
        if options.cluster:
            limit = options.max_connections
            client = package.RedisCluster.from_url(self._place, max_connections=limit, **connection)
            return _Client(client, awaited)
        # Once more at once: a connection that the server closed while it was idle is not an error. An
        # append that is sent twice by this is stored once.
        again = package.retry.Retry(self._redis.backoff.NoBackoff(), 1)
        pool = package.BlockingConnectionPool.from_url(
            self._place,
            max_connections=options.max_connections,
            timeout=options.pool_timeout_seconds,
            retry=again,
            **connection,
        )
        return _Client(package.Redis(connection_pool=pool), awaited)

    def _end(self, mine: _Client) -> Steps[None]:
        yield mine.client.aclose if mine.awaited else mine.client.close
        if not self._options.cluster:
            yield mine.client.connection_pool.disconnect

    def _our_error(self, error: Exception, said: str) -> ContextError:
        return store_error(self._redis, error, name=self.name, said=said)


def _scan(client: Any, pattern: str) -> list[Any]:
    return list(client.scan_iter(match=pattern, count=SCAN_KEYS))


async def _scan_later(client: Any, pattern: str) -> list[Any]:
    return [key async for key in client.scan_iter(match=pattern, count=SCAN_KEYS)]


def _answers(step: Command, answer: Any) -> Any:
    """Give the answers of all primaries as a list, from one server too."""
    if not step.everywhere:
        return answer
    names_nodes = isinstance(answer, dict) and all(isinstance(key, str) and ":" in key for key in answer)
    return list(answer.values()) if answer and names_nodes else [answer]


def store_error(redis: Any, error: Exception, *, name: str, said: str | None = None) -> ContextError:
    """Make the error of ours for one of redis-py's; `said` are its words, if others than its own."""
    kinds = redis.exceptions
    said = (str(error) if said is None else said) or type(error).__name__
    if isinstance(error, (kinds.AuthenticationError, kinds.AuthorizationError)):
        return ConfigurationError(f"{name}: {said}; correct the user and the password in the URL")
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return ConfigurationError(
            f"{name}: {said} Name its certificate authority: rediss://…?ssl_ca_certs=/path/to/ca.pem"
        )
    if isinstance(error, kinds.NoPermissionError):
        return ConfigurationError(
            f"{name}: {said}. Allow this user the commands and keys in the server's ACL; if the user may not"
            " rewrite the files (BGREWRITEAOF, BGSAVE), pass scrub_on_delete=False"
        )
    if "DB index is out of range" in said or "invalid DB index" in said:
        return ConfigurationError(
            f"{name}: {said}; the URL must end with the number of a database, usually 0"
        )
    if said.startswith("WRONGTYPE"):
        return CorruptSessionError(f"{name}: one of our keys contains other data: {said}")
    passing = (
        kinds.ConnectionError,
        kinds.TimeoutError,
        kinds.ReadOnlyError,
        kinds.OutOfMemoryError,
        kinds.TryAgainError,
        kinds.AskError,
        kinds.ClusterError,
        kinds.RedisClusterException,
    )
    if isinstance(error, passing) or said.startswith(_PASSING):
        return StoreUnavailableError(f"{name}: {said}. It is safe to retry: nothing is stored twice")
    return StoreError(f"{name}: {type(error).__name__}: {said}")
