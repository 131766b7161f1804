"""What several gateways learn together: each request begins with what the others know, and adds to it.

A record is written only over what was read. Names and marks are hashes with the client's own key in them, so
who reads the records learns no text, and can try none without that key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from trimtab.errors import ContextError
from trimtab.integrations.chats import Opening
from trimtab.integrations.ledgers import Ledger
from trimtab.stores.records import Records

T = TypeVar("T")

REST_SECONDS = 5.0
"""How long records are not asked for once they could not be had: each request would wait for that."""

_TRIES = 4
"""How often a record is written that others write, too; then what this request taught is given up."""


class Unreachable(Exception):
    """The records cannot be had now: the request goes on as without them."""


class Memory:
    """Reads and writes what is learned where several processes reach it.

    Args:
        records: The place.
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        self._lock = Lock()
        self._rests_until: float | None = None
        """None: they answered the last time."""

    def load(self, names: Sequence[str], /) -> list[bytes | None]:
        """Read records.

        Raises:
            Unreachable: They do not answer, or did not a moment ago.
        """
        return self._ask(lambda: self.records.load(names))

    def save(self, name: str, before: bytes | None, after: bytes, /) -> bool:
        """Write a record over what was read; False: it is another one by now.

        Raises:
            Unreachable: They do not answer, or did not a moment ago.
        """
        return self._ask(lambda: self.records.save(name, before, after))

    def trouble(self) -> str:
        """Say why the records cannot be had; "": they can."""
        try:
            self.load(["start"])
        except Unreachable as error:
            return str(error.__cause__ or "it did not answer a moment ago")
        return ""

    def _ask(self, call: Callable[[], T]) -> T:
        with self._lock:
            now = monotonic()
            if self._rests_until is not None:
                if now < self._rests_until:
                    raise Unreachable
                self._rests_until = now + REST_SECONDS  # of all that wait for this moment, one asks
        try:
            answer = call()
        except (ContextError, OSError) as error:
            with self._lock:
                self._rests_until = monotonic() + REST_SECONDS
            raise Unreachable from error
        with self._lock:
            self._rests_until = None
        return answer


def secret_of(token: str | None, /) -> bytes:
    """Return what hashes of who asks are made with, the same in each process with this token."""
    return blake2b((token or "").encode(), person=b"trimtab memory").digest()


class MemoryRecall:
    """What is known of one request's conversation, and of who asks (`ledgers.Recall`).

    Args:
        memory: Where it is kept.
        asker: Who asks: a hash in which their key is.
        about: What else sets records apart: the form, and what the budget is for.
    """

    def __init__(self, memory: Memory, asker: str, *about: str) -> None:
        self._memory, self._secret, self._about = memory, asker.encode(), about
        self._ledger: Ledger | None = None
        self._opening: Opening = "", "", ""
        self._read: dict[str, bytes | None] = {}

    def digest(self, value: Any, /) -> str:
        """Name a message or a text as every process does."""
        text = repr(value).encode("utf-8", "surrogatepass")
        return blake2b(text, key=self._secret, digest_size=12).hexdigest()

    def fill(self, ledger: Ledger, opening: Opening, /) -> None:
        """Read what is known.

        Raises:
            Unreachable: It cannot be read now.
        """
        names = [self.digest((*self._about, *words)) for words in (("who",), ("chats", *opening))]
        read = self._memory.load(names)
        self._read = dict(zip(names, read, strict=True))
        ledger.take_asker(opening, read[0])
        ledger.take_chats(opening, read[1])
        self._ledger, self._opening = ledger, opening

    def keep(self) -> None:
        """Write what this request taught; nothing where the records cannot be had."""
        ledger, opening = self._ledger, self._opening
        if ledger is None:
            return
        who, chats = self._read
        try:
            self._save(who, lambda: ledger.write_asker(opening), lambda raw: ledger.take_asker(opening, raw))
            self._save(
                chats, lambda: ledger.write_chats(opening), lambda raw: ledger.take_chats(opening, raw)
            )
        except Unreachable:
            return

    def _save(self, name: str, write: Callable[[], bytes], take: Callable[[bytes | None], None]) -> None:
        """Write a record; what another process wrote meanwhile is taken in first."""
        for _ in range(_TRIES):
            before, after = self._read[name], write()
            if after in (before, b""):
                return
            if self._memory.save(name, before, after):
                self._read[name] = after
                return
            (self._read[name],) = self._memory.load([name])
            take(self._read[name])
