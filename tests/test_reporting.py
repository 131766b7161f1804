"""The report of a fit: numbers that add up, no counter called, and every deed named."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.builders import assistant, call, conversations, result, talk, units, user
from tests.properties.claims import (
    the_runs_are_those_of_the_rows,
    the_tally_is_that_of_the_rows,
    what_is_said_of_the_room_is_so,
)
from trimtab import Cascade, Context, Session, SlidingWindow, Summarize, TruncateText, fit, validate
from trimtab.counting import CharCounter
from trimtab.errors import BudgetExceededError
from trimtab.report import Report
from trimtab.strategies import ClampResults, Strategy
from trimtab.testing import WordCounter

WORDS = WordCounter()
PAIR_RULES = {"orphan_result", "repeated_result", "unanswered_call", "late_result"}
Count = Callable[[list[Any]], int]


def thirds(messages: list[Any]) -> int:
    """Count as a black box: characters and 7 a message, rounded once over the whole list."""
    return -(-sum(len(message["content"]) + 7 for message in messages) // 3)


class Noting:
    """A black box that notes how many messages it was asked about."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, messages: list[Any]) -> int:
        """Count and note."""
        self.asked.append(len(messages))
        return thirds(messages)


def chatter(messages: int) -> list[Any]:
    """Make a talk in which no two neighbours are of one length."""
    return [(user if at % 2 else assistant)("x" * (at * 7 % 37)) for at in range(messages)]


@pytest.mark.parametrize("system", [None, "be very brief indeed"])
@pytest.mark.parametrize("budget", [300, 10_000])
def test_a_black_box_is_asked_once_what_it_all_was(system: str | None, budget: int) -> None:
    """`tokens_before` is its answer for the whole request, not a sum of rounded shares."""
    messages = chatter(200)
    before = thirds([*([{"role": "system", "content": system}] if system else []), *messages])
    fitted = fit(messages, budget, counter=thirds, system=system)
    report = fitted.count_all()
    assert report.tokens_before == before
    lead = 0 if system is None else before - (report.blocks[0].tokens_before or 0)
    assert sum(row.tokens_before or 0 for row in report.messages) + lead == before


@pytest.mark.parametrize(("repair", "drop"), [(True, False), (False, True), (True, True)])
def test_a_black_box_counts_what_came_in_not_what_a_repair_or_callback_left(repair: bool, drop: bool) -> None:
    """Also with system text, which stands before the caller's messages; asked only by `count_all`."""
    messages = [result("Z"), *chatter(20)]
    seen = Noting()
    trim = (lambda context: context.remove(3)) if drop else None
    fitted = fit(messages, 60, counter=seen, system="brief", repair=repair, on_trim=trim)
    assert fitted.report.tokens_before is None or not repair
    calls = len(seen.asked)
    report = fitted.count_all()
    assert len(seen.asked) <= calls + 1
    assert report.tokens_before == thirds([{"role": "system", "content": "brief"}, *messages])
    assert None not in [row.tokens_before for row in report.messages]


@pytest.mark.parametrize("budget", [30, 150])
def test_the_rows_of_a_black_box_and_what_was_inserted_add_up(budget: int) -> None:
    """Kept messages and the system text share one total; the block is the rest of it."""
    messages = [user("a" * 30), assistant("b" * 30), user("c")]
    report = fit(messages, budget, counter=thirds, system="SYS").report
    rows = sum(row.tokens_after or 0 for row in report.messages)
    inserted = sum(row.tokens for row in report.inserted)
    assert rows + inserted == report.tokens_after
    assert report.blocks[0].tokens_after == rows
    assert report.blocks[0].limit_tokens == budget - inserted


