"""One row of training data, fitted: whole turns are evicted, and no answer that is trained on is cut."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from trimtab.batch.rows import Options, Row, Value, Work, check_counter, columns_of, work_of
from trimtab.budget import Budget, known_budget, within
from trimtab.conversation import group, validate
from trimtab.counting import CountRequest, RequestCounter, TemplateCounter, counter_given
from trimtab.counting.door import as_counter
from trimtab.errors import (
    ROOM,
    BudgetExceededError,
    ConfigurationError,
    InvalidHistoryError,
    NoTargetError,
    option,
    phrase,
)
from trimtab.formats import leading_count, leading_system
from trimtab.formats.trainers import TrainingRow, read_beside, read_row
from trimtab.replay.policies import BY_DEFAULT

BEHIND = "behind_target"
"""Why a message leaves that stands behind the last one that is trained on."""


def make_work(options: Options, /, *, load: bool = True) -> Work:
    """Make what is done with each row, of training data or of requests; see `work_of`.

    Args:
        options: What is asked.
        load: Load the tokenizer, too.

    Raises:
        ConfigurationError: An option does not go with training data.
    """
    if options.purpose != "training":
        return work_of(options, load=load)
    _check(options)
    check_counter(options, load=load)
    return partial(_fit_row, options, _budget_of(options))


def _budget_of(options: Options) -> Budget:
    """Return the room of a row; without a budget the whole window, as a trainer has no answer written.

    Raises:
        ConfigurationError: Neither is known.
    """
    found = known_budget(options.budget, options.model, output_reserve=0)
    if found is None:
        window = "no model is named" if options.model is None else "its model's window is not known"
        raise ConfigurationError(phrase(f"{window}: pass ", ROOM), argument="budget")
    return found


def _check(options: Options) -> None:
    """Refuse what would change a message.

    Raises:
        ConfigurationError: A policy, or a repair.
    """
    for_training = option("purpose", "training")
    if options.policy is not None and options.policy != BY_DEFAULT:
        raise ConfigurationError(
            phrase(
                option("policy"),
                " says what is cut, and ",
                for_training,
                " cuts no message: it evicts whole turns, the oldest first. Leave out one of the two",
            ),
            argument="policy",
        )
    if options.rules:
        raise ConfigurationError(
            phrase(
                option("rules"),
                " is a message of trimtab's, and ",
                for_training,
                " adds none to what a model is trained on: write the rules into the system text of the rows",
            ),
            argument="rules",
        )
    if options.compact:
        raise ConfigurationError(
            phrase(
                option("compact"),
                " writes results otherwise, and ",
                for_training,
                " keeps them as they are: leave out one of the two",
            ),
            argument="compact",
        )
    if options.repair:
        raise ConfigurationError(
            phrase(
                option("repair"),
                " rewrites messages, and ",
                for_training,
                " keeps them as they are: repair the rows first, or leave out one of the two",
            ),
            argument="repair",
        )


def _fit_row(
    options: Options, budget: Budget, value: Value, *, beside: Mapping[str, Any] | None = None
) -> Row:
    """Fit one row; `beside` holds the tools and the system text that are kept beside it.

    A model that the row names is who wrote it, and not the one that is trained.
    """
    row = read_row(value, format=options.format, model=options.model, column=options.column)
    row = _with_beside(row, read_beside(beside or {}), options)
    violations = _violations(row, options)
    last = max((at for at, is_target in enumerate(row.targets) if is_target), default=None)
    if last is None:
        raise _no_target(row)
    counter = as_counter(counter_given(options.counter, options.model)).with_format(row.form)
    room = within(budget, counter, row.tools)
    weigh = _scale(row, counter if row.tools else counter.without_tools())
    kept = _keep(row, last, room.input_tokens, weigh)
    asked, there, total = columns_of(options), frozenset(kept), len(row.messages)
    reasons = {"over_limit": last + 1 - len(kept), BEHIND: total - last - 1}
    results = {
        "tokens_before": weigh(range(total)) if "tokens_before" in asked else None,
        "tokens_after": weigh(kept),
        "fates": ["kept" if at in there else "evicted" for at in range(total)],
        "reasons": [(why, count) for why, count in sorted(reasons.items()) if count],
        "violations": violations,
    }
    return Row(results, None if len(kept) == total else row.write(kept))


def _with_beside(row: TrainingRow, beside: Mapping[str, Any], options: Options) -> TrainingRow:
    """Charge a row for system text and tools it does not have itself; they are not written into it."""
    has_system = row.system is not None or "system" in map(row.form.kind, row.messages[:1])
    return replace(
        row,
        system=row.system if has_system else beside["system"] or options.system or None,
        tools=row.tools or beside["tools"] or options.tools or None,
    )


def _violations(row: TrainingRow, options: Options) -> list[dict[str, Any]]:
    if "violations" not in columns_of(options) and not options.strict:
        return []
    found = validate(row.given, format=row.form, model=options.model, pending_calls=options.pending_calls)
    faults = tuple(one for one in found if one.fault)
    if options.strict and faults:
        raise InvalidHistoryError(
            f"the row has {len(faults):,} faults: {faults[0].message}", violations=faults
        )
    return [asdict(one) for one in found]


def _no_target(row: TrainingRow) -> NoTargetError:
    answers = sum(row.form.kind(one) == "assistant" for one in row.messages)
    why = f"weight 0, or train false, for all {answers}" if answers else "it has none"
    return NoTargetError(f"no answer of the row is trained on: {why}")


# How much some of the messages are.


def _scale(row: TrainingRow, counter: RequestCounter) -> Callable[[Sequence[int]], int]:
    """Make what counts a row of some of its messages; each answer is remembered."""
    head = leading_system(row.system, row.form)
    system = None if head else row.system
    known: dict[tuple[int, int], int] = {}

    def weigh(places: Sequence[int]) -> int:
        key = (len(places), places[-1] if places else -1)
        if key not in known:
            messages = [*head, *(row.messages[at] for at in places)]
            known[key] = _count(counter, messages, system, row)
        return known[key]

    return weigh


def _count(counter: RequestCounter, messages: list[Any], system: Any, row: TrainingRow) -> int:
    """Count as a trainer does: by a chat template whole, and without the beginning of another answer."""
    if isinstance(counter, TemplateCounter):
        return counter.count_whole(
            messages, system=system, tools=row.tools, extra=row.extra, answer_begins=False
        )
    return counter.count_request(CountRequest(messages, system=system, tools=row.tools, extra=row.extra))


# Which messages stay.


def _keep(
    row: TrainingRow, last: int, limit_tokens: int, weigh: Callable[[Sequence[int]], int]
) -> Sequence[int]:
    """Choose the leading system text and as many whole turns as fit, up to the last target.

    Raises:
        BudgetExceededError: Not even the turn of the last target fits.
    """
    lead = leading_count(row.messages, row.form)

    def rest(start: int) -> list[int]:
        return [*range(lead), *range(start, last + 1)]

    if weigh(whole := rest(lead)) <= limit_tokens:
        return whole
    starts = _starts(row, lead, min(last, row.stop))
    if (needed := weigh(rest(starts[-1]))) > limit_tokens:
        raise BudgetExceededError(
            f"the turn of the last answer that is trained on needs {needed:,} tokens with system text and"
            f" tools, and the limit is {limit_tokens:,}",
            needed_tokens=needed,
            limit_tokens=limit_tokens,
        )
    over, fits = 0, len(starts) - 1
    while fits - over > 1:
        middle = (over + fits) // 2
        if weigh(rest(starts[middle])) > limit_tokens:
            over = middle
        else:
            fits = middle
    return rest(starts[fits])


def _starts(row: TrainingRow, lead: int, stop: int) -> list[int]:
    """List where turns begin that may be the first, in order: at words of the user, where no pair is parted.

    Several messages of the user in a row open one turn: what one of them asks is about the others.
    """
    kinds = [row.form.kind(one) for one in row.messages]
    inside = _inside_pairs(row)
    return [lead] + [
        at
        for at in range(lead + 1, stop)
        if kinds[at] == "user" and kinds[at - 1] != "user" and at not in inside
    ]


def _inside_pairs(row: TrainingRow) -> Collection[int]:
    """List the messages in front of which a cut would part a call from its result."""
    units = group(row.messages, format=row.form)
    spans = [(unit.indices[0], unit.indices[-1]) for unit in units if len(unit.indices) > 1]
    return {at for first, end in spans for at in range(first + 1, end + 1)}
