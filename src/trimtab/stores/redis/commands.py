"""What is said to Redis: commands, and scripts by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from trimtab._shared.steps import Steps

SCAN_KEYS = 1_000
"""Keys looked at by one step through the key space."""


class Command(NamedTuple):
    """One command; yielded by an operation, which is sent its answer."""

    words: tuple[Any, ...]
    everywhere: bool = False
    """Ask every primary of a cluster, and send a list of their answers."""


class Scan(NamedTuple):
    """List the keys that match a pattern, of every primary; yielded by an operation."""

    pattern: str


class Script(NamedTuple):
    """A script and its name in the server's cache."""

    text: str
    sha: str

    @classmethod
    def of(cls, text: str, /) -> Self:
        """Name a script."""
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def run(self, redis: Any, keys: Sequence[str], words: Iterable[Any]) -> Steps[Any]:
        """Run it by its name; a server that restarted, or took over, is sent its text again.

        Args:
            redis: The module of the client.
            keys: Those that it asks for, all in one slot of a cluster.
            words: Its other arguments.
        """
        rest = (len(keys), *keys, *words)
        try:
            return (yield Command(("EVALSHA", self.sha, *rest)))
        except redis.exceptions.NoScriptError:
            return (yield Command(("EVAL", self.text, *rest)))


INCARNATION = """
local key = KEYS[1]
local incarnation = redis.call('HGET', key, 'n')
if not incarnation and redis.call('HEXISTS', key, 'v') == 1 then
  incarnation = 'first ' .. string.match(redis.call('HGET', key, 'e1') or '', '^[^,]*,?[^,]*')
end
"""
"""Which session of its name it is; false where there is none. One that trimtab 0.1 began has no `n`, and is
known by the id of its first event: reading must not write, as a full server and a replica only read."""


def text_of(value: Any, /) -> str:
    """Read a text of an answer, which is bytes where the client decodes none."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