@pytest.mark.parametrize("system", [None, "SYS"])
def test_the_rows_of_a_black_box_add_up_beside_a_summary(system: str | None) -> None:
    """A summary's tokens are a count; kept messages share the rest, in `fit` and in a `Context`."""
    strategy = Summarize(lambda messages: "short", max_summary_tokens=60)
    messages = [user("a" * 90), assistant("b" * 90), user("c" * 90), assistant("d" * 90), user("e")]
    context = Context(110, counter=thirds, system=system).add("talk", messages, strategy=strategy)
    for fitted in (fit(messages, 110, counter=thirds, system=system, strategy=strategy), context.fit()):
        report = fitted.report
        rows = [row.tokens_after or 0 for row in report.messages]
        inserted = [row.tokens for row in report.inserted]
        assert report.blocks[0].actions == ("summarized",)
        assert sum(rows) + sum(inserted) == report.tokens_after == thirds(fitted.messages)
        assert [bool(tokens) for tokens in rows] == [row.fate == "kept" for row in report.messages]


@pytest.mark.parametrize("strategy", [None, SlidingWindow(), TruncateText()])
def test_reading_a_report_asks_a_black_box_nothing(strategy: Any) -> None:
    """Neither the report, nor its rows, dict, text or violations."""
    counter = Noting()
    fitted = fit(chatter(50), 200, counter=counter, system="brief", strategy=strategy)
    asked = list(counter.asked)
    fitted.report.to_dict(include_text=True)
    fitted.report.to_text()
    assert counter.asked == asked


def test_reading_a_report_asks_a_counter_nothing_about_system_text_and_tools() -> None:
    """What they cost apart was settled by the fit."""
    asked: list[str] = []

    class Asked(WordCounter):
        """Notes every question."""

        def count_message(self, message: Any, /) -> int:
            asked.append("message")
            return super().count_message(message)

        def fixed_tokens(self, *arguments: Any, **more: Any) -> int:
            asked.append("fixed")
            return super().fixed_tokens(*arguments, **more)

    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    fitted = fit(units("3 5 2"), 20, counter=Asked(), system="be brief", tools=tools)
    asked.clear()
    assert fitted.report.tools_tokens == fitted.report.fixed_tokens == 1
    fitted.report.to_dict()
    assert asked == []


def late() -> list[Any]:
    """Make a conversation whose result comes after another message."""
    return [user("q"), call("A"), user("wait"), result("A"), user("go")]


def test_a_result_that_a_repair_moved_is_reported() -> None:
    """It is the same object at another place; its size is known; nothing left, so nothing was evicted."""
    report = fit(late(), 99, counter=WORDS, repair=True).report
    assert [(row.index, row.fate, row.reason) for row in report.messages if row.fate != "kept"] == [
        (3, "changed", "repair")
    ]
    assert (report.messages[3].tokens_before, report.messages[3].tokens_after) == (1, 1)
    assert (report.kept_message_count, report.changed_message_count, report.evicted_message_count) == (
        4,
        1,
        0,
    )
    assert report.blocks[0].actions == ("kept",)


def test_a_moved_result_that_left_is_evicted_for_the_limit() -> None:
    """Only "wait" and "go" fit beside each other; both halves of the call are gone."""
    rows = fit(late(), 2, counter=WORDS, repair=True).report.messages
    assert [(row.fate, row.reason) for row in rows][3] == ("evicted", "over_limit")


@pytest.mark.parametrize(
    ("budget", "callback", "actions"),
    [
        (99, None, ("evicted",)),
        (99, 1, ("evicted", "removed_by_callback")),
        (2, None, ("evicted",)),
        (2, 1, ("removed_by_callback", "evicted")),
    ],
)
def test_what_left_through_a_repair_is_among_the_actions(
    budget: int, callback: int | None, actions: tuple[str, ...]
) -> None:
    """An orphan result leaves whether or not anything else has to."""
    messages = [result("Z"), *talk("u2 a3 u2")]
    trim = None if callback is None else (lambda context: context.remove(callback))
    report = fit(messages, budget, counter=WORDS, repair=True, on_trim=trim).report
    assert report.blocks[0].actions == actions
    assert report.messages[0].reason == "repair"


def test_without_repair_or_callback_nothing_was_done() -> None:
    """Also when a repair found nothing to mend."""
    for repair in (False, True):
        assert fit(talk("u2 a3"), 99, counter=WORDS, repair=repair).report.blocks[0].actions == ("kept",)


