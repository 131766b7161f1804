"""The quick way of `fit`: a plain request is decided in one go, without the objects of the full way.

It answers exactly what the full way answers, or None, and then the full way decides. What only a reader of
the report needs is made when it is asked for, from what was counted here (design/008-quick.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trimtab._fitting.fit_plan import FitPlan, deciding
from trimtab._fitting.prepare import BLOCK, Work, prepare
from trimtab._fitting.request import Ask, budget_of, counter_of
from trimtab.budget import Budget
from trimtab.conversation.units import results_behind
from trimtab.counting import EstimateCounter, TextCounter
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import DEFAULT, Format, Request, Structure, detect, form_of, get_format
from trimtab.strategies.base import EvictionRequest
from trimtab.strategies.cuts import SMALL_SHARE
from trimtab.strategies.runner import Settled
from trimtab.strategies.summarizer import drive

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["QuickPlan", "quick_plan"]

_OURS = (TextCounter, EstimateCounter)
"""Counters that check themselves; a subclass may count in its own way."""


def quick_plan(messages: Any, budget: Any, *, model: Any, counter: Any, format: Any) -> QuickPlan | None:
    """Decide what `fit` was asked with these arguments alone; None where only the full way can.

    Raises:
        UnknownNameError: The wire form or the model is unknown; the full way would say the same.
        MissingExtraError: The model's tokenizer is not installed; the same.
        ConfigurationError: The budget passes the model's window; the same.
    """
    if messages.__class__ is not list or format.__class__ is not str:
        return None
    if model is not None and model.__class__ is not str:
        return None
    limit_tokens: Any = budget
    if budget.__class__ is Budget:
        limit_tokens = None if budget.margin == "auto" else budget.input_tokens  # the full way works it out
    if limit_tokens.__class__ is not int:
        return None
    # What is in no form of its own is read as the default; a foreign shape on the way stops the walk.
    form = get_format(DEFAULT if format == "auto" else format)
    if format == "auto" and model is not None and form_of(model) not in ("", DEFAULT):
        return None
    if counter is None:
        counter = counter_of(None, model)
    if counter.__class__ in _OURS and counter.format is not form:
        counter = counter.with_format(form)
    if counter.__class__ not in _OURS or not _counts_units(form):
        return None
    assumed = format == "auto"
    plan = QuickPlan(
        messages.copy(), budget_of(budget, model), model=model, counter=counter, format=form, assumed=assumed
    )
    try:
        return plan if plan.decided(limit_tokens) else None
    except (CountingError, FormatError):  # the full way says where
        return None


def _counts_units(format: Format) -> bool:
    """Tell whether the units of a wire form are a call and the results behind it."""
    rules = format.rules
    return rules.results_are_messages and rules.users_stand_alone and not rules.binds_messages


class QuickPlan:
    """What was decided for a plain request, and the plan of the full way once that is asked for."""

    __slots__ = (
        "_assumed",
        "_before",
        "_budget",
        "_counter",
        "_cut",
        "_full",
        "_known",
        "_low",
        "_model",
        "_source",
        "_structure",
        "format",
        "tokens",
    )

    fits = True
    """What does not fit is left to the full way."""

    def __init__(
        self,
        source: list[Any],
        budget: Budget,
        *,
        model: str | None,
        counter: Any,
        format: Any,
        assumed: bool = False,
    ) -> None:
        self.format = format
        """The wire form."""
        self._assumed = assumed
        self._budget, self._model, self._counter, self._source = budget, model, counter, source
        self._structure = Structure(len(source))
        self._known: list[Any] = [None] * len(source)
        self._before: tuple[int, ...] = ()
        self._cut = self.tokens = 0
        self._full: FitPlan | None = None

    def decided(self, limit_tokens: int) -> bool:
        """Count from the newest message back and find the cut; False where only the full way can."""
        source, known, counter, form = self._source, self._known, self._counter, self.format
        prices = counter.prices
        head = self._leading() if prices is not None else -1
        user = form.newest(source, "user", head - 1, len(source) - 1) if head >= 0 else -1
        if user < 0:
            return False
        fixed_tokens = counter.fixed_tokens(None, None, has_system=head > 0)
        known[user] = user_tokens = counter.count_message(source[user])
        if fixed_tokens.__class__ is not int or fixed_tokens < 0:  # a framing that the full way refuses
            return False
        room = limit_tokens - fixed_tokens - sum(known[:head])
        if user_tokens * SMALL_SHARE >= room:  # such a message is reserved first; or there is no room at all
            return False
        span = range(len(source) - 1, head - 1, -1)
        low = form.count_back(source, span, room, known, self._structure, prices)
        if low is None:
            return False
        self._low = low
        left = room - sum(known[low:])
        if self._structure.replaced or self._structure.foreign or self._is_foreign(user):
            return False
        if any(map(self._is_foreign, range(head))):
            return False
        if left >= 0:
            self.tokens = limit_tokens - left
            return True
        return not self._structure.late and self._found(head, user, limit_tokens=limit_tokens, left=left)

    def _leading(self) -> int:
        """Count the leading system messages; return how many, or -1 if an entry is no plain dict."""
        source, known, kind = self._source, self._known, self.format.kind
        for index, message in enumerate(source):
            if message.__class__ is not dict:
                return -1
            if kind(message) != "system":
                return index
            known[index] = self._counter.count_message(message)
        return -1  # nothing else: no user either

    def _found(self, head: int, user: int, *, limit_tokens: int, left: int) -> bool:
        """Find the oldest cut that fits, newer than the message that passed the limit by `-left` tokens."""
        source, known, form, low = self._source, self._known, self.format, self._low
        newest = len(source) - 1
        while newest > low and form.kind(source[newest]) == "tool":
            newest -= 1
        if newest == low or form.kind(source[newest]) not in ("user", "assistant") or not self._is_whole():
            return False
        cut = self._border_after(low)
        left += sum(known[low:cut])
        opener = user if user <= cut else form.newest(source, "user", head - 1, cut)
        if opener >= 0 and self._is_foreign(opener):
            return False
        while left < (beside_tokens := self._size_of(opener) if 0 <= opener < cut else 0):
            if cut == newest:
                return False
            after = self._border_after(cut)
            left += sum(known[cut:after])
            cut = after
            if form.kind(source[cut]) == "user":
                opener = cut
        self._before = (*range(head), opener) if 0 <= opener < cut else tuple(range(head))
        self._cut, self.tokens = cut, limit_tokens - left + beside_tokens
        return True

    def _is_foreign(self, index: int) -> bool:
        """Tell whether a message that was not walked over looks like one of another wire form."""
        return index < self._low and bool(self.format.is_foreign(self._source[index]))

    def _is_whole(self) -> bool:
        """Tell whether the oldest results walked over, if nothing else is, answer the call before them."""
        source, form, low = self._source, self.format, self._low
        first = low
        while first >= 0 and form.kind(source[first]) == "tool":
            first -= 1
        if first == low:
            return True
        few = source[max(first, 0) : self._border_after(low)]
        columns = Structure(len(few))
        form.scan(few, 0, len(few), columns)
        return first >= 0 and results_behind(columns.answers, 0, columns.calls.get(0, ())) == len(few) - 1

    def _border_after(self, index: int) -> int:
        """Return the next message that answers nothing; there is one."""
        source, kind = self._source, self.format.kind
        index += 1
        while kind(source[index]) == "tool":
            index += 1
        return index

    def _size_of(self, index: int) -> int:
        if self._known[index] is None:
            self._known[index] = self._counter.count_message(self._source[index])
        size: int = self._known[index]
        return size

    @property
    def budget(self) -> Budget:
        """The budget it was decided for."""
        return self._budget

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        return self._model

    @property
    def source(self) -> list[Any]:
        """The caller's messages."""
        return self._source

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        return Request(messages=self._source)

    def messages(self) -> list[Any]:
        """Put the output together."""
        kept = self._source[self._cut :]
        return [*map(self._source.__getitem__, self._before), *kept] if self._before else kept

    def report(self, messages: list[Any], /) -> Report:
        """Make the report of the fit that gave these messages."""
        return self.full.report(messages)

    def at(self, budget: Budget, /) -> FitPlan:
        """Decide for another budget: older messages may say another wire form than those looked at."""
        return (self._detected() or self.full).at(budget)

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        self.full.count_all()

    def exceeded(self) -> BudgetExceededError:
        """Make the error for what does not fit."""
        return self.full.exceeded()

    @property
    def full(self) -> FitPlan:
        """The plan the full way would have made: decides nothing anew, counts nothing again."""
        if self._full is None:
            self._full = self._made_full()
        return self._full

    def _detected(self) -> FitPlan | None:
        """Decide in the wire form that all messages tell; None if that is the one they were read in."""
        form = detect(self._source, model=self._model) if self._assumed else self.format
        if form is self.format:
            return None
        work = self._prepared(form)
        return drive(deciding(work, work.budget))

    def _prepared(self, format: Format) -> Work:
        return prepare(
            Ask(
                messages=self._source,
                budget=self.budget,
                model=self._model,
                counter=self._counter,
                format=format,
                system=None,
                tools=None,
                strategy=None,
                pin=(),
                pending_calls=(),
                on_trim=None,
                repair=False,
            )
        )

    def _made_full(self) -> FitPlan:
        other, budget = self._detected(), self.budget
        if other is not None and other.tokens == self.tokens and _same(other.messages(), self.messages()):
            return other
        work = self._prepared(self.format)
        work.history._go_on(self._structure, self._low)
        work.sizes.known = self._known
        return FitPlan(
            portion=work,
            settled=Settled(
                before=self._before,
                cut=self._cut,
                tokens=self.tokens,
                actions=("evicted",) if self._cut else (),
            ),
            request=EvictionRequest(
                work.history, work.sizes, limit_tokens=budget.input_tokens, block=BLOCK, counted=self._low
            ),
            budget=budget,
        )


def _same(some: list[Any], others: list[Any]) -> bool:
    """Tell whether two lists hold the same objects."""
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))
