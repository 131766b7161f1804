"""The options of a session, checked when it is made, and the part that the log stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from trimtab._fitting.blocks import Block
from trimtab._fitting.callbacks import OnTrim
from trimtab._fitting.request import check_breakpoints, counter_of
from trimtab._shared.checks import (
    answers_later,
    check_choice,
    check_flag,
    check_fraction,
    check_model,
    check_parameters,
    check_tools,
    check_trim,
    name_of,
    number_of,
    system_of,
)
from trimtab._shared.options import (
    UNSET,
    OneOf,
    Option,
    Whole,
    about_options,
    by_default,
    check_each,
    held_after,
    held_as,
    values_of,
)
from trimtab.budget import Budget, BudgetLike, within
from trimtab.compact import Compact, CompactLike, Kind
from trimtab.compact.options import check_compact
from trimtab.context import Context
from trimtab.counting import CounterLike, EstimateCounter
from trimtab.counting.base import RequestCounter, counter_name
from trimtab.counting.baseline import UsageBaseline
from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    option,
    phrase,
)
from trimtab.formats import Format, SystemLike, ToolSchema, format_of
from trimtab.formats.foreign import check_message
from trimtab.formats.handles import offers_reading
from trimtab.models import Framing
from trimtab.relevance.ranker import RankCall, RankerLike, check_ranker
from trimtab.session.hooks import HooksLike, SessionHooks, hooks_by_name
from trimtab.session.in_context import (
    NO_ROOM,
    Room,
    compact_in,
    constant_room,
    require_context,
    room_for_history,
)
from trimtab.session.kinds import with_safe_kinds
from trimtab.session.plain import plain_message
from trimtab.stores import Retry, StoreLike
from trimtab.stores.labels import check_metadata, check_owner, check_ttl
from trimtab.strategies.cheapest import Cheapest
from trimtab.strategies.clamp_results import share_of
from trimtab.strategies.data import create_strategy
from trimtab.strategies.door import LARGE, strategy_given
from trimtab.strategies.fact_extractor import FactExtractorLike, extractor_word, require_fact_extractor
from trimtab.strategies.must_keep import (
    DEFAULT_KEPT_RATIO,
    MustKeep,
    MustKeepLike,
    check_must_keep,
    must_keep_data,
)
from trimtab.strategies.rules_message import check_rules
from trimtab.strategies.summarizer import SummarizerLike, require_summarizer, word_of

LEAST_BUDGET = 100

TARGET_RATIO = 0.5
"""What the messages in view come down to where the budget was passed, as a
share of their room.

Measured (design/023-session-strides.md): a fifth of the bill of 1, with views
that are three quarters full.
"""


class Clamp(NamedTuple):
    """Which tool results a view shows cut, and to what."""

    limit_tokens: int
    """A result with a longer text is cut."""
    share_tokens: int
    """What is shown of it."""
    text_limit_tokens: int | None = None
    """Other texts that are longer are cut, too; None: they are not cut."""
    offers_reading: bool = False
    """Whether the tools have one that reads the rest: then the marker says how."""

    @property
    def spares_newest(self) -> bool:
        """Whether what was said last is shown whole: only the rule of `fit`'s default does that."""
        return self.text_limit_tokens is not None


def clamp_for(ratio: ResultRatio, whole_tokens: int, tools: Any = None, /) -> Clamp | None:
    """Return what `max_result_ratio` means for a budget and tools; None: no result is cut."""
    if ratio is None:
        return None
    offered = offers_reading(tools)
    if ratio == "auto":
        shares = LARGE.shares(whole_tokens)
        return None if shares is None else Clamp(shares[1], shares[0], whole_tokens, offered)
    share_tokens = share_of(None, check_fraction("max_result_ratio", ratio), whole_tokens)
    return Clamp(share_tokens, share_tokens, None, offered)


def session_budget(value: Any, counter: Any, tools: Any = None, /, *, model: str | None) -> Budget:
    """Return the budget of a session, held to what its model takes, with its margin as its counter says."""
    budget = within(Budget.of(value, model=model), counter, tools)
    tokens = budget.input_tokens
    if tokens < LEAST_BUDGET:
        raise ConfigurationError(
            f"the budget of a session must be at least {LEAST_BUDGET} tokens, not {tokens}", argument="budget"
        )
    return budget


