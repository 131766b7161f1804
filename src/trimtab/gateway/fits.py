"""The body of a request, read and fitted: who fits it, what is sent in its place, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trimtab._shared.strict_json import dump, parse
from trimtab.context import Context
from trimtab.counting.usage import usage_of
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError, FormatError
from trimtab.formats import get_format
from trimtab.formats.api_answers import write_error, write_too_long
from trimtab.formats.api_paths import FORMS, ApiCall
from trimtab.gateway.askers import Askers
from trimtab.gateway.budgets import Selectors
from trimtab.gateway.encodings import EncodingError, decode
from trimtab.gateway.headers import Headers
from trimtab.gateway.memory import Memory, MemoryRecall, Unreachable
from trimtab.integrations.base import AdapterBudget, FitOptions, budget_given, clamped_strides
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.chats import Sent
from trimtab.integrations.recovery import refusal_in
from trimtab.models import model_in
from trimtab.strategies.door import ratio_of

MOST_QUICK_BYTES = 64 * 2**10
"""A fit of so much takes 3 to 5 ms (2026-11-29, two busy cores); a thread of its own costs a part of one."""

MOST_QUICK_OBJECTS = 300
"""Objects of JSON in a body that is quick: 6,500 messages of a word took 170 ms."""

MOST_NAME_CHARS = 256
"""Of the name of a model: names like it are looked for in tables, and one of 100 kB took 200 ms."""

MOST_MODELS = 1_000
"""Names of models that are remembered; clients choose them."""


class Answered(Exception):
    """A request is answered here, and its upstream is not asked.

    Args:
        status: Of the answer.
        body: Of the answer, as the API writes errors.
        reason: A word for the log.
        told: What the report of the answer says.
    """

    def __init__(
        self, status: int, body: Mapping[str, Any], reason: str, told: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(reason)
        self.status, self.body, self.reason, self.told = status, body, reason, told or {}


class FittedBy(NamedTuple):
    """Who fits a request, and by what."""

    bodies: Bodies
    recall: MemoryRecall | None
    """What several processes know of it; None: this one knows all."""
    is_alone: bool = False
    """Whether what several processes know could not be had."""

    def keep(self) -> None:
        """Have other processes know what the request taught."""
        if self.recall is not None:
            self.recall.keep()


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCall:
    """A request as it is sent."""

    call: ApiCall
    model: str | None
    """Whose window and price it has."""
    named: str | None
    """Whom it asks, as budgets and servers are chosen: its model, or what its owner calls that."""
    body: dict[str, Any]
    """As it was read."""
    content: bytes
    """What is sent: the very bytes that came, where the request fits as it is."""
    text_bytes: int
    """The length of what came, without compression."""
    objects: int = 0
    """About how many objects of JSON it has: messages, their parts, and tools."""
    budget: str = "*"
    """What its budget is for, as it was given."""
    asker: str | None = None
    """Whose bills and refusals it is fitted by, as `Askers` names them; None: nobody's."""
    is_changed: bool = False
    told: Mapping[str, int | str | None]
    """What the report of the answer says: numbers and words of ours, never a text."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many messages were evicted or changed for which reason."""
    sent: Sent | None = None
    """None: nothing was fitted."""
    by: FittedBy | None = None
    """Who fits it; None: nobody."""

    @property
    def request(self) -> dict[str, Any]:
        """The request itself, where the body holds it under a key."""
        return _request_in(self.body, self.call)

    @property
    def conversation(self) -> str:
        """Which conversation it is of: a number made of its model and first message; "": nobody knows.

        It is another one in each process, so nobody can tell from it what was said.
        """
        call = None if self.sent is None else self.sent.call
        return "" if call is None else f"{hash(call.chat.opening) % 2**32:08x}"

    def with_request(self, sent: Sent, by: FittedBy, *, is_changed: bool) -> FittedCall:
        """Send another request in its place, which was fitted by this."""
        told, reasons = _report_of(sent, is_changed=is_changed)
        if by.is_alone:
            told["learned"] = "no"
        if not is_changed:
            return replace(self, sent=sent, by=by, told=told)
        request = self.request
        whole: Mapping[Any, Any] = sent.body
        if request is not self.body:
            whole = {**self.body, self.call.within: sent.body}
        return replace(
            self, content=dump(whole), is_changed=True, sent=sent, by=by, told=told, reasons=reasons
        )


