"""The tables of `SQLiteStore`, and how older files are brought up to date."""

from __future__ import annotations

import sqlite3
import time
from typing import NamedTuple

from trimtab.errors import StoreError

__all__ = ["MIGRATIONS", "Migration", "migrate", "schema_version"]


class Migration(NamedTuple):
    """One step of the schema, applied once; its version is its place in the list, from 1."""

    name: str
    statements: tuple[str, ...]


MIGRATIONS = (
    Migration(
        "events",
        (
            """CREATE TABLE trimtab_sessions (
                session TEXT PRIMARY KEY NOT NULL,
                version INTEGER NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE trimtab_events (
                session TEXT NOT NULL,
                version INTEGER NOT NULL,
                id TEXT NOT NULL,
                kind TEXT NOT NULL,
                time REAL NOT NULL,
                body TEXT NOT NULL,
                seal TEXT NOT NULL,
                PRIMARY KEY (session, version),
                UNIQUE (session, id)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        "search and erasure",
        (
            # How far each session is in the search index, which knows sessions by number.
            """CREATE TABLE trimtab_indexed (
                session TEXT PRIMARY KEY NOT NULL,
                number INTEGER NOT NULL UNIQUE,
                version INTEGER NOT NULL
            ) WITHOUT ROWID""",
            # How often something was to be erased, and up to which of these the files were cleaned.
            """CREATE TABLE trimtab_erasure (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                asked INTEGER NOT NULL,
                done INTEGER NOT NULL
            )""",
            "INSERT INTO trimtab_erasure VALUES (1, 0, 0)",
        ),
    ),
    Migration(
        "incarnations",
        (
            # Which of the sessions of its name it is: one that is deleted and begun anew is another.
            "ALTER TABLE trimtab_sessions ADD COLUMN incarnation TEXT NOT NULL DEFAULT ''",
            "UPDATE trimtab_sessions SET incarnation = lower(hex(randomblob(8)))",
        ),
    ),
)
"""Only ever added to: a released one is never changed."""


def schema_version(connection: sqlite3.Connection, /) -> int:
    """Return the version of a database's schema, 0 where there is none yet.

    Raises:
        StoreError: A newer trimtab wrote it.
    """
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'trimtab_schema'"
    ).fetchone()
    if there is None:
        return 0
    version = int(connection.execute("SELECT coalesce(max(version), 0) FROM trimtab_schema").fetchone()[0])
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the database has schema {version}, and this trimtab knows {len(MIGRATIONS)}: a newer one wrote"
            " it. Upgrade trimtab; nothing was changed"
        )
    return version


def migrate(connection: sqlite3.Connection, /) -> None:
    """Apply the migrations that are missing, all in one transaction; the caller rolls back on an error.

    Raises:
        StoreError: A newer trimtab wrote it.
    """
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS trimtab_schema"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied REAL NOT NULL)"
    )
    for version in range(schema_version(connection) + 1, len(MIGRATIONS) + 1):
        name, statements = MIGRATIONS[version - 1]
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO trimtab_schema VALUES (?, ?, ?)", (version, name, time.time()))
    connection.execute("COMMIT")
