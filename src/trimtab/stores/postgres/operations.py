"""What `PostgresStore` asks the server: its tables, and each operation once, for both colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from trimtab._shared.steps import Pause, Steps, relay
from trimtab.errors import ConfigurationError, CorruptSessionError, StoreError, StoreUnavailableError
from trimtab.stores.base import Appended, AppendRequest, Event, Found, LoadRequest, SearchRequest
from trimtab.stores.labels import Labels, Receipt, SessionEntry, Sessions, key_records, keys_of
from trimtab.stores.lists import (
    BATCH_EVENTS,
    BATCH_SESSIONS,
    ListRequest,
    Removal,
    entry_of,
    left_by,
    remove_by_name,
    remove_owned,
)
from trimtab.stores.newest import Newest, newest_in
from trimtab.stores.rows import (
    PRUNED,
    Row,
    check_incarnation,
    check_session_name,
    conflict,
    event_beyond,
    from_row,
    id_taken,
    not_stored,
    same_event,
    storable_ids,
    to_rows,
    without_gaps,
)
from trimtab.stores.search import MAX_POSTINGS, Ranking, event_terms, found_in_order, usable_terms

# Tables, and the migrations that make them.
#
# No column is given statistics: the server would keep samples of texts in `pg_statistic`, where neither a
# deletion nor a vacuum reaches them.


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


def _relevance(tables: Tables) -> Iterator[str]:
    # How often, and in how long a text: a row for each term of a message, the newest of a term side by side.
    yield f"DROP TABLE {tables.terms}"
    yield f"""
        CREATE TABLE {tables.terms} (
            session bigint NOT NULL,
            term text COLLATE "C" NOT NULL,
            version bigint NOT NULL,
            often integer NOT NULL,
            chars integer NOT NULL,
            PRIMARY KEY (session, term, version)
        )"""
    yield f"ALTER TABLE {tables.terms} ALTER term SET STATISTICS 0"
    yield f"ALTER TABLE {tables.sessions} ADD COLUMN texts bigint NOT NULL DEFAULT 0"
    yield f"ALTER TABLE {tables.sessions} ADD COLUMN chars bigint NOT NULL DEFAULT 0"
    yield f"UPDATE {tables.sessions} SET indexed = 0"


def _spellings(tables: Tables) -> Iterator[str]:
    # The terms of a text are others: without accents, in parts. Sessions are indexed anew as they grow.
    yield f"TRUNCATE {tables.terms}"
    yield f"UPDATE {tables.sessions} SET indexed = 0, texts = 0, chars = 0"


def _owners(tables: Tables) -> Iterator[str]:
    # Columns with a default: a process of an older trimtab may go on writing, and knows none of them. What
    # it adds to a session does not move `used`; `expire` looks at the newest event before it removes one.
    yield f"""
        ALTER TABLE {tables.sessions}
            ADD COLUMN used double precision NOT NULL DEFAULT extract(epoch from now()),
            ADD COLUMN owner text COLLATE "C",
            ADD COLUMN metadata text COLLATE "C",
            ADD COLUMN labels text[] COLLATE "C",
            ADD COLUMN ttl double precision,
            ADD COLUMN expires double precision"""
    for column in ("owner", "metadata", "labels"):
        yield f"ALTER TABLE {tables.sessions} ALTER {column} SET STATISTICS 0"
    yield f"""
        UPDATE {tables.sessions} s SET used = e.time FROM {tables.events} e
        WHERE e.session = s.key AND e.version = s.version"""
    for name, columns in (
        ("used", "(used, name)"),
        ("owner", "(owner, name) WHERE owner IS NOT NULL"),
        ("owner_used", "(owner, used, name) WHERE owner IS NOT NULL"),
        ("labels", "USING gin (labels) WITH (fastupdate = off) WHERE labels IS NOT NULL"),
        ("end", "(expires) WHERE expires IS NOT NULL"),
    ):
        on = f"CREATE INDEX trimtab_sessions_{name} ON {tables.sessions}"
        yield f"{on} {columns}"


Migration: TypeAlias = Callable[[Tables], Iterator[str]]

MIGRATIONS: tuple[tuple[str, Migration], ...] = (
    ("001_logs", _logs),
    ("002_search", _search),
    ("003_short_list", _short_list),
    ("004_relevance", _relevance),
    ("005_spellings", _spellings),
    ("006_owners", _owners),
)
"""Each applied once, in this order, and recorded by its name. One that was released never changes."""


def prepare(tables: Tables) -> Steps[None]:
    """Make the tables, or bring them up to date."""
    if (yield from _due_migrations(tables)):
        yield Execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        yield Execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        yield from _make_place(tables)
        missing = yield from _due_migrations(tables)  # another process may have been faster
        for name, migration in missing:
            for sql in migration(tables):
                yield Execute(sql)
            yield Execute(f"INSERT INTO {tables.migrations} (name) VALUES (%s)", (name,))
        yield Execute("COMMIT")


def _due_migrations(tables: Tables) -> Steps[list[tuple[str, Migration]]]:
    there = yield Execute(
        "SELECT current_setting('server_encoding'), to_regclass(%s) IS NOT NULL", (tables.migrations,)
    )
    ((encoding, is_there),) = there
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database stores text as {encoding}; create one with ENCODING 'UTF8' for sessions"
        )
    rows = (yield Execute(f"SELECT name FROM {tables.migrations}")) if is_there else []
    applied = {name for (name,) in rows}
    unknown = sorted(applied - {name for name, _ in MIGRATIONS})
    if unknown:
        raise ConfigurationError(
            f"the tables in schema {tables.schema!r} were made by a newer version of trimtab"
            f" ({', '.join(unknown)}); install that version, or name another schema"
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


# Operations.


MOST = 2**62
"""Above every version, and within a bigint."""

FILL_EVENTS = 200
"""Events whose terms are written in one transaction, by the append that makes so many wait for it; writers
of the session wait meanwhile."""

SCRUBBING_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts to rewrite a table that an older transaction still sees the rows of."""

