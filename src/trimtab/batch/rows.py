"""One conversation of a table: what is asked of it, and what its result columns hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from inspect import isroutine
from typing import Any, Literal, NamedTuple, get_args

from trimtab._fit import fit
from trimtab._shared.checks import check_choice, check_flag, check_pending_calls, check_tools, system_of
from trimtab.budget import BudgetLike
from trimtab.compact import CompactLike
from trimtab.compact.options import check_compact
from trimtab.context import Context, Fitted
from trimtab.conversation import Violation, validate
from trimtab.counting import CounterLike, counter_for, counter_given
from trimtab.counting.measurement import count_of_request
from trimtab.counting.tokenizers import is_at_hand
from trimtab.errors import (
    ConfigurationError,
    option,
    phrase,
)
from trimtab.formats import Format, SystemLike, ToolSchema, get_format, mapping_of
from trimtab.formats.trainers import is_target
from trimtab.models import CachePricing, facts_for, known_model_in
from trimtab.policy.conversations import HISTORY, counted_model, fitter
from trimtab.replay import PolicyLike, replay
from trimtab.replay.policies import BY_DEFAULT, STEADY, SessionPolicy, read_policy
from trimtab.report import MessageRow, Report
from trimtab.session import Session
from trimtab.strategies.door import strategy_given
from trimtab.strategies.rules_message import check_rules

Operation = Literal["fit", "count", "validate", "replay"]
"""What can be done with a table of conversations."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
"""The names of all operations."""
Purpose = Literal["requests", "training"]
"""What conversations are for: to be sent, or to be trained on."""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
"""The names of all purposes."""
_REQUEST = ("model", "counter", "format", "system", "tools")
OPTIONS: Mapping[Operation, Collection[str]] = {
    "fit": (
        *_REQUEST,
        "policy",
        "budget",
        "pending_calls",
        "repair",
        "rules",
        "compact",
        "strict",
        "purpose",
    ),
    "count": _REQUEST,
    "validate": ("format", "model", "pending_calls"),
    "replay": (*_REQUEST, "policy", "budget", "pricing"),
}
"""Which options each operation has."""

REPLAYED = (
    "calls",
    "tokens",
    "shared_tokens",
    "read_tokens",
    "write_tokens",
    "base_tokens",
    "evicted",
    "over_limit",
    "invalid",
    "refused",
)
"""The totals of a replay that are whole numbers, each a column."""
COLUMNS: Mapping[Operation, Sequence[str]] = {
    "fit": ("tokens_before", "tokens_after", "fates", "reasons", "violations"),
    "count": ("tokens", "exact", "margin_tokens", "over_margin_tokens", "counter", "unknown"),
    "validate": ("valid", "violations"),
    "replay": (*REPLAYED, "price"),
}
"""The result columns of each operation, in their order; behind them is `ERROR`, whatever was asked for."""
ERROR = "error"

Value = Sequence[Any] | Mapping[str, Any]
"""A conversation: a list of messages, or a request body."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that apply to every conversation; `BatchTask` explains each."""

    operation: Operation
    policy: PolicyLike = None
    budget: BudgetLike | None = None
    model: str | None = None
    counter: CounterLike | None = None
    format: str | Format = "auto"
    system: SystemLike | None = None
    tools: Sequence[ToolSchema] | None = None
    pending_calls: Collection[str] = ()
    rules: Sequence[str] | None = None
    compact: CompactLike = None
    repair: bool = False
    strict: bool = False
    purpose: Purpose = "requests"
    pricing: CachePricing | str | None = None
    columns: Collection[str] | None = None
    column: str = "messages"

    def __post_init__(self) -> None:
        """Refuse what is no operation, and options that are none or that the operation does not have."""
        check_choice("operation", self.operation, OPERATIONS)
        check_choice("purpose", self.purpose, PURPOSES)
        check_flag("repair", self.repair)
        check_flag("strict", self.strict)
        check_tools(self.tools)
        system_of(self.system)
        # An iterator would be read by the first row.
        object.__setattr__(self, "pending_calls", check_pending_calls(self.pending_calls) or ())
        object.__setattr__(self, "rules", None if self.rules is None else check_rules(self.rules))
        if self.compact is not None:
            object.__setattr__(self, "compact", check_compact(self.compact) or False)
        for one in fields(Options):
            value = vars(self)[one.name]
            if one.name in ("operation", "columns", "column", *OPTIONS[self.operation]) or value in (
                one.default,
                (),
            ):
                continue
            takers = ", ".join(repr(name) for name in OPERATIONS if one.name in OPTIONS[name])
            raise ConfigurationError(
                f"operation {self.operation!r} does not use {one.name}={value!r:.80}: leave it out, or"
                f" choose an operation that uses it ({takers})"
            )


