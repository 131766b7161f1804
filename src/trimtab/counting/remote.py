"""Counting by a provider's own endpoint: a question a request, shared, remembered, not waited for long.

`RemoteCounter` asks whatever function it is given; what the endpoint does not answer, or not in time, is
estimated. At the end stand the endpoints of three SDKs.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, NamedTuple, NoReturn, Self
from weakref import WeakKeyDictionary

from trimtab._shared.checks import answers_later, check_whole, number_of
from trimtab.counting.awaited import AsyncRequestCounter, Digests, Key
from trimtab.counting.base import (
    CountRequest,
    RequestCounter,
    checked_count,
    count_of,
    counter_name,
    failure_of,
)
from trimtab.counting.door import as_counter
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.margin import known_margin, known_over_margin
from trimtab.errors import ConfigurationError, CopyError, CountingError, UnknownNameError
from trimtab.formats import formats, mapping_of
from trimtab.formats.values import item_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuestion:
    """The request to count.

    Args:
        messages: Messages in the wire form of the caller.
        system: System text outside the messages; None if there is none.
        tools: Tool schemas; None if there are none.
    """

    messages: tuple[dict[str, Any], ...]
    """Messages in the wire form of the caller."""
    system: Any = None
    """System text outside the messages; None if there is none."""
    tools: Any = None
    """Tool schemas; None if there are none."""


class Answer(NamedTuple):
    """What a provider said of a request."""

    tokens: int
    tools: object = None
    """Tool schemas the endpoint does not take, which are not counted here."""


Said = Answer | str
"""What a provider said, or why it said nothing."""

Exchange = tuple[CountQuestion, Answer]
"""A question and what the provider said."""


_COMPARED = 4
"""Answers of a fit that its estimates are compared with."""

_UNKNOWN_PARTS = 10
"""An estimate that does not say how far off it may be is taken to be by a tenth, as `baseline` takes it."""


class _Cost(NamedTuple):
    tokens: int
    estimated: str | None = None
    """Why some of it or all is an estimate; None if the provider said it."""


@dataclass(slots=True)
class _Flight:
    """A question that is being asked, by everybody who waits for its answer."""

    task: asyncio.Task[Said]
    waiting: int = 0


@dataclass(slots=True)
class _Loop:
    """What belongs to one event loop."""

    slots: asyncio.Semaphore
    flights: dict[Key, _Flight] = field(default_factory=dict)

    def end(self, key: Key, flight: _Flight, _task: object = None) -> None:
        """Forget a question; not one that was asked anew since."""
        if self.flights.get(key) is flight:
            del self.flights[key]


class RemoteCounter(AsyncRequestCounter):
    """An async counter that asks the provider what a request costs; for `afit`.

    It asks about a whole request, so the result is the provider's own number; shares of single messages are
    estimated. A fit asks once if everything fits, and O(log n) times otherwise. Equal requests are asked
    about once, even while the first is in progress. If the provider fails or is too slow, the estimate
    answers, raised by its possible error and by the difference to the provider's last count; `name` and
    `exact` (shown in reports), `failures` and `last_failure` say so.

    Raises:
        ConfigurationError: A number is out of range, or `ask` is not a function.

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
        """Set up the counter; no request is sent yet.

        Args:
            ask: Asks the provider; an async function.
            name: Its name in reports; None: the name of the function.
            estimate: Counts what the provider does not count. None: `EstimateCounter()`.
            timeout_seconds: Maximum wait for one answer; above 0.
            retry_after_seconds: How long only the estimate answers after a failure: a fit asks several
                questions, and each would wait as long again.
            max_concurrent: Maximum number of questions in progress in one event loop, at least 1.
            max_entries: Answers remembered.
        """
        if not callable(ask):
            raise ConfigurationError(
                f"ask must be an async function of a CountQuestion, not {ask!r:.80}", argument="ask"
            )
        self._ask = ask
        self._made_of = {
            "name": name,
            "estimate": estimate,
            "timeout_seconds": timeout_seconds,
            "retry_after_seconds": retry_after_seconds,
            "max_concurrent": max_concurrent,
            "max_entries": max_entries,
        }
        if name is not None and not isinstance(name, str):
            raise ConfigurationError(f"name must be a text, not {name!r:.80}", argument="name")
        self._name = name or counter_name(ask)
        try:
            self._estimate = EstimateCounter() if estimate is None else as_counter(estimate)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"estimate must be a counter, for example from counter_for(...): {error}", argument="estimate"
            ) from error
        self._timeout_seconds = _seconds("timeout_seconds", timeout_seconds, is_pause=False)
        self._retry_after_seconds = _seconds("retry_after_seconds", retry_after_seconds, is_pause=True)
        self._max_concurrent = check_whole("max_concurrent", max_concurrent, least=1)
        self._max_entries = check_whole("max_entries", max_entries, least=0)
        self._known: OrderedDict[Key, Answer] = OrderedDict()
        self._latest: Exchange | None = None
        self._estimated: str | None = None
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()
        self._silent_until = 0.0
        self.failures = 0
        """Questions the estimate answered in place of the provider."""
        self.last_failure: str | None = None
        """Why it did so last; None if it never did."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by what it is made of; answers, and what is under way, stay behind."""
        return partial(type(self), **self._made_of), (self._ask,)

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
        """Count through an async client of the anthropic, google-genai or openai package.

        Args:
            client: `AsyncAnthropic`, `google.genai.Client` or `AsyncOpenAI`; it is used as it is, with its
                keys and retries. Messages are in the client's form: Messages, contents, or Responses items.
            model: The model whose tokens are counted.
            options: Further arguments of the endpoint, such as `thinking` and `tool_choice`.
            estimate: Counts what the provider does not count. None: from the model table, or an estimate.
            timeout_seconds: Maximum wait for one answer, including retries of the client.

        Raises:
            ConfigurationError: The client has no such endpoint, or is not async.
        """
        endpoint = _endpoint_of(client, model=model, options=options)
        by = endpoint.estimate() if estimate is None else estimate
        ask: Any = endpoint.ask  # may say more than a number
        return cls(ask, name=f"{model} by its provider", estimate=by, timeout_seconds=timeout_seconds)

    def __repr__(self) -> str:
        """Show the name, and how often the estimate answered."""
        return f"<{type(self).__name__} {self.name!r} failures={self.failures}>"

    @property
    def name(self) -> str:
        """Its name in reports; shows if the estimate answers instead."""
        why = self.last_failure if self._is_silent() else self._estimated
        return self._name if why is None else f"{self._name}; now estimated ({why})"

    @property
    def exact(self) -> bool:
        """Whether the latest count is the provider's, and the provider answers now."""
        return self._estimated is None and not self._is_silent()

    def margin_tokens(self, tokens: int, /) -> int:
        """Say how far the bill may be above a count.

        It is 0 while the provider answers; otherwise it is the margin of the estimate, or a tenth if the
        estimate gives none.
        """
        return 0 if self.exact else self._margin_of_estimate(tokens)

    def over_margin_tokens(self, tokens: int, /) -> int:
        """Say how far the bill may be below a count."""
        return 0 if self.exact else self._over_margin_of_estimate(tokens)

    def _over_margin_of_estimate(self, tokens: int) -> int:
        known = known_over_margin(self._estimate, tokens)
        return -(-tokens // _UNKNOWN_PARTS) if known is None else known

    def _margin_of_estimate(self, tokens: int) -> int:
        known = known_margin(self._estimate, tokens)
        return -(-tokens // _UNKNOWN_PARTS) if known is None else known

    def snapshot(self) -> _Snapshot:
        return _Snapshot(self)

    async def count_request(self, request: CountRequest, /) -> int:
        """Ask the provider for the tokens of a request; if it fails, the estimate answers.

        Some requests are always estimated: those without messages, which no provider accepts; those with an
        output schema (`extra`), which the endpoints expect in another form; and those with tools that an
        endpoint refuses.
        """
        answer = await _Snapshot(self).cost(request)
        self._estimated = answer.estimated
        return answer.tokens

    async def _answer(self, key: Key, question: CountQuestion) -> Said:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        said = await self._ask_once(key, question)
        if isinstance(said, Answer):
            self._latest = (question, said)
            with self._lock:
                self._known[key] = said
                while len(self._known) > self._max_entries:
                    self._known.popitem(last=False)
        return said

    async def _ask_once(self, key: Key, question: CountQuestion) -> Said:
        """Ask, or wait with those who have asked the same already; the last to go takes the question back."""
        loop = asyncio.get_running_loop()
        mine = self._loops.setdefault(loop, _Loop(asyncio.Semaphore(self._max_concurrent)))
        flight = mine.flights.get(key)
        if flight is None:
            task = loop.create_task(self._ask_in_turn(question, mine.slots))
            flight = mine.flights[key] = _Flight(task)
            task.add_done_callback(partial(mine.end, key, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                mine.end(key, flight)
                flight.task.cancel()

    async def _ask_in_turn(self, question: CountQuestion, slots: asyncio.Semaphore) -> Said:
        async with slots:
            if self._is_silent():  # also if others failed while this one waited for its turn
                self.failures += 1
                return str(self.last_failure)
            try:
                return await self._ask_provider(question)
            except CountingError as error:
                self.failures += 1
                self.last_failure = str(error)[:200]
                self._silent_until = time.monotonic() + self._retry_after_seconds
                return self.last_failure

    async def _ask_provider(self, question: CountQuestion) -> Answer:
        """Ask the provider, no longer than its time."""
        of = "a request"
        try:
            async with asyncio.timeout(self._timeout_seconds) as limit:
                try:
                    answer = await self._ask(question)
                except TimeoutError as cause:
                    if limit.expired():
                        raise
                    raise failure_of(cause, counter=self._name, of=of) from cause
        except TimeoutError as cause:
            raise CountingError(
                f"counter {self._name} did not answer within {self._timeout_seconds:g} seconds",
                counter=self._name,
            ) from cause
        except asyncio.CancelledError as cause:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            what = f"counter {self._name} failed on a request: an inner operation was cancelled"
            raise CountingError(what, counter=self._name) from cause
        except BaseException as cause:
            raise failure_of(cause, counter=self._name, of=of) from cause
        found = answer if isinstance(answer, Answer) else Answer(answer)
        return found._replace(tokens=count_of(found.tokens, counter=self._name, of=of))

    def _is_silent(self) -> bool:
        return self.last_failure is not None and time.monotonic() < self._silent_until


class _Snapshot(AsyncRequestCounter):
    """A remote counter, as one fit asks it: knows of each count of the fit whether it was estimated.

    Estimates err high, so that a budget holds whose margin was chosen while the provider still answered.
    """

    def __init__(self, counter: RemoteCounter) -> None:
        self._digests = Digests()
        self._counter = counter
        self._said: deque[Exchange] = deque(maxlen=_COMPARED)
        self._estimated: str | None = None
        self._has_margin = False

    @property
    def name(self) -> str:
        """What the report calls it; with what was estimated in this fit, and why."""
        name, why = self._counter._name, self._why
        return name if why is None else f"{name}; {'in part' if self._said else 'now'} estimated ({why})"

    @property
    def exact(self) -> bool:
        """Whether the provider itself said all that this fit goes by."""
        return self._why is None

    @property
    def _why(self) -> str | None:
        """Why counts are estimated, so far and from here; None if they are not."""
        if self._estimated is None and not self._said and self._counter._is_silent():
            return self._counter.last_failure
        return self._estimated

    def digests(self) -> Digests:
        return self._digests

    def margin_tokens(self, tokens: int, /) -> int:
        """Say how far off a count may be; what a budget keeps free is not added to estimates again."""
        if self.exact:
            return 0
        self._has_margin = True
        return self._counter._margin_of_estimate(tokens)

    def over_margin_tokens(self, tokens: int, /) -> int:
        """Say how far the bill may be below a count."""
        return 0 if self.exact else self._counter._over_margin_of_estimate(tokens)

    async def count_request(self, request: CountRequest, /) -> int:
        answer = await self.cost(request)
        self._estimated = answer.estimated or self._estimated
        return answer.tokens

    async def cost(self, request: CountRequest) -> _Cost:
        extra, asked = request.extra, replace(request, extra=None)
        dicts = tuple(mapping_of(message) for message in request.messages)
        if not dicts:
            return _Cost(self._estimate(asked) + self._estimate_beside(None, extra))
        question = CountQuestion(messages=dicts, system=request.system, tools=request.tools or None)
        key = self._digests.key_of("ask", (dicts, question.system, question.tools))
        said = await self._counter._answer(key, question)
        if isinstance(said, str):
            tokens = self._compare(self._estimate(replace(asked, messages=dicts)))
            return _Cost(self._raise(tokens + self._estimate_beside(None, extra)), said)
        self._said.append((question, said))
        beside = self._estimate_beside(said.tools, extra)
        if not beside:
            return _Cost(said.tokens)
        what = " and ".join([*["tools"] * bool(said.tools), *["output schema"] * bool(extra)])
        return _Cost(said.tokens + self._raise(beside), f"{what}, which the endpoint does not take")

    def _estimate(self, request: CountRequest) -> int:
        counter: RequestCounter = self._counter._estimate
        return checked_count(lambda: counter.count_request(request), counter, None)

    def _estimate_beside(self, tools: object, extra: Mapping[str, Any] | None) -> int:
        """Estimate what an endpoint is not asked about."""
        if not tools and not extra:
            return 0
        beside = self._estimate(CountRequest([], tools=tools, extra=extra))
        return max(0, beside - self._estimate(CountRequest([])))

    def _compare(self, tokens: int) -> int:
        """Raise an estimate by the most the provider said for an estimated token.

        It is never lowered: what holds for a whole need not hold for its parts.
        """
        most, latest = tokens, self._counter._latest
        for question, answer in self._said or ([] if latest is None else [latest]):
            tools = None if answer.tools is not None else question.tools
            by = self._estimate(CountRequest(question.messages, system=question.system, tools=tools))
            most = max(most, -(-tokens * answer.tokens // max(1, by)))
        return most

    def _raise(self, tokens: int) -> int:
        return tokens if self._has_margin else tokens + self._counter._margin_of_estimate(tokens)


def _seconds(name: str, value: float, *, is_pause: bool) -> float:
    seconds = number_of(value)
    if seconds is None or seconds < 0 or (seconds == 0 and not is_pause):
        bound = "of 0 or more" if is_pause else "above 0"
        raise ConfigurationError(
            f"{name} must be a number of seconds {bound}, not {value!r:.80}", argument=name
        )
    return float(seconds)


class _Provider(NamedTuple):
    """Where one SDK's client counts a request, and by what names; no SDK is imported."""

    form: str
    """The wire form it takes."""
    path: tuple[str, ...]
    """The attributes that lead from a client to the endpoint."""
    messages: str
    system: str
    tokens: str
    """Where its answer has the number."""
    in_config: bool = False
    """Whether all but the messages stands in one argument "config"."""


_PROVIDERS = (
    # docs.claude.com, "Token counting"; anthropic 2.12 (2026-11-21)
    _Provider("anthropic", ("messages", "count_tokens"), "messages", "system", "input_tokens"),
    # ai.google.dev, "Count tokens"; google-genai 3.4 (2026-11-21)
    _Provider(
        "gemini", ("aio", "models", "count_tokens"), "contents", "system_instruction", "total_tokens", True
    ),
    # platform.openai.com, "Get input token counts"; openai 3.54 (2026-11-21)
    _Provider(
        "openai_responses", ("responses", "input_tokens", "count"), "input", "instructions", "input_tokens"
    ),
)

_NOT_TAKEN = re.compile(r"\b(system_instruction|tools) parameter is (not|only) supported")
"""What the ValueError of google-genai says (3.4, read 2026-11-22); earlier ones say "not supported"."""


def _endpoint_of(client: object, *, model: str, options: Mapping[str, Any] | None) -> _Endpoint:
    """Find the counting endpoint of a client."""
    for provider in _PROVIDERS:
        call = reduce(item_of, provider.path, client)
        if not callable(call):
            continue
        if not answers_later(call):
            raise ConfigurationError(
                f"{counter_name(client)} is not async: pass the async client (AsyncAnthropic, AsyncOpenAI)"
            )
        return _Endpoint(call, provider, model, options or {})
    paths = ", ".join(f"client.{'.'.join(provider.path)}" for provider in _PROVIDERS)
    raise ConfigurationError(
        f"{type(client).__name__} has no {paths}. For another client pass an async function:"
        " RemoteCounter(ask)"
    )


@dataclass(frozen=True)
class _Endpoint:
    """One client's way to count a request."""

    call: Callable[..., Any]
    provider: _Provider
    model: str
    options: Mapping[str, Any]

    def __reduce__(self) -> NoReturn:
        """Refuse: a client holds connections and locks.

        Raises:
            CopyError: Always, with what to write instead.
        """
        raise CopyError(
            "a RemoteCounter that asks through a client cannot be copied or pickled: make it where it is"
            " used, with RemoteCounter.of(client, model=...)"
        )

    def estimate(self) -> RequestCounter:
        """Make the counter for what the provider does not answer."""
        from trimtab.counting import counter_for

        form = self.provider.form if self.provider.form in formats() else "openai_chat"
        try:
            return counter_for(self.model).with_format(form)
        except UnknownNameError:
            return EstimateCounter(format=form)

    async def ask(self, question: CountQuestion, /) -> Answer:
        """Ask with all there is of the request, or with what the endpoint takes.

        Gemini's Developer API takes no system text and no tools there, and the client says so before it
        asks: system text is then asked about as one more content, and tools are left out. Errs: high by a
        few tokens.
        """
        messages = list(question.messages)
        given = {self.provider.system: question.system, "tools": question.tools}
        options = {**{name: value for name, value in given.items() if value is not None}, **self.options}
        try:
            return Answer(await self._count(messages, options))
        except ValueError as error:
            if not (self.provider.in_config and _NOT_TAKEN.search(str(error))):
                raise
        system, tools = options.pop("system_instruction", None), options.pop("tools", None)
        if system is not None:
            messages.insert(0, {"role": "user", "parts": _parts_of(system)})
        return Answer(await self._count(messages, options), tools)

    async def _count(self, messages: list[Any], options: dict[str, Any]) -> int:
        provider = self.provider
        arguments: dict[str, Any] = {"config": options or None} if provider.in_config else options
        answer = await self.call(model=self.model, **{provider.messages: messages}, **arguments)
        tokens: int = getattr(answer, provider.tokens)
        return tokens


def _parts_of(system: Any) -> list[object]:
    if isinstance(system, Mapping):
        return list(system.get("parts") or ())
    return [{"text": system}] if isinstance(system, str) else list(system)
