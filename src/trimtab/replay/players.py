"""What decides, call by call: no trimming, a strategy, a policy with blocks, a function, or a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trimtab._fit import Fitted, fit
from trimtab._shared.checks import name_of
from trimtab.budget import BudgetLike, known_budget
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, leading_count, mapping_of
from trimtab.formats.values import compact_json
from trimtab.models import CachePricing
from trimtab.policy.conversations import with_conversation
from trimtab.replay.record import Messages, ModelCall, Recording, goes_on
from trimtab.report import WrittenResults
from trimtab.session import Session
from trimtab.session.runner import set_clock
from trimtab.stores import MemoryStore
from trimtab.strategies import Cascade, Cheapest, Strategy, Summarize
from trimtab.strategies.summarizer import Summarizer, SummaryRequest, reads_all, takes_existing
from trimtab.summaries import ExtractiveSummarizer


@dataclass(slots=True)
class Meter:
    """What summarizers were asked, and how much of that a model had to read and to write."""

    counts: Callable[[Messages], int]
    """Tokens of messages."""
    calls: int = 0
    read_tokens: int = 0
    written_tokens: int = 0

    def add(self, messages: Messages, existing: str | None, text: str, /) -> None:
        """Take down one call of a model."""
        self.calls += 1
        told = [{"role": "user", "content": existing}] if existing else []
        self.read_tokens += self.counts(messages) + (self.counts(told) if told else 0)
        self.written_tokens += self.counts([{"role": "assistant", "content": text}])

    def reset(self) -> None:
        """Begin anew."""
        self.calls = self.read_tokens = self.written_tokens = 0


class _Metered:
    """A summarizer whose calls are counted."""

    def __init__(self, inner: Summarizer, meter: Meter) -> None:
        self._inner, self._meter = inner, meter
        self.name = name_of(inner)
        self.takes_existing = takes_existing(inner)
        self.reads_all = reads_all(inner)

    def summarize(self, request: SummaryRequest, /) -> Any:
        """Ask it, and count."""
        text = self._inner.summarize(request)
        if isinstance(text, str):
            self._meter.add(request.messages, request.existing, text)
        return text


def with_meter(strategy: Strategy, meter: Meter, /) -> Strategy:
    """Return a strategy whose summarizers are counted; one that asks no model costs nothing and is not."""
    if isinstance(strategy, Cascade):
        return Cascade(*(with_meter(step, meter) for step in strategy.steps))
    if isinstance(strategy, Summarize) and not isinstance(strategy.summarizer, ExtractiveSummarizer):
        return replace(strategy, summarizer=_Metered(strategy.summarizer, meter))
    return strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a policy sends for one call."""

    messages: Messages
    system: Any = None
    evicted: int = 0
    """Messages of the call that are not in it."""
    changed: bool = False
    """Whether some are there in another shape."""
    limit_tokens: int | None = None
    """The room there was; None where nobody gave any."""
    written: WrittenResults | None = None
    """What `compact` did to results; None where nobody asked for it."""
    unwritten: Messages = ()
    """The messages with results as they came; empty: as `messages`."""
    marks: tuple[int, ...] | None = None
    """How many messages stand before each mark for the prompt cache, where the policy sets them."""

    @property
    def as_said(self) -> Messages:
        """The messages with results as they came, by which those of a recording are known again."""
        return self.unwritten or self.messages


class Player(Protocol):
    """Plays the calls of one recording, one after the other."""

    def play(self, call: ModelCall, /) -> View:
        """Decide what is sent.

        Raises:
            BudgetExceededError: Nothing that may be sent fits.
        """
        ...

    def ask(self, call: ModelCall, /) -> View:
        """Decide what would be sent for a call that goes on from the last one, and forget it.

        Raises:
            BudgetExceededError: Nothing that may be sent fits.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all policies of a replay have in common."""

    recording: Recording
    budget: BudgetLike | None
    model: str | None
    counter: Any
    meter: Meter

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.recording.format

    def limit_tokens(self) -> int | None:
        """Return the room for input, if anybody gave one."""
        budget = known_budget(self.budget, self.model)
        return None if budget is None else budget.input_tokens


class _Forgetful:
    """Decides each call by itself."""

    __slots__ = ()

    def play(self, call: ModelCall, /) -> View:
        """Decide what is sent."""
        raise NotImplementedError

    def ask(self, call: ModelCall, /) -> View:
        """Decide as for any other call."""
        return self.play(call)


@dataclass(slots=True)
class Whole(_Forgetful):
    """Sends everything."""

    limit_tokens: int | None

    def play(self, call: ModelCall, /) -> View:
        """Decide nothing."""
        return View(messages=call.messages, system=call.system, limit_tokens=self.limit_tokens)


@dataclass(slots=True)
class _Pauses:
    """The calls so far, and how long after the one before each was."""

    calls: list[tuple[ModelCall, float | None]] = field(default_factory=list)

    def add(self, call: ModelCall, /) -> None:
        """Take down one more; what does not go on from the one before begins anew."""
        before = self.calls[-1][0] if self.calls else None
        if before is not None and not goes_on(before.messages, call.messages):
            self.calls, before = [], None
        idle = None
        if before is not None and before.time is not None and call.time is not None:
            idle = call.time - before.time
        self.calls.append((call, idle))

    def cold_at(self, pricing: CachePricing, format: Format, /) -> list[int]:
        """List how many messages each cold call had; a bill knows better than a clock."""
        return [
            len(call.messages) - leading_count(call.messages, format)
            for call, idle in self.calls[1:]
            if (pricing.is_cold(idle) if call.cold is None else call.cold)
        ]