ResultRatio: TypeAlias = float | Literal["auto"] | None
"""The largest share of a view that one result may have; see `SessionOptions`."""

FindRulesWord: TypeAlias = Literal["auto", "all", "off"]
"""What `find_rules` may be, but for a function."""

FINDS: tuple[FindRulesWord, ...] = get_args(FindRulesWord)

FindRulesLike: TypeAlias = FindRulesWord | Callable[[str], Iterable[Any]]
"""What `find_rules` may be: "auto", "all", "off", or a function of a text that returns its rules: texts or
`trimtab.rules.Rule`."""

SummaryMode = Literal["incremental", "rolling", "anchored"]
"""How a summary is continued; see `Session`."""


def _anchors_given(name: str, value: Any) -> list[Any]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ConfigurationError(f"{name} must be a list of messages, not {value!r:.80}", argument=name)
    return [plain_message(one) for one in value]


def _rules_given(name: str, value: Any) -> list[str]:
    return [*check_rules(value)]


def _finder_given(name: str, value: Any) -> FindRulesLike:
    if callable(value):
        if answers_later(value):
            raise ConfigurationError(
                f"{name} must be a synchronous function, not {value!r:.80}", argument=name
            )
        check_parameters(name, value, "text")
        return cast("FindRulesLike", value)
    return cast("FindRulesLike", check_choice(name, value, FINDS))


def _text_given(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be a text, not {value!r:.80}", argument=name)
    return value


def _seconds_given(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(f"{name} must be a number above 0, not {value!r:.80}", argument=name)
    return value


def _result_ratio_given(name: str, value: Any) -> Any:
    if value in (None, "auto"):
        return value
    try:
        return check_fraction(name, value)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error}; 'auto' cuts only texts that no view could hold, None cuts no result", argument=name
        ) from None


def _recall_given(name: str, value: Any) -> float:
    number = number_of(value)
    if number is None or not 0 <= number < 1:
        raise ConfigurationError(
            f"{name} must be a number from 0 to below 1, not {value!r}: it is the share of a view for"
            " recalled messages; 0 recalls nothing",
            argument=name,
        )
    return number


