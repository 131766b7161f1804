"""What `fit` does once, whatever the budget: read, choose counter and format, mend, let the callback run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trimtab._fitting.callbacks import OnTrim, TrimContext, let_trim
from trimtab._fitting.portion import Portion
from trimtab._fitting.request import (
    Ask,
    body_of,
    budget_of,
    check,
    check_breakpoints,
    counter_of,
    known_budget,
    leading_system,
    no_budget_note,
    refuse_faults,
    take_model,
    within,
)
from trimtab._shared.checks import move_to_source
from trimtab.budget import Budget
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import assemble
from trimtab.conversation.order import cannot_end, newest_inside
from trimtab.conversation.units import resolve_pins
from trimtab.counting.base import RequestCounter
from trimtab.counting.measurement import model_notes
from trimtab.counting.sizes import Fixed, Sizes, sizes_for
from trimtab.errors import FormatError
from trimtab.formats import Format, Request, Structure, format_of, refuse_foreign, wire_form
from trimtab.strategies import Cascade, SlidingWindow, Strategy, TruncateText
from trimtab.strategies.base import landmarks, reads_newest
from trimtab.strategies.door import strategy_given
from trimtab.strategies.openers import without_refused

if TYPE_CHECKING:
    from trimtab.conversation.repairs import Change
    from trimtab.report import Reason, Violation

__all__ = ["BLOCK", "DEFAULT_STRATEGY", "STEADY_STRATEGY", "Ask", "Work", "prepare"]

BLOCK = "history"
"""Name of the one block of `fit`."""

DEFAULT_STRATEGY: Strategy = Cascade(SlidingWindow(), TruncateText())
"""Whole units first, oldest first; texts are cut only when nothing else can leave."""

STEADY_STRATEGY: Strategy = Cascade(SlidingWindow(target_ratio=0.5), TruncateText())
"""The same in strides, for `steady=True`: at 0.5 prompts cost a fifth less than at 0.7."""


@dataclass(slots=True, kw_only=True)
class Work(Portion):
    """Everything that does not depend on the budget."""

    ask: Ask
    body: Request | None
    """The request body taken apart; None if the input was a plain list."""
    format: Format
    counter: Any
    asked: Budget | None
    """The budget as asked for: its margin may be "auto" still. None: there is none, and callbacks decide."""
    tools: Any
    notes: tuple[str, ...] = ()
    """What the report should say beside its numbers."""
    unmended: bool = False
    """A repair was asked for, and waits until something broken is read: mostly nothing is."""
    _mended_first: Work | None = None

    @property
    def mended_first(self) -> Work:
        """The same with a repair of everything there is."""
        if self._mended_first is None:
            self._mended_first = prepare(self.ask, mend=True)
        return self._mended_first

    def note_repair(self) -> None:
        """Note what of the messages that left a repair would have taken out."""
        if self.unmended and not self.gone:
            self.gone = _repair(self.ask, self.format, self.source)[2]

    @property
    def everything(self) -> list[Any]:
        """All messages before anything is decided."""
        return self.history.originals

    @property
    def mark(self) -> Any:
        """The mark to set for the provider's prompt cache; None: none was asked for."""
        return self.ask.breakpoints

    @property
    def given(self) -> list[Any]:
        """All there was before anything left, system text that became a message included."""
        return [*self.history.originals[: self.lead], *self.source]

    @property
    def body_of_request(self) -> Request:
        """What was asked for, as a request; system text that became a message is not beside them, too."""
        return _request_of(self.ask, self.format, self.body, lead=bool(self.lead))

    def violations(self) -> list[Violation]:
        """List what the provider would refuse of the input."""
        history = self.history
        is_read = not self.lead and self.origin is None and set(map(type, self.source)) <= {dict}
        return _violations(
            self.ask, self.format, self.body_of_request, self.source, history.columns if is_read else None
        )

    def refusals(self, messages: Sequence[Any]) -> list[Violation]:
        """List what the provider would refuse of the request that has those messages in it."""
        request = self.body_of_request
        if request.body is not None:
            request = self.format.read_request(self.format.write_request(request, list(messages)))
            messages = request.messages
        found = _violations(self.ask, self.format, request, messages)
        return [one for one in found if one.fault]


def _request_of(ask: Ask, format: Format, body: Request | None, *, lead: bool) -> Request:
    if body is not None:
        return replace(body, system=None) if lead else body
    system = None if lead else ask.system
    if system is not None and format.rules.lifts_system:
        system = format.lift_system((), system)
    return Request(messages=ask.messages, system=system, tools=ask.tools)


def _violations(
    ask: Ask, format: Format, request: Request, messages: Sequence[Any], columns: Structure | None = None
) -> list[Violation]:
    from trimtab.conversation.validity import violations_in  # not above: loaded by who asks for it

    asked = format.for_model(ask.model or request.model)
    if type(asked) is not type(format):
        columns = None
    return violations_in(asked, replace(request, messages=messages), ask.pending_calls, columns)