def columns_of(options: Options, /) -> tuple[str, ...]:
    """Name the result columns that are asked for, in their order, but the error."""
    names = COLUMNS[options.operation]
    return tuple(name for name in names if options.columns is None or name in options.columns)


def _some(options: Options, *names: str) -> dict[str, Any]:
    """Give some of them by their names."""
    return {name: vars(options)[name] for name in names}


class Row(NamedTuple):
    """What became of one conversation."""

    results: Mapping[str, Any]
    """A value for each result column that is asked for but the error; others may be there, too."""
    value: Any = None
    """What takes the place of the conversation; None: it stays as it is."""
    cut_targets: int = 0
    """Its assistant messages that were shortened and that a model would be trained on."""


Work = Callable[..., Row]
"""What is done with one conversation. It raises a `ContextError` where that cannot be.

For training it also takes `beside`: the tools and the system text that are kept beside a conversation.
"""


def work_of(options: Options, /, *, load: bool = True) -> Work:
    """Make what is done with each conversation; what is wrong with the options is refused at once.

    Args:
        options: What is asked.
        load: Load the tokenizer, too. Else it is enough that it is there, for other processes to load.

    Raises:
        ConfigurationError: The policy cannot be read, or does not go with the operation.
        UnknownNameError: A model, format or policy nobody knows.
        MissingExtraError: The tokenizer of the model is not installed.
    """
    check_counter(options, load=load)
    return _WORK[options.operation](options)


def check_counter(options: Options, /, *, load: bool) -> None:
    """Refuse a wire form nobody knows, and a model whose tokenizer is not there; see `work_of`."""
    if options.format != "auto":
        get_format(options.format)
    if options.operation != "validate" and options.counter is None:
        _check_tokenizer(options, load=load)


def _check_tokenizer(options: Options, *, load: bool) -> None:
    policy = read_policy(options.policy)
    model = counted_model(policy, options.model) if isinstance(policy, Context) else options.model
    if model is None:
        return
    encoding = facts_for(model).encoding
    if load or encoding is None or not is_at_hand(encoding):
        counter_for(model)


def _fit_work(options: Options) -> Work:
    policy = read_policy(options.policy)
    if isinstance(policy, Context):
        return _by_policy(policy, options)
    steady = policy == STEADY
    if policy in (BY_DEFAULT, STEADY):
        policy = None
    if isinstance(policy, str | SessionPolicy | Session) or isroutine(policy):
        raise ConfigurationError(
            "the policy for a table must be blocks, a strategy, 'default' or 'steady', not"
            f" {options.policy!r:.80}"
        )
    strategy = None if policy is None else strategy_given(policy)
    settings = _some(
        options,
        "model",
        "counter",
        "format",
        "system",
        "tools",
        "pending_calls",
        "repair",
        "rules",
        "compact",
        "strict",
    )
    asked = columns_of(options)

    def work(value: Value) -> Row:
        fitted = fit(value, options.budget, strategy=strategy, steady=steady, **settings)
        return Row(_of_fit(fitted, asked), fitted.request, _cut_targets(fitted, value))

    return work


def _by_policy(policy: Context, options: Options) -> Work:
    if not policy.blocks:
        raise ConfigurationError("the policy has no blocks")
    if options.repair:
        raise ConfigurationError(
            phrase(option("repair"), " cannot be combined with a policy of blocks, which says what is kept"),
            argument="repair",
        )
    policy = policy.clone(
        pending_calls=options.pending_calls,
        rules=options.rules,
        compact=options.compact,
        strict=True if options.strict else None,
    )
    settings = _some(options, "budget", "model", "counter", "format", "system", "tools")
    fit_one = fitter(policy, **settings)
    asked = columns_of(options)

    def work(value: Value) -> Row:
        fitted, request = fit_one(value)
        return Row(_of_fit(fitted, asked), request, _cut_targets(fitted, value))

    return work