@dataclass(slots=True)
class SessionOptions:
    """The options of a session: types, defaults and checks.

    An option that is left out keeps the value in the log. If an option has two
    types, the attribute has the second.

    Args:
        budget: Room for the view, at least 100 tokens; as for `fit`. None: the
            value in the log; for a new session, the window of the model less
            its output reserve.
        system: System text; it is never evicted. None by default.
        summarizer: A function of messages (and of the summary so far), or a
            `Summarizer`; may be async. None, the default: messages without room
            go out of view and are kept in the log.
        summary_mode: "incremental", the default: the summarizer gets the new
            messages and the summary so far. "rolling": the summary so far is
            the first of the messages. "anchored": anchors, or the first
            summary, are kept word for word, and the rest is summarized again.
        max_summary_tokens: Cap on the tokens of the summary. None, the default:
            0.3 of the current budget.
        min_recent_tokens: Tokens of recent messages to keep, if possible. None,
            the default: 0.3 of the budget.
        summarize_threshold_tokens: Number of waiting tokens at which a summary
            is requested. None, the default: 0.1 of the budget.
        summarize_threshold_messages: The same as a number of messages, which
            must also have half of those tokens; 6 by default.
        model: Name of the model, for its tokenizer.
        counter: What counts tokens; None, the default: the model's own, or an
            estimate that errs high.
        message_overhead: Tokens charged for each message where tokens are
            estimated; 4 by default. An error with `counter` or `model`, which
            have their own charge.
        summary_role: Role of the messages with summary and facts: "user", the
            default, or "system". They become system text only if no tool and no
            document is among their sources, otherwise user messages.
        trust_summaries: Whether to use that role regardless of the sources;
            False by default.
        must_keep: What a summary must keep word for word: "values", the
            default, which are names, numbers with units, ids, paths, dates and
            addresses; a pattern (`re.compile`); or a function of a text that
            returns its values. What the summarizer omitted follows its text in
            one line, the user's first; a value that only tools returned is
            restated if a call used it. None: nothing is looked for.
        max_kept_ratio: The largest share of a summary's room for that line,
            0 < ratio <= 1; 0.3 by default.
        rules: Rules of the host, each a text: shown always, word for word, in a
            message behind the system text; none by default.
        find_rules: Whether to find rules in what users and operators write:
            "auto", what holds beyond one answer; "all", orders for one answer,
            too; "off", the default; or a function of a text that returns its
            rules, as texts in it or as `trimtab.rules.Rule`. A rule whose
            message is out of view is restated behind the anchors.
        max_rule_tokens: Cap on the tokens of the found rules in view. None, the
            default: 0.1 of the budget, at most 1,000.
        anchors: Messages that follow the system text and are never evicted;
            none by default.
        max_anchor_tokens: Cap on the tokens of the anchors. None, the default:
            0.4 of the summary's cap.
        max_summary_rounds: How often a summary that is too long is requested
            again; 5 by default.
        summary_instructions: Instructions to the summarizer: what to keep or to
            omit.
        summary_timeout_seconds: Maximum number of seconds to wait for an
            answer. None, the default: no limit.
        hooks: A `SessionHooks`, or a mapping of hook names to functions.
        background: Whether to summarize early, in the background, so that `add`
            never waits; False by default. After `add` this happens in a thread,
            and an async summarizer runs in its own event loop: its client must
            not belong to another loop. After `aadd` it happens in a task.
        pending_first: Whether to show waiting messages before the summary;
            False by default.
        target_ratio: Share of their room to which messages in view are cut when
            the budget is exceeded, 0 < target_ratio <= 1; 0.5 by default.
            Nothing more is evicted until the budget is exceeded again, so a
            prompt cache keeps its prefix. 1: no more is evicted than necessary.
        strategy: "cheapest" or a `Cheapest`, in place of `target_ratio`: the
            depth of a cut follows from the price of a prompt cache and the
            growth of the conversation. If the cache is cold because of the time
            since the last message, messages that would soon be evicted are
            evicted then.
        breakpoints: True marks each view for a provider whose prompt cache
            stores marked prefixes only; a mapping is the mark itself; see
            `fit`. False by default.
        tools: Tool schemas that are part of every request; counted.
        format: Name of the wire form of the messages. "auto": the one in the
            log; for a new session, Chat Completions.
        context: A `Context` whose block "history" is this session; its budget
            applies.
        on_trim: Called with the `TrimContext` of each view before it is
            returned; messages it removes are not in that view, and are kept in
            the log. Pass it again each time, because a log cannot store it.
        max_result_ratio: The largest share of the budget that the text of one
            tool result may take in a view, 0 < ratio <= 1; a larger result
            shows both ends, and `view_of` returns all of it. The budget is the
            one at the time the session was made or opened. "auto", the default,
            is the rule of `fit`: a result larger than half of the budget, and a
            text that no view could hold, is shown at a quarter of the budget
            once a message follows it. None: no limit.
        compact: How views write tool results: True, or a
            `trimtab.compact.Compact`. Lines that stand in an earlier result of
            the view become a reference to it, and JSON is written without
            spaces. The log keeps results as they came. None, the default: so
            do views.
        recall_ratio: The share of a view, without system text and anchors, for
            messages in the log that are relevant to the newest question, marked
            as earlier text; from 0, the default, to below 1. This room is kept
            free once some message is no longer recent.
        ranker: A function `(query, messages)` that returns a score for each
            message, higher is better; may be async. None, the default: messages
            are recalled by words.
        max_candidates: How many messages the ranker gets: the best ones by
            words. None, the default: all that are out of view, 256 at a time,
            so it can find messages that share no word with the question.
            Without a ranker the option waits for one: a stored session may be
            opened with a ranker later.
        fact_extractor: A function of a `FactRequest`, or a `FactExtractor`; may
            be async. It reads what goes out of view, and the best facts that
            fit follow the anchors. It is called whenever a summarizer would be,
            and has the same time limit. None, the default: no facts.
        max_fact_tokens: Cap on the tokens of the facts in view. None, the
            default: 0.1 of the budget, rounded down. Without a fact extractor
            the option waits for one, as `max_candidates` does for a ranker.
        owner: Whose session it is, for `sessions`, `export` and `delete` of its
            store. None, the default: nobody's.
        metadata: Names with texts, numbers or flags, to list sessions by; at
            most 64. None by default.
        ttl: For how many seconds the session lives after its newest event.
            Then it is not opened any more (`SessionExpiredError`), and
            `store.expire()` removes it. None, the default: without end.
    """

    budget: BudgetLike | None = by_default(None, kept=False)
    _: KW_ONLY
    system: Option[SystemLike | None, Any] = by_default(None, held_as(system_of))
    summarizer: Option[SummarizerLike | None, Any] = by_default(
        None, held_as(require_summarizer), kept=False, policy=True
    )
    summary_mode: Option[SummaryMode] = by_default("incremental", OneOf.literal(SummaryMode), policy=True)
    max_summary_tokens: Option[int | None] = by_default(None, Whole(1), policy=True)
    min_recent_tokens: Option[int | None] = by_default(None, Whole(0), policy=True)
    summarize_threshold_tokens: Option[int | None] = by_default(None, Whole(1), policy=True)
    summarize_threshold_messages: Option[int] = by_default(6, Whole(1), policy=True)
    model: Option[str | None] = by_default(None, held_after(check_model))
    counter: Option[CounterLike | None, Any] = by_default(None, kept=False)
    message_overhead: Option[int] = by_default(4, Whole(0))
    summary_role: Option[str] = by_default("user", OneOf(("system", "user")), policy=True)
    trust_summaries: Option[bool] = by_default(False, check_flag, policy=True, before=False)
    must_keep: Option[MustKeepLike, MustKeep] = by_default(
        "values", check_must_keep, policy=True, before=None
    )
    max_kept_ratio: Option[float] = by_default(
        DEFAULT_KEPT_RATIO, check_fraction, policy=True, before=DEFAULT_KEPT_RATIO
    )
    rules: Option[Sequence[str], list[str]] = by_default((), _rules_given, policy=True, before=[])
    find_rules: Option[FindRulesLike] = by_default("off", _finder_given, policy=True, before="off")
    max_rule_tokens: Option[int | None] = by_default(None, Whole(0), policy=True, before=None)
    anchors: Option[Sequence[Any]] = by_default((), _anchors_given)
    max_anchor_tokens: Option[int | None] = by_default(None, Whole(1), policy=True)
    max_summary_rounds: Option[int] = by_default(5, Whole(0))
    summary_instructions: Option[str | None] = by_default(None, _text_given)
    summary_timeout_seconds: Option[float | None] = by_default(None, _seconds_given)
    hooks: Option[HooksLike | None, Any] = by_default(None, kept=False)
    background: Option[bool] = by_default(False, check_flag)
    pending_first: Option[bool] = by_default(False, check_flag, policy=True)
    target_ratio: Option[float] = by_default(TARGET_RATIO, check_fraction, policy=True, before=TARGET_RATIO)
    strategy: Option[Cheapest | str | Mapping[str, Any] | None, Cheapest | None] = by_default(
        None, policy=True, before=None
    )
    breakpoints: Option[bool | Mapping[str, Any], Any] = by_default(
        None, held_as(check_breakpoints), policy=True, before=None
    )
    tools: Option[Sequence[ToolSchema] | None, Any] = by_default(None, held_after(check_tools))
    format: str | Format = by_default("auto", kept=False)
    context: Option[Context | None] = by_default(None, kept=False)
    on_trim: Option[OnTrim | None] = by_default(None, held_after(check_trim), kept=False)
    max_result_ratio: Option[float | Literal["auto"] | None, ResultRatio] = by_default(
        "auto", _result_ratio_given, policy=True, before=None
    )
    compact: Option[CompactLike, Compact | None] = by_default(
        None, held_as(check_compact), policy=True, before=None
    )
    recall_ratio: Option[float] = by_default(0.0, _recall_given, policy=True, before=0.0)
    ranker: Option[RankerLike | None] = by_default(None, check_ranker, kept=False)
    max_candidates: Option[int | None] = by_default(None, Whole(1), before=None)
    fact_extractor: Option[FactExtractorLike | None, Any] = by_default(
        None, held_as(require_fact_extractor), kept=False
    )
    max_fact_tokens: Option[int | None] = by_default(None, Whole(1), before=None)
    owner: Option[str | None] = by_default(None, held_as(check_owner), before=None)
    metadata: Option[Mapping[str, Any] | None] = by_default(None, held_as(check_metadata), before=None)
    ttl: Option[float | None] = by_default(None, held_as(check_ttl), before=None)

    def __post_init__(self) -> None:
        """Check every value separately."""
        check_each(self)


