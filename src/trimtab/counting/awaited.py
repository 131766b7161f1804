"""A counter that answers later, for deciding code that needs its answers now.

Deciding is pure: run again with the same sizes it decides the same. So an async counter is shown to it
as one that answers at once from what was awaited before, and that breaks off with what is missing
(`CountsNeeded`). Whoever runs the decision awaits that, and runs it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

from trimtab._shared.checks import answers_later
from trimtab._shared.steps import Missing
from trimtab.counting.base import as_it_stands, counter_name
from trimtab.formats import mapping_of

__all__ = ["AwaitedCounter", "CountsNeeded", "Digests", "awaited", "digest_of"]

_ASKED = ("count", "count_message", "count_request", "count_text", "fixed_tokens")
"""Methods of a counter that may be async."""

_BATCH = 32
"""Messages asked about at once, from the newest back: some more than fit costs less than many round trips."""

Key = tuple[str, bytes]


class CountsNeeded(Missing):
    """Breaks off a decision where counts are missing."""

    def __init__(self, counter: AwaitedCounter, calls: dict[Key, Callable[[], Awaitable[Any]]]) -> None:
        super().__init__("counts of an async counter are needed: await afit(...)")
        self._counter = counter
        self._calls = calls

    async def fill(self) -> None:
        """Await what is missing, all at once; failures are kept, to be raised where they are asked for."""
        from asyncio import gather

        found = await gather(*map(_called, self._calls.values()), return_exceptions=True)
        for answer in found:
            if isinstance(answer, BaseException) and not isinstance(answer, Exception):
                raise answer
        self._counter.known.update(zip(self._calls, found, strict=True))


class AwaitedCounter:
    """An async counter that answers at once what was awaited before, keyed by content.

    Has the methods its counter has.
    """

    def __init__(self, counter: Any) -> None:
        self._counter = as_it_stands(counter)
        self._digests: Digests = getattr(self._counter, "digests", None) or Digests()
        self.known: dict[Key, Any] = {}
        """What it answered, or how it failed."""

    @property
    def name(self) -> str:
        """What reports call it; may change with what it answered."""
        return counter_name(self._counter)

    @property
    def exact(self) -> bool:
        """Whether the counter says that it is exact."""
        return bool(getattr(self._counter, "exact", False))

    @property
    def reads_extra(self) -> bool:
        """Whether its `count_request` takes other charged parts of a body."""
        return bool(getattr(self._counter, "reads_extra", False))

    def __getattr__(self, name: str) -> Any:
        """Show the counter's own methods, asked in this way; "count" also where it is a function."""
        if name == "count_back" and hasattr(self._counter, "count_message"):
            return self._count_back
        if name == "margin_tokens":
            return getattr(self._counter, name)
        if name not in _ASKED:
            raise AttributeError(name)
        if name == "count" and not hasattr(self._counter, "count"):
            return partial(self._ask, "count", self._counter)
        return partial(self._ask, name, getattr(self._counter, name))

    def _ask(self, name: str, method: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        if not answers_later(method):
            return method(*arguments, **named)
        key = self._digests.key_of(name, arguments, named)
        if key not in self.known:
            raise CountsNeeded(self, {key: partial(method, *arguments, **named)})
        answer = self.known[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` back from `stop - 1` until the room is passed; ask for batches of what is missing."""
        method = self._counter.count_message
        index = stop
        while index > start and room_tokens >= 0:
            index -= 1
            if sizes[index] is None:
                key = self._digests.key_of("count_message", (messages[index],))
                if key not in self.known and answers_later(method):
                    raise CountsNeeded(
                        self, self._batch(method, messages[max(start, index - _BATCH + 1) : index + 1])
                    )
                sizes[index] = self._ask("count_message", method, messages[index])
            room_tokens -= sizes[index] or 0
        return index

    def _batch(
        self, method: Callable[..., Any], messages: list[Any]
    ) -> dict[Key, Callable[[], Awaitable[Any]]]:
        keys = {
            self._digests.key_of("count_message", (message,)): partial(method, message)
            for message in messages
        }
        return {key: call for key, call in keys.items() if key not in self.known}


def awaited(counter: Any, /) -> Any:
    """Return an async counter as one that can be asked at once; any other as it is."""
    if counter is None or isinstance(counter, (type, str, AwaitedCounter)):
        return counter
    methods = [counter, *(getattr(counter, name, None) for name in _ASKED)]
    return (
        AwaitedCounter(counter) if any(callable(one) and answers_later(one) for one in methods) else counter
    )


async def _called(call: Callable[[], Awaitable[Any]]) -> Any:
    """Call and await in one, so that a call that fails at once is a failure like any other."""
    return await call()


def _plain(value: Any) -> Any:
    """Write what may hold objects as plain data: their `repr` need not show all there is of them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _plain(mapping_of(value)) if callable(getattr(value, "model_dump", None)) else value


class Digests:
    """Keys of questions by their content: an edited copy is made anew each time.

    The messages of the longest list asked about are read once: a fit asks about parts of it again and
    again. They are kept, so that no other object gets the id of one; and nobody edits them while they are
    being fitted. Copies that were edited are read each time, and not kept.
    """

    def __init__(self) -> None:
        self._read: dict[int, tuple[Any, bytes]] = {}

    def key_of(self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any] | None = None) -> Key:
        """Key a question; its first argument is a message, a text or a list of messages."""
        first, *rest = arguments if arguments else (None,)
        found = blake2b(
            repr((_plain(rest), _plain(named or {}))).encode("utf-8", "surrogatepass"), digest_size=16
        )
        if isinstance(first, (list, tuple)):
            digests = [self._of(one) for one in first]
            if len(first) > len(self._read):
                self._read = {id(one): (one, digest) for one, digest in zip(first, digests, strict=True)}
            found.update(b"".join(digests))
        else:
            found.update(self._of(first))
        return name, found.digest()

    def _of(self, message: Any) -> bytes:
        read = self._read.get(id(message))
        return digest_of(message) if read is None else read[1]


def digest_of(message: Any) -> bytes:
    """Tell what a message holds from what any other does; the same for an equal one in this process."""
    if type(message) is dict and all(type(value) is str for value in message.values()):
        # no repr of long texts; their lengths tell where each ends
        head = repr([(key, len(value)) for key, value in message.items()])
        parts = [head, *message.values()]
    else:
        parts = [repr(_plain(message))]
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass"))
    return found.digest()
