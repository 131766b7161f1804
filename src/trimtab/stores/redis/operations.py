"""What `RedisStore` asks the server: its scripts, and each operation once, for both colours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from struct import Struct
from typing import Any, NamedTuple

from trimtab._shared.steps import Pause, Steps, relay
from trimtab.errors import ConfigurationError, CorruptSessionError, StoreUnavailableError
from trimtab.stores.base import Appended, AppendRequest, Event, Found, LoadRequest, SearchRequest
from trimtab.stores.labels import Receipt
from trimtab.stores.newest import Newest, newest_in
from trimtab.stores.redis.commands import INCARNATION, Command, Script, text_of
from trimtab.stores.redis.lists import KEEP_LISTED, Listing
from trimtab.stores.rows import (
    PRUNED,
    Row,
    check_incarnation,
    check_session_name,
    conflict,
    event_beyond,
    from_row,
    id_taken,
    new_incarnation,
    not_stored,
    same_event,
    storable_ids,
    to_rows,
    without_gaps,
)
from trimtab.stores.search import MAX_POSTINGS, Ranking, event_terms, found_in_order, usable_terms

# Scripts. Each touches one key of a session, so that it runs on any cluster; on one server the list, too.
#
# A session is one hash: field `v` its version, `n` its incarnation, `e<version>` a row, `i<id>` the version
# of an id. One key is removed, evicted or expired whole, never by half.
#
# So its index of terms is in there too: `x` the schema of the index, the version up to which it is indexed,
# how many texts that are and how long these are together, `r` the version of the last rewrite, `t<term>` the
# numbers of the spans of `SPAN_EVENTS` versions that have the term, `t<term> <span>` a posting of ten bytes
# for each that has it: which version (two), how often (four), how long the text is (four). Of a term one span
# at most is written anew when events are added.


PAGE_EVENTS = 500
"""Rows read by one command: what a server that answers one command at a time does in about a millisecond."""

SPAN_EVENTS = 250
"""Versions of one field of a term: at most 2.5 kB are written anew when an event with it is added."""

POSTING = Struct(">HII")
"""Which version of a span has a term, how often, and how long its text is."""


_TERMS = """
local index = redis.call('HGET', key, 'x') or ''
if index ~= '' and not string.find(index, '^4 %d+ %d+ %d+$') then
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 1) == 't' then redis.call('HDEL', key, field) end
  end
  redis.call('HDEL', key, 'x')
  index = ''
end
local indexed, texts, chars = string.match(index, '^4 (%d+) (%d+) (%d+)$')
indexed, texts, chars = tonumber(indexed or '0'), tonumber(texts or '0'), tonumber(chars or '0')
local function add(term, span, postings)
  local field = 't' .. term .. ' ' .. span
  local there = redis.call('HGET', key, field)
  if not there then
    local spans = redis.call('HGET', key, 't' .. term)
    redis.call('HSET', key, 't' .. term, (spans or '') .. ' ' .. span)
  end
  redis.call('HSET', key, field, (there or '') .. postings)
end
local function remove(term, span, offset)
  local field = 't' .. term .. ' ' .. span
  local there = redis.call('HGET', key, field) or ''
  for at = 1, string.len(there), 10 do
    if string.sub(there, at, at + 1) == offset then
      there = string.sub(there, 1, at - 1) .. string.sub(there, at + 10)
      break
    end
  end
  if there ~= '' then
    redis.call('HSET', key, field, there)
    return
  end
  redis.call('HDEL', key, field)
  local left = ''
  for other in string.gmatch(redis.call('HGET', key, 't' .. term) or '', '%d+') do
    if other ~= span then left = left .. ' ' .. other end
  end
  if left == '' then
    redis.call('HDEL', key, 't' .. term)
  else
    redis.call('HSET', key, 't' .. term, left)
  end
end
"""
"""The name of a field is the term: what nothing has any more leaves no field.

An index of schema 2 knew which texts have a term, and not how often; one of schema 3 had other terms.
It goes, and is made anew in batches.
"""

APPEND = Script.of(
    INCARNATION
    + _TERMS
    + KEEP_LISTED
    + """
local name, ttl, groups, labels, used = pop(), pop(), pop(), pop(), pop()
local expected, added, rewritten = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local version = tonumber(redis.call('HGET', key, 'v') or '0')
if ARGV[4] ~= '' and ARGV[4] ~= incarnation then
  return {'deleted', version, incarnation}
