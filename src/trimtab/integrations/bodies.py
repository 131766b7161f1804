"""What the modules of providers' clients share: a call's body is fitted, and what was billed for it taken in.

A client is asked about many conversations, and a baseline is made for one. So each conversation has one of
its own, found by its first messages. What is learned from bill to bill moves the sizes of messages a little,
and a cut that is worked out anew each time would move back and forth. So a conversation's cut stays where it
was as long as what is behind it fits, and a result that was cut keeps its text.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import is_
from typing import Any, NamedTuple

from trimtab._fit import Fitted, afit, fit
from trimtab._fitting.request import known_budget
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.counting import EstimateCounter, counter_for
from trimtab.counting.base import SYSTEM_ROLES
from trimtab.counting.baseline import key_of_message, usage_of
from trimtab.counting.door import as_additive
from trimtab.counting.totals import TotalBaseline
from trimtab.errors import ConfigurationError
from trimtab.formats import Path, Request, mapping_of
from trimtab.formats.values import item_of
from trimtab.integrations.base import BudgetLike, FitOptions, OnFitted, Trimmer, _Blocks, _facts_of
from trimtab.strategies import Cascade, SlidingWindow, TruncateText
from trimtab.strategies.cut_memory import HeldCut

MOST_CHATS = 256
"""Conversations a client remembers, those that were asked about last."""

MOST_TEXTS = 256
"""Results of a conversation that were cut and keep their text; those that were cut last."""

_LEAST_BILLED = 4
"""A bill below this part of the count is of something else: some servers report one token, whatever came."""


class _Kept(NamedTuple):
    """Which messages of a call were sent."""

    cut: int
    """All from this one on."""
    before: int
    """How many before it."""
    total: int
    """How many there were."""

    def goes_on(self, latest: _Kept) -> bool:
        """Tell whether what was sent holds what another call sent, and what is newer."""
        return self[:2] == latest[:2] and self.total >= latest.total


_NOTHING = _Kept(0, 0, 0)


@dataclass(slots=True)
class _Chat:
    """What is known of one conversation."""

    baseline: TotalBaseline | None
    """What counts it; None: the caller's own counter does, and takes in no bill."""
    billed: _Kept = _NOTHING
    """What the latest bill was for."""
    cut: int = 0
    """Where the last call was cut; 0: nowhere."""
    at_cut: Any = None
    """The first message behind the cut, by which a conversation is known that goes on."""
    texts: dict[tuple[int, Path, int], str] = field(default_factory=dict)
    """What became of results that were cut: by message, place in it, and the hash of the whole text."""

    def twin(self) -> _Chat:
        """Return what another conversation that begins alike starts from."""
        return replace(self, texts=dict(self.texts))

    def as_before(self, place: tuple[int, Path, int], text: str) -> str:
        """Say what became of a result when it was cut first; else what it becomes now, for later calls."""
        known = self.texts.setdefault(place, text)
        if len(self.texts) > MOST_TEXTS:
            self.texts.pop(next(iter(tuple(self.texts)), place), None)  # another thread may add to them
        return known

    def plan(self, messages: Sequence[Any]) -> int:
        """Say where a call is to be cut, and no earlier; 0: wherever it fits."""
        goes_on = len(messages) > self.cut and messages[self.cut] == self.at_cut
        return self.cut if goes_on else 0

    def learn(self, messages: Sequence[Any], fitted: Fitted[Any], kept: _Kept) -> None:
        """Remember where a call was cut: behind the newest message that left for room."""
        if kept.cut in (0, self.cut):
            return
        stay = {*fitted.positions}
        rows = fitted.report.messages
        left = (place for place in range(kept.cut - 1, -1, -1) if place not in stay)
        cut = next((place + 1 for place in left if rows[place].reason == "over_limit"), 0)
        if 0 < cut < len(messages):
            self.cut, self.at_cut = cut, messages[cut]
            self.texts = {place: text for place, text in tuple(self.texts.items()) if place[0] >= cut}


