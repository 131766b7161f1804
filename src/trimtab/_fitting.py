"""From what `fit` was asked to what it answers: prepare once, decide for a budget.

`prepare` reads the request, chooses counter and format, mends and lets the callback run.
`decide` settles what stays for one budget; it may run again for another (`Fitted.at`).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trimtab._arguments import check_messages, check_pending_calls, check_trim, move_to_source, system_of
from trimtab._grouping import format_of, resolve_pins
from trimtab._portion import Decision, Portion
from trimtab.budget import Budget
from trimtab.counting import EstimateCounter, counter_for
from trimtab.counting._sizes import Fixed, Shares, Sizes, check_counter, sizes_for
from trimtab.errors import (
    BudgetExceededError,
    ConfigurationError,
    CountingError,
    FormatError,
    UnknownNameError,
)
from trimtab.formats import Format, Request
from trimtab.models import facts_for
from trimtab.strategies import Cascade, SlidingWindow, Strategy, TruncateText
from trimtab.strategies._base import EvictionRequest, assembled
from trimtab.strategies._cuts import count_back
from trimtab.strategies._runner import Settled, running
from trimtab.strategies.sliding_window import require_strategy
from trimtab.summaries._base import SummaryCall, drive_planning
from trimtab.trimming import OnTrim, TrimContext, let_trim
from trimtab.units import History

if TYPE_CHECKING:
    from trimtab._repairing import Change
    from trimtab.report import Reason, Report

__all__ = [
    "Ask",
    "FitPlan",
    "Work",
    "budget_of",
    "counter_of",
    "deciding",
    "leading_system",
    "prepare",
]

BLOCK = "history"
"""Name of the one block of `fit`."""

DEFAULT_STRATEGY: Strategy = Cascade(SlidingWindow(), TruncateText())
"""Whole units first, oldest first; texts are cut only when nothing else can leave."""


@dataclass(slots=True, kw_only=True)
class Ask:
    """What `fit` was called with."""

    messages: Any
    budget: Budget | int | None
    model: str | None
    counter: Any
    format: str | Format
    system: Any
    tools: Any
    strategy: Strategy | None
    pin: Any
    pending_calls: Collection[str]
    on_trim: OnTrim | None
    repair: bool


@dataclass(slots=True, kw_only=True)
class Work(Portion):
    """Everything that does not depend on the budget."""

    ask: Ask
    body: Request | None
    """The request body taken apart; None if the input was a plain list."""
    format: Format
    counter: Any
    strategy: Strategy
    budget: Budget
    notes: tuple[str, ...] = ()
    """What the report should say beside its numbers."""

    @property
    def body_of_request(self) -> Request:
        """What was asked for, as a request; system text that became a message is not beside them, too."""
        ask = self.ask
        if self.body is None:
            return Request(messages=ask.messages, system=None if self.lead else ask.system, tools=ask.tools)
        return replace(self.body, system=None) if self.lead else self.body


def prepare(ask: Ask) -> Work:
    """Read what was asked, and do once what does not depend on the budget."""
    _check(ask)
    format = format_of(ask.messages, ask.format)
    body: Request | None = None
    notes: tuple[str, ...] = ()
    if type(ask.messages) is not list:
        notes = _take_model(ask) if ask.model is None else ()
        body = _body_of(ask, format)
    counter = counter_of(ask.counter, ask.model)
    budget = budget_of(ask.budget, ask.model)
    strategy = DEFAULT_STRATEGY if ask.strategy is None else require_strategy(ask.strategy)
    source = list(ask.messages if body is None else body.messages)
    items = source
    origin: list[int] | None = None
    gone: dict[int, Reason] = {}
    mended = frozenset[int]()
    if ask.repair:
        items, origin, gone, mended = _mended(ask, format, source)
        if source and not items:
            notes = (*notes, "The repair left nothing: every message of the input was half of a tool call.")
    pins = resolve_pins(ask.pin, source) if ask.pin is not None and ask.pin != () else frozenset[int]()
    if origin is not None and pins:
        pins = frozenset(at for at, index in enumerate(origin) if index in pins)
    lead = leading_system(ask.system, format)
    try:
        history = History(
            [*lead, *items] if lead else items,
            format=format,
            pins=[index + len(lead) for index in pins],
            pending_calls=ask.pending_calls,
        )
    except FormatError as error:
        move_to_source(error, lead=len(lead), origin=origin)
        raise
    if body is None:
        fixed = Fixed(system=None if lead else ask.system, tools=ask.tools)
    else:
        fixed = Fixed(system=None if lead else body.system, tools=body.tools, extra=body.extra or None)
    sizes = _sizes(counter, history, fixed)
    work = Work(
        name=BLOCK,
        ask=ask,
        body=body,
        format=format,
        counter=counter,
        strategy=strategy,
        history=history,
        sizes=sizes,
        source=source,
        source_sizes=sizes if origin is None else sizes_for(counter, source.copy(), fixed, has_system=False),
        source_offset=len(lead) if origin is None else 0,
        lead=len(lead),
        origin=origin,
        gone=gone,
        mended=mended,
        budget=budget,
        notes=notes,
    )
    if ask.on_trim is not None:
        _let_callback_trim(work, fixed, ask.on_trim)
    return work


def _check(ask: Ask) -> None:
    """Refuse arguments of the wrong kind, and bring the others into one form.

    Raises:
        ConfigurationError: With what to write instead.
    """
    if type(ask.messages) is not list:
        check_messages(ask.messages)
    if ask.model is not None and not isinstance(ask.model, str):
        raise ConfigurationError(f"model is the name of a model, not {ask.model!r}")
    if ask.pending_calls != ():
        ask.pending_calls = check_pending_calls(ask.pending_calls)
    if ask.on_trim is not None:
        check_trim(ask.on_trim)
    if ask.system is not None:
        ask.system = system_of(ask.system)


def _sizes(counter: Any, history: History, fixed: Fixed) -> Sizes:
    return sizes_for(counter, history.messages, fixed, has_system=history.head > 0)


def _take_model(ask: Ask) -> tuple[str, ...]:
    """Take the model a request body names, if it is known and nothing else was asked for."""
    named = ask.messages.get("model") if isinstance(ask.messages, Mapping) else None
    if not isinstance(named, str):
        return ()
    try:
        facts_for(named)
    except UnknownNameError:
        if ask.counter is not None:
            return ()
        return (f"The model of the request body, {named!r}, is not known: tokens are estimated.",)
    ask.model = named
    return ()


def _body_of(ask: Ask, format: Format) -> Request | None:
    if isinstance(ask.messages, Mapping):
        request = format.read_request(ask.messages)
        for name, given, held in (
            ("system", ask.system, request.system),
            ("tools", ask.tools, request.tools),
        ):
            if given is not None and held is not None:
                raise ConfigurationError(f"{name} is given twice: by {name}= and in the request body")
        system = request.system if ask.system is None else ask.system
        tools = request.tools if ask.tools is None else ask.tools
        return Request(
            messages=request.messages,
            system=system,
            tools=tools,
            body=request.body,
            key=request.key,
            extra=request.extra,
        )
    return None


def counter_of(counter: Any, model: str | None) -> Any:
    """Return the counter asked for: the one given, the model's own, or the estimate.

    Raises:
        ConfigurationError: What was given is no counter.
        UnknownNameError: The model is not known.
    """
    if isinstance(counter, type):
        name = counter.__name__
        raise ConfigurationError(f"counter={name} is a class: pass a counter, made by {name}(...)")
    if counter is not None:
        return check_counter(counter)
    return counter_for(model) if model is not None else EstimateCounter()


def budget_of(budget: Budget | int | None, model: str | None) -> Budget:
    """Return the budget asked for, or the window of the model less its output limit.

    Raises:
        ConfigurationError: There is none, and no known window.
    """
    if budget is not None:
        return Budget.of(budget)
    facts = facts_for(model) if model is not None else None
    if facts is None or facts.window_tokens is None:
        known = f"the window of {model!r} is not known" if model else "no model is named"
        raise ConfigurationError(f"{known}: pass budget= (tokens, or a Budget)")
    return Budget(facts.window_tokens, output_reserve=facts.output_reserve_tokens)


def leading_system(system: str | list[Any] | None, format: Format) -> list[Any]:
    """Write system text as a message, where the wire form keeps it among them."""
    if system is None or not format.rules.system_in_messages:
        return []
    return [format.message("system", [system] if isinstance(system, str) else list(system))]


def _mended(
    ask: Ask, format: Format, source: list[Any]
) -> tuple[list[Any], list[int], dict[int, Reason], frozenset[int]]:
    """Repair the input, and say where each message of the result was."""
    from trimtab.validity import repair  # not above: loaded by who asks for a repair

    mended = repair(source, format=format, pending_calls=ask.pending_calls)
    origin = list(mended.positions)
    left = set(range(len(source))) - set(origin)
    return (
        mended.messages,
        origin,
        dict.fromkeys(sorted(left), "repair"),
        frozenset(change.index for change in mended.changes if _edits(change)),
    )


def _edits(change: Change) -> bool:
    return change.action in ("edited", "moved")


def _let_callback_trim(work: Work, fixed: Fixed, on_trim: OnTrim) -> None:
    """Run the callback and go on with what it leaves."""
    budget, history = work.budget, work.history
    context = TrimContext(
        history,
        work.sizes,
        budget=budget,
        limit_tokens=budget.input_tokens,
        lead=work.lead,
        origin=work.origin,
    )
    let_trim(on_trim, context, block=BLOCK)
    removed = context.removed
    if not removed:
        return
    remaining = context.remaining
    indices = sorted({index for unit in remaining for index in unit.indices})
    work.gone = {**work.gone, **{work.source_index(i): reason for i, reason in removed.items()}}
    work.origin = [work.source_index(index) for index in indices if index >= work.lead]
    kept_pins = [at for at, index in enumerate(indices) if index in history.pins]
    messages = assembled(history, remaining, {})
    shared = {i for i, message in zip(indices, messages, strict=True) if message is not history.originals[i]}
    work.mended |= {work.source_index(i) for i in shared}
    work.history = History(
        messages,
        format=work.format,
        pins=kept_pins,
        pending_calls=history.pending_calls,
    )
    sizes = _sizes(work.counter, work.history, fixed)
    if sizes.additive:
        sizes.known[:] = [None if index in shared else work.sizes.known[index] for index in indices]
    work.sizes = sizes


@dataclass(slots=True, kw_only=True)
class FitPlan(Decision):
    """What `fit` decided for one budget, and how to decide again."""

    portion: Work
    budget: Budget

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget."""
        return self.settled.fits

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.settled.tokens

    @property
    def input_messages(self) -> int:
        """Messages of the input."""
        return len(self.portion.source)

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.portion.format

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        return self.portion.body_of_request

    def messages(self) -> list[Any]:
        """Put the output together."""
        return self.settled.assemble(self.request)

    def report(self, messages: list[Any]) -> Report:
        """Make the report of the fit that gave these messages."""
        from trimtab._reporting import report_of  # not above: many fits are never reported

        return report_of(self, messages)

    def at(self, budget: Budget) -> FitPlan:
        """Decide for another budget; no summarizer is asked."""
        return drive_planning(deciding(self.portion, budget))

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        work = self.portion
        if isinstance(work.source_sizes, Shares):
            work.source_sizes.whole([*work.history.originals[: work.lead], *work.source])
            return
        for sizes in (work.source_sizes, work.sizes):
            try:
                sizes.count_each()
            except (CountingError, FormatError) as error:
                if sizes is work.sizes:
                    move_to_source(error, lead=work.lead, origin=work.origin)
                raise

    def exceeded(self) -> BudgetExceededError:
        """Make the error for what does not fit."""
        work, settled, limit = self.portion, self.settled, self.budget.input_tokens
        needed = settled.tokens if settled.needed_tokens is None else settled.needed_tokens
        return BudgetExceededError(
            f"block {BLOCK!r} does not fit: at least {needed:,} tokens are needed and {limit:,} are there,"
            f" {needed - limit:,} too few (strategy {work.strategy.name}, {work.sizes.fixed_tokens:,} of them"
            " beside the messages). Raise the budget, pin less, or shorten the latest user message or system"
            " text.",
            needed_tokens=needed,
            limit_tokens=limit,
            block=BLOCK,
        )


