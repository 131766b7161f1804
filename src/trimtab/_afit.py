"""`afit`: `fit`, for counters and summarizers that have to be awaited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from trimtab._fitting.callbacks import OnTrim
from trimtab._fitting.drive import adrive, arun
from trimtab._fitting.fit_plan import deciding
from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask, keep_all
from trimtab.budget import Budget
from trimtab.counting import CounterLike
from trimtab.counting.awaited import AwaitedCounter
from trimtab.counting.door import as_awaited
from trimtab.formats import Format, SystemLike, ToolSchema
from trimtab.strategies.base import Strategy

__all__ = ["afit"]

M = TypeVar("M")


# Its parameters are those of `fit`, which DESIGN 3 fixes.
@overload
async def afit(
    messages: Mapping[str, Any],
    budget: Budget | float | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: Strategy | None = None,
    pin: Iterable[int] | Callable[[Any, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    repair: bool = False,
    strict: bool = False,
) -> Fitted[Any]: ...


@overload
async def afit(
    messages: Sequence[M],
    budget: Budget | float | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: Strategy | None = None,
    pin: Iterable[int] | Callable[[M, int], bool] = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    repair: bool = False,
    strict: bool = False,
) -> Fitted[M]: ...


async def afit(
    messages: Any,
    budget: Budget | float | None = None,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    strategy: Strategy | None = None,
    pin: Any = (),
    pending_calls: Collection[str] = (),
    on_trim: OnTrim | None = None,
    repair: bool = False,
    strict: bool = False,
) -> Fitted[Any]:
    """Fit a conversation into a token budget, as `fit` does; awaits what is async.

    `counter` may be an async function or have async methods; a summarizer may be async. Cancelling the
    task, or a timeout around it, reaches both. Arguments, result and errors are those of `fit`.

    Example:
        >>> import asyncio
        >>> async def count(messages):
        ...     return sum(3 for message in messages if message["role"])  # in earnest: ask the provider
        >>> messages = [{"role": "user", "content": str(n)} for n in range(9)]
        >>> fitted = asyncio.run(afit(messages, 10, counter=count))
        >>> len(fitted.messages), fitted.report.tokens_after
        (3, 9)
    """
    ask = Ask(
        messages=messages,
        budget=budget,
        model=model,
        counter=await as_awaited(counter),
        format=format,
        system=system,
        tools=tools,
        strategy=strategy,
        pin=pin,
        pending_calls=pending_calls,
        on_trim=on_trim,
        repair=repair,
        strict=strict,
    )
    if on_trim is not None and isinstance(ask.counter, AwaitedCounter):
        before = await arun(lambda: prepare(replace(ask, on_trim=keep_all)))
        await arun(before.sizes.count_each)  # a callback is run once, and may ask for any size
    work = await arun(lambda: prepare(replace(ask)))
    return fitted_for(await adrive(lambda: deciding(work, work.budget)))