end
local same = added > 0 and redis.call('HGET', key, 'i' .. ARGV[7])
if same then
  return {'same', version, incarnation, redis.call('HGET', key, 'e' .. same) or '', tonumber(same)}
end
local rewrite = redis.call('HGET', key, 'r') or '0'
local seen = version .. ' ' .. (incarnation or '') .. ' ' .. rewrite
if version ~= expected or (rewritten > 0 and ARGV[6] ~= seen) then
  return {'conflict', version, incarnation}
end
local first_rewrite = 7 + 2 * added
local first_term = first_rewrite + 5 * rewritten
for at = 1, added do
  local id = ARGV[5 + 2 * at]
  if redis.call('HEXISTS', key, 'i' .. id) == 1 then
    return {'taken', version, incarnation, id}
  end
  if redis.call('HEXISTS', key, 'e' .. (version + at)) == 1 then
    return {'beyond', version, incarnation}
  end
end
for at = 0, rewritten - 1 do
  local place, head = ARGV[first_rewrite + 5 * at], ARGV[first_rewrite + 5 * at + 1]
  local row = redis.call('HGET', key, 'e' .. place)
  if not row or string.sub(row, 1, string.len(head)) ~= head then
    return {'other', version, incarnation, tonumber(place)}
  end
end
for at = 1, added do
  local id, row = ARGV[5 + 2 * at], ARGV[6 + 2 * at]
  redis.call('HSET', key, 'e' .. (version + at), row, 'i' .. id, version + at)
end
for at = 0, rewritten - 1 do
  local first = first_rewrite + 5 * at
  redis.call('HSET', key, 'e' .. ARGV[first], ARGV[first + 2])
  if tonumber(ARGV[first]) <= indexed then
    texts, chars = texts + tonumber(ARGV[first + 3]), chars + tonumber(ARGV[first + 4])
    index = string.format('4 %.0f %.0f %.0f', indexed, texts, chars)
    redis.call('HSET', key, 'x', index)
  end