@dataclass(frozen=True, slots=True)
class Sent:
    """A call as it is sent."""

    body: Mapping[str, Any]
    chat: _Chat | None = None
    """The conversation its bill is for; None: the server adds what nobody here sees."""
    baseline: TotalBaseline | None = None
    """What counted it; None: it takes in no bill."""
    tokens: int = 0
    """What was counted for it."""
    fixed_counted: int = 0
    """Of these, beside its messages, as the counter inside counts."""
    kept: _Kept = _NOTHING

    def record(self, answer: Any) -> None:
        """Take in what an answer says it was billed; nothing where it does not say."""
        if self.chat is None or self.baseline is None:
            return
        try:
            usage = usage_of(answer)
        except ConfigurationError:  # servers that report none, or nothing
            return
        billed, baseline = usage.input_tokens, self.baseline
        known = not baseline.estimates and not baseline.bills and billed == self.tokens
        if not known and billed * _LEAST_BILLED >= self.tokens:
            goes_on = self.kept.goes_on(self.chat.billed)
            self.chat.baseline = baseline.with_bill(
                billed, of=self.tokens, fixed_counted=self.fixed_counted, goes_on=goes_on
            )
            self.chat.billed = self.kept

    def watch(self, events: Iterator[Any], billed: Callable[[Any], Any]) -> Iterator[Any]:
        """Pass on the events of a stream, and take in the last bill that is found in one."""
        latest: Any = None
        try:
            for event in events:
                latest = billed(event) or latest
                yield event
        finally:
            self.record(latest)

    async def awatch(self, events: AsyncIterator[Any], billed: Callable[[Any], Any]) -> AsyncIterator[Any]:
        """Do what `watch` does."""
        latest: Any = None
        try:
            async for event in events:
                latest = billed(event) or latest
                yield event
        finally:
            self.record(latest)