def deciding(work: Work, budget: Budget) -> Generator[SummaryCall, str | None, FitPlan]:
    """Settle what stays within a budget; yields what it needs from outside.

    Raises:
        StrategyContractError: The strategy broke its contract.
    """
    try:
        return (yield from _deciding(work, budget))
    except (CountingError, FormatError) as error:
        move_to_source(error, lead=work.lead, origin=work.origin)
        raise


def _deciding(work: Work, budget: Budget) -> Generator[SummaryCall, str | None, FitPlan]:
    history, sizes, limit = work.history, work.sizes, budget.input_tokens
    counted = count_back(history, sizes, limit) if sizes.additive else None
    request = EvictionRequest(history, sizes, limit_tokens=limit, block=BLOCK, counted=counted)
    total = _total_if_known(history, sizes, counted)
    if total is not None and total <= limit:
        settled = Settled(cut=0, tokens=total, actions=("kept",))
    else:
        settled = yield from running(work.strategy, request)
    return FitPlan(portion=work, settled=settled, request=request, budget=budget)


def _total_if_known(history: History, sizes: Sizes, counted: int | None) -> int | None:
    """Return the size of the whole, if counting reached its beginning."""
    if isinstance(sizes, Shares):
        return sizes.whole(history.originals)
    if counted is None or counted > history.head:
        return None
    return sizes.fixed_tokens + sizes.total(0, len(history))
