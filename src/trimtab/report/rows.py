"""The rows of a report: messages, what was inserted, blocks, violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Literal, get_args, overload

from trimtab.errors import ConfigurationError

if TYPE_CHECKING:
    from trimtab.report import Report

Fate = Literal["kept", "changed", "evicted"]
"""What happened to a message of the input."""

Reason = Literal[
    "over_limit",
    "over_cap",
    "unit_of_removed",
    "min_messages",
    "block_dropped",
    "callback",
    "truncation",
    "superseded_by_summary",
    "repair",
    "cannot_lead",
    "cannot_end",
    "bound_thinking",
    "cache_mark",
    "rules",
    "compacted",
]
"""Why a message was changed or evicted; a closed list."""

State = Literal["pinned", "held", "free"]
"""Pinned is neither evicted nor changed. Held may be shortened but not evicted. Free is everything else."""

RowsOf = Literal["runs", "messages"]
"""What a row of written data is of: neighbours that fared alike, or one message."""

Action = str
"""What was done to a block: one of `ACTIONS`, or the name of a user's strategy."""

FATES: tuple[Fate, ...] = get_args(Fate)
"""All fates."""
REASONS: tuple[Reason, ...] = get_args(Reason)
"""All reasons."""
ROWS: tuple[RowsOf, ...] = get_args(RowsOf)
"""Whatever a row of written data may be of."""
STATES: tuple[State, ...] = get_args(State)
"""All states."""
ACTIONS: tuple[Action, ...] = (
    "kept",
    "evicted",
    "shortened",
    "cleared",
    "summarized",
    "dropped",
    "removed_by_callback",
    "compacted",
)
"""The actions that trimtab itself names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What happened to one result inside a message.

    Args:
        call_id: Id of the call it answers.
        tool_name: The tool that returned it; "" if unknown.
        fate: What happened to it; the row of its message says why.
    """

    call_id: str
    """Id of the call it answers."""
    tool_name: str = ""
    """The tool that returned it; "" if unknown."""
    fate: Fate
    """What happened to it; the row of its message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """What happened to one message of the input, and why.

    Args:
        index: Position in the input, from 0.
        role: The message's own role; the entry's kind in the wire form if it has no role.
        fate: What happened to it.
        reason: Why it was changed or evicted; None if it was kept unchanged.
        block: Name of the block it belongs to; "history" in `fit`.
        label: Its label in the block, if it has one.
        unit: Index of the first message of its unit; its own if it is alone.
        state: Whether it is pinned, held or free.
        tokens_before: Size before the fit; None if the fit did not need to know it.
        tokens_after: Size in the output; None for an evicted message.
        call_ids: Ids of the calls it makes or answers, in order.
        tool_names: The tools called or answered, one for each of `call_ids`; empty if unknown.
        results: One row for each result that is a part of the message, in order; empty if a result is a
            message of its own, which this row describes.
        text: Its text, if available. It is written only with `include_text=True`, and is not compared.
    """

    index: int
    """Position in the input, from 0."""
    role: str
    """The message's own role; the entry's kind in the wire form if it has no role."""
    fate: Fate
    reason: Reason | None = None
    """Why it was changed or evicted; None if it was kept unchanged."""
    block: str = "history"
    """Name of the block it belongs to; "history" in `fit`."""
    label: str | None = None
    """Its label in the block, if it has one."""
    unit: int
    """Index of the first message of its unit; its own if it is alone."""
    state: State = "free"
    tokens_before: int | None = None
    """Size before the fit; None if the fit did not need to know it."""
    tokens_after: int | None = None
    """Size in the output; None for an evicted message."""
    call_ids: tuple[str, ...] = ()
    """Ids of the calls it makes or answers, in order."""
    tool_names: tuple[str, ...] = ()
    """The tools called or answered, one for each of `call_ids`; empty if unknown."""
    results: tuple[ResultRow, ...] = ()
    """One row for each result that is a part of the message, in order; empty if a result is a message of its
    own, which this row describes.
    """
    text: str | None = field(default=None, repr=False, compare=False)
    """Its text, if available. It is written only with `include_text=True`, and is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What happened to a run of neighbors with the same fate, or to one message.

    They have the same fate, reason and block, and either all or none are pinned. A changed message is a run
    by itself.

    Args:
        first: Position of the first message in the input, from 0.
        last: Position of the last message.
        message_count: Number of messages.
        fate: What happened to them.
        reason: Why they were changed or evicted; None if they were kept unchanged.
        block: Name of the block they belong to; "history" in `fit`.
        state: "pinned" if they are pinned; otherwise the state of the first message.
        tokens_before: Their size before the fit; None if the fit did not need to know all of it.
        tokens_after: Their size in the output; None for evicted messages.
        roles: Their roles, in order, if there are one or two; empty if there are more.
        labels: Their labels in the block, if they have any.
        tools: How often each tool is called or answered, the most frequent tool first.
        answers: True if there are no calls among them, only results of these tools.
        text: Text of a run of one message, if available. It is not compared, and never written.
    """

    first: int
    """Position of the first message in the input, from 0."""
    last: int
    """Position of the last message."""
    message_count: int
    """Number of messages."""
    fate: Fate
    """What happened to them."""
    reason: Reason | None = None
    """Why they were changed or evicted; None if they were kept unchanged."""
    block: str = "history"
    """Name of the block they belong to; "history" in `fit`."""
    state: State = "free"
    """"pinned" if they are pinned; otherwise the state of the first message."""
    tokens_before: int | None = None
    """Their size before the fit; None if the fit did not need to know all of it."""
    tokens_after: int | None = None
    """Their size in the output; None for evicted messages."""
    roles: tuple[str, ...] = ()
    """Their roles, in order, if there are one or two; empty if there are more."""
    labels: tuple[str, ...] = ()
    """Their labels in the block, if they have any."""
    tools: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How often each tool is called or answered, the most frequent tool first."""
    answers: bool = False
    """True if there are no calls among them, only results of these tools."""
    text: str | None = field(default=None, repr=False, compare=False)
    """Text of a run of one message, if available. It is not compared, and never written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictedUnit:
    """An evicted unit, and what is known of the room it needs.

    Args:
        block: Name of the block it belongs to; "history" in `fit`.
        first: Position of its first message in the input, from 0.
        last: Position of the last message.
        message_count: Number of messages.
        tokens: Their size, as far as known.
        counted: True if this is the whole size; False if it is a lower bound.
        heaviest: The heaviest of them, as far as sizes are known.
    """

    block: str
    """Name of the block it belongs to; "history" in `fit`."""
    first: int
    """Position of its first message in the input, from 0."""
    last: int
    """Position of the last message."""
    message_count: int
    """Number of messages."""
    tokens: int
    """Their size, as far as known."""
    counted: bool
    """True if this is the whole size; False if it is a lower bound."""
    heaviest: RunRow
    """The heaviest of them, as far as sizes are known."""


HEAVY = 4
"""A message is heavy that takes this part of the room, or more."""

NAMED_ROLES = 2
"""Of so many messages a run says the roles."""
_ANSWERING_ROLES = frozenset({"tool", "user", "function"})


def runs_of(rows: Iterable[MessageRow], /) -> list[RunRow]:
    """Group neighbours that fared alike."""
    return [_run_of(tuple(run)) for _, run in groupby(rows, key=_fate_of)]


def run_of_one(row: MessageRow, /) -> RunRow:
    """Return the run of a single message."""
    return _run_of((row,))


def _fate_of(row: MessageRow) -> tuple[object, ...]:
    """Return what neighbours have alike that are one run."""
    own = row.index if row.fate == "changed" else None
    return row.fate, row.reason, row.block, row.state == "pinned", own


def _run_of(rows: tuple[MessageRow, ...]) -> RunRow:
    first = rows[0]
    # A call and its result name the same call; ids are used again in later units.
    named = {
        (row.unit, call_id): name
        for row in rows
        if row.tool_names
        for call_id, name in zip(row.call_ids, row.tool_names, strict=False)
    }
    return RunRow(
        first=first.index,
        last=rows[-1].index,
        message_count=len(rows),
        fate=first.fate,
        reason=first.reason,
        block=first.block,
        state=first.state,
        tokens_before=sum_of([row.tokens_before for row in rows]),
        tokens_after=None if first.fate == "evicted" else sum_of([row.tokens_after for row in rows]),
        roles=tuple([row.role for row in rows]) if len(rows) <= NAMED_ROLES else (),
        labels=tuple([row.label for row in rows if row.label]),
        tools=dict(Counter(named.values()).most_common()),
        answers=bool(named) and all(map(is_answer, [row.role for row in rows])),
        text=first.text if len(rows) == 1 else None,
    )


def is_answer(role: str, /) -> bool:
    """Tell whether what has a role may hold results, and no calls."""
    return role in _ANSWERING_ROLES or role.endswith("_output")


def sum_of(sizes: Sequence[int | None], /) -> int | None:
    """Add up; None if one is not known."""
    return None if None in sizes else sum(size for size in sizes if size is not None)


class RunRows(Sequence[MessageRow]):
    """Rows of messages of which the runs are known."""

    __slots__ = ()

    def runs(self) -> list[RunRow]:
        """Group neighbours that fared alike."""
        raise NotImplementedError


class LiveRows(RunRows):
    """Rows of a fit that is at hand: they know the texts, and can count what the fit did not need to."""

    __slots__ = ()

    def with_text(self) -> list[MessageRow]:
        """Return the rows, each with the text of its message."""
        raise NotImplementedError

    def counted_report(self) -> Report | None:
        """Make the report without unknown numbers; None where to count them costs too much."""
        raise NotImplementedError


class OnlyRuns(RunRows):
    """Rows that nobody wrote down: of a report that was read back from runs."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[RunRow]) -> None:
        self._runs = tuple(runs)

    def runs(self) -> list[RunRow]:
        """Return the runs that were read."""
        return list(self._runs)

    def __len__(self) -> int:
        return sum(run.message_count for run in self._runs)

    @overload
    def __getitem__(self, index: int) -> MessageRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MessageRow]: ...
    def __getitem__(self, index: int | slice) -> MessageRow | Sequence[MessageRow]:
        """Refuse.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(
            "this report was written by runs and has no rows of single messages: read report.runs, or write"
            ' it with to_dict(rows="messages")'
        )

    def __reduce__(self) -> tuple[object, ...]:
        return OnlyRuns, (self._runs,)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertedRow:
    """A message that trimtab inserted into the output; not one of the caller's.

    Args:
        position: Index in the output, from 0.
        role: Its role.
        tokens: Its size.
        why: Its purpose in a few words, such as "summary of 40 messages".
    """

    position: int
    """Index in the output, from 0."""
    role: str
    tokens: int
    why: str
    """Its purpose in a few words, such as "summary of 40 messages"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCheck:
    """What became of the exact values that a summary must keep, in numbers.

    Args:
        values: Values of the replaced messages, and of the summary before.
        missing: Those of them that the text of the summarizer does not have word for word.
        restated: Those of the missing ones that are in the line behind the text.
        lost: Those of the missing ones for which there was no room.
        invented: Values in the text of the summarizer that nothing it replaces has.
    """

    values: int = 0
    """Values of the replaced messages, and of the summary before."""
    missing: int = 0
    """Those of them that the text of the summarizer does not have word for word."""
    restated: int = 0
    """Those of the missing ones that are in the line behind the text."""
    lost: int = 0
    """Those of the missing ones for which there was no room."""
    invented: int = 0
    """Values in the text of the summarizer that nothing it replaces has."""

    def to_dict(self) -> dict[str, int]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCounts:
    """Rules of a session, in numbers.

    Args:
        in_force: Rules that hold: the host's, and those that were found.
        in_view: Those of them that a message in view says.
        restated: Those of them that the view restates.
        hidden: Those of them for which there is no room in view.
        superseded: Rules that a later one replaces.
    """

    in_force: int = 0
    """Rules that hold: the host's, and those that were found."""
    in_view: int = 0
    """Those of them that a message in view says."""
    restated: int = 0
    """Those of them that the view restates."""
    hidden: int = 0
    """Those of them for which there is no room in view."""
    superseded: int = 0
    """Rules that a later one replaces."""

    def to_dict(self) -> dict[str, int]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A result with lines that refer to an earlier result of the request.

    Args:
        index: Position in the input of the message with the reference, from 0.
        source: Position in the input of the message with the earlier result.
    """

    index: int
    """Position in the input of the message with the reference, from 0."""
    source: int
    """Position in the input of the message with the earlier result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenResults:
    """What `compact` did to the results of a request.

    Args:
        texts: Texts of results in the output that are written otherwise.
        references: Which results refer to which; each pair once.
        saved_tokens: Tokens saved by step: "repeats", "json", or the name of a `Kind`; None if the counter
            tells only totals, or is async and nothing asked it. They are counted, before and after.
    """

    texts: int = 0
    """Texts of results in the output that are written otherwise."""
    references: tuple[ReferenceRow, ...] = ()
    """Which results refer to which; each pair once."""
    saved_tokens: Mapping[str, int] | None = None
    """Tokens saved by step: "repeats", "json", or the name of a `Kind`; None if the counter tells only
    totals, or is async and nothing asked it. They are counted, before and after.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """What happened to one block.

    Args:
        name: Name of the block.
        limit_tokens: Maximum tokens: its cap, or the room that was unused at its turn.
        cap_tokens: Its cap, the smaller of `max_tokens` and `max_ratio`; None if it has none.
        floor_tokens: Its floor, the larger of `min_tokens` and `min_ratio`; 0 if it has none.
        offered_tokens: The limit of its strategy: in a `Context`, at most what the block needs.
        tokens_before: Size before the fit; None if the fit did not need to know it.
        tokens_after: Size in the output; at most the limit when the report says it fits.
        actions: Actions, in order.
        kept_message_count: Number of messages that the output has unchanged.
        changed_message_count: Number of messages that the output has in a changed form.
        evicted_message_count: Messages that are not sent.
        floor_missed_tokens: Missing tokens of the block's floor; 0 if the floor was kept.
        freed_tokens: Tokens that another block freed when it evicted a shared unit; not offered again.
    """

    name: str
    limit_tokens: int
    """Maximum tokens: its cap, or the room that was unused at its turn."""
    cap_tokens: int | None = None
    """Its cap, the smaller of `max_tokens` and `max_ratio`; None if it has none."""
    floor_tokens: int = 0
    """Its floor, the larger of `min_tokens` and `min_ratio`; 0 if it has none."""
    offered_tokens: int
    """The limit of its strategy: in a `Context`, at most what the block needs."""
    tokens_before: int | None = None
    """Size before the fit; None if the fit did not need to know it."""
    tokens_after: int
    """Size in the output; at most the limit when the report says it fits."""
    actions: tuple[Action, ...] = ()
    """Actions, in order."""
    kept_message_count: int
    """Number of messages that the output has unchanged."""
    changed_message_count: int = 0
    evicted_message_count: int = 0
    floor_missed_tokens: int = 0
    """Missing tokens of the block's floor; 0 if the floor was kept."""
    freed_tokens: int = 0
    """Tokens that another block freed when it evicted a shared unit; not offered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something a provider would refuse or, with `fault=False`, something to know.

    Args:
        index: Position of the message, from 0; None if it concerns the request rather than a single message.
        rule: One word for the reason: a rule about calls and results, or what is wrong with the message's
            shape.
        message: What is wrong, in our words and in the provider's.
        call_id: Id of the call concerned, if any.
        fault: False for an open call, whose result can still come, and for a result whose call the provider
            may have stored.
    """

    index: int | None
    """Position of the message, from 0; None if it concerns the request rather than a single message."""
    rule: str
    """One word for the reason: a rule about calls and results, or what is wrong with the message's shape."""
    message: str
    """What is wrong, in our words and in the provider's."""
    call_id: str | None = None
    """Id of the call concerned, if any."""
    fault: bool = True
    """False for an open call, whose result can still come, and for a result whose call the provider may have
    stored.
    """