class Bodies(Trimmer[Any]):
    """Fits the body of each call of a client in one wire form.

    Args:
        budget: See `BudgetLike`.
        format: The wire form.
        stored: Keys of a body by which it goes on from a conversation that the server keeps.
        target_ratio: What stays when a conversation is cut. A cut that is remembered is a whole stride from
            the next, so that more may stay than where marks are found again without memory (design/029).
        most_output: Keys of a body that say how long its answer may be; dotted ones lead into a mapping.
        on_fitted: Called with the `Fitted` of each call.
        options: What the user said of `fit`.

    Raises:
        ConfigurationError: The budget is none, or options contradict each other.
    """

    def __init__(
        self,
        budget: BudgetLike,
        *,
        format: str,
        stored: Sequence[str] = (),
        target_ratio: float,
        most_output: Sequence[str],
        on_fitted: OnFitted | None,
        options: FitOptions,
    ) -> None:
        super().__init__(budget, format=format, on_fitted=on_fitted, options=options)
        self._exactly = isinstance(budget, Budget)
        """Whether the budget is the caller's word: a bare number of tokens is held whatever is estimated."""
        self._stored, self._most_output = stored, most_output
        self._own = options.get("counter")
        self._holds = not isinstance(self._budget, Context) and "strategy" not in options
        self._target_ratio = 0.5 if options.get("steady") else target_ratio
        self._options.pop("steady", None)
        self._chats: OrderedDict[tuple[str, ...], _Chat] = OrderedDict()
        self._lock = threading.Lock()

    def fit_body(self, body: Mapping[str, Any], *, model: str | None) -> Sent:
        """Return a body that fits.

        Args:
            body: As it would be sent; what the caller left out may stand there as the SDK writes that.
            model: Who is asked.
        """
        request = self._request_of(body)
        if request is None:
            return Sent(body)
        chat = self._chat(request.messages, model)
        baseline = chat.baseline
        if isinstance(self._budget, Context):
            fitted = self._in_context(self._budget, request, baseline, model).fit()
        else:
            limit, given = self._arguments(request, chat, baseline, model)
            fitted = fit(request.body or {}, limit, **given)
        return self._outcome(body, request, chat, baseline, fitted)

    async def afit_body(self, body: Mapping[str, Any], *, model: str | None) -> Sent:
        """Do what `fit_body` does; wait for async counters and summarizers."""
        request = self._request_of(body)
        if request is None:
            return Sent(body)
        chat = self._chat(request.messages, model)
        baseline = chat.baseline
        if isinstance(self._budget, Context):
            fitted = await self._in_context(self._budget, request, baseline, model).afit()
        else:
            limit, given = self._arguments(request, chat, baseline, model)
            fitted = await afit(request.body or {}, limit, **given)
        return self._outcome(body, request, chat, baseline, fitted)

    def _request_of(self, body: Mapping[str, Any]) -> Request | None:
        """Read a body; None if the server keeps what it goes on from."""
        kept = next((key for key in self._stored if _has(body, key)), None)
        if kept is not None:
            warnings.warn(
                f"{kept} is given: the server adds messages that nobody here sees, so this call is sent as it"
                " is, whatever its budget. Send the whole conversation to have it fitted",
                stacklevel=2,
            )
            return None
        key = self._format.rules.body_key
        clean = {name: value for name, value in body.items() if _has(body, name)}
        if not isinstance(clean.get(key), str | list | None):  # SDKs take any iterable
            clean[key] = list(clean[key])
        return self._format.read_request(clean)

    def _chat(self, messages: Sequence[Any], model: str | None) -> _Chat:
        """Find the conversation that begins like this: its first two messages, without system text."""
        said = map(mapping_of, messages)
        opens = islice((one for one in said if one.get("role") not in ("system", "developer")), 2)
        key = (self._model(model) or "", *(key_of_message(one, self._format) for one in opens))
        with self._lock:
            chat = self._chats.get(key)
            if chat is None:
                before = self._chats.get(key[:2])
                chat = self._chats[key] = self._new_chat(model) if before is None else before.twin()
            self._chats.move_to_end(key)
            if len(self._chats) > MOST_CHATS:
                self._chats.popitem(last=False)
        return chat

    def _new_chat(self, model: str | None) -> _Chat:
        name = self._model(model)
        counter: Any = self._own
        if counter is None:
            known = name is not None and _facts_of(name) is not None
            counter = counter_for(name) if known and name is not None else EstimateCounter()
        try:
            return _Chat(TotalBaseline(as_additive(counter).with_format(self._format)))
        except ConfigurationError:  # it counts whole requests, or is awaited: such counts need no bill
            return _Chat(None)

    def _arguments(
        self, request: Request, chat: _Chat, baseline: TotalBaseline | None, model: str | None
    ) -> tuple[Budget | None, dict[str, Any]]:
        """Say to what a call is fitted, and with what."""
        given = self._ask(model, None, None, None)
        given["counter"] = baseline or self._own
        if self._holds:
            plan = chat.plan(request.messages)
            window = SlidingWindow(target_ratio=self._target_ratio)
            held = HeldCut(plan, self._target_ratio, chat.as_before)
            given["strategy"] = Cascade(held, window, TruncateText())
        return self._limit(request, baseline, model), given

    def _in_context(
        self, context: Context, request: Request, baseline: TotalBaseline | None, model: str | None
    ) -> Context:
        given = self._ask(model, None, request.system, request.tools)
        given["counter"] = baseline or self._own
        return _Blocks(context, request.messages, self._format, None, given).context

    def _limit(self, request: Request, baseline: TotalBaseline | None, model: str | None) -> Budget | None:
        """Return the budget of a call: an answer has its room, and an estimate keeps some free."""
        if self._exactly:
            return self._tokens(model, None)
        output, name = self._output_of(request), self._model(model)
        facts = None if name is None else _facts_of(name)
        window = None if facts is None else facts.window_tokens
        if self._budget is None:
            limit = known_budget(None, name if facts else None)
            if limit is not None and output:
                limit = Budget(limit.window, output_reserve=output)
        else:
            limit = self._tokens(model, None)
            if isinstance(self._budget, str) and output and window and limit:
                limit = Budget(max(1, min(limit.window, window - output)))
        estimated = baseline is not None and baseline.bills and baseline.estimates
        return replace(limit, margin="auto") if limit is not None and estimated else limit

    def _output_of(self, request: Request) -> int | None:
        """Return the most tokens an answer may have; None if the body does not say."""
        for dotted in self._most_output:
            value: Any = request.body
            for key in dotted.split("."):
                value = item_of(value, key)
            if isinstance(value, int) and value > 0:
                return value
        return None

    def _outcome(
        self,
        body: Mapping[str, Any],
        request: Request,
        chat: _Chat,
        baseline: TotalBaseline | None,
        fitted: Fitted[Any],
    ) -> Sent:
        self._tell(fitted)
        kept = _stay(fitted, request.messages)
        if self._holds:
            chat.learn(request.messages, fitted, kept)
        written = fitted.request
        if isinstance(self._budget, Context):
            written = self._format.write_request(replace(request, system=fitted.system), fitted.messages)
        made = {**body, **written}
        if baseline is None:
            return Sent(made)
        first = mapping_of(request.messages[0]) if request.messages else {}
        fixed_counted = baseline.fixed_counted(
            request.system,
            request.tools,
            has_system=bool(request.system) or first.get("role") in SYSTEM_ROLES,
            extra=request.extra,
        )
        return Sent(made, chat, baseline, fitted._plan.tokens, fixed_counted, kept)


