"""What `fit` was asked, looked over; and what `fit` and `Context` choose in the same way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from trimtab._fitting.callbacks import OnTrim, TrimContext
from trimtab._shared import observers
from trimtab._shared.checks import (
    check_flag,
    check_messages,
    check_model,
    check_origin_of,
    check_pending_calls,
    check_tools,
    check_trim,
    system_of,
)
from trimtab.budget import Budget, BudgetLike, HeldBudget, known_budget
from trimtab.conversation.units import pins_given
from trimtab.counting import EstimateCounter, counter_for
from trimtab.counting.base import RequestCounter
from trimtab.counting.door import as_counter
from trimtab.counting.measurement import near_words
from trimtab.errors import (
    ROOM,
    ConfigurationError,
    Hint,
    InvalidHistoryError,
    option,
    phrase,
)
from trimtab.formats import Format, Request, get_format
from trimtab.formats.origin import OriginOf
from trimtab.models import find_facts, model_in
from trimtab.strategies.door import StrategyLike, check_steady, ratio_of
from trimtab.strategies.rules_message import check_rules

if TYPE_CHECKING:
    from trimtab.compact import Compact
    from trimtab.report import RuleCounts, SummaryCheck

__all__ = [
    "Ask",
    "Mark",
    "body_of",
    "budget_of",
    "check",
    "check_breakpoints",
    "compact_of",
    "counter_of",
    "keep_all",
    "no_budget_note",
    "refuse_faults",
    "take_model",
    "tier_note",
    "window_note",
    "window_of",
]


Mark: TypeAlias = Mapping[str, Any]
"""A mark for a prompt cache, in the provider's own words."""


@dataclass(slots=True, kw_only=True)
class Ask:
    """What `fit` was called with."""

    messages: Any
    budget: BudgetLike | None
    model: str | None
    counter: Any
    format: str | Format
    system: Any
    tools: Any
    strategy: StrategyLike | None
    pin: Any
    pending_calls: Collection[str]
    on_trim: OnTrim | None
    repair: bool
    origin: OriginOf | None = None
    """Says of a message that it has less say than its role."""
    strict: bool = False
    steady: bool | float = False
    """Whether the default cuts in strides, or how much of the room one leaves."""
    cut_newest: bool = True
    """Whether the newest unit is cut where it leaves no room; else it stays as it is."""
    charge_as: str | Format | None = None
    """The wire form that messages are sent in, where it is not the one they are read in."""
    breakpoints: Any = False
    """Whether the output is marked for the provider's prompt cache, or with what; see `breakpoints`."""
    stable: int | None = None
    """Messages at the front that stay there when others leave, where the caller knows."""
    leading: int | None = None
    """Messages at the front that stay, where the caller knows; None: the leading system messages."""
    latest_user: int | None = -1
    """Position of the latest message the user wrote, where the caller knows; -1: to be looked for."""
    newest: int | None = None
    """Position of the newest message, where the caller knows that it does not stand last."""
    sizes: list[int | None] | None = None
    """Tokens of each message as the counter counts them, where the caller knows; with a counter alone."""
    stale: Collection[int] = ()
    """Messages whose thinking the caller knows to be stale, where the model binds it."""
    notes: tuple[str, ...] = ()
    """What the report should say."""
    checked: tuple[SummaryCheck, ...] = ()
    """What became of the values of summaries among the messages."""
    owner_of: Callable[[Any], Any] | None = None
    """Finds the caller's object that a message was read from; None: messages are the caller's own."""
    rules: Any = None
    """Rules of the host, which are shown always."""
    rule_counts: RuleCounts | None = None
    """Rules of the session that the messages are of."""
    compact: Any = None
    """How results are written; once checked, a `Compact`, or None: as they are."""
    rules_tokens: int = 0
    """What rules of the host take that are among the messages, in front."""


