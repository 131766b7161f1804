"""`fit`: the whole path for one history: read, group, count, evict, check, report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from trimtab._fitting.callbacks import OnTrim
from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.objects import ListedObjects, ReadsSeveral
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask, keep_all
from trimtab._fitting.settle import settle_fit
from trimtab._fitting.settlement import Settlement
from trimtab._shared import observers
from trimtab._shared.docstrings import args_of
from trimtab._shared.steps import drive, rerun
from trimtab.budget import BudgetLike
from trimtab.counting import CounterLike
from trimtab.counting.door import as_awaited
from trimtab.formats import Format, SystemLike, ToolSchema
from trimtab.formats.origin import OriginOf
from trimtab.strategies.door import StrategyLike
from trimtab.strategies.summarizer import adrive

if TYPE_CHECKING:
    from trimtab.compact import CompactLike

__all__ = ["Fitted", "afit", "fit"]


M = TypeVar("M")


# DESIGN 3 fixes the parameters of this front door.
@overload
def fit(
    messages: Mapping[str, Any],
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Iterable[int] | Callable[[Any, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
) -> Fitted[Any]: ...


@overload
def fit(
    messages: Sequence[M],
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Iterable[int] | Callable[[M, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
    read: Callable[[M], Any] | None = None,
    write: Callable[[M | None, list[dict[str, Any]]], M | None] | None = None,
) -> Fitted[M]: ...


def fit(
    messages: Any,
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Any = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
    read: Any = None,
    write: Any = None,
) -> Fitted[Any]:
    """Fit a conversation into a token budget, valid for its provider.

    The report says what was evicted, and why. Leading system messages and the
    latest user message are kept unchanged. The newest unit is kept too,
    shortened if necessary. Of everything else, the oldest is evicted first,
    until the request fits. The output has the same objects as the input; an
    edited message is a shallow copy.

    Args:
        messages: A list of messages (mappings, or objects with `model_dump()`),
            or a request body.
        budget: Room for the request: tokens such as 8_000 or "8k", a share of
            the model's input limit such as "80%", "tier" for the room below its
            next price tier, or a `Budget`. None: the model's window less its
            output limit, or less half the window if the limit is higher. With
            `on_trim` and no such window there is no budget, and only the
            callback removes messages.
        model: Name of the model, for its tokenizer, window and wire form. None:
            the model that a request body names, if it is known.
        counter: What counts tokens: a `Counter`, or a function over a list of
            messages. None: the model's own; without a model, an estimate that
            errs high.
        format: Name of the wire form. "auto": the form of the provider of
            `model`, otherwise decided by the shapes that occur.
        charge_as: Name of the wire form the messages are sent in, if a
            framework converts them: they are read in `format`, and charged as
            what they become. Errs high, by a few tokens per call.
        system: System text outside the messages. If the wire form keeps it
            among the messages, it becomes the first message.
        tools: Tool schemas; counted with the request and returned unchanged.
        strategy: What is evicted first: a strategy, or a name that
            `create_strategy` knows, such as "agent". None: a tool result above
            half of the room is cut to a quarter of it, then old units are
            evicted, then the newest unit is cut.
        steady: In place of `strategy`, for a growing chat and a provider with a
            prompt cache: the default with `SlidingWindow(target_ratio=0.5)`,
            whose cut moves in strides, so a prompt begins like the one before.
            A number below 1 is the share of the room that is kept after a cut:
            0.3 costs less, and shows less.
        cut_newest: Whether to cut the newest unit, for example a huge result,
            if a strategy leaves too little room for it: both ends of results
            are kept, with a marker. False: it stays as it is, as if pinned, and
            what does not fit with it is refused. `Strict` refuses in any case.
        breakpoints: True marks the output for a provider whose prompt cache
            stores marked prefixes only (Anthropic), in at most four places,
            including those already marked. A mapping is the mark itself:
            `{"type": "ephemeral", "ttl": "1h"}`. If the cache finds prefixes by
            itself, nothing is marked, and the report says so.
        pin: Indices, or a predicate `(message, index)`, of messages that must
            not be changed or evicted.
        pending_calls: Ids of calls whose results are still to come.
        on_trim: Called with a `TrimContext` before anything is decided, even if
            everything fits.
        origin: Function that gives a message a lower origin than its role: it
            is called with a message that is summarized, and returns "system",
            "user", "assistant", "document", "tool" or None (decided by the wire
            form). A higher origin than the form gives is an error.
        rules: Rules of the host, such as ["Never deploy on Fridays."]: always
            shown, word for word, in one message behind the system text, and
            never evicted. The rules that an earlier fit wrote are replaced.
        compact: How tool results are written, before anything is counted: True,
            or a `trimtab.compact.Compact`. Lines that stand in an earlier
            result become a reference to it, and JSON is written without spaces.
            Nothing is lost, and `trimtab.compact.expand` puts the lines back.
        repair: Whether to repair orphaned results, unanswered calls and shapes
            first; a message that must be kept and cannot be repaired is an
            error.
        strict: Whether to raise if the input (or its repaired form) contains
            something that the provider refuses.
        read: Function that reads a framework's own message, if `messages` is a
            list: `read(object)` gives a wire message, or, for every object, a
            list of them. It is called once per object; if it gives single
            messages, only for the objects the fit reads. Pass `format` as well,
            or all objects are read to find it.
        write: Required with `read`: `write(object, messages)` returns a copy of
            the object with these wire messages, if some were changed or
            evicted. `write(None, [message])` makes an object for an inserted
            message; None leaves it out. Unchanged objects are returned
            themselves.

    Returns:
        A `Fitted`: `messages` ready to send and the `report`. It is always
        within budget.

    Raises:
        BudgetExceededError: What must be kept does not fit; the error has the
            numbers and the best attempt.
        ConfigurationError: There is no budget and no known window, or arguments
            contradict each other.
        UnknownNameError: A model is unknown and no counter is given, or a wire
            form is unknown.
        FormatError: An entry is not a message, or has a role or shape that no
            form knows; `.path` names it.
        InvalidHistoryError: The input has faults and `strict` is set, or
            `repair` is set and a message that must be kept cannot be repaired;
            the error lists the faults.
        CountingError: The counter failed or returned something that is not a
            count.
        StrategyContractError: The strategy broke its contract.

    Complexity: O(kept) with an additive counter and a valid history; otherwise
    O(n).

    Example:
        >>> from trimtab import CharCounter, fit
        >>> messages = [{"role": "system", "content": "Be brief."}]
        >>> for n in range(100):
        ...     messages.append({"role": "user", "content": f"question {n}"})
        >>> fitted = fit(messages, budget=20, counter=CharCounter())
        >>> len(fitted.messages), fitted.report.tokens_after
        (6, 18)
    """
    ask = Ask(
        messages=messages,
        budget=budget,
        model=model,
        counter=counter,
        format=format,
        charge_as=charge_as,
        system=system,
        tools=tools,
        strategy=strategy,
        steady=steady,
        cut_newest=cut_newest,
        breakpoints=breakpoints,
        pin=pin,
        pending_calls=pending_calls,
        on_trim=on_trim,
        origin=origin,
        rules=rules,
        compact=compact,
        repair=repair,
        strict=strict,
    )
    if not observers.active:
        return _fit_once(ask, read, write)
    from trimtab._fitting.observation import FitWatch  # not above: only who is looked at needs it

    with FitWatch("fit") as watch:
        fitted = watch.fitted = _fit_once(ask, read, write)
    return fitted


def _fit_once(ask: Ask, read: Any, write: Any) -> Fitted[Any]:
    if read is None and write is None:
        work = prepare(ask)
        return fitted_for(drive(settle_fit(work)))
    objects = ListedObjects(ask, read, write)
    while True:
        try:
            work = prepare(objects.ask())
            return fitted_for(objects.show(drive(settle_fit(work))))
        except ReadsSeveral:
            objects.read_all()


# `afit`: `fit`, for counters and summarizers that have to be awaited.


# Its parameters are those of `fit`, which DESIGN 3 fixes.
@overload
async def afit(
    messages: Mapping[str, Any],
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Iterable[int] | Callable[[Any, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
) -> Fitted[Any]: ...


@overload
async def afit(
    messages: Sequence[M],
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Iterable[int] | Callable[[M, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
    read: Callable[[M], Any] | None = None,
    write: Callable[[M | None, list[dict[str, Any]]], M | None] | None = None,
) -> Fitted[M]: ...


@args_of(fit)
async def afit(
    messages: Any,
    budget: BudgetLike | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    charge_as: str | Format | None = None,
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: StrategyLike | None = None,
    steady: bool | float = False,
    cut_newest: bool = True,
    breakpoints: bool | Mapping[str, Any] = False,
    pin: Any = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    origin: OriginOf | None = None,
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
    read: Any = None,
    write: Any = None,
) -> Fitted[Any]:
    """Fit a conversation into a token budget, as `fit` does; awaits what is
    async.

    `counter` may be an async function or have async methods; a summarizer may
    be async. Cancelling the task, or a timeout around it, also cancels these.
    Arguments, result and errors are those of `fit`.

    Example:
        >>> import asyncio
        >>> async def count(messages):  # in earnest: ask the provider
        ...     return sum(3 for message in messages if message["role"])
        >>> messages = [{"role": "user", "content": str(n)} for n in range(9)]
        >>> fitted = asyncio.run(afit(messages, 10, counter=count))
        >>> len(fitted.messages), fitted.report.tokens_after
        (3, 9)
    """
    ask = Ask(
        messages=messages,
        budget=budget,
        model=model,
        counter=counter,
        format=format,
        charge_as=charge_as,
        system=system,
        tools=tools,
        strategy=strategy,
        steady=steady,
        cut_newest=cut_newest,
        breakpoints=breakpoints,
        pin=pin,
        pending_calls=pending_calls,
        on_trim=on_trim,
        origin=origin,
        rules=rules,
        compact=compact,
        repair=repair,
        strict=strict,
    )
    if not observers.active:
        return await _afit_once(ask, read, write)
    from trimtab._fitting.observation import FitWatch

    with FitWatch("fit") as watch:
        fitted = watch.fitted = await _afit_once(ask, read, write)
    return fitted


async def _afit_once(ask: Ask, read: Any, write: Any) -> Fitted[Any]:
    ask.counter = await as_awaited(ask.counter)
    if read is None and write is None:
        return fitted_for(await _asettle(ask))
    objects = ListedObjects(ask, read, write)
    while True:
        try:
            return fitted_for(objects.show(await _asettle(objects.ask())))
        except ReadsSeveral:
            objects.read_all()


async def _asettle(ask: Ask) -> Settlement:
    if ask.on_trim is not None and ask.counter is not None and ask.counter.is_awaited:
        before = await rerun(lambda: prepare(replace(ask, on_trim=keep_all)))
        await rerun(before.sizes.count_each)  # a callback is run once, and may ask for any size
    work = await rerun(lambda: prepare(replace(ask)))
    return await adrive(lambda: settle_fit(work))
