"""Async counters for deciding code, which needs answers immediately.

Deciding is pure: run again with the same sizes it decides the same. So an async counter is shown to it
as one that answers at once from what was awaited before, and that breaks off with what is missing
(`CountsNeeded`). Whoever runs the decision awaits that, and runs it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from trimtab._shared import observers
from trimtab._shared.checks import answers_later
from trimtab._shared.steps import Missing
from trimtab.counting.base import CountRequest, RequestCounter
from trimtab.counting.own import ASKED, Methods, OwnAdditiveCounter, OwnRequestCounter, methods_of
from trimtab.formats import mapping_of
from trimtab.formats.values import item_of

_BATCH = 32
"""Messages per question, from the newest back: asking for a few too many costs less than many round trips."""

Key = tuple[str, bytes]

Call = Callable[[], Awaitable[Any]]


class CountsNeeded(Missing):
    """Stops a decision if counts are missing."""

    def __init__(self, answers: Answers, calls: dict[Key, Call]) -> None:
        super().__init__("counts of an async counter are needed: await afit(...)")
        self._answers = answers
        self._calls = calls

    async def fill(self) -> None:
        """Await all missing answers together; failures are kept, and raised when they are read."""
        from asyncio import gather

        async def ask(call: Call) -> Any:
            return await call()  # in one, so that a call that fails at once is a failure like any other

        if not observers.active:
            found = await gather(*map(ask, self._calls.values()), return_exceptions=True)
        else:
            with observers.CountTime():
                found = await gather(*map(ask, self._calls.values()), return_exceptions=True)
        for answer in found:
            if isinstance(answer, BaseException) and not isinstance(answer, Exception):
                raise answer
        self._answers.known.update(zip(self._calls, found, strict=True))


class Answers:
    """What an async counter answered so far, or how it failed, keyed by content."""

    def __init__(self, digests: Digests) -> None:
        self.digests = digests
        self.known: dict[Key, Any] = {}

    def of(self, key: Key, call: Call) -> Any:
        """Return a known answer; stop if it is missing."""
        if key not in self.known:
            raise CountsNeeded(self, {key: call})
        answer = self.known[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def to_ask(self, methods: Methods) -> Methods:
        """Return methods that answer in this way; those that answer at once are left as they are."""
        return {
            name: partial(self._ask, name, method)
            for name, method in methods.items()
            if name in ASKED and answers_later(method)
        }

    def _ask(self, name: str, method: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        key = self.digests.key_of(name, arguments, named)
        return self.of(key, partial(method, *arguments, **named))


def awaited_counter(counter: object, /) -> RequestCounter:
    """Return an async counter as a sync one."""
    if isinstance(counter, AsyncRequestCounter):
        return _AwaitedRequests(counter.snapshot())
    methods = methods_of(counter)
    methods.pop("with_format", None)  # what it was asked before was asked in one form
    answers = Answers(Digests())
    if "count_message" in methods:
        return _AwaitedMessages(counter, methods, answers)
    made = OwnRequestCounter(counter, {**methods, **answers.to_ask(methods)})
    made.is_awaited = True
    return made


class AsyncRequestCounter:
    """An async counter of whole requests; for `afit`."""

    @property
    def name(self) -> str:
        """Its name in reports; it may change after an answer."""
        return type(self).__name__

    @property
    def exact(self) -> bool:
        """Whether its answers so far are the provider's own counts."""
        return False

    async def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that consists of these messages alone.

        Args:
            messages: The messages, in the counter's wire form.
        """
        return await self.count_request(CountRequest(messages))

    async def count_request(self, request: CountRequest, /) -> int:
        """Count a whole request.

        Args:
            request: Messages, system text, tools and further keys.
        """
        raise NotImplementedError

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be above a count; None if unknown.

        Args:
            tokens: The count.
        """
        return None

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be below a count; by default, as far as above.

        Args:
            tokens: The count.
        """
        return self.margin_tokens(tokens)

    def digests(self) -> Digests:
        """Return a function that makes keys of the messages it is asked about."""
        return Digests()

    def snapshot(self) -> AsyncRequestCounter:
        """Return the counter for one fit, fixed to what it has been told so far."""
        return self


class _AwaitedRequests(RequestCounter):
    """An async counter of whole requests, as a sync one."""

    is_awaited = True

    def __init__(self, counter: AsyncRequestCounter) -> None:
        self._counter = counter
        self._answers = Answers(counter.digests())

    @property
    def name(self) -> str:
        return self._counter.name

    @property
    def exact(self) -> bool:
        return self._counter.exact

    def margin_tokens(self, tokens: int, /) -> int | None:
        return self._counter.margin_tokens(tokens)

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        return self._counter.over_margin_tokens(tokens)

    def count_request(self, request: CountRequest, /) -> int:
        asked = (request.messages, request.system, request.tools, request.extra)
        key = self._answers.digests.key_of("count_request", asked)
        tokens: int = self._answers.of(key, partial(self._counter.count_request, request))
        return tokens


class _AwaitedMessages(OwnAdditiveCounter):
    """An async counter of single messages, as a sync one."""

    is_awaited = True

    def __init__(self, counter: Any, methods: Methods, answers: Answers) -> None:
        super().__init__(counter, {**methods, **answers.to_ask(methods)})
        self._answers = answers
        self._each = methods["count_message"]

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` back from `stop - 1` until the room is passed; ask for batches of what is missing."""
        index = stop
        while index > start and room_tokens >= 0:
            index -= 1
            if sizes[index] is None:
                message = mapping_of(messages[index])
                if answers_later(self._each) and self._key(message) not in self._answers.known:
                    batch = messages[max(start, index - _BATCH + 1) : index + 1]
                    self._break_off([*map(mapping_of, batch)])
                sizes[index] = self.count_message(message)
            room_tokens -= sizes[index] or 0
        return index

    def _key(self, message: object) -> Key:
        return self._answers.digests.key_of("count_message", (message,))

    def _break_off(self, messages: list[Any]) -> NoReturn:
        calls = {self._key(message): partial(self._each, message) for message in messages}
        known = self._answers.known
        raise CountsNeeded(self._answers, {key: call for key, call in calls.items() if key not in known})


def _plain(value: object) -> object:
    """Write what may hold objects as plain data: their `repr` need not show all there is of them."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _plain(mapping_of(value)) if callable(item_of(value, "model_dump")) else value


class Digests:
    """Keys of questions by their content: an edited copy is made anew each time.

    The messages of the longest list asked about are read once: a fit asks about parts of it again and
    again. They are kept, so that no other object gets the id of one; and nobody edits them while they are
    being fitted. Copies that were edited are read each time, and not kept.
    """

    def __init__(self) -> None:
        self._read: dict[int, tuple[object, bytes]] = {}

    def key_of(
        self, name: str, arguments: tuple[object, ...], named: Mapping[str, object] | None = None
    ) -> Key:
        """Key a question; its first argument is a message, a text or a list of messages."""
        from hashlib import blake2b  # not above: it takes milliseconds to load, and few counters are awaited

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

    def _of(self, message: object) -> bytes:
        read = self._read.get(id(message))
        return digest_of(message) if read is None else read[1]


def digest_of(message: object) -> bytes:
    """Tell what a message holds from what any other does; the same for an equal one in this process."""
    if type(message) is dict and all(type(value) is str for value in message.values()):
        # no repr of long texts; their lengths tell where each ends
        head = repr([(key, len(value)) for key, value in message.items()])
        parts = [head, *message.values()]
    else:
        parts = [repr(_plain(message))]
    from hashlib import blake2b

    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part.encode("utf-8", "surrogatepass"))
    return found.digest()