class Fits:
    """Fits the bodies of requests, each by the budget that is for it.

    Args:
        budgets: By what each is for (`budgets.Selector`); "*": all others, None: the model's window less what
            its answer may take.
        learns: Whether what requests are billed improves the count of those that follow.
        max_bytes: How long a body may be.
        options: Keyword arguments of `trimtab.fit`.
        memory: Where what is learned is kept; None: in this process.
        secret: What names of who asks are made with; None: something of this process's own.

    Raises:
        ConfigurationError: A budget is none, or options contradict each other.
    """

    def __init__(
        self,
        budgets: Mapping[str, AdapterBudget],
        *,
        learns: bool,
        max_bytes: int,
        options: FitOptions,
        memory: Memory | None = None,
        secret: bytes | None = None,
    ) -> None:
        self._learns, self._max_bytes, self._memory = learns, max_bytes, memory
        self._askers = Askers(secret)
        asked: dict[str, AdapterBudget] = {"*": None, **budgets}
        self.selectors = Selectors(asked)
        """Which budget is for which request."""
        self._bodies = _all_bodies(asked, learns=learns, options=options)
        self._alone = {} if memory is None else _all_bodies(asked, learns=False, options=options)
        """Who fits where nothing is learned, since the memory cannot be had."""
        self._slow = {words for words, budget in asked.items() if isinstance(budget_given(budget), Context)}
        """Whose policies may ask a summarizer, that is: a network."""
        self._reads_texts = bool(options.get("compact") or options.get("rules"))
        """Whether options read texts beyond those that are counted: up to 380 ms for 250 kB."""
        self._met: set[tuple[str | None, str | None]] = set()
        """Forms and models that were fitted: the first fit of one may read a tokenizer from its files."""

    def read(
        self,
        call: ApiCall,
        content: bytes,
        encoding: str,
        /,
        headers: Headers,
        target: bytes,
        key: str,
        paths: Callable[[str | None], Collection[str]],
    ) -> FittedCall:
        """Read a request, as it is before it is fitted.

        Args:
            call: What is asked for.
            content: Its body, as it came.
            encoding: The header Content-Encoding.
            headers: All of them, with names in small letters.
            target: Path and query.
            key: The name of the key that it comes with.
            paths: Lists how routes may name the path that it is sent to, by whom it asks.

        Raises:
            Answered: It cannot be read.
        """
        text, body = self._read(call, content, encoding)
        # Servers go by the path where it says who is asked, and so does what a budget is for.
        told = call.model or model_in(_request_in(body, call)) or call.deployment
        model = None if told is None else told.removeprefix("models/")
        named = call.deployment or model
        longest = max(model or "", named or "", key=len)
        if len(longest) > MOST_NAME_CHARS:
            why = f"the name of the model has more than {MOST_NAME_CHARS} characters: {longest:.50}…"
            raise _invalid(call, why, "invalid")
        asker = self._askers.name(call, model, headers, target) if self._learns else None
        return FittedCall(
            call=call,
            model=model,
            named=named,
            body=body,
            content=content,
            text_bytes=len(text),
            # Behind the brace of an object within a text, such as a result, the quote is escaped: 240 of 435
            # in 50 kB of an agent's chat, which went to a thread for them.
            objects=text.count(b"{") - text.count(b'{\\"'),
            budget=self.selectors.find(named, paths, key),
            asker=asker,
            told={},
        )

    def is_quick(self, asked: FittedCall, /) -> bool:
        """Tell whether a fit takes so little that no other request waits for it to be felt.

        Args:
            asked: As it was read.
        """
        if self.waits or self._reads_texts or (asked.call.form, asked.model) not in self._met:
            return False
        is_small = asked.text_bytes <= MOST_QUICK_BYTES and asked.objects <= MOST_QUICK_OBJECTS
        return is_small and asked.budget not in self._slow

    def fit(self, asked: FittedCall, /) -> FittedCall:
        """Fit a request.

        Args:
            asked: As it was read.

        Raises:
            Answered: What must be kept does not fit, or nobody knows how much may be sent.
        """
        call, request = asked.call, asked.request
        _check_messages(call, request)
        stored = self._bodies[call.form or "", asked.budget].stored_key(request)
        if stored is not None:  # the server goes on from messages that nobody here sees
            return replace(asked, told={"untouched": stored})
        try:
            by, sent = self._fit_by_memory(asked)
        except BudgetExceededError as error:
            if call.counts:  # who asks how long a request is wants a number
                return replace(asked, told={"untouched": "too_long"})
            raise _too_long(call, error) from error
        except ContextError as error:
            raise _answer_to(call, error, asked.named) from error
        except Exception as error:
            told = write_error(call.api, 500, "trimtab failed to fit this request, and did not send it")
            raise Answered(500, told, f"failed: {type(error).__name__}") from error
        if sent.fitted is None:
            return replace(asked, told={"untouched": "no_messages"})
        if len(self._met) < MOST_MODELS:  # with messages: before these, no tokenizer was needed
            self._met.add((call.form, asked.model))
        by.keep()
        return asked.with_request(sent, by, is_changed=sent.body != request)

    @property
    def waits(self) -> bool:
        """Whether a fit, and what is learned of it, may wait for a server or a file."""
        return self._memory is not None

    def _fit_by_memory(self, asked: FittedCall) -> tuple[FittedBy, Sent]:
        """Fit a request by what was learned; where that cannot be had, as a process that learns nothing."""
        request, words = asked.request, (asked.call.form or "", asked.budget)
        recall = None
        if self._memory is not None and asked.asker is not None:
            recall = MemoryRecall(self._memory, asked.asker, *words)
        by = FittedBy(self._bodies[words], recall)
        try:
            return by, by.bodies.fit_body(request, model=asked.model, asker=asked.asker, recall=recall)
        except Unreachable:
            by = FittedBy(self._alone[words], None, is_alone=True)
            return by, by.bodies.fit_body(request, model=asked.model, asker=None)

    def _read(self, call: ApiCall, content: bytes, encoding: str) -> tuple[bytes, dict[str, Any]]:
        try:
            text = decode(content, encoding, max_bytes=self._max_bytes)
            body = parse(text)
        except EncodingError as error:
            told = write_error(call.api, error.status, f"trimtab: {error}")
            raise Answered(error.status, told, "unreadable") from error
        except FormatError as error:
            raise _invalid(call, f"the body cannot be read: {error}", "unreadable") from error
        if not isinstance(body, dict):
            raise _invalid(call, f"the body must be a JSON object, not {type(body).__name__}", "unreadable")
        return text, body

    def fit_again(self, fitted: FittedCall, refusal: bytes, /) -> FittedCall | None:
        """Fit a request otherwise that its upstream refused; None: it cannot be, or for another reason.

        Args:
            fitted: What was refused.
            refusal: The body of the answer.
        """
        error = _Refusal(refusal.decode("utf-8", "replace"))
        by = fitted.by
        if fitted.sent is None or by is None or refusal_in(error) is None:
            return None
        try:
            sent = by.bodies.recover(fitted.sent, error)
        except (_Refusal, ContextError):
            return None
        finally:  # how long a request may be was learned, also where this one cannot be
            by.keep()
        made = fitted.with_request(sent, by, is_changed=True)
        return replace(made, told={**made.told, "again": 1})

    def learn(self, fitted: FittedCall, usage: Mapping[str, Any] | None, /) -> int | None:
        """Take in what a request was billed, and return that in tokens; None: the answer did not say.

        Args:
            fitted: What was sent.
            usage: What its answer said.
        """
        if usage is None:
            return None
        try:
            billed = usage_of(usage).input_tokens
        except ConfigurationError:  # it is in no shape that is known
            return None
        by, sent = fitted.by, fitted.sent
        if self._learns and sent is not None and by is not None:
            sent.record(billed if sent.held is None else usage)  # a number is not read a second time
            by.keep()
        return billed

    def memory_trouble(self) -> str:
        """Say why what several processes learn cannot be had; "": it can, or this one learns alone."""
        return "" if self._memory is None else self._memory.trouble()

    def close(self) -> None:
        """Close what is open of the memory."""
        if self._memory is not None:
            self._memory.records.close()