def _stay(fitted: Fitted[Any], messages: Sequence[Any]) -> _Kept:
    """Tell which messages of a call are sent."""
    count = len(messages)
    if len(fitted.messages) == count and all(map(is_, fitted.messages, messages)):
        return _Kept(0, 0, count)
    positions = fitted.positions
    newest = count - 1
    """The newest that left."""
    behind = 0
    for place in reversed(positions):
        if place is not None and place != newest:
            break
        behind += 1
        newest -= place is not None
    return _Kept(newest + 1, len(positions) - behind, count)


def _has(body: Mapping[str, Any], key: str) -> bool:
    """Tell whether a key has a value: SDKs have objects of their own for what was left out."""
    return body.get(key) is not None and type(body[key]).__name__ not in ("Omit", "NotGiven")


# Clients made by the generator that OpenAI's and Anthropic's are made by: every call goes through `post`,
# which is public (for endpoints they have no method for) and is looked up when a resource is made.

_RAW = "X-Stainless-Raw-Response"


def fit_posts(client: Any, bodies: Mapping[str, Bodies], *, is_async: bool) -> Any:
    """Return a copy of a client whose posts are fitted; it shares the connections of the other.

    Args:
        client: The client.
        bodies: What fits the bodies that are sent to a path.
        is_async: Whether its calls are awaited.
    """
    made = client.copy()
    post = made.post

    def fit_post(path: str, *, body: Any = None, **given: Any) -> Any:
        fits = _fits(bodies, path, body)
        if fits is None:
            return post(path, body=body, **given)
        sent = fits.fit_body(body, model=_model_in(body))
        answer = post(path, body=sent.body, **given)
        return _watch(sent, answer, given)

    async def afit_post(path: str, *, body: Any = None, **given: Any) -> Any:
        fits = _fits(bodies, path, body)
        if fits is None:
            return await post(path, body=body, **given)
        sent = await fits.afit_body(body, model=_model_in(body))
        answer = await post(path, body=sent.body, **given)
        return _watch(sent, answer, given)

    copy_of = made.copy

    def with_options(**options: Any) -> Any:
        return fit_posts(copy_of(**options), bodies, is_async=is_async)

    vars(made).update(post=afit_post if is_async else fit_post, copy=with_options, with_options=with_options)
    return made


def _fits(bodies: Mapping[str, Bodies], path: str, body: Any) -> Bodies | None:
    return bodies.get(path.partition("?")[0]) if isinstance(body, Mapping) else None


def _model_in(body: Mapping[str, Any]) -> str | None:
    """Name the model of a body; without the name of a provider before it."""
    model = body.get("model")
    return model.rpartition("/")[2] if isinstance(model, str) else None


def _watch(sent: Sent, answer: Any, given: Mapping[str, Any]) -> Any:
    """Take in what was billed: now, or when a stream ends; a body that the caller reads is left alone."""
    raw = (item_of(given.get("options"), "headers") or {}).get(_RAW)
    if raw is not None:
        if raw == "true" and not given.get("stream"):
            sent.record(_json_of(answer.http_response))
    elif given.get("stream"):
        watch: Any = sent.awatch if isinstance(answer._iterator, AsyncIterator) else sent.watch
        answer._iterator = watch(answer._iterator, _usage_in)
    else:
        sent.record(answer)
    return answer


def _json_of(response: Any) -> Any:
    try:
        return response.json()
    except ValueError:  # no JSON, and no usage
        return None


def _usage_in(event: Any) -> Any:
    """Return what of an event of a stream holds what was billed; None if nothing does."""
    for holder in (event, item_of(event, "response"), item_of(event, "message")):
        usage = None if holder is None else item_of(holder, "usage")
        if usage is not None and any(item_of(usage, key) for key in ("prompt_tokens", "input_tokens")):
            return usage
    return None
