"""What the bench prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from aims import Aim
from cases import FLOOR_TEXT, LANGCHAIN, PLAIN, TRIMTAB, Case, Row
from replay import Replayed

if TYPE_CHECKING:
    from options import Option
    from ratios import Ratio

SUSPICIOUS = 0.8
"""Of the floor: texts that repeat (function names) save some of it, a warm cache nearly all."""


def of_case(case: Case) -> Iterator[str]:
    """Yield the lines of one case."""
    yield ""
    yield f"{case.messages:,} messages, {case.tokens:,} tokens, into {case.budget:,}"
    yield f"  {'':<28}{'ms':>9}{'x plain':>10}{'faster than':>13}{'valid':>7}{'within':>8}{'share of':>10}"
    yield f"  {'':<28}{'':>9}{'loop':>10}{'langchain':>13}{'':>7}{'budget':>8}{'budget':>10}"
    for row in case.rows:
        yield _row(case, row)
    below = case.ratio(TRIMTAB, FLOOR_TEXT)
    if below is not None and below < SUSPICIOUS:
        yield f"  ! trimtab takes {below:.2f} of the time of tokenising what is kept: is its cache empty?"
    if case.total_agrees is False:
        yield "  ! trimtab's report gives another total than the recount"


def _row(case: Case, row: Row) -> str:
    cells = f"  {row.name:<28}{_milliseconds(row):>9}{_times(case.ratio(row.name, PLAIN)):>10}"
    cells += f"{_times(case.ratio(LANGCHAIN, row.name)):>13}{_verdict(row)}"
    return f"{cells}  {_remarks(row)}".rstrip()


def _milliseconds(row: Row) -> str:
    if row.milliseconds is None:
        return row.note.split(";")[0] if row.note.startswith(">") else "-"
    if row.milliseconds >= 10_000:
        return f"{row.milliseconds / 1000:.1f} s"
    return f"{row.milliseconds:.3f}" if row.milliseconds < 10 else f"{row.milliseconds:,.1f}"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f} x" if ratio < 10 else f"{ratio:,.0f} x"


def _verdict(row: Row) -> str:
    if row.verdict is None:
        return f"{'-':>7}{'-':>8}{'-':>10}"
    valid, within = _yes(row.verdict.valid), _yes(row.verdict.within_budget)
    return f"{valid:>7}{within:>8}{row.verdict.budget_share:>10.0%}"


def _remarks(row: Row) -> str:
    remarks = list(row.verdict.remarks) if row.verdict else []
    if row.note:
        remarks.append(row.note.partition("; ")[2] if row.note.startswith(">") else row.note)
    return "; ".join(remarks)


def _yes(value: bool) -> str:
    return "yes" if value else "NO"


def of_first_calls(budget: int, batches: list[dict[str, float]]) -> Iterator[str]:
    """Yield one line a batch."""
    for number, batch in enumerate(batches, 1):
        ratio = batch[TRIMTAB] / batch[PLAIN]
        yield (
            f"  into {budget:>7,}, batch {number}: trimtab {batch[TRIMTAB]:.3f} ms, "
            f"plain loop {batch[PLAIN]:.3f} ms, {ratio:.2f} x"
        )


def of_replay(budget: int, replayed: list[Replayed]) -> Iterator[str]:
    """Yield one line a contender."""
    base = next(one.seconds for one in replayed if one.name == PLAIN)
    for one in replayed:
        wrong = f"invalid {one.invalid}, over budget {one.over_budget} of {one.looked_at} looked at"
        yield (
            f"  into {budget:>7,}: {one.name:<12}{one.seconds * 1000:>9.1f} ms "
            f"{one.seconds / one.calls * 1e6:>8.1f} us a call {one.seconds / base:>6.2f} x   {wrong}"
        )


RATIO_HEAD = f"  {'':<46}{'into':>8}{'ms':>10}{'ratio':>10}{'aim':>6}"


def of_ratio(one: Ratio) -> str:
    """Return the line of one row at one budget."""
    into = f"{one.budget:,}" if one.budget else ""
    if one.found is None:
        return f"  {one.name:<46}{into:>8}{'-':>10}{'-':>10}{one.aim:>6g}  {one.note}"
    verdict = "holds" if one.reached else "MISSED"
    took = "-" if one.milliseconds is None else f"{one.milliseconds:.3f}"
    return (
        f"  {one.name:<46}{into:>8}{took:>10}{one.found:>10.2f}{one.aim:>6g}  {verdict} ({one.pairs} pairs)"
    )


OPTION_HEAD = f"  {'':<38}{'1,000 ms':>10}{'10,000 ms':>11}{'x default':>11}{'growth':>8}"


def of_option(one: Option) -> str:
    """Return the line of one way to fit."""
    small, large = one.milliseconds
    verdict = "reads all" if one.reads_all else "GROWS" if one.growth > 2 else ""
    return (
        f"  {one.name:<38}{small:>10.2f}{large:>11.2f}{large / one.usual:>11.1f}{one.growth:>8.1f}  {verdict}"
    )


def of_aims(aims: Iterable[Aim]) -> Iterator[str]:
    """Yield one line an aim."""
    for aim in aims:
        yield f"  {'reached' if aim.reached else 'MISSED ':<8} {aim.text}: {aim.found}"