@dataclass(slots=True)
class SessionArguments(SessionOptions):
    """What a `Session` is made with: its options, and the settings of one object."""

    store: StoreLike | None = field(default=None, kw_only=True)
    id: str | None = field(default=None, kw_only=True)
    retry: Retry | None = field(default=None, kw_only=True)
    allow_missing: bool = field(default=False, kw_only=True)


@dataclass(slots=True)
class RestoreArguments(SessionArguments):
    """The options for making a session from a snapshot."""

    budget: BudgetLike | None = field(default=None, kw_only=True)
    data: Mapping[str, Any]


_ABOUT = about_options(SessionOptions)

OPTIONS = tuple(_ABOUT)
"""Names of the options, in their order."""


def given_in(options: Mapping[str, Any], function: str, /) -> dict[str, Any]:
    """Return the options that are not omitted.

    Raises:
        TypeError: There is no such option; as Python says it of a function.
    """
    for name in options:
        if name not in _ABOUT:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return {name: one for name, one in options.items() if one is not UNSET}


@dataclass(slots=True)
class Options(SessionOptions):
    """Everything a session was made with, and what follows from it."""

    budget_tokens: int = field(init=False, default=0)
    """Input tokens of the budget; 0 where the log says it."""
    resolved: Budget | None = field(init=False, default=None)
    """The budget with its margin; None where the log says what remains of it."""
    wire_format: Format = field(init=False)
    tokens_by: RequestCounter = field(init=False)
    """The counter in use."""
    measured: tuple[Block, ...] = field(init=False, default=())
    """The blocks of the context when its room was measured."""
    room: Room = field(init=False, default=NO_ROOM)
    """What the context leaves for the history."""
    constant_tokens: int = field(init=False, default=0)
    """What the context leaves for the history at most, whatever its other blocks hold."""

    def __post_init__(self) -> None:
        """Check every value, then those that depend on each other."""
        check_each(self)
        self.hooks = SessionHooks.of(self.hooks)
        self.strategy = _cheapest_given(self.strategy, self.target_ratio)
        self._take_context()
        self.wire_format = format_of([], self.format, self.model)
        for at, anchor in enumerate(self.anchors):
            check_anchor(self.wire_format, anchor, at)
        self.tokens_by = self._counter()
        if self.budget is not None:
            self.resolved = session_budget(self.budget, self.tokens_by, self.tools, model=self.model)
            self.budget_tokens = self.resolved.input_tokens
        self.measure_context()
        if self.max_result_ratio is not None and self.context is not None:
            self.constant_tokens = constant_room(self)

    def _take_context(self) -> None:
        """Take from the context what it says of all blocks; the budget is what it leaves for the history."""
        if self.context is None:
            return
        if self.budget is not None:
            raise ConfigurationError(
                "budget is passed twice: by budget= and by the Context", argument="budget"
            )
        if self.breakpoints is not None:
            raise ConfigurationError(
                "breakpoints applies to the whole request, so it belongs to the Context:"
                " Context(breakpoints=True)",
                argument="breakpoints",
            )
        if self.compact is not None:
            raise ConfigurationError(
                "compact applies to all blocks, so it belongs to the Context: Context(compact=True)",
                argument="compact",
            )
        context = require_context(self.context, self).clone()
        self.context, self.format = context, context.policy.format

    def measure_context(self) -> None:
        """Find the room that the other blocks leave for the history."""
        if self.context is not None:
            self.measured = ()  # until it is known to be one
            blocks = require_context(self.context, self).blocks
            self.room = room_for_history(self)
            self.budget_tokens = self.room.usual
            self.measured = blocks

    @property
    def context_changed(self) -> bool:
        """True if the blocks of the context differ from those that were measured."""
        if self.context is None:
            return False
        blocks = self.context.blocks
        same = len(blocks) == len(self.measured)
        return not same or any(new is not old for new, old in zip(blocks, self.measured, strict=True))

    @property
    def pending_calls(self) -> frozenset[str]:
        """Ids of calls whose results are still to come, as the context says."""
        return frozenset() if self.context is None else frozenset(self.context.policy.pending_calls)

    def _counter(self) -> RequestCounter:
        policy = None if self.context is None else self.context.policy
        counter = self.counter if self.counter is not None or policy is None else policy.counter
        model = self.model if self.model is not None or policy is None else policy.model
        if isinstance(counter, UsageBaseline):
            raise ConfigurationError(
                "counter is a UsageBaseline, whose sizes change with each report: pass the counter inside"
                " it, and call record_usage() after each answer",
                argument="counter",
            )
        if counter is not None or model is not None:
            if self.message_overhead != 4:
                raise ConfigurationError(
                    f"message_overhead={self.message_overhead} is the charge per message for estimates, but"
                    f" {'counter' if counter is not None else 'model'}= has its own charge: leave it out"
                    " (4 resets another value in the log), or pass counter=counter_from_text(fn,"
                    f" message_overhead={self.message_overhead})",
                    argument="message_overhead",
                )
            return counter_of(counter, model, self.wire_format)
        if self.message_overhead == 4:
            return counter_of(None, None, self.wire_format)
        framing = Framing(
            per_message_tokens=self.message_overhead,
            roles_counted=False,
            tools_style="json",
            tools_saved_by_system_tokens=0,
        )
        return EstimateCounter(framing=framing, format=self.wire_format)

    @property
    def counted_by(self) -> str:
        """Name of the counter, as the log remembers it: sizes by another one are not taken over."""
        overhead = "" if self.message_overhead == 4 else f"+{self.message_overhead}"
        return f"{counter_name(self.tokens_by)}{overhead}{' without thinking' if self.binds_thinking else ''}"

    @property
    def binds_thinking(self) -> bool:
        """Tell whether the model refuses thinking once anything before it has changed."""
        return self.wire_format.thinking_rules(self.model, None).bound

    @property
    def clamp(self) -> Clamp | None:
        """Which results a view shows cut; None: none."""
        whole_tokens = self.budget_tokens if self.context is None else self.constant_tokens
        elsewhere = None if self.context is None else self.context.policy.tools
        return clamp_for(self.max_result_ratio, whole_tokens, self.tools or elsewhere)

    @property
    def writes(self) -> Compact | None:
        """How views write tool results, as the session or its context says; None: as they are.

        A kind that raises writes nothing: what is in the log must be shown.
        """
        compact = self.compact if self.context is None else compact_in(self.context)
        return with_safe_kinds(compact) if compact is not None and compact.kinds else compact

    @property
    def over_limit(self) -> bool:
        """Tell whether the budget may pass what the model takes."""
        return self.resolved is not None and self.resolved.over_limit

    @property
    def keeps_by_function(self) -> bool:
        """Tell whether a function says what summaries must keep, which no log can store."""
        return callable(self.must_keep)

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds of `compact`, which no log can store."""
        return () if self.compact is None else self.compact.kinds

    def rank(self, query: str = "", messages: Sequence[Any] = ()) -> RankCall:
        """Make the question to the ranker."""
        ranker = cast("RankerLike", self.ranker)
        return RankCall(ranker, query, messages, f"ranker {name_of(ranker)}", _AWAIT_RANKER)

    def to_data(self) -> dict[str, Any]:
        """Write plain data; of functions, only that they were passed."""
        return {
            **values_of(self, _DATA),
            "strategy": None if self.strategy is None else self.strategy.to_dict(),
            "must_keep": None if self.keeps_by_function else must_keep_data(self.must_keep),
            "find_rules": "off" if callable(self.find_rules) else self.find_rules,
            "compact": None if self.compact is None else _compact_data(self.compact),
            "budget_tokens": self.budget_tokens if self.context is None else 0,
            "over_limit": self.over_limit,
            "counted_by": self.counted_by,
            "format": self.wire_format.name,
            "given": {
                "summarizer": None if self.summarizer is None else word_of(self.summarizer),
                "fact_extractor": (
                    None if self.fact_extractor is None else extractor_word(self.fact_extractor)
                ),
                "must_keep": name_of(self.must_keep) if self.keeps_by_function else None,
                "find_rules": name_of(self.find_rules) if callable(self.find_rules) else None,
                "compact": ", ".join([one.name for one in self.kinds]) or None,
                "counter": None if self.counter is None else counter_name(self.tokens_by),
                "context": self.context is not None,
                "ranker": None if self.ranker is None else self.rank().word,
                "on_trim": None if self.on_trim is None else name_of(self.on_trim),
                "hooks": ", ".join(name for name, one in hooks_by_name(self.hooks).items() if one) or None,
            },
        }


_AWAIT_RANKER = "await aadd(...) instead of calling add(...), and arecall(...) instead of recall(...)"

FUNCTIONS = [
    name
    for name, about in _ABOUT.items()
    if name in ("must_keep", "find_rules", "compact") or (not about.kept and name not in ("budget", "format"))
]
"""Options that no log can store, or not always: `must_keep` and `find_rules` may be functions, and `compact`
may have kinds. A session made with them does not silently continue without them (SPEC E12b)."""

_DATA = [name for name, about in _ABOUT.items() if about.kept]
"""Options that a log stores unchanged."""

_BEFORE = {name: about.before for name, about in _ABOUT.items() if about.before is not UNSET}
"""The values for a log that is older than an option."""


def known_options(data: Mapping[str, Any], /) -> dict[str, Any]:
    """Return the options in a log or a snapshot; newer options get their defaults."""
    return {**_BEFORE, "over_limit": False, **data}


def as_given(data: Mapping[str, Any], given: Mapping[str, Any], /) -> dict[str, Any]:
    """Return all options of a session: those that were passed, and the others from the log."""
    try:
        data = known_options(data)
        values: dict[str, Any] = {**{name: data[name] for name in (*_DATA, "format")}, **given}
    except (KeyError, TypeError) as error:
        raise CorruptSessionError(f"a session's log or snapshot holds no options: {error!r:.80}") from error
    if isinstance(values["compact"], Mapping):
        values["compact"] = _compact_of(values["compact"])
    if values["format"] == "auto":
        values["format"] = data["format"]
    counts_itself = values.get("counter") is not None or values["model"] is not None
    if counts_itself and "message_overhead" not in given:
        values["message_overhead"] = 4  # 0.1 kept another beside a counter, and did not go by it
    if "strategy" in given and "target_ratio" not in given:  # the one that is given takes the other's place
        values["target_ratio"] = TARGET_RATIO
    elif "target_ratio" in given and "strategy" not in given:
        values["strategy"] = None
    if values.get("context") is None and values.get("budget") is None and data["budget_tokens"]:
        values["budget"] = Budget(data["budget_tokens"], over_limit=data["over_limit"])
    return values


def functions_of(options: Options, /) -> dict[str, Any]:
    """Return the options that no log can store; those that one has stored are as it says."""
    found = values_of(options, FUNCTIONS)
    stored = {
        "must_keep": not options.keeps_by_function,
        "find_rules": not callable(options.find_rules),
        "compact": not options.kinds,
    }
    return {name: value for name, value in found.items() if not stored.get(name)}


def omitted_functions(data: Mapping[str, Any], given: Mapping[str, Any], /) -> dict[str, Any]:
    """Return what the session was made with and is omitted now, as stored in the log."""
    known = data.get("given", {})
    return {name: known[name] for name in FUNCTIONS if known.get(name) and name not in given}


def missing_functions(data: Mapping[str, Any], given: Mapping[str, Any], /) -> str | None:
    """Name a function that the session was made with and that is omitted now; None if there is none."""
    for kind, what in omitted_functions(data, given).items():
        name, article = function_name(kind, what), _ARTICLES.get(kind, "a ")
        return f"{article}{kind} ({name:.80})" if name else f"{article}{kind}"
    return None


_ARTICLES = {"on_trim": "an ", "hooks": "", "compact": ""}


def function_name(kind: str, what: object, /) -> str:
    """Return the name of a function as the log remembers it, without the word for its kind; empty: none."""
    return what.removeprefix(f"{kind.replace('_', ' ')} ") if isinstance(what, str) else ""


def other_form(session: str, known: str, given: str) -> ConfigurationError:
    """Make the error for a session that is opened with another wire form than its log's."""
    return ConfigurationError(
        phrase(
            f"session {session!r} has messages in the wire form {known!r} and is opened with ",
            option("format", given),
            ": leave ",
            option("format"),
            " out, or start another session",
        ),
        argument="format",
    )


