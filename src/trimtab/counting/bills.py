"""Counts compared with bills: the bill of each call of a recording, and the count of what it sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal, NamedTuple

from trimtab._shared.checks import BODY_KEYS
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.calibration import Point, label_of
from trimtab.counting.margin import known_margin, known_over_margin
from trimtab.counting.measurement import Counted, count_of_request
from trimtab.counting.usage import holds_usage, usage_of
from trimtab.errors import ConfigurationError, UsageError
from trimtab.formats import Format, get_format
from trimtab.formats.recordings import Bill, ForeignConversation
from trimtab.formats.values import Dict
from trimtab.models import model_in

LEAST_SERIES = 3
"""Number of calls from which a conversation shows the unrecorded part that its calls share."""

_LEAST_GROWTH_TOKENS = 200
"""A call that was billed so little more than the first is not judged: framing is a large share of that."""

Basis = Literal["request", "growth"]
"""What is compared: the whole call, or what it has in addition to the first call of its conversation."""


# -- requests that were recorded with their usage


class BilledRequest(NamedTuple):
    """A request body that was recorded with its bill."""

    body: Dict
    usage: Any
    models: tuple[str, ...]
    """Names of its model: from the answer, from the request, and from the record around them."""


def billed_request(value: object, /) -> BilledRequest | None:
    """Read a body with its usage: next to a request or a response, or in the body itself.

    Returns:
        None if there is no request or no usage.
    """
    if not isinstance(value, Mapping):
        return None
    request = value.get("request")
    if isinstance(request, Mapping):
        body = _inside(request)
    else:
        body = {key: one for key, one in value.items() if key not in ("usage", "response")}
    response = _inside(value.get("response"))
    usage = value.get("usage")
    if usage is None and holds_usage(response):
        usage = response
    if usage is None or not any(key in body for key in BODY_KEYS):
        return None
    named = (model_in(one) for one in (response, body, value))
    return BilledRequest(dict(body), usage, tuple(name for name in named if name is not None))


def _inside(value: Any) -> Any:
    """Take the body out of a request or a response that was recorded with its address or status."""
    inner = value.get("body") if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else value


# -- calls beside their bills


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledCount:
    """A count and the bill of the same.

    Args:
        billed_tokens: What was billed.
        counted_tokens: What is counted.
        margin_tokens: How far the bill may be above the count; None if unknown.
        over_margin_tokens: How far it may be below; None if nobody knows.
    """

    billed_tokens: int
    counted_tokens: int
    margin_tokens: int | None
    over_margin_tokens: int | None

    @property
    def point(self) -> Point:
        """What is learned from it."""
        return Point(self.counted_tokens, self.billed_tokens)

    @property
    def off_tokens(self) -> int:
        """Tokens by which the count exceeds the bill."""
        return self.counted_tokens - self.billed_tokens

    @property
    def deviation(self) -> float:
        """The same as a fraction of the bill."""
        return self.off_tokens / self.billed_tokens

    @property
    def is_above(self) -> bool:
        """Whether the bill is above count and margin, or there is no margin: a budget may be passed."""
        return self.margin_tokens is None or -self.off_tokens > self.margin_tokens

    @property
    def is_below(self) -> bool:
        """Whether the bill is farther below the count than the margin says, or there is none."""
        return self.over_margin_tokens is None or self.off_tokens > self.over_margin_tokens

    @property
    def is_within(self) -> bool:
        """Whether the bill is within the margin on both sides."""
        return not self.is_above and not self.is_below


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledCall:
    """One call of a recording.

    Args:
        number: Number of the call in its conversation, from 1.
        model: Whose call it is.
        counter: Who counted.
        whole: All of the call.
        basis: What of it is compared; None: nothing, as there is nothing to compare with.
        compared: That part beside its bill.
        unknown: What the request holds or names whose cost nobody can know from it, a phrase each: of one
            that is recorded whole nothing is compared then. Of others nothing is compared if the first call
            of the conversation has different ones.
    """

    number: int
    model: str
    counter: str
    whole: BilledCount
    basis: Basis | None
    compared: BilledCount | None
    unknown: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Compared:
    """The calls of one conversation with their bills.

    Args:
        calls: Those that were compared, in order.
        unrecorded_tokens: By model, about how many tokens each call was billed for what is not in the
            recording; of a conversation that is recorded whole, and of fewer than three calls, nothing.
        unusable: Calls whose usage is none, each by its number and why.
    """

    calls: list[BilledCall] = field(default_factory=list[BilledCall])
    unrecorded_tokens: dict[str, int] = field(default_factory=dict[str, int])
    unusable: dict[int, str] = field(default_factory=dict[int, str])


class Named(NamedTuple):
    """The model of a call, and its counter."""

    name: str
    """The name under which its calls are summed up."""
    known: str | None
    """The model whose rules the wire form follows; None if unknown."""
    counter: AdditiveCounter


def compare_with_bills(
    conversation: ForeignConversation,
    counter_of: Callable[[str | None], Named],
    /,
    *,
    system: Any = None,
    tools: Any = None,
) -> Compared:
    """Count what each billed call of a conversation sent.

    Args:
        conversation: The conversation, and its bills.
        counter_of: Gives the counter for the model that a bill names; it is asked about None, too.
            A bill for which it raises a `UsageError` is unusable.
        system: System text that is not in the recording.
        tools: Tool schemas that are not in the recording.

    Raises:
        FormatError: A message cannot be read.
    """
    form = get_format(conversation.format)
    found = Compared()
    counters, latest = dict[str, AdditiveCounter](), dict[str, Counted]()
    for number, bill in enumerate(conversation.bills, 1):
        try:
            billed_tokens = usage_of(bill.usage).input_tokens
        except ConfigurationError as error:  # of which a UsageError is one
            found.unusable[number] = str(error)
            continue
        try:
            named = counter_of(bill.model)
        except UsageError as error:
            found.unusable[number] = str(error)
            continue
        counters.setdefault(named.name, named.counter.with_format(form))
        counted = latest[named.name] = count_of_request(
            _body_of(conversation, bill, form, named.known),
            named.counter,
            format=form,
            model=named.known,
            system=system,
            tools=tools,
            earlier=latest.get(named.name),
        )
        total = counted.total
        whole = BilledCount(
            billed_tokens=billed_tokens,
            counted_tokens=total.tokens,
            margin_tokens=total.margin_tokens,
            over_margin_tokens=total.over_margin_tokens,
        )
        is_known = not total.unknown
        call = BilledCall(
            number=number,
            model=named.name,
            counter=label_of(named.counter),
            whole=whole,
            basis="request" if is_known else None,
            compared=whole if is_known else None,
            unknown=total.unknown,
        )
        found.calls.append(call)
    if not conversation.complete:
        for model, counter in counters.items():
            _compare_growth(found, model, counter)
    return found


def _body_of(conversation: ForeignConversation, bill: Bill, form: Format, model: str | None) -> Any:
    """Return the body of one call: the messages before its answer."""
    request = form.for_model(model).read_request(conversation.body)
    if bill.at >= len(request.messages):
        return conversation.body
    return {**conversation.body, request.key: list(request.messages[: bill.at])}


def _compare_growth(found: Compared, model: str, counter: AdditiveCounter) -> None:
    """Compare what calls have more than the first: what is not recorded is the same in all of them.

    A call whose unknown parts differ from those of the first is not compared.
    """
    places = [at for at, call in enumerate(found.calls) if call.model == model]
    wholes = [found.calls[at].whole for at in places]
    is_series = len(places) >= LEAST_SERIES
    if is_series:
        found.unrecorded_tokens[model] = max(0, round(median(-one.off_tokens for one in wholes)))
    for at, whole in zip(places, wholes, strict=True):
        call = found.calls[at]
        is_like_first = call.unknown == found.calls[places[0]].unknown
        growth = _growth(wholes[0], whole, counter) if is_series and is_like_first else None
        basis: Basis | None = None if growth is None else "growth"
        found.calls[at] = replace(call, basis=basis, compared=growth)


def _growth(first: BilledCount, call: BilledCount, counter: AdditiveCounter) -> BilledCount | None:
    """Compare what a call has more than the first of its conversation; None if that is too little."""
    billed_tokens = call.billed_tokens - first.billed_tokens
    if billed_tokens < _LEAST_GROWTH_TOKENS:
        return None
    counted_tokens = call.counted_tokens - first.counted_tokens
    size = max(0, counted_tokens)
    return BilledCount(
        billed_tokens=billed_tokens,
        counted_tokens=counted_tokens,
        margin_tokens=known_margin(counter, size),
        over_margin_tokens=known_over_margin(counter, size),
    )
