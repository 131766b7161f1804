"""`Summarize`: the oldest units become one message a summarizer writes."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast
from weakref import WeakKeyDictionary

from trimtab._shared.checks import check_choice, check_flag, check_whole
from trimtab._shared.steps import Steps
from trimtab.conversation import Unit
from trimtab.conversation.assemble import Insertion, assemble
from trimtab.conversation.origins import origins_at
from trimtab.errors import ConfigurationError, SummaryError
from trimtab.formats import OriginName
from trimtab.formats.origin import Origins
from trimtab.strategies.base import (
    EvictionRequest,
    EvictionResult,
    Strategy,
    as_strategy,
    has_last_word,
    kept_units,
    strategy_data,
    waits,
)
from trimtab.strategies.must_keep import (
    DEFAULT_KEPT_RATIO,
    MustKeep,
    MustKeepLike,
    Source,
    check_must_keep,
    finder_of,
    keep_values,
    must_keep_data,
    sources_of,
    summary_source,
)
from trimtab.strategies.rows import unit_key
from trimtab.strategies.runner import check_step, checked_answer
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.summarizer import (
    Summarizer,
    SummarizerLike,
    SummaryCall,
    SummaryRequest,
    drive,
    reads_all,
    require_summarizer,
    role_notes,
    summary_message,
    takes_existing,
    word_of,
)

if TYPE_CHECKING:
    from trimtab.report import SummaryCheck

__all__ = ["DEFAULT_SUMMARY_RATIO", "Summarize"]

DEFAULT_SUMMARY_RATIO = 0.3
"""Part of the limit a summary may take where no other is given; the share seeds/004 gives it."""

_FALLBACK: Strategy = SlidingWindow()

_ROLES = ("user", "system", "developer", "assistant")

_REMEMBERED = 256
"""Summaries remembered of a summarizer: one per conversation is enough for the next turn of each."""


class _Known(NamedTuple):
    """A summary that was written."""

    text: str
    checked: SummaryCheck | None
    """What became of the values that it must keep; None: none must be kept."""


class _Memory:
    """Summaries by what they cover, the latest used; safe between threads, and left behind by copies."""

    __slots__ = ("_lock", "_texts")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[bytes, _Known] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Memory, ()

    def find(self, keys: Sequence[bytes], /) -> tuple[int, _Known] | None:
        """Return how many of these units the longest summary covers, and what it says."""
        with self._lock:
            for at in range(len(keys), 0, -1):
                known = self._texts.pop(keys[at - 1], None)
                if known is not None:
                    self._texts[keys[at - 1]] = known  # behind all that were used before
                    return at, known
        return None

    def keep(self, key: bytes, known: _Known, /) -> None:
        """Remember one; the one that was not used for longest makes room."""
        with self._lock:
            self._texts[key] = known
            if len(self._texts) > _REMEMBERED:
                del self._texts[next(iter(self._texts))]


_memories: WeakKeyDictionary[Any, WeakKeyDictionary[Any, dict[tuple[Any, ...], _Memory]]] = (
    WeakKeyDictionary()
)
"""What summarizers wrote, by the function or object that wrote it, and by the function that says what must be
kept: it is forgotten with either."""


class _NoFunction:
    """Stands for a `must_keep` that is data."""


def _memory_of(summarizer: Any, max_summary_tokens: int | None, must_keep: MustKeep) -> _Memory:
    """Return what strategies made of the same summarizer with the same options remember.

    A method belongs to its object: Python makes a new one each time it is asked for.
    """
    is_data = must_keep is None or isinstance(must_keep, (str, re.Pattern))
    owner, name = _owner_of(summarizer)
    keeper, keeper_name = (_NoFunction, must_keep) if is_data else _owner_of(must_keep)
    try:  # without a lock, which a fork could leave held: each `setdefault` is one step
        by_keeper = _memories.setdefault(owner, WeakKeyDictionary()).setdefault(keeper, {})
        return by_keeper.setdefault((name, max_summary_tokens, keeper_name), _Memory())
    except TypeError:  # it cannot be a key, or nobody can tell when it is gone
        return _Memory()


def _owner_of(function: Any) -> tuple[Any, str]:
    """Return what a function lives with, and its name there."""
    is_method = isinstance(function, MethodType)
    return (function.__self__, function.__name__) if is_method else (function, "")


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replace the oldest free units by one marked message from a summarizer.

    The units that do not fit together with the summary's cap are summarized; the message takes the place of
    the first of them. A summary that is empty, over its cap, no smaller than what it replaces, or missing
    because of an error is not used: the fallback evicts, and the report says so.

    The exact values of what is summarized (names, numbers with units, ids, paths, dates, addresses) are
    looked for in the summary. Those that are missing follow its text in one line, `Exact values: …`, which
    takes at most 0.3 of its room: the user's first, then others, behind `|`. A value that only tools returned
    is restated if a call used it. The report counts them. Names are found by their capitals, so none in
    Chinese or Japanese, and a bare number of one or two digits is no value.

    The last summaries are remembered by what they cover, for all strategies made with the same summarizer and
    options, so a strategy may be made anew for each turn. A summary is used again if everything newer fits
    with it; otherwise the summarizer gets it (`existing`) with the new messages. A function that is created
    anew each time, such as a lambda in the call, counts as a different one. Copies and pickled strategies
    start without remembered summaries.

    Args:
        summarizer: Writes the text; a function becomes a summarizer.
        max_summary_tokens: Cap on the message in tokens; None: 0.3 of the limit. A cap equal to the limit
            summarizes everything free.
        role: Role of the message. It becomes system text only if no tool and no document is among its
            sources, otherwise a user message.
        trust_summaries: Whether to use that role regardless of its sources.
        must_keep: What a summary must keep word for word: "values", a pattern (`re.compile`), or a function
            of a text that returns its values. None: nothing is looked for.
        fallback: The strategy that evicts if no summary can be used.
        summarizer_name: The summarizer's name in data; set by `create_strategy`.
        must_keep_name: The same of a `must_keep` that is a function.

    Raises:
        ConfigurationError: There is no summarizer, the cap is not a number of tokens, the role is not one of
            the four, `must_keep` is none of these, or the fallback is not a strategy.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> messages = [{"role": "user", "content": str(n)} for n in range(9)]
        >>> strategy = Summarize(lambda messages: f"{len(messages)} numbers", max_summary_tokens=10)
        >>> fitted = fit(messages, 40, counter=FixedCounter(per_message=10), strategy=strategy)
        >>> print(fitted.messages[0]["content"], *[m["content"] for m in fitted.messages[1:]])
        <summary of="6 messages" by="trimtab">
        6 numbers
        </summary> 6 7 8
    """

    summarizer: Summarizer
    max_summary_tokens: int | None = field(default=None, kw_only=True)
    role: str = field(default="user", kw_only=True)
    trust_summaries: bool = field(default=False, kw_only=True)
    must_keep: MustKeep = field(default="values", kw_only=True)
    fallback: Strategy = field(default=_FALLBACK, kw_only=True)
    summarizer_name: str | None = field(default=None, kw_only=True, compare=False)
    must_keep_name: str | None = field(default=None, kw_only=True, compare=False)
    _memory: _Memory = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        summarizer: SummarizerLike,
        *,
        max_summary_tokens: int | None = None,
        role: str = "user",
        trust_summaries: bool = False,
        must_keep: MustKeepLike = "values",
        fallback: Strategy = _FALLBACK,
        summarizer_name: str | None = None,
        must_keep_name: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "summarizer", require_summarizer(summarizer))
        if max_summary_tokens is not None:
            max_summary_tokens = check_whole("max_summary_tokens", max_summary_tokens, least=1)
        put(self, "max_summary_tokens", max_summary_tokens)
        put(self, "role", check_choice("role", role, _ROLES))
        put(self, "trust_summaries", check_flag("trust_summaries", trust_summaries))
        put(self, "must_keep", check_must_keep("must_keep", must_keep))
        put(self, "fallback", as_strategy(fallback))
        put(self, "summarizer_name", summarizer_name)
        put(self, "must_keep_name", must_keep_name)
        put(self, "_memory", _memory_of(summarizer, max_summary_tokens, self.must_keep))

    asks_model: ClassVar[bool] = True
    """It is not asked a second time for one fit: each answer costs a model call."""

    @property
    def has_last_word(self) -> bool:
        """True if nothing is to be tried after its fallback."""
        return has_last_word(self.fallback)

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "summarize"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`.

        Raises:
            ConfigurationError: The summarizer or the function in `must_keep` has no name, or the fallback
                cannot be written as data.
        """
        if self.summarizer_name is None:
            raise ConfigurationError(
                f"{word_of(self.summarizer)} has no name for data; make the strategy with"
                " create_strategy({'kind': 'summarize', 'summarizer': 'mine'}, names={'mine': ...})"
            )
        return {
            "kind": self.name,
            "summarizer": self.summarizer_name,
            "max_summary_tokens": self.max_summary_tokens,
            "role": self.role,
            "trust_summaries": self.trust_summaries,
            "must_keep": must_keep_data(self.must_keep, self.must_keep_name),
            "fallback": strategy_data(self.fallback),
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Summarize what does not fit together with the cap.

        Raises:
            ConfigurationError: The summarizer is async.
        """
        return drive(self.evicting(request))

    def evicting(self, request: EvictionRequest, /) -> Steps[EvictionResult]:
        """Summarize what does not fit with the cap; yields the request for the summary.

        Args:
            request: As for `evict`.
        """
        limit = request.limit_tokens
        cap = self.max_summary_tokens
        cap = min(limit, int(limit * DEFAULT_SUMMARY_RATIO) if cap is None else cap)
        kept, covered, unread = _split(request, limit - cap)
        if not covered:
            return (yield from self._fall_back(request, None))
        keys = _keys(request, covered)
        known = self._memory.find(keys)
        try:
            if known is not None:
                again = self._reuse(request, covered[: known[0]], unread, known[1], cap)
                if again is not None:
                    return again
            insertion = yield from self._insertion(request, covered, kept, cap, keys=keys, known=known)
        except SummaryError as error:
            return (yield from self._fall_back(request, str(error), cause=error))
        if not request.fits(kept, insertions=(insertion,)):
            return (yield from self._fall_back(request, "what must stay does not fit beside a summary"))
        return self._result(request, covered, kept, insertion)

    def _reuse(
        self,
        request: EvictionRequest,
        covered: Sequence[Unit],
        unread: Sequence[Unit],
        known: _Known,
        cap: int,
    ) -> EvictionResult | None:
        """Use a summary that was written before, if all that came since fits beside it."""
        gone = {*map(unit_key, covered), *map(unit_key, unread)}
        kept = [unit for unit in request.units if unit_key(unit) not in gone]
        made = replace(self._summary(request, covered, kept, known.text), checked=known.checked)
        tokens = request.costs.insertion(made)
        if tokens > cap or tokens >= sum(map(request.size, covered)):
            return None
        if not request.fits(kept, insertions=(made,)):
            return None
        return self._result(request, covered, kept, made)

    def _summary(
        self, request: EvictionRequest, covered: Sequence[Unit], kept: Sequence[Unit], text: str
    ) -> Insertion:
        """Make the message of a summary.

        Raises:
            SummaryError: There is no message that leaves for it, or the last turn is before those and
                waits for a result, which no provider takes behind another message.
        """
        staying = {index for unit in kept for index in unit.indices}  # a message may be in units of both
        indices = sorted({index for unit in covered for index in unit.indices} - staying)
        if not indices:
            raise SummaryError("it would replace only some parts of messages")
        turns, kind = reversed(range(request.history.count)), request.history.kind
        last_turn = next((index for index in turns if kind(index) in ("user", "assistant")), -1)
        if last_turn < indices[0] and any(unit.open and last_turn in unit.indices for unit in kept):
            raise SummaryError("it would be between a call and a result that can still come")
        return Insertion(
            at=indices[0],
            message=self._message(request, text, len(indices), covered),
            why=f"summary of {len(indices):,} messages",
            covers=frozenset(indices),
        )

    def _insertion(
        self,
        request: EvictionRequest,
        covered: Sequence[Unit],
        kept: Sequence[Unit],
        cap: int,
        *,
        keys: Sequence[bytes],
        known: tuple[int, _Known] | None,
    ) -> Steps[Insertion]:
        """Ask for a summary of these units: of all, or of what came since the one that is known.

        Raises:
            SummaryError: There is none, or none that can be used.
        """
        made = self._summary(request, covered, kept, "")
        text_tokens = cap - request.costs.insertion(made)
        if text_tokens < 0:
            raise SummaryError(f"a summary of at most {cap:,} tokens has no room for text")
        text = yield SummaryCall(self.summarizer, self._request(request, covered, known, text_tokens))
        if text is None:
            return replace(made, planned_tokens=cap, why=f"planned {made.why}")
        name = word_of(self.summarizer)
        if not text.strip():
            raise SummaryError(f"{name} returned an empty summary")
        made = self._summary(request, covered, kept, text)
        tokens, replaced = request.costs.insertion(made), sum(map(request.size, covered))
        if tokens > cap or tokens >= replaced:
            most = f"its cap of {cap:,}" if tokens > cap else f"the {replaced:,} that it replaces"
            raise SummaryError(f"{name} wrote a summary of {tokens:,} tokens, too many for {most}")
        checked = None
        if self.must_keep is not None:
            kept_text = keep_values(
                finder_of(self.must_keep),
                text.strip(),
                _sources(request, covered, known, all_of_it=reads_all(self.summarizer)),
                limit_tokens=min(cap, replaced - 1),
                ratio=DEFAULT_KEPT_RATIO,
                size=lambda text: request.costs.insertion(self._summary(request, covered, kept, text)),
            )
            text, checked = kept_text.text, kept_text.checked
            made = replace(self._summary(request, covered, kept, text), checked=checked)
        self._memory.keep(keys[-1], _Known(text, checked))
        return made

    def _request(
        self,
        request: EvictionRequest,
        covered: Sequence[Unit],
        known: tuple[int, _Known] | None,
        text_tokens: int,
    ) -> SummaryRequest:
        """Ask about what came since a known summary, which is told; about all where there is nothing new."""
        if known is None or known[0] == len(covered) or reads_all(self.summarizer):
            messages = assemble(request.history, covered, request.edits)
            return SummaryRequest(messages=messages, max_tokens=max(1, text_tokens))
        count, existing = known[0], known[1].text
        messages = assemble(request.history, covered[count:], request.edits)
        if not takes_existing(self.summarizer):
            # a function of messages alone would forget it
            before = len({index for unit in covered[:count] for index in unit.indices})
            messages = [self._message(request, existing, before, covered[:count]), *messages]
        return SummaryRequest(messages=messages, existing=existing, max_tokens=max(1, text_tokens))

    def _message(
        self, request: EvictionRequest, text: str, messages: int, covered: Sequence[Unit]
    ) -> dict[str, Any]:
        return summary_message(
            request.history.format,
            self.role,
            text,
            messages=messages,
            origins=_origins(request, covered),
            trusted=self.trust_summaries,
        )

    def _result(
        self, request: EvictionRequest, covered: Sequence[Unit], kept: Sequence[Unit], made: Insertion
    ) -> EvictionResult:
        """Report a summary, and that it is written as the user's where its sources do not allow its role."""
        sources, trusted = _origins(request, covered), self.trust_summaries
        notes = role_notes(request.history.format, self.role, sources, trusted=trusted)
        return EvictionResult(kept=kept, insertions=(made,), actions=("summarized",), notes=notes)

    def _fall_back(
        self, request: EvictionRequest, why: str | None, *, cause: SummaryError | None = None
    ) -> Steps[EvictionResult]:
        other = cast("Any", self.fallback)
        answer: EvictionResult = (
            (yield from other.evicting(request)) if waits(other) else other.evict(request)
        )
        name = f"{self.fallback.name}, the fallback of {self.name},"
        check_step(request, answer := checked_answer(answer, request, name), name)
        if why is None:
            return answer
        note = f"Block {request.block!r} has no summary: {why}; {self.fallback.name} was used instead."
        actions = answer.actions if answer.actions is not None else (self.fallback.name,)
        return replace(answer, notes=(note, *answer.notes), actions=actions, cause=cause)


def _origins(request: EvictionRequest, units: Sequence[Unit]) -> Origins:
    """Return the origins of what units hold: a message that stays in part was read as well."""
    indices = {index for unit in units for index in unit.indices}
    return frozenset[OriginName]().union(*(origins_at(request.history, index) for index in indices))


def _sources(
    request: EvictionRequest, covered: Sequence[Unit], known: tuple[int, _Known] | None, *, all_of_it: bool
) -> list[Source]:
    """List what a summary replaces: the one that is known, and the messages that came since, or all."""
    count = 0 if known is None or known[0] == len(covered) else known[0]
    before = [summary_source(known[1].text)] if known is not None and count else []
    read = covered if all_of_it else covered[count:]
    indices = sorted({index for unit in read for index in unit.indices})
    history = request.history
    messages = ((request.message(index), origins_at(history, index)) for index in indices)
    return [*before, *sources_of(history.format, messages)]


def _keys(request: EvictionRequest, units: Sequence[Unit]) -> list[bytes]:
    """Key each run of units from the first on by what their messages hold, as the caller gave them."""
    from hashlib import blake2b  # not above: takes as long to import as a few fits

    from trimtab.counting.awaited import digest_of

    history, keys, found = request.history, [], blake2b(digest_size=16)
    for unit in units:
        for index in unit.indices:
            found.update(digest_of(history.message(index)))
            found.update(repr(sorted(unit.parts.get(index, ()))).encode())
        keys.append(found.copy().digest())
    return keys


def _split(request: EvictionRequest, room_tokens: int) -> tuple[list[Unit], list[Unit], list[Unit]]:
    """Return the units that stay beside a summary, those it would cover, and those that leave without one.

    For these a compaction of the provider's stands already; a summary in their place would not be read.
    """
    cuts = request.cuts
    cut = cuts.oldest(lambda cut: cuts.tokens(cut) <= room_tokens)
    kept = kept_units(request, EvictionResult(cut=cuts.end if cut is None else cut))
    stays = set(map(unit_key, kept))
    leaving = [unit for unit in request.units if unit_key(unit) not in stays]
    read_from = request.sizes.unread.stop
    covered = [unit for unit in leaving if unit.first >= read_from]
    return kept, covered, [unit for unit in leaving if unit.first < read_from]
