"""`Relevant`: keeps the newest units for the thread, and those of the rest that concern the question."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from string import Formatter
from typing import Any, cast

from trimtab._shared.checks import number_of
from trimtab._shared.steps import Steps
from trimtab.conversation import Unit
from trimtab.conversation.assemble import Insertion
from trimtab.conversation.units import Span, unit_of
from trimtab.errors import ConfigurationError
from trimtab.relevance.ranker import RankCall, RankerLike, check_ranker
from trimtab.strategies.base import EvictionRequest, EvictionResult
from trimtab.strategies.greedy import must_stay, take_best
from trimtab.strategies.rows import span_stays
from trimtab.strategies.scores import (
    MIXTURE,
    SCORE_NAMES,
    Weights,
    WeightsLike,
    messages_of,
    rank,
    score_data,
    spread,
    weigh,
    weights_of,
)
from trimtab.strategies.summarizer import drive

__all__ = ["Relevant"]


@dataclass(frozen=True, slots=True)
class Relevant:
    """Keep the newest units and the older ones most relevant to the question.

    The newest units take `recent_ratio` of the room, so the thread is not lost. The remaining room goes to
    the units with the highest scores, wherever they are. Of equal scores the newer unit wins; a unit that
    does not fit is skipped; the order of the conversation does not change. Reads and counts the whole
    history.

    Args:
        query: What to look for; None: the user's latest message; in a Context, in whichever block it is.
        score: How to score a message: `"relevance"` (BM25 over stems; neighbors of a hit get half its score,
            and long messages get less), `"role"` (its author) and `"recency"`, several of these with weights,
            or a function `(query, messages)` that returns a number for each message, such as embeddings or a
            reranker. `afit` awaits an async function. The default is relevance with a tenth of role: of two
            equally relevant messages the user's is kept, and irrelevant messages are evicted by role.
        recent_ratio: Share of the room that the newest units take, after what must be kept; from 0 to 1.
        gap: A line, in a user message, that shows where messages were left out, such as `"[… {count} messages
            left out …]"`; None: no line. No line follows the latest user message, where it would be read as
            the question. A line from an earlier fit is recognized by its words, and its count is added to the
            new line's.
        score_name: Registered name of the function, for `to_dict`.

    Raises:
        ConfigurationError: `recent_ratio` is not from 0 to 1, `score` is neither a function nor names with
            weights, or `gap` is not text or names something other than `count`.
        UnknownNameError: `score` is an unknown name.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> texts = ("My cat is called Tom.", "Nice.", "It rains.", "It does.", "What is my cat called?")
        >>> messages = [{"role": "user", "content": text} for text in texts]
        >>> strategy = Relevant(gap="[… {count} left out …]")
        >>> fitted = fit(messages, 40, counter=FixedCounter(per_message=10), strategy=strategy)
        >>> [message["content"] for message in fitted.messages]
        ['My cat is called Tom.', 'Nice.', '[… 2 left out …]', 'What is my cat called?']
    """

    query: str | None = None
    score: WeightsLike | RankerLike = MIXTURE
    recent_ratio: float = 0.25
    gap: str | None = None
    score_name: str | None = None

    def __init__(
        self,
        query: str | None = None,
        *,
        score: WeightsLike | RankerLike = MIXTURE,
        recent_ratio: float = 0.25,
        gap: str | None = None,
        score_name: str | None = None,
    ) -> None:
        if query is not None and not isinstance(query, str):
            raise ConfigurationError(
                f"query must be a text, or None for the user's latest message, not {query!r}",
                argument="query",
            )
        share = number_of(recent_ratio)
        if share is None or not 0 <= share <= 1:
            raise ConfigurationError(
                f"recent_ratio must be a number from 0 to 1, not {recent_ratio!r}", argument="recent_ratio"
            )
        put = object.__setattr__
        put(self, "query", query)
        put(self, "score", _check_score(score))
        put(self, "recent_ratio", float(share))
        put(self, "gap", gap if gap is None else _check_gap(gap))
        put(self, "score_name", score_name)

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "relevant"

    @property
    def asks_model(self) -> bool:
        """True if a function scores: it is not asked a second time for one fit."""
        return not isinstance(self.score, Weights)

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`.

        Raises:
            ConfigurationError: The score is a function without a name.
        """
        return {
            "kind": self.name,
            "query": self.query,
            "score": score_data(self.score, self.score_name),
            "recent_ratio": self.recent_ratio,
            "gap": self.gap,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take the newest units, then those with the highest scores while they fit."""
        return drive(self.evicting(request))

    def evicting(self, request: EvictionRequest, /) -> Steps[EvictionResult]:
        """Take the newest units, then the highest scores; yields calls of a ranker.

        Args:
            request: As for `evict`.
        """
        stays, staying, impossible = must_stay(request)
        if impossible is not None:
            return impossible
        row = request.row
        gap = None if self.gap is None else _Gap(self.gap, request)
        lines = set() if gap is None else gap.old.keys()
        recent = [at for at in self._recent(request, staying) if row[at][0] not in lines]
        taken, scores = {*stays, *recent}, (yield from self._scores(request))
        free = [at for at, span in enumerate(row) if at not in taken and span[0] not in lines]
        ranked = [*recent, *rank(request, free, scores)]
        if gap is not None:
            return _mark_gaps(request, stays, ranked, gap)
        return EvictionResult(kept=take_best(request, stays, ranked), actions=("evicted",))

    def _recent(self, request: EvictionRequest, staying: Sequence[Unit]) -> list[int]:
        """List the places of the newest units that have room, and of the user's message they answer."""
        row, found = request.row, list[int]()
        room = (request.limit_tokens - request.total(staying)) * self.recent_ratio
        oldest = None
        for at in range(len(row) - 1, -1, -1):
            if not span_stays(request, row[at]):
                room -= request.size(unit_of(row[at]))
                if room < 0:
                    break
                found.append(at)
                oldest = row[at][0]
        if oldest is not None and (user := request.history.user_at_or_before(oldest)) is not None:
            at = bisect_left(row, user, key=_first_of)
            if at < len(row) and row[at][0] == user < oldest and not span_stays(request, row[at]):
                found.append(at)
        return found

    def _scores(self, request: EvictionRequest) -> Steps[list[float]]:
        """Score every remaining message; in a plan by words if the ranker is async."""
        if isinstance(self.score, Weights):
            return weigh(request, self.score, query=self.query)
        indices = messages_of(request)
        query = request.question if self.query is None else self.query
        call = RankCall(cast("RankerLike", self.score), query, list(map(request.message, indices)))
        scores: list[float] | None = yield call
        if scores is None:
            return weigh(request, MIXTURE, query=self.query)
        return spread(request, indices, scores)


class _Gap:
    """The line that marks a gap, and the lines of earlier fits that came back."""

    __slots__ = ("_text", "old")

    def __init__(self, text: str, request: EvictionRequest) -> None:
        self._text = text
        history, known = request.history, _pattern(text)
        self.old: dict[int, int] = {}
        """Lines of earlier fits that may leave, by position, and for how many messages each stands."""
        for span in request.row:
            at = span[0]
            if span[1] == at + 1 and history.kind(at) == "user" and not span_stays(request, span):
                match = known.fullmatch(history.format.full_text(request.message(at)))
                if match is not None:
                    digits = re.sub(r"\D", "", match[1]) if known.groups else ""
                    self.old[at] = int(digits or 1)

    def insertion(self, request: EvictionRequest, run: Sequence[int]) -> Insertion:
        """Make the line for neighboring messages that were left out."""
        count = sum(self.old.get(index, 1) for index in run)
        return Insertion(
            at=run[0],
            message=request.history.format.message("user", [self._text.format(count=count)]),
            why=f"{count:,} messages left out",
            covers=frozenset(run),
            reason="over_limit",
        )


def _pattern(text: str) -> re.Pattern[str]:
    """Match the lines of a gap; the first group is the number, where it has one."""
    parts = []
    for literal, field, _, _ in Formatter().parse(text):
        parts += [re.escape(literal), "" if field is None else r"\s*([0-9][0-9,._]*)\s*"]
    return re.compile("".join(parts))


def _mark_gaps(request: EvictionRequest, stays: list[int], ranked: list[int], gap: _Gap) -> EvictionResult:
    """Choose what to keep together with a line for each gap."""
    choose = _with_lines if request.additive else _with_lines_by_halves
    if (found := choose(request, stays, ranked, gap)) is not None:
        return EvictionResult(kept=found[0], insertions=found[1], actions=("evicted",))
    note = f"Block {request.block!r} has no room for lines that mark gaps."
    return EvictionResult(kept=take_best(request, stays, ranked), actions=("evicted",), notes=(note,))


def _with_lines(
    request: EvictionRequest, stays: list[int], ranked: list[int], gap: _Gap
) -> tuple[list[Unit], list[Insertion]] | None:
    """Choose again beside the room that the lines of the choice before take, until it is the same."""
    best: tuple[list[Unit], list[Insertion]] | None = None
    most = reserved = 0
    for _ in range(_ROUNDS):
        kept = take_best(request.within(request.limit_tokens - reserved), stays, ranked)
        lines = list(_lines(request, kept, gap))
        tokens = request.total(kept, insertions=lines)
        if most < tokens <= request.limit_tokens:
            most, best = tokens, (kept, lines)
        needed = tokens - request.total(kept)
        if needed == reserved:
            break
        reserved = needed
    return best


def _with_lines_by_halves(
    request: EvictionRequest, stays: list[int], ranked: list[int], gap: _Gap
) -> tuple[list[Unit], list[Insertion]] | None:
    """Choose once, for a black box, and let go of what was taken last until the lines have room."""
    units = request.units
    there = set(map(id, take_best(request, stays, ranked)))
    taken = [at for at in ranked if id(units[at]) in there]
    best: tuple[list[Unit], list[Insertion]] | None = None
    low, high = 0, len(taken)
    while low <= high:
        middle = high if best is None and high == len(taken) else (low + high) // 2
        kept = [units[at] for at in sorted([*stays, *taken[:middle]])]
        widest = sorted(_lines(request, kept, gap), key=lambda line: -len(line.covers))
        lines = sorted(widest[:_BLACK_BOX_LINES], key=lambda line: line.at)
        if request.fits(kept, insertions=lines):
            best, low = (kept, lines), middle + 1
        else:
            high = middle - 1
    return best


_BLACK_BOX_LINES = 4
"""Lines where each is a call of a black box: at the widest gaps."""

_ROUNDS = 4
"""Choices until the lines of one take the room set aside for them; mostly the second or third does."""


def _check_score(score: Any) -> Weights | RankerLike:
    if isinstance(score, (str, Mapping)):
        return weights_of(score)
    if not callable(score):
        raise ConfigurationError(
            f"score must be a function of a query and messages, one of {', '.join(SCORE_NAMES)}, or several"
            f" of these with weights, not {score!r}",
            argument="score",
        )
    return check_ranker("score", score)


def _check_gap(gap: Any) -> str:
    """Return the text of a gap in which the number of messages can be filled in."""
    if not isinstance(gap, str) or not gap.strip():
        raise ConfigurationError(
            f"gap must be a text, such as '[… {{count}} messages left out …]', not {gap!r}", argument="gap"
        )
    try:
        gap.format(count=1)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"gap may have {{count}} for the number of messages, and {{{{ for a brace; {gap!r} has another"
            f" field: {error}",
            argument="gap",
        ) from error
    return gap