def test_texts_are_read_only_when_they_are_asked_for() -> None:
    """The rows have none; the dict and the text form have them all, those of evicted messages too."""
    messages = [user("first words"), assistant("an answer"), user([{"type": "text", "text": "last"}])]
    report: Report = fit(messages, 1, counter=WORDS).report
    assert [row.text for row in report.messages] == [None, None, None]
    said = [row["text"] for row in report.to_dict(include_text=True)["messages"]]
    assert said == ["first words", "an answer", "last"]
    assert "| last" in report.to_text(include_text=True)
    assert "last" not in report.to_text()


def test_rows_have_the_unit_state_calls_and_tools_of_their_message() -> None:
    """By hand, behind a system text that is none of the caller's; ids are the message's own."""
    messages = [user("q"), call("A", "B"), result("B"), result("A"), result("Z"), user("go")]
    rows = fit(messages, 99, counter=WORDS, system="brief").report.messages
    assert [row.unit for row in rows] == [0, 1, 1, 1, 4, 5]
    assert [row.state for row in rows] == ["free"] * 5 + ["pinned"]
    assert [row.call_ids for row in rows] == [(), ("A", "B"), ("B",), ("A",), ("Z",), ()]
    assert [row.tool_names for row in rows] == [(), ("f", "f"), ("f",), ("f",), (), ()]


def test_a_report_can_be_pickled() -> None:
    """Rows and violations are made first; the counter stays behind."""
    report = fit(
        [result("Z"), *talk("u2 a3 u2")],
        4,
        counter=lambda messages: sum(1 for one in messages if one["role"]),
    ).report
    assert pickle.loads(pickle.dumps(report)) == report


@given(conversations())
def test_repair_mends_what_validate_finds_and_the_report_says_where(messages: list[Any]) -> None:
    """No fault of pairing is left, and no message with one came out without a reason in its row."""
    found = [one for one in validate(messages) if one.rule in PAIR_RULES]
    fitted = fit(messages, 100_000, counter=WORDS, repair=True)
    assert [one for one in validate(fitted.messages) if one.rule in PAIR_RULES] == []
    told = {row.index for row in fitted.report.messages if row.reason == "repair"}
    assert told == {one.index for one in found}


def test_a_result_names_the_tool_of_the_call_it_answers() -> None:
    """Ids come again in a long conversation, for calls of other tools."""
    messages = [*called("look", "a"), *called("book", "a"), {"role": "user", "content": "and now?"}]
    rows = fit(messages, budget=10_000, counter=CharCounter()).report.messages
    assert [row.tool_names for row in rows] == [("look",), ("look",), ("book",), ("book",), ()]


def called(tool: str, call_id: str) -> list[Any]:
    """Write a call and its result."""
    call = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([*called("look", "a"), *called("book", "a"), *called("look", "b")], id="ids-again"),
        pytest.param([*called("look", "a"), called("book", "c")[1]], id="result-without-a-call"),
        pytest.param([called("look", "a")[0], *called("book", "a")], id="call-without-a-result"),
        pytest.param([called("book", "c")[1], called("book", "c")[0], *called("a", "a")], id="result-first"),
        pytest.param([called("look", "a")[0], called("book", "b")[0], called("look", "a")[1]], id="late"),
        pytest.param([*called("", "a"), *called("book", "b")], id="call-without-a-name"),
        pytest.param([*called("look", ""), *called("book", "b")], id="call-without-an-id"),
        pytest.param([], id="nothing-of-it"),
    ],
)
@pytest.mark.parametrize("budget", [1, 8, 30, 1_000])
def test_runs_of_broken_calls_are_those_of_the_rows(messages: list[Any], budget: int) -> None:
    """The tools are counted without units where that says the same."""
    asked = [*messages, {"role": "user", "content": "and now?"}]
    try:
        fitted = fit(asked, budget, counter=CharCounter())
    except BudgetExceededError as error:
        fitted = error.attempt
    the_runs_are_those_of_the_rows(fitted.report)
    the_tally_is_that_of_the_rows(fitted)


