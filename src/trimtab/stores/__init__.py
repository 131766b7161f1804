"""Where sessions are kept: in memory, in SQLite, PostgreSQL or Redis, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.lazy import later
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, Retry, SearchRequest, Store
from trimtab.stores.copy import acopy_session, copy_session
from trimtab.stores.memory import MemoryStore
from trimtab.stores.search import query_terms, search_terms, searchable_text
from trimtab.stores.secrets import show

__all__ = [
    "AppendRequest",
    "Appended",
    "Event",
    "LoadRequest",
    "MemoryStore",
    "PostgresStore",
    "RedisStore",
    "Retry",
    "SQLiteStore",
    "SearchRequest",
    "Store",
    "acopy_session",
    "copy_session",
    "open_store",
    "query_terms",
    "search_terms",
    "searchable_text",
]


# `open_store`: the store that a URL names.


def open_store(url: str, /) -> Store:
    """Return the store that a URL names.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://…`, `redis://…` or
    `rediss://…`; the last three with what their clients take. Nothing is opened before first use.

    Raises:
        UnknownNameError: No store has such URLs; `.near` has the schemes spelled like it.
        ConfigurationError: The URL names no place.
        MissingExtraError: The client of that store is not installed.

    Example:
        >>> open_store("sqlite:///:memory:").path
        ':memory:'
    """
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not separator:
        raise ConfigurationError(f"a store's URL is one of {', '.join(_SHOWN)}, not {show(url)}")
    make = _SCHEMES.get(scheme.lower())
    if make is None:
        raise _unknown(scheme)
    store: Store = make(url, rest)
    return store


def _memory(url: str, rest: str) -> Store:
    from trimtab.stores.memory import MemoryStore

    if rest.strip("/"):
        raise ConfigurationError(f"a store in memory has no name: write memory://, not {show(url)}")
    return MemoryStore()


def _sqlite(url: str, rest: str) -> Store:
    from urllib.parse import unquote

    from trimtab.stores.sqlite import SQLiteStore

    path = unquote(rest[1:])
    if not rest.startswith("/") or not path or "?" in rest:
        raise ConfigurationError(
            f"write sqlite:///relative.db or sqlite:////absolute.db, not {show(url)}; options go to"
            " SQLiteStore"
        )
    return SQLiteStore(path)


def _postgres(url: str, rest: str) -> Any:
    from importlib import import_module

    return import_module("trimtab.stores.postgres").PostgresStore(url)


def _redis(url: str, rest: str) -> Any:
    from importlib import import_module

    return import_module("trimtab.stores.redis").RedisStore(url)


_SCHEMES: Mapping[str, Callable[[str, str], Any]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "redis": _redis,
    "rediss": _redis,
}
_SHOWN = ("memory://", "sqlite:///FILE", "postgresql://…", "redis://…", "rediss://…")


def _unknown(scheme: str) -> UnknownNameError:
    near = near_names(scheme, _SCHEMES)
    return UnknownNameError(
        f"no store has URLs {scheme}://; there are: {', '.join(_SHOWN)}, and others are passed as objects"
        f"{in_words(near)}",
        name=scheme,
        near=near,
    )


if TYPE_CHECKING:
    from trimtab.stores.postgres import PostgresStore
    from trimtab.stores.redis import RedisStore
    from trimtab.stores.sqlite import SQLiteStore
else:
    _HERE = "trimtab.stores."
    # One that is asked for brings its client with it: sqlite3, psycopg, redis.
    __getattr__ = later(
        globals(),
        {
            "PostgresStore": _HERE + "postgres",
            "RedisStore": _HERE + "redis",
            "SQLiteStore": _HERE + "sqlite",
        },
    )
