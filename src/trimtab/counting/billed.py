"""The messages of the latest bill, so that the next one reads only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trimtab.formats import Format

__all__ = ["Billed", "key_of_message"]

_DEEPEST = 64
"""Messages that are nested deeper are read each time."""

_FINAL = frozenset((str, int, float, bool, bytes, type(None)))


class _Read(NamedTuple):
    held: Any
    """Its content as it was; shares the texts."""
    key: str
    tokens: int


class Billed:
    """What was read of a request's messages; never changed once it is made.

    A conversation is recorded again and again, each time with little that is new. Callers edit messages in
    place, so being the same object says nothing: one counts as read if it is equal to what it was, which
    for texts that are the same objects costs next to nothing. (1 and True are equal, and cost the same.)
    """

    __slots__ = ("_at", "_by_id", "_form")

    def __init__(self) -> None:
        self._at: list[_Read] = []
        self._by_id: dict[int, _Read] = {}
        self._form: Format | None = None

    @property
    def keys(self) -> list[str]:
        """Keys of the messages by content, in their order."""
        return [read.key for read in self._at]

    @property
    def counted(self) -> dict[str, int]:
        """Tokens the counter gives, by key."""
        return {read.key: read.tokens for read in self._at}

    def then(self, messages: Sequence[dict[str, Any]], form: Format, counter: Any) -> Billed:
        """Read the messages of the next bill, by a counter that reads this form."""
        new = Billed()
        new._form = form
        before = self if self._form is form else new
        for at, message in enumerate(messages):
            read = before._of(at, message)
            if read is None:
                read = _Read(_held(message), key_of_message(message, form), counter.count_message(message))
            new._at.append(read)
            new._by_id[id(message)] = read
        return new

    def _of(self, at: int, message: dict[str, Any]) -> _Read | None:
        read = self._by_id.get(id(message))
        if read is None and at < len(self._at):
            read = self._at[at]
        return read if read is not None and read.held == message else None


def key_of_message(entry: dict[str, Any], form: Format) -> str:
    """Key a message by what of it is charged: marks for a cache move, and objects come as dicts."""
    from hashlib import blake2b  # not above: most programs feed back no usage

    pieces = repr(form.pieces(entry)).encode("utf-8", "surrogatepass")
    return blake2b(pieces, digest_size=16).hexdigest()


def _held(value: Any, depth: int = 0) -> Any:
    """Copy plain data; what holds other things, or is too deep, is equal to nothing."""
    kind = type(value)
    if kind in _FINAL:
        return value
    if depth < _DEEPEST and kind is dict:
        return {key: _held(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and kind is list:
        return [_held(item, depth + 1) for item in value]
    return object()
