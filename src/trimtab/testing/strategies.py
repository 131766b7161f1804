"""`check_strategy`: ask a strategy about many conversations and hold it to its contract."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.budget import Budget
from trimtab.context import fit
from trimtab.conversation import History
from trimtab.counting.sizes import Fixed, Shares, sizes_for
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
from trimtab.formats import DEFAULT, get_format
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy
from trimtab.strategies.cuts import count_back
from trimtab.testing.errors import broken
from trimtab.testing.generate import conversations
from trimtab.testing.strategy_checks import Answer, check_answer, check_thrift, decision_of
from trimtab.testing.word_counter import WordCounter

Messages = list[Any]


def check_strategy(
    strategy: Strategy,
    /,
    *,
    samples: Sequence[Messages] | None = None,
    counters: Sequence[Any] | None = None,
    thrifty: bool = True,
) -> None:
    """Run the contract of `Strategy` on a strategy of your own.

    What it checks, by the `rule` of the error: `answers` (an EvictionResult with values of the right
    kind, for every conversation), `within_limit` (what fits is within the limit by a recount),
    `honest` (what does not fit is over it), `whole_units` (no unit split or invented), `once_in_order`,
    `stays` (nothing pinned or held leaves), `edits` (only texts, only where something stays that is
    not pinned), `insertions` (only in place of what left), `input_unchanged`, `deterministic`,
    `thrifty`, `fit` (`trimtab.fit` accepts it), `data`.

    Args:
        samples: Conversations in the Chat Completions form; None: `conversations()`.
        counters: Additive counters and black boxes; None: `WordCounter()`, once as each.
        thrifty: Also check that it takes no more than it must: of what it evicted at least one unit,
            put back with the user message that opened its turn, passes the limit. False for a strategy
            that drops more at once on purpose, as `Drop` does.

    Raises:
        ContractBroken: With the rule, the sample, the limit and the numbers.

    Example:
        >>> from trimtab.strategies import EvictionResult
        >>> class DropOldest:
        ...     name = "drop_oldest"
        ...     def evict(self, request):
        ...         kept = list(request.units)
        ...         for unit in request.units:
        ...             if request.fits(kept):
        ...                 return EvictionResult(kept=kept)
        ...             if not request.stays(unit):
        ...                 kept.remove(unit)
        ...         return EvictionResult(kept=kept, fits=request.fits(kept))
        >>> check_strategy(DropOldest())
    """
    name = _checked_name(strategy)
    words = WordCounter()
    tried = 0
    for at, sample in enumerate(conversations() if samples is None else samples):
        for counter in (words, words.count) if counters is None else counters:
            for limit_tokens in _limits(sample, counter):
                where = f"strategy {name}, sample {at}, limit {limit_tokens}, counter {_shown(counter)}"
                _check_one(strategy, sample, counter, limit_tokens, thrifty=thrifty, where=where)
                tried += 1
    if not tried:
        raise ConfigurationError("check_strategy tried nothing: no sample has more than must stay anyway")


def _checked_name(strategy: Any) -> str:
    """Check what a strategy is called, and that its data is data."""
    name = getattr(strategy, "name", None)
    if not isinstance(name, str) or not name:
        broken("answers", f"{strategy!r} has no name; a strategy has a word for reports under `name`")
    to_data = getattr(strategy, "to_dict", None)
    if to_data is not None:
        try:
            json.dumps(to_data())
        except ConfigurationError:  # a function in it has no registered name, which is the user's to give
            return name
        except (TypeError, ValueError) as error:
            broken("data", f"to_dict() of strategy {name} is not plain data: {error}")
    return name


def _shown(counter: Any) -> str:
    return str(getattr(counter, "name", None) or getattr(counter, "__name__", None) or type(counter).__name__)


def _request(sample: Messages, counter: Any, limit_tokens: int) -> EvictionRequest:
    """Make the request that `fit` would make."""
    history = History(sample, format=get_format(DEFAULT))
    sizes = sizes_for(counter, history.messages, Fixed())
    counted = None if isinstance(sizes, Shares) else count_back(history, sizes, limit_tokens)
    return EvictionRequest(history, sizes, limit_tokens=limit_tokens, counted=counted)


def _limits(sample: Messages, counter: Any) -> Iterator[int]:
    """Give limits that do not hold the sample: one too few, all that may leave gone, less than that."""
    request = _request(sample, counter, 0)
    total = request.total(request.units)
    least = request.total(unit for unit in request.units if request.stays(unit))
    chosen = {total - 1, (total * 2 + least) // 3, (total + least * 2) // 3, least + 1, least, least - 1, 1}
    return (limit for limit in sorted(chosen) if 0 < limit < total)


def _check_one(
    strategy: Strategy, sample: Messages, counter: Any, limit_tokens: int, *, thrifty: bool, where: str
) -> None:
    given, before = list(sample), copy.deepcopy(sample)

    def ask() -> Answer:
        request = _request(given, counter, limit_tokens)
        return Answer(request, _evict(strategy, request, where), counter, where)

    answer = ask()
    check_answer(answer)
    _check_unchanged(sample, before, where)
    again = ask()
    if decision_of(again) != decision_of(answer):
        broken("deterministic", f"{where}: asked again, it decided otherwise")
    if thrifty and answer.request.additive:
        check_thrift(answer)
    _check_fit(strategy, given, counter, limit_tokens, answer.result.fits, where)
    _check_unchanged(sample, before, where)


def _evict(strategy: Strategy, request: EvictionRequest, where: str) -> EvictionResult:
    result = _called(lambda: strategy.evict(request), where)
    if not isinstance(result, EvictionResult):
        broken("answers", f"{where}: evict returned {type(result).__name__}, not EvictionResult")
    return result


def _called(call: Callable[[], Any], where: str) -> Any:
    from trimtab.testing.errors import ContractBroken

    try:
        return call()
    except Exception as error:
        raise ContractBroken(
            f"answers: {where}: evict raised {type(error).__name__}: {error}", rule="answers"
        ) from error


def _check_unchanged(sample: Messages, before: Messages, where: str) -> None:
    if sample != before:
        at = next(i for i, (new, old) in enumerate(zip(sample, before, strict=False)) if new != old)
        broken("input_unchanged", f"{where}: message {at} of the input was changed")


def _check_fit(
    strategy: Strategy, sample: Messages, counter: Any, limit_tokens: int, fits: bool, where: str
) -> None:
    """Check that the front door takes the strategy's answer, and raises exactly when it says so."""
    try:
        fit(sample, Budget(limit_tokens), counter=counter, format=DEFAULT, strategy=strategy)
    except BudgetExceededError as error:
        if fits:
            broken("fit", f"{where}: it says it fits, but fit() raised: {error}")
    except ContextError as error:
        broken("fit", f"{where}: fit() refused it: {error}")
    else:
        if not fits:
            broken("fit", f"{where}: it says it does not fit, but fit() found that it does")
