"""`Relevant`: the newest part stays for the thread, and of the rest what the question is about."""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias, cast

from trimtab._shared.checks import answers_later, check_parameters, is_number
from trimtab.conversation import Unit
from trimtab.conversation.assemble import Insertion
from trimtab.conversation.units import Span, unit_of
from trimtab.errors import ConfigurationError
from trimtab.strategies.base import EvictionRequest, EvictionResult
from trimtab.strategies.greedy import take_best
from trimtab.strategies.scores import (
    SCORE_NAMES,
    Weights,
    WeightsLike,
    messages_of,
    score_data,
    weigh,
    weights_of,
)

__all__ = ["RelevanceScore", "Relevant"]

RelevanceScore: TypeAlias = Callable[[str, Sequence[Any]], Iterable[float]]
"""Says how much each message says about a query; higher stays. The messages are to be read only."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """Keep the newest part, and of the rest what says most about the question.

    The newest units take `recent_ratio` of the room, so that the thread is not lost. What is left goes to the
    units with the best scores, whole, wherever they stand; ties go to the newer unit, what does not fit is
    skipped, and the order of the conversation is kept. Reads and counts the whole history.

    Args:
        query: What to look for; None: what the user wrote last, in a Context in whatever block it stands.
        score: What a message is worth: `"relevance"` (BM25 over stems, half a score for the messages beside
            a hit), `"role"` and `"recency"`, several with weights, as in
            `{"relevance": 1, "role": 0.3}`, or a function `(query, messages)` that returns a number for each.
        recent_ratio: Part of the room beside what must stay that the newest units take, from 0 to 1.
        gap: A line that stands, as a user's message, where messages were left out, as in
            `"[… {count} messages left out …]"`; None: nothing does.
        score_name: Name a function was registered under, for `to_dict`.

    Raises:
        ConfigurationError: `recent_ratio` is not from 0 to 1, `score` is neither a function nor names with
            weights, or is async, or `gap` is no text or names something else than `count`.
        UnknownNameError: `score` is a name nobody knows.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> texts = ("My cat is called Tom.", "Nice.", "It rains.", "It does.", "What is my cat called?")
        >>> messages = [{"role": "user", "content": text} for text in texts]
        >>> strategy = Relevant(gap="[… {count} left out …]")
        >>> fitted = fit(messages, 40, counter=FixedCounter(per_message=10), strategy=strategy)
        >>> [message["content"] for message in fitted.messages]
        ['My cat is called Tom.', '[… 2 left out …]', 'It does.', 'What is my cat called?']
    """

    query: str | None = None
    score: WeightsLike | RelevanceScore = "relevance"
    recent_ratio: float = 0.5
    gap: str | None = None
    score_name: str | None = None

    def __init__(
        self,
        query: str | None = None,
        *,
        score: WeightsLike | RelevanceScore = "relevance",
        recent_ratio: float = 0.5,
        gap: str | None = None,
        score_name: str | None = None,
    ) -> None:
        if query is not None and not isinstance(query, str):
            raise ConfigurationError(f"query is a text, or None for what the user wrote last, not {query!r}")
        if not is_number(recent_ratio) or not 0 <= recent_ratio <= 1:
            raise ConfigurationError(f"recent_ratio is a number from 0 to 1, not {recent_ratio!r}")
        put = object.__setattr__
        put(self, "query", query)
        put(self, "score", _check_score(score))
        put(self, "recent_ratio", float(recent_ratio))
        put(self, "gap", gap if gap is None else _check_gap(gap))
        put(self, "score_name", score_name)

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "relevant"

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`.

        Raises:
            ConfigurationError: The score is a function that has no name.
        """
        return {
            "kind": self.name,
            "query": self.query,
            "score": score_data(self.score, self.score_name),
            "recent_ratio": self.recent_ratio,
            "gap": self.gap,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take the newest units, then the best of the others while they fit."""
        request.count_each()
        row = request.row
        stays = [at for at, span in enumerate(row) if request._must_stay(span)]
        staying = [unit_of(row[at]) for at in stays]
        if not request.fits(staying):
            return EvictionResult(kept=staying, fits=False, actions=("evicted",))
        recent = self._recent(request, staying)
        taken, scores = {*stays, *recent}, self._scores(request)
        best = {
            at: (
                scores[span[0]] if span[0] + 1 == span[1] else max(map(scores.__getitem__, _indices(span))),
                at,
            )
            for at, span in enumerate(row)
            if at not in taken
        }
        ranked = [*recent, *sorted(best, key=best.__getitem__, reverse=True)]
        if self.gap is not None:
            return self._mark_gaps(request, stays, ranked, self.gap)
        return EvictionResult(kept=take_best(request, stays, ranked), actions=("evicted",))

    def _recent(self, request: EvictionRequest, staying: Sequence[Unit]) -> list[int]:
        """List the places of the newest units that have room, and of the user's message they answer."""
        row, found = request.row, list[int]()
        room = (request.limit_tokens - request.total(staying)) * self.recent_ratio
        oldest = None
        for at in range(len(row) - 1, -1, -1):
            if not request._must_stay(row[at]):
                room -= request.size(unit_of(row[at]))
                if room < 0:
                    break
                found.append(at)
                oldest = row[at][0]
        if oldest is not None and (user := request.history.user_at_or_before(oldest)) is not None:
            at = bisect_left(row, user, key=_first_of)
            if at < len(row) and row[at][0] == user < oldest and not request._must_stay(row[at]):
                found.append(at)
        return found

    def _scores(self, request: EvictionRequest) -> Mapping[int, float]:
        """Score every message that is still there."""
        if isinstance(self.score, Weights):
            return weigh(request, self.score, query=self.query)
        indices = messages_of(request)
        query = request.question if self.query is None else self.query
        answer = cast("RelevanceScore", self.score)(query, list(map(request.message, indices)))
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()  # one that nobody awaits would be warned of
            raise _is_async()
        return dict(zip(indices, _check_scores(answer, len(indices)), strict=True))

    def _mark_gaps(
        self, request: EvictionRequest, stays: list[int], ranked: list[int], gap: str
    ) -> EvictionResult:
        """Choose what stays beside a line for each gap."""
        choose = _with_lines if request.additive else _with_lines_by_halves
        if (found := choose(request, stays, ranked, gap)) is not None:
            return EvictionResult(kept=found[0], insertions=found[1], actions=("evicted",))
        note = f"Block {request.block!r} has no room for lines that mark gaps."
        return EvictionResult(kept=take_best(request, stays, ranked), actions=("evicted",), notes=(note,))


def _with_lines(
    request: EvictionRequest, stays: list[int], ranked: list[int], gap: str
) -> tuple[list[Unit], list[Insertion]] | None:
    """Choose again beside the room that the lines of the choice before take, until it is the same."""
    best: tuple[list[Unit], list[Insertion]] | None = None
    most = reserved = 0
    for _ in range(_ROUNDS):
        kept = take_best(request._with_less_room(reserved), stays, ranked)
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
    request: EvictionRequest, stays: list[int], ranked: list[int], gap: str
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


def _check_score(score: Any) -> Weights | RelevanceScore:
    if isinstance(score, (str, Mapping)):
        return weights_of(score)
    if not callable(score):
        raise ConfigurationError(
            f"score must be a function of a query and messages, one of {', '.join(SCORE_NAMES)}, or several"
            f" of these with weights, not {score!r}"
        )
    if answers_later(score):
        raise _is_async()
    check_parameters("score", score, "query", "messages")
    return cast("RelevanceScore", score)


def _is_async() -> ConfigurationError:
    return ConfigurationError(
        "score must answer at once: await the scores before the fit, and give a function that returns them"
    )


def _check_scores(answer: Any, count: int) -> list[float]:
    """Return a number for each message, as the function answered them."""
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise ConfigurationError(
            f"score answered {type(answer).__name__}; it answers a number for each message"
        )
    values = list(answer)
    if len(values) != count:
        raise ConfigurationError(f"score answered {len(values):,} numbers for {count:,} messages")
    try:
        numbers = list(map(float, values))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"score answers numbers: {error}") from error
    if any(number != number for number in numbers):
        at = next(at for at, number in enumerate(numbers) if number != number)
        raise ConfigurationError(f"score answered {values[at]!r} for message {at}; it must be a number")
    return numbers


