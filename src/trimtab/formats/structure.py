"""How a format reads messages: as dicts, into columns, and counted on the way."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from trimtab.errors import FormatError
from trimtab.formats.foreign import foreign_object

__all__ = ["UNNAMED", "Dict", "Kind", "Prices", "Structure", "entry_of", "mapping_of", "numbered", "shown"]

Kind = Literal["system", "user", "assistant", "tool", "other"]
"""Whom a message is from, whatever its wire form calls it.

`user` is something the user wrote; a message that carries only tool results is `tool`, also
where the wire form gives it the role "user". `system` includes "developer".
"""

UNNAMED = "call #"
"""Stands, with a number, in place of the id a call does not have: the first of its message is "call #1"."""

Dict = dict[str, Any]
"""One message (or part) read as a mapping; see `mapping_of`."""


class Structure:
    """What a format read of a conversation's messages: columns by message index.

    Sparse on purpose: what nobody asks about costs nothing, however many messages there are.
    """

    __slots__ = (
        "answers",
        "behind",
        "bound",
        "calls",
        "count",
        "dangling",
        "elsewhere",
        "foreign",
        "kept",
        "kinds",
        "late",
        "loose",
        "needs",
        "references",
        "replaced",
    )

    def __init__(self, count: int) -> None:
        self.count = count
        """Number of messages."""
        self.kinds: dict[int, Kind] = {}
        """Kind of each message that was scanned, or whose kind was asked for."""
        self.calls: dict[int, tuple[str, ...]] = {}
        """Ids of the calls a message makes, in its order; only messages that make any. See `UNNAMED`."""
        self.answers: dict[int, tuple[tuple[str, int | None], ...]] = {}
        """(call id, part index) of the results a message carries; part None: the whole message.

        A result without an id has "" until it is paired.
        """
        self.loose: dict[int, tuple[int, ...]] = {}
        """Parts that answer no call, in messages where other parts do; they form a unit of their own."""
        self.bound: set[int] = set()
        """Messages that stay only together with the message after them (a reasoning item)."""
        self.needs: dict[int, int] = {}
        """Messages that may not stay without another one, of those bound; found where all is read at once."""
        self.dangling: set[int] = set()
        """Messages that mean nothing where they are, since what they would be bound to is not there."""
        self.references: set[int] = set()
        """Messages that only name one that is stored: each may be the call of a result without one."""
        self.elsewhere = False
        """Whether messages refer to stored ones that cannot be read: calls may be among those."""
        self.kept: set[int] = set()
        """Messages the conversation means nothing without: those that stand for what was before them."""
        self.replaced: dict[int, Any] = {}
        """Entries that were no dict, as they were; the list read holds their dict form now."""
        self.behind: list[str] = []
        """While reading back: ids of the results read since the last message that is no result."""
        self.late = False
        """While reading back: whether a result did not stand directly behind its call."""
        self.foreign = False
        """While reading back: whether a message looked like one of another wire form."""

    def read_as_dict(self, messages: list[Any], index: int, /) -> Dict:
        """Return an entry as a dict; one that is none is replaced, and kept in `replaced`.

        Raises:
            FormatError: The entry is no message; `.path` says which.
        """
        message = messages[index]
        if type(message) is dict:
            return message
        made = entry_of(messages, index)
        self.replaced.setdefault(index, message)
        messages[index] = made
        return made

    def parts_of(self, index: int, /) -> set[int]:
        """List the parts of a message that stay or leave one by one; empty if none do."""
        parts = {part for _, part in self.answers.get(index, ()) if part is not None}
        return parts.union(self.loose.get(index, ()))

    def close(self, ids: tuple[str, ...], /) -> None:
        """Match the results read last with the calls of the message before them."""
        behind = self.behind
        if len(behind) == 1 == len(ids):
            self.late |= behind[0] != ids[0]
        else:
            self.late |= len(set(behind)) != len(behind) or not set(ids).issuperset(behind)
        behind.clear()


def numbered(ids: Iterable[str | None], /) -> Iterator[str]:
    """Yield the ids of a message's calls, each that is missing or empty as a number of its own."""
    unnamed = 0
    for call_id in ids:
        if call_id:
            yield call_id
        else:
            unnamed += 1
            yield f"{UNNAMED}{unnamed}"


