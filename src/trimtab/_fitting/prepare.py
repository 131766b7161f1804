"""What `fit` does once, whatever the budget: read, choose counter and format, mend, let the callback run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab._fitting.callbacks import OnTrim, TrimContext, let_trim
from trimtab._fitting.portion import MOST_WRITTEN, Portion, StoredRules
from trimtab._fitting.request import (
    Ask,
    body_of,
    budget_of,
    check,
    check_breakpoints,
    counter_of,
    no_budget_note,
    refuse_faults,
    take_model,
)
from trimtab._fitting.shown_rules import ShownRules
from trimtab._shared.checks import move_to_source
from trimtab._shared.memory import with_latest
from trimtab.budget import Budget, known_budget, within
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import assemble
from trimtab.conversation.order import cannot_end, newest_inside
from trimtab.conversation.units import resolve_pins
from trimtab.counting.base import RequestCounter
from trimtab.counting.measurement import model_notes
from trimtab.counting.sizes import Fixed, Sizes, sizes_for
from trimtab.errors import FormatError
from trimtab.formats import Format, Request, Structure, format_of, leading_system, refuse_foreign, wire_form
from trimtab.strategies.base import landmarks, reads_newest
from trimtab.strategies.door import DEFAULT_STRATEGY, steady_strategy, strategy_given
from trimtab.strategies.openers import without_refused

if TYPE_CHECKING:
    from trimtab.compact import Compact
    from trimtab.compact.windows import Window
    from trimtab.conversation.repairs import Change
    from trimtab.report import Reason, Violation

__all__ = ["BLOCK", "Ask", "Work", "prepare"]

BLOCK = "history"
"""Name of the one block of `fit`."""


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
    rules: ShownRules | None = None
    """Rules of the host, which are shown always; None: there are none."""
    notes: tuple[str, ...] = ()
    """What the report should say beside its numbers."""
    unmended: bool = False
    """A repair was asked for, and what is older waits until it is read: mostly nothing is broken."""
    mended_from: int | None = None
    """Position in `source` from which on it was repaired; None where nothing was."""
    _mended_further: Work | None = None
    _written: dict[Window, Work] = field(default_factory=dict)
    """The same with results written for what a request holds, by that; the latest."""
    _is_noted: bool = False

    def mended_further(self, cut: int) -> Work:
        """Return the same with a repair of what was read, or of more; in the end of everything there is.

        Args:
            cut: All from this message on was to stay.
        """
        if self._mended_further is None:
            self._mended_further = prepare(self.ask, mend_from=self._further(cut))
        return self._mended_further

    @property
    def mended_first(self) -> Work:
        """The same with a repair of everything there is."""
        if self._mended_further is None:
            self._mended_further = prepare(self.ask, mend_from=0)
        further = self._mended_further
        return further.mended_first if further.unmended else further

    def _further(self, cut: int) -> int:
        """Find the beginning of a turn from which on to repair: as far as was read, or four times as far."""
        history, lead, start = self.history, self.lead, min(cut, self._counted_from)
        if self.mended_from is not None:
            start = min(start, lead + self.mended_from - 3 * (len(self.source) - self.mended_from))
        user = history.user_at_or_before(start) if start > history.head else None
        while user is not None and not (history.stands_alone(user) and self._stands(user)):
            user = history.user_at_or_before(user - 1) if user > history.head else None
        return 0 if user is None else max(0, user - lead)

    @property
    def _counted_from(self) -> int:
        """The oldest message counted, or that with the call that its results answer."""
        history = self.history
        return max(history.head, history.border_at_or_before(min(history.walked_from, history.count - 1)))

    def _stands(self, index: int) -> bool:
        """Tell whether a message stood well where it was."""
        rules, message = self.format.rules, self.history.message
        if not rules.ordered or index <= self.history.head:
            return True
        return self.format.order_fault(message(index - 1), message(index)) is None

    def is_sound(self, cut: int, before: Sequence[int]) -> bool:
        """Tell whether a repair would keep what stays as it is, and what that was decided by.

        That was each message counted, up to the one that passed the limit, with the call that its results
        answer. What is further back and stays was met alone: it has to stand well where it was.

        Args:
            cut: All from this message on stays.
            before: Messages before it that stay.
        """
        history = self.history
        if not history.is_sound(cut, before):
            return False
        first = self._counted_from
        if not all(self._stands(index) for index in before if index < first):
            return False
        if first >= cut:
            return True
        counted = history.messages_between(first, cut + 1)
        found = _violations(self.ask, self.format, Request(messages=()), counted)
        leads = ("wrong_order", 0)  # only because it comes first here
        return all((one.rule, one.index) == leads or not one.fault for one in found)

    def written_for(self, compact: Compact, window: Window) -> Work:
        """Return the same with results written for what a request holds of them.

        Args:
            compact: How results are written.
            window: What the request holds.
        """
        made = self._written.get(window)
        if made is None:
            from trimtab._fitting.compaction import rewrite  # not above: loaded by who asks for it

            history, written = rewrite(self, compact, window)
            edits = {one.place[0] for one in written.texts}
            known = self.ask.sizes
            if known is not None:
                known = [None if at in edits else size for at, size in enumerate(known)]
            mended = self.origin is not None
            made = replace(
                self,
                # else the history read objects into that very list
                source=self.source if mended else self.history.originals_from(self.lead),
                history=history,
                sizes=_sizes(self.ask, self.counter, history, self.sizes.fixed, known),
                origin=self.origin if mended else [*range(len(self.source))],
                written=written,
                _written={},
            )
        self._written = with_latest(self._written, window, made, most=MOST_WRITTEN)
        return made

    def note_repair(self) -> None:
        """Note what of the messages that were evicted a repair would have taken out."""
        if self.unmended and not self._is_noted:
            self.gone, self._is_noted = _repair(self.ask, self.format, self.source).gone, True

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
        """All there was before anything was evicted, system text that became a message included."""
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


def prepare(ask: Ask, *, mend_from: int | None = None) -> Work:
    """Read what was asked, and do once what does not depend on the budget.

    Args:
        ask: What was asked.
        mend_from: From which message on a repair that was asked for is made, though it may wait; None: it
            waits if it may.
    """
    check(ask)
    ask.breakpoints = check_breakpoints(ask.breakpoints)
    is_list = type(ask.messages) is list
    notes = ask.notes if is_list else take_model(ask) if ask.model is None else ()
    format = format_of(ask.messages, ask.format, ask.model)
    body = None if is_list else body_of(ask, format)
    format = wire_form(format, ask.charge_as)
    counter = counter_of(ask.counter, ask.model, format, body, charge_as=ask.charge_as)
    budget = _budget(ask)
    notes = notes if ask.model is None else (*notes, *model_notes(ask.model, counter))
    source = list(ask.messages if body is None else body.messages)
    default = steady_strategy(ask.steady) if ask.steady else DEFAULT_STRATEGY
    strategy = default if ask.strategy is None else strategy_given(ask.strategy)
    rules, stored = ShownRules.of(ask.rules, format, source) if ask.rules else (None, None)
    unmended = ask.repair and mend_from != 0 and stored is None
    unmended = unmended and reads_newest(strategy) and _may_wait(ask, format, counter, body)
    made = _Mended(source)
    if ask.repair and not (unmended and mend_from is None):
        made = _repair(ask, format, source, mend_from or 0)
        notes = (*notes, *_notes_of_repair(source, made.items))
    made = made if stored is None else made.without(stored)
    items, origin, lead = made.items, made.origin, leading_system(ask.system, format)
    if ask.strict:
        _refuse(ask, format, _request_of(ask, format, body, lead=bool(lead)), items)
    pins = _pins(ask, source, origin) if ask.pin != () else frozenset[int]()
    history = _history(ask, format, lead, items, body=body, pins=pins, origin=origin, unmended=unmended)
    if made.reaches_back or (unmended and (history.compaction >= 0 or landmarks(strategy, history))):
        return prepare(ask, mend_from=0)  # which message is the user's first, a repair may change
    beside, extra = (ask, None) if body is None else (body, body.extra or None)
    fixed = Fixed(system=None if lead else beside.system, tools=beside.tools, extra=extra, shown=rules)
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
        source_sizes=sizes if origin is None else _sizes_of_source(format, counter, source, fixed, stored),
        source_offset=len(lead) if origin is None else 0,
        lead=len(lead),
        origin=origin,
        gone=made.gone,
        mended=made.mended,
        asked=budget,
        tools=fixed.tools,
        notes=notes,
        unmended=unmended,
        mended_from=mend_from if unmended else None,
        owner_of=ask.owner_of,
        rules=rules,
        stored=None if rules is None else _stored_rules(rules, source, stored),
        asked_pins=frozenset([index + len(lead) for index in pins]) if pins else pins,
    )
    if ask.on_trim is not None:
        _let_callback_trim(work, fixed, ask.on_trim)
    return work


def _stored_rules(rules: ShownRules, source: Sequence[Any], stored: int | None) -> StoredRules | None:
    if stored is None:
        return None
    return StoredRules(stored, rules.message is not source[stored])


def _sizes(
    ask: Ask, counter: RequestCounter, history: History, fixed: Fixed, known: list[int | None] | None
) -> Sizes:
    # a session adds up what its log holds, and its views are counted so
    unread = history.unread if ask.sizes is None and history.format.rules.keeps_messages else range(0)
    sizes = sizes_for(counter, history.messages, fixed, unread=unread)
    if known is not None and sizes.additive:
        sizes.take(known)
    return sizes


def _sizes_of_source(
    format: Format, counter: RequestCounter, source: list[Any], fixed: Fixed, stored: int | None
) -> Sizes:
    sizes = sizes_for(counter, source.copy(), fixed, unread=format.unread(source))
    if stored is not None and sizes.additive:
        sizes.of(stored)  # of rules that other rules replace nobody else asks
    return sizes


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
    """Look over everything at once, and refuse faults of the input; after a repair what it could not mend."""
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


def _may_wait(ask: Ask, format: Format, counter: RequestCounter, body: Request | None) -> bool:
    """Tell whether a repair may wait until something broken is read.

    It may where what a repair mends in what is older than a cut leaves with it: a repair looks no further
    than pairs and neighbors do, and nobody asks for old messages or is shown all of them. Where thinking is
    bound to all before it, a change there is one of what stays.
    """
    bound = format.thinking_rules(ask.model, None if body is None else body.body).bound
    asked = ask.strict or ask.on_trim is not None or ask.pin != () or ask.pending_calls != ()
    asked = asked or ask.compact is not None  # which reads all results
    return not (bound or asked) and counter.prices is not None


class _Mended(NamedTuple):
    """Messages after a repair, or with one of the newest of them."""

    items: list[Any]
    origin: list[int] | None = None
    """Where each of them was; None: nothing was looked at."""
    gone: Mapping[int, Reason] = MappingProxyType({})
    mended: frozenset[int] = frozenset()
    """Where those were that it edited or moved."""
    reaches_back: bool = False
    """What is older may decide about what was found: which call a result answers, what opens a turn."""

    def without(self, stored: int) -> _Mended:
        """Return it without one of the messages that came in: rules that are shown beside all others."""
        origin = range(len(self.items)) if self.origin is None else self.origin
        there = [at for at, index in enumerate(origin) if index != stored]
        return self._replace(
            items=[self.items[at] for at in there],
            origin=[origin[at] for at in there],
            gone={index: reason for index, reason in self.gone.items() if index != stored},
            mended=self.mended - {stored},
        )


def _repair(ask: Ask, format: Format, source: Sequence[Any], start: int = 0) -> _Mended:
    """Repair the input, or what of it stands from a message on that opens a turn."""
    from trimtab.conversation.validity import repair  # not above: loaded by who asks for a repair

    whole = source[start:] if start else ask.messages if isinstance(ask.messages, Mapping) else source
    made = repair(whole, format=format, model=ask.model, pending_calls=ask.pending_calls)
    origin = [*range(start), *(start + at for at in made.positions)]
    left = set(range(start, len(source))) - set(origin[start:])
    opens = not made.messages or made.messages[0] is not source[start]
    # A result without its call leaves, or moves to one further back; but what is stored may hold the call.
    older = format.rules.calls_are_messages and any(one.rule == "orphan_result" for one in made.changes)
    return _Mended(
        [*source[:start], *made.messages],
        origin,
        dict.fromkeys(sorted(left), "repair"),
        frozenset(start + change.index for change in made.changes if _edits(change)),
        reaches_back=start > 0 and (opens or older),
    )


def _notes_of_repair(source: list[Any], items: list[Any]) -> list[str]:
    """Say that a repair kept nothing."""
    if not source or items:
        return []
    return [
        "The repair kept nothing: every message of the input was half of a tool call, said nothing, or lacked"
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
    """Go on with some units; `gone` says why each of the other messages was evicted."""
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
    work.asked_pins = frozenset([at for at, index in enumerate(indices) if index in work.asked_pins])
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
