"""What else `fit` takes: callbacks, repair, system text and tools, pins; the claims hold beside them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import conversations
from tests.properties import claims, oracle
from tests.properties.cases import COUNTERS, DEFAULT, STRATEGIES, WORDS, limits, run
from trimtab import fit, validate
from trimtab.counting import CountRequest
from trimtab.testing import WordCounter

TOOLS = [{"type": "function", "function": {"name": "f", "description": "looks things up"}}]


@given(conversations(), st.data())
def test_a_callback_leaves_what_a_fit_without_the_removed_units_has(
    messages: list[Any], data: st.DataObject
) -> None:
    """D9: whole units go, open calls do not, and A4 applies to what is left."""
    strategy, counter = data.draw(st.sampled_from(STRATEGIES)), data.draw(st.sampled_from(COUNTERS))
    seqs = data.draw(st.sets(st.integers(-2, len(messages) + 2), max_size=4))
    limit = data.draw(limits(messages, counter))
    open_at = {at for at, _ in oracle.open_calls(messages)}
    gone = {
        at
        for group in oracle.groups(messages)
        if seqs & {*group.indices} and not open_at & {*group.indices}
        for at in group.indices
    }
    rest = [message for at, message in enumerate(messages) if at not in gone]
    case = run(messages, limit, strategy, counter, on_trim=lambda trim: trim.remove(seqs))
    claims.the_input_is_unchanged(case)
    if not rest:
        assert case.attempt.messages == []
        return
    other = run(rest, limit, strategy, counter)
    assert (case.error is None) == (other.error is None)
    assert case.attempt.messages == other.attempt.messages
    for row in case.attempt.report.messages:
        asked = row.reason == "callback"
        assert row.index not in gone or (row.fate == "evicted" and asked == (row.index in seqs))
    claims.once_each_in_order(case)
    claims.within_the_budget(case)
    claims.no_new_violation(case)


@given(conversations(), st.data())
def test_a_repaired_conversation_comes_out_valid(messages: list[Any], data: st.DataObject) -> None:
    """A2: with `repair=True` nothing about calls and results is wrong with what comes out."""
    strategy, counter = data.draw(st.sampled_from(STRATEGIES)), data.draw(st.sampled_from(COUNTERS))
    case = run(messages, data.draw(limits(messages, counter)), strategy, counter, repair=True)
    assert oracle.violations(case.attempt.messages) == set()
    pair_rules = ("orphan_result", "repeated_result", "unanswered_call", "late_result")
    assert [v for v in validate(case.attempt.messages) if v.rule in pair_rules] == []
    claims.within_the_budget(case)
    claims.the_input_is_unchanged(case)
    rows = case.attempt.report.messages
    assert [row.index for row in rows] == list(range(len(messages)))
    stays = [row for row in rows if row.fate != "evicted"]
    assert len(stays) == len(case.attempt.messages)


@given(conversations(), st.sampled_from(STRATEGIES), st.booleans(), st.data())
def test_system_text_and_tools_are_counted_once(
    messages: list[Any], strategy: Any, black_box: bool, data: st.DataObject
) -> None:
    """A1: messages, system text and tools, each once; the system text comes first and is listed apart."""
    counter = WORDS.count if black_box else WORDS
    limit = data.draw(limits(messages, counter)) + data.draw(st.integers(0, 12))
    case = run(messages, limit, strategy, counter, system="be very brief", tools=TOOLS)
    output = case.attempt.messages
    assert output[0] == {"role": "system", "content": "be very brief"}
    assert [(row.position, row.tokens) for row in case.attempt.report.inserted] == [(0, 3)] or black_box
    size = WordCounter().count_request(CountRequest(output, tools=TOOLS))
    assert case.attempt.report.tokens_after == size
    assert (size <= limit) == (case.error is None)
    rest = [row for row in case.attempt.report.messages if row.fate != "evicted"]
    assert len(rest) == len(output) - 1


def test_a_million_spaces_and_odd_texts_are_answered_quickly() -> None:
    """A9: linear in the length; a cut leaves a marker."""
    odd = [
        "",
        "\x00" * 50_000,
        "\ud800" * 50_000,
        " " * 1_000_000,
        "<|endoftext|>" * 20_000,
        "e\u0301" * 50_000,
    ]
    for text in odd:
        for counter in COUNTERS:
            messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}]
            case = run(messages, 12, DEFAULT, counter)
            claims.within_the_budget(case)


def test_a_black_box_is_called_a_few_times() -> None:
    """A9: O(log n) times a block, whatever the strategy."""
    messages = [{"role": "user" if at % 2 else "assistant", "content": f"word {at}"} for at in range(300)]
    calls: list[int] = []

    def count(request: list[Any]) -> int:
        calls.append(len(request))
        return WORDS.count(request)

    for strategy in STRATEGIES:
        calls.clear()
        run(messages, 210, strategy, count)
        assert 0 < len(calls) <= 60, (strategy, len(calls))


def test_writing_the_report_counts_nothing() -> None:
    """A8: `to_dict()` never counts; a size the fit did not need is None."""
    asked: list[Any] = []

    class Noting(WordCounter):
        """Notes what it is asked."""

        def count_message(self, message: Any, /) -> int:
            asked.append(message)
            return super().count_message(message)

    messages = [{"role": "user", "content": f"word {at}"} for at in range(1_000)]
    fitted = fit(messages, 100, counter=Noting())
    assert len(asked) < 150
    asked.clear()
    data, rows = fitted.report.to_dict(), fitted.report.to_dict(rows="messages")
    assert asked == []
    assert data["tokens_before"] is None
    assert data["runs"][0]["tokens_before"] is None
    assert rows["messages"][0]["tokens_before"] is None
    assert fitted.count_all().tokens_before == 2_000
