"""The common part of adapters: one budget, one set of options, one way to write messages back."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import groupby
from operator import is_
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    NoReturn,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
)

from trimtab._fit import Fitted, afit, fit
from trimtab._fitting.callbacks import OnTrim
from trimtab._fitting.request import Ask, check, check_breakpoints, counter_of, window_of
from trimtab._shared.checks import answers_later, check_flag, in_words, near_names
from trimtab._shared.steps import Steps, arun, run
from trimtab.budget import (
    Budget,
    BudgetLike,
    check_words,
    is_words,
    known_budget,
    needs_model,
    share_of_window,
)
from trimtab.compact import CompactLike
from trimtab.context import Context
from trimtab.conversation.units import pins_given, resolve_pins
from trimtab.counting import AdditiveCounter, CounterLike, EstimateCounter, estimate_for
from trimtab.counting.base import SYSTEM_ROLES
from trimtab.counting.baseline import key_of_message
from trimtab.counting.dearest import DearestCounter
from trimtab.counting.door import as_counter
from trimtab.counting.sizes import Fixed, known_fixed_count
from trimtab.errors import ConfigurationError, MissingExtraError
from trimtab.formats import Format, get_format, leading_system, mapping_of, wire_form
from trimtab.formats.api_errors import Refusal
from trimtab.formats.origin import OriginOf
from trimtab.history import ReadCache
from trimtab.integrations.recovery import (
    Refused,
    add_note,
    ask_again,
    is_below,
    note_in,
    note_left_out,
    refusal_in,
    room_after,
)
from trimtab.models import ModelFacts, find_facts
from trimtab.policy import load_policy
from trimtab.policy.conversations import HISTORY, own_system, with_conversation
from trimtab.strategies import Cascade, ClampResults, SlidingWindow, StrategyLike, TruncateText
from trimtab.strategies.door import ratio_of, strategy_given

if TYPE_CHECKING:
    from trimtab.integrations.chats import Sent

M = TypeVar("M")
R = TypeVar("R")

Read: TypeAlias = Callable[[M], Any]
Write: TypeAlias = Callable[[M | None, list[dict[str, Any]]], M | None]

AdapterBudget: TypeAlias = BudgetLike | Context | PathLike[str] | None
"""What `fit` takes: tokens as 8_000 or "8k", a share of the model's input limit as "80%", "tier", a `Budget`.
Or a `Context`, or the path of a policy, whose block "history" is filled; None: the model's window less what
its answer may take."""

OnFitted: TypeAlias = Callable[[Fitted[Any]], Coroutine[Any, Any, object] | object]
"""Called with the result of each fit. A coroutine that it returns is awaited, where the call is; a task or a
future runs by itself, and no call waits for it."""


def clamped_strides(target_ratio: float, /) -> Cascade:
    """Limit each result to a quarter of the budget, and cut in strides down to a share of the budget."""
    return Cascade(ClampResults(max_ratio=0.25), SlidingWindow(target_ratio=target_ratio), TruncateText())


MOST_READINGS = 10_000
"""How many readings of messages an adapter remembers; each message lives as long as its reading."""

_OF_CONTEXTS = {"charge_as", "compact", "counter", "model", "pending_calls", "rules", "strict"}
"""Options that a `Context` has, too."""


class FitOptions(TypedDict, total=False):
    """Keyword arguments of `trimtab.fit` that every adapter takes."""

    model: str | None
    """Name of the model; None or missing: that of the call."""
    counter: CounterLike | None
    charge_as: str | None
    """The wire form messages are sent in; None or missing: that of the call's model, if known."""
    strategy: StrategyLike | None
    steady: bool | float
    """The share of the room that a cut keeps. True, the default, is half; False cuts as little as possible.
    """
    cut_newest: bool
    breakpoints: bool | Mapping[str, Any]
    pin: Iterable[int] | Callable[[Any, int], bool]
    pending_calls: Collection[str]
    on_trim: OnTrim | None
    origin: OriginOf | None
    rules: Sequence[str] | None
    """Rules of the host: shown in each call, word for word, behind the system text, and never evicted."""
    compact: CompactLike
    repair: bool
    strict: bool