end
for at = first_term, #ARGV, 5 do
  if tonumber(ARGV[at + 1]) <= indexed then
    if ARGV[at] == '+' then
      add(ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
    else
      remove(ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
    end
  end
end
if rewritten > 0 then
  local last = math.max(version + added, tonumber(rewrite) + 1)
  redis.call('HSET', key, 'r', string.format('%.0f', last))
end
if not incarnation then
  incarnation = ARGV[5]
  redis.call('HSET', key, 'n', incarnation)
end
redis.call('HSET', key, 'v', version + added)
return {'added', version + added, incarnation, index, used ~= '' and list(name, used, labels, groups, ttl)}
"""
)
"""Check everything, then write everything: a script is not undone, so it may not fail in between.

ARGV: expected version, events, rewrites; the incarnation that is meant (none: '') and one for a session that
begins; version, incarnation and last rewrite that the rewritten rows were read at; id and row of each event;
version of each rewrite, head of the row it replaces, its row, how many texts more that makes and how many
characters; "+" or "-", version, term, span and posting of each term that a rewrite adds or removes, of what
it removes the first two bytes; and last the five of `Listing.words`.
"""

LOAD = Script.of(
    INCARNATION
    + """
local version = tonumber(redis.call('HGET', key, 'v') or '0')
local rows = {version, incarnation, redis.call('HGET', key, 'x') or '',
  redis.call('HGET', key, 'r') or '0'}
if ARGV[1] == 'versions' then
  for at = 2, #ARGV do
    rows[#rows + 1] = ARGV[at]
    rows[#rows + 1] = redis.call('HGET', key, 'e' .. ARGV[at]) or ''
  end
elseif ARGV[1] == 'heads' then
  for at = 2, #ARGV do
    rows[#rows + 1] = ARGV[at]
    rows[#rows + 1] = string.match(redis.call('HGET', key, 'e' .. ARGV[at]) or '', '^[^\\n]*')
  end
elseif ARGV[1] == 'ids' then
  for at = 2, #ARGV do
    local place = redis.call('HGET', key, 'i' .. ARGV[at])
    if place then
      rows[#rows + 1] = place
      rows[#rows + 1] = redis.call('HGET', key, 'e' .. place) or ''
    end
  end
else
  local first, last, step = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  if last > version then last = version end
  local from, to = first, last
  if step < 0 then from, to = last, first end
  local left = tonumber(ARGV[5])
  for place = from, to, step do
    if left == 0 then break end
    left = left - 1
    rows[#rows + 1] = place
    rows[#rows + 1] = redis.call('HGET', key, 'e' .. string.format('%.0f', place)) or ''
  end
end
return rows
"""
)
"""Read head and rows of one moment: (version, incarnation, indexed, rewrite, place, row, place, row…).

A missing row is ''; the incarnation of no session is null.

ARGV: "ids" and the ids; or "versions" and the versions; or "heads", the versions, and of each row
its first line, which says all but the body; or "span", first and last version, 1 or -1, most
rows.
"""

INDEX = Script.of(
    INCARNATION
    + """
if incarnation ~= ARGV[1] or (redis.call('HGET', key, 'x') or '') ~= ARGV[2]
    or (redis.call('HGET', key, 'r') or '0') ~= ARGV[3] then
  return 0
end
"""
    + _TERMS
    + """
for at = 5, #ARGV, 3 do
  add(ARGV[at], ARGV[at + 1], ARGV[at + 2])
end
redis.call('HSET', key, 'x', ARGV[4])
return 1
"""
)
"""Put terms into the index, unless somebody else did or rewrote a text since it was read; 1 if done.

ARGV: incarnation, `x` and version of the last rewrite, all as they were read; `x` as it is now; term, span
and postings, of each.
"""

FIND = Script.of(
    INCARNATION
    + """
local index = redis.call('HGET', key, 'x') or ''
local found = {tonumber(redis.call('HGET', key, 'v') or '0'), incarnation, index}
for at = 2, #ARGV do
  local spans, postings, left = {}, {}, 10 * tonumber(ARGV[1])
  if string.find(index, '^4 %d+ %d+ %d+$') then
    for span in string.gmatch(redis.call('HGET', key, 't' .. ARGV[at]) or '', '%d+') do
      spans[#spans + 1] = tonumber(span)
    end
  end
  table.sort(spans, function(one, other) return one > other end)
  for _, span in ipairs(spans) do
    if left <= 0 then break end
    local some = redis.call('HGET', key, 't' .. ARGV[at] .. ' ' .. string.format('%.0f', span)) or ''
    left = left - string.len(some)
    postings[#postings + 1] = span
    postings[#postings + 1] = some
  end
  found[#found + 1] = postings
end
return found
"""
)
"""Look terms up, each in its newest spans until these have enough of it: (version, incarnation, `x`, (span,
postings, span, postings…), …).

ARGV: how many postings of each term are enough; the terms.
"""

MARK = Script.of(
    """
local schema = tonumber(redis.call('GET', KEYS[1]) or '0')
if schema and schema < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return {redis.call('GET', KEYS[1]), schema or -1}
"""
)
"""Note how sessions are kept, unless a newer trimtab did; the number that is there, and the one that was.

ARGV: ours.
"""

# Operations.


SCHEMA = 5
"""How sessions are kept; a number of one key beside them. Sessions of 1 to 3 get an index as they grow, those
of 1 to 4 are put into the list of sessions when it is first asked for."""

TERMS_SCHEMA = 4
"""How the terms of a session are kept, as its `x` says, and as the scripts read it."""

FILL_EVENTS = 100
"""So many events without an index are put into it at once; fewer are read where they stand."""

FILL_TERMS = 5_000
"""Most terms of more than one event that are put into it at once: the server answers nobody meanwhile."""

MOST = 2**53
"""Above every version, and exact in Lua, whose numbers are doubles."""

FIRST_PAUSE_SECONDS = 0.02
LAST_PAUSE_SECONDS = 1.0
"""Between two looks at whether the server has written its files; twice as long each time."""


class Operations:
    """The operations of a store on its keys."""

    def __init__(
        self,
        prefix: str,
        *,
        redis: Any,
        scrub_seconds: float,
        scrub_on_delete: bool = True,
        cluster: bool = False,
    ) -> None:
        self._prefix = prefix
        self._listing = Listing(prefix, redis=redis, scrub_on_delete=scrub_on_delete, cluster=cluster)
        self.list_page, self.expire = self._listing.list_page, self._listing.expire
        self.delete_owned, self.delete_many = self._listing.delete_owned, self._listing.delete_many
        self._redis = redis
        self._scrub_seconds = scrub_seconds
        self._is_marked = False

    def prepare(self) -> Steps[None]:
        """Check that the server keeps what it is given, and keeps it as we do."""
        for memory in (yield Command(("INFO", "memory"), everywhere=True)):
            policy = str(memory.get("maxmemory_policy", ""))
            if memory.get("maxmemory") and policy.startswith("allkeys"):
                raise ConfigurationError(
                    f"this Redis removes keys when its memory is full (maxmemory-policy {policy}): sessions"
                    " would be lost silently. Set the policy to noeviction, or use another server"
                )
        # Reading only, as a full server and a replica do no more.
        self._is_marked = self._know((yield Command(("GET", self._schema_key))))

    def _know(self, told: bytes | None) -> bool:
        """Tell whether sessions are kept as we do, not as an older trimtab did; refuse what a newer did."""
        schema = None if told is None else text_of(told)
        if schema not in (None, *map(str, range(1, SCHEMA + 1))):
            raise ConfigurationError(
                f"the sessions at {self._prefix!r} were written by a newer version of trimtab (schema"
                f" {schema}, this one knows {SCHEMA}); install that version, or use another prefix"
            )
        return schema == str(SCHEMA)

    @property
    def _schema_key(self) -> str:
        return f"{self._prefix}:schema"

    def append(self, request: AppendRequest) -> Steps[Appended]:
        """Add events, and say the version."""
        rows, rewrites = to_rows(request)
        words: list[Any] = [request.expected_version, len(rows), len(rewrites)]
        stored, seen, grown, terms = yield from self._changed_terms(request)
        words += (request.incarnation or "", new_incarnation(), seen)
        for row in rows:
            words += (row.id, _pack(row))
        for row in rewrites:
            # What is pruned takes the place of an event of any kind, and nothing takes its own.
            kind = stored.get(row.version, row.kind) if row.kind == PRUNED else row.kind
            begins = _head(row._replace(kind=kind))
            words += (row.version, begins, _pack(row), *grown.get(row.version, (0, 0)))
        words += (*terms, *self._listing.words(request))
        if not self._is_marked:  # it is noted before the first session is written
            yield from self._mark()
        keys = self._listing.keys_with(self._key(request.session))
        outcome, version, told, *what = yield from APPEND.run(self._redis, keys, words)
        incarnation = _incarnation(told)
        check_incarnation(request.session, request.incarnation, incarnation)
        if outcome == b"added":
            yield from self._listing.catch_up(what[1])
            head = _Head(version, incarnation, text_of(what[0]))
            # One batch more than was added, so that the log of an older version catches up.
            yield from self._fill(request.session, head, most=1 + len(rows) // FILL_EVENTS)
            return Appended(version, incarnation=incarnation or "")
        if outcome == b"same":
            row, place = what
            event = _event(row, place, session=request.session, incarnation=incarnation)
            return same_event(request, event, version=version)
        if outcome == b"conflict":
            raise conflict(request, version)
        if outcome == b"taken":
            raise id_taken(request, text_of(what[0]))
        if outcome == b"other":
            raise not_stored(request, what[0], kind=stored.get(what[0]))
        raise event_beyond(request.session, version, at=version + 1)

    def _mark(self) -> Steps[None]:
        """Note how sessions are kept, and what that says of their list."""
        told, before = yield from self._script(MARK, self._schema_key, [SCHEMA])
        if before == 0:
            yield from self._listing.begin()
        elif 0 < before < SCHEMA:
            yield from self._listing.note_older()
        self._is_marked = self._know(told)

    def _changed_terms(
        self, request: AppendRequest
    ) -> Steps[tuple[dict[int, str], str, dict[int, tuple[int, int]], list[Any]]]:
        """Say what kinds of events rewrites are of, and how they change the index: as of which moment, by how
        many texts, and in which terms.
        """
        if not request.rewrites:
            return {}, "", {}, []
        new = {event.version: event for event in request.rewrites}
        head, rewrite, events = yield from self._read(request.session, "versions", *new)
        grown: dict[int, tuple[int, int]] = {}
        changes: list[Any] = []
        for old in events:
            (chars, terms), (more, others) = event_terms(old), event_terms(new[old.version])
            grown[old.version] = ((more > 0) - (chars > 0), more - chars)
            span, offset = divmod(old.version, SPAN_EVENTS)
            for term in terms:
                changes += ("-", old.version, term, span, POSTING.pack(offset, 0, 0)[:2])
            for term, often in others.items():
                changes += ("+", old.version, term, span, POSTING.pack(offset, often, more))
        kinds = {event.version: event.kind for event in events}
        return kinds, f"{head.version} {head.incarnation or ''} {text_of(rewrite)}", grown, changes

    def _fill(self, session: str, head: _Head, *, most: float = inf) -> Steps[None]:
        """Put what is not in the index into it, batch by batch; fewer events than one remain.

        What fails here is told by whoever reads: the events are stored.
        """
        errors = self._redis.exceptions
        with suppress(errors.RedisError, errors.RedisClusterException, CorruptSessionError):
            while most > 0 and head.version - head.indexed.version >= FILL_EVENTS:
                first, last = head.indexed.version + 1, head.indexed.version + FILL_EVENTS
                now, rewrite, events = yield from self._read(session, "span", first, last, 1, FILL_EVENTS)
                if len(events) < FILL_EVENTS or now[1:] != head[1:]:
                    return  # an event is missing, or somebody else is at it
                indexed, terms = _batch(head.indexed, events)
                progress = " ".join(map(str, (TERMS_SCHEMA, *indexed)))
                words = [head.incarnation, head.progress, rewrite, progress, *terms]
                if not (yield from self._script(INDEX, self._key(session), words)):
                    return
                head = head._replace(progress=progress)
                most -= 1

    def _read(
        self, session: str, *words: Any, wanted: str | None = None
    ) -> Steps[tuple[_Head, Any, list[Event]]]:
        """Read the head of a session, the version of its last rewrite, and the events that LOAD is asked for.

        A row that is missing is left out, and noticed as a gap.
        """
        version, told, progress, rewrite, *rows = yield from self._script(LOAD, self._key(session), words)
        head = _Head(version, _incarnation(told), text_of(progress))
        check_incarnation(session, wanted, head.incarnation)
        pairs = zip(rows[::2], rows[1::2], strict=True)
        events = [
            _event(row, place, session=session, incarnation=head.incarnation) for place, row in pairs if row
        ]
        return head, rewrite, events

    def _script(self, script: Script, key: str, words: Iterable[Any]) -> Steps[Any]:
        """Run a script for one key."""
        return (yield from script.run(self._redis, (key,), words))

    def _key(self, session: str) -> str:
        return self._listing.key(session)

    def load(self, request: LoadRequest) -> Steps[list[Event]]:
        """Read events."""
        check_session_name(request.session)
        if request.ids is not None:
            words = ("ids", *storable_ids(request.ids))
            _, _, events = yield from self._read(request.session, *words, wanted=request.incarnation)
            return without_gaps(events, request, version=0)
        first = max(0, request.after) + 1
        last = MOST if request.before is None else min(request.before - 1, MOST)
        limit = MOST if request.limit is None else min(request.limit, MOST)
        step = -1 if request.newest_first else 1
        events = []
        head: _Head | None = None
        while limit > len(events):
            most = min(PAGE_EVENTS, limit - len(events))
            now, _, page = yield from self._read(
                request.session, "span", first, last, step, most, wanted=request.incarnation
            )
            if head is None:
                # What is added from now on is not part of the answer.
                head, last = now, min(last, now.version)
            elif head.incarnation != now.incarnation:
                return (yield from self.load(request))  # it was removed, and perhaps begun again
            events += page
            first, last = (first, last - most) if request.newest_first else (first + most, last)
            if first > last:
                break
        return without_gaps(events, request, version=head.version if head else 0)  # unread if the limit is 0

    def load_newest(self, names: Sequence[str]) -> Steps[Newest]:
        """Read the newest events of sessions."""
        asked = [check_session_name(name) for name in names]
        rows = yield from self._listing.newest(asked)
        return newest_in((*head, *((head[-1], *_columns(row)[1:]) if row else [None])) for *head, row in rows)

    def search(self, request: SearchRequest) -> Steps[Found]:
        """Find messages by the index, and by reading what is not in it from its newest event on."""
        check_session_name(request.session)
        terms = usable_terms(request.terms)
        if not terms or not request.limit:
            return Found()
        head, rows = yield from self._look_up(request, terms, MAX_POSTINGS)
        if head.version - head.indexed.version >= FILL_EVENTS:
            yield from self._fill(request.session, head)
            head, rows = yield from self._look_up(request, terms, MAX_POSTINGS)
        ranking = Ranking.of_rows((head.version, head.indexed.texts, head.indexed.chars), terms, rows)
        at = head.indexed.version
        while at < head.version:
            page = LoadRequest(
                session=request.session, after=at, limit=PAGE_EVENTS, incarnation=head.incarnation
            )
            events = yield from self.load(page)
            ranking.add_events(events)
            at = events[-1].version if events else head.version
        if common := ranking.look_further():
            now, rows = yield from self._look_up(request, common, ranking.most)
            if now.incarnation != head.incarnation:
                return (yield from self.search(request))  # it was removed, and perhaps begun again
            ranking.add_rows(rows)
        best: list[int] = yield from relay(
            ranking.best(min(request.limit, MOST)), lambda versions: self._kinds(request.session, versions)
        )
        _, _, events = yield from self._read(request.session, "versions", *best, wanted=head.incarnation)
        return found_in_order(best, events, since=ranking.since)

    def _kinds(self, session: str, versions: Sequence[int]) -> Steps[dict[int, str]]:
        """Say of what kind events are."""
        kinds: dict[int, str] = {}
        for at in range(0, len(versions), PAGE_EVENTS):
            words = ("heads", *versions[at : at + PAGE_EVENTS])
            _, _, _, _, *rows = yield from self._script(LOAD, self._key(session), words)
            for place, row in zip(rows[::2], rows[1::2], strict=True):
                kinds[int(place)] = _columns(row)[2]
        return kinds

    def _look_up(
        self, request: SearchRequest, terms: Sequence[str], most: int
    ) -> Steps[tuple[_Head, Iterable[Sequence[Any]]]]:
        """Ask the index which events have the terms."""
        words = (most + 1, *terms)
        version, told, progress, *found = yield from self._script(FIND, self._key(request.session), words)
        incarnation = _incarnation(told)
        check_incarnation(request.session, request.incarnation, incarnation)
        rows = (
            (term, int(span) * SPAN_EVENTS + offset, often, chars)
            for term, spans in zip(terms, found, strict=True)
            for span, postings in zip(spans[::2], spans[1::2], strict=True)
            for offset, often, chars in POSTING.iter_unpack(postings)
        )
        return _Head(version, incarnation, text_of(progress)), rows

    def delete(self, session: str, incarnation: str | None) -> Steps[Receipt]:
        """Remove the key of a session."""
        check_session_name(session)
        return (yield from self._listing.delete(session, incarnation))

    def is_unclean(self) -> Steps[bool]:
        """Tell whether a handle that has files written anew removed anything, and they were not yet written.

        Of a cluster nothing is known.
        """
        return (yield from self._listing.last_removal()) is not None

    def scrub(self) -> Steps[None]:
        """Have the server write the files anew that it keeps data in, and wait until it has."""
        last = yield from self._listing.last_removal()
        yield from self._write_anew()
        if last is not None:
            yield from self._listing.note_clean(last)

    def _write_anew(self) -> Steps[None]:
        states = yield Command(("INFO", "persistence"), everywhere=True)
        if any(state["aof_enabled"] for state in states):
            yield from self._rewritten("BGREWRITEAOF", "aof_last_bgrewrite_status")
        if (yield from self._keeps_snapshots(states)):
            yield from self._rewritten("BGSAVE", "rdb_last_bgsave_status")

    def _keeps_snapshots(self, states: list[dict[str, Any]]) -> Steps[bool]:
        """Tell whether the server may have written a snapshot: a cache without files is given none."""
        for state in states:
            if state.get("rdb_saves") or (
                state.get("rdb_last_load_keys_loaded") and not state["aof_enabled"]
            ):
                return True
        try:
            answers = yield Command(("CONFIG GET", "save"), everywhere=True)
        except self._redis.exceptions.ResponseError:
            return True  # it may not be asked
        return any(text_of(answer.get("save", "")) for answer in answers)

    def _rewritten(self, word: str, status: str) -> Steps[None]:
        """Have one kind of file written from now on: what is being written was begun before the deletion."""
        for seconds in self._pauses():
            try:
                yield Command((word,), everywhere=True)
            except self._redis.exceptions.ResponseError as error:
                if "progress" not in str(error):
                    raise
                yield Pause(seconds)
            else:
                break
        else:
            raise self._late("begin", word)
        states = yield from self._idle(word)
        failed = [state[status] for state in states if state[status] != "ok"]
        if failed:
            raise StoreUnavailableError(f"{word} failed on the server ({failed[0]}). {_STILL_THERE}")

    def _idle(self, word: str) -> Steps[list[dict[str, Any]]]:
        for seconds in self._pauses():
            states: list[dict[str, Any]] = yield Command(("INFO", "persistence"), everywhere=True)
            if not any(state[name] for state in states for name in _WRITES):
                return states
            yield Pause(seconds)
        raise self._late("end", word)

    def _late(self, what: str, word: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"the server did not {what} {word} within {self._scrub_seconds:g} seconds. {_STILL_THERE}"
        )

    def _pauses(self) -> Iterator[float]:
        seconds, waited = FIRST_PAUSE_SECONDS, 0.0
        while waited < self._scrub_seconds:
            yield seconds
            waited += seconds
            seconds = min(2 * seconds, LAST_PAUSE_SECONDS)


_STILL_THERE = (
    "The session or text is removed, but the server's files may still hold its bytes; call scrub() again"
)


_WRITES = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


class _Indexed(NamedTuple):
    """How far a session is in its index."""

    version: int = 0
    texts: int = 0
    """How many of its messages have a text."""
    chars: int = 0
    """How long these are together."""


class _Head(NamedTuple):
    """What a session says of itself."""

    version: int
    incarnation: str | None
    progress: str
    """How far it is in its index, as it is written there."""

    @property
    def indexed(self) -> _Indexed:
        """How far it is in its index; an index that an older trimtab made is none."""
        schema, *numbers = self.progress.split() or [""]
        known = schema == str(TERMS_SCHEMA) and len(numbers) == len(_Indexed._fields)
        return _Indexed(*map(int, numbers)) if known else _Indexed()


def _batch(indexed: _Indexed, events: list[Event]) -> tuple[_Indexed, list[Any]]:
    """Write the terms of events, the first at least, as the index takes them; say how far it is then."""
    places: dict[tuple[str, int], bytearray] = {}
    version, texts, sum_chars = indexed
    count = 0
    for event in events:
        chars, terms = event_terms(event)
        if version > indexed.version and count + len(terms) > FILL_TERMS:
            break
        count, version = count + len(terms), event.version
        texts, sum_chars = texts + (chars > 0), sum_chars + chars
        span, offset = divmod(event.version, SPAN_EVENTS)
        for term, often in terms.items():
            places.setdefault((term, span), bytearray()).extend(POSTING.pack(offset, often, chars))
    words = [word for (term, span), postings in places.items() for word in (term, span, bytes(postings))]
    return _Indexed(version, texts, sum_chars), words


def _head(row: Row) -> str:
    """Write what never changes of a row; a rewrite is of a row that begins with it."""
    return json.dumps(row[:4], separators=(",", ":"))[:-1] + ","


def _pack(row: Row) -> str:
    """Write a row as one text: a line of its short columns, and the body as it is."""
    return f"{_head(row)}{json.dumps(row.seal)}]\n{row.body}"


def _event(row: bytes, place: Any, *, session: str, incarnation: str | None) -> Event:
    # A row of another place does not match its seal here.
    columns = (int(place), *_columns(row)[1:])
    return from_row(columns, session=session, incarnation=incarnation or "")


def _columns(row: bytes) -> tuple[Any, ...]:
    """Read the columns of a row; of one that cannot be read they have no body, which is told in one place."""
    try:
        head, _, body = row.decode().partition("\n")
        version, event_id, kind, time, seal = json.loads(head)
    except (ValueError, TypeError):
        return 0, "", "", 0.0, "", ""
    return version, event_id, kind, time, body, seal


def _incarnation(told: Any) -> str | None:
    """Read what a script says of a session's incarnation; None if there is no session."""
    return None if told is None else text_of(told)