def prepare(ask: Ask, *, mend: bool = False) -> Work:
    """Read what was asked, and do once what does not depend on the budget.

    Args:
        ask: What was asked.
        mend: Whether a repair that was asked for is made even if it may wait.
    """
    check(ask)
    ask.breakpoints = check_breakpoints(ask.breakpoints)
    body: Request | None = None
    notes = ask.notes
    if type(ask.messages) is list:
        format = format_of(ask.messages, ask.format, ask.model)
    else:
        notes = take_model(ask) if ask.model is None else ()
        format = format_of(ask.messages, ask.format, ask.model)
        body = body_of(ask, format)
    format = wire_form(format, ask.charge_as)
    counter = counter_of(ask.counter, ask.model, format, body, charge_as=ask.charge_as)
    budget = _budget(ask)
    if ask.model is not None:
        notes = (*notes, *model_notes(ask.model, counter))
    source = list(ask.messages if body is None else body.messages)
    items = source
    origin: list[int] | None = None
    gone: dict[int, Reason] = {}
    mended = frozenset[int]()
    default = STEADY_STRATEGY if ask.steady else DEFAULT_STRATEGY
    strategy = default if ask.strategy is None else strategy_given(ask.strategy)
    unmended = ask.repair and not mend and reads_newest(strategy) and _may_wait(ask, format, counter)
    if ask.repair and not unmended:
        items, origin, gone, mended = _repair(ask, format, source)
        notes = (*notes, *_notes_of_repair(source, items))
    lead = leading_system(ask.system, format)
    if ask.strict:
        _refuse(ask, format, _request_of(ask, format, body, lead=bool(lead)), items)
    pins = _pins(ask, source, origin) if ask.pin != () else frozenset[int]()
    history = _history(ask, format, lead, items, body=body, pins=pins, origin=origin, unmended=unmended)
    if unmended and landmarks(strategy, history):
        return prepare(ask, mend=True)  # which message is the user's first, a repair may change
    beside, extra = (ask, None) if body is None else (body, body.extra or None)
    fixed = Fixed(system=None if lead else beside.system, tools=beside.tools, extra=extra)
    sizes = _sizes(ask, counter, history, fixed, ask.sizes)
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
        source_sizes=sizes if origin is None else _sizes_of_source(counter, format, source, fixed),
        source_offset=len(lead) if origin is None else 0,
        lead=len(lead),
        origin=origin,
        gone=gone,
        mended=mended,
        asked=budget,
        tools=fixed.tools,
        notes=notes,
        unmended=unmended,
    )
    if ask.on_trim is not None:
        _let_callback_trim(work, fixed, ask.on_trim)
    return work


def _sizes(
    ask: Ask, counter: RequestCounter, history: History, fixed: Fixed, known: list[int | None] | None
) -> Sizes:
    # a session adds up what its log holds, and its views are counted so
    unread = history.unread if ask.sizes is None and history.format.rules.keeps_messages else range(0)
    sizes = sizes_for(counter, history.messages, fixed, unread=unread)
    if known is not None and sizes.additive:
        sizes.take(known)
    return sizes


def _sizes_of_source(counter: RequestCounter, format: Format, source: list[Any], fixed: Fixed) -> Sizes:
    return sizes_for(counter, source.copy(), fixed, unread=format.unread(source))


def _budget(ask: Ask) -> Budget | None:
    """Return the budget asked for; None where there is none, and a callback that decides alone."""
    if ask.on_trim is None:
        return budget_of(ask.budget, ask.model, given=ask.messages)
    return known_budget(ask.budget, ask.model)


def _pins(ask: Ask, source: list[Any], origin: list[int] | None) -> frozenset[int]:
    """Return the pins as positions in what is fitted."""
    pins = resolve_pins(ask.pin, source)
    if origin is None:
        return pins
    return frozenset(at for at, index in enumerate(origin) if index in pins)


def _refuse(ask: Ask, format: Format, request: Request, items: list[Any]) -> None:
    """Look over everything at once, and refuse faults of the input; after a repair those that it left."""
    if not ask.repair:
        refuse_foreign(items, format.name)
    refuse_faults(_violations(ask, format, request, items))


def _history(
    ask: Ask,
    format: Format,
    lead: list[Any],
    items: list[Any],
    *,
    body: Request | None,
    pins: Collection[int],
    origin: list[int] | None,
    unmended: bool,
) -> History:
    whole = [*lead, *items] if lead else items
    newest = ask.newest
    if newest is None and origin is not None and (late := newest_inside(origin)) is not None:
        newest = late + len(lead)  # a result that was moved behind its call
    pinned = [index + len(lead) for index in pins] if pins else []
    if whole and not ask.cut_newest:  # the newest message is to stay as it is
        pinned.append(len(whole) - 1 if newest is None else newest)
    try:
        return History(
            whole,
            format=format,
            pins=pinned,
            pending_calls=ask.pending_calls,
            origin_of=ask.origin,
            holds=() if newest is None else (newest,),
            leading=ask.leading,
            latest_user=ask.latest_user,
            elsewhere=body is not None and body.elsewhere,
            thinking=format.thinking_rules(ask.model, None if body is None else body.body),
            looked_over=ask.repair and not unmended,
        )
    except FormatError as error:
        move_to_source(error, lead=len(lead), origin=origin)
        raise


