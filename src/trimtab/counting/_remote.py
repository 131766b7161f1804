"""Counting by a provider's own endpoint: a question a request, shared, remembered, not waited for long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

from trimtab.counting._awaited import key_of
from trimtab.counting._checks import count_of, counter_name, failure_of
from trimtab.counting._estimate import EstimateCounter
from trimtab.counting._remote_clients import endpoint_of
from trimtab.counting._simple import not_negative
from trimtab.errors import ConfigurationError, CountingError
from trimtab.formats import mapping_of

__all__ = ["CountQuestion", "RemoteCounter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuestion:
    """The request whose tokens are asked for."""

    messages: tuple[dict[str, Any], ...]
    """In the wire form of the caller."""
    system: Any = None
    """System text that stands outside the messages; None if there is none."""
    tools: Any = None
    """Tool schemas; None if there are none."""


class _Answer(NamedTuple):
    """What came of a question."""

    tokens: int
    failure: str | None
    """Why it is an estimate; None if the provider said it."""


@dataclass(slots=True)
class _Flight:
    """A question that is being asked, by everybody who waits for its answer."""

    task: asyncio.Task[_Answer]
    waiting: int = 0


class _Loop:
    """What belongs to one event loop."""

    def __init__(self, max_concurrent: int) -> None:
        self.slots = asyncio.Semaphore(max_concurrent)
        self.flights: dict[Any, _Flight] = {}


class RemoteCounter:
    """An async counter that asks the provider what a request costs; for `afit`.

    A whole request is asked about, so that what comes out is the provider's own number; what single messages
    have of it is shared by estimate. A fit asks once if all fits, and O(log n) times if not. Equal requests
    are asked about once, also while the first is underway. Where the provider fails or is too slow the
    estimate answers, and `name` (which reports show), `failures` and `last_failure` say so.

    Raises:
        ConfigurationError: A number is out of range, or `ask` is no function.

    Example:
        >>> import asyncio
        >>> from trimtab import afit
        >>> async def ask(question):
        ...     return 3 + 4 * len(question.messages)  # in earnest: ask an endpoint
        >>> counter = RemoteCounter(ask)
        >>> messages = [{"role": "user", "content": str(n)} for n in range(9)]
        >>> fitted = asyncio.run(afit(messages, 20, counter=counter))
        >>> len(fitted.messages), fitted.report.tokens_after
        (4, 19)
    """

    reads_extra = True
    """Takes the other charged parts of a body as a fourth argument of `count_request`."""

    def __init__(
        self,
        ask: Callable[[CountQuestion], Awaitable[int]],
        /,
        *,
        name: str | None = None,
        estimate: Any = None,
        timeout_seconds: float = 10.0,
        retry_after_seconds: float = 30.0,
        max_concurrent: int = 4,
        max_entries: int = 4_096,
    ) -> None:
        """Set the counter up; nothing is asked yet.

        Args:
            ask: Asks the provider; an async function.
            name: What reports call it; None: the name of the function.
            estimate: Counts what the provider does not. None: `EstimateCounter()`.
            timeout_seconds: How long one answer is waited for; above 0.
            retry_after_seconds: How long only the estimate answers after a failure: a fit asks several
                questions, and each would wait for as long.
            max_concurrent: Questions underway at once in one event loop, at least 1.
            max_entries: Answers remembered.
        """
        if not callable(ask):
            raise ConfigurationError(f"ask is an async function of a CountQuestion, not {ask!r:.80}")
        self._ask = ask
        self._name = name or counter_name(ask)
        self._estimate: Any = EstimateCounter() if estimate is None else estimate
        if not hasattr(self._estimate, "count_request"):
            raise ConfigurationError(
                "estimate is a counter with count_request(), as counter_for(...) makes it"
            )
        self._timeout_seconds = _seconds("timeout_seconds", timeout_seconds)
        self._retry_after_seconds = _seconds("retry_after_seconds", retry_after_seconds, least=0.0)
        self._max_concurrent = not_negative("max_concurrent", max_concurrent)
        if not self._max_concurrent:
            raise ConfigurationError("max_concurrent must be 1 or more")
        self._max_entries = not_negative("max_entries", max_entries)
        self._known: OrderedDict[Any, int] = OrderedDict()
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()
        self._silent_until = 0.0
        self.failures = 0
        """Questions the estimate answered in place of the provider."""
        self.last_failure: str | None = None
        """Why it did so last; None if it never did."""

    @classmethod
    def of(
        cls,
        client: Any,
        /,
        *,
        model: str,
        options: Mapping[str, Any] | None = None,
        estimate: Any = None,
        timeout_seconds: float = 10.0,
    ) -> Self:
        """Ask through an async client of the anthropic, google-genai or openai package.

        Args:
            client: `AsyncAnthropic`, `google.genai.Client` or `AsyncOpenAI`; it stays the caller's, with
                its keys and retries. Messages are in its form: Messages, contents, Responses items.
            model: Whose tokens are counted.
            options: Further arguments of the endpoint, such as `thinking` and `tool_choice`.
            estimate: Counts what the provider does not. None: by the model table, or an estimate.
            timeout_seconds: How long one answer is waited for, retries of the client included.

        Raises:
            ConfigurationError: It has no such endpoint, or does not answer later.
        """
        endpoint = endpoint_of(client, model=model, options=options)
        by = endpoint.estimate() if estimate is None else estimate
        counter = cls(
            endpoint.ask, name=f"{model} by its provider", estimate=by, timeout_seconds=timeout_seconds
        )
        endpoint.estimated_by = by
        return counter

    def __repr__(self) -> str:
        """Show the name, and how often the estimate answered."""
        return f"<{type(self).__name__} {self.name!r} failures={self.failures}>"

    @property
    def name(self) -> str:
        """What reports call it; says so while the estimate answers in its place."""
        return f"{self._name}; now estimated ({self.last_failure})" if self._is_silent() else self._name

    @property
    def exact(self) -> bool:
        """Whether the provider itself answers now."""
        return not self._is_silent()

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far off a count may be, either way.

        Not at all while the provider answers; else as far as the estimate says.
        """
        if not self._is_silent():
            return 0
        inside = getattr(self._estimate, "margin_tokens", None)
        margin: int | None = None if inside is None else inside(tokens)
        return margin

    async def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that is these messages alone."""
        return await self.count_request(messages)

    async def count_request(
        self,
        messages: Sequence[Any],
        system: Any = None,
        tools: Any = None,
        extra: Mapping[str, Any] | None = None,
        /,
    ) -> int:
        """Ask the provider for the tokens of a request; else the estimate answers.

        A request without messages, which no provider takes, is always estimated; so is an output schema
        (`extra`), which the endpoints take in other words than requests do.
        """
        dicts = tuple(mapping_of(message) for message in messages)
        beside = self._estimated_beside(extra)
        if not dicts:
            tokens: int = self._estimate.count_request([], system, tools)
            return tokens + beside
        question = CountQuestion(messages=dicts, system=system, tools=tools or None)
        return beside + await self._answer(question)

    async def _answer(self, question: CountQuestion) -> int:
        key = key_of("count_request", (question.messages, question.system, question.tools), {})
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        answer = await self._shared(key, question)
        if answer.failure is None:
            self._remember(key, answer.tokens)
        return answer.tokens

    async def _shared(self, key: Any, question: CountQuestion) -> _Answer:
        """Ask, or wait with those who have asked the same already; the last to go takes the question back."""
        loop = asyncio.get_running_loop()
        mine = self._loops.setdefault(loop, _Loop(self._max_concurrent))
        flight = mine.flights.get(key)
        if flight is None:
            task = loop.create_task(self._asked(question, mine.slots))
            flight = mine.flights[key] = _Flight(task)
            task.add_done_callback(lambda _: mine.flights.pop(key, None))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                mine.flights.pop(key, None)
                flight.task.cancel()

    async def _asked(self, question: CountQuestion, slots: asyncio.Semaphore) -> _Answer:
        async with slots:
            if self._is_silent():  # also if others failed while this one waited for its turn
                self.failures += 1
                return _Answer(self._estimated(question), self.last_failure)
            try:
                return _Answer(await self._told(question), None)
            except CountingError as error:
                self.failures += 1
                self.last_failure = str(error)[:200]
                self._silent_until = time.monotonic() + self._retry_after_seconds
                return _Answer(self._estimated(question), self.last_failure)

    async def _told(self, question: CountQuestion) -> int:
        """Ask the provider, no longer than its time.

        Raises:
            CountingError: It failed, was too slow, or answered no count.
        """
        of = "a request"
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await self._ask(question)
        except TimeoutError as cause:
            raise CountingError(
                f"counter {self._name} did not answer within {self._timeout_seconds:g} seconds",
                counter=self._name,
            ) from cause
        except BaseException as cause:
            raise failure_of(cause, counter=self._name, of=of) from cause
        return count_of(answer, counter=self._name, of=of)

    def _is_silent(self) -> bool:
        return self.last_failure is not None and time.monotonic() < self._silent_until

    def _estimated(self, question: CountQuestion) -> int:
        tokens: int = self._estimate.count_request(list(question.messages), question.system, question.tools)
        return tokens

    def _estimated_beside(self, extra: Mapping[str, Any] | None) -> int:
        if not extra:
            return 0
        whole: int = self._estimate.count_request([], None, None, extra)
        return max(0, whole - int(self._estimate.count_request([], None, None)))

    def _remember(self, key: Any, tokens: int) -> None:
        with self._lock:
            self._known[key] = tokens
            while len(self._known) > self._max_entries:
                self._known.popitem(last=False)


def _seconds(name: str, value: float, *, least: float | None = None) -> float:
    wrong = isinstance(value, bool) or not isinstance(value, (int, float)) or value != value
    if wrong or (value <= 0 if least is None else value < least):
        raise ConfigurationError(
            f"{name} is a number of seconds {'above 0' if least is None else 'of 0 or more'}, not"
            f" {value!r:.80}"
        )
    return float(value)
