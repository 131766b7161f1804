"""The claims of SPEC A about one fit, each against the oracle; used on random and on real conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from tests.properties import oracle
from tests.properties.cases import Case
from trimtab import ClearToolResults, Fitted
from trimtab.report import MessageRow, Report
from trimtab.strategies import CUT_MARKER

PLACEHOLDER = ClearToolResults().placeholder


def within_the_budget(case: Case) -> None:
    """A1: a recount of what comes out is at most the input room."""
    if case.fitted is not None:
        assert case.count(case.fitted.messages) <= case.limit


def the_error_has_the_numbers(case: Case) -> None:
    """A1: what is needed is more than the limit, and the attempt is the best there was."""
    if case.error is None:
        return
    assert case.error.limit_tokens == case.limit
    assert case.error.needed_tokens is not None
    assert case.error.needed_tokens > case.limit
    assert case.error.needed_tokens == case.count(case.error.attempt.messages)
    assert str(case.limit) in str(case.error).replace(",", "")


def mapped(case: Case) -> list[int]:
    """Map each message that came out to its place in the input, checking A3 on the way."""
    rows = case.attempt.report.messages
    assert [row.index for row in rows] == list(range(len(case.messages)))
    stays = [row for row in rows if row.fate != "evicted"]
    output = case.attempt.messages
    assert len(stays) == len(output)
    for row, message in zip(stays, output, strict=True):
        original = case.messages[row.index]
        assert (message is original) == (row.fate == "kept")
        assert oracle.without_texts(message) == oracle.without_texts(original)
    return [row.index for row in stays]


def once_each_in_order(case: Case) -> None:
    """A3: kept, changed and evicted together are the input; the output is a part of it, in its order."""
    report = case.attempt.report
    places = mapped(case)
    assert places == sorted(set(places))
    fates = [row.fate for row in report.messages]
    assert fates.count("kept") == report.kept_message_count
    assert fates.count("changed") == report.changed_message_count
    assert fates.count("evicted") == report.evicted_message_count
    assert report.inserted == ()


def no_new_violation(case: Case) -> None:
    """A2: everything wrong with the output was wrong with the input, at the same message."""
    places, output = mapped(case), case.attempt.messages
    after = {(places[at], rule, call_id) for at, rule, call_id in oracle.violations(output)}
    assert after <= oracle.violations(case.messages)


def pinned_and_held_stay(case: Case) -> None:
    """A4: pinned messages come out themselves; held ones come out, perhaps shortened; never nothing."""
    places, output = mapped(case), case.attempt.messages
    there = dict(zip(places, output, strict=True))
    for group in oracle.groups(case.messages):
        for at in group.indices if group.state != "free" else ():
            assert at in there
            assert group.state == "held" or there[at] is case.messages[at]
    assert output


def units_stay_whole(case: Case) -> None:
    """A2, A4: a call and its results stay or leave together."""
    places = set(mapped(case))
    for group in oracle.groups(case.messages):
        assert places.issuperset(group.indices) or places.isdisjoint(group.indices)


def the_input_is_unchanged(case: Case) -> None:
    """A5: nothing of what the caller holds changed, nested or not."""
    assert case.messages == case.before


def what_fits_is_the_same(case: Case) -> None:
    """A6: a new list of the same objects; no strategy is asked."""
    if case.count(case.messages) > case.limit:
        assert len(case.answers) == 1
        return
    assert case.fitted is not None
    assert case.answers == []
    assert case.fitted.messages is not case.messages
    assert all(a is b for a, b in zip(case.fitted.messages, case.messages, strict=True))


def raised_exactly_when_the_strategy_gives_up(case: Case) -> None:
    """A4: fits=False of the strategy, unless the newest could be cut, and nothing else is an error."""
    gave_up = any(not answer.fits for answer in case.answers)
    if case.error is not None or not gave_up:
        assert (case.error is not None) == gave_up
        return
    assert not getattr(case.strategy, "has_last_word", False)
    rows = case.attempt.report.messages
    assert any(row.fate == "changed" and row.state == "held" for row in rows)


def charged(case: Case, messages: list[Any]) -> list[int]:
    """Count each message; what stands before a compaction of Claude's costs nothing."""
    free = oracle.unread(messages) if case.counter.format.name == "anthropic" else range(0)
    sizes = enumerate(map(case.counter.count_message, messages))
    return [0 if at in free else size for at, size in sizes]


def the_report_adds_up(case: Case) -> None:
    """A8: the total is a recount; sizes of what is there are numbers that add up to it."""
    report = case.attempt.report
    output = case.attempt.messages
    assert report.tokens_after == case.count(output)
    assert report.remaining_tokens == case.limit - report.tokens_after
    assert report.fits == (report.tokens_after <= case.limit)
    sizes = [row.tokens_after for row in report.messages if row.fate != "evicted"]
    assert None not in sizes
    for row in report.messages:
        assert (row.fate == "kept") == (row.reason is None)
        assert row.fate != "evicted" or row.tokens_after is None
    if hasattr(case.counter, "count_message"):
        assert sizes == charged(case, output)
        assert report.fixed_tokens + sum(size or 0 for size in sizes) == report.tokens_after
    else:
        assert report.shares


def count_all_agrees_with_a_recount(case: Case) -> None:
    """A8: nothing is None any more, and every number is what the counter says."""
    report = case.attempt.count_all()
    assert report.tokens_before is not None
    if not hasattr(case.counter, "count_message"):
        assert all(row.tokens_before is not None for row in report.messages)
        return
    sizes = charged(case, case.messages)
    assert [row.tokens_before for row in report.messages] == sizes
    assert report.tokens_before == case.count(case.messages)


