"""What decides, call by call: no trimming, a strategy, a policy with blocks, or a session."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, Protocol, TypeAlias, cast

from trimtab._fit import Fitted, fit
from trimtab._fitting.request import known_budget
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, mapping_of
from trimtab.formats.values import compact_json
from trimtab.policy import load_policy, read_file
from trimtab.policy.conversations import blocks_for
from trimtab.replay.record import Messages, ModelCall, Recording, goes_on
from trimtab.session import Session
from trimtab.stores import MemoryStore
from trimtab.strategies import Cascade, Strategy, Summarize, create_strategy
from trimtab.strategies.summarizer import Summarizer, SummaryRequest, reads_all
from trimtab.summaries import ExtractiveSummarizer

PolicyLike: TypeAlias = (
    Strategy
    | Context
    | Callable[[], Session]
    | Callable[[list[Any]], Messages]
    | Mapping[str, Any]
    | str
    | PathLike[str]
    | None
)
"""What can be replayed: anything that decides what of a conversation is sent."""

NO_TRIMMING, BY_DEFAULT, SESSION, EXTRACTIVE = "none", "default", "session", "session-extractive"
WORDS = (NO_TRIMMING, BY_DEFAULT, SESSION, EXTRACTIVE)
"""Words for policies; every kind of strategy that needs no options is one, too."""


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
        self.name = getattr(inner, "name", type(inner).__name__)
        self.takes_existing = getattr(inner, "takes_existing", True)
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
    budget: Budget | float | None
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
class _Whole(_Forgetful):
    """Sends everything."""

    limit_tokens: int | None

    def play(self, call: ModelCall, /) -> View:
        """Decide nothing."""
        return View(messages=call.messages, system=call.system, limit_tokens=self.limit_tokens)


@dataclass(slots=True)
class _ByStrategy(_Forgetful):
    """Fits each call by itself."""

    setting: Setting
    strategy: Strategy | None

    def play(self, call: ModelCall, /) -> View:
        """Fit it."""
        setting = self.setting
        fitted = fit(
            call.messages,
            setting.budget,
            model=setting.model,
            counter=setting.counter,
            format=setting.format,
            system=call.system,
            tools=call.tools,
            strategy=self.strategy,
        )
        return _view(fitted)


@dataclass(slots=True)
class _ByContext(_Forgetful):
    """Puts each call into the blocks of a policy, and fits these."""

    setting: Setting
    context: Context

    def play(self, call: ModelCall, /) -> View:
        """Fill the blocks and fit them."""
        setting, names = self.setting, [block.name for block in self.context.blocks]
        context = self.context.clone(
            budget=setting.budget,
            model=setting.model,
            counter=setting.counter,
            format=setting.format,
            system=call.system,
            tools=call.tools,
        )
        for name, content in blocks_for(call.messages, names, setting.format).items():
            context.replace(name, content)
        return _view(context.fit())


@dataclass(slots=True)
class _ByFunction(_Forgetful):
    """Lets a function choose: another library, or code of one's own."""

    setting: Setting
    function: Callable[[list[Any]], Messages]

    def play(self, call: ModelCall, /) -> View:
        """Ask it."""
        sent = list(self.function(list(call.messages)))
        shown = {id(message) for message in sent} | {compact_json(mapping_of(message)) for message in sent}
        gone = sum(
            id(message) not in shown and compact_json(mapping_of(message)) not in shown
            for message in call.messages
        )
        return View(messages=sent, system=call.system, evicted=gone, limit_tokens=self.setting.limit_tokens())


def _view(fitted: Fitted[Any]) -> View:
    report = fitted.report
    return View(
        messages=fitted.messages,
        system=fitted.system,
        evicted=report.evicted_message_count,
        changed=report.changed_message_count > 0,
        limit_tokens=report.input_tokens,
    )