def _check_gap(gap: Any) -> str:
    """Return the text of a gap in which the number of messages can be filled in."""
    if not isinstance(gap, str) or not gap.strip():
        raise ConfigurationError(f"gap is a text, as in '[… {{count}} messages left out …]', not {gap!r}")
    try:
        gap.format(count=1)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"gap may have {{count}} for the number of messages, and {{{{ for a brace; {gap!r} has something"
            f" else: {error}"
        ) from error
    return gap


def _lines(request: EvictionRequest, kept: Sequence[Unit], gap: str) -> Iterator[Insertion]:
    """Make the line for each gap where one may stand: not between a call and its results."""
    history, open_at = request.history, {index for unit in kept if unit.open for index in unit.indices}
    there = {index for unit in kept for index in unit.indices}
    inside, waits, run = _inside(kept, history.count), False, list[int]()
    for index in (*messages_of(request), history.count):
        if index not in there and index < history.count:
            run.append(index)
            continue
        if run and not waits and not inside[run[0]]:
            yield Insertion(
                at=run[0],
                message=history.format.message("user", [gap.format(count=len(run))]),
                why=f"{len(run):,} messages left out",
                covers=frozenset(run),
                reason="over_limit",
            )
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


def _indices(span: Span) -> Iterable[int]:
    return range(span[0], span[1]) if span[4] is None else span[4].indices
