"""Stores of sessions: in memory, in SQLite, PostgreSQL or Redis, with one protocol."""

from __future__ import annotations

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
from trimtab.stores.labels import Labels, Receipt, SessionEntry, Sessions
from trimtab.stores.memory import MemoryStore
from trimtab.stores.places import SCHEMES, SHOWN, is_file, parts_of, path_in
from trimtab.stores.search import searchable_text

__all__ = [
    "AppendRequest",
    "Appended",
    "EncryptedStore",
    "Event",
    "Found",
    "KeyRing",
    "Keys",
    "KmsKeys",
    "Labels",
    "LoadRequest",
    "MemoryStore",
    "PostgresStore",
    "Receipt",
    "RedisStore",
    "Retry",
    "RotationReceipt",
    "SQLiteStore",
    "SearchRequest",
    "SessionEntry",
    "Sessions",
    "Store",
    "StoreLike",
    "acopy_session",
    "copy_session",
    "encrypted",
    "open_store",
    "searchable_text",
]


StoreLike: TypeAlias = Store | str | PathLike[str]
"""A store, or its place, as for `open_store`."""


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
    if isinstance(url, PathLike) or (isinstance(url, str) and is_file(url)):
        return _sqlite_store(url)
    scheme, rest = parts_of(url)
    match scheme.lower():
        case "memory":
            if rest.strip("/"):
                raise ConfigurationError(
                    "a store in memory has no name: write memory:// and nothing after it"
                )
            return MemoryStore()
        case "sqlite":
            return _sqlite_store(path_in(rest))
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
            shown = ", ".join((SHOWN, *(f"{one}://…" for one in published)))
            raise unknown_name(
                f"no store has the scheme {scheme}://; there are: {shown}; pass other stores as objects",
                scheme,
                [*SCHEMES, *published],
            )


if TYPE_CHECKING:
    from trimtab.stores.encryption import EncryptedStore, KeyRing, Keys, KmsKeys, RotationReceipt, encrypted
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
            **dict.fromkeys(
                ("EncryptedStore", "KeyRing", "Keys", "KmsKeys", "RotationReceipt", "encrypted"),
                _HERE + "encryption",
            ),
        },
    )
