"""The three scripts of `RedisStore`. Each touches one key, so that it runs on any cluster.

A session is one hash: field `v` its version, `n` its incarnation, `e<version>` a row, `i<id>` the version of
an id. One key is removed, evicted or expired whole, never by half.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

__all__ = ["APPEND", "DELETE", "LOAD", "PAGE_EVENTS", "Script"]

PAGE_EVENTS = 500
"""Rows read by one command: what a server that answers one command at a time does in about a millisecond."""


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

APPEND = _script(
    _INCARNATION
    + """
local expected, added, rewritten = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local version = tonumber(redis.call('HGET', key, 'v') or '0')
if ARGV[4] ~= '' and ARGV[4] ~= incarnation then
  return {'deleted', version, incarnation}
end
local same = redis.call('HGET', key, 'i' .. ARGV[6])
if same then
  return {'same', version, incarnation, redis.call('HGET', key, 'e' .. same) or '', tonumber(same)}
end
if version ~= expected then
  return {'conflict', version, incarnation}
end
local first_rewrite = 6 + 2 * added
for at = 1, added do
  local id = ARGV[4 + 2 * at]
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
  local id, row = ARGV[4 + 2 * at], ARGV[5 + 2 * at]
  redis.call('HSET', key, 'e' .. (version + at), row, 'i' .. id, version + at)
end
for at = 0, rewritten - 1 do
  redis.call('HSET', key, 'e' .. ARGV[first_rewrite + 3 * at], ARGV[first_rewrite + 3 * at + 2])
end
if not incarnation then
  incarnation = ARGV[5]
  redis.call('HSET', key, 'n', incarnation)
end
redis.call('HSET', key, 'v', version + added)
return {'added', version + added, incarnation}
"""
)
"""Check everything, then write everything: a script is not undone, so it may not fail in between.

ARGV: expected version, events, rewrites; the incarnation that is meant (none: '') and one for a session that
begins; id and row of each event; version, head and row of each rewrite.
"""

LOAD = _script(
    _INCARNATION
    + """
local version = tonumber(redis.call('HGET', key, 'v') or '0')
local rows = {version, incarnation}
if ARGV[1] == 'ids' then
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
"""Read version, incarnation and rows of the same moment: (version, incarnation, place, row, place, row…).

A missing row is ''; the incarnation of no session is null.

ARGV: "ids" and the ids; or "span", first and last version, 1 or -1, most rows.
"""

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