def _lines(request: EvictionRequest, kept: Sequence[Unit], gap: _Gap) -> Iterator[Insertion]:
    """Make the line for each gap where one may stand: before the question, outside a call and its results."""
    asked = request.history.latest_user
    if asked is None:
        return  # a line would be the only word of the user's, and taken for the question
    history, open_at = request.history, {index for unit in kept if unit.open for index in unit.indices}
    there = {index for unit in kept for index in unit.indices}
    inside, waits, run = _inside(kept, history.count), False, list[int]()
    for index in (*messages_of(request), history.count):
        if index not in there and index < history.count:
            run.append(index)
            continue
        if run and run[0] < asked and not waits and not inside[run[0]]:
            yield gap.insertion(request, run)
        run = []
        if index in open_at:
            waits = True  # for its result, which a user's message would end
        elif index < history.count and history.kind(index) in ("user", "assistant"):
            waits = False


def _inside(kept: Sequence[Unit], count: int) -> list[int]:
    """Count, for each message, the units that stay and stand on both sides of the place before it."""
    changes = [0] * (count + 2)
    for unit in kept:
        changes[unit.indices[0] + 1] += 1
        changes[unit.indices[-1] + 1] -= 1
    return list(accumulate(changes))


def _first_of(span: Span) -> int:
    return span[0]
