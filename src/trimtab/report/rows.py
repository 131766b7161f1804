"""The rows of a report: messages, what was inserted, blocks, violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Literal, get_args, overload

from trimtab.errors import ConfigurationError

if TYPE_CHECKING:
    from trimtab.report import Report

Fate = Literal["kept", "changed", "evicted"]
"""What became of a message of the input."""

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
]
"""Why a message was changed or evicted; a closed list."""

State = Literal["pinned", "held", "free"]
"""Pinned neither leaves nor changes, held does not leave but may be shortened, free is the rest."""

RowsOf = Literal["runs", "messages"]
"""What a row of written data is of: neighbours that fared alike, or one message."""

Action = str
"""What was done to a block: one of `ACTIONS`, or the name of a user's strategy."""

FATES: tuple[Fate, ...] = get_args(Fate)
"""Every fate there is."""
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Every reason there is."""
ROWS: tuple[RowsOf, ...] = get_args(RowsOf)
"""Whatever a row of written data may be of."""
STATES: tuple[State, ...] = get_args(State)
"""Every state there is."""
ACTIONS: tuple[Action, ...] = (
    "kept",
    "evicted",
    "shortened",
    "cleared",
    "summarized",
    "dropped",
    "removed_by_callback",
)
"""The actions trimtab itself names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What became of one result inside a message.

    Args:
        call_id: Id of the call it answers.
        tool_name: The tool that gave it; "" where nobody knows.
        fate: What became of it; the row of its message says why.
    """

    call_id: str
    """Id of the call it answers."""
    tool_name: str = ""
    """The tool that gave it; "" where nobody knows."""
    fate: Fate
    """What became of it; the row of its message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """What became of one message of the input, and why.

    Args:
        index: Position in the input, from 0.
        role: The message's own role; what the wire form calls the entry where it has no role.
        fate: What became of it.
        reason: Why it was changed or evicted; None when it was kept as it is.
        block: Name of the block it belongs to; "history" in `fit`.
        label: The word its block has for it, where it was given one.
        unit: Index of the first message of its unit; its own where it stands alone.
        state: Whether it is pinned, held or free.
        tokens_before: Size as it came in; None where the fit did not need to know it.
        tokens_after: Size in the output; None for an evicted message, which is not in it.
        call_ids: Ids of the calls it makes or answers, in its order.
        tool_names: The tools called or answered, one for each of `call_ids`; empty where nobody knows.
        results: Of a message whose parts are results one row for each, in its order; empty where a result is
            a message of its own, and this row says it.
        text: Its text, if at hand. Leaves only with `include_text=True` and is no part of the value.
    """

    index: int
    """Position in the input, from 0."""
    role: str
    """The message's own role; what the wire form calls the entry where it has no role."""
    fate: Fate
    reason: Reason | None = None
    """Why it was changed or evicted; None when it was kept as it is."""
    block: str = "history"
    """Name of the block it belongs to; "history" in `fit`."""
    label: str | None = None
    """The word its block has for it, where it was given one."""
    unit: int
    """Index of the first message of its unit; its own where it stands alone."""
    state: State = "free"
    tokens_before: int | None = None
    """Size as it came in; None where the fit did not need to know it."""
    tokens_after: int | None = None
    """Size in the output; None for an evicted message, which is not in it."""
    call_ids: tuple[str, ...] = ()
    """Ids of the calls it makes or answers, in its order."""
    tool_names: tuple[str, ...] = ()
    """The tools called or answered, one for each of `call_ids`; empty where nobody knows."""
    results: tuple[ResultRow, ...] = ()
    """Of a message whose parts are results one row for each, in its order; empty where a result is a message
    of its own, and this row says it."""
    text: str | None = field(default=None, repr=False, compare=False)
    """Its text, if at hand. Leaves only with `include_text=True` and is no part of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What became of neighbours that fared alike: of many messages, or of one.

    They have the same fate, reason and block, and are pinned all or none. A changed message is alone.

    Args:
        first: Position of the first of them in the input, from 0.
        last: Position of the last of them.
        message_count: How many they are.
        fate: What became of them.
        reason: Why they were changed or evicted; None when they were kept as they are.
        block: Name of the block they belong to; "history" in `fit`.
        state: Whether they are pinned; of others the state of the first of them.
        tokens_before: Their size as they came in; None where the fit did not need to know all of it.
        tokens_after: Their size in the output; None for evicted messages, which are not in it.
        roles: Their roles, in order, where they are one or two; empty for more.
        labels: The words their block has for them, where it was given some.
        tools: How often each tool is called, or answered, by them; the one most often called comes first.
        answers: True if none of them calls: only results of these tools are among them.
        text: Text of a run of one message, if at hand. It is no part of the value, and never leaves.
    """

    first: int
    """Position of the first of them in the input, from 0."""
    last: int
    """Position of the last of them."""
    message_count: int
    """How many they are."""
    fate: Fate
    """What became of them."""
    reason: Reason | None = None
    """Why they were changed or evicted; None when they were kept as they are."""
    block: str = "history"
    """Name of the block they belong to; "history" in `fit`."""
    state: State = "free"
    """Whether they are pinned; of others the state of the first of them."""
    tokens_before: int | None = None
    """Their size as they came in; None where the fit did not need to know all of it."""
    tokens_after: int | None = None
    """Their size in the output; None for evicted messages, which are not in it."""
    roles: tuple[str, ...] = ()
    """Their roles, in order, where they are one or two; empty for more."""
    labels: tuple[str, ...] = ()
    """The words their block has for them, where it was given some."""
    tools: Mapping[str, int] = field(default_factory=dict, hash=False)
    """How often each tool is called, or answered, by them; the one most often called comes first."""
    answers: bool = False
    """True if none of them calls: only results of these tools are among them."""
    text: str | None = field(default=None, repr=False, compare=False)
    """Text of a run of one message, if at hand. It is no part of the value, and never leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictedUnit:
    """A unit that was evicted, and what is known of the room it needs.

    Args:
        block: Name of the block it belongs to; "history" in `fit`.
        first: Position of the first of its messages in the input, from 0.
        last: Position of the last of them.
        message_count: How many they are.
        tokens: Their size, as far as it is known.
        counted: True if that is all of it; False if it needs more.
        heaviest: The heaviest of them, as far as sizes are known.
    """

    block: str
    """Name of the block it belongs to; "history" in `fit`."""
    first: int
    """Position of the first of its messages in the input, from 0."""
    last: int
    """Position of the last of them."""
    message_count: int
    """How many they are."""
    tokens: int
    """Their size, as far as it is known."""
    counted: bool
    """True if that is all of it; False if it needs more."""
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
    """A message trimtab put into the output; it is none of the caller's.

    Args:
        position: Index in the output, from 0.
        role: Its role.
        tokens: Its size.
        why: What it is for, in a few words, as in "summary of 40 messages".
    """

    position: int
    """Index in the output, from 0."""
    role: str
    tokens: int
    why: str
    """What it is for, in a few words, as in "summary of 40 messages"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """What became of one block.

    Args:
        name: Name of the block.
        limit_tokens: Most tokens it might have: its cap, or the room that was unused when it was its turn.
        cap_tokens: Its cap, of `max_tokens` and `max_ratio` the smaller; None if it has none.
        floor_tokens: Its floor, of `min_tokens` and `min_ratio` the larger; 0 if it has none.
        offered_tokens: What its strategy had to keep to: of the limit, in a `Context`, no more than the
            block needs.
        tokens_before: Size before anything was done to it; None where the fit did not need to know it.
        tokens_after: Size in the output; at most the limit when the report says it fits.
        actions: What was done, in order.
        kept_message_count: Messages that came out as they were.
        changed_message_count: Messages that came out changed.
        evicted_message_count: Messages that are not sent.
        floor_missed_tokens: Tokens of the block's floor it could not be given; 0 when the floor held.
        freed_tokens: Tokens another block freed by letting go of a unit both shared; not given out again.
    """

    name: str
    limit_tokens: int
    """Most tokens it might have: its cap, or the room that was unused when it was its turn."""
    cap_tokens: int | None = None
    """Its cap, of `max_tokens` and `max_ratio` the smaller; None if it has none."""
    floor_tokens: int = 0
    """Its floor, of `min_tokens` and `min_ratio` the larger; 0 if it has none."""
    offered_tokens: int
    """What its strategy had to keep to: of the limit, in a `Context`, no more than the block needs."""
    tokens_before: int | None = None
    """Size before anything was done to it; None where the fit did not need to know it."""
    tokens_after: int
    """Size in the output; at most the limit when the report says it fits."""
    actions: tuple[Action, ...] = ()
    """What was done, in order."""
    kept_message_count: int
    """Messages that came out as they were."""
    changed_message_count: int = 0
    evicted_message_count: int = 0
    floor_missed_tokens: int = 0
    """Tokens of the block's floor it could not be given; 0 when the floor held."""
    freed_tokens: int = 0
    """Tokens another block freed by letting go of a unit both shared; not given out again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing a provider would refuse, or, with `fault=False`, one worth knowing.

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
