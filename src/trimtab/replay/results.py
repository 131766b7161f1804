"""What a replay found: a row a call, and sums over rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from trimtab.report.text import extremes, plain, plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What of the messages that answer a question was in view when it came.

    Args:
        whole: Messages in view as they were said.
        shortened: Messages in view in part, with at least half of what they say.
        retold: Messages of which a summary, a fact or a recalled text quotes as much, or has the answer.
        sought: All of them, those that are gone, too.
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
        """The share that is in view; None: nothing was sought."""
        return self.seen / self.sought if self.sought else None

    def __add__(self, other: Evidence) -> Evidence:
        """Sum up both."""
        return Evidence(**_sums(asdict(self), asdict(other)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """What became of one model call under a policy.

    Args:
        index: Its place among the calls, from 0.
        given_messages: Messages there were to send.
        sent_messages: Messages that were sent.
        tokens: The whole request as it was sent; 0 where it was refused.
        limit_tokens: The room there was; None where nobody gave any.
        shared_messages: Messages it begins with as the call before it did.
        shared_tokens: Tokens of these, with what stands before them.
        read_tokens: Tokens the provider's cache served.
        write_tokens: Tokens it computed and stored.
        base_tokens: Tokens it computed and did not store.
        cold: Whether what the cache held had expired.
        price: Of the input, and of the summaries that were written for it.
        evicted: Messages of the call that were not sent.
        cut: Position from which on everything was sent; None where it was refused. A summary, facts and what
            was recalled are no messages of the conversation.
        moved_back: Whether that is an older message than at the call before.
        summarizer_calls: How often a model was asked for a summary.
        summarizer_tokens: Tokens that it read and wrote for that, where they are known.
        over_limit: Whether it passed its room.
        faults: Rules a provider would refuse it by that the recording itself does not break.
        refused: Why nothing could be sent; None: something was.
        over_before: Whether this call or one before it would have passed the room untrimmed.
        evidence: What of the evidence of the questions that are asked here is in view; None: none is.
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
        calls: Calls there were.
        tokens: Tokens sent.
        shared_tokens: Tokens that are a prefix of the call before.
        read_tokens: Tokens that caches served.
        write_tokens: Tokens that were stored.
        base_tokens: Tokens that were not.
        cold_calls: Calls before which the cache had expired.
        price: What all of it costs.
        fill_sum: Sum of what each call used of its room, where that is known.
        filled_calls: Calls whose room is known.
        evicted: Messages that were not sent, summed over calls.
        cut_moves: Calls at which the cut was not where it was before.
        moved_back: Of these, how often it moved to an older message.
        summarizer_calls: Calls of a model for summaries.
        summarizer_tokens: Tokens it read and wrote for them.
        over_limit: Calls that passed their room.
        invalid: Calls a provider would refuse.
        refused: Calls for which nothing could be sent.
        evidence: What of the evidence was in view, over all questions.
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
        """The share of tokens that is a prefix of the call before; None: none was sent."""
        return self.shared_tokens / self.tokens if self.tokens else None

    @property
    def fill(self) -> float | None:
        """The mean share of the room that was used; None where no room is known."""
        return self.fill_sum / self.filled_calls if self.filled_calls else None

    @property
    def evidence_share(self) -> float | None:
        """The share of the evidence that was in view; None without questions."""
        return self.evidence.share

    def __add__(self, other: Totals) -> Totals:
        """Sum up both."""
        return Totals(**_sums(asdict(self), asdict(other)), evidence=self.evidence + other.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, shares among them."""
        data = asdict(self)
        del data["fill_sum"], data["filled_calls"]
        return {**data, "reuse": self.reuse, "fill": self.fill, "evidence_share": self.evidence_share}


def _sums(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Add up what is no evidence, which is summed by itself."""
    return {name: number + other[name] for name, number in one.items() if name != "evidence"}


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

    `totals` is over all calls: the bill. `steady` begins with the first call that has to be trimmed, so that
    the calls before, which no policy touches, do not hide what it does.

    Args:
        policy: The policy's name.
        pricing: Name of the prices.
        calls: One row a call; empty where only sums were kept.
        totals: Sums over all calls.
        steady: Sums from the first call on that had to be trimmed.
        recordings: How many recordings there were.
        models: Models whose tokens were counted; none where nobody named one.
        rooms: The least and the most room of a call, in tokens; one number where it is the same for all, and
            none where nobody gave any.
        dollars: The price in dollars; None where nobody knows what the model costs.
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
        )

    @property
    def is_sound(self) -> bool:
        """Whether every call was sent, in its room and valid; else the price is no bill."""
        return not (self.totals.refused or self.totals.over_limit or self.totals.invalid)

    def without_calls(self) -> Replayed:
        """Return the sums alone."""
        return replace(self, calls=())

    def cost_ratio(self, other: Replayed, /) -> float | None:
        """Return what it costs in units of another; None where that one costs nothing.

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
