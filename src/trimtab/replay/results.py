"""What a replay found: a row a call, and sums over rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trimtab.report.text import extremes, plain, plural

if TYPE_CHECKING:
    from trimtab.replay.record import Canary


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How much of the messages that answer a question was in view when it was asked.

    Args:
        whole: Messages in view unchanged.
        shortened: Messages in view in part, with at least half of their text.
        retold: Messages of which a summary, a fact or a recalled text quotes at least half, or has the
            answer.
        sought: All of these messages, including evicted ones.
    """

    whole: int = 0
    shortened: int = 0
    retold: int = 0
    sought: int = 0

    @property
    def seen(self) -> int:
        """How many are in view in any of the three ways."""
        return self.whole + self.shortened + self.retold

    @property
    def share(self) -> float | None:
        """The share that is in view; None: there was no evidence to find."""
        return self.seen / self.sought if self.sought else None

    def __add__(self, other: Evidence) -> Evidence:
        """Sum up both."""
        return Evidence(**_sums(asdict(self), asdict(other)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many texts were looked for in what was sent, and how many are lost.

    They are canaries, at the end of a round, or details that an answer takes.

    Args:
        sought: Those that were looked for.
        lost: Those of them that are nowhere in what was sent.
    """

    sought: int = 0
    lost: int = 0

    @property
    def share(self) -> float | None:
        """The share that is in what was sent; None: nothing was looked for."""
        return (self.sought - self.lost) / self.sought if self.sought else None

    def __add__(self, other: Tally) -> Tally:
        """Sum up both."""
        return Tally(sought=self.sought + other.sought, lost=self.lost + other.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """How many canaries were in view word for word, by round and by kind.

    A round is a fifth of the calls, so rounds of several policies are alike.

    Args:
        rounds: For each round, a tally by kind at its last call; empty if the recording has no canaries.
        lost: The canaries that are not in view at the last call; of several recordings none is listed.
    """

    rounds: tuple[Mapping[str, Tally], ...] = ()
    lost: tuple[Canary, ...] = ()

    @property
    def by_kind(self) -> Mapping[str, Tally]:
        """A tally by kind at the last call."""
        return self.rounds[-1] if self.rounds else {}

    @property
    def by_round(self) -> tuple[Tally, ...]:
        """A tally for each round, of all kinds."""
        return tuple(sum(one.values(), Tally()) for one in self.rounds)

    @property
    def total(self) -> Tally:
        """The tally at the last call, of all kinds."""
        return sum(self.by_kind.values(), Tally())

    @property
    def share(self) -> float | None:
        """The share that is in view at the last call; None: there are no canaries."""
        return self.total.share

    def __add__(self, other: Survival) -> Survival:
        """Sum up both, round by round."""
        if not (self.rounds and other.rounds):
            return replace(self if self.rounds else other, lost=())
        return Survival(
            rounds=tuple(_both_tallies(one, two) for one, two in zip(self.rounds, other.rounds, strict=True))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, including the share."""
        return {
            "share": self.share,
            **asdict(self.total),
            "rounds": [{kind: asdict(tally) for kind, tally in one.items()} for one in self.rounds],
            "canaries_lost": [asdict(one) for one in self.lost],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A detail that a message of the model has from a result, and from nowhere else.

    Args:
        text: The detail.
        kind: "identifier", "number", "path" or "line".
        call: Index of the call that the message answers.
        age: Number of calls that have had the newest result with it, this one included.
        tool: The tool that gave this result; "" if unknown.
        result: Id of the call of the tool; "" if unknown.
    """

    text: str
    kind: str
    call: int
    age: int
    tool: str = ""
    result: str = ""


_AGES = ((1, "next call"), (5, "2–5 calls"), (20, "6–20 calls"))
"""The ages of a use that are told apart, each with the largest it has; all others are older."""
_OLDEST = "over 20 calls"
AGE_WORDS = (*(word for _, word in _AGES), _OLDEST)


def age_word(age: int, /) -> str:
    """Return the word for an age, of those that are told apart."""
    return next((word for most, word in _AGES if age <= most), _OLDEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """How much of what the model took from the request was in view when it did.

    A use is a detail that the model writes for the first time and that only results had: an identifier, a
    number of three digits or more, a path or a line. A need is a detail that anything earlier had.

    Args:
        by_tool: A tally of uses by the tool that gave the result.
        by_age: The same by the number of calls since the result.
        by_kind: The same by kind of detail.
        needs: A tally of needs.
        lost: The uses that were not in view; of several recordings none is listed.
    """

    by_tool: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    by_age: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    by_kind: Mapping[str, Tally] = field(default_factory=dict[str, Tally])
    needs: Tally = Tally()
    lost: tuple[Use, ...] = ()

    @property
    def total(self) -> Tally:
        """The tally of all uses."""
        return sum(self.by_kind.values(), Tally())

    @property
    def share(self) -> float | None:
        """The share of uses that was in view; None: there are none."""
        return self.total.share

    @property
    def needs_share(self) -> float | None:
        """The share of needs that was in view; None: there are none."""
        return self.needs.share

    def __add__(self, other: Uses) -> Uses:
        """Sum up both."""
        by_age = _both_tallies(self.by_age, other.by_age)
        return Uses(
            by_tool=_both_tallies(self.by_tool, other.by_tool),
            by_age={word: by_age[word] for word in AGE_WORDS if word in by_age},
            by_kind=_both_tallies(self.by_kind, other.by_kind),
            needs=self.needs + other.needs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, including shares."""
        groups = {"by_tool": self.by_tool, "by_age": self.by_age, "by_kind": self.by_kind}
        return {
            "share": self.share,
            **asdict(self.total),
            **{name: {key: asdict(one) for key, one in group.items()} for name, group in groups.items()},
            "needs": {"share": self.needs_share, **asdict(self.needs)},
            "uses_lost": [asdict(one) for one in self.lost],
        }


def _both_tallies(one: Mapping[str, Tally], other: Mapping[str, Tally]) -> dict[str, Tally]:
    return {key: one.get(key, Tally()) + other.get(key, Tally()) for key in {**one, **other}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """What happened to one model call under a policy.

    Args:
        index: Its index among the calls, from 0.
        given_messages: Number of messages in the recording.
        sent_messages: Number of messages that were sent.
        tokens: Tokens of the whole request as it was sent; 0 if it was refused.
        limit_tokens: The room in tokens; None if no room was given.
        shared_messages: Number of messages that are the same as at the start of the previous call.
        shared_tokens: Tokens of these, and of what comes before them.
        read_tokens: Tokens that the provider's cache served.
        write_tokens: Tokens that it computed and stored.
        base_tokens: Tokens that it computed and did not store.
        cold: Whether the cache had expired.
        price: Cost of the input, and of the summaries written for it.
        evicted: Messages of the call that were not sent.
        references: Results that `compact` wrote as a reference to an earlier one, each pair once.
        saved_tokens: Tokens that `compact` saved, by step: "repeats", "json", or the name of a `Kind`.
        cut: Position of the cut: everything from there on was sent; None if the call was refused. A summary,
            facts and recalled text are not messages of the conversation.
        moved_back: Whether the cut is at an older message than in the previous call.
        summarizer_calls: How often a model was asked for a summary.
        summarizer_tokens: Tokens that the model read and wrote for that, if known.
        over_limit: Whether the call exceeded its room.
        faults: Rules by which a provider would refuse it, except those that the recording itself breaks.
        refused: Why nothing could be sent; None: something was sent.
        over_before: Whether this call or an earlier one would have exceeded the room without trimming.
        evidence: How much evidence of the questions in this call is in view; None: there is no question.
    """

    index: int
    given_messages: int
    sent_messages: int = 0
    tokens: int = 0
    limit_tokens: int | None = None
    shared_messages: int = 0
    shared_tokens: int = 0
    read_tokens: int = 0
    write_tokens: int = 0
    base_tokens: int = 0
    cold: bool = False
    price: float = 0.0
    evicted: int = 0
    references: int = 0
    saved_tokens: Mapping[str, int] = field(default_factory=dict)
    cut: int | None = None
    moved_back: bool = False
    summarizer_calls: int = 0
    summarizer_tokens: int = 0
    over_limit: bool = False
    faults: tuple[str, ...] = ()
    refused: str | None = None
    over_before: bool = False
    evidence: Evidence | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over calls.

    Args:
        calls: Number of calls.
        tokens: Tokens sent.
        shared_tokens: Tokens that are a prefix of the previous call.
        read_tokens: Tokens that caches served.
        write_tokens: Tokens that were computed and stored.
        base_tokens: Tokens that were computed and not stored.
        cold_calls: Calls before which the cache had expired.
        price: The total cost.
        fill_sum: Sum of the used share of the room of each call, if known.
        filled_calls: Calls whose room is known.
        evicted: Messages that were not sent, summed over calls.
        references: Results that `compact` wrote as a reference to an earlier one, summed over calls.
        saved_tokens: Tokens that `compact` saved, by step, summed over calls.
        cut_moves: Calls in which the cut moved.
        moved_back: How often it moved to an older message.
        summarizer_calls: Calls of a model for summaries.
        summarizer_tokens: Tokens that the model read and wrote for them.
        over_limit: Calls that exceeded their room.
        invalid: Calls a provider would refuse.
        refused: Calls for which nothing could be sent.
        evidence: How much of the evidence was in view, over all questions.
    """

    calls: int = 0
    tokens: int = 0
    shared_tokens: int = 0
    read_tokens: int = 0
    write_tokens: int = 0
    base_tokens: int = 0
    cold_calls: int = 0
    price: float = 0.0
    fill_sum: float = 0.0
    filled_calls: int = 0
    evicted: int = 0
    references: int = 0
    saved_tokens: Mapping[str, int] = field(default_factory=dict)
    cut_moves: int = 0
    moved_back: int = 0
    summarizer_calls: int = 0
    summarizer_tokens: int = 0
    over_limit: int = 0
    invalid: int = 0
    refused: int = 0
    evidence: Evidence = Evidence()

    @property
    def reuse(self) -> float | None:
        """The share of tokens reused from the start of the previous call; None: none sent."""
        return self.shared_tokens / self.tokens if self.tokens else None

    @property
    def fill(self) -> float | None:
        """The mean share of the room that was used; None if no room is known."""
        return self.fill_sum / self.filled_calls if self.filled_calls else None

    @property
    def evidence_share(self) -> float | None:
        """The share of the evidence that was in view; None without questions."""
        return self.evidence.share

    def __add__(self, other: Totals) -> Totals:
        """Sum up both."""
        saved = {
            step: self.saved_tokens.get(step, 0) + other.saved_tokens.get(step, 0)
            for step in dict.fromkeys((*self.saved_tokens, *other.saved_tokens))
        }
        sums = _sums(asdict(self), asdict(other))
        return Totals(**sums, saved_tokens=saved, evidence=self.evidence + other.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, including shares."""
        data = asdict(self)
        del data["fill_sum"], data["filled_calls"]
        return {**data, "reuse": self.reuse, "fill": self.fill, "evidence_share": self.evidence_share}


def _sums(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Add up the numbers; evidence and what was saved are summed by themselves."""
    return {name: number + other[name] for name, number in one.items() if name not in _NO_NUMBERS}


_NO_NUMBERS = ("evidence", "saved_tokens")


def totals_of(rows: Iterable[CallRow], /) -> Totals:
    """Sum rows up."""
    found = Totals()
    cut: int | None = None
    for row in rows:
        moves = cut is not None and row.cut is not None and row.cut != cut
        cut = cut if row.cut is None else row.cut
        found += _of(row, moves=moves)
    return found


def _of(row: CallRow, *, moves: bool) -> Totals:
    is_filled = row.refused is None and row.limit_tokens is not None
    return Totals(
        calls=1,
        tokens=row.tokens,
        shared_tokens=row.shared_tokens,
        read_tokens=row.read_tokens,
        write_tokens=row.write_tokens,
        base_tokens=row.base_tokens,
        cold_calls=row.cold,
        price=row.price,
        fill_sum=row.tokens / row.limit_tokens if is_filled and row.limit_tokens else 0.0,
        filled_calls=is_filled,
        evicted=row.evicted,
        references=row.references,
        saved_tokens=row.saved_tokens,
        cut_moves=moves,
        moved_back=row.moved_back,
        summarizer_calls=row.summarizer_calls,
        summarizer_tokens=row.summarizer_tokens,
        over_limit=row.over_limit,
        invalid=bool(row.faults),
        refused=row.refused is not None,
        evidence=row.evidence or Evidence(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recording, or several, under one policy.

    `totals` is over all calls: the bill. `steady` begins with the first call that has to be trimmed: the
    calls before it are the same under every policy and would hide the differences.

    Args:
        policy: The policy's name.
        pricing: Name of the prices.
        calls: One row per call; empty if only sums were kept.
        totals: Sums over all calls.
        steady: Sums from the first call that had to be trimmed.
        recordings: Number of recordings.
        models: Models whose tokens were counted; empty if no model was named.
        rooms: The smallest and the largest room of a call, in tokens; one number if it is the same for all,
            and empty if no room was given.
        dollars: The price in dollars; None if the price of the model is unknown.
        survival: How many of the recording's canaries were in view.
        uses: How much of what the model's messages took from earlier ones was in view.
    """

    policy: str
    pricing: str
    calls: tuple[CallRow, ...] = ()
    totals: Totals
    steady: Totals
    recordings: int = 1
    models: tuple[str, ...] = ()
    rooms: tuple[int, ...] = ()
    dollars: float | None = None
    survival: Survival = Survival()
    uses: Uses = Uses()

    def __add__(self, other: Replayed) -> Replayed:
        """Join what was found of other recordings under the same policy; rows of calls are left behind."""
        return replace(
            self,
            calls=(),
            totals=self.totals + other.totals,
            steady=self.steady + other.steady,
            recordings=self.recordings + other.recordings,
            models=tuple(dict.fromkeys(self.models + other.models)),
            rooms=extremes(self.rooms + other.rooms),
            dollars=_both(self.dollars, other.dollars),
            survival=self.survival + other.survival,
            uses=self.uses + other.uses,
        )

    @property
    def is_sound(self) -> bool:
        """Whether every call was sent, fits and is valid; else the price is not a bill."""
        return not (self.totals.refused or self.totals.over_limit or self.totals.invalid)

    def without_calls(self) -> Replayed:
        """Return only the sums."""
        return replace(self, calls=())

    def cost_ratio(self, other: Replayed, /) -> float | None:
        """Return the cost in units of another; None if the other costs nothing.

        Args:
            other: The same conversations under another policy.
        """
        return self.totals.price / other.totals.price if other.totals.price else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "policy": self.policy,
            "pricing": self.pricing,
            "recordings": self.recordings,
            "totals": self.totals.to_dict(),
            "steady": self.steady.to_dict(),
            "models": list(self.models),
            "rooms": list(self.rooms),
            "dollars": self.dollars,
            "survival": self.survival.to_dict(),
            "uses": self.uses.to_dict(),
            "calls": [row.to_dict() for row in self.calls],
        }

    def __repr__(self) -> str:
        """Say the sums in a line."""
        totals = self.totals
        wrong = {"refused": totals.refused, "over": totals.over_limit, "invalid": totals.invalid}
        told = "".join(f", {count:,} {word}" for word, count in wrong.items() if count)
        return (
            f"<Replayed {plain(self.policy)!r}: {plural(totals.calls, 'call')}, {totals.tokens:,} tokens,"
            f" price {totals.price:,.0f}{told}>"
        )

    def _repr_html_(self) -> str:
        """Show sums, charts and what went wrong in a notebook; no content."""
        from trimtab.replay.chart import fragment  # not above: only who looks at it needs it

        return fragment(self)


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