class Prices:
    """What a counter charges, so that a format can count a message while it reads it."""

    __slots__ = ("bases", "counts", "in_full", "name_factor", "parallel_tokens", "per_call_tokens")

    def __init__(
        self,
        *,
        bases: dict[Any, int],
        counts: dict[Any, int],
        in_full: Callable[[Dict], int],
        per_call_tokens: int,
        name_factor: int,
        parallel_tokens: int,
    ) -> None:
        self.bases = bases
        """Framing of a plain message by its role; a role that is missing is counted in full."""
        self.counts = counts
        """Tokens by text; measures what is missing. None costs nothing, what is no text is refused."""
        self.in_full = in_full
        """Counts a message of any shape."""
        self.per_call_tokens = per_call_tokens
        self.name_factor = name_factor
        """How often the name of a call is charged."""
        self.parallel_tokens = parallel_tokens
        """Once a message with two or more calls."""


def mapping_of(message: Any) -> Dict:
    """Read a message as a plain dict.

    It is the message itself, a copy of a mapping, or its `model_dump()`.

    Raises:
        FormatError: It is none of these.
    """
    if type(message) is dict:
        return message
    if isinstance(message, Mapping):
        return dict(message)
    if (said := foreign_object(message)) is not None:
        raise FormatError(f"a message must be of a wire form; {said}")
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        try:
            dumped = dump(exclude_none=True)
        except TypeError:  # a model of its own kind, which takes no such option
            dumped = dump()
        if isinstance(dumped, dict):
            return dumped
    raise FormatError(
        f"a message must be a mapping or have model_dump(), not {type(message).__name__}: {shown(message)}"
        f"{_instead(message)}"
    )


def _instead(value: Any) -> str:
    """Say what to write for what is often given as a message."""
    if isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(one, str) for one in value)):
        return "; write {'role': 'user', 'content': text}"
    if isinstance(value, (list, tuple)):
        return "; give the messages it holds one by one"
    return ""


_ANSWERS = {
    "choices": "append answer.choices[0].message",
    "output": "extend the list by answer.output",
    "candidates": "append answer.candidates[0].content",
    "message": "append choice.message",
}
"""Where the messages of a whole answer are: what SDKs return has them under one of these, and no role."""


def message_in(message: Any, /) -> Dict:
    """Read what stands where a message must as a plain dict; refuse the whole answer of an SDK.

    Raises:
        FormatError: It is no message.
    """
    made = mapping_of(message)
    if not isinstance(message, Mapping) and "role" not in made and "type" not in made:
        held = next((key for key in _ANSWERS if isinstance(made.get(key), (list, dict))), None)
        if held is None and isinstance(made.get("content"), dict):
            raise FormatError(f"it is a whole {type(message).__name__}, not a message: append its content")
        if held is not None:
            raise FormatError(f"it is a whole {type(message).__name__}, not a message: {_ANSWERS[held]}")
    return made


def entry_of(messages: Sequence[Any], index: int, /) -> Dict:
    """Read an entry of a list as a plain dict, and leave it as it is.

    Raises:
        FormatError: It is no message; `.path` says which.
    """
    try:
        message = messages[index]
        return message if type(message) is dict else message_in(message)
    except FormatError as error:
        path = f"messages[{index}]"
        raise FormatError(f"{path}: {error}", path=path) from error


def shown(value: object, /) -> str:
    """Write a value of the caller's into an error: short, whatever its size and depth."""
    return reprlib.repr(value)[:80]