def _request_in(body: dict[str, Any], call: ApiCall) -> dict[str, Any]:
    """Return the request itself, where a body holds it under a key."""
    held = None if call.within is None else body.get(call.within)
    return held if isinstance(held, dict) else body


class _Refusal(Exception):
    """What an upstream answered, raised as clients do."""


def _all_bodies(
    budgets: Mapping[str, AdapterBudget], *, learns: bool, options: FitOptions
) -> dict[tuple[str, str], Bodies]:
    """Make what fits each form for each budget, by both."""
    return {
        (form, words): bodies
        for words, budget in budgets.items()
        for form, bodies in _bodies_of(budget, learns=learns, options=options)
    }


def _bodies_of(budget: AdapterBudget, *, learns: bool, options: FitOptions) -> Iterator[tuple[str, Bodies]]:
    """Make what fits each form for a budget."""
    known = budget_given(budget)
    given: FitOptions = {**options}
    if isinstance(known, Context):
        budget = known  # a policy is read once
    elif not learns and "strategy" not in given:
        # Without a memory of where a conversation was cut, so that any other process cuts it there, too.
        steady = given.pop("steady", True)
        given["strategy"] = clamped_strides(ratio_of(steady) if steady else 1.0)
    for form in FORMS:
        bodies = Bodies(budget, format=form, retry_overflow=True, on_fitted=None, options=given)
        bodies.warns = False  # a write to a pipe that nobody reads would stop all requests
        yield form, bodies