class CallOptions(TypedDict, total=False):
    """What an adapter knows about a call in addition to its messages."""

    model: str | None
    """Name of the model of the call."""
    window: Budget | None
    """The room for input, if the framework knows it better; None: by trimtab's facts about the model."""
    sent_as: str | None
    """The wire form in which the framework sends the messages, if known."""
    others: Sequence[tuple[str | None, str | None]]
    """Models that may be sent the same messages in its place, each with its wire form: what counts is the
    dearest of all, unless the user named a model or gave a counter."""
    system: Any
    """System text that the framework sends separately: counted, and not returned."""
    tools: Any
    """Schemas of the tools, in the wire form or any that `fit` takes."""
    limit_tokens: int | None
    """Room for this call, in place of the budget; not of a `Context`."""


class Outcome(NamedTuple, Generic[M]):
    """The result of fitting a call."""

    messages: list[M]
    """The fitted messages, as the framework's own."""
    fitted: Fitted[Any]
    """The same as the engine sees them, with the report."""
    places: list[int | None]
    """The index of each of them among the messages of the call; None: it was put in."""
    kept: list[M]
    """The same for who keeps them: without the marks that were set for the prompt cache of this call."""
    bill: Sent | None = None
    """Records the bill of the call; None: nothing learns from it."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[M]):
    """The request to the engine for a call."""

    messages: Sequence[M]
    given: dict[str, Any]
    """Keyword arguments of `fit`."""
    write: Write[M]
    model: str | None
    window: Budget | None
    room: int | None
    """What it may have by what was refused before."""
    limit_tokens: int | None
    is_one: bool
    """Whether the call is for one model, rather than any of several."""
    is_learned: bool = False
    """Whether its counts are estimates of which a bill said how good they are, and keep as much free."""


class Trimmer(Generic[M]):
    """Fits the messages of each call of a model, and returns them as the framework's own.

    Args:
        budget: See `AdapterBudget`.
        format: Wire form that messages are read in.
        read: Writes a message as one of the wire form, or each as several; None: they are of it already.
        write: Given a message and what its wire messages became, returns a changed copy; given None and a
            wire message that trimtab put in, a new one. With `read`, or not at all.
        cache: What remembers readings from call to call: by object, or as the framework's messages have to be
            known that are copied at each call, or changed in place.
        holds: Tells of a message whether later ones build on it: it is pinned beside what the user pins; not
            in a `Context`.
        retry_overflow: Whether a call that its provider refuses is sent once more, where it can be sent
            otherwise.
        on_fitted: Called with the `Fitted` of each call; may be async where the call is.
        options: What the user said of `fit`.
        hands_system: Whether the adapter sends the system text of the `Fitted`. One that sends its messages
            alone has no place for that of a `Context`, in wire forms that keep it beside them.
        keeps: Whether what is sent takes the place of what the framework keeps.
        unmarked: Why no mark for a prompt cache reaches the model; "": it does.

    Raises:
        ConfigurationError: The budget is none of those, or an option is unknown, not what it may be, or
            contradicts another; here or at a call: the adapter has no place for texts of the `Context`.
    """

    def __init__(
        self,
        budget: AdapterBudget,
        *,
        format: str | Format,
        read: Read[M] | None = None,
        write: Write[M] | None = None,
        cache: Callable[..., ReadCache[M, Any]] = ReadCache,
        holds: Callable[[M], bool] | None = None,
        retry_overflow: bool = False,
        on_fitted: OnFitted | None,
        options: FitOptions,
        hands_system: bool = False,
        keeps: bool = False,
        unmarked: str = "",
    ) -> None:
        self._budget = budget_given(budget)
        self._format = get_format(format)
        self._hands_system = hands_system
        self._keeps = keeps
        self._write = write
        self._read = None if read is None else cache(read, most_objects=MOST_READINGS)
        self._held = None if holds is None else _Held(holds)
        self._on_fitted = on_fitted
        self.retries = check_flag("retry_overflow", retry_overflow)
        """Whether a refused call is sent once more."""
        self._refused = Refused()
        self._options = _options_given(options, self._format)
        steady = self._options.get("steady", True)
        self._target_ratio = ratio_of(steady) if steady else 1.0
        """What a cut keeps of the budget, if neither a strategy nor a `Context` says how calls give way."""
        self._has_warned = False
        self._missing: dict[str, tuple[EstimateCounter, str]] = {}
        """What counts for known models whose tokenizer is not installed, and what is said of each."""
        if self.sets_marks and unmarked:
            raise ConfigurationError(f"breakpoints: {unmarked}", argument="breakpoints")
        if isinstance(self._budget, Context):
            others = sorted(self._options.keys() - _OF_CONTEXTS)
            if others:
                raise ConfigurationError(f"{', '.join(others)}: the blocks of a Context set these themselves")
            self._check_texts(self._budget)
        elif "strategy" not in self._options:
            self._options.pop("steady", None)
            self._options["strategy"] = clamped_strides(self._target_ratio)

    def fit(self, messages: Sequence[M], **given: Unpack[CallOptions]) -> Outcome[M]:
        """Fit the messages of a call.

        Args:
            messages: Those of a call.
            given: What else is known of it.
        """
        return finish(self._fit(messages, **given))

    async def afit(self, messages: Sequence[M], **given: Unpack[CallOptions]) -> Outcome[M]:
        """Do what `fit` does; wait for async counters, summarizers and `on_fitted`."""
        return await afinish(self._fit(messages, **given))

    def fit_again(
        self, error: Exception, sent: Outcome[M], messages: Sequence[M], **given: Unpack[CallOptions]
    ) -> Outcome[M]:
        """Fit the messages of a call that its provider refused, otherwise.

        What the provider says is kept, so that later calls are not refused for the same.

        Args:
            error: What was raised for it.
            sent: What was refused.
            messages: Those of the call.
            given: As for `fit`.

        Raises:
            Exception: The very error, where there is nothing to send: it says why, if it is one of these.
        """
        return finish(self._fit_again(error, sent, messages, given))

    async def afit_again(
        self, error: Exception, sent: Outcome[M], messages: Sequence[M], **given: Unpack[CallOptions]
    ) -> Outcome[M]:
        """Do what `fit_again` does; wait for async counters and summarizers."""
        return await afinish(self._fit_again(error, sent, messages, given))

    def learn(
        self, error: BaseException, sent: Outcome[M], messages: Sequence[M], *, model: str | None
    ) -> Refusal | None:
        """Record why a provider refused a call; None if unknown, or if it should not be sent again.

        Args:
            error: What was raised for it.
            sent: What was refused.
            messages: Those of the call.
            model: That of the call.
        """
        refusal = refusal_in(error) if self.retries else None
        if refusal is None:
            return None
        if refusal.kind == "thinking":
            wires = [wire for message in messages for wire in self._wires(message)]
            self._refused.learn_thinking(map(self._format.thinking_key, wires))
            return refusal
        name, made = self._model(model), sent.fitted.settlement
        is_taught = sent.bill is not None and sent.bill.take_refusal(refusal.sent_tokens)
        room = min(room_after(refusal, made.tokens, is_taught=is_taught), made.limit_tokens)
        self._refused.learn_window(name, refusal)
        self._refused.learn_room(name, self._key_of(messages), max(1, room))
        return refusal

    def _fit_again(
        self, error: Exception, sent: Outcome[M], messages: Sequence[M], given: CallOptions
    ) -> Steps[Outcome[M]]:
        def make(refusal: Refusal) -> Steps[Outcome[M] | None]:
            return (yield from self._fit(messages, why=refusal, **given))

        refusal = self.learn(error, sent, messages, model=given.get("model"))
        return (yield from ask_again(error, refusal, make, lambda again: again.messages == sent.messages))

    @property
    def sets_marks(self) -> bool:
        """Whether marks for the provider's prompt cache are requested."""
        of_context = self._budget.policy.breakpoints if isinstance(self._budget, Context) else None
        return bool(self._options.get("breakpoints") or of_context)

    def check_sync(self) -> None:
        """Refuse async functions if calls are not awaited.

        Raises:
            ConfigurationError: `on_fitted` is async.
        """
        if self._on_fitted is not None and answers_later(self._on_fitted):
            raise _async_error()

    def _fit(
        self,
        messages: Sequence[M],
        *,
        model: str | None = None,
        window: Budget | None = None,
        sent_as: str | None = None,
        others: Sequence[tuple[str | None, str | None]] = (),
        system: Any = None,
        tools: Any = None,
        limit_tokens: int | None = None,
        why: Refusal | None = None,
    ) -> Steps[Outcome[M]]:
        given, write = self._ask(model, sent_as, system, tools, others), self._write_of(system)
        whole = messages
        messages, stay, left_out = self._without_refused(whole, write)
        room = self._refused.room(self._model(model), conversation=lambda: self._key_of(whole))
        asked = Asked(messages, given, write, model, window, room, limit_tokens, is_one=not others)
        fitted, blocks, bill = yield from self._fit_asked(asked)
        note_left_out(fitted, left_out)
        self._note_missing(fitted, self._name_of(self._model(model)), *(one for one, _ in others))
        if why is not None:
            note_in(fitted, why)
        yield from self._tell(fitted)
        sent, places = fitted.messages, fitted.positions
        kept = fitted.settlement.without_marks().messages if self._keeps else sent
        if blocks is not None:
            kept = [one for one, _ in blocks.objects(fitted, kept, write)] if self._keeps else []
            pairs = [*blocks.objects(fitted, sent, write)]
            sent, places = [one for one, _ in pairs], [owner for _, owner in pairs]
        places = [None if place is None else stay[place] for place in places]
        return Outcome(sent, fitted, places, kept if self._keeps else sent, bill)

    def _fit_asked(self, asked: Asked[M]) -> Steps[tuple[Fitted[M], Blocks[M] | None, Sent | None]]:
        """Fit a request; also returns the blocks of a `Context`, and what records a bill."""
        given, room = asked.given, asked.room
        margin: float | str = "auto" if asked.is_learned else 0
        if isinstance(self._budget, Context):
            self._check_texts(self._budget)
            context, limit = self._budget, self._budget.policy.budget
            name = known_name(self._model(asked.model))
            if is_below(room, None if limit is None else Budget.of(limit, model=name)):
                context = context.clone(budget=Budget(room, margin=margin))
            blocks = Blocks(context, asked.messages, self._format, self._read, given)
            return (yield Question(blocks.context.fit, blocks.context.afit)), blocks, None
        budget: BudgetLike | None = asked.limit_tokens or self._tokens(asked.model, asked.window)
        known = known_budget(budget, given["model"])
        if is_below(room, known):
            budget = Budget(room, margin=margin)
        elif asked.is_learned and known is not None:
            budget = replace(known, margin=margin)
        given = {**given, **self._objects(asked.messages, asked.write)}
        fits, afits = (
            partial(fit, asked.messages, budget, **given),
            partial(afit, asked.messages, budget, **given),
        )
        return (yield Question(fits, afits)), None, None

    def _wires(self, message: M) -> list[Any]:
        """List what a message is on the wire."""
        said = message if self._read is None else self._read(message)
        return list(said) if isinstance(said, list | tuple) else [said]

    def _key_of(self, messages: Sequence[M]) -> str:
        """Name a conversation by its first message that is not system text."""
        wires = (mapping_of(wire) for message in messages for wire in self._wires(message))
        first = next((wire for wire in wires if wire.get("role") not in SYSTEM_ROLES), None)
        return "" if first is None else key_of_message(first, self._format)

    def _without_refused(
        self, messages: Sequence[M], write: Write[M]
    ) -> tuple[Sequence[M], Sequence[int], int]:
        """Omit thinking that was refused before.

        Returns:
            The messages, the index that each had among those given, and how many of them had such thinking.
        """
        known, form = self._refused.thinking_of(), self._format
        if not known:
            return messages, range(len(messages)), 0
        left, stay, count = list[M](), list[int](), 0
        for at, message in enumerate(messages):
            wires, made = self._wires(message), cast("M | None", message)
            bare = [form.without_thinking(one) if form.thinking_key(one) in known else one for one in wires]
            if not all(map(is_, bare, wires)):
                count += 1
                rest = [one for one in bare if one is not None]
                made = write(message, rest) if rest else None
            if made is not None:
                left.append(made)
                stay.append(at)
        return left, stay, count

    def warn_stored(self, what: str, /, *, instead: str) -> None:
        """Warn, once, that a call goes on from what its server keeps, of which a fit takes nothing away.

        Args:
            what: By what that is seen.
            instead: What to write, by the framework's own names, to have the whole conversation sent.
        """
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{what}: the server adds messages that nobody here sees, from the conversation it keeps."
                " Trimming this call may leave them there, so that the model reads, and the bill holds, more"
                f" than the budget. To have the whole conversation sent and fitted, {instead}",
                stacklevel=3,
            )

    def dearest(
        self,
        ways: Iterable[list[Any]],
        *,
        has_system: bool,
        model: str | None = None,
        sent_as: str | None = None,
        others: Sequence[tuple[str | None, str | None]] = (),
    ) -> list[Any]:
        """Return the tools of a call that are charged most, of those that its framework may send.

        A counter that is not asked about tools alone, or is awaited, leaves that to an estimate.

        Args:
            ways: The tools by each way, as for `fit`.
            has_system: Whether the call begins with system text.
            model: As for `fit`.
            sent_as: As for `fit`.
            others: As for `fit`.
        """
        known = [*ways]
        if all(way == known[0] for way in known[1:]):
            return known[0]
        given = self._ask(model, sent_as, None, None, others)
        own = given.get("counter")
        if own is None and isinstance(self._budget, Context):
            own = self._budget.policy.counter
        own = None if own is None else as_counter(own, later=True)
        counter = counter_of(own, given["model"], self._format, charge_as=given["charge_as"])
        if counter.is_awaited or not isinstance(counter, AdditiveCounter):
            counter = EstimateCounter()
        asked: AdditiveCounter = counter
        return max(known, key=lambda tools: known_fixed_count(asked, Fixed(None, tools), has_system).tokens)

    def _objects(self, messages: Sequence[M], write: Write[M]) -> dict[str, Any]:
        """Say how messages are read and written, and which of them are pinned."""
        said: dict[str, Any] = {} if self._read is None else {"read": self._read, "write": write}
        held = self._held.of(messages) if self._held is not None else ()
        if held:
            said["pin"] = resolve_pins(self._options.get("pin", ()), messages).union(held)
        return said

    def _write_of(self, system: Any) -> Write[M]:
        """Write as the adapter does, and leave out system text that is put in as a message."""
        write = self._write or _first
        lead = leading_system(system, self._format)
        return lambda message, wire: None if message is None and wire == lead else write(message, wire)

    def _ask(
        self,
        model: str | None,
        sent_as: str | None,
        system: Any,
        tools: Any,
        others: Sequence[tuple[str | None, str | None]] = (),
    ) -> dict[str, Any]:
        """Say with what a call is fitted; a model that nobody knows is counted by estimate."""
        name = known_name(self._model(model))
        given: dict[str, Any] = {
            "model": name,
            "system": system,
            "tools": tools or None,
            "format": self._format,
        }
        sent = dict.fromkeys([(name, sent_as), *((known_name(one), form) for one, form in others)])
        told = self._options.get("charge_as")
        for _, form in sent:  # whoever counts, what may not lead there does not
            given["format"] = wire_form(given["format"], told or form or self._format.name)
        if self.counts:
            sent_as = None
        elif len(sent) > 1 and "model" not in self._options:
            counters: list[Any] = [
                counter_of(self._estimate(one), one, self._format, charge_as=form) for one, form in sent
            ]
            sent_as, given["counter"] = None, DearestCounter(counters, format=self._format)
        elif (estimate := self._estimate(self._name_of(name))) is not None:
            given["counter"] = estimate
        return {"charge_as": sent_as, **self._options, **given}

    def _name_of(self, name: str | None) -> str | None:
        """Name the model that a `Context` is of, where a call says none."""
        of_context = self._budget.policy.model if isinstance(self._budget, Context) else None
        return of_context if name is None else name

    def _estimate(self, name: str | None) -> EstimateCounter | None:
        """Return what counts for a known model whose tokenizer is not installed; None where it is.

        A gateway asks models that its program does not name: one of them, perhaps a fallback, may not take
        the others down. It is warned of once.
        """
        if name is not None and name not in self._missing:
            try:
                counter_of(None, name)
            except MissingExtraError as error:
                said = f"{name} is counted by an estimate, which errs high: {error}"
                self._missing[name] = estimate_for(name), said
                warnings.warn(said, stacklevel=2)
        return self._missing[name][0] if name in self._missing else None

    def _note_missing(self, fitted: Fitted[Any], *models: str | None) -> None:
        """Tell in a report which models of a call were estimated, since their tokenizer is not installed."""
        for name in dict.fromkeys(known_name(one) for one in models) if self._missing else ():
            if name in self._missing and not self.counts:
                add_note(fitted, f"{self._missing[name][1]}.")

    @property
    def counts(self) -> bool:
        """Whether the user gave a counter, which counts messages as they are read."""
        counter = self._options.get("counter")
        of_context = self._budget.policy.counter if isinstance(self._budget, Context) else None
        return counter is not None or of_context is not None

    def _tokens(self, model: str | None, window: Budget | None) -> Budget | None:
        """Return the budget of a call; a share is that of its model's window."""
        if isinstance(self._budget, Budget):
            return self._budget
        if self._budget is None:
            return window
        assert isinstance(self._budget, str)  # a Context has no budget of its calls
        if window is not None and (share := share_of_window(self._budget, window)) is not None:
            return share
        name = self._model(model)
        return Budget.of(self._budget, model=known_name(name) or name)

    def _model(self, of_call: str | None) -> str | None:
        """Name the model to count for: the one the user named, or that of the call."""
        return self._options.get("model") or of_call

    def _check_texts(self, context: Context) -> None:
        """Refuse texts of a Context that nobody would send, or that would be kept once more at each call."""
        system = None if self._hands_system else own_system(context, self._format)
        if system:
            raise ConfigurationError(
                f"the Context has system text, {system!r:.80}, but this adapter passes on only messages: in"
                f" the wire form {self._format.name!r}, system text is outside them. Pass it to the"
                " framework as instructions rather than to the Context, or set role='user' on its block"
            )
        if not self._keeps:
            return
        own = [one.name for one in context.blocks if one.name != HISTORY and not one.is_empty]
        if context.policy.system:
            own.insert(0, "system=")
        if own:
            raise ConfigurationError(
                f"the framework keeps what is sent, so the Context's own {', '.join(own)} would be added"
                " again after each call: pass that to the framework as instructions, and remove it from"
                " the Context ([] for a block)"
            )

    def _tell(self, fitted: Fitted[M]) -> Steps[None]:
        yield from tell(self._on_fitted, fitted)


