"""Reports of fits: what was kept and evicted per block and per message, and why.

A report is made without its rows: they are built when read. It has indices, roles, ids, tool names
and numbers; it has text of messages only if `include_text=True` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from trimtab._shared.checks import check_whole, unknown_name
from trimtab._shared.lazy import public_dir
from trimtab.errors import ConfigurationError, HeaviestMessage
from trimtab.report.data import from_data, runs_from, to_data
from trimtab.report.rows import (
    ACTIONS,
    FATES,
    REASONS,
    ROWS,
    STATES,
    Action,
    BlockReport,
    EvictedUnit,
    Fate,
    InsertedRow,
    LiveRows,
    MessageRow,
    OnlyRuns,
    Reason,
    ReferenceRow,
    ResultRow,
    RowsOf,
    RuleCounts,
    RunRow,
    RunRows,
    State,
    SummaryCheck,
    Violation,
    WrittenResults,
    runs_of,
)

__all__ = [
    "ACTIONS",
    "FATES",
    "REASONS",
    "SCHEMA",
    "STATES",
    "Action",
    "BlockReport",
    "EvictedUnit",
    "Fate",
    "HeaviestMessage",
    "InsertedRow",
    "MessageRow",
    "Reason",
    "ReferenceRow",
    "Report",
    "ResultRow",
    "RuleCounts",
    "RunRow",
    "State",
    "SummaryCheck",
    "Violation",
    "WrittenResults",
]

__dir__ = public_dir(globals())

SCHEMA = 2
"""Version of the form that `Report.to_dict` writes; raised when a reader of the old form would misread it.