def _compact_data(compact: Compact) -> dict[str, Any]:
    """Write it as plain data, without its kinds: a default that changes changes no session."""
    data = asdict(replace(compact, kinds=()))
    del data["kinds"]
    return {**data, "exclude_tools": [*compact.exclude_tools]}


def _compact_of(data: Mapping[str, Any]) -> Compact:
    try:
        return Compact(**data)
    except (ConfigurationError, TypeError) as error:
        raise CorruptSessionError(
            f"a session's log or snapshot has a compact that is none: {error!s:.80}"
        ) from error


def _cheapest_given(value: Any, target_ratio: float) -> Cheapest | None:
    """Return the depth of cuts if `target_ratio` does not set it."""
    if value is None:
        return None
    made = create_strategy(value) if isinstance(value, Mapping) else strategy_given(value)
    if type(made) is not Cheapest:
        raise ConfigurationError(
            "a session cuts whole units, oldest first: strategy must be 'cheapest' or Cheapest(...), which"
            f" sets the depth of a cut, not {made.name!r}; leave it out and pass target_ratio= to set the"
            " depth yourself",
            argument="strategy",
        )
    if made.cold_at:
        raise ConfigurationError(
            "cold_at: a session knows the times of its messages; leave it out of Cheapest(...)",
            argument="cold_at",
        )
    if target_ratio != TARGET_RATIO:
        raise ConfigurationError(
            f"target_ratio={target_ratio} sets the depth of a cut, and so does strategy='cheapest': pass one"
            " of them",
            argument="target_ratio",
        )
    return made


