"""Small records that processes share and can do without: bounded, and forgotten when nobody asks for them.

A store of sessions loses nothing; this is the other kind.
"""

from __future__ import annotations

from trimtab.errors import ConfigurationError
from trimtab.stores.places import is_file, parts_of, path_in
from trimtab.stores.records.base import Bounds, Records

__all__ = ["Records", "open_records"]


def open_records(url: str, /, *, wait_seconds: float) -> Records:
    """Return the records at a place.

    Args:
        url: `redis://…`, `rediss://…`, `unix://…`, `sqlite:///FILE`, or the path of a SQLite file.
        wait_seconds: How long is waited for it.

    Raises:
        ConfigurationError: The URL names no place, or none that several processes reach.
        MissingExtraError: The client is not installed.
    """
    bounds = Bounds(wait_seconds=wait_seconds)
    scheme, rest = ("sqlite", "") if is_file(url) else parts_of(url)
    if scheme.lower() == "sqlite":
        from trimtab.stores.records.sqlite import SQLiteRecords

        return SQLiteRecords(path_in(rest) if rest else url, bounds)
    if scheme.lower() in ("redis", "rediss", "unix"):
        from trimtab.stores.records.redis import RedisRecords

        return RedisRecords(url, bounds)
    raise ConfigurationError(
        f"processes share records in Redis (redis://…) or a SQLite file (sqlite:///FILE), not by {scheme}://"
    )
