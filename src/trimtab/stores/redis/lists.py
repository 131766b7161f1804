"""The list of sessions in `RedisStore`: one sorted set, kept by the scripts that append and delete.

All its members have the score 0, so that they are in the order of their bytes. A member is the order it is
of, its place there and the name of the session, with NUL between them, which no name has:

    n NAME                          all, by name
    t TIME NAME                     all, by the time of use
    oOWNER NAME                     those of an owner, by name
    OOWNER TIME NAME                those of an owner, by the time of use
    lDIGEST NAME                    those with an entry of metadata, by name
    x TIME NAME                     those that end, by when

The member "ready" without a place says that every session is in it. One key, so that it is lost whole or not
at all: then that member is lost, too, and the list is made anew from the sessions. What a session's members
are is in its own hash: `u` the time of its newest event, `o` its labels, `g` their orders, `k` its time to
live. A list is read by these, so that a member that is out of date shows nothing wrong.

On a cluster a script may not touch both keys: there the list is changed right after the session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from trimtab._shared.steps import Steps
from trimtab.stores.base import AppendRequest
from trimtab.stores.labels import Receipt, SessionEntry, Sessions, key_records, keys_of
from trimtab.stores.lists import (
    BATCH_SESSIONS,
    DamagedEntry,
    ListRequest,
    Removal,
    entry_of,
    left_by,
    remove_by_name,
    remove_owned,
)
from trimtab.stores.redis.commands import INCARNATION, Command, Scan, Script, text_of
from trimtab.stores.rows import check_incarnation

PAGE_SESSIONS = 500
"""Sessions looked at by one command."""

OLDER_SECONDS = 86_400
"""For so long after the first append of this trimtab each process makes the list anew at its first look."""

COUNT_EVENTS = 5_000
"""Events that the script of a deletion counts: the server answers nobody meanwhile."""

_READY = "ready"

KEEP_LISTED = """
local function pop() return table.remove(ARGV) end
local function stamp(time)
  return string.format('%020.6f', math.max(0, math.min(time, 1000000000000)))