def check(ask: Ask) -> None:
    """Refuse arguments of the wrong kind, and bring the others into one form.

    Raises:
        ConfigurationError: With what to write instead.
    """
    if type(ask.messages) is not list:
        check_messages(ask.messages)
    if ask.model is not None:
        check_model(ask.model)
    if type(ask.pin) is not tuple or ask.pin:
        ask.pin = () if ask.pin is None else pins_given(ask.pin)
    if type(ask.pending_calls) is not tuple or ask.pending_calls:
        ask.pending_calls = check_pending_calls(ask.pending_calls)
    if ask.on_trim is not None:
        check_trim(ask.on_trim)
    if ask.origin is not None:
        check_origin_of(ask.origin)
    if ask.system is not None:
        ask.system = system_of(ask.system)
    if ask.tools is not None:
        check_tools(ask.tools)
    _check_flags(ask)
    if ask.steady and ask.strategy is not None:
        raise ConfigurationError(
            f"steady={ask.steady} sets the strategy, but strategy= is passed, too: leave out"
            f" steady={ask.steady}, and write the window in your strategy as"
            f" SlidingWindow(target_ratio={ratio_of(ask.steady)})",
            argument="steady",
        )


def _check_flags(ask: Ask) -> None:
    for name in ("cut_newest", "repair", "strict"):
        if type(getattr(ask, name)) is not bool:
            check_flag(name, getattr(ask, name))
    if type(ask.steady) is not bool:
        ask.steady = check_steady(ask.steady)
    if ask.rules is not None:
        ask.rules = check_rules(ask.rules)
    if ask.compact is not None:
        ask.compact = compact_of(ask.compact)


def compact_of(value: object, /) -> Compact | None:
    """Return how results are written; None: as they are.

    Raises:
        ConfigurationError: It is neither True, False, None nor a `Compact`.
    """
    if value is None or value is False:
        return None
    from trimtab.compact.options import check_compact  # not above: loaded by who asks for it

    return check_compact(value)


def check_breakpoints(value: object, /) -> Mark | None:
    """Return the mark to set, in the provider's own words; None: none is asked for.

    Raises:
        ConfigurationError: It is neither True, False nor a mapping.
    """
    if value is None or value is False:
        return None
    if value is True:
        return {"type": "ephemeral"}
    if isinstance(value, Mapping) and value:
        return value
    raise ConfigurationError(
        "breakpoints must be True, False, or the mark in the provider's form, {'type': 'ephemeral', 'ttl':"
        f" '1h'}}, not {value!r:.60}",
        argument="breakpoints",
    )


def refuse_faults(violations: Iterable[Any], /, *, mended: bool = False) -> None:
    """Raise what is no fault of ours: the input holds what a provider refuses.

    Args:
        violations: What was found.
        mended: A repair was asked for, and is not able to mend these.

    Raises:
        InvalidHistoryError: With all of them, and the first few that differ in its text.
    """
    faults = tuple(one for one in violations if one.fault)
    if not faults:
        return
    found: dict[str, Any] = {}
    for one in faults:
        found.setdefault(
            one.message.partition(": ")[2] or one.message, one
        )  # the same elsewhere is said once
    said = list(found.values())[:_MOST_SAID]
    first = "; ".join(one.message.rstrip(".") for one in said)
    more = f"; and {len(faults) - len(said)} more" if len(faults) > len(said) else ""
    count = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
    if mended:
        raise InvalidHistoryError(
            phrase(
                f"what must be kept has {count} that ",
                option("repair", True),
                f" cannot repair: {first}{more}. Change these messages",
            ),
            violations=faults,
        )
    raise InvalidHistoryError(
        phrase(
            f"the input has {count}, and ",
            option("strict", True),
            f" was set: {first}{more}. Repair it with ",
            Hint("mend", "repair(messages)"),
            ", or leave ",
            option("strict", True),
            " out: what can be repaired is then evicted, and the report lists it",
        ),
        violations=faults,
    )


_MOST_SAID = 3
"""Faults in the text of an error; `.violations` has all of them."""


def take_model(ask: Ask) -> tuple[str, ...]:
    """Take the model a request body names, if it is known and nothing else was asked for."""
    named = model_in(ask.messages)
    if named is None:
        return ()
    if find_facts(named) is not None:
        ask.model = named
        return ()
    if ask.counter is not None:
        return ()
    return (f"The model of the request body, {named!r}, is not known: tokens are estimated.",)


def body_of(ask: Ask, format: Format) -> Request | None:
    if isinstance(ask.messages, Mapping):
        read = format.for_model(ask.model).read_request(ask.messages)
        return with_beside(read, system=ask.system, tools=ask.tools)
    return None


