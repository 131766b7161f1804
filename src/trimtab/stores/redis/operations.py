"""What `RedisStore` asks the server: its scripts, and each operation once, for both colours."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from struct import iter_unpack
from typing import Any, NamedTuple

from trimtab._shared.steps import Pause, Steps
from trimtab.errors import ConfigurationError, CorruptSessionError, StoreUnavailableError
from trimtab.stores.base import Appended, AppendRequest, Event, LoadRequest, SearchRequest
from trimtab.stores.rows import (
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
from trimtab.stores.search import best_versions, count_terms, search_terms, searchable_text, usable_terms

# Scripts. Each touches one key, so that it runs on any cluster.
#
# A session is one hash: field `v` its version, `n` its incarnation, `e<version>` a row, `i<id>` the version
# of an id. One key is removed, evicted or expired whole, never by half.
#
# So its index of terms is in there too: `x` the version up to which it is indexed, `r` that of the last
# rewrite, `t<term>` the numbers of the spans of `SPAN_EVENTS` versions that have the term, `t<term> <span>`
# which of them have it, two bytes each. Of a term one span at most is written anew when events are added.


PAGE_EVENTS = 500
"""Rows read by one command: what a server that answers one command at a time does in about a millisecond."""

SPAN_EVENTS = 1_000
"""Versions of one field of a term: at most 2 kB are written anew when an event with it is added."""


class Script(NamedTuple):
    """A script and its name in the server's cache."""

    text: str
    sha: str


def _script(text: str) -> Script:
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_INCARNATION = """
local key = KEYS[1]
local incarnation = redis.call('HGET', key, 'n')
if not incarnation and redis.call('HEXISTS', key, 'v') == 1 then
  incarnation = 'first ' .. string.match(redis.call('HGET', key, 'e1') or '', '^[^,]*,?[^,]*')
end
"""
"""Which session of its name it is; false where there is none. One that trimtab 0.1 began has no `n`, and is
known by the id of its first event: reading must not write, as a full server and a replica only read."""

_TERMS = """
local function add(term, span, offsets)
  local field = 't' .. term .. ' ' .. span
  local there = redis.call('HGET', key, field)
  if not there then
    local spans = redis.call('HGET', key, 't' .. term)
    redis.call('HSET', key, 't' .. term, (spans or '') .. ' ' .. span)
  end
  redis.call('HSET', key, field, (there or '') .. offsets)
end
local function remove(term, span, offset)
  local field = 't' .. term .. ' ' .. span
  local there = redis.call('HGET', key, field) or ''
  for at = 1, string.len(there), 2 do
    if string.sub(there, at, at + 1) == offset then
      there = string.sub(there, 1, at - 1) .. string.sub(there, at + 2)
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
"""The name of a field is the term: what nothing has any more leaves no field."""

APPEND = _script(
    _INCARNATION
    + _TERMS
    + """
local expected, added, rewritten = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local version = tonumber(redis.call('HGET', key, 'v') or '0')
if ARGV[4] ~= '' and ARGV[4] ~= incarnation then
  return {'deleted', version, incarnation}
end
local same = redis.call('HGET', key, 'i' .. ARGV[7])
if same then
  return {'same', version, incarnation, redis.call('HGET', key, 'e' .. same) or '', tonumber(same)}
end
if version ~= expected or (rewritten > 0 and ARGV[6] ~= version .. ' ' .. (incarnation or '')) then
  return {'conflict', version, incarnation}
end
local first_rewrite = 7 + 2 * added
local first_term = first_rewrite + 3 * rewritten
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
  local place, head = ARGV[first_rewrite + 3 * at], ARGV[first_rewrite + 3 * at + 1]
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
  redis.call('HSET', key, 'e' .. ARGV[first_rewrite + 3 * at], ARGV[first_rewrite + 3 * at + 2])
end
local indexed = tonumber(redis.call('HGET', key, 'x') or '0')
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
  redis.call('HSET', key, 'r', version + added)
end
if not incarnation then
  incarnation = ARGV[5]
  redis.call('HSET', key, 'n', incarnation)
end
redis.call('HSET', key, 'v', version + added)
return {'added', version + added, incarnation, indexed}
"""
)
"""Check everything, then write everything: a script is not undone, so it may not fail in between.

ARGV: expected version, events, rewrites; the incarnation that is meant (none: '') and one for a session that
begins; version and incarnation that the rewritten rows were read at; id and row of each event; version, head
and row of each rewrite; "+" or "-", version, term, span and two bytes of each term that a rewrite adds or
removes.
"""

LOAD = _script(
    _INCARNATION
    + """