class Question(NamedTuple):
    """A request to the engine, or to a function of the caller, sync or awaited."""

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


def finish(steps: Steps[R]) -> R:
    """Run a call to its end."""
    return run(steps, lambda question: question.now())


async def afinish(steps: Steps[R]) -> R:
    """Run a call to its end, awaiting each answer."""
    return await arun(steps, lambda question: question.later())


def tell(on_fitted: OnFitted | None, fitted: Fitted[Any]) -> Steps[None]:
    """Call the caller's function with the result of a fit.

    Raises:
        ConfigurationError: It has to be awaited, and the call is not.
    """
    said = None if on_fitted is None else on_fitted(fitted)
    if isinstance(said, Coroutine):
        yield Question(partial(_refuse, said), lambda: said)


def _refuse(said: Coroutine[Any, Any, object]) -> NoReturn:
    said.close()  # Python warns of one that nobody awaits
    raise _async_error()


def _async_error() -> ConfigurationError:
    return ConfigurationError(
        "on_fitted is async, but the call is not: pass a synchronous function, or await the call"
    )


class _Held(Generic[M]):
    """Finds the messages of a call that must be kept; those of the previous call are known."""

    def __init__(self, holds: Callable[[M], bool]) -> None:
        self._holds = holds
        self._last: tuple[list[M], list[int]] = [], []

    def of(self, messages: Sequence[M]) -> list[int]:
        """List the places of the messages that must be kept."""
        before, held = self._last
        if len(before) > len(messages) or not all(map(is_, before, messages)):
            before, held = [], []
        start = len(before)
        found = [*held, *(start + at for at, one in enumerate(messages[start:]) if self._holds(one))]
        self._last = list(messages), found
        return found


