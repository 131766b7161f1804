"""The scripts of `RedisStore`. Each touches one key, so that it runs on any cluster.

A session is one hash: field `v` its version, `n` its incarnation, `e<version>` a row, `i<id>` the version of
an id. One key is removed, evicted or expired whole, never by half.

So its index of terms is in there too: `x` the version up to which it is indexed, `r` that of the last
rewrite, `t<term>` the numbers of the spans of `SPAN_EVENTS` versions that have the term, `t<term> <span>`
which of them have it, two bytes each. Of a term one span at most is written anew when events are added.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

__all__ = [
    "APPEND",
    "DELETE",
    "FIND",
    "INDEX",
    "LOAD",
    "MARK",
    "PAGE_EVENTS",
    "SPAN_EVENTS",
    "Script",
]

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