end
local function places(name, used, groups, ttl)
  local now = stamp(tonumber(used) or 0)
  local all = {'n\\0' .. name, 't\\0' .. now .. '\\0' .. name}
  for group in string.gmatch(groups, '([^%z]+)%z') do
    all[#all + 1] = group .. '\\0' .. name
    if string.sub(group, 1, 1) == 'o' then
      all[#all + 1] = 'O' .. string.sub(group, 2) .. '\\0' .. now .. '\\0' .. name
    end
  end
  if ttl ~= '' then
    all[#all + 1] = 'x\\0' .. stamp((tonumber(used) or 0) + (tonumber(ttl) or 1e12)) .. '\\0' .. name
  end
  return all
end
local function change_list(old, new)
  local stays, leave, come = {}, {}, {}
  for _, place in ipairs(new) do
    stays[place] = true
    come[#come + 1] = 0
    come[#come + 1] = place
  end
  for _, place in ipairs(old) do
    if not stays[place] then leave[#leave + 1] = place end
  end
  if KEYS[2] then
    if #leave > 0 then redis.call('ZREM', KEYS[2], unpack(leave)) end
    if #come > 0 then redis.call('ZADD', KEYS[2], unpack(come)) end
    return false
  end
  return {leave, come}
end
local function places_of(name, at)
  local was = redis.call('HMGET', at or KEYS[1], 'u', 'g', 'k')
  return was[1] and places(name, was[1], was[2] or '', was[3] or '') or {}, was[2] or '', was[3] or ''
end
local function list(name, used, labels, groups, ttl, also)
  local old, known, lasting = places_of(name)
  old[#old + 1] = also
  redis.call('HSET', KEYS[1], 'u', used)
  if labels == '' then
    groups, ttl = known, lasting
  else
    redis.call('HSET', KEYS[1], 'o', labels, 'g', groups, 'k', ttl)
  end
  return change_list(old, places(name, used, groups, ttl))
end
local function newest(version)
  local row = redis.call('HGET', KEYS[1], 'e' .. version) or ''
  local known, head = pcall(cjson.decode, string.match(row, '^[^\\n]*'))
  return known and type(head) == 'table' and tonumber(head[4]) or nil
end
"""
"""Keeps the list: `list` after an event, `change_list` from the members that were to those that are."""

_LIST = Script.of(
    """
local found = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
return {redis.call('ZSCORE', KEYS[1], 'ready'), found}
"""
)
"""Read members of the list, and whether it is whole. ARGV: first, last, most."""

_ABOUT = Script.of(
    """
local all = {}
for at, key in ipairs(KEYS) do
  all[at] = redis.call('HMGET', key, 'v', 'n', 'u', 'o', 'e1')
end
return all
"""
)
"""Read what is told of sessions."""

_NEWEST = Script.of(
    """
local all = {}
for at, key in ipairs(KEYS) do
  local head = redis.call('HMGET', key, 'v', 'n', 'e1')
  if head[2] then head[3] = false end
  head[4] = head[1] and redis.call('HGET', key, 'e' .. head[1])
  all[at] = head
end
return all
"""
)
"""Read the newest events of sessions, each with version and incarnation; the first of one without these."""

_RELIST = Script.of(
    KEEP_LISTED
    + """
local version = redis.call('HGET', KEYS[1], 'v')
if not version then return false end
local used = newest(version)
return list(ARGV[1], used and string.format('%.17g', used) or redis.call('HGET', KEYS[1], 'u') or '0',
  '', '', '')
"""
)
"""Put a session into the list as it is now. ARGV: its name."""

_REMOVE = Script.of(
    INCARNATION
    + KEEP_LISTED
    + """
local name, version = ARGV[1], tonumber(redis.call('HGET', key, 'v') or '0') or 0
if not incarnation then return {'none'} end
if ARGV[2] ~= '' and ARGV[2] ~= incarnation then return {'other', incarnation} end
local old, groups, ttl = places_of(name)
if ARGV[3] ~= '' and string.match(groups, '^o([^%z]+)%z') ~= ARGV[3] then return {'moved'} end
if ARGV[4] ~= '' then
  local used = newest(version) or tonumber(redis.call('HGET', key, 'u') or '0') or 0
  if ttl == '' or used + (tonumber(ttl) or 1e12) > tonumber(ARGV[4]) then
    return {'used', list(name, string.format('%.17g', used), '', '', '', ARGV[7])}
  end
  old[#old + 1] = ARGV[7]
end
local at, messages, bytes = tonumber(ARGV[5]), 0, 0
local last = math.min(version, at + tonumber(ARGV[6]))
while at < last do
  at = at + 1
  local row = redis.call('HGET', key, 'e' .. string.format('%.0f', at)) or ''
  local head = string.match(row, '^[^\\n]*')
  local known, columns = pcall(cjson.decode, head)
  if known and type(columns) == 'table' and columns[3] == 'message' then messages = messages + 1 end
  bytes = bytes + math.max(0, string.len(row) - string.len(head) - 1)
end
if at < version then return {'counted', false, at, messages, bytes} end
local told, record = redis.call('HGET', key, 'o') or '', 0
redis.call('UNLINK', key)
if KEYS[3] and ARGV[9] ~= '' then redis.call('SET', KEYS[3], incarnation) end
if KEYS[4] and string.find(told, string.sub(ARGV[8], -16), 1, true) then
  for _, place in ipairs((places_of(ARGV[8], KEYS[4]))) do old[#old + 1] = place end
  record = redis.call('UNLINK', KEYS[4])
end
return {'gone', change_list(old, {}), at, messages, bytes, told, record}
"""
)
"""Remove a session, unless it is another one than was meant or it was used; or count, if it is long.

ARGV: its name; the incarnation, owner and time that are meant, '' for any; up to which event they are
counted; how many are counted at once; the member of the list that told of it, which leaves the list unless
it is right; its key record; whether this handle has the files written anew. What went, how many messages and
bytes were counted, the labels of what is gone, and whether its key record went with it. On one server KEYS
names also what tells that files are to be written anew, and the key record: this is one of the store's own
session keys, whose name is known before.
"""

_NOTE_CLEAN = Script.of(
    """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) end
"""
)
"""Note that the files hold nothing of what was removed, up to a removal. ARGV: that removal."""


class Listing:
    """What is asked of the list of sessions."""

    def __init__(self, prefix: str, *, redis: Any, scrub_on_delete: bool, cluster: bool) -> None:
        self._prefix = prefix
        self._redis = redis
        self._notes = "1" if scrub_on_delete else ""
        self._cluster = cluster
        self._index = f"{prefix}:index"
        self._older = f"{prefix}:older"
        self._removed = f"{prefix}:removed"
        self._has_looked = False

    def key(self, session: str) -> str:
        """Return the key of a session."""
        return f"{self._prefix}:session:{session}"

    def keys_with(self, key: str) -> tuple[str, ...]:
        """Return the keys that a script is given which changes a session."""
        return (key,) if self._cluster else (key, self._index)

    @staticmethod
    def words(request: AppendRequest) -> tuple[Any, ...]:
        """Return the last words of an append: time of use, labels, orders, time to live, name.

        Without a time of use the list is not changed.
        """
        labels = request.new_labels()
        used = "" if request.used is None else repr(request.used)
        if labels is None:
            return used, "", "", "", request.session
        orders = [] if labels.owner is None else [f"o{labels.owner}"]
        orders += (f"l{key}" for key in keys_of(labels.metadata))
        told = json.dumps([labels.owner, labels.metadata_text, labels.ttl])
        ttl = "" if labels.ttl is None else repr(labels.ttl)
        return used, told, "".join(f"{one}\0" for one in orders), ttl, request.session

    def begin(self) -> Steps[None]:
        """Note that the list is whole: there is no session yet."""
        yield Command(("ZADD", self._index, 0, _READY))

    def note_older(self) -> Steps[None]:
        """Note that processes of an older trimtab may go on for a while: what they begin they do not list."""
        yield Command(("SET", self._older, 1, "EX", OLDER_SECONDS))

    def last_removal(self) -> Steps[Any]:
        """Return what a handle that has files written anew removed last since they were.

        None: nothing, or on a cluster.
        """
        return (yield Command(("GET", self._removed)))

    def note_clean(self, last: Any) -> Steps[None]:
        """Note that the files hold nothing of what was removed, unless more was since then."""
        yield from _NOTE_CLEAN.run(self._redis, (self._removed,), (last,))

    def catch_up(self, changed: Any) -> Steps[None]:
        """Change the list where the script might not; there `changed` is what leaves and what comes."""
        if not changed:
            return
        leave, come = changed
        if leave:
            yield Command(("ZREM", self._index, *leave))
        if come:
            yield Command(("ZADD", self._index, *come))

    def _members(self, low: bytes, high: bytes, most: int) -> Steps[list[bytes]]:
        """Read members of the list, which is made first where it is not whole."""
        if not self._has_looked:
            self._has_looked = True
            if (yield Command(("EXISTS", self._older))):
                with suppress(self._redis.exceptions.ReadOnlyError):  # of a replica
                    yield from self._make()
        words = (low, high, most)
        ready, found = yield from _LIST.run(self._redis, (self._index,), words)
        if ready is None:
            yield from self._make()
            _, found = yield from _LIST.run(self._redis, (self._index,), words)
        return list(found)

    def _make(self) -> Steps[None]:
        """Put every session into the list; once, where an older trimtab began the store or the key is lost.

        Where no session was ever begun nothing is written: a replica could not. A server that lost its data
        has no schema until another process begins, and sessions of those that went on.
        """
        start = self.key("")
        escaped = "".join(f"\\{one}" if one in "*?[]\\" else one for one in start)
        keys = set((yield Scan(f"{escaped}*")))
        if not keys and (yield Command(("GET", f"{self._prefix}:schema"))) is None:
            return
        for key in keys:
            name = text_of(key).removeprefix(start)
            yield from self.catch_up(
                (yield from _RELIST.run(self._redis, self.keys_with(self.key(name)), [name]))
            )
        yield from self.begin()

    def list_page(self, request: ListRequest) -> Steps[Sessions]:
        """List sessions: two commands for each 500 of them."""
        entries: list[SessionEntry] = []
        low, high = _bounds(request)
        most = inf if request.asked is None else request.asked
        asked = 0
        while len(entries) < most:
            # conditions beside the order may refuse what was read: then more at once
            asked = int(min(PAGE_SESSIONS, max(most - len(entries), 2 * asked)))
            members = yield from self._members(low, high, asked)
            names = [_name_in(member) for member in members]
            shown = yield from self._entries(names)
            for member, entry in zip(members, shown, strict=True):
                if entry is None:
                    with suppress(self._redis.exceptions.RedisError):  # as of a replica, which only reads
                        yield Command(("ZREM", self._index, member))  # an older trimtab deleted it
                elif isinstance(entry, DamagedEntry) or (
                    request.is_met(entry) and (not request.by_use or _is_at(member, entry.used))
                ):
                    entries.append(entry)
            if len(members) < asked:
                break
            low = b"(" + members[-1]
        return request.page(entries)

    def _entries(self, names: Sequence[str]) -> Steps[list[SessionEntry | None]]:
        """Read what is told of sessions; None for one that is not there."""
        rows = yield from self._each(_ABOUT, names)
        return [_entry(name, row) for name, row in zip(names, rows, strict=True)]

    def newest(self, names: Sequence[str]) -> Steps[list[tuple[str, str, int | str, bytes | None]]]:
        """Read name, incarnation, version and newest row of the sessions that are there, 100 a command."""
        found = []
        for at in range(0, len(names), BATCH_SESSIONS):
            part = names[at : at + BATCH_SESSIONS]
            rows = yield from self._each(_NEWEST, part)
            for name, (version, incarnation, first, row) in zip(part, rows, strict=True):
                if version is not None:
                    known = text_of(version)
                    which = int(known) if known.isdecimal() else known
                    found.append((name, _incarnation(incarnation, first), which, row))
        return found

    def _each(self, script: Script, names: Sequence[str]) -> Steps[list[Any]]:
        """Run a script for sessions: on a cluster one by one."""
        keys = [self.key(name) for name in names]
        if not self._cluster:
            return (yield from script.run(self._redis, keys, ())) if keys else []
        rows: list[Any] = []
        for key in keys:
            rows += yield from script.run(self._redis, (key,), ())
        return rows

    def delete(self, session: str, incarnation: str | None) -> Steps[Receipt]:
        """Remove a session."""
        outcome, receipt = yield from self._remove(session, incarnation=incarnation or "")
        if outcome != "gone" and outcome != "none":
            check_incarnation(session, incarnation, outcome)
        return receipt

    def delete_owned(self, owner: str) -> Steps[Receipt]:
        """Remove all sessions of an owner."""
        return remove_owned(owner, self.list_page, self._remove_batch)

    def delete_many(self, names: Sequence[str]) -> Steps[Receipt]:
        """Remove sessions by their names."""
        return remove_by_name(names, self._remove_batch)

    def _remove_batch(self, batch: Removal) -> Steps[Receipt]:
        """Remove sessions, each at once or not at all."""
        receipt, now = Receipt(), dict[str, tuple[str, str | None]]()
        for entry in batch.entries:
            name, meant = str(entry), entry.incarnation
            outcome, one = yield from self._remove(
                name, incarnation=meant, owner=batch.owner or "", record=_record_of(entry)
            )
            receipt += one
            if outcome == "moved":
                now[name] = meant, None
            elif outcome not in ("gone", "none"):
                now[name] = outcome, batch.owner
        return replace(receipt, left={**receipt.left, **left_by(batch, (), now)})

    def expire(self, now: float, limit: int) -> Steps[Receipt]:
        """Remove sessions whose time is over; each is taken by one process, whoever else does the same."""
        receipt, more = Receipt(), True
        low, high = b"[x\0", b"(x\0" + _stamp(now) + b"\xff"
        while more and receipt.sessions < limit:
            asked = min(PAGE_SESSIONS, limit - receipt.sessions)
            members = yield from self._members(low, high, asked)
            names = [_name_in(member) for member in members]
            # on a cluster a key record is removed by itself, and nothing need be known before
            told = [None] * len(names) if self._cluster else (yield from self._entries(names))
            for member, name, entry in zip(members, names, told, strict=True):
                outcome, one = yield from self._remove(
                    name, now=repr(now), member=member, record=_record_of(entry)
                )
                receipt += one
                if outcome == "none":  # another process was faster, or an older trimtab deleted it
                    yield Command(("ZREM", self._index, member))
                low = b"(" + member  # what stays is not asked again
            more = len(members) == asked
        if more:
            more = bool((yield from self._members(low, high, 1)))
        return replace(receipt, more=more)

    def _remove(
        self,
        name: str,
        *,
        incarnation: str = "",
        owner: str = "",
        now: str = "",
        member: bytes = b"",
        record: str = "",
    ) -> Steps[tuple[str, Receipt]]:
        """Remove a session: "gone", "none", "moved", "used", or the incarnation of another one."""
        at = messages = size = 0
        keys = self.keys_with(self.key(name))
        if not self._cluster:
            keys = (*keys, self._removed, *([self.key(record)] if record else []))
        while True:
            words = (name, incarnation, owner, now, at, COUNT_EVENTS, member, record, self._notes)
            answer = yield from _REMOVE.run(self._redis, keys, words)
            outcome, *told = answer
            if outcome == b"other":
                return text_of(told[0]), Receipt()
            if outcome == b"none" or outcome == b"moved":
                return text_of(outcome), Receipt()
            yield from self.catch_up(told[0])
            if outcome == b"used":
                return "used", Receipt()
            at, messages, size = told[1], messages + told[2], size + told[3]
            if outcome == b"gone":
                entry = _entry(name, (at, b"", 0, told[4] or None, None))
                found = () if entry is None else tuple(key_records([entry]).values())
                left, removed = ((), found) if told[5] else (found, ())
                return "gone", Receipt(
                    sessions=1, messages=messages, bytes=size, keys=left, removed_keys=removed
                )


def _bounds(request: ListRequest) -> tuple[bytes, bytes]:
    """Say between which members those are that a list asks for."""
    owner, place = request.owner, request.place
    if request.by_use:
        start = (b"t" if owner is None else b"O" + owner.encode()) + b"\0"
        low, high = b"[" + start, b"(" + start + b"\xff"
        if request.used_after is not None:
            low = b"[" + start + _stamp(request.used_after)
        if request.used_before is not None:
            high = b"(" + start + _stamp(request.used_before) + b"\xff"
        if place is not None:
            used, name = place[0], str(place[-1])
            low = b"(" + start + _stamp(float(used)) + b"\0" + name.encode()
        return low, high
    if owner is not None:
        start = b"o" + owner.encode() + b"\0"
    else:
        start = (b"l" + request.keys[0].encode() if request.keys else b"n") + b"\0"
    begun = start + (request.prefix or "").encode()
    low = b"[" + begun if place is None else b"(" + start + str(place[0]).encode()
    return max(low, b"[" + begun, key=lambda one: one[1:]), b"(" + begun + b"\xff"


def _stamp(time: float) -> bytes:
    """Write a time as members have it; two times are in the same order as what is written."""
    return b"%020.6f" % max(0.0, min(time, 1e12))


def _is_at(member: bytes, used: float) -> bool:
    """Tell whether a member of an order by use is where its session is now."""
    return member.split(b"\0")[1] == _stamp(used)


def _name_in(member: bytes) -> str:
    return text_of(member.rpartition(b"\0")[2])


def _record_of(entry: SessionEntry | None) -> str:
    return next(iter(key_records([] if entry is None else [entry])), "")


def _entry(name: str, row: Sequence[Any]) -> SessionEntry | None:
    version, incarnation, used, told, first = row
    if version is None:
        return None
    try:
        owner, metadata, ttl = (None, None, None) if told is None else json.loads(told)
    except (TypeError, ValueError, RecursionError):
        owner, metadata, ttl = None, "damaged", None
    return entry_of(name, version, used or 0, owner, metadata, ttl, _incarnation(incarnation, first))


def _incarnation(told: Any, first: bytes | None) -> str:
    """Say which session of its name it is; one of trimtab 0.1 as `INCARNATION` says it."""
    if told is not None:
        return text_of(told)
    head = (first or b"").decode(errors="replace").split(",")[:2]
    return f"first {','.join(head)}"