class Schemas:
    """Writes the tools of a call as schemas; those of the last call are reused."""

    def __init__(self, write: Callable[[Sequence[Any]], list[Any]]) -> None:
        self._write = write
        self._last: tuple[list[Any], list[Any]] = [], []
        """Tools and their schemas, in one object: threads share it."""

    def of(self, tools: Sequence[Any]) -> list[Any]:
        """Return the schemas of a call's tools."""
        known, schemas = self._last
        if len(tools) != len(known) or not all(map(is_, tools, known)):
            schemas = self._write(tools)
            self._last = list(tools), schemas
        return schemas


def form_of(client: object, forms: Mapping[str, str]) -> str | None:
    """Return the wire form in which a framework's client sends messages.

    Args:
        client: A model or a client.
        forms: Wire forms by the name of a class, which is not imported: each needs a package of its own.
    """
    return next((forms[kind.__name__] for kind in type(client).__mro__ if kind.__name__ in forms), None)


def join_system(texts: Iterable[str]) -> str | None:
    """Join system texts that are counted and never returned; each may be sent as a message of its own."""
    return "\n\nsystem\n\nsystem\n\nsystem\n\n".join(texts) or None


def rewrite_parts(
    parts: Sequence[Any],
    new: str | Sequence[Mapping[str, Any]] | None,
    *,
    read: Callable[[Any], Mapping[str, Any] | None],
    text: Callable[[str], Any],
) -> list[Any]:
    """Write the parts of a message with its new content; unchanged parts are the same objects.

    Args:
        parts: Those of the framework's message.
        new: The content of the wire message.
        read: Writes a part on the wire.
        text: Makes a part of a text.
    """
    if isinstance(new, str):
        return [text(new)]
    known = [(read(one), one) for one in parts]
    # The mark of a block of a Context for a prompt cache has no place in a part.
    pieces = [{key: one[key] for key in one if key != "cache_control"} for one in new or ()]
    return [next((one for was, one in known if was == now), None) or text(now["text"]) for now in pieces]