def _report_of(sent: Sent, *, is_changed: bool) -> tuple[dict[str, int | str | None], Mapping[str, int]]:
    """Tell what a fit did, in numbers and in words of ours, and how many messages had which reason."""
    fitted = sent.fitted
    assert fitted is not None
    settlement = fitted.settlement
    held = {"held": "unknown"} if sent.holds_unknown else {}
    if not is_changed:
        tokens = settlement.tokens
        return {
            "before": tokens,
            "after": tokens,
            "limit": settlement.limit_tokens,
            "evicted": 0,
            **held,
        }, {}
    tally = settlement.tally()
    told: dict[str, int | str | None] = {
        "before": tally.tokens_before,
        "after": settlement.tokens,
        "limit": settlement.limit_tokens,
        "evicted": tally.evicted_message_count,
        "changed": tally.changed_message_count,
        **held,
    }
    if tally.reasons:
        told["reason"] = max(tally.reasons, key=tally.reasons.__getitem__)
    return told, tally.reasons


def _too_long(call: ApiCall, error: BudgetExceededError) -> Answered:
    limit_tokens = error.limit_tokens or 0
    needed_tokens = error.needed_tokens or limit_tokens + 1
    heaviest = "" if error.heaviest is None else f" The heaviest is {error.heaviest}."
    why = (
        f"trimtab did not send it: what must be kept has {needed_tokens:,} tokens, and the budget of this"
        f" gateway is {limit_tokens:,}.{heaviest} Send less, or give the gateway a larger --budget."
    )
    told = {"needed": needed_tokens, "limit": limit_tokens, "reason": "too_long"}
    return Answered(400, write_too_long(call.api, needed_tokens, limit_tokens, why), "too_long", told)


def _answer_to(call: ApiCall, error: ContextError, model: str | None) -> Answered:
    if isinstance(error, ConfigurationError):
        named = "" if model is None else f"{model}="
        why = f"{error}. Give the gateway the tokens of this model: --budget {named}N"
        return _invalid(call, why, "no_budget")
    if isinstance(error, ValueError):  # of what the client sent
        return _invalid(call, str(error), "invalid")
    told = write_error(call.api, 500, f"trimtab did not send this request: {error}")
    return Answered(500, told, f"failed: {type(error).__name__}")


def _check_messages(call: ApiCall, request: Mapping[str, Any]) -> None:
    """Refuse what cannot be read as messages by anybody.

    Raises:
        Answered: There are messages, and they are a number or true.
    """
    key = get_format(call.form or "").rules.body_key
    held = request.get(key)
    if not isinstance(held, str | list | dict | None):
        raise _invalid(call, f"{key} must be a list, not {type(held).__name__}", "invalid")


def _invalid(call: ApiCall, why: str, reason: str) -> Answered:
    return Answered(400, write_error(call.api, 400, f"trimtab did not send this request: {why}"), reason)