SCRUBBED_REMOVAL = 2**32
"""What a removal counts in the note of what is to be rewritten, if its handle rewrites them; others count 1.

An order that finds nothing to remove rewrites tables only after such a removal that was killed too early.
"""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_COLUMNS = "e.version, e.id, e.kind, e.time, e.body, e.seal"
_ROWS = (
    "unnest(%s::bigint[], %s::text[], %s::text[], %s::float8[], %s::text[], %s::text[])"
    " AS r(version, id, kind, time, body, seal)"
)


class Operations:
    """The operations of a store on its tables."""

    def __init__(self, tables: Tables, *, psycopg: Any, scrub_on_delete: bool = True) -> None:
        self._tables = tables
        self._psycopg = psycopg
        self._scrub_on_delete = scrub_on_delete

    def append(self, request: AppendRequest) -> Steps[Appended]:
        """Add events, and say the version."""
        rows, rewrites = to_rows(request)
        if rewrites:
            yield Execute(_BEGIN)
        try:
            added = yield self._insert(request, rows)
        except self._psycopg.errors.UniqueViolation:
            added = []
        if not added:
            if rewrites:
                yield Execute("ROLLBACK")
            return (yield from self._refusal(request))
        ((key, indexed),) = added
        if rewrites:
            yield from self._rewrite(request, key, rewrites, indexed=indexed)
            yield Execute("COMMIT")
        version = request.expected_version + len(rows)
        if version - indexed >= FILL_EVENTS:
            # What fails here is told by the search: the events are stored.
            with suppress(self._psycopg.Error, StoreError):
                # One batch more than was added, so that the log of an older version catches up.
                for _ in range(1 + len(rows) // FILL_EVENTS):
                    yield from self._fill(key, request.session)
        return Appended(version, incarnation=str(key))

    def _insert(self, request: AppendRequest, rows: list[Row]) -> Execute:
        """Take the place after the expected version and fill it: one statement, all or nothing.

        Of two writers the second waits for the first at the row of the session, and then finds it moved.
        """
        name, expected = request.session, request.expected_version
        labels, used = request.new_labels(), request.used
        version = expected + len(rows)
        if expected:
            known = "expires = coalesce(%s::float8, used) + ttl"
            known = known if labels is None else f"(owner, metadata, labels, ttl, expires) = ({_LABELS})"
            taken = (
                f"UPDATE {self._tables.sessions} SET version = %s, used = coalesce(%s::float8, used), {known}"
            )
            taken += " WHERE name = %s AND version = %s AND key::text = coalesce(%s, key::text)"
            put: tuple[object, ...] = (used,) if labels is None else _label_columns(labels, used)
            place: tuple[object, ...] = (version, used, *put, name, expected, request.incarnation)
        else:
            # who says which session was meant knows of one, and begins none
            taken = f"INSERT INTO {self._tables.sessions}"
            taken += " (name, version, used, owner, metadata, labels, ttl, expires)"
            taken += f" SELECT %s::text, %s::bigint, %s::float8, {_LABELS} WHERE %s::text IS NULL"
            taken += " ON CONFLICT (name) DO NOTHING"
            place = (name, version, used, *_label_columns(labels or Labels(), used), request.incarnation)
        sql = f"""
            WITH taken AS ({taken} RETURNING key, indexed),
            added AS (
                INSERT INTO {self._tables.events} (session, version, id, kind, time, body, seal)
                SELECT taken.key, r.* FROM taken, {_ROWS}
            )
            SELECT key, indexed FROM taken"""
        return Execute(sql, (*place, *(_columns(rows) or [[]] * len(Row._fields))))

    def _refusal(self, request: AppendRequest) -> Steps[Appended]:
        """Find out why nothing was added."""
        first = request.events[0].id if request.events else None
        sql = f"""
            SELECT s.key, s.version, {_COLUMNS}
            FROM {self._tables.sessions} s
            LEFT JOIN {self._tables.events} e ON e.session = s.key AND e.id = %s
            WHERE s.name = %s"""
        rows = yield Execute(sql, (first, request.session))
        key, version, *row = rows[0] if rows else (None, 0, None)
        check_incarnation(request.session, request.incarnation, _incarnation(key))
        if row[0] is not None:
            stored = from_row(row, session=request.session, incarnation=str(key))
            return same_event(request, stored, version=version)
        if version != request.expected_version:
            raise conflict(request, version)
        ids = [event.id for event in request.events]
        sql = f"""
            SELECT id, version FROM {self._tables.events}
            WHERE session = %s AND (id = ANY(%s) OR version > %s)"""
        for event_id, at in (yield Execute(sql, (key, ids, version))):
            if event_id in ids:
                raise id_taken(request, event_id)
            raise event_beyond(request.session, version, at=at)
        raise conflict(request, version)  # it was deleted meanwhile, or is just being made

    def _rewrite(self, request: AppendRequest, key: int, rewrites: list[Row], *, indexed: int) -> Steps[None]:
        """Replace bodies, and the terms they are found by; the row of the session is locked by now."""
        changed = [event for event in request.rewrites if event.version <= indexed]
        sql = f"SELECT {_COLUMNS} FROM {self._tables.events} e WHERE e.session = %s AND e.version = ANY(%s)"
        rows = yield Execute(sql, (key, [event.version for event in changed]))
        try:
            old = [from_row(row, session=request.session) for row in rows]
        except CorruptSessionError:
            yield Execute("ROLLBACK")
            raise
        sql = f"""
            UPDATE {self._tables.events} e SET kind = r.kind, body = r.body, seal = r.seal FROM {_ROWS}
            WHERE e.session = %s AND (e.version, e.id, e.time) = (r.version, r.id, r.time)
            AND r.kind IN (e.kind, '{PRUNED}')
            RETURNING e.version"""
        done = {version for (version,) in (yield Execute(sql, (*_columns(rewrites), key)))}
        for row in rewrites:
            if row.version not in done:
                sql = f"SELECT kind FROM {self._tables.events} WHERE session = %s AND version = %s"
                kinds = yield Execute(sql, (key, row.version))
                raise not_stored(request, row.version, kind=kinds[0][0] if kinds else None)
        yield from self._remove_terms(key, old)
        yield from self._add_terms(key, changed)
        yield self._note_removal(scrubs=request.erase)

    def load(self, request: LoadRequest) -> Steps[list[Event]]:
        """Read events."""
        check_session_name(request.session)
        after, before = max(0, request.after), MOST if request.before is None else request.before
        bounds: list[object] = [min(after, MOST), max(0, min(before, MOST))]
        only = ""
        if request.ids is not None:
            only = "AND e.id = ANY(%s)"
            bounds.append(storable_ids(request.ids))
        # The session's own row comes along, in the same moment: a missing end is noticed by it.
        sql = f"""
            SELECT s.key, s.version, {_COLUMNS}
            FROM {self._tables.sessions} s LEFT JOIN {self._tables.events} e
            ON e.session = s.key AND e.version > %s AND e.version < %s {only}
            WHERE s.name = %s ORDER BY e.version {"DESC" if request.newest_first else "ASC"} LIMIT %s"""
        limit = None if request.limit is None else min(request.limit, MOST)
        rows = yield Execute(sql, (*bounds, request.session, limit))
        key, version = rows[0][:2] if rows else (None, 0)
        if not rows and request.limit == 0:
            return []  # there is no row to tell by
        check_incarnation(request.session, request.incarnation, _incarnation(key))
        events = [
            from_row(row, session=request.session, incarnation=str(key))
            for _, _, *row in rows
            if row[0] is not None
        ]
        return without_gaps(events, request, version=version) if rows else []

    def load_newest(self, names: Sequence[str]) -> Steps[Newest]:
        """Read the newest events of sessions."""
        sql = f"""
            SELECT s.name, s.key::text, s.version, {_COLUMNS}
            FROM {self._tables.sessions} s LEFT JOIN {self._tables.events} e
            ON e.session = s.key AND e.version = s.version
            WHERE s.name = ANY(%s)"""
        return newest_in((yield Execute(sql, ([check_session_name(name) for name in names],))))

    def search(self, request: SearchRequest) -> Steps[Found]:
        """Find messages."""
        check_session_name(request.session)
        terms = usable_terms(request.terms)
        sql = f"SELECT key, version, indexed, texts, chars FROM {self._tables.sessions} WHERE name = %s"
        rows = yield Execute(sql, (request.session,))
        check_incarnation(request.session, request.incarnation, _incarnation(rows[0][0] if rows else None))
        if not rows or not terms or not request.limit:
            return Found()
        key, version, indexed, *_ = rows[0]
        while indexed < version:
            indexed = yield from self._fill(key, request.session)
            rows = yield Execute(sql, (request.session,))
            if not rows:
                return Found()  # it was deleted meanwhile
        head = (rows[0][1], *rows[0][3:])
        ranking = Ranking.of_rows(head, terms, (yield self._postings(key, terms, MAX_POSTINGS)))
        if common := ranking.look_further():
            ranking.add_rows((yield self._postings(key, common, ranking.most)))
        best: list[int] = yield from relay(
            ranking.best(min(request.limit, MOST)), lambda versions: self._kinds(key, versions)
        )
        sql = f"SELECT {_COLUMNS} FROM {self._tables.events} e WHERE e.session = %s AND e.version = ANY(%s)"
        rows = yield Execute(sql, (key, best))
        events = [from_row(row, session=request.session, incarnation=str(key)) for row in rows]
        return found_in_order(best, events, since=ranking.since)

    def _postings(self, key: int, terms: Sequence[str], most: int) -> Execute:
        """Read the newest places of each term by itself: the rest of its places is not read."""
        sql = f"""
            SELECT q.term, t.version, t.often, t.chars
            FROM unnest(%s::text[]) AS q(term) CROSS JOIN LATERAL (
                SELECT version, often, chars FROM {self._tables.terms}
                WHERE session = %s AND term = q.term ORDER BY version DESC LIMIT %s
            ) t"""
        return Execute(sql, (list(terms), key, most + 1))

    def _kinds(self, key: int, versions: Sequence[int]) -> Steps[dict[int, str]]:
        """Say of what kind events are."""
        sql = f"SELECT version, kind FROM {self._tables.events} WHERE session = %s AND version = ANY(%s)"
        return dict((yield Execute(sql, (key, list(versions)))))

    def _fill(self, key: int, session: str) -> Steps[int]:
        """Write the terms of the next events, a batch at most; say up to which version it was done.

        Under the lock of the session: a text that is redacted meanwhile must not come back as terms.
        """
        yield Execute(_BEGIN)
        sql = f"SELECT version, indexed FROM {self._tables.sessions} WHERE key = %s FOR UPDATE"
        locked = yield Execute(sql, (key,))
        version, indexed = locked[0] if locked else (MOST, MOST)
        if indexed < version:
            sql = f"""
                SELECT {_COLUMNS} FROM {self._tables.events} e
                WHERE e.session = %s AND e.version > %s ORDER BY e.version LIMIT %s"""
            rows = yield Execute(sql, (key, indexed, FILL_EVENTS))
            try:
                events = [from_row(row, session=session) for row in rows]
            except CorruptSessionError:
                yield Execute("ROLLBACK")
                raise
            indexed = MOST
            if events:
                yield from self._add_terms(key, events)
                indexed = events[-1].version
                sql = f"UPDATE {self._tables.sessions} SET indexed = %s WHERE key = %s"
                yield Execute(sql, (indexed, key))
        yield Execute("COMMIT")
        return indexed

    def _add_terms(self, key: int, events: Iterable[Event]) -> Steps[None]:
        found = [(event.version, *event_terms(event)) for event in events]
        rows = [
            (term, version, often, chars)
            for version, chars, terms in found
            for term, often in sorted(terms.items())
        ]
        if rows:
            sql = f"""
                INSERT INTO {self._tables.terms} (session, term, version, often, chars)
                SELECT %s, r.* FROM unnest(%s::text[], %s::bigint[], %s::int[], %s::int[])
                    AS r(term, version, often, chars)"""
            yield Execute(sql, (key, *_columns(rows)))
        yield self._count(key, [chars for _, chars, _ in found], sign=1)

    def _remove_terms(self, key: int, events: Iterable[Event]) -> Steps[None]:
        found = [(event.version, *event_terms(event)) for event in events]
        rows = [(term, version) for version, _, terms in found for term in terms]
        if rows:
            sql = f"""
                DELETE FROM {self._tables.terms} t USING unnest(%s::text[], %s::bigint[]) AS r(term, version)
                WHERE t.session = %s AND t.term = r.term AND t.version = r.version"""
            yield Execute(sql, (*_columns(rows), key))
        yield self._count(key, [chars for _, chars, _ in found], sign=-1)

    def _count(self, key: int, chars: list[int], *, sign: int) -> Execute:
        """Note how many texts came into the index, and how long they are; or went out of it."""
        sql = f"UPDATE {self._tables.sessions} SET texts = texts + %s, chars = chars + %s WHERE key = %s"
        return Execute(sql, (sign * sum(one > 0 for one in chars), sign * sum(chars), key))

    def delete(self, session: str, incarnation: str | None) -> Steps[Receipt]:
        """Remove the rows of a session."""
        check_session_name(session)
        # The row is locked by a statement of its own: the next one then sees what a writer added last.
        yield Execute(_BEGIN)
        sql = f"SELECT key FROM {self._tables.sessions} WHERE name = %s FOR UPDATE"
        keys = [key for (key,) in (yield Execute(sql, (session,)))]
        if keys:
            check_incarnation(session, incarnation, _incarnation(keys[0]))
        receipt = yield from self._remove(keys)
        yield Execute("COMMIT")
        return receipt

    def _remove(self, keys: list[int], entries: Iterable[SessionEntry] = ()) -> Steps[Receipt]:
        """Remove the rows of sessions that are locked: a statement for each table, however many there are.

        Args:
            keys: Numbers of the sessions.
            entries: What the list says of them: their key records go in the same step.
        """
        if not keys:
            return Receipt()
        records, rows = key_records(entries), []
        if records:  # locked after the sessions, by everybody
            named = f"{self._tables.sessions} WHERE name = ANY(%s)"
            sql = f"SELECT key, name FROM {named} ORDER BY key FOR UPDATE"
            rows = yield Execute(sql, ([*records],))
        both = keys + [key for key, _ in rows]
        sql = f"""
            WITH gone AS (
                DELETE FROM {self._tables.events} WHERE session = ANY(%s)
                RETURNING kind, octet_length(body) AS size, session = ANY(%s) AS counts
            )
            SELECT count(*) FILTER (WHERE kind = 'message'), coalesce(sum(size), 0)::bigint
            FROM gone WHERE counts"""
        ((messages, size),) = yield Execute(sql, (both, keys))
        yield Execute(f"DELETE FROM {self._tables.terms} WHERE session = ANY(%s)", (both,))
        yield Execute(f"DELETE FROM {self._tables.sessions} WHERE key = ANY(%s)", (both,))
        yield self._note_removal(scrubs=True)
        removed = tuple([records.pop(name) for _, name in rows])
        left = tuple(records.values())
        return Receipt(sessions=len(keys), messages=messages, bytes=size, keys=left, removed_keys=removed)

    def delete_owned(self, owner: str) -> Steps[Receipt]:
        """Remove the rows of all sessions of an owner."""
        return remove_owned(owner, self.list_page, self._remove_batch)

    def delete_many(self, names: Sequence[str]) -> Steps[Receipt]:
        """Remove the rows of sessions by their names."""
        return remove_by_name(names, self._remove_batch)

    def _remove_batch(self, batch: Removal) -> Steps[Receipt]:
        """Remove what is still as it was listed, all or nothing."""
        yield Execute(_BEGIN)
        # in one order: two such orders do not wait for each other in a circle
        named = f"{self._tables.sessions} WHERE name = ANY(%s)"
        sql = f"SELECT key, name, owner FROM {named} ORDER BY key FOR UPDATE"
        rows = yield Execute(sql, (batch.names,))
        now = {name: (str(key), owner) for key, name, owner in rows}
        gone = batch.meant(now)
        receipt = yield from self._remove([key for key, name, _ in rows if name in gone], gone)
        yield Execute("COMMIT")
        return replace(receipt, left=left_by(batch, gone, now))

    def expire(self, now: float, limit: int) -> Steps[Receipt]:
        """Remove sessions whose time is over, batch by batch, without those that another process is at."""
        receipt, done = Receipt(), False
        while not done and receipt.sessions < limit:
            batch = yield from self._expire_batch(now, min(BATCH_SESSIONS, limit - receipt.sessions))
            receipt, done = receipt + batch, not batch.more
        sql = f"SELECT EXISTS (SELECT 1 FROM {self._tables.sessions} WHERE expires <= %s)"
        more = not done and (yield Execute(sql, (now,)))[0][0]
        return replace(receipt, more=more)

    def _expire_batch(self, now: float, most: int) -> Steps[Receipt]:
        """Remove some; `more` where anything was done."""
        yield Execute(_BEGIN)
        sql = f"""
            SELECT key FROM {self._tables.sessions} WHERE expires <= %s
            ORDER BY expires LIMIT %s FOR UPDATE SKIP LOCKED"""
        keys = [key for (key,) in (yield Execute(sql, (now, most)))]
        # now that they are locked: what was added until then is seen; a newest event may be lost
        sql = f"""
            SELECT coalesce((
                SELECT time FROM {self._tables.events} e WHERE e.session = s.key AND e.version = s.version
            ), s.used), s.name, s.version, s.used, s.owner, s.metadata, s.ttl, s.key
            FROM {self._tables.sessions} s WHERE s.key = ANY(%s) ORDER BY s.expires"""
        rows = (yield Execute(sql, (keys,))) if keys else []
        over: dict[int, SessionEntry] = {}
        events = relisted = 0
        for used, *row in rows:
            version, ttl, key = row[1], row[5], row[6]
            if used + ttl > now:  # by an older trimtab, which did not note it
                sql = f"UPDATE {self._tables.sessions} SET used = %s, expires = %s + ttl WHERE key = %s"
                yield Execute(sql, (used, used, key))
                relisted += 1
            elif not over or events + version <= BATCH_EVENTS:
                over[key] = entry_of(*row)
                events += version
        receipt = yield from self._remove([*over], over.values())
        yield Execute("COMMIT")
        return replace(receipt, more=receipt.sessions + relisted > 0)

    def list_page(self, request: ListRequest) -> Steps[Sessions]:
        """List sessions: one statement."""
        conditions = [*request.conditions("name", "%s")]
        found, listed = self._tables.sessions, ""
        if request.keys:  # found first: for a short page the planner would go through all names
            listed = f"WITH found AS MATERIALIZED (SELECT * FROM {found} WHERE labels @> %s::text[])"
            found = "found"
        where = " AND ".join(sql for sql, _ in conditions) or "true"
        values = [*([request.keys] if request.keys else []), *(one for _, some in conditions for one in some)]
        sql = f"""
            {listed} SELECT name, version, used, owner, metadata, ttl, key FROM {found}
            WHERE {where} ORDER BY {request.order("name")} LIMIT %s"""
        rows = yield Execute(sql, (*values, request.asked))
        return request.page([entry_of(*row) for row in rows])

    def _note_removal(self, *, scrubs: bool) -> Execute:
        """Note that tables are to be rewritten, and whether this handle is about to do it."""
        more = SCRUBBED_REMOVAL if scrubs and self._scrub_on_delete else 1
        return Execute(f"UPDATE {self._tables.scrubbing} SET wanted = wanted + %s", (more,))

    def is_unclean(self) -> Steps[bool]:
        """Tell whether a handle that rewrites tables removed anything, and did not come to rewrite them."""
        sql = f"SELECT 1 FROM {self._tables.scrubbing} WHERE wanted >= %s"
        return bool((yield Execute(sql, (SCRUBBED_REMOVAL,))))

    def scrub(self) -> Steps[None]:
        """Rewrite the tables, whatever others want meanwhile, if anything was removed since the last time."""
        rows = yield Execute(f"SELECT wanted FROM {self._tables.scrubbing}")
        if not rows:
            raise CorruptSessionError(
                f"{self._tables.scrubbing} is damaged: the row that says whether removed bytes are still"
                f" there is missing. INSERT INTO {self._tables.scrubbing} VALUES (1), and call scrub()"
            )
        wanted = rows[0][0]
        if wanted:
            for table in (self._tables.events, self._tables.terms, self._tables.sessions):
                yield from self._vacuum(table)
            sql = f"UPDATE {self._tables.scrubbing} SET wanted = greatest(0, wanted - %s)"
            yield Execute(sql, (wanted,))

    def _vacuum(self, table: str) -> Steps[None]:
        for seconds in SCRUBBING_PAUSES:
            ((before,),) = yield Execute("SELECT pg_relation_filenode(%s::regclass)", (table,))
            details = yield Execute(f"VACUUM (FULL, VERBOSE) {table}", details=True)
            ((after,),) = yield Execute("SELECT pg_relation_filenode(%s::regclass)", (table,))
            if before == after:  # the server only warns
                raise ConfigurationError(
                    f"{table} was not rewritten: only its owner may do that. The rows are removed, but their"
                    " bytes are not. Connect as the role that made the tables, or pass"
                    " scrub_on_delete=False"
                )
            if not any(map(_leading_number, details)):
                return
            yield Pause(seconds)
        raise StoreUnavailableError(
            f"the rows are gone, but {table} still contains their bytes: a transaction that began earlier"
            " may see them. Wait for it to end, and call scrub()"
        )


_LABELS = "%s::text, %s::text, %s::text[], %s::float8, %s::float8"


def _label_columns(labels: Labels, used: float | None) -> tuple[object, ...]:
    """Write labels as `_LABELS` takes them: owner, metadata, its keys, time to live and end."""
    metadata = labels.metadata_text if labels.metadata else None
    keys = keys_of(labels.metadata) or None
    return labels.owner, metadata, keys, labels.ttl, None if used is None else labels.end_after(used)


def _incarnation(key: int | None) -> str | None:
    """Say which session of its name one is: numbers of sessions are given once."""
    return None if key is None else str(key)


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Turn rows into one list a column, as `unnest` takes them."""
    return [list(column) for column in zip(*rows, strict=True)]


def _leading_number(detail: str) -> int:
    """Read the number of rows that could not be removed; the words around it are in any language."""
    digits = "".join(one for one in detail.partition("\n")[0] if one.isdigit())
    return int(digits or "0")