local version = tonumber(redis.call('HGET', key, 'v') or '0')
local rows = {version, incarnation, tonumber(redis.call('HGET', key, 'x') or '0'),
  redis.call('HGET', key, 'r') or '0'}
if ARGV[1] == 'versions' then
  for at = 2, #ARGV do
    rows[#rows + 1] = ARGV[at]
    rows[#rows + 1] = redis.call('HGET', key, 'e' .. ARGV[at]) or ''
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

ARGV: "ids" and the ids; or "versions" and the versions; or "span", first and last version, 1 or -1, most
rows.
"""

INDEX = _script(
    _INCARNATION
    + _TERMS
    + """
if incarnation ~= ARGV[1] or (redis.call('HGET', key, 'x') or '0') ~= ARGV[2]
    or (redis.call('HGET', key, 'r') or '0') ~= ARGV[3] then
  return 0
end
for at = 5, #ARGV, 3 do
  add(ARGV[at], ARGV[at + 1], ARGV[at + 2])
end
redis.call('HSET', key, 'x', ARGV[4])
return 1
"""
)
"""Put terms into the index, unless somebody else did or rewrote a text since it was read; 1 if done.

ARGV: incarnation, version up to which it was indexed, version of the last rewrite, all as they were read; up
to which it is indexed now; term, span and two bytes an event, of each.
"""

FIND = _script(
    _INCARNATION
    + """
local found = {tonumber(redis.call('HGET', key, 'v') or '0'), incarnation,
  tonumber(redis.call('HGET', key, 'x') or '0')}
for at = 1, #ARGV do
  for span in string.gmatch(redis.call('HGET', key, 't' .. ARGV[at]) or '', '%d+') do
    found[#found + 1] = span
    found[#found + 1] = redis.call('HGET', key, 't' .. ARGV[at] .. ' ' .. span) or ''
  end
end
return found
"""
)
"""Look terms up: (version, incarnation, indexed, span, two bytes an event, span, two bytes an event…).

ARGV: the terms.
"""

MARK = _script(
    """
local schema = tonumber(redis.call('GET', KEYS[1]) or '0')
if schema and schema < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('GET', KEYS[1])
"""
)
"""Note how sessions are kept, unless a newer trimtab did; the number that is there. ARGV: ours."""

DELETE = _script(
    _INCARNATION
    + """
if incarnation and ARGV[1] ~= '' and ARGV[1] ~= incarnation then
  return incarnation
end
redis.call('UNLINK', key)
return false
"""
)
"""Remove a session; null, or the incarnation of another one that was left as it is.

ARGV: the one that is meant; '' for whichever is there.
"""


# Operations.


SCHEMA = 2
"""How sessions are kept; a number of one key beside them. Sessions of 1 get an index as they grow."""

FILL_EVENTS = 100
"""So many events without an index are put into it at once; fewer are read where they stand."""

FILL_TERMS = 5_000
"""Most terms of more than one event that are put into it at once: the server answers nobody meanwhile."""

MOST = 2**53
"""Above every version, and exact in Lua, whose numbers are doubles."""

SCAN_KEYS = 1_000
"""Keys looked at by one step through the key space."""

FIRST_PAUSE_SECONDS = 0.02
LAST_PAUSE_SECONDS = 1.0
"""Between two looks at whether the server has written its files; twice as long each time."""


class Command(NamedTuple):
    """One command; yielded by an operation, which is sent its answer."""

    words: tuple[Any, ...]
    everywhere: bool = False
    """Ask every primary of a cluster, and send a list of their answers."""


class Scan(NamedTuple):
    """List the keys that match a pattern, of every primary; yielded by an operation."""

    pattern: str


class Operations:
    """The operations of a store on its keys."""

    def __init__(self, prefix: str, *, redis: Any, scrub_seconds: float) -> None:
        self._prefix = prefix
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
                    " would be lost without a word. Set the policy to noeviction, or take another server"
                )
        # Reading only, as a full server and a replica do no more.
        self._is_marked = self._know((yield Command(("GET", self._schema_key))))

    def _know(self, told: bytes | None) -> bool:
        """Tell whether sessions are kept as we do, not as an older trimtab did; refuse what a newer did."""
        schema = None if told is None else _text(told)
        if schema not in (None, *map(str, range(1, SCHEMA + 1))):
            raise ConfigurationError(
                f"the sessions at {self._prefix!r} are kept as a newer trimtab does (schema {schema},"
                f" this one knows {SCHEMA}); install that version, or take another prefix"
            )
        return schema == str(SCHEMA)

    def _mark(self) -> Steps[None]:
        """Note how sessions are kept, before the first of them is written."""
        self._is_marked = self._know((yield from self._script(MARK, self._schema_key, [SCHEMA])))

    @property
    def _schema_key(self) -> str:
        return f"{self._prefix}:schema"

    def append(self, request: AppendRequest) -> Steps[Appended]:
        """Add events, and say the version."""
        rows, rewrites = to_rows(request)
        words: list[Any] = [request.expected_version, len(rows), len(rewrites)]
        seen, terms = yield from self._changed_terms(request)
        words += (request.incarnation or "", new_incarnation(), seen)
        for row in rows:
            words += (row.id, _pack(row))
        for row in rewrites:
            words += (row.version, _head(row), _pack(row))
        words += terms
        if not self._is_marked:
            yield from self._mark()
        key = self._key(request.session)
        outcome, version, told, *what = yield from self._script(APPEND, key, words)
        incarnation = _incarnation(told)
        check_incarnation(request.session, request.incarnation, incarnation)
        if outcome == b"added":
            head = _Head(version, incarnation, what[0])
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
            raise id_taken(request, _text(what[0]))
        if outcome == b"other":
            raise not_stored(request, what[0])
        raise event_beyond(request.session, version, at=version + 1)

    def _changed_terms(self, request: AppendRequest) -> Steps[tuple[str, list[Any]]]:
        """Say which terms the rewrites of a request remove and add, and of which moment that is."""
        if not request.rewrites:
            return "", []
        new = {event.version: event for event in request.rewrites}
        head, _, events = yield from self._read(request.session, "versions", *new)
        changes: list[Any] = []
        for old in events:
            before, after = _search_terms(old), _search_terms(new[old.version])
            span, offset = divmod(old.version, SPAN_EVENTS)
            for sign, terms in (("-", before - after), ("+", after - before)):
                for term in terms:
                    changes += (sign, old.version, term, span, _packed_offset(offset))
        return f"{head.version} {head.incarnation or ''}", changes

    def _fill(self, session: str, head: _Head, *, most: float = inf) -> Steps[None]:
        """Put what is not in the index into it, batch by batch; fewer events than one are left.

        What fails here is told by whoever reads: the events are stored.
        """
        errors = self._redis.exceptions
        with suppress(errors.RedisError, errors.RedisClusterException, CorruptSessionError):
            while most > 0 and head.version - head.indexed >= FILL_EVENTS:
                first, last = head.indexed + 1, head.indexed + FILL_EVENTS
                now, rewrite, events = yield from self._read(session, "span", first, last, 1, FILL_EVENTS)
                if len(events) < FILL_EVENTS or now[1:] != head[1:]:
                    return  # an event is missing, or somebody else is at it
                last, terms = _batch(events)
                words = [head.incarnation, head.indexed, rewrite, last, *terms]
                if not (yield from self._script(INDEX, self._key(session), words)):
                    return
                head = head._replace(indexed=last)
                most -= 1

    def _read(
        self, session: str, *words: Any, wanted: str | None = None
    ) -> Steps[tuple[_Head, Any, list[Event]]]:
        """Read the head of a session, the version of its last rewrite, and the events that LOAD is asked for.

        A row that is missing is left out, and noticed as a gap.
        """
        version, told, indexed, rewrite, *rows = yield from self._script(LOAD, self._key(session), words)
        head = _Head(version, _incarnation(told), indexed)
        check_incarnation(session, wanted, head.incarnation)
        pairs = zip(rows[::2], rows[1::2], strict=True)
        events = [
            _event(row, place, session=session, incarnation=head.incarnation) for place, row in pairs if row
        ]
        return head, rewrite, events

    def _script(self, script: Script, key: str, words: Iterable[Any]) -> Steps[Any]:
        """Run a script by its name; a server that restarted, or took over, is sent its text again."""
        rest = (1, key, *words)
        try:
            return (yield Command(("EVALSHA", script.sha, *rest)))
        except self._redis.exceptions.NoScriptError:
            return (yield Command(("EVAL", script.text, *rest)))

    def _key(self, session: str) -> str:
        return f"{self._prefix}:session:{session}"

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

    def search(self, request: SearchRequest) -> Steps[list[Event]]:
        """Find messages by the index, and by reading what is not in it from its newest event on."""
        check_session_name(request.session)
        terms = usable_terms(request.terms)
        if not terms or not request.limit:
            return []
        head, found = yield from self._look_up(request, terms)
        if head.version - head.indexed >= FILL_EVENTS:
            yield from self._fill(request.session, head)
            head, found = yield from self._look_up(request, terms)
        kept: dict[int, Event] = {}
        before: int | None = None
        while head.indexed < head.version:
            page = LoadRequest(
                session=request.session,
                after=head.indexed,
                before=before,
                limit=PAGE_EVENTS,
                newest_first=True,
                incarnation=head.incarnation,
            )
            events = yield from self.load(page)
            found.update({event.version: count_terms(event, terms) for event in events})
            kept.update((event.version, event) for event in events)
            best = best_versions(found, request.limit)
            kept = {at: kept[at] for at in best if at in kept}
            if len(events) < PAGE_EVENTS:
                break
            before = events[-1].version
        best = best_versions(found, request.limit)
        if rest := [at for at in best if at not in kept]:
            _, _, events = yield from self._read(request.session, "versions", *rest, wanted=head.incarnation)
            kept.update((event.version, event) for event in events)
        return [kept[at] for at in best if at in kept]

    def _look_up(self, request: SearchRequest, terms: Sequence[str]) -> Steps[tuple[_Head, Counter[int]]]:
        """Count the terms of each event in the index."""
        version, told, indexed, *spans = yield from self._script(FIND, self._key(request.session), [*terms])
        incarnation = _incarnation(told)
        check_incarnation(request.session, request.incarnation, incarnation)
        found: Counter[int] = Counter()
        for span, offsets in zip(spans[::2], spans[1::2], strict=True):
            first = int(span) * SPAN_EVENTS
            found.update(first + offset for (offset,) in iter_unpack(">H", offsets))
        return _Head(version, incarnation, indexed), found

    def delete(self, session: str, incarnation: str | None) -> Steps[None]:
        """Remove the key of a session."""
        check_session_name(session)
        other = yield from self._script(DELETE, self._key(session), [incarnation or ""])
        check_incarnation(session, incarnation if other else None, _incarnation(other))

    def sessions(self) -> Steps[list[str]]:
        """List the names of all sessions."""
        start = self._key("")
        escaped = "".join(f"\\{one}" if one in "*?[]\\" else one for one in start)
        keys = yield Scan(f"{escaped}*")
        return sorted({_text(key).removeprefix(start) for key in keys})

    def scrub(self) -> Steps[None]:
        """Have the server write the files anew that it keeps data in, and wait until it has."""
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
        return any(_text(answer.get("save", "")) for answer in answers)

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


class _Head(NamedTuple):
    """What a session says of itself."""

    version: int
    incarnation: str | None
    indexed: int
    """Up to which version its events are in its index."""


def _search_terms(event: Event) -> set[str]:
    return set(search_terms(searchable_text(event)))


def _packed_offset(offset: int) -> bytes:
    return offset.to_bytes(2, "big")


def _batch(events: list[Event]) -> tuple[int, list[Any]]:
    """Write the terms of events, the first at least, as the index takes them; say of which is the last."""
    places: dict[tuple[str, int], bytearray] = {}
    count, last = 0, 0
    for event in events:
        terms = _search_terms(event)
        if last and count + len(terms) > FILL_TERMS:
            break
        count, last = count + len(terms), event.version
        span, offset = divmod(event.version, SPAN_EVENTS)
        for term in terms:
            places.setdefault((term, span), bytearray()).extend(_packed_offset(offset))
    return last, [word for (term, span), offsets in places.items() for word in (term, span, bytes(offsets))]


def _head(row: Row) -> str:
    """Write what never changes of a row; a rewrite is of a row that begins with it."""
    return json.dumps(row[:4], separators=(",", ":"))[:-1] + ","


def _pack(row: Row) -> str:
    """Write a row as one text: a line of its short columns, and the body as it is."""
    return f"{_head(row)}{json.dumps(row.seal)}]\n{row.body}"


def _event(row: bytes, place: Any, *, session: str, incarnation: str | None) -> Event:
    at = int(place)
    try:
        head, _, body = row.decode().partition("\n")
        version, event_id, kind, time, seal = json.loads(head)
        columns: tuple[Any, ...] = (version, event_id, kind, time, body, seal)
    except (ValueError, TypeError):
        columns = (at, "", "", 0.0, "", "")  # no JSON in its body: what cannot be read is said in one place
    if columns[0] != at:
        columns = (at, *columns[1:])  # a row of another place does not match its seal here
    return from_row(columns, session=session, incarnation=incarnation or "")


def _incarnation(told: Any) -> str | None:
    """Read what a script says of a session's incarnation; None if there is no session."""
    return None if told is None else _text(told)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