def _may_wait(ask: Ask, format: Format, counter: RequestCounter) -> bool:
    """Tell whether a repair may wait until something broken is read.

    It may where what a repair mends in what is older than a cut leaves with it: each message but a result
    begins something, any may come first, and nobody asks for old messages or is shown all of them.
    """
    rules, leads = format.rules, format.thinking_rules(ask.model, None).leads
    plain = rules.results_are_messages and not (rules.binds_messages or rules.ordered or rules.keeps_messages)
    asked = ask.strict or ask.on_trim is not None or ask.pin != () or ask.pending_calls != ()
    return plain and not leads and not asked and counter.prices is not None


def _repair(
    ask: Ask, format: Format, source: Sequence[Any]
) -> tuple[list[Any], list[int], dict[int, Reason], frozenset[int]]:
    """Repair the input, and say where each message of the result was."""
    from trimtab.conversation.validity import repair  # not above: loaded by who asks for a repair

    whole = ask.messages if isinstance(ask.messages, Mapping) else source
    mended = repair(whole, format=format, model=ask.model, pending_calls=ask.pending_calls)
    origin = list(mended.positions)
    left = set(range(len(source))) - set(origin)
    return (
        mended.messages,
        origin,
        dict.fromkeys(sorted(left), "repair"),
        frozenset(change.index for change in mended.changes if _edits(change)),
    )


def _notes_of_repair(source: list[Any], items: list[Any]) -> list[str]:
    """Say that a repair left nothing."""
    if not source or items:
        return []
    return [
        "The repair left nothing: every message of the input was half of a tool call, said nothing, or lacked"
        " what it belongs to."
    ]


def _edits(change: Change) -> bool:
    return change.action in ("edited", "moved")


def _let_callback_trim(work: Work, fixed: Fixed, on_trim: OnTrim) -> None:
    """Run the callback and go on with what it leaves."""
    history = work.history
    budget = None if work.asked is None else within(work.asked, work.counter, work.tools)
    if budget is None:
        work.notes = (*work.notes, no_budget_note(capped=False))
    context = TrimContext(
        history,
        work.sizes,
        budget=budget,
        limit_tokens=sys.maxsize if budget is None else budget.input_tokens,
        lead=work.lead,
        origin=work.origin,
    )
    let_trim(on_trim, context, block=BLOCK)
    if context.removed:
        _go_on_without(work, fixed, context.remaining, context.removed)


def _go_on_without(work: Work, fixed: Fixed, units: Sequence[Unit], gone: Mapping[int, Reason]) -> None:
    """Go on with some units; `gone` says why each of the other messages left."""
    history = work.history
    if work.origin is None:
        work.source = history.originals[work.lead :]
    request = work.body_of_request
    asked = work.format.for_model(work.ask.model or request.model)
    remaining, refused = without_refused(history, units, cannot_end=partial(cannot_end, asked, request))
    removed: dict[int, Reason] = {**gone, **refused}
    indices = sorted({index for unit in remaining for index in unit.indices})
    work.gone = {**work.gone, **{work.source_index(i): reason for i, reason in removed.items()}}
    kept_pins = [at for at, index in enumerate(indices) if index in history.pins]
    holds = [at for at, index in enumerate(indices) if index in history.holds]
    if indices and not work.ask.cut_newest:
        kept_pins.append(holds[-1] if holds else len(indices) - 1)
    messages = assemble(history, remaining, {})
    shared = {i for i, message in zip(indices, messages, strict=True) if message is not history.original(i)}
    work.mended |= {work.source_index(i) for i in shared}
    work.origin = [work.source_index(index) for index in indices if index >= work.lead]
    work.history = History(
        messages,
        format=work.format,
        pins=kept_pins,
        pending_calls=history.pending_calls,
        origin_of=history.origin_of,
        holds=holds,
        leading=None if work.ask.leading is None else sum(index < work.ask.leading for index in indices),
        latest_user=_latest_user(work.ask, indices),
        elsewhere=history.elsewhere,
        thinking=history.thinking,
        looked_over=True,
    )
    known: list[int | None] | None = None
    if work.sizes.additive:
        read = work.sizes.known_read
        known = [None if index in shared else read[index] for index in indices]
    work.sizes = _sizes(work.ask, work.counter, work.history, fixed, known)


def _latest_user(ask: Ask, indices: Sequence[int]) -> int | None:
    """Say where the message is now that the caller knows to be the user's latest; -1: look for it."""
    if ask.latest_user is None or ask.latest_user < 0:
        return ask.latest_user
    return indices.index(ask.latest_user) if ask.latest_user in indices else -1
