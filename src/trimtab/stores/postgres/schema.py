"""The tables of `PostgresStore`, and the migrations that make them.

No column is given statistics: the server would keep samples of texts in `pg_statistic`, where neither a
deletion nor a vacuum reaches them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from trimtab._shared.steps import Steps
from trimtab.errors import ConfigurationError

__all__ = ["MIGRATIONS", "Execute", "Tables", "prepare"]

LOCK = 0x7472696D746162
"""Key of the advisory lock that migrations are made under: "trimtab" in ASCII."""


class Execute(NamedTuple):
    """One statement; yielded by an operation, which is sent its rows."""

    sql: str
    params: tuple[object, ...] = ()
    details: bool = False
    """Send the details of the server's notices instead of rows."""


class Tables:
    """The names of the tables, quoted, in the schema a user chose."""

    def __init__(self, schema: str) -> None:
        quoted = schema.replace('"', '""')
        self.schema = schema
        self.prefix = f'"{quoted}".trimtab_'
        self.events = f"{self.prefix}events"
        self.sessions = f"{self.prefix}sessions"
        self.terms = f"{self.prefix}terms"
        self.scrubbing = f"{self.prefix}scrubbing"
        self.migrations = f"{self.prefix}migrations"


def _logs(tables: Tables) -> Iterator[str]:
    # collation "C": equal is equal in bytes, and no update of the system's locales breaks an index
    yield f"""
        CREATE TABLE {tables.sessions} (
            key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text COLLATE "C" NOT NULL UNIQUE,
            version bigint NOT NULL
        )"""
    yield f"""
        CREATE TABLE {tables.events} (
            session bigint NOT NULL,
            version bigint NOT NULL,
            id text COLLATE "C" NOT NULL,
            kind text COLLATE "C" NOT NULL,
            time double precision NOT NULL,
            body text COLLATE "C" NOT NULL,
            seal text COLLATE "C" NOT NULL,
            PRIMARY KEY (session, version),
            UNIQUE (session, id)
        )"""
    yield f"CREATE TABLE {tables.scrubbing} (wanted bigint NOT NULL)"
    yield f"INSERT INTO {tables.scrubbing} VALUES (0)"
    yield f"ALTER TABLE {tables.sessions} ALTER name SET STATISTICS 0"
    for column in ("id", "kind", "body", "seal"):
        yield f"ALTER TABLE {tables.events} ALTER {column} SET STATISTICS 0"


def _search(tables: Tables) -> Iterator[str]:
    yield f"ALTER TABLE {tables.sessions} ADD COLUMN indexed bigint NOT NULL DEFAULT 0"
    yield f"""
        CREATE TABLE {tables.terms} (
            session bigint NOT NULL,
            version bigint NOT NULL,
            part integer NOT NULL,
            terms tsvector NOT NULL,
            PRIMARY KEY (session, version, part)
        )"""
    yield f"ALTER TABLE {tables.terms} ALTER terms SET STATISTICS 0"
    yield f"CREATE INDEX trimtab_terms_found ON {tables.terms} USING gin (terms)"


def _short_list(tables: Tables) -> Iterator[str]:
    # What was added last is a list that each search reads from end to end: 64 kB, the least, and not 4 MB.
    # None at all would write the whole list of a word's places anew for each event that has it.
    yield f"ALTER INDEX {tables.prefix}terms_found SET (gin_pending_list_limit = 64)"


Migration: TypeAlias = Callable[[Tables], Iterator[str]]

MIGRATIONS: tuple[tuple[str, Migration], ...] = (
    ("001_logs", _logs),
    ("002_search", _search),
    ("003_short_list", _short_list),
)
"""Each applied once, in this order, and recorded by its name. One that was released never changes."""


def prepare(tables: Tables) -> Steps[None]:
    """Make the tables, or bring them up to date.

    Raises:
        ConfigurationError: They were made by a newer trimtab, or the database keeps text in another
            encoding than UTF-8.
    """
    if (yield from _missing(tables)):
        yield Execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        yield Execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        yield from _make_place(tables)
        missing = yield from _missing(tables)  # another process may have been faster
        for name, migration in missing:
            for sql in migration(tables):
                yield Execute(sql)
            yield Execute(f"INSERT INTO {tables.migrations} (name) VALUES (%s)", (name,))
        yield Execute("COMMIT")


def _missing(tables: Tables) -> Steps[list[tuple[str, Migration]]]:
    there = yield Execute(
        "SELECT current_setting('server_encoding'), to_regclass(%s) IS NOT NULL", (tables.migrations,)
    )
    ((encoding, is_there),) = there
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database keeps text as {encoding}; make one with ENCODING 'UTF8' for sessions"
        )
    rows = (yield Execute(f"SELECT name FROM {tables.migrations}")) if is_there else []
    applied = {name for (name,) in rows}
    unknown = sorted(applied - {name for name, _ in MIGRATIONS})
    if unknown:
        raise ConfigurationError(
            f"the tables in schema {tables.schema!r} were made by a newer trimtab ({', '.join(unknown)});"
            " install that version, or name another schema"
        )
    return [migration for migration in MIGRATIONS if migration[0] not in applied]


def _make_place(tables: Tables) -> Steps[None]:
    # asked for first: CREATE … IF NOT EXISTS needs the right to create even where nothing is made
    if not (yield Execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (tables.schema,))):
        yield Execute(f"CREATE SCHEMA {tables.prefix.removesuffix('.trimtab_')}")
    yield Execute(
        f"CREATE TABLE IF NOT EXISTS {tables.migrations}"
        " (name text PRIMARY KEY, time timestamptz NOT NULL DEFAULT now())"
    )