class Blocks(Generic[M]):
    """The messages of a call in the blocks of a `Context`, and the way back."""

    def __init__(
        self,
        context: Context,
        messages: Sequence[M],
        format: Format,
        read: Read[M] | None,
        given: Mapping[str, Any],
    ) -> None:
        self._messages = messages
        self._wires: list[list[Any]] = []
        """What each message is on the wire."""
        for message in messages:
            said = message if read is None else read(message)
            self._wires.append(list(said) if isinstance(said, list | tuple) else [said])
        wire = [one for own in self._wires for one in own]
        self._owners = [at for at, own in enumerate(self._wires) for _ in own]
        self.context, self._parts = with_conversation(context, wire, format, **given)

    def objects(
        self, fitted: Fitted[Any], messages: Sequence[Any], write: Write[M]
    ) -> Iterator[tuple[M, int | None]]:
        """Return the messages of an output as the framework's own, each with its index among those of the
        call.

        Args:
            fitted: The output.
            messages: Its messages, as they are to be written.
            write: Writes one of the framework's.
        """
        pairs = zip(messages, self.places(fitted), strict=True)
        for owner, group in groupby(pairs, lambda one: self._owner(one[1])):
            found = list(group)
            if owner is None:
                made = [write(None, [message]) for message, _ in found]
            else:
                own, told = self._wires[owner], [message for message, _ in found]
                same = len(own) == len(told) and all(map(is_, own, told))
                made = [self._messages[owner] if same else write(self._messages[owner], told)]
            yield from ((one, owner) for one in made if one is not None)

    def _owner(self, place: int | None) -> int | None:
        return None if place is None else self._owners[place]

    def places(self, fitted: Fitted[Any]) -> list[int | None]:
        """List the index of each message of the output among those of the call; None: of another block."""
        places: list[int | None] = [None] * len(fitted.messages)
        first = 0
        for name, (before, messages) in self._parts.items():
            for at, place in enumerate(fitted.positions_in(name) if messages else ()):
                if place is not None and place >= before:
                    places[at] = first + place - before
            first += len(messages)
        return places