def test_no_message_is_a_report_without_runs() -> None:
    """Neither rows nor runs."""
    assert fit([], budget=10, counter=CharCounter()).report.to_dict()["runs"] == []


def an_agent(large: int = 900) -> list[Any]:
    """Write twenty turns, in each of which a log is read; one of the logs is as long as is said."""
    messages: list[Any] = [{"role": "system", "content": "You read logs."}]
    for turn in range(20):
        look, found = called("read_log", f"c{turn}")
        messages += [
            user(f"look at file {turn}"),
            look,
            {**found, "content": "line " * 12},
            assistant("done"),
        ]
        if turn == 17:
            messages[-2] = {**found, "content": "line " * large}
    return [*messages, user("and now?")]


@pytest.mark.parametrize(
    ("strategy", "outcome"),
    [
        pytest.param(
            SlidingWindow(),
            "kept 12 of 82 messages; 452 tokens unused: the newest evicted unit needs more than 900"
            " (message 71, result of read_log)",
            id="a-result-without-room",
        ),
        pytest.param(
            Cascade(ClampResults(max_ratio=0.25), SlidingWindow()),
            "kept all 82 messages, 1 changed; message 71 (result of read_log, cut to 125 tokens) takes 25 %"
            " of the room",
            id="a-result-that-was-cut",
        ),
    ],
)
def test_the_second_line_says_whether_the_fit_was_a_good_one(strategy: Strategy, outcome: str) -> None:
    """It is there in each form of the report, and is not counted for: what is not known is not said."""
    report = fit(an_agent(), 500, counter=WORDS, strategy=strategy).report
    assert report.outcome == outcome == report.to_dict()["outcome"]


def test_the_second_line_is_in_every_form_of_the_report() -> None:
    """As text and as a page, and after a trip through JSON."""
    fitted = fit(an_agent(), 500, counter=WORDS, strategy=SlidingWindow())
    outcome = fitted.count_all().outcome
    assert outcome.endswith("needs 902, message 71 (result of read_log) 900 of them")
    text = fitted.report.to_text(width=200).splitlines()
    assert text[1] == f"  {outcome}"
    assert outcome in fitted.to_html()
    assert outcome in fitted.report._repr_html_()
    for rows in ("runs", "messages"):
        data = json.loads(json.dumps(fitted.report.to_dict(rows=rows)))
        assert Report.from_dict(data).outcome == outcome == data["outcome"]


def test_of_several_blocks_the_one_that_is_served_first_is_named() -> None:
    """More room would go to it first; a block has no more room than its own limit."""
    context = Context(400, counter=WORDS)
    context.add("notes", [user(f"note {at} " + "word " * 30) for at in range(9)], priority=1, max_tokens=100)
    context.add("history", an_agent(30), priority=2)
    report = context.fit().report
    assert {unit.block for unit in report.newest_evicted} == {"notes", "history"}
    assert "the newest evicted unit of block history needs" in report.outcome
    notes = report.block("notes")
    alone = replace(report, newest_evicted=[u for u in report.newest_evicted if u.block == "notes"])
    unused = notes.limit_tokens - notes.tokens_after
    assert f"{unused} tokens unused: the newest evicted unit of block notes needs" in alone.outcome


@pytest.mark.parametrize("budget", [110, 150, 400, 900])
def test_a_view_of_a_session_says_it_too(budget: int) -> None:
    """What the report of a session says of the room is so for its rows."""
    session = Session(budget, counter=WORDS)
    for message in an_agent(40):
        session.add(message)
    report = session.fit().report
    what_is_said_of_the_room_is_so(report)
    assert report.outcome.startswith("kept ")


def test_what_a_callback_took_out_had_no_need_of_room() -> None:
    """Only what the budget has no room for is told of."""
    report = fit(an_agent(30), 10_000, counter=WORDS, on_trim=lambda context: context.remove(1)).report
    assert report.evicted_message_count
    assert not report.newest_evicted
