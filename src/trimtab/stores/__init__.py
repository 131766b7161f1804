"""Stores of sessions: in memory, in SQLite, PostgreSQL or Redis, with one protocol."""

from __future__ import annotations

import re
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from trimtab._shared.checks import unknown_name
from trimtab._shared.lazy import later
from trimtab._shared.plugins import make_plugin, plugin_names
from trimtab.errors import ConfigurationError
from trimtab.stores.base import (
    Appended,
    AppendRequest,
    Event,
    Found,
    LoadRequest,
    Retry,
    SearchRequest,
    Store,
)
from trimtab.stores.copy import acopy_session, copy_session
from trimtab.stores.memory import MemoryStore
from trimtab.stores.search import searchable_text

__all__ = [
    "AppendRequest",
    "Appended",
    "Event",
    "Found",
    "LoadRequest",
    "MemoryStore",
    "PostgresStore",
    "RedisStore",
    "Retry",
    "SQLiteStore",
    "SearchRequest",
    "Store",
    "StoreLike",
    "acopy_session",
    "copy_session",
    "open_store",
    "searchable_text",
]


_FILE = re.compile(r"(?![A-Za-z][A-Za-z0-9+.-]+:)[^=?]*[.](db|sqlite3?)")
"""A path that no other kind of place looks like."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_SCHEMES = ("memory", "sqlite", "postgresql", "postgres", "redis", "rediss", "unix")
_SHOWN = "memory://, sqlite:///FILE, postgresql://…, redis://…, rediss://…, unix://…"


StoreLike: TypeAlias = Store | str | PathLike[str]
"""A store, or its place, as for `open_store`."""


def _parts_of(url: object) -> tuple[str, str]:
    """Part a URL in its scheme and the rest; none is quoted in an error, as any part may be a password."""
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not separator or not _SCHEME.fullmatch(scheme):
        shown = f"this text of {len(url)} characters" if isinstance(url, str) else type(url).__name__
        raise ConfigurationError(
            f"a store's URL must be one of {_SHOWN}, or the path of a SQLite file, such as 'chats.db'; not"
            f" {shown} (pass keys and values of libpq to PostgresStore)"
        )
    return scheme, rest


def _sqlite_store(path: str | PathLike[str]) -> Store:
    from trimtab.stores.sqlite import SQLiteStore

    return SQLiteStore(path)


def open_store(url: str | PathLike[str], /) -> Store:
    """Return the store that a URL names, or the path of a SQLite file.

    `chats.db` (also `.sqlite`, `.sqlite3`, and a `Path` of any name), `memory://`, `sqlite:///relative.db`,
    `sqlite:////absolute.db`, `postgresql://…`, `redis://…`, `rediss://…` or `unix://…` (Redis); the last four
    with the options of their clients. The store is opened at first use. Other schemes are looked up in the
    entry points `trimtab.stores`.

    Args:
        url: As in this list; errors do not show a password in it.

    Raises:
        UnknownNameError: No store has this scheme; `.near` lists similar ones.
        ConfigurationError: The URL names no place.
        MissingExtraError: The client of that store is not installed.

    Example:
        >>> open_store("sqlite:///:memory:").path
        ':memory:'
    """
    if isinstance(url, PathLike) or (isinstance(url, str) and _FILE.fullmatch(url)):
        return _sqlite_store(url)
    scheme, rest = _parts_of(url)
    match scheme.lower():
        case "memory":
            if rest.strip("/"):
                raise ConfigurationError(
                    "a store in memory has no name: write memory:// and nothing after it"
                )
            return MemoryStore()
        case "sqlite":
            from urllib.parse import unquote

            path = unquote(rest[1:])
            if not rest.startswith("/") or not path or "?" in rest:
                raise ConfigurationError(
                    "write sqlite:///relative.db or sqlite:////absolute.db; pass options to SQLiteStore"
                )
            return _sqlite_store(path)
        case "postgresql" | "postgres":
            from trimtab.stores.postgres import PostgresStore

            return PostgresStore(url)
        case "redis" | "rediss" | "unix":
            from trimtab.stores.redis import RedisStore

            return RedisStore(url)
        case _:
            if (made := make_plugin("stores", scheme.lower(), url)) is not None:
                if isinstance(made, Store):
                    return made
                raise ConfigurationError(f"the package for {scheme}:// does not make a Store: {made!r:.80}")
            published = plugin_names("stores")
            shown = ", ".join((_SHOWN, *(f"{one}://…" for one in published)))
            raise unknown_name(
                f"no store has the scheme {scheme}://; there are: {shown}; pass other stores as objects",
                scheme,
                [*_SCHEMES, *published],
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
        {"PostgresStore": _HERE + "postgres", "RedisStore": _HERE + "redis", "SQLiteStore": _HERE + "sqlite"},
    )