@dataclass(slots=True)
class _BySession:
    """Adds what came since the last call to a session, and sends its view."""

    setting: Setting
    session: Session
    leading: int
    """System messages that the session has by itself."""
    seen: Messages = ()
    asks_model: bool = True
    """Whether a summary of it is a call of a model."""
    keys: dict[int, str] = field(default_factory=dict)
    summaries: int = 0

    def play(self, call: ModelCall, /) -> View:
        """Add the new messages and ask for the view.

        Raises:
            ConfigurationError: The calls of the recording do not go on from each other.
        """
        count = len(self.seen)
        if not goes_on(self.seen, call.messages):
            raise ConfigurationError("a session cannot replay calls that do not go on from each other")
        self.session.extend(list(call.messages[max(count, self.leading) :]))
        self.seen = call.messages
        fitted = self.session.fit()
        shown = {compact_json(message) for message in fitted.messages}
        gone = sum(self._key(message) not in shown for message in call.messages[self.leading :])
        if self.asks_model:
            self._count_summaries()
        return View(
            messages=fitted.messages,
            system=fitted.system,
            evicted=gone,
            limit_tokens=fitted.report.input_tokens,
        )

    def ask(self, call: ModelCall, /) -> View:
        """Ask a fork of the session, in a store of its own."""
        fork = self.session.fork(store=MemoryStore())
        twin = _BySession(self.setting, fork, self.leading, self.seen, asks_model=False, keys=self.keys)
        return twin.play(call)

    def _key(self, message: object) -> str:
        key = self.keys.get(id(message))
        if key is None:
            key = self.keys[id(message)] = compact_json(mapping_of(message))
        return key

    def _count_summaries(self) -> None:
        """Take down the summaries that were written since; what they read is not in the log."""
        events = list(self.session.history(kinds=("summary",)))
        self.setting.meter.calls += len(events) - self.summaries
        self.summaries = len(events)


def name_of(policy: PolicyLike, /) -> str:
    """Return the word for a policy in tables."""
    if policy is None:
        return NO_TRIMMING
    if isinstance(policy, str | PathLike):
        word = fspath(policy)
        if word.startswith("{"):
            return name_of(_parse(word))
        return word if word in WORDS else PurePath(word).stem
    if isinstance(policy, Mapping):
        options = (f"{key}={value}" for key, value in policy.items() if key != "kind")
        return " ".join((str(policy.get("kind", "policy")), *options)) if "kind" in policy else "policy"
    if isinstance(policy, Context):
        return "policy"
    return str(getattr(policy, "name", None) or getattr(policy, "__name__", type(policy).__name__))


def player_for(policy: PolicyLike, setting: Setting, /) -> Player:
    """Return what plays a policy, fresh for one recording.

    Raises:
        ConfigurationError: It is none, or its file cannot be read.
        UnknownNameError: A word nobody knows.
    """
    made = read_policy(policy)
    if made is None or made == NO_TRIMMING:
        return _Whole(setting.limit_tokens())
    if made == BY_DEFAULT:
        return _ByStrategy(setting, None)
    if made in (SESSION, EXTRACTIVE):
        return _session_for(made, setting)
    if isinstance(made, Context):
        twin = made.clone()
        for block in made.blocks:
            if block.strategy is not None:
                twin.add_block(
                    replace(block, strategy=with_meter(block.gives_way_by, setting.meter)), replace=True
                )
        return _ByContext(setting, twin)
    if hasattr(made, "evict"):
        return _ByStrategy(setting, with_meter(made, setting.meter))
    if callable(made) and _takes_messages(made):
        return _ByFunction(setting, cast("Callable[[list[Any]], Messages]", made))
    session = made() if callable(made) else made
    if not isinstance(session, Session) or session is made:
        what = "a strategy, a Context, a file, None, a function of messages, or one that makes a Session"
        raise ConfigurationError(f"a policy is {what}, not {type(made).__name__}")
    return _BySession(setting, session, leading=0)


def _takes_messages(function: Callable[..., object]) -> bool:
    """Tell a function of messages from one that makes a session, which takes nothing."""
    given = inspect.signature(function).parameters.values()
    return any(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in given)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"a policy that begins with {{ is JSON, and this is not: {error}") from error


def read_policy(policy: Any, /) -> Any:
    """Make what data and files describe; what is none of these comes back as it is.

    Raises:
        ConfigurationError: The file cannot be read, or an option is not one.
        UnknownNameError: A word nobody knows.
    """
    if isinstance(policy, str | PathLike):
        word = fspath(policy)
        if word in WORDS:
            return word
        if word.startswith("{"):
            return read_policy(_parse(word))
        if PurePath(word).suffix.lower() not in (".json", ".toml"):
            return create_strategy(word)
        policy = read_file(policy)
    if not isinstance(policy, Mapping):
        return policy
    return create_strategy(policy) if "kind" in policy else load_policy(policy)


def _session_for(word: str, setting: Setting) -> Player:
    """Begin a session with the system text of the recording."""
    recording, form = setting.recording, setting.format
    first = recording.calls[0]
    leading = 0
    system = first.system
    if system is None and first.messages and form.kind(mapping_of(first.messages[0])) == "system":
        leading, system = 1, "\n".join(form.pieces(mapping_of(first.messages[0])).texts)
    session = Session(
        setting.budget,
        system=system,
        summarizer=ExtractiveSummarizer() if word == EXTRACTIVE else None,
        model=setting.model,
        counter=setting.counter,
        tools=first.tools,
        format=form,
    )
    return _BySession(setting, session, leading=leading, asks_model=False)
