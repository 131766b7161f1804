"""What a URL says of where something is kept."""

from __future__ import annotations

import re

from trimtab.errors import ConfigurationError

_FILE = re.compile(r"(?![A-Za-z][A-Za-z0-9+.-]+:)[^=?]*[.](db|sqlite3?)")
"""A path that no other kind of place looks like."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
SCHEMES = ("memory", "sqlite", "postgresql", "postgres", "redis", "rediss", "unix")
SHOWN = "memory://, sqlite:///FILE, postgresql://…, redis://…, rediss://…, unix://…"


def is_file(place: str, /) -> bool:
    """Tell whether a place is the path of a SQLite file."""
    return _FILE.fullmatch(place) is not None


def parts_of(url: object, /) -> tuple[str, str]:
    """Part a URL in its scheme and the rest; none is quoted in an error, as any part may be a password."""
    scheme, separator, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not separator or not _SCHEME.fullmatch(scheme):
        shown = f"this text of {len(url)} characters" if isinstance(url, str) else type(url).__name__
        raise ConfigurationError(
            f"a store's URL must be one of {SHOWN}, or the path of a SQLite file, such as 'chats.db'; not"
            f" {shown} (pass keys and values of libpq to PostgresStore)"
        )
    return scheme, rest


def path_in(rest: str, /) -> str:
    """Return the path that a URL of SQLite has behind its scheme.

    Raises:
        ConfigurationError: It has none, or options.
    """
    from urllib.parse import unquote

    path = unquote(rest[1:])
    if not rest.startswith("/") or not path or "?" in rest:
        raise ConfigurationError(
            "write sqlite:///relative.db or sqlite:////absolute.db; pass options to SQLiteStore"
        )
    return path
