"""Records in Redis, for processes of many machines: one hash, and when each of its fields was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from trimtab._shared.lazy import package_of
from trimtab._shared.steps import Steps
from trimtab.stores.records.base import Bounds, Records
from trimtab.stores.redis.commands import Script
from trimtab.stores.redis.connections import ClientOptions, Clients

KEYS = ("trimtab:{records}:data", "trimtab:{records}:saved")
"""Both in one slot of a cluster, since a script asks for both."""

_LOAD = Script.of(
    """
local oldest = tonumber(redis.call('TIME')[1]) - tonumber(ARGV[1])
local found = {}
for at = 2, #ARGV do
  local saved = redis.call('ZSCORE', KEYS[2], ARGV[at])
  found[at - 1] = saved and tonumber(saved) >= oldest and redis.call('HGET', KEYS[1], ARGV[at])
end
return found
"""
)
_SAVE = Script.of(
    """
local time, kept, many = redis.call('TIME'), tonumber(ARGV[1]), tonumber(ARGV[2])
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local saved = redis.call('ZSCORE', KEYS[2], ARGV[3])
local there = saved and tonumber(saved) >= now - kept and redis.call('HGET', KEYS[1], ARGV[3])
if (there or '') ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[5])
redis.call('ZADD', KEYS[2], now, ARGV[3])
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - kept - 1, 'LIMIT', 0, 100)
local over = redis.call('ZCARD', KEYS[2]) - #gone - many
if over > 0 then
  for _, name in ipairs(redis.call('ZRANGE', KEYS[2], #gone, #gone + over - 1)) do
    gone[#gone + 1] = name
  end
end
for _, name in ipairs(gone) do
  redis.call('ZREM', KEYS[2], name)
  redis.call('HDEL', KEYS[1], name)
end
redis.call('EXPIRE', KEYS[1], kept)
redis.call('EXPIRE', KEYS[2], kept)
return 1
"""
)


class RedisRecords(Records):
    """Keeps records in Redis 6 or newer. No connection is opened before first use.

    Args:
        url: As for `RedisStore`.
        bounds: How much is kept.

    Raises:
        MissingExtraError: redis-py is not installed.
        ConfigurationError: The URL is invalid.
    """

    def __init__(self, url: str, bounds: Bounds) -> None:
        self._redis: Any = package_of("redis", package="redis", needed_by="sharing records by Redis")
        self._bounds = bounds
        options = ClientOptions(
            cluster=False,
            max_connections=32,
            pool_timeout_seconds=bounds.wait_seconds,
            connect_timeout_seconds=bounds.wait_seconds,
            command_timeout_seconds=bounds.wait_seconds,
        )
        self._clients = Clients(url, redis=self._redis, options=options, prepare=_nothing)

    @property
    def place(self) -> str:
        """Where the server is."""
        return self._clients.name

    def load(self, names: Sequence[str], /) -> list[bytes | None]:
        found = self._clients.run(_LOAD.run(self._redis, KEYS, (self._bounds.kept_seconds, *names)))
        return [cast("bytes | None", one) for one in found]

    def save(self, name: str, before: bytes | None, after: bytes, /) -> bool:
        words = (self._bounds.kept_seconds, self._bounds.most_records, name, before or b"", after)
        return bool(self._clients.run(_SAVE.run(self._redis, KEYS, words)))

    def close(self) -> None:
        self._clients.close()


def _nothing() -> Steps[None]:
    """Ask nothing before the first call: a server that forgets records is as good as any."""
    yield from ()