def check_anchor(format: Format, anchor: dict[str, Any], at: int) -> None:
    """Refuse an anchor with which no view could be sent."""
    check_message(anchor, format.name)
    if format.rules.lifts_system and format.kind(anchor) == "system":
        raise ConfigurationError(
            phrase(
                f"anchors[{at}] has the role {anchor.get('role')!r}, and {format.name} allows none at the"
                " front: put the text into ",
                option("system"),
                ", or use the role 'user' for the anchor",
            ),
            argument="anchors",
        )


_INSTEAD = {
    "budget": "set_budget(tokens) changes it",
    "budget_tokens": "set_budget(tokens) changes it",
    "anchors": "set_anchors(messages) replaces them",
    "rules": "add_rule(text) and drop_rule(id) change them",
    "owner": "label(owner=…) changes it",
    "metadata": "label(metadata=…) changes it",
    "ttl": "label(ttl=…) changes it",
    "context": "change the blocks of session.context, or open the session again with another one",
    "id": "fork(id=…) copies the session under another",
    "store": "fork(store=…) copies the session into another",
}
_FIXED = {one.name for one in fields(SessionArguments)}


def refuse_set(base: type, cls: type, name: str, /) -> None:
    """Refuse an assignment without effect: to an option or a property of `base`.

    A name that a class derived from it declares, by a value or an annotation,
    is that class's own.
    """
    for one in cls.__mro__[: cls.__mro__.index(base)]:
        if name in vars(one) or name in one.__annotations__:
            return
    if name in _FIXED:
        again = f"open the session again, Session({name}=…, store=session.store, id=session.id)"
        instead = _INSTEAD.get(name, again)
    elif isinstance(vars(base).get(name), property):
        instead = _INSTEAD.get(name, "it is read-only")
    else:
        return
    raise ConfigurationError(f"{name} of a Session cannot be set: {instead}")
