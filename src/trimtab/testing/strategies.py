"""`check_strategy`: ask a strategy about many conversations and hold it to its contract."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trimtab._fit import fit
from trimtab.budget import Budget
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import assemble, owns_text
from trimtab.counting.base import CounterLike, counter_name
from trimtab.counting.door import as_counter
from trimtab.counting.sizes import Fixed, sizes_for
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
from trimtab.formats import DEFAULT, Path, get_format
from trimtab.report import REASONS
from trimtab.strategies import Edit, EvictionRequest, EvictionResult, Strategy
from trimtab.strategies.base import landmarks, reads_newest, shrinks
from trimtab.strategies.cuts import count_back, near_cut
from trimtab.strategies.rows import first_of_run
from trimtab.testing.errors import ask, fail
from trimtab.testing.generate import conversations
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
    `stays` (nothing pinned or held is evicted), `edits` (only texts of kept parts that are not pinned),
    `insertions` (only in place of what was evicted), `input_unchanged`, `deterministic`, `thrifty`, `reads`
    (if it promises `reads = "newest"`: it decides the same without the older units), `fit` (`trimtab.fit`
    accepts it), `data`.

    Args:
        strategy: The strategy.
        samples: Conversations in the Chat Completions form; None: `conversations()`.
        counters: Additive counters and black boxes; None: `WordCounter()`, once as each.
        thrifty: Whether to check that it evicts no more than necessary: at least one evicted unit, restored
            with the user message that opened its turn, must exceed the limit. False for a strategy that
            evicts more at once on purpose, as `Drop` does.

    Raises:
        ContractBroken: A rule is broken; the error has the rule, the sample, the limit and the numbers.

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
                where = f"strategy {name}, sample {at}, limit {limit_tokens}, counter {counter_name(counter)}"
                _check_one(strategy, sample, counter, limit_tokens, thrifty=thrifty, where=where)
                tried += 1
    if not tried:
        raise ConfigurationError(
            "check_strategy had nothing to check: in every sample, all units must be kept"
        )


def _checked_name(strategy: Any) -> str:
    """Check what a strategy is called, and that its data is data."""
    name = getattr(strategy, "name", None)
    if not isinstance(name, str) or not name:
        fail("answers", f"{strategy!r} has no name; a strategy has a word for reports under `name`")
    reads = getattr(strategy, "reads", "all")
    if reads not in ("all", "newest"):
        fail("answers", f'strategy {name} reads {reads!r}; it is "all" or "newest"')
    to_data = getattr(strategy, "to_dict", None)
    if to_data is not None:
        try:
            json.dumps(to_data())
        except ConfigurationError:  # a function in it has no registered name, which is the user's to give
            return name
        except (TypeError, ValueError) as error:
            fail("data", f"to_dict() of strategy {name} is not plain data: {error}")
    return name


def eviction_request(
    conversation: Messages | History,
    limit_tokens: int,
    /,
    *,
    counter: CounterLike,
    lazy: bool = False,
    block: bool = False,
    constant_limit_tokens: int | None = None,
    question: str | None = None,
) -> EvictionRequest:
    """Make the request to a strategy, to try one of your own without a `fit`.

    Args:
        conversation: Messages in the Chat Completions form; or a `History`, which also says what is pinned.
        limit_tokens: The limit for the strategy.
        counter: What counts.
        lazy: Whether to ask as `fit` asks a strategy that evicts the oldest: units beyond the limit are
            missing, and units far from the cut are not built. False: all units are built.
        block: Whether to ask as for a block of a `Context`: nothing but its messages is charged.
        constant_limit_tokens: The limit that is the same for every call, if different.
        question: The user's latest message, if it is in another block; None: it is looked for in the
            messages.

    Example:
        >>> talk = [{"role": "user", "content": word} for word in ("one", "two", "three")]
        >>> request = eviction_request(talk, 2, counter=WordCounter())
        >>> request.total(request.units), [unit.state for unit in request.units]
        (3, ['free', 'free', 'pinned'])
    """
    if isinstance(conversation, History):
        history = conversation
    else:
        history = History(conversation, format=get_format(DEFAULT))
    fixed = None if block else Fixed()
    sizes = sizes_for(as_counter(counter), history.messages, fixed, unread=history.unread)
    near = None
    if lazy and sizes.additive:
        near = partial(
            near_cut,
            history,
            sizes,
            limit_tokens=limit_tokens,
            counted=count_back(history, sizes, limit_tokens),
        )
    return EvictionRequest(
        history,
        sizes,
        limit_tokens=limit_tokens,
        constant_limit_tokens=constant_limit_tokens,
        near=near,
        reads_newest=lazy,
        question=None if question is None else lambda: question,
    )


def _limits(sample: Messages, counter: Any) -> Iterator[int]:
    """Give limits that do not hold the sample: one too few, all that may leave gone, less than that."""
    request = eviction_request(sample, 0, counter=counter)
    total = request.total(request.units)
    least = request.total(unit for unit in request.units if request.stays(unit))
    chosen = {total - 1, (total * 2 + least) // 3, (total + least * 2) // 3, least + 1, least, least - 1, 1}
    return (limit for limit in sorted(chosen) if 0 < limit < total)


def _check_one(
    strategy: Strategy, sample: Messages, counter: Any, limit_tokens: int, *, thrifty: bool, where: str
) -> None:
    given, before = list(sample), copy.deepcopy(sample)

    def answer_now() -> _Answer:
        request = eviction_request(given, limit_tokens, counter=counter)
        result: Any = ask(lambda: strategy.evict(request), "answers", f"{where}: evict")
        if not isinstance(result, EvictionResult):
            fail("answers", f"{where}: evict returned {type(result).__name__}, not EvictionResult")
        return _Answer(request, result, counter, where)

    answer = answer_now()
    for check in (_check_values, _check_kept, _check_edits, _check_insertions, _check_size):
        check(answer)
    _check_unchanged(sample, before, where)
    again = answer_now()
    if _decision(again) != _decision(answer):
        fail("deterministic", f"{where}: asked again, it decided otherwise")
    if thrifty and answer.request.additive:
        _check_thrift(answer)
    if answer.request.additive and reads_newest(strategy, answer.request.history):
        _check_reads(strategy, answer, limit_tokens)
    _check_fit(strategy, given, counter, limit_tokens, answer.result.fits, where)
    _check_unchanged(sample, before, where)


def _check_reads(strategy: Strategy, answer: _Answer, limit_tokens: int) -> None:
    """Check that what fits is decided alike where units are not there that are older than those that fit."""
    history = History(answer.request.history.originals, format=get_format(DEFAULT))
    sizes = sizes_for(as_counter(answer.counter), history.messages, Fixed(), unread=history.unread)
    row, _, _ = near_cut(
        history,
        sizes,
        limit_tokens=limit_tokens,
        counted=count_back(history, sizes, limit_tokens),
        also=landmarks(strategy, history),
        shrinks=shrinks(strategy, history, sizes, limit_tokens=limit_tokens),
    )
    if row is None:
        return
    start, told = row[first_of_run(row)][0], {span[0] for span in row}
    start = min(start, history.user_at_or_before(start) or start)  # the turn that the limit cuts into
    newest = [unit for unit in history.units if unit.first >= start or unit.first in told]
    request = EvictionRequest(history, sizes, limit_tokens=limit_tokens, alive=newest)
    where = f"{answer.where}, without the units before message {start}"
    result = ask(lambda: strategy.evict(request), "reads", f"{where}: evict")
    if result.fits and _decision(_Answer(request, result, answer.counter, where)) != _decision(answer):
        fail("reads", f'{where}: it decided otherwise, and says that it reads the "newest"')


def _check_unchanged(sample: Messages, before: Messages, where: str) -> None:
    if sample != before:
        at = next(i for i, (new, old) in enumerate(zip(sample, before, strict=False)) if new != old)
        fail("input_unchanged", f"{where}: message {at} of the input was changed")


def _check_fit(
    strategy: Strategy, sample: Messages, counter: Any, limit_tokens: int, fits: bool, where: str
) -> None:
    """Check that the front door takes the strategy's answer, and raises where it says so.

    What does not fit may do so once the front door has cut what is held.
    """
    try:
        fitted = fit(sample, Budget(limit_tokens), counter=counter, format=DEFAULT, strategy=strategy)
    except BudgetExceededError as error:
        if fits:
            fail("fit", f"{where}: it says it fits, but fit() raised: {error}")
    except ContextError as error:
        fail("fit", f"{where}: fit() refused it: {error}")
    else:
        cut = any(row.fate == "changed" and row.state == "held" for row in fitted.report.messages)
        if not fits and not cut:
            fail("fit", f"{where}: it says it does not fit, but fit() found that it does")


# What one answer must keep to, looked over without the runner's help.


@dataclass(frozen=True, slots=True)
class _Answer:
    """A request, what a strategy answered, and what that keeps."""

    request: EvictionRequest
    result: EvictionResult
    counter: Any
    where: str

    @property
    def units(self) -> Sequence[Unit]:
        return self.request.units

    @property
    def kept(self) -> list[Unit]:
        """Units that stay by this answer: those named, and with a cut those from there on."""
        result, request = self.result, self.request
        if result.cut is None:
            return list(result.kept)
        named = set(map(_key, result.kept))
        return [
            unit
            for unit in self.units
            if unit.first >= result.cut or _key(unit) in named or request.stays(unit)
        ]

    @property
    def edits(self) -> dict[int, Mapping[Path, str]]:
        """New texts by message."""
        edits: dict[int, Mapping[Path, str]] = {}
        for edit in self.result.edits:
            edits[edit.index] = {**edits.get(edit.index, {}), **edit.texts}
        return edits

    def tokens(self, units: list[Unit]) -> int:
        """Recount a request of these units, edited as answered."""
        present = {index for unit in units for index in unit.indices}
        edits = {index: texts for index, texts in self.edits.items() if index in present}
        count = getattr(self.counter, "count", self.counter)
        put_in = sorted(self.result.insertions, key=lambda insertion: insertion.at)
        return int(count(assemble(self.request.history, units, edits, put_in)))


def _key(unit: Unit) -> Hashable:
    return (unit.indices, tuple(sorted(unit.parts.items())))


def _decision(answer: _Answer) -> Hashable:
    edits = tuple(
        (index, tuple(sorted(texts.items(), key=str))) for index, texts in sorted(answer.edits.items())
    )
    put_in = tuple((insertion.at, repr(insertion.message)) for insertion in answer.result.insertions)
    return (tuple(map(_key, answer.kept)), edits, put_in, answer.result.fits)


def _check_values(answer: _Answer) -> None:
    result, where = answer.result, answer.where
    if not isinstance(result.fits, bool):
        fail("answers", f"{where}: fits is {result.fits!r}; it is True or False")
    if result.reason not in REASONS:
        fail("answers", f"{where}: reason {result.reason!r} is none of {', '.join(REASONS)}")
    actions = result.actions
    if actions is not None and not (isinstance(actions, tuple) and all(isinstance(a, str) for a in actions)):
        fail("answers", f"{where}: actions is {actions!r}; it is a tuple of words, or None")
    for word, entries in (("kept", result.kept), ("edits", result.edits)):
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            fail("answers", f"{where}: {word} is {entries!r}; it is a sequence")
    if not all(isinstance(edit, Edit) and isinstance(edit.texts, Mapping) for edit in result.edits):
        fail("answers", f"{where}: edits has {result.edits!r}; each is an Edit with texts by path")
    cut, count = result.cut, len(answer.request.history)
    if cut is not None and (type(cut) is not int or not 0 <= cut <= count):
        fail("answers", f"{where}: cut is {cut!r}; it is a position from 0 to {count}, or None")


def _check_kept(answer: _Answer) -> None:
    """Check that units are kept whole, once, in order, and that what must stay does."""
    where = answer.where
    places = {_key(unit): at for at, unit in enumerate(answer.units)}
    for unit in answer.result.kept:
        if not isinstance(unit, Unit) or _key(unit) not in places:
            fail("whole_units", f"{where}: keeps {unit!r}, which is no unit of the request")
    cut = answer.result.cut
    if cut is not None and cut != len(answer.request.history):
        owner = next((unit for unit in answer.units if cut in unit.indices), None)
        if owner is not None and cut != owner.first and not owner.parts:
            fail("whole_units", f"{where}: cuts at message {cut}, inside {owner!r}")
    order = [places[_key(unit)] for unit in answer.kept]
    if any(first >= second for first, second in itertools.pairwise(order)):
        fail("once_in_order", f"{where}: keeps units at {order}; each once, in the order of the request")
    for at in sorted(set(range(len(answer.units))) - set(order)):
        if answer.units[at].state != "free":
            fail("stays", f"{where}: evicts {answer.units[at]!r}, which must not leave")


def _check_edits(answer: _Answer) -> None:
    """Check that only texts of messages that stay and are not pinned are edited."""
    kept = answer.kept
    for edit in answer.result.edits:
        where = f"{answer.where}: edits message {edit.index}"
        units = [unit for unit in kept if edit.index in unit.indices]
        if not units:
            fail("edits", f"{where}, which does not stay")
        if any(u.state == "pinned" and owns_text(u, edit.index, path) for u in units for path in edit.texts):
            fail("edits", f"{where}, which is pinned")
        known = {slot.path for slot in answer.request.texts(edit.index)}
        for path, text in edit.texts.items():
            if path not in known:
                fail("edits", f"{where} at {path!r}, where no text is that may be cut")
            if not isinstance(text, str):
                fail("edits", f"{where} at {path!r} with {type(text).__name__}, not text")


def _check_insertions(answer: _Answer) -> None:
    """Check that what is put in stands where what it is there for was evicted."""
    kept = {index for unit in answer.kept for index in unit.indices}
    for insertion in answer.result.insertions:
        where = f"{answer.where}: puts in {insertion.why!r}"
        if not insertion.covers.isdisjoint(kept):
            fail("insertions", f"{where}, which stands for messages that stay")
        if insertion.at not in insertion.covers:
            fail("insertions", f"{where} at message {insertion.at}, in place of none")


def _check_size(answer: _Answer) -> None:
    tokens, limit = answer.tokens(answer.kept), answer.request.limit_tokens
    if answer.result.fits and tokens > limit:
        fail("within_limit", f"{answer.where}: says it fits, but {tokens} tokens are over {limit}")
    if answer.result.fits:
        return
    if tokens <= limit:
        fail("honest", f"{answer.where}: says it does not fit, but its {tokens} tokens do")
    needed = answer.result.needed_tokens
    if needed is not None and (type(needed) is not int or needed <= limit):
        fail("honest", f"{answer.where}: says it does not fit, but needs {needed!r} tokens, limit {limit}")


def _check_thrift(answer: _Answer) -> None:
    """Check that of what was evicted a unit, with the message that opened its turn, would not have fitted."""
    if not answer.result.fits or answer.result.edits:
        return
    kept = answer.kept
    keys = set(map(_key, kept))
    evicted = [unit for unit in answer.units if _key(unit) not in keys]
    if evicted and all(_could_stay(answer, unit, keys) for unit in evicted):
        tokens, limit = answer.tokens(kept), answer.request.limit_tokens
        fail(
            "thrifty",
            f"{answer.where}: keeps {tokens} of {limit} tokens, and each of the {len(evicted)} evicted units"
            " would have fitted",
        )


def _could_stay(answer: _Answer, unit: Unit, keys: set[Hashable]) -> bool:
    opener = next((u for u in reversed(answer.units) if u.kind == "user" and u.first <= unit.first), unit)
    back = {_key(unit), _key(opener)}
    units = [u for u in answer.units if _key(u) in keys or _key(u) in back]
    return answer.tokens(units) <= answer.request.limit_tokens