def _cut_targets(fitted: Fitted[Any], value: Value) -> int:
    """Count the assistant messages that were shortened, but those that no trainer takes.

    The report, which takes as long as the fit, is asked only where a message is there that was not before.
    """
    format = fitted.settlement.outcome.format
    messages = format.read_request(value).messages if isinstance(value, Mapping) else value
    given = set(map(id, messages))
    if all(id(one) in given for one in fitted.messages):
        return 0
    report = fitted.report.messages
    rows = [row for row in report if row.block == HISTORY] or report
    changed = (
        mapping_of(message)
        for row, message in zip(reversed(rows), reversed(messages), strict=False)  # a policy's own come first
        if row.fate == "changed" and row.reason not in _NOT_CUT
    )
    return sum(format.kind(one) == "assistant" and is_target(one) for one in changed)


_NOT_CUT = ("repair", "cache_mark")
"""Reasons for which a message is changed and says what it said."""


def _of_fit(fitted: Fitted[Any], asked: Collection[str]) -> dict[str, Any]:
    """Give what is asked for; a report, which takes as long as the fit, is made only if its rows are."""
    of_report = [name for name in asked if name in _OF_REPORT]
    report = fitted.report if of_report else None
    found: dict[str, Any] = {name: _OF_REPORT[name](report) for name in of_report if report is not None}
    if "tokens_before" in asked:
        found["tokens_before"] = fitted.tokens_before
    return {**found, "tokens_after": fitted.tokens_after}


def _rows_of(report: Report) -> Sequence[MessageRow]:
    """Give the rows of a report; none where all messages were kept, which need not be made."""
    return report.messages if report.evicted_message_count or report.changed_message_count else ()


def _fates(report: Report) -> list[str]:
    return [row.fate for row in _rows_of(report)] or ["kept"] * report.total_message_count


def _reasons(report: Report) -> list[tuple[str, int]]:
    return sorted(Counter(row.reason for row in _rows_of(report) if row.reason is not None).items())


def _violations(found: Sequence[Violation]) -> list[dict[str, Any]]:
    return [asdict(violation) for violation in found]


_OF_REPORT: Mapping[str, Callable[[Report], Any]] = {
    "fates": _fates,
    "reasons": _reasons,
    "violations": lambda report: _violations(report.violations),
}
"""The columns of a fit that need its report."""


def _count_work(options: Options) -> Work:
    def work(value: Value) -> Row:
        model = known_model_in(value) if options.model is None else options.model
        counter = counter_given(options.counter, model)
        found = count_of_request(
            value, counter, format=options.format, model=model, system=options.system, tools=options.tools
        ).total
        return Row(
            {
                "tokens": found.tokens,
                "exact": found.exact,
                "margin_tokens": found.margin_tokens,
                "over_margin_tokens": found.over_margin_tokens,
                "counter": found.counter,
                "unknown": list(found.unknown),
            }
        )

    return work


def _validate_work(options: Options) -> Work:
    def work(value: Value) -> Row:
        found = validate(
            value, format=options.format, model=options.model, pending_calls=options.pending_calls
        )
        is_valid = not any(violation.fault for violation in found)
        return Row({"valid": is_valid, "violations": _violations(found)})

    return work


def _replay_work(options: Options) -> Work:
    read_policy(options.policy)
    settings = _some(options, "budget", "model", "counter", "format", "system", "tools")
    if options.pricing is not None:
        settings["pricing"] = options.pricing

    def work(value: Value) -> Row:
        totals = replay(value, options.policy, **settings).totals
        data = totals.to_dict()
        return Row({**{name: data[name] for name in REPLAYED}, "price": totals.price})

    return work


_WORK: Mapping[Operation, Callable[[Options], Work]] = {
    "fit": _fit_work,
    "count": _count_work,
    "validate": _validate_work,
    "replay": _replay_work,
}