def _first(message: Any, wire: list[Any]) -> Any:
    """Write a message that already has the wire form."""
    return wire[0]


def budget_given(budget: Any) -> Budget | Context | str | None:
    """Check what was given; a policy is read once."""
    if isinstance(budget, Context) and budget.policy.read is not None:
        raise ConfigurationError(
            "an adapter reads its framework's messages itself: pass a Context without read= and write="
        )
    if budget is None or isinstance(budget, Budget | Context):
        return budget
    if needs_model(budget):
        return check_words(budget)
    if isinstance(budget, PathLike) or (isinstance(budget, str) and not is_words(budget)):
        return load_policy(budget)
    try:
        return Budget.of(budget)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; a Context and the path of a policy are allowed here, too", argument="budget"
        ) from None


_DEFAULTS = {name: signature(fit).parameters[name].default for name in sorted(FitOptions.__annotations__)}
"""The defaults of `fit`'s options."""


def _options_given(options: FitOptions, format: Format) -> dict[str, Any]:
    """Check what `fit` would refuse at each call; None says nothing.

    A list or set stays the user's own, who may fill it between calls; what can be read once is read here.
    """
    for name in options:
        if name not in _DEFAULTS:
            raise ConfigurationError(
                f"{name}= is not an option of an adapter, which takes {', '.join(_DEFAULTS)}; the rest comes"
                f" from each call{in_words(near_names(name, [*_DEFAULTS]))}",
                argument=name,
            )
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, Iterator) else value
        for name, value in options.items()
        if value is not None
    }
    if "pin" in given:
        pins_given(given["pin"])
    ask = Ask(**{**_DEFAULTS, **given}, messages=[], budget=None, format=format, system=None, tools=None)
    check(ask)
    check_breakpoints(ask.breakpoints)
    if "strategy" in given:
        given["strategy"] = strategy_given(ask.strategy)
    counter = None if ask.counter is None else as_counter(ask.counter, later=True)
    counter_of(counter, None, format, charge_as=ask.charge_as)
    return given


def known_name(model: str | None) -> str | None:
    """Return the known name of a model; None if the call names none, or an unknown one.

    A host that is known may have windows and prices of its own; one nobody knows ("mine/gpt-4o") is left out.
    """
    names = [] if model is None else [model, model.rpartition("/")[2]]
    return next((name for name in names if find_facts(name) is not None), None)


def known_facts(model: str | None) -> ModelFacts | None:
    """Look up a model; None if the call names none, or an unknown one."""
    name = known_name(model)
    return None if name is None else find_facts(name)


def known_window(model: str | None) -> int | None:
    """Return the tokens of a model's window; None if unknown."""
    return window_of(known_name(model))