@dataclass(slots=True)
class ByStrategy(_Forgetful):
    """Fits each call by itself; `Cheapest` is told which calls found the cache cold."""

    setting: Setting
    strategy: Strategy | None
    """None: as `fit` does by itself."""
    steady: bool = False
    pauses: _Pauses = field(default_factory=_Pauses)

    def play(self, call: ModelCall, /) -> View:
        """Fit it."""
        self.pauses.add(call)
        return self.ask(call)

    def ask(self, call: ModelCall, /) -> View:
        """Fit it, and forget when it was."""
        setting = self.setting
        fitted = fit(
            call.messages,
            setting.budget,
            model=setting.model,
            counter=setting.counter,
            format=setting.format,
            system=call.system,
            tools=call.tools,
            strategy=self.strategy and self._with_pauses(self.strategy),
            steady=self.steady,
        )
        return _view(fitted)

    def _with_pauses(self, strategy: Strategy) -> Strategy:
        """Return a strategy that knows which calls found the cache cold."""
        if isinstance(strategy, Cascade):
            return Cascade(*map(self._with_pauses, strategy.steps))
        if not isinstance(strategy, Cheapest):
            return strategy
        cold = self.pauses.cold_at(strategy.pricing, self.setting.format)
        return replace(strategy, cold_at=(*strategy.cold_at, *cold)) if cold else strategy


@dataclass(slots=True)
class ByContext(_Forgetful):
    """Puts each call into the blocks of a policy, and fits these."""

    setting: Setting
    context: Context

    def play(self, call: ModelCall, /) -> View:
        """Fill the blocks and fit them."""
        setting = self.setting
        context, _ = with_conversation(
            self.context,
            call.messages,
            setting.format,
            budget=setting.budget,
            model=setting.model,
            counter=setting.counter,
            system=call.system,
            tools=call.tools,
        )
        return _view(context.fit())


class Keys:
    """What recorded messages say, each written once: to tell which were sent."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}
        """By identity, beside the message: that of one that is gone may be another's."""

    def count_gone(self, given: Messages, sent: Messages, /) -> int:
        """Count the messages of a recording that are not among those sent."""
        shown = {compact_json(mapping_of(message)) for message in sent}
        return sum(self.of(message) not in shown for message in given)

    def of(self, message: object, /) -> str:
        """Write a message as a key."""
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, compact_json(mapping_of(message)))
        return known[1]


@dataclass(slots=True)
class ByFunction(_Forgetful):
    """Lets a function choose: another library, or code of one's own."""

    setting: Setting
    function: Callable[[list[Any]], Messages]
    keys: Keys = field(default_factory=Keys)

    def play(self, call: ModelCall, /) -> View:
        """Ask it."""
        sent = list(self.function(list(call.messages)))
        gone = self.keys.count_gone(call.messages, sent)
        return View(messages=sent, system=call.system, evicted=gone, limit_tokens=self.setting.limit_tokens())


def _view(fitted: Fitted[Any]) -> View:
    """Return what was sent, without its marks: a provider tells no prefixes apart by them."""
    settlement, report = fitted.settlement, fitted.report
    messages = settlement.without_marks().messages
    return View(
        messages=messages,
        unwritten=() if report.written is None else _unwritten(fitted, messages),
        marks=settlement.marks.places,
        system=fitted.system,
        evicted=report.evicted_message_count,
        changed=report.compacted,
        written=report.written,
        limit_tokens=report.input_tokens,
    )


def _unwritten(fitted: Fitted[Any], messages: Messages) -> Messages:
    """Return what was sent with results as they came, where nothing else was done to them."""
    compacted = {row.index for row in fitted.report.messages if row.reason == "compacted"}
    source, pairs = fitted.settlement.outcome.source, zip(messages, fitted.positions, strict=True)
    return [source[place] if place in compacted else message for message, place in pairs]


@dataclass(slots=True)
class BySession:
    """Adds what came since the last call to a session, and sends its view."""

    setting: Setting
    session: Session
    leading: int
    """System messages that the session has by itself."""
    seen: Messages = ()
    asks_model: bool = True
    """Whether a summary of it is a call of a model."""
    keys: Keys = field(default_factory=Keys)
    summaries: int = 0

    def play(self, call: ModelCall, /) -> View:
        """Add the new messages and ask for the view.

        Raises:
            ConfigurationError: The calls of the recording do not go on from each other.
        """
        count = len(self.seen)
        if not goes_on(self.seen, call.messages):
            raise ConfigurationError("a session cannot replay calls that do not continue each other")
        if (time := call.time) is not None:
            set_clock(self.session, lambda: time)
        self.session.extend(list(call.messages[max(count, self.leading) :]))
        self.seen = call.messages
        view = _view(self.session.fit())
        if self.asks_model:
            self._count_summaries()
        gone = self.keys.count_gone(call.messages[self.leading :], view.as_said)
        return replace(view, evicted=gone, changed=False)

    def ask(self, call: ModelCall, /) -> View:
        """Ask a fork of the session, in a store of its own."""
        fork = self.session.fork(store=MemoryStore())
        twin = BySession(self.setting, fork, self.leading, self.seen, asks_model=False, keys=self.keys)
        return twin.play(call)

    def _count_summaries(self) -> None:
        """Take down the summaries that were written since; what they read is not in the log."""
        events = list(self.session.history(kinds=("summary",)))
        self.setting.meter.calls += len(events) - self.summaries
        self.summaries = len(events)