def with_beside(request: Request, *, system: Any, tools: Any) -> Request:
    """Put system text and tools that are given beside a request into it.

    Raises:
        ConfigurationError: It has its own.
    """
    if system is None and tools is None:
        return request
    for name, given, held in (("system", system, request.system), ("tools", tools, request.tools)):
        if given is not None and held is not None:
            raise ConfigurationError(
                phrase(f"{name} is given twice: by ", option(name), " and in the request body"), argument=name
            )
    return replace(
        request,
        system=request.system if system is None else system,
        tools=request.tools if tools is None else tools,
    )


def counter_of(
    counter: Any,
    model: str | None,
    format: Format | None = None,
    body: Request | None = None,
    *,
    charge_as: str | Format | None = None,
) -> RequestCounter:
    """Return the counter asked for: the one given, the model's own, or the estimate; for a wire form.

    With a body it is one for a whole request: tools that are not in it are not sent.

    Raises:
        ConfigurationError: What was given is no counter, or one that cannot charge as another form.
        UnknownNameError: The model is not known, or the form to charge as.
    """
    made: RequestCounter
    if isinstance(counter, RequestCounter):
        made = counter
    elif counter is not None:
        made = as_counter(counter)
    elif model is None:
        made = EstimateCounter()
    elif observers.active:
        with observers.CountTime():  # the first time its tokenizer is loaded, which takes longer than the fit
            made = counter_for(model)
    else:
        made = counter_for(model)
    if format is None:
        return made
    made = made.with_format(format)
    if charge_as is not None and (sent := get_format(charge_as)) is not format:
        made = made.charge_as(sent)
    made = made.snapshot()
    return made if body is None or body.tools else made.without_tools()


def budget_of(budget: BudgetLike | None, model: str | None, /, *, given: object = None) -> Budget:
    """Return the budget asked for, or the window of the model less its output limit; see `known_budget`.

    Raises:
        ConfigurationError: There is none, and no known window; or the window is smaller.
    """
    found = known_budget(budget, model)
    if found is None:
        model = model_in(given) if model is None else model
        known = "no model is named" if model is None else f"the window of {model!r} is not known"
        raise ConfigurationError(phrase(f"{known}: pass ", ROOM, near_words(model)), argument="budget")
    return found


def window_of(model: str | None, /) -> int | None:
    """Return the window of a model; None where it is not known."""
    facts = None if model is None else find_facts(model)  # with a counter of the caller's, any name will do
    return None if facts is None else facts.window_tokens


def window_note(model: str | None, budget: Budget, /) -> tuple[str, ...]:
    """Say where the budget was held to what the model takes, or goes by a larger window."""
    if isinstance(budget, HeldBudget):
        return (budget.note,)
    window_tokens = window_of(model)
    if window_tokens is None or budget.window <= window_tokens:
        return ()
    return (
        f"The budget goes by a window of {budget.window:,} tokens; that of {model!r} is known to be"
        f" {window_tokens:,}.",
    )


def tier_note(model: str | None, tokens: int, /) -> tuple[str, ...]:
    """Say that a request is in a dearer price tier of its model; nothing where it is not."""
    if model is None:
        return ()
    from trimtab.models.prices import find_pricing  # not above: only the report of a model's fit asks

    prices = find_pricing(model)
    tier = None if prices is None else prices.tier_of(tokens)
    if tier is None:
        return ()
    output = "" if tier.output == tier.input else f" and {tier.output:g} times as much for output"
    return (
        f"The request passes {tier.above_tokens:,} tokens: above, {model!r} costs {tier.input:g} times as"
        f" much for all input{output}. budget='tier' stays below.",
    )


def no_budget_note(*, capped: bool) -> str:
    """Say in a report why so little was evicted: there was no budget, and a callback decided.

    Args:
        capped: There is a block with a cap in tokens, which holds without a budget, too.
    """
    caps = ", what passed max_tokens of its block," if capped else ","
    return f"No budget was given: evicted is what on_trim removed{caps} and nothing else."


def keep_all(context: TrimContext) -> None:
    """Stand in for a callback where only what it may ask for is prepared."""