def cuts_are_marked(case: Case) -> None:
    """A10, C6: a shortened text is its own head and tail around a marker, or a placeholder."""
    for place, message in zip(mapped(case), case.attempt.messages, strict=True):
        original = case.messages[place]
        if message is original:
            continue
        olds, news = texts_of(original), texts_of(message)
        if original["role"] == "tool" and len(news) < len(olds):  # a part of a result without text leaves
            assert news
            assert all(any(_is_cut_of(old, new) for old in (*olds, PLACEHOLDER)) for new in news)
            continue
        pairs = list(zip(olds, news, strict=True))
        assert any(old != new for old, new in pairs)
        cleared = any(_is_cut_of(PLACEHOLDER, new) for _, new in pairs)
        for old, new in pairs:
            assert _is_cut_of(old, new) or (cleared and (new == "" or _is_cut_of(PLACEHOLDER, new)))


def _is_cut_of(old: str, new: str) -> bool:
    """Tell whether a text is another, whole or with its middle, head or tail cut out."""
    head, marker, tail = new.partition(CUT_MARKER[:-1])
    handle, _, tail = tail.partition("]")
    told = handle == "" or handle.startswith("; all of it: result of ")
    return new == old or (marker != "" and told and old.startswith(head) and old.endswith(tail))


def texts_of(message: Any) -> list[str]:
    """List the texts of a message."""
    content = message["content"]
    if content is None:
        return []
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


EVERY = (
    within_the_budget,
    the_error_has_the_numbers,
    no_new_violation,
    once_each_in_order,
    pinned_and_held_stay,
    units_stay_whole,
    the_input_is_unchanged,
    what_fits_is_the_same,
    raised_exactly_when_the_strategy_gives_up,
    the_report_adds_up,
    count_all_agrees_with_a_recount,
    cuts_are_marked,
)
"""What holds for every fit, whatever the strategy and the counter."""

FREE_OF_FORM = (
    within_the_budget,
    the_error_has_the_numbers,
    the_input_is_unchanged,
    what_fits_is_the_same,
    raised_exactly_when_the_strategy_gives_up,
    the_report_adds_up,
    count_all_agrees_with_a_recount,
)
"""What holds in every wire form, whatever a message looks like there."""


def the_runs_are_those_of_the_rows(report: Report) -> None:
    """A8: what is told of neighbours together is what is told of each; it is asked for before any row is."""
    runs = report.to_dict()["runs"]
    assert runs == [_told_together(list(rows)) for _, rows in groupby(report.messages, key=_fate)]


def the_tally_is_that_of_the_rows(fitted: Fitted[Any]) -> None:
    """What is told of all messages together is the sum of what the rows tell."""
    tally, report = fitted.settlement.tally(), fitted.report
    assert tally.tokens_before == fitted.count_all().tokens_before
    assert tally.evicted_message_count == report.evicted_message_count
    assert tally.changed_message_count == report.changed_message_count
    assert tally.reasons == Counter([row.reason for row in report.messages if row.reason is not None])


def what_is_said_of_the_room_is_so(report: Report) -> None:
    """What takes a quarter of the room is named, and the newest unit that was evicted, if it was counted."""
    least = report.input_tokens / 4
    heavy = [row for row in report.messages if (row.tokens_after or 0) >= max(1, least)]
    assert {row.first for row in report.heaviest} == {row.index for row in heavy}
    assert [row.tokens_after for row in report.heaviest] == sorted(
        [row.tokens_after for row in heavy], key=lambda tokens: -(tokens or 0)
    )
    for unit in report.newest_evicted:
        rows = [row for row in report.messages if row.block == unit.block]
        gone = [row for row in rows if row.fate == "evicted" and row.reason not in ("callback", "repair")]
        own = [row for row in rows if row.unit == gone[-1].unit]
        known = [row.tokens_before for row in own if row.tokens_before is not None]
        assert unit.first <= gone[-1].index <= unit.last
        assert (unit.heaviest.tokens_before or 0) <= unit.tokens
        if unit.message_count == len(own):  # a row has one unit, a message may have parts of several
            assert (unit.first, unit.last) == (own[0].index, own[-1].index)
            assert unit.tokens == sum(known) if unit.counted else unit.tokens <= sum(known)


def _fate(row: MessageRow) -> tuple[Any, ...]:
    """Say what neighbours have alike that are told together; what is changed is told alone."""
    alone = row.index if row.fate == "changed" else None
    return row.fate, row.reason, row.block, row.state == "pinned", alone


def _told_together(rows: list[MessageRow]) -> dict[str, Any]:
    first, evicted = rows[0], rows[0].fate == "evicted"
    calls: dict[tuple[int, str], str] = {}
    for row in rows:
        calls.update({(row.unit, one): name for one, name in zip(row.call_ids, row.tool_names, strict=False)})
    names = list(calls.values())
    return {
        "first": first.index,
        "last": rows[-1].index,
        "message_count": len(rows),
        "fate": first.fate,
        "reason": first.reason,
        "block": first.block,
        "state": first.state,
        "tokens_before": _added([row.tokens_before for row in rows]),
        "tokens_after": None if evicted else _added([row.tokens_after for row in rows]),
        "roles": [row.role for row in rows] if len(rows) <= 2 else [],
        "labels": [row.label for row in rows if row.label],
        "tools": {name: names.count(name) for name in names},
        "answers": bool(names) and {row.role for row in rows} <= ANSWERING,
    }


ANSWERING = {"tool", "user", "function", "function_call_output", "custom_tool_call_output"}
"""Roles, or words for entries, of what may hold results and no calls."""


def _added(tokens: Sequence[int | None]) -> int | None:
    return None if None in tokens else sum(size or 0 for size in tokens)