Since version 2 there may be `runs` in place of `messages`.
"""
_READ = (1, SCHEMA)
"""The versions that are read."""

_MIN_COLUMNS = 60
_DEFAULT_COLUMNS = 80


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Report:
    """What a fit did, in numbers that add up; unknown is None, never a guess.

    Reading or comparing a report, or writing it as data, calls no counter. Showing it to people, as text
    or as a page, counts the request before the fit, if the fit used one of trimtab's own counters and
    the request is short (up to 300,000 characters).

    Args:
        format: Name of the wire form.
        model: The requested model; None if none was named.
        counter: Name of the counter.
        exact: True if the whole request is charged as bills of its model were: its tokenizer is known, and
            each feature of the request was billed as counted. False for an estimate.
        shares: True if the counter gives only one total: the sizes of parts are shares of the total, not
            counts.
        window_tokens: The window that the budget is based on.
        model_window_tokens: The known window of the model; None if it is unknown, or no model was named.
        output_reserve_tokens: Tokens kept for the answer.
        overhead_tokens: Tokens kept for what trimtab does not see.
        margin_tokens: Tokens kept free because counts may be off: how far the bill may be above the count.
        over_margin_tokens: How far the bill may be below `tokens_after`; None if the counter does not say.
        input_tokens: The input room: window less output reserve, overhead and margin.
        fixed_tokens: The charge in addition to the messages: system text outside them, tools, and framing of
            the request.
        system_tokens: Tokens of system text among the fixed tokens; None if it was not counted separately.
        tools_tokens: Tokens of tool and output schemas among the fixed tokens; None if they were not counted
            separately.
        rules_tokens: Tokens of the message that shows the host's rules; it is among the messages.
        tokens_before: The whole request before the fit; None if the fit did not need to know it.
        tokens_after: The whole request after the fit: the messages and the fixed tokens, each counted once.
        fits: True if `tokens_after` is within `input_tokens` and every block kept its limit.
        kept_message_count: Number of input messages that the output has unchanged.
        changed_message_count: Number of input messages that the output has in a changed form.
        evicted_message_count: Number of input messages that are not sent.
        blocks: The blocks in the order of the output; one, "history", for `fit`.
        messages: One row per message of the input, in order; rows may be built when they are read.
        inserted: The messages that trimtab inserted, in order.
        heaviest: The messages that take at least a quarter of the input room each, heaviest first, as far as
            sizes are known; computed when read.
        newest_evicted: For each block, the newest unit that was evicted, starting with the block of the
            highest rank; a block without any counted message has none. Computed when read.
        blocks_dropped: Names of blocks that were dropped entirely.
        planned: True if a summary is still to be written: its cap is reserved for it, and a note replaces its
            text.
        values: What became of the exact values that the summaries in the request must keep, added up; None if
            none was checked.
        rules: Rules of a session, in numbers; None if it has none.
        written: What `compact` did to results; None if it was not asked for.
        floors_ignored: True if the floors of the blocks together exceeded the room and were not kept.
        violations: What a provider would refuse in the input, and open calls, which are not faults; computed
            when read.
        notes: Further notes for the reader, one sentence each.

    Example:
        >>> report = Report(format="openai_chat", counter="chars", exact=False, window_tokens=100,
        ...     input_tokens=90, output_reserve_tokens=10, tokens_after=45, fits=True, kept_message_count=3)
        >>> report.remaining_tokens
        45
        >>> Report.from_dict(report.to_dict()) == report
        True
    """

    format: str
    """Name of the wire form."""
    model: str | None = None
    """The requested model; None if none was named."""
    counter: str
    """Name of the counter."""
    exact: bool
    """True if the whole request is charged as bills of its model were: its tokenizer is known, and each
    feature of the request was billed as counted. False for an estimate.
    """
    shares: bool = False
    """True if the counter gives only one total: the sizes of parts are shares of the total, not counts."""
    window_tokens: int
    """The window that the budget is based on."""
    model_window_tokens: int | None = None
    """The known window of the model; None if it is unknown, or no model was named."""
    output_reserve_tokens: int = 0
    overhead_tokens: int = 0
    margin_tokens: int = 0
    """Tokens kept free because counts may be off: how far the bill may be above the count."""
    over_margin_tokens: int | None = None
    """How far the bill may be below `tokens_after`; None if the counter does not say."""
    input_tokens: int
    """The input room: window less output reserve, overhead and margin."""
    fixed_tokens: int = 0
    """The charge in addition to the messages: system text outside them, tools, and framing of the request."""
    system_tokens: int | None = None
    """Tokens of system text among the fixed tokens; None if it was not counted separately."""
    tools_tokens: int | None = None
    """Tokens of tool and output schemas among the fixed tokens; None if they were not counted separately."""
    rules_tokens: int = 0
    """Tokens of the message that shows the host's rules; it is among the messages."""
    tokens_before: int | None = None
    """The whole request before the fit; None if the fit did not need to know it."""
    tokens_after: int
    """The whole request after the fit: the messages and the fixed tokens, each counted once."""
    fits: bool
    """True if `tokens_after` is within `input_tokens` and every block kept its limit."""
    kept_message_count: int
    """Number of input messages that the output has unchanged."""
    changed_message_count: int = 0
    evicted_message_count: int = 0
    blocks: tuple[BlockReport, ...] = ()
    """The blocks in the order of the output; one, "history", for `fit`."""
    messages: Sequence[MessageRow] = ()
    """One row per message of the input, in order; rows may be built when they are read."""
    inserted: tuple[InsertedRow, ...] = ()
    """The messages that trimtab inserted, in order."""
    heaviest: Sequence[RunRow] = ()
    """The messages that take at least a quarter of the input room each, heaviest first, as far as sizes are
    known; computed when read.
    """
    newest_evicted: Sequence[EvictedUnit] = ()
    """For each block, the newest unit that was evicted, starting with the block of the highest rank; a block
    without any counted message has none. Computed when read.
    """
    blocks_dropped: tuple[str, ...] = ()
    """Names of blocks that were dropped entirely."""
    planned: bool = False
    """True if a summary is still to be written: its cap is reserved for it, and a note replaces its text."""
    values: SummaryCheck | None = None
    """What became of the exact values that the summaries in the request must keep, added up; None if none was
    checked.
    """
    rules: RuleCounts | None = None
    """Rules of a session, in numbers; None if it has none."""
    written: WrittenResults | None = None
    """What `compact` did to results; None if it was not asked for."""
    floors_ignored: bool = False
    """True if the floors of the blocks together exceeded the room and were not kept."""
    violations: Sequence[Violation] = ()
    """What a provider would refuse in the input, and open calls, which are not faults; computed when read."""
    notes: tuple[str, ...] = ()
    """Further notes for the reader, one sentence each."""

    @property
    def remaining_tokens(self) -> int:
        """Unused tokens of the room; if the request is over budget, the excess below zero."""
        return self.input_tokens - self.tokens_after

    @property
    def outcome(self) -> str:
        """One sentence on how good the fit is.

        It says how much was kept, which message takes the room, and how much room is unused compared with the
        newest evicted unit. It uses known numbers only; nothing is counted for it.
        """
        from trimtab.report.text import outcome_of  # not above: only who reads it needs it

        return outcome_of(self)

    @property
    def total_message_count(self) -> int:
        """The number of messages in the input."""
        return self.kept_message_count + self.changed_message_count + self.evicted_message_count

    @property
    def compacted(self) -> bool:
        """True if a message was evicted, or was changed by more than a cache mark."""
        if self.evicted_message_count or not self.changed_message_count:
            return self.evicted_message_count > 0
        return any(run.fate == "changed" and run.reason != "cache_mark" for run in self.runs)

    @property
    def runs(self) -> Sequence[RunRow]:
        """One row for each run of neighbors with the same fate, reason and block.

        If the report is of a fit in this process, no row is built for each message.
        """
        rows = self.messages
        return rows.runs() if isinstance(rows, RunRows) else runs_of(rows)

    def block(self, name: str, /) -> BlockReport:
        """Return the report of one block by name; `fit` has one block, "history".

        Args:
            name: Name of the block.

        Raises:
            UnknownNameError: No block of the request has this name; a block without content is not in a
                request.
        """
        for entry in self.blocks:
            if entry.name == name:
                return entry
        names = [entry.name for entry in self.blocks]
        there = ", ".join(names) or "none"
        raise unknown_name(f"the report has no block {name!r}; there are: {there}", name, names)

    def to_dict(self, *, rows: RowsOf = "runs", include_text: bool = False) -> dict[str, Any]:
        """Write the report as plain data for JSON.

        Also contains `schema`, `remaining_tokens` and `outcome`.

        Args:
            rows: "runs": neighbors with the same fate share a row under `runs`, which stays short for a long
                conversation; "messages": each message has its own row under `messages`.
            include_text: Whether to write the text of messages as well, if it is available; only in rows of
                messages.

        Raises:
            ConfigurationError: `rows` is neither, or this report was read from runs and has no rows of
                messages.
        """
        if rows not in ROWS:
            raise ConfigurationError(f'rows must be "runs" or "messages", not {rows!r}')
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "remaining_tokens": self.remaining_tokens,
            "outcome": self.outcome,
        }
        if rows == "messages" or include_text:
            data.update(to_data(_with_text(self) if include_text else self, include_text=include_text))
            return data
        data.update(to_data(replace(self, messages=()), include_text=False))
        del data["messages"]
        data["runs"] = [to_data(run, include_text=False) for run in self.runs]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self:
        """Read what `to_dict` wrote, even after a round trip through JSON.

        A report that was written by runs has `runs`, but no `messages`.

        Args:
            data: The mapping that `to_dict` returned.

        Raises:
            ConfigurationError: The schema is another one, a key is unknown or missing, a value is of the
                wrong kind, or the remaining tokens contradict the totals; the error names the key.
        """
        if not isinstance(data, Mapping):
            raise ConfigurationError(f"a report must be a mapping, not {type(data).__name__}")
        values = dict(data)
        schema = values.pop("schema", None)
        if schema not in _READ or isinstance(schema, bool):
            known = " and ".join(map(str, _READ))
            raise ConfigurationError(f"'schema' of the report is {schema!r}; this trimtab reads {known}")
        remaining_tokens = values.pop("remaining_tokens", None)
        values.pop("outcome", None)
        runs = values.pop("runs", None)
        if runs is not None and "messages" in values:
            raise ConfigurationError("a report has either 'runs' or 'messages'")
        report = from_data(cls, values, where="")
        if runs is not None:
            report = replace(report, messages=OnlyRuns(runs_from(runs)))
        if remaining_tokens not in (None, report.remaining_tokens):
            raise ConfigurationError(
                f"'remaining_tokens' is {remaining_tokens!r}, but 'input_tokens' less 'tokens_after' is"
                f" {report.remaining_tokens}"
            )
        return report

    def to_text(self, *, width: int | None = None, colour: bool = False, include_text: bool = False) -> str:
        """Write the report as text for a terminal.

        Neighbors with the same fate and reason share a line; a long list is shortened in the middle.

        Args:
            width: Maximum length of a line in columns; None is 80, so equal reports look the same everywhere.
                A width below 60 becomes 60.
            colour: Whether to mark verdict, changes and evictions with ANSI colours.
            include_text: Whether to show the beginning of the text of messages that have their own line.

        Raises:
            ConfigurationError: `width` is not a whole number.
        """
        if width is not None:
            width = check_whole("width", width)
        from trimtab.report.text import render  # not above: only who reads it needs it

        columns = max(_DEFAULT_COLUMNS if width is None else width, _MIN_COLUMNS)
        shown = _for_reading(self, include_text=include_text)
        return render(shown, width=columns, colour=colour, include_text=include_text)

    def to_html(self, *, include_text: bool = False, title: str = "trimtab report", source: str = "") -> str:
        """Write the report as an HTML page that needs no script and no other file.

        The page shows how the budget is used and the part of each block, and all messages as a strip with
        their fates and reasons. It works in light and dark mode and on a phone; its head shows the model, the
        time and the version of trimtab.

        Args:
            include_text: Whether to show the text of messages that have their own line, if it is available.
            title: Heading of the page.
            source: Origin of the messages, such as a file name, shown in the head of the page.

        Example:
            >>> from trimtab import CharCounter, fit
            >>> messages = [{"role": "user", "content": f"question {n}"} for n in range(9)]
            >>> page = fit(messages, budget=20, counter=CharCounter()).report.to_html()
            >>> page.startswith("<!doctype html>"), "<script" in page
            (True, False)
        """
        from trimtab.report.html import page  # not above: only who reads it needs it

        shown = _for_reading(self, include_text=include_text)
        return page(shown, include_text=include_text, title=title, source=source)

    def _repr_html_(self) -> str:
        """Show the report in a notebook; no text of messages."""
        from trimtab.report.html import fragment

        return fragment(_for_reading(self, include_text=False), include_text=False)

    def __str__(self) -> str:
        """Give the text form."""
        return self.to_text()

    def __repr__(self) -> str:
        """Say the totals; the rows are not read."""
        return (
            f"<Report fits={self.fits} tokens={self.tokens_after}/{self.input_tokens}"
            f" kept={self.kept_message_count} changed={self.changed_message_count}"
            f" evicted={self.evicted_message_count}>"
        )

    def __eq__(self, other: object) -> bool:
        """Compare by value, whatever kind of sequence holds the rows."""
        if not isinstance(other, Report):
            return NotImplemented
        by_run = any(isinstance(one.messages, OnlyRuns) for one in (self, other))
        rows: RowsOf = "runs" if by_run else "messages"
        return self.to_dict(rows=rows) == other.to_dict(rows=rows)

    def __hash__(self) -> int:
        """Hash the totals, so that rows need not be built."""
        return hash(
            (self.input_tokens, self.tokens_after, self.kept_message_count, self.evicted_message_count)
        )


def _with_text(report: Report) -> Report:
    """Return the report with texts in its rows, where rows that are built when read can add them."""
    rows = report.messages
    return replace(report, messages=rows.with_text()) if isinstance(rows, LiveRows) else report


def _for_reading(report: Report, *, include_text: bool) -> Report:
    """Return the report as people are shown it: what was there before is counted, unless that costs much."""
    if report.tokens_before is None and isinstance(report.messages, LiveRows):
        report = report.messages.counted_report() or report
    return _with_text(report) if include_text else report
