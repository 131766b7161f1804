"""Where sessions are kept: in memory, in SQLite, PostgreSQL or Redis, behind one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab._shared.lazy import later
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, SearchRequest, Store
from trimtab.stores.copy import acopy_session, copy_session
from trimtab.stores.memory import MemoryStore
from trimtab.stores.retry import Retry
from trimtab.stores.search import query_terms, search_terms, searchable_text
from trimtab.stores.url import open_store

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
